/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a plane answers about its flows: a page of live records, one flow, the slots of a wire. */

#include <stdbool.h>
#include <stdint.h>

#include "base/topology.h"
#include "flow/shard.h"
#include "offload/agent.h"

#define PLANE_PAGE 64

/* Up to PLANE_PAGE live records of a worker. */
struct plane_page {
	unsigned n;
	uint32_t next; /* where to go on; FLOW_NONE: that was the last */
	uint64_t now_us;
	uint32_t position[PLANE_PAGE];
	struct flow_record record[PLANE_PAGE];
	struct flow_offload offload[PLANE_PAGE];
	struct flow_rules rules[PLANE_PAGE];
	struct flow_measured measure[PLANE_PAGE][2]; /* zeros of one that is not measured */
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
	struct flow_conversation conversation; /* zeros where rules do not ask for it */
	struct flow_measured measure[2];       /* zeros unless it is measured */
	uint32_t age_s;			       /* of its rules: see struct flow_decision */
	uint32_t mark; /* that its rules in the NIC give; 0: it has no slot */
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
