/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A provider that does what a test tells it, and writes down what it is asked. One at a time: `fake`, made
 * anew by fake_begin(). The test and the installer's thread share it under its lock.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/monotonic.h"
#include "base/tsc.h"
#include "rteflow/back_end.h"
#include "traffic/draw.h"

#define FAKE_PLACES 4096
#define FAKE_LOG 65536
#define FAKE_COUNT 2 /* beside enum provider_op: a query */

struct fake_call {
	uint32_t place;
	uint8_t op;
	uint8_t worker; /* of an insert */
};

struct fake_place {
	bool rule;
	bool pending; /* an answer is owed */
	bool lost;    /* ... and will not come, but by fake_tell() */
	uint8_t op;
	uint32_t mark;
	uint64_t due_us; /* no answer before; clock of the machine */
};

struct fake {
	struct provider base;
	pthread_mutex_t lock;
	struct draw draw;
	atomic_bool shut; /* calls wait at the gate */
	atomic_uint at_gate;
	atomic_uint slow_us;
	/* under the lock */
	bool async;
	bool holds_answers;
	unsigned answer_us;   /* answers come so late */
	bool no_counters;     /* no rule has one */
	unsigned lose_one_in; /* answers that never come; 0: none */
	unsigned queue;	      /* operations under way at most; 0: any number */
	int result[3];	      /* by operation */
	bool guesses;	      /* of inserts that fail it does not know why */
	struct fake_place place[FAKE_PLACES];
	struct fake_call log[FAKE_LOG];
	unsigned n_calls, n_pending, n_most, n_resets, n_closed;
	unsigned n_stay; /* rules that do not go at the end */
	unsigned n_shapes[PROVIDER_N_KINDS];
	unsigned n_actions; /* of each kind; 0: any number */
	unsigned faults;    /* asked for what the contract forbids */
	bool open_fails;
	uint32_t mark_max;
	bool trying;		       /* some kinds are not granted at first, */
	bool none;		       /* ... or none is, since something failed, */
	bool dead;		       /* ... or all */
	bool grants;		       /* ... and by the next trial are */
	unsigned n_trials, trials;     /* how often it was tried again, and what number was told */
	struct provider_done told[16]; /* by fake_tell() */
	unsigned n_told;
};

static struct fake fake;

static void fake_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* At the gate, and on the way. */
static void fake_takes_time(void)
{
	unsigned us = atomic_load(&fake.slow_us);

	if (us)
		nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
	if (!atomic_load(&fake.shut))
		return;
	atomic_fetch_add(&fake.at_gate, 1);
	while (atomic_load(&fake.shut))
		fake_pause();
	atomic_fetch_sub(&fake.at_gate, 1);
}

static int fake_refuse(struct provider_why *why, int result)
{
	why->error = -result;
	snprintf(why->words, sizeof(why->words), "the fake says %d", -result);
	return result;
}

static int fake_do(
	uint32_t number, unsigned op, unsigned worker, uint32_t mark, struct provider_why *why)
{
	struct fake_place *place = &fake.place[number];
	int ret = 0;

	fake_takes_time();
	pthread_mutex_lock(&fake.lock);
	if (fake.n_calls < FAKE_LOG)
		fake.log[fake.n_calls++] = (struct fake_call){
			.place = number, .op = (uint8_t)op, .worker = (uint8_t)worker};
	fake.faults += place->pending && !place->lost;
	if (fake.result[op])
		ret = fake_refuse(why, fake.result[op]),
		why->guess = op == PROVIDER_INSERT && fake.guesses;
	else if (op == PROVIDER_INSERT && (place->rule || place->pending))
		ret = fake_refuse(why, -EAGAIN);
	else if (fake.async && op != FAKE_COUNT && fake.queue && fake.n_pending >= fake.queue)
		ret = fake_refuse(why, -EAGAIN);
	else if (fake.async && op != FAKE_COUNT) {
		ret = -EINPROGRESS;
		fake.n_pending += !place->pending;
		place->pending = true;
		place->op = (uint8_t)op;
		place->due_us = monotonic_us() + fake.answer_us;
		place->lost = fake.lose_one_in && draw_next(&fake.draw) % fake.lose_one_in == 0;
		if (fake.n_pending > fake.n_most)
			fake.n_most = fake.n_pending;
	} else if (op != FAKE_COUNT) {
		place->rule = op == PROVIDER_INSERT;
	}
	if (op == PROVIDER_INSERT && (ret == 0 || ret == -EINPROGRESS))
		place->mark = mark;
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

static int fake_insert(struct provider *provider, uint32_t place, const struct offload_rule *rule,
	struct provider_why *why)
{
	(void)provider;
	return fake_do(place, PROVIDER_INSERT, rule->worker, rule->mark, why);
}

static int fake_remove(struct provider *provider, uint32_t place, struct provider_why *why)
{
	(void)provider;
	return fake_do(place, PROVIDER_REMOVE, 0, 0, why);
}

static int fake_query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why)
{
	(void)provider;
	*count = (struct provider_count){
		.packets = place * 10, .bytes = place * 1000, .has_bytes = true};
	if (fake.no_counters)
		return -EOPNOTSUPP;
	return fake_do(place, FAKE_COUNT, 0, 0, why);
}

