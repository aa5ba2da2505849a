/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How a worker comes to a decision about each of its flows, and keeps to the newest policy, which so far is the list of
 * blocks (rule/blocks.h). A flow is decided when it is learned. When the list has changed, the worker walks once
 * through all of its live flows and decides each again: some in every iteration, at a bounded share of its time.
 *
 * The walk goes round: a change that comes on the way is told to all flows by one more round from there on, not
 * from the beginning. So a flow has the newest decision at most one round after the last change.
 *
 * The worker's, but for policy_decided().
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/topology.h"
#include "flow/shard.h"
#include "route/routes.h"
#include "rule/blocks.h"

/* Generations of the list, the rest of the policy and the routes, and how far the walk has to come until all flows know them. */
struct policy_round {
	uint64_t blocks, others, routes;
	uint64_t until; /* of `walked` */
};

#define POLICY_NO_PORT UINT16_MAX

/*
 * Decides what no block drops. Called on workers' threads, which read under the RCU variable of the policy.
 *
 * Ports are the engine's numbers of them (base/topology.h). port[d] is the one that packets of the key's end d come in
 * by, or POLICY_NO_PORT: it is not known, as in domains of more than two ports.
 */
struct policy_others {
	void *context;
	/*
	 * NULL: all flows are forwarded. `decision` comes as plain forwarding, without a cause or rules, with what is known of
	 * the conversation
	 */
	void (*decide)(void *context, const struct flow_key *key, const uint16_t port[2],
		struct flow_decision *decision);
	/* the same of several flows, at most FLOW_DECIDE_BURST; NULL: `decide` is asked about each */
	void (*decide_burst)(void *context, const struct flow_key *const *keys,
		const uint16_t (*ports)[2], struct flow_decision *decisions, unsigned n);
	/*
	 * Decides one packet that came in by `port`, of a flow whose decision is by packet, or without a flow: then
	 * `info` is NULL, and `ct` says nothing. `decision` comes as plain forwarding without a rule. NULL: no decision is by
	 * packet
	 */
	void (*classify)(void *context, const struct rte_mbuf *packet,
		const struct packet_info *info, uint16_t port, struct flow_packet_ct ct,
		struct flow_packet_decision *decision);
	/*
	 * So many flows, packets and bytes more of a rule, never of FLOW_RULE_NONE: `flows` when a flow comes to the
	 * rule; the packets that were carried now and then, not one by one. NULL: nobody counts
	 */
	void (*count)(void *context, unsigned worker, uint32_t rule, uint64_t flows,
		uint64_t packets, uint64_t bytes);
	/* limits count a flow no more, as in flow/verdict.h; NULL: there are no limits */
	void (*leave)(void *context, const struct flow_key *key, unsigned from, uint16_t counted);
	/* a flow of a rule that ages flows had its last packet then (clock of the run); NULL: nobody wants to know */
	void (*seen)(void *context, unsigned worker, uint32_t rule, uint64_t last_us);
	/* whether what comes to a rule is told: see policy_log_fn; NULL: nothing is */
	bool (*logs)(void *context, uint32_t rule);
	/* what reports tell of a rule (flow/verdict.h); NULL: nothing */
	struct flow_rule_told (*tell)(void *context, uint32_t rule);
	/*
	 * Raised by whoever changes what is decided, after the change: then all flows are decided again. NULL: nothing
	 * changes. The plane has its own (plane_policy_changed())
	 */
	const atomic_uint_fast64_t *generation;
	/*
	 * By domain, those of routers: they decide the way of what is let pass. NULL: there are none. And the number that is raised when
	 * some have changed
	 */
	struct routes *const *routes;
	const atomic_uint_fast64_t *routes_generation;
};

/* The packet of an info, one of those that may begin flows or conversations just now; `from` as the worker gave it. */
typedef const struct rte_mbuf *(*policy_packet_fn)(
	const void *from, const struct packet_info *info);

/* A flow has come to a rule that logs, or one packet that was decided by itself. */
struct policy_logged {
	const struct flow_key *key; /* NULL: a packet without a flow */
	uint8_t from;		    /* the key's end that it comes from */
	uint16_t verdict;	    /* for what comes from there */
	uint16_t port;		    /* that it comes in by, or POLICY_NO_PORT */
	uint32_t rule;
	bool packet;
};
typedef void (*policy_log_fn)(void *context, const struct policy_logged *logged);

