/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The plane: everything that packets pass on their way between live ports. It is made of lcores,
 * threads that hand packets to one another over rings: workers, and with split threads one for
 * receiving and one for sending. The plane makes them, starts and ends them, and asks them questions.
 *
 * An lcore answers between two bursts and never waits for whoever asks. All functions here belong to
 * one thread, control; none is called from an lcore.
 *
 * Life-cycle: plane_create() takes ports that are open, starts them, and makes shards and rings;
 * plane_start() starts the threads, packets flow; plane_stop(): no more is received, what is under way
 * goes out, every flow is reported with `shutdown`, threads end. Then the ports are closed, since they
 * hold packets of the plane's pools, and after that plane_destroy().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/topology.h"
#include "dataplane/drop_watch.h"
#include "dataplane/event.h"
#include "dataplane/punt.h"
#include "dataplane/snapshot.h"
#include "flow/shard.h"
#include "offload/agent.h"
#include "packet/simd.h"
#include "plane/reply.h"
#include "policy/policy.h"
#include "port/port.h"
#include "route/router.h"
#include "rule/blocks.h"
#include "rule/rules.h"

enum plane_threads {
	PLANE_RUN_TO_COMPLETION, /* workers receive and send themselves */
	PLANE_SPLIT,		 /* one thread receives, one sends, workers do the rest */
};

/* Who chooses a packet's worker: port/steer.h. */
enum plane_sharding {
	PLANE_SHARDING_AUTO, /* RSS where a port can, else software */
	PLANE_SHARDING_RSS,  /* RSS; it is an error where no port can */
	PLANE_SHARDING_SOFTWARE,
};

/* Capture files that rules may copy packets to. */
#define PLANE_MAX_CAPTURES 16

struct mailbox;		/* base/mailbox.h */
struct known;		/* offload/known.h */
struct next_hops;	/* action/next_hop.h */
struct policer_options; /* action/policer.h */
struct programs;	/* action/programs.h */

/* Whether and how NICs are given flows: docs/offload.md. */
struct plane_offload {
	bool on;
	bool paused;			/* plane_set() has turned it off, for the time being */
	bool off_port[PLANE_MAX_PORTS]; /* ports that are left out */
	uint32_t threshold; /* packets a second of one direction; 0: all flows, at once */
	uint32_t slots;	    /* flows of a wire that may be in a NIC; one for each worker at least */
	uint32_t rules;	    /* at each port, at most; 0: as many as it takes */
	/* made and taken away at each port, at most, one for each worker or more; 0: as many as it does */
	uint32_t rules_per_s;
	bool full;     /* where a NIC can, it forwards flows without the CPU */
	bool counters; /* NICs' counters are read and compared, where there are any */
	bool restart;  /* a port that does not answer may be stopped and started */
	bool drops;    /* rules that drop are given to NICs, where that changes nothing */
	/* what an earlier probe found out of a port's card; NULL: nothing is known. Outlives the plane */
	const struct known *known[PLANE_MAX_PORTS];
};

/* A domain that is a router (route/router.h). */
struct plane_router {
	char name[ROUTER_NAME_MAX];
	char taps[ROUTER_MAX_PORTS]
		 [16]; /* names of its ports' TAPs, by their places in the domain */
	uint32_t table;
	enum routes_source_check source_check;
	uint64_t max_routes[2]; /* of IPv4 and IPv6 */
	uint32_t n_hops;	/* next hops */
};

