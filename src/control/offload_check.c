/* SPDX-License-Identifier: BSD-3-Clause */

/* offload check: would a flow like this one go into the NIC now, at each port of its wire, and if not, why? */

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/text.h"
#include "control/control.h"
#include "control/flow_name.h"
#include "control/flow_offload.h"
#include "control/offload_words.h"
#include "control/verbs.h"
#include "offload/rate.h"

#define ASK "offload check"
/* What is in the way where it is none of the engine's reasons, but a card that is full. */
#define NO_ROOM "no_room"

/* A port, as asked for one flow. */
struct checked {
	struct plane *plane;
	const struct flow_key *key;
	const struct plane_flow
		*flow;	/* NULL: there is no such flow, or it does not come by the port */
	unsigned from;	/* its direction there */
	bool elsewhere; /* whose rule is at another port */
	const struct agent_rank *rank; /* what it is, or would be, held against */
	struct installer *installer;   /* NULL: nobody installs rules there */
	struct plane_slots slots;
	unsigned wire, port;
	uint64_t now_us;
};

/* What the port says to any flow of this kind; OFFLOAD_QUIET: nothing. */
static uint8_t reason_of_port(const struct checked *checked)
{
	const struct plane_offload *config = &plane_config(checked->plane)->offload;

	if (checked->installer == NULL)
		return config->on && !config->off_port[checked->port] ? OFFLOAD_NO_NIC
								      : OFFLOAD_OFF;
	if (config->paused)
		return OFFLOAD_OFF;
	return installer_reason(checked->installer, provider_kind(checked->key));
}

/* It has a rule, or is on its way to one: no longer one that was refused. */
static bool is_asked_in(const struct checked *checked)
{
	if (checked->flow == NULL)
		return false;
	const unsigned state = checked->flow->offload.state[checked->from];

	return !checked->elsewhere && state != OFFLOAD_SOFTWARE && state != OFFLOAD_REFUSED;
}

/* No flow of the wire can have a slot: they wait for both of its ports, or there was no memory for any. */
static bool has_no_slots(const struct checked *checked)
{
	return checked->installer != NULL && installer_ready(checked->installer) &&
	       checked->slots.n == 0;
}

/* All places of the queue by which flows get there are taken. */
static bool is_crowded(const struct checked *checked)
{
	return checked->rank->crowded && !is_asked_in(checked);
}

/* What is in the way; OFFLOAD_QUIET: nothing. */
static uint8_t reason_of(const struct checked *checked)
{
	uint8_t reason = reason_of_port(checked);

	if (reason != OFFLOAD_QUIET || is_asked_in(checked))
		return reason;
	if (has_no_slots(checked))
		return plane_has_no_slots(checked->plane, checked->wire) ? OFFLOAD_NO_SLOT
									 : OFFLOAD_TRIAL;
	if (checked->elsewhere)
		return OFFLOAD_BOTH_SIDES;
	if (checked->flow != NULL && checked->flow->retry_us[checked->from] > checked->now_us)
		return checked->flow->offload.reason[checked->from];
	const struct agent_rank *rank = checked->rank;
	const bool short_of_slots =
		checked->slots.used >= checked->slots.n || (rank->room != 0 && !rank->has_slots);

	/* with a flow that gives way its slot becomes free, too */
	const bool gives_way = rank->room != 0 && rank->bar != UINT32_MAX &&
			       plane_config(checked->plane)->offload.threshold > 0;

	if (short_of_slots && !gives_way)
		return OFFLOAD_NO_SLOT;
	/* where all flows are wanted none gives way in the queue */
	return is_crowded(checked) && plane_config(checked->plane)->offload.threshold == 0
		       ? OFFLOAD_DISPLACED
		       : OFFLOAD_QUIET;
}

/* All places that the flow's worker may have are taken. */
static bool is_full(const struct checked *checked)
{
	/* without an agent nobody knows of any room */
	return checked->rank->room != 0 && !checked->rank->has_room && !is_asked_in(checked);
}

/* Nobody gives way to it: all are wanted, or no flow that is there may be asked to leave now. */
static bool is_shut(const struct checked *checked)
{
	return is_full(checked) && (plane_config(checked->plane)->offload.threshold == 0 ||
					   checked->rank->bar == UINT32_MAX);
}

