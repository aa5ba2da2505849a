/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of sources: against plain models, full, and with several threads at once. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "rule/sources.h"
#include "unit/packet_checks.h"

#define N_SOURCES 200
#define N_STEPS 300000
#define N_THREADS 4
#define N_SHARED 40000
#define MOST 2

static uint32_t draw(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(*random >> 24);
}

static struct sources *make(uint32_t max)
{
	struct sources *sources;

	assert_int_equal(sources_create(&sources, max, &test_secret), 0);
	return sources;
}

static struct sources_key key_of(uint32_t limit, uint32_t source)
{
	return (struct sources_key){
		.limit = limit, .version = 4 + 2 * (source & 1), .addr = {source, 7, 0, source}};
}

static struct sources_stats stats_of(const struct sources *sources, uint64_t now_us)
{
	struct sources_stats stats;

	sources_stats(sources, now_us, &stats);
	return stats;
}

/* Live flows of two limits, each as an array counts them. */
static void live_flows_are_counted(void **state)
{
	static uint32_t live[2][N_SOURCES];
	const uint32_t most[2] = {5, 9};
	struct sources *sources = make(2 * N_SOURCES);
	uint64_t random = 7;
	uint32_t above = 0;

	(void)state;
	for (unsigned step = 0; step < N_STEPS; step++) {
		const uint32_t limit = draw(&random) & 1, source = draw(&random) % N_SOURCES;
		const struct sources_key key = key_of(limit, source);

		assert_int_equal(sources_live(sources, &key), live[limit][source]);
		if (draw(&random) % 8 < 5) {
			const bool fits = live[limit][source] < most[limit];

			assert_int_equal(sources_enter(sources, &key, most[limit], 0),
				fits ? SOURCES_TAKEN : SOURCES_ABOVE);
			live[limit][source] += fits;
			above += !fits;
		} else if (live[limit][source] > 0) {
			sources_leave(sources, &key);
			live[limit][source]--;
		}
	}
	assert_true(above > N_STEPS / 100);
	for (uint32_t limit = 0; limit < 2; limit++)
		for (uint32_t source = 0; source < N_SOURCES; source++) {
			const struct sources_key key = key_of(limit, source);

			for (; live[limit][source] > 0; live[limit][source]--)
				sources_leave(sources, &key);
		}
	assert_int_equal(stats_of(sources, 0).used, 0);
	assert_int_equal(stats_of(sources, 0).full, 0);
	sources_destroy(sources);
}

/* Tokens of a bucket, each worth `worth` of them, so that a microsecond is so many without a fraction. */
struct bucket {
	uint64_t tokens, at_us;
};

static bool take_token(struct bucket *bucket, uint64_t now_us, uint64_t worth, uint64_t most)
{
	bucket->tokens = RTE_MIN(most, bucket->tokens + (now_us - bucket->at_us));
	bucket->at_us = now_us;
	if (bucket->tokens < worth)
		return false;
	bucket->tokens -= worth;
	return true;
}

static void new_flows_are_limited(void **state)
{
	static const struct {
		uint32_t flows, seconds, burst;
	} rates[] = {{4, 1, 4}, {3, 60, 3}, {1000, 1, 1}, {20, 1, 40}, {2, 3600, 1}};
	static struct bucket buckets[RTE_DIM(rates)][N_SOURCES];
	struct sources *sources = make(RTE_DIM(rates) * N_SOURCES);
	uint64_t random = 11, now_us = CLOCK_US_PER_S;
	uint32_t n[2] = {0, 0};

	(void)state;
	for (unsigned step = 0; step < N_STEPS; step++) {
		const uint32_t i = draw(&random) % (uint32_t)RTE_DIM(rates);
		const uint32_t source = draw(&random) % N_SOURCES;
		const struct sources_rate rate =
			sources_rate_of(rates[i].flows, rates[i].seconds, rates[i].burst);
		const uint64_t worth = UINT64_C(1000000) * rates[i].seconds / rates[i].flows;
		struct bucket *bucket = &buckets[i][source];
		const struct sources_key key = key_of(i, source);

		if (bucket->at_us == 0)
			bucket->tokens = worth * rates[i].burst;
		const bool fits = take_token(bucket, now_us, worth, worth * rates[i].burst);

		assert_int_equal(sources_is_above(sources, &key, &rate, now_us), !fits);
		assert_int_equal(sources_begin(sources, &key, &rate, now_us),
			fits ? SOURCES_TAKEN : SOURCES_ABOVE);
		n[fits]++;
		now_us += draw(&random) % 400;
	}
	assert_true(n[0] > N_STEPS / 100 && n[1] > N_STEPS / 100);
	/* when all buckets are full again nothing is left */
	assert_true(stats_of(sources, now_us).used > 0);
	assert_int_equal(stats_of(sources, now_us + 2 * 3600 * CLOCK_US_PER_S).used, 0);
	assert_int_equal(stats_of(sources, now_us).full, 0);
	sources_destroy(sources);
}

