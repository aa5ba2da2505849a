/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way's walk where NICs mark packets: compiled once per SIMD level. */
#include "path/direct_common.h"
#include "path/direct_mark.h"
#include "path/judge.h"

/* How a burst's packets go. */
struct classes {
	uint64_t tcp;	/* by place among those that are looked up */
	unsigned n_top; /* infos at the end of the row: of packets whose mark saves the look-up */
};

/* The mark leads to a record, but what the packet is has to be extracted. */
static inline void take_named(struct direct_burst *burst, struct classes *classes, unsigned i,
	const struct packet_info *info)
{
	unsigned at = STATION_BURST - ++classes->n_top;

	burst->info[at] = *info;
	burst->info_of[i] = (uint8_t)at;
	burst->named |= UINT64_C(1) << i;
}

/*
 * Sorts packets up to the first that is not plain: see read_headers() of the other walk. What is named by its
 * mark is surely this worker's.
 */
static inline struct classes sort(const struct station *station, const struct station_rx *rx,
	struct rte_mbuf **packets, unsigned n, struct direct_burst *burst)
{
	const struct common common = {
		.wire = rx->port / 2,
		.zone_vlan = station->zone_vlan,
		.flags = rx->port % 2 != 0 ? PACKET_SIDE : 0,
	};
	const unsigned kinds = station->worker.steer.n_shards == 1 ? ALL_KINDS : rx->trusted;
	const struct slots *slots = &station->worker.agent->wire[rx->port / 2].slots;
	struct classes classes = {0};
	unsigned i, n_up = 0;

	burst->fast = burst->named = 0;
	for (i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];
		struct packet_info *info = &burst->info[n_up];
		bool marked = judge_has_mark(packet) &&
			      slots_of_mark(slots, judge_mark(packet)) != SLOT_NONE;

		burst->mark[i] = judge_mark(packet);
		if (marked)
			slots_fetch(slots, burst->mark[i]);
		if (likely(marked && mark_is_common(packet))) {
			burst->fast |= UINT64_C(1) << i;
			continue;
		}
		uint8_t flags = extract_common(&common, packet, info);

		if (unlikely(flags == 0)) {
			flags = direct_read_rare(station, packet, rx->port / 2, common.flags, info);
			if (flags == 0)
				break;
		}
		if (marked) {
			take_named(burst, &classes, i, info);
			continue;
		}
		if (kinds != ALL_KINDS && !(kinds >> rss_kind(&info->key) & 1))
			break;
		burst->info_of[i] = (uint8_t)n_up;
		classes.tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << n_up++;
	}
	memcpy(burst->packet, packets, i * sizeof(packets[0]));
	burst->up.n = n_up;
	burst->n = i;
	return classes;
}

/* The records that marks name: on their way. */
static inline void fetch_named(const struct station *station, struct direct_burst *burst)
{
	const struct flow_table *table = &station->worker.shard->table;
	const struct slots *slots = &station->worker.agent->wire[burst->rx->port / 2].slots;

	for (uint64_t left = burst->fast | burst->named; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint32_t position = slots_position(slots, burst->mark[i]);

		burst->record[i] = NULL;
		if (unlikely(position == FLOW_NONE))
			continue;
		burst->record[i] = &table->records[position];
		rte_prefetch0(burst->record[i]);
		if (mark_is_tcp(burst->packet[i]))
			rte_prefetch0(&burst->record[i]->bytes_high);
	}
}

static uint32_t position_of(const struct flow_shard *shard, const struct flow_record *record)
{
	return record == NULL ? FLOW_NONE : (uint32_t)(record - shard->table.records);
}

/* A packet of which more is to be said than that its record counts it. `info` is filled. */
static __rte_noinline void watch_except(struct station *station, struct direct_burst *burst,
	unsigned i, const struct flow_record *record, struct direct_exceptions *exceptions)
{
	struct flow_shard *shard = station->worker.shard;
	const struct packet_info *info = &burst->info[burst->info_of[i]];

	direct_except(shard, burst, i, record, exceptions);
	/* of what is not known the worker's walk tells */
	if (record != NULL)
		judge_packet(station->worker.agent, burst->rx->port, burst->packet[i],
			position_of(shard, record), info);
}

