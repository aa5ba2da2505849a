/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_common.h>

#include "offload/counter.h"
#include "traffic/draw.h"

static uint32_t below(struct draw *draw, uint64_t n)
{
	return (uint32_t)(draw_next(draw) % n);
}

/* One that never wraps has 64 bits. */
static uint64_t narrowed(uint64_t total, unsigned bits)
{
	return bits < 64 ? total & ((UINT64_C(1) << bits) - 1) : total;
}

/*
 * What the NIC and software see of a flow: the NIC has counted what software has, and what is on its way
 * besides; that is never much.
 */
struct flow {
	uint64_t nic, software;
	unsigned bits;
};

/* Some packets come; up to `late` of the NIC's are not in software's count yet. */
static void go_on(struct flow *flow, struct draw *draw, uint64_t packets, unsigned late)
{
	flow->nic += packets;
	uint64_t behind = below(draw, late + 1);

	if (flow->nic > behind && flow->nic - behind > flow->software)
		flow->software = flow->nic - behind;
}

static enum counter_verdict look(
	struct counter *counter, struct flow *flow, struct draw *draw, uint64_t rate)
{
	uint64_t least = flow->software;

	/* the question travels */
	go_on(flow, draw, below(draw, rate / 1000 + 2), 300);
	uint64_t raw = narrowed(flow->nic, flow->bits);

	/* the answer travels, and what was on its way arrives */
	go_on(flow, draw, below(draw, rate / 1000 + 2), 300);
	return counter_update(counter, raw, least, flow->software + 600);
}

/* Packets come in bursts and pauses; looked at when the counter says so at the latest. */
static void a_flow(uint64_t seed, unsigned bits, bool given)
{
	struct draw draw = {.seed = seed};
	struct flow flow = {.bits = bits};
	struct counter counter;
	uint64_t rate = UINT64_C(1) << below(&draw, 24);
	uint64_t wide = 0;

	counter_begin(&counter, given ? bits : 0);
	for (unsigned i = 0; i < 400; i++) {
		uint64_t us = counter_interval_us(&counter, rate, 1000000000);
		uint64_t most = us * rate / 1000000;

		assert_true(us <= 1000000000);
		go_on(&flow, &draw, below(&draw, most + 1), 300);
		assert_int_equal(look(&counter, &flow, &draw, rate), COUNTER_FITS);
		assert_true(counter.total <= flow.software + 600);
		wide += counter.bits > bits;
	}
	/* what it did not learn it had no need of, or took for wider by chance; the end is right at any rate */
	if (given)
		assert_int_equal(wide, 0);
	if (counter.bits == bits || bits >= 64) {
		assert_true(counter.total <= flow.nic);
		assert_true(counter.total + 300 + 2 * (rate / 1000 + 2) >= flow.nic);
	}
}

/* Millions of looks, widths that are usual and others. */
static void right_counters_are_never_accused(void **state)
{
	struct draw draw = {.seed = 4};

	(void)state;
	for (uint64_t i = 0; i < 8000; i++) {
		unsigned bits = 16 + below(&draw, 33);

		a_flow(draw_next(&draw), i % 5 ? bits : 64, i % 5 && i % 3 == 0);
	}
}

/* Given time, each width is found exactly. */
static void widths_are_learned(void **state)
{
	(void)state;
	for (unsigned bits = 16; bits <= 40; bits++) {
		struct draw draw = {.seed = bits};
		struct flow flow = {.bits = bits};
		struct counter counter;

		counter_begin(&counter, 0);
		for (unsigned i = 0; i < 3000; i++) {
			go_on(&flow, &draw, draw_next(&draw) >> (66 - bits), 300);
			assert_int_equal(look(&counter, &flow, &draw, 100000), COUNTER_FITS);
		}
		assert_int_equal(counter.bits, bits);
		assert_true(counter.total <= flow.nic && counter.total + 700 >= flow.nic);
	}
}

