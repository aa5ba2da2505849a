/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets of another port, matched in line: the pump takes a burst from the wrapped port, looks at each,
 * does what the rules say and puts what the host shall see into the rings of its receive queues, and
 * what another port shall send into that. Whoever receives turns the pump first, when nobody else does;
 * with `nic_core=` a thread of the NIC turns it and the workers find packets that another processor
 * wrote. Any number of threads may call sim_pump_turn(): one turns, the others return.
 *
 * The wrapped port is owned (rte_eth_dev_owner_set): applications that go through all ports pass it by.
 * It has as many queues as the port has, or as many as it can; those for sending are shared, each under
 * a lock. When its device is removed the port lives on and receives nothing.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "base/error.h"
#include "drivers/flowsim/packets/pump_device.h"
#include "drivers/flowsim/port/port.h"

#define SIM_PUMP_BURST 32

/* A way out of the wrapped port: one of its transmit queues. */
struct sim_pump_out {
	rte_spinlock_t lock;
} __rte_cache_aligned;

/*
 * Members that a turn reads are under `lock`; those that sending reads are under the lock of each way out as well.
 * A writer takes all of these locks, `lock` first.
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
	char made
		[SIM_DEVICE_NAME]; /* the device's name, where it was made for this port; else empty */
	pthread_t thread;
	bool has_thread;
	bool quit;
};

/* Opens nothing: the wrapped port was probed before. Configures and starts it with the port. */
int sim_pump_create(struct sim_port *port, struct error *error);
void sim_pump_destroy(struct sim_port *port);
int sim_pump_start(struct sim_port *port); /* rings, the wrapped port, the NIC's thread */
void sim_pump_stop(struct sim_port *port);

void sim_pump_turn(struct sim_port *port);

/*
 * Receive and transmit of such a port. When egress rules are there, what the wrapped port has no room for
 * is lost (tx errors): a packet cannot be edited twice.
 */
uint16_t sim_pump_receive(void *queue, struct rte_mbuf **packets, uint16_t n);
uint16_t sim_pump_send(void *queue, struct rte_mbuf **packets, uint16_t n);

/*
 * Writes packets to the wrapped port, by its first queue; returns how many it took, 0 when it is
 * stopped or gone. Any thread. Counts nothing.
 */
uint16_t sim_pump_out(struct sim_port *port, struct rte_mbuf **packets, uint16_t n);

/*
 * A received packet that a rule sends out of another port of the NIC: true, and it goes, and is counted, with the others
 * of its burst. The port's own burst that is being taken, and no other time: then it is to be sent at once.
 */
bool sim_pump_gather(struct sim_port *port, uint16_t to, struct rte_mbuf *packet);

/*
 * What concerns the wire is the wrapped port's: calls passed on. 0 or a negative errno of its driver;
 * -ENODEV when it is gone. With the port's lock or without.
 */
int sim_pump_mac(struct sim_port *port, struct rte_ether_addr *mac);
int sim_pump_info(struct sim_port *port, struct rte_eth_dev_info *info);
int sim_pump_set_mtu(struct sim_port *port, uint16_t mtu);
int sim_pump_set_promiscuous(struct sim_port *port, bool on);
int sim_pump_set_allmulticast(struct sim_port *port, bool on);
int sim_pump_set_mac(struct sim_port *port, struct rte_ether_addr *mac);
int sim_pump_get_link(struct sim_port *port, struct rte_eth_link *link);

/* The ethdev behind, or SIM_NO_PORT when it is gone. */
uint16_t sim_pump_wrapped(const struct sim_port *port);
