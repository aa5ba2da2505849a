/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rules with an `age` action have been idle for longer than it says, and how such rules go. */
#include "unit/rules_scene.h"

#define S UINT64_C(1000000)
#define LINE_10 "flow create 0 ingress pattern ipv4 / end actions drop / age timeout 10 / end"
#define LINE_20 "flow create 0 ingress pattern ipv6 / end actions count / age timeout 20 / end"
#define LINE_EVER "flow create 0 priority 9 ingress pattern eth / end actions count / end"

static struct rules_scene scene;

static int open_rules(void **state)
{
	(void)state;
	scene_open(&scene, 64, false);
	assert_string_equal(scene_command(&scene, LINE_10), "Flow rule #0 created\n");
	assert_string_equal(scene_command(&scene, LINE_20), "Flow rule #1 created\n");
	assert_string_equal(scene_command(&scene, LINE_EVER), "Flow rule #2 created\n");
	return 0;
}

static int close_rules(void **state)
{
	(void)state;
	scene_close(&scene);
	return 0;
}

static void expect(const char *command, const char *told)
{
	assert_string_equal(scene_command(&scene, command), told);
}

/* A rule without packets is idle since it was made; one with a flow, since the flow's last packet. */
static void test_idle(void **state)
{
	(void)state;
	expect("flow aged 0", "Port 0 total aged flows: 0\n");
	rules_tell_time(scene.rules, 10 * S - 1);
	expect("flow aged 0", "Port 0 total aged flows: 0\n");
	rules_tell_time(scene.rules, 10 * S);
	expect("flow aged 0", "Port 0 total aged flows: 1\n#0, idle for 10 s: " LINE_10 "\n");
	expect("flow aged 1", "Port 1 total aged flows: 0\n");
	rules_see(scene.rules, 0, 0, 8 * S);
	expect("flow aged 0", "Port 0 total aged flows: 0\n");
	/* an older packet of another flow does not make it older */
	rules_see(scene.rules, 0, 0, 7 * S);
	rules_tell_time(scene.rules, 18 * S);
	expect("flow aged 0", "Port 0 total aged flows: 1\n#0, idle for 10 s: " LINE_10 "\n");
	/* the clock never goes back */
	rules_tell_time(scene.rules, 1 * S);
	expect("flow query 0 0 age", "age: aged 1, seconds since the last packet 10\n");
	expect("flow query 0 1 age", "age: aged 0, seconds since the last packet 18\n");
	expect("flow query 0 2 age", "1: query: rule #2 has no age action\n");
}

static void test_destroy(void **state)
{
	struct rules_stats stats;

	(void)state;
	rules_tell_time(scene.rules, 15 * S);
	expect("flow aged 0 destroy", "Port 0 total aged flows: 1\n#0, idle for 15 s: " LINE_10
				      "\nFlow rule #0 destroyed\n");
	rules_stats(scene.rules, &stats);
	assert_int_equal(stats.rules, 2);
	expect("flow aged 0 destroy", "Port 0 total aged flows: 0\n");
	/* one that is made now is not idle, whatever was before it in its slot */
	scene_settle(&scene);
	expect("flow create 0 ingress pattern ipv4 / end actions drop / age timeout 3 / end",
		"Flow rule #3 created\n");
	expect("flow query 0 3 age", "age: aged 0, seconds since the last packet 0\n");
	rules_tell_time(scene.rules, 20 * S);
	expect("flow aged 0",
		"Port 0 total aged flows: 2\n"
		"#3, idle for 5 s: flow create 0 ingress pattern ipv4 / end actions drop / age "
		"timeout 3 / end\n"
		"#1, idle for 20 s: " LINE_20 "\n");
}

/* What a NIC counts is a packet of the rule; what it does not count is not known, and never aged. */
static void test_nic(void **state)
{
	(void)state;
	rules_tell_time(scene.rules, 9 * S);
	rules_nic_tell(scene.rules, 0, 5, 500, true);
	rules_tell_time(scene.rules, 12 * S);
	rules_nic_tell(scene.rules, 0, 5, 500, true);
	expect("flow query 0 0 age", "age: aged 0, seconds since the last packet 3\n");
	rules_nic_add(scene.rules, 0, 6, 600);
	rules_nic_tell(scene.rules, 0, 0, 0, true);
	expect("flow query 0 0 age", "age: aged 0, seconds since the last packet 0\n");
	rules_tell_time(scene.rules, 22 * S);
	expect("flow query 0 0 age", "age: aged 1, seconds since the last packet 10\n");
	rules_nic_tell(scene.rules, 0, 0, 0, false);
	expect("flow query 0 0 age", "1: query: rule #0 is in a NIC that does not count\n");
	expect("flow aged 0", "Port 0 total aged flows: 1\n#1, idle for 22 s: " LINE_20 "\n");
}

static void test_refused(void **state)
{
	(void)state;
	expect("flow aged 9", "11: port 9: the engine has ports 0 to 3\n");
	expect("flow query 0 7 age", "1: there is no rule #7 of port 0\n");
	expect("flow query 0 0 drop",
		"1: query: in software only count and age are known of a rule\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle, open_rules, close_rules),
		cmocka_unit_test_setup_teardown(test_destroy, open_rules, close_rules),
		cmocka_unit_test_setup_teardown(test_nic, open_rules, close_rules),
		cmocka_unit_test_setup_teardown(test_refused, open_rules, close_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
