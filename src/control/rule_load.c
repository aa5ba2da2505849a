/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rule load and its like: another list of rules in place of the one in force. The list comes in pieces, by rule stage, as
 * a request is short; it is checked and put in force by one request, and what becomes of it is looked at until all live
 * flows are decided by it and NICs have let go what the old list had there.
 */
#include "control/rule_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "control/control.h"
#include "control/event.h"
#include "control/rule_name.h"
#include "control/verbs.h"
#include "export/json.h"

/* How often it is looked how far a list has come, and once that has taken too long. */
#define LOOK_US UINT64_C(5000)
#define LATE_LOOK_US UINT64_C(250000)
/* Keys of an event, and of names in them. */
#define KEYS_MAX 1024

void staged_drop(struct control_staged *staged)
{
	free(staged->text);
	*staged = (struct control_staged){0};
}

void policy_begin_control(struct control *control)
{
	control->policy = (struct control_policy){
		.look_us = UINT64_MAX, .confirm_us = UINT64_MAX, .applied = 1};
}

/* The outcome of a list. */

static uint64_t us_since(const struct control *control, uint64_t since_us)
{
	/* nothing takes no time: 0 is for what is not over */
	return RTE_MAX(control->now_us - since_us, UINT64_C(1));
}

/* Rules of single flows that NICs have still, which do otherwise than the list says. False: a worker does not answer. */
static bool flows_in_nics(const struct control *control, uint64_t *flows)
{
	const struct plane_config *config = plane_config(control->plane);
	struct agent_counters counters;

	*flows = 0;
	for (unsigned i = 0; config->offload.on && i < config->topology.n_ports; i++) {
		if (plane_offload_counters(control->plane, i, &counters) < 0)
			return false;
		*flows += counters.decided;
	}
	return true;
}

static void tell_progress(struct control *control)
{
	struct control_policy *policy = &control->policy;
	const unsigned n = plane_policy_workers(control->plane, policy->generation);
	char keys[KEYS_MAX];

	if (n == policy->workers_told)
		return;
	policy->workers_told = n;
	snprintf(keys, sizeof(keys), ",\"epoch\":%" PRIu32 ",\"workers\":%u,\"of\":%u",
		rules_epoch(plane_rules(control->plane)), n,
		plane_config(control->plane)->n_workers);
	event_policy(control, "policy_progress", keys);
}

static void tell_not_in_nic(struct control *control, uint64_t flows)
{
	struct control_policy *policy = &control->policy;
	const uint32_t epoch = rules_epoch(plane_rules(control->plane));
	char keys[KEYS_MAX], line[200];

	if (policy->not_in_nic == epoch)
		return;
	policy->not_in_nic = epoch;
	snprintf(keys, sizeof(keys),
		",\"epoch\":%" PRIu32 ",\"rules\":%" PRIu32 ",\"flows\":%" PRIu64
		",\"what\":\"the rules are in force in software, but NICs still have some that "
		"are to leave them\"",
		epoch, plane_nic_rules_leaving(control->plane, NULL, 0), flows);
	event_policy(control, "policy_not_in_nic", keys);
	snprintf(line, sizeof(line),
		"the new rules are in force in software, but NICs still have %" PRIu32
		" rules and %" PRIu64 " flows that are to leave them",
		plane_nic_rules_leaving(control->plane, NULL, 0), flows);
	if (control->note)
		control->note(control->note_context, line);
}

static void end_wait(struct control *control)
{
	struct control_policy *policy = &control->policy;
	char keys[KEYS_MAX];

	policy->took_us = us_since(control, policy->since_us);
	policy->generation = 0;
	policy->look_us = UINT64_MAX;
	policy->applied = rules_epoch(plane_rules(control->plane));
	snprintf(keys, sizeof(keys),
		",\"epoch\":%" PRIu32 ",\"flows_us\":%" PRIu64 ",\"took_us\":%" PRIu64,
		policy->applied, policy->flows_us, policy->took_us);
	event_policy(control, "policy_applied", keys);
}

/* Have all come to the list: first workers with their flows, then NICs? */
static void look_at_policy(struct control *control)
{
	struct control_policy *policy = &control->policy;
	uint64_t flows = 0;

	policy->look_us = control->now_us + LOOK_US;
	tell_progress(control);
	if (plane_policy_decided(control->plane) < policy->generation)
		return;
	if (policy->flows_us == 0)
		policy->flows_us = us_since(control, policy->since_us);
	const bool told = flows_in_nics(control, &flows);

	if (told && flows == 0 && !plane_nic_rules_leave(control->plane)) {
		end_wait(control);
		return;
	}
	if (control->now_us - policy->since_us < ANSWER_PATIENCE_US)
		return;
	policy->look_us = control->now_us + LATE_LOOK_US;
	if (told)
		tell_not_in_nic(control, flows);
}

