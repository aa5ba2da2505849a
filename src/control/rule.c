/* SPDX-License-Identifier: BSD-3-Clause */
/* rule add, rule del, rule list: the rules in force. And what becomes of those that were removed. */
#include "control/rule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/rule_name.h"
#include "control/verbs.h"
#include "rule/command.h"

/* Rules of one turn. */
#define RULES_PAGE 32
/* How often it is looked whether workers have told what they have counted. */
#define COUNTED_US UINT64_C(5000)
/* Rules that one that is validated is compared with: this takes some ten milliseconds at most. */
#define FORESEEN_VISITS (4u * 1024 * 1024)
/* When what was put off of rules in NICs is gone on with. */
#define PUT_OFF_US UINT64_C(1000)

struct rules *rules_of(const struct answer *answer, struct error *error)
{
	struct rules *rules = plane_rules(answer->plane);

	if (rules == NULL)
		error_set(error, -ENOTSUP,
			"%s: this engine keeps no rules; it was started with rules.max 0",
			answer->verb->ask);
	return rules;
}

int rule_port_known(const struct answer *answer, const char *key, const struct request_value *value,
	struct error *error)
{
	const unsigned n = plane_config(answer->plane)->topology.n_ports;

	if (!value->given || value->number < n)
		return 0;
	return error_set(error, -EINVAL, "%s: %s %" PRIu32 ": the engine has ports 0 to %u",
		answer->verb->ask, key, value->number, n - 1);
}

/*
 * Adds the sums over software and NICs. A count that nobody keeps is left out rather than told as 0: NICs do not know
 * flows, some have no counters, and a rule per packet does not decide flows.
 */
static void add_counts(
	json_t *line, const struct rules_view *view, const struct plane_rule_where *where)
{
	const bool in_nic = where->where != PLANE_RULE_SOFTWARE;

	if (!in_nic && !view->by_packet)
		answer_number(line, "flows", view->count.flows);
	if (!where->uncounted) {
		answer_number(line, "packets", view->count.packets + where->packets);
		if (!where->uncounted_bytes)
			answer_number(line, "bytes", view->count.bytes + where->bytes);
	}
	if (!in_nic && where->packets == 0)
		return;
	answer_number(line, "software_packets", view->count.packets);
	answer_number(line, "software_bytes", view->count.bytes);
	if (where->uncounted)
		return;
	answer_number(line, "nic_packets", where->packets);
	if (!where->uncounted_bytes)
		answer_number(line, "nic_bytes", where->bytes);
}

static const char *const rule_places[PLANE_RULE_N_PLACES] = {
	[PLANE_RULE_SOFTWARE] = "software",
	[PLANE_RULE_NIC] = "nic",
	[PLANE_RULE_BOTH] = "both",
};

/* All but what it has counted. */
static json_t *describe_rule(const struct rules_view *view, const struct plane_rule_where *where)
{
	json_t *line = json_object();

	answer_number(line, "port", view->port);
	answer_number(line, "number", view->number);
	answer_number(line, "group", view->group);
	answer_number(line, "priority", view->priority);
	json_object_set_new(line, "rule", answer_string(view->text));
	json_object_set_new(line, "where", json_string(rule_places[where->where]));
	if (where->why[0] != '\0')
		json_object_set_new(line, "why", answer_string(where->why));
	json_object_set_new(line, "per", json_string(view->by_packet ? "packet" : "flow"));
	if (view->line != 0)
		answer_number(line, "line", view->line);
	answer_number(line, "epoch", view->epoch);
	if (view->remark != NULL)
		json_object_set_new(line, "note", json_string(view->remark));
	return line;
}

json_t *rule_object(struct plane *plane, const struct rules_view *view)
{
	struct plane_rule_where where;

	plane_rule_where(plane, view, &where);
	json_t *line = describe_rule(view, &where);

	if (!view->hands_on)
		add_counts(line, view, &where);
	return line;
}

/* Asks workers for what they have counted; when they have told, rules_counted() says so. */
static void ask_for_counts(
	struct answer *answer, struct rule_counting *counting, struct rules *rules)
{
	struct rules_stats stats;

	rules_stats(rules, &stats);
	if (stats.rules == 0 && stats.unsettled == 0)
		return;
	plane_nic_rules_ask(answer->plane);
	*counting = (struct rule_counting){.generation = rules_touch(rules)};
}

