/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What is done with the packets of a flow is decided once, when the flow is learned, and kept in its record: a verdict
 * for each direction, which is the number of an action program (action/programs.h). Who decides is told by the
 * configuration of the shard.
 *
 * Packets that a verdict drops are not in the record's counters, which are of packets carried. They are counted beside
 * it, in a row of the shard's by position, and in the flow's report.
 *
 * The shard's worker alone writes verdicts.
 */

#include <stdbool.h>
#include <stdint.h>

#include "flow/record.h"
#include "flow/sides.h"

/* Plain forwarding, and the program that does nothing but drop. */
#define FLOW_VERDICT_FORWARD 0
#define FLOW_VERDICT_DROP 1 /* PROGRAMS_DROP */
/*
 * From here on up to FLOW_VERDICT_BY_PACKET: packets are dropped, and their sender is told. The distance from the first
 * is what it is told (PROGRAMS_REJECT).
 */
#define FLOW_VERDICT_REJECT (UINT16_MAX - 5)
/* No program's number: what is done with a packet depends on more than its flow, so that each is classified. */
#define FLOW_VERDICT_BY_PACKET UINT16_MAX

/* Whether packets with this verdict are dropped, and their sender is told. */
static inline bool flow_verdict_rejects(uint16_t verdict)
{
	return verdict >= FLOW_VERDICT_REJECT && verdict != FLOW_VERDICT_BY_PACKET;
}

/* Whether they are dropped, in silence or not. */
static inline bool flow_verdict_drops(uint16_t verdict)
{
	return verdict == FLOW_VERDICT_DROP || flow_verdict_rejects(verdict);
}

/* No cause, and no rule. */
#define FLOW_CAUSE_NONE UINT32_MAX
#define FLOW_RULE_NONE UINT32_MAX

/* The state of a packet in its conversation, as rules ask for it (docs/rules.md). */
enum flow_ct {
	FLOW_CT_NEW, /* of the one who began it, or the first of a conversation that was not accepted */
	FLOW_CT_ESTABLISHED, /* of the other one, in a conversation that was accepted */
	FLOW_CT_RELATED,     /* an ICMP error about one that was accepted */
	FLOW_CT_INVALID,
	FLOW_CT_MIDWAY, /* as NEW, of a TCP flow whose first packet was no SYN: the policy says whether it is invalid */
	FLOW_N_CT,
};

struct flow_packet_ct {
	uint8_t state; /* enum flow_ct */
	bool reverse;  /* of the one who did not begin it */
	/*
	 * of a reply whose request was let pass by a rule, and of an error about a conversation that one let pass: 1 more than
	 * the rule; 0: none. ICMP alone
	 */
	uint32_t answers;
	/* the packet may begin a conversation: rules may limit how many its source has. And when it came */
	bool begins;
	bool looks; /* it was decided before, and is only looked at: limits count nothing */
	uint64_t now_us;
};

/*
 * What is known of a flow's conversation before it is decided, and after that. A conversation is accepted once a packet of
 * the one who begins it is let pass. Where the policy does not care, nobody keeps it.
 */
struct flow_conversation {
	uint8_t initiator; /* the key's end that begins it */
	bool midway;	   /* FLOW_CT_MIDWAY, not FLOW_CT_NEW */
	bool accepted; /* before: by a packet that was decided by itself, or as it was decided last */
	bool follows; /* the other direction has the verdict of a rule of the initiator's */
	uint32_t
		followed; /* before: that rule, or the one that accepted the conversation; or FLOW_RULE_NONE */
	bool kept; /* after: the policy does care */
	/*
	 * All ICMP between two hosts is one flow, in which each of them may ask. Bit n: a request of end n was let pass; and the
	 * rule that let it, whose verdict replies to it may have
	 */
	uint8_t asked;
	uint32_t asked_by[2];
	uint16_t
		counted; /* bits of the limits that count the flow as one of its initiator's live ones */
};

/* The state and direction that packets of an end have in a conversation, unless each packet says it by itself. */
static inline struct flow_packet_ct flow_conversation_ct(
	const struct flow_conversation *conversation, unsigned from)
{
	if (conversation->accepted && from != conversation->initiator)
		return (struct flow_packet_ct){.state = FLOW_CT_ESTABLISHED, .reverse = true};
	return (struct flow_packet_ct){
		.state = conversation->midway && from == conversation->initiator ? FLOW_CT_MIDWAY
										 : FLOW_CT_NEW,
		.begins = conversation->kept && !conversation->accepted,
	};
}

/* What is decided of a flow; pairs are by the key's end that packets come from. */
struct flow_decision {
	uint16_t verdict[2];
	uint32_t cause; /* whatever number tells whoever decides why a packet is dropped */
	uint32_t rule
		[2]; /* whatever number tells whoever decides which rule it was, or FLOW_RULE_NONE */
	uint32_t mark[2]; /* that the rule gives to packets, where `marked` has a bit */
	uint8_t marked;
	uint32_t age_s;	 /* seconds of silence that end it, in place of the protocol's; 0: those */
	uint64_t now_us; /* comes as the clock of the run says */
	/* by another port than that of their end packets may have another verdict: those are classified each */
	bool by_port;
	struct flow_conversation conversation; /* comes as it is known */
};

