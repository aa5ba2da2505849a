/* SPDX-License-Identifier: BSD-3-Clause */

/* flow block, flow unblock, block list, and what time does to blocks. */

#include "unit/control_scene.h"

#define BLOCK(with) "{\"ask\":\"flow block\",\"with\":{" with "}}"
#define UNBLOCK(with) "{\"ask\":\"flow unblock\",\"with\":{" with "}}"
#define LIST(with) "{\"ask\":\"block list\",\"with\":{" with "}}"
#define FLOW                                                                                  \
	"\"src\":\"10.0.0.7\",\"sport\":33512,\"dst\":\"10.0.0.10\",\"dport\":443,\"proto\":" \
	"\"tcp\""
#define TURNED                                                                                \
	"\"dst\":\"10.0.0.7\",\"dport\":33512,\"src\":\"10.0.0.10\",\"sport\":443,\"proto\":" \
	"\"tcp\""

#define MAX_BLOCKS 40
#define MAX_REASONS 4

static int setup(void **state)
{
	int ret = scene_setup(state);
	struct scene *scene = *state;

	fake_blocks(&scene->plane, MAX_BLOCKS, MAX_REASONS);
	return ret;
}

#define BLOCK_TEST(function) cmocka_unit_test_setup_teardown(function, setup, scene_teardown)

static struct blocks_stats stats_of(struct scene *scene)
{
	struct blocks_stats stats;

	blocks_stats(scene->plane.blocks, &stats);
	return stats;
}

/* The one line of an answer. */
static json_t *one(struct scene *scene, const char *request)
{
	json_t *lines = expect_lines(scene, request, 1);
	json_t *line = json_incref(json_array_get(lines, 0));

	json_decref(lines);
	return line;
}

/* Both clocks, the plane's and the server's, go on; each step of them is looked at. */
static void pass(struct scene *scene, uint64_t us)
{
	for (uint64_t at = 0; at < us; at += 50000) {
		scene->plane.now_us += 50000;
		scene_now_us += 50000;
		scene_step(scene);
	}
}

static void test_flow(void **state)
{
	struct scene *scene = *state;
	json_t *line = one(scene,
		BLOCK(FLOW ",\"wire\":1,\"zone\":7,\"for\":60,\"reason\":\"a \\\"test\\\"\""));

	assert_int_equal(number_of(line, "number"), 1);
	assert_string_equal(
		text_of(line, "match"), "flow 10.0.0.7:33512 10.0.0.10:443 tcp wire 1 zone 7");
	assert_string_equal(text_of(line, "src"), "10.0.0.7");
	assert_int_equal(number_of(line, "sport"), 33512);
	assert_string_equal(text_of(line, "dst"), "10.0.0.10");
	assert_int_equal(number_of(line, "dport"), 443);
	assert_int_equal(number_of(line, "proto"), 6);
	assert_int_equal(number_of(line, "wire"), 1);
	assert_int_equal(number_of(line, "zone"), 7);
	assert_string_equal(text_of(line, "added"), "2026-11-20T08:01:40.000000Z");
	assert_string_equal(text_of(line, "expires"), "2026-11-20T08:02:40.000000Z");
	assert_int_equal(number_of(line, "expires_in_us"), 60000000);
	assert_string_equal(text_of(line, "reason"), "a \"test\"");
	assert_int_equal(number_of(line, "packets"), 0);
	assert_int_equal(number_of(line, "bytes"), 0);
	assert_true(json_is_true(json_object_get(line, "new")));
	assert_int_equal(json_object_size(line), 16);
	json_decref(line);

	/* the same again, named from the other end: it keeps its number, and is for ever now */
	line = one(scene, BLOCK(TURNED ",\"wire\":1,\"zone\":7"));
	assert_int_equal(number_of(line, "number"), 1);
	assert_true(json_is_false(json_object_get(line, "new")));
	assert_null(json_object_get(line, "expires"));
	assert_null(json_object_get(line, "reason"));
	json_decref(line);
	/* another wire is another flow */
	line = one(scene, BLOCK(FLOW));
	assert_int_equal(number_of(line, "number"), 2);
	json_decref(line);
	assert_int_equal(stats_of(scene).flows, 2);
}