/* A marked packet that is not what its mark says, or not common after all: by its key, like others. */
static __rte_noinline void look_up_marked(struct station *station, struct direct_burst *burst,
	unsigned i, struct direct_exceptions *exceptions)
{
	const struct extract_options options = {
		.secret = station->secret, .zone_vlan = station->zone_vlan};
	struct flow_shard *shard = station->worker.shard;
	struct packet_info *info;

	if (burst->fast >> i & 1)
		burst->info_of[i] = (uint8_t)(STATION_BURST - ++burst->n_top);
	info = &burst->info[burst->info_of[i]];
	if (burst->fast >> i & 1) {
		extract(&options, burst->packet[i], burst->rx->port / 2, info);
		info->flags |= burst->rx->port % 2 != 0 ? PACKET_SIDE : 0;
	} else {
		info->hash = flow_key_hash(station->secret, &info->key);
	}
	uint32_t position = flow_table_find(&shard->table, &info->key, info->hash);

	watch_except(station, burst, i,
		position == FLOW_NONE ? NULL : flow_table_record(&shard->table, position),
		exceptions);
}

/* A packet that goes by its mark alone. */
static __rte_always_inline void account_fast(struct station *station, struct direct_burst *burst,
	unsigned i, uint64_t rest, bool trust, struct direct_exceptions *exceptions)
{
	struct flow_shard *shard = station->worker.shard;
	const struct rte_mbuf *packet = burst->packet[i];
	struct flow_record *record = burst->record[i];
	unsigned from;

	if (likely(record != NULL && (mark_verify(record, packet, rest, &from) || trust))) {
		if (likely(mark_account(
			    record, packet, from, mark_is_tcp(packet), shard->now_us))) {
			if (unlikely(offload_state(record, burst->rx->port % 2) != OFFLOAD_PROVEN))
				agent_marked(station->worker.agent, position_of(shard, record),
					burst->rx->port % 2, from);
			return;
		}
	}
	look_up_marked(station, burst, i, exceptions);
}

/* One whose mark saves it a look-up. */
static inline void account_named(struct station *station, struct direct_burst *burst, unsigned i,
	struct direct_exceptions *exceptions)
{
	struct flow_shard *shard = station->worker.shard;
	const struct packet_info *info = &burst->info[burst->info_of[i]];
	struct flow_record *record = burst->record[i];

	if (unlikely(record == NULL || !flow_key_equal(&record->key, &info->key))) {
		look_up_marked(station, burst, i, exceptions);
	} else if (unlikely(!account_plain(record, info, shard->now_us))) {
		watch_except(station, burst, i, record, exceptions);
	} else if (unlikely(offload_state(record, burst->rx->port % 2) != OFFLOAD_PROVEN)) {
		agent_marked(station->worker.agent, position_of(shard, record), burst->rx->port % 2,
			info->from);
	}
}

/* One without a mark of ours; its place among those that were looked up is `up`. */
static inline void account_found(struct station *station, struct direct_burst *burst, unsigned i,
	unsigned up, struct direct_exceptions *exceptions)
{
	struct flow_shard *shard = station->worker.shard;
	struct packet_info *info = &burst->info[up];
	struct flow_record *record = find_confirm(&shard->table, &burst->up, up);

	if (unlikely(record == NULL || !account_plain(record, info, shard->now_us))) {
		info->hash = burst->up.hash[up];
		watch_except(station, burst, i, record, exceptions);
	} else if (unlikely(judge_has_mark(burst->packet[i]) ||
			    offload_state(record, burst->rx->port % 2) >= OFFLOAD_SUSPECT)) {
		judge_packet(station->worker.agent, burst->rx->port, burst->packet[i],
			position_of(shard, record), info);
	}
}

