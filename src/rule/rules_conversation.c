/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows that are decided by their conversation (docs/rules.md, "Conversations"): the direction of the one who began it
 * comes first, and says whether the conversation is accepted; what the other direction is follows from that.
 */
#include <netinet/in.h>
#include <rte_common.h>

#include "rule/grammar.h"
#include "rule/rules_private.h"
#include "rule/words.h"

static_assert(RULE_CT_NEW == 1u << FLOW_CT_NEW &&
		      RULE_CT_ESTABLISHED == 1u << FLOW_CT_ESTABLISHED &&
		      RULE_CT_RELATED == 1u << FLOW_CT_RELATED &&
		      RULE_CT_INVALID == 1u << FLOW_CT_INVALID,
	"the same bits");

/* A rule whose replies take its verdict, and that is in force. */
static bool is_followed(const struct rules *rules, uint32_t slot)
{
	return slot != FLOW_RULE_NONE && rules->slots[slot].follows &&
	       !__atomic_load_n(&rules->slots[slot].gone, __ATOMIC_RELAXED);
}

bool rules_answer(const struct rules *rules, struct flow_packet_ct ct, uint32_t *slot)
{
	if (ct.answers == 0 || !is_followed(rules, ct.answers - 1))
		return false;
	*slot = ct.answers - 1;
	return true;
}

bool rules_of_conversations(const struct rules *rules)
{
	return atomic_load_explicit(&rules->n_of_conversations, memory_order_acquire) != 0;
}

uint8_t rules_bits_of(const struct rules *rules, struct flow_packet_ct ct)
{
	enum flow_ct state = (enum flow_ct)ct.state;

	if (state == FLOW_CT_MIDWAY)
		state = rules->no_pickup ? FLOW_CT_INVALID : FLOW_CT_NEW;
	/* what is related, or no answer to anything, has no direction in a conversation */
	if (ct.state == FLOW_CT_RELATED || ct.state == FLOW_CT_INVALID)
		return (uint8_t)(1u << state << CLASSIFIER_STATE_SHIFT);
	return (uint8_t)(1u << state << CLASSIFIER_STATE_SHIFT |
			 (ct.reverse ? CLASSIFIER_REVERSE : CLASSIFIER_FORWARD));
}

const char *rules_state_of(const struct classifier_header *header)
{
	return rule_word_name(
		rule_ct_states, (header->bits & CLASSIFIER_STATES) >> CLASSIFIER_STATE_SHIFT);
}

const char *rules_direction_of(const struct classifier_header *header)
{
	if (!(header->bits & (CLASSIFIER_FORWARD | CLASSIFIER_REVERSE)))
		return NULL;
	return rule_word_name(rule_directions, (header->bits & CLASSIFIER_REVERSE) != 0);
}

const char *rules_state_name(const struct rules *rules, struct flow_packet_ct ct)
{
	const struct classifier_header header = {.bits = rules_bits_of(rules, ct)};

	return rules_state_of(&header);
}

/* A flow that is decided. */
struct deciding {
	const struct rules *rules;
	const struct classifier *classifier;
	unsigned list; /* that packets are decided by */
	const struct flow_key *key;
	struct classifier_header *headers; /* of both ends */
	struct flow_decision *decision;
};

static bool decision_is_of_icmp(const struct deciding *deciding)
{
	return deciding->key->proto == IPPROTO_ICMP || deciding->key->proto == IPPROTO_ICMPV6;
}

static uint32_t find_as(const struct deciding *deciding, unsigned from, enum flow_ct state)
{
	struct classifier_header *header = &deciding->headers[from];
	const struct classifier_header *const asked[] = {header};
	uint32_t slot;

	header->bits =
		rules_bits_of(deciding->rules, (struct flow_packet_ct){.state = (uint8_t)state});
	/* but for ICMP, where what is let pass is asked for, what may begin a flow is */
	header->metadata = decision_is_of_icmp(deciding) ? 0 : RULE_METADATA_LIMIT;
	classifier_find_in_list(deciding->classifier, deciding->list, 0, asked, &slot, 1);
	return slot;
}

