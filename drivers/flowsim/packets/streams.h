/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The streams of a source (packets/resolve.h), as control knows them: each comes into a round or leaves it, and its
 * packets are counted wherever it is. All of it is under the port's lock.
 */

#include "drivers/flowsim/port/port.h"

#define SIM_IN_ROUND SIM_MAX_EXITS
#define SIM_NO_PLACE UINT32_MAX

/* A stream as it was decided. */
struct sim_stream {
	struct sim_verdict *verdict; /* of several rules, or a program; owned */
	struct rte_flow *rule;	     /* the one rule that it met, or the first */
	uint64_t base; /* sim_stream_hits() less this, by wrapping numbers, is not yet its rules' */
	/* since it left: the queue's round when it was looked at last, and how much of that had passed */
	uint64_t gone_round;
	uint32_t gone_served; /* of its places, those that are done in that round */
	uint32_t n_places;
	uint32_t first; /* place, or SIM_NO_PLACE */
	uint16_t gone_passed;
	uint8_t queue; /* whose round it is in, or was when it left */
	uint8_t exit;  /* how its packets leave, or SIM_IN_ROUND */
};

static_assert(sizeof(struct sim_stream) == 48, "there are millions of them");
static_assert(SIM_MAX_QUEUES <= UINT8_MAX, "a stream has a queue's number");

struct sim_resolver {
	struct sim_port *port;
	const struct sim_source *source;
	struct sim_stream *streams; /* by stream, as the next two */
	uint32_t *hashes;
	struct sim_entry *entries; /* NULL: each stream has one place, and the rounds have them */
	/* places have the source's numbers, or the streams' where each has one */
	uint32_t *next;	    /* by place: the stream's next place */
	uint32_t *position; /* by place: where in the round, while it is there */
	bool exit_used[SIM_MAX_EXITS];
	uint16_t exit_port[SIM_MAX_EXITS];
	uint64_t turn_credit[SIM_MAX_QUEUES]; /* packets of the time that passed, times 10^9 */
};

/* The stream's entry; NULL when it has none, as it is not in a round. */
struct sim_entry *sim_stream_entry(const struct sim_resolver *resolver, uint32_t number);

/* Packets that matched since it came into this round, or, of one that left, up to the end of the last round. */
uint64_t sim_stream_hits(const struct sim_resolver *resolver, uint32_t number);

/*
 * What has passed of a stream that left, in the round that is open, counts now: sim_stream_hits() less the
 * base is as of this moment. Under its queue's lock; of one in a round nothing.
 */
void sim_stream_pass(struct sim_resolver *resolver, uint32_t number);

/*
 * Takes a stream out of what it is in, a round or an exit, and into another; what passed of it was counted,
 * its hits were credited and begin at 0. Under the lock of the queue that it is with, and that it comes to.
 */
void sim_stream_leave(struct sim_resolver *resolver, uint32_t number);
void sim_stream_enter(struct sim_resolver *resolver, uint32_t number, uint16_t queue, unsigned way);

/*
 * Brings what the NIC kept to itself (dropped, sent on) into the counters of the port's queues and of
 * the ports that it went to; before statistics are read. Takes the queues' locks.
 */
void sim_streams_settle(struct sim_resolver *resolver);

/*
 * Turns empty rounds, by the firmware, with the time that passed since the last call; under the port's
 * lock. Returns whether there is such a round: the next call should come within some milliseconds.
 */
bool sim_streams_turn(struct sim_resolver *resolver, uint64_t passed_ns);
