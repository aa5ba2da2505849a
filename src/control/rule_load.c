/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rule load and its like: another list of rules in place of the one in force. The list comes in pieces, by rule stage, as
 * a request is short; it is checked and put in force by one request, whose answer waits until all live flows are decided
 * by it and NICs have let go what the old list had there.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "control/config_apply.h"
#include "control/control.h"
#include "control/event.h"
#include "control/policy.h"
#include "control/rule_name.h"
#include "control/staged.h"
#include "control/verbs.h"
#include "export/json.h"

/* stage */

enum stage_key { STAGE_TEXT, STAGE_N_KEYS };

static const struct request_key stage_keys[STAGE_N_KEYS] = {
	[STAGE_TEXT] = {.name = "text", .type = REQUEST_TEXT, .needed = true},
};

static int stage(struct answer *answer, const struct request_value *values, struct error *error)
{
	if (rules_of(answer, error) == NULL)
		return -ENOTSUP;
	return staged_add(answer, values[STAGE_TEXT].text, RULES_FILE_MAX_BYTES,
		"a list of rules has at most 1 GiB", error);
}

const struct answer_verb rule_stage = {
	.ask = "rule stage",
	.keys = stage_keys,
	.n_keys = STAGE_N_KEYS,
	.begin = stage,
};

/* diff, load */

enum load_key { LOAD_FILE, LOAD_CONFIRM, LOAD_WAIT, LOAD_SAVE, LOAD_N_KEYS };

static const struct request_key load_keys[LOAD_N_KEYS] = {
	[LOAD_FILE] = {.name = "file", .type = REQUEST_TEXT},
	[LOAD_CONFIRM] = {.name = "confirm", .type = REQUEST_NUMBER, .min = 1, .max = 86400},
	[LOAD_WAIT] = {.name = "wait", .type = REQUEST_FLAG},
	[LOAD_SAVE] = {.name = "save", .type = REQUEST_FLAG},
};

/* The name that errors give to the source of its lines. */
static const char *name_of(const struct request_value *value)
{
	return value->given && value->text[0] != '\0' ? value->text : "rules";
}

struct loading {
	struct answer *answer;
	struct rules_change change;
	uint32_t epoch, confirm;
	bool failed;
};

static void tell_warning(void *context, const char *text)
{
	struct loading *loading = context;
	json_t *line = json_object();

	json_object_set_new(line, "warning", answer_string(text));
	loading->failed |= answer_add(loading->answer, line) < 0;
}

/* Reads the text that the connection has sent as a list, and frees the text. */
static int read_staged(struct answer *answer, const char *name, rules_tell_fn tell, void *context,
	struct rules_list **list, struct error *error)
{
	struct rules *rules = rules_of(answer, error);
	struct control_staged *staged = answer->staged;
	struct error said;

	if (rules == NULL)
		return -ENOTSUP;
	if (rules_list_create(rules, list) < 0)
		return control_silent(error, -ENOMEM, answer->verb->ask);
	int ret = rules_list_read(rules, *list, name, staged->text != NULL ? staged->text : "",
		staged->length, tell, context, &said);

	if (ret < 0) {
		rules_list_destroy(rules, *list);
		staged_drop(staged);
		return error_set(error, ret, "%s", said.text);
	}
	return 0;
}

static void add_change(json_t *line, const struct rules_change *change)
{
	answer_number(line, "added", change->n[RULES_ADDED]);
	answer_number(line, "removed", change->n[RULES_REMOVED]);
	answer_number(line, "moved", change->n[RULES_MOVED]);
	answer_number(line, "unchanged", change->n[RULES_UNCHANGED]);
}

