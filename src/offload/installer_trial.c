/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the port does with rules: tried by the installer's thread, and told to all. Kinds of flows whose rules are
 * accepted and mark nothing come first: they get other actions, and are out when none is left.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "offload/installer_parts.h"

#define BACK_OFF_US UINT64_C(1000000)
#define MOST_BACK_OFF_US UINT64_C(15000000)
/* Nothing new is begun for so long, so that nothing is under way: at first, and at last. */
#define HOLD_US UINT64_C(100000)
#define MOST_HOLD_US ((uint64_t)INSTALLER_STALL_US)
/* When that was in vain, so many times as long all goes on as ever. */
#define HOLD_EACH 10

const struct provider_abilities *installer_abilities(const struct installer *installer)
{
	static const struct provider_abilities none;
	const struct provider_abilities *told =
		atomic_load_explicit(&installer->abilities, memory_order_acquire);

	return told != NULL ? told : &none;
}

/* What became of a kind's flows, of all workers. */
static void sum_kind(
	const struct installer *installer, unsigned kind, uint32_t *proven, uint32_t *unseen)
{
	*proven = *unseen = 0;
	for (unsigned i = 0; i < installer->config.n_workers; i++) {
		const struct health_worker *worker = &installer->health.worker[i];

		*proven += atomic_load_explicit(&worker->proven_of[kind], memory_order_relaxed);
		*unseen += atomic_load_explicit(&worker->unseen_of[kind], memory_order_relaxed);
	}
}

/* The number of the try; it ends when as much time has passed again. */
static void set_out(struct installer *installer, enum provider_kind kind, uint32_t number)
{
	atomic_store_explicit(&installer->health.out[kind], number, memory_order_relaxed);
	installer->tried_us[kind] = installer_now_us(installer);
}

/*
 * A kind's rules are accepted and mark nothing, with these actions: with others they may. What the rules of
 * other kinds do is no matter. False: nothing is known against these, or there are no others.
 */
static bool change_actions_of(struct installer *installer, enum provider_kind kind)
{
	uint32_t number = health_kind_out(&installer->health, kind), proven, unseen;

	sum_kind(installer, kind, &proven, &unseen);
	if (proven != 0 || unseen == installer->unseen_then[kind])
		return false;
	installer->unseen_then[kind] = unseen;
	if (provider_next_shape(installer->provider, kind))
		return true;
	/* with all of them: the first are in line again, for those that try */
	if (number == 0) {
		set_out(installer, kind, 1);
		installer_note_kind(installer, CHANGE_KIND_OUT, kind);
	}
	return false;
}

void kinds_change_actions(struct installer *installer)
{
	bool others = false;

	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (installer_abilities(installer)->kind[kind])
			others |= change_actions_of(installer, (enum provider_kind)kind);
	if (others)
		installer_note(installer, CHANGE_SHAPE, OFFLOAD_UNSEEN);
}

static void look_at_one_out(
	struct installer *installer, enum provider_kind kind, uint32_t number, uint64_t now_us)
{
	uint32_t proven, unseen;

	sum_kind(installer, kind, &proven, &unseen);
	if (proven != 0) {
		set_out(installer, kind, 0);
		installer_note_kind(installer, CHANGE_KIND_IN, kind);
	} else if (now_us - installer->tried_us[kind] >= INSTALLER_TRY_KIND_US) {
		change_actions_of(installer, kind);
		/* 0 is no number of a try */
		set_out(installer, kind, number == UINT32_MAX ? 1 : number + 1);
	}
}

void kinds_look(struct installer *installer, uint64_t now_us)
{
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++) {
		uint32_t number = health_kind_out(&installer->health, (enum provider_kind)kind);

		if (number != 0)
			look_at_one_out(installer, (enum provider_kind)kind, number, now_us);
	}
}

/* The kinds that are granted in the one and not in the other, bit by bit. */
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

/* Marks as large as those of its wire have to be taken. */
static void check_marks(const struct installer *installer, struct provider_abilities *abilities)
{
	char nic[sizeof(abilities->nic)];

	if (abilities->mark_max == 0 || abilities->mark_max >= installer->marks_most)
		return;
	memcpy(nic, abilities->nic, sizeof(nic));
	snprintf(abilities->unable, sizeof(abilities->unable),
		"%.40s takes marks up to %u, and those of its wire, which were fixed while it "
		"could not be tried, go to %u",
		nic, abilities->mark_max, installer->marks_most);
	memset(abilities->kind, 0, sizeof(abilities->kind));
	memset(abilities->trying, 0, sizeof(abilities->trying));
	abilities->mark_max = abilities->mark_bits = 0;
}

/*
 * Readers may look at what was told before for as long as they like: it stays. So room is kept for what matters,
 * a kind that is granted, which can be at most as often as there are kinds.
 */