static void check_because_of(
	char sentence[OFFLOAD_SENTENCE_MAX], const struct checked *checked, uint8_t reason)
{
	const struct offload_case of = {
		.plane = checked->plane,
		.key = checked->key,
		.port = checked->port,
		.reason = reason,
		.now_us = checked->now_us,
		.retry_us = checked->flow ? checked->flow->retry_us[checked->from] : 0,
		.older_us = checked->flow ? checked->flow->older_us[checked->from] : 0,
		.rank = checked->rank,
	};

	offload_because(sentence, &of);
}

/* What its driver said, where that is the reason. */
static void check_add_refusal(json_t *line, const struct checked *checked, uint8_t reason)
{
	enum provider_kind kind = provider_kind(checked->key);
	const struct provider_why *why;

	if (checked->installer == NULL || kind == PROVIDER_N_KINDS ||
		(reason != OFFLOAD_KIND && reason != OFFLOAD_TRIAL))
		return;
	why = &installer_abilities(checked->installer)->refused[kind];
	if (why->error != 0)
		json_object_set_new(line, "refusal", offload_refusal(why->error, why->words));
}

static void say_no(json_t *line, const struct checked *checked, uint8_t reason)
{
	char sentence[OFFLOAD_SENTENCE_MAX];

	check_because_of(sentence, checked, reason);
	json_object_set_new(line, "would", json_false());
	json_object_set_new(line, "reason", json_string(offload_reason_name(reason)));
	json_object_set_new(line, "because", answer_string(sentence));
	check_add_refusal(line, checked, reason);
}

static void say_shut(json_t *line, const struct checked *checked)
{
	char sentence[OFFLOAD_SENTENCE_MAX], text[TEXT_NUMBER_MAX];

	snprintf(sentence, sizeof(sentence),
		"the card has no room for more than %s rules, and no flow in it gives way now",
		text_grouped(text, checked->rank->room));
	json_object_set_new(line, "would", json_false());
	json_object_set_new(line, "reason", json_string(NO_ROOM));
	json_object_set_new(line, "because", answer_string(sentence));
}

/* At how many packets a second by this port it would go in; 0: with its first packet. */
static uint64_t needs_pps(const struct checked *checked)
{
	const uint32_t threshold = plane_config(checked->plane)->offload.threshold;
	const uint32_t bar = checked->rank->bar;

	if (threshold == 0 || bar == UINT32_MAX || is_asked_in(checked))
		return threshold;
	return RTE_MAX((uint64_t)threshold, (bar + (uint64_t)RATE_ONE - 1) / RATE_ONE);
}

static void say_when(
	char sentence[OFFLOAD_SENTENCE_MAX], const struct checked *checked, uint64_t needed)
{
	char text[TEXT_NUMBER_MAX];

	if (needed == 0)
		snprintf(sentence, OFFLOAD_SENTENCE_MAX, "with its first packet");
	else
		snprintf(sentence, OFFLOAD_SENTENCE_MAX,
			"when its packets come by this port at %s a second or more%s",
			text_grouped(text, needed),
			is_crowded(checked) ? ", as the queue for the card is full: the least busy "
					      "flow in it gives way"
			: is_full(checked)
				? ", as all places are taken: the least busy flow gives way"
				: "");
}

static void say_yes(json_t *line, const struct checked *checked)
{
	enum provider_kind kind = provider_kind(checked->key);
	const struct provider_abilities *abilities = installer_abilities(checked->installer);
	const struct plane_config *config = plane_config(checked->plane);
	const bool full = config->offload.full && abilities->full[PROVIDER_FORWARDS][kind] &&
			  !(config->tcp_strict && checked->key->proto == IPPROTO_TCP);
	char sentence[OFFLOAD_SENTENCE_MAX];

	say_when(sentence, checked, needs_pps(checked));
	json_object_set_new(line, "would", json_true());
	answer_number(line, "needs_pps", needs_pps(checked));
	json_object_set_new(line, "how", offload_how(full));
	json_object_set_new(line, "shape",
		answer_string(full ? abilities->full_shape[kind] : abilities->shape[kind]));
	json_object_set_new(line, "because", answer_string(sentence));
}

