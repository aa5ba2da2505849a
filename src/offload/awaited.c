/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/awaited.h"

#include <errno.h>
#include <stdlib.h>

#include "offload/installer.h"

int awaited_init(struct awaited *awaited, uint32_t n, uint32_t n_places)
{
	TAILQ_INIT(&awaited->free);
	TAILQ_INIT(&awaited->under_way);
	awaited->n_places = n_places;
	awaited->calls = calloc(n, sizeof(*awaited->calls));
	awaited->of_place = calloc(n_places, sizeof(struct awaited_call *));
	if (awaited->calls == NULL || awaited->of_place == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&awaited->free, &awaited->calls[i], next);
	return 0;
}

void awaited_free(struct awaited *awaited)
{
	free(awaited->calls);
	free(awaited->of_place);
}

void awaited_add(struct awaited *awaited, const struct call *call)
{
	struct awaited_call *entry = TAILQ_FIRST(&awaited->free);

	TAILQ_REMOVE(&awaited->free, entry, next);
	TAILQ_INSERT_TAIL(&awaited->under_way, entry, next);
	entry->call = *call;
	if (awaited->in_time == NULL)
		awaited->in_time = entry;
	awaited->of_place[call->place] = entry;
	awaited->n++;
	awaited->n_inserts += call->op == INSTALLER_INSERT;
	awaited->n_own += call->own;
}

static void take(struct awaited *awaited, struct awaited_call *entry, struct call *call)
{
	*call = entry->call;
	if (awaited->in_time == entry)
		awaited->in_time = TAILQ_NEXT(entry, next);
	TAILQ_REMOVE(&awaited->under_way, entry, next);
	TAILQ_INSERT_HEAD(&awaited->free, entry, next);
	awaited->of_place[call->place] = NULL;
	awaited->n--;
	awaited->n_inserts -= call->op == INSTALLER_INSERT;
	awaited->n_late -= call->late;
	awaited->n_own -= call->own;
}

bool awaited_has(const struct awaited *awaited, uint32_t place)
{
	return awaited->of_place[place] != NULL;
}

bool awaited_take(struct awaited *awaited, uint32_t place, unsigned op, struct call *call)
{
	struct awaited_call *entry = place < awaited->n_places ? awaited->of_place[place] : NULL;

	if (entry == NULL || entry->call.op != op)
		return false;
	take(awaited, entry, call);
	return true;
}

bool awaited_take_oldest(struct awaited *awaited, uint64_t now_us, uint64_t us, struct call *call)
{
	struct awaited_call *entry = TAILQ_FIRST(&awaited->under_way);

	if (entry == NULL || now_us - entry->call.us < us)
		return false;
	take(awaited, entry, call);
	return true;
}

const struct call *awaited_late(struct awaited *awaited, uint64_t now_us)
{
	struct awaited_call *entry = awaited->in_time;

	if (entry == NULL || now_us - entry->call.us < AWAITED_STALL_US)
		return NULL;
	entry->call.late = true;
	awaited->n_late++;
	awaited->in_time = TAILQ_NEXT(entry, next);
	return &entry->call;
}

uint64_t awaited_oldest_us(const struct awaited *awaited)
{
	const struct awaited_call *entry = TAILQ_FIRST(&awaited->under_way);

	return entry != NULL ? entry->call.us : 0;
}
