/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Which rules and AGE handles have seen no packet for as long as they were told. Each has a sim_age, in
 * the memory of its owner, from the moment that the rule goes live (the handle is made) until the rule
 * (the handle) is destroyed. Counters are looked at again and again, a bounded number at a time; what
 * has been silent for its seconds is told once, by RTE_ETH_EVENT_FLOW_AGED and rte_flow_get_aged_flows,
 * and once more after every time that it had packets and fell silent again. It is never told too early,
 * and not much later than SIM_AGE_LOOK_MS when few are watched; a million take seconds to go round.
 *
 * A rule that the NIC does not have, or forgot, ages like one that sees no packets.
 *
 * Everything but sim_age_look() is under the port's lock.
 */

#include "drivers/flowsim/match/handle.h"

#define SIM_AGE_LOOK_MS 100

struct sim_port;

/* Of a port, in its sim_flow. */
struct sim_ages {
	struct sim_age_list watched, tell;
	uint32_t n_tell;
	bool raise; /* something new since get_aged_flows was called, and no event yet */
	bool quiet; /* an event was raised, and get_aged_flows was not called yet */
};

void sim_ages_init(struct sim_ages *ages);

/* Begins anew with that many seconds; 0 stops. `rule` or `handle`, and the context, have been set. */
void sim_age_start(struct sim_port *port, struct sim_age *age, uint32_t seconds);
void sim_age_stop(struct sim_port *port, struct sim_age *age); /* as often as one likes */

/* As if a packet had come now. */
void sim_age_touch(struct sim_port *port, struct sim_age *age);

/* Seconds since the last packet, looked at now; *aged: as many as the timeout, or more. */
uint32_t sim_age_query(struct sim_port *port, struct sim_age *age, bool *aged);

/* For get_aged_flows: at most n contexts, these are told then; n = 0: only how many there are. */
int sim_age_take(struct sim_port *port, void **contexts, uint32_t n);

/*
 * By the firmware, WITHOUT the port's lock: looks at what is due and raises the event. Returns after how
 * many nanoseconds it wants to be called again, UINT64_MAX when nothing is watched: sim_firmware_wake()
 * is called when the first comes.
 */
uint64_t sim_age_look(struct sim_port *port);
