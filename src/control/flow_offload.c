/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_offload.h"

#include "control/answer.h"
#include "control/offload_words.h"
#include "control/span.h"
#include "export/json.h"

const char *flow_offload_direction(const struct flow_record *record, unsigned end)
{
	return end == record->initiator ? "forward" : "reverse";
}

/* A flow that is being explained, and what is there of its NICs even where nobody offloads. */
struct explained {
	struct plane *plane;
	const struct plane_flow *flow;
	struct flow_offload offload;
	unsigned wire;
	unsigned further; /* the direction that is further on */
};

unsigned flow_offload_port(
	const struct plane *plane, const struct flow_record *record, unsigned from)
{
	return topology_port(&plane_config(plane)->topology, flow_key_wire(&record->key),
		record->side ^ (from != record->initiator));
}

bool flow_offload_rule_is_at(const struct plane_flow *flow, unsigned from, unsigned port)
{
	return offload_state_holds((enum offload_state)flow->offload.state[from]) &&
	       flow->port[from] == port;
}

/* Where the direction's packets arrive usually: of a wire. Elsewhere, as far as the agent knows. */
static unsigned usual_port(const struct explained *explained, unsigned from)
{
	const struct topology *topology = &plane_config(explained->plane)->topology;

	return topology_is_wire(topology, explained->wire)
		       ? flow_offload_port(explained->plane, &explained->flow->record, from)
		       : explained->flow->port[from];
}

/* Where its rule is, or its packets arrive. */
static unsigned port_of(const struct explained *explained, unsigned from)
{
	return explained->offload.told ? explained->flow->port[from] : usual_port(explained, from);
}

static json_t *placed_time_of(const struct explained *explained, uint64_t us)
{
	char text[EXPORT_JSON_TIME_MAX];

	return json_string(export_json_time(text, plane_origin_us(explained->plane) + us));
}

static struct offload_case case_of(const struct explained *explained, unsigned from)
{
	return (struct offload_case){
		.plane = explained->plane,
		.key = &explained->flow->record.key,
		.port = port_of(explained, from),
		.state = explained->offload.state[from],
		.reason = explained->offload.reason[from],
		.now_us = explained->flow->now_us,
		.retry_us = explained->flow->retry_us[from],
		.older_us = explained->flow->older_us[from],
		.rank = &explained->flow->rank[from],
	};
}

static void placed_because_of(
	char sentence[OFFLOAD_SENTENCE_MAX], const struct explained *explained, unsigned from)
{
	const struct offload_case of = case_of(explained, from);

	offload_because(sentence, &of);
}

/*
 * Since when a direction is in its state for the reason that is told: as its slot has it, or by its newest change. False
 * where that was for another reason, which is over.
 */
static bool since_when(const struct explained *explained, unsigned from, uint64_t *since_us)
{
	const struct plane_flow *flow = explained->flow;

	*since_us = flow->since_us[from];
	if (*since_us != 0)
		return true;
	for (unsigned i = 0; i < flow->n_changes; i++) {
		const struct offload_change *change = &flow->changes[i];

		if (change->from != from)
			continue;
		*since_us = change->time_us;
		return change->after == explained->offload.state[from] &&
		       (change->reason == explained->offload.reason[from] ||
			       explained->offload.reason[from] == OFFLOAD_OLDER_RULE);
	}
	return false;
}

static void add_since(json_t *object, const struct explained *explained, unsigned from,
	const char *since, const char *lasts)
{
	uint64_t since_us;

	if (!since_when(explained, from, &since_us))
		return;
	json_object_set_new(object, since, placed_time_of(explained, since_us));
	answer_number(object, lasts, span_since(explained->flow->now_us, since_us));
}

