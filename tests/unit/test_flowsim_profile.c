/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rules each profile takes. */
#include "flowsim_draft.h"

static void test_names(void **state)
{
	static const char *const names[] = {
		"ideal", "x710-stock", "x710", "tiny", "e810", "cx5", "cx6-hws"};
	unsigned n = 0;

	(void)state;
	while (sim_profile_name(n) != NULL) {
		assert_string_equal(
			sim_profile_find(sim_profile_name(n))->name, sim_profile_name(n));
		n++;
	}
	assert_int_equal(n, sizeof(names) / sizeof(names[0]));
	for (unsigned i = 0; i < n; i++)
		assert_non_null(sim_profile_find(names[i]));
	assert_null(sim_profile_find("x711"));
	assert_null(sim_profile_find(""));
	assert_string_equal(sim_quirk_name(SIM_N_QUIRKS - 1), "packet_type");
	assert_null(sim_quirk_name(SIM_N_QUIRKS));
}

/* The figures that the profiles are named for. */
static void test_figures(void **state)
{
	(void)state;
	assert_int_equal(sim_profile_find("x710-stock")->size, 7168);
	assert_int_equal(sim_profile_find("x710-stock")->create_ns, 11000000);
	assert_int_equal(sim_profile_find("x710")->create_ns, 22000);
	assert_int_equal(sim_profile_find("x710")->full_errno, ENOBUFS);
	assert_int_equal(sim_profile_find("tiny")->size, 512);
	assert_int_equal(sim_profile_find("cx5")->size, 1u << 20);
	assert_int_equal(sim_profile_find("cx6-hws")->rate, 4500000);
	assert_true(sim_profile_find("cx6-hws")->async);
	assert_false(sim_profile_find("cx6-hws")->sync);
	assert_int_equal(sim_profile_find("ideal")->size, UINT32_MAX);
}

static void test_one_flow_everywhere(void **state)
{
	struct parts rule = of_flow(mark_queue);

	(void)state;
	for (unsigned i = 0; sim_profile_name(i) != NULL; i++)
		takes(sim_profile_name(i), &rule);
}

static void test_attributes(void **state)
{
	struct parts rule = of_flow(count_drop);
	struct parts marks = of_flow(mark_queue);

	(void)state;
	rule.domain = SIM_TRANSFER;
	takes("ideal", &rule);
	takes("cx5", &rule);
	rule.domain = SIM_EGRESS;
	takes("cx5", &rule);
	marks.domain = SIM_TRANSFER;
	refuses("x710", &marks, EINVAL);
	marks.domain = SIM_EGRESS;
	refuses("x710", &marks, EINVAL);
	marks.domain = SIM_INGRESS;
	marks.group = 1;
	refuses("x710", &marks, EINVAL);
	takes("cx5", &marks);
	marks.group = 65531;
	refuses("cx5", &marks, ENOTSUP);
	marks.group = 0;
	marks.priority = 1;
	refuses("x710", &marks, EINVAL);
	takes("e810", &marks);
	marks.priority = 2;
	refuses("e810", &marks, EINVAL);
}

static void test_x710_actions(void **state)
{
	static const struct sim_actions good[] = {
		{.named = ACTION(MARK), .mark = true},
		{.named = ACTION(MARK) | ACTION(PASSTHRU), .mark = true, .passthru = true},
		{.named = ACTION(MARK) | ACTION(DROP), .mark = true, .fate = SIM_FATE_DROP},
		{.named = ACTION(QUEUE), .fate = SIM_FATE_QUEUE},
		{.named = ACTION(DROP), .fate = SIM_FATE_DROP},
		{.named = ACTION(PASSTHRU), .passthru = true},
		{.named = ACTION(QUEUE) | ACTION(FLAG), .flag = true, .fate = SIM_FATE_QUEUE},
		{.named = ACTION(RSS), .fate = SIM_FATE_RSS},
	};
	static const struct sim_actions bad[] = {
		{.named = 0},
		{.named = ACTION(FLAG), .flag = true},
		{.named = ACTION(MARK) | ACTION(FLAG) | ACTION(QUEUE),
			.mark = true,
			.flag = true,
			.fate = SIM_FATE_QUEUE},
		{.named = ACTION(MARK) | ACTION(COUNT), .mark = true, .count = true},
		{.named = ACTION(COUNT) | ACTION(DROP), .count = true, .fate = SIM_FATE_DROP},
		{.named = ACTION(JUMP), .jump = true, .jump_group = 1},
		{.named = ACTION(PORT_ID), .fate = SIM_FATE_SEND},
		{.named = ACTION(PASSTHRU) | ACTION(QUEUE),
			.passthru = true,
			.fate = SIM_FATE_QUEUE},
		{.named = ACTION(MARK) | ACTION(OF_POP_VLAN), .mark = true, .n_edits = 1},
	};
	struct parts rule;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		rule = of_flow(good[i]);
		takes("x710", &rule);
		takes("x710-stock", &rule);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rule = of_flow(bad[i]);
		refuses("x710", &rule, EINVAL);
	}
}

