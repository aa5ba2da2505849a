/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * rule trace: which rules are tried for the packets of a flow's direction, or for one packet, and what of them does not
 * match.
 */

#include <errno.h>
#include <string.h>

#include "control/control.h"
#include "control/flow_filter.h"
#include "control/flow_name.h"
#include "control/rule_limit.h"
#include "control/rule_name.h"
#include "control/verbs.h"

enum trace_key {
	TRACE_AT = FLOW_NAME_KEYS,
	TRACE_PACKET,
	TRACE_N_KEYS,
};

static const struct request_key trace_keys[TRACE_N_KEYS] = {
	FLOW_NAME_ROWS(false),
	[TRACE_AT] = {.name = "at", .type = REQUEST_NUMBER, .max = UINT32_MAX},
	[TRACE_PACKET] = {.name = "packet", .type = REQUEST_TEXT},
};

struct telling {
	struct answer *answer;
	bool packet;	  /* all its fields are known */
	uint32_t follows; /* slot of the rule that the packets follow, or RULES_NONE */
	bool failed;
};

/* Tells which fields a tuple hashes: all its rules ask for these. */
static void add_tuple(json_t *line, const struct classifier_step *step)
{
	const struct {
		const char *name;
		bool hashed;
	} fields[] = {
		{"src_port", step->src_port},
		{"dst_port", step->dst_port},
		{"proto", step->proto},
		{"vlan", step->vlan},
		{"in_port", step->in_port},
	};
	json_t *list = json_array();

	answer_number(line, "version", step->version);
	answer_number(line, "src_bits", step->src_bits);
	answer_number(line, "dst_bits", step->dst_bits);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].hashed)
			json_array_append_new(list, json_string(fields[i].name));
	json_object_set_new(line, "exact", list);
}

static void add_rule_of(json_t *line, const struct rules_view *rule)
{
	answer_number(line, "port", rule->port);
	answer_number(line, "number", rule->number);
	answer_number(line, "priority", rule->priority);
	json_object_set_new(line, "rule", answer_string(rule->text));
	json_object_set_new(line, "per", json_string(rule->by_packet ? "packet" : "flow"));
}

/* No limit is asked about what begins no flow: the item is named, not the bit that stands for it. */
static const char *name_of_field(const struct rules_step *told)
{
	if (told->step.field == CLASSIFIER_FIELD_METADATA && told->has_rule && told->rule.limits)
		return "source";
	return classifier_field_name(told->step.field);
}

static void tell_traced(void *context, const struct rules_step *told)
{
	static const char *const names[] = {
		[CLASSIFIER_STEP_GROUP] = "group",
		[CLASSIFIER_STEP_FILTERED] = "none_fits",
		[CLASSIFIER_STEP_LATE] = "all_later",
		[CLASSIFIER_STEP_PROBED] = "looked_up",
		[CLASSIFIER_STEP_RULE] = "compared",
		[CLASSIFIER_STEP_CUT] = "rest_later",
		[CLASSIFIER_STEP_NOT_TRIED] = "not_tried",
		[CLASSIFIER_STEP_MORE] = "more_not_tried",
		[CLASSIFIER_STEP_FOUND] = "result",
	};
	const struct classifier_step *step = &told->step;
	struct telling *telling = context;
	json_t *line = json_object();

	json_object_set_new(line, "step", json_string(names[step->kind]));
	answer_number(line, "group", step->group);
	if (step->kind == CLASSIFIER_STEP_FILTERED || step->kind == CLASSIFIER_STEP_LATE ||
		step->kind == CLASSIFIER_STEP_PROBED)
		add_tuple(line, step);
	if (step->kind == CLASSIFIER_STEP_GROUP && told->has_rule) {
		answer_number(line, told->jumped ? "jump_port" : "behind_port", told->rule.port);
		answer_number(
			line, told->jumped ? "jump_number" : "behind_number", told->rule.number);
	} else if (told->has_rule) {
		add_rule_of(line, &told->rule);
	}
	if (step->kind == CLASSIFIER_STEP_MORE)
		answer_number(line, "rules", step->n);
	if (step->kind == CLASSIFIER_STEP_RULE)
		json_object_set_new(
			line, "matches", json_boolean(step->field == CLASSIFIER_FIELD_NONE));
	if (step->field != CLASSIFIER_FIELD_NONE)
		json_object_set_new(line, "field", json_string(name_of_field(told)));
	if (told->has_limit)
		json_object_set_new(line, "limit", rule_limit_object(&told->limit));
	if (step->kind == CLASSIFIER_STEP_FOUND && told->has_rule && step->jump != 0)
		answer_number(line, "jump", step->jump);
	if (step->kind == CLASSIFIER_STEP_FOUND && telling->packet)
		json_object_set_new(line, "packet", json_true());
	if (answer_add(telling->answer, line) < 0)
		telling->failed = true;
}

/* Which of the key's ends is the request's src? */
static unsigned end_of_src(const struct flow_key *key, const struct request_value *values)
{
	uint8_t src[16];

	flow_filter_address(src, values[FLOW_NAME_SRC].text);
	if (memcmp(key->addr[0], key->addr[1], sizeof(src)) == 0)
		return rte_be_to_cpu_16(key->port[0]) == values[FLOW_NAME_SPORT].number ? 0 : 1;
	return memcmp(key->addr[0], src, sizeof(src)) == 0 ? 0 : 1;
}