/* From here on it is looked at. */
static void begin_wait(struct control *control, uint64_t generation)
{
	struct control_policy *policy = &control->policy;

	policy->generation = generation;
	policy->since_us = control->now_us;
	policy->flows_us = policy->took_us = 0;
	policy->workers_told = 0;
	policy->look_us = control->now_us + 1;
	plane_nic_rules_tend(control->plane);
}

static size_t put_change(char *keys, size_t size, const struct rules_change *change)
{
	return (size_t)snprintf(keys, size,
		",\"added\":%" PRIu32 ",\"removed\":%" PRIu32 ",\"moved\":%" PRIu32
		",\"unchanged\":%" PRIu32,
		change->n[RULES_ADDED], change->n[RULES_REMOVED], change->n[RULES_MOVED],
		change->n[RULES_UNCHANGED]);
}

/* A list is in force. */
static void take_list(struct control *control, const char *name, const struct rules_change *change)
{
	struct control_policy *policy = &control->policy;
	char *quoted = export_json_string(name);
	char keys[KEYS_MAX];
	size_t length;

	snprintf(policy->file, sizeof(policy->file), "%s", name);
	policy->loaded_us = plane_now_us(control->plane);
	begin_wait(control, change->generation);
	length = (size_t)snprintf(keys, sizeof(keys), ",\"epoch\":%" PRIu32,
		rules_epoch(plane_rules(control->plane)));
	length += put_change(keys + length, sizeof(keys) - length, change);
	if (quoted != NULL && length + strlen(quoted) + 16 < sizeof(keys))
		snprintf(keys + length, sizeof(keys) - length, ",\"file\":%s", quoted);
	free(quoted);
	event_policy(control, "policy_loaded", keys);
}

/* `why`: who wanted it. */
static int go_back(
	struct control *control, const char *why, struct rules_change *change, struct error *error)
{
	int ret = rules_go_back(plane_rules(control->plane), change, error);
	char keys[KEYS_MAX];
	size_t length;

	if (ret < 0)
		return ret;
	control->policy.confirm_us = UINT64_MAX;
	control->policy.loaded_us = plane_now_us(control->plane);
	control->policy.file[0] = '\0';
	begin_wait(control, change->generation);
	length = (size_t)snprintf(keys, sizeof(keys), ",\"epoch\":%" PRIu32 ",\"why\":\"%s\"",
		rules_epoch(plane_rules(control->plane)), why);
	put_change(keys + length, sizeof(keys) - length, change);
	event_policy(control, "policy_rollback", keys);
	return 0;
}

void policy_tend(struct control *control)
{
	struct control_policy *policy = &control->policy;
	struct rules_change change;
	struct error error;

	if (control->now_us >= policy->confirm_us) {
		int ret = go_back(control, "not confirmed", &change, &error);

		if (ret == 0 && control->note)
			control->note(control->note_context, "the new rules were not confirmed: "
							     "those before are in force again");
		if (ret < 0)
			policy->confirm_us = control->now_us + LOOK_US;
	}
	if (policy->generation != 0 && control->now_us >= policy->look_us)
		look_at_policy(control);
}

static int check_unconfirmed(const struct control *control, struct error *error)
{
	if (control->policy.confirm_us == UINT64_MAX)
		return 0;
	return error_set(error, -EBUSY,
		"the rules that were loaded last wait for rule confirm; it, or rule rollback, "
		"comes "
		"first");
}

/* Lines that were read are put in force, or nothing has changed. The list is gone in any case. */
static int put_in_force(struct control *control, const char *name, struct rules_list *list,
	struct rules_change *change, struct error *error)
{
	struct rules *rules = plane_rules(control->plane);

	rules_tell_time(rules, plane_now_us(control->plane));
	int ret = rules_replace(rules, list, change, error);

	if (ret < 0)
		rules_list_destroy(rules, list);
	else
		take_list(control, name, change);
	return ret;
}

int control_load_rules(struct control *control, const char *name, control_read_rules_fn read,
	void *context, struct error *error)
{
	struct rules *rules = plane_rules(control->plane);
	struct rules_change change;
	struct rules_list *list;
	int ret = check_unconfirmed(control, error);

	if (ret < 0)
		return ret;
	if (rules_list_create(rules, &list) < 0)
		return error_set(error, -ENOMEM, "no memory to read the rules");
	ret = read(context, rules, list, error);
	if (ret < 0)
		rules_list_destroy(rules, list);
	else
		ret = put_in_force(control, name, list, &change, error);
	return ret;
}

/* stage */

enum stage_key { STAGE_TEXT, STAGE_N_KEYS };

static const struct request_key stage_keys[STAGE_N_KEYS] = {
	[STAGE_TEXT] = {.name = "text", .type = REQUEST_TEXT, .needed = true},
};

