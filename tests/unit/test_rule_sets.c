/* SPDX-License-Identifier: BSD-3-Clause */
/* Named sets of addresses: the lines that fill them, and rules that ask for an address in one. */
#include <unistd.h>

#include "rule/rules_private.h"
#include "unit/rules_scene.h"

#define MAX_PREFIXES 64

static struct rules_scene scene;

/* The scene's rules, with sets. */
static void open_sets(bool any)
{
	const struct rules_config config = {
		.max_rules = 64,
		.max_sets = 4,
		.max_prefixes = MAX_PREFIXES,
		.any_set = any,
		.n_workers = 1,
		.topology = &scene.topology,
		.programs = scene.programs,
		.secret = &test_secret,
		.qsbr = scene.qsbr,
	};

	rules_destroy(scene.rules);
	assert_int_equal(rules_create(&scene.rules, &config), 0);
}

static int open_scene(void **state)
{
	(void)state;
	scene_open(&scene, 8, false);
	open_sets(false);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	scene_close(&scene);
	return 0;
}

static void fill(const char *line)
{
	struct error error;

	assert_int_equal(rules_set_check(line, &error), 0);
	if (rules_set_fill(scene.rules, line, &error) < 0)
		fail_msg("%s: %s", line, error.text);
}

static void refuse(const char *line, const char *why)
{
	struct error error = {""};

	assert_true(rules_set_fill(scene.rules, line, &error) < 0);
	assert_string_equal(error.text, why);
}

static struct flow_key key_v4(uint32_t src, uint32_t dst)
{
	struct flow_key key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};

	src = rte_cpu_to_be_32(src);
	dst = rte_cpu_to_be_32(dst);
	memcpy(key.addr[0], &src, 4);
	memcpy(key.addr[1], &dst, 4);
	return key;
}

/* What is done with packets of a flow from its first address to the second. */
static uint16_t verdict(uint32_t src, uint32_t dst)
{
	static const uint16_t ports[2] = {0, 1};
	const struct flow_key key = key_v4(src, dst);
	struct flow_decision decision = {.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}};

	rules_decide(scene.rules, &key, ports, &decision);
	return decision.verdict[0];
}

/* Of IPv4, in the host's order; RTE_IPV4() shifts into the sign. */
static uint32_t address(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return a << 24 | b << 16 | c << 8 | d;
}

