/* SPDX-License-Identifier: BSD-3-Clause */

/* The fragment table: its promises one by one. tests/fuzz/fuzz_fragments.c holds it against a model. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/fragments.h"

#define S(seconds) ((uint64_t)(seconds) * CLOCK_US_PER_S)
#define MS(ms) ((uint64_t)(ms) * 1000)

/* Times are kept in units of 1,024 us, and none is cut short: this much may come on top. */
#define UNIT_US 2048

struct evicted {
	unsigned n;
	uint64_t sum;
};

static void on_evicted(void *context, uint32_t waiting)
{
	struct evicted *evicted = context;

	evicted->n++;
	evicted->sum += waiting;
}

static struct fragments *make(uint32_t max_datagrams, struct evicted *evicted)
{
	struct fragments *fragments = NULL;

	*evicted = (struct evicted){0};
	assert_int_equal(fragments_create(&fragments, max_datagrams, on_evicted, evicted), 0);
	return fragments;
}

/* Spreads small numbers over all 64 bits, each to its own (the finish of splitmix64). */
static uint64_t spread(uint64_t n)
{
	n += UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return n ^ n >> 31;
}

/* The first piece of a datagram, the one after it, and the last of three; each has 64 bytes. */
static const struct fragment_piece pieces[3] = {{0, 8, true}, {8, 8, true}, {16, 8, false}};

static uint32_t first(
	struct fragments *fragments, uint64_t fingerprint, uint16_t port, uint64_t now_us)
{
	struct fragment_ports ports = {.proto = 17, .src = port, .dst = (uint16_t)~port};

	return fragments_first(fragments, fingerprint, ports, pieces[0], now_us);
}

static bool knows(struct fragments *fragments, uint64_t fingerprint, uint16_t port, uint64_t now_us)
{
	struct fragment_ports ports;

	if (!fragments_find(fragments, fingerprint, now_us, &ports))
		return false;
	assert_int_equal(ports.src, port);
	assert_int_equal(ports.dst, (uint16_t)~port);
	assert_int_equal(ports.proto, 17);
	return true;
}

static enum fragments_answer later(struct fragments *fragments, uint64_t fingerprint,
	unsigned piece, uint64_t now_us, uint32_t *waiting)
{
	struct fragment_ports ports;

	return fragments_later(fragments, fingerprint, pieces[piece], now_us, &ports, waiting);
}

/* A later fragment that waits in a list of that number. */
static void wait_as(
	struct fragments *fragments, uint64_t fingerprint, uint32_t list, uint64_t now_us)
{
	uint32_t waiting;

	assert_int_equal(later(fragments, fingerprint, 1, now_us, &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, FRAGMENTS_NONE);
	fragments_set_waiting(fragments, fingerprint, list);
}

static void test_known(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);
	struct fragment_ports ports;
	uint32_t waiting;

	(void)state;
	assert_false(knows(fragments, 5, 80, 0));
	assert_int_equal(first(fragments, 5, 80, 0), FRAGMENTS_NONE);
	assert_true(knows(fragments, 5, 80, 0));
	assert_int_equal(
		fragments_later(fragments, 5, pieces[1], S(1), &ports, &waiting), FRAGMENTS_KNOWN);
	assert_int_equal(ports.src, 80);
	fragments_forget(fragments, 5);
	fragments_forget(fragments, 5);
	assert_false(knows(fragments, 5, 80, S(1)));
	fragments_destroy(fragments);
	fragments_destroy(NULL);
	assert_int_equal(evicted.n, 0);
}

/* Every protocol's ports come back, and of those without their number. */
static void test_protocols(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(1000, &evicted);

	(void)state;
	for (unsigned proto = 0; proto < 256; proto++) {
		bool has = proto == 6 || proto == 17 || proto == 33 || proto == 132 || proto == 136;
		struct fragment_ports ports = {
			.src = has ? 0xfedc : 0, .dst = has ? 0x1234 : 0, .proto = (uint8_t)proto};
		struct fragment_ports found;

		fragments_first(fragments, spread(proto), ports, pieces[0], 0);
		assert_true(fragments_find(fragments, spread(proto), 0, &found));
		assert_int_equal(found.src, ports.src);
		assert_int_equal(found.dst, ports.dst);
		assert_int_equal(found.proto, proto);
	}
	fragments_destroy(fragments);
}

