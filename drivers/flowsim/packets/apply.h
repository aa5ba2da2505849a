/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What rules do to a packet, once the table has said which: in line for every packet, for known sources
 * in their slow way only. In the chain's order: all its rules count the packet as it arrived; meters,
 * samples and edits in the order of their lists; then the mark, with the packet faults, and the fate.
 *
 * The caller holds what keeps the chain alive: the port's rules lock for reading, or the queue's lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct sim_port;
struct sim_verdict;
struct sim_view;
struct sim_rx_counters;
struct sim_tx_counters;

/*
 * A received packet. Returns false when it was consumed: dropped, sent on, given to another port. Else
 * *queue says where it goes, and the packet has its mark; it may be another mbuf than before (one whose
 * bytes are shared is copied before it is edited). It came with its port and with hash.rss, the port's
 * own hash of it. A verdict of no rules is fine.
 *
 * Adds to counters->matched, rule_dropped, forwarded (and their bytes), sampled, missed, no_mbuf; packets,
 * bytes, marked and flagged are counted by whoever hands the packet over. So, of one port and over all
 * its queues: received + sampled = packets + rule_dropped + forwarded + missed + no_mbuf.
 */
bool sim_apply(struct sim_port *port, const struct sim_verdict *verdict,
	const struct sim_view *view, struct rte_mbuf **packet, uint16_t *queue,
	struct sim_rx_counters *counters);

/*
 * Packets that are being sent meet the egress rules, which must not be empty (sim_table_is_empty()):
 * looks at each, does what its rules say and moves those that are still to be sent to the front; returns
 * how many. The others are gone: dropped (counters->rule_dropped), or sent or given elsewhere. Takes the
 * rules lock.
 */
uint16_t sim_apply_egress(struct sim_port *port, struct rte_mbuf **packets, uint16_t n,
	struct sim_tx_counters *counters);
