/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/policy.h"

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "flow/sides.h"

/*
 * One part in so many of a busy worker's time is for the walk: less than the twentieth that it may take, as the walk
 * takes lines of the caches, too.
 */
#define WALK_SHARE 24
/* Records that are looked at in an iteration that brought nothing. */
#define WALK_IDLE 512
/*
 * Cycles that may be due to the walk at most, or that it may owe: what it took is more than that only when the kernel
 * gave the processor to somebody else in between.
 */
#define CREDIT_MOST (1 << 16)

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

/* `known`: the ports that the flow was decided by are. */
static void finish_others(struct flow_decision *decision, bool known)
{
	decision->cause = FLOW_CAUSE_NONE;
	if (decision->by_port && !known) {
		/* each packet's port has to be looked at */
		decision->by_port = false;
		decision->verdict[0] = decision->verdict[1] = FLOW_VERDICT_BY_PACKET;
	}
}

static void decide_others(const struct policy *policy, const struct flow_record *record,
	struct flow_decision *decision)
{
	uint16_t port[2];
	const bool known = ports_of(policy->topology, record, port);

	policy->others.decide(policy->others.context, &record->key, port, decision);
	finish_others(decision, known);
}

/* True: a block says what is done with the flow. */
static bool decide_block(const struct policy *policy, const struct flow_record *record,
	struct flow_decision *decision)
{
	uint32_t position =
		policy->blocks == NULL ? BLOCKS_NONE : blocks_find(policy->blocks, &record->key);

	if (position == BLOCKS_NONE)
		return false;
	decision->verdict[0] = decision->verdict[1] = FLOW_VERDICT_DROP;
	decision->cause = position;
	/* a flow that is blocked is not one of its source's */
	if (decision->conversation.counted != 0)
		policy->others.leave(policy->others.context, &record->key,
			decision->conversation.initiator, decision->conversation.counted);
	decision->conversation.counted = 0;
	return true;
}

/* Routers choose the way of what is let pass. */
static void decide_way(const struct policy *policy, const struct flow_record *record,
	struct flow_decision *decision)
{
	const unsigned domain = flow_key_wire(&record->key);

	if (policy->others.routes != NULL && policy->others.routes[domain] != NULL)
		routes_decide(policy->others.routes[domain], &record->key, decision);
}

static void decide(void *context, const struct flow_record *record, struct flow_decision *decision)
{
	const struct policy *policy = context;

	if (decide_block(policy, record, decision))
		return;
	if (policy->others.decide != NULL)
		decide_others(policy, record, decision);
	decide_way(policy, record, decision);
}

/* What the rest of the policy says of those flows that `asked` has the numbers of. */
static void decide_others_burst(const struct policy *policy,
	const struct flow_record *const *records, struct flow_decision *decisions,
	const uint8_t *asked, unsigned n)
{
	const struct flow_key *keys[FLOW_DECIDE_BURST];
	uint16_t ports[FLOW_DECIDE_BURST][2];
	struct flow_decision said[FLOW_DECIDE_BURST];
	bool known[FLOW_DECIDE_BURST];

	if (n == 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		keys[i] = &records[asked[i]]->key;
		known[i] = ports_of(policy->topology, records[asked[i]], ports[i]);
		said[i] = decisions[asked[i]];
	}
	policy->others.decide_burst(policy->others.context, keys, ports, said, n);
	for (unsigned i = 0; i < n; i++) {
		finish_others(&said[i], known[i]);
		decisions[asked[i]] = said[i];
	}
}

static void decide_burst(void *context, const struct flow_record *const *records,
	struct flow_decision *decisions, unsigned n)
{
	const struct policy *policy = context;
	uint8_t asked[FLOW_DECIDE_BURST];
	unsigned n_asked = 0;

	for (unsigned i = 0; i < n; i++)
		if (!decide_block(policy, records[i], &decisions[i]))
			asked[n_asked++] = (uint8_t)i;
	if (policy->others.decide_burst != NULL)
		decide_others_burst(policy, records, decisions, asked, n_asked);
	else
		for (unsigned i = 0; policy->others.decide != NULL && i < n_asked; i++)
			decide_others(policy, records[asked[i]], &decisions[asked[i]]);
	for (unsigned i = 0; policy->others.routes != NULL && i < n_asked; i++)
		decide_way(policy, records[asked[i]], &decisions[asked[i]]);
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

static void see_rule(void *context, uint32_t rule, uint64_t last_us)
{
	const struct policy *policy = context;

	policy->others.seen(policy->others.context, policy->thread, rule, last_us);
}

static void leave(void *context, const struct flow_key *key, unsigned from, uint16_t counted)
{
	const struct policy *policy = context;

	policy->others.leave(policy->others.context, key, from, counted);
}

static struct flow_rule_told told_of_rule(void *context, uint32_t rule)
{
	const struct policy *policy = context;

