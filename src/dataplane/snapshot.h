/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A picture of all lcores at one moment, though none stops for it and their packets are on the way
 * from one to another (K. M. Chandy, L. Lamport, "Distributed Snapshots", 1985).
 *
 * Control asks every lcore for snapshot N. An lcore that hears of N, from control or by a marker in
 * a ring, whichever comes first, copies its counters and pushes a marker into each ring that it feeds.
 * What it then takes from a ring before that ring's marker was under way at the moment of the picture:
 * the sender had counted it as handed out, the receiver not yet as handed in. It is counted apart, and
 * makes the sums of all lcores exact.
 *
 * Belongs to the lcore; control reads it once `done` says so.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/topology.h"
#include "dataplane/counters.h"
#include "dataplane/stages.h"
#include "flow/shard.h"
#include "port/balance.h"

struct lcore;

#define PLANE_MAX_WORKERS 16
#define PLANE_MAX_PORTS TOPOLOGY_MAX_PORTS

enum lcore_kind {
	LCORE_WORKER,
	LCORE_RX,
	LCORE_TX,
};

/* What one lcore did at one port. */
struct plane_port_counters {
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_packets, tx_bytes;
	uint64_t from_kernel;	 /* of a router, for it to send */
	uint64_t reject_replies; /* of our own making, for it to send: see struct path_counters */
};

/* An lcore, as of one moment. */
struct plane_lcore {
	enum lcore_kind kind;
	unsigned number; /* among its kind; of workers, the shard */
	int cpu;	 /* -1: not pinned */
	uint32_t flows, capacity;
	uint32_t phase_flows[FLOW_N_PHASES]; /* of `flows`, by enum flow_phase */
	struct path_counters sum;	     /* over all wires */
	struct plane_port_counters ports[PLANE_MAX_PORTS];
	struct stage_times stages;
	uint64_t bursts;     /* polls that brought something */
	uint64_t idle_polls; /* that brought nothing */
	uint64_t busy_cycles, idle_cycles, sleep_cycles;
	struct flow_counters flow;
	struct flow_rule_count unmatched; /* what the rules of the policy leave alone */
	uint64_t crowded_s[BALANCE_N];	  /* seconds in which it had far more than its share */
};

#define SNAPSHOT_MAX_RINGS (PLANE_MAX_WORKERS + 2)

/* An lcore's part. */
struct snapshot {
	/* the lcore writes, control reads after `done` */
	struct plane_lcore lcore;
	struct path_counters wires[FLOW_MAX_WIRES];
	uint64_t under_way[FLOW_MAX_WIRES];
	uint32_t wire_flows[FLOW_MAX_WIRES];
	bool distrusted[PLANE_MAX_PORTS];
	uint64_t fallen_back[PLANE_MAX_PORTS];
	/* number of the last snapshot that is complete */
	atomic_uint done;
	/* the lcore's own */
	uint32_t number; /* of the last one taken */
	unsigned n_awaited;
	bool markers_wait;		  /* some found no room in their ring */
	bool awaited[SNAPSHOT_MAX_RINGS]; /* by sending lcore: its marker has not come */
};

/* Between bursts: control asks for snapshot `number`. */
void snapshot_asked(struct lcore *lcore, uint32_t number);

/* Between bursts: the marker of snapshot `number` was taken from the ring of lcore `sender`. */
void snapshot_marker(struct lcore *lcore, unsigned sender, uint32_t number);

/* Once more for the markers that found no room. */
void snapshot_push_markers(struct lcore *lcore);

/* A packet was taken from that ring. */
static inline void snapshot_packet(struct snapshot *snapshot, unsigned sender, unsigned wire)
{
	if (__builtin_expect(snapshot->awaited[sender], 0))
		snapshot->under_way[wire]++;
}
