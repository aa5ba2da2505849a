/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Meters, by rte_mtr: profiles (RFC 2697 by bytes or packets), policies (which colours are dropped) and
 * meters, which rules name by number. A meter that a rule uses cannot be destroyed. It is colour-blind;
 * time is the TSC's.
 *
 * Calls are under the port's lock. sim_meter_packet() is for whoever has a packet in hand, any number of
 * threads: each meter has a lock of its own, the last of all.
 */

#include <stdbool.h>
#include <stdint.h>

struct sim_port;
struct sim_meter;

/* With the port: 0 or -ENOMEM; fini also where there are none. */
int sim_meters_init(struct sim_port *port);
void sim_meters_fini(struct sim_port *port);

/* Whether there is a meter of that number. Any thread. */
bool sim_meter_is(struct sim_port *port, uint32_t id);

/* That meter with one user more, or NULL; and one less. Any thread. */
struct sim_meter *sim_meter_hold(struct sim_port *port, uint32_t id);
void sim_meter_release(struct sim_port *port, struct sim_meter *meter);

/* A packet of that many bytes passes the meter and is counted: false = it is to be dropped. */
bool sim_meter_packet(struct sim_meter *meter, uint32_t bytes);