static void test_prefix(void **state)
{
	static const struct {
		const char *with, *match;
	} rows[] = {
		{"\"prefix\":\"192.0.2.1\"", "192.0.2.1"},
		{"\"prefix\":\"192.0.2.0/24\",\"port\":80", "192.0.2.0/24 port 80"},
		{"\"prefix\":\"2001:db8::/32\",\"proto\":\"icmp6\"", "2001:db8::/32 proto icmp6"},
		{"\"prefix\":\"0.0.0.0/0\",\"port\":53,\"proto\":17",
			"0.0.0.0/0 port 53 proto udp"},
	};
	struct scene *scene = *state;

	for (unsigned i = 0; i < 4; i++) {
		char request[256];

		snprintf(request, sizeof(request), BLOCK("%s"), rows[i].with);
		json_t *line = one(scene, request);

		assert_string_equal(text_of(line, "match"), rows[i].match);
		assert_int_equal(number_of(line, "number"), i + 1);
		json_decref(line);
	}
	json_t *line = one(scene, LIST("\"limit\":1,\"cursor\":\"3\""));

	assert_string_equal(text_of(line, "prefix"), "0.0.0.0/0");
	assert_int_equal(number_of(line, "port"), 53);
	assert_int_equal(number_of(line, "proto"), 17);
	assert_null(json_object_get(line, "src"));
	json_decref(line);
}

static void test_unblock(void **state)
{
	struct scene *scene = *state;

	json_decref(one(scene, BLOCK("\"prefix\":\"192.0.2.0/24\",\"port\":80,\"reason\":\"x\"")));
	json_decref(one(scene, BLOCK(FLOW)));
	blocks_count_packets(blocks_counts(scene->plane.blocks, 1), 0, 3, 300);
	/* it has to be the very same */
	expect_error(
		scene, UNBLOCK("\"prefix\":\"192.0.2.0/24\""), "flow unblock: no such block", 1);
	json_t *line = one(scene, UNBLOCK("\"prefix\":\"192.0.2.0/24\",\"port\":80"));

	assert_string_equal(text_of(line, "match"), "192.0.2.0/24 port 80");
	assert_string_equal(text_of(line, "reason"), "x");
	assert_int_equal(number_of(line, "packets"), 3);
	assert_int_equal(number_of(line, "bytes"), 300);
	json_decref(line);
	expect_error(scene, UNBLOCK("\"number\":1"), "flow unblock: no such block", 1);
	line = one(scene, UNBLOCK("\"number\":2"));
	assert_string_equal(text_of(line, "src"), "10.0.0.7");
	json_decref(line);
	assert_int_equal(stats_of(scene).entries, 0);
	/* what it dropped is not forgotten when it has settled */
	pass(scene, 300000);
	json_t *lines = expect_lines(scene, LIST(""), 0);

	assert_int_equal(number_of(lines_end(lines), "gone_packets"), 3);
	assert_int_equal(number_of(lines_end(lines), "gone_bytes"), 300);
	assert_int_equal(number_of(lines_end(lines), "unsettled"), 0);
	assert_int_equal(number_of(lines_end(lines), "removed"), 2);
	json_decref(lines);
}

