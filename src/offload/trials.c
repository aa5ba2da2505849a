/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/trials.h"

#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#define BACK_OFF_US UINT64_C(1000000)
#define MOST_BACK_OFF_US UINT64_C(15000000)
#define HOLD_US UINT64_C(100000)
#define MOST_HOLD_US UINT64_C(1000000)
#define HOLD_EACH 10

void trials_init(struct trials *trials)
{
	pthread_mutex_init(&trials->lock, NULL);
	trials->hold_us = HOLD_US;
}

void trials_destroy(struct trials *trials)
{
	pthread_mutex_destroy(&trials->lock);
}

const struct provider_abilities *trials_abilities(const struct trials *trials)
{
	static const struct provider_abilities none;
	const struct provider_abilities *told =
		atomic_load_explicit(&trials->abilities, memory_order_acquire);

	return told != NULL ? told : &none;
}

uint32_t trials_agree_on_marks(struct trials *trials, uint32_t most)
{
	pthread_mutex_lock(&trials->lock);
	const struct provider_abilities *abilities = trials_abilities(trials);

	if (abilities->mark_max != 0)
		most = RTE_MIN(most, abilities->mark_max);
	trials->marks_most = most;
	pthread_mutex_unlock(&trials->lock);
	return most;
}

bool trials_due(struct trials *trials, uint64_t now_us, uint32_t n_awaited)
{
	const uint64_t due_us = atomic_load_explicit(&trials->due_us, memory_order_relaxed);
	const bool held = trials->holds;

	trials->holds = false;
	if (due_us == 0 || now_us < due_us)
		return false;
	if (n_awaited == 0) {
		trials->hold_us = HOLD_US;
		return true;
	}
	if (!held)
		trials->holds_us = now_us;
	if (now_us - trials->holds_us < trials->hold_us) {
		trials->holds = true;
		return false;
	}
	atomic_store_explicit(
		&trials->due_us, now_us + HOLD_EACH * trials->hold_us, memory_order_relaxed);
	trials->hold_us = RTE_MIN(2 * trials->hold_us, MOST_HOLD_US);
	return false;
}

static uint32_t granted(const struct provider_abilities *then, const struct provider_abilities *now)
{
	uint32_t kinds = 0;

	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		kinds |= (uint32_t)(now->kind[kind] && !then->kind[kind]) << kind;
	return kinds;
}

static bool say_the_same(
	const struct provider_abilities *one, const struct provider_abilities *other)
{
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (one->refused[kind].error != other->refused[kind].error)
			return false;
	return memcmp(one->trying, other->trying, sizeof(one->trying)) == 0 &&
	       strcmp(one->unable, other->unable) == 0;
}

/* The port has to take marks as large as those of its wire. */
static void check_marks(const struct trials *trials, struct provider_abilities *abilities)
{
	char nic[sizeof(abilities->nic)];

	if (abilities->mark_max == 0 || abilities->mark_max >= trials->marks_most)
		return;
	memcpy(nic, abilities->nic, sizeof(nic));
	snprintf(abilities->unable, sizeof(abilities->unable),
		"%.40s takes marks up to %u, and those of its wire, which were fixed while it "
		"could not be tried, go to %u",
		nic, abilities->mark_max, trials->marks_most);
	memset(abilities->kind, 0, sizeof(abilities->kind));
	memset(abilities->trying, 0, sizeof(abilities->trying));
	abilities->mark_max = abilities->mark_bits = 0;
}

/* Abilities that were told stay. So room is kept for kinds that are granted, which can be at most as often as there are kinds. */
static uint32_t publish(struct trials *trials, const struct provider_abilities *abilities)
{
	const struct provider_abilities *then = trials_abilities(trials);
	struct provider_abilities *told = &trials->told[trials->n_told];

	pthread_mutex_lock(&trials->lock);
	*told = *abilities;
	check_marks(trials, told);
	const uint32_t kinds = granted(then, told);

	if (trials->n_told == 0 || kinds != 0 ||
		(trials->n_told < TRIALS_TOLD - PROVIDER_N_KINDS && !say_the_same(then, told))) {
		trials->n_told++;
		atomic_store_explicit(&trials->abilities, told, memory_order_release);
	}
	pthread_mutex_unlock(&trials->lock);
	return kinds;
}

struct trials_news trials_end(
	struct trials *trials, const struct provider_abilities *abilities, uint64_t now_us)
{
	const bool tried = !provider_is_trying(trials_abilities(trials));
	const uint32_t kinds = publish(trials, abilities);
	const struct provider_abilities *now = trials_abilities(trials);
	const unsigned n = trials->n++;
	uint64_t due_us = 0;

	/* also a port that takes nothing for good: one whose table is full says anything */
	if (provider_is_trying(now) || now->perhaps)
		due_us = now_us + RTE_MIN(BACK_OFF_US << RTE_MIN(n, 10u), MOST_BACK_OFF_US);
	atomic_store_explicit(&trials->due_us, due_us, memory_order_relaxed);
	return (struct trials_news){
		.untried = tried && provider_is_trying(now), .granted = n > 0 ? kinds : 0};
}
