/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/policy.h"

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "dataplane/burst.h"
#include "flow/sides.h"

/*
 * One part in so many of a busy worker's time is for the walk: less than the twentieth that it may take, as the records
 * that an iteration decides at least go beyond that.
 */
#define WALK_SHARE 24
/* Records that are decided at least in an iteration, between two looks at the counter, and in an iteration that brought nothing. */
#define WALK_LEAST 8
#define WALK_IDLE 512

/* The ports that packets of a flow's ends come in by; false: they are not known. */
static bool ports_of(
	const struct topology *topology, const struct flow_record *record, uint16_t port[2])
{
	const unsigned domain = flow_key_wire(&record->key);
	const bool known = topology_is_wire(topology, domain);

	for (unsigned end = 0; end < 2; end++)
		port[end] = known ? (uint16_t)topology_port(
					    topology, domain, flow_sides_place(record, end))
				  : POLICY_NO_PORT;
	return known;
}

static void decide_others(const struct policy *policy, const struct flow_record *record,
	struct flow_decision *decision)
{
	uint16_t port[2];
	const bool known = ports_of(policy->topology, record, port);

	policy->others.decide(policy->others.context, &record->key, port, decision);
	decision->cause = FLOW_CAUSE_NONE;
	if (decision->by_port && !known) {
		/* each packet's port has to be looked at */
		decision->by_port = false;
		decision->verdict[0] = decision->verdict[1] = FLOW_VERDICT_BY_PACKET;
	}
}

static void decide(void *context, const struct flow_record *record, struct flow_decision *decision)
{
	const struct policy *policy = context;
	uint32_t position =
		policy->blocks == NULL ? BLOCKS_NONE : blocks_find(policy->blocks, &record->key);

	if (position != BLOCKS_NONE) {
		decision->verdict[0] = decision->verdict[1] = FLOW_VERDICT_DROP;
		decision->cause = position;
	} else if (policy->others.decide != NULL) {
		decide_others(policy, record, decision);
	}
}

void policy_count_rule(
	struct policy *policy, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes)
{
	const struct policy_others *others = &policy->others;

	if (rule == FLOW_RULE_NONE) {
		policy->unmatched.flows += flows;
		policy->unmatched.packets += packets;
		policy->unmatched.bytes += bytes;
	} else if (others->count != NULL) {
		others->count(others->context, policy->thread, rule, flows, packets, bytes);
	}
}

static void count_rule(
	void *context, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes)
{
	policy_count_rule(context, rule, flows, packets, bytes);
}

/* A packet that begins a flow, which is known by its info. */
static void classify_first(
	void *context, const struct packet_info *info, struct flow_packet_decision *decision)
{
	const struct policy *policy = context;
	struct burst *burst = policy->burst;
	uint64_t left = policy->unknown;

	while (burst_info(burst, (unsigned)__builtin_ctzll(left)) != info)
		left &= left - 1;
	policy_classify(
		policy, burst->packet[__builtin_ctzll(left)], info, burst->from.port, decision);
}

void policy_init(struct policy *policy, struct blocks *blocks, const struct policy_others *others,
	const struct topology *topology, struct rte_rcu_qsbr *qsbr, unsigned thread)
{
	*policy = (struct policy){
		.blocks = blocks, .others = *others, .topology = topology, .thread = thread};
	if (blocks == NULL && others->decide == NULL)
		return;
	policy->qsbr = qsbr;
	/* the first generation is that of an empty list, by which nothing has to be decided */
	policy->last.blocks = blocks != NULL;
	policy->next = policy->last;
	if (blocks != NULL)
		policy->counts = blocks_counts(blocks, thread);
	(void)rte_rcu_qsbr_thread_register(qsbr, thread);
	rte_rcu_qsbr_thread_online(qsbr, thread);
}

struct flow_policy policy_of_flows(struct policy *policy)
{
	if (policy->qsbr == NULL)
		return (struct flow_policy){0};
	const bool has_rules = policy->others.classify != NULL || policy->others.count != NULL;

