/* SPDX-License-Identifier: BSD-3-Clause */

/* The fragment table: its promises one by one, then against a plain model for a million operations. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "flow/fragments.h"

#define S(seconds) ((seconds) * CLOCK_US_PER_S)

#define SAME_LINE(n) ((uint64_t)(n)) /* the upper half chooses the line */

/* Who says that a list has ended. */
#define BY_TABLE 1
#define BY_MODEL 2

struct expired {
	unsigned n;
	uint64_t sum;
	uint8_t *seen; /* by list number, where the test wants it */
};

static void on_expired(void *context, uint32_t waiting)
{
	struct expired *expired = context;

	expired->n++;
	expired->sum += waiting;
	if (expired->seen != NULL) {
		assert_int_equal(expired->seen[waiting] & BY_TABLE, 0);
		expired->seen[waiting] |= BY_TABLE;
	}
}

static struct fragments *make(uint32_t max_datagrams, struct expired *expired)
{
	struct fragments *fragments = NULL;

	assert_int_equal(fragments_create(&fragments, max_datagrams, on_expired, expired), 0);
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

static bool first(struct fragments *fragments, uint64_t fingerprint, uint16_t port, uint64_t tick)
{
	struct fragment_ports ports = {.proto = 17, .src = port, .dst = (uint16_t)~port};
	bool tied;

	assert_int_equal(
		fragments_first(fragments, fingerprint, ports, S(tick), &tied), FRAGMENTS_NONE);
	return tied;
}

static bool knows(struct fragments *fragments, uint64_t fingerprint, uint16_t port, uint64_t tick)
{
	struct fragment_ports ports;

	if (!fragments_find(fragments, fingerprint, S(tick), &ports))
		return false;
	assert_int_equal(ports.src, port);
	assert_int_equal(ports.dst, (uint16_t)~port);
	return true;
}

static enum fragments_answer later(
	struct fragments *fragments, uint64_t fingerprint, uint64_t tick, uint32_t *waiting)
{
	struct fragment_ports ports;

