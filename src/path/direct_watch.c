/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way's walk where NICs mark packets: compiled once per SIMD level. */
#include "path/direct_common.h"
#include "path/direct_mark.h"
#include "path/judge.h"

/* A burst that is being sorted. */
struct sorting {
	const struct station *station;
	const struct station_rx *rx;
	unsigned n;
	struct direct_burst *burst;
	uint64_t tcp;  /* by place among those that are looked up */
	unsigned n_up; /* those */
	bool stopped;  /* the next packet is not plain */
};

/* The slot that a packet's mark would name; SLOT_NONE: it has none of this worker's. */
static __rte_always_inline uint32_t slot_of(
	const struct slots *slots, const struct rte_mbuf *packet)
{
	return judge_has_mark(packet) ? slots_of_mark(slots, judge_mark(packet)) : SLOT_NONE;
}

/* The record that a mark names, and its lines on their way; NULL: nobody is named so. */
static __rte_always_inline struct flow_record *resolve(const struct slots *slots,
	struct flow_record *records, uint32_t mark, unsigned side, uint64_t *from)
{
	const struct slot_name *name = &slots->names[slots_of_mark(slots, mark)];
	uint32_t position = name->place & SLOT_POSITION;
	struct flow_record *record = &records[position];

	*from = slot_name_from(name, side);
	if (unlikely((name->mark != mark) | (position == SLOT_POSITION)))
		return NULL;
	rte_prefetch0(record);
	if (name->place & SLOT_TCP)
		rte_prefetch0(&record->bytes_high);
	return record;
}

/* Packets with marks from the `begin`th on; says where the first is that has none. What they name is fetched. */
static __rte_always_inline unsigned sort_marked(
	const struct slots *of, struct direct_burst *burst, unsigned begin, unsigned n)
{
	const struct slots slots = *of;
	unsigned i;

	for (i = begin; i < n; i++) {
		uint32_t slot = slot_of(&slots, burst->packet[i]);

		if (unlikely(slot == SLOT_NONE))
			break;
		burst->mark[i] = judge_mark(burst->packet[i]);
		rte_prefetch0(&slots.names[slot]);
	}
	if (i > begin)
		burst->marked |= (UINT64_MAX >> (64 - (i - begin))) << begin;
	return i;
}

/* The records of marked packets from the `begin`th on. */
static __rte_always_inline void resolve_all(
	const struct station *station, struct direct_burst *burst, unsigned begin)
{
	const unsigned port = burst->rx->port;
	const struct slots slots = station->worker.agent->wire[port / 2].slots;
	struct flow_record *const records = station->worker.shard->table.records;
	uint64_t ends = 0;

	for (unsigned i = begin; i < burst->n; i++) {
		uint64_t from;

		if (unlikely(!(burst->marked >> i & 1)))
			continue;
		burst->record[i] = resolve(&slots, records, burst->mark[i], port % 2, &from);
		ends |= from << i;
	}
	burst->ends |= ends;
}

/*
 * Other packets from the `begin`th on, up to the first with a mark, or that is not plain: see read_headers() of
 * the other walk.
 */
static __rte_noinline unsigned sort_others(struct sorting *sorting, unsigned begin)
{
	const struct station *station = sorting->station;
	const struct slots *slots = &station->worker.agent->wire[sorting->rx->port / 2].slots;
	struct direct_burst *burst = sorting->burst;
	const struct common common = {
		.wire = sorting->rx->port / 2,
		.zone_vlan = station->zone_vlan,
		.flags = sorting->rx->port % 2 != 0 ? PACKET_SIDE : 0,
	};
	const unsigned kinds =
		station->worker.steer.n_shards == 1 ? ALL_KINDS : sorting->rx->trusted;
	unsigned i;

	for (i = begin; i < sorting->n; i++) {
		const struct rte_mbuf *packet = burst->packet[i];
		struct packet_info *info = &burst->info[sorting->n_up];

		if (slot_of(slots, packet) != SLOT_NONE)
			break;
		uint8_t flags = extract_common(&common, packet, info);

		if (unlikely(flags == 0))
			flags = direct_read_rare(
				station, packet, sorting->rx->port / 2, common.flags, info);
		sorting->stopped =
			flags == 0 || (kinds != ALL_KINDS && !(kinds >> rss_kind(&info->key) & 1));
		if (unlikely(sorting->stopped))
			break;
		burst->info_of[i] = (uint8_t)sorting->n_up;
		sorting->tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << sorting->n_up++;
	}
	return i;
}

