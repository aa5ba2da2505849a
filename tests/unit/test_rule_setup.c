/* SPDX-License-Identifier: BSD-3-Clause */

/* Lines of `set`, and the rules that use them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/setup.h"
#include "unit/rule_same.h"

static struct rule_command *parse(const struct rule_setup *setup, const char *line)
{
	struct rule_command *command = NULL;
	struct error error = {""};
	unsigned column = 0;

	if (rule_command_parse(&command, setup, line, strlen(line), &column, &error) < 0)
		fail_msg("%s:\ncolumn %u: %s", line, column, error.text);
	return command;
}

static void learn(struct rule_setup *setup, const char *line)
{
	struct rule_command *command = parse(setup, line);

	assert_int_equal(rule_setup_learn(setup, command), 0);
	rule_command_destroy(command);
}

/* A rule with one action. */
static struct rule_command *rule(const struct rule_setup *setup, const char *action)
{
	char line[128];

	snprintf(line, sizeof(line), "flow create 0 pattern end actions %s / end", action);
	return parse(setup, line);
}

/* The headers that the items come to are those of the line. */
static void check_definition(
	struct rule_setup *setup, const char *line, const char *action, const char *items)
{
	char text[512];

	learn(setup, line);
	struct rule_command *command = rule(setup, action);
	const struct rte_flow_action_vxlan_encap *encap = command->actions[0][0].conf;

	snprintf(text, sizeof(text), "flow create 0 pattern %s / end actions end", items);
	struct rule_command *same = parse(NULL, text);

	assert_true(rule_same_items(encap->definition, same->pattern));
	rule_command_destroy(same);
	rule_command_destroy(command);
}

static void test_definitions(void **state)
{
	struct rule_setup *setup = rule_setup_create();

	(void)state;
	check_definition(setup,
		"set vxlan ip-version ipv4 vni 4 udp-src 5 udp-dst 6 ip-src 192.0.2.1 ip-dst "
		"192.0.2.2 eth-src 02:00:00:00:00:01 eth-dst 02:00:00:00:00:02",
		"vxlan_encap",
		"eth src is 02:00:00:00:00:01 dst is 02:00:00:00:00:02 / ipv4 src is 192.0.2.1 dst "
		"is 192.0.2.2 / udp src is 5 dst is 6 / vxlan vni is 4");
	check_definition(setup,
		"set vxlan-with-vlan ip-version ipv6 vni 4 udp-src 5 udp-dst 6 ip-src ::1 ip-dst "
		"::2 vlan-tci 34 eth-src 02:00:00:00:00:01 eth-dst 02:00:00:00:00:02",
		"vxlan_encap",
		"eth src is 02:00:00:00:00:01 dst is 02:00:00:00:00:02 / vlan tci is 34 / ipv6 src "
		"is ::1 dst is ::2 / udp src is 5 dst is 6 / vxlan vni is 4");
	check_definition(setup,
		"set vxlan-tos-ttl ip-version ipv4 vni 4 udp-src 5 udp-dst 6 ip-tos 8 ip-ttl 9 "
		"ip-src 192.0.2.1 ip-dst 192.0.2.2 eth-src 02:00:00:00:00:01 eth-dst "
		"02:00:00:00:00:02",
		"vxlan_encap",
		"eth src is 02:00:00:00:00:01 dst is 02:00:00:00:00:02 / ipv4 src is 192.0.2.1 dst "
		"is 192.0.2.2 tos is 8 ttl is 9 / udp src is 5 dst is 6 / vxlan vni is 4");
	check_definition(setup,
		"set nvgre ip-version ipv6 tni 4 ip-src ::1 ip-dst ::2 eth-src 02:00:00:00:00:01 "
		"eth-dst 02:00:00:00:00:02",
		"nvgre_encap",
		"eth src is 02:00:00:00:00:01 dst is 02:00:00:00:00:02 / ipv6 src is ::1 dst is "
		"::2 "
		"/ nvgre tni is 4");
	rule_setup_destroy(setup);
}

static void check_bytes(const struct rule_setup *setup, const char *action, const char *hex)
{
	struct rule_command *command = rule(setup, action);
	const struct rte_flow_action *made = &command->actions[0][0];
	const struct rte_flow_action_raw_encap *encap = made->conf;
	const struct rte_flow_action_raw_decap *decap = made->conf;
	bool is_encap = made->type == RTE_FLOW_ACTION_TYPE_RAW_ENCAP;
	const uint8_t *data = is_encap ? encap->data : decap->data;
	size_t size = is_encap ? encap->size : decap->size;
	char text[512] = "";

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	assert_string_equal(text, hex);
	rule_command_destroy(command);
}

