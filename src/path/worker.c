/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/worker.h"

/* What a burst carries from stage to stage. */
struct burst {
	unsigned n;
	struct rte_mbuf *packet[WORKER_BURST];
	uint32_t position[WORKER_BURST];
	uint8_t drop[WORKER_BURST]; /* enum drop_reason, or DROP_N_REASONS to go out */
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
			rte_prefetch0(&flow_table_record(&worker->shard->table, burst->position[i])
					->bytes_high);
	}
}

static void account(struct worker *worker, struct burst *burst, unsigned i)
{
	const struct packet_info *info = &packet_meta(burst->packet[i])->info;

	if (flow_shard_account(worker->shard, burst->position[i], info) == FLOW_ACCOUNT_TCP_ODD)
		burst->drop[i] = DROP_TCP_WINDOW;
}

static void account_known(struct worker *worker, struct burst *burst)
{
	fetch_second_lines(worker, burst);
	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->position[i] != FLOW_NONE)
			account(worker, burst, i);
	}
}

/*
 * Learning may evict a flow that was found in this burst, which is why those are accounted before; and
 * a flow may have several packets among the missing, which is why each is looked up once more.
 */
static void learn_missing(struct worker *worker, struct burst *burst)
{
	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->position[i] != FLOW_NONE || !tracked(burst->packet[i]))
			continue;
		const struct packet_info *info = &packet_meta(burst->packet[i])->info;

		burst->position[i] = flow_table_find(&worker->shard->table, &info->key, info->hash);
		if (burst->position[i] == FLOW_NONE)
			flow_shard_learn(worker->shard, info);
		else
			account(worker, burst, i);
	}
}

static void drop(struct worker *worker, struct rte_mbuf *packet, enum drop_reason reason)
{
	worker->counters.dropped[reason]++;
	rte_pktmbuf_free(packet);
}

/* Every verdict is "forward" until rules bring others. */
static void act(struct worker *worker, struct burst *burst)
{
	struct rte_mbuf *out[WORKER_BURST];
	uint32_t bytes[WORKER_BURST];
	unsigned n = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->drop[i] != DROP_N_REASONS) {
			drop(worker, burst->packet[i], (enum drop_reason)burst->drop[i]);
			continue;
		}
		bytes[n] = burst->packet[i]->pkt_len;
		out[n++] = burst->packet[i];
	}
	unsigned taken = n == 0 ? 0 : worker->out(worker->out_context, out, n);

	for (unsigned i = 0; i < n; i++) {
		if (i < taken) {
			worker->counters.out++;
			worker->counters.out_bytes += bytes[i];
		} else {
			drop(worker, out[i], DROP_OUTPUT);
		}
	}
}

/* A burst without notes, all of one time. */
static void walk(struct worker *worker, struct rte_mbuf **packets, unsigned n)
{
	struct burst burst;

	burst.n = n;
	memcpy(burst.packet, packets, n * sizeof(*packets));
	flow_shard_advance(worker->shard, packet_meta(packets[0])->time_us);
	look_up(worker, &burst);
	account_known(worker, &burst);
	learn_missing(worker, &burst);
	act(worker, &burst);
}

static void note(struct worker *worker, struct rte_mbuf *note)
{
	const struct packet_meta *meta = packet_meta(note);

	switch ((enum packet_kind)meta->kind) {
	case PACKET_KIND_QUOTE:
		flow_shard_advance(worker->shard, meta->time_us);
		if (!flow_shard_quoted(worker->shard, &meta->info))
			worker->counters.icmp_untied++;
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
		break;
	}
	rte_pktmbuf_free(note);
}

static bool is_note(const struct rte_mbuf *packet)
{
	return packet_meta(packet)->kind > PACKET_KIND_OTHER;
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

void worker_walk(struct worker *worker, struct rte_mbuf **packets, unsigned n)
{
	fetch(worker, packets, n);
	for (unsigned i = 0; i < n;) {
		if (is_note(packets[i])) {
			note(worker, packets[i++]);
			continue;
		}
		uint64_t time_us = packet_meta(packets[i])->time_us;
		unsigned end = i + 1;

		while (end < n && !is_note(packets[end]) &&
			packet_meta(packets[end])->time_us == time_us)
			end++;
		walk(worker, &packets[i], end - i);
		i = end;
	}
	flow_shard_flush(worker->shard);
}
