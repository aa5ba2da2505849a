/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/sim.h"

static struct sim_args args;

static const struct sim_args *good(const char *text)
{
	struct error error = {"nothing said"};

	memset(&args, 0xff, sizeof(args));
	if (sim_args_parse(&args, text, &error) != 0)
		fail_msg("%s: %s", text, error.text);
	return &args;
}

/* Refused with a line that has these words. */
static void bad(const char *text, const char *said)
{
	struct error error = {""};

	if (sim_args_parse(&args, text, &error) != -EINVAL)
		fail_msg("%s: taken", text);
	if (strstr(error.text, said) == NULL || strchr(error.text, '\n') != NULL)
		fail_msg("%s: \"%s\", not \"%s\"", text, error.text, said);
}

static void check_default(const struct sim_args *plain)
{
	assert_int_equal(plain->source, SIM_SOURCE_STREAMS);
	assert_int_equal(plain->streams.flows, 1024);
	assert_int_equal(plain->sides, STREAM_FORWARD);
	assert_int_equal(plain->sequence.load, SEQUENCE_IN_ORDER);
	assert_int_equal(plain->passes, 0);
	assert_int_equal(plain->rate, 10000000);
	assert_int_equal(plain->max_queues, SIM_MAX_QUEUES);
	assert_int_equal(plain->link_mbps, 10000);
	assert_false(plain->cold || plain->has_mac || plain->nic_thread);
	assert_string_equal(plain->profile.name, "ideal");
	assert_string_equal(plain->nic, "");
	assert_string_equal(plain->faults, "");
	assert_int_equal(plain->ghosts, 0);
}

static void test_defaults(void **state)
{
	(void)state;
	check_default(good(NULL));
	check_default(good(""));
}

static void test_streams(void **state)
{
	static const uint16_t tcp[STREAM_N_PROTOS] = {[STREAM_TCP] = 256};
	unsigned sum = 0;

	(void)state;
	assert_int_equal(good("flows=1")->streams.flows, 1);
	assert_int_equal(good("flows=67108864")->streams.flows, STREAM_MAX_FLOWS);
	good("seed=18446744073709551615");
	assert_true(args.streams.seed == UINT64_MAX && args.sequence.seed == UINT64_MAX);
	assert_int_equal(good("load=uniform")->sequence.load, SEQUENCE_UNIFORM);
	assert_int_equal(good("load=zipf")->sequence.load, SEQUENCE_ZIPF);
	assert_true(good("load=zipf:1.5")->sequence.exponent == 1.5);
	assert_int_equal(good("side=reverse")->sides, STREAM_REVERSE);
	assert_int_equal(good("side=both")->sides, STREAM_BOTH);
	good("size=64-1500");
	assert_int_equal(args.streams.size_min, 64);
	assert_int_equal(args.streams.size_max, 1500);
	good("size=9216");
	assert_int_equal(args.streams.size_min, 9216);
	assert_int_equal(args.streams.size_max, 9216);
	assert_true(good("size=imix")->streams.imix);
	good("proto=tcp,flows=5");
	assert_memory_equal(args.streams.proto_share, tcp, sizeof(tcp));
	good("proto=mix");
	for (unsigned i = 0; i < STREAM_N_PROTOS; i++) {
		assert_int_not_equal(args.streams.proto_share[i], 0);
		sum += args.streams.proto_share[i];
	}
	assert_int_equal(sum, 256);
	assert_int_equal(good("ipv6=100")->streams.ipv6_share, 256);
	assert_int_equal(good("vlan=50")->streams.vlan_share, 128);
	assert_int_equal(good("passes=3")->passes, 3);
	assert_int_equal(good("rate=1000")->rate, 1000);
	assert_int_equal(good("pace=0")->pace, 0);
	/* what nobody but the NIC sees comes at the same pace */
	assert_int_equal(good("pace=5000")->pace, 5000);
	assert_int_equal(good("pace=5000")->rate, 5000);
	assert_true(good("cold=1")->cold);
}

static void test_sources(void **state)
{
	(void)state;
	good("capture=/some/where.pcap,passes=1");
	assert_int_equal(args.source, SIM_SOURCE_CAPTURE);
	assert_string_equal(args.capture, "/some/where.pcap");
	assert_int_equal(args.written, 0);
	assert_int_equal(good("capture=a,written=128")->written, 128);
	good("port=net_ring0,nic_core=0");
	assert_int_equal(args.source, SIM_SOURCE_PORT);
	assert_string_equal(args.port, "net_ring0");
	assert_true(args.nic_thread && args.nic_core == 0);
	assert_int_equal(good("port=net_ring0,nic_core=-1")->nic_core, -1);
	assert_false(good("port=net_ring0")->nic_thread);
	assert_int_equal(good("source=none")->source, SIM_SOURCE_NONE);
	assert_string_equal(good("capture=/a=b/c[1,2].pcap")->capture, "/a=b/c[1,2].pcap");
	bad("source=streams", "source=none");
	bad("flows=2,written=128", "written=");
	bad("flows=2,capture=x", "flows= and capture=");
	bad("port=a,source=none", "port= and source=");
	bad("capture=x,seed=1", "seed= says nothing of a port with capture=");
	bad("source=none,passes=1", "passes= says nothing of a port with source=");
	bad("port=a,cold=1", "cold= says nothing");
	bad("nic_core=1", "nic_core= says nothing of a port with flows=");
	bad("nic_core=x,port=a", "nic_core=x");
	bad("nic_core=1000,port=a", "there is no such processor");
}

