/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What goes from one port of a NIC to another, inside it: see port/nic.h. */

#include <rte_mbuf.h>

struct sim_port;

/*
 * Sends packets out of `to`, as its hardware does: counted there, written to the port behind it or freed. Any thread.
 * How many; the others are the caller's still: no such port, stopped or full.
 */
uint16_t sim_nic_send(struct sim_port *from, uint16_t to, struct rte_mbuf **packets, uint16_t n);

/* Puts a packet into a receive queue of `to`, by its RSS. False: it is the caller's still. */
bool sim_nic_give(struct sim_port *from, uint16_t to, struct rte_mbuf *packet);

/*
 * Brings in what the other ports of the NIC have sent out of this one: before its counters are told, and
 * before it is stopped or loses its link. Without any port's lock.
 */
void sim_nic_settle(struct sim_port *port);
