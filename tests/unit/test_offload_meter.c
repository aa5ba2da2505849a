/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "offload/meter.h"
#include "traffic/draw.h"

static uint32_t below(struct draw *draw, uint32_t n)
{
	return draw_below(draw_next(draw), n);
}

static struct flow_record record_of(uint32_t flow, uint64_t start_us)
{
	struct flow_record record = {.start_us = start_us & CLOCK_MAX_US};

	memcpy(record.key.addr[1], &flow, sizeof(flow));
	return record;
}

static void count(struct flow_record *record, unsigned end, uint64_t packets)
{
	flow_set_counts(record, end, packets + flow_packets(record, end), 0);
}

static void assert_about(uint32_t value, uint64_t pps, unsigned per_cent)
{
	const uint64_t wanted = pps * RATE_ONE, most = wanted * per_cent / 100 + RATE_ONE / 2;

	assert_in_range(value, wanted - (most < wanted ? most : wanted), wanted + most);
}

/* One packet of `every` is handed in; the packets before the first one tell the rate at once. */
static void steady(uint64_t pps, unsigned every, unsigned end, uint64_t begin_us)
{
	struct flow_record record = record_of(7, begin_us);
	struct meter *meter = calloc(1, sizeof(*meter));
	uint32_t value = 0;

	/* the other direction is nothing to this one's rate */
	for (uint64_t i = 0; i < 10 * pps + 100 * every && i < 5000000; i++) {
		uint64_t now_us = begin_us + i * CLOCK_US_PER_S / pps;

		count(&record, end, 1);
		count(&record, !end, 3);
		if (i % every == 0)
			value = meter_packet(
				meter, &record, 99, end, flow_packets(&record, end), now_us);
		/* after a second everybody knows; of many packets as soon as they are some hundred */
		if (i > 2 * pps + 20 * every || (i > 1000 && i > pps / 10 && i % every == 0))
			assert_about(value, pps, 25);
	}
	assert_about(value, pps, 5);
	free(meter);
}

static void a_steady_flow_has_its_rate(void **state)
{
	const uint64_t rates[] = {10, 1000, 7777, 100000, 1000000};

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		steady(rates[i], 1, 0, 1);
		steady(rates[i], 7, 1, 5000000);
		steady(rates[i], 64, 0, CLOCK_MAX_US / 2);
	}
}

/* What was long ago counts for less; what comes soon after the last look is told by the next one. */
static void what_stopped_is_soon_forgotten(void **state)
{
	struct flow_record record = record_of(1, 5);
	struct rate rate;

	(void)state;
	rate_begin(&rate, 0, 0, 1);
	for (unsigned i = 1; i <= 100; i++) {
		count(&record, 0, 300);
		rate_look(&rate, flow_packets(&record, 0), 1 + i * 30000);
	}
	assert_about(rate.value, 10000, 2);
	assert_about(rate_after_silence(&rate, rate.us + RATE_HALF_US), 5000, 2);
	assert_int_equal(rate_after_silence(&rate, rate.us + 8 * RATE_HALF_US), 0);

	struct rate busy = rate;

	/* ten thousand packets a second were expected: half a second without one says enough */
	rate_look(&busy, flow_packets(&record, 0), busy.us + RATE_HALF_US);
	assert_true(rate_pps(busy.value) < 200);
	/* too soon to say anything */
	rate_look(&rate, flow_packets(&record, 0) + 1000, rate.us + RATE_LEAST_US - 1);
	assert_about(rate.value, 10000, 2);

	/* of a flow with three packets a second silence says little */
	struct rate slow;

	rate_begin(&slow, 0, 0, 1);
	for (unsigned i = 1; i <= 100; i++)
		rate_look(&slow, 3ul * i, 1 + i * CLOCK_US_PER_S);
	assert_about(slow.value, 3, 5);
	rate_look(&slow, slow.packets, slow.us + RATE_HALF_US);
	assert_in_range(slow.value, RATE_ONE, 2 * RATE_ONE);
}

static void decay_halves(void **state)
{
	uint32_t last = 256;

	(void)state;
	assert_int_equal(rate_decay(0), 256);
	assert_int_equal(rate_decay(RATE_HALF_US), 128);
	assert_int_equal(rate_decay(2 * RATE_HALF_US), 64);
	assert_int_equal(rate_decay(UINT64_MAX), 0);
	for (uint64_t us = 0; us < 10 * RATE_HALF_US; us += 997) {
		uint32_t now = rate_decay(us);

		assert_true(now <= last);
		assert_true(last - now <= 2);
		last = now;
	}
}

