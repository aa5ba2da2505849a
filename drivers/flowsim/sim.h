/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * net_flowsim: a NIC with a flow table, without the NIC. Each ethdev is a sim_port; ports of one `nic=`
 * can forward to each other. What the parts are, from the top:
 *
 *   device.c   probe and remove;  args.c, profile.c  what was asked for
 *   ops.c      the table of calls;  life.c, stats.c, link.c, queue.c, rss_set.c  the plain ones of an
 *              ethdev;  rss.c  the hash
 *   flow.c     rte_flow, blocking calls;  async.c, template.c  the others;  indirect.c  shared actions
 *   rule.c     a rule's life;  pattern.c, actions.c  from rte_flow's words to ours
 *   table.c    live rules, and which of them a packet meets;  view.c  what is seen of a packet
 *   resolve.c  rules resolved to streams;  receive.c  the burst of known sources
 *   pump.c     matching in line over another port;  forward.c  to other ports of the NIC;  send.c
 *   firmware.c the NIC's own time;  age.c;  fault.c, telemetry.c  what goes wrong, and who tells it to
 *
 * Locks, in the order in which they are taken: a port's, its rules lock, a queue's, a NIC's, the packet
 * faults'. Receive takes a queue's lock (known sources) or the pump's and the rules lock for reading (in
 * line); never the port's. Every rte_flow call takes the port's, and none sleeps with it.
 *
 * All is in the memory of one process; secondary processes are refused.
 */

#include <pthread.h>

#include <ethdev_driver.h>
#include <rte_rwlock.h>
#include <rte_spinlock.h>

#include "drivers/flowsim/kind/args.h"
#include "drivers/flowsim/kind/profile.h"
#include "drivers/flowsim/match/rule.h"
#include "drivers/flowsim/match/table.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/port/fault.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/rss.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/indirect.h"

#define SIM_MAX_QUEUES 16
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

struct sim_rx_queue {
	rte_spinlock_t lock;
	struct sim_port *port;
	uint16_t number;
	struct rte_mempool *pool;
	uint16_t descriptors;
	bool slow; /* a packet fault is on */
	/* known sources */
	struct sim_round round;
	struct sim_entry *entries; /* the port's, by stream */
	bool plain;		   /* stream_set_is_plain() */
	uint32_t n_looks;	   /* streams whose entry says something */
	uint32_t n_programs;	   /* streams whose packets need more than a mark: the slow way */
	/* what others put in: the pump, ports of the NIC, copies (queue.h) */
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

struct sim_nic; /* forward.h */
struct sim_pump;
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
	struct sim_actions_pool actions_pool;
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
	struct sim_flow *flow; /* flow.h */
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

/* The tables of calls (flow.c, meter.c; of async.c by compat.h's SIM_ASYNC_SET); NULL: it has none. */
extern const struct rte_flow_ops sim_flow_ops;
const struct rte_flow_ops *sim_flow_ops_get(const struct sim_port *port);
const struct rte_mtr_ops *sim_mtr_ops_get(const struct sim_port *port);

/*
 * What of a port is made when it is probed and unmade when it goes, besides the parts that have headers
 * of their own. Return 0 or a negative errno; fini also where init failed or was never called. The order
 * is that of here: meters, rules, faults, firmware, async; unmade the other way.
 */
int sim_meters_init(struct sim_port *port);
void sim_meters_fini(struct sim_port *port);
/* The table and what else rules need; fini frees those that are there still, and shared actions. */
int sim_rules_init(struct sim_port *port);
void sim_rules_fini(struct sim_port *port);
int sim_async_init(struct sim_port *port); /* also gives port->dev its calls, by SIM_ASYNC_SET */
void sim_async_fini(struct sim_port *port);

/* The device was stopped: rules go unless the profile keeps them. Without the port's lock. */
void sim_rules_stopped(struct sim_port *port);