/*
 * Sorts packets from the `begin`th on, up to the first that is not plain. Returns a bit for each TCP one that is
 * looked up. What is named by a mark is surely this worker's; whether it is plain is seen when it is read.
 */
static inline uint64_t sort(const struct station *station, const struct station_rx *rx,
	unsigned begin, unsigned n, struct direct_burst *burst)
{
	struct sorting sorting = {.station = station, .rx = rx, .n = n, .burst = burst};
	unsigned i = begin;

	while (i < n && !sorting.stopped) {
		i = sort_marked(&station->worker.agent->wire[rx->port / 2].slots, burst, i, n);
		if (i < n)
			i = sort_others(&sorting, i);
	}
	burst->up.n = sorting.n_up;
	burst->n = i;
	return sorting.tcp;
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

/*
 * A marked packet that is not common, or not settled, or not what its mark says: read as others are, and looked
 * up if need be. False: it is not plain.
 */
static __rte_noinline bool account_rare(struct station *station, struct direct_burst *burst,
	unsigned i, struct direct_exceptions *exceptions)
{
	const unsigned port = burst->rx->port;
	const struct common common = {
		.wire = port / 2,
		.zone_vlan = station->zone_vlan,
		.flags = port % 2 != 0 ? PACKET_SIDE : 0,
	};
	struct flow_shard *shard = station->worker.shard;
	struct flow_record *record = burst->record[i];
	unsigned at = STATION_BURST - 1 - burst->n_top;
	struct packet_info *info = &burst->info[at];

	if (extract_common(&common, burst->packet[i], info) == 0 &&
		direct_read_rare(station, burst->packet[i], port / 2, common.flags, info) == 0)
		return false;
	if (record == NULL || !flow_key_equal(&record->key, &info->key)) {
		info->hash = flow_key_hash(station->secret, &info->key);
		uint32_t position = flow_table_find(&shard->table, &info->key, info->hash);

		record = position == FLOW_NONE ? NULL : flow_table_record(&shard->table, position);
	} else if (account_plain(record, info, shard->now_us)) {
		if (offload_state(record, port % 2) != OFFLOAD_PROVEN)
			judge_packet(station->worker.agent, port, burst->packet[i],
				position_of(shard, record), info);
		return true;
	}
	burst->n_top++;
	burst->info_of[i] = (uint8_t)at;
	watch_except(station, burst, i, record, exceptions);
	return true;
}

/* A packet with a mark of this worker's numbers, which may name nobody. False: it is not plain. */
static __rte_always_inline bool account_named(struct station *station, struct direct_burst *burst,
	unsigned i, const struct mark_burst *marks, bool trust,
	struct direct_exceptions *exceptions)
{
	const struct rte_mbuf *packet = burst->packet[i];
	const uint8_t *header = rte_pktmbuf_mtod_offset(packet, const uint8_t *, MARK_IPV4_OFFSET);
	struct flow_record *record = burst->record[i];
	unsigned from = burst->ends >> i & 1;

	if (likely(record != NULL && mark_is_common(packet) &&
		    (trust || mark_verify(marks, record, header, from)) &&
		    mark_account(marks, record, packet, header, from)))
		return true;
	return account_rare(station, burst, i, exceptions);
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
			    offload_is_watched(record, burst->rx->port % 2, info->from))) {
		judge_packet(station->worker.agent, burst->rx->port, burst->packet[i],
			position_of(shard, record), info);
	}
}

/* Named packets of small tables are fetched so many places before they are accounted. */
#define FETCH_AHEAD 16

/*
 * Packets with marks from the front, fetched and accounted in one go: in a table that lies in the nearest caches
 * a second look at each packet costs more than its record. Says how many.
 */