static void test_limits(void **state)
{
	const struct sim_profile *profile = &args.profile;

	(void)state;
	good("profile=tiny");
	assert_string_equal(profile->name, "tiny");
	assert_int_equal(profile->size, 512);
	/* a limit stands over the profile's, wherever it is said */
	assert_int_equal(good("rules=5,profile=tiny")->profile.size, 5);
	assert_string_equal(profile->name, "tiny");
	assert_int_equal(good("create_ns=11000000")->profile.create_ns, 11000000);
	assert_int_equal(good("destroy_ns=7")->profile.destroy_ns, 7);
	assert_int_equal(good("flush_ns=6")->profile.flush_ns, 6);
	assert_int_equal(good("query_ns=8")->profile.query_ns, 8);
	assert_true(good("spin=1")->profile.spin);
	assert_int_equal(good("rate_rules=4500000")->profile.rate, 4500000);
	assert_int_equal(good("answer_ns=9")->profile.answer_ns, 9);
	assert_int_equal(good("mark_bits=24")->profile.mark_bits, 24);
	assert_int_equal(good("groups=1")->profile.groups, 1);
	assert_int_equal(good("priorities=2")->profile.priorities, 2);
	assert_false(good("transfer=0")->profile.transfer);
	assert_false(good("egress=0")->profile.egress);
	assert_false(good("async=0")->profile.async);
	assert_false(good("sync=0")->profile.sync);
	assert_true(good("ranges=1")->profile.ranges);
	assert_false(good("ranges=0")->profile.ranges);
	assert_true(good("fate_needed=1")->profile.fate_needed);
	assert_true(good("keep_rules=1")->profile.keeps_rules);
	assert_int_equal(good("input_set=exact")->profile.input_set, SIM_INPUT_EXACT);
	assert_int_equal(good("input_set=per_type")->profile.input_set, SIM_INPUT_PER_TYPE);
	assert_int_equal(good("input_set=any")->profile.input_set, SIM_INPUT_ANY);
	bad("sync=0,async=0", "sync=0 and async=0");
	bad("profile=tinny", "did you mean tiny?");
	bad("profile=nothing-like-it", "no such profile");
	bad("spin=2", "spin=2: 0 or 1");
	bad("mark_bits=33", "0 to 32");
	bad("create_ns=60000000001", "create_ns=60000000001");
}

static uint64_t bit(enum rte_flow_action_type type)
{
	return UINT64_C(1) << sim_action_bit(type);
}

static void test_lists(void **state)
{
	uint64_t all;

	(void)state;
	all = good(NULL)->profile.actions;
	good("actions=mark+queue");
	assert_int_equal(args.profile.actions,
		bit(RTE_FLOW_ACTION_TYPE_MARK) | bit(RTE_FLOW_ACTION_TYPE_QUEUE));
	good("actions=-count");
	assert_int_equal(args.profile.actions, all & ~bit(RTE_FLOW_ACTION_TYPE_COUNT));
	good("actions=-count-mark+count");
	assert_int_equal(args.profile.actions, all & ~bit(RTE_FLOW_ACTION_TYPE_MARK));
	good("actions=+of_push_vlan+dec_ttl");
	assert_int_equal(args.profile.actions, all);
	good("items=eth+ipv4+udp");
	assert_int_equal(args.profile.items, UINT64_C(1) << RTE_FLOW_ITEM_TYPE_ETH |
						     UINT64_C(1) << RTE_FLOW_ITEM_TYPE_IPV4 |
						     UINT64_C(1) << RTE_FLOW_ITEM_TYPE_UDP);
	good("items=-vlan");
	assert_int_equal(args.profile.items >> RTE_FLOW_ITEM_TYPE_VLAN & 1, 0);
	bad("actions=+count-mrak", "did you mean mark?");
	bad("actions=+", "actions=");
	bad("items=eth++udp", "items=");
	bad("items=tcpp", "did you mean tcp?");
}