static void test_bytes(void **state)
{
	struct rule_setup *setup = rule_setup_create();

	(void)state;
	/* what no line has said */
	check_bytes(setup, "raw_encap index 2", "");
	check_bytes(setup, "l2_decap", "");
	learn(setup, "set raw_encap 2 eth src is 10:11:22:33:44:55 / vlan tci is 1 / ipv4 src is "
		     "192.0.2.1 / udp dst is 4789 / vxlan vni is 2 / end_set");
	check_bytes(setup, "raw_encap index 2",
		"0000000000001011223344558100"
		"00010800"
		"4500000000000000401100"
		"00c000020100000000"
		"000012b500000000"
		"0800000000000200");
	check_bytes(setup, "raw_encap", "");
	learn(setup, "set raw_decap eth / ipv6 / udp / vxlan / end_set");
	check_bytes(setup, "raw_decap",
		"00000000000000000000000086dd"
		"600000000000114000000000000000000000000000000000000000000000000000"
		"00000000000000"
		"000012b500000000"
		"0800000000000000");
	learn(setup, "set l2_encap-with-vlan ip-version ipv4 vlan-tci 34 eth-src "
		     "02:00:00:00:00:01 eth-dst 02:00:00:00:00:02");
	check_bytes(setup, "l2_encap", "020000000002020000000001810000220000");
	learn(setup, "set l2_decap");
	check_bytes(setup, "l2_decap", "0000000000000000000000000000");
	learn(setup, "set mplsogre_decap ip-version ipv4");
	check_bytes(setup, "mplsogre_decap",
		"0000000000000000000000000800"
		"4500000000000000402f00000000000000000000"
		"00008847"
		"00000100");
	learn(setup, "set mplsoudp_encap ip-version ipv4 label 0x12345 udp-src 5 udp-dst 6 ip-src "
		     "192.0.2.1 ip-dst 192.0.2.2 eth-src 02:00:00:00:00:01 eth-dst "
		     "02:00:00:00:00:02");
	check_bytes(setup, "mplsoudp_encap",
		"0200000000020200000000010800"
		"45000000000000004011"
		"0000c0000201c0000202"
		"0005000600000000"
		"12345100");
	rule_setup_destroy(setup);
}

static void test_sample(void **state)
{
	struct rule_setup *setup = rule_setup_create();
	struct rule_command *none = rule(setup, "sample ratio 2 index 3");
	const struct rule_sample *sample = none->actions[0][0].conf;

	(void)state;
	assert_null(sample->sample.actions);
	learn(setup, "set raw_encap 1 eth / end_set");
	learn(setup, "set sample_actions 3 mark id 0x1234 / raw_encap index 1 / end");
	struct rule_command *some = rule(setup, "sample ratio 2 index 3");

	/* the rule keeps what it has when the setup goes */
	rule_setup_destroy(setup);
	sample = some->actions[0][0].conf;
	const struct rte_flow_action_mark *mark = sample->sample.actions[0].conf;
	const struct rte_flow_action_raw_encap *encap = sample->sample.actions[1].conf;

	assert_int_equal(sample->sample.ratio, 2);
	assert_int_equal(mark->id, 0x1234);
	assert_int_equal(encap->size, 14);
	assert_int_equal(sample->sample.actions[2].type, RTE_FLOW_ACTION_TYPE_END);
	rule_command_destroy(some);
	rule_command_destroy(none);
}

static void test_conntrack(void **state)
{
	struct rule_setup *setup = rule_setup_create();

	(void)state;
	learn(setup, "set conntrack com peer 1 is_orig 1 enable 1 live 1 sack 1 cack 0 last_dir 0 "
		     "liberal 1 state 1 max_ack_win 7 r_lim 5 last_win 510 last_seq 11 last_ack 12 "
		     "last_end 13 last_index 0x8");
	learn(setup, "set conntrack orig scale 7 fin 0 acked 1 unack_data 0 sent_end 14 reply_end "
		     "15 max_win 16 max_ack 17");
	learn(setup, "set conntrack rply scale 6 fin 1 acked 0 unack_data 1 sent_end 24 reply_end "
		     "25 max_win 26 max_ack 27");
	struct rule_command *command = rule(setup, "conntrack");
	const struct rte_flow_action_conntrack *made = command->actions[0][0].conf;
	struct rte_flow_action_conntrack expected = {
		.peer_port = 1,
		.is_original_dir = 1,
		.enable = 1,
		.live_connection = 1,
		.selective_ack = 1,
		.liberal_mode = 1,
		.state = RTE_FLOW_CONNTRACK_STATE_ESTABLISHED,
		.max_ack_window = 7,
		.retransmission_limit = 5,
		.last_window = 510,
		.last_seq = 11,
		.last_ack = 12,
		.last_end = 13,
		.last_index = RTE_FLOW_CONNTRACK_FLAG_ACK,
		.original_dir = {.scale = 7,
			.last_ack_seen = 1,
			.sent_end = 14,
			.reply_end = 15,
			.max_win = 16,
			.max_ack = 17},
		.reply_dir = {.scale = 6,
			.close_initiated = 1,
			.data_unacked = 1,
			.sent_end = 24,
			.reply_end = 25,
			.max_win = 26,
			.max_ack = 27},
	};

	assert_memory_equal(made, &expected, sizeof(expected));
	rule_command_destroy(command);
	command = rule(setup, "conntrack_update ctx");
	const struct rte_flow_modify_conntrack *update = command->actions[0][0].conf;

	assert_memory_equal(&update->new_ct, &expected, sizeof(expected));
	assert_true(update->state && !update->direction);
	rule_command_destroy(command);
	rule_setup_destroy(setup);
}

/* What is learned is the last line, and only lines of set are. */
static void test_learn(void **state)
{
	struct rule_setup *setup = rule_setup_create();
	struct rule_command *command = parse(NULL, "flow flush 0");

	(void)state;
	assert_int_equal(rule_setup_learn(setup, command), -EINVAL);
	rule_command_destroy(command);
	assert_null(rule_setup_line(setup, RULE_SLOT_RAW_ENCAP, 0));
	assert_null(rule_setup_line(NULL, RULE_SLOT_RAW_ENCAP, 0));
	learn(setup, "set raw_encap 0 eth / end_set");
	learn(setup, "set raw_encap eth / vlan / end_set");
	assert_string_equal(rule_setup_line(setup, RULE_SLOT_RAW_ENCAP, 0),
		"set raw_encap eth / vlan / end_set");
	assert_null(rule_setup_line(setup, RULE_SLOT_RAW_ENCAP, 1));
	rule_setup_destroy(setup);
	rule_setup_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definitions),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_conntrack),
		cmocka_unit_test(test_learn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