static int tell_loaded(struct answer *answer, bool waited, struct error *error)
{
	const struct loading *loading = answer->state;
	const struct control_policy *policy = &answer->control->policy;
	json_t *line = json_object();

	answer_number(line, "epoch", loading->epoch);
	add_change(line, &loading->change);
	if (waited) {
		answer_number(line, "flows_us", policy->flows_us);
		answer_number(line, "took_us", policy->took_us);
	}
	if (loading->confirm != 0)
		answer_number(line, "confirm", loading->confirm);
	int ret = loading->failed ? -ENOMEM : answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

static struct loading *begin_loading(struct answer *answer, struct error *error)
{
	struct loading *loading = calloc(1, sizeof(*loading));

	if (loading == NULL)
		control_silent(error, -ENOMEM, answer->verb->ask);
	else
		loading->answer = answer;
	answer->state = loading;
	return loading;
}

/*
 * The text of the list that is in force is written to the engine's own file of rules: now, or when it is confirmed. It is
 * in force whether or not that succeeds.
 */
static int save_list(struct answer *answer, bool later, struct error *error)
{
	struct control_policy *policy = &answer->control->policy;
	struct control_staged *staged = answer->staged;
	struct error said;

	free(policy->save.text);
	policy->save = *staged;
	*staged = (struct control_staged){0};
	if (later)
		return 0;
	if (config_save_rules(answer->control, &said) < 0)
		return error_set(error, -EIO,
			"%s: the rules are in force, but they were not saved: %.350s",
			answer->verb->ask, said.text);
	return 0;
}

/* Nobody has confirmed it in time. */
static int back_alone_to_rules(struct control *control, struct error *error)
{
	struct rules_change change;

	return policy_go_back(control, "not confirmed", &change, error);
}

static int load_staged(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct control *control = answer->control;
	struct loading *loading = answer->state;
	const char *name = name_of(&values[LOAD_FILE]);
	struct rules_list *list;
	struct error said;
	int ret = policy_check_unconfirmed(control, &said);

	if (ret == 0 && values[LOAD_SAVE].flag)
		ret = config_can_save_rules(control, &said);
	if (ret < 0)
		return error_set(error, ret, "%s: %s", answer->verb->ask, said.text);
	ret = read_staged(answer, name, tell_warning, loading, &list, error);
	if (ret < 0)
		return ret;
	ret = policy_put(control, name, list, &loading->change, &said);
	/* workers are about to be through with the list before: the request is begun again until then */
	if (ret == -EAGAIN)
		return error_set(error, -ETIMEDOUT, "%s: %s", answer->verb->ask, said.text);
	if (ret < 0) {
		staged_drop(answer->staged);
		return error_set(error, ret, "%s: %s", answer->verb->ask, said.text);
	}
	loading->epoch = rules_epoch(plane_rules(answer->plane));
	if (values[LOAD_CONFIRM].given) {
		loading->confirm = values[LOAD_CONFIRM].number;
		policy_await(control, loading->confirm, false, back_alone_to_rules);
	}
	if (values[LOAD_SAVE].flag)
		ret = save_list(answer, values[LOAD_CONFIRM].given, error);
	staged_drop(answer->staged);
	return ret;
}

static int load_list(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct loading *loading = begin_loading(answer, error);

	if (loading == NULL)
		return -ENOMEM;
	int ret = load_staged(answer, values, error);

	if (ret < 0 || !values[LOAD_WAIT].given || values[LOAD_WAIT].flag)
		return ret;
	ret = tell_loaded(answer, false, error);
	loading->epoch = 0;
	return ret;
}

/* Until it is in force everywhere. */
static int load_turn(struct answer *answer, struct error *error)
{
	struct loading *loading = answer->state;

	if (loading->epoch == 0)
		return ANSWER_END;
	int ret = policy_turn_of(answer, loading->epoch, error);

	if (ret != ANSWER_GO)
		return ret;
	ret = tell_loaded(answer, true, error);
	loading->epoch = 0;
	return ret < 0 ? ret : ANSWER_GO;
}

static void end_loading(struct answer *answer)
{
	free(answer->state);
}

const struct answer_verb rule_load = {
	.ask = "rule load",
	.keys = load_keys,
	.n_keys = LOAD_N_KEYS,
	.begin = load_list,
	.turn = load_turn,
	.end = end_loading,
};

static void tell_difference(
	void *context, enum rules_difference difference, const char *text, uint32_t number)
{
	static const char *const names[RULES_N_DIFFERENCES] = {
		[RULES_ADDED] = "added",
		[RULES_REMOVED] = "removed",
		[RULES_MOVED] = "moved",
		[RULES_UNCHANGED] = "unchanged",
	};
	struct loading *loading = context;
	json_t *line = json_object();

	json_object_set_new(line, "change", json_string(names[difference]));
	if (number != 0)
		answer_number(line, "line", number);
	json_object_set_new(line, "rule", answer_string(text));
	loading->failed |= answer_add(loading->answer, line) < 0;
}

static int diff(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct rules *rules = plane_rules(answer->plane);
	struct loading *loading = begin_loading(answer, error);
	struct rules_list *list;

	if (loading == NULL)
		return -ENOMEM;
	int ret = read_staged(answer, name_of(&values[LOAD_FILE]), NULL, NULL, &list, error);

	if (ret < 0)
		return ret;
	staged_drop(answer->staged);
	ret = rules_compare(rules, list, &loading->change, tell_difference, loading);
	rules_list_destroy(rules, list);
	if (ret == 0 && loading->failed)
		ret = -ENOMEM;
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

static void end_diff(struct answer *answer, json_t *end)
{
	const struct loading *loading = answer->state;

	add_change(end, &loading->change);
	answer_number(end, "epoch", rules_epoch(plane_rules(answer->plane)));
}

const struct answer_verb rule_diff = {
	.ask = "rule diff",
	.keys = load_keys,
	.n_keys = LOAD_FILE + 1,
	.begin = diff,
	.finish = end_diff,
	.end = end_loading,
};

/* confirm, rollback */

static int confirm(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct rules *rules = rules_of(answer, error);
	json_t *line = json_object();
	struct error said;

	(void)values;
	if (rules == NULL || !policy_confirm(answer->control, false)) {
		json_decref(line);
		return rules == NULL ? -ENOTSUP
				     : error_set(error, -ENOENT,
					       "%s: no list of rules waits to be confirmed",
					       answer->verb->ask);
	}
	answer_number(line, "epoch", rules_epoch(rules));
	event_policy(answer->control, "policy_confirmed", "");
	if (answer->control->policy.save.text != NULL &&
		config_save_rules(answer->control, &said) < 0) {
		json_decref(line);
		return error_set(error, -EIO,
			"%s: the rules stay in force, but they were not saved: %.350s",
			answer->verb->ask, said.text);
	}
	int ret = answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb rule_confirm = {
	.ask = "rule confirm",
	.begin = confirm,
};

static int rollback(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct loading *loading = begin_loading(answer, error);
	struct error said;

	(void)values;
	if (loading == NULL)
		return -ENOMEM;
	if (rules_of(answer, error) == NULL)
		return -ENOTSUP;
	/* rules of an applied configuration go back with it */
	if (policy_waits_s(answer->control, true) != 0)
		return error_set(error, -EBUSY,
			"%s: the configuration that was applied last waits for config confirm; it, "
			"or config rollback, comes first",
			answer->verb->ask);
	int ret = policy_go_back(answer->control, "asked for", &loading->change, &said);

	if (ret < 0)
		return error_set(error, ret == -EAGAIN ? -ETIMEDOUT : ret, "%s: %s",
			answer->verb->ask, said.text);
	loading->epoch = rules_epoch(plane_rules(answer->plane));
	return 0;
}

const struct answer_verb rule_rollback = {
	.ask = "rule rollback",
	.begin = rollback,
	.turn = load_turn,
	.end = end_loading,
};

/* status */

static const char *state_of(const struct control_policy *policy, uint32_t epoch)
{
	if (policy->generation == 0)
		return "applied";
	if (policy->flows_us == 0)
		return "deciding";
	return policy->not_in_nic == epoch ? "not_in_nic" : "leaving_nics";
}

static int status(struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct control *control = answer->control;
	const struct control_policy *policy = &control->policy;
	struct rules *rules = rules_of(answer, error);
	char time[EXPORT_JSON_TIME_MAX];
	struct rules_stats stats;
	json_t *line;

	(void)values;
	if (rules == NULL)
		return -ENOTSUP;
	rules_stats(rules, &stats);
	line = json_object();
	answer_number(line, "epoch", rules_epoch(rules));
	json_object_set_new(line, "state", json_string(state_of(policy, rules_epoch(rules))));
	answer_number(line, "rules", stats.rules);
	answer_number(line, "max", stats.max_rules);
	if (policy->file[0] != '\0')
		json_object_set_new(line, "file", answer_string(policy->file));
	if (policy->loaded_us != 0)
		json_object_set_new(line, "loaded",
			json_string(export_json_time(
				time, plane_origin_us(answer->plane) + policy->loaded_us)));
	if (policy->generation != 0) {
		answer_number(
			line, "workers", plane_policy_workers(answer->plane, policy->generation));
		answer_number(line, "of", plane_config(answer->plane)->n_workers);
		answer_number(
			line, "nic_rules_leaving", plane_nic_rules_leaving(answer->plane, NULL, 0));
	} else if (policy->took_us != 0) {
		answer_number(line, "flows_us", policy->flows_us);
		answer_number(line, "took_us", policy->took_us);
	}
	if (stats.before != RULES_NONE)
		answer_number(line, "before", stats.before);
	if (policy_waits_s(control, false) != 0)
		answer_number(line, "confirm", policy_waits_s(control, false));
	int ret = answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb rule_status = {
	.ask = "rule status",
	.begin = status,
};