/*
 * The port that the flow's packets come in by: of one that is there it is known, if its domain is a wire. `flow` is
 * zeroed where there is none.
 */
static int find_port(struct answer *answer, const struct request_value *values,
	const struct flow_key *key, unsigned from, uint16_t *port, struct plane_flow *flow,
	struct error *error)
{
	const struct topology *topology = &plane_config(answer->plane)->topology;

	int ret = plane_flow(answer->plane, key, flow);

	if (values[TRACE_AT].given) {
		if (ret < 0)
			*flow = (struct plane_flow){0};
		*port = (uint16_t)values[TRACE_AT].number;
		return rule_port_known(answer, "at", &values[TRACE_AT], error);
	}
	if (ret == -ETIMEDOUT)
		return control_silent(error, ret, answer->verb->ask);
	if (ret < 0 || !topology_is_wire(topology, flow_key_wire(key)))
		return error_set(error, -EINVAL,
			"%s: at is needed, the port by which the packets come in: there is no such "
			"flow now",
			answer->verb->ask);
	*port = (uint16_t)topology_port(topology, flow_key_wire(key),
		from == flow->record.initiator ? flow->record.side : !flow->record.side);
	return 0;
}

/* The packets follow a rule, so that nothing is searched. */
static int tell_followed(struct telling *telling, const struct rules *rules, struct error *error)
{
	json_t *line = json_object();
	struct rules_view rule;

	json_object_set_new(line, "step", json_string("follows"));
	if (rules_get_slot(rules, telling->follows, &rule) == 0)
		add_rule_of(line, &rule);
	if (answer_add(telling->answer, line) < 0)
		telling->failed = true;
	return telling->failed ? control_silent(error, -ENOMEM, telling->answer->verb->ask) : 0;
}

/* Tells the steps of a header. */
static int trace_header(struct telling *telling, struct rules *rules,
	const struct classifier_header *header, struct error *error)
{
	json_t *line = json_object();

	json_object_set_new(line, "step", json_string("packet"));
	answer_number(line, "at", header->in_port);
	if (telling->packet)
		json_object_set_new(line, "packet", json_true());
	if (rules_of_conversations(rules) && rules_direction_of(header) != NULL) {
		json_object_set_new(line, "ct_state", json_string(rules_state_of(header)));
		json_object_set_new(line, "direction", json_string(rules_direction_of(header)));
	}
	if (answer_add(telling->answer, line) < 0)
		telling->failed = true;
	if (telling->follows != RULES_NONE)
		return tell_followed(telling, rules, error);
	rules_trace(rules, header, telling->packet, tell_traced, telling);
	return telling->failed ? control_silent(error, -ENOMEM, telling->answer->verb->ask) : 0;
}

static int trace_packet(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct telling telling = {.answer = answer, .packet = true, .follows = RULES_NONE};
	struct rules *rules = rules_of(answer, error);
	struct classifier_header header;
	struct error said;
	unsigned column;

	if (rules == NULL)
		return -ENOTSUP;
	for (unsigned i = 0; i < TRACE_PACKET; i++)
		if (values[i].given)
			return request_bad(error, answer->verb->ask, trace_keys[i].name, NULL,
				"a packet is given by its fields alone");
	int ret = rules_header_of_packet(rules, values[TRACE_PACKET].text, &header, &column, &said);

	if (ret < 0)
		return error_set(error, ret == -E2BIG ? -EINVAL : ret, "%s: column %u: %s",
			answer->verb->ask, column, said.text);
	return trace_header(&telling, rules, &header, error);
}

static int trace_flow(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct telling telling = {.answer = answer, .follows = RULES_NONE};
	struct plane_flow flow = {0};
	struct rules *rules = rules_of(answer, error);
	struct classifier_header header;
	struct flow_key key;
	uint16_t port = 0;

	if (rules == NULL)
		return -ENOTSUP;
	for (unsigned i = FLOW_NAME_SRC; i <= FLOW_NAME_PROTO; i++)
		if (!values[i].given)
			return request_bad(error, answer->verb->ask, trace_keys[i].name, NULL,
				"is needed, but missing");
	if (flow_name_key(&key, answer, values, error) < 0)
		return -EINVAL;
	const unsigned from = end_of_src(&key, values);
	int ret = find_port(answer, values, &key, from, &port, &flow, error);

	if (ret < 0)
		return ret;
	if (flow.conversation.follows && from != flow.conversation.initiator)
		telling.follows = flow.rules.rule[from];
	struct flow_packet_ct ct = flow_conversation_ct(&flow.conversation, from);

	/* where there is no such flow packets are taken to begin it */
	ct.begins = ct.begins || !flow.conversation.kept;
	rules_header_of_flow(rules, &key, from, port, ct, &header);
	return trace_header(&telling, rules, &header, error);
}

static int begin_trace(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	return values[TRACE_PACKET].given ? trace_packet(answer, values, error)
					  : trace_flow(answer, values, error);
}

const struct answer_verb rule_trace = {
	.ask = "rule trace",
	.keys = trace_keys,
	.n_keys = TRACE_N_KEYS,
	.begin = begin_trace,
};
