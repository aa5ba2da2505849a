/* SPDX-License-Identifier: BSD-3-Clause */
/* What an lcore answers, on its own thread. */
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"
#include "flow/end.h"
#include "offload/agent.h"
#include "plane/ask.h"

/* Records looked at for one page. */
#define PAGE_LOOKS 256

/* ------------------------- what an lcore answers of its flows' offload */

static void answer_adopt(struct lcore *lcore, struct ask *ask)
{
	agent_adopt(lcore->worker.agent, ask->number, &ask->wire);
}

static void answer_offload(const struct lcore *lcore, struct ask *ask)
{
	ask->offload = lcore->worker.agent->port[ask->number].counters;
}

static void answer_slots(const struct lcore *lcore, struct ask *ask)
{
	const struct slots *slots = &lcore->worker.agent->wire[ask->number].slots;

	ask->slots = (struct plane_slots){
		.n = slots->n,
		.used = slots->n_used,
		.draining = slots->n_draining,
	};
}

static void answer_held(const struct lcore *lcore, struct ask *ask)
{
	ask->number = lcore->worker.agent != NULL ? lcore->worker.agent->n_held : 0;
}

static void answer_changes(const struct lcore *lcore, struct ask *ask)
{
	ask->n_changes = change_read(
		&lcore->worker.agent->changes, &ask->from, ask->changes, ASK_CHANGES_MOST);
}

static void answer_view(
	const struct lcore *lcore, const struct flow_record *record, struct flow_offload *view)
{
	*view = (struct flow_offload){0};
	if (lcore->worker.agent != NULL)
		agent_view(lcore->worker.agent, record, view);
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
		/* of a reason that is over it is not known since when another one holds */
		if (flow->offload.reason[from] == entry->direction[from].reason ||
			flow->offload.reason[from] == OFFLOAD_OLDER_RULE)
			flow->since_us[from] = entry->direction[from].since_us;
	}
	if (entry != NULL)
		flow->mark = slots_mark(slots, flow->record.slot);
}

/* At each port of the flow's domain. */
static void bars(const struct lcore *lcore, struct ask *ask)
{
	const unsigned domain = flow_key_wire(&ask->key);

	for (unsigned place = 0; place < lcore->topology->size[domain]; place++)
		(void)agent_bar(lcore->worker.agent, topology_port(lcore->topology, domain, place),
			&ask->flow.bar[place]);
}

static void answer_flow(const struct lcore *lcore, struct ask *ask)
{
	const struct flow_table *table = &lcore->worker.shard->table;
	struct agent *agent = lcore->worker.agent;
	uint32_t position = flow_table_find(table, &ask->key, ask->hash);
	struct plane_flow *flow = &ask->flow;

	*flow = (struct plane_flow){.now_us = lcore->now_us};
	ask->found = position != FLOW_NONE;
	if (agent != NULL)
		bars(lcore, ask);
	if (!ask->found)
		return;
	flow->record = *flow_table_record(table, position);
	answer_view(lcore, &flow->record, &flow->offload);
	flow->dropped = flow_shard_dropped(lcore->worker.shard, position);
	flow->rules = flow_shard_rules(lcore->worker.shard, position);
	flow->conversation = flow_shard_conversation(lcore->worker.shard, position);
	flow_shard_measured(lcore->worker.shard, position, flow->measure);
	flow->age_s = flow_shard_age_s(lcore->worker.shard, position);
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
static void page(struct lcore *lcore, struct ask *ask)
{
	const struct flow_table *table = &lcore->worker.shard->table;
	uint32_t position = flow_table_touched(table, ask->position);
	struct plane_page *page = &ask->page;

	page->n = 0;
	page->now_us = lcore->now_us;
	for (unsigned looks = 0; looks < PAGE_LOOKS && page->n < PLANE_PAGE; looks++) {
		const struct flow_record *record;

		if (position == FLOW_NONE)
			break;
		record = flow_table_record(table, position);
		if (record->state != FLOW_FREE) {
			page->position[page->n] = position;
			answer_view(lcore, record, &page->offload[page->n]);
			page->dropped[page->n] = flow_shard_dropped(lcore->worker.shard, position);
			page->rules[page->n] = flow_shard_rules(lcore->worker.shard, position);
			flow_shard_measured(lcore->worker.shard, position, page->measure[page->n]);
			page->record[page->n++] = *record;
		}
		position = flow_table_touched(table, position + 1);
	}
	page->next = position;
}

static void kill_flow(struct lcore *lcore, struct ask *ask)
{
	struct flow_shard *shard = lcore->worker.shard;
	uint32_t position = flow_table_find(&shard->table, &ask->key, ask->hash);

	ask->found = position != FLOW_NONE;
	if (!ask->found)
		return;
	ask->record = *flow_table_record(&shard->table, position);
	flow_shard_kill(shard, position);
	flow_shard_flush(shard);
}

static void answer(struct lcore *lcore, struct ask *ask)
{
	switch (ask->kind) {
	case ASK_SNAPSHOT:
		snapshot_asked(lcore, ask->number);
		break;
	case ASK_PAGE:
		page(lcore, ask);
		break;
	case ASK_KILL:
		kill_flow(lcore, ask);
		break;
	case ASK_FOLLOW:
		lcore->worker.follow = ask->follow;
		break;
	case ASK_WATCH:
		drop_watch_set(&lcore->drops, &ask->drops);
		break;
	case ASK_FLOW:
		answer_flow(lcore, ask);
		break;
	case ASK_ADOPT:
		answer_adopt(lcore, ask);
		break;
	case ASK_OFFLOAD:
		answer_offload(lcore, ask);
		break;
	case ASK_SLOTS:
		answer_slots(lcore, ask);
		break;
	case ASK_CHANGES:
		answer_changes(lcore, ask);
		break;
	case ASK_STOP_RECEIVING:
		lcore->receiving = false;
		break;
	case ASK_RELEASE:
		parser_release(lcore->parser);
		send_settle(lcore);
		break;
	case ASK_END:
		flow_shard_end_all(lcore->worker.shard);
		break;
	case ASK_HELD:
		answer_held(lcore, ask);
		break;
	case ASK_LEAVE:
		if (lcore->worker.agent != NULL)
			agent_give_up(lcore->worker.agent);
		lcore->leaving = true;
		break;
	}
}

bool ask_answer(struct lcore *lcore)
{
	struct ask_slot *slot = lcore->ask;

	if (!atomic_load_explicit(&slot->waiting, memory_order_acquire))
		return false;
	answer(lcore, &slot->ask);
	atomic_store_explicit(&slot->waiting, false, memory_order_release);
	return true;
}
