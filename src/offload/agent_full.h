/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The agent's part about full offload: flows whose packets the NIC sends on alone. For the agent's files only.
 *
 * A direction of a flow goes there instead of being marked where the port can, and the agent may: TCP when the connection
 * is established. It is proven when its counter moves. It leaves when its rate falls, as others do; when a SYN, FIN or
 * RST was seen, which come to software always; and when packets come that should not (OFFLOAD_RETURNED). A direction that
 * was refused, or fell out, is marked the next time, for a while.
 *
 * What the NIC forwarded is credited to the record each time that its counter was read, and once more when the rule is
 * gone. A flow that ended before that has its report held back until then, which has the last packets, too. Where they
 * are not told the flow says that its numbers are estimated.
 *
 * While a direction is in the NIC so, the window of TCP is forgotten after each packet that is seen: what came in between
 * was not.
 */

#include "offload/agent_parts.h"
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
	uint64_t held_us; /* since when the report is held */
	bool held;
	bool ready; /* to go, as soon as there is room for it, */
	bool estimated;
	uint16_t
		often; /* its place among those that are read often, from 1; 0: it is none of them */
	uint32_t next_ready; /* which is the turn of that slot's after this one */
	uint64_t ready_us;   /* since when */
	struct flow_report report;
};

/*
 * Between two readings of a counter, at most, where there are few flows: one that fell silent is to end within a second of
 * its time. Its last packet is known of by one of them, and that its time is over by another. The sweep that reads most
 * comes by every 250 ms, or a little sooner.
 */
#define AGENT_READ_US 225000

/* Slots whose counters are to be read more often than the sweep comes to them. */
#define AGENT_OFTEN 2048

struct agent_often {
	uint64_t due_us; /* the first of them */
	uint32_t n;
	/* nothing of a slot is read before it is due */
	struct agent_due {
		uint64_t us;
		uint32_t slot;
	} due[AGENT_OFTEN];
};

/* Of a wire's slots: 0 or -ENOMEM. */
int agent_full_init(struct agent_wire *wire);
void agent_full_fini(struct agent_wire *wire);

/* The lines of a slot that an answer about one of its rules needs are on their way. */
static inline void agent_fetch_direction(
	const struct agent_wire *wire, uint32_t slot, unsigned from)
{
	const struct slot *of = slots_slot(&wire->slots, slot);

	rte_prefetch0(of);
	for (size_t at = 0; at < sizeof(of->direction[from]); at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0((const uint8_t *)&of->direction[from] + at);
	if (wire->full == NULL)
		return;
	const uint8_t *full = (const uint8_t *)&wire->full[slot].direction[from];

	for (size_t at = 0; at < sizeof(struct agent_full_direction); at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(full + at);
	rte_prefetch0(full + sizeof(struct agent_full_direction) - 1);
}

/* Both lines of its record. */
static inline void agent_fetch_record(const struct agent *agent, const struct slot *slot)
{
	if (slot->position == FLOW_NONE)
		return;
	const struct flow_record *record = flow_table_record(agent->config.table, slot->position);

	rte_prefetch0(record);
	rte_prefetch0(&record->end);
}

static inline bool agent_is_full(const struct slot_direction *direction)
{
	return direction->deed != PROVIDER_MARKS;
}

/* A rule of the slot may be in the NIC that sends packets on alone. */
static inline bool agent_has_full(const struct slot *entry)
{
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		if (agent_is_full(&entry->direction[from]) &&
			offload_state_holds((enum offload_state)entry->direction[from].state))
			return true;
	return false;
}

/* The slot is another flow's from now on. */
void agent_full_forget(const struct agent_wire *wire, uint32_t slot);

/* The flow could go there soon, and is not to be marked instead. */
bool agent_full_waits(const struct agent_at *at);
/* What the rule is to do that is asked for next. */
enum provider_deed agent_full_choose(const struct agent_at *at);
/* Can the NIC drop what comes of the direction by that port? */
bool agent_full_drops(
	struct agent *agent, unsigned port, struct flow_record *record, unsigned from);

/* Where the direction's deed says so: the rule was asked for; accepted; not accepted. */
void agent_full_begin(const struct agent_at *at);
void agent_full_accepted(const struct agent_at *at);
void agent_full_refused(const struct agent_at *at, const struct installer_answer *answer);
/* Its counter was read, or not. */
void agent_full_counted(const struct agent_at *at, const struct installer_answer *answer);
/* The rule is gone; before the direction is in software. */
void agent_full_removed(const struct agent_at *at, const struct installer_answer *answer);
/* The direction is in software: a report that waited for it can go. */
void agent_full_settle(const struct agent_at *at);
/* It was taken out by the audit. */
void agent_full_failed(const struct agent_at *at);

/* A packet of the flow was seen by software, and counted. */
void agent_full_saw(const struct agent_at *at, const struct packet_info *info);

/* The sweep's look at a rule of either kind, while its record lives. True: it was one of these, or leaves. */
bool agent_full_look(const struct agent_at *at);
/* The same of one that leaves. */
void agent_full_look_leaving(const struct agent_at *at);
/* Asks for its counter, if that is due. */
void agent_full_poll(const struct agent_at *at);

/* agent_full_often.c */

/* It is among those that are read often, if there is room, or will be: its counter is due in so many us. */
void agent_full_read_often(const struct agent_at *at, uint64_t us);
/* Every turn: counters that are read often. */
void agent_full_turn(struct agent *agent, unsigned wire);

/* Every turn: held reports that wait for room only. */
void agent_full_release(struct agent *agent, unsigned wire);
/* Does the slot still have a report of the flow that it was of? */
static inline bool agent_full_is_held(const struct agent_wire *wire, uint32_t slot)
{
	return wire->full != NULL && wire->full[slot].held;
}

/* The flow ended: is its report held back until the NIC has told the last packets? */
bool agent_full_hold(const struct agent_at *at, const struct flow_report *report);