/* Whatever it was before, one that stands still is found at the next looks. */
static void a_counter_that_stands_still_is_stuck(void **state)
{
	struct draw draw = {.seed = 5};

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		unsigned bits = i % 4 ? 16 + below(&draw, 33) : 64, looks = 0;
		struct flow flow = {.bits = bits};
		struct counter counter;
		uint64_t stands;

		counter_begin(&counter, i % 3 ? 0 : bits);
		for (unsigned j = 0; j < i % 50; j++) {
			go_on(&flow, &draw, below(&draw, 16000), 300);
			assert_int_equal(look(&counter, &flow, &draw, 100000), COUNTER_FITS);
		}
		stands = narrowed(flow.nic, bits);
		enum counter_verdict verdict;

		do {
			go_on(&flow, &draw, 1000 + below(&draw, 5000), 300);
			uint64_t least = flow.software;

			go_on(&flow, &draw, below(&draw, 100), 300);
			verdict = counter_update(&counter, stands, least, flow.software + 600);
		} while (verdict == COUNTER_FITS && ++looks < 8);
		assert_int_equal(verdict, COUNTER_STUCK);
	}
}

/* What it told once, no narrower one could have. */
static void a_width_that_was_exceeded_is_none(void **state)
{
	const uint64_t far = UINT64_C(1) << 30;
	struct counter counter;

	(void)state;
	for (unsigned bits = 16; bits < 30; bits++) {
		uint64_t least = far + (UINT64_C(1) << bits);

		counter_begin(&counter, 0);
		assert_int_equal(counter_update(&counter, far, far, far + 10), COUNTER_FITS);
		assert_int_equal(counter_update(&counter, 5, least, least + 10), COUNTER_STUCK);
	}
	/* but 31 bits are a width */
	counter_begin(&counter, 0);
	assert_int_equal(counter_update(&counter, far, far, far + 10), COUNTER_FITS);
	assert_int_equal(counter_update(&counter, 5, 2 * far, 2 * far + 10), COUNTER_FITS);
	assert_int_equal(counter.bits, 31);
	assert_true(counter.total == 2 * far + 5);
}

/* A rule that matches others' packets too: twice as many. */
static void a_counter_that_runs_ahead_is_found(void **state)
{
	struct draw draw = {.seed = 6};

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		unsigned bits = i % 4 ? 20 + below(&draw, 29) : 64, looks = 0;
		struct flow flow = {.bits = bits};
		struct counter counter;
		uint64_t others = 0;
		enum counter_verdict verdict;

		counter_begin(&counter, i % 3 ? 0 : bits);
		for (unsigned j = 0; j < i % 50; j++) {
			go_on(&flow, &draw, below(&draw, 16000), 300);
			assert_int_equal(look(&counter, &flow, &draw, 100000), COUNTER_FITS);
		}
		do {
			uint64_t packets = 1000 + below(&draw, 5000);

			others += packets;
			go_on(&flow, &draw, packets, 300);
			verdict = counter_update(&counter, narrowed(flow.nic + others, bits),
				flow.software, flow.software + 600);
		} while (verdict == COUNTER_FITS && ++looks < 8);
		/* one that wrapped meanwhile cannot be told from one that stands */
		assert_true(verdict != COUNTER_FITS);
		if (bits >= 40)
			assert_int_equal(verdict, COUNTER_AHEAD);
	}
}

/* A driver reads its counter now and then, up to a second apart, by itself or when asked, and answers with that. */
static void readings_of_a_while_ago_are_not_stuck(void **state)
{
	struct draw draw = {.seed = 7};
	unsigned behind = 0;

	(void)state;
	for (unsigned i = 0; i < 500; i++) {
		const uint64_t age_us = 200000 + below(&draw, 800000);
		const uint64_t rate = 100 + below(&draw, 100000);
		uint64_t now_us = 1, read_us = 0;
		struct counter counter;

		counter_begin(&counter, 0);
		for (unsigned k = 0; k < 200; k++) {
			now_us += 1000 + below(&draw, 500000);
			if (i % 2 != 0)
				read_us = now_us - now_us % age_us;
			else if (now_us - read_us >= age_us)
				read_us = now_us;
			uint64_t sent = rate * now_us / 1000000;
			enum counter_verdict verdict = counter_watch(
				&counter, &(struct counter_look){.raw = rate * read_us / 1000000,
						  .least = sent,
						  .most = sent + 600,
						  .now_us = now_us,
						  .patience_us = 1200000});

			assert_true(verdict == COUNTER_FITS || verdict == COUNTER_BEHIND);
			behind += verdict == COUNTER_BEHIND;
		}
	}
	assert_true(behind > 10000);
}

