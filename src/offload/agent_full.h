/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Full offload: flows whose packets the NIC forwards or drops alone. For the agent's files only.
 *
 * A direction of a flow goes there instead of being marked where the port can, and the agent may: TCP when the connection
 * is established. It is proven when its counter moves. It leaves when its rate falls, as others do; when a SYN, FIN or
 * RST was seen, which come to software always; and when packets come that should not (OFFLOAD_RETURNED). A direction that
 * was refused, or fell out, is marked the next time, for a while.
 *
 * A flow that ended while a rule of it is there has its report held back until the NIC has told the last packets, or for
 * five seconds; then the report says that its numbers are estimated.
 *
 * While a direction is in the NIC so, the window of TCP is forgotten after each packet that is seen, since those in between
 * were not.
 */

#include "offload/agent_state.h"
#include "offload/tally.h"

/* Of one direction's rule. */
struct agent_full_direction {
	struct tally tally;
	uint64_t packets, bytes; /* of these, credited */
	uint64_t looked_us;	 /* when its counter told something */
	uint64_t retry_ms;	 /* not asked to be full before; clock of the run */
	uint8_t failures;
};

/* Beside a slot. */
struct agent_full {
	struct agent_full_direction direction[OFFLOAD_DIRECTIONS];
	bool held;		    /* its report is, */
	bool ready;		    /* and waits only for room among the reports, */
	uint64_t held_us, ready_us; /* since then */
	bool estimated;
	struct flow_report report;
};

static inline struct agent_full *agent_full_of(const struct agent_at *at)
{
	return &at->agent->wire[at->domain].full[at->slot];
}

static inline struct agent_full_direction *agent_full_direction_of(const struct agent_at *at)
{
	return &agent_full_of(at)->direction[at->from];
}

/* The flow could go there soon, and is not to be marked instead. */
bool agent_full_waits(const struct agent_at *at);
/* What the rule is to do that is asked for next. */
enum provider_deed agent_full_choose(const struct agent_at *at);
/* Can the NIC drop what comes of the direction by its port? */
bool agent_full_drops(const struct agent_at *at);
/* A full rule is asked for. */
void agent_full_begin(const struct agent_at *at);

/* A packet of the flow was seen by software, and counted. */
void agent_full_saw(const struct agent_at *at, const struct packet_info *info);
/* The flow has another verdict. */
void agent_full_decided(const struct agent_at *at);
/* A rule of either kind that is in the NIC is looked at, while its record lives. */
void agent_full_look(const struct agent_at *at);

/* The flow ended: is its report held back? */
bool agent_full_hold(const struct agent_at *at, const struct flow_report *report);
/* A direction of the slot is in software, or time has passed: a report that waited for it goes, if it can. */
void agent_full_settle(const struct agent_at *at);
/* All reports of a wire go. */
void agent_full_give_up(struct agent *agent, unsigned wire);
