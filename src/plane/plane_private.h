/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The plane's own struct, for the files that make it up: wiring, life, questions. Not for its users. */

#include <sched.h>

#include "dataplane/lcore.h"
#include "dataplane/router_in.h"
#include "dataplane/settings.h"
#include "plane/ask.h"
#include "plane/plane.h"

/*
 * Buffers of packets that may wait for the first fragment of their datagram, of all parsers; packets of one datagram, of
 * which the largest has 54 where links carry 1,280 bytes; and how long. Fragments of a datagram follow one another
 * within milliseconds, whatever way they take; a receiver would wait for 15 to 60 s, but holds up nobody meanwhile.
 */
#define PLANE_MAX_HELD 4096
#define PLANE_MAX_HELD_DATAGRAM 64
#define PLANE_MAX_WAIT_US UINT64_C(300000)
/* Packets that waited and are let go in one iteration. */
#define PLANE_PACE 64

#define PLANE_EVENTS 4096
/* Copies for capture files that may wait, of each worker. */
#define PLANE_COPIES 1024

/* Most pools: one for each NUMA node with a port. */
#define PLANE_MAX_SOCKETS 8

/* What a port's installer is handed, to restart it. */
struct plane_port {
	struct plane *plane;
	unsigned number;
};

struct plane {
	struct plane_config config;
	struct hash_secret secret;
	struct tsc_clock clock;
	struct steer steer;
	struct balance_board board;
	unsigned n_lcores;
	struct lcore *lcores;
	struct ask_slot *asks; /* of each lcore */
	unsigned n_rings;
	struct ring *rings;
	unsigned n_pools;
	struct rte_mempool *pools[PLANE_MAX_SOCKETS];
	int pool_socket[PLANE_MAX_SOCKETS];
	struct installer *installer[PLANE_MAX_PORTS]; /* NULL: offload is off there */
	struct plane_port restart[PLANE_MAX_PORTS];
	struct rte_rcu_qsbr *qsbr; /* of the workers; NULL: nothing is read by it */
	struct blocks *blocks;
	struct rules *rules;
	struct mailbox *copies[PLANE_MAX_WORKERS]; /* for capture files; NULL: there are none */
	struct nic_rules *nic_rules;		   /* NULL: no rule is given to NICs */
	struct programs *programs;
	struct next_hops *next_hops;
	atomic_uint_fast64_t policy_generation;
	/* of routers; NULL or 0 without one */
	struct router *routers[TOPOLOGY_MAX_DOMAINS];
	struct routes *routes[TOPOLOGY_MAX_DOMAINS];
	struct routes_verdicts verdicts;
	struct router_port router_ports[PLANE_MAX_PORTS];
	struct punt_line *lines; /* of each lcore, one for each router */
	unsigned n_routers;
	uint8_t line_of[TOPOLOGY_MAX_DOMAINS];
	atomic_uint_fast64_t routes_generation;
	struct ask_patience patience;
	cpu_set_t
		others; /* processors that lcores leave to other threads; empty: it makes no difference */
	struct settings_board settings;
	_Atomic uint32_t paused;     /* a bit for each port that lcores leave alone */
	uint64_t began_us;	     /* when ports began to be tried; clock of the machine */
	bool tended[FLOW_MAX_WIRES]; /* its slots were made, or cannot be */
	uint16_t have_slots[FLOW_MAX_WIRES]; /* a bit for each worker that has its part */
	uint32_t n_slots[FLOW_MAX_WIRES];    /* of those */
	uint32_t n_snapshots;
	bool running;
};

/* The three steps of plane_create(). First: memory, a secret, clock 0. */
int plane_prepare(struct plane **plane, const struct plane_config *config, struct error *error);

/* Pools, and the ports' queues. */
int plane_start_ports(struct plane *plane, struct error *error);

/* Lcores, who receives and sends where, and the rings between them. The ports have their queues. */
int plane_wire_up(struct plane *plane, struct error *error);
/* Mirrors it, as far as it came. */
void plane_take_down(struct plane *plane);

/* The lcore that a shard belongs to. */
struct lcore *plane_shard_lcore(const struct plane *plane, unsigned shard);

/* routers.c: whether there is one; all of them, with the programs there; their lines; and mirrored. */
bool plane_has_routers(const struct plane *plane);
uint32_t plane_router_hops(const struct plane *plane);
int plane_routers_make(struct plane *plane);
/* All workers have decided all flows by routes of this number of `routes_generation`, or a later one. Any thread. */
uint64_t plane_router_settled(const struct plane *plane);
int plane_punt_lines_make(struct plane *plane);
void plane_routers_take_down(struct plane *plane);

/* Adds up the lcores' parts of a snapshot that is complete. */
void plane_gather(const struct plane *plane, struct plane_snapshot *snapshot);

/* Buffers that the lcores may have on their way at once. */
unsigned plane_buffers(const struct plane *plane);

/* Packets that a flow has had before a NIC is asked. */
#define PLANE_OFFLOAD_LEAST 4

/* Installers of started ports, and the workers' agents. The shards are there. */
int plane_offload_make(struct plane *plane, struct error *error);
/* No rule is left; the ports are there still. */
void plane_offload_stop(struct plane *plane);
/* Mirrors plane_offload_make(), as far as it came. */
void plane_offload_take_down(struct plane *plane);

/* nic_rules.c: what rules NICs are to have. The installers are there. 0 or -ENOMEM. */
int plane_nic_rules_make(struct plane *plane);
void plane_nic_rules_free(struct plane *plane);
/* Rules that a port's NIC is given, at most; 0: none. */
uint32_t plane_nic_rules_max(const struct plane *plane);
/* Adds what NICs dropped by them to the wires of their ports. */
void plane_nic_rules_gather(const struct plane *plane, struct plane_snapshot *snapshot);

/*
 * Stops and starts a port (a struct plane_port), which the lcores leave alone meanwhile: what is to go out
 * of it is dropped, and counted. Any thread but an lcore's. 0 or a negative errno.
 */
int plane_restart_port(void *port);

static inline unsigned plane_n_ports(const struct plane *plane)
{
	return plane->config.topology.n_ports;
}
