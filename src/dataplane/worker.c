/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/worker.h"

#include "dataplane/judge.h"
#include "dataplane/policy.h"

/* What a burst carries from stage to stage. */
struct burst {
	unsigned n;
	struct rte_mbuf *packet[WORKER_BURST];
	uint32_t position[WORKER_BURST];
	uint8_t drop[WORKER_BURST]; /* enum drop_reason, or DROP_N_REASONS to go out */
	uint64_t acts;		    /* a bit for each packet that has a verdict below */
	uint16_t verdict[WORKER_BURST];
};

static bool tracked(const struct rte_mbuf *packet)
{
	return packet_meta(packet)->kind == PACKET_KIND_FLOW;
}

static void look_up(const struct worker *worker, struct burst *burst)
{
	const struct flow_key *keys[WORKER_BURST];
	uint64_t hashes[WORKER_BURST];
	uint32_t positions[WORKER_BURST];
	uint8_t index[WORKER_BURST];
	unsigned n = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		const struct packet_meta *meta = packet_meta(burst->packet[i]);

		burst->position[i] = FLOW_NONE;
		burst->drop[i] = DROP_N_REASONS;
		if (meta->kind != PACKET_KIND_FLOW)
			continue;
		burst->position[i] = judge_position(
			worker->agent, meta->port, burst->packet[i], &meta->info.key);
		if (burst->position[i] != FLOW_NONE)
			continue;
		keys[n] = &meta->info.key;
		hashes[n] = meta->info.hash;
		index[n++] = (uint8_t)i;
	}
	flow_table_find_burst(&worker->shard->table, keys, hashes, positions, n);
	for (unsigned i = 0; i < n; i++)
		burst->position[index[i]] = positions[i];
}

/* TCP needs the second line of its records too. */
static void fetch_second_lines(const struct worker *worker, const struct burst *burst)
{
	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->position[i] != FLOW_NONE &&
			packet_meta(burst->packet[i])->info.flags & PACKET_TCP)
			rte_prefetch0(
				&flow_table_record(&worker->shard->table, burst->position[i])->end);
	}
}

/* The same, telling those who follow when the flow has come into another phase. */
static enum flow_account account_followed(
	struct worker *worker, uint32_t position, const struct packet_info *info)
{
	static const enum path_event_kind events[FLOW_N_PHASES] = {
		[FLOW_PHASE_NEW] = PATH_EVENT_FLOW_NEW,
		[FLOW_PHASE_OPEN] = PATH_EVENT_FLOW_OPEN,
		[FLOW_PHASE_CLOSING] = PATH_EVENT_FLOW_CLOSING,
	};
	const struct flow_record *record = flow_table_record(&worker->shard->table, position);
	enum flow_phase before = flow_phase((enum flow_state)record->state);
	uint64_t learned = worker->shard->counters.learned;
	enum flow_account account = flow_shard_account(worker->shard, position, info);
	enum flow_phase after = flow_phase((enum flow_state)record->state);

	bool anew = worker->shard->counters.learned != learned;

	if (!anew && after == before)
		return account;
	/* a flow that began anew on its key ended before: that is to be heard first */
	flow_shard_flush(worker->shard);
	if (anew && after != FLOW_PHASE_NEW)
		worker->exits->event(worker, PATH_EVENT_FLOW_NEW, record);
	worker->exits->event(worker, events[after], record);
	return account;
}

/* The packet is of a flow that its verdict drops. */
static void drop_decided(struct worker *worker, struct burst *burst, unsigned i, uint32_t position)
{
	const struct packet_meta *meta = packet_meta(burst->packet[i]);

	burst->drop[i] = DROP_BLOCKED;
	policy_count(worker->policy, worker->shard, position, 1, meta->info.bytes);
	judge_dropped(worker->agent, meta->port, burst->packet[i], position, &meta->info);
}

/* The packet goes on, and this is to be done with it. */
static void act_on(struct burst *burst, unsigned i, uint16_t verdict)
{
	if (likely(verdict == FLOW_VERDICT_FORWARD))
		return;
	burst->acts |= UINT64_C(1) << i;
	burst->verdict[i] = verdict;
}

