/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where the NIC stands with one direction of a flow: of every record, for each of the two ends that packets come from.
 *
 *	software -> queued -> installing -> in_hw -> leaving -> software
 *	                \          \          +-> suspect -> leaving, or in_hw again
 *	                 \          +-> refused -> queued, after a back-off
 *	                  +-> software, when a busier flow took the place in the queue
 *
 * in_hw has two values: accepted, and proven by a packet with its mark.
 *
 * A direction has one rule at most, at the port where its packets arrived when it was asked for; that port is kept
 * beside the state. Packets of the direction may arrive elsewhere: they moved, or take both ways. The rule does not see
 * these. They are handled as packets without a rule, are not held against the rule, and get none at the other port, as
 * long as the direction has one. When it has none the next rule is asked for where its packets arrive then. Its back-off
 * is that of the direction, whatever the port.
 *
 * A port has one rule of a flow at most, as both directions share a mark: where both arrive at one port, the one that
 * was first has a rule.
 *
 * The state lies in the record (struct flow_record, `offload`, 3 bits a direction) and is written by the shard's
 * worker alone, through offload/agent.h.
 */

#include <stdbool.h>

#include "base/topology.h"
#include "flow/record.h"

/* The order counts: a packet without mark is worth a look from OFFLOAD_SUSPECT on (offload_is_watched()). */
enum offload_state {
	OFFLOAD_SOFTWARE = 0,
	OFFLOAD_QUEUED,	    /* waits in the worker's queue for its turn */
	OFFLOAD_REFUSED,    /* the NIC, or who speaks for it, said no */
	OFFLOAD_INSTALLING, /* handed to the installer, which has not answered */
	OFFLOAD_LEAVING,    /* the delete is not confirmed */
	OFFLOAD_SUSPECT,    /* was proven; packets come without the mark */
	OFFLOAD_ACCEPTED,   /* in_hw by the NIC's word alone */
	OFFLOAD_PROVEN,	    /* in_hw, and packets came with the mark */
	OFFLOAD_N_STATES,
};

static_assert(OFFLOAD_INSTALLING == 3, "flow_is_in_nic()");

#define OFFLOAD_STATE_BITS 3
#define OFFLOAD_DIRECTIONS 2

/* "software", "queued", "refused", "installing", "leaving", "suspect", "in_hw" (both of them). */
const char *offload_state_name(enum offload_state state);

/* `from`: the key's end that the direction's packets come from. */
static inline enum offload_state offload_state(const struct flow_record *record, unsigned from)
{
	return (enum offload_state)(record->offload >> OFFLOAD_STATE_BITS * from & 7);
}

static inline void offload_set_state(
	struct flow_record *record, unsigned from, enum offload_state state)
{
	unsigned shift = OFFLOAD_STATE_BITS * from;

	/* a bit-field: through a word of its own */
	unsigned offload = record->offload;

	offload = (offload & ~(7u << shift)) | (unsigned)state << shift;
	record->offload = offload & 0xff;
}

/* States in which the flow has a slot: a rule is in the NIC, on its way there, or not surely gone. */
static inline bool offload_state_holds(enum offload_state state)
{
	return state >= OFFLOAD_INSTALLING;
}

/*
 * A record keeps its slot when the NIC has no rule of it any more, for what is known of it, until others
 * need the slot. `slot` of the record is its number while this is true; else offload_retry_ms() and offload_port().
 */
#define OFFLOAD_HAS_SLOT (1u << 6)
/* It had one, and what was known is lost. */
#define OFFLOAD_LOST_SLOT (1u << 7)
/* The same bit of one that has a slot: every packet of the flow is looked at, as a rule may send some on alone. */
#define OFFLOAD_LOOKED_AT (1u << 7)

static inline bool offload_has_slot(const struct flow_record *record)
{
	return record->offload & OFFLOAD_HAS_SLOT;
}

/*
 * A packet of that end which came in without a mark is worth a look: it ought to have had one, unless it came by another
 * port than the rule's.
 */
static inline bool offload_is_watched(const struct flow_record *record, unsigned from)
{
	const unsigned looked_at = OFFLOAD_HAS_SLOT | OFFLOAD_LOOKED_AT;

	return offload_state(record, from) >= OFFLOAD_SUSPECT ||
	       (record->offload & looked_at) == looked_at;
}

/*
 * What `slot` is without a slot: in the lowest bits a time of the run's clock in milliseconds, before which no NIC is
 * asked again for a direction that has a back-off, the later one of both; above it, of each direction, the port whose
 * state it has, while that is not software.
 *
 * The time comes round after 70 minutes. A direction that has waited for so long may wait once more, for a minute at
 * most.
 */
#define OFFLOAD_RETRY_BITS 22
#define OFFLOAD_PORT_BITS 5

static_assert(OFFLOAD_RETRY_BITS + OFFLOAD_DIRECTIONS * OFFLOAD_PORT_BITS == 32, "all of `slot`");
static_assert(TOPOLOGY_MAX_PORTS <= 1 << OFFLOAD_PORT_BITS, "every port has a number there");

/* The time as all 32 bits have it, when it is `now_ms`. */
static inline uint32_t offload_retry_ms(const struct flow_record *record, uint32_t now_ms)
{
	const unsigned others = 32 - OFFLOAD_RETRY_BITS;
	const int32_t left_ms = (int32_t)((record->slot - now_ms) << others) >> others;

	return now_ms + (uint32_t)left_ms;
}

static inline void offload_set_retry_ms(struct flow_record *record, uint32_t retry_ms)
{
	const uint32_t mask = (UINT32_C(1) << OFFLOAD_RETRY_BITS) - 1;

	record->slot = (record->slot & ~mask) | (retry_ms & mask);
}

static inline unsigned offload_port(const struct flow_record *record, unsigned from)
{
	const unsigned shift = OFFLOAD_RETRY_BITS + OFFLOAD_PORT_BITS * from;

	return record->slot >> shift & ((1u << OFFLOAD_PORT_BITS) - 1);
}

static inline void offload_set_port(struct flow_record *record, unsigned from, unsigned port)
{
	const unsigned shift = OFFLOAD_RETRY_BITS + OFFLOAD_PORT_BITS * from;
	const uint32_t mask = ((UINT32_C(1) << OFFLOAD_PORT_BITS) - 1) << shift;

	record->slot = (record->slot & ~mask) | port << shift;
}

/* How often a direction fell out or was refused of late; the next try waits the longer for it. 0: it need not wait. */
#define OFFLOAD_BACK_OFF_BITS 4
/* This direction is not asked for again. */
#define OFFLOAD_NEVER 15

static inline unsigned offload_back_off(const struct flow_record *record, unsigned from)
{
	return record->back_off >> OFFLOAD_BACK_OFF_BITS * from & OFFLOAD_NEVER;
}

static inline void offload_set_back_off(
	struct flow_record *record, unsigned from, unsigned back_off)
{
	unsigned shift = OFFLOAD_BACK_OFF_BITS * from;
	unsigned other = record->back_off & ~((unsigned)OFFLOAD_NEVER << shift);

	record->back_off = (other | back_off << shift) & 0xff;
}

/* Is there a time before which the NIC is not asked for the direction? Not for one that never is. */
static inline bool offload_waits(const struct flow_record *record, unsigned from)
{
	unsigned back_off = offload_back_off(record, from);

	return back_off != 0 && back_off != OFFLOAD_NEVER;
}