/* The table holds as many sources as it has room for; a flood finds no room, is counted, and leaves nothing behind. */
static void full_tables_say_so(void **state)
{
	static bool taken[4 * 16384];
	const uint32_t max = 16384;
	struct sources *sources = make(max);
	const struct sources_rate rate = sources_rate_of(1, 1, 1);
	uint64_t n_taken = 0, n_full = 0;

	(void)state;
	for (uint32_t i = 0; i < RTE_DIM(taken); i++) {
		const struct sources_key key = key_of(1, i);
		const enum sources_answer answer = sources_enter(sources, &key, 10, 0);

		assert_int_not_equal(answer, SOURCES_ABOVE);
		assert_true(answer == SOURCES_TAKEN || i >= max);
		taken[i] = answer == SOURCES_TAKEN;
		n_taken += taken[i];
		n_full += answer == SOURCES_FULL;
	}
	assert_true(n_taken <= 2 * max);
	assert_int_equal(stats_of(sources, 0).used, n_taken);
	assert_int_equal(stats_of(sources, 0).full, n_full);
	for (uint32_t i = 0; i < RTE_DIM(taken); i++) {
		const struct sources_key key = key_of(1, i);

		assert_int_equal(sources_live(sources, &key), taken[i]);
		if (taken[i])
			sources_leave(sources, &key);
	}
	assert_int_equal(stats_of(sources, 0).used, 0);
	/* sources whose buckets are full again give way to others at once: any number of them in turn */
	for (uint32_t second = 1; second <= 16; second++)
		for (uint32_t i = 0; i < max; i++) {
			const struct sources_key key = key_of(2, second * max + i);

			assert_int_equal(
				sources_begin(sources, &key, &rate, second * CLOCK_US_PER_S),
				SOURCES_TAKEN);
		}
	assert_int_equal(stats_of(sources, 0).full, n_full);
	sources_destroy(sources);
}

static struct sources *shared;
static uint8_t taken_by[N_THREADS][N_SHARED];
static atomic_uint started;

/* All threads begin flows of the same sources at the same time, and end some of their own in between. */
static void *begin_flows(void *context)
{
	uint8_t *taken = context;
	uint64_t random = 1 + (uint64_t)(taken - taken_by[0]);

	atomic_fetch_add(&started, 1);
	while (atomic_load(&started) < N_THREADS)
		sched_yield();
	for (uint32_t i = 0; i < N_SHARED; i++) {
		const struct sources_key key = key_of(i / 4, i), own = key_of(UINT32_MAX, i % 3);

		taken[i] = sources_enter(shared, &key, MOST, 0) == SOURCES_TAKEN;
		if (draw(&random) % 2 == 0 && sources_enter(shared, &own, 1, 0) == SOURCES_TAKEN)
			sources_leave(shared, &own);
	}
	return NULL;
}

static void threads_count_exactly(void **state)
{
	pthread_t threads[N_THREADS];

	(void)state;
	shared = make(N_SHARED);
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, begin_flows, taken_by[i]), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < N_SHARED; i++) {
		const struct sources_key key = key_of(i / 4, i);
		unsigned n = 0;

		for (unsigned thread = 0; thread < N_THREADS; thread++)
			n += taken_by[thread][i];
		assert_int_equal(n, MOST);
		assert_int_equal(sources_live(shared, &key), MOST);
	}
	assert_int_equal(stats_of(shared, 0).used, N_SHARED);
	assert_int_equal(stats_of(shared, 0).full, 0);
	sources_destroy(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_flows_are_counted),
		cmocka_unit_test(new_flows_are_limited),
		cmocka_unit_test(full_tables_say_so),
		cmocka_unit_test(threads_count_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
