/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An lcore: one thread of the packet path. It receives from ports' queues, takes what other lcores
 * hand to it, walks packets through its shard, sends or hands on; whichever of these its kind is for.
 * A worker that runs to completion does all of them; with split threads one lcore receives, one
 * sends and the workers are between. dataplane/poll.h has what it does.
 *
 * The struct is filled by whoever makes the plane (plane/wiring.c); from the first iteration on it
 * belongs to the thread that polls, but for what is said to be control's.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/rate_limit.h"
#include "base/topology.h"
#include "base/tsc.h"
#include "dataplane/act.h"
#include "dataplane/burst.h"
#include "dataplane/counters.h"
#include "dataplane/drop_watch.h"
#include "dataplane/event.h"
#include "dataplane/parse.h"
#include "dataplane/punt.h"
#include "dataplane/ring.h"
#include "dataplane/snapshot.h"
#include "dataplane/stages.h"
#include "policy/policy.h"
#include "port/balance.h"
#include "port/port.h"
#include "port/steer.h"

struct agent;
struct agent_credit;
struct ask_slot;
struct pipeline;
struct settings_board;

/*
 * Packets that are asked of a queue at once where NICs mark them: their records are on their way as soon as they are
 * received, so fewer have to wait beside each other, and stay in the nearest cache until they are sent. A burst costs
 * as much as some five of its packets: fewer than these are dearer, too.
 */
#define LCORE_MARKED_BURST (LCORE_BURST * 3 / 4)
#define LCORE_MAX SNAPSHOT_MAX_RINGS

/* Frames looked at, of each port, for unfinished checksums. */
#define LCORE_CHECKSUMS 64

/* A queue that this lcore receives from. */
struct lcore_rx {
	const struct port *live;
	uint16_t port_id, queue;
	struct arrival from;
	bool careful;	/* frames are looked at: they may be cut, or for their checksums */
	uint32_t quiet; /* polls in a row that brought nothing */
	uint16_t checksums_to_look_at;
	uint16_t checksums_unfinished;
};

/* A port that packets leave by: through a queue of this lcore's, or handed to one that has it. */
struct lcore_tx {
	bool own;
	uint8_t via; /* the lcore that has it */
	uint16_t port_id, queue;
	unsigned n;
	struct rte_mbuf *packets[LCORE_BURST];
	const struct port *live;
	struct packet_tx *packet; /* of an own queue: its frames are followed; else NULL */
};

/*
 * What an lcore has of a worker: its shard, and what the pipeline counts beside it. Its counters may be read by others
 * while the lcore stands still.
 */
struct worker {
	/* set once */
	struct flow_shard *shard;
	unsigned number; /* of the shard */
	struct steer steer;
	struct agent *agent;   /* NULL: nothing is offloaded */
	struct policy *policy; /* NULL: all packets are forwarded */
	/* worker writes */
	uint32_t sampled;			       /* bursts that may have given a sample */
	bool follow;				       /* somebody wants the events of flows */
	struct path_counters counters[FLOW_MAX_WIRES]; /* all but what parser counts */
	struct stage_times stages;
	uint32_t runs_ended; /* END notes seen */
};

/*
 * A number below `below`, another for each sample: without a rhythm, which the order of packets, or of ports,
 * may have too.
 */
static inline unsigned worker_draw(const struct worker *worker, uint32_t below)
{
	const uint32_t golden = UINT32_C(0x9e3779b1);

	return (unsigned)((uint64_t)(worker->sampled * golden) * below >> 32);
}