struct plane_config {
	struct topology topology;
	struct port *port[PLANE_MAX_PORTS]; /* by their numbers in the topology */
	unsigned n_workers;
	enum plane_threads threads;
	enum plane_sharding sharding;
	bool poll_always; /* never sleep, nor wait for packets to gather */
	bool pin;	  /* each thread to a processor of its own, as far as there are enough */
	uint32_t flows;	  /* of all workers together */
	bool tie_fragments;
	bool zone_vlan;
	bool tcp_strict;
	bool octets;  /* reports have octets of IP packets: flow/octets.h */
	bool measure; /* flows are measured (flow/measure.h): those that fit, or with NULL all */
	const struct block_match *measure_what; /* outlives it */
	bool one_armed; /* both ends of a flow may be on one side of a wire: flow/sides.h does not apply */
	uint32_t active_s;
	struct flow_timeouts timeouts;
	/*
	 * Action programs that flows may have as verdicts, and next hops that these may name, at most; 0: there are none
	 */
	uint32_t max_programs, max_next_hops;
	/* policers, which every worker has for itself, by their numbers; copied */
	const struct policer_options *policers;
	uint32_t n_policers;
	/* decides, on workers' threads, what no block drops; its `generation` NULL: see plane_policy_changed() */
	struct policy_others policy;
	/* routers, by their domains in the topology */
	struct plane_router routers[TOPOLOGY_MAX_DOMAINS];
	struct punt_rates punt_rates;
	/* rules (rule/rules.h), at most, which decide in place of `policy`; 0: there are none */
	uint32_t max_rules;
	bool replies_follow, no_pickup; /* as in struct rules_config */
	/* sets of addresses that these may name, and prefixes in all of them */
	uint32_t max_rule_sets, max_rule_prefixes;
	/* answers to rejected packets, and log lines, that all workers make in a second; 0: none */
	uint32_t reject_rate, log_rate;
	/* capture files that these may copy packets to, at most PLANE_MAX_CAPTURES */
	unsigned n_captures;
	/* entries of the list of blocks, and different reasons, at most; 0: there is no list */
	uint32_t max_blocks, max_block_reasons;
	struct plane_offload offload;
	unsigned mapping; /* pages of the tables: enum mapping_flag */
	/* takes reports; called from workers' threads, must not wait but at the end */
	flow_sink_fn sink;
	void *sink_context;
	/* packets no longer flow, and every flow is about to be reported; control's thread, may be NULL */
	void (*ending)(void *sink_context);
	/* how many reports of a worker would find room now; may be NULL: enough. Workers' threads */
	unsigned (*room)(void *sink_context, unsigned worker);
};

struct plane;

/* The settings that can change while packets flow; as in struct plane_config and struct plane_offload. */
struct plane_settings {
	struct flow_timeouts timeouts;
	uint32_t active_s;
	uint32_t reject_rate, log_rate;
	/* of a plane that was made with offload on; flows alone: rules that drop stay in NICs */
	bool offload_on;
	uint32_t threshold, rules, rules_per_s;
};

/* Everything of one moment: packets between two lcores are in `held` of their wire. */
struct plane_snapshot {
	uint64_t now_us; /* clock of the run */
	struct path_counters wires[FLOW_MAX_WIRES];
	uint32_t wire_flows[FLOW_MAX_WIRES];
	bool rss_fallen_back[PLANE_MAX_PORTS]; /* it is not trusted now, at least with some kind */
	uint64_t rss_fallbacks[PLANE_MAX_PORTS]; /* times that it lost trust */
	unsigned n_lcores;
	struct plane_lcore lcores[PLANE_MAX_WORKERS + 2];
};

/* After a failure too `*plane` is to be destroyed, ports first (NULL: nothing was made). */
int plane_create(struct plane **plane, const struct plane_config *config, struct error *error);
int plane_start(struct plane *plane, struct error *error);
void plane_stop(struct plane *plane);
/* Accepts NULL. Stops first if need be. */
void plane_destroy(struct plane *plane);

const struct plane_config *plane_config(const struct plane *plane);

/*
 * Other settings from now on. It cannot fail and waits for nobody: each worker takes them over between two bursts.
 * plane_config() tells them.
 */
void plane_set(struct plane *plane, const struct plane_settings *settings);
/* What walks and hashes are compiled for. */
enum simd_level plane_simd(const struct plane *plane);
/* Bytes of memory that flows have: tables and records. */
size_t plane_memory(const struct plane *plane);
/* Positions that a worker's records may have: 0 to one less. */
uint32_t plane_positions(const struct plane *plane, unsigned worker);
/* The pool that packets of the first port come from. */
struct rte_mempool *plane_pool(const struct plane *plane);
/*
 * Goes on with what is not ready at the start: flow hardware is tried by threads of its own, and used from the
 * call after that on. Several times a second, for as long as it runs: what could not be tried at first may be
 * later. True when nothing is left to do now, and nothing is expected soon.
 */