static void test_waiting(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);
	struct fragment_ports ports;
	uint32_t waiting = 0;

	(void)state;
	wait_as(fragments, 7, 123456789, S(3));
	assert_int_equal(later(fragments, 7, 1, S(4), &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, 123456789);
	assert_false(fragments_find(fragments, 7, S(4), &ports));

	/* the first fragment comes: its 60 seconds are those of the one seen first */
	assert_int_equal(first(fragments, 7, 80, S(62)), 123456789);
	assert_true(knows(fragments, 7, 80, S(63)));
	assert_false(knows(fragments, 7, 80, S(63) + UNIT_US));

	/* could not be held */
	assert_int_equal(later(fragments, 8, 1, S(62), &waiting), FRAGMENTS_WAITING);
	fragments_forget(fragments, 8);
	assert_int_equal(later(fragments, 8, 1, S(62), &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, FRAGMENTS_NONE);
	assert_int_equal(evicted.n, 0);
	fragments_destroy(fragments);
}

/* 60 seconds, not less, and hardly more. */
static void test_lifetime(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);

	(void)state;
	for (uint64_t at = 0; at < S(3000); at += S(61) + 1237) {
		first(fragments, spread(at), 9, at);
		assert_true(knows(fragments, spread(at), 9, at + S(60)));
		assert_false(knows(fragments, spread(at), 9, at + S(60) + UNIT_US));
		fragments_drop(fragments, spread(at + 1), at);
		assert_true(fragments_is_dropped(fragments, spread(at + 1), at + S(60)));
		assert_false(fragments_is_dropped(fragments, spread(at + 1), at + S(60) + UNIT_US));
	}
	fragments_destroy(fragments);
}

/* Up to where the clock of a run stands still. */
static void test_end_of_time(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);

	(void)state;
	first(fragments, 5, 80, CLOCK_MAX_US - S(60));
	assert_true(knows(fragments, 5, 80, CLOCK_MAX_US));
	first(fragments, 6, 81, CLOCK_MAX_US + 5);
	assert_true(knows(fragments, 6, 81, UINT64_MAX));
	fragments_destroy(fragments);
}

/* A new first fragment of the same datagram: new ports, and 60 seconds anew. */
static void test_replacement(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);

	(void)state;
	first(fragments, 5, 80, 0);
	for (uint64_t second = 59; second < 1000; second += 59) {
		first(fragments, 5, (uint16_t)second, S(second));
		assert_true(knows(fragments, 5, (uint16_t)second, S(second + 60)));
	}
	fragments_destroy(fragments);
}

/* When all of it was seen a datagram lives two seconds: its identification may be another's then. */
static void test_complete(void **state)
{
	static const unsigned orders[][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct evicted evicted;
		struct fragments *fragments = make(10, &evicted);
		uint32_t waiting;

		for (unsigned j = 0; j < 3; j++) {
			uint64_t at = S(10 * j);

			if (j != 0 && orders[i][0] == 0)
				assert_true(knows(fragments, 5, 80, at));
			if (orders[i][j] == 0)
				first(fragments, 5, 80, at);
			else
				later(fragments, 5, orders[i][j], at, &waiting);
		}
		/* carried twice */
		assert_true(knows(fragments, 5, 80, S(21)));
		assert_int_equal(later(fragments, 5, 2, S(22), &waiting), FRAGMENTS_KNOWN);
		assert_true(knows(fragments, 5, 80, S(22)));
		assert_false(knows(fragments, 5, 80, S(22) + UNIT_US));
		/* the next datagram of that number */
		assert_int_equal(later(fragments, 5, 2, S(23), &waiting), FRAGMENTS_WAITING);
		fragments_set_waiting(fragments, 5, 3);
		assert_int_equal(first(fragments, 5, 81, S(24)), 3);
		assert_true(knows(fragments, 5, 81, S(24)));
		fragments_destroy(fragments);
	}
}

