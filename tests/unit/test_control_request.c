/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests that are wrong, each in its own way: one line says how, and the next one is answered. */

#include "unit/control_scene.h"

static const struct {
	const char *request, *error;
} wrong[] = {
	{"[]", "the request is not an object like {\"ask\":\"flow list\"}"},
	{"{}", "the request asks nothing: it has no \"ask\""},
	{"{\"ask\":7}", "\"ask\" of the request is not a string"},
	{"{\"ask\":\"drop show\",\"with\":[]}", "\"with\" of the request is not an object"},
	{"{\"ask\":\"drop show\",\"wyth\":{}}", "the request has a key \"wyth\"; only \"ask\" and "
						"\"with\" are known; did you mean with?"},
	{"{\"ask\":\"flow lst\"}", "\"flow lst\": no such request; did you mean flow list?"},
	{"{\"ask\":\"moon phase\"}",
		"\"moon phase\": no such request; there are requests about flow, block, rule, "
		"port, "
		"worker, wire, domain, route, neighbour, drop, export, offload, event, config"},
	{"{\"ask\":\"drop show\",\"with\":{\"wire\":0}}",
		"drop show: \"wire\": no such key; it takes none"},
	{"{\"ask\":\"flow list\",\"with\":{\"prot\":\"tcp\"}}",
		"flow list: \"prot\": no such key; did you mean port?"},
	{"{\"ask\":\"flow list\",\"with\":{\"colour\":1}}",
		"flow list: \"colour\": no such key; known are address, port, proto, wire, zone, "
		"state, worker, offload, blocked, top, by, over_ms, limit, cursor"},
	{"{\"ask\":\"flow list\",\"with\":{\"proto\":\"tpc\"}}",
		"flow list: proto \"tpc\": no such protocol; did you mean tcp?"},
	{"{\"ask\":\"flow list\",\"with\":{\"proto\":\"256\"}}",
		"flow list: proto \"256\": no such protocol"},
	{"{\"ask\":\"flow list\",\"with\":{\"proto\":256}}",
		"flow list: proto 256: a whole number from 0 to 255 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"proto\":true}}",
		"flow list: proto: a protocol is needed: tcp, udp, sctp, icmp, icmp6 or a number"},
	{"{\"ask\":\"flow list\",\"with\":{\"port\":\"80\"}}",
		"flow list: port: a whole number from 0 to 65,535 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"port\":65536}}",
		"flow list: port 65536: a whole number from 0 to 65,535 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"port\":-1}}",
		"flow list: port -1: a whole number from 0 to 65,535 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"port\":80.5}}",
		"flow list: port: a whole number from 0 to 65,535 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"state\":\"opem\"}}",
		"flow list: state \"opem\": no such state; did you mean open?"},
	{"{\"ask\":\"flow list\",\"with\":{\"state\":\"free\"}}",
		"flow list: state \"free\": no such state"},
	{"{\"ask\":\"flow list\",\"with\":{\"address\":\"10.0.0\"}}",
		"flow list: address \"10.0.0\": no IP address or prefix"},
	{"{\"ask\":\"flow list\",\"with\":{\"address\":\"10.0.0.0/33\"}}",
		"flow list: address \"10.0.0.0/33\": a prefix of IPv4 has a length from 0 to 32"},
	{"{\"ask\":\"flow list\",\"with\":{\"address\":\"::/129\"}}",
		"flow list: address \"::/129\": a prefix of IPv6 has a length from 0 to 128"},
	{"{\"ask\":\"flow list\",\"with\":{\"address\":\"10.0.0.0/\"}}",
		"flow list: address \"10.0.0.0/\": a prefix of IPv4 has a length from 0 to 32"},
	{"{\"ask\":\"flow list\",\"with\":{\"address\":7}}",
		"flow list: address: a string is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"wire\":2}}",
		"flow list: wire 2: this engine has 0 to 1"},
	{"{\"ask\":\"flow list\",\"with\":{\"worker\":9}}",
		"flow list: worker 9: this engine has 0 to 1"},
	{"{\"ask\":\"flow list\",\"with\":{\"worker\":16}}",
		"flow list: worker 16: a whole number from 0 to 15 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":0}}",
		"flow list: top 0: a whole number from 1 to 1,000 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":1001}}",
		"flow list: top 1001: a whole number from 1 to 1,000 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":1,\"limit\":1}}",
		"flow list: top and limit do not go together"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":1,\"cursor\":\"0:0\"}}",
		"flow list: top and cursor do not go together"},
	{"{\"ask\":\"flow list\",\"with\":{\"by\":\"rate\"}}",
		"flow list: by is of use with top only"},
	{"{\"ask\":\"flow list\",\"with\":{\"over_ms\":100}}",
		"flow list: over_ms is of use with top only"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":1,\"by\":\"bytes\",\"over_ms\":100}}",
		"flow list: over_ms is of use by rate only"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":1,\"over_ms\":99}}",
		"flow list: over_ms 99: a whole number from 100 to 10,000 is needed"},
	{"{\"ask\":\"flow list\",\"with\":{\"top\":1,\"by\":\"byte\"}}",
		"flow list: by \"byte\": rate, packets, bytes or age are needed; did you mean "
		"bytes?"},
	{"{\"ask\":\"flow list\",\"with\":{\"cursor\":\"\"}}",
		"flow list: cursor \"\": no answer ended with such a one"},
	{"{\"ask\":\"flow list\",\"with\":{\"cursor\":\"2:0\"}}",
		"flow list: cursor \"2:0\": no answer ended with such a one"},
	{"{\"ask\":\"flow list\",\"with\":{\"cursor\":\"0:4294967295\"}}",
		"flow list: cursor \"0:4294967295\": no answer ended with such a one"},
	{"{\"ask\":\"flow list\",\"with\":{\"cursor\":\"0:99999999999999999999\"}}",
		"flow list: cursor \"0:99999999999999999999\": no answer ended with such a one"},
	{"{\"ask\":\"flow list\",\"with\":{\"cursor\":\"0:-1\"}}",
		"flow list: cursor \"0:-1\": no answer ended with such a one"},
	{"{\"ask\":\"flow list\",\"with\":{\"cursor\":\"0:1\",\"worker\":1}}",
		"flow list: cursor \"0:1\": it is of another worker"},
	{"{\"ask\":\"flow explain\"}", "flow explain: src: is needed, but missing"},
	{"{\"ask\":\"flow kill\",\"with\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.0.2\"}}",
		"flow kill: proto: is needed, but missing"},
	{"{\"ask\":\"flow kill\",\"with\":{\"src\":\"here\",\"dst\":\"10.0.0.2\",\"proto\":6}}",
		"flow kill: src \"here\": no IP address"},
	{"{\"ask\":\"flow kill\",\"with\":{\"src\":\"::1\",\"dst\":\"10.0.0.256\",\"proto\":6}}",
		"flow kill: dst \"10.0.0.256\": no IP address"},
	{"{\"ask\":\"flow kill\",\"with\":{\"src\":\"::1\",\"dst\":\"10.0.0.2\",\"proto\":6}}",
		"flow kill: src is of IPv6, dst of IPv4"},
	{"{\"ask\":\"flow "
	 "kill\",\"with\":{\"src\":\"::1\",\"dst\":\"::2\",\"proto\":6,\"wire\":3}}",
		"flow kill: wire 3: this engine has 0 to 1"},
	{"{\"ask\":\"event follow\",\"with\":{\"flows\":1}}",
		"event follow: flows: true or false is needed"},
	/* a control character that came escaped does not get into the line */
	{"{\"ask\":\"flow\\u001blist\"}",
		"\"flow?list\": no such request; did you mean flow list?"},
};

