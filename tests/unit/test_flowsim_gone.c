/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams that the NIC keeps for a part of a round: as large a part of their packets is the NIC's, by the rule's
 * counter and the port's, the rest is the host's, and not one is both or neither.
 */
#include "flowsim_port.h"

#include <stdlib.h>

#define N_STREAMS 64
#define N_PLACES 65536 /* of Zipf's load */
#define PASSES 6

#define N_ALIKE 1024 /* streams of a place each */
#define N_GONE 512

struct scene {
	struct nic nic;
	struct tuple tuple; /* of the stream with the most places */
	uint64_t places;
	uint64_t received, dropped;
	struct rte_flow *rule;
};

static uint64_t xstat(const struct scene *scene, const char *name)
{
	uint64_t id, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(scene->nic.id, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(scene->nic.id, &id, &value, 1), 1);
	return value;
}

/* Packets that the host receives; returns how many of them are the stream's. */
static uint64_t take(struct scene *scene, uint64_t n)
{
	struct taken taken;

	nic_take(&scene->nic, 0, n, 0, &scene->tuple, &taken);
	scene->received += taken.tuple;
	return taken.tuple;
}

static struct rte_flow *drop(const struct scene *scene, const struct tuple *tuple)
{
	static const struct rte_flow_attr ingress = {.ingress = 1};
	static const struct rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;
	struct tuple_items items;
	struct rte_flow *rule = rte_flow_create(
		scene->nic.id, &ingress, tuple_items(&items, tuple), actions, &error);

	assert_non_null(rule);
	return rule;
}

static uint64_t hits(const struct scene *scene, struct rte_flow *rule)
{
	static const struct rte_flow_action action[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;

	assert_int_equal(rte_flow_query(scene->nic.id, rule, action, &count, &error), 0);
	return count.hits;
}

/* Returns how many packets the NIC kept. */
static uint64_t let_go(struct scene *scene, struct rte_flow *rule)
{
	struct rte_flow_error error;
	uint64_t kept = hits(scene, rule);

	assert_int_equal(rte_flow_destroy(scene->nic.id, rule, &error), 0);
	scene->dropped += kept;
	assert_int_equal(xstat(scene, "rx_rule_dropped_packets"), scene->dropped);
	return kept;
}

/* The first round: who has the most places. */
static void learn(struct scene *scene)
{
	struct tuple tuples[N_STREAMS];
	uint64_t places[N_STREAMS] = {0};
	unsigned n = 0;

	for (unsigned i = 0; i < N_PLACES; i++) {
		const struct tuple tuple = nic_tuple(&scene->nic);
		unsigned at = 0;

		while (at < n && !same_tuple(&tuples[at], &tuple))
			at++;
		assert_true(at < N_STREAMS);
		if (at == n)
			tuples[n++] = tuple;
		if (++places[at] > scene->places) {
			scene->places = places[at];
			scene->tuple = tuple;
		}
	}
	scene->received = scene->places;
	assert_in_range(scene->places, 1000, N_PLACES / 2);
}

static struct scene *begin(void)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	nic_open(&scene->nic, "net_flowsim_gone",
		"flows=64,side=forward,hostile=0,load=zipf,passes=" RTE_STR(PASSES));
	learn(scene);
	return scene;
}

static void end(struct scene *scene)
{
	take(scene, 0);
	assert_int_equal(scene->received + scene->dropped, PASSES * scene->places);
	assert_int_equal(xstat(scene, "rx_good_packets") + xstat(scene, "rx_rule_dropped_packets"),
		PASSES * N_PLACES);
	nic_close(&scene->nic);
	free(scene);
}

static void half_of_a_round_is_half_of_its_packets(void **state)
{
	struct scene *scene = begin();
	const uint64_t host = (N_PLACES - scene->places) / 2;
	uint64_t kept;

	(void)state;
	scene->rule = drop(scene, &scene->tuple);
	assert_int_equal(take(scene, host), 0);
	kept = let_go(scene, scene->rule);
	assert_in_range(kept, scene->places / 2 - 2, scene->places / 2 + 2);
	/* it comes at its pace, from the first packet to the last of the round */
	uint64_t got = take(scene, (N_PLACES - host - kept) / 2);

	assert_in_range(got, scene->places / 4 * 9 / 10, scene->places / 4 * 11 / 10);
	got += take(scene, N_PLACES - host - kept - (N_PLACES - host - kept) / 2);
	assert_int_equal(got, scene->places - kept);
	/* and so in the next one */
	assert_int_equal(take(scene, N_PLACES), scene->places);
	end(scene);
}