	return (struct flow_policy){
		.context = policy,
		.decide = decide,
		.classify = policy->others.classify == NULL ? NULL : classify_first,
		.count = has_rules ? count_rule : NULL,
	};
}

/* The policy has changed: from here on new flows are decided by it, and the others in one more round. */
static void begin_round(
	struct policy *policy, struct flow_shard *shard, uint64_t blocks, uint64_t others)
{
	policy->last = (struct policy_round){
		.blocks = blocks,
		.others = others,
		.until = policy->walked + flow_table_positions(&shard->table),
	};
	if (!policy->walks)
		policy->next = policy->last;
	policy->walks = true;
}

static void end_round(struct policy *policy)
{
	atomic_store_explicit(&policy->decided, policy->next.blocks, memory_order_release);
	atomic_store_explicit(&policy->decided_others, policy->next.others, memory_order_release);
	policy->walks = policy->last.until != policy->next.until;
	policy->next = policy->last;
}

/* Has the policy changed since the last look? */
static void look(struct policy *policy, struct flow_shard *shard)
{
	uint64_t blocks = policy->blocks == NULL ? 0 : blocks_generation(policy->blocks);
	uint64_t others =
		policy->others.generation == NULL
			? 0
			: atomic_load_explicit(policy->others.generation, memory_order_acquire);

	if (unlikely(blocks != policy->last.blocks || others != policy->last.others))
		begin_round(policy, shard, blocks, others);
	shard->decides = blocks > 1 || policy->others.decide != NULL;
}

void policy_begin(struct policy *policy, struct flow_shard *shard)
{
	if (policy->qsbr != NULL)
		look(policy, shard);
}

static void decide_again(
	struct flow_shard *shard, uint32_t position, policy_changed_fn changed, void *context)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const bool was_dropped = flow_is_blocked(record);

	if (record->state != FLOW_FREE && flow_shard_decide(shard, position))
		changed(context, position, was_dropped);
}

/* Decides so many records, or up to the end of the round. */
static void walk(struct policy *policy, struct flow_shard *shard, unsigned n,
	policy_changed_fn changed, void *context)
{
	const struct flow_table *table = &shard->table;

	for (unsigned i = 0; i < n && policy->walks; i++) {
		const uint32_t position = flow_table_touched(table, policy->position);

		if (position == FLOW_NONE) {
			policy->walked += flow_table_positions(table) - policy->position;
			policy->position = 0;
		} else {
			policy->walked += position + 1 - policy->position;
			policy->position = position + 1;
			decide_again(shard, position, changed, context);
		}
		if (policy->walked >= policy->next.until)
			end_round(policy);
	}
}

bool policy_turn(struct policy *policy, struct flow_shard *shard, bool idle,
	policy_changed_fn changed, void *context)
{
	if (policy->qsbr == NULL)
		return false;
	rte_rcu_qsbr_quiescent(policy->qsbr, policy->thread);
	look(policy, shard);
	if (likely(!policy->walks)) {
		policy->begin_tsc = 0;
		return false;
	}

	const uint64_t begin = rte_rdtsc();
	const uint64_t passed = policy->begin_tsc == 0 ? 0 : begin - policy->begin_tsc;
	uint64_t now;

	do {
		walk(policy, shard, idle ? WALK_IDLE : WALK_LEAST, changed, context);
		now = rte_rdtsc();
	} while (policy->walks && !idle && now - begin < passed / WALK_SHARE);
	policy->begin_tsc = begin;
	policy->cycles += now - begin;
	return policy->walks;
}

uint64_t policy_decided(const struct policy *policy)
{
	return atomic_load_explicit(&policy->decided, memory_order_acquire);
}

uint64_t policy_decided_others(const struct policy *policy)
{
	return atomic_load_explicit(&policy->decided_others, memory_order_acquire);
}