struct lcore {
	/* set once */
	enum lcore_kind kind;
	unsigned number; /* among its kind */
	unsigned place;	 /* among all lcores */
	int cpu;	 /* -1: not pinned */
	bool poll_always;
	const struct tsc_clock *clock;
	const struct hash_secret *secret;
	bool zone_vlan, wire_is_link; /* struct extract_options */
	uint16_t burst; /* packets that are asked of a queue at once: LCORE_BURST at most */
	const struct topology *topology;
	unsigned n_ports;
	unsigned n_rx;
	struct lcore_rx rx[PLANE_MAX_PORTS];
	struct lcore_tx tx[PLANE_MAX_PORTS];
	unsigned n_lcores;
	uint8_t shard_lcore[PLANE_MAX_WORKERS]; /* the lcore of each shard */
	struct ring *to[LCORE_MAX];		/* NULL: nothing is handed there */
	struct ring *from[LCORE_MAX];
	struct parser *parser;	   /* of those that receive */
	struct pipeline *pipeline; /* of those that have a shard */
	struct policy policy;	   /* the worker's */
	struct act act;		   /* the worker's */
	struct punt punt;
	const struct router_port *router_ports; /* by their numbers; NULL: there is no router */
	struct worker worker;			/* its shard is NULL in lcores that have none */
	flow_sink_fn sink;
	unsigned (*room)(void *sink_context, unsigned worker); /* NULL: enough */
	void *sink_context;
	struct mailbox *events;	     /* struct path_event */
	struct mailbox *copies;	     /* the worker's, for capture files (plane_copies()); or NULL */
	struct balance_board *board; /* NULL: the lcore is no worker, or the only one */
	const _Atomic uint32_t *pause;	 /* a bit for each port that is to be left alone */
	struct settings_board *settings; /* NULL: they do not change */
	/* control's and the lcore's */
	struct ask_slot *ask; /* what control asks it: plane/ask.h */
	/* answers it, between two bursts; true when there was something */
	bool (*answer)(struct lcore *lcore);
	atomic_uint_fast64_t events_lost;
	uint64_t events_lost_told; /* control's */
	struct snapshot snapshot;
	pthread_t thread;
	bool started;
	_Atomic uint32_t paused_seen; /* the lcore is out of these ports */
	struct drop_watch drops;      /* what those want to see who follow drops: ASK_WATCH */
	/* the lcore's */
	struct rate_limit reject_limit,
		log_limit;	 /* its part of answers to rejected packets, and of log lines */
	uint32_t settings_taken; /* the sequence number of those that are heeded */
	uint16_t log_lost;	 /* lines since the last one, UINT16_MAX at most */
	uint32_t paused;
	uint32_t any_length; /* a bit for each port that frames may be too long for */
	uint32_t careful;    /* paused, or of any length */
	bool receiving;
	bool leaving;	/* the thread ends */
	bool busy;	/* the iteration brought something */
	bool more_wait; /* a queue or ring had a whole burst, and was left for the next iteration */
	uint64_t now_us;
	uint64_t iterations;
	uint32_t told[PATH_EVENT_N_KINDS];     /* of events that a port has once: a bit for each */
	uint64_t look_us;		       /* when what is looked at once a second is due */
	struct trust trust[PLANE_MAX_PORTS];   /* of each queue, as `rx` */
	uint64_t fallen_back[PLANE_MAX_PORTS]; /* times that trust in a kind was lost */
	struct balance balance;
	struct plane_port_counters ports[PLANE_MAX_PORTS];
	uint64_t bursts, idle_polls;
	uint64_t busy_cycles, idle_cycles, sleep_cycles;
} __attribute__((aligned(64)));

/* A packet ends here, which came over that wire, and is counted. */
static inline void lcore_drop_of(
	struct lcore *lcore, unsigned wire, struct rte_mbuf *packet, enum drop_reason reason)
{
	if (drop_watch_is_on(&lcore->drops))
		drop_watch_packet(&lcore->drops, wire, DROP_ANY_PORT, packet, NULL, reason);
	lcore->worker.counters[wire].dropped[reason]++;
	rte_pktmbuf_free(packet);
}

static inline void lcore_drop(struct lcore *lcore, struct rte_mbuf *packet, enum drop_reason reason)
{
	lcore_drop_of(lcore, packet_meta(packet)->wire, packet, reason);
}

/* Fills what every lcore needs, before anything else is set. */
void lcore_init(struct lcore *lcore, enum lcore_kind kind, unsigned number, unsigned place);

/* Sink of the lcore's shard: tells followers, and hands the reports to the plane's sink. */
void lcore_take_reports(void *lcore, const struct flow_report *reports, unsigned n);

/* For the agent: a report that it held back; and packets that the NIC forwarded alone. */
void lcore_take_held_report(void *lcore, const struct flow_report *report);
void lcore_credit(void *lcore, const struct agent_credit *credit);
uint64_t lcore_end_silent(void *lcore, uint32_t position);

/* For the policy: a live flow has another verdict from now on; the one before dropped packets or did not. */
void lcore_verdict_changed(void *lcore, uint32_t position, bool was_dropped);

/* For the policy: something has come to a rule that logs. */
void lcore_log(void *lcore, const struct policy_logged *logged);

/* Room for reports of the lcore's shard. */
unsigned lcore_room(void *lcore);

/* Makes an event of a port, or of a flow by its key. */
void lcore_event(struct lcore *lcore, struct path_event event);
/* A flow has begun, or come into another phase. */
void lcore_flow_event(
	struct lcore *lcore, enum path_event_kind kind, const struct flow_record *record);
/* The same of a port, the first time only. */
void lcore_event_once(struct lcore *lcore, enum path_event_kind kind, unsigned port);