/* What the host has served it has: the NIC's part is of the others, by the time that is left. */
static void out_and_back_within_a_round(void **state)
{
	struct scene *scene = begin();
	uint64_t served = take(scene, N_PLACES / 4);
	uint64_t others = N_PLACES * 3 / 4 - (scene->places - served), kept;

	(void)state;
	scene->rule = drop(scene, &scene->tuple);
	assert_int_equal(hits(scene, scene->rule), 0);
	assert_int_equal(take(scene, others * 2 / 3), 0);
	kept = let_go(scene, scene->rule);
	assert_in_range(
		kept, (scene->places - served) * 2 / 3 - 2, (scene->places - served) * 2 / 3 + 2);
	/* out again, and nothing passes while nobody receives */
	scene->rule = drop(scene, &scene->tuple);
	assert_int_equal(let_go(scene, scene->rule), 0);
	take(scene, N_PLACES * 3 / 4 - others * 2 / 3 - kept);
	assert_int_equal(scene->received + scene->dropped, 2 * scene->places);
	end(scene);
}

static void a_counter_goes_with_the_round(void **state)
{
	enum { PARTS = 16 };
	struct scene *scene = begin();
	const uint64_t others = N_PLACES - scene->places;

	(void)state;
	scene->rule = drop(scene, &scene->tuple);
	for (uint64_t i = 1; i <= 2 * PARTS; i++) {
		take(scene, others * i / PARTS - others * (i - 1) / PARTS);
		const uint64_t told = hits(scene, scene->rule);

		assert_in_range(told, scene->places * i / PARTS - (i % PARTS == 0 ? 0 : PARTS),
			scene->places * i / PARTS + (i % PARTS == 0 ? 0 : PARTS));
		assert_int_equal(hits(scene, scene->rule), told);
	}
	assert_int_equal(xstat(scene, "rx_rule_dropped_packets"), 2 * scene->places);
	let_go(scene, scene->rule);
	end(scene);
}

/* Of a place each a part of the streams has passed, as large as of the round; each has one packet of it. */
static void places_pass_one_by_one(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct rte_flow *rules[N_GONE];
	uint64_t kept = 0;

	(void)state;
	assert_non_null(scene);
	nic_open(&scene->nic, "net_flowsim_alike",
		"flows=1024,side=forward,hostile=0,load=order,passes=3");
	for (unsigned i = 0; i < N_GONE; i++) {
		const struct tuple tuple = nic_tuple(&scene->nic);

		rules[i] = drop(scene, &tuple);
	}
	/* their packets of this round were received: nothing of them passes in it */
	take(scene, N_ALIKE - N_GONE);
	for (unsigned i = 0; i < N_GONE; i++)
		assert_int_equal(hits(scene, rules[i]), 0);
	take(scene, (N_ALIKE - N_GONE) / 2);
	for (unsigned i = 0; i < N_GONE; i++)
		kept += let_go(scene, rules[i]);
	assert_in_range(kept, N_GONE * 4 / 10, N_GONE * 6 / 10);
	take(scene, N_ALIKE - (N_ALIKE - N_GONE) / 2 - kept);
	assert_int_equal(xstat(scene, "rx_good_packets") + xstat(scene, "rx_rule_dropped_packets"),
		2 * N_ALIKE);
	take(scene, 0);
	assert_int_equal(xstat(scene, "rx_good_packets") + xstat(scene, "rx_rule_dropped_packets"),
		3 * N_ALIKE);
	nic_close(&scene->nic);
	free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_a_round_is_half_of_its_packets),
		cmocka_unit_test(out_and_back_within_a_round),
		cmocka_unit_test(a_counter_goes_with_the_round),
		cmocka_unit_test(places_pass_one_by_one),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
