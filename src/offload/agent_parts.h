/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the agent's files share. Nobody else includes this. */

#include <string.h>

#include <rte_common.h>

#include "base/clock.h"
#include "offload/agent.h"

/* A packet without its mark is nothing yet, nor are two: so many in a row are. */
#define AGENT_UNMARKED 3
/* Of rules that were only accepted: what was in flight then has no mark. */
#define AGENT_UNSEEN 16
#define AGENT_UNSEEN_US 10000
/* So many packets that no rule can be expected to match are held against those that came with the mark. */
#define AGENT_UNPLAIN 64

/* An answer that takes longer is told, by the next look: within a second. */
#define AGENT_LATE_US 400000
#define AGENT_SECOND_US 1000000
/* Packets that a NIC may have counted and not yet handed over. */
#define AGENT_NIC_AHEAD 1024
/* The longest time that a flow waits for its next try. */
#define AGENT_MOST_WAIT_MS 60000

/* How old a counter's reading may be, where it is known that they are fresh, and where it is not. */
#define AGENT_FRESH_US 250000
#define AGENT_CACHED_US 1200000
/* Packets a second that bring something between two looks at a counter that is in doubt. */
#define AGENT_TELLING 100
/* Between these. */
#define AGENT_DOUBT_US 60000

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

/* Does the direction of the slot hold a rule at that port? */
static inline bool agent_holds_at(const struct slot *entry, unsigned from, unsigned port)
{
	return entry->direction[from].port == port &&
	       offload_state_holds((enum offload_state)entry->direction[from].state);
}

static inline unsigned agent_domain_of(const struct agent *agent, unsigned port)
{
	return agent->config.topology.domain[port];
}

/* Who holds a rule of that port, by rate: this worker's. */
static inline struct admission *agent_admission(const struct agent *agent, unsigned port)
{
	return &agent->wire[agent_domain_of(agent, port)]
			.admission[agent->config.topology.place[port]];
}

/*
 * Tells a flow at a position from the one that had it before. Of its key alone: all else changes while it lives, as its
 * start does with each active report.
 */
static inline uint32_t agent_tag(const struct flow_record *record)
{
	uint64_t word[sizeof(record->key) / sizeof(uint64_t)], tag = 0;

	memcpy(word, &record->key, sizeof(word));
	for (unsigned i = 0; i < RTE_DIM(word); i++)
		tag = (tag ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(tag >> 32);
}

/* The last change of a direction, whose state is that of `at->port` then; everything that changes a state goes through here. */
void agent_move(
	const struct agent_at *at, enum offload_state after, uint8_t reason, uint32_t detail);

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

/* agent_room.c */

/* Another rule would fit, as far as anybody knows: the port's, and the slots. */
bool agent_has_room(const struct agent *agent, unsigned port);
/* There is room for a flow of that rate, or somebody who gives way to it. */
bool agent_gets_in(struct agent *agent, unsigned port, uint32_t rate);
/* May one of those that wait be handed in? Else somebody is asked to leave for the busiest of them, if it deserves that. */
bool agent_make_room(struct agent *agent, unsigned port);
/* Where there are several workers: tells the others how it is here, and makes a place for a flow of another's. */
void agent_share(struct agent *agent, unsigned port);
/* The port took a rule, or had no room for it. */
void agent_took(struct agent *agent, unsigned port);
void agent_no_room(struct agent *agent, unsigned port);
/* The NIC refused to take the rule out, for the first time: others are not asked to leave for a while. */
void agent_stays(const struct agent_at *at);
/* The rate of a direction with a rule, and with that its rank, by what its record has counted until then. There is one. */
void agent_look_at_rate(const struct agent_at *at, uint64_t us);

/* All that wait in the queue stay in software, for this reason. */
void agent_send_home(struct agent *agent, unsigned port, uint8_t reason);

/*
 * The other direction has a rule at the port, or is on its way to one or back: a port has one rule of a flow, as both
 * have one mark there, and one place.
 */
bool agent_other_is_there(const struct agent_at *at);

/* Takes a rule out of the NIC: at once, or when what is awaited has come. */
void agent_leave(const struct agent_at *at, uint8_t reason);

/* The same since the audit says so: counted, told to the port's health, with a back-off. */
void agent_fall_out(const struct agent_at *at, uint8_t reason);

/* Most of its packets are none that a rule can be expected to match: it leaves, and is not asked for a minute. */
void agent_leave_unplain(const struct agent_at *at);

/* A rule of that direction did what it was to: its flow may be a canary. */
static inline void agent_remember_proven(const struct agent_at *at)
{
	/* a bit-field: through a word of its own */
	unsigned proven = at->record->nic_proven | 1u << at->from;

	at->record->nic_proven = proven & 3;
}

/* Asks for the delete of a rule that is leaving; again later when there is no room. */
void agent_remove(const struct agent_at *at);

/* The next try of that direction no earlier than after 0.1 s, doubled each time up to a minute. */
void agent_back_off(const struct agent_at *at);

/* The next try no earlier than after 0.1 s, however often that was so before: it has done nothing wrong. */
void agent_hold_down(const struct agent_at *at);

/* A flow without rules gives its slot away, or one whose record has gone. */
void agent_release(struct agent *agent, unsigned wire, uint32_t slot);

/* Packets of a direction that came marked, since it has its slot. */
uint64_t agent_marked_packets(const struct agent_at *at);

/* Requests that fit are handed to the installer; answers are taken. */
void agent_pump(struct agent *agent, unsigned port);
void agent_answers(struct agent *agent, unsigned port);

/* The counter of a rule is asked for. */
void agent_ask_count(const struct agent_at *at);
/* The counter of a rule is asked for in so many us; sooner than the sweep does, where there is room for that. */
void agent_count_soon(const struct agent_at *at, uint64_t us);

/* The sweep is to look at the slot when it comes to it: something of it changed, or is due earlier. */
static inline void agent_wake(const struct agent_at *at)
{
	at->agent->wire[at->domain].used[at->entry->next].rests_ms = 0;
}

/* agent_sweep.c: looks at some slots of each wire, all of them in half a second. */
void agent_sweep(struct agent *agent, uint64_t passed_us);
/* How often it looks at the rate of a rule of that state, where a wire has so many slots in use. */
uint64_t agent_look_us(uint32_t n_slots, uint32_t threshold, enum offload_state state);

/* What was told last then, 0 being never, is worth telling again. */
static inline bool agent_is_new(const struct agent *agent, uint64_t told_us)
{
	return told_us == 0 || agent->now_us - told_us >= AGENT_SECOND_US;
}

/* A change of the port's own. */
void agent_tell(struct agent *agent, unsigned port, enum change_kind kind, uint8_t reason);