static void test_wrong(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_error(scene, wrong[i].request, wrong[i].error, 2);
}

static void test_one_wire(void **state)
{
	struct scene *scene = *state;

	scene->plane.config.topology = topology_of_wires(1);
	scene->plane.config.n_workers = 1;
	expect_error(scene, "{\"ask\":\"flow list\",\"with\":{\"wire\":1}}",
		"flow list: wire 1: this engine has wire 0 only", 2);
	expect_error(scene, "{\"ask\":\"flow list\",\"with\":{\"cursor\":\"1:0\"}}",
		"flow list: cursor \"1:0\": no answer ended with such a one", 2);
}

/* Answered with an error of which only the beginning is ours; the connection goes on. */
static void expect_not_json(struct scene *scene, struct talker *talker, const char *bytes, size_t n)
{
	static const char begin[] = "the request is not JSON: ";

	talker_say(talker, bytes, n);
	talker_say(talker, "\n", 1);
	json_t *end = talker_line(scene, talker);

	assert_non_null(end);
	assert_non_null(text_of(end, "error"));
	assert_memory_equal(text_of(end, "error"), begin, sizeof(begin) - 1);
	assert_int_equal(number_of(end, "code"), 2);
	json_decref(end);
}

static void test_hostile(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);
	char bytes[4096];

	expect_not_json(scene, talker, "", 0);
	expect_not_json(scene, talker, "flow list", 9);
	expect_not_json(scene, talker, "\0", 1);
	expect_not_json(scene, talker, "{\"ask\":\"a\0b\"}", 13);
	expect_not_json(scene, talker, "{\"ask\":\"a\\u0000b\"}", 18);
	expect_not_json(scene, talker, "\xff\xfe{}", 4);
	expect_not_json(scene, talker, "{\"ask\":\"\xc3(\"}", 12);
	expect_not_json(scene, talker, "{\"ask\":\"drop show\",\"ask\":\"drop show\"}", 37);
	expect_not_json(scene, talker, "{\"ask\":\"drop show\"}{}", 21);
	expect_not_json(scene, talker, "{\"ask\":99999999999999999999999}", 31);
	memset(bytes, '[', sizeof(bytes));
	expect_not_json(scene, talker, bytes, sizeof(bytes));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i % 256 == '\n' ? 0 : i);
	expect_not_json(scene, talker, bytes, sizeof(bytes));

	/* the error quotes what is no UTF-8 once it is cut, and stays JSON */
	memset(bytes, 0xc3, sizeof(bytes));
	for (unsigned i = 1; i < 600; i += 2)
		bytes[i] = (char)0xa9;
	expect_not_json(scene, talker, bytes, 600);

	talker_ask(talker, "{\"ask\":\"config show\"}");
	json_t *lines = talker_answer(scene, talker);

	assert_int_equal(json_array_size(lines), 2);
	json_decref(lines);
	talker_destroy(talker);
}

/* Words as long as a request can be come back cut. */
static void test_long_words(void **state)
{
	struct scene *scene = *state;
	char request[4000], word[3900];

	memset(word, 'x', sizeof(word));
	snprintf(request, sizeof(request), "{\"ask\":\"%.*s\"}", 3900, word);
	json_t *lines = scene_ask(scene, request);

	assert_true(strlen(text_of(lines_end(lines), "error")) < 512);
	json_decref(lines);
	snprintf(request, sizeof(request),
		"{\"ask\":\"flow list\",\"with\":{\"address\":\"%.*s\"}}", 3900, word);
	lines = scene_ask(scene, request);
	assert_true(strlen(text_of(lines_end(lines), "error")) < 512);
	json_decref(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_wrong),
		SCENE_TEST(test_one_wire),
		SCENE_TEST(test_hostile),
		SCENE_TEST(test_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