/* Those that are owed, beginning anywhere, now and then one with an error. */
static unsigned fake_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	unsigned n = 0;

	(void)provider;
	pthread_mutex_lock(&fake.lock);
	while (n < max && fake.n_told > 0)
		done[n++] = fake.told[--fake.n_told];
	uint32_t from = draw_next(&fake.draw) % FAKE_PLACES;

	for (uint32_t i = 0; i < FAKE_PLACES && n < max && fake.n_pending && !fake.holds_answers;
		i++) {
		uint32_t number = (from + i * 1237) % FAKE_PLACES;
		struct fake_place *place = &fake.place[number];

		if (!place->pending || place->lost || monotonic_us() < place->due_us)
			continue;
		place->pending = false;
		place->rule = place->op == PROVIDER_INSERT;
		fake.n_pending--;
		done[n++] = (struct provider_done){.place = number, .op = place->op};
	}
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static bool fake_next_shape(struct provider *provider, enum provider_kind kind)
{
	(void)provider;
	pthread_mutex_lock(&fake.lock);
	bool any = ++fake.n_shapes[kind] != fake.n_actions;
	pthread_mutex_unlock(&fake.lock);
	return any;
}

static void fake_forget(unsigned *counter)
{
	pthread_mutex_lock(&fake.lock);
	(*counter)++;
	memset(fake.place, 0, sizeof(fake.place));
	fake.n_pending = 0;
	pthread_mutex_unlock(&fake.lock);
}

static void fake_reset(struct provider *provider)
{
	(void)provider;
	fake_forget(&fake.n_resets);
}

static uint32_t fake_close(struct provider *provider)
{
	(void)provider;
	fake_forget(&fake.n_closed);
	return fake.n_stay;
}

static void fake_try_again(struct provider *provider, unsigned number)
{
	pthread_mutex_lock(&fake.lock);
	fake.n_trials++;
	fake.trials = number;
	fake.faults += fake.n_pending > 0;
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS && fake.grants; kind++) {
		provider->abilities.kind[kind] |= provider->abilities.trying[kind];
		provider->abilities.trying[kind] = false;
	}
	pthread_mutex_unlock(&fake.lock);
}

static int fake_open(struct provider **provider, const struct provider_config *config)
{
	static const struct provider_ops ops = {
		.insert = fake_insert,
		.remove = fake_remove,
		.query = fake_query,
		.poll = fake_poll,
		.next_shape = fake_next_shape,
		.try_again = fake_try_again,
		.reset = fake_reset,
		.close = fake_close,
	};

	(void)config;
	fake_takes_time();
	if (fake.open_fails)
		return -ENOMEM;
	fake.base.ops = &ops;
	fake.base.abilities = (struct provider_abilities){.back_end = "fake",
		.mark_bits = 24,
		.mark_max = fake.mark_max,
		.kind = {[PROVIDER_IPV6_TCP] = true, [PROVIDER_IPV4_UDP] = true}};
	for (unsigned kind = 0; fake.none && kind < PROVIDER_N_KINDS; kind++) {
		fake.base.abilities.kind[kind] = false;
		fake.base.abilities.trying[kind] = true;
		fake.base.abilities.refused[kind].error = EIO;
	}
	fake.base.abilities.dead = fake.dead;
	for (unsigned kind = PROVIDER_IPV4_SCTP; fake.trying && kind <= PROVIDER_IPV4_ICMP;
		kind++) {
		fake.base.abilities.trying[kind] = true;
		fake.base.abilities.refused[kind] =
			(struct provider_why){.error = EBUSY, .words = "not now"};
	}
	*provider = &fake.base;
	return 0;
}

/* An answer that nobody expects any more. */
static inline void fake_tell(uint32_t place, enum provider_op op, int result)
{
	pthread_mutex_lock(&fake.lock);
	fake.told[fake.n_told++] =
		(struct provider_done){.place = place, .op = op, .result = result};
	pthread_mutex_unlock(&fake.lock);
}

static inline void fake_set_result(unsigned op, int result)
{
	pthread_mutex_lock(&fake.lock);
	fake.result[op] = result;
	pthread_mutex_unlock(&fake.lock);
}

static inline unsigned fake_shapes(enum provider_kind kind)
{
	pthread_mutex_lock(&fake.lock);
	unsigned n = fake.n_shapes[kind];

	pthread_mutex_unlock(&fake.lock);
	return n;
}

static inline unsigned fake_calls(void)
{
	pthread_mutex_lock(&fake.lock);
	unsigned n = fake.n_calls;

	pthread_mutex_unlock(&fake.lock);
	return n;
}

static inline unsigned fake_calls_of(unsigned op)
{
	unsigned n = 0;

	pthread_mutex_lock(&fake.lock);
	for (unsigned i = 0; i < fake.n_calls; i++)
		n += fake.log[i].op == op;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static inline unsigned fake_pending(void)
{
	pthread_mutex_lock(&fake.lock);
	unsigned n = fake.n_pending;

	pthread_mutex_unlock(&fake.lock);
	return n;
}

static void fake_begin(bool async)
{
	memset(&fake, 0, sizeof(fake));
	pthread_mutex_init(&fake.lock, NULL);
	fake.async = async;
	fake.draw.seed = 11;
}

/* A clock that runs `times` as fast as time does, so that tests of long waits are short. */
static void fake_clock(struct tsc_clock *clock, unsigned times)
{
	static uint64_t hz;

	if (hz == 0) {
		uint64_t us = monotonic_us(), tsc = rte_rdtsc();

		while (monotonic_us() - us < 20000)
			;
		hz = (rte_rdtsc() - tsc) * 1000000 / (monotonic_us() - us);
	}
	tsc_clock_start_at(clock, rte_rdtsc(), hz / times, 0);
}
