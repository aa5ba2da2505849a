/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_explain.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "control/answer.h"
#include "control/block_name.h"
#include "control/flow_offload.h"
#include "control/route_view.h"
#include "control/rule_limit.h"
#include "control/span.h"
#include "packet/extract.h"

#define SENTENCE_MAX 256
/* Limits that are told of a flow at most. */
#define LIMITS_TOLD 16

/* What a state means for the end: said before the time-out, or "" where that says it all. */
static const char *prelude(const struct flow_record *record)
{
	enum flow_state state = (enum flow_state)record->state;

	switch (flow_phase(state)) {
	case FLOW_PHASE_NEW:
		if (state == FLOW_SYN_SENT || state == FLOW_SYN_RECEIVED)
			return "the handshake is not complete; ";
		return "only one side has spoken; ";
	case FLOW_PHASE_CLOSING:
		if (state == FLOW_FIN_0 || state == FLOW_FIN_1)
			return "one side has closed; ";
		return "both sides have closed, but have not both heard of it; ";
	case FLOW_PHASE_OPEN:
	case FLOW_N_PHASES:
		break;
	}
	return "";
}

static void explain_end(char sentence[SENTENCE_MAX], const struct flow_record *record,
	uint64_t timeout_s, const char *name, uint64_t idle_us)
{
	char limit[TEXT_NUMBER_MAX], idle[TEXT_NUMBER_MAX];

	text_grouped(limit, timeout_s);
	span_text(idle, idle_us);
	if (record->state == FLOW_TIME_WAIT)
		snprintf(sentence, SENTENCE_MAX,
			"both sides have closed; it waits %s s (%s) for stragglers, and the last "
			"packet was %s ago",
			limit, name, idle);
	else if (record->state == FLOW_RESET)
		snprintf(sentence, SENTENCE_MAX,
			"it was reset; it waits %s s (%s) for stragglers, and the last packet was "
			"%s ago",
			limit, name, idle);
	else
		snprintf(sentence, SENTENCE_MAX,
			"%sno packet for %s s ends it (%s); the last was %s ago%s", prelude(record),
			limit, name, idle,
			record->state == FLOW_ESTABLISHED ? "; FIN or RST would end it sooner"
							  : "");
}

static void describe_timeout(
	json_t *line, const struct plane_config *config, const struct plane_flow *flow)
{
	const struct flow_record *record = &flow->record;
	const enum flow_state state = (enum flow_state)record->state;
	const uint64_t now_us = flow->now_us;
	enum flow_timeout timeout = flow_timeout_of(state, record->key.proto);
	const uint32_t own = config->timeouts.seconds[timeout];
	const uint64_t seconds = flow_timeout_by_rule(own, flow->age_s, state);
	/* the tick at which ageing will look at it */
	uint64_t end_us =
		clock_tick_from(record->last_seen_us + seconds * CLOCK_US_PER_S) * CLOCK_TICK_US;
	const char *name = seconds == own ? flow_timeout_name(timeout) : "age of its rule";
	char sentence[SENTENCE_MAX];

	explain_end(sentence, record, seconds, name, span_since(now_us, record->last_seen_us));
	answer_number(line, "timeout_s", seconds);
	json_object_set_new(line, "timeout_name", json_string(name));
	answer_number(line, "ends_in_us", span_since(end_us, now_us));
	json_object_set_new(line, "ends_because", json_string(sentence));
}

/* Has this end said where it stands? The first SYN of each does, though it tells no window to check. */
static bool is_known(const struct flow_record *record, unsigned end)
{
	if (record->window_known >> end & 1)
		return true;
	if (record->state == FLOW_SYN_SENT)
		return end == record->initiator;
	return record->state == FLOW_SYN_RECEIVED;
}

static uint64_t window_of(const struct flow_record *record, unsigned end)
{
	return (uint64_t)record->end[end].tcp_window
	       << (record->end[end].tcp_scale & FLOW_SCALE_SHIFT);
}