static void test_errors(void **state)
{
	static const struct {
		const char *request, *error;
	} rows[] = {
		{BLOCK(""), "flow block: prefix is needed, or src, dst and proto of a flow"},
		{BLOCK("\"src\":\"10.0.0.1\",\"dst\":\"10.0.0.2\""),
			"flow block: prefix is needed, or src, dst and proto of a flow"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"src\":\"10.0.0.1\""),
			"flow block: src is of one flow, prefix of all with an end in it; they do "
			"not go together"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"wire\":0"),
			"flow block: wire is of one flow, prefix of all with an end in it; they do "
			"not go together"},
		{BLOCK(FLOW ",\"port\":80"),
			"flow block: port goes with prefix; a flow has sport and dport"},
		{BLOCK("\"src\":\"10.0.0.1\",\"dst\":\"10.0.0.2\",\"proto\":\"icmp\",\"sport\":1"),
			"flow block: this protocol has no ports"},
		{BLOCK("\"src\":\"10.0.0.1\",\"dst\":\"::2\",\"proto\":\"tcp\""),
			"flow block: src is of IPv4, dst of IPv6"},
		{BLOCK(FLOW ",\"wire\":2"), "flow block: wire 2: this engine has 0 to 1"},
		{BLOCK("\"prefix\":\"10.0.0.1/8\""),
			"flow block: 10.0.0.1/8: the address has bits set beyond the prefix; that "
			"is 10.0.0.0/8"},
		{BLOCK("\"prefix\":\"10.0.0.0/33\""),
			"flow block: 10.0.0.0/33: a prefix of IPv4 has a length from 0 to 32"},
		{BLOCK("\"prefix\":\"x\""), "flow block: x: no IP address or prefix"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"port\":1,\"proto\":\"icmp\""),
			"flow block: port 1: this protocol has no ports"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"port\":0"),
			"flow block: port 0: a whole number from 1 to 65,535 is needed"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"proto\":\"tpc\""),
			"flow block: proto \"tpc\": no such protocol; did you mean tcp?"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"for\":0"),
			"flow block: for 0: a whole number from 1 to 1,000,000,000 is needed"},
		{BLOCK("\"prefix\":\"10.0.0.1\",\"reason\":\"a\\tb\""),
			"flow block: reason \"a?b\": a reason has no control characters, nor "
			"blanks at its ends"},
		{BLOCK("\"prefx\":\"10.0.0.1\""),
			"flow block: \"prefx\": no such key; did you mean prefix?"},
		{"{\"ask\":\"flow blockk\"}",
			"\"flow blockk\": no such request; did you mean flow block?"},
		{BLOCK("\"list\":\"10.0.0.1\",\"for\":3"),
			"flow block: list and for do not go together"},
		{BLOCK("\"list\":\"10.0.0.1\\n10.0.0.2 prt 5\""),
			"flow block: list:2:10: prt: no such word; did you mean port?"},
		{UNBLOCK(""), "flow unblock: prefix is needed, or src, dst and proto of a flow"},
		{UNBLOCK("\"number\":0"),
			"flow unblock: number: a whole number from 1 on is needed"},
		{UNBLOCK("\"number\":1,\"prefix\":\"10.0.0.1\""),
			"flow unblock: number says which block; nothing else goes with it"},
		{LIST("\"cursor\":\"x\""),
			"block list: cursor \"x\": no answer ended with such a one"},
		{LIST("\"cursor\":\"99999999999\""),
			"block list: cursor \"99999999999\": no answer ended with such a one"},
		{LIST("\"prefix\":\"10.0.0.1\",\"port\":80"),
			"block list: prefix lists all blocks there, whatever their port and proto"},
	};
	struct scene *scene = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_error(scene, rows[i].request, rows[i].error, 2);
	assert_int_equal(stats_of(scene).entries, 0);
	assert_int_equal(blocks_generation(scene->plane.blocks), 1);
}

/* A reason that is too long is told by its length. */
static void test_long_reason(void **state)
{
	struct scene *scene = *state;
	char request[512], reason[119] = "";

	memset(reason, 'r', 117);
	snprintf(request, sizeof(request), BLOCK("\"prefix\":\"10.0.0.1\",\"reason\":\"%s\""),
		reason);
	json_decref(one(scene, request));
	reason[117] = 'r';
	snprintf(request, sizeof(request), BLOCK("\"prefix\":\"10.0.0.2\",\"reason\":\"%s\""),
		reason);
	json_t *lines = scene_ask(scene, request);

	assert_non_null(
		strstr(text_of(lines_end(lines), "error"), "a reason has at most 117 bytes"));
	json_decref(lines);
	assert_int_equal(stats_of(scene).entries, 1);
}

static void fill(struct scene *scene, unsigned n, const char *more)
{
	for (unsigned i = 0; i < n; i++) {
		char request[160];

		snprintf(request, sizeof(request), BLOCK("\"prefix\":\"10.0.%u.%u\"%s"), i / 256,
			i % 256, more);
		json_decref(one(scene, request));
	}
}

