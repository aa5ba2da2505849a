/* SPDX-License-Identifier: BSD-3-Clause */

/* The text of a block. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rule/block.h"

static int parse(struct block *block, char line[BLOCK_LINE_MAX], const char *text, unsigned *column,
	struct error *error)
{
	assert_true(strlen(text) < BLOCK_LINE_MAX);
	memcpy(line, text, strlen(text) + 1);
	return block_parse_line(block, line, column, error);
}

/* What is read, and how it is written; NULL: the same. */
static const char *const texts[][2] = {
	{"10.0.0.0/8", NULL},
	{"0.0.0.0/0", NULL},
	{"::/0", NULL},
	{"192.0.2.1", NULL},
	{"192.0.2.1/32", "192.0.2.1"},
	{"2001:db8::/33", NULL},
	{"2001:DB8:0:0::1/128", "2001:db8::1"},
	{"::ffff:1.2.3.4", NULL},
	{"128.0.0.0/1 port 65535", NULL},
	{"10.0.0.0/8 port 53 proto udp", NULL},
	{"10.0.0.0/8 proto 17 port 53", "10.0.0.0/8 port 53 proto udp"},
	{"10.0.0.0/8 proto icmp", NULL},
	{"10.0.0.0/8 proto 0", NULL},
	{"10.0.0.0/8 proto 255 for 1000000000", NULL},
	{"  10.0.0.0/8\tfor  5 reason  a  scan of ours # 5 \r",
		"10.0.0.0/8 for 5 reason a  scan of ours # 5"},
	{"10.0.0.0/8 reason for 5", NULL},
	{"10.0.0.0/8 reason \xc3\xa4", NULL},
	{"flow 10.0.0.2:80 10.0.0.1:1000 tcp", "flow 10.0.0.1:1000 10.0.0.2:80 tcp"},
	{"flow 10.0.0.1:2 10.0.0.1:1 6", "flow 10.0.0.1:1 10.0.0.1:2 tcp"},
	{"flow 10.0.0.1 10.0.0.2 icmp", NULL},
	{"flow 10.0.0.1 10.0.0.2 47 wire 15 zone 65535 for 3 reason x", NULL},
	{"flow 2001:db8::1 [2001:db8::2] icmp6", "flow [2001:db8::1] [2001:db8::2] icmp6"},
	{"flow [2001:db8::1]:443 [::2]:1 sctp zone 7",
		"flow [::2]:1 [2001:db8::1]:443 sctp zone 7"},
};

static void test_texts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char line[BLOCK_LINE_MAX], written[BLOCK_LINE_MAX], again[BLOCK_LINE_MAX];
		struct block block;
		struct error error;
		unsigned column;

		if (parse(&block, line, texts[i][0], &column, &error) < 0)
			fail_msg("%s: %s", texts[i][0], error.text);
		assert_int_equal(block_match_check(&block.match), 0);
		size_t length = block_format(&block, written);

		assert_int_equal(length, strlen(written));
		assert_string_equal(written, texts[i][1] ? texts[i][1] : texts[i][0]);
		assert_int_equal(parse(&block, line, written, &column, &error), 0);
		block_format(&block, again);
		assert_string_equal(again, written);
	}
}