static void publish(struct installer *installer, const struct provider_abilities *abilities)
{
	const struct provider_abilities *then = installer_abilities(installer);
	struct provider_abilities *told = &installer->told[installer->n_told];

	pthread_mutex_lock(&installer->marks_lock);
	*told = *abilities;
	check_marks(installer, told);
	uint32_t kinds = granted(then, told);

	if (installer->n_told == 0 || kinds != 0 ||
		(installer->n_told < INSTALLER_TOLD - PROVIDER_N_KINDS &&
			!say_the_same(then, told))) {
		installer->n_told++;
		atomic_store_explicit(&installer->abilities, told, memory_order_release);
	}
	pthread_mutex_unlock(&installer->marks_lock);
}

/* The first of the kinds that could not be tried says why. */
static uint8_t why_later(struct installer *installer, const struct provider_abilities *abilities)
{
	unsigned kind = 0;

	while (!abilities->trying[kind])
		kind++;
	const struct provider_why *why = &abilities->refused[kind];

	return refusal_note(&installer->refusals, why->error, why->words);
}

/* When it is tried again, and what of that is told. */
static void trial_turn_plan(struct installer *installer, const struct provider_abilities *then)
{
	const struct provider_abilities *now = installer_abilities(installer);
	uint32_t kinds = granted(then, now);
	uint64_t wait_us = 0;

	/* also a port that takes nothing for good: one whose table is full says anything */
	if (provider_is_trying(now) || now->perhaps)
		wait_us =
			RTE_MIN(BACK_OFF_US << RTE_MIN(installer->n_trials, 10u), MOST_BACK_OFF_US);
	/* what a stop has cut short is no news */
	if (atomic_load_explicit(&installer->stopping, memory_order_acquire))
		return;
	if (provider_is_trying(now) && !provider_is_trying(then))
		installer_note(installer, CHANGE_UNTRIED, why_later(installer, now));
	if (installer->n_trials > 0 && kinds != 0)
		installer_note_detail(installer, CHANGE_TRIED, kinds);
	installer->n_trials++;
	atomic_store_explicit(&installer->trial_us,
		wait_us != 0 ? installer_now_us(installer) + wait_us : 0, memory_order_relaxed);
}

void installer_open(struct installer *installer)
{
	static const struct provider_abilities none = {
		.back_end = "none",
		.unable = "there was no memory for its rules",
	};
	int (*open)(struct provider **provider, const struct provider_config *config) =
		installer->config.open ? installer->config.open : provider_open;
	const struct provider_abilities *then = installer_abilities(installer);

	if (open(&installer->provider, &installer->config.provider) == 0)
		publish(installer, provider_abilities(installer->provider));
	else
		publish(installer, &none);
	installer->hold_us = HOLD_US;
	trial_turn_plan(installer, then);
	atomic_store_explicit(&installer->ready, true, memory_order_release);
}

/*
 * All that was asked of the port fails, or is not answered: as for the breaker's, but more and more seldom. Who
 * takes a rule and fails at its counter, say, is alive, and its packets are not to be lost for that.
 */
static bool is_to_restart(const struct installer *installer)
{
	if (installer->config.restart == NULL || installer->provider == NULL)
		return false;
	return installer->down || (provider_abilities(installer->provider)->dead &&
					  (installer->n_trials & (installer->n_trials - 1)) == 0);
}

static void trial_turn_try_again(struct installer *installer)
{
	struct provider_config config = installer->config.provider;
	const struct provider_abilities *then = installer_abilities(installer);

	if (is_to_restart(installer) && installer_restart(installer) < 0) {
		trial_turn_plan(installer, then);
		return;
	}
	config.trials = installer->n_trials;
	if (provider_try_again(&installer->provider, &config) == 0)
		publish(installer, provider_abilities(installer->provider));
	trial_turn_plan(installer, then);
}

/* Nothing new is begun for a while; what that takes is not known, so next time it is longer. */
static void hold(struct installer *installer, uint64_t now_us, bool held)
{
	if (!held)
		installer->holds_us = now_us;
	if (now_us - installer->holds_us < installer->hold_us) {
		installer->holds = true;
		return;
	}
	atomic_store_explicit(&installer->trial_us, now_us + HOLD_EACH * installer->hold_us,
		memory_order_relaxed);
	installer->hold_us = RTE_MIN(2 * installer->hold_us, MOST_HOLD_US);
}

void installer_look_at_trial(struct installer *installer, uint64_t now_us)
{
	uint64_t due_us = atomic_load_explicit(&installer->trial_us, memory_order_relaxed);
	bool held = installer->holds;

	installer->holds = false;
	if (due_us == 0 || now_us < due_us || health_state(&installer->health) == HEALTH_OPEN)
		return;
	if (installer->n_awaited > 0) {
		hold(installer, now_us, held);
		return;
	}
	installer->hold_us = HOLD_US;
	trial_turn_try_again(installer);
}

uint32_t installer_agree_on_marks(struct installer *installer, uint32_t most)
{
	pthread_mutex_lock(&installer->marks_lock);
	const struct provider_abilities *abilities = installer_abilities(installer);

	if (abilities->mark_max != 0)
		most = RTE_MIN(most, abilities->mark_max);
	installer->marks_most = most;
	pthread_mutex_unlock(&installer->marks_lock);
	return most;
}

uint64_t installer_trial_us(const struct installer *installer)
{
	return atomic_load_explicit(&installer->trial_us, memory_order_relaxed);
}
