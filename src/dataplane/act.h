/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The act stage: runs the action programs that flows have as their verdicts over their packets, which have been
 * accounted by then. A packet goes on to its peer's port, goes elsewhere, or ends here with a reason.
 *
 * The worker's own thread; programs and next hops are read under the RCU variable of policy/policy.h.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "action/program.h"
#include "action/programs.h"
#include "dataplane/burst.h"
#include "dataplane/counters.h"
#include "route/routes.h"

struct lcore;

struct act {
	const struct programs *programs; /* NULL: no verdict but forward and drop is ever given */
	struct action_context context;
	struct routes *const *routes; /* by domain; NULL: none is a router */
};

/*
 * Runs the verdicts of a burst, drops what is to be dropped, and leaves out what has gone: what is left moves to the
 * front of the burst, whose `bytes` are those of it then. Says how many. What was to go by another port than the
 * peer, and what was copied by a mirror, has been sent.
 */
unsigned act_burst(struct lcore *lcore, struct burst *burst, const struct outcome *outcome);

/* Why a program drops, as packets are counted. */
enum drop_reason act_drop_reason(enum action_drop drop);
