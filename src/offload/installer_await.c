/* SPDX-License-Identifier: BSD-3-Clause */
/* What the NIC has not answered yet: a list by age, found by place. */
#include <errno.h>
#include <string.h>

#include "offload/installer_parts.h"

/* Places that one look for orphans goes through, and between two rounds of all of them. */
#define ORPHANS_LOOK 4096
#define ORPHANS_US 500000

void await_init(struct installer *installer, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		installer->awaited[i].after = i + 1 < n ? i + 1 : AWAIT_NONE;
	installer->free = 0;
	installer->oldest = installer->newest = installer->in_time = AWAIT_NONE;
}

void await_add(struct installer *installer, const struct call *call)
{
	uint32_t i = installer->free;
	struct awaited *awaited = &installer->awaited[i];

	installer->free = awaited->after;
	*awaited =
		(struct awaited){.call = *call, .before = installer->newest, .after = AWAIT_NONE};
	if (installer->newest != AWAIT_NONE)
		installer->awaited[installer->newest].after = i;
	else
		installer->oldest = i;
	installer->newest = i;
	if (installer->in_time == AWAIT_NONE)
		installer->in_time = i;
	installer->places[call->place].awaited = i;
	installer->n_awaited++;
	installer->n_inserts += call->op == INSTALLER_INSERT;
	installer->n_own += call->own;
}

static void take(struct installer *installer, uint32_t i, struct call *call)
{
	struct awaited *awaited = &installer->awaited[i];

	*call = awaited->call;
	if (awaited->before != AWAIT_NONE)
		installer->awaited[awaited->before].after = awaited->after;
	else
		installer->oldest = awaited->after;
	if (awaited->after != AWAIT_NONE)
		installer->awaited[awaited->after].before = awaited->before;
	else
		installer->newest = awaited->before;
	if (installer->in_time == i)
		installer->in_time = awaited->after;
	installer->places[call->place].awaited = AWAIT_NONE;
	installer->n_awaited--;
	installer->n_inserts -= call->op == INSTALLER_INSERT;
	installer->n_late -= call->late;
	installer->n_own -= call->own;
	awaited->after = installer->free;
	installer->free = i;
}

bool await_take(struct installer *installer, uint32_t place, unsigned op, struct call *call)
{
	uint32_t i = place < installer->config.provider.n_places ? installer->places[place].awaited
								 : AWAIT_NONE;

	if (i == AWAIT_NONE || installer->awaited[i].call.op != op)
		return false;
	take(installer, i, call);
	return true;
}

bool await_take_oldest(struct installer *installer, struct call *call)
{
	if (installer->oldest == AWAIT_NONE)
		return false;
	take(installer, installer->oldest, call);
	return true;
}

void await_stalled(struct installer *installer, const struct call *call)
{
	_Atomic uint64_t *times = &installer->counters.by_answer[ANSWER_TIMED_OUT];

	atomic_store_explicit(
		times, atomic_load_explicit(times, memory_order_relaxed) + 1, memory_order_relaxed);
	installer_failed(installer, call, OFFLOAD_STALLED);
	if (!installer->stalled)
		installer_note(installer, CHANGE_STALLED, OFFLOAD_STALLED);
	installer->stalled = true;
}

/*
 * Nothing is known of an insert that was never answered. Its rule, if there is one, is to go before the place
 * gets another.
 */
static void take_back(struct installer *installer, uint32_t place, uint64_t now_us)
{
	struct provider_why why = {0};
	struct call call = {
		.tsc = rte_rdtsc(),
		.us = now_us,
		.place = place,
		.op = INSTALLER_REMOVE,
		.own = true,
	};
	int ret;

	/* else when the place is asked for again, or it is the next time for all of them */
	if (installer->n_own == INSTALLER_OWN)
		return;
	ret = provider_remove(installer->provider, place, &why);
	if (ret == -EINPROGRESS)
		await_add(installer, &call);
	else
		installer_end(installer, &call, ret, &why, NULL);
}

static void give_up(struct installer *installer, uint64_t now_us)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	struct call call;

	if (!await_take_oldest(installer, &call))
		return;
	call.gave_up = true;
	if (!call.own)
		installer_end(installer, &call, -EIO, &why, NULL);
	if (call.op != INSTALLER_INSERT)
		return;
	installer->n_orphans += !installer->places[call.place].orphan;
	installer->places[call.place].orphan = true;
	take_back(installer, call.place, now_us);
}

/* Those whose rules could not be taken back at once: nobody else may ever ask for their places again. */
void await_orphans(struct installer *installer, uint64_t now_us)
{
	const uint32_t n = installer->config.provider.n_places;

	if (installer->n_orphans == 0 || now_us < installer->orphans_us ||
		health_state(&installer->health) == HEALTH_OPEN)
		return;
	for (unsigned i = 0; i < ORPHANS_LOOK && i < n; i++) {
		const uint32_t place = installer->orphan;
		const struct place_state *state = &installer->places[place];

		installer->orphan = place + 1 < n ? place + 1 : 0;
		if (state->orphan && state->awaited == AWAIT_NONE)
			take_back(installer, place, now_us);
		if (installer->orphan == 0) {
			installer->orphans_us = now_us + ORPHANS_US;
			return;
		}
	}
}

bool await_place_is_free(struct installer *installer, const struct installer_request *request)
{
	struct place_state *place = &installer->places[request->place];

	if (request->op == INSTALLER_COUNT)
		return true;
	if (request->op == INSTALLER_INSERT && place->orphan && place->awaited == AWAIT_NONE)
		take_back(installer, request->place, installer_now_us(installer));
	return place->awaited == AWAIT_NONE && !(request->op == INSTALLER_INSERT && place->orphan);
}

void await_judge(struct installer *installer, uint64_t now_us)
{
	while (installer->in_time != AWAIT_NONE) {
		struct awaited *awaited = &installer->awaited[installer->in_time];

		if (now_us - awaited->call.us < INSTALLER_STALL_US)
			break;
		awaited->call.late = true;
		installer->n_late++;
		installer->in_time = awaited->after;
		await_stalled(installer, &awaited->call);
	}
	while (installer->oldest != AWAIT_NONE &&
		now_us - installer->awaited[installer->oldest].call.us >= INSTALLER_GIVE_UP_US)
		give_up(installer, now_us);
}

void await_gauge(struct installer *installer, uint64_t begins_us)
{
	uint64_t oldest_us = begins_us;

	if (installer->oldest != AWAIT_NONE)
		oldest_us = installer->awaited[installer->oldest].call.us;
	atomic_store_explicit(&installer->counters.under_way,
		installer->n_awaited + (begins_us != 0), memory_order_relaxed);
	atomic_store_explicit(&installer->counters.oldest_us, oldest_us, memory_order_relaxed);
}