static __rte_always_inline unsigned account_front(struct station *station, unsigned n,
	struct direct_burst *burst, bool trust, struct direct_exceptions *exceptions)
{
	const unsigned port = burst->rx->port;
	const struct mark_burst marks = mark_burst_of(port, station->worker.shard->now_us);
	const struct slots slots = station->worker.agent->wire[port / 2].slots;
	struct flow_record *const records = station->worker.shard->table.records;
	unsigned fetched = 0, done = 0;

	do {
		const unsigned end = RTE_MIN(fetched + FETCH_AHEAD, n);
		const unsigned before = fetched;

		for (; fetched < end; fetched++) {
			const struct rte_mbuf *packet = burst->packet[fetched];
			uint64_t from;

			if (unlikely(slot_of(&slots, packet) == SLOT_NONE))
				break;
			burst->record[fetched] =
				resolve(&slots, records, judge_mark(packet), port % 2, &from);
			burst->ends |= from << fetched;
		}
		if (fetched > before)
			burst->marked |= (UINT64_MAX >> (64 - (fetched - before))) << before;
		/* those fetched now are accounted when the next ones have been asked for */
		const bool last = fetched < end || fetched == n;

		for (; done < (last ? fetched : before); done++)
			if (!account_named(station, burst, done, &marks, trust, exceptions))
				return done;
		if (last)
			break;
	} while (done < n);
	return done;
}

/* The rest of a burst, or all; says where the first is that is not plain after all. */
static __rte_always_inline unsigned account_sorted(struct station *station,
	struct direct_burst *burst, unsigned begin, bool trust,
	struct direct_exceptions *exceptions)
{
	const struct mark_burst marks =
		mark_burst_of(burst->rx->port, station->worker.shard->now_us);
	unsigned up = 0;

	for (unsigned i = begin; i < burst->n; i++) {
		if (likely(burst->marked >> i & 1)) {
			if (!account_named(station, burst, i, &marks, trust, exceptions))
				return i;
		} else {
			account_found(station, burst, i, up++, exceptions);
		}
	}
	return burst->n;
}

static inline bool trusts(const struct worker *worker)
{
	return worker->verify_one_in > 1 && worker_draw(worker, worker->verify_one_in) != 0;
}

/* One packet of the burst, another place each time, for the rate of its flow. */
static __rte_noinline void sample(struct station *station, const struct direct_burst *burst)
{
	struct worker *worker = &station->worker;
	unsigned i = worker_draw(worker, burst->n);
	const struct packet_info *info = &burst->info[burst->info_of[i]];

	worker->sampled++;
	/* what its mark names is in the NIC */
	if (burst->marked >> i & 1)
		return;
	const struct flow_record *record =
		find_confirm(&worker->shard->table, &burst->up, burst->info_of[i]);

	if (record != NULL)
		agent_sample(worker->agent, position_of(worker->shard, record), burst->rx->port % 2,
			info->from);
}

/* What was not plain after all, and all that came after it, is for triage. */
static __rte_noinline void give_back(
	struct station *station, struct direct_burst *burst, unsigned begin, struct rte_mbuf **rest)
{
	struct path_counters *counters = &station->worker.counters[burst->rx->port / 2];

	for (unsigned i = begin; i < burst->n; i++) {
		rest[i - begin] = burst->packet[i];
		burst->bytes -= burst->packet[i]->pkt_len;
		counters->received_bytes -= burst->packet[i]->pkt_len;
	}
	counters->received -= burst->n - begin;
	burst->n = begin;
}

/* All of a burst but its first packets, `done` of them, which have been accounted. */
static void finish_burst(struct station *station, struct direct_burst *burst, unsigned done,
	struct direct_exceptions *exceptions)
{
	const struct station_rx *rx = burst->rx;
	const struct triage_from from = {
		.wire = rx->port / 2, .side = rx->port % 2, .trusted = rx->trusted};
	struct rte_mbuf *rest[STATION_BURST];
	unsigned n = burst->n, plain = n;

