/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * config apply and its like: another configuration in place of the one in effect, all of it or nothing. The text comes in
 * pieces, by config stage. What it means is known to the configurer (control/configurer.h); here it is told, waited for
 * until all live flows are decided by its rules, confirmed, taken back, and saved.
 */

#include "control/config_apply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/event.h"
#include "control/policy.h"
#include "control/staged.h"
#include "control/verbs.h"
#include "export/json.h"

/* The longest text of a configuration. */
#define TEXT_MAX_BYTES ((size_t)1 << 20)
/* Keys of an event, and of names in them. */
#define KEYS_MAX 1024

void control_config_change_fini(struct control_config_change *change)
{
	json_decref(change->lines);
	free(change->json);
	*change = (struct control_config_change){.lines = NULL};
}

void control_configured_by(struct control *control, const struct control_configurer *configurer)
{
	control->configurer = *configurer;
}

/* Events. */

static size_t put_config_change(char *keys, size_t size, const struct control_config_change *change)
{
	return (size_t)snprintf(keys, size,
		",\"keys\":%u,\"rules\":%s,\"blocks_added\":%" PRIu32 ",\"blocks_removed\":%" PRIu32
		",\"exports_opened\":%u,\"exports_closed\":%u",
		change->now, change->rules_changed ? "true" : "false", change->blocks_added,
		change->blocks_removed, change->exports_opened, change->exports_closed);
}

static void put_text(char *keys, size_t size, const char *key, const char *text)
{
	char *quoted = export_json_string(text);
	const size_t length = strlen(keys);

	if (quoted != NULL && length + strlen(key) + strlen(quoted) + 8 < size)
		snprintf(keys + length, size - length, ",\"%s\":%s", key, quoted);
	free(quoted);
}

static void tell_refused(struct control *control, const char *name, const struct error *error)
{
	char keys[KEYS_MAX] = "";

	put_text(keys, sizeof(keys), "file", name);
	put_text(keys, sizeof(keys), "why", error->text);
	event_policy(control, "config_refused", keys);
}

/* Another configuration is in effect. */
static void take_effect(
	struct control *control, const char *name, struct control_config_change *change)
{
	struct control_configured *configured = &control->configured;

	free(control->config_json);
	control->config_json = change->json;
	change->json = NULL;
	configured->number++;
	configured->applied_us = plane_now_us(control->plane);
	configured->save = false;
	snprintf(configured->name, sizeof(configured->name), "%s", name);
}

static int apply(struct control *control, const struct control_config_text *text,
	struct control_config_change *change, struct error *error)
{
	const struct control_configurer *configurer = &control->configurer;
	char keys[KEYS_MAX];
	int ret = policy_check_unconfirmed(control, error);

	if (ret == 0)
		ret = configurer->apply(configurer->context, text, change, error);
	if (ret < 0)
		return ret;
	take_effect(control, text->name, change);
	control->configured.saved_before = control->configured.saved;
	control->configured.saved = text->text == NULL;
	snprintf(keys, sizeof(keys), ",\"number\":%" PRIu32, control->configured.number);
	put_config_change(keys + strlen(keys), sizeof(keys) - strlen(keys), change);
	put_text(keys, sizeof(keys), "file", text->name);
	event_policy(control, "config_applied", keys);
	return 0;
}

int control_reload(
	struct control *control, struct control_config_change *change, struct error *error)
{
	const struct control_configurer *configurer = &control->configurer;
	const char *file = configurer->file(configurer->context);
	const struct control_config_text text = {.name = file != NULL ? file : ""};

	*change = (struct control_config_change){.lines = NULL};
	int ret = apply(control, &text, change, error);

	if (ret < 0 && ret != -EAGAIN)
		tell_refused(control, text.name, error);
	return ret;
}

int config_go_back(struct control *control, const char *why, struct control_config_change *changed,
	struct error *error)
{
	const struct control_configurer *configurer = &control->configurer;
	struct control_config_change own = {.lines = NULL};
	struct control_config_change *change = changed != NULL ? changed : &own;
	char keys[KEYS_MAX];
	int ret = configurer->go_back(configurer->context, why, change, error);