/* The end has the rule of this slot, which was found by its header. */
static void decide_as(const struct deciding *deciding, unsigned from, uint32_t slot)
{
	struct flow_decision *decision = deciding->decision;

	decision->by_port = decision->by_port ||
			    rules_depend_on_port(deciding->rules, deciding->classifier,
				    deciding->list, deciding->key, deciding->headers[from].in_port,
				    &deciding->headers[from], slot);
	rules_decide_end(deciding->rules, from, slot, decision);
}

static void decide_by_packet(const struct deciding *deciding, unsigned from)
{
	deciding->decision->verdict[from] = FLOW_VERDICT_BY_PACKET;
	deciding->decision->rule[from] = FLOW_RULE_NONE;
}

/* Must each TCP packet be asked whether it is a SYN, until one is let pass? Rules can tell them apart with `pickup: no`. */
static bool asks_how_it_begins(const struct deciding *deciding)
{
	return deciding->rules->no_pickup && deciding->key->proto == IPPROTO_TCP;
}

/*
 * Nobody's packets were let pass so far. Those of the other end would begin a conversation of their own: with the first of
 * them that is let pass the flow is decided again.
 */
static void decide_other_unaccepted(
	const struct deciding *deciding, unsigned from, uint32_t initiators)
{
	const struct rules *rules = deciding->rules;
	uint32_t slot = find_as(deciding, from, FLOW_CT_NEW);
	const uint32_t slots[2] = {slot,
		asks_how_it_begins(deciding) ? find_as(deciding, from, FLOW_CT_MIDWAY) : slot};

	/* the initiator's next packet may begin otherwise than its first */
	if (asks_how_it_begins(deciding) &&
		deciding->decision->verdict[!from] != FLOW_VERDICT_BY_PACKET) {
		const enum flow_ct other =
			deciding->decision->conversation.midway ? FLOW_CT_NEW : FLOW_CT_MIDWAY;

		if (find_as(deciding, !from, other) != initiators)
			decide_by_packet(deciding, !from);
	}
	if (slots[0] == slots[1] && rules_slot_drops(rules, slot))
		decide_as(deciding, from, slot);
	else
		decide_by_packet(deciding, from);
}

/* The rule that the other direction follows, or CLASSIFIER_NONE. */
static uint32_t followed(const struct deciding *deciding, uint32_t initiators)
{
	const struct rules *rules = deciding->rules;
	uint32_t slot = initiators;

	/* a rule per packet accepted the conversation: it is known which, as long as it is in force */
	if (slot != CLASSIFIER_NONE && rules->slots[slot].by_packet)
		slot = deciding->decision->conversation.followed;
	return is_followed(rules, slot) ? slot : CLASSIFIER_NONE;
}

/* Are requests of that end let pass still? By this rule, where one per packet did it and may do it again. */
static bool find_asked(const struct deciding *deciding, unsigned end, uint32_t *rule)
{
	const uint32_t slot = find_as(deciding, end, FLOW_CT_NEW);
	const struct rules_slot *slots = deciding->rules->slots;

	if (slot != CLASSIFIER_NONE && slots[slot].by_packet)
		return true;
	*rule = slot == CLASSIFIER_NONE ? FLOW_RULE_NONE : slot;
	return !rules_slot_drops(deciding->rules, slot);
}

/* The conversation is accepted: which limits count it? */
static void recount(const struct deciding *deciding)
{
	struct flow_decision *decision = deciding->decision;
	struct classifier_header header = deciding->headers[decision->conversation.initiator];

	header.bits = rules_bits_of(deciding->rules,
		(struct flow_packet_ct){
			.state = decision->conversation.midway ? FLOW_CT_MIDWAY : FLOW_CT_NEW});
	rules_limits_recount(deciding->rules, deciding->classifier, deciding->list, &header,
		decision->now_us, &decision->conversation.counted);
}

