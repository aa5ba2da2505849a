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
	packets += flow_packets(record, end);
	record->packets_low[end] = (uint32_t)packets;
	record->packets_high[end] = (uint16_t)(packets >> 32);
}

/* One packet of `every` is handed in; 5 % of the rate. */
static void steady(uint64_t rate, unsigned every, unsigned end, uint64_t begin_us)
{
	struct flow_record record = record_of(7, begin_us);
	struct meter *meter = calloc(1, sizeof(*meter));
	struct meter_result result;
	unsigned found = 0;
	uint64_t last_us = begin_us;

	count(&record, end, UINT32_MAX - 1000);
	/* the other direction is nothing to this one's rate */
	for (uint64_t i = 0; i < 5000000 && found < 20; i++) {
		uint64_t now_us = begin_us + i * CLOCK_US_PER_S / rate;

		count(&record, end, 1);
		count(&record, !end, 3);
		if (i % every != 0)
			continue;
		if (!meter_packet(meter, &record, 99, end, 1, now_us, &result)) {
			assert_true(now_us - last_us < METER_WATCH_US ||
				    (i - every) * CLOCK_US_PER_S / rate + begin_us - last_us <
					    METER_WATCH_US ||
				    found == 0);
			continue;
		}
		assert_true(
			llabs((long long)result.rate - (long long)rate) <= (long long)rate / 20);
		assert_int_equal(result.position, 99);
		assert_int_equal(result.from, end);
		assert_int_equal(result.side, 1);
		last_us = now_us;
		found++;
	}
	assert_true(found >= 5);
	free(meter);
}

static void a_steady_flow_has_its_rate(void **state)
{
	const uint64_t rates[] = {10, 1000, 7777, 100000, 1000000, 14880000};

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		steady(rates[i], 1, 0, 0);
		steady(rates[i], 7, 1, 1);
		steady(rates[i], 64, 0, CLOCK_MAX_US / 2);
	}
}

static void a_record_given_to_another_flow_begins_anew(void **state)
{
	struct meter *meter = calloc(1, sizeof(*meter));
	struct flow_record record = record_of(1, 5), other = record_of(2, 5);
	struct meter_result result;

	(void)state;
	count(&record, 0, 1);
	assert_false(meter_packet(meter, &record, 3, 0, 0, 1000, &result));
	count(&other, 0, 1000000);
	assert_false(meter_packet(meter, &other, 3, 0, 0, 20000, &result));
	count(&other, 0, 100);
	/* another direction, another side: watched by themselves */
	assert_false(meter_packet(meter, &other, 3, 1, 0, 30000, &result));
	assert_false(meter_packet(meter, &other, 3, 0, 1, 30000, &result));
	assert_true(meter_packet(meter, &other, 3, 0, 0, 30000, &result));
	assert_int_equal(result.rate, 10000);
	/* an active report: its counters and start begin anew */
	assert_false(meter_packet(meter, &other, 3, 0, 0, 31000, &result));
	struct flow_record anew = record_of(2, 32000);

	count(&anew, 0, 50);
	assert_false(meter_packet(meter, &anew, 3, 0, 0, 45000, &result));
	count(&anew, 0, 50);
	assert_true(meter_packet(meter, &anew, 3, 0, 0, 55000, &result));
	assert_int_equal(result.rate, 5000);
	free(meter);
}

/* All entries are taken by flows that never come again: another finds room when they have been kept. */
static void a_flow_that_stopped_gives_way(void **state)
{
	struct meter *meter = calloc(1, sizeof(*meter));
	struct meter_result result;
	unsigned late = 0;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		struct flow_record record = record_of(i, 1);

		count(&record, 0, 1);
		assert_false(meter_packet(meter, &record, i, 0, 0, 1000, &result));
	}
	for (uint32_t i = 0; i < METER_WATCHED; i++)
		assert_true(meter->entry[i].since_us == 1000);
	for (uint32_t i = 200000; i < 200100; i++) {
		struct flow_record record = record_of(i, 1);
		uint64_t now_us = 1000 + METER_KEEP_US;

		count(&record, 0, 1);
		assert_false(meter_packet(meter, &record, i, 0, 0, now_us - 1, &result));
		for (uint32_t j = 0; i == 200000 && j < METER_WATCHED; j++)
			assert_true(meter->entry[j].since_us == 1000);
		assert_false(meter_packet(meter, &record, i, 0, 0, now_us, &result));
		count(&record, 0, 100);
		late += meter_packet(meter, &record, i, 0, 0, now_us + METER_WATCH_US, &result);
	}
	assert_int_equal(late, 100);
	free(meter);
}

/* A flow that sends a thousandth of all, among a million others that come once and again. */
static void a_thousandth_is_found_among_a_million(void **state)
{
	struct draw draw = {.seed = 8};

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		struct meter *meter = calloc(1, sizeof(*meter));
		struct flow_record busy = record_of(1, 1);
		struct meter_result result;
		uint64_t now_us = 0, found_us = 0;

		/* a burst of 64 each 6.4 us, one packet of which is handed in */
		while (found_us == 0 && now_us < 1000000) {
			now_us += 6 + below(&draw, 2);
			count(&busy, 0, below(&draw, 1000) < 64);
			if (below(&draw, 1000) == 0) {
				if (meter_packet(meter, &busy, 5000000, 0, 0, now_us, &result))
					found_us = now_us;
				continue;
			}
			uint32_t i = below(&draw, 1000000);
			struct flow_record record = record_of(i + 2, 1);

			count(&record, 0, now_us / 1000);
			meter_packet(meter, &record, i, 0, 0, now_us, &result);
		}
		assert_true(found_us != 0);
		assert_true(result.rate > 6000 && result.rate < 15000);
		free(meter);
	}
}

/* Whatever comes, in whatever order: a result is of a flow that was there, and nothing is written beside. */
static void nothing_breaks_it(void **state)
{
	struct draw draw = {.seed = 9};
	struct {
		struct meter meter;
		uint64_t guard;
	} *m = calloc(1, sizeof(*m));
	uint64_t now_us = 0, results = 0;

	(void)state;
	m->guard = UINT64_C(0x1234567812345678);
	for (unsigned i = 0; i < 1000000; i++) {
		uint32_t position = below(&draw, 4)   ? below(&draw, 2000)
				    : below(&draw, 2) ? UINT32_MAX - 1 - below(&draw, 3)
						      : (uint32_t)draw_next(&draw);
		struct flow_record record =
			record_of(below(&draw, 8) ? position : below(&draw, 3000), i / 300000);
		unsigned from = below(&draw, 2), side = below(&draw, 2);
		struct meter_result result = {0};

		count(&record, from, draw_next(&draw) >> (16 + below(&draw, 48)));
		now_us += draw_next(&draw) >> (40 + below(&draw, 24));
		if (!meter_packet(&m->meter, &record, position, from, side, now_us, &result))
			continue;
		results++;
		assert_int_equal(result.position, position);
		assert_int_equal(result.from, from);
		assert_int_equal(result.side, side);
	}
	assert_true(results > 1000);
	assert_true(m->guard == UINT64_C(0x1234567812345678));
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_steady_flow_has_its_rate),
		cmocka_unit_test(a_record_given_to_another_flow_begins_anew),
		cmocka_unit_test(a_flow_that_stopped_gives_way),
		cmocka_unit_test(a_thousandth_is_found_among_a_million),
		cmocka_unit_test(nothing_breaks_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
