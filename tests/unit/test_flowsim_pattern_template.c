/* SPDX-License-Identifier: BSD-3-Clause */

/* Templates of the simulated NIC's asynchronous rules: masks once, values for each rule. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <rte_common.h>

#include "drivers/flowsim/match/pattern.h"

#define T(name) RTE_FLOW_ITEM_TYPE_##name

static struct sim_fault_at fault;

static struct sim_pattern made(
	const struct rte_flow_item template[], const struct rte_flow_item items[], bool relaxed)
{
	struct sim_pattern pattern;

	memset(&pattern, 0xa5, sizeof(pattern));
	assert_int_equal(sim_pattern_parse_template(&pattern, template, items, relaxed, &fault), 0);
	return pattern;
}

static void assert_same(const struct sim_pattern *a, const struct sim_pattern *b)
{
	assert_int_equal(a->layers, b->layers);
	assert_int_equal(a->port, b->port);
	assert_true(a->items == b->items);
	assert_int_equal(a->n_words, b->n_words);
	assert_memory_equal(a->words, b->words, sizeof(a->words));
	assert_memory_equal(a->mask, b->mask, sizeof(a->mask));
	assert_memory_equal(a->value, b->value, sizeof(a->value));
	assert_int_equal(a->n_ranges, b->n_ranges);
	for (unsigned i = 0; i < a->n_ranges; i++) {
		assert_int_equal(a->ranges[i].at, b->ranges[i].at);
		assert_int_equal(a->ranges[i].size, b->ranges[i].size);
		assert_true(a->ranges[i].mask == b->ranges[i].mask);
		assert_true(a->ranges[i].low == b->ranges[i].low);
		assert_true(a->ranges[i].high == b->ranges[i].high);
	}
	assert_memory_equal(a->input, b->input, sizeof(a->input));
}

/* Split into template and rule, a list means what it means as a whole. */
static void as_in_one(void **state)
{
	struct rte_flow_item_eth eth = {.hdr.ether_type = RTE_BE16(0x8100), .has_vlan = 1};
	struct rte_flow_item_eth eth_mask = {.hdr.ether_type = RTE_BE16(0xff00), .has_vlan = 1};
	struct rte_flow_item_vlan vlan = {.hdr.vlan_tci = RTE_BE16(0x1777), .has_more_vlan = 1};
	struct rte_flow_item_ipv6 ipv6 = {.hdr.proto = 17, .has_frag_ext = 1, .has_shim6_ext = 1};
	struct rte_flow_item_ipv6 ipv6_mask = {.hdr.proto = 0xff, .has_shim6_ext = 1};
	struct rte_flow_item_udp udp = {.hdr.src_port = RTE_BE16(0xbeef)};
	struct rte_flow_item_udp udp_mask = {.hdr.src_port = RTE_BE16(0x0ff0)};
	struct rte_flow_item_ethdev port = {.port_id = 4};
	uint8_t vxlan[8] = {8, 0, 0, 0, 1, 2, 3, 4};
	struct rte_flow_item whole[] = {
		{.type = T(REPRESENTED_PORT), .spec = &port, .mask = &rte_flow_item_ethdev_mask},
		{.type = T(ETH), .spec = &eth, .mask = &eth_mask},
		{.type = T(VLAN), .spec = &vlan, .mask = &rte_flow_item_vlan_mask},
		{.type = T(VLAN), .spec = &vlan, .mask = &vlan},
		{.type = T(IPV6), .spec = &ipv6, .mask = &ipv6_mask},
		{.type = T(ANY)},
		{.type = T(UDP), .spec = &udp, .mask = &udp_mask},
		{.type = T(VXLAN), .spec = vxlan, .mask = &rte_flow_item_vxlan_mask},
		{.type = T(ETH)},
		{.type = T(VLAN), .spec = &vlan, .mask = &rte_flow_item_vlan_mask},
		{.type = T(IPV6), .spec = &ipv6, .mask = &ipv6_mask},
		{.type = T(UDP), .spec = &udp, .mask = &udp_mask},
		{0},
	};
	struct rte_flow_item template[RTE_DIM(whole)], rule[RTE_DIM(whole)];
	struct sim_pattern one, two;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(whole); i++) {
		template[i] = rule[i] = whole[i];
		template[i].spec = NULL;
		/* not looked at */
		rule[i].mask = rule[i].last = i % 2 ? &port : NULL;
	}
	assert_int_equal(sim_pattern_parse(&one, whole, &fault), 0);
	two = made(template, rule, false);
	assert_same(&one, &two);
}

