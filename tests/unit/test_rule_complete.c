/* SPDX-License-Identifier: BSD-3-Clause */

/* Which words may follow the beginning of a line. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "rule/command.h"

/* All that is offered, parted by blanks; values by what they mean, in brackets. */
static void gather(void *context, const char *word, const char *what)
{
	char *text = context;
	size_t length = strlen(text);

	snprintf(text + length, 4096 - length, "%s%s%s%s", length ? " " : "", word ? "" : "[",
		word ? word : what, word ? "" : "]");
}

static const char *offered(const char *line)
{
	static char text[4096];

	text[0] = '\0';
	rule_complete(line, strlen(line), gather, text);
	return text;
}

static const char *const lines[][2] = {
	{"", "flow set add create del enable disable"},
	{"fl", "flow"},
	{"testpmd> fl", "flow"},
	{"flow cr", "create"},
	{"flow create", "create"},
	{"flow create ", "[a number for port]"},
	{"flow create 0 in", "ingress"},
	{"flow create 0 ingress ",
		"pattern group priority ingress egress transfer replies tunnel_set tunnel_match"},
	{"flow create 0 pattern pppoe", "pppoes pppoed pppoe_proto_id"},
	{"flow create 0 pattern eth ", "dst src type has_vlan /"},
	{"flow create 0 pattern conntrack ", "is spec last mask prefix /"},
	{"flow create 0 pattern ipv4 src ", "is spec last mask prefix"},
	{"flow create 0 pattern ipv4 src is ", "[an IPv4 address for src]"},
	{"flow create 0 pattern tag index ", "is"},
	{"flow create 0 pattern l2tpv2 ", "type /"},
	{"flow create 0 pattern l2tpv2 type data", "data data_l data_s data_o data_l_s"},
	{"flow create 0 pattern l2tpv2 type data ", "type tunnel_id session_id /"},
	{"flow create 0 pattern eth / end ", "actions"},
	{"flow create 0 pattern eth / end actions queue ", "index /"},
	{"flow create 0 pattern eth / end actions rss types ipv4-t", "ipv4-tcp"},
	{"flow create 0 pattern eth / end actions rss func ",
		"default toeplitz simple_xor symmetric_toeplitz"},
	{"flow create 0 pattern eth / end actions drop / end ", ""},
	{"flow dump 0 ", "all rule [file]"},
	{"flow queue 0 ", "create destroy aged indirect_action"},
	{"flow destroy 0 rule 1 ", "rule"},
	{"flow query 0 1 co", "count color conntrack conntrack_update"},
	{"flow actions_template 0 create template drop / end ", "mask"},
	{"set vxlan-t", "vxlan-tos-ttl"},
	{"set conntrack com p", "peer"},
	/* nothing follows what is wrong, nor a comment */
	{"flow wrong ", ""},
	{"flow create 0 # ", ""},
	/* words of other releases are not offered */
	{"flow create 0 pattern ib_", ""},
	{"flow create 0 pattern end actions nat", ""},
	{"flow up", ""},
};

static void test_lines(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *words = offered(lines[i][0]);

		if (strcmp(words, lines[i][1]) != 0)
			fail_msg("%s\n%s", lines[i][0], words);
	}
}

/* Every item and every action is offered, and each of them is completed by itself. */
static void test_things(void **state)
{
	char line[128], front[8];

	(void)state;
	for (unsigned i = 0; i < rule_n_items; i++) {
		const char *name = rule_items[i].name;

		snprintf(line, sizeof(line), "flow create 0 pattern %s", name);
		snprintf(front, sizeof(front), "%.7s", name);
		assert_true(rule_items[i].refused != NULL || strstr(offered(line), front));
	}
	for (unsigned i = 0; i < rule_n_actions; i++) {
		const char *name = rule_actions[i].name;

		snprintf(line, sizeof(line), "flow create 0 pattern end actions %s", name);
		snprintf(front, sizeof(front), "%.7s", name);
		assert_true(rule_actions[i].refused != NULL || strstr(offered(line), front));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_things),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
