/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A live plane between two ports made of rings: its lcores as the program has them, each turned when
 * the test says so, on a clock that the test sets; or with their threads, after plane_start().
 */

#include <pthread.h>
#include <stdint.h>

#include <rte_ring.h>

#include "../unit/frames.h"
#include "dataplane/poll.h"
#include "dataplane/snapshot.h"
#include "plane/ask.h"
#include "plane/plane_private.h"

#define LIVE_MAX_QUEUES 4
#define LIVE_MAX_REPORTS 4096

struct live_options {
	unsigned n_workers;
	enum plane_threads threads;
	unsigned n_queues; /* of each port; 0 = 1 */
	uint64_t rss;	   /* kinds that the ports claim to spread */
	uint32_t capacity; /* 0 = 1000 */
	unsigned (*room)(void *live, unsigned worker);
	uint32_t max_programs;
	struct policy_others policy; /* decides what no block drops */
	const struct policer_options *policers;
	uint32_t n_policers;
	uint32_t max_blocks;		   /* 0: there is no list */
	uint32_t max_rules;		   /* 0: there are none; flows live for an hour then */
	bool counts_reports;		   /* too many to be kept: of them the packets alone */
	const struct plane_router *router; /* the ports are a router's; NULL: a wire's */
	bool zone_vlan;
	bool one_armed;
	enum plane_sharding sharding;
	unsigned out_places; /* packets that a port takes before somebody removes them; 0 = 4095 */
	unsigned longest, longest_tagged; /* bytes that port 1 carries; 0: nobody looks */
	unsigned rx_room;		  /* bytes at which port 0 cuts; 0: it cuts none */
};

struct live {
	struct live_options options;
	struct plane *plane;
	struct port *port[2];
	struct rte_ring *in[2][LIVE_MAX_QUEUES];
	struct rte_ring *out[2][LIVE_MAX_QUEUES];
	uint64_t now_us;
	unsigned n_polls[2];  /* of each side, by whoever turns the lcores */
	pthread_mutex_t lock; /* of the reports, for workers with threads */
	unsigned room;	      /* for whoever gives options.room */
	unsigned n_reports;
	uint64_t reported_packets; /* with counts_reports */
	struct flow_report reports[LIVE_MAX_REPORTS];
};

/* Starts DPDK's environment for the test program. */
int live_environment(void **state);

struct live *live_begin(const struct live_options *options);

/* A frame arrives at port `side`, in this queue. */
void live_send(struct live *live, unsigned side, unsigned queue, const struct frame *frame);
/* The same with a mark, as a rule puts it on. */
void live_send_marked(
	struct live *live, unsigned side, unsigned queue, const struct frame *frame, uint32_t mark);

/* One turn of an lcore, by its place. */
bool live_turn(struct live *live, unsigned place);

/* Turns of all lcores until nothing moves any more. */
void live_settle(struct live *live);

/* Takes away the next packet that left by port `side`; NULL: there is none. */
struct rte_mbuf *live_take_one(struct live *live, unsigned side);

/* Takes away what left by port `side`; returns how many packets. */
unsigned live_take(struct live *live, unsigned side);

/* A snapshot by turns of the lcores in the order that `seed` gives; its sums are checked. */
void live_snapshot(struct live *live, unsigned seed, struct plane_snapshot *snapshot);

/* The sums that hold at every moment. */
void live_check_sums(const struct plane_snapshot *snapshot);

/* After plane_stop() if there were threads. Ends every flow and checks what must hold in every test; frees everything. */
void live_end(struct live *live);