/* ANSWER_GO when all workers have told; ANSWER_WAIT; or -ETIMEDOUT with a line. */
static int wait_for_counts(
	struct answer *answer, struct rule_counting *counting, struct error *error)
{
	const uint64_t now_us = answer->control->now_us;

	if (plane_policy_decided(answer->plane) >= counting->generation &&
		(counting->generation == 0 || plane_nic_rules_told(answer->plane))) {
		answer->wake_us = UINT64_MAX;
		return ANSWER_GO;
	}
	if (counting->since_us == 0)
		counting->since_us = now_us;
	if (now_us - counting->since_us > ANSWER_PATIENCE_US)
		return control_silent(error, -EBUSY, answer->verb->ask);
	answer->wake_us = now_us + COUNTED_US;
	return ANSWER_WAIT;
}

/* NICs are waited for as long as they go on. */
struct nic_wait {
	uint64_t since_us; /* the last one let a rule go; 0: none is waited for yet */
	uint32_t left;	   /* rules that they are to let go */
};

/*
 * A change is in force when NICs have let go what they no longer do. ANSWER_END then; ANSWER_WAIT; or -EBUSY with a
 * line: the rules have changed all the same.
 */
static int wait_for_nics(struct answer *answer, struct nic_wait *wait, struct error *error)
{
	const uint64_t now_us = answer->control->now_us;
	char why[200];

	plane_nic_rules_tend(answer->plane);
	if (!plane_nic_rules_leave(answer->plane)) {
		answer->wake_us = UINT64_MAX;
		return ANSWER_END;
	}
	const uint32_t left = plane_nic_rules_leaving(answer->plane, why, sizeof(why));

	if (wait->since_us == 0 || left < wait->left)
		wait->since_us = now_us;
	wait->left = left;
	if (now_us - wait->since_us > ANSWER_PATIENCE_US)
		return error_set(error, -EBUSY,
			"%s: it is done in software, but NICs may still drop by %" PRIu32
			" rule%s that are to leave them: %s; rule list tells how many are left",
			answer->verb->ask, left, left == 1 ? "" : "s", why);
	answer->wake_us = now_us + COUNTED_US;
	return ANSWER_WAIT;
}

/* add */

enum add_key { ADD_RULE, ADD_N_KEYS };

static const struct request_key add_keys[ADD_N_KEYS] = {
	[ADD_RULE] = {.name = "rule", .type = REQUEST_TEXT, .needed = true},
};

struct adding {
	struct answer *answer;
	struct rules *rules;
	struct rule_counting counting;
	struct nic_wait nics;
	bool failed;
	enum rule_verb verb; /* RULE_LATER: the line is no command */
	char line[];	     /* of a query, until it can be answered */
};

static void add_told(void *context, const char *text)
{
	struct adding *adding = context;
	json_t *line = json_object();

	json_object_set_new(line, "line", answer_string(text));
	if (answer_add(adding->answer, line) < 0)
		adding->failed = true;
}

/* Where a rule that was validated would be. */
static int tell_foreseen(struct adding *adding)
{
	struct answer *answer = adding->answer;
	uint32_t visits = FORESEEN_VISITS;
	const char *action = NULL;
	struct plane_rule_where where;
	struct rules_view view;
	char text[sizeof(where.why) + 32];
	json_t *line;

	if (rules_foresee(
		    adding->rules, adding->line, strlen(adding->line), &visits, &view, &action) < 0)
		return 0;
	plane_rule_foresee(answer->plane, &view, &where);
	if (view.nic == RULE_NIC_ACTIONS && action != NULL)
		snprintf(where.why, sizeof(where.why), "action '%s' is not given to NICs", action);
	snprintf(text, sizeof(text), "where: %s%s%s", rule_places[where.where],
		where.why[0] != '\0' ? ": " : "", where.why);
	line = json_object();
	json_object_set_new(line, "line", answer_string(text));
	json_object_set_new(line, "where", json_string(rule_places[where.where]));
	if (where.why[0] != '\0')
		json_object_set_new(line, "why", answer_string(where.why));
	return answer_add(answer, line);
}