/* What the driver said, where it is the reason. */
static void placed_add_refusal(json_t *object, const struct explained *explained, unsigned from)
{
	struct installer *installer = plane_installer(explained->plane, port_of(explained, from));
	uint8_t reason = explained->offload.reason[from];
	enum provider_kind kind = provider_kind(&explained->flow->record.key);

	if (!installer)
		return;
	const struct refusal *refusal = refusal_of(installer_refusals(installer), reason);
	const struct provider_abilities *abilities = installer_abilities(installer);

	if (refusal)
		json_object_set_new(
			object, "refusal", offload_refusal(refusal->error, refusal->words));
	else if ((reason == OFFLOAD_KIND || reason == OFFLOAD_TRIAL) && kind < PROVIDER_N_KINDS &&
		 abilities->refused[kind].error != 0)
		json_object_set_new(object, "refusal",
			offload_refusal(
				abilities->refused[kind].error, abilities->refused[kind].words));
}

static void add_rate(json_t *object, const char *key, uint32_t rate)
{
	json_object_set_new(object, key, answer_tenths((double)rate / RATE_ONE));
}

/* How busy it is, among whom, and what it would have to be. */
static void add_rank(json_t *object, const struct explained *explained, unsigned from)
{
	const struct agent_rank *rank = &explained->flow->rank[from];

	/* nobody asks for it, or for any */
	if (rank->rank == 0 || plane_config(explained->plane)->offload.threshold == 0)
		return;
	add_rate(object, "rate_pps", rank->rate);
	answer_number(object, "rank", rank->rank);
	answer_number(object, "ranked", rank->held);
	if (rank->room != UINT32_MAX)
		answer_number(object, "room", rank->room);
	if (rank->bar != UINT32_MAX)
		add_rate(object, "needs_pps", rank->bar);
}

/* Since when the older rule that it waits behind is to go. */
static void add_older(json_t *object, const struct explained *explained, unsigned from)
{
	const struct plane_flow *flow = explained->flow;

	if (flow->older_us[from] == 0)
		return;
	json_object_set_new(object, "older_since", placed_time_of(explained, flow->older_us[from]));
	answer_number(object, "older_for_us", span_since(flow->now_us, flow->older_us[from]));
}

/* What the rule does, while there is one. */
static void add_how(json_t *object, const struct explained *explained, unsigned from)
{
	const struct flow_offload *offload = &explained->offload;

	if (offload_state_holds((enum offload_state)offload->state[from]))
		json_object_set_new(object, "how", offload_how(offload->full[from]));
}

/* Which direction, and where its packets arrive. */
static json_t *begin_direction(const struct explained *explained, unsigned from, unsigned port)
{
	json_t *object = json_object();

	json_object_set_new(object, "direction",
		json_string(flow_offload_direction(&explained->flow->record, from)));
	json_object_set_new(
		object, "port", answer_string(offload_port_name(explained->plane, port)));
	return object;
}

/* Both directions come by one port, and the other one has the rule that the flow may have there. */
static json_t *describe_without(const struct explained *explained, unsigned from)
{
	json_t *object = begin_direction(explained, from, usual_port(explained, from));

	json_object_set_new(object, "state", json_string(offload_state_name(OFFLOAD_SOFTWARE)));
	json_object_set_new(object, "reason", json_string(offload_reason_name(OFFLOAD_OTHER_WAY)));
	json_object_set_new(
		object, "because", answer_string(offload_reason_what(OFFLOAD_OTHER_WAY)));
	answer_number(object, "packets", flow_packets(&explained->flow->record, from));
	return object;
}

static json_t *describe_with(const struct explained *explained, unsigned from)
{
	const struct flow_record *record = &explained->flow->record;
	enum offload_state state = (enum offload_state)explained->offload.state[from];
	char sentence[OFFLOAD_SENTENCE_MAX];
	json_t *object = begin_direction(explained, from, port_of(explained, from));

	json_object_set_new(object, "state", json_string(offload_state_name(state)));
	add_how(object, explained, from);
	if (state >= OFFLOAD_ACCEPTED)
		json_object_set_new(object, "proven", json_boolean(state == OFFLOAD_PROVEN));
	json_object_set_new(object, "reason",
		json_string(offload_reason_name(explained->offload.reason[from])));
	placed_because_of(sentence, explained, from);
	json_object_set_new(object, "because", answer_string(sentence));
	placed_add_refusal(object, explained, from);
	add_since(object, explained, from, "since", "for_us");
	add_older(object, explained, from);
	answer_number(object, "packets", flow_packets(record, from));
	add_rank(object, explained, from);
	if (explained->flow->nic[from] > 0)
		answer_number(object, "nic_packets", explained->flow->nic[from]);
	return object;
}