/* What Open vSwitch 3.1 asks for: everything first, then MARK and RSS. */
static void test_open_vswitch(void **state)
{
	struct rte_flow_item_eth type = {.type = RTE_BE16(0x0800), .has_vlan = 0};
	struct rte_flow_item_eth type_mask = {.type = UINT16_MAX, .has_vlan = 1};
	struct rte_flow_item_ipv4 whole = ends4, whole_mask = ends4_mask;
	struct parts full = of_flow(count_send), partial = of_flow(mark_rss);

	(void)state;
	whole_mask.hdr.fragment_offset = RTE_BE16(0x3fff);
	whole.hdr.next_proto_id = 17;
	whole_mask.hdr.next_proto_id = 0xff;
	full.domain = SIM_TRANSFER;
	full.eth = partial.eth = &type;
	full.eth_mask = partial.eth_mask = &type_mask;
	full.ipv4 = partial.ipv4 = &whole;
	full.ipv4_mask = partial.ipv4_mask = &whole_mask;
	takes("cx5", &full);
	refuses("x710", &full, EINVAL);
	takes("x710", &partial);
	takes("cx5", &partial);
	takes("e810", &partial);
}

static void test_x710_fields(void **state)
{
	struct rte_flow_item_ipv4 ip = ends4, ip_mask = ends4_mask;
	struct rte_flow_item_eth mac = {.type = 0}, mac_mask = {.type = 0};
	struct rte_flow_item_tcp tcp = {.hdr.tcp_flags = 2}, tcp_mask = {.hdr.tcp_flags = 0xff};
	struct parts rule = of_flow(mark);

	(void)state;
	rule.ipv4 = &ip;
	rule.ipv4_mask = &ip_mask;
	ip_mask.hdr.src_addr = RTE_BE32(0xffffff00);
	refuses("x710", &rule, EINVAL);
	refuses("e810", &rule, EINVAL);
	takes("ideal", &rule);
	ip_mask.hdr.src_addr = 0;
	takes("x710", &rule);
	ip_mask.hdr.next_proto_id = 0xff; /* not beside UDP: i40e_ethdev.c:9216 */
	refuses("x710", &rule, EINVAL);
	takes("e810", &rule);
	ip_mask.hdr.next_proto_id = 0;
	ip_mask.hdr.time_to_live = 0xff;
	takes("x710", &rule);
	ip_mask.hdr.packet_id = UINT16_MAX;
	refuses("x710", &rule, EINVAL);
	ip_mask.hdr.packet_id = 0;
	ip_mask.hdr.fragment_offset = RTE_BE16(0x2000);
	refuses("x710", &rule, EINVAL);
	ip_mask.hdr.fragment_offset = 0;

	memset(&mac_mask.dst, 0xff, sizeof(mac_mask.dst));
	rule.eth = &mac;
	rule.eth_mask = &mac_mask;
	refuses("x710", &rule, EINVAL); /* L2 and L3 */
	takes("e810", &rule);
	rule.ipv4 = NULL;
	rule.udp = NULL;
	takes("x710", &rule);
	rule = of_flow(mark);
	rule.udp = NULL;
	rule.tcp = &tcp;
	rule.tcp_mask = &tcp_mask;
	refuses("x710", &rule, EINVAL);
	takes("cx5", &(struct parts){.ipv4 = &ends4,
			     .ipv4_mask = &ends4_mask,
			     .tcp = &tcp,
			     .tcp_mask = &tcp_mask,
			     .actions = mark_queue});
}

static void test_x710_layers(void **state)
{
	struct rte_flow_item_vlan tag = {.tci = RTE_BE16(5)}, tag_mask = {.tci = RTE_BE16(0x0fff)};
	struct rte_flow_item_ipv6 six, six_mask;
	struct rte_flow_item_eth type = {.type = RTE_BE16(0x88cc)}, type_mask = {.type = 0xffff};
	struct parts rule = of_flow(mark);

	(void)state;
	rule.no_eth = true;
	refuses("x710", &rule, EINVAL);
	rule.no_eth = false;
	rule.no_ip = true;
	refuses("x710", &rule, EINVAL);
	takes("ideal", &rule);
	rule = of_flow(mark);
	rule.vlan = &tag;
	rule.vlan_mask = &tag_mask;
	takes("x710", &rule);
	tag_mask.tci = RTE_BE16(0x00ff);
	refuses("x710", &rule, EINVAL);

	memset(&six, 0, sizeof(six));
	memset(&six_mask, 0, sizeof(six_mask));
	six_mask.hdr.vtc_flow = RTE_BE32(0x0ff00000);
	rule = of_flow(mark);
	rule.ipv6 = &six;
	rule.ipv6_mask = &six_mask;
	takes("x710", &rule);
	six_mask.hdr.vtc_flow = RTE_BE32(0x000fffff);
	refuses("x710", &rule, EINVAL);

	rule = (struct parts){.no_ip = true, .eth = &type, .eth_mask = &type_mask, .actions = mark};
	takes("x710", &rule);
}