static void test_full(void **state)
{
	struct scene *scene = *state;
	char request[160];

	for (unsigned i = 0; i < MAX_REASONS; i++) {
		snprintf(request, sizeof(request),
			BLOCK("\"prefix\":\"192.0.2.%u\",\"reason\":\"%u\""), i, i);
		json_decref(one(scene, request));
	}
	expect_error(scene, BLOCK("\"prefix\":\"192.0.2.9\",\"reason\":\"new\""),
		"flow block: no room for one more reason: there are 4 different ones "
		"(blocks.reasons)",
		1);
	fill(scene, MAX_BLOCKS - MAX_REASONS, "");
	expect_error(scene, BLOCK("\"prefix\":\"192.0.2.9\""),
		"flow block: the list is full: it has 40 blocks (blocks.max)", 1);
	expect_error(scene, BLOCK("\"list\":\"192.0.2.8\\n192.0.2.9\""),
		"flow block: list: no room for the 2 blocks of this list: 40 of 40 are in use, "
		"with 4 of 4 reasons",
		1);
	/* what is there may still be changed */
	json_decref(one(scene, BLOCK("\"prefix\":\"10.0.0.1\",\"for\":5")));
}

/* Removed blocks that no worker has settled fill the spare room: the request waits for that. */
static void test_unsettled(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);
	const uint32_t spare = MAX_BLOCKS / 16 + 1024;
	struct block block = {.match = {.prefix = {.version = 4,
						.length = 32,
						.port = BLOCK_ANY,
						.proto = BLOCK_ANY}}};

	fill(scene, MAX_BLOCKS - 1, "");
	scene->plane.undecided = true;
	for (uint32_t i = 0; i < spare + 1; i++) {
		block.match.prefix.addr[0] = 11;
		block.match.prefix.addr[2] = (uint8_t)(i >> 8);
		block.match.prefix.addr[3] = (uint8_t)i;
		assert_int_equal(blocks_add(scene->plane.blocks, &block, 0, NULL), 0);
		assert_int_equal(blocks_remove(scene->plane.blocks, &block.match, NULL), 0);
	}
	talker_ask(talker, BLOCK("\"prefix\":\"192.0.2.9\""));
	pass(scene, 1000000);
	talker_read(talker);
	assert_null(memmem(talker->data, talker->n, "\"end\"", 5));
	scene->plane.undecided = false;
	pass(scene, 1000000);
	json_t *lines = talker_answer(scene, talker);

	assert_true(json_is_null(json_object_get(lines_end(lines), "error")));
	assert_int_equal(json_array_size(lines), 2);
	json_decref(lines);
	talker_destroy(talker);
}

static void test_lists_of_lines(void **state)
{
	struct scene *scene = *state;
	json_t *line = one(scene, BLOCK("\"list\":\"10.0.0.1 for 5 reason x\\n# no\\n\\nflow "
					"10.0.0.1:1 10.0.0.2:2 udp\\n\""));

	assert_int_equal(number_of(line, "added"), 2);
	assert_int_equal(number_of(line, "replaced"), 0);
	json_decref(line);
	line = one(scene, BLOCK("\"list\":\"10.0.0.1\\n10.0.0.3\""));
	assert_int_equal(number_of(line, "added"), 1);
	assert_int_equal(number_of(line, "replaced"), 1);
	json_decref(line);
	assert_int_equal(stats_of(scene).entries, 3);
}