/* The direction of packets from an end: by the port that they come by usually, or where their rule is. */
static json_t *describe_direction(const struct explained *explained, unsigned from)
{
	const bool holds = offload_state_holds((enum offload_state)explained->offload.state[from]);

	if (!holds && flow_offload_rule_is_at(explained->flow, !from, usual_port(explained, from)))
		return describe_without(explained, from);
	return describe_with(explained, from);
}

static json_t *describe_change(
	const struct explained *explained, const struct offload_change *change)
{
	json_t *object = json_object();

	json_object_set_new(object, "time", placed_time_of(explained, change->time_us));
	answer_number(object, "ago_us", span_since(explained->flow->now_us, change->time_us));
	json_object_set_new(
		object, "port", answer_string(offload_port_name(explained->plane, change->port)));
	json_object_set_new(object, "direction",
		json_string(flow_offload_direction(&explained->flow->record, change->from)));
	offload_describe_change(object, explained->plane, change);
	return object;
}

static void add_changes(json_t *line, const struct explained *explained)
{
	const struct plane_flow *flow = explained->flow;
	json_t *changes = json_array();

	for (unsigned i = 0; i < flow->n_changes && i < PLANE_CHANGES; i++)
		json_array_append_new(changes, describe_change(explained, &flow->changes[i]));
	json_object_set_new(line, "changes", changes);
	json_object_set_new(line, "changes_lost", json_boolean(flow->lost));
}

/* Where nobody offloads, each direction says why that is so. */
static struct flow_offload nobody(const struct plane *plane, const struct plane_flow *flow)
{
	const struct plane_offload *config = &plane_config(plane)->offload;
	struct flow_offload offload = {.packets = 0};

	for (unsigned from = 0; from < 2; from++) {
		const unsigned port = flow_offload_port(plane, &flow->record, from);

		offload.reason[from] =
			!config->on || config->off_port[port] ? OFFLOAD_OFF : OFFLOAD_NO_NIC;
	}
	return offload;
}

void flow_offload_explain(json_t *line, struct plane *plane, const struct plane_flow *flow)
{
	const struct flow_record *record = &flow->record;
	struct explained explained = {
		.plane = plane,
		.flow = flow,
		.offload = flow->offload.told ? flow->offload : nobody(plane, flow),
		.wire = flow_key_wire(&record->key),
	};
	char sentence[OFFLOAD_SENTENCE_MAX];
	json_t *directions = json_array();

	explained.further = export_json_direction(record, &explained.offload);
	json_object_set_new(line, "where",
		json_string(offload_state_name(
			(enum offload_state)explained.offload.state[explained.further])));
	add_how(line, &explained, explained.further);
	if (explained.offload.estimated)
		json_object_set_new(line, "estimated", json_true());
	placed_because_of(sentence, &explained, explained.further);
	json_object_set_new(line, "where_because", answer_string(sentence));
	for (unsigned i = 0; i < 2; i++)
		json_array_append_new(
			directions, describe_direction(&explained, record->initiator ^ i));
	json_object_set_new(line, "directions", directions);
	if (explained.offload.packets == FLOW_OFFLOAD_LOST)
		json_object_set_new(line, "marked_packets", json_null());
	else
		answer_number(line, "marked_packets", explained.offload.packets);
	if (flow->mark != 0)
		answer_number(line, "mark", flow->mark);
	const struct offload_case further = case_of(&explained, explained.further);
	const uint64_t retry_us = offload_retry_us(&further);

	if (retry_us > flow->now_us)
		answer_number(line, "retry_in_us", retry_us - flow->now_us);
	add_changes(line, &explained);
}