static void values_only(void **state)
{
	struct rte_flow_item_ipv4 mask = {
		.hdr.src_addr = RTE_BE32(0xffffff00), .hdr.time_to_live = 1};
	struct rte_flow_item_ipv4 spec = {.hdr.src_addr = RTE_BE32(0x0a010203),
		.hdr.dst_addr = UINT32_MAX,
		.hdr.time_to_live = 0xff};
	struct rte_flow_item template[] = {{.type = T(IPV4), .mask = &mask}, {0}};
	struct rte_flow_item items[] = {{.type = T(VOID)}, {.type = T(IPV4), .spec = &spec}, {0}};
	struct sim_pattern_template read;
	struct sim_pattern whole;
	uint64_t values[SIM_VIEW_WORDS];
	uint16_t port = 7;

	(void)state;
	items[1].mask = &mask;
	assert_int_equal(sim_pattern_parse(&whole, items, &fault), 0);
	assert_int_equal(sim_pattern_template_read(&read, template, false, &fault), 0);
	assert_int_equal(read.pattern.n_words, whole.n_words);
	assert_int_equal(sim_pattern_template_fill(&read, values, &port, items, &fault), 0);
	assert_int_equal(port, SIM_NO_PORT);
	for (unsigned i = 0; i < whole.n_words; i++)
		assert_true(values[i] == whole.value[whole.words[i]]);
}

/* What an item without a mask says: the header is there, or nothing, by the policy. */
static void without_masks(void **state)
{
	struct rte_flow_item_udp udp = {.hdr.dst_port = RTE_BE16(53)};
	struct rte_flow_item template[] = {{.type = T(ETH)}, {.type = T(IPV4)},
		{.type = T(UDP), .mask = &rte_flow_item_udp_mask}, {0}};
	struct rte_flow_item items[] = {
		{.type = T(ETH)}, {.type = T(IPV4)}, {.type = T(UDP), .spec = &udp}, {0}};
	struct sim_pattern pattern = made(template, items, false);

	(void)state;
	assert_int_equal(pattern.layers, SIM_ETH | SIM_IPV4 | SIM_UDP);
	pattern = made(template, items, true);
	assert_int_equal(pattern.layers, SIM_UDP);
	/* a spec that the template does not ask for is not compared */
	template[2].mask = NULL;
	pattern = made(template, items, false);
	assert_int_equal(pattern.layers, SIM_ETH | SIM_IPV4 | SIM_UDP);
	assert_int_equal(pattern.n_words, 0);
	pattern = made(template, items, true);
	assert_int_equal(pattern.layers, 0);
}

/* The inner headers stay inner when nothing is asked of the tunnel. */
static void relaxed_tunnel(void **state)
{
	struct rte_flow_item_tcp tcp = {.hdr.dst_port = RTE_BE16(80)};
	struct rte_flow_item template[] = {
		{.type = T(VXLAN)}, {.type = T(TCP), .mask = &rte_flow_item_tcp_mask}, {0}};
	struct rte_flow_item items[] = {{.type = T(VXLAN)}, {.type = T(TCP), .spec = &tcp}, {0}};
	struct sim_pattern pattern = made(template, items, true);

	(void)state;
	assert_int_equal(pattern.layers, SIM_TCP << SIM_INNER);
}

static void ports(void **state)
{
	struct rte_flow_item_ethdev two = {.port_id = 2};
	struct rte_flow_item template[] = {{.type = T(REPRESENTED_PORT)}, {0}};
	struct rte_flow_item items[] = {{.type = T(REPRESENTED_PORT), .spec = &two}, {0}};

	(void)state;
	assert_int_equal(made(template, items, false).port, 2);
	assert_int_equal(made(template, items, true).port, SIM_NO_PORT);
	template[0].mask = &rte_flow_item_ethdev_mask;
	assert_int_equal(made(template, items, true).port, 2);
}

/* A range is the template's; the other fields of that item are the rule's. */
static void ranges(void **state)
{
	struct rte_flow_item_udp low = {.hdr.src_port = RTE_BE16(1), .hdr.dst_port = RTE_BE16(100)};
	struct rte_flow_item_udp high = {
		.hdr.src_port = RTE_BE16(0), .hdr.dst_port = RTE_BE16(200)};
	struct rte_flow_item_udp mask = {
		.hdr.src_port = RTE_BE16(0xffff), .hdr.dst_port = RTE_BE16(0xffff)};
	struct rte_flow_item_udp spec = {.hdr.src_port = RTE_BE16(9), .hdr.dst_port = RTE_BE16(7)};
	struct rte_flow_item template[] = {
		{.type = T(UDP), .spec = &low, .last = &high, .mask = &mask}, {0}};
	struct rte_flow_item items[] = {{.type = T(UDP), .spec = &spec}, {0}};
	struct sim_pattern pattern = made(template, items, false);
	struct sim_view view = {.layers = SIM_UDP};

	(void)state;
	memcpy(view.level[0].l4, "\0\x09\0\x96", 4);
	assert_true(sim_pattern_match(&pattern, 0, &view));
	view.level[0].l4[3] = 99;
	assert_false(sim_pattern_match(&pattern, 0, &view));
	memcpy(view.level[0].l4, "\0\x01\0\x96", 4);
	assert_false(sim_pattern_match(&pattern, 0, &view));
}