static int run_command(struct adding *adding, struct error *error)
{
	const char *ask = adding->answer->verb->ask;
	struct error said;
	unsigned column;

	rules_tell_time(adding->rules, plane_now_us(adding->answer->plane));
	int ret = rules_command(adding->rules, adding->line, strlen(adding->line), &column,
		add_told, adding, &said);

	if (ret == -ENODATA)
		return error_set(error, -EINVAL, "%s: a rule is needed", ask);
	/* removed rules wait for workers, which takes less than a second: the request is begun again until then */
	if (ret == -EAGAIN)
		return error_set(error, -ETIMEDOUT, "%s: %s", ask, said.text);
	if (ret < 0)
		return error_set(error, ret == -ENOTSUP || ret == -E2BIG ? -EINVAL : ret,
			"%s: column %u: %s", ask, column, said.text);
	if (adding->verb == RULE_VALIDATE && tell_foreseen(adding) < 0)
		adding->failed = true;
	return adding->failed ? control_silent(error, -ENOMEM, ask) : 0;
}

static enum rule_verb verb_of(const char *line)
{
	struct rule_command *command;
	enum rule_verb verb;
	struct error error;
	unsigned column;

	if (rule_command_parse(&command, NULL, line, strlen(line), &column, &error) < 0)
		return RULE_LATER;
	verb = command->verb;
	rule_command_destroy(command);
	return verb;
}

/* Does the command tell what was counted, or since when nothing was? */
static bool is_query(enum rule_verb verb)
{
	return verb == RULE_QUERY || verb == RULE_INDIRECT_QUERY || verb == RULE_AGED;
}

static int add_rule(struct answer *answer, const struct request_value *values, struct error *error)
{
	const char *text = values[ADD_RULE].text;
	struct rules *rules = rules_of(answer, error);
	struct adding *adding;

	if (rules == NULL)
		return -ENOTSUP;
	adding = calloc(1, sizeof(*adding) + strlen(text) + 1);
	if (adding == NULL)
		return control_silent(error, -ENOMEM, answer->verb->ask);
	answer->state = adding;
	adding->answer = answer;
	adding->rules = rules;
	memcpy(adding->line, text, strlen(text) + 1);
	rules_settled(rules, plane_policy_decided(answer->plane));
	adding->verb = verb_of(text);
	if (is_query(adding->verb)) {
		ask_for_counts(answer, &adding->counting, rules);
		return 0;
	}
	int ret = run_command(adding, error);

	adding->line[0] = '\0';
	return ret;
}

static int add_turn(struct answer *answer, struct error *error)
{
	struct adding *adding = answer->state;
	int ret;

	if (adding->line[0] == '\0')
		return wait_for_nics(answer, &adding->nics, error);
	ret = wait_for_counts(answer, &adding->counting, error);
	if (ret != ANSWER_GO)
		return ret;
	ret = run_command(adding, error);
	adding->line[0] = '\0';
	return ret < 0 ? ret : ANSWER_GO;
}

static void free_state(struct answer *answer)
{
	free(answer->state);
}

const struct answer_verb rule_add = {
	.ask = "rule add",
	.keys = add_keys,
	.n_keys = ADD_N_KEYS,
	.begin = add_rule,
	.turn = add_turn,
	.end = free_state,
};

/* del */

enum del_key { DEL_PORT, DEL_NUMBER, DEL_N_KEYS };

static const struct request_key del_keys[DEL_N_KEYS] = {
	[DEL_PORT] = {.name = "port", .type = REQUEST_NUMBER, .needed = true, .max = UINT32_MAX},
	[DEL_NUMBER] = {.name = "number",
		.type = REQUEST_NUMBER,
		.needed = true,
		.max = UINT32_MAX},
};

struct deletion {
	struct rules *rules;
	struct rules_view view; /* the texts are gone with the rule */
	struct plane_rule_where where;
	json_t *line;		     /* until its last count is there */
	bool watched;		     /* the counts are waited for, */
	bool in_nic;		     /* NICs' ones, too */
	bool final;		     /* they have come */
	struct plane_rule_last last; /* of NICs, */
	struct rules_gone gone;	     /* and of software */
	struct nic_wait nics;
	uint64_t since_us; /* that workers are waited for */
};

