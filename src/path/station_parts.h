/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a station carries for control: the question that waits, and its part of the last snapshot. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "path/plane.h"

/* Questions: path/ask.h. */
enum ask_kind {
	ASK_SNAPSHOT, /* `number` */
	ASK_PAGE,     /* `page` from `position` on */
	ASK_FIND,     /* `key`, `hash`: `found`, and the record */
	ASK_KILL,     /* the same, and it ends */
	ASK_FOLLOW,   /* `follow` */
	/* the end of a plane, in this order */
	ASK_STOP_RECEIVING,
	ASK_RELEASE, /* held packets go on */
	ASK_END,     /* every flow ends */
	ASK_LEAVE,   /* the thread ends */
};

struct ask {
	enum ask_kind kind;
	uint32_t number;
	uint32_t position;
	struct flow_key key;
	uint64_t hash;
	bool follow;
	/* answer */
	bool found;
	struct flow_record record;
	struct plane_page page;
};

/* The question that waits, in memory that lives as long as the station. */
struct ask_slot {
	atomic_bool waiting;
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
	bool fallen_back[PLANE_MAX_PORTS];
	/* number of the last snapshot that is complete */
	atomic_uint done;
	/* the station's own */
	uint32_t number; /* of the last one taken */
	unsigned n_awaited;
	bool markers_wait;		  /* some found no room in their ring */
	bool awaited[SNAPSHOT_MAX_RINGS]; /* by sending station: its marker has not come */
};
