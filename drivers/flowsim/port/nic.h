/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The ports of one NIC. A NIC lasts as long as a port of it. What goes from one to another inside it is
 * packets/forward.h's.
 */

#include <stdbool.h>
#include <stdint.h>

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
 * The port of the same NIC with that ethdev number, for as long as sim_nic_exit() is not called: it stays,
 * and stays open. NULL, with nothing to exit: no such port, it is stopped or has no link. Any thread.
 */
struct sim_port *sim_nic_enter(const struct sim_port *port, uint16_t ethdev);
void sim_nic_exit(const struct sim_port *port);

/* n packets of `bytes` bytes in all were sent out of a port that was entered. */
void sim_nic_count_sent(struct sim_port *to, uint64_t n, uint64_t bytes);

/*
 * n packets of `bytes` bytes in all were sent out of `to` without having been in memory. False: there is
 * no such port, it is stopped or has no link.
 */
bool sim_nic_sent(struct sim_port *from, uint16_t to, uint64_t n, uint64_t bytes);
