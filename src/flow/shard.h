/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A shard: one worker's table, records and wheels, and everything that happens to a flow in software:
 * learn, account, age, evict, end.
 *
 * Life of a record: flow_shard_learn() makes it, flow_shard_account() counts every packet and moves
 * the state, flow_shard_advance() lets time pass and ends what is idle, and every end leaves one
 * report, handed to the sink in batches. docs/flow-life.md tells the whole story.
 *
 * Three wheels, one per phase (new, open, closing): a record changes wheel when its phase changes,
 * so that eviction always knows an embryonic record from a closing one. A record that has been idle
 * for its timeout ends at the next tick of half a second (base/clock.h), however its packets were
 * spread over bursts and shards.
 *
 * Pure: no I/O, no thread, no clock of its own. Used by one worker only. The sink is called from
 * within learn, account, advance, flush and end_all, and must not call back.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/fragments.h"
#include "flow/measure.h"
#include "flow/record.h"
#include "flow/report.h"
#include "flow/table.h"
#include "flow/tcp_memory.h"
#include "flow/timeouts.h"
#include "flow/verdict.h"
#include "flow/wheel.h"
#include "packet/extract.h"

#define FLOW_SHARD_REPORTS 32
#define FLOW_SHARD_PACE 64
#define FLOW_SHARD_PATIENCE_S 2
#define FLOW_SHARD_REFILE 32

/* Takes a batch of reports. */
typedef void (*flow_sink_fn)(void *context, const struct flow_report *reports, unsigned n);

struct flow_shard_config {
	uint32_t capacity;		  /* flows: 1..FLOW_MAX_CAPACITY */
	const struct hash_secret *secret; /* outlives the shard */
	struct flow_timeouts timeouts;
	uint32_t active_s; /* report long flows every so many seconds; 0 = never */
	bool tcp_strict;   /* segments outside the window are to be dropped */
	/* a bit for each wire whose packets say by which of its ports they came: see flow/sides.h */
	uint16_t two_sided;
	bool stamped; /* packets have time stamps of their own, which records tell: see came */
	bool octets;  /* octets of IP packets are counted: flow_shard_excess() */
	bool measure; /* flows are measured (flow/measure.h) that `measures` says yes of, or all */
	/* asked once a flow, by its key; NULL: all */
	bool (*measures)(const void *context, const struct flow_key *key);
	const void *measures_context;
	bool paced; /* ends that come together are spread over calls: see advance */
	uint8_t worker;
	unsigned mapping; /* pages of the table: enum mapping_flag */
	flow_sink_fn sink;
	void *sink_context;
	/* who decides what is done with flows; its `decide` is NULL: all are forwarded */
	struct flow_policy policy;
	/* of a paced shard: how many reports the sink would find room for; NULL: any number */
	unsigned (*room)(void *sink_context);
};

/* All of one shard, from the start of the shard on; read by its worker, or when that stands still. */
struct flow_counters {
	uint64_t packets; /* accounted to records */
	uint64_t bytes;
	uint64_t learned;
	uint64_t ended[FLOW_N_ENDS]; /* reports by reason; "active" ones end nothing */
	uint64_t reported_packets;   /* sum over all reports */
	uint64_t reported_bytes;
	uint64_t dropped_packets; /* by verdicts: in no record's counters */
	uint64_t dropped_bytes;
	uint64_t tcp_odd; /* a SYN is taken back when it turns out to begin a conversation */
	uint64_t learned_by_proto[256];
};

struct flow_row;

struct flow_shard {
	struct flow_table table;
	struct wheel wheel[FLOW_N_PHASES];
	struct flow_shard_config config;
	uint64_t now_us; /* clock of the run */
	uint64_t
		waited_us; /* so long ago the packets that are handed in came; 0 but for those held back */
	uint64_t tick;	    /* ticks of it that were worked off, or begun */
	bool behind;	    /* the last one was not finished */
	uint32_t refile;    /* record that is to be filed anew next; FLOW_NONE: none is */
	uint64_t origin_us; /* Unix time of clock 0 */
	uint64_t stamp_us;  /* theirs, where packets have time stamps: see flow_shard_came() */
	struct flow_stamps *stamps;   /* of records, by position; NULL: packets have none */
	struct flow_excess *excess;   /* of records, by position; NULL: octets are not counted */
	struct flow_measure *measure; /* of records, by position; NULL: nothing is measured */
	int32_t packet_excess;	      /* of the packet that is accounted: flow_shard_excess() */
	/* what verdicts dropped, of records by position; NULL: nobody decides */
	struct flow_dropped *verdict_dropped;
	/* what rules made of flows, by position (flow/decide.h); NULL: there are none */
	struct flow_row *rows;
	bool decides; /* the policy has something to decide: flows are learned with a verdict */
	uint32_t run;
	struct flow_counters counters;
	struct tcp_memory memory;	     /* of TCP segments that wait for an answer */
	uint32_t wire_flows[FLOW_MAX_WIRES]; /* live ones */
	struct fragments
		*dropped; /* datagrams whose first fragment was dropped; NULL unless strict */
	unsigned n_reports;
	struct flow_report reports[FLOW_SHARD_REPORTS];
};

