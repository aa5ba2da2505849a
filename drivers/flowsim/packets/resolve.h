/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Sources whose packets are known in advance: streams by seed, or a capture. The packets have numbers,
 * "streams", and a rule is resolved to the streams that it matches when it goes live, in the control
 * path. What receive then does for a packet is to look at its stream's entry (port/round.h). Where each
 * stream has one place the entries lie in the order of the places, as a real NIC's completions lie in
 * the order of the packets: the worker reads on, and no stream costs it a line of the cache. Where some
 * have several they lie by stream, fetched far ahead: one entry for all places, however many.
 *
 * Each stream has a place in the round of one receive queue (several with Zipf's load). A queue hands
 * over its places one after the other, round after round. A stream whose packets never reach the host
 * (dropped or sent on by the NIC) leaves the round: the worker does nothing for it. It is counted as if
 * its place were still there: once a round, to the place, and as the round passes (port/round.h). So
 * after whole rounds every place had exactly as many packets as there were rounds, wherever they went.
 * (A stream that a rule moves to another queue joins that queue's round, and the two rounds differ.) When
 * nothing is left in a queue's round, the firmware turns it, at `rate=` packets a second.
 *
 * A queue's places, entries and counters are under the queue's lock: taken by receive for a burst, which
 * goes away with nothing when control has it, and by control for each change.
 */

#include "base/error.h"
#include "drivers/flowsim/match/table.h"

struct sim_port;
struct sim_resolver;

/* Made at the port's start from its source and queues, and of the rules that are live; NULL, -ENOMEM. */
struct sim_resolver *sim_resolver_create(struct sim_port *port, struct error *error);
void sim_resolver_destroy(struct sim_resolver *resolver);

/* Under the port's lock: the rule is, or is no longer, in the table; its streams are decided anew. */
void sim_resolver_changed(struct sim_resolver *resolver, const struct rte_flow *rule);

/*
 * Before a rule of that class and values changes: what memory it will look at, in three steps, each when
 * that of the one before may have come. Under the port's lock; accepts NULL.
 */
void sim_resolver_prefetch(const struct sim_resolver *resolver, const struct sim_class *sort,
	const uint64_t values[], unsigned step);

/* Everything is decided anew: the RSS table, a fault that concerns all. */
void sim_resolver_all(struct sim_resolver *resolver);

/* What the rule's streams have counted since they were decided so. */
struct sim_count sim_resolver_count(struct sim_resolver *resolver, const struct rte_flow *rule);

/* What the rules make of a stream that has a program; under its queue's lock. */
const struct sim_verdict *sim_stream_verdict(const struct sim_resolver *resolver, uint32_t number);

/* What was counted so far goes to the rules for good: before it is destroyed, nobody receiving. */
void sim_resolver_credit(struct sim_resolver *resolver);