static const struct {
	const char *text;
	unsigned column;
	const char *error;
} refused[] = {
	{"", 1, "the line ends early: an address, a prefix or \"flow\" is needed"},
	{"10.0.0", 1, "10.0.0: no IP address or prefix"},
	{"10.0.0.0/33", 1, "10.0.0.0/33: a prefix of IPv4 has a length from 0 to 32"},
	{"10.0.0.0/", 1, "10.0.0.0/: a prefix of IPv4 has a length from 0 to 32"},
	{"10.0.0.0/4294967304", 1,
		"10.0.0.0/4294967304: a prefix of IPv4 has a length from 0 to 32"},
	{"::/129", 1, "::/129: a prefix of IPv6 has a length from 0 to 128"},
	{"10.0.0.5/8", 1,
		"10.0.0.5/8: the address has bits set beyond the prefix; that is 10.0.0.0/8"},
	{"2001:db8:8000::/32", 1,
		"2001:db8:8000::/32: the address has bits set beyond the prefix; that is "
		"2001:db8::/32"},
	{"10.0.0.0/8 port", 16, "the line ends early: a port is a number from 1 to 65,535"},
	{"10.0.0.0/8 port 0", 17, "0: a port is a number from 1 to 65,535"},
	{"10.0.0.0/8 port 65536", 17, "65536: a port is a number from 1 to 65,535"},
	{"10.0.0.0/8 port 1 port 2", 19, "port: given twice"},
	{"10.0.0.0/8 proto 256", 18,
		"256: no such protocol; tcp, udp, sctp, icmp, icmp6 or a number up to 255 is "
		"needed"},
	{"10.0.0.0/8 proto udb", 18, "udb: no such protocol; did you mean udp?"},
	{"10.0.0.0/8 proto tcp proto tcp", 22, "proto: given twice"},
	{"10.0.0.0/8 proto icmp port 7", 28, "7: this protocol has no ports"},
	{"10.0.0.0/8 for 0", 16, "0: a number of seconds from 1 to 1,000,000,000 is needed"},
	{"10.0.0.0/8 for 1000000001", 16,
		"1000000001: a number of seconds from 1 to 1,000,000,000 is needed"},
	{"10.0.0.0/8 for 1 for 1", 18, "for: given twice"},
	{"10.0.0.0/8 reasn x", 12, "reasn: no such word; did you mean reason?"},
	{"10.0.0.0/8 wire 1", 12, "wire: port, proto, for or reason is needed here"},
	{"10.0.0.0/8 reason  ", 20, "the line ends early: a text is needed after \"reason\""},
	{"10.0.0.0/8 reason a\tb", 19, "a?b: a reason has no control characters"},
	{"flow", 5,
		"the line ends early: no endpoint; ADDR or ADDR:PORT is needed, for IPv6 as in "
		"[2001:db8::1]:443"},
	{"flow 10.0.0.1:x 10.0.0.2 tcp", 6,
		"10.0.0.1:x: the port is not a number from 0 to 65,535"},
	{"flow 10.0.0.1 ::1 tcp", 15, "::1: one end is IPv4 and the other IPv6"},
	{"flow [10.0.0.1] 10.0.0.2 tcp", 6,
		"[10.0.0.1]: no endpoint; ADDR or ADDR:PORT is needed, for IPv6 as in "
		"[2001:db8::1]:443"},
	{"flow 10.0.0.1 10.0.0.2", 23, "the line ends early: a protocol is needed"},
	{"flow 10.0.0.1:1 10.0.0.2 icmp", 26, "icmp: this protocol has no ports"},
	{"flow 10.0.0.1 10.0.0.2 tcp wire 16", 33, "16: a wire is a number from 0 to 15"},
	{"flow 10.0.0.1 10.0.0.2 tcp wire 1 wire 1", 35, "wire: given twice"},
	{"flow 10.0.0.1 10.0.0.2 tcp zone 65536", 33, "65536: a zone is a number from 0 to 65,535"},
	{"flow 10.0.0.1 10.0.0.2 tcp port 1", 28, "port: wire, zone, for or reason is needed here"},
};

static void test_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char line[BLOCK_LINE_MAX];
		struct block block;
		struct error error;
		unsigned column;

		assert_int_equal(parse(&block, line, refused[i].text, &column, &error), -EINVAL);
		assert_string_equal(error.text, refused[i].error);
		assert_int_equal(column, refused[i].column);
	}
}

static void test_longest(void **state)
{
	char line[BLOCK_LINE_MAX], written[BLOCK_LINE_MAX], text[BLOCK_LINE_MAX];
	struct block block;
	struct error error;
	unsigned column;
	int n = snprintf(text, sizeof(text),
		"flow [2001:db8:ffff:ffff:ffff:ffff:ffff:fffe]:65535 "
		"[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535 254 wire 15 zone 65535 for "
		"1000000000 reason ");

	(void)state;
	memset(text + n, 'x', BLOCK_REASON_MAX);
	text[n + BLOCK_REASON_MAX] = '\0';
	assert_int_equal(parse(&block, line, text, &column, &error), -EINVAL);
	text[n + BLOCK_REASON_MAX - 1] = '\0';
	assert_int_equal(parse(&block, line, text, &column, &error), 0);
	block_format(&block, written);
	assert_string_equal(written, text);
}

static void test_prefix_apart(void **state)
{
	struct block_match match;
	struct error error;

	(void)state;
	assert_int_equal(block_parse_prefix(&match, "10.0.0.0/8", BLOCK_ANY, BLOCK_ANY, &error), 0);
	assert_false(match.is_flow);
	assert_int_equal(match.prefix.length, 8);
	assert_int_equal(match.prefix.port, BLOCK_ANY);
	assert_int_equal(block_parse_prefix(&match, "::1", 53, 17, &error), 0);
	assert_int_equal(match.prefix.version, 6);
	assert_int_equal(match.prefix.length, 128);
	assert_int_equal(match.prefix.port, 53);
	assert_int_equal(match.prefix.proto, 17);
	assert_int_equal(block_parse_prefix(&match, "::1", 70000, 17, &error), -EINVAL);
	assert_string_equal(error.text, "port 70000: a port is a number from 1 to 65,535");
	assert_int_equal(block_parse_prefix(&match, "::1", BLOCK_ANY, 256, &error), -EINVAL);
	assert_string_equal(error.text, "proto 256: a protocol is a number from 0 to 255");
	assert_int_equal(block_parse_prefix(&match, "::1", 5, 58, &error), -EINVAL);
	assert_string_equal(error.text, "port 5: this protocol has no ports");
	assert_int_equal(block_parse_prefix(&match, "a", 5, 58, &error), -EINVAL);
	assert_int_equal(block_parse_proto("icmp6"), 58);
	assert_int_equal(block_parse_proto("47"), 47);
	assert_int_equal(block_parse_proto("-1"), -1);
	assert_int_equal(block_parse_proto(""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_prefix_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
