/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "cli/flow_name.h"
#include "packet/headers.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static int parse(struct cli_flow *flow, const char *text, struct error *error)
{
	const char *words[CLI_FLOW_WORDS];
	char copy[400];
	unsigned n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
		assert_true(n < CLI_FLOW_WORDS);
		words[n++] = strcmp(word, "~") == 0 ? "" : word;
	}
	assert_int_equal(n, CLI_FLOW_WORDS);
	error->text[0] = '\0';
	return cli_flow_parse(flow, words, error);
}

static void test_good(void **state)
{
	static const struct {
		const char *words, *a;
		unsigned a_port;
		const char *b;
		unsigned b_port;
		const char *proto;
	} rows[] = {
		{"10.0.0.1:50560 10.0.0.10:102 tcp", "10.0.0.1", 50560, "10.0.0.10", 102, "tcp"},
		{"10.0.0.1:0 255.255.255.255:65535 udp", "10.0.0.1", 0, "255.255.255.255", 65535,
			"udp"},
		{"[2001:db8::1]:443 [2001:DB8:0::2]:1 tcp", "2001:db8::1", 443, "2001:db8::2", 1,
			"tcp"},
		{"10.0.0.1:1 10.0.0.2:2 132", "10.0.0.1", 1, "10.0.0.2", 2, "sctp"},
		{"10.0.0.1:1 10.0.0.2:2 dccp", "10.0.0.1", 1, "10.0.0.2", 2, "33"},
		{"10.0.0.1 10.0.0.2 icmp", "10.0.0.1", 0, "10.0.0.2", 0, "icmp"},
		{"10.0.0.1:0 10.0.0.2 1", "10.0.0.1", 0, "10.0.0.2", 0, "icmp"},
		{"10.0.0.1 10.0.0.2 gre", "10.0.0.1", 0, "10.0.0.2", 0, "47"},
		{"10.0.0.1 10.0.0.2 253", "10.0.0.1", 0, "10.0.0.2", 0, "253"},
		{"10.0.0.1 10.0.0.2 0", "10.0.0.1", 0, "10.0.0.2", 0, "0"},
		{"::1 [::2] icmp6", "::1", 0, "::2", 0, "icmp6"},
		{"[::1]:0 fe80::1 58", "::1", 0, "fe80::1", 0, "icmp6"},
		{"[::ffff:10.0.0.1]:80 [::]:81 tcp", "::ffff:10.0.0.1", 80, "::", 81, "tcp"},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++) {
		struct cli_flow flow;
		struct error error;

		assert_int_equal(parse(&flow, rows[i].words, &error), 0);
		assert_string_equal(flow.end[0].address, rows[i].a);
		assert_int_equal(flow.end[0].port, rows[i].a_port);
		assert_string_equal(flow.end[1].address, rows[i].b);
		assert_int_equal(flow.end[1].port, rows[i].b_port);
		assert_string_equal(flow.proto, rows[i].proto);
	}
}