static int tell_deleted(struct answer *answer, struct error *error)
{
	struct deletion *deletion = answer->state;
	json_t *line = deletion->line;
	int ret;

	deletion->line = NULL;
	if (!deletion->view.hands_on) {
		add_counts(line, &deletion->view, &deletion->where);
		json_object_set_new(line, "final", json_boolean(deletion->final));
	}
	ret = answer_add(answer, line);
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

static int del_rule(struct answer *answer, const struct request_value *values, struct error *error)
{
	const uint16_t port = (uint16_t)values[DEL_PORT].number;
	const uint32_t number = values[DEL_NUMBER].number;
	struct rules *rules = rules_of(answer, error);
	struct deletion *deletion;
	struct rules_view view;

	if (rules == NULL)
		return -ENOTSUP;
	if (rule_port_known(answer, "port", &values[DEL_PORT], error) < 0)
		return -EINVAL;
	deletion = calloc(1, sizeof(*deletion));
	if (deletion == NULL)
		return control_silent(error, -ENOMEM, answer->verb->ask);
	answer->state = deletion;
	deletion->rules = rules;
	if (rules_get(rules, port, number, &view) < 0)
		return error_set(error, -ENOENT, "%s: there is no rule #%" PRIu32 " of port %u",
			answer->verb->ask, number, port);
	deletion->view = view;
	plane_rule_where(answer->plane, &view, &deletion->where);
	deletion->line = describe_rule(&view, &deletion->where);
	deletion->in_nic = plane_nic_rules_watch(answer->plane, &view, &deletion->last);
	deletion->watched = true;
	rules_watch(rules, view.slot, &deletion->gone);
	rules_remove(rules, port, number, NULL);
	return 0;
}

/* The request has ended: its count is not written any more. */
static void stop_watching(struct answer *answer)
{
	struct deletion *deletion = answer->state;

	if (!deletion->watched)
		return;
	deletion->watched = false;
	if (deletion->in_nic && !deletion->last.done)
		plane_nic_rules_unwatch(answer->plane, &deletion->view, &deletion->last);
	if (!deletion->gone.done)
		rules_unwatch(deletion->rules, deletion->view.slot, &deletion->gone);
}

/*
 * The count of a removed rule is final when the NIC has removed it and all workers have counted their last packet for
 * it. If that takes too long, the last count that was known is told.
 */
static int del_turn(struct answer *answer, struct error *error)
{
	struct deletion *deletion = answer->state;
	int ret = wait_for_nics(answer, &deletion->nics, error);

	if (deletion->line == NULL || ret == ANSWER_WAIT)
		return ret;
	if (ret == ANSWER_END && !deletion->gone.done) {
		if (deletion->since_us == 0)
			deletion->since_us = answer->control->now_us;
		if (answer->control->now_us - deletion->since_us <= ANSWER_PATIENCE_US) {
			answer->wake_us = answer->control->now_us + COUNTED_US;
			return ANSWER_WAIT;
		}
	}
	stop_watching(answer);
	if (deletion->last.done) {
		deletion->where.packets = deletion->view.nic_packets + deletion->last.packets;
		deletion->where.bytes = deletion->view.nic_bytes + deletion->last.bytes;
		deletion->where.uncounted_bytes |= deletion->last.uncounted_bytes;
	}
	deletion->view.count = deletion->gone.count;
	deletion->final = deletion->gone.done && (!deletion->in_nic || deletion->last.done);
	const int told = tell_deleted(answer, error);

	return told < 0 ? told : ret;
}

static void end_del(struct answer *answer)
{
	struct deletion *deletion = answer->state;

	if (deletion != NULL) {
		stop_watching(answer);
		json_decref(deletion->line);
	}
	free(deletion);
}

const struct answer_verb rule_del = {
	.ask = "rule del",
	.keys = del_keys,
	.n_keys = DEL_N_KEYS,
	.begin = del_rule,
	.turn = del_turn,
	.end = end_del,
};

/* list */

enum list_key { LIST_AT, LIST_LIMIT, LIST_CURSOR, LIST_N_KEYS };

static const struct request_key list_keys[LIST_N_KEYS] = {
	[LIST_AT] = {.name = "at", .type = REQUEST_NUMBER, .max = UINT32_MAX},
	[LIST_LIMIT] = {.name = "limit", .type = REQUEST_NUMBER, .min = 1, .max = UINT32_MAX},
	[LIST_CURSOR] = {.name = "cursor", .type = REQUEST_TEXT},
};

struct listing {
	struct rules *rules;
	struct rule_counting counting;
	uint16_t port;
	uint32_t limit; /* 0: none */
	uint32_t next;	/* where the next page begins */
	uint64_t matched;
	bool more; /* the limit was reached before the end */
};

static int take_rule_cursor(struct listing *listing, const char *text, struct error *error)
{
	char *end;

	errno = 0;
	unsigned long slot = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || slot >= RULES_NONE)
		return request_bad(
			error, "rule list", "cursor", text, "no answer ended with such a one");
	listing->next = (uint32_t)slot;
	return 0;
}

