/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The two sides of a wire. Who can send by one port of it can write both addresses of a conversation, but
 * cannot make a packet come in by the other port. So a flow opens when its ends were heard on the two ports: what
 * comes by the port where the other end is, and by no other, is not taken for an answer.
 *
 * The first packet of a flow may be the forged one. Hence no port is believed before somebody spoke on either:
 * then the ports of the record (`side`) are those that the two ends were heard on.
 *
 * Of domains with more than two ports nothing of this is asked.
 *
 * The record has this in `heard`; only the worker of its shard writes it.
 */

#include "flow/record.h"
#include "packet/extract.h"

/* On which ports the ends of a flow were heard. */
enum flow_heard {
	FLOW_HEARD_APART = 0, /* one end on each; or nobody asks, as in a replay */
	FLOW_HEARD_ONE,	      /* the initiator, on the port of its first packet */
	FLOW_HEARD_SAME,      /* both ends, on that port alone */
	FLOW_HEARD_MOVED,     /* the initiator, on both ports */
};

/* Does the packet come by the other port than its end was first heard on, or is to be heard on? */
static inline bool flow_sides_cross(
	const struct flow_record *record, const struct packet_info *info)
{
	return record->side ^ record->initiator ^ info->from ^ ((info->flags & PACKET_SIDE) != 0);
}

/* Place in its domain of the port that packets of that end come in by, as far as is known. Of wires. */
static inline unsigned flow_sides_place(const struct flow_record *record, unsigned end)
{
	return record->side ^ record->initiator ^ end;
}

/* The initiator was heard where nobody else was: it is taken to be there. Not once NICs have rules by the ports. */
static inline bool flow_sides_turn(struct flow_record *record)
{
	if (record->offload != 0)
		return false;
	record->side = !record->side;
	record->heard = FLOW_HEARD_APART;
	return true;
}

/*
 * Would flow_sides_hear() of a packet of the initiator, or (`answers`) of the other end, which came by the second port
 * (`side`) or the first, say true and take note of nothing?
 */
static inline bool flow_sides_knows(const struct flow_record *record, bool answers, bool side)
{
	/* both ends were heard apart, or it is the one that was heard */
	static_assert(FLOW_HEARD_APART == 0 && FLOW_HEARD_ONE == 1, "one comparison");
	return (record->side ^ answers) == side && record->heard <= !answers;
}

/*
 * Takes note of the port that a packet came by. Returns whether it may move the state of its flow: false for
 * what comes by the port of the other end, as long as the flow is not open.
 */
static inline bool flow_sides_hear(struct flow_record *record, const struct packet_info *info)
{
	const bool initiator = info->from == record->initiator;
	const bool crosses = flow_sides_cross(record, info);

	switch ((enum flow_heard)record->heard) {
	case FLOW_HEARD_APART:
		return !crosses || flow_phase((enum flow_state)record->state) != FLOW_PHASE_NEW;
	case FLOW_HEARD_ONE:
		if (initiator) {
			record->heard = crosses ? FLOW_HEARD_MOVED : FLOW_HEARD_ONE;
			return true;
		}
		record->heard = crosses ? FLOW_HEARD_SAME : FLOW_HEARD_APART;
		return !crosses;
	case FLOW_HEARD_SAME:
		if (crosses)
			return initiator && flow_sides_turn(record);
		if (!initiator)
			record->heard = FLOW_HEARD_APART;
		return true;
	case FLOW_HEARD_MOVED:
		if (initiator)
			return true;
		if (crosses)
			return flow_sides_turn(record);
		record->heard = FLOW_HEARD_APART;
		return true;
	}
	return true;
}
