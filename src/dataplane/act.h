/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The act stage: runs the action programs that flows have as their verdicts over their packets, which have been
 * accounted by then. A packet goes on to its peer's port, goes elsewhere, or ends here with a reason.
 *
 * The worker's own thread; programs and next hops are read under the RCU variable of path/policy.h.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "action/program.h"
#include "action/programs.h"
#include "packet/extract.h"
#include "dataplane/counters.h"

struct station;

struct act {
	const struct programs *programs; /* NULL: no verdict but forward and drop is ever given */
	struct action_context context;
};

/* Where a packet came from. */
struct act_from {
	uint8_t domain, peer;
};

/*
 * Runs the program of that number over the packet. True: it leaves by `from.peer`, and is the caller's. Else it was sent by another port,
 * or dropped and counted. What is copied by a mirror has been sent.
 */
bool act_packet(struct station *station, struct act_from from, struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t verdict);

/* Why a program drops, as packets are counted. */
enum drop_reason act_drop_reason(enum action_drop drop);
