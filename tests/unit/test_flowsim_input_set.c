/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet types and input sets: what an X710 makes of whole fields. */
#include "flowsim_draft.h"

static void view_of(struct sim_view *view, uint32_t layers, bool fragment)
{
	memset(view, 0, sizeof(*view));
	view->layers = SIM_ETH | layers;
	view->level[0].ip[6] = fragment ? 0x20 : 0;
	view->port = 3;
}

/* An X710 looks at packets by type: a rule for IPv4 is for what is neither TCP, UDP nor SCTP. */
static void test_packet_types(void **state)
{
	struct parts ip = {.actions = mark};
	struct parts udp = {.udp = &ports, .udp_mask = NULL, .actions = mark};
	struct sim_profile friendly = *sim_profile_find("x710");
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_draft draft;
	struct sim_view view;

	(void)state;
	assert_int_equal(check("x710", &ip, &draft), 0);
	view_of(&view, SIM_IPV4 | SIM_ICMP, false);
	assert_true(sim_pattern_match(&draft.pattern, 3, &view));
	view_of(&view, SIM_IPV4 | SIM_UDP, false);
	assert_false(sim_pattern_match(&draft.pattern, 3, &view));
	view_of(&view, SIM_IPV4, true);
	assert_false(sim_pattern_match(&draft.pattern, 3, &view));

	friendly.quirks = 0;
	make_draft(&draft, &ip);
	assert_int_equal(sim_profile_check(&friendly, &draft, &fault), 0);
	view_of(&view, SIM_IPV4 | SIM_UDP, false);
	assert_true(sim_pattern_match(&draft.pattern, 3, &view));

	udp.udp = &(struct rte_flow_item_udp){.hdr.src_port = 0};
	udp.udp_mask = &(struct rte_flow_item_udp){.hdr.src_port = 0};
	assert_int_equal(check("x710", &udp, &draft), 0);
	view_of(&view, SIM_IPV4 | SIM_UDP, false);
	assert_true(sim_pattern_match(&draft.pattern, 3, &view));
	view_of(&view, SIM_IPV4 | SIM_UDP, true);
	assert_false(sim_pattern_match(&draft.pattern, 3, &view));
}

static void test_input_sets(void **state)
{
	struct sim_input_sets *sets = sim_input_sets_create();
	struct rte_flow_item_ipv4 source = ends4_mask;
	struct rte_flow_item_tcp tcp = {.hdr.src_port = 1}, tcp_mask = {.hdr.src_port = 0xffff};
	struct sim_draft both, one, stream;
	struct sim_fault_at fault = {.cause = NULL};
	struct parts rule = of_flow(mark);

	(void)state;
	assert_non_null(sets);
	assert_int_equal(check("x710", &rule, &both), 0);
	source.hdr.dst_addr = 0;
	rule.ipv4_mask = &source;
	assert_int_equal(check("x710", &rule, &one), 0);
	rule.udp = NULL;
	rule.tcp = &tcp;
	rule.tcp_mask = &tcp_mask;
	assert_int_equal(check("x710", &rule, &stream), 0);

	assert_int_equal(sim_input_sets_add(sets, &both.pattern, &fault), 0);
	assert_int_equal(sim_input_sets_add(sets, &both.pattern, &fault), 0);
	assert_int_equal(sim_input_sets_add(sets, &one.pattern, &fault), -EINVAL);
	assert_string_equal(fault.message, "conflict with the first rule's input set");
	/* another packet type has a set of its own */
	assert_int_equal(sim_input_sets_add(sets, &stream.pattern, &fault), 0);
	sim_input_sets_remove(sets, &both.pattern);
	assert_int_equal(sim_input_sets_add(sets, &one.pattern, &fault), -EINVAL);
	/* the last rule of a set frees the type for another */
	sim_input_sets_remove(sets, &both.pattern);
	assert_int_equal(sim_input_sets_add(sets, &one.pattern, &fault), 0);
	assert_int_equal(sim_input_sets_add(sets, &both.pattern, &fault), -EINVAL);
	sim_input_sets_destroy(sets);

	/* without sets there is no limit */
	assert_int_equal(sim_input_sets_add(NULL, &both.pattern, &fault), 0);
	sim_input_sets_remove(NULL, &both.pattern);
	sim_input_sets_destroy(NULL);
}

/* "no fragment" and the type beside IP are the packet type's: no set of their own. */
static void test_same_set(void **state)
{
	struct sim_input_sets *sets = sim_input_sets_create();
	struct rte_flow_item_eth type = {.type = RTE_BE16(0x0800)}, type_mask = {.type = 0xffff};
	struct sim_fault_at fault = {.cause = NULL};
	struct parts rule = of_flow(mark);
	struct sim_draft plain, typed;

	(void)state;
	assert_non_null(sets);
	assert_int_equal(check("x710", &rule, &plain), 0);
	rule.eth = &type;
	rule.eth_mask = &type_mask;
	assert_int_equal(check("x710", &rule, &typed), 0);
	assert_int_equal(sim_input_sets_add(sets, &plain.pattern, &fault), 0);
	assert_int_equal(sim_input_sets_add(sets, &typed.pattern, &fault), 0);
	sim_input_sets_destroy(sets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packet_types),
		cmocka_unit_test(test_input_sets),
		cmocka_unit_test(test_same_set),
	};

	return cmocka_run_group_tests_name("flowsim input sets", tests, NULL, NULL);
}
