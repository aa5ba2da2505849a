/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What rules mean in software: which are taken, which are refused with which word, what commands do to the list,
 * and files. What packets get is held against a reference in test_rule_decide.c.
 */

#include "unit/rules_scene.h"

static struct rules_scene scene;

static int open_scene(void **state)
{
	(void)state;
	scene_open(&scene, 64, false);
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	scene_close(&scene);
	return 0;
}

static void check(const char *line, const char *answer)
{
	const char *told = scene_command(&scene, line);

	/* an error's column has a test of its own */
	if (told[strspn(told, "0123456789")] == ':')
		told = strchr(told, ' ') + 1;
	if (strcmp(told, answer) != 0)
		print_error("%s\n", line);
	assert_string_equal(told, answer);
}

/* A rule whose pattern and actions are these. */
static void check_rule(const char *pattern, const char *actions, const char *answer)
{
	char line[512];

	snprintf(line, sizeof(line), "flow validate 0 ingress pattern %s / end actions %s / end",
		pattern, actions);
	check(line, answer);
}

#define FINE "Flow rule validated\n"

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *answer;
	} rows[] = {
		{"eth", FINE},
		{"void / eth / void / ipv4", FINE},
		{"ipv4 src is 10.0.0.1", FINE},
		{"tcp dst is 80", FINE},
		{"eth / ipv4 src is 10.0.0.1 / udp src spec 1 src last 9 src mask 65535", FINE},
		{"eth / ipv4 src spec 10.0.0.0 src last 10.0.0.255 src mask 255.255.255.255", FINE},
		{"eth / ipv4 src spec 10.0.0.0 src last 10.0.0.254 src mask 255.255.255.255",
			"field 'src' of item 'ipv4': in software a range is of TCP, UDP or "
			"SCTP ports, or a prefix\n"},
		{"eth / ipv4 ttl is 1 tos is 4 / icmp type is 8 code is 0", FINE},
		{"eth / ipv4 / udp / vxlan vni is 5", FINE},
		{"eth / ipv6 / vxlan", FINE},
		{"eth / ipv4 / udp dst is 4790 / vxlan",
			"item 'vxlan': in software it is looked for at UDP port 4789 alone\n"},
		{"eth / ipv4 / udp / vxlan / eth",
			"item 'eth': inner headers are not matched in software\n"},
		{"eth / ipv6 tc is 4 hop is 1 src is 2001:db8::1 / icmp6 type is 128", FINE},
		{"eth / vlan vid is 7 pcp is 3 / ipv4", FINE},
		{"eth / vlan vid is 7 / vlan vid is 8", "item 'vlan': a second tag is not "
							"matched in software\n"},
		{"eth / vlan dei is 1", FINE},
		{"eth / vlan tci is 5 / ipv4", FINE},
		{"eth / ipv4 packet_id is 7",
			"field 'packet_id' of item 'ipv4': not matched in software\n"},
		{"eth / ipv6 flow is 7", "field 'flow' of item 'ipv6': not matched in "
					 "software\n"},
		{"eth / ipv6 has_frag_ext is 1",
			"field 'has_frag_ext' of item 'ipv6': not matched in software\n"},
		{"eth / ipv4 / udp / gtp teid is 7", "item 'gtp': not matched in software\n"},
		{"eth / ipv4 / udp / ipv4", "item 'ipv4': inner headers are not matched in "
					    "software\n"},
		{"eth / ipv4 proto is 17 / tcp", "item 'tcp': an item before it says another "
						 "protocol\n"},
		{"ipv4 / tcp flags spec 2 flags mask 2", FINE},
		{"ipv4 / tcp src spec 16 src mask 16",
			"field 'src' of item 'tcp': in software the mask of a port has its "
			"ones in front\n"},
		{"eth type is 0x0806", FINE},
		{"represented_port ethdev_port_id is 0 / eth", FINE},
		{"represented_port ethdev_port_id is 1 / eth",
			"item 'represented_port': the rule is of another port\n"},
		{"port_id id is 9", "item 'port_id': port 9: the engine has ports 0 to 3\n"},
		{"ipv4 src mask 255.0.0.0", "item 'ipv4': a mask or the end of a range needs "
					    "a value (spec)\n"},
		{"invert / eth", "item 'invert': not matched in software\n"},
		{"ct state is new,related / direction is forward / eth", FINE},
		{"ct / eth", FINE},
		{"eth / ipv4 / tcp / ct state is established", FINE},
		{"ct state is new / ct state is new",
			"item 'ct': the rule asks for a state already\n"},
		{"direction is forward / direction is reverse",
			"item 'direction': the rule asks for a direction already\n"},
		{"direction / eth", "item 'direction': it needs `is forward` or `is reverse`\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_rule(rows[i].pattern, "drop", rows[i].answer);
}

/* Replies follow only what can be done to them. */
static void test_replies(void **state)
{
	static const struct {
		const char *actions, *answer;
	} rows[] = {
		{"count", FINE},
		{"mark id 1 / dec_ttl", FINE},
		{"drop", FINE "note: what is dropped has no replies: the word replies has no "
			      "meaning\n"},
		{"set_ttl ttl_value 3",
			"replies follow: an action of the rule changes packets or says where they "
			"go, which is not for replies\n"},
		{"port_id id 1",
			"replies follow: an action of the rule changes packets or says where they "
			"go, which is not for replies\n"},
		{"jump group 1",
			"replies follow: the rule leaves its packets to others, so that it "
			"has no verdict\n"},
	};
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(line, sizeof(line),
			"flow validate 0 ingress replies follow pattern eth / end actions %s / end",
			rows[i].actions);
		check(line, rows[i].answer);
	}
}