static json_t *describe_tcp(const struct flow_record *record)
{
	static const char *const names[3][2] = {
		{"next_seq", "reverse_next_seq"},
		{"window", "reverse_window"},
		{"scale", "reverse_scale"},
	};
	json_t *tcp = json_object();

	json_object_set_new(tcp, "window_tracked", json_boolean(record->window_known == 3));
	for (unsigned name = 0; name < 3; name++) {
		for (unsigned way = 0; way < 2; way++) {
			unsigned end = record->initiator ^ way;
			uint64_t number = record->tcp_end[end];

			if (!is_known(record, end))
				continue;
			if (name == 1)
				number = window_of(record, end);
			else if (name == 2)
				number = record->end[end].tcp_scale;
			if (name != 2 || number != FLOW_SCALE_UNKNOWN)
				answer_number(tcp, names[name][way], number);
		}
	}
	return tcp;
}

/* The rules that decided its directions, as far as they are there still. */
static void describe_rules(json_t *line, const struct plane *plane, const struct plane_flow *flow)
{
	static const char *const keys[2] = {"decided_by", "reverse_decided_by"};
	const struct rules *rules = plane_rules(plane);
	struct rules_view view;

	for (unsigned way = 0; rules != NULL && way < 2; way++) {
		const uint32_t slot = flow->rules.rule[flow->record.initiator ^ way];

		if (slot == FLOW_RULE_NONE || rules_get_slot(rules, slot, &view) < 0)
			continue;
		json_t *rule = json_object();

		answer_number(rule, "port", view.port);
		answer_number(rule, "number", view.number);
		json_object_set_new(rule, "rule", answer_string(view.text));
		if (flow->conversation.follows &&
			(flow->record.initiator ^ way) != flow->conversation.initiator)
			json_object_set_new(rule, "follows", json_true());
		json_object_set_new(line, keys[way], rule);
	}
}

/* Tells the conversation's state for packets of each direction, where rules ask for states. */
static void describe_conversation(
	json_t *line, const struct plane *plane, const struct plane_flow *flow)
{
	static const char *const keys[2] = {"ct_state", "reverse_ct_state"};
	const struct flow_conversation *conversation = &flow->conversation;
	const struct rules *rules = plane_rules(plane);

	if (rules == NULL || !conversation->kept)
		return;
	json_object_set_new(line, "accepted", json_boolean(conversation->accepted));
	for (unsigned way = 0; way < 2; way++)
		json_object_set_new(line, keys[way],
			json_string(rules_state_name(rules,
				flow_conversation_ct(conversation, flow->record.initiator ^ way))));
}

/* The limits that count the flow; or, where nothing of it was let pass, those that were asked about it. */
static void describe_limits(json_t *line, const struct plane *plane, const struct plane_flow *flow)
{
	const struct topology *topology = &plane_config(plane)->topology;
	const struct flow_record *record = &flow->record;
	const unsigned domain = flow_key_wire(&record->key), from = flow->conversation.initiator;
	const struct rules *rules = plane_rules(plane);
	struct rules_looked looked[LIMITS_TOLD];
	struct classifier_header header;
	struct rules_view view;

	if (rules == NULL || !flow->conversation.kept || !topology_is_wire(topology, domain))
		return;
	rules_header_of_flow(rules, &record->key, from,
		(uint16_t)topology_port(
			topology, domain, from == record->initiator ? record->side : !record->side),
		flow_conversation_ct(&flow->conversation, from), &header);
	const unsigned n =
		rules_look_limits(rules, &header, &flow->conversation, looked, LIMITS_TOLD);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *limit = rule_limit_object(&looked[i].limit);

		if (rules_get_slot(rules, looked[i].slot, &view) == 0) {
			answer_number(limit, "port", view.port);
			answer_number(limit, "number", view.number);
		}
		json_array_append_new(list, limit);
	}
	if (n > 0)
		json_object_set(line, "limits", list);
	json_decref(list);
}

