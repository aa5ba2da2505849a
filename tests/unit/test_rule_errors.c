/* SPDX-License-Identifier: BSD-3-Clause */

/* What is wrong with a line: the word, its column, what would be right, and what is nearest to it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/command.h"

static const struct {
	const char *line;
	int code;
	unsigned column;
	const char *error;
} refused[] = {
	{"", -ENODATA, 1, "the line has no words"},
	{"# nothing", -ENODATA, 1, "the line has no words"},
	{"flw create 0", -EINVAL, 1,
		"flw: flow, set, add, create, del, enable or disable is needed here; did you mean "
		"flow?"},
	{"flow", -EINVAL, 5, "the line ends early: a command is needed"},
	{"flow crreate 0 pattern end actions end", -EINVAL, 6,
		"crreate: a command is needed here; did you mean create?"},
	{"flow create", -EINVAL, 12, "the line ends early: a number for port is needed"},
	{"flow create x", -EINVAL, 13, "x: a number is needed for port"},
	{"flow create 65535 pattern end actions end", -EINVAL, 13,
		"65535: a number up to 65,534 is needed for port"},
	{"flow create 0", -EINVAL, 14,
		"the line ends early: pattern, group, priority, ingress, egress, transfer, "
		"replies, tunnel_set or tunnel_match is needed"},
	{"flow create 0 ingres pattern end actions end", -EINVAL, 15,
		"ingres: pattern, group, priority, ingress, egress, transfer, replies, tunnel_set "
		"or "
		"tunnel_match is needed here; did you mean ingress?"},
	{"flow create 0 group pattern end actions end", -EINVAL, 21,
		"pattern: a number is needed for group"},
	{"flow create 0 group 4294967296 pattern end actions end", -EINVAL, 21,
		"4294967296: a number up to 4,294,967,295 is needed for group"},
	{"flow create 0 pattern", -EINVAL, 22, "the line ends early: a pattern item is needed"},
	{"flow create 0 pattern ipv5 / end actions end", -EINVAL, 23,
		"ipv5: a pattern item is needed here; did you mean ipv4?"},
	{"flow create 0 pattern ipv4 srce is 1.2.3.4 / end actions end", -EINVAL, 28,
		"srce: version_ihl, tos, length, packet_id, fragment_offset, ttl, proto, src, dst, "
		"from_set, to_set or / is needed here; did you mean src?"},
	{"flow create 0 pattern udp srce is 1 / end actions end", -EINVAL, 27,
		"srce: src, dst or / is needed here; did you mean src?"},
	{"flow create 0 pattern ipv4 src 1.2.3.4 / end actions end", -EINVAL, 32,
		"1.2.3.4: is, spec, last, mask or prefix is needed here"},
	{"flow create 0 pattern ipv4 src iz 1.2.3.4 / end actions end", -EINVAL, 32,
		"iz: is, spec, last, mask or prefix is needed here; did you mean is?"},
	{"flow create 0 pattern ipv4 src is 1.2.3.400 / end actions end", -EINVAL, 35,
		"1.2.3.400: an IPv4 address is needed for src"},
	{"flow create 0 pattern ipv6 src is 1.2.3.4 / end actions end", -EINVAL, 35,
		"1.2.3.4: an IPv6 address is needed for src"},
	{"flow create 0 pattern eth src is 1:2:3:4:5 / end actions end", -EINVAL, 34,
		"1:2:3:4:5: a MAC address, as in 02:00:00:00:00:01, is needed for src"},
	{"flow create 0 pattern udp src is 65536 / end actions end", -EINVAL, 34,
		"65536: a number up to 65,535 is needed for src"},
	{"flow create 0 pattern udp src is -1 / end actions end", -EINVAL, 34,
		"-1: a number is needed for src"},
	{"flow create 0 pattern udp src prefix 17 / end actions end", -EINVAL, 38,
		"17: a number up to 16 is needed for prefix"},
	{"flow create 0 pattern vlan vid is 4096 / end actions end", -EINVAL, 35,
		"4096: a number up to 4,095 is needed for vid"},
	{"flow create 0 pattern eth ipv4 / end actions end", -EINVAL, 27,
		"ipv4: dst, src, type, has_vlan or / is needed here"},
	{"flow create 0 pattern eth / ipv4 end actions end", -EINVAL, 34,
		"end: version_ihl, tos, length, packet_id, fragment_offset, ttl, proto, src, dst, "
		"from_set, to_set or / is needed here"},
	{"flow create 0 pattern eth / ipv4", -EINVAL, 33,
		"the line ends early: version_ihl, tos, length, packet_id, fragment_offset, ttl, "
		"proto, src, dst, from_set, to_set or / is needed"},
	{"flow create 0 pattern eth / end action", -EINVAL, 39,
		"the line ends early: an action is needed"},
	{"flow create 0 pattern eth / end drop / end", -EINVAL, 33,
		"drop: \"actions\" is needed here"},
	{"flow create 0 pattern eth / end actions drp / end", -EINVAL, 41,
		"drp: an action is needed here; did you mean drop?"},
	{"flow create 0 pattern eth / end actions queue indx 3 / end", -EINVAL, 47,
		"indx: index or / is needed here; did you mean index?"},
	{"flow create 0 pattern eth / end actions queue index 3 mark id 3 / end", -EINVAL, 55,
		"mark: index or / is needed here"},
	{"flow create 0 pattern eth / end actions queue index / end", -EINVAL, 53,
		"/: a number is needed for index"},
	{"flow create 0 pattern eth / end actions rss types ipv4-tpc end / end", -EINVAL, 51,
		"ipv4-tpc: a hash type or end is needed here; did you mean ipv4-tcp?"},
	{"flow create 0 pattern eth / end actions rss queues 1 2 / end", -EINVAL, 56,
		"/: a number is needed for queues"},
	{"flow create 0 pattern eth / end actions rss func toplitz / end", -EINVAL, 50,
		"toplitz: default, toeplitz, simple_xor or symmetric_toeplitz is needed here; did "
		"you mean toeplitz?"},
	{"flow create 0 pattern eth / end actions color type blue / end", -EINVAL, 52,
		"blue: green, yellow or red is needed here"},
	{"flow create 0 pattern eth / end actions modify_field src_type tag src_value 01 / end",
		-EINVAL, 67, "src_value: src_type tag has no src_value"},
	{"flow create 0 pattern eth / end actions drop / end now", -EINVAL, 52,
		"now: the line is complete before this word"},
	{"flow create 0 pattern raw relative is maybe / end actions end", -EINVAL, 39,
		"maybe: 0, 1, no, yes, off, on, false, true, N or Y is needed here"},
	{"flow create 0 pattern raw pattern_hex is abc / end actions end", -EINVAL, 42,
		"abc: an even number of hexadecimal digits is needed for pattern_hex"},
	{"flow create 0 pattern raw pattern last ab / end actions end", -EINVAL, 35,
		"last: is, spec or mask is needed here"},
	{"flow create 0 pattern tag index spec 1 / end actions end", -EINVAL, 33,
		"spec: \"is\" is needed here"},
	{"flow create 0 pattern l2tpv2 session_id is 1 / end actions end", -EINVAL, 30,
		"session_id: type or / is needed here"},
	{"flow create 0 pattern l2tpv2 type ctrl / end actions end", -EINVAL, 35,
		"ctrl: data, data_l, data_s, data_o, data_l_s or control is needed here"},
	{"flow create 0 pattern geneve-opt length is 32 / end actions end", -EINVAL, 44,
		"32: a number up to 31 is needed for length"},
	{"flow create 0 pattern ib_bth opcode is 1 / end actions end", -ENOTSUP, 23,
		"ib_bth: it came with DPDK 23.07; rules here are those of DPDK 22.11"},
	{"flow create 0 pattern eth / end actions nat64 type 1 / end", -ENOTSUP, 41,
		"nat64: it came with DPDK 24.03; rules here are those of DPDK 22.11"},
	{"flow create 0 pattern eth / end actions of_dec_mpls_ttl / end", -ENOTSUP, 41,
		"of_dec_mpls_ttl: DPDK 22.11 took it away"},
	{"flow create 0 pattern eth / end actions security / end", -ENOTSUP, 41,
		"security: it needs a session, which no rule can name"},
	{"flow create 0 pattern eth / end actions rss func symmetric_toeplitz_sort queues end / "
	 "end",
		-ENOTSUP, 50,
		"symmetric_toeplitz_sort: it came with DPDK 23.11; rules here are those of DPDK "
		"22.11"},
	{"flow create 0 pattern ib_bth opcode is 1 / end actions qeue / end", -EINVAL, 56,
		"qeue: an action is needed here; did you mean queue?"},
	{"flow destroy 0", -EINVAL, 15, "the line ends early: \"rule\" is needed"},
	{"flow destroy 0 rule", -EINVAL, 20, "the line ends early: a number for rule is needed"},
	{"flow isolate 0 perhaps", -EINVAL, 16,
		"perhaps: 0, 1, no, yes, off, on, false, true, N or Y is needed here"},
	{"flow update 0 3 actions drop / end", -ENOTSUP, 6,
		"update: it came with DPDK 23.07; rules here are those of DPDK 22.11"},
	{"flow queue 0 update_resized 0 rule 1", -ENOTSUP, 14,
		"update_resized: it came with DPDK 24.03; rules here are those of DPDK 22.11"},
	{"flow group 0 group_id 1 ingress set_miss_actions drop / end", -ENOTSUP, 14,
		"group_id: it came with DPDK 23.11; rules here are those of DPDK 22.11"},
	{"flow template_table 0 resize table_resize_id 1 table_resize_rules_num 5", -ENOTSUP, 23,
		"resize: it came with DPDK 24.03; rules here are those of DPDK 22.11"},
	{"flow indirect_action 0 create action_id ingress action count / end", -EINVAL, 41,
		"ingress: a number is needed for action_id"},
	{"flow flush 0 1", -EINVAL, 14, "1: the line is complete before this word"},
	{"set vxlan ip-version ipv4 vni 4", -EINVAL, 32,
		"the line ends early: udp-src, udp-dst, ip-src, ip-dst, eth-src or eth-dst is "
		"needed"},
	{"set vxlan ip-version ipv4 vni 4 udp-src 4 udp-dst 4 ip-src ::1 ip-dst 128.0.0.1 eth-src "
	 "11:11:11:11:11:11 eth-dst 22:22:22:22:22:22",
		-EINVAL, 60, "::1: an IPv4 address is needed for src"},
	{"set vxlan ip-version ipv4 vni 16777216 udp-src 4 udp-dst 4 ip-src 10.0.0.1 ip-dst "
	 "128.0.0.1 eth-src 11:11:11:11:11:11 eth-dst 22:22:22:22:22:22",
		-EINVAL, 31, "16777216: a number up to 16,777,215 is needed for vni"},
	{"set raw_encap 8 eth / end_set", -EINVAL, 15, "8: a number up to 7 is needed for index"},
	{"set raw_encap eth / mark id is 3 / end_set", -ENOTSUP, 21,
		"mark: this item cannot be part of an outer header"},
	{"set raw_encap eth / end", -EINVAL, 21, "end: a pattern item is needed here"},
	{"set sample_actions 0 sample ratio 1 / end", -EINVAL, 22,
		"sample: a sample's actions have no sample among them"},
	{"set conntrack com pear 1", -EINVAL, 19,
		"pear: a word of set conntrack is needed here; did you mean peer?"},
	{"set verbose 1", -EINVAL, 5, "verbose: a command is needed here"},
	{"add port meter profile srtcm_rfc2697 0", -EINVAL, 39,
		"the line ends early: a number for profile is needed"},
};

static void test_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *line = refused[i].line;
		struct rule_command *command;
		struct error error = {""};
		unsigned column = 0;
		int ret = rule_command_parse(&command, NULL, line, strlen(line), &column, &error);

		if (ret != refused[i].code || column != refused[i].column ||
			strcmp(error.text, refused[i].error) != 0)
			fail_msg("%s:\n%d, column %u: %s", line, ret, column, error.text);
		assert_null(command);
	}
}

/* Lines without end: each has an error of its own, and none is read beyond its limit. */
static void check_long(const char *front, const char *repeated, unsigned n, const char *expected)
{
	size_t size = strlen(front) + n * strlen(repeated) + 1, length = strlen(front);
	char *line = malloc(size);
	struct rule_command *command;
	struct error error = {""};
	unsigned column = 0;

	memcpy(line, front, length + 1);
	for (unsigned i = 0; i < n; i++, length += strlen(repeated))
		memcpy(line + length, repeated, strlen(repeated));
	assert_int_equal(rule_command_parse(&command, NULL, line, length, &column, &error), -E2BIG);
	assert_string_equal(error.text, expected);
	free(line);
}

static void test_too_long(void **state)
{
	(void)state;
	check_long("flow create 0 pattern ", "eth / ", 100, "a pattern has at most 64 items");
	check_long("flow create 0 pattern end actions ", "drop / ", 100,
		"a list has at most 64 actions");
	check_long("flow create 0 pattern end actions rss queues ", "1 ", 200,
		"at most 128 queues are possible");
	check_long("flow destroy 0 ", "rule 1 ", 200, "too many words");
	check_long("flow", " x", 3000, "the line has too many words");
	check_long("flow", "x", 9000, "the line is longer than 8192 bytes");
}

/* Bytes that no text has. */
static void test_bytes(void **state)
{
	static const char line[] = "flow create 0 pattern \x01\xff\x7f / end";
	struct rule_command *command;
	struct error error = {""};
	unsigned column = 0;

	(void)state;
	assert_int_equal(
		rule_command_parse(&command, NULL, line, strlen(line), &column, &error), -EINVAL);
	assert_int_equal(column, 23);
	assert_string_equal(error.text, "?\xff?: a pattern item is needed here");
	/* a zero ends the line */
	assert_int_equal(
		rule_command_parse(&command, NULL, "flow flush 0\0 1", 15, &column, &error), 0);
	rule_command_destroy(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
