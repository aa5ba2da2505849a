/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets of another port, matched in line: the pump takes a burst from the wrapped port, looks at each,
 * does what the rules say and puts what the host shall see into the rings of its receive queues, and
 * what another port shall send into that. Whoever receives turns the pump first, when nobody else does;
 * with `nic_core=` a thread of the NIC turns it and the workers find packets that another processor
 * wrote. Any number of threads may call sim_pump_turn(): one turns, the others return.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "base/error.h"

struct sim_port;
struct sim_pump;

/* Opens nothing: the wrapped port was probed before. Configures and starts it with the port. */
int sim_pump_create(struct sim_port *port, struct error *error);
void sim_pump_destroy(struct sim_port *port);
int sim_pump_start(struct sim_port *port); /* rings, the wrapped port, the NIC's thread */
void sim_pump_stop(struct sim_port *port);

void sim_pump_turn(struct sim_port *port);

/* Receive and transmit of such a port. */
uint16_t sim_pump_receive(void *queue, struct rte_mbuf **packets, uint16_t n);
uint16_t sim_pump_send(void *queue, struct rte_mbuf **packets, uint16_t n);

/*
 * What rules do to a packet in line (also to the copies of SAMPLE, and in the slow way of known
 * sources): counts the chain, edits, meters, samples, marks. Returns false when the packet was consumed
 * (dropped, sent on, given to another port). Else *queue says where it goes.
 */
struct sim_verdict;
struct sim_view;
bool sim_apply(struct sim_port *port, const struct sim_verdict *verdict,
	const struct sim_view *view, struct rte_mbuf *packet, uint16_t *queue,
	struct sim_rx_counters *counters);
