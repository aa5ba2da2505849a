/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The plane's part in offload: which ports have an installer, and what control asks of it. As in
 * path/plane.h, all functions belong to control's thread; 0 or -ETIMEDOUT where nothing else is said.
 */

#include "dataplane/plane.h"
#include "offload/agent.h"

/* What a flow has behind it, as far as the worker's ring of changes reaches. */
#define PLANE_CHANGES 16

struct plane_flow {
	unsigned worker;
	struct flow_record record;
	struct flow_offload offload;
	struct flow_dropped dropped; /* as in struct flow_report; `cause`: of the list of blocks */
	uint32_t mark;		     /* that its rules give; 0: it has no slot */
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

/*
 * The live flow with this key and all that is known of it. -ENOENT: there is none; then `bar` says what it would need,
 * if it came, and `worker` whose it would be.
 */
int plane_flow(struct plane *plane, const struct flow_key *key, struct plane_flow *flow);

/* The installer of a port, for what any thread may ask of it; NULL: it has none. */
struct installer *plane_installer(const struct plane *plane, unsigned port);

/* The sum of all workers' counters of a port. */
int plane_offload_counters(struct plane *plane, unsigned port, struct agent_counters *counters);

/* Slots of a wire: how many there are, are in use, and wait to be used again; of all workers. */
struct plane_slots {
	uint32_t n, used, draining;
};

int plane_slots(struct plane *plane, unsigned wire, struct plane_slots *slots);

/* Where a reader of changes is, in each ring. Zeroed: at the oldest that are left. */
struct plane_changes {
	uint64_t worker[PLANE_MAX_WORKERS];
	unsigned next; /* worker, to be asked first */
};

/* Those of ports alone, at most `max`; each is told once. Waits for nobody. */
unsigned plane_port_changes(struct plane *plane, struct offload_change *changes, unsigned max);

/*
 * The next changes of all workers and ports, of each in its order, at most `max` (64 or more); sets how
 * many. Those of ports (breaker, stalls) are told once, to whoever asks first.
 */
int plane_changes(struct plane *plane, struct plane_changes *where, struct offload_change *changes,
	unsigned max, unsigned *n);
