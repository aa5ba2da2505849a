/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of flows whose rules are accepted and mark nothing: other actions for these, and what if none is left. */
#include "offload/installer_parts.h"

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