bool plane_tend(struct plane *plane);
/* There was no memory for what flows of a wire have in NICs: those of some worker, or all, stay in software. */
bool plane_has_no_slots(const struct plane *plane, unsigned wire);
/* How many flows of a wire may be in NICs: marks may have room for fewer than were wanted. */
uint32_t plane_n_slots(const struct plane *plane, unsigned wire);
/*
 * Keeps the run's clock with the system's; every second or so. Returns by how many microseconds the machine's clock was
 * set meanwhile, which changes plane_origin_us() and what records tell from now on: see tsc_clock_correct().
 */
int64_t plane_correct_clock(struct plane *plane);
/* Unix time in microseconds of the run's clock 0, and what the clock says now. */
uint64_t plane_origin_us(const struct plane *plane);
uint64_t plane_now_us(const struct plane *plane);

/*
 * From now on, until plane_stop(), whoever asks has others to serve: an lcore that does not answer is given up in a
 * fifth of a second, and at once as long as it has not answered what it was asked before. All questions below are
 * then to be asked again after -ETIMEDOUT.
 */
void plane_be_quick(struct plane *plane);

/*
 * A consistent picture, though no lcore stops for it: received = out + delivered + dropped + held
 * holds for every wire, to the packet. Returns 0, or -ETIMEDOUT when an lcore does not answer.
 */
int plane_snapshot(struct plane *plane, struct plane_snapshot *snapshot);

/*
 * The records at `position` (0: from the start) and after it. They never move, so a flow that is there
 * all the time is met once. A page may be empty though it is not the last. 0 or -ETIMEDOUT.
 */
int plane_page(struct plane *plane, unsigned worker, uint32_t position, struct plane_page *page);

/*
 * The router of a domain; NULL: it is none. What follows the kernel writes to it from one thread (route/router.h), from before
 * plane_start() until after plane_stop().
 */
struct router *plane_router(const struct plane *plane, unsigned domain);
/*
 * The rings between lcores and the host thread of a router, by its domain (dataplane/punt.h): plane_n_punt_lines() lines bring punts;
 * the one that takes frames which the kernel sends by a port is plane_punt_line_of(). Before plane_start() `event` of each may be
 * set. None without a router.
 */
unsigned plane_n_punt_lines(const struct plane *plane);
struct punt_line *plane_punt_line(const struct plane *plane, unsigned domain, unsigned number);
struct punt_line *plane_punt_line_of(const struct plane *plane, unsigned port);

/*
 * The list of blocks (rule/blocks.h); NULL: there is none. Control writes it, also before plane_start(). New flows are
 * decided by it at once, live ones are walked through, and all have the newest decision within a second of a change.
 */
struct blocks *plane_blocks(const struct plane *plane);
/* All workers have decided all live flows at this generation or a later one: for blocks_settled(). */
uint64_t plane_decided(const struct plane *plane);

/*
 * The rules (rule/rules.h); NULL: there are none. Control writes them, also before plane_start(), and gives them
 * plane_policy_decided() for rules_settled().
 */
struct rules *plane_rules(const struct plane *plane);

/*
 * Copies of packets for capture files that a worker has made, as rte_mbufs: `port` is the number of the file, `tx_offload` the
 * time by the clock of the run. Whoever writes the files takes them out and frees them, on a thread of its own, until after
 * plane_stop(). NULL: the configuration has no such files.
 */
struct mailbox *plane_copies(const struct plane *plane, unsigned worker);

/*
 * Rules that NICs do, too (docs/rules.md): control's. plane_nic_rules_tend() looks at what has changed, and asks NICs for
 * rules or to let them go; it is to be called after each change, and several times a second.
 */
void plane_nic_rules_tend(struct plane *plane);
/* NICs still have rules that are to go: what was changed since may not be in force yet where they drop. */
bool plane_nic_rules_leave(struct plane *plane);
/* How many these are, and of one of them the port and why it is there yet, where `size` is not 0. */
uint32_t plane_nic_rules_leaving(const struct plane *plane, char *why, size_t size);
/* Sums the counts of removed rules, in software and in NICs, also those of NICs that have not let them go yet. The plane has rules. */
void plane_rules_removed(const struct plane *plane, struct rules_removed *removed);
/* Something was put off: plane_nic_rules_tend() is to be called again in a millisecond. */
bool plane_nic_rules_busy(const struct plane *plane);
/* What NICs dropped by a rule in the place that it leaves, when `done`: all have let it go, and read its counter. */
struct plane_rule_last {
	bool done;
	bool uncounted_bytes;
	uint64_t packets, bytes;
};
/*
 * Before a rule is removed: `last` will be filled by plane_nic_rules_tend(), and is there until then, or is unwatched.
 * False: no NIC has the rule, and nothing is filled.
 */