/* What is decided of one packet: of a flow that is decided by packet, or of none. */
struct flow_packet_decision {
	uint16_t verdict; /* never FLOW_VERDICT_BY_PACKET */
	uint32_t rule;	  /* as in struct flow_decision; FLOW_RULE_NONE: no rule fits */
	uint32_t mark;	  /* where it is `marked` */
	bool marked;
	bool logs; /* the packet is to be told of */
	/*
	 * Limits that have counted the flow because of this packet, as in struct flow_conversation: the caller takes them
	 * over when the packet begins the conversation, or gives them back
	 */
	uint16_t counted;
};

/* Flows that are decided side by side. */
#define FLOW_DECIDE_BURST 16

/* What a report tells of a rule, which may be gone by the time that somebody reads it. */
struct flow_rule_told {
	uint32_t number; /* by which its user knows it, */
	uint8_t port;	 /* of this port */
	uint8_t to_port; /* that it sends packets to: the engine's number of it, and 1 more; 0: it names none */
};

/* Who decides. Called by the shard's worker, from within learn, flow_shard_decide() and _decide_burst(). */
struct flow_policy {
	void *context;
	/*
	 * `decision` comes as plain forwarding, without a cause, with what is known of the conversation. Of the record the
	 * key, `side` and `initiator` may be read: it may be new.
	 */
	void (*decide)(
		void *context, const struct flow_record *record, struct flow_decision *decision);
	/* the same of several flows, whose decisions come so, too; at most FLOW_DECIDE_BURST */
	void (*decide_burst)(void *context, const struct flow_record *const *records,
		struct flow_decision *decisions, unsigned n);
	/*
	 * A packet that begins a flow, or a new conversation on the key of one; `decision` comes as plain forwarding. NULL:
	 * no decision is by packet
	 */
	void (*classify)(void *context, const struct packet_info *info, struct flow_packet_ct ct,
		struct flow_packet_decision *decision);
	/* what a rule has had more, or FLOW_RULE_NONE; NULL: there are no rules, and no memory for them */
	void (*count)(
		void *context, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes);
	/*
	 * A live flow, or a new one, has come to a rule, by which packets of the key's end `from` are decided now. NULL: nobody
	 * wants to know
	 */
	void (*came)(void *context, const struct flow_record *record, unsigned from, uint32_t rule);
	/*
	 * A flow whose first packet came from the key's end `from` is no longer one of those that these limits count. NULL:
	 * there are no limits
	 */
	void (*leave)(void *context, const struct flow_key *key, unsigned from, uint16_t counted);
	/* a flow whose decision has an `age_s` had its last packet then; NULL: nobody wants to know */
	void (*seen)(void *context, uint32_t rule, uint64_t last_us);
	/* what is told of a rule; never of FLOW_RULE_NONE. NULL: rules have no numbers and name no ports */
	struct flow_rule_told (*tell)(void *context, uint32_t rule);
};

/* What a rule has had, or all of them, or none of them. */
struct flow_rule_count {
	uint64_t flows, packets, bytes;
};

/* What rules made of a flow; pairs are by the key's end that packets come from. */
struct flow_rules {
	uint32_t rule[2]; /* FLOW_RULE_NONE: no rule fits */
	uint32_t mark
		[2]; /* where `marked` has a bit; of a flow by packet, that of the last one which had one */
	uint32_t
		number[2]; /* of the rule, as in struct flow_rule_told; of no rule FLOW_RULE_NONE */
	uint8_t to_port[2];
	uint8_t marked;
};

/* What was dropped of a flow by verdicts, since its last report. */
struct flow_dropped {
	uint64_t packets, bytes;
	uint64_t rule_packets, rule_bytes; /* of these, by rules */
	uint32_t cause; /* of the verdict as it is; FLOW_CAUSE_NONE: it drops nothing now */
};

/* The verdict for packets of that end. */
static inline uint16_t flow_verdict(const struct flow_record *record, unsigned from)
{
	return record->not_plain ? record->verdict[from] : FLOW_VERDICT_FORWARD;
}

/* The flow's verdict is not for this packet, which is decided by itself. */
static inline bool flow_is_by_packet(
	const struct flow_record *record, const struct packet_info *info)
{
	return record->not_plain && (record->verdict[info->from] == FLOW_VERDICT_BY_PACKET ||
					    (record->by_port && flow_sides_cross(record, info)));
}

/* Verdicts of both directions in one word, to be compared. */
static inline uint64_t flow_verdicts(const struct flow_record *record)
{
	return (uint64_t)record->by_port << 32 | (uint64_t)record->verdict[1] << 16 |
	       record->verdict[0];
}

static inline bool flow_is_dropped(const struct flow_record *record, unsigned from)
{
	return record->not_plain && flow_verdict_drops(record->verdict[from]);
}

/* Whether it is, and its sender is told. */
static inline bool flow_is_rejected(const struct flow_record *record, unsigned from)
{
	return record->not_plain && flow_verdict_rejects(record->verdict[from]);
}

/* Whether the verdicts drop every packet of the flow, in both directions. */
static inline bool flow_is_shut(const struct flow_record *record)
{
	return !record->by_port && flow_is_dropped(record, 0) && flow_is_dropped(record, 1);
}

/* Does a block drop its packets, of either direction? */
static inline bool flow_is_blocked(const struct flow_record *record)
{
	return !record->by_rule && (flow_is_dropped(record, 0) || flow_is_dropped(record, 1));
}
