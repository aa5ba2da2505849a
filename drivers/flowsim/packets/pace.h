/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets of a known source that come at a pace (pace=N, packets a second of the port) in place of whenever somebody
 * asks. What nobody takes in time waits as in a queue of so many descriptors; more is missed. What the NIC keeps
 * passes at its share of the same pace. After the last round (passes=N) nothing comes, and nothing is missed.
 *
 * Each packet tells when it came, in TSC cycles, where the application has registered DPDK's field for that
 * (rte_mbuf_dyn_rx_timestamp_register()).
 *
 * Under the queue's lock.
 */

#include <stdint.h>

#include <rte_mbuf.h>

struct sim_rx_queue;

/* The port starts. */
void sim_pace_begin(struct sim_rx_queue *queue);
/* Packets that have come and were not taken, of this moment; 0 without a pace. */
double sim_pace_waiting(const struct sim_rx_queue *queue);
/* How many of `n` places that could be served have come. */
uint16_t sim_pace_due(struct sim_rx_queue *queue, uint16_t n);
/* So many places were served; these packets of them are the host's, the oldest first. */
void sim_pace_take(
	struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n, uint16_t served);
