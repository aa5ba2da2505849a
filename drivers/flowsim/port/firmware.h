/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The NIC's own clockwork: a thread a port, "flowsim-<ethdev>", that does at its due time what was
 * pushed into flow queues, looks which rules have aged and turns rounds that reach no worker. It goes on whether or not anybody pulls. With nothing to do it sleeps and is not woken.
 *
 * Made when the port is probed, ended when it goes. It takes the port's lock itself, for some 100 us at
 * most at a time, and lets others have it in between.
 */

#include <stdbool.h>
#include <stdint.h>

struct sim_port;
struct sim_firmware;
struct sim_resolver;

/* What it does, and who says when: those above it (device.c). All four are there. */
struct sim_firmware_jobs {
	/* flow queues: calls/calls.h */
	uint64_t (*work)(struct sim_port *port, uint64_t now, bool *worked);
	bool (*waits)(const struct sim_port *port);
	uint64_t (*look)(struct sim_port *port); /* ages: rules/age.h */
	bool (*turn)(struct sim_resolver *resolver,
		uint64_t passed_ns); /* empty rounds: packets/streams.h */
};

/* port->firmware. `jobs` are constant. Returns 0, -ENOMEM, or what the system says of one more thread. */
int sim_firmware_start(struct sim_port *port, const struct sim_firmware_jobs *jobs);

/* Accepts a port without one. Without the port's lock; what is under way stays where it is. */
void sim_firmware_stop(struct sim_port *port);

/*
 * The wait of a blocking call: `ns` asleep or, with profile.spin, burning. Without the port's lock.
 */
void sim_firmware_wait(const struct sim_port *port, uint64_t ns);

/* Moves the calling thread, which is one of the NIC's, to any processor but those of workers. */
void sim_firmware_settle(void);

/* There may be something to do earlier than it thought. Any thread, with the port's lock or without. */
void sim_firmware_wake(struct sim_port *port);

/* The same when it sleeps, and next to nothing when it does not: a word that it looks at was stored
 * before, by __ATOMIC_SEQ_CST. */
void sim_firmware_nudge(struct sim_port *port);

/* CLOCK_MONOTONIC in nanoseconds and milliseconds. */
uint64_t sim_now_ns(void);
uint64_t sim_now_ms(void);