static void test_hostile(void **state)
{
	uint32_t by_profile;

	(void)state;
	by_profile = good("profile=x710-stock")->profile.quirks;
	assert_int_not_equal(by_profile, 0);
	assert_int_equal(good("profile=x710-stock,hostile=1")->profile.quirks, by_profile);
	assert_int_equal(good("hostile=0,profile=x710-stock")->profile.quirks, 0);
	good("hostile=blame+unfilled");
	assert_int_equal(args.profile.quirks, SIM_QUIRK_BLAME | SIM_QUIRK_UNFILLED);
	good("profile=x710-stock,hostile=-unfilled+no_validate");
	assert_int_equal(args.profile.quirks,
		(by_profile & ~(uint32_t)SIM_QUIRK_UNFILLED) | SIM_QUIRK_NO_VALIDATE);
	good("hostile=full_errno");
	assert_true(args.profile.full_errno > 0);
	good("hostile=validate_yes+packet_type");
	assert_int_equal(args.profile.quirks, SIM_QUIRK_VALIDATE_YES | SIM_QUIRK_PACKET_TYPE);
	bad("hostile=2", "hostile=");
	bad("hostile=unfiled", "did you mean unfilled?");
}

static void test_nic(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0xab, 1};
	char text[700];

	(void)state;
	assert_string_equal(good("nic=left")->nic, "left");
	assert_int_equal(good("queues=1")->max_queues, 1);
	assert_memory_equal(good("mac=02:00:00:00:aB:01")->mac, mac, sizeof(mac));
	assert_true(args.has_mac);
	assert_int_equal(good("link_mbps=100000")->link_mbps, 100000);
	assert_int_equal(good("counter_bits=32")->counter_bits, 32);
	assert_int_equal(good("ghost=9")->ghosts, 9);
	assert_string_equal(good("fault=lose:every=10/forget")->faults, "lose:every=10/forget");
	assert_string_equal(good("fault=lose,fault=late:ms=5")->faults, "lose/late:ms=5");
	assert_string_equal(good("fault=[fail:every=3,errno=5]")->faults, "fail:every=3,errno=5");
	bad("queues=17", "1 to 16");
	bad("queues=0", "queues=0");
	bad("mac=1", "mac=1 is no address");
	bad("mac=00:00:00:00:00:00", "neither");
	bad("mac=ff:ff:ff:ff:ff:ff", "neither");
	bad("counter_bits=65", "1 to 64");
	bad("link_mbps=0", "link_mbps=0");
	memset(text, 'x', sizeof(text));
	memcpy(text, "nic=", 4);
	text[90] = '\0';
	bad(text, "longer than 63 bytes");
	memset(text, 'x', sizeof(text));
	memcpy(text, "fault=", 6);
	text[600] = '\0';
	bad(text, "faults of more than");
}

static void test_bad_words(void **state)
{
	(void)state;
	bad("flow=3", "did you mean flows=?");
	bad("zzzzzzzzz=3", "zzzzzzzzz=: there is no such argument");
	good(",,flows=3,");
	bad("=3", "=: there is no such argument");
	bad("flows", "flows needs a value");
	bad("flows=", "flows needs a value");
	bad("flows=1,flows=2", "flows= is given twice");
	bad("flows=-1", "flows=-1");
	bad("flows= 1", "flows= 1");
	bad("flows=0", "1 to 67108864");
	bad("flows=67108865", "flows=67108865");
	bad("flows=99999999999999999999999", "flows=9999");
	bad("flows=1k", "flows=1k");
	bad("size=63", "size=63");
	bad("size=1500-64", "size=1500-64");
	bad("size=64-", "size=64-");
	bad("size=64-9217", "size=64-9217");
	bad("size=imux", "size=imux");
	bad("side=up", "forward, reverse or both");
	bad("side=forwards", "did you mean forward?");
	bad("proto=upd", "did you mean udp?");
	bad("ipv6=101", "0 to 100");
	bad("load=zipf:0", "load=zipf:0");
	bad("load=ordered", "load=ordered");
	bad("input_set=some", "input_set=some");
	bad("rate=0", "rate=0");
	bad("cold=yes", "cold=yes: 0 or 1");
}

/* The help names all words; what it names is known. */
static void test_help(void **state)
{
	char *text = strdup(SIM_ARGS_HELP), *rest = text, *word;
	unsigned n = 0;

	(void)state;
	assert_non_null(text);
	while ((word = strsep(&rest, " ")) != NULL) {
		struct error error;
		char one[64];

		n++;
		snprintf(one, sizeof(one), "%.*s=~", (int)strcspn(word, "="), word);
		if (sim_args_parse(&args, one, &error) < 0)
			assert_null(strstr(error.text, "no such argument"));
	}
	assert_int_equal(n, 47);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_nic),
		cmocka_unit_test(test_bad_words),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
