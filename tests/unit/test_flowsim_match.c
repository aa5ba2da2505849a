/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random rules and packets: the driver's two ways of matching, in line and resolved to the packets of a
 * capture, against the slow reference. FLOWSIM_MATCH_PAIRS says how many (rule set, packet) pairs; a
 * failure prints the seed of its rule set, which FLOWSIM_MATCH_SEED repeats.
 */
#include "flowsim_port.h"
#include "flowsim_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "drivers/flowsim/sim.h"

#define N_FRAMES 400
#define MAX_RULES 64
/* Rule sets for one set of frames. */
#define SETS_A_CAPTURE 20
#define BURST 64

struct scene {
	struct random_source random;
	struct random_frame frames[N_FRAMES];
	struct random_rule rules[MAX_RULES];
	struct reference_rule reference[MAX_RULES];
	struct rte_flow *handles[MAX_RULES];
	unsigned n_rules;
	struct reference_verdict expected[N_FRAMES];
	struct nic nic, other;
	char capture[64];
	uint64_t seed; /* of this rule set */
	/* what was seen, so that a comparison in which nothing matches is noticed */
	uint64_t pairs, matched, offered, accepted, long_chains, kept, given;
	uint64_t by_item[64]; /* of rules taken: those that have an item of the type */
};

static void fail_pair(const struct scene *scene, const char *what, unsigned frame)
{
	fprintf(stderr, "%s differs, FLOWSIM_MATCH_SEED=%lu, frame %u\n", what, scene->seed, frame);
	random_frame_print(&scene->frames[frame]);
	for (unsigned i = 0; i < scene->expected[frame].n; i++) {
		fprintf(stderr, "expected %u: ", scene->expected[frame].rule[i]);
		random_rule_print(&scene->rules[scene->expected[frame].rule[i]]);
	}
	fail();
}