	return policy->others.tell(policy->others.context, rule);
}

void policy_decide_packet(const struct policy *policy, const struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t port, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	policy_classify(policy, packet, info, port, ct, decision);
	if (likely(!decision->logs) || policy->log == NULL)
		return;
	policy->log(policy->log_context, &(const struct policy_logged){
						 .key = info != NULL ? &info->key : NULL,
						 .from = info != NULL ? info->from : 0,
						 .verdict = decision->verdict,
						 .port = port,
						 .rule = decision->rule,
						 .packet = true,
					 });
}

/* A flow has come to a rule. */
static void came(void *context, const struct flow_record *record, unsigned from, uint32_t rule)
{
	const struct policy *policy = context;
	uint16_t port[2];

	if (policy->log == NULL || !policy->others.logs(policy->others.context, rule))
		return;
	/* where it is not known by which port an end comes, it is known of a flow that begins */
	if (!ports_of(policy->topology, record, port) && policy->from != NULL)
		port[from] = policy->port;
	policy->log(policy->log_context, &(const struct policy_logged){
						 .key = &record->key,
						 .from = (uint8_t)from,
						 .verdict = record->verdict[from],
						 .port = port[from],
						 .rule = rule,
					 });
}

/* A packet that begins a flow, which is known by its info. */
static void classify_first(void *context, const struct packet_info *info, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	const struct policy *policy = context;

	policy_decide_packet(
		policy, policy->packet_of(policy->from, info), info, policy->port, ct, decision);
}

void policy_init(struct policy *policy, struct blocks *blocks, const struct policy_others *others,
	const struct topology *topology, struct rte_rcu_qsbr *qsbr, unsigned thread)
{
	*policy = (struct policy){
		.blocks = blocks, .others = *others, .topology = topology, .thread = thread};
	if (blocks == NULL && others->decide == NULL && others->routes == NULL)
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
		.decide_burst = decide_burst,
		.classify = policy->others.classify == NULL ? NULL : classify_first,
		.count = has_rules ? count_rule : NULL,
		.came = policy->others.logs == NULL ? NULL : came,
		.leave = policy->others.leave == NULL ? NULL : leave,
		.seen = policy->others.seen == NULL ? NULL : see_rule,
		.tell = policy->others.tell == NULL ? NULL : told_of_rule,
	};
}

bool policy_measures(const void *match, const struct flow_key *key)
{
	return block_match_fits(match, key);
}

/* The policy has changed: from here on new flows are decided by it, and the others in one more round. */
static void begin_round(struct policy *policy, struct flow_shard *shard, uint64_t blocks,
	uint64_t others, uint64_t routes)
{
	policy->last = (struct policy_round){
		.blocks = blocks,
		.others = others,
		.routes = routes,
		.until = policy->walked + flow_table_positions(&shard->table),
	};
	/* or nothing was walked since the round began that ends next: it is this one then */
	if (!policy->walks || policy->next.until == policy->last.until)
		policy->next = policy->last;
	policy->walks = true;
}

static void end_round(struct policy *policy)
{
	atomic_store_explicit(&policy->decided, policy->next.blocks, memory_order_release);
	atomic_store_explicit(&policy->decided_others, policy->next.others, memory_order_release);
	atomic_store_explicit(&policy->decided_routes, policy->next.routes, memory_order_release);
	policy->walks = policy->last.until != policy->next.until;
	policy->next = policy->last;
}

static uint64_t generation_of(const atomic_uint_fast64_t *generation)
{
	return generation == NULL ? 0 : atomic_load_explicit(generation, memory_order_acquire);
}