struct policy {
	/* set once */
	policy_log_fn log; /* NULL: nothing is told. Whoever makes the policy sets it */
	void *log_context;
	struct blocks *blocks; /* NULL: there is no list */
	struct blocks_count *counts;
	struct policy_others others;
	const struct topology *topology;
	struct rte_rcu_qsbr *qsbr; /* NULL: nobody decides */
	unsigned thread;	   /* of the RCU variable */
	/* the worker's */
	struct policy_round next, last; /* the one that ends next, and the last one begun */
	bool walks;
	uint32_t position;  /* of the record that is decided next */
	uint64_t walked;    /* positions so far, in all rounds */
	uint64_t begin_tsc; /* of the iteration before */
	uint64_t cycles;    /* that walks took */
	int64_t credit; /* cycles of the walk's share that are not used yet; less than 0: used before they were due */
	/* packets of which flows are learned, or that are accounted, and the port that they came in by */
	policy_packet_fn packet_of;
	const void *from;
	uint16_t port;
	struct flow_rule_count unmatched; /* what no rule fits */
	/* its own, read by control */
	atomic_uint_fast64_t decided, decided_others,
		decided_routes; /* generations of the last round that ended */
};

/* Told of a live flow that has another verdict now; `was_dropped`: the one before dropped packets. */
typedef void (*policy_changed_fn)(void *context, uint32_t position, bool was_dropped);

/*
 * Registers the worker with `qsbr` as `thread`. `blocks` may be NULL, so may the `decide` of `others`; with both,
 * nobody decides. `others` is copied; `topology` outlives the policy.
 */
void policy_init(struct policy *policy, struct blocks *blocks, const struct policy_others *others,
	const struct topology *topology, struct rte_rcu_qsbr *qsbr, unsigned thread);
/* What the shard's configuration needs: its `decide` is NULL where nobody decides. */
struct flow_policy policy_of_flows(struct policy *policy);

/* For struct flow_shard_config: does `match`, a struct block_match, fit the flow? */
bool policy_measures(const void *match, const struct flow_key *key);

/* Before the first iteration: from the first packet on flows are decided by what the list has already. */
void policy_begin(struct policy *policy, struct flow_shard *shard);

/*
 * Once an iteration: nothing of the policy is held any more. Walks on, if there is something to walk for; true while there
 * is. `idle`: the iteration brought nothing, so that there is time.
 */
bool policy_turn(struct policy *policy, struct flow_shard *shard, bool idle,
	policy_changed_fn changed, void *context);

/*
 * For time that the worker would wait: decides flows until then, if a round is under way. Returns the cycles that it took.
 */
uint64_t policy_walk_until(struct policy *policy, struct flow_shard *shard, uint64_t until_tsc,
	policy_changed_fn changed, void *context);

/* The worker has decided all its live flows at these generations or later ones. Any thread. */
uint64_t policy_decided(const struct policy *policy);
uint64_t policy_decided_others(const struct policy *policy);
uint64_t policy_decided_routes(const struct policy *policy);

/* Counts packets by the block that dropped them; FLOW_CAUSE_NONE: it is gone meanwhile. */
static inline void policy_count_cause(
	struct policy *policy, uint32_t cause, uint64_t packets, uint64_t bytes)
{
	if (cause != FLOW_CAUSE_NONE)
		blocks_count_packets(policy->counts, cause, packets, bytes);
}

/* The same of the record at that position. */
static inline void policy_count(struct policy *policy, const struct flow_shard *shard,
	uint32_t position, uint64_t packets, uint64_t bytes)
{
	policy_count_cause(policy, flow_shard_dropped(shard, position).cause, packets, bytes);
}

/*
 * Decides one packet, of a flow that is decided by packet, or with `info` NULL of none. The policy has a `classify`. The
 * packet is not counted: see policy_count_rule().
 */
static inline void policy_classify(const struct policy *policy, const struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t port, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	*decision = (struct flow_packet_decision){
		.verdict = FLOW_VERDICT_FORWARD, .rule = FLOW_RULE_NONE};
	policy->others.classify(policy->others.context, packet, info, port, ct, decision);
}

/* policy_classify(), and tells of the packet if its rule logs. */
void policy_decide_packet(const struct policy *policy, const struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t port, struct flow_packet_ct ct,
	struct flow_packet_decision *decision);

/* So much more of a rule, or of what has none. Flows' packets are counted by the shard. */
void policy_count_rule(
	struct policy *policy, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes);
