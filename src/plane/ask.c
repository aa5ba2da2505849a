/* SPDX-License-Identifier: BSD-3-Clause */
#include "plane/ask.h"

#include <errno.h>

#include "base/idle.h"
#include "base/monotonic.h"

/* Looks in vain before an lcore is given up, most of them 250 us apart: five seconds, as a machine whose processors are
 * taken by others may leave one thread out for some of them. */
#define ASK_TRIES 20000

/* The same while control has others to serve: a fifth of a second, and no less than some milliseconds. */
#define QUICK_US 200000
#define LEAST_US 5000

void ask_be_patient(struct ask_patience *patience)
{
	*patience = (struct ask_patience){.quick = false};
}

void ask_be_quick(struct ask_patience *patience)
{
	*patience = (struct ask_patience){.quick = true, .quick_us = QUICK_US};
}

bool ask_gives_up(struct ask_patience *patience, unsigned looks, uint64_t begin_us)
{
	if (!patience->quick)
		return looks >= ASK_TRIES;
	if (looks < IDLE_PAUSE || monotonic_us() - begin_us < patience->quick_us)
		return false;
	/* others may not answer either */
	patience->quick_us = RTE_MAX(patience->quick_us / 2, (uint64_t)LEAST_US);
	return true;
}

bool ask_waits(const struct lcore *lcore)
{
	return atomic_load_explicit(&lcore->ask->waiting, memory_order_acquire);
}

static bool answered(struct lcore *lcore)
{
	struct ask_patience *patience = lcore->ask->patience;
	const uint64_t begin_us = patience->quick ? monotonic_us() : 0;
	unsigned idle = 0;

	while (ask_waits(lcore)) {
		if (ask_gives_up(patience, idle, begin_us))
			return false;
		idle_wait(&idle);
	}
	if (patience->quick)
		ask_be_quick(patience);
	return true;
}

struct ask *ask_prepare(struct lcore *lcore, enum ask_kind kind)
{
	/* one that was given up may still be there, and be answered at any time */
	if (lcore->ask->patience->quick ? ask_waits(lcore) : !answered(lcore))
		return NULL;
	lcore->ask->ask.kind = kind;
	lcore->ask->late = false;
	return &lcore->ask->ask;
}

int ask_lcore(struct lcore *lcore)
{
	atomic_store_explicit(&lcore->ask->waiting, true, memory_order_release);
	lcore->ask->late = !answered(lcore);
	return lcore->ask->late ? -ETIMEDOUT : 0;
}

struct ask *ask_late(struct lcore *lcore, enum ask_kind kind, const struct flow_key *key)
{
	struct ask *ask = &lcore->ask->ask;

	if (!lcore->ask->late || ask_waits(lcore) || ask->kind != kind ||
		!flow_key_equal(&ask->key, key))
		return NULL;
	lcore->ask->late = false;
	return ask;
}