static void test_list(void **state)
{
	struct scene *scene = *state;
	json_t *lines = expect_lines(scene, LIST(""), 0);
	json_t *end = lines_end(lines);

	assert_int_equal(number_of(end, "blocks"), 0);
	assert_int_equal(number_of(end, "max"), MAX_BLOCKS);
	assert_true(json_is_null(json_object_get(end, "cursor")));
	json_decref(lines);
	fill(scene, 30, "");
	json_decref(one(scene, BLOCK(FLOW)));
	json_decref(one(scene, BLOCK("\"prefix\":\"10.0.0.0/16\",\"proto\":\"udp\"")));
	json_decref(one(scene, BLOCK("\"prefix\":\"2001:db8::/32\"")));

	/* page by page, each once */
	unsigned seen = 0;
	char request[128] = LIST("\"limit\":7");

	for (unsigned page = 0; page < 5; page++) {
		lines = expect_lines(scene, request, page < 4 ? 7 : 5);
		for (size_t i = 0; i + 1 < json_array_size(lines); i++)
			assert_int_equal(number_of(json_array_get(lines, i), "number"), ++seen);
		end = lines_end(lines);
		assert_int_equal(number_of(end, "blocks"), 33);
		assert_int_equal(number_of(end, "flows"), 1);
		if (page < 4)
			snprintf(request, sizeof(request), LIST("\"limit\":7,\"cursor\":\"%s\""),
				text_of(end, "cursor"));
		else
			assert_true(json_is_null(json_object_get(end, "cursor")));
		json_decref(lines);
	}
	json_decref(expect_lines(scene, LIST("\"limit\":33"), 33));

	/* the flow has two: its own, and that of its responder; not the prefix, which is of udp */
	lines = expect_lines(scene, LIST(FLOW), 3);
	assert_string_equal(text_of(json_array_get(lines, 0), "match"), "10.0.0.7");
	assert_string_equal(text_of(json_array_get(lines, 1), "match"), "10.0.0.10");
	json_decref(lines);
	json_decref(expect_lines(scene, LIST("\"prefix\":\"10.0.0.4/30\""), 4 + 2));
	json_decref(expect_lines(scene, LIST("\"prefix\":\"2001:db8::1\""), 1));
}

/* More than the output's buffer holds comes whole to who reads late. */
static void test_long_list(void **state)
{
	struct scene *scene = *state;
	struct talker *talker;

	fake_fini(&scene->plane);
	fake_blocks(&scene->plane, 5000, 1);
	for (unsigned i = 0; i < 700; i++) {
		struct block block = {.reason = "the same for all"};
		struct error error;
		char prefix[32];

		snprintf(prefix, sizeof(prefix), "10.%u.%u.0/24", i / 256, i % 256);
		assert_int_equal(
			block_parse_prefix(&block.match, prefix, BLOCK_ANY, BLOCK_ANY, &error), 0);
		assert_int_equal(blocks_add(scene->plane.blocks, &block, 0, NULL), 0);
	}
	talker = talker_create(scene);
	talker_ask(talker, LIST(""));
	scene_settle(scene);
	json_t *lines = talker_answer(scene, talker);

	assert_int_equal(json_array_size(lines), 701);
	for (unsigned i = 0; i < 700; i++)
		assert_int_equal(number_of(json_array_get(lines, i), "number"), i + 1);
	json_decref(lines);
	talker_destroy(talker);
}

/* It ends by itself within a second of its time, never before, and those who follow are told. */
static void test_expiry(void **state)
{
	struct scene *scene = *state;
	struct talker *all = talker_create(scene), *few = talker_create(scene);

	talker_ask(all, "{\"ask\":\"event follow\"}");
	talker_ask(few, "{\"ask\":\"event follow\",\"with\":{\"flows\":false}}");
	scene_settle(scene);
	scene->plane.now_us += 300000; /* in the middle of a second */
	json_decref(one(scene, BLOCK(FLOW ",\"for\":3,\"reason\":\"short\"")));
	json_decref(one(scene, BLOCK("\"prefix\":\"10.0.0.0/8\",\"for\":3")));
	json_decref(one(scene, BLOCK("\"prefix\":\"192.0.2.1\"")));
	pass(scene, 2950000);
	assert_int_equal(stats_of(scene).entries, 3);
	pass(scene, 900000);
	assert_int_equal(stats_of(scene).entries, 1);
	assert_int_equal(stats_of(scene).expired, 2);
	talker_read(all);
	talker_read(few);
	assert_non_null(memmem(all->data, all->n, "\"event\":\"block_expired\",\"number\":1,", 35));
	assert_non_null(memmem(all->data, all->n, "\"reason\":\"short\"", 16));
	assert_non_null(memmem(all->data, all->n, "\"event\":\"block_expired\",\"number\":2,", 35));
	/* flows are not for everybody */
	assert_null(memmem(few->data, few->n, "\"event\":\"block_expired\",\"number\":1,", 35));
	assert_non_null(memmem(few->data, few->n, "\"event\":\"block_expired\",\"number\":2,", 35));
	talker_destroy(all);
	talker_destroy(few);
}

