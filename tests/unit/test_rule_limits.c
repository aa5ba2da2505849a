/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of sources, with shards that learn and end flows by them: each packet's fate and each source's count are those of
 * a plain model, whatever becomes of flows and rules in between.
 */
#include "base/clock.h"
#include "flow/free.h"
#include "flow/shard.h"
#include "rule/rules_private.h"
#include "unit/rules_scene.h"

#define N_CLIENTS 12
#define N_SERVERS 3
#define N_PORTS 40
#define N_FLOWS (2 * N_CLIENTS * N_SERVERS * N_PORTS)
#define N_STEPS 120000
#define CAPACITY 220 /* less than there are flows: some are evicted */
#define N_LIMITS 3
#define IDLE_S 20
#define MAX_POLICIES 64

enum limit { LIVE_53, NEW_80, LIVE_ALL };

/* A flow as the model knows it. */
struct flow {
	struct packet_info info; /* of its client */
	unsigned client;
	bool accepted;
	unsigned initiator; /* 0: the client */
	unsigned learned;   /* who sent its first packet */
};

struct bucket {
	uint64_t tokens, at_us;
};

static struct {
	struct rules_scene scene;
	struct flow_shard *shard;
	struct rte_mbuf *mbuf;
	uint64_t now_us, random;
	struct flow flows[N_FLOWS];
	/* by source, clients first, then servers of IPv4 and IPv6 */
	struct bucket buckets[2 * (N_CLIENTS + N_SERVERS)];
	uint32_t above[N_LIMITS]; /* as the rules in force say */
	bool in_force;
	unsigned passed, dropped[N_LIMITS], ended;
} life;

static uint32_t draw(uint32_t below)
{
	life.random ^= life.random << 13;
	life.random ^= life.random >> 7;
	life.random ^= life.random << 17;
	return (uint32_t)(life.random >> 11) % below;
}

static void decide(void *context, const struct flow_record *record, struct flow_decision *decision)
{
	static const uint16_t ports[2] = {0, 1};

	(void)context;
	rules_decide(life.scene.rules, &record->key, ports, decision);
}

static void decide_burst(void *context, const struct flow_record *const *records,
	struct flow_decision *decisions, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		decide(context, records[i], &decisions[i]);
}

static void classify(void *context, const struct packet_info *info, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	(void)context;
	rules_classify(life.scene.rules, life.mbuf, info, 0, ct, decision);
}

static void count(void *context, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes)
{
	(void)context;
	if (rule != FLOW_RULE_NONE)
		rules_count_packets(life.scene.rules, 0, rule, flows, packets, bytes);
}

static void leave(void *context, const struct flow_key *key, unsigned from, uint16_t counted)
{
	(void)context;
	rules_leave(life.scene.rules, key, from, counted);
}

static void take(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	life.ended += n;
}

/* Clients of IPv6 have their own last bytes, and two of them share a /64. */
static void fill_flow(struct flow *flow, unsigned number)
{
	const unsigned version = number % 2 ? 6 : 4, client = number / 2 % N_CLIENTS;
	const unsigned server = number / (2 * N_CLIENTS) % N_SERVERS;
	const unsigned port = number / (2 * N_CLIENTS * N_SERVERS);
	struct flow_key *key = &flow->info.key;

	flow->client = client;
	key->version_wire = FLOW_KEY_VERSION_WIRE(version, 0);
	key->proto = PROTO_UDP;
	if (version == 4) {
		memcpy(key->addr[0], (const uint8_t[]){10, 0, 0, (uint8_t)client}, 4);
		memcpy(key->addr[1], (const uint8_t[]){10, 9, 0, (uint8_t)server}, 4);
	} else {
		memcpy(key->addr[0],
			(const uint8_t[16]){
				0x20, 1, [7] = (uint8_t)(client / 2), [15] = (uint8_t)client},
			16);
		memcpy(key->addr[1], (const uint8_t[16]){0x20, 2, [7] = (uint8_t)server, [15] = 1},
			16);
	}
	key->port[0] = rte_cpu_to_be_16((uint16_t)(2000 + port));
	key->port[1] = rte_cpu_to_be_16(server == 0 ? 53 : server == 1 ? 80 : 443);
	flow->info.hash = flow_key_hash(&test_secret, key);
	flow->info.bytes = 100;
}

static struct packet_info packet_of(const struct flow *flow, unsigned from)
{
	struct packet_info info = flow->info;

	info.from = from & 1;
	return info;
}

static uint32_t find(const struct flow *flow)
{
	return flow_table_find(&life.shard->table, &flow->info.key, flow->info.hash);
}

static unsigned server_of(const struct flow *flow)
{
	return (unsigned)(flow - life.flows) / (2 * N_CLIENTS) % N_SERVERS;
}

static bool is_v6(const struct flow *flow)
{
	return (flow - life.flows) % 2;
}

/* A number for the source that a limit counts. */
static unsigned source_of(const struct flow *flow, unsigned from, enum limit limit)
{
	const unsigned client =
		is_v6(flow) && limit == LIVE_ALL ? flow->client / 2 * 2 : flow->client;

	return 2 * (from == 0 ? client : N_CLIENTS + server_of(flow)) + is_v6(flow);
}

