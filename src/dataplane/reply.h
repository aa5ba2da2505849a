/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What an lcore tells control: its part of a snapshot, a page of its records, what it knows of one flow, and the
 * question that waits for an answer. An lcore answers between two bursts, and never waits for control.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/topology.h"
#include "dataplane/balance.h"
#include "dataplane/counters.h"
#include "dataplane/stages.h"
#include "flow/shard.h"
#include "offload/agent.h"

#define PLANE_MAX_WORKERS 16
#define PLANE_MAX_PORTS TOPOLOGY_MAX_PORTS
#define PLANE_PAGE 64

enum lcore_kind {
	LCORE_WORKER,
	LCORE_RX,
	LCORE_TX,
};

/* What one lcore did at one port. */
struct plane_port_counters {
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_packets, tx_bytes;
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

/* Up to PLANE_PAGE live records of a worker. */
struct plane_page {
	unsigned n;
	uint32_t next; /* where to go on; FLOW_NONE: that was the last */
	uint64_t now_us;
	uint32_t position[PLANE_PAGE];
	struct flow_record record[PLANE_PAGE];
	struct flow_offload offload[PLANE_PAGE];
	struct flow_rules rules[PLANE_PAGE];
	struct flow_dropped
		dropped[PLANE_PAGE]; /* as in struct flow_report; `cause`: of the list of blocks */
};

/* What a flow has behind it, as far as the worker's ring of changes reaches. */
#define PLANE_CHANGES 16

struct plane_flow {
	unsigned worker;
	struct flow_record record;
	struct flow_offload offload;
	struct flow_dropped dropped; /* as in struct flow_report; `cause`: of the list of blocks */
	struct flow_rules rules;
	uint32_t age_s; /* of its rules: see struct flow_decision */
	uint32_t mark;	/* that its rules in the NIC give; 0: it has no slot */
	/* of each direction, by the key's end: */
	uint8_t port[2]; /* whose state it is, or where it arrives as far as that is known */
	uint64_t nic[2]; /* the NIC's own counter of its rule; 0: none is read, or there is none */
	uint64_t since_us[2]; /* in its state, clock of the run; 0: not known, or all the time */
	uint64_t older_us[2]; /* of OFFLOAD_OLDER_RULE: since when that is to go; 0: not known */
	struct agent_rank rank[2]; /* at its port, among those that the NIC may be given */
	uint64_t retry_us[2];	   /* clock of the run: not before that; 0: any time */
	/* what any flow needs to get in at each port of the domain, by its place there */
	struct agent_rank bar[TOPOLOGY_MAX_PORTS];
	unsigned n_changes; /* newest first */
	bool lost;	    /* there may have been older ones */
	struct offload_change changes[PLANE_CHANGES];
	uint64_t now_us;
};

/* Slots of a wire: how many there are, are in use, and wait to be used again; of all workers. */
struct plane_slots {
	uint32_t n, used, draining;
};

/* Questions: dataplane/ask.h. */
enum ask_kind {
	ASK_SNAPSHOT, /* `number` */
	ASK_PAGE,     /* `page` from `position` on */
	ASK_KILL,     /* `key`, `hash`: `found`, and the record, which has ended */
	ASK_FOLLOW,   /* `follow` */
	/* of offload; lcores with an agent but for the first */
	ASK_FLOW,    /* `key`, `hash`: `found`, and `flow` */
	ASK_ADOPT,   /* `wire`, of the wire `number` */
	ASK_OFFLOAD, /* of the port `number`: `offload` */
	ASK_SLOTS,   /* of the wire `number`: `slots` */
	ASK_CHANGES, /* `from` on: `changes`, and where to go on */
	/* the end of a plane, in this order */
	ASK_STOP_RECEIVING,
	ASK_RELEASE, /* held packets go on */
	ASK_END,     /* every flow ends */
	ASK_HELD,    /* `number`: reports that wait for a NIC */
	ASK_LEAVE,   /* the thread ends */
};

/* Changes of one answer. */
#define ASK_CHANGES_MOST 64

struct ask {
	enum ask_kind kind;
	uint32_t number;
	uint32_t position;
	struct flow_key key;
	uint64_t hash;
	bool follow;
	struct agent_wire wire;
	uint64_t from;
	/* answer */
	bool found;
	struct flow_record record;
	struct plane_page page;
	struct plane_flow flow;
	struct agent_counters offload;
	struct plane_slots slots;
	unsigned n_changes;
	struct offload_change changes[ASK_CHANGES_MOST];
};

/* How long control waits for an lcore (dataplane/ask.h). Of the plane; control's. */
struct ask_patience {
	bool quick;
	uint64_t quick_us;
};

/* The question that waits, in memory that lives as long as the lcore. */
struct ask_slot {
	atomic_bool waiting;
	bool late; /* control's: it was given up, whether or not it is answered by now */
	struct ask_patience *patience;
	struct ask ask;
};

/* An lcore's part of a snapshot: dataplane/snapshot.h. */
#define SNAPSHOT_MAX_RINGS (PLANE_MAX_WORKERS + 2)

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