/* What is done with its packets; and of one that is blocked, by what. */
static void describe_verdict(json_t *line, struct plane *plane, const struct plane_flow *flow)
{
	static const char *const keys[2] = {"verdict", "reverse_verdict"};
	const struct flow_record *record = &flow->record;
	const struct blocks *blocks = plane_blocks(plane);
	struct block_view view;

	for (unsigned way = 0; way < 2; way++)
		json_object_set_new(line, keys[way],
			json_string(
				flow_verdict_name(flow_verdict(record, record->initiator ^ way))));
	if (record->by_port)
		json_object_set_new(line, "verdict_by_port", json_true());
	if (!blocks || !flow_is_blocked(record) || flow->dropped.cause == FLOW_CAUSE_NONE)
		return;
	/* one that has just been removed is not told any more */
	if (blocks_get_number(blocks, blocks_number(blocks, flow->dropped.cause), &view) == 0)
		json_object_set_new(line, "block",
			block_object(&view, plane_origin_us(plane), plane_now_us(plane)));
}

/* The route of a direction, and what its verdict makes of it. */
static json_t *describe_way(const struct plane *plane, struct router *router,
	const struct flow_record *record, unsigned end, struct router_route_view *route)
{
	const struct plane_config *config = plane_config(plane);
	json_t *object = json_object();
	struct router_way way;

	if (router_look_up(router, flow_key_version(&record->key), record->key.addr[!end], route))
		json_object_set_new(
			object, "route", route_describe(config, router_config(router), route));
	router_way_of(router, flow_verdict(record, end), &way);
	if (way.kind == ROUTER_WAY_HOP)
		json_object_set_new(object, "next_hop", route_describe_hop(config, &way.hop));
	else if (way.kind == ROUTER_WAY_PUNT)
		json_object_set_new(object, "punt", json_string(punt_name(way.punt)));
	else if (way.kind == ROUTER_WAY_DISCARD)
		json_object_set_new(object, "drop", json_string(action_discard_name(way.discard)));
	return object;
}

static void describe_routes(json_t *line, const struct plane *plane, const struct plane_flow *flow)
{
	static const char *const keys[2] = {"way", "reverse_way"};
	const struct flow_record *record = &flow->record;
	struct router *router = plane_router(plane, flow_key_wire(&record->key));
	struct router_route_view *route = router == NULL ? NULL : malloc(sizeof(*route));

	if (route == NULL)
		return;
	json_object_set_new(line, "router", answer_string(router_config(router)->name));
	for (unsigned way = 0; way < 2; way++)
		json_object_set_new(line, keys[way],
			describe_way(plane, router, record, record->initiator ^ way, route));
	free(route);
}

json_t *flow_explain_record(struct plane *plane, const struct plane_flow *flow, int cpu)
{
	const struct plane_config *config = plane_config(plane);
	const struct flow_record *record = &flow->record;
	const unsigned domain = flow_key_wire(&record->key);
	json_t *line = json_object();

	if (!line)
		return NULL;
	if (cpu >= 0)
		answer_number(line, "cpu", (unsigned)cpu);
	if (topology_is_wire(&config->topology, domain)) {
		const unsigned port = topology_port(&config->topology, domain, record->side);

		json_object_set_new(line, "learned_from", answer_string(config->port[port]->name));
	}
	answer_number(line, "age_us", span_since(flow->now_us, record->start_us));
	answer_number(line, "idle_us", span_since(flow->now_us, record->last_seen_us));
	json_object_set_new(
		line, "state_detail", json_string(flow_state_name((enum flow_state)record->state)));
	flow_offload_explain(line, plane, flow);
	describe_verdict(line, plane, flow);
	describe_conversation(line, plane, flow);
	describe_rules(line, plane, flow);
	describe_limits(line, plane, flow);
	describe_routes(line, plane, flow);
	if (record->key.proto == IPPROTO_TCP)
		json_object_set_new(line, "tcp", describe_tcp(record));
	describe_timeout(line, config, flow);
	return line;
}