static void write_capture(struct scene *scene)
{
	static const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};
	FILE *file = fopen(scene->capture, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(head, sizeof(head), 1, file), 1);
	for (unsigned i = 0; i < N_FRAMES; i++) {
		uint32_t length = scene->frames[i].length, packet[4] = {0, 0, length, length};

		assert_int_equal(fwrite(packet, sizeof(packet), 1, file), 1);
		assert_int_equal(fwrite(scene->frames[i].bytes, length, 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
}

static struct sim_port *sim_of(const struct nic *nic)
{
	return rte_eth_devices[nic->id].data->dev_private;
}

static void make_rules(struct scene *scene)
{
	unsigned wanted = 1 + random_below(&scene->random, MAX_RULES);

	scene->n_rules = 0;
	for (unsigned tries = 0; tries < wanted; tries++) {
		struct random_rule *rule = &scene->rules[scene->n_rules];
		struct rte_flow_error error = {0};

		random_rule(&scene->random, rule, scene->frames, N_FRAMES);
		scene->offered++;

		struct rte_flow *flow = rte_flow_create(
			scene->nic.id, &rule->attr, rule->items, rule->actions, &error);

		if (flow == NULL)
			continue;
		scene->accepted++;
		scene->handles[scene->n_rules] = flow;
		scene->reference[scene->n_rules++] = (struct reference_rule){
			.attr = rule->attr,
			.items = rule->items,
			.actions = rule->actions,
			.created_on = scene->nic.id,
		};
	}
}

static void note_match(struct scene *scene, const struct reference_verdict *verdict)
{
	scene->matched += verdict->n > 0;
	scene->long_chains += verdict->n > 1;
	for (unsigned i = 0; i < verdict->n; i++) {
		const struct rte_flow_item *item = scene->rules[verdict->rule[i]].items;

		for (; item->type != RTE_FLOW_ITEM_TYPE_END; item++)
			if (item->type < 64)
				scene->by_item[item->type]++;
	}
}

static enum sim_fate fate_of(const struct reference_verdict *verdict)
{
	switch ((int)verdict->fate) {
	case RTE_FLOW_ACTION_TYPE_QUEUE:
		return SIM_FATE_QUEUE;
	case RTE_FLOW_ACTION_TYPE_DROP:
		return SIM_FATE_DROP;
	case RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT:
		return SIM_FATE_SEND;
	default:
		return SIM_FATE_NONE;
	}
}

/* The matcher that packets of other ports go through. */
static void compare_in_line(struct scene *scene)
{
	for (unsigned i = 0; i < N_FRAMES; i++) {
		const struct random_frame *frame = &scene->frames[i];
		struct reference_verdict *expected = &scene->expected[i];
		struct sim_verdict verdict = {0};
		struct sim_view view;

		reference_match(expected, scene->reference, scene->n_rules, frame->bytes,
			frame->length, scene->nic.id);
		note_match(scene, expected);
		sim_view_parse(&view, frame->bytes, frame->length);
		view.port = scene->nic.id;
		sim_table_match(sim_of(&scene->nic)->table, SIM_INGRESS, &view, &verdict);
		if (verdict.n != expected->n)
			fail_pair(scene, "number of rules", i);
		for (unsigned k = 0; k < expected->n; k++)
			if (verdict.chain[k] != scene->handles[expected->rule[k]])
				fail_pair(scene, "rule", i);
		if (verdict.fate != fate_of(expected))
			fail_pair(scene, "fate", i);
		if (verdict.fate == SIM_FATE_QUEUE && verdict.queue != expected->queue)
			fail_pair(scene, "queue", i);
		if (verdict.mark != expected->mark ||
			(expected->mark && verdict.mark_id != expected->mark_id))
			fail_pair(scene, "mark", i);
		if (verdict.flag != expected->flag)
			fail_pair(scene, "flag", i);
		scene->pairs++;
	}
}

static void check_received(
	struct scene *scene, const struct rte_mbuf *packet, unsigned queue, bool *seen)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
	uint64_t flags = packet->ol_flags & (RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID);
	uint32_t number;

	memcpy(&number, bytes + packet->pkt_len - 4, 4);
	assert_in_range(number, 0, N_FRAMES - 1);

	const struct reference_verdict *expected = &scene->expected[number];

	if (fate_of(expected) == SIM_FATE_DROP || fate_of(expected) == SIM_FATE_SEND)
		fail_pair(scene, "kept by the NIC", number);
	if (fate_of(expected) == SIM_FATE_QUEUE && queue != expected->queue)
		fail_pair(scene, "received on queue", number);
	if (expected->mark ? flags != (RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID)
			   : flags != (expected->flag ? RTE_MBUF_F_RX_FDIR : 0))
		fail_pair(scene, "received flags", number);
	if (expected->mark && packet->hash.fdir.hi != expected->mark_id)
		fail_pair(scene, "received mark", number);
	seen[number] = true;
}

/* The firmware turns rounds that are empty. */
static uint64_t rounds_of(const struct sim_round *round)
{
	return __atomic_load_n(&round->rounds, __ATOMIC_RELAXED);
}

/* The same rules, resolved to the packets of a capture: what comes out of the port. */
static void compare_resolved(struct scene *scene)
{
	bool seen[N_FRAMES] = {0};
	struct rte_mbuf *packets[BURST];

	for (uint16_t queue = 0; queue < NIC_QUEUES; queue++) {
		const struct sim_round *round = &sim_of(&scene->nic)->rx[queue].round;
		uint64_t end = rounds_of(round) + 2;

		while (round->n > 0 && rounds_of(round) < end) {
			uint16_t n = rte_eth_rx_burst(scene->nic.id, queue, packets, BURST);

			for (uint16_t i = 0; i < n; i++)
				check_received(scene, packets[i], queue, seen);
			rte_pktmbuf_free_bulk(packets, n);
		}
	}
	for (unsigned i = 0; i < N_FRAMES; i++) {
		enum sim_fate fate = fate_of(&scene->expected[i]);
		bool kept = fate == SIM_FATE_DROP || fate == SIM_FATE_SEND;

		if (seen[i] == kept)
			fail_pair(scene, "received at all", i);
		scene->kept += kept;
		scene->given += seen[i];
		scene->pairs++;
	}
}

static void new_capture(struct scene *scene)
{
	char args[128];

	for (uint32_t i = 0; i < N_FRAMES; i++)
		random_frame(&scene->random, &scene->frames[i], i);
	write_capture(scene);
	snprintf(args, sizeof(args), "hostile=0,nic=match,capture=%s", scene->capture);
	nic_open(&scene->nic, "net_flowsim7", args);
	scene->random.own = scene->nic.id;
	scene->random.other = scene->other.id;
}

static void run_set(struct scene *scene, uint64_t number)
{
	struct rte_flow_error error;

	scene->seed = number;
	scene->random.state = number * SETS_A_CAPTURE;
	make_rules(scene);
	compare_in_line(scene);
	compare_resolved(scene);
	assert_int_equal(rte_flow_flush(scene->nic.id, &error), 0);
}

static void show(const struct scene *scene)
{
	print_message(
		"%lu pairs; %lu of %lu rules accepted; %lu in line matched, %lu by several rules; "
		"%lu kept by the NIC, %lu received\n",
		scene->pairs, scene->accepted, scene->offered, scene->matched, scene->long_chains,
		scene->kept, scene->given);
	print_message("rules taken, by item:");
	for (unsigned i = 0; i < 64; i++)
		if (scene->by_item[i] != 0)
			print_message(" %u: %lu", i, scene->by_item[i]);
	print_message("\n");
}

/* A comparison in which nothing happens would prove nothing. */
static void check_shares(const struct scene *scene)
{
	static const enum rte_flow_item_type all[] = {RTE_FLOW_ITEM_TYPE_ETH,
		RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_IPV6,
		RTE_FLOW_ITEM_TYPE_IPV6_FRAG_EXT, RTE_FLOW_ITEM_TYPE_TCP, RTE_FLOW_ITEM_TYPE_UDP,
		RTE_FLOW_ITEM_TYPE_SCTP, RTE_FLOW_ITEM_TYPE_ICMP, RTE_FLOW_ITEM_TYPE_ICMP6,
		RTE_FLOW_ITEM_TYPE_VXLAN, RTE_FLOW_ITEM_TYPE_GRE, RTE_FLOW_ITEM_TYPE_GRE_KEY,
		RTE_FLOW_ITEM_TYPE_GENEVE, RTE_FLOW_ITEM_TYPE_GTPU, RTE_FLOW_ITEM_TYPE_ANY,
		RTE_FLOW_ITEM_TYPE_VOID, RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT};

	assert_true(scene->accepted * 2 > scene->offered);
	assert_true(scene->matched * 10 > scene->pairs / 2);
	assert_true(scene->long_chains * 100 > scene->pairs / 2);
	assert_true(scene->kept * 100 > scene->given);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_true(scene->by_item[all[i]] > scene->pairs / 50000);
}

static void rules_match_as_the_reference_says(void **state)
{
	const char *pairs = getenv("FLOWSIM_MATCH_PAIRS"), *seed = getenv("FLOWSIM_MATCH_SEED");
	uint64_t wanted = pairs == NULL ? 300000 : strtoull(pairs, NULL, 0);
	uint64_t first = seed == NULL ? 1 : strtoull(seed, NULL, 0);
	struct scene *scene = calloc(1, sizeof(*scene));

	(void)state;
	assert_non_null(scene);
	snprintf(scene->capture, sizeof(scene->capture), "flowsim-match-%d.pcap", (int)getpid());
	nic_open(&scene->other, "net_flowsim8", "hostile=0,nic=match,source=none");
	for (uint64_t set = first; scene->pairs < wanted; set++) {
		uint64_t capture = (set - 1) / SETS_A_CAPTURE;

		if (set == first || (set - 1) % SETS_A_CAPTURE == 0) {
			if (set != first)
				nic_close(&scene->nic);
			scene->random.state = ~capture;
			new_capture(scene);
		}
		run_set(scene, set);
		if (seed != NULL)
			break;
	}
	nic_close(&scene->nic);
	nic_close(&scene->other);
	unlink(scene->capture);
	show(scene);
	if (seed == NULL)
		check_shares(scene);
	free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_match_as_the_reference_says),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
