/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/marking.h"

/* So long a kind that is out is tried with the same actions. */
#define TRY_US 10000000

/* Adds up the flows of a kind over all workers. */
static void sum_kind(
	const struct health *health, enum provider_kind kind, uint32_t *proven, uint32_t *unseen)
{
	*proven = *unseen = 0;
	for (unsigned i = 0; i < HEALTH_MAX_WORKERS; i++) {
		const struct health_worker *worker = &health->worker[i];

		*proven += atomic_load_explicit(&worker->proven_of[kind], memory_order_relaxed);
		*unseen += atomic_load_explicit(&worker->unseen_of[kind], memory_order_relaxed);
	}
}

static void set_out(struct marking *marking, struct health *health, enum provider_kind kind,
	uint32_t number, uint64_t now_us)
{
	atomic_store_explicit(&health->out[kind], number, memory_order_relaxed);
	marking->tried_us[kind] = now_us;
}

enum change {
	STAYS, /* nothing is known against these actions */
	OTHERS,
	NONE_LEFT, /* the first are in line again */
};

static enum change change_actions(struct marking *marking, const struct health *health,
	struct provider *provider, enum provider_kind kind)
{
	uint32_t proven, unseen;

	sum_kind(health, kind, &proven, &unseen);
	if (proven != 0 || unseen == marking->unseen_then[kind])
		return STAYS;
	marking->unseen_then[kind] = unseen;
	return provider_next_shape(provider, kind) ? OTHERS : NONE_LEFT;
}

bool marking_change_actions(struct marking *marking, struct health *health,
	struct provider *provider, uint64_t now_us, uint32_t *out)
{
	bool others = false;

	*out = 0;
	for (enum provider_kind kind = 0; kind < PROVIDER_N_KINDS; kind++) {
		if (!provider_abilities(provider)->kind[kind])
			continue;
		enum change change = change_actions(marking, health, provider, kind);

		others |= change == OTHERS;
		if (change != NONE_LEFT || health_kind_out(health, kind) != 0)
			continue;
		set_out(marking, health, kind, 1, now_us);
		*out |= 1u << kind;
	}
	return others;
}

uint32_t marking_look(
	struct marking *marking, struct health *health, struct provider *provider, uint64_t now_us)
{
	uint32_t in = 0;

	for (enum provider_kind kind = 0; kind < PROVIDER_N_KINDS; kind++) {
		const uint32_t number = health_kind_out(health, kind);
		uint32_t proven, unseen;

		if (number == 0)
			continue;
		sum_kind(health, kind, &proven, &unseen);
		if (proven != 0) {
			set_out(marking, health, kind, 0, now_us);
			in |= 1u << kind;
		} else if (now_us - marking->tried_us[kind] >= TRY_US) {
			change_actions(marking, health, provider, kind);
			/* 0 is no number of a try */
			set_out(marking, health, kind, number == UINT32_MAX ? 1 : number + 1,
				now_us);
		}
	}
	return in;
}