	if (done < n)
		plain = likely(!trusts(&station->worker))
				? account_sorted(station, burst, done, false, exceptions)
				: account_sorted(station, burst, done, true, exceptions);
	if (unlikely(plain < n))
		give_back(station, burst, plain, rest);
	flow_shard_counted(
		station->worker.shard, burst->n - exceptions->n, burst->bytes - exceptions->bytes);
	if (burst->n != 0) {
		sample(station, burst);
		direct_dispatch(station, burst, exceptions);
	}
	if (unlikely(plain < n)) {
		triage_burst(station->triage, from, station->now_us, rest, n - plain);
		triage_flush(station->triage);
	}
}

static void finish(struct station *station)
{
	struct direct *direct = station->direct;
	struct direct_exceptions exceptions = {0};

	direct->waits = false;
	finish_burst(station, &direct->burst[!direct->turn], 0, &exceptions);
}

static void count_received(struct station *station, struct direct_burst *burst)
{
	struct path_counters *counters = &station->worker.counters[burst->rx->port / 2];

	burst->bytes = 0;
	for (unsigned i = 0; i < burst->n; i++)
		burst->bytes += burst->packet[i]->pkt_len;
	counters->received += burst->n;
	counters->received_bytes += burst->bytes;
}

/* Time passes, and flows end, before a burst's records are looked for. */
static void pass_time(struct station *station)
{
	flow_shard_advance(station->worker.shard, station->now_us);
	flow_shard_flush(station->worker.shard);
}

/* A burst of a small table: all in one go. */
static unsigned walk_now(struct station *station, struct direct_burst *burst, unsigned n)
{
	struct direct_exceptions exceptions = {0};
	struct stage_times *stages = &station->worker.stages;
	struct flow_table *table = &station->worker.shard->table;

	pass_time(station);
	unsigned done = likely(!trusts(&station->worker))
				? account_front(station, n, burst, false, &exceptions)
				: account_front(station, n, burst, true, &exceptions);
	uint64_t tcp = 0;

	burst->n = done;
	burst->up.n = 0;
	if (done < n)
		tcp = sort(station, burst->rx, done, n, burst);
	count_received(station, burst);
	if (burst->up.n != 0) {
		find_hash(table, &burst->up);
		find_candidates(table, &burst->up, tcp);
	}
	if (done < burst->n)
		resolve_all(station, burst, done);
	stage_end(stages, STAGE_LOOK_UP, burst->n);
	n = burst->n;
	finish_burst(station, burst, done, &exceptions);
	return n;
}

/* One of a large table: begun, and finished when the next one is begun. */
static unsigned walk_carried(struct station *station, struct direct_burst *burst, unsigned n)
{
	struct direct *direct = station->direct;
	struct stage_times *stages = &station->worker.stages;
	struct flow_table *table = &station->worker.shard->table;
	uint64_t tcp = sort(station, burst->rx, 0, n, burst);

	count_received(station, burst);
	if (burst->up.n != 0)
		find_hash(table, &burst->up);
	stage_end(stages, STAGE_TRIAGE, burst->n);
	if (direct->waits)
		finish(station);
	pass_time(station);
	if (burst->up.n != 0)
		find_candidates(table, &burst->up, tcp);
	resolve_all(station, burst, 0);
	stage_end(stages, STAGE_LOOK_UP, burst->n);
	if (burst->n != 0) {
		direct->turn = !direct->turn;
		direct->waits = true;
	}
	return burst->n;
}

static unsigned begin(
	struct station *station, const struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	struct direct *direct = station->direct;
	struct direct_burst *burst = &direct->burst[direct->turn];

	burst->rx = rx;
	burst->marked = burst->ends = 0;
	burst->n_top = 0;
	memcpy(burst->packet, packets, n * sizeof(packets[0]));
	return flow_look_up_waits(&station->worker.shard->table) ? walk_carried(station, burst, n)
								 : walk_now(station, burst, n);
}

const struct direct_walk SIMD_SYMBOL(direct_watch) = {
	.begin = begin,
	.finish = finish,
};
