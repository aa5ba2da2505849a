/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The state machine of one direction of a flow, and its slot: for the agent's files only. Policies look at a direction
 * and emit events; the table in agent_state.c says what state and reason follow, and what is done about it. Nothing else
 * changes a state, a reason, or the time since when they are what they are.
 */

#include <string.h>

#include <rte_common.h>

#include "base/clock.h"
#include "offload/agent.h"

#define AGENT_SECOND_US UINT64_C(1000000)
/* The longest time that a flow waits for its next try. */
#define AGENT_MOST_WAIT_MS 60000

enum agent_event {
	/* admission */
	EVENT_WANTED,	 /* it is asked for: `reason` */
	EVENT_DISPLACED, /* busier flows have its place in the queue */
	EVENT_OUTRANKED, /* busier flows have the port's rules, or one is to have this one's */
	EVENT_NO_SLOT,
	EVENT_HANDED_IN, /* to the installer */
	/* answers of the installer */
	EVENT_ACCEPTED,
	EVENT_REFUSED, /* by the NIC: `reason` */
	EVENT_UNABLE,  /* by a NIC that has no such rules: `reason` */
	EVENT_PUT_OFF, /* by the installer, which did not ask the NIC: `reason` */
	EVENT_NOT_TAKEN, /* others have the rules that may be asked for, or the flow has gone: `reason` */
	EVENT_REMOVED,
	EVENT_KEPT, /* the delete failed */
	/* audit, and counters that are held against the packets */
	EVENT_PROVEN,
	EVENT_MISSED, /* a packet did not come as the rule has it: `reason` */
	EVENT_FAILED, /* so it was with several, or with the counter: `reason` */
	EVENT_UNPLAIN,
	EVENT_PLAIN,
	EVENT_BREAKER,
	/* the operator */
	EVENT_OFF,
	/* full offload */
	EVENT_UNREAD, /* its counter could not be read for long */
	EVENT_MUTE,   /* its counter does not move */
	EVENT_CLOSING,
	EVENT_PROMOTED,
	EVENT_DECIDED,
	/* the flow */
	EVENT_SLOWED,
	EVENT_ENDED,
	AGENT_N_EVENTS,
};

/* One direction of a flow. */
struct agent_at {
	struct agent *agent;
	unsigned domain;
	unsigned port; /* whose state it is */
	uint8_t from;  /* the key's end that the direction comes from */
	uint32_t slot;
	struct slot *entry; /* NULL: the flow has none */
	struct slot_direction *direction;
	struct flow_record *record; /* NULL: it has gone */
};

/* A direction of a slot, with the port of its rule or of its last one, and the record. */
struct agent_at agent_at_slot(struct agent *agent, unsigned domain, uint32_t slot, unsigned from);
/* A direction of a record, with its slot if it has one. */
struct agent_at agent_at_record(struct agent *agent, struct flow_record *record, unsigned from);
/* The same at a port where it has no rule: it waits for one there, or was to. */
struct agent_at agent_at_port(
	struct agent *agent, unsigned port, struct flow_record *record, unsigned from);

/*
 * The event happened to the direction, whose state is that of `at->port` then. Where the table has no line for it in
 * this state, nothing follows. `detail` as in struct offload_change.
 */
void agent_event(
	const struct agent_at *at, enum agent_event event, uint8_t reason, uint32_t detail);

/* Asks for the delete of a rule that is leaving; again later when there is no room. */
void agent_remove(const struct agent_at *at);
/* The slot is looked at then, or earlier. */
void agent_due(const struct agent_at *at, uint64_t at_us);
/* A change of the port's own. */
void agent_tell(struct agent *agent, unsigned port, enum change_kind kind, uint8_t reason);

/* A slot for the flow, if it has none; false: none is free. */
bool agent_give_slot(struct agent *agent, struct flow_record *record, uint32_t position);
/* True: the slot was given back, as its record has gone, or others need it; no rule of it is there. */
bool agent_release(struct agent *agent, unsigned wire, uint32_t slot);

