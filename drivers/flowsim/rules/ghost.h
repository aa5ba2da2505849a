/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Rules that an earlier run left in the NIC: they take room and mark packets, and no application has a
 * handle for them. Ghost i has the mark i, as an engine that numbers its flows from 0 would have given
 * it, and lets the packet pass. It is for
 *
 * - known sources: stream i * streams / n, its addresses and ports whole;
 * - others: UDP over IPv4 from 10.0.x.y:1024 to 10.255.0.1:80, x.y being i (10.1.0.0 after 65,536).
 *
 * Neither destroy nor flush nor a restart of the port ends them; `dead`, `forget`, `reset` and `ghost:off` do,
 * and the port's removal. They are rules like others to everything that counts room. Under the port's
 * lock.
 */

#include <stdint.h>

struct sim_port;

/* Makes up to n, fewer when there is no room; returns how many. */
uint32_t sim_ghosts_make(struct sim_port *port, uint32_t n);

void sim_ghosts_drop(struct sim_port *port);