static void account(struct worker *worker, struct burst *burst, unsigned i)
{
	const struct packet_meta *meta = packet_meta(burst->packet[i]);
	const struct packet_info *info = &meta->info;
	enum flow_account account =
		worker->follow ? account_followed(worker, burst->position[i], info)
			       : flow_shard_account(worker->shard, burst->position[i], info);

	/* what is dropped is in no record: nor is it among those that came without a mark */
	if (account == FLOW_ACCOUNT_ONE_SIDED)
		worker->counters[meta->wire].one_sided++;
	if (account == FLOW_ACCOUNT_TCP_ODD)
		burst->drop[i] = DROP_TCP_WINDOW;
	else if (account == FLOW_ACCOUNT_DROPPED)
		drop_decided(worker, burst, i, burst->position[i]);
	else if (worker->agent != NULL)
		judge_packet(worker->agent, meta->port, burst->packet[i], burst->position[i], info);
	if (account != FLOW_ACCOUNT_TCP_ODD && account != FLOW_ACCOUNT_DROPPED)
		act_on(burst, i,
			flow_verdict(flow_table_record(&worker->shard->table, burst->position[i]),
				info->from));
}

/* Is this packet, which begins a flow, where RSS should not have brought it? */
static bool misplaced(const struct worker *worker, const struct packet_meta *meta)
{
	return meta->unchecked && steer_shard(&worker->steer, &meta->info) != worker->number;
}

static void account_known(struct worker *worker, struct burst *burst)
{
	fetch_second_lines(worker, burst);
	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->position[i] != FLOW_NONE)
			account(worker, burst, i);
	}
}

/* Packets of a burst that no record was found for, by whether they are the first of their flow. */
struct missing {
	unsigned n_first, n_further;
	const struct packet_info *first[WORKER_BURST];
	uint8_t place[WORKER_BURST];	 /* of these, in the burst */
	uint8_t further[WORKER_BURST];	 /* places in the burst */
	uint8_t slots[2 * WORKER_BURST]; /* by hash: place in `first` + 1, or 0 */
};

/* Whether the flow is among the first packets already; else it is now. */
static bool is_further(struct missing *missing, const struct packet_info *info, unsigned place)
{
	const unsigned mask = sizeof(missing->slots) - 1;
	unsigned slot = (unsigned)(info->hash >> 32) & mask;

	for (; missing->slots[slot] != 0; slot = (slot + 1) & mask)
		if (flow_key_equal(&missing->first[missing->slots[slot] - 1]->key, &info->key))
			return true;
	missing->place[missing->n_first] = (uint8_t)place;
	missing->first[missing->n_first++] = info;
	missing->slots[slot] = (uint8_t)missing->n_first;
	return false;
}

/* The packet at place `i` of the burst. */
static void learn_one(
	struct worker *worker, struct burst *burst, unsigned i, const struct packet_info *info)
{
	uint32_t position = flow_shard_learn(worker->shard, info);
	const struct flow_record *record = flow_table_record(&worker->shard->table, position);
	const bool dropped = flow_is_dropped(record, info->from);

	if (worker->follow)
		worker->exits->event(worker, PATH_EVENT_FLOW_NEW, record);
	if (worker->follow && dropped)
		worker->exits->event(worker, PATH_EVENT_FLOW_BLOCKED, record);
	if (dropped)
		drop_decided(worker, burst, i, position);
	else
		act_on(burst, i, flow_verdict(record, info->from));
}

static void learn(struct worker *worker, struct burst *burst, const struct missing *missing)
{
	uint16_t verdicts[WORKER_BURST];

	if (worker->follow) {
		for (unsigned i = 0; i < missing->n_first; i++)
			learn_one(worker, burst, missing->place[i], missing->first[i]);
		return;
	}
	flow_shard_learn_burst(worker->shard, missing->first, missing->n_first, verdicts);
	for (unsigned i = 0; i < missing->n_first && worker->shard->decides; i++) {
		const struct packet_info *info = missing->first[i];

		if (verdicts[i] != FLOW_VERDICT_DROP) {
			act_on(burst, missing->place[i], verdicts[i]);
			continue;
		}
		burst->drop[missing->place[i]] = DROP_BLOCKED;
		(void)policy_drops(worker->policy, &info->key, info->bytes);
	}
}