/* Headers that `set` lines have said. */
static void test_tunnels(void **state)
{
	static const char *const sets[] = {
		"set vxlan ip-version ipv4 vni 4 udp-src 4 udp-dst 4 ip-src 127.0.0.1 ip-dst "
		"128.0.0.1 eth-src 11:11:11:11:11:11 eth-dst 22:22:22:22:22:22",
		"set nvgre ip-version ipv6 tni 4 ip-src ::1 ip-dst ::2222 eth-src "
		"11:11:11:11:11:11 eth-dst 22:22:22:22:22:22",
		"set l2_encap ip-version ipv4 eth-src 11:11:11:11:11:11 eth-dst 22:22:22:22:22:22",
		"set l2_decap",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		check(sets[i], "");
	check_rule("eth", "vxlan_encap", FINE);
	check_rule("eth", "vxlan_decap / nvgre_encap", FINE);
	check_rule("eth", "l2_decap / l2_encap / port_id id 1", FINE);
	check_rule("eth", "dec_ttl / vxlan_encap", FINE);
	check_rule("eth", "vxlan_encap / dec_ttl",
		"actions: action 2 (decrement-ttl): a tunnel's headers come on after all other "
		"changes\n");
}

static void test_actions(void **state)
{
	static const struct {
		const char *actions, *answer;
	} rows[] = {
		{"drop", FINE},
		{"count / drop", FINE},
		{"mark id 7 / count", FINE},
		{"flag", FINE},
		{"queue index 3",
			FINE "note: the flow chooses the worker: in software the queue has "
			     "no meaning\n"},
		{"passthru", FINE "note: passthru leaves the packets to later rules\n"},
		{"jump group 2", FINE},
		{"jump group 0", "action 'jump': group 0: in software a rule of group 0 jumps "
				 "to a higher one\n"},
		{"jump group 64", "action 'jump': group 64: in software groups are 0 to 63\n"},
		{"mark id 1 / jump group 2", "action 'jump': in software a rule that leaves its "
					     "packets to others does nothing else\n"},
		{"drop / queue index 1", "action 'queue': the rule says already what becomes of "
					 "the packet (drop)\n"},
		{"port_id id 1", FINE},
		{"represented_port ethdev_port_id 1", FINE},
		{"port_id id 7", "action 'port_id': port 7: the engine has ports 0 to 3\n"},
		{"port_id id 2", "action 'port_id': port 2 does not belong to the wire of port "
				 "0\n"},
		{"of_pop_vlan", FINE},
		{"of_push_vlan ethertype 0x8100 / of_set_vlan_vid vlan_vid 5 / of_set_vlan_pcp "
		 "vlan_pcp 3",
			FINE},
		{"of_set_vlan_vid vlan_vid 5", FINE},
		{"of_set_vlan_pcp vlan_pcp 5",
			"action 'of_set_vlan_pcp': in software it is done to a tag that the "
			"rule has put on before\n"},
		{"set_mac_src mac_addr 02:00:00:00:00:01 / set_mac_dst mac_addr 02:00:00:00:00:02",
			FINE},
		{"set_ipv4_src ipv4_addr 10.0.0.1 / set_tp_dst port 80 / dec_ttl", FINE},
		{"meter mtr_id 1", "action 'meter': there is no meter 1 of port 0 (create port "
				   "meter)\n"},
		{"age timeout 5", FINE},
		{"age timeout 0", "action 'age': it needs a timeout of 1 second or more\n"},
		{"age timeout 5 / age timeout 5",
			"action 'age': the rule says already how its flows age\n"},
		{"age timeout 5 / jump group 1",
			"action 'jump': in software a rule that leaves its packets to "
			"others does nothing else\n"},
		{"vxlan_decap", FINE},
		{"vxlan_encap", "action 'vxlan_encap': no `set` line has said the headers\n"},
		{"set_ttl ttl_value 9", FINE},
		{"raw_encap index 1", "action 'raw_encap': no `set` line has said the headers\n"},
		{"raw_decap index 1", "action 'raw_decap': no `set` line has said the headers\n"},
		{"end", "actions: a rule needs one at least\n"},
		{"set_meta data 1", "action 'set_meta': not done in software\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].actions, "end") != 0)
			check_rule("eth", rows[i].actions, rows[i].answer);
	check("flow create 0 ingress pattern end actions end",
		"actions: a rule needs one at least\n");
}

static void test_samples(void **state)
{
	(void)state;
	check_rule("eth", "sample ratio 2 index 0 / queue index 0",
		"action 'sample': in software its own actions (set sample_actions) name the "
		"port for the copies\n");
	check("set sample_actions 0 port_id id 2 / end", "");
	check_rule("eth", "sample ratio 2 index 0", FINE);
	check("set sample_actions 1 mark id 2 / port_id id 2 / end", "");
	check_rule("eth", "sample ratio 2 index 1",
		"action 'sample': 'mark': in software a copy goes to one port, unchanged\n");
}

static void test_attributes(void **state)
{
	(void)state;
	check("flow create 0 egress pattern eth / end actions drop / end",
		"egress: in software a rule is for packets that come in; a rule at the port "
		"where they come in does the same\n");
	check("flow create 4 ingress pattern eth / end actions drop / end",
		"port 4: the engine has ports 0 to 3\n");
	check("flow create 0 pattern eth / end actions drop / end",
		"ingress: a rule needs this word (packets that come in by its port) or transfer "
		"(by any port)\n");
	check("flow create 0 group 64 ingress pattern eth / end actions drop / end",
		"group 64: in software groups are 0 to 63\n");
	check("flow isolate 0 true",
		"isolate: the engine does not do this to its rules; it knows create, validate, "
		"destroy, flush, list, query and aged\n");
}

#define DROP "flow create 0 ingress pattern eth / ipv4 src is 10.0.0.1 / end actions drop / end"

static void test_columns(void **state)
{
	static const struct {
		const char *line;
		unsigned column;
	} rows[] = {
		{"flow create 0 egress pattern eth / end actions drop / end", 15},
		{"flow create 9 ingress pattern eth / end actions drop / end", 13},
		{"testpmd> flow create 9 ingress pattern eth / end actions drop / end", 22},
		{"flow create 0 ingress pattern eth / vlan / vlan / end actions drop / end", 44},
		{"flow create 0 ingress pattern gtp / end actions drop / end", 31},
		{"testpmd> flow create 0 ingress pattern eth / end actions count / meter mtr_id 1 "
		 "/ "
		 "end",
			66},
		{"flow create 0 ingress pattern eth / end actions drop / drop / end", 56},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(atoi(scene_command(&scene, rows[i].line)), rows[i].column);
}

static void test_commands(void **state)
{
	struct rules_view view;
	struct rules_stats stats;

	(void)state;
	check(DROP, "Flow rule #0 created\n");
	check("flow create 1 ingress pattern eth / end actions drop / end",
		"Flow rule #0 created\n");
	check(DROP, "Flow rule #1 created\nwarning: the rule matches nothing that rule #0 of port "
		    "0 does not match before it\n");
	check("flow list 0", "#0: " DROP "\n#1: " DROP "\n");
	check("flow query 0 1 count", "count: hits 0, bytes 0\n");
	check("flow destroy 0 rule 0 rule 7", "there is no rule #7 of port 0\n");
	check("flow destroy 0 rule 0", "Flow rule #0 destroyed\n");
	assert_int_equal(rules_get(scene.rules, 0, 0, &view), -ENOENT);
	assert_int_equal(rules_get(scene.rules, 0, 1, &view), 0);
	check("flow create 0 ingress pattern eth / ipv4 ttl is 1 / end actions drop / end",
		"Flow rule #2 created\n");
	rules_stats(scene.rules, &stats);
	assert_int_equal(stats.rules, 3);
	assert_int_equal(stats.by_packet, 1);
	assert_int_equal(stats.unsettled, 1);
	check("flow flush 0", "2 flow rules of port 0 destroyed\n");
	scene_settle(&scene);
	rules_stats(scene.rules, &stats);
	assert_int_equal(stats.rules, 1);
	assert_int_equal(stats.by_packet, 0);
	assert_int_equal(stats.unsettled, 0);
	check(DROP, "Flow rule #0 created\n");
	check("flow create 0 ingress pattern eth / ipv4 proto is 58 / end actions drop / end",
		"Flow rule #1 created\nwarning: the rule matches nothing: it asks for the ICMP of "
		"the other IP version\n");
}

static void test_full(void **state)
{
	struct rules_stats stats;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		assert_string_not_equal(scene_command(&scene, DROP), "");
	check(DROP, "no room: there are 64 of 64 rules (rules.max)\n");
	for (unsigned round = 0; round < 8; round++) {
		rules_flush(scene.rules, RULES_NO_PORT);
		scene_settle(&scene);
		for (unsigned i = 0; i < 64; i++)
			assert_string_equal(scene_command(&scene, i % 2 ? DROP
									: "flow create 2 ingress "
									  "pattern ipv4 tos is 1 / "
									  "end actions mark id 3 / "
									  "dec_ttl / end"),
				scene.told);
		rules_stats(scene.rules, &stats);
		assert_int_equal(stats.rules, 64);
		assert_int_equal(stats.programs, 2);
	}
	rules_flush(scene.rules, RULES_NO_PORT);
	scene_settle(&scene);
	rules_stats(scene.rules, &stats);
	assert_int_equal(stats.programs, 1);
}

static int load(const char *text, uint32_t *added, struct error *error)
{
	scene.told[0] = '\0';
	return rules_load_bytes(
		scene.rules, "list", text, strlen(text), added, scene_tell, &scene, error);
}

#define METER                                                                          \
	"add port meter profile srtcm_rfc2697 0 1 1000 100 0 1\n"                      \
	"add port meter policy 0 1 g_actions end y_actions end r_actions drop / end\n" \
	"create port meter 0 1 1 1 yes 0 yes"

static void test_files(void **state)
{
	struct rules_stats stats;
	struct error error;
	uint32_t added;

	(void)state;
	assert_int_equal(load("# two\n\n" DROP "\nset sample_actions 0 port_id id 1 / end\n" DROP,
				 &added, &error),
		0);
	assert_int_equal(added, 2);
	assert_int_equal(
		load(DROP "\nflow create 0 ingress pattern eth / ipv5 / end actions drop / "
			  "end\n",
			&added, &error),
		-EBADMSG);
	assert_string_equal(
		error.text, "list:2:37: ipv5: a pattern item is needed here; did you mean ipv4?");
	assert_int_equal(
		load(DROP "\n" DROP "\nflow create 0 ingress pattern eth / end actions meter "
			  "mtr_id 1 / end",
			&added, &error),
		-EBADMSG);
	assert_string_equal(error.text, "list:3:49: action 'meter': there is no meter 1 of port 0 "
					"(create port meter)");
	/* the meters of a list that is refused go with it */
	assert_int_equal(
		load(METER "\nflow create 0 ingress pattern eth / end actions meter mtr_id 1 / end "
			   "x",
			&added, &error),
		-EBADMSG);
	check("create port meter 0 1 1 1 yes 0 yes", "there is no meter profile 1 of port 0\n");
	assert_int_equal(load("flow flush 0", &added, &error), -EBADMSG);
	assert_int_equal(rules_load_file(scene.rules, "/nowhere/rules", &added, NULL, NULL, &error),
		-ENOENT);
	assert_string_equal(error.text, "/nowhere/rules: No such file or directory");
	rules_stats(scene.rules, &stats);
	assert_int_equal(stats.rules, 2);
	assert_int_equal(stats.programs, 1);
	assert_int_equal(
		load("flow create 0 ingress pattern ipv4 proto is 58 / end actions drop / end",
			&added, &error),
		0);
	assert_string_equal(scene.told,
		"list:1: warning: the rule matches nothing: it asks for the "
		"ICMP of the other IP version\n");
}

/* Examples of DPDK's guides: each is taken, or refused with a word and a reason. */
static void test_examples(void **state)
{
	static char line[16384];
	unsigned taken = 0, refused = 0;
	FILE *file = fopen(getenv("FLOW_EXAMPLES") ? getenv("FLOW_EXAMPLES") : "", "r");

	(void)state;
	if (file == NULL)
		skip();
	while (fgets(line, sizeof(line), file) != NULL) {
		char *tab = strrchr(line, '\t');

		if (line[0] == '#' || tab == NULL)
			continue;
		tab[strcspn(tab, "\n")] = '\0';
		const char *told = scene_command(&scene, tab + 1);

		if (strncmp(told, "Flow rule", 9) == 0) {
			taken++;
		} else {
			/* "column: word: why" */
			const char *why = strstr(told, ": ");

			refused++;
			if (strncmp(tab + 1, "flow create", 11) != 0 &&
				strncmp(tab + 1, "flow validate", 13) != 0)
				continue;
			assert_non_null(why);
			if (strstr(why + 2, ": ") == NULL)
				fail_msg("%s\n%s", tab + 1, told);
		}
		if (getenv("FLOW_EXAMPLES_SHOWN"))
			print_message("%s\n    %s", tab + 1, told);
	}
	fclose(file);
	print_message("%u taken, %u refused\n", taken, refused);
	assert_true(taken > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_patterns, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_replies, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_tunnels, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_actions, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_samples, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_attributes, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_columns, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_commands, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_full, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_files, open_scene, close_scene),
		cmocka_unit_test_setup_teardown(test_examples, open_scene, close_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
