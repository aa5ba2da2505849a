/* SPDX-License-Identifier: BSD-3-Clause */

/* Routes as text: what is read, what is refused and where, and a million of them. */

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "route/table_file.h"
#include "unit/fib_scene.h"

/* Gateways and interfaces that the test has given numbers to. */
struct hops {
	struct route_line line[16];
	unsigned n;
};

static int number_of(
	void *context, const struct route_line *route, uint32_t *number, struct error *error)
{
	struct hops *hops = context;

	if (strcmp(route->device, "none") == 0)
		return error_set(error, -ENODEV, "no interface 'none'");
	for (*number = 0; *number < hops->n; (*number)++) {
		const struct route_line *line = &hops->line[*number];

		if (line->type == route->type && strcmp(line->device, route->device) == 0 &&
			memcmp(&line->gateway, &route->gateway, sizeof(line->gateway)) == 0)
			return 0;
	}
	assert_true(hops->n < 16);
	hops->line[hops->n++] = *route;
	return 0;
}

static int load(struct fib *fib, const char *text, struct hops *hops, struct route_loaded *loaded,
	struct error *error)
{
	return route_load_bytes(
		fib, "f", text, strlen(text), hops ? number_of : NULL, hops, loaded, error);
}

static uint32_t found(const struct fib *fib, const char *address)
{
	struct route_prefix prefix;
	struct error error;

	assert_int_equal(route_prefix_parse(&prefix, address, &error), 0);
	return lookup(fib, prefix.addr);
}

static void test_numbers(void **state)
{
	struct fib *fib = make_fib(4, FIB_MIN_MEMORY, NULL);
	struct route_loaded loaded;
	struct error error;

	(void)state;
	assert_int_equal(load(fib,
				 "# a comment\n; and another\n\n  \t\r\n"
				 "0.0.0.0/0 1\n10.0.0.0/8\t2\r\n 10.1.2.3 3 \n10.0.0.0/8 4\n"
				 "255.255.255.255/32 2147483646",
				 NULL, &loaded, &error),
		0);
	assert_int_equal(loaded.added, 4);
	assert_int_equal(loaded.changed, 1);
	assert_int_equal(found(fib, "10.1.2.3"), 3);
	assert_int_equal(found(fib, "10.1.2.4"), 4);
	assert_int_equal(found(fib, "11.1.2.4"), 1);
	assert_int_equal(found(fib, "255.255.255.255"), FIB_MAX_NEXT_HOP);
	fib_destroy(fib);
}

