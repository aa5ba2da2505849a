/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* An installer over the fake provider, and what tests of it have in common. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_provider.h"
#include "installer_wait.h"
#include "offload/installer.h"

#define WORLD_WAIT_US 20000000

static struct tsc_clock world_clock;
static struct installer *world;
static uint32_t world_limit; /* of rules; 0: none */
static atomic_uint world_restarts;
static atomic_int world_restart_result;

static int world_restart(void *context)
{
	(void)context;
	atomic_fetch_add(&world_restarts, 1);
	return atomic_load(&world_restart_result);
}

/* The fake NIC, for who changes what it does. */
static inline void lock(void)
{
	pthread_mutex_lock(&fake.lock);
}

static inline void unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* Answers of it that never come; 0: all do. */
static inline void lose_one_in(unsigned n)
{
	lock();
	fake.lose_one_in = n;
	unlock();
}

/* Waits for something that another thread does. */
#define world_until(condition)                                                  \
	do {                                                                    \
		uint64_t wait_from_us = monotonic_us();                         \
                                                                                \
		while (!(condition)) {                                          \
			if (monotonic_us() - wait_from_us > WORLD_WAIT_US)      \
				fail_msg("waited in vain for: %s", #condition); \
			fake_pause();                                           \
		}                                                               \
	} while (0)

static void world_make(unsigned n_workers, unsigned times, bool may_restart)
{
	struct installer_config config = {
		.number = 3,
		.n_workers = n_workers,
		.rules = world_limit,
		.clock = &world_clock,
		.provider = {.n_places = FAKE_PLACES},
		.open = fake_open,
		.restart = may_restart ? world_restart : NULL,
	};
	struct error error;

	fake_clock(&world_clock, times);
	atomic_store(&world_restarts, 0);
	atomic_store(&world_restart_result, 0);
	assert_int_equal(installer_create(&world, &config, &error), 0);
}

static inline void world_begin(bool async, unsigned n_workers, unsigned times, bool may_restart)
{
	fake_begin(async);
	world_make(n_workers, times, may_restart);
	assert_int_equal(installer_wait(world, 20000), 0);
}

static inline void world_end(void)
{
	installer_destroy(world);
	world = NULL;
	assert_int_equal(fake.n_closed, 1);
	assert_int_equal(fake.faults, 0);
}

static inline bool world_ask(unsigned worker, enum installer_op op, uint32_t place)
{
	struct installer_request request = {
		.tsc = rte_rdtsc(),
		.place = place,
		.mark = place + 7,
		.op = (uint8_t)op,
	};

	return installer_ask(world, worker, &request);
}

/* The next answer of a worker. */
static inline struct installer_answer world_answer(unsigned worker)
{
	struct installer_answer answer = {0};

	world_until(installer_answers(world, worker, &answer, 1) == 1);
	return answer;
}

/* Asks, and expects this answer. */
static inline struct installer_answer world_do(
	unsigned worker, enum installer_op op, uint32_t place, int result)
{
	assert_true(world_ask(worker, op, place));
	struct installer_answer answer = world_answer(worker);

	assert_int_equal(answer.place, place);
	assert_int_equal(answer.op, op);
	assert_int_equal(answer.result, result);
	return answer;
}

/* Whether a rule got its place; else the place is not known to be empty yet. */
static inline bool world_is_put(uint32_t place)
{
	assert_true(world_ask(0, INSTALLER_INSERT, place));
	struct installer_answer answer = world_answer(0);

	assert_true(answer.result == 0 || answer.result == -EAGAIN);
	return answer.result == 0;
}

static inline void world_change(enum change_kind kind, uint8_t reason)
{
	struct offload_change change = {.kind = CHANGE_N_KINDS};

	world_until(installer_changes(world, &change, 1) == 1);
	assert_string_equal(change_kind_name(change.kind), change_kind_name(kind));
	assert_int_equal(change.reason, reason);
	assert_int_equal(change.port, 3);
	assert_true(change.time_us > 0);
}

static inline void world_no_change(void)
{
	struct offload_change change;

	assert_int_equal(installer_changes(world, &change, 1), 0);
}

static inline uint8_t world_refusal(int error)
{
	const struct refusals *refusals = installer_refusals(world);

	for (unsigned i = 0; i < OFFLOAD_N_REFUSALS; i++) {
		const struct refusal *refusal =
			refusal_of(refusals, (uint8_t)(OFFLOAD_REFUSALS + i));

		if (refusal && refusal->error == error)
			return (uint8_t)(OFFLOAD_REFUSALS + i);
	}
	return 0;
}