/* Of a flow that is there: where it is handled now. */
static void say_now(json_t *line, const struct checked *checked)
{
	const struct plane_flow *flow = checked->flow;
	const unsigned from = checked->from;
	enum offload_state state = checked->elsewhere
					   ? OFFLOAD_SOFTWARE
					   : (enum offload_state)flow->offload.state[from];
	char sentence[OFFLOAD_SENTENCE_MAX];
	json_t *now = json_object();

	/* nobody tells of it where nobody offloads */
	if (flow->offload.told) {
		uint8_t reason = checked->elsewhere ? (uint8_t)OFFLOAD_BOTH_SIDES
						    : flow->offload.reason[from];

		check_because_of(sentence, checked, reason);
		json_object_set_new(now, "reason", json_string(offload_reason_name(reason)));
		json_object_set_new(now, "because", answer_string(sentence));
	}
	json_object_set_new(
		now, "direction", json_string(flow_offload_direction(&flow->record, from)));
	json_object_set_new(now, "state", json_string(offload_state_name(state)));
	if (state >= OFFLOAD_ACCEPTED) {
		json_object_set_new(now, "how", offload_how(flow->offload.full[from]));
		json_object_set_new(now, "proven", json_boolean(state == OFFLOAD_PROVEN));
	}
	json_object_set_new(line, "now", now);
}

static json_t *check_describe(const struct checked *checked, bool live)
{
	uint8_t reason = reason_of(checked);
	json_t *line = json_object();

	json_object_set_new(
		line, "port", answer_string(offload_port_name(checked->plane, checked->port)));
	answer_number(line, "wire", checked->wire);
	json_object_set_new(
		line, "kind", json_string(provider_kind_name(provider_kind(checked->key))));
	if (reason != OFFLOAD_QUIET)
		say_no(line, checked, reason);
	else if (is_shut(checked))
		say_shut(line, checked);
	else
		say_yes(line, checked);
	json_object_set_new(line, "live", json_boolean(live));
	if (checked->flow != NULL)
		say_now(line, checked);
	return line;
}

/* The direction of a flow that has its rule at the port, or comes by it usually; false: none does. */
static bool find_direction(struct checked *checked, const struct plane_flow *flow)
{
	const struct topology *topology = &plane_config(checked->plane)->topology;

	for (checked->from = 0; checked->from < 2; checked->from++)
		if (flow_offload_rule_is_at(flow, checked->from, checked->port))
			return true;
	for (checked->from = 0; checked->from < 2; checked->from++) {
		const unsigned usual =
			topology_is_wire(topology, checked->wire)
				? flow_offload_port(checked->plane, &flow->record, checked->from)
				: flow->port[checked->from];

		if (usual == checked->port)
			return true;
	}
	return false;
}

/* What one port of the domain says. `flow`: NULL where there is none. */
static void look(struct checked *checked, const struct plane_flow *flow)
{
	checked->installer = plane_installer(checked->plane, checked->port);
	checked->flow = flow != NULL && find_direction(checked, flow) ? flow : NULL;
	checked->elsewhere =
		checked->flow != NULL &&
		offload_state_holds((enum offload_state)flow->offload.state[checked->from]) &&
		flow->port[checked->from] != checked->port;
	if (checked->flow != NULL && !checked->elsewhere)
		checked->rank = &flow->rank[checked->from];
}

static int check(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct plane *plane = answer->plane;
	const struct topology *topology = &plane_config(plane)->topology;
	struct plane_flow flow = {.worker = 0};
	struct flow_key key;
	int ret = flow_name_key(&key, answer, values, error), found;

	if (ret < 0)
		return ret;
	struct checked checked = {.plane = plane,
		.key = &key,
		.wire = flow_key_wire(&key),
		.now_us = plane_now_us(plane)};

	found = plane_flow(plane, &key, &flow);
	if (found < 0 && found != -ENOENT)
		ret = found;
	if (ret == 0)
		ret = plane_slots(plane, checked.wire, &checked.slots);
	for (unsigned place = 0; place < topology->size[checked.wire] && ret == 0; place++) {
		checked.port = topology_port(topology, checked.wire, place);
		checked.rank = &flow.bar[place];
		look(&checked, found == 0 ? &flow : NULL);
		ret = answer_add(answer, check_describe(&checked, found == 0));
	}
	return ret < 0 ? control_silent(error, ret, ASK) : 0;
}

const struct answer_verb offload_check = {
	.ask = ASK,
	.keys = flow_name_keys,
	.n_keys = FLOW_NAME_KEYS,
	.begin = check,
};
