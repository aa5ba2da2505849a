/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a station carries for control: the question that waits, and its part of the last snapshot. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/plane_offload.h"

/* Questions: path/ask.h. */
enum ask_kind {
	ASK_SNAPSHOT, /* `number` */
	ASK_PAGE,     /* `page` from `position` on */
	ASK_KILL,     /* `key`, `hash`: `found`, and the record, which has ended */
	ASK_FOLLOW,   /* `follow` */
	/* of offload; stations with an agent but for the first */
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

/* How long control waits for a station (path/ask.h). Of the plane; control's. */
struct ask_patience {
	bool quick;
	uint64_t quick_us;
};

/* The question that waits, in memory that lives as long as the station. */
struct ask_slot {
	atomic_bool waiting;
	bool late; /* control's: it was given up, whether or not it is answered by now */
	struct ask_patience *patience;
	struct ask ask;
};

/* A station's part of a snapshot: path/snapshot.h. */
#define SNAPSHOT_MAX_RINGS (PLANE_MAX_WORKERS + 2)

struct snapshot {
	/* the station writes, control reads after `done` */
	struct plane_station station;
	struct path_counters wires[FLOW_MAX_WIRES];
	uint64_t under_way[FLOW_MAX_WIRES];
	uint32_t wire_flows[FLOW_MAX_WIRES];
	bool distrusted[PLANE_MAX_PORTS];
	uint64_t fallen_back[PLANE_MAX_PORTS];
	/* number of the last snapshot that is complete */
	atomic_uint done;
	/* the station's own */
	uint32_t number; /* of the last one taken */
	unsigned n_awaited;
	bool markers_wait;		  /* some found no room in their ring */
	bool awaited[SNAPSHOT_MAX_RINGS]; /* by sending station: its marker has not come */
};