static __rte_always_inline void account_all(struct station *station, struct direct_burst *burst,
	bool trust, struct direct_exceptions *exceptions)
{
	const uint64_t rest = FLOW_KEY_TAIL_IPV4 | (uint64_t)(burst->rx->port / 2) << 56;
	const uint64_t all = burst->n == 64 ? UINT64_MAX : (UINT64_C(1) << burst->n) - 1;
	unsigned up = 0;

	if (likely(burst->fast == all)) {
		for (unsigned i = 0; i < burst->n; i++)
			account_fast(station, burst, i, rest, trust, exceptions);
		return;
	}
	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->fast >> i & 1)
			account_fast(station, burst, i, rest, trust, exceptions);
		else if (burst->named >> i & 1)
			account_named(station, burst, i, exceptions);
		else
			account_found(station, burst, i, up++, exceptions);
	}
}

static inline void account(
	struct station *station, struct direct_burst *burst, struct direct_exceptions *exceptions)
{
	const struct worker *worker = &station->worker;

	*exceptions = (struct direct_exceptions){0};
	if (likely(worker->verify_one_in <= 1 || worker->sampled % worker->verify_one_in == 0))
		account_all(station, burst, false, exceptions);
	else
		account_all(station, burst, true, exceptions);
	flow_shard_counted(
		worker->shard, burst->n - exceptions->n, burst->bytes - exceptions->bytes);
}

/* One packet of the burst, another place each time, for the rate of its flow. */
static __rte_noinline void sample(struct station *station, const struct direct_burst *burst)
{
	struct worker *worker = &station->worker;
	unsigned i = worker->sampled++ % burst->n;
	const struct packet_info *info = &burst->info[burst->info_of[i]];

	/* what its mark names is in the NIC */
	if ((burst->fast | burst->named) >> i & 1)
		return;
	const struct flow_record *record =
		find_confirm(&worker->shard->table, &burst->up, burst->info_of[i]);

	if (record != NULL)
		agent_sample(worker->agent, position_of(worker->shard, record), burst->rx->port % 2,
			info->from);
}

static void finish_burst(struct station *station, struct direct_burst *burst)
{
	struct direct_exceptions exceptions;

	account(station, burst, &exceptions);
	sample(station, burst);
	direct_dispatch(station, burst, &exceptions);
}

static void finish(struct station *station)
{
	struct direct *direct = station->direct;

	direct->waits = false;
	finish_burst(station, &direct->burst[!direct->turn]);
}

static unsigned begin(
	struct station *station, const struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	struct direct *direct = station->direct;
	struct direct_burst *burst = &direct->burst[direct->turn];
	struct path_counters *counters = &station->worker.counters[rx->port / 2];
	struct stage_times *stages = &station->worker.stages;
	struct flow_shard *shard = station->worker.shard;
	const struct classes classes = sort(station, rx, packets, n, burst);

	n = burst->n;
	burst->rx = rx;
	burst->n_top = classes.n_top;
	counters->received += n;
	burst->bytes = 0;
	for (unsigned i = 0; i < n; i++)
		burst->bytes += packets[i]->pkt_len;
	counters->received_bytes += burst->bytes;
	find_hash(&shard->table, &burst->up);
	stage_end(stages, STAGE_TRIAGE, n);
	if (direct->waits)
		finish(station);
	/* time passes, and flows end, before this burst looks for records */
	flow_shard_advance(shard, station->now_us);
	flow_shard_flush(shard);
	find_candidates(&shard->table, &burst->up, classes.tcp);
	fetch_named(station, burst);
	stage_end(stages, STAGE_LOOK_UP, n);
	if (n != 0 && flow_look_up_waits(&shard->table)) {
		direct->turn = !direct->turn;
		direct->waits = true;
	} else if (n != 0) {
		finish_burst(station, burst);
	}
	return n;
}

const struct direct_walk SIMD_SYMBOL(direct_watch) = {
	.begin = begin,
	.finish = finish,
};