enum flow_account {
	FLOW_ACCOUNT_GO,
	FLOW_ACCOUNT_ONE_SIDED, /* counted, and to be sent on, but no answer: see flow/sides.h */
	/* outside the window while strict, or of such a segment's datagram: to be dropped, not counted */
	FLOW_ACCOUNT_TCP_ODD,
	/* by the flow's verdict: to be dropped; counted beside the record (flow/verdict.h) */
	FLOW_ACCOUNT_DROPPED,
};

/* How long ago that was by the shard's clock; for waited_us. */
static inline uint64_t flow_shard_since(const struct flow_shard *shard, uint64_t time_us)
{
	return shard->now_us > time_us ? shard->now_us - time_us : 0;
}

/*
 * The capacity of each of `n_shards` that are to take `flows` together. Keys fall on shards at random:
 * each is made for its part and eight standard deviations. One shard takes exactly what is asked.
 */
uint32_t flow_shard_part(uint32_t flows, unsigned n_shards);

/* Returns 0, -EINVAL or -ENOMEM. All memory is taken here. */
int flow_shard_create(struct flow_shard **shard, const struct flow_shard_config *config);
/* Accepts NULL. Live flows are not reported: see flow_shard_end_all(). */
void flow_shard_destroy(struct flow_shard *shard);
/* Bytes of memory taken: table, records, wheels. */
size_t flow_shard_memory(const struct flow_shard *shard);

/* Begins a run: the clock is 0 at `origin_us`. The shard must be empty. */
void flow_shard_begin(struct flow_shard *shard, uint64_t origin_us, uint32_t run);

/*
 * Lets the clock of the run go to `now_us`; it never goes back, and stops at 2^48 - 1. Ends every
 * flow whose time has come by whole ticks, and makes the active reports.
 *
 * A paced shard looks at no more than FLOW_SHARD_PACE records a call, and one for each microsecond that
 * has passed, so that a million flows that end in the same tick hold up no packet for long. For
 * FLOW_SHARD_PATIENCE_S seconds it also looks at no more than the reports that find room; after that
 * it goes on without asking, since flows have to end whoever reads of it. False when some are left that
 * the next call may do at once; a flow that gets a packet before its turn lives on.
 */
bool flow_shard_advance(struct flow_shard *shard, uint64_t now_us);

/*
 * Other time-outs, and another time between active reports, from now on. Live flows end by them, too: the calls of
 * flow_shard_advance() that follow file some of them anew each, FLOW_SHARD_REFILE at most, and return false until all are.
 */
void flow_shard_set_times(
	struct flow_shard *shard, const struct flow_timeouts *timeouts, uint32_t active_s);

/*
 * The packets that are accounted from here to the next advance came at `came_us` of the run's clock, which may be a
 * while ago, since some are held back before it is known what flow they are of. It ends nothing sooner or later but
 * their own flows, of which a packet may be the first, or the last, though it is not the first or last one accounted.
 *
 * With `stamped` what records tell is not the clock of the run, but each packet's own `stamp_us`, whatever that is: it
 * may go back and forth.
 */
static inline void flow_shard_came(struct flow_shard *shard, uint64_t came_us, uint64_t stamp_us)
{
	shard->waited_us = flow_shard_since(shard, came_us);
	shard->stamp_us = stamp_us;
}

/*
 * Where octets are counted: each packet that is accounted, or taken back, from here on has so much excess
 * (flow/octets.h). Packets that account_plain() or account_acting() counted are told one by one afterwards, as are the
 * first ones of a burst that was learned: flow_shard_add_excess().
 */
static inline void flow_shard_excess(struct flow_shard *shard, int32_t excess)
{
	shard->packet_excess = excess;
}

static inline void flow_shard_add_excess(
	struct flow_shard *shard, uint32_t position, unsigned from, int32_t excess)
{
	shard->excess[position].from[from] += excess;
}

/*
 * Begins a flow with its first packet and accounts it, evicting another flow when the table is full.
 * The key must not be in the table. Returns the record's position; flow_is_dropped() says whether the packet goes on.
 */