/* What the records of live flows say, and explaining one. */
static void test_live(void **state)
{
	struct scene *scene = *state;
	struct flow_record record = fake_flow("10.0.0.7", 33512, "10.0.0.10", 443, 6);

	fake_add(&scene->plane, 0, 3, &record)->key.port[0] ^= 1;
	record.not_plain = 1;
	record.was_dropped = 1;
	record.verdict[0] = record.verdict[1] = FLOW_VERDICT_DROP;
	fake_add(&scene->plane, 1, 5, &record);
	json_decref(one(scene, BLOCK("\"prefix\":\"192.0.2.0/24\"")));
	json_decref(one(scene, BLOCK("\"prefix\":\"10.0.0.0/8\",\"for\":60,\"reason\":\"why\"")));
	scene->plane.dropped[1][5] =
		(struct flow_dropped){.packets = 12, .bytes = 3400, .cause = 1};
	json_t *line = one(scene, "{\"ask\":\"flow list\",\"with\":{\"blocked\":true}}");

	assert_true(json_is_true(json_object_get(line, "blocked")));
	assert_int_equal(number_of(line, "blocked_packets"), 12);
	assert_int_equal(number_of(line, "blocked_bytes"), 3400);
	json_decref(line);
	line = one(scene, "{\"ask\":\"flow list\",\"with\":{\"blocked\":false}}");
	assert_null(json_object_get(line, "blocked"));
	assert_null(json_object_get(line, "blocked_packets"));
	json_decref(line);
	json_decref(expect_lines(scene, "{\"ask\":\"flow list\"}", 2));
	line = one(scene,
		"{\"ask\":\"flow list\",\"with\":{\"top\":1,\"by\":\"packets\",\"blocked\":true}}");
	assert_int_equal(number_of(line, "blocked_packets"), 12);
	json_decref(line);

	line = one(scene, "{\"ask\":\"flow explain\",\"with\":{" FLOW "}}");
	const json_t *block = json_object_get(line, "block");

	assert_string_equal(text_of(line, "verdict"), "drop");
	assert_string_equal(text_of(line, "reverse_verdict"), "drop");
	assert_int_equal(number_of(line, "blocked_packets"), 12);
	assert_int_equal(number_of(block, "number"), 2);
	assert_string_equal(text_of(block, "match"), "10.0.0.0/8");
	assert_string_equal(text_of(block, "reason"), "why");
	assert_int_equal(number_of(block, "expires_in_us"), 60000000);
	json_decref(line);

	/* taken back, and the worker has not yet come to it */
	scene->plane.undecided = true;
	json_decref(one(scene, UNBLOCK("\"number\":2")));
	line = one(scene, "{\"ask\":\"flow explain\",\"with\":{" FLOW "}}");
	assert_null(json_object_get(line, "block"));
	assert_true(json_is_true(json_object_get(line, "blocked")));
	json_decref(line);
}

static void test_none(void **state)
{
	static const char none[] = ": this engine keeps no list of blocks; it was started with "
				   "blocks.max 0";
	static const char *const requests[] = {
		BLOCK("\"prefix\":\"10.0.0.1\""), UNBLOCK("\"number\":1"), LIST("")};
	static const char *const asks[] = {"flow block", "flow unblock", "block list"};
	struct scene *scene = *state;
	char error[128];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(error, sizeof(error), "%s%s", asks[i], none);
		expect_error(scene, requests[i], error, 1);
	}
	json_decref(expect_lines(scene, "{\"ask\":\"flow list\",\"with\":{\"blocked\":true}}", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BLOCK_TEST(test_flow),
		BLOCK_TEST(test_prefix),
		BLOCK_TEST(test_unblock),
		BLOCK_TEST(test_errors),
		BLOCK_TEST(test_long_reason),
		BLOCK_TEST(test_full),
		BLOCK_TEST(test_unsettled),
		BLOCK_TEST(test_lists_of_lines),
		BLOCK_TEST(test_list),
		BLOCK_TEST(test_long_list),
		BLOCK_TEST(test_expiry),
		BLOCK_TEST(test_live),
		SCENE_TEST(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