/* What is not whole, because a piece is missing or overlaps another, lives its 60 seconds. */
static void test_incomplete(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);
	uint32_t waiting;

	(void)state;
	first(fragments, 1, 80, 0);
	later(fragments, 1, 2, 0, &waiting);
	assert_true(knows(fragments, 1, 80, S(60)));
	first(fragments, 2, 80, 0);
	later(fragments, 2, 1, 0, &waiting);
	later(fragments, 2, 1, 0, &waiting);
	later(fragments, 2, 2, 0, &waiting);
	assert_true(knows(fragments, 2, 80, S(60)));
	fragments_destroy(fragments);
}

/* The longest datagram there is: 65,535 bytes, in the smallest pieces. */
static void test_longest(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);
	struct fragment_ports ports = {.proto = 17, .src = 80, .dst = (uint16_t)~80};
	uint32_t waiting;

	(void)state;
	fragments_first(fragments, 5, ports, (struct fragment_piece){0, 1, true}, 0);
	for (unsigned offset = 1; offset < 8192; offset++) {
		assert_true(knows(fragments, 5, 80, S(60)));
		fragments_later(fragments, 5,
			(struct fragment_piece){(uint16_t)offset, 1, offset != 8191}, 0, &ports,
			&waiting);
	}
	assert_true(knows(fragments, 5, 80, S(2)));
	assert_false(knows(fragments, 5, 80, S(3)));
	fragments_destroy(fragments);
}

/* What belongs to a first fragment that was dropped is to be, until there is another first one. */
static void test_dropped(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(10, &evicted);
	struct fragment_ports ports;
	uint32_t waiting;

	(void)state;
	wait_as(fragments, 5, 42, 0);
	assert_int_equal(fragments_drop(fragments, 5, MS(1)), 42);
	assert_true(fragments_is_dropped(fragments, 5, MS(2)));
	assert_false(fragments_find(fragments, 5, MS(2), &ports));
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(later(fragments, 5, i, MS(2), &waiting), FRAGMENTS_DROPPED);
	assert_true(fragments_is_dropped(fragments, 5, S(59)));
	assert_int_equal(first(fragments, 5, 80, S(59)), FRAGMENTS_NONE);
	assert_false(fragments_is_dropped(fragments, 5, S(59)));
	assert_int_equal(later(fragments, 5, 1, S(59), &waiting), FRAGMENTS_KNOWN);
	assert_int_equal(fragments_drop(fragments, 5, S(59)), FRAGMENTS_NONE);
	assert_int_equal(later(fragments, 5, 2, S(59), &waiting), FRAGMENTS_DROPPED);
	fragments_destroy(fragments);
}

static void test_clear(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(2000, &evicted);

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		first(fragments, spread(2 * i), 4, S(1000));
		wait_as(fragments, spread(2 * i + 1), i, S(1000));
	}
	fragments_clear(fragments);
	assert_int_equal(evicted.n, 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_false(knows(fragments, spread(i), 4, S(1000)));
	/* from 0 again */
	first(fragments, spread(0), 4, 0);
	assert_true(knows(fragments, spread(0), 4, S(59)));
	fragments_destroy(fragments);
}

/* A table that has had far more than it has room for takes each new one, and knows those that came last. */
static void test_eviction(void **state)
{
	static const uint32_t sizes[] = {0, 1, 5, 8, 100, 6000, 65536};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = 5 * sizes[i] + 100, known = 0;
		struct evicted evicted;
		struct fragments *fragments = make(sizes[i], &evicted);

		for (uint32_t j = 0; j < n; j++) {
			first(fragments, spread(j), (uint16_t)j, MS(2) * j / (sizes[i] + 1));
			assert_true(knows(
				fragments, spread(j), (uint16_t)j, MS(2) * j / (sizes[i] + 1)));
		}
		for (uint32_t j = n - sizes[i] / 2; j < n; j++)
			known += knows(
				fragments, spread(j), (uint16_t)j, MS(2) * n / (sizes[i] + 1));
		/* of the last half of a table, nearly all are there */
		assert_true(known >= sizes[i] / 2 - sizes[i] / 50);
		fragments_destroy(fragments);
	}
}