/* Packets of a direction that came marked, since it has its slot; `record` may be a copy, or NULL. */
uint64_t agent_marked_packets(
	const struct slot_direction *direction, const struct flow_record *record, unsigned from);

/* The slot's entry of a record or of its copy; NULL: it has none any more. */
static inline struct slot *agent_slot_of(
	const struct agent *agent, const struct flow_record *record)
{
	const struct slots *slots = &agent->wire[flow_key_wire(&record->key)].slots;

	if (!offload_has_slot(record) || record->slot >= slots->n)
		return NULL;
	struct slot *entry = slots_slot(slots, record->slot);

	return flow_key_equal(&entry->key, &record->key) ? entry : NULL;
}

/*
 * A slot is looked at so often where nothing else is due: late answers, deletes that are asked again, slots that others
 * need; and more often where a rule may be of a flow whose silence only its counter shows.
 */
static inline uint64_t agent_rest_us(const struct agent *agent)
{
	return agent->config.full ? AGENT_SECOND_US / 4 : AGENT_SECOND_US / 2;
}

static inline bool agent_is_full(const struct slot_direction *direction)
{
	return direction->deed != PROVIDER_MARKS;
}

/* In the NIC by its word, whether packets prove it or not. */
static inline bool agent_is_in_hw(const struct slot_direction *direction)
{
	return direction->state >= OFFLOAD_SUSPECT;
}

static inline bool agent_holds(const struct slot_direction *direction)
{
	return offload_state_holds((enum offload_state)direction->state);
}

static inline struct flow_record *agent_record_at(const struct agent *agent, uint32_t position)
{
	return flow_table_record(agent->config.table, position);
}

/*
 * Packets of a direction so far: carried, or, where its verdict drops them, dropped; these are counted for both
 * directions together.
 */
static inline uint64_t agent_packets(
	const struct agent *agent, const struct flow_record *record, unsigned from)
{
	if (flow_is_dropped(record, from))
		return agent->config.dropped[record - agent->config.table->records].packets;
	return flow_packets(record, from);
}

static inline unsigned agent_domain_of(const struct agent *agent, unsigned port)
{
	return agent->config.topology.domain[port];
}

/* This worker's flows that hold a rule of that port, by rate. */
static inline struct admission *agent_admission(const struct agent *agent, unsigned port)
{
	return &agent->wire[agent_domain_of(agent, port)]
			.admission[agent->config.topology.place[port]];
}

static inline struct health *agent_health(const struct agent *agent, unsigned port)
{
	return installer_health(agent->port[port].installer);
}

static inline struct health_worker *agent_health_worker(const struct agent_at *at)
{
	return &agent_health(at->agent, at->port)->worker[at->agent->config.worker];
}

/* It is about to end, and little is to come. Not where all flows are wanted. */
static inline bool agent_is_closing(const struct agent *agent, const struct flow_record *record)
{
	return agent->config.threshold > 0 &&
	       flow_phase((enum flow_state)record->state) == FLOW_PHASE_CLOSING;
}

/* A SYN, FIN or RST: rules of full offload leave them out, and some NICs match them by no rule that has no flags. */
static inline bool agent_opens_or_closes(const struct packet_info *info)
{
	return info->flags & PACKET_TCP && info->tcp.flags & (TCP_SYN | TCP_FIN | TCP_RST);
}

/* A rule of that direction did what it was to: its flow may be a canary. */
static inline void agent_remember_proven(const struct agent_at *at)
{
	/* a bit-field: through a word of its own */
	unsigned proven = at->record->nic_proven | 1u << at->from;

	at->record->nic_proven = proven & 3;
}

/* Has it been told long ago, or never (0)? Then it is worth telling again, and the time is noted. */
static inline bool agent_tells_again(const struct agent *agent, uint64_t *told_us)
{
	if (*told_us != 0 && agent->now_us - *told_us < AGENT_SECOND_US)
		return false;
	*told_us = agent->now_us;
	return true;
}