bool plane_nic_rules_watch(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_last *last);
/* Only while it is not done. */
void plane_nic_rules_unwatch(
	struct plane *plane, const struct rules_view *rule, const struct plane_rule_last *last);
/* Asks NICs for counters; plane_nic_rules_told(): all have told, or those that have not are not waited for. */
void plane_nic_rules_ask(struct plane *plane);
bool plane_nic_rules_told(struct plane *plane);

enum plane_rule_place {
	PLANE_RULE_SOFTWARE,
	PLANE_RULE_NIC,	 /* in the NICs of all its ports */
	PLANE_RULE_BOTH, /* in those of some; or it is to leave them */
	PLANE_RULE_N_PLACES,
};

struct plane_rule_where {
	enum plane_rule_place where;
	char why[200];	      /* it is not in all NICs; "" where it is and nothing is to be said */
	bool uncounted;	      /* a NIC that has it tells no packets, */
	bool uncounted_bytes; /* or no bytes */
	uint64_t packets, bytes; /* that NICs dropped by it so far */
};
void plane_rule_where(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where);

/* The same of a rule that would be made: see rules_foresee(). Whether a NIC takes it is known when it is asked. */
void plane_rule_foresee(
	struct plane *plane, const struct rules_view *rule, struct plane_rule_where *where);

/* What verdicts of the configuration's policy may be, and what programs may name; NULL: there are none. Control's. */
struct programs *plane_programs(const struct plane *plane);
struct next_hops *plane_next_hops(const struct plane *plane);
/*
 * What the configuration's policy decides has changed: all flows are decided again. Returns a number; when
 * plane_policy_decided() has come to it, every flow was.
 */
uint64_t plane_policy_changed(struct plane *plane);
uint64_t plane_policy_decided(const struct plane *plane);
/* How many workers have come to it. */
unsigned plane_policy_workers(const struct plane *plane, uint64_t number);

/*
 * Ends the flow with this key, with the reason `killed`; tells its record, and the worker whose shard it was in. 0,
 * -ENOENT or -ETIMEDOUT.
 */
int plane_kill(struct plane *plane, const struct flow_key *key, unsigned *worker,
	struct flow_record *record);

/*
 * Events of flows (dataplane/event.h): off until somebody follows. plane_events() takes those that came
 * since, in each lcore's order, at most `max`; `lost` grows by what did not fit. Events of ports
 * (checksums, sharding) come always.
 */
int plane_follow(struct plane *plane, bool follow);
unsigned plane_events(struct plane *plane, struct path_event *events, unsigned max, uint64_t *lost);

/*
 * A sample of dropped packets (dataplane/drop_watch.h) as they are dropped, off until somebody wants it. `wanted`: its `parts`
 * are set here. plane_drops() takes those that came since, at most `max`; `left_out` grows by what was not taken, for each reason.
 */
int plane_watch_drops(struct plane *plane, const struct drop_wanted *wanted);
unsigned plane_drops(struct plane *plane, struct drop_sample *samples, unsigned max,
	uint64_t left_out[DROP_N_REASONS]);

/* ------------------------- offload: 0 or -ETIMEDOUT where nothing else is said */

/*
 * The live flow with this key and all that is known of it. -ENOENT: there is none; then `bar` says what it would need,
 * if it came, and `worker` whose it would be.
 */
int plane_flow(struct plane *plane, const struct flow_key *key, struct plane_flow *flow);

/* The installer of a port, for what any thread may ask of it; NULL: it has none. */
struct installer *plane_installer(const struct plane *plane, unsigned port);

/* The sum of all workers' counters of a port. */
int plane_offload_counters(struct plane *plane, unsigned port, struct agent_counters *counters);

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