static void test_ranges(void **state)
{
	struct rte_flow_item_ipv4 ip = ends4, ip_mask = ends4_mask, last = ends4;
	struct parts rule = of_flow(mark_queue);

	(void)state;
	last.hdr.dst_addr = RTE_BE32(0x0a0000ff);
	rule.ipv4 = &ip;
	rule.ipv4_mask = &ip_mask;
	rule.ipv4_last = &last;
	takes("ideal", &rule);
	takes("tiny", &rule);
	refuses("x710", &rule, EINVAL);
	refuses("cx5", &rule, ENOTSUP);
	/* a fragment, whichever: mlx5 takes that one */
	memset(&last, 0, sizeof(last));
	ip.hdr.fragment_offset = RTE_BE16(1);
	last.hdr.fragment_offset = RTE_BE16(0x3fff);
	ip_mask.hdr.fragment_offset = RTE_BE16(0x3fff);
	rule.udp = NULL;
	takes("cx5", &rule);
	refuses("x710", &rule, EINVAL);
}

static void test_marks(void **state)
{
	struct parts rule = of_flow(mark_queue);

	(void)state;
	rule.actions.mark_id = UINT32_MAX;
	takes("ideal", &rule);
	takes("x710", &rule);
	refuses("cx5", &rule, EINVAL);
	rule.actions.mark_id = 0xffffef; /* mlx5.rst 22.11:1079 */
	takes("cx5", &rule);
	takes("cx6-hws", &rule);
	rule.actions.mark_id++;
	refuses("cx5", &rule, EINVAL);
}

static void test_e810_actions(void **state)
{
	struct parts rule = of_flow(mark_rss);

	(void)state;
	takes("e810", &rule);
	rule.actions.rss.n_queues = 1;
	refuses("e810", &rule, EINVAL);
	rule.actions.rss.n_queues = 4;
	rule.actions.rss.queues[2] = 2;
	rule.actions.rss.queues[3] = 5;
	refuses("e810", &rule, EINVAL);
	rule.actions.rss.queues[3] = 3;
	takes("e810", &rule);
	rule = of_flow((struct sim_actions){.named = ACTION(COUNT), .count = true});
	takes("e810", &rule);
	rule = of_flow((struct sim_actions){.named = 0});
	refuses("e810", &rule, EINVAL);
	rule = of_flow((struct sim_actions){.named = ACTION(FLAG), .flag = true});
	refuses("e810", &rule, EINVAL);
}

static void test_mlx5_actions(void **state)
{
	struct parts rule = of_flow(mark);

	(void)state;
	refuses("cx5", &rule, EINVAL); /* no fate */
	rule = of_flow(mark_passthru);
	refuses("cx5", &rule, ENOTSUP);
	rule = of_flow(count_drop);
	takes("cx5", &rule);
	rule.actions.named |= ACTION(MARK);
	rule.actions.mark = true;
	refuses("cx5", &rule, EINVAL);
	rule = of_flow(count_send);
	refuses("cx5", &rule, ENOTSUP); /* ports are for transfer */
	rule.domain = SIM_TRANSFER;
	takes("cx5", &rule);
	rule = of_flow(mark_queue);
	rule.domain = SIM_TRANSFER;
	refuses("cx5", &rule, ENOTSUP);
	rule = of_flow(mark_queue);
	rule.actions.named |= ACTION(FLAG);
	rule.actions.flag = true;
	refuses("cx5", &rule, EINVAL);
}

/* A profile with less, as devargs make it. */
static void test_taken_away(void **state)
{
	struct sim_profile less = *sim_profile_find("ideal");
	struct parts rule = of_flow(count_drop);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_draft draft;

	(void)state;
	less.actions &= ~ACTION(COUNT);
	make_draft(&draft, &rule);
	assert_int_equal(sim_profile_check(&less, &draft, &fault), -ENOTSUP);
	assert_int_equal(fault.type, RTE_FLOW_ERROR_TYPE_ACTION);
	less = *sim_profile_find("ideal");
	less.items &= ~(1ull << RTE_FLOW_ITEM_TYPE_UDP);
	assert_int_equal(sim_profile_check(&less, &draft, &fault), -ENOTSUP);
	assert_int_equal(fault.type, RTE_FLOW_ERROR_TYPE_ITEM);
	less = *sim_profile_find("ideal");
	less.mark_bits = 0;
	rule = of_flow(mark);
	make_draft(&draft, &rule);
	assert_int_equal(sim_profile_check(&less, &draft, &fault), -ENOTSUP);
	less.mark_bits = 1;
	assert_int_equal(sim_profile_check(&less, &draft, &fault), -EINVAL);
	draft.actions.mark_id = 1;
	assert_int_equal(sim_profile_check(&less, &draft, &fault), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_one_flow_everywhere),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_x710_actions),
		cmocka_unit_test(test_open_vswitch),
		cmocka_unit_test(test_x710_fields),
		cmocka_unit_test(test_x710_layers),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_e810_actions),
		cmocka_unit_test(test_mlx5_actions),
		cmocka_unit_test(test_taken_away),
	};

	return cmocka_run_group_tests_name("flowsim profiles", tests, NULL, NULL);
}