struct refusal {
	int code;
	enum rte_flow_error_type type;
	int in_template; /* number of the item at fault, or -1 */
	int in_rule;
	struct rte_flow_item template[4], items[4];
};

#define SPEC RTE_FLOW_ERROR_TYPE_ITEM_SPEC
#define ITEM RTE_FLOW_ERROR_TYPE_ITEM

static const uint8_t ones[64] = {[0 ... 63] = 0xff};

static const struct refusal refusals[] = {
	{-EINVAL, SPEC, -1, 1, {{.type = T(ETH)}, {.type = T(UDP), .mask = ones}},
		{{.type = T(ETH)}, {.type = T(UDP)}}},
	{-EINVAL, SPEC, -1, 0, {{.type = T(PORT_ID)}}, {{.type = T(PORT_ID), .spec = ones}}},
	{-EINVAL, SPEC, -1, 0, {{.type = T(PORT_ID)}}, {{.type = T(PORT_ID)}}},
	{-EINVAL, ITEM, -1, 1, {{.type = T(ETH)}, {.type = T(UDP)}},
		{{.type = T(ETH)}, {.type = T(TCP)}}},
	{-EINVAL, ITEM, -1, 1, {{.type = T(ETH)}, {.type = T(UDP)}}, {{.type = T(ETH)}}},
	{-EINVAL, ITEM, -1, 1, {{.type = T(ETH)}}, {{.type = T(ETH)}, {.type = T(UDP)}}},
	{-EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_LAST, 0, -1,
		{{.type = T(UDP), .spec = ones, .last = ones}}, {{.type = T(UDP), .spec = ones}}},
	{-EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_LAST, 0, -1,
		{{.type = T(UDP), .mask = ones, .last = ones}}, {{.type = T(UDP), .spec = ones}}},
	{-ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, 0, -1, {{.type = T(PORT_ID), .mask = ones}},
		{{.type = T(PORT_ID), .spec = ones}}},
	{-ENOTSUP, ITEM, 1, -1, {{.type = T(TCP)}, {.type = T(UDP)}}, {{0}}},
	{-ENOTSUP, ITEM, 0, -1, {{.type = T(RAW)}}, {{0}}},
};

static void refused(void **state)
{
	static const struct rte_flow_item_port_id low_byte = {.id = 0xff};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(refusals); i++) {
		struct refusal refusal = refusals[i];
		struct sim_pattern pattern;
		int code;

		if (refusal.type == RTE_FLOW_ERROR_TYPE_ITEM_MASK)
			refusal.template[0].mask = &low_byte;
		fault = (struct sim_fault_at){0};
		code = sim_pattern_parse_template(
			&pattern, refusal.template, refusal.items, false, &fault);
		if (code != refusal.code)
			print_error("refusal %zu\n", i);
		assert_int_equal(code, refusal.code);
		assert_int_equal(fault.type, refusal.type);
		assert_non_null(fault.message);
		assert_ptr_equal(fault.cause, refusal.in_template >= 0
						      ? &refusal.template[refusal.in_template]
						      : &refusal.items[refusal.in_rule]);
	}
}

static void without_end(void **state)
{
	struct rte_flow_item template[] = {{.type = T(VOID)}, {0}};
	struct rte_flow_item items[SIM_MAX_ITEMS];
	struct sim_pattern_template read;
	uint64_t values[SIM_VIEW_WORDS];
	uint16_t port;

	(void)state;
	for (unsigned i = 0; i < SIM_MAX_ITEMS; i++)
		items[i] = (struct rte_flow_item){.type = T(VOID)};
	assert_int_equal(sim_pattern_template_read(&read, template, false, &fault), 0);
	assert_int_equal(sim_pattern_template_fill(&read, values, &port, items, &fault), -EINVAL);
	assert_int_equal(sim_pattern_template_fill(&read, values, &port, NULL, &fault), -EINVAL);
	items[SIM_MAX_ITEMS - 1].type = T(END);
	assert_int_equal(sim_pattern_template_fill(&read, values, &port, items, &fault), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_in_one),
		cmocka_unit_test(values_only),
		cmocka_unit_test(without_masks),
		cmocka_unit_test(relaxed_tunnel),
		cmocka_unit_test(ports),
		cmocka_unit_test(ranges),
		cmocka_unit_test(refused),
		cmocka_unit_test(without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