/*
 * ICMP between two hosts: each of its messages says by itself whether it asks, answers or tells of an error. What was asked
 * has still to be allowed.
 */
static void decide_icmp(const struct deciding *deciding)
{
	const struct rules *rules = deciding->rules;
	struct flow_conversation *conversation = &deciding->decision->conversation;

	for (unsigned end = 0; end < 2; end++) {
		decide_by_packet(deciding, end);
		if (!(conversation->asked >> end & 1))
			conversation->asked_by[end] = FLOW_RULE_NONE;
		else if (!find_asked(deciding, end, &conversation->asked_by[end]))
			conversation->asked &= (uint8_t)~(1u << end);
	}
	for (unsigned end = 0; end < 2; end++)
		if (is_followed(rules, conversation->asked_by[!end]))
			deciding->decision->rule[end] = conversation->asked_by[!end];
	if (conversation->asked >> conversation->initiator & 1)
		recount(deciding);
	else
		rules_limits_forget(rules, deciding->key, conversation);
}

/* `found`: what the initiator's header has, and that of the other end in a conversation that was accepted. */
static void decide_one(const struct deciding *deciding, const uint32_t found[2])
{
	const struct rules *rules = deciding->rules;
	struct flow_decision *decision = deciding->decision;
	struct flow_conversation *conversation = &decision->conversation;
	const unsigned initiator = conversation->initiator, other = !initiator;
	uint32_t slot = found[initiator];

	conversation->kept = true;
	conversation->follows = false;
	if (decision_is_of_icmp(deciding)) {
		decide_icmp(deciding);
		return;
	}
	decide_as(deciding, initiator, slot);
	if (decision->verdict[initiator] != FLOW_VERDICT_BY_PACKET)
		conversation->accepted = !flow_verdict_drops(decision->verdict[initiator]);
	if (conversation->accepted)
		recount(deciding);
	else
		rules_limits_forget(rules, deciding->key, conversation);
	if (!conversation->accepted) {
		decide_other_unaccepted(deciding, other, slot);
		return;
	}
	slot = followed(deciding, slot);
	if (slot == CLASSIFIER_NONE) {
		decide_as(deciding, other, found[other]);
		return;
	}
	conversation->follows = true;
	rules_take_rule(rules, other, slot, decision);
}

void rules_decide_conversations(const struct rules *rules, const struct classifier *classifier,
	unsigned list, const struct flow_key *const *keys, struct classifier_header *headers,
	struct flow_decision *decisions, unsigned n)
{
	const struct classifier_header *asked[2 * FLOW_DECIDE_BURST];
	uint32_t slots[2 * FLOW_DECIDE_BURST];

	for (unsigned i = 0; i < n; i++) {
		const struct flow_conversation *conversation = &decisions[i].conversation;
		const unsigned initiator = conversation->initiator;

		headers[2 * i + initiator].bits = rules_bits_of(rules,
			(struct flow_packet_ct){
				.state = conversation->midway ? FLOW_CT_MIDWAY : FLOW_CT_NEW});
		headers[2 * i + initiator].metadata =
			conversation->accepted ? 0 : RULE_METADATA_LIMIT;
		headers[2 * i + !initiator].bits = rules_bits_of(rules,
			(struct flow_packet_ct){.state = FLOW_CT_ESTABLISHED, .reverse = true});
	}
	for (unsigned i = 0; i < RTE_DIM(asked); i++)
		asked[i] = &headers[i];
	classifier_find_in_list(classifier, list, 0, asked, slots, 2 * n);
	for (unsigned i = 0; i < n; i++) {
		const struct deciding deciding = {
			.rules = rules,
			.classifier = classifier,
			.list = list,
			.key = keys[i],
			.headers = &headers[2 * i],
			.decision = &decisions[i],
		};

		decide_one(&deciding, &slots[2 * i]);
		decisions[i].cause = FLOW_CAUSE_NONE;
	}
}
