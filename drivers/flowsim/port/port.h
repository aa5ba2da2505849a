/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What all that works on a port has in common: its state and its queues. Each part of it belongs to the
 * directory that names it; who may change it, and under which lock, is said there.
 *
 * Locks, in the order in which they are taken: a port's, its rules lock, a queue's, a NIC's, the packet
 * faults'. Receive takes a queue's lock (known sources) or the pump's and the rules lock for reading (in
 * line); never the port's. Every rte_flow call takes the port's, and none sleeps with it.
 */

#include <pthread.h>

#include <ethdev_driver.h>
#include <rte_rwlock.h>
#include <rte_spinlock.h>

#include "drivers/flowsim/kind/args.h"
#include "drivers/flowsim/match/handle.h"
#include "drivers/flowsim/match/table.h"
#include "drivers/flowsim/port/fault.h"
#include "drivers/flowsim/port/round.h"
#include "drivers/flowsim/port/rss.h"

#define SIM_MAX_NIC_PORTS 8
#define SIM_RETA 128
#define SIM_RSS_KEY 52

/* Counted by whoever receives or sends, one writer at a time; read by all with relaxed atomics. */
struct sim_rx_counters {
	uint64_t packets, bytes;  /* handed to the application */
	uint64_t marked, flagged; /* of these: as the application sees them */
	uint64_t matched;	  /* packets that a rule matched, wherever they went */
	uint64_t rule_dropped, rule_dropped_bytes;
	uint64_t forwarded, forwarded_bytes; /* sent on by the NIC */
	uint64_t sampled;		     /* copies that SAMPLE made: packets more than came */
	uint64_t no_mbuf;
	uint64_t missed; /* no room in a queue of the NIC; by any thread: atomic additions */
};

struct sim_tx_counters {
	uint64_t packets, bytes;
	uint64_t errors;
	uint64_t rule_dropped;
	uint64_t forwarded; /* to elsewhere, by egress rules */
	uint64_t sampled;
};

/* When packets come that come at a pace: packets/pace.h */
struct sim_pace {
	double waiting; /* packets that have come, and were not taken */
	double a_cycle; /* of this queue; 0: there is no pace */
	uint64_t tsc;	/* as of then; 0: not begun */
	int field;	/* of an mbuf, for the time; negative: nobody asks */
	uint64_t flag;
};

struct sim_rx_queue {
	rte_spinlock_t lock;
	struct sim_port *port;
	uint16_t number;
	struct rte_mempool *pool;
	uint16_t descriptors;
	bool slow; /* a packet fault is on */
	/* known sources */
	struct sim_round round;
	struct sim_entry *entries; /* the port's, by stream; NULL: the round has them */
	bool plain;		   /* stream_set_is_plain() */
	uint32_t n_looks;	   /* streams whose entry says something */
	uint32_t n_programs;	   /* streams whose packets need more than a mark: the slow way */
	/* what others put in: the pump, ports of the NIC, copies (packets/queue.h) */
	struct sim_pace pace;
	struct rte_ring *ring;
	bool given; /* something was put into the ring of a queue that has a round */
	struct sim_rx_counters counters;
} __rte_cache_aligned;

struct sim_tx_queue {
	struct sim_port *port;
	uint16_t number;
	uint16_t descriptors;
	struct sim_tx_counters counters;
} __rte_cache_aligned;

struct sim_nic; /* nic.h */
struct sim_firmware;
struct sim_flow;
struct sim_pump;
struct sim_resolver;
struct sim_source;
struct sim_stats_base;
struct sim_async;
struct sim_meters;

struct sim_port {
	pthread_mutex_t lock;
	pthread_rwlock_t
		rules_lock; /* only while packets are matched in line, or egress rules are there */
	/* what changes with every rule: apart from what every burst and every pull looks at */
	struct sim_rules rules; /* all that are accounted for, ghosts and lost ones too */
	uint32_t n_rules;
	uint64_t serial;
	struct sim_indirects indirects;
	/* as made; profile with it */
	struct sim_args args __rte_cache_aligned;
	struct rte_eth_dev *dev;
	uint16_t id;
	char name[64];
	struct sim_nic *nic;
	struct sim_source *source; /* of known packets, else NULL */
	struct sim_resolver *resolver;
	struct sim_pump *pump; /* SIM_SOURCE_PORT */
	struct sim_table *table;
	struct sim_flow *flow; /* rules/flow_state.h */
	struct sim_input_sets *input_sets;
	struct sim_firmware *firmware;
	struct sim_async *async;
	struct sim_meters *meters;
	struct sim_faults faults;
	bool dead;
	bool isolated;
	bool started;
	bool link_up;	/* read by those who receive and send, with relaxed atomics */
	bool link_down; /* asked for */
	/* RSS: written under both locks, read under either */
	rte_rwlock_t rss_lock;
	uint16_t reta[SIM_RETA];
	uint8_t rss_key[SIM_RSS_KEY];
	struct sim_rss_table rss_table; /* of that key */
	uint64_t rss_hf;
	enum rte_eth_hash_function rss_function;
	uint16_t n_rx, n_tx;
	struct sim_rx_queue rx[SIM_MAX_QUEUES];
	struct sim_tx_queue tx[SIM_MAX_QUEUES];
	/* what the application asked of the flow calls: for xstats */
	struct {
		uint64_t created, destroyed, refused, queried, aged;
		uint64_t lost, forgotten, late;
	} told;
	/* sent by the NIC alone; by any thread: atomic additions */
	struct {
		uint64_t packets, bytes;
	} nic_sent;
	struct sim_stats_base *stats_base; /* what the counters were at the last reset */
};

static inline struct sim_port *sim_port_of(struct rte_eth_dev *dev)
{
	return dev->data->dev_private;
}

/* A counter with one writer at a time and readers of other threads. */
static inline void sim_count_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline uint64_t sim_count_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/*
 * Ends a refused call as this kind of NIC does: fills the error, or leaves it, or blames something else.
 * Returns `code`, also in rte_errno.
 */
int sim_refuse(const struct sim_port *port, struct rte_flow_error *error, int code,
	const struct sim_fault_at *fault);
