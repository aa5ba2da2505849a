/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The ports of one NIC, and what goes from one to another inside it. A NIC lasts as long as a port of it.
 */

#include <rte_mbuf.h>

#include "base/error.h"

struct sim_port;

/* Joins args.nic, or a NIC of its own. -ENOSPC: SIM_MAX_NIC_PORTS are there. */
int sim_nic_join(struct sim_port *port, struct error *error);
void sim_nic_leave(struct sim_port *port);

/* The port of the same NIC with that ethdev number, or NULL; itself too. */
struct sim_port *sim_nic_port(const struct sim_port *port, uint16_t ethdev);

/* Numbers for rte_eth_switch_info: the same for all ports of a NIC, and which of these it is. */
uint16_t sim_nic_domain(const struct sim_port *port);
unsigned sim_nic_number(const struct sim_port *port);

/* The port's link is down: from here on nobody is about to send out of it or to put a packet into it. */
void sim_nic_quiesce(struct sim_port *port);

/*
 * Sends a packet out of `to`, as its hardware does: counted there, written to the port behind it or
 * freed. Any thread. False: no such port, stopped or full; the packet is the caller's still.
 */
bool sim_nic_send(struct sim_port *from, uint16_t to, struct rte_mbuf *packet);

/* Puts a packet into a receive queue of `to`, by its RSS. As above. */
bool sim_nic_give(struct sim_port *from, uint16_t to, struct rte_mbuf *packet);

/*
 * n packets of `bytes` bytes in all were sent out of `to` without having been in memory. False: there is
 * no such port, it is stopped or has no link.
 */
bool sim_nic_sent(struct sim_port *from, uint16_t to, uint64_t n, uint64_t bytes);

/*
 * Brings in what the other ports of the NIC have sent out of this one: before its counters are told, and
 * before it is stopped or loses its link. Without any port's lock.
 */
void sim_nic_settle(struct sim_port *port);