/* Has the policy changed since the last look? */
static void look(struct policy *policy, struct flow_shard *shard)
{
	uint64_t blocks = policy->blocks == NULL ? 0 : blocks_generation(policy->blocks);
	uint64_t others = generation_of(policy->others.generation);
	uint64_t routes = generation_of(policy->others.routes_generation);

	if (unlikely(blocks != policy->last.blocks || others != policy->last.others ||
		     routes != policy->last.routes))
		begin_round(policy, shard, blocks, others, routes);
	shard->decides =
		blocks > 1 || policy->others.decide != NULL || policy->others.routes != NULL;
}

void policy_begin(struct policy *policy, struct flow_shard *shard)
{
	if (policy->qsbr != NULL)
		look(policy, shard);
}

static void fetch_record(const struct flow_record *record)
{
	__builtin_prefetch(record, 1);
	__builtin_prefetch((const char *)record + 64, 1);
}

/* Goes on past at most `most` records, and not past the end of the round; those that are live. */
static unsigned gather(struct policy *policy, const struct flow_shard *shard, unsigned most,
	uint32_t positions[FLOW_DECIDE_BURST])
{
	const struct flow_table *table = &shard->table;
	const uint32_t ahead = flow_table_positions(table) - policy->position;
	unsigned n = 0;

	for (unsigned i = 0; i < RTE_MIN(most, ahead); i++)
		fetch_record(flow_table_record(table, policy->position + i));
	for (unsigned i = 0; i < most && policy->walked < policy->next.until; i++) {
		const uint32_t position = flow_table_touched(table, policy->position);

		if (position == FLOW_NONE) {
			policy->walked += flow_table_positions(table) - policy->position;
			policy->position = 0;
			continue;
		}
		policy->walked += position + 1 - policy->position;
		policy->position = position + 1;
		if (flow_table_record(table, position)->state != FLOW_FREE)
			positions[n++] = position;
	}
	return n;
}

/* Decides a burst of records, of at most `most`, and ends the round where it is over. */
static void walk(struct policy *policy, struct flow_shard *shard, unsigned most,
	policy_changed_fn changed, void *context)
{
	uint32_t positions[FLOW_DECIDE_BURST], dropped = 0;
	const unsigned n = gather(policy, shard, RTE_MIN(most, FLOW_DECIDE_BURST), positions);

	for (unsigned i = 0; i < n; i++)
		dropped |= (uint32_t)flow_is_blocked(flow_table_record(&shard->table, positions[i]))
			   << i;
	uint32_t left = flow_shard_decide_burst(shard, positions, n);

	for (; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctz(left);

		changed(context, positions[i], dropped >> i & 1);
	}
	if (policy->walked >= policy->next.until)
		end_round(policy);
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
	uint64_t now = begin;

	policy->credit = RTE_MIN(policy->credit + (int64_t)(passed / WALK_SHARE), CREDIT_MOST);
	if (idle) {
		for (unsigned i = 0; policy->walks && i < WALK_IDLE / FLOW_DECIDE_BURST; i++)
			walk(policy, shard, FLOW_DECIDE_BURST, changed, context);
		now = rte_rdtsc();
	}
	while (policy->walks && !idle && policy->credit > (int64_t)(now - begin)) {
		walk(policy, shard, FLOW_DECIDE_BURST, changed, context);
		now = rte_rdtsc();
	}
	if (!idle)
		policy->credit = RTE_MAX(policy->credit - (int64_t)(now - begin), -CREDIT_MOST);
	policy->begin_tsc = begin;
	policy->cycles += now - begin;
	return policy->walks;
}

uint64_t policy_walk_until(struct policy *policy, struct flow_shard *shard, uint64_t until_tsc,
	policy_changed_fn changed, void *context)
{
	uint64_t begin, now;

	if (likely(!policy->walks))
		return 0;
	begin = now = rte_rdtsc();
	/* a counter that begins anew ends it */
	while (policy->walks && now >= begin && now < until_tsc) {
		walk(policy, shard, FLOW_DECIDE_BURST, changed, context);
		now = rte_rdtsc();
	}
	if (now < begin)
		return 0;
	policy->cycles += now - begin;
	return now - begin;
}

uint64_t policy_decided(const struct policy *policy)
{
	return atomic_load_explicit(&policy->decided, memory_order_acquire);
}

uint64_t policy_decided_others(const struct policy *policy)
{
	return atomic_load_explicit(&policy->decided_others, memory_order_acquire);
}

uint64_t policy_decided_routes(const struct policy *policy)
{
	return atomic_load_explicit(&policy->decided_routes, memory_order_acquire);
}