/* A further packet of a flow that was learned in this burst. */
static void account_further(struct worker *worker, struct burst *burst, unsigned i)
{
	const struct packet_info *info = &packet_meta(burst->packet[i])->info;

	burst->position[i] = flow_table_find(&worker->shard->table, &info->key, info->hash);
	if (burst->position[i] != FLOW_NONE)
		account(worker, burst, i);
	else
		learn_one(worker, burst, i, info); /* in a table smaller than a burst */
}

/* To the NIC, where all flows are; and marks of flows that were not known are nobody's. */
static void offer(struct worker *worker, const struct burst *burst, const struct missing *missing)
{
	unsigned n_further = 0;

	/* what ended to make room has to be heard of before */
	flow_shard_flush(worker->shard);
	for (unsigned i = 0; i < burst->n; i++) {
		/* further packets are judged as they are accounted */
		if (n_further < missing->n_further && missing->further[n_further] == i) {
			n_further++;
			continue;
		}
		if (burst->packet[i] == NULL || burst->position[i] != FLOW_NONE ||
			burst->drop[i] != DROP_N_REASONS || !tracked(burst->packet[i]))
			continue;
		const struct packet_meta *meta = packet_meta(burst->packet[i]);
		const struct packet_info *info = &meta->info;

		if (judge_has_mark(burst->packet[i]))
			judge_packet(worker->agent, meta->port, burst->packet[i], FLOW_NONE, info);
		judge_learned(worker->agent, meta->port, burst->packet[i], info);
	}
}

/*
 * Learning may evict a flow that was found in this burst, which is why those are accounted before. A flow
 * may have several packets among the missing: the first of each is learned, all in one go, and the others
 * are accounted then.
 */
static void learn_missing(struct worker *worker, struct burst *burst)
{
	struct missing missing;

	missing.n_first = missing.n_further = 0;
	memset(missing.slots, 0, sizeof(missing.slots));
	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->position[i] != FLOW_NONE || !tracked(burst->packet[i]))
			continue;
		const struct packet_meta *meta = packet_meta(burst->packet[i]);

		if (misplaced(worker, meta)) {
			worker->exits->misplaced(worker, burst->packet[i]);
			burst->packet[i] = NULL;
		} else if (is_further(&missing, &meta->info, i)) {
			missing.further[missing.n_further++] = (uint8_t)i;
		}
	}
	if (missing.n_first != 0)
		learn(worker, burst, &missing);
	if (worker->agent != NULL)
		offer(worker, burst, &missing);
	for (unsigned i = 0; i < missing.n_further; i++)
		account_further(worker, burst, missing.further[i]);
}

static void act(struct worker *worker, struct burst *burst)
{
	struct rte_mbuf *out[WORKER_BURST];
	unsigned n = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->packet[i] == NULL)
			continue;
		if (burst->drop[i] != DROP_N_REASONS)
			worker_drop(worker, burst->packet[i], (enum drop_reason)burst->drop[i]);
		else if (likely((burst->acts >> i & 1) == 0) ||
			 worker->exits->act(worker, burst->packet[i], burst->verdict[i]))
			out[n++] = burst->packet[i];
	}
	if (n != 0)
		worker->exits->out(worker, out, n);
}

/* One packet of the burst, another place each time, for the rate of its flow. */
static void sample(struct worker *worker, const struct burst *burst)
{
	unsigned i = worker_draw(worker, burst->n);

	worker->sampled++;
	if (!agent_samples(worker->agent) || burst->packet[i] == NULL ||
		burst->position[i] == FLOW_NONE)
		return;
	const struct packet_meta *meta = packet_meta(burst->packet[i]);

	judge_sample(worker->agent, meta->port, burst->packet[i], burst->position[i], &meta->info);
}