static void test_bad(void **state)
{
#define NO_END "no endpoint; ADDR:PORT is needed, for IPv6 as in [2001:db8::1]:443"
#define NO_PORT "the port is not a number from 0 to 65,535"
	static const struct {
		const char *words, *text;
	} rows[] = {
		{"10.0.0.1 10.0.0.2:2 tcp", "10.0.0.1: a port is needed, as in 10.0.0.1:80"},
		{"10.0.0.1:1 10.0.0.2 17", "10.0.0.2: a port is needed, as in 10.0.0.1:80"},
		{"2001:db8::1:443 [::1]:1 tcp",
			"2001:db8::1:443: a port is needed, as in [2001:db8::1]:443"},
		{"[::1] [::1]:1 tcp", "[::1]: a port is needed, as in [2001:db8::1]:443"},
		{"10.0.0.1:8 10.0.0.2 icmp", "10.0.0.1:8: this protocol has no ports"},
		{"10.0.0.1:1 [::1]:1 tcp", "[::1]:1: one end is IPv4 and the other IPv6"},
		{"10.0.0.1:1 10.0.0.2:2 tpc", "tpc: no such protocol; did you mean tcp?"},
		{"10.0.0.1:1 10.0.0.2:2 256",
			"256: no such protocol; its name or number is needed"},
		{"10.0.0.1:1 10.0.0.2:2 999",
			"999: no such protocol; its name or number is needed"},
		{"10.0.0.1:1 10.0.0.2:2 6x", "6x: no such protocol; its name or number is needed"},
		{"10.0.0.1:1 10.0.0.2:2 -1", "-1: no such protocol; its name or number is needed"},
		{"10.0.0.1:1 10.0.0.2:2 ~", "\"\": no such protocol; its name or number is needed"},
		{"tcp 10.0.0.2:2 10.0.0.1:1", "tcp: " NO_END},
		{"~ 10.0.0.2:2 tcp", "\"\": " NO_END},
		{": 10.0.0.2:2 tcp", ":: " NO_END},
		{"[ 10.0.0.2:2 tcp", "[: " NO_END},
		{"[] 10.0.0.2:2 tcp", "[]: " NO_END},
		{"[]:1 10.0.0.2:2 tcp", "[]:1: " NO_END},
		{"[::1 10.0.0.2:2 tcp", "[::1: " NO_END},
		{"[::1]1 10.0.0.2:2 tcp", "[::1]1: " NO_END},
		{"[10.0.0.1]:1 10.0.0.2:2 tcp", "[10.0.0.1]:1: " NO_END},
		{"10.0.0.256:1 10.0.0.2:2 tcp", "10.0.0.256:1: " NO_END},
		{"10.0.0.1/8 10.0.0.2:2 tcp", "10.0.0.1/8: " NO_END},
		{"[fe80::1%eth0]:1 10.0.0.2:2 tcp", "[fe80::1%eth0]:1: " NO_END},
		{"10.0.0.1: 10.0.0.2:2 tcp", "10.0.0.1:: " NO_PORT},
		{"10.0.0.1:65536 10.0.0.2:2 tcp", "10.0.0.1:65536: " NO_PORT},
		{"10.0.0.1:-1 10.0.0.2:2 tcp", "10.0.0.1:-1: " NO_PORT},
		{"10.0.0.1:0x1 10.0.0.2:2 tcp", "10.0.0.1:0x1: " NO_PORT},
		{"10.0.0.1:4294967296 10.0.0.2:2 tcp", "10.0.0.1:4294967296: " NO_PORT},
		{"[::1]: [::2]:1 tcp", "[::1]:: " NO_PORT},
		{"1111111111111111111111111111111111111111111111111111111111111111 ::1 tcp",
			"1111111111111111111111111111111111111111111111111111111111111111: no "
			"address, and too long for one"},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++) {
		struct cli_flow flow;
		struct error error;

		assert_int_equal(parse(&flow, rows[i].words, &error), -EINVAL);
		assert_string_equal(error.text, rows[i].text);
	}
}

static void test_addresses(void **state)
{
	static const char *const good[] = {"10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "10.0.0.1/32",
		"::1", "2001:db8::/32", "::/0", "::1/128"};
	static const char *const bad[] = {"", "/", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/-1",
		"::1/129", "[::1]", "10.0.0.1:80", "10.0.0", "/8", "10.0.0.0/8/8", "10.0.0.0/ 8",
		"1111111111111111111111111111111111111111111111111111111111111111111111111111111"};

	(void)state;
	for (size_t i = 0; i < N_OF(good); i++)
		assert_true(cli_address_valid(good[i]));
	for (size_t i = 0; i < N_OF(bad); i++)
		assert_false(cli_address_valid(bad[i]));
}

/* The client may not ask the engine's code which protocols have ports: a test may. */
static void test_ports_as_the_engine(void **state)
{
	(void)state;
	for (unsigned number = 0; number <= UINT8_MAX; number++) {
		struct cli_proto proto;
		char text[8];

		snprintf(text, sizeof(text), "%u", number);
		assert_true(cli_proto_parse(&proto, text));
		assert_int_equal(proto.number, number);
		assert_int_equal(proto.ports, proto_has_ports((uint8_t)number));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_ports_as_the_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