uint32_t flow_shard_learn(struct flow_shard *shard, const struct packet_info *info);

/* What is done with the first packet of a flow. */
struct flow_learned {
	uint16_t verdict; /* the packet's own, where its flow is decided by packet */
	uint32_t cause;	  /* of a dropped one, as in struct flow_decision */
};

/* The same, and tells what is done with the packet. */
uint32_t flow_shard_learn_packet(
	struct flow_shard *shard, const struct packet_info *info, struct flow_learned *learned);

/*
 * The same for `n` packets (at most FLOW_BURST) whose keys are all different, so that their cache misses
 * overlap. The table makes room for all of them before the first is learned. learned[i] becomes that
 * of packet i.
 */
void flow_shard_learn_burst(struct flow_shard *shard, const struct packet_info *const *infos,
	unsigned n, struct flow_learned *learned);

/*
 * Counts a further packet on its record and moves the flow's state. The position is that of the
 * packet's key and stays so, also when the packet begins a new conversation on it.
 */
enum flow_account flow_shard_account(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info);
/* The same of a packet that was decided by itself: see flow_is_by_packet(). */
enum flow_account flow_shard_account_packet(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet);

/* The answer of a flow to an ICMP error that quotes it. */
struct flow_quoted {
	bool known; /* there is such a flow, and the quoted TCP segment is one that its sender can have sent lately */
	bool related; /* and its conversation is let pass, so that the error may be, too */
	uint32_t
		answers; /* as in struct flow_packet_ct: the rule that replies in the conversation follow */
};

/* Raises icmp_errors of the flow that an ICMP error quotes, if it is known. */
struct flow_quoted flow_shard_quoted(struct flow_shard *shard, const struct packet_info *quoted);

/*
 * Asks the policy about a live flow once more, and tells its rules of all packets until now. True: its verdict is
 * another one now, which holds from the next packet on.
 */
bool flow_shard_decide(struct flow_shard *shard, uint32_t position);
/* The same of several, at most FLOW_DECIDE_BURST. Bit i: that of positions[i] is another one. */
uint32_t flow_shard_decide_burst(struct flow_shard *shard, const uint32_t *positions, unsigned n);

/* The state in its conversation of a packet that is decided by itself; NEW where no rule asks for states. */
struct flow_packet_ct flow_shard_ct(
	const struct flow_shard *shard, uint32_t position, const struct packet_info *info);

/* The conversation of a live flow, as it was decided; zeros where the policy does not care. */
struct flow_conversation flow_shard_conversation(const struct flow_shard *shard, uint32_t position);

/* What rules made of a live flow. */
struct flow_rules flow_shard_rules(const struct flow_shard *shard, uint32_t position);
/* Seconds of silence after which its rules end it, in place of its protocol's; 0: those. */
uint32_t flow_shard_age_s(const struct flow_shard *shard, uint32_t position);

/* What verdicts dropped of a live flow, and why; zeroed, without a cause, where they never did. */
static inline struct flow_dropped flow_shard_dropped(
	const struct flow_shard *shard, uint32_t position)
{
	if (!flow_table_record(&shard->table, position)->was_dropped)
		return (struct flow_dropped){.cause = FLOW_CAUSE_NONE};
	return shard->verdict_dropped[position];
}

/* Prefetches the row that flow_shard_dropped() reads; it may span two cache lines. */
static inline void flow_shard_fetch_dropped(const struct flow_shard *shard, uint32_t position)
{
	const struct flow_dropped *dropped = &shard->verdict_dropped[position];

	__builtin_prefetch(dropped, 1);
	__builtin_prefetch(&dropped->cause, 1);
}

/*
 * A packet that was just accounted, and counted as carried, is dropped by its rule after all: the record has it no more,
 * and what rules dropped of the flow has it instead.
 */
void flow_shard_uncount(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info);

/* Ends a flow at once, as `killed`. */
void flow_shard_kill(struct flow_shard *shard, uint32_t position);

/* Hands the reports that wait to the sink. */
void flow_shard_flush(struct flow_shard *shard);

/*
 * Ends every flow and flushes: `fin` or `rst` for those whose conversation is over and which only
 * waited for stragglers, `shutdown` for the others.
 */
void flow_shard_end_all(struct flow_shard *shard);

/* Adds every counter to the sum. */
void flow_counters_add(struct flow_counters *sum, const struct flow_counters *counters);

/* The record that would be evicted next; FLOW_NONE in an empty table. */
uint32_t flow_shard_victim(const struct flow_shard *shard);