/* One that stands is, when it did not go on for that long; and one that tells what it has is fresh. */
static void one_that_stands_is_asked_again(void **state)
{
	static const uint64_t patience_us[] = {250000, 1200000};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct counter counter;
		struct counter_look look = {.now_us = 1, .patience_us = patience_us[i]};

		counter_begin(&counter, 0);
		for (unsigned k = 0; k < 4; k++) {
			assert_int_equal(counter.fresh, k == 0 ? 0 : RTE_MIN(k - 1, 2u));
			look.raw = look.least += 1000;
			look.most = look.least + 600;
			look.now_us += 60000;
			assert_int_equal(counter_watch(&counter, &look), COUNTER_FITS);
		}
		/* the first of the answers that are behind */
		look.least += 1000;
		look.most = look.least + 600;
		look.now_us += 60000;
		const uint64_t since_us = look.now_us;

		while (look.now_us - since_us < patience_us[i]) {
			assert_int_equal(counter_watch(&counter, &look), COUNTER_BEHIND);
			look.least += 1000;
			look.most = look.least + 600;
			look.now_us += 50000;
		}
		assert_int_equal(counter_watch(&counter, &look), COUNTER_STUCK);
		assert_false(counter.caches);
	}
}

/* One that goes on, but never as far as it had to be, does not count all: that is stuck, too. */
static void one_that_counts_half_is_stuck(void **state)
{
	struct counter counter;
	struct counter_look look = {.now_us = 1, .patience_us = 1200000};
	enum counter_verdict verdict = COUNTER_FITS;

	(void)state;
	counter_begin(&counter, 64);
	for (unsigned i = 0; i < 100 && verdict != COUNTER_STUCK; i++) {
		look.least += 1000;
		look.most = look.least + 600;
		look.raw = look.least / 2;
		look.now_us += 100000;
		verdict = counter_watch(&counter, &look);
	}
	assert_int_equal(verdict, COUNTER_STUCK);
	assert_in_range(look.now_us, 1200000, 5000000);
}

/* A quarter of what the counter holds, of the rate; 24 bits until more is known. */
static void it_is_looked_at_in_time(void **state)
{
	struct counter counter;

	(void)state;
	counter_begin(&counter, 16);
	assert_int_equal(counter_interval_us(&counter, 16384, 5000000), 1000000);
	assert_int_equal(counter_interval_us(&counter, 16384000, 5000000), 1000);
	assert_int_equal(counter_interval_us(&counter, 1, 5000000), 5000000);
	assert_int_equal(counter_interval_us(&counter, 0, 5000000), 5000000);
	counter_begin(&counter, 0);
	assert_int_equal(counter_interval_us(&counter, 1 << 22, 5000000), 1000000);
	counter_begin(&counter, 48);
	assert_int_equal(counter_interval_us(&counter, 1000000000, UINT64_C(1) << 60), 4398046511);
	counter_begin(&counter, 64);
	assert_int_equal(counter_interval_us(&counter, 1000000000, 5000000), 5000000);
}

/* Packets that the host dropped are in the NIC's counter for good: what it tells is told, and goes on. */
static void one_that_is_ahead_is_told_as_it_is(void **state)
{
	static const unsigned widths[] = {0, 16, 24, 48, 64};

	(void)state;
	for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		const uint64_t mask = widths[i] == 0 || widths[i] == 64
					      ? UINT64_MAX
					      : (UINT64_C(1) << widths[i]) - 1;
		struct counter counter;

		counter_begin(&counter, widths[i]);
		assert_int_equal(counter_update(&counter, 5000, 5000, 6024), COUNTER_FITS);
		assert_int_equal(counter_update(&counter, 9000 & mask, 6000, 7024), COUNTER_AHEAD);
		assert_int_equal(counter.total, 9000);
		/* who asks expects them from now on */
		assert_int_equal(
			counter_update(&counter, 12000 & mask, 12000, 13024), COUNTER_FITS);
		assert_int_equal(counter.total, 12000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_counters_are_never_accused),
		cmocka_unit_test(readings_of_a_while_ago_are_not_stuck),
		cmocka_unit_test(one_that_stands_is_asked_again),
		cmocka_unit_test(one_that_counts_half_is_stuck),
		cmocka_unit_test(widths_are_learned),
		cmocka_unit_test(a_counter_that_stands_still_is_stuck),
		cmocka_unit_test(a_width_that_was_exceeded_is_none),
		cmocka_unit_test(a_counter_that_runs_ahead_is_found),
		cmocka_unit_test(it_is_looked_at_in_time),
		cmocka_unit_test(one_that_is_ahead_is_told_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