	if (ret == 0) {
		take_effect(control, "", change);
		control->configured.saved = control->configured.saved_before;
		snprintf(keys, sizeof(keys), ",\"number\":%" PRIu32 ",\"why\":\"%s\"",
			control->configured.number, why);
		put_config_change(keys + strlen(keys), sizeof(keys) - strlen(keys), change);
		event_policy(control, "config_rollback", keys);
	}
	control_config_change_fini(&own);
	return ret;
}

int config_can_save_rules(const struct control *control, struct error *error)
{
	const struct control_configurer *configurer = &control->configurer;

	if (configurer->rules_file != NULL && configurer->rules_file(configurer->context) != NULL)
		return 0;
	return error_set(error, -ENOENT,
		"the engine has no file of rules that these could be saved to; --rules FILE, or "
		"rules.file of its configuration, names one");
}

int config_save_rules(struct control *control, struct error *error)
{
	const struct control_configurer *configurer = &control->configurer;
	struct control_staged *save = &control->policy.save;
	int ret = config_can_save_rules(control, error);

	if (ret == 0)
		ret = configurer->save_rules(configurer->context,
			save->text != NULL ? save->text : "", save->length, error);
	staged_drop(save);
	return ret;
}

/* stage */

static const struct request_key stage_keys[] = {
	{.name = "text", .type = REQUEST_TEXT, .needed = true},
};

static int can_change(const struct answer *answer, struct error *error)
{
	if (answer->control->configurer.apply != NULL)
		return 0;
	return error_set(error, -ENOTSUP, "%s: the configuration of this engine does not change",
		answer->verb->ask);
}

static int stage_config(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	int ret = can_change(answer, error);

	return ret < 0 ? ret
		       : staged_add(answer, values[0].text, TEXT_MAX_BYTES,
				 "more than 1 MB, too long for a configuration", error);
}

const struct answer_verb config_stage = {
	.ask = "config stage",
	.keys = stage_keys,
	.n_keys = RTE_DIM(stage_keys),
	.begin = stage_config,
};

/* diff, apply */

enum apply_key { APPLY_FILE, APPLY_CONFIRM, APPLY_WAIT, APPLY_SAVE, APPLY_N_KEYS };

static const struct request_key apply_keys[APPLY_N_KEYS] = {
	[APPLY_FILE] = {.name = "file", .type = REQUEST_TEXT},
	[APPLY_CONFIRM] = {.name = "confirm", .type = REQUEST_NUMBER, .min = 1, .max = 86400},
	[APPLY_WAIT] = {.name = "wait", .type = REQUEST_FLAG},
	[APPLY_SAVE] = {.name = "save", .type = REQUEST_FLAG},
};

struct applying {
	struct control_config_change change;
	uint32_t epoch; /* of rules that are waited for; 0: none are */
	uint32_t confirm;
	bool saved;
};

static struct applying *begin_applying(struct answer *answer, struct error *error)
{
	struct applying *applying = calloc(1, sizeof(*applying));

	answer->state = applying;
	if (applying == NULL)
		control_silent(error, -ENOMEM, answer->verb->ask);
	return applying;
}

static struct control_config_text text_of(
	const struct answer *answer, const struct request_value *file)
{
	const struct control_staged *staged = answer->staged;

	return (struct control_config_text){
		.name = file->given && file->text[0] != '\0' ? file->text : "configuration",
		.text = staged->text != NULL ? staged->text : "",
		.size = staged->length,
	};
}

