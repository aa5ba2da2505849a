/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/ask.h"

#include <errno.h>

#include "base/idle.h"
#include "base/monotonic.h"
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"
#include "offload/agent.h"

/* Looks in vain before a station is given up, most of them 250 us apart: five seconds, as a machine whose processors are
 * taken by others may leave one thread out for some of them. */
#define ASK_TRIES 20000

/* Records looked at for one page. */
#define PAGE_LOOKS 256

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

bool ask_waits(const struct station *station)
{
	return atomic_load_explicit(&station->ask.waiting, memory_order_acquire);
}

static bool answered(struct station *station)
{
	struct ask_patience *patience = station->ask.patience;
	const uint64_t begin_us = patience->quick ? monotonic_us() : 0;
	unsigned idle = 0;

	while (ask_waits(station)) {
		if (ask_gives_up(patience, idle, begin_us))
			return false;
		idle_wait(&idle);
	}
	if (patience->quick)
		ask_be_quick(patience);
	return true;
}

struct ask *ask_prepare(struct station *station, enum ask_kind kind)
{
	/* one that was given up may still be there, and be answered at any time */
	if (station->ask.patience->quick ? ask_waits(station) : !answered(station))
		return NULL;
	station->ask.ask.kind = kind;
	station->ask.late = false;
	return &station->ask.ask;
}

int ask_station(struct station *station)
{
	atomic_store_explicit(&station->ask.waiting, true, memory_order_release);
	station->ask.late = !answered(station);
	return station->ask.late ? -ETIMEDOUT : 0;
}

struct ask *ask_late(struct station *station, enum ask_kind kind, const struct flow_key *key)
{
	struct ask *ask = &station->ask.ask;

	if (!station->ask.late || ask_waits(station) || ask->kind != kind ||
		!flow_key_equal(&ask->key, key))
		return NULL;
	station->ask.late = false;
	return ask;
}

/* ------------------------- what a station answers of its flows' offload */

static void answer_adopt(struct station *station, struct ask *ask)
{
	agent_adopt(station->worker.agent, ask->number, &ask->wire);
}

static void answer_offload(const struct station *station, struct ask *ask)
{
	ask->offload = station->worker.agent->port[ask->number].counters;
}

static void answer_slots(const struct station *station, struct ask *ask)
{
	const struct slots *slots = &station->worker.agent->wire[ask->number].slots;

	ask->slots = (struct plane_slots){
		.n = slots->n,
		.used = slots->n_used,
		.draining = slots->n_draining,
	};
}

static void answer_held(const struct station *station, struct ask *ask)
{
	ask->number = station->worker.agent != NULL ? station->worker.agent->n_held : 0;
}

static void answer_changes(const struct station *station, struct ask *ask)
{
	ask->n_changes = change_read(
		&station->worker.agent->changes, &ask->from, ask->changes, ASK_CHANGES_MOST);
}

static void answer_view(
	const struct station *station, const struct flow_record *record, struct flow_offload *view)
{
	*view = (struct flow_offload){0};
	if (station->worker.agent != NULL)
		agent_view(station->worker.agent, record, view);
}

/* What the slot of a record has. */
static void slot(const struct agent *agent, struct plane_flow *flow)
{
	const struct slots *slots = &agent->wire[flow_key_wire(&flow->record.key)].slots;
	const struct slot *entry;

	entry = offload_has_slot(&flow->record) ? slots_slot(slots, flow->record.slot) : NULL;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		uint64_t waits_us = agent_waits_us(agent, entry, &flow->record, from);

		flow->port[from] = (uint8_t)agent_port_of(agent, entry, &flow->record, from);
		if (flow->offload.reason[from] == OFFLOAD_OLDER_RULE)
			(void)agent_has_older_rule(
				agent, &flow->record, from, &flow->older_us[from]);
		if (waits_us != 0)
			flow->retry_us[from] = agent->now_us + waits_us;
		if (entry == NULL)
			continue;
		/* what is left of a rule that is gone, or is about to be, is nobody's */
		if (entry->direction[from].state >= OFFLOAD_SUSPECT)
			flow->nic[from] = entry->direction[from].nic.total;
		flow->since_us[from] = entry->direction[from].since_us;
	}
	if (entry != NULL)
		flow->mark = slots_mark(slots, flow->record.slot);
}

/* At each port of the flow's domain. */
static void bars(const struct station *station, struct ask *ask)
{
	const unsigned domain = flow_key_wire(&ask->key);

	for (unsigned place = 0; place < station->topology->size[domain]; place++)
		(void)agent_bar(station->worker.agent,
			topology_port(station->topology, domain, place), &ask->flow.bar[place]);
}

static void answer_flow(const struct station *station, struct ask *ask)
{
	const struct flow_table *table = &station->worker.shard->table;
	struct agent *agent = station->worker.agent;
	uint32_t position = flow_table_find(table, &ask->key, ask->hash);
	struct plane_flow *flow = &ask->flow;

	*flow = (struct plane_flow){.now_us = station->now_us};
	ask->found = position != FLOW_NONE;
	if (agent != NULL)
		bars(station, ask);
	if (!ask->found)
		return;
	flow->record = *flow_table_record(table, position);
	answer_view(station, &flow->record, &flow->offload);
	flow->dropped = flow_shard_dropped(station->worker.shard, position);
	flow->rules = flow_shard_rules(station->worker.shard, position);
	if (agent == NULL)
		return;
	slot(agent, flow);
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		agent_rank(agent, position, from, &flow->rank[from]);
	flow->n_changes = change_of_flow(
		&agent->changes, &ask->key, flow->changes, PLANE_CHANGES, &flow->lost);
}

/* ------------------------- all answers */

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
			answer_view(station, record, &page->offload[page->n]);
			page->dropped[page->n] =
				flow_shard_dropped(station->worker.shard, position);
			page->rules[page->n] = flow_shard_rules(station->worker.shard, position);
			page->record[page->n++] = *record;
		}
		position = flow_table_touched(table, position + 1);
	}
	page->next = position;
}

static void kill_flow(struct station *station, struct ask *ask)
{
	struct flow_shard *shard = station->worker.shard;
	uint32_t position = flow_table_find(&shard->table, &ask->key, ask->hash);

	ask->found = position != FLOW_NONE;
	if (!ask->found)
		return;
	ask->record = *flow_table_record(&shard->table, position);
	flow_shard_kill(shard, position);
	flow_shard_flush(shard);
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
	case ASK_KILL:
		kill_flow(station, ask);
		break;
	case ASK_FOLLOW:
		station->worker.follow = ask->follow;
		break;
	case ASK_FLOW:
		answer_flow(station, ask);
		break;
	case ASK_ADOPT:
		answer_adopt(station, ask);
		break;
	case ASK_OFFLOAD:
		answer_offload(station, ask);
		break;
	case ASK_SLOTS:
		answer_slots(station, ask);
		break;
	case ASK_CHANGES:
		answer_changes(station, ask);
		break;
	case ASK_STOP_RECEIVING:
		station->receiving = false;
		break;
	case ASK_RELEASE:
		parser_release(station->parser);
		send_settle(station);
		break;
	case ASK_END:
		flow_shard_end_all(station->worker.shard);
		break;
	case ASK_HELD:
		answer_held(station, ask);
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