static void test_rules_ask_for_sets(void **state)
{
	(void)state;
	fill("bad 192.0.2.0/24, 198.51.100.7 2001:db8::/32");
	fill("bad 203.0.113.0/24 # and more of it");
	fill("good 10.0.0.0/8");
	assert_string_equal(
		scene_command(&scene, "flow create 0 ingress pattern eth / ipv4 from_set is bad "
				      "to_set is good / end actions drop / end"),
		"Flow rule #0 created\n");
	assert_int_equal(verdict(address(192, 0, 2, 9), address(10, 1, 1, 1)), FLOW_VERDICT_DROP);
	assert_int_equal(verdict(address(203, 0, 113, 1), address(10, 1, 1, 1)), FLOW_VERDICT_DROP);
	assert_int_equal(
		verdict(address(198, 51, 100, 7), address(10, 1, 1, 1)), FLOW_VERDICT_DROP);
	assert_int_equal(
		verdict(address(198, 51, 100, 8), address(10, 1, 1, 1)), FLOW_VERDICT_FORWARD);
	assert_int_equal(
		verdict(address(192, 0, 2, 9), address(11, 1, 1, 1)), FLOW_VERDICT_FORWARD);
	/* also when flows are decided by what is left of rules per packet */
	assert_string_equal(scene_command(&scene, "flow create 0 priority 5 ingress pattern eth / "
						  "ipv4 ttl is 3 / end actions drop / end"),
		"Flow rule #1 created\n");
	assert_int_equal(verdict(address(192, 0, 2, 9), address(10, 1, 1, 1)), FLOW_VERDICT_DROP);
	assert_string_equal(
		scene_command(&scene, "flow create 0 ingress pattern ipv6 from_set is bad / end "
				      "actions drop / end"),
		"Flow rule #2 created\n");
	assert_string_equal(scene_command(&scene, "flow destroy 0 rule 0 rule 2"),
		"Flow rule #0 destroyed\nFlow rule #2 destroyed\n");
	assert_int_equal(
		verdict(address(192, 0, 2, 9), address(10, 1, 1, 1)), FLOW_VERDICT_BY_PACKET);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("", "column 1: the name of a set is needed");
	refuse("b@d 10.0.0.1", "column 1: b@d: a name of letters, digits and . _ - is needed");
	refuse("bad", "column 4: prefixes are needed, or the word file and a path");
	refuse("bad file", "column 9: the path of a file is needed");
	refuse("bad file /nowhere/set", "/nowhere/set: No such file or directory");
	refuse("bad 10.0.0.1 10.0.0.1/8",
		"column 14: 10.0.0.1/8: the address has bits set beyond the prefix; that is "
		"10.0.0.0/8");
	assert_string_equal(
		scene_command(&scene, "flow create 0 ingress pattern ipv4 to_set is worse / end "
				      "actions drop / end"),
		"31: field 'to_set' of item 'ipv4': there is no set 'worse' (rules.sets)\n");
	assert_string_equal(
		scene_command(&scene, "set raw_encap ipv4 from_set is bad / udp / end_set"),
		"15: ipv4: this item cannot be part of an outer header\n");
	for (unsigned i = 0; i < 2; i++)
		fill("bad 10.0.0.1 10.0.0.2");
	fill("b 1.0.0.0/8");
	fill("c 1.0.0.0/8");
	fill("d 1.0.0.0/8");
	refuse("e 1.0.0.0/8", "column 1: no room for the set");
}

static void test_files(void **state)
{
	char path[] = "/tmp/millrace-set-XXXXXX", line[64];
	const int fd = mkstemp(path);
	struct error error;
	uint32_t n;

	(void)state;
	assert_true(fd >= 0);
	dprintf(fd, "# a list\n\n10.0.0.0/24 10.0.1.0/24\n2001:db8::/64 # one of IPv6\n");
	snprintf(line, sizeof(line), "listed file %s", path);
	assert_int_equal(rules_set_count(line, &n, &error), 0);
	assert_int_equal(n, 3);
	fill(line);
	assert_int_equal(classifier_set_find(scene.rules->full, "listed"), 1);
	dprintf(fd, "10.0.0.300\n");
	assert_int_equal(rules_set_fill(scene.rules, line, &error), -EINVAL);
	assert_non_null(strstr(error.text, ": line 5, column 1: 10.0.0.300"));
	/* what is no text is not read as one up to where it ends */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "10.0.0.1\0x\n", 11, 0), 11);
	assert_int_equal(rules_set_fill(scene.rules, line, &error), -EINVAL);
	assert_non_null(strstr(error.text, ": line 1, column 9: a zero byte"));
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(pwrite(fd, "10.0.0.1 ", 9, 9 * i), 9);
	assert_int_equal(rules_set_fill(scene.rules, line, &error), -E2BIG);
	assert_non_null(strstr(error.text, ": line 1, column 65537: the line is longer"));
	close(fd);
	unlink(path);
}

/* Rules that are only checked may name any set. */
static void test_any(void **state)
{
	(void)state;
	open_sets(true);
	assert_string_equal(
		scene_command(&scene, "flow create 0 ingress pattern ipv4 to_set is worse / end "
				      "actions drop / end"),
		"Flow rule #0 created\n");
	assert_int_equal(verdict(1, 2), FLOW_VERDICT_DROP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rules_ask_for_sets, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_refused, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_files, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_any, open_scene, close_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
