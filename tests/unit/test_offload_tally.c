/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters that nobody can be held against: whatever their width, totals come out exact when they are read in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "offload/tally.h"
#include "traffic/draw.h"

#define MOST_US 250000

/* A flow in a NIC whose counters have so many bits. */
struct rule {
	struct tally tally;
	struct tally_port *port;
	unsigned bits;
	uint64_t packets, bytes; /* in truth */
	uint32_t size;		 /* as software knows it */
};

static uint64_t told(const struct rule *rule, uint64_t number)
{
	return rule->bits >= 64 ? number : number & ((UINT64_C(1) << rule->bits) - 1);
}

static bool read_it(struct rule *rule)
{
	const struct provider_count count = {.packets = told(rule, rule->packets),
		.bytes = told(rule, rule->bytes),
		.has_bytes = true};

	return tally_read(&rule->tally, rule->port, &count, rule->size);
}

static void come(struct rule *rule, uint64_t packets, uint32_t size)
{
	rule->packets += packets;
	rule->bytes += packets * size;
}

static void check(const struct rule *rule)
{
	assert_int_equal(rule->tally.packets.total, rule->packets);
	assert_int_equal(rule->tally.bytes.total, rule->bytes);
}

static void begin(struct rule *rule, struct tally_port *port, unsigned bits, uint32_t size)
{
	*rule = (struct rule){.port = port, .bits = bits, .size = size};
	tally_begin(&rule->tally);
}

/* Read as often as it says, for so long; the last reading comes at any time. */
static void read_in_time(struct rule *rule, uint64_t rate, uint64_t seconds)
{
	uint64_t us = 1000, end_us = seconds * CLOCK_US_PER_S;

	for (uint64_t now_us = 0; now_us < end_us; now_us += us) {
		come(rule, rate * us / CLOCK_US_PER_S, rule->size);
		assert_true(read_it(rule));
		check(rule);
		us = tally_interval_us(
			rule->port, rate, rule->size, 4 * us < MOST_US ? 4 * us : MOST_US);
		assert_true(us > 0);
	}
}

static void totals_are_exact(void **state)
{
	static const struct {
		unsigned bits;
		uint64_t rate;
		uint32_t size;
		uint64_t seconds;
	} cases[] = {
		{64, 10000000, 64, 60},
		{24, 10000000, 64, 60}, /* packets come round 35 times, bytes 2,288 times */
		{24, 800000, 1514, 60},
		{24, 1000, 1514, 600},
		{24, 3, 1514, 100000}, /* slower than anything is measured */
		{32, 10000000, 64, 600},
		{32, 8000000, 1514, 600},
		{32, 1000000000, 64, 10},
		{36, 10000000, 1514, 600},
		{40, 100000000, 1514, 60},
		{48, 100000000, 9000, 600},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_port port = {0};
		struct rule rule;

		print_message("%u bits, %lu a second\n", cases[i].bits, cases[i].rate);
		begin(&rule, &port, cases[i].bits, cases[i].size);
		read_in_time(&rule, cases[i].rate, cases[i].seconds);
		if (rule.bytes >> cases[i].bits / 2 >> (cases[i].bits + 1) / 2 != 0)
			assert_int_equal(port.bytes.bits, cases[i].bits);
		else
			assert_int_equal(port.bytes.bits, 0);
	}
}

/* 5.3 billion packets of 64 bytes, as one flow of a counter of 32 bits. */
static void one_long_flow(void **state)
{
	struct tally_port port = {0};
	struct rule rule;

	(void)state;
	begin(&rule, &port, 32, 64);
	while (rule.packets < UINT64_C(5300000000)) {
		come(&rule, 100000, 64);
		assert_true(read_it(&rule));
	}
	check(&rule);
	assert_int_equal(rule.packets >> 32, 1);
	assert_int_equal(rule.bytes >> 32, 78);
}

/* What one rule's counter told holds for all of the port. */
static void a_width_is_learned_once(void **state)
{
	struct tally_port port = {0};
	struct rule first, second;

	(void)state;
	begin(&first, &port, 24, 1000);
	for (unsigned i = 0; i < 100; i++) {
		come(&first, 3000, 1000);
		assert_true(read_it(&first));
	}
	assert_int_equal(port.bytes.bits, 24);
	assert_int_equal(port.packets.bits, 0);
	/* nearly a whole round at once, which would not be known of a width that is not */
	begin(&second, &port, 24, 1000);
	come(&second, 16000, 1000);
	assert_true(read_it(&second));
	come(&second, 16000, 1000);
	assert_true(read_it(&second));
	check(&second);
}

/* Bytes that came round several times are known by the packets, whose size is about what it was. */
static void a_late_reading(void **state)
{
	(void)state;
	for (unsigned known = 0; known < 2; known++) {
		struct tally_port port = {0};
		struct rule rule;

		begin(&rule, &port, 24, 1000);
		for (unsigned i = 0; i < (known ? 100 : 1); i++) {
			come(&rule, 3000, 1000);
			assert_true(read_it(&rule));
		}
		come(&rule, 60000, 1010);
		assert_true(read_it(&rule));
		check(&rule);
		assert_int_equal(port.bytes.bits, 24);
	}
}

/* A guess is one that says so. */
static void what_cannot_be_known(void **state)
{
	struct tally_port port = {0};
	struct rule rule;

	(void)state;
	/* counters that come round with every 43rd packet */
	begin(&rule, &port, 16, 1514);
	come(&rule, 1000, 1514);
	read_it(&rule);
	come(&rule, 100000, 1514);
	assert_false(read_it(&rule));
	/* no bytes at all */
	const struct provider_count count = {.packets = 10};

	begin(&rule, &port, 64, 100);
	port = (struct tally_port){0};
	assert_false(tally_read(&rule.tally, &port, &count, 100));
	assert_int_equal(rule.tally.packets.total, 10);
	assert_int_equal(rule.tally.bytes.total, 1000);
}

/* A width that was taken too narrow, since a counter began anew once, gives way. */
static void a_width_that_was_wrong(void **state)
{
	struct tally_port port = {.bytes = {.bits = 24}, .packets = {.bits = 24}};
	struct rule rule;

	(void)state;
	begin(&rule, &port, 64, 1000);
	come(&rule, 10000, 1000);
	assert_true(read_it(&rule));
	come(&rule, 10000, 1000);
	assert_true(read_it(&rule));
	check(&rule);
	assert_int_equal(port.bytes.bits, 0);
	assert_int_equal(port.packets.bits, 24);
}

/* Sizes of all kinds, mixed, at rates that change. */
static void packets_of_all_sizes(void **state)
{
	struct draw draw = {.seed = 5};

	(void)state;
	for (unsigned bits = 24; bits <= 40; bits += 8) {
		struct tally_port port = {0};
		struct rule rule;

		begin(&rule, &port, bits, 700);
		for (unsigned i = 0; i < 20000; i++) {
			for (unsigned k = 0; k < 40; k++)
				come(&rule, 1 + draw_next(&draw) % 200,
					(uint32_t)(64 + draw_next(&draw) % 1450));
			assert_true(read_it(&rule));
			check(&rule);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_are_exact),
		cmocka_unit_test(one_long_flow),
		cmocka_unit_test(a_width_is_learned_once),
		cmocka_unit_test(a_late_reading),
		cmocka_unit_test(what_cannot_be_known),
		cmocka_unit_test(a_width_that_was_wrong),
		cmocka_unit_test(packets_of_all_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
