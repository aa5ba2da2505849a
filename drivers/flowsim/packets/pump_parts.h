/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of pump.c, pump_device.c, pump_life.c and pump_wire.c. */

#include <pthread.h>
#include <sys/queue.h>

#include <rte_spinlock.h>

#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/port/port.h"

#define SIM_PUMP_BURST 32

/* A way out of the wrapped port: one of its transmit queues. */
struct sim_pump_out {
	rte_spinlock_t lock;
} __rte_cache_aligned;

/*
 * What a turn looks at is under `lock`, what sending looks at under the lock of each way out as well:
 * whoever changes it takes all of them, `lock` first.
 */
struct sim_pump {
	LIST_ENTRY(sim_pump) link;
	struct sim_port *port;
	rte_spinlock_t lock;
	uint16_t wrapped; /* SIM_NO_PORT: its device was removed */
	bool running;
	/* under `lock`: a burst's packets that go out of another port of the NIC, together when it is over */
	bool gathers;
	uint16_t n_gathered, gathered_to;
	struct rte_mbuf *gathered[SIM_PUMP_BURST];
	uint16_t n_rx, n_tx;
	struct sim_pump_out out[SIM_MAX_QUEUES];
	uint64_t owner;
	char made[64]; /* the device's name, where it was made for this port; else empty */
	pthread_t thread;
	bool has_thread;
	bool quit;
};

/* The device that the arguments name, made if need be. 0 or a negative errno with a line. */
int sim_pump_find_device(struct sim_pump *pump, uint16_t *wrapped, struct error *error);
/* Takes away one that was made. */
void sim_pump_remove_device(struct sim_pump *pump);

/* Turns once; returns how many packets came. */
unsigned sim_pump_turn_once(struct sim_pump *pump);

/* Whether the wrapped port is there and started. Under one of the locks. */
bool sim_pump_is_open(const struct sim_pump *pump);

/* Sends out of the wrapped port, by that transmit queue or another; returns how many went. */
uint16_t sim_pump_send_by(
	struct sim_pump *pump, uint16_t queue, struct rte_mbuf **packets, uint16_t n);