static int stage(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct control_staged *staged = answer->staged;
	const char *text = values[STAGE_TEXT].text;
	const size_t length = strlen(text);
	json_t *line;

	if (rules_of(answer, error) == NULL)
		return -ENOTSUP;
	if (staged->length + length > RULES_FILE_MAX_BYTES)
		return error_set(
			error, -EFBIG, "%s: a list of rules has at most 1 GiB", answer->verb->ask);
	if (staged->length + length > staged->room) {
		const size_t room = 2 * (staged->length + length);
		char *larger = realloc(staged->text, room);

		if (larger == NULL)
			return control_silent(error, -ENOMEM, answer->verb->ask);
		staged->text = larger;
		staged->room = room;
	}
	memcpy(staged->text + staged->length, text, length);
	staged->length += length;
	line = json_object();
	answer_number(line, "bytes", staged->length);
	int ret = answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb rule_stage = {
	.ask = "rule stage",
	.keys = stage_keys,
	.n_keys = STAGE_N_KEYS,
	.begin = stage,
};

/* diff, load */

enum load_key { LOAD_FILE, LOAD_CONFIRM, LOAD_WAIT, LOAD_N_KEYS };

static const struct request_key load_keys[LOAD_N_KEYS] = {
	[LOAD_FILE] = {.name = "file", .type = REQUEST_TEXT},
	[LOAD_CONFIRM] = {.name = "confirm", .type = REQUEST_NUMBER, .min = 1, .max = 86400},
	[LOAD_WAIT] = {.name = "wait", .type = REQUEST_FLAG},
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

static int load_list(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct control *control = answer->control;
	struct loading *loading = begin_loading(answer, error);
	struct rules_list *list;
	struct error said;

	if (loading == NULL)
		return -ENOMEM;
	if (check_unconfirmed(control, &said) < 0)
		return error_set(error, -EBUSY, "%s: %s", answer->verb->ask, said.text);
	int ret = read_staged(
		answer, name_of(&values[LOAD_FILE]), tell_warning, loading, &list, error);

	if (ret < 0)
		return ret;
	ret = put_in_force(control, name_of(&values[LOAD_FILE]), list, &loading->change, &said);
	/* workers are about to be through with the list before: the request is begun again until then */
	if (ret == -EAGAIN)
		return error_set(error, -ETIMEDOUT, "%s: %s", answer->verb->ask, said.text);
	staged_drop(answer->staged);
	if (ret < 0)
		return error_set(error, ret, "%s: %s", answer->verb->ask, said.text);
	loading->epoch = rules_epoch(plane_rules(answer->plane));
	if (values[LOAD_CONFIRM].given) {
		loading->confirm = values[LOAD_CONFIRM].number;
		control->policy.confirm_us =
			control->now_us + loading->confirm * (uint64_t)CLOCK_US_PER_S;
	}
	if (!values[LOAD_WAIT].given || values[LOAD_WAIT].flag)
		return 0;
	ret = tell_loaded(answer, false, error);
	loading->epoch = 0;
	return ret;
}

/* Until it is in force everywhere. Another list may have come meanwhile: then it is that one. */
static int load_turn(struct answer *answer, struct error *error)
{
	const struct loading *loading = answer->state;
	const struct control_policy *policy = &answer->control->policy;

	if (loading->epoch == 0)
		return ANSWER_END;
	if (policy->applied >= loading->epoch) {
		int ret = tell_loaded(answer, true, error);

		((struct loading *)answer->state)->epoch = 0;
		return ret < 0 ? ret : ANSWER_GO;
	}
	if (policy->not_in_nic >= loading->epoch)
		return error_set(error, -EBUSY,
			"%s: the rules are in force in software as epoch %" PRIu32
			", but NICs still have some that are to leave them (policy_not_in_nic); "
			"rule list says why",
			answer->verb->ask, loading->epoch);
	if (answer->control->now_us - policy->since_us > 2 * ANSWER_PATIENCE_US)
		return error_set(error, -EBUSY,
			"%s: the rules are in force as epoch %" PRIu32
			", but not all live flows are decided by them yet; rule status says when",
			answer->verb->ask, loading->epoch);
	answer->wake_us = answer->control->now_us + LOOK_US;
	return ANSWER_WAIT;
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

	(void)values;
	if (rules == NULL || answer->control->policy.confirm_us == UINT64_MAX) {
		json_decref(line);
		return rules == NULL ? -ENOTSUP
				     : error_set(error, -ENOENT,
					       "%s: no list of rules waits to be confirmed",
					       answer->verb->ask);
	}
	answer->control->policy.confirm_us = UINT64_MAX;
	answer_number(line, "epoch", rules_epoch(rules));
	event_policy(answer->control, "policy_confirmed", "");
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
	int ret = go_back(answer->control, "asked for", &loading->change, &said);

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
	if (policy->confirm_us != UINT64_MAX)
		answer_number(line, "confirm",
			(policy->confirm_us - RTE_MIN(control->now_us, policy->confirm_us) +
				CLOCK_US_PER_S - 1) /
				CLOCK_US_PER_S);
	int ret = answer_add(answer, line);

	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb rule_status = {
	.ask = "rule status",
	.begin = status,
};
