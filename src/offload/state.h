/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where the NIC stands with one direction of a flow: of every record, for each of its wire's two ports.
 *
 *	software -> queued -> installing -> in_hw -> leaving -> software
 *	                \          \          +-> suspect -> leaving, or in_hw again
 *	                 \          +-> refused -> queued, after a back-off
 *	                  +-> software, when a busier flow took the place in the queue
 *
 * A rule is for packets of one direction that arrive at one port: the state of a port is that of the
 * direction that was seen there. in_hw has two values: accepted, and proven by a packet with its mark.
 *
 * The state lies in the record (struct flow_record, `offload`, 3 bits a port) and is written by the shard's
 * worker alone, through offload/agent.h.
 */

#include <stdbool.h>

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
#define OFFLOAD_SIDES 2

/* "software", "queued", "refused", "installing", "leaving", "suspect", "in_hw" (both of them). */
const char *offload_state_name(enum offload_state state);

static inline enum offload_state offload_state(const struct flow_record *record, unsigned side)
{
	return (enum offload_state)(record->offload >> OFFLOAD_STATE_BITS * side & 7);
}

static inline void offload_set_state(
	struct flow_record *record, unsigned side, enum offload_state state)
{
	unsigned shift = OFFLOAD_STATE_BITS * side;

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
 * need the slot. `slot` of the record is its number while this is true; else the time of the run's clock, in
 * milliseconds, before which no NIC is asked again for a side that has a back-off: the later one of both.
 */
#define OFFLOAD_HAS_SLOT (1u << 6)
/* It had one, and what was known is lost. */
#define OFFLOAD_LOST_SLOT (1u << 7)
/* The same bit of one that has a slot: a rule of it is at the port where the other end's packets came first. */
#define OFFLOAD_CROSSED (1u << 7)

static inline bool offload_has_slot(const struct flow_record *record)
{
	return record->offload & OFFLOAD_HAS_SLOT;
}

/* Packets of that end come by the other port than they did when the flow began. */
static inline bool offload_crosses(const struct flow_record *record, unsigned side, unsigned from)
{
	return record->side ^ record->initiator ^ side ^ from;
}

/*
 * A packet of that end which came in there without a mark is worth a look: it ought to have had one; or it may
 * be of an end whose packets come by both ports, and have a rule at the other.
 */
static inline bool offload_is_watched(
	const struct flow_record *record, unsigned side, unsigned from)
{
	return offload_state(record, side) >= OFFLOAD_SUSPECT ||
	       (offload_has_slot(record) &&
		       (record->offload & OFFLOAD_CROSSED || offload_crosses(record, side, from)));
}

/* How often a side fell out or was refused of late; the next try waits the longer for it. 0: it need not wait. */
#define OFFLOAD_BACK_OFF_BITS 4
/* This side is not asked for again. */
#define OFFLOAD_NEVER 15

static inline unsigned offload_back_off(const struct flow_record *record, unsigned side)
{
	return record->back_off >> OFFLOAD_BACK_OFF_BITS * side & OFFLOAD_NEVER;
}

static inline void offload_set_back_off(
	struct flow_record *record, unsigned side, unsigned back_off)
{
	unsigned shift = OFFLOAD_BACK_OFF_BITS * side;
	unsigned other = record->back_off & ~((unsigned)OFFLOAD_NEVER << shift);

	record->back_off = (other | back_off << shift) & 0xff;
}

/* Is there a time before which the NIC is not asked for the side? Not for one that never is. */
static inline bool offload_waits(const struct flow_record *record, unsigned side)
{
	unsigned back_off = offload_back_off(record, side);

	return back_off != 0 && back_off != OFFLOAD_NEVER;
}
