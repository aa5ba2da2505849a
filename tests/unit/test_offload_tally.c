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
	unsigned bits, byte_bits;
	uint64_t packets, bytes; /* in truth */
	uint32_t size;		 /* as software knows it */
	uint64_t link_mbps;
};

static uint64_t told(unsigned bits, uint64_t number)
{
	return bits >= 64 ? number : number & ((UINT64_C(1) << bits) - 1);
}

/* After that time. */
static bool read_after(struct rule *rule, uint64_t us)
{
	const struct tally_look look = {
		.passed_us = us, .link_mbps = rule->link_mbps, .longest = 9000, .size = rule->size};
	const struct provider_count count = {.packets = told(rule->bits, rule->packets),
		.bytes = told(rule->byte_bits, rule->bytes),
		.has_bytes = true};

	return tally_read(&rule->tally, rule->port, &count, &look);
}

static bool read_it(struct rule *rule)
{
	return read_after(rule, 1000);
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
	*rule = (struct rule){.port = port, .bits = bits, .byte_bits = bits, .size = size};
	tally_begin(&rule->tally);
}

/* Read as often as it says, for so long; the last reading comes at any time. */
static void read_in_time(struct rule *rule, uint64_t rate, uint64_t seconds)
{
	uint64_t us = 1000, end_us = seconds * CLOCK_US_PER_S;

	for (uint64_t now_us = 0; now_us < end_us; now_us += us) {
		come(rule, rate * us / CLOCK_US_PER_S, rule->size);
		assert_true(read_after(rule, us));
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

/*
 * Bytes that came round several times are known by the packets, whose size is about what it was: of a width that is not
 * known yet, only where others could hardly have told the same.
 */
static void a_late_reading(void **state)
{
	static const struct {
		unsigned readings;
		uint64_t late;
		bool known;
	} rows[] = {{100, 60000, true}, {1, 60000, false}, {1, 15500, true}};

	(void)state;
	for (unsigned row = 0; row < RTE_DIM(rows); row++) {
		struct tally_port port = {0};
		struct rule rule;

		begin(&rule, &port, 24, 1000);
		for (unsigned i = 0; i < rows[row].readings; i++) {
			come(&rule, 3000, 1000);
			assert_true(read_it(&rule));
		}
		come(&rule, rows[row].late, 1010);
		assert_int_equal(read_it(&rule), rows[row].known);
		assert_int_equal(port.bytes.bits, rows[row].known ? 24 : 0);
		if (rows[row].known)
			check(&rule);
		assert_true(rule.tally.bytes.total <= rule.bytes);
		assert_true(rule.tally.packets.total <= rule.packets);
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
	const struct tally_look look = {.passed_us = 1000, .longest = 1518, .size = 100};

	assert_false(tally_read(&rule.tally, &port, &count, &look));
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

/* A flow of 10 million packets a second is known to have 24 bits of packets, and then read late by so many rounds. */
static void read_late_by(unsigned rounds, unsigned byte_bits, bool known)
{
	const uint64_t rate = 10000000, late = (UINT64_C(1) << 24) * rounds + 50;
	struct tally_port port = {.packets = {.bits = 24}};
	struct rule rule;

	print_message("%u rounds, %u bits of bytes\n", rounds, byte_bits);
	begin(&rule, &port, 24, 64);
	rule.byte_bits = byte_bits;
	for (unsigned i = 0; i < 10; i++) {
		come(&rule, 100000, 64);
		assert_true(read_after(&rule, 10000));
	}
	come(&rule, late, 64);
	assert_int_equal(read_after(&rule, late * CLOCK_US_PER_S / rate), known);
	if (known)
		check(&rule);
	assert_true(rule.tally.packets.total <= rule.packets);
	assert_true(rule.tally.bytes.total <= rule.bytes);
	/* whatever was lost, what comes then is counted */
	const uint64_t lost = rule.packets - rule.tally.packets.total;

	come(&rule, 100000, 64);
	read_after(&rule, 10000);
	assert_int_equal(rule.packets - rule.tally.packets.total, lost);
}

/* How often packets came round is told by bytes that did not; else it is not known, and that is said. */
static void whole_rounds(void **state)
{
	(void)state;
	for (unsigned rounds = 1; rounds <= 3; rounds++) {
		read_late_by(rounds, 40, true);
		read_late_by(rounds, 64, true);
		read_late_by(rounds, 24, false);
	}
}

/* A counter becomes narrower in mid-life, or was narrow all along: nothing that was not sent is counted. */
static void narrow(unsigned bits, uint64_t rate, uint64_t narrow_us, uint64_t link_mbps)
{
	struct tally_port port = {0};
	struct rule rule;
	bool sure = true;
	uint64_t us = 1000;

	print_message("%u bits, %lu a second, from %lu us on\n", bits, rate, narrow_us);
	begin(&rule, &port, narrow_us == 0 ? bits : 64, 64);
	rule.link_mbps = link_mbps;
	for (uint64_t now_us = 0; now_us < 60 * CLOCK_US_PER_S; now_us += us) {
		if (now_us >= narrow_us)
			rule.bits = rule.byte_bits = bits;
		come(&rule, rate * us / CLOCK_US_PER_S, 64);
		sure &= read_after(&rule, us);
		assert_true(rule.tally.packets.total <= rule.packets);
		assert_true(rule.tally.bytes.total <= rule.bytes);
		if (sure)
			check(&rule);
		us = tally_interval_us(&port, rate, 64, 4 * us < MOST_US ? 4 * us : MOST_US);
	}
	/* a reading or two are lost, not all that comes after it */
	assert_true(rule.packets - rule.tally.packets.total <= 4 * rate * MOST_US / CLOCK_US_PER_S);
	assert_true(rule.tally.bytes.total >= rule.tally.packets.total * 59);
	/* 24 bits are what is assumed anyway */
	if (bits == 24 && narrow_us == 0)
		assert_true(sure);
}

static void narrow_counters(void **state)
{
	static const uint64_t rates[] = {1000, 10000, 50000}, from_us[] = {0, 6000000, 20000000};

	(void)state;
	for (unsigned bits = 16; bits <= 24; bits += 4)
		for (unsigned i = 0; i < RTE_DIM(rates); i++)
			for (unsigned j = 0; j < RTE_DIM(from_us); j++)
				for (unsigned k = 0; k < 2; k++)
					narrow(bits, rates[i], from_us[j], k == 0 ? 0 : 10000);
}

/* A counter that firmware begins anew, at any number: one reading is unknown. */
static void begun_anew(void **state)
{
	struct tally_port port = {0};
	struct rule rule;

	(void)state;
	begin(&rule, &port, 64, 1000);
	rule.link_mbps = 10000;
	for (unsigned i = 0; i < 50; i++) {
		come(&rule, 50000, 1000);
		assert_true(read_after(&rule, 100000));
	}
	check(&rule);
	const uint64_t before = rule.packets, bytes = rule.bytes;

	rule.packets = 7000;
	rule.bytes = 7000000;
	assert_false(read_after(&rule, 100000));
	assert_int_equal(rule.tally.packets.total, before);
	assert_int_equal(rule.tally.bytes.total, bytes);
	come(&rule, 50000, 1000);
	assert_true(read_after(&rule, 100000));
	assert_int_equal(rule.tally.packets.total, before + 50000);
	assert_int_equal(rule.tally.bytes.total, bytes + 50000000);
	/* and more than the link carries is none of packets */
	rule.packets += UINT64_C(1) << 40;
	assert_false(read_after(&rule, 100000));
	assert_int_equal(rule.tally.packets.total, before + 50000);
}

/* However fast it was, a flow that has fallen silent leaves nothing to guess, as long as its counter is read in time. */
static void a_silent_flow_is_no_guess(void **state)
{
	struct tally_port port = {0};
	struct rule rule;

	(void)state;
	begin(&rule, &port, 64, 64);
	for (unsigned i = 0; i < 3; i++) {
		come(&rule, 800000, 64);
		assert_true(read_after(&rule, 200000));
	}
	for (unsigned i = 0; i < 100; i++)
		assert_true(read_after(&rule, 225000));
	come(&rule, 100, 64);
	(void)read_after(&rule, 225000);
	check(&rule);
	/* not read for so long it may have come round */
	assert_false(read_after(&rule, 60000000));
}

/* A number that was told late, and the next one soon after, are no sign of a flow that became a thousand times faster. */
static void a_late_answer_is_no_rate(void **state)
{
	struct tally_port port = {0};
	struct rule rule;

	(void)state;
	begin(&rule, &port, 64, 64);
	for (unsigned i = 0; i < 3; i++) {
		come(&rule, 200000, 64);
		assert_true(read_after(&rule, 200000));
	}
	/* it was read after 200 ms, and seen 30 ms later */
	come(&rule, 200000, 64);
	assert_true(read_after(&rule, 230000));
	come(&rule, 30100, 64);
	assert_true(read_after(&rule, 100));
	for (unsigned i = 0; i < 3; i++) {
		come(&rule, 200000, 64);
		assert_true(read_after(&rule, 200000));
	}
	check(&rule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_flow_is_no_guess),
		cmocka_unit_test(a_late_answer_is_no_rate),
		cmocka_unit_test(totals_are_exact),
		cmocka_unit_test(one_long_flow),
		cmocka_unit_test(a_width_is_learned_once),
		cmocka_unit_test(a_late_reading),
		cmocka_unit_test(what_cannot_be_known),
		cmocka_unit_test(a_width_that_was_wrong),
		cmocka_unit_test(packets_of_all_sizes),
		cmocka_unit_test(whole_rounds),
		cmocka_unit_test(narrow_counters),
		cmocka_unit_test(begun_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