/* A burst without notes, all of one time; what was held back before comes alone. */
static void walk(struct worker *worker, struct rte_mbuf **packets, unsigned n)
{
	const struct packet_meta *first = packet_meta(packets[0]);
	struct burst burst;

	burst.n = n;
	burst.acts = 0;
	memcpy(burst.packet, packets, n * sizeof(*packets));
	flow_shard_advance(worker->shard, first->time_us);
	flow_shard_came(worker->shard, first->waited ? first->came_us : first->time_us,
		packet_stamp_us(packets[0]));
	if (worker->agent != NULL)
		flow_shard_flush(worker->shard); /* what ended has its rules no more */
	look_up(worker, &burst);
	stage_end(&worker->stages, STAGE_LOOK_UP, n);
	account_known(worker, &burst);
	if (worker->agent != NULL)
		sample(worker, &burst);
	stage_end(&worker->stages, STAGE_ACCOUNT, n);
	learn_missing(worker, &burst);
	worker->shard->waited_us = 0;
	stage_end(&worker->stages, STAGE_LEARN, n);
	act(worker, &burst);
	stage_end(&worker->stages, STAGE_OUT, n);
}

static void note(struct worker *worker, struct rte_mbuf *note)
{
	const struct packet_meta *meta = packet_meta(note);

	switch ((enum packet_kind)meta->kind) {
	case PACKET_KIND_QUOTE:
		flow_shard_advance(worker->shard, meta->time_us);
		if (!flow_shard_quoted(worker->shard, &meta->info))
			worker->counters[meta->wire].icmp_untied++;
		break;
	case PACKET_KIND_BEGIN:
		flow_shard_begin(worker->shard, meta->time_us, meta->run);
		break;
	case PACKET_KIND_END:
		flow_shard_advance(worker->shard, meta->time_us);
		flow_shard_end_all(worker->shard);
		worker->runs_ended++;
		break;
	case PACKET_KIND_FLOW:
	case PACKET_KIND_OTHER:
	case PACKET_KIND_FRAGMENT:
	case PACKET_KIND_SEND:
	case PACKET_KIND_QUOTE_FRAGMENT:
		break; /* never handed to a worker */
	}
	rte_pktmbuf_free(note);
}

/*
 * Packets of different times are walked apart, in captures mostly one by one: what they will need is
 * fetched for all of them at once. What triage wrote comes from another core.
 */
static void fetch(const struct worker *worker, struct rte_mbuf **packets, unsigned n)
{
	uint64_t hashes[WORKER_BURST];
	unsigned n_hashes = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(packet_meta(packets[i]));
	for (unsigned i = 0; i < n; i++) {
		if (tracked(packets[i]))
			hashes[n_hashes++] = packet_meta(packets[i])->info.hash;
	}
	flow_table_prefetch(&worker->shard->table, hashes, n_hashes);
}

/* Do two packets come at the same time, by all that tells of it? */
static bool same_time(
	const struct worker *worker, const struct rte_mbuf *packet, const struct rte_mbuf *other)
{
	const struct packet_meta *meta = packet_meta(packet), *others = packet_meta(other);

	return meta->time_us == others->time_us && !meta->waited && !others->waited &&
	       (worker->shard->stamps == NULL || packet_stamp_us(packet) == packet_stamp_us(other));
}

/* Is this a burst that one walk takes whole, as nearly all are that come live? */
static bool one_time(const struct worker *worker, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (packet_is_note(packets[i]) || !same_time(worker, packets[i], packets[0]))
			return false;
	return true;
}

void worker_walk(struct worker *worker, struct rte_mbuf **packets, unsigned n)
{
	if (!one_time(worker, packets, n))
		fetch(worker, packets, n);
	for (unsigned i = 0; i < n;) {
		if (packet_is_note(packets[i])) {
			note(worker, packets[i++]);
			continue;
		}
		bool alone = packet_meta(packets[i])->waited;
		unsigned end = i + 1;

		while (!alone && end < n && !packet_is_note(packets[end]) &&
			same_time(worker, packets[end], packets[i]))
			end++;
		walk(worker, &packets[i], end - i);
		i = end;
	}
	flow_shard_flush(worker->shard);
}