static bool asks(const struct flow *flow, unsigned from, enum limit limit)
{
	return limit == LIVE_ALL || (from == 0 && server_of(flow) == (limit == LIVE_53 ? 0u : 1u));
}

static unsigned live_of(unsigned source, enum limit limit)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_FLOWS; i++) {
		const struct flow *flow = &life.flows[i];

		n += flow->accepted && asks(flow, flow->initiator, limit) &&
		     source_of(flow, flow->initiator, limit) == source;
	}
	return n;
}

/* Flows that are not in the table any more have ended. */
static void forget_ended(void)
{
	for (unsigned i = 0; i < N_FLOWS; i++)
		if (life.flows[i].accepted && find(&life.flows[i]) == FLOW_NONE)
			life.flows[i].accepted = false;
}

static bool take_token(struct bucket *bucket)
{
	const uint64_t worth = CLOCK_US_PER_S / life.above[NEW_80];
	const uint64_t most = CLOCK_US_PER_S;

	bucket->tokens = RTE_MIN(most, bucket->tokens + life.now_us - bucket->at_us);
	bucket->at_us = life.now_us;
	if (bucket->tokens < worth)
		return false;
	bucket->tokens -= worth;
	return true;
}

/* Do the rules, in their order, let a packet pass that may begin the flow? */
static bool passes(const struct flow *flow, unsigned from)
{
	for (unsigned limit = 0; life.in_force && limit < N_LIMITS; limit++) {
		const unsigned source = source_of(flow, from, limit);

		if (!asks(flow, from, limit))
			continue;
		if (limit == NEW_80 ? take_token(&life.buckets[source])
				    : live_of(source, limit) < life.above[limit])
			continue;
		life.dropped[limit]++;
		return false;
	}
	life.passed++;
	return true;
}

static void send_packet(struct flow *flow, unsigned from)
{
	const struct packet_info info = packet_of(flow, from);
	uint32_t position = find(flow);
	enum flow_account account;

	if (position == FLOW_NONE) {
		position = flow_shard_learn(life.shard, &info);
		flow->learned = from;
		/* one may have been evicted for it */
		forget_ended();
		account = flow_shard_conversation(life.shard, position).accepted
				  ? FLOW_ACCOUNT_GO
				  : FLOW_ACCOUNT_DROPPED;
		if (!life.in_force)
			account = FLOW_ACCOUNT_GO;
	} else if (flow_is_by_packet(flow_table_record(&life.shard->table, position), &info)) {
		struct flow_packet_decision packet = {.rule = FLOW_RULE_NONE};

		classify(NULL, &info, flow_shard_ct(life.shard, position, &info), &packet);
		account = flow_shard_account_packet(life.shard, position, &info, &packet);
	} else {
		account = flow_shard_account(life.shard, position, &info);
	}
	const bool passed = flow->accepted || passes(flow, from);

	assert_int_equal(account == FLOW_ACCOUNT_GO, passed);
	/* without rules nobody looks who begins the conversation of a record that is there */
	if (!flow->accepted)
		flow->initiator = life.in_force ? from : flow->learned;
	flow->accepted = passed;
}

static void load(const char *text)
{
	struct rules_change change;
	struct rules_list *list;
	struct error error;

	scene_settle(&life.scene);
	assert_int_equal(rules_list_create(life.scene.rules, &list), 0);
	assert_int_equal(rules_list_read(life.scene.rules, list, "rules", text, strlen(text), NULL,
				 NULL, &error),
		0);
	assert_int_equal(rules_replace(life.scene.rules, list, &change, &error), 0);
}

static void decide_all(void)
{
	uint32_t positions[FLOW_DECIDE_BURST];
	unsigned n = 0;

	for (uint32_t i = 0; i < flow_table_positions(&life.shard->table); i++) {
		if (flow_table_touched(&life.shard->table, i) != i ||
			flow_table_record(&life.shard->table, i)->state == FLOW_FREE)
			continue;
		positions[n++] = i;
		if (n < FLOW_DECIDE_BURST)
			continue;
		(void)flow_shard_decide_burst(life.shard, positions, n);
		n = 0;
	}
	(void)flow_shard_decide_burst(life.shard, positions, n);
}

/* Puts rules in force; all live flows are decided again. */
static void change_to(const char *text)
{
	load(text);
	/* no worker uses the list before */
	rules_settled(life.scene.rules, 0);
	decide_all();
	scene_settle(&life.scene);
}

