/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/ask.h"

#include <errno.h>

#include "base/idle.h"
#include "offload/agent.h"
#include "path/send.h"
#include "path/snapshot.h"

/* Looks in vain before a station is given up, most of them 250 us apart: five seconds, as a machine whose processors are
 * taken by others may leave one thread out for some of them. */
#define ASK_TRIES 20000

/* Records looked at for one page. */
#define PAGE_LOOKS 256

static bool answered(struct station *station)
{
	unsigned idle = 0;

	while (atomic_load_explicit(&station->ask.waiting, memory_order_acquire)) {
		if (idle == ASK_TRIES)
			return false;
		idle_wait(&idle);
	}
	return true;
}

struct ask *ask_prepare(struct station *station, enum ask_kind kind)
{
	/* one that was given up may still be there, and be answered at any time */
	if (!answered(station))
		return NULL;
	station->ask.ask.kind = kind;
	return &station->ask.ask;
}

int ask_station(struct station *station)
{
	atomic_store_explicit(&station->ask.waiting, true, memory_order_release);
	return answered(station) ? 0 : -ETIMEDOUT;
}

/* Copies records; looks at no more than a bounded number, since free ones may be many. */
static void page(struct station *station, struct ask *ask)
{
	const struct flow_table *table = &station->worker.shard->table;
	uint32_t position = flow_table_touched(table, ask->position);
	struct plane_page *page = &ask->page;

	page->n = 0;
	page->now_us = station->now_us;
	for (unsigned looks = 0; looks < PAGE_LOOKS && page->n < PLANE_PAGE; looks++) {
		const struct flow_record *record;

		if (position == FLOW_NONE)
			break;
		record = flow_table_record(table, position);
		if (record->state != FLOW_FREE) {
			page->position[page->n] = position;
			ask_view(station, record, &page->offload[page->n]);
			page->record[page->n++] = *record;
		}
		position = flow_table_touched(table, position + 1);
	}
	page->next = position;
}

static void find(struct station *station, struct ask *ask)
{
	struct flow_shard *shard = station->worker.shard;
	uint32_t position = flow_table_find(&shard->table, &ask->key, ask->hash);

	ask->found = position != FLOW_NONE;
	if (!ask->found)
		return;
	ask->record = *flow_table_record(&shard->table, position);
	if (ask->kind == ASK_KILL) {
		flow_shard_kill(shard, position);
		flow_shard_flush(shard);
	}
}

static void answer(struct station *station, struct ask *ask)
{
	switch (ask->kind) {
	case ASK_SNAPSHOT:
		snapshot_asked(station, ask->number);
		break;
	case ASK_PAGE:
		page(station, ask);
		break;
	case ASK_FIND:
	case ASK_KILL:
		find(station, ask);
		break;
	case ASK_FOLLOW:
		station->worker.follow = ask->follow;
		break;
	case ASK_FLOW:
		ask_flow(station, ask);
		break;
	case ASK_ADOPT:
		ask_adopt(station, ask);
		break;
	case ASK_OFFLOAD:
		ask_offload(station, ask);
		break;
	case ASK_SLOTS:
		ask_slots(station, ask);
		break;
	case ASK_CHANGES:
		ask_changes(station, ask);
		break;
	case ASK_STOP_RECEIVING:
		station->receiving = false;
		break;
	case ASK_RELEASE:
		triage_release(station->triage);
		send_settle(station);
		break;
	case ASK_END:
		flow_shard_end_all(station->worker.shard);
		break;
	case ASK_HELD:
		ask_held(station, ask);
		break;
	case ASK_LEAVE:
		if (station->worker.agent != NULL)
			agent_give_up(station->worker.agent);
		station->leaving = true;
		break;
	}
}

bool ask_answer(struct station *station)
{
	if (!atomic_load_explicit(&station->ask.waiting, memory_order_acquire))
		return false;
	answer(station, &station->ask.ask);
	atomic_store_explicit(&station->ask.waiting, false, memory_order_release);
	return true;
}