/* Whoever waits and is evicted is told, once, and the oldest of a line is who goes. */
static void test_evicted_lists(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(1, &evicted);
	uint32_t waiting;

	(void)state;
	/* one or two lines of four: by the fingerprint's upper and lower half */
	for (uint32_t i = 0; i < 4; i++)
		wait_as(fragments, i, 100 + i, MS(10) * i);
	assert_int_equal(evicted.n, 0);
	wait_as(fragments, 4, 104, MS(50));
	assert_int_equal(evicted.n, 1);
	assert_int_equal(evicted.sum, 100);
	assert_int_equal(later(fragments, 1, 1, MS(60), &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, 101);
	/* what is known goes by age, too, and nobody hears of it */
	assert_int_equal(first(fragments, 1, 80, MS(70)), 101);
	first(fragments, 5, 80, MS(80));
	assert_int_equal(evicted.n, 1);
	assert_false(knows(fragments, 1, 80, MS(80)));
	/* one that could not be held has no list */
	assert_int_equal(first(fragments, 2, 80, MS(90)), 102);
	fragments_forget(fragments, 2);
	assert_int_equal(later(fragments, 6, 1, MS(90), &waiting), FRAGMENTS_WAITING);
	for (uint32_t i = 0; i < 4; i++)
		first(fragments, 10 + i, 80, MS(100));
	assert_int_equal(evicted.n, 3);
	assert_int_equal(evicted.sum, 100 + 103 + 104);
	fragments_destroy(fragments);
}

/* What is over makes room before what lives: datagrams that are whole cost nobody a place. */
static void test_whole_ones_make_room(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(1000, &evicted);
	uint32_t waiting;

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		first(fragments, spread(i), (uint16_t)i, 0);
	for (uint32_t i = 1000; i < 200000; i++) {
		uint64_t at = MS(5) * (i - 1000) / 100;

		first(fragments, spread(i), 1, at);
		later(fragments, spread(i), 1, at, &waiting);
		later(fragments, spread(i), 2, at, &waiting);
	}
	unsigned known = 0;

	for (uint32_t i = 0; i < 300; i++)
		known += knows(fragments, spread(i), (uint16_t)i, S(10));
	/* 20,000 a second for 10 s, each with a place for two: most of those that are not whole have gone */
	assert_true(known < 300);
	fragments_clear(fragments);
	for (uint32_t i = 0; i < 300; i++)
		first(fragments, spread(i), (uint16_t)i, 0);
	for (uint32_t i = 1000; i < 9000; i++) {
		uint64_t at = MS(5) * (i - 1000);

		first(fragments, spread(i), 1, at);
		later(fragments, spread(i), 1, at, &waiting);
		later(fragments, spread(i), 2, at, &waiting);
	}
	/* 200 a second for 40 s: 400 places at a time, and nearly all of the others are there */
	known = 0;
	for (uint32_t i = 0; i < 300; i++)
		known += knows(fragments, spread(i), (uint16_t)i, S(40));
	assert_true(known > 290);
	fragments_destroy(fragments);
}

static void test_memory(void **state)
{
	struct evicted evicted;
	struct fragments *fragments = make(65536, &evicted);

	(void)state;
	assert_true(fragments_memory(fragments) <= 65536 * 25);
	assert_int_equal(fragments_memory(fragments), fragments_bytes(65536));
	assert_int_equal(fragments_for(1), 1024);
	assert_int_equal(fragments_for(40000), 5000);
	assert_int_equal(fragments_for(UINT32_MAX), 65536);
	fragments_destroy(fragments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_protocols),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_lifetime),
		cmocka_unit_test(test_end_of_time),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_eviction),
		cmocka_unit_test(test_evicted_lists),
		cmocka_unit_test(test_whole_ones_make_room),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