/* Other numbers, the same ones, or no rules for a while. */
static void change_rules(void)
{
	const bool empties = draw(2) == 0;
	const uint32_t rate = life.above[NEW_80];
	bool fresh = empties || !life.in_force;
	char text[1024] = "";

	life.in_force = draw(4) != 0;
	for (unsigned limit = 0; limit < N_LIMITS && draw(3) != 0; limit++)
		life.above[limit] = limit == NEW_80 ? 1u << draw(4) : 2 + draw(9);
	if (life.in_force)
		snprintf(text, sizeof(text),
			"flow create 0 transfer pattern udp dst is 53 / source live_flows above %u "
			"/ "
			"end actions drop / end\n"
			"flow create 0 transfer pattern udp dst is 80 / source new_flows above %u "
			"per "
			"second burst %u / end actions drop / end\n"
			"flow create 0 transfer pattern source live_flows above %u ipv6_prefix 64 "
			"/ end "
			"actions drop / end\n",
			life.above[LIVE_53], life.above[NEW_80], life.above[NEW_80],
			life.above[LIVE_ALL]);
	if (empties)
		change_to("");
	change_to(text);
	/* a rule with the same words keeps what it knows of new flows */
	fresh = fresh || life.above[NEW_80] != rate || !life.in_force;
	for (unsigned i = 0; fresh && i < RTE_DIM(life.buckets); i++)
		life.buckets[i] = (struct bucket){CLOCK_US_PER_S, life.now_us};
}

static const struct rules_limit *limit_in_force(enum limit limit)
{
	for (unsigned i = 0; i < RULES_MAX_LIVE; i++) {
		const struct rules_limit *found = &life.scene.rules->limits[i];

		if (found->used && found->above == life.above[limit] &&
			!life.scene.rules->slots[found->slot].gone &&
			(found->mask6[2] == 0) == (limit == LIVE_ALL))
			return found;
	}
	return NULL;
}

/* The table of sources counts what the model counts. */
static void check_counts(void)
{
	const enum limit limits[] = {LIVE_53, LIVE_ALL};

	for (unsigned i = 0; life.in_force && i < RTE_DIM(limits); i++) {
		const struct rules_limit *limit = limit_in_force(limits[i]);

		assert_non_null(limit);
		for (unsigned f = 0; f < 2 * N_CLIENTS * N_SERVERS; f++)
			for (unsigned from = 0; from < 2; from++) {
				const struct flow *flow = &life.flows[f];
				struct sources_key key = {
					.limit = limit->serial, .version = is_v6(flow) ? 6 : 4};

				if (!asks(flow, from, limits[i]))
					continue;
				for (unsigned word = 0; word < 4; word++)
					key.addr[word] =
						load_be32(flow->info.key.addr[from] + 4 * word) &
						(is_v6(flow) ? limit->mask6[word] : UINT32_MAX);
				assert_int_equal(sources_live(life.scene.rules->sources, &key),
					live_of(source_of(flow, from, limits[i]), limits[i]));
			}
	}
}

static void begin(void)
{
	static struct frame frame;
	struct flow_shard_config config = {
		.capacity = CAPACITY,
		.secret = &test_secret,
		.sink = take,
		.policy = {.decide = decide,
			.decide_burst = decide_burst,
			.classify = classify,
			.count = count,
			.leave = leave},
	};

	memset(&life, 0, sizeof(life));
	life.random = 99;
	life.now_us = CLOCK_US_PER_S;
	scene_open(&life.scene, 16, false);
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		config.timeouts.seconds[i] = IDLE_S;
	assert_int_equal(flow_shard_create(&life.shard, &config), 0);
	(void)flow_shard_advance(life.shard, life.now_us);
	for (unsigned i = 0; i < N_FLOWS; i++)
		fill_flow(&life.flows[i], i);
	for (unsigned limit = 0; limit < N_LIMITS; limit++)
		life.above[limit] = 4;
	frame_start(&frame);
	frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", PROTO_UDP);
	frame_udp(&frame, 1, 2);
	frame_finish(&frame);
	life.mbuf = frame_mbuf(frame.bytes, frame.length);
}

static void end(void)
{
	struct rules_sources sources;

	for (unsigned i = 0; i < N_FLOWS; i++)
		if (find(&life.flows[i]) != FLOW_NONE)
			flow_shard_kill(life.shard, find(&life.flows[i]));
	rules_tell_time(life.scene.rules, life.now_us + 10 * CLOCK_US_PER_S);
	rules_sources(life.scene.rules, &sources);
	assert_int_equal(sources.used, 0);
	assert_int_equal(sources.full, 0);
	flow_shard_destroy(life.shard);
	frame_mbuf_free(life.mbuf);
	scene_close(&life.scene);
}

static void fates_are_those_of_a_model(void **state)
{
	(void)state;
	begin();
	change_rules();
	for (unsigned step = 0; step < N_STEPS; step++) {
		struct flow *flow = &life.flows[draw(N_FLOWS)];
		const uint32_t what = draw(1000);

		if (what < 960) {
			send_packet(flow, draw(8) == 0);
		} else if (what < 970 && find(flow) != FLOW_NONE) {
			flow_shard_kill(life.shard, find(flow));
			forget_ended();
		} else if (what < 998) {
			life.now_us += draw(CLOCK_US_PER_S / 4);
			(void)flow_shard_advance(life.shard, life.now_us);
			forget_ended();
		} else if (draw(4) == 0) {
			change_rules();
		}
		if (step % 512 == 0 || what >= 998)
			check_counts();
	}
	check_counts();
	for (unsigned limit = 0; limit < N_LIMITS; limit++)
		assert_true(life.dropped[limit] > 100);
	assert_true(life.passed > 1000 && life.ended > 1000);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fates_are_those_of_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