static int begin_list(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct rules *rules = rules_of(answer, error);
	struct listing *listing;

	if (rules == NULL)
		return -ENOTSUP;
	if (rule_port_known(answer, "at", &values[LIST_AT], error) < 0)
		return -EINVAL;
	listing = calloc(1, sizeof(*listing));
	if (listing == NULL)
		return control_silent(error, -ENOMEM, answer->verb->ask);
	answer->state = listing;
	listing->rules = rules;
	listing->port = values[LIST_AT].given ? (uint16_t)values[LIST_AT].number : RULES_NO_PORT;
	listing->limit = values[LIST_LIMIT].number;
	if (values[LIST_CURSOR].given &&
		take_rule_cursor(listing, values[LIST_CURSOR].text, error) < 0)
		return -EINVAL;
	ask_for_counts(answer, &listing->counting, rules);
	return 0;
}

static int list_turn(struct answer *answer, struct error *error)
{
	struct listing *listing = answer->state;
	struct rules_view views[RULES_PAGE];
	uint32_t max = RULES_PAGE, n;
	int ret = wait_for_counts(answer, &listing->counting, error);

	if (ret != ANSWER_GO)
		return ret;
	if (listing->limit > 0 && listing->limit - listing->matched < max)
		/* one more says whether there are more */
		max = (uint32_t)(listing->limit - listing->matched) + 1;
	n = rules_list(listing->rules, listing->port, &listing->next, views, max);
	for (uint32_t i = 0; i < n; i++) {
		if (listing->limit > 0 && listing->matched == listing->limit) {
			listing->next = views[i].slot;
			listing->more = true;
			return ANSWER_END;
		}
		ret = answer_add(answer, rule_object(answer->plane, &views[i]));
		if (ret < 0)
			return control_silent(error, ret, answer->verb->ask);
		listing->matched++;
	}
	return listing->next == RULES_NONE ? ANSWER_END : ANSWER_GO;
}

/* Adds the counts of rules that are not listed any more. */
static void add_removed(const struct answer *answer, json_t *end)
{
	struct rules_removed removed;
	char why[200];

	plane_rules_removed(answer->plane, &removed);
	answer_number(end, "leaving", plane_nic_rules_leaving(answer->plane, why, sizeof(why)));
	answer_number(end, "gone_flows", removed.count.flows);
	answer_number(end, "gone_packets", removed.count.packets + removed.nic_packets);
	answer_number(end, "gone_bytes", removed.count.bytes + removed.nic_bytes);
	answer_number(end, "gone_nic_packets", removed.nic_packets);
	answer_number(end, "gone_nic_bytes", removed.nic_bytes);
}

/* Adds what limits know of sources. */
static void add_sources(const struct answer *answer, struct rules *rules, json_t *end)
{
	struct rules_sources sources;

	rules_tell_time(rules, plane_now_us(answer->plane));
	rules_sources(rules, &sources);
	answer_number(end, "sources", sources.used);
	answer_number(end, "max_sources", sources.max);
	answer_number(end, "sources_full", sources.full);
}

static void end_list(struct answer *answer, json_t *end)
{
	const struct listing *listing = answer->state;
	struct rules_stats stats;
	char cursor[16];

	rules_stats(listing->rules, &stats);
	answer_number(end, "rules", stats.rules);
	answer_number(end, "max", stats.max_rules);
	answer_number(end, "per_packet", stats.by_packet);
	answer_number(end, "programs", stats.programs);
	answer_number(end, "unsettled", stats.unsettled);
	add_removed(answer, end);
	add_sources(answer, listing->rules, end);
	answer_number(end, "epoch", rules_epoch(listing->rules));
	answer_number(end, "matched", listing->matched);
	snprintf(cursor, sizeof(cursor), "%" PRIu32, listing->next);
	json_object_set_new(end, "cursor", listing->more ? json_string(cursor) : json_null());
}

const struct answer_verb rule_list = {
	.ask = "rule list",
	.keys = list_keys,
	.n_keys = LIST_N_KEYS,
	.begin = begin_list,
	.turn = list_turn,
	.finish = end_list,
	.end = free_state,
};

void rules_tend(struct control *control)
{
	struct rules *rules = plane_rules(control->plane);

	if (rules != NULL && rules_unsettled(rules))
		rules_settled(rules, plane_policy_decided(control->plane));
	plane_nic_rules_tend(control->plane);
	control->rules_us =
		plane_nic_rules_busy(control->plane) ? control->now_us + PUT_OFF_US : UINT64_MAX;
}