	return fragments_later(fragments, fingerprint, S(tick), &ports, waiting);
}

static void test_known(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(10, &expired);
	struct fragment_ports ports;
	uint32_t waiting;

	(void)state;
	assert_false(knows(fragments, 5, 80, 0));
	assert_true(first(fragments, 5, 80, 0));
	assert_true(knows(fragments, 5, 80, 0));
	assert_int_equal(fragments_later(fragments, 5, S(1), &ports, &waiting), FRAGMENTS_KNOWN);
	assert_int_equal(ports.src, 80);
	assert_int_equal(fragments_count(fragments), 1);
	fragments_forget(fragments, 5);
	fragments_forget(fragments, 5);
	assert_false(knows(fragments, 5, 80, 1));
	assert_int_equal(fragments_count(fragments), 0);
	fragments_destroy(fragments);
	fragments_destroy(NULL);
	assert_int_equal(expired.n, 0);
}

static void test_waiting(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(10, &expired);
	struct fragment_ports ports = {.proto = 17, .src = 1, .dst = 2};
	uint32_t waiting = 0;
	bool tied;

	(void)state;
	assert_int_equal(later(fragments, 7, 3, &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, FRAGMENTS_NONE);
	fragments_set_waiting(fragments, 7, 123456789);
	assert_int_equal(later(fragments, 7, 4, &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, 123456789);
	assert_false(fragments_find(fragments, 7, S(4), &ports));

	/* the first fragment comes: its 60 seconds are those of the one seen first */
	assert_int_equal(fragments_first(fragments, 7, ports, S(62), &tied), 123456789);
	assert_true(tied);
	assert_true(fragments_find(fragments, 7, S(62), &ports));
	assert_false(fragments_find(fragments, 7, S(63), &ports));

	/* could not be held */
	assert_int_equal(later(fragments, 8, 62, &waiting), FRAGMENTS_WAITING);
	fragments_forget(fragments, 8);
	fragments_advance(fragments, S(63));
	assert_int_equal(fragments_count(fragments), 0);
	assert_int_equal(expired.n, 0);
	fragments_destroy(fragments);
}

/* To the tick, at whatever distance the next look is. */
static void test_lifetime(void **state)
{
	(void)state;
	for (uint64_t start = 0; start < 300; start++) {
		for (uint64_t gap = 58; gap < 62 + (start % 4) * 64; gap++) {
			struct expired expired = {0};
			struct fragments *fragments = make(10, &expired);
			uint32_t waiting;

			assert_true(first(fragments, spread(1), 9, start));
			assert_int_equal(
				later(fragments, spread(2), start, &waiting), FRAGMENTS_WAITING);
			fragments_set_waiting(fragments, spread(2), 77);
			assert_int_equal(knows(fragments, spread(1), 9, start + gap), gap < 60);
			fragments_advance(fragments, S(start + gap));
			assert_int_equal(fragments_count(fragments), gap < 60 ? 2 : 0);
			assert_int_equal(expired.n, gap >= 60);
			assert_int_equal(expired.sum, gap >= 60 ? 77 : 0);
			assert_int_equal(knows(fragments, spread(1), 9, start + gap), gap < 60);
			fragments_destroy(fragments);
		}
	}
}

/* A new first fragment of the same datagram: new ports, and 60 seconds anew. */
static void test_replacement(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(10, &expired);

	(void)state;
	assert_true(first(fragments, 5, 80, 0));
	for (uint64_t tick = 59; tick < 1000; tick += 59) {
		assert_true(first(fragments, 5, (uint16_t)tick, tick));
		assert_true(knows(fragments, 5, (uint16_t)tick, tick + 59));
		assert_int_equal(fragments_count(fragments), 1);
	}
	fragments_destroy(fragments);
}

/* Time given to any call is time passed. */
static void test_time_runs_by_any_call(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(10, &expired);
	uint32_t waiting;

	(void)state;
	later(fragments, 1, 0, &waiting);
	fragments_set_waiting(fragments, 1, 5);
	assert_true(first(fragments, 2, 1, 60));
	assert_int_equal(expired.n, 1);
	later(fragments, 3, 60, &waiting);
	fragments_set_waiting(fragments, 3, 6);
	assert_int_equal(later(fragments, 3, 120, &waiting), FRAGMENTS_WAITING);
	assert_int_equal(waiting, FRAGMENTS_NONE);
	assert_int_equal(expired.n, 2);
	assert_int_equal(fragments_count(fragments), 1);
	fragments_destroy(fragments);
}

static void test_flush(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(1000, &expired);
	uint32_t waiting;

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		assert_true(first(fragments, spread(2 * i), 4, 1000));
		later(fragments, spread(2 * i + 1), 1000, &waiting);
		fragments_set_waiting(fragments, spread(2 * i + 1), i);
	}
	fragments_flush(fragments);
	assert_int_equal(expired.n, 500);
	assert_int_equal(expired.sum, 499 * 500 / 2);
	assert_int_equal(fragments_count(fragments), 0);
	/* from 0 again */
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(first(fragments, spread(i), 4, 0));
	assert_true(knows(fragments, spread(0), 4, 59));
	assert_false(knows(fragments, spread(0), 4, 60));
	fragments_destroy(fragments);
}

/* Takes exactly as many as it was made for, finds each, and has room again after each removal. */
static void fill(uint32_t max_datagrams, uint64_t (*fingerprint)(uint64_t))
{
	struct expired expired = {0};
	struct fragments *fragments = make(max_datagrams, &expired);
	uint32_t waiting;

	for (uint32_t i = 0; i < max_datagrams; i++)
		assert_true(first(fragments, fingerprint(i), (uint16_t)i, i >= max_datagrams / 2));
	assert_int_equal(fragments_count(fragments), max_datagrams);
	assert_false(first(fragments, fingerprint(max_datagrams), 1, 1));
	assert_int_equal(later(fragments, fingerprint(max_datagrams), 1, &waiting), FRAGMENTS_FULL);
	for (uint32_t i = 0; i < max_datagrams; i++)
		assert_true(knows(fragments, fingerprint(i), (uint16_t)i, 1));

	/* every third goes, and comes again; the others stay where they were */
	for (uint32_t i = 0; i < max_datagrams; i += 3)
		fragments_forget(fragments, fingerprint(i));
	for (uint32_t i = 0; i < max_datagrams; i++)
		assert_int_equal(knows(fragments, fingerprint(i), (uint16_t)i, 1), i % 3 != 0);
	for (uint32_t i = 0; i < max_datagrams; i += 3)
		assert_true(first(fragments, fingerprint(i), (uint16_t)i, 1));
	assert_false(first(fragments, fingerprint(max_datagrams), 1, 1));

	/* the first half ends but for every third */
	fragments_advance(fragments, S(60));
	for (uint32_t i = 0; i < max_datagrams; i++) {
		bool lives = i % 3 == 0 || i >= max_datagrams / 2;

		assert_int_equal(knows(fragments, fingerprint(i), (uint16_t)i, 60), lives);
	}
	fragments_advance(fragments, S(61));
	assert_int_equal(fragments_count(fragments), 0);
	for (uint32_t i = 0; i < max_datagrams; i++)
		assert_true(first(fragments, fingerprint(i), (uint16_t)i, 61));
	fragments_destroy(fragments);
}

static uint64_t same_line(uint64_t n)
{
	return SAME_LINE(n);
}

static uint64_t last_line(uint64_t n)
{
	return SAME_LINE(n) | UINT64_C(0xffffff) << 40;
}

static uint64_t few_lines(uint64_t n)
{
	return SAME_LINE(n) | (n % 3) << 62;
}

static void test_full(void **state)
{
	static const uint32_t sizes[] = {1, 5, 6, 7, 12, 100, 6000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(sizes[i], spread);
		fill(sizes[i], same_line);
		fill(sizes[i], last_line);
		fill(sizes[i], few_lines);
	}
	fill(65536, spread);
}

static void test_none(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(0, &expired);
	uint32_t waiting;

	(void)state;
	assert_false(first(fragments, 1, 1, 1));
	assert_int_equal(later(fragments, 1, 1, &waiting), FRAGMENTS_FULL);
	fragments_destroy(fragments);
}

static void test_memory(void **state)
{
	struct expired expired = {0};
	struct fragments *fragments = make(65536, &expired);

	(void)state;
	assert_true(fragments_memory(fragments) <= 721000);
	fragments_destroy(fragments);
}

/* The model: an array by datagram number. */
#define N_DATAGRAMS 3000
#define MAX_DATAGRAMS 1500
#define N_LISTS (4 * 1000 * 1000)

enum model_kind { ABSENT, MODEL_KNOWN, MODEL_WAITING };

struct model {
	struct {
		enum model_kind kind;
		uint64_t since;
		uint32_t value; /* port, or list */
	} datagrams[N_DATAGRAMS];
	uint32_t count;
	uint64_t tick;
	uint32_t next_list;
	unsigned n_expired;
	struct expired *expired;
	uint64_t (*fingerprint)(uint64_t);
};

static void model_advance(struct model *model, uint64_t tick)
{
	model->tick = tick;
	for (uint32_t i = 0; i < N_DATAGRAMS; i++) {
		if (model->datagrams[i].kind == ABSENT || tick < model->datagrams[i].since + 60)
			continue;
		if (model->datagrams[i].kind == MODEL_WAITING &&
			model->datagrams[i].value != FRAGMENTS_NONE) {
			model->n_expired++;
			model->expired->seen[model->datagrams[i].value] |= BY_MODEL;
		}
		model->datagrams[i].kind = ABSENT;
		model->count--;
	}
}

static void model_first(struct model *model, struct fragments *fragments, uint32_t i, uint16_t port)
{
	bool tied;
	uint32_t waiting = fragments_first(fragments, model->fingerprint(i),
		(struct fragment_ports){.proto = 17, .src = port, .dst = (uint16_t)~port},
		S(model->tick), &tied);
	bool absent = model->datagrams[i].kind == ABSENT;

	assert_int_equal(tied, !absent || model->count < MAX_DATAGRAMS);
	assert_int_equal(waiting, model->datagrams[i].kind == MODEL_WAITING
					  ? model->datagrams[i].value
					  : FRAGMENTS_NONE);
	if (!tied)
		return;
	model->count += absent;
	if (model->datagrams[i].kind != MODEL_WAITING)
		model->datagrams[i].since = model->tick;
	model->datagrams[i].kind = MODEL_KNOWN;
	model->datagrams[i].value = port;
}

static void model_later(struct model *model, struct fragments *fragments, uint32_t i)
{
	uint64_t fingerprint = model->fingerprint(i);
	struct fragment_ports ports = {0};
	uint32_t waiting = 0;
	enum fragments_answer answer =
		fragments_later(fragments, fingerprint, S(model->tick), &ports, &waiting);

	if (model->datagrams[i].kind == MODEL_KNOWN) {
		assert_int_equal(answer, FRAGMENTS_KNOWN);
		assert_int_equal(ports.src, model->datagrams[i].value);
		assert_int_equal(ports.dst, (uint16_t)~model->datagrams[i].value);
		return;
	}
	if (model->datagrams[i].kind == ABSENT) {
		if (model->count == MAX_DATAGRAMS) {
			assert_int_equal(answer, FRAGMENTS_FULL);
			return;
		}
		model->datagrams[i].kind = MODEL_WAITING;
		model->datagrams[i].since = model->tick;
		model->datagrams[i].value = FRAGMENTS_NONE;
		model->count++;
	}
	assert_int_equal(answer, FRAGMENTS_WAITING);
	assert_int_equal(waiting, model->datagrams[i].value);
	model->datagrams[i].value = model->next_list++;
	fragments_set_waiting(fragments, fingerprint, model->datagrams[i].value);
}

static void model_check(const struct model *model, struct fragments *fragments)
{
	assert_int_equal(fragments_count(fragments), model->count);
	assert_int_equal(model->expired->n, model->n_expired);
	for (uint32_t i = 0; i < N_DATAGRAMS; i++)
		assert_int_equal(knows(fragments, model->fingerprint(i),
					 (uint16_t)model->datagrams[i].value, model->tick),
			model->datagrams[i].kind == MODEL_KNOWN);
}

static void model_step(
	struct model *model, struct fragments *fragments, uint64_t random, unsigned *busy)
{
	uint32_t i = (uint32_t)(random >> 32) % N_DATAGRAMS;
	uint64_t tick = model->tick;

	switch (random % 16) {
	case 0: /* rarely far, mostly a second */
		if (random >> 8 & 0xff)
			tick += (random >> 16 & 0x3f) == 0;
		else
			tick += random >> 16 & 0x7f;
		if (tick == model->tick)
			return;
		model_advance(model, tick);
		if (random & 16)
			fragments_advance(fragments, S(tick));
		else
			model_later(model, fragments, i);
		break;
	case 1:
		fragments_forget(fragments, model->fingerprint(i));
		model->count -= model->datagrams[i].kind != ABSENT;
		model->datagrams[i].kind = ABSENT;
		break;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
	case 7:
		model_first(model, fragments, i, (uint16_t)(random >> 16));
		break;
	default:
		model_later(model, fragments, i);
	}
	*busy += model->count == MAX_DATAGRAMS;
}

static void run_model(uint64_t seed, unsigned n_steps, uint64_t (*fingerprint)(uint64_t))
{
	struct expired expired = {.seen = calloc(N_LISTS, 1)};
	struct model *model = calloc(1, sizeof(*model));
	struct fragments *fragments = make(MAX_DATAGRAMS, &expired);
	unsigned busy = 0;

	assert_non_null(model);
	assert_non_null(expired.seen);
	model->expired = &expired;
	model->fingerprint = fingerprint;
	for (unsigned i = 0; i < n_steps; i++) {
		model_step(model, fragments, spread(seed + i), &busy);
		if (i % 4096 == 0)
			model_check(model, fragments);
	}
	model_check(model, fragments);
	assert_true(busy > n_steps / 100); /* it was full often enough to mean something */
	assert_true(expired.n > 100);
	for (uint32_t i = 0; i < model->next_list; i++)
		assert_true(expired.seen[i] == 0 || expired.seen[i] == (BY_TABLE | BY_MODEL));
	free(expired.seen);
	free(model);
	fragments_destroy(fragments);
}

static void test_model(void **state)
{
	(void)state;
	run_model(1, 1000 * 1000, spread);
	run_model(2, 50 * 1000, same_line);
	run_model(3, 100 * 1000, few_lines);
	run_model(4, 100 * 1000, last_line);
}

/* A second is counted from its end: nothing ends before its 60 s, nor a whole second after. */
static void test_within_a_second(void **state)
{
	(void)state;
	static const struct {
		uint64_t seen_us;
		uint64_t due;
	} cases[] = {{0, 60}, {1, 61}, {500000, 61}, {999999, 61}, {S(1), 61}, {S(63) + 1, 124},
		{S(127) + 999999, 188}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expired expired = {0};
		struct fragments *fragments = make(10, &expired);
		struct fragment_ports ports;
		uint32_t waiting;

		assert_int_equal(fragments_later(fragments, 5, cases[i].seen_us, &ports, &waiting),
			FRAGMENTS_WAITING);
		fragments_set_waiting(fragments, 5, 1);
		fragments_advance(fragments, S(cases[i].due) - 1);
		assert_int_equal(expired.n, 0);
		assert_int_equal(fragments_count(fragments), 1);
		fragments_advance(fragments, S(cases[i].due));
		assert_int_equal(expired.n, 1);
		assert_int_equal(fragments_count(fragments), 0);
		fragments_destroy(fragments);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_a_second),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_lifetime),
		cmocka_unit_test(test_replacement),
		cmocka_unit_test(test_time_runs_by_any_call),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