static int tell_lines(struct answer *answer, struct error *error)
{
	const struct applying *applying = answer->state;
	json_t *line;
	size_t i;
	int ret = 0;

	json_array_foreach(applying->change.lines, i, line)
	{
		if (ret == 0)
			ret = answer_add(answer, json_incref(line));
	}
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

static void add_config_change(json_t *line, const struct control_config_change *change)
{
	answer_number(line, "keys", change->now);
	answer_number(line, "restart", change->restart);
	if (change->rules) {
		json_t *rules = json_object();

		answer_number(rules, "added", change->of_rules.n[RULES_ADDED]);
		answer_number(rules, "removed", change->of_rules.n[RULES_REMOVED]);
		answer_number(rules, "moved", change->of_rules.n[RULES_MOVED]);
		answer_number(rules, "unchanged", change->of_rules.n[RULES_UNCHANGED]);
		json_object_set_new(line, "rules", rules);
	}
	answer_number(line, "blocks_added", change->blocks_added);
	answer_number(line, "blocks_removed", change->blocks_removed);
	answer_number(line, "exports_opened", change->exports_opened);
	answer_number(line, "exports_closed", change->exports_closed);
}

static int diff_config(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct control_configurer *configurer = &answer->control->configurer;
	const struct control_config_text text = text_of(answer, &values[APPLY_FILE]);
	struct applying *applying = begin_applying(answer, error);
	struct error said;
	int ret = applying == NULL ? -ENOMEM : can_change(answer, error);

	if (ret < 0)
		return ret;
	ret = configurer->diff(configurer->context, &text, &applying->change, &said);
	staged_drop(answer->staged);
	if (ret < 0)
		return error_set(error, ret == -EINVAL ? -EBADMSG : ret, "%s", said.text);
	return tell_lines(answer, error);
}

static void end_config_diff(struct answer *answer, json_t *end)
{
	const struct applying *applying = answer->state;

	add_config_change(end, &applying->change);
	answer_number(end, "number", answer->control->configured.number);
}

static void end_applying(struct answer *answer)
{
	struct applying *applying = answer->state;

	if (applying != NULL)
		control_config_change_fini(&applying->change);
	free(applying);
}

const struct answer_verb config_diff = {
	.ask = "config diff",
	.keys = apply_keys,
	.n_keys = APPLY_FILE + 1,
	.begin = diff_config,
	.finish = end_config_diff,
	.end = end_applying,
};

/* The last line: what was done. */
static int tell_applied(struct answer *answer, bool waited, struct error *error)
{
	const struct applying *applying = answer->state;
	const struct control *control = answer->control;
	json_t *line = json_object();

	answer_number(line, "number", control->configured.number);
	add_config_change(line, &applying->change);
	if (applying->change.rules_changed)
		answer_number(line, "epoch", rules_epoch(plane_rules(answer->plane)));
	if (waited) {
		answer_number(line, "flows_us", control->policy.flows_us);
		answer_number(line, "took_us", control->policy.took_us);
	}
	if (applying->confirm != 0)
		answer_number(line, "confirm", applying->confirm);
	if (applying->saved)
		json_object_set_new(line, "saved",
			answer_string(control->configurer.file(control->configurer.context)));
	int ret = answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

/* It is in effect: it is told at once, or when its rules are in force everywhere. */
static int end_apply(struct answer *answer, bool wait, struct error *error)
{
	struct applying *applying = answer->state;
	int ret = tell_lines(answer, error);

	if (ret < 0)
		return ret;
	if (applying->change.rules_changed && wait) {
		applying->epoch = rules_epoch(plane_rules(answer->plane));
		return 0;
	}
	return tell_applied(answer, false, error);
}

static int apply_turn(struct answer *answer, struct error *error)
{
	struct applying *applying = answer->state;

	if (applying->epoch == 0)
		return ANSWER_END;
	int ret = policy_turn_of(answer, applying->epoch, error);

	if (ret != ANSWER_GO)
		return ret;
	applying->epoch = 0;
	ret = tell_applied(answer, true, error);
	return ret < 0 ? ret : ANSWER_GO;
}

static int can_save(const struct answer *answer, struct error *error)
{
	const struct control_configurer *configurer = &answer->control->configurer;

	if (configurer->file(configurer->context) != NULL)
		return 0;
	return error_set(error, -ENOENT,
		"%s: the engine was started without a file that this could be saved to; --config "
		"FILE of millrace run names one",
		answer->verb->ask);
}

/* It is in effect, whether or not it can be saved. */
static int save(struct answer *answer, struct error *error)
{
	struct control *control = answer->control;
	struct error said;

	control->configured.save = false;
	if (control->configurer.save(control->configurer.context, &said) < 0)
		return error_set(error, -EIO,
			"%s: the configuration is in effect, but it was not saved: %.350s",
			answer->verb->ask, said.text);
	control->configured.saved = true;
	control->configured.saved_before = false;
	return 0;
}

/* Nobody has confirmed it in time. */
static int back_alone(struct control *control, struct error *error)
{
	return config_go_back(control, "not confirmed", NULL, error);
}

static int apply_staged(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct control_config_text text = text_of(answer, &values[APPLY_FILE]);
	struct applying *applying = answer->state;
	struct control *control = answer->control;
	struct error said;

	text.to_save = values[APPLY_SAVE].flag;
	int ret = apply(control, &text, &applying->change, &said);

	/* what was just replaced is still in use: the request is begun again until it is not */
	if (ret == -EAGAIN)
		return error_set(error, -ETIMEDOUT, "%s: %s", answer->verb->ask, said.text);
	if (ret < 0) {
		tell_refused(control, text.name, &said);
		return error_set(error, ret == -EINVAL ? -EBADMSG : ret, "%s", said.text);
	}
	if (values[APPLY_CONFIRM].given) {
		applying->confirm = values[APPLY_CONFIRM].number;
		policy_await(control, applying->confirm, true, back_alone);
		control->configured.save = values[APPLY_SAVE].flag;
	} else if (values[APPLY_SAVE].flag) {
		ret = save(answer, error);
		applying->saved = ret == 0;
	}
	return ret;
}

static int apply_begin(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	int ret = begin_applying(answer, error) == NULL ? -ENOMEM : can_change(answer, error);

	if (ret == 0 && values[APPLY_SAVE].flag)
		ret = can_save(answer, error);
	if (ret == 0)
		ret = apply_staged(answer, values, error);
	if (ret == -ETIMEDOUT)
		return ret;
	staged_drop(answer->staged);
	return ret < 0 ? ret
		       : end_apply(answer, !values[APPLY_WAIT].given || values[APPLY_WAIT].flag,
				 error);
}

const struct answer_verb config_apply = {
	.ask = "config apply",
	.keys = apply_keys,
	.n_keys = APPLY_N_KEYS,
	.begin = apply_begin,
	.turn = apply_turn,
	.end = end_applying,
};

/* confirm, rollback */

static int confirm_config(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct control *control = answer->control;
	bool saved = false;
	json_t *line;
	int ret = can_change(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	if (!policy_confirm(control, true))
		return error_set(error, -ENOENT, "%s: no configuration waits to be confirmed",
			answer->verb->ask);
	event_policy(control, "config_confirmed", "");
	if (control->configured.save) {
		ret = save(answer, error);
		saved = ret == 0;
	}
	if (ret < 0)
		return ret;
	line = json_object();
	answer_number(line, "number", control->configured.number);
	if (saved)
		json_object_set_new(line, "saved",
			answer_string(control->configurer.file(control->configurer.context)));
	ret = answer_add(answer, line);
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb config_confirm = {
	.ask = "config confirm",
	.begin = confirm_config,
};

static int roll_back_config(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct applying *applying = begin_applying(answer, error);
	struct control *control = answer->control;
	struct error said;
	int ret = applying == NULL ? -ENOMEM : can_change(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	if (policy_waits_s(control, false) != 0)
		return error_set(error, -EBUSY,
			"%s: the rules that were loaded last wait for rule confirm; it, or rule "
			"rollback, comes first",
			answer->verb->ask);
	ret = config_go_back(control, "asked for", &applying->change, &said);
	if (ret < 0)
		return error_set(error, ret == -EAGAIN ? -ETIMEDOUT : ret, "%s: %s",
			answer->verb->ask, said.text);
	(void)policy_confirm(control, true);
	return end_apply(answer, true, error);
}

const struct answer_verb config_rollback = {
	.ask = "config rollback",
	.begin = roll_back_config,
	.turn = apply_turn,
	.end = end_applying,
};

/* status */

static int config_state(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct control *control = answer->control;
	const struct control_configured *configured = &control->configured;
	const struct control_configurer *configurer = &control->configurer;
	char time[EXPORT_JSON_TIME_MAX];
	json_t *line;
	int ret = can_change(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	line = json_object();
	answer_number(line, "number", configured->number);
	if (configurer->file(configurer->context) != NULL)
		json_object_set_new(
			line, "file", answer_string(configurer->file(configurer->context)));
	if (configured->name[0] != '\0')
		json_object_set_new(line, "applied", answer_string(configured->name));
	if (configured->applied_us != 0)
		json_object_set_new(line, "since",
			json_string(export_json_time(
				time, plane_origin_us(answer->plane) + configured->applied_us)));
	json_object_set_new(line, "saved", json_boolean(configured->saved));
	json_object_set_new(
		line, "before", json_boolean(configurer->has_before(configurer->context)));
	if (policy_waits_s(control, true) != 0)
		answer_number(line, "confirm", policy_waits_s(control, true));
	ret = answer_add(answer, line);
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb config_status = {
	.ask = "config status",
	.begin = config_state,
};
