/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "traffic/timeline.h"

#define S UINT64_C(1000000)
#define MANY 256

/* Stamps, and what became of them. */
struct line {
	struct timeline timeline;
	struct timeline_packet packet[MANY];
	unsigned n_added, n;
};

static void take(struct line *line)
{
	while (timeline_next(&line->timeline, &line->packet[line->n])) {
		const struct timeline_packet *packet = &line->packet[line->n++];

		/* the order in which they came, and a clock that never goes back */
		assert_int_equal((uintptr_t)packet->packet, line->n);
		assert_true(packet->came_us <= packet->now_us);
		if (line->n > 1)
			assert_true(packet->now_us >= line->packet[line->n - 2].now_us);
	}
	assert_true(line->timeline.n_waiting < TIMELINE_WAIT);
}

static void add(struct line *line, uint64_t stamp_us)
{
	timeline_add(&line->timeline, (void *)(uintptr_t)++line->n_added, stamp_us);
	take(line);
}

static void end(struct line *line)
{
	timeline_end(&line->timeline);
	take(line);
	assert_int_equal(line->n, line->n_added);
}

static void begin(struct line *line)
{
	memset(line, 0, sizeof(*line));
	timeline_init(&line->timeline);
}

static void in_order_it_is_the_capture_own_time(void **state)
{
	struct line line;

	(void)state;
	begin(&line);
	for (unsigned i = 0; i < 200; i++)
		add(&line, 1000 * S + i * (i % 7) * S / 3 * 2 + i * 900 * S);
	end(&line);
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(line.packet[i].now_us, line.packet[i].stamp_us - 1000 * S);
		assert_int_equal(line.packet[i].came_us, line.packet[i].now_us);
	}
	assert_int_equal(line.timeline.n_back, 0);
}

/* A packet behind a silence waits for those that show what it is, no longer. */
static void a_silence_is_believed_when_others_follow(void **state)
{
	struct line line;

	(void)state;
	begin(&line);
	add(&line, 0);
	assert_int_equal(line.n, 1);
	for (unsigned i = 0; i < TIMELINE_WAIT - 1; i++)
		add(&line, 500 * S + i);
	assert_int_equal(line.n, 1);
	add(&line, 501 * S);
	assert_int_equal(line.n, TIMELINE_WAIT + 1);
	assert_int_equal(line.packet[1].now_us, 500 * S);
	end(&line);
}

static void one_astray_does_not_move_the_clock(void **state)
{
	static const uint64_t astray[] = {1020 * S, 5000 * S, UINT64_C(2100000000) * S, 1, 900 * S};
	struct line line;

	(void)state;
	for (unsigned i = 0; i < sizeof(astray) / sizeof(astray[0]); i++)
		for (unsigned times = 1; times < 4; times++) {
			begin(&line);
			add(&line, 1000 * S);
			for (unsigned j = 0; j < times; j++)
				add(&line, astray[i] + j);
			add(&line, 1000 * S + S / 2);
			add(&line, 1010 * S);
			end(&line);
			assert_in_range(line.packet[times].now_us, 0, times);
			assert_int_equal(line.packet[times + 1].now_us, S / 2);
			assert_int_equal(line.packet[times + 2].now_us, 10 * S);
			assert_int_equal(line.timeline.n_back, 1);
		}
}

/* Clocks of several machines: it goes on as one of them does. */
static void scales_go_on_side_by_side(void **state)
{
	struct line line;

	(void)state;
	begin(&line);
	for (unsigned i = 0; i < 80; i++)
		for (unsigned scale = 3; scale-- > 0;)
			add(&line, (1000 + 10000 * scale + 5 * i) * S);
	end(&line);
	assert_int_equal(line.packet[239].now_us, 79 * 5 * S);
	assert_int_equal(line.timeline.n_back, 160);
	assert_int_equal(line.timeline.most_back_us, 10000 * S);
}

/* What is more than there is room for makes room; whatever comes, no order and no packet is lost. */
static void however_it_goes_it_goes_on(void **state)
{
	struct line line;
	uint64_t random = 1;

	(void)state;
	begin(&line);
	for (unsigned i = 0; i < 100; i++)
		add(&line, (1000 - i) * 100 * S);
	for (unsigned i = 0; i < 100; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		add(&line, random >> (11 + i % 50));
	}
	end(&line);
	/* backwards all the way is no time */
	assert_int_equal(line.packet[99].now_us, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_it_is_the_capture_own_time),
		cmocka_unit_test(a_silence_is_believed_when_others_follow),
		cmocka_unit_test(one_astray_does_not_move_the_clock),
		cmocka_unit_test(scales_go_on_side_by_side),
		cmocka_unit_test(however_it_goes_it_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