/* These are lines as `ip route` prints them. */
static void test_ip_route(void **state)
{
	static const char v4[] =
		"default via 10.0.0.1 dev eth0 proto dhcp src 10.0.0.5 metric 100\n"
		"1.2.3.0/24 via 10.0.0.1 dev eth0 \n"
		"10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5\n"
		"blackhole 10.66.0.0/16 proto static\n"
		"unreachable 10.67.0.0/16\n"
		"local 10.0.0.5 dev eth0 table local proto kernel scope host\n"
		"10.9.0.0/16 via inet6 fe80::1 dev eth1 onlink linkdown\n";
	static const char v6[] =
		"2001:db8::/64 dev eth0 proto ra metric 100 expires 86sec pref medium\n"
		"2001:db8:1::/48 via fe80::1 dev eth0 metric 20 pref medium\n"
		"unreachable fc00::/7 dev lo metric 1024 error 4294967183 pref medium\n"
		"default via fe80::1 dev eth0 proto ra metric 100 pref medium\n"
		"multicast ff00::/8 dev eth0 table local metric 256\n";
	struct fib *fib = make_fib(4, FIB_MIN_MEMORY, NULL);
	struct hops hops = {.n = 0};
	struct route_loaded loaded;
	struct error error;

	(void)state;
	if (load(fib, v4, &hops, &loaded, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(loaded.added, 7);
	assert_int_equal(hops.n, 6);
	assert_int_equal(found(fib, "8.8.8.8"), found(fib, "1.2.3.4"));
	assert_int_equal(found(fib, "10.0.0.7"), 1);
	assert_int_equal(hops.line[found(fib, "10.66.1.1")].type, ROUTE_BLACKHOLE);
	assert_int_equal(hops.line[found(fib, "10.0.0.5")].type, ROUTE_LOCAL);
	assert_int_equal(hops.line[found(fib, "10.9.1.1")].gateway.version, 6);
	fib_destroy(fib);

	fib = make_fib(6, FIB_MIN_MEMORY, NULL);
	hops.n = 0;
	if (load(fib, v6, &hops, &loaded, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(loaded.added, 5);
	assert_int_equal(found(fib, "2001:db8:1::9"), found(fib, "2a00::1"));
	assert_int_equal(hops.line[found(fib, "fd00::1")].type, ROUTE_UNREACHABLE);
	fib_destroy(fib);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *error;
		bool numbers;
	} rows[] = {
		{"1.2.3.0/24 1\n1.2.3/24 1\n", "f:2:1: not an address", true},
		{"  1.2.3.0/33 1", "f:1:3: the length of the prefix must be 0 to 32", true},
		{"1.2.3.0/ 1", "f:1:1: the length of the prefix must be 0 to 32", true},
		{"1.2.3.4/24 1", "f:1:1: the address has bits set beyond its length", true},
		{"2001:db8::/32 1", "f:1:1: not a prefix of IPv4", true},
		{"1.2.3.0/24", "f:1:11: a next hop is missing", true},
		{"1.2.3.0/24 7x", "f:1:12: not the number of a next hop", true},
		{"1.2.3.0/24 2147483647", "f:1:12: next hops have numbers up to 2147483646", true},
		{"1.2.3.0/24 1 2", "f:1:14: nothing may follow the number", true},
		{"1.2.3.0/24 dev eth0", "f:1:1: the number of a next hop must follow the prefix",
			true},
		{"1.2.3.0/24 dev", "f:1:15: an interface must follow 'dev'", false},
		{"1.2.3.0/24 via", "f:1:15: an address must follow 'via'", false},
		{"1.2.3.0/24 via 10.0.0.0/8", "f:1:16: a gateway is an address, not a prefix",
			false},
		{"1.2.3.0/24 via inet6", "f:1:21: an address must follow 'via'", false},
		{"1.2.3.0/24 dev abcdefghijklmnop",
			"f:1:16: the name of an interface has at most 15 bytes", false},
		{"1.2.3.0/24 metric", "f:1:18: a value must follow 'metric'", false},
		{"1.2.3.0/24 dev e mitric 3", "f:1:18: not a word of a route", false},
		{"1.2.3.0/24 nexthop via 10.0.0.1",
			"f:1:12: routes with several next hops cannot be read from a file", false},
		{"blackhole", "f:1:10: a prefix is missing", false},
		{"unicast 1.2.3.0/24", "f:1:19: a next hop is missing", false},
		{" 1.2.3.0/24 dev none", "f:1:2: no interface 'none'", false},
	};
	struct fib *fib = make_fib(4, FIB_MIN_MEMORY, NULL);
	struct route_loaded loaded;
	struct fib_stats stats;
	struct hops hops = {.n = 0};
	struct error error;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			load(fib, rows[i].text, rows[i].numbers ? NULL : &hops, &loaded, &error),
			-EBADMSG);
		assert_string_equal(error.text, rows[i].error);
	}
	assert_int_equal(
		route_load_bytes(fib, "f", "1.2.3.0/24\0 1", 13, NULL, NULL, &loaded, &error),
		-EBADMSG);
	assert_string_equal(error.text, "f:1:11: a zero byte; this is no text");
	assert_int_equal(route_load_file(fib, "/nowhere/a", NULL, NULL, &loaded, &error), -ENOENT);
	assert_string_equal(error.text, "/nowhere/a: No such file or directory");
	fib_stats(fib, &stats);
	assert_int_equal(stats.routes, 0);
	fib_destroy(fib);
}

/* A million lines, of which a table that is too small takes some, and says at which line it was full. */

#define MILLION (1000000 / SLOWER)

static double processor_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_million(void **state)
{
	char path[] = "/tmp/millrace-routes-XXXXXX";
	struct fib *fib = make_fib(4, fib_memory_for(4, 2 * MILLION), NULL);
	struct fib *small = make_fib(4, FIB_MIN_MEMORY, NULL);
	struct route_loaded loaded;
	struct fib_stats stats;
	struct error error;
	unsigned line, column;
	int fd = mkstemp(path);
	FILE *file;

	(void)state;
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < MILLION; i++)
		fprintf(file, "%u.%u.%u.0/24 %u\n", 1 + (i >> 16), i >> 8 & 255, i & 255, i % 1000);
	assert_int_equal(fclose(file), 0);
	double before = processor_s();

	if (route_load_file(fib, path, NULL, NULL, &loaded, &error) < 0)
		fail_msg("%s", error.text);
	double took = processor_s() - before;

	print_message("%u routes read in %.3f s\n", MILLION, took);
	assert_int_equal(loaded.added, MILLION);
	/* the goal is 1 s for a million; a busy machine gets more */
	assert_true(took < 5);
	assert_int_equal(found(fib, "1.0.5.9"), 5);
	if (SLOWER == 1) {
		assert_int_equal(
			route_load_file(small, path, NULL, NULL, &loaded, &error), -ENOSPC);
		fib_stats(small, &stats);
		assert_int_equal(stats.routes, loaded.added);
		const char *end = strchr(error.text, ':');

		assert_int_equal(sscanf(end, ":%u:%u", &line, &column), 2);
		assert_int_equal(line, loaded.added + 1);
		assert_non_null(strstr(end, ":1: the routing table's memory is full"));
	}
	unlink(path);
	fib_destroy(small);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_ip_route),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_million),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