/* Numbers at their ends are no other numbers. */
static void no_number_wraps(void **state)
{
	struct rate rate;

	(void)state;
	rate_begin(&rate, UINT64_MAX, 0, 0);
	assert_int_equal(rate.value, UINT32_MAX);
	rate_begin(&rate, 5, 100, 50);
	assert_about(rate.value, 20, 1);
	rate_begin(&rate, 0, 0, 0);
	rate_look(&rate, UINT64_MAX, RATE_LEAST_US);
	assert_true(rate.value > UINT32_MAX / 2);
	rate_look(&rate, UINT64_MAX, UINT64_MAX / 2);
	assert_int_equal(rate.value, 0);
	assert_int_equal(rate_of_pps(UINT32_MAX), UINT32_MAX);
	assert_int_equal(rate_pps(rate_of_pps(1000000000 / 4)), 1000000000 / 4);
}

static void a_record_given_to_another_flow_begins_anew(void **state)
{
	struct meter *meter = calloc(1, sizeof(*meter));
	struct flow_record record = record_of(1, 5), other = record_of(2, 1000000);

	(void)state;
	count(&record, 0, 100000);
	assert_about(
		meter_packet(meter, &record, 3, 0, flow_packets(&record, 0), 750005), 100000, 1);
	count(&other, 0, 1);
	assert_about(meter_packet(meter, &other, 3, 0, flow_packets(&other, 0), 1750000), 1, 1);
	count(&other, 0, 4);
	/* another direction is watched by itself */
	assert_int_equal(meter_packet(meter, &other, 3, 1, flow_packets(&other, 1), 1750000), 0);
	/* an active report: its counters and start begin anew */
	struct flow_record anew = record_of(2, 3000000);

	count(&anew, 0, 50);
	assert_about(meter_packet(meter, &anew, 3, 0, flow_packets(&anew, 0), 3250000), 100, 1);
	assert_about(meter_rate(meter, &anew, 3, 0, flow_packets(&anew, 0), 3250000), 100, 1);
	assert_about(meter_rate(meter, &anew, 3, 0, flow_packets(&anew, 0), 3250000 + RATE_HALF_US),
		50, 2);
	free(meter);
}

/* All entries are taken by flows that never come again: a slower one finds a place when they have been silent. */
static void a_flow_that_stopped_gives_way(void **state)
{
	struct meter *meter = calloc(1, sizeof(*meter));
	struct flow_record late = record_of(1000000, 10);

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		struct flow_record record = record_of(i, 10);

		count(&record, 0, 100000);
		meter_packet(meter, &record, i, 0, flow_packets(&record, 0), 1000);
	}
	/* idle for an hour before it began to send: its average says nothing, it has to be watched */
	uint64_t now_us = UINT64_C(3600) * CLOCK_US_PER_S;
	uint32_t value = 0;

	for (unsigned i = 0; i < 10; i++) {
		count(&late, 0, 1000);
		value = meter_packet(
			meter, &late, 77, 0, flow_packets(&late, 0), now_us + i * 10000);
	}
	assert_about(value, 100000, 10);
	free(meter);
}

/* A busy flow among many that are less so is found, however many these are. */
static void a_busy_one_is_found_in_a_crowd(void **state)
{
	enum { CROWD = 100000, PPS = 1000000 };
	struct meter *meter = calloc(1, sizeof(*meter));
	struct flow_record *crowd = calloc(CROWD, sizeof(*crowd)), busy = record_of(CROWD, 1);
	struct draw draw = {.seed = 3};
	uint32_t value = 0;

	(void)state;
	for (uint32_t i = 0; i < CROWD; i++)
		crowd[i] = record_of(i, 1);
	/* a hundredth of all packets is its; they begin together */
	for (uint32_t i = 0; i < 2 * PPS; i++) {
		uint64_t now_us = 1 + (uint64_t)i * CLOCK_US_PER_S / PPS;
		uint32_t which = below(&draw, CROWD);
		bool its = below(&draw, 100) == 0;
		struct flow_record *record = its ? &busy : &crowd[which];

		count(record, 0, 1);
		if (i % 32 != 0)
			continue;
		uint32_t now = meter_packet(
			meter, record, its ? CROWD : which, 0, flow_packets(record, 0), now_us);

		if (its)
			value = now;
		else
			assert_true(rate_pps(now) < PPS / 100);
	}
	assert_about(value, PPS / 100, 25);
	free(crowd);
	free(meter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_steady_flow_has_its_rate),
		cmocka_unit_test(what_stopped_is_soon_forgotten),
		cmocka_unit_test(decay_halves),
		cmocka_unit_test(no_number_wraps),
		cmocka_unit_test(a_record_given_to_another_flow_begins_anew),
		cmocka_unit_test(a_flow_that_stopped_gives_way),
		cmocka_unit_test(a_busy_one_is_found_in_a_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
