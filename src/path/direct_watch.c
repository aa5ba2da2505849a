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
};

/* The number of a packet's mark; SLOT_NONE: it has none of this worker's. */
static __rte_always_inline uint32_t number_of(
	const struct slots *slots, const struct rte_mbuf *packet)
{
	return judge_has_mark(packet) ? slots_number(slots, judge_mark(packet)) : SLOT_NONE;
}

/* What a mark leads to. `position`: of the record that it would be. */
static __rte_always_inline mark_named resolve(const struct slots *slots,
	const struct flow_record *records, uint32_t number, uint32_t position, uint32_t mark)
{
	const uint32_t tag = slots->tags[number];

	return likely(slots_names(slots, tag, mark))
		       ? mark_named_of(records, position, tag & SLOT_FORM)
		       : NULL;
}

/*
 * Packets with marks from the `begin`th on; says where the first is that has none. What they name is fetched, and
 * their bytes are added up. Where a number is a position its record is on its way at once. The line that only TCP needs
 * goes with it when the packets before were TCP; both then into the cache behind the nearest, as a core waits for so
 * few lines at a time that it would stop here for the last ones. A single line is fetched into the nearest: asked for
 * otherwise it does not come on every processor (AMD Zen 4).
 */
static __rte_noinline unsigned sort_marked(
	const struct station *station, struct direct_burst *burst, unsigned begin, unsigned n)
{
	const struct slots slots = station->worker.agent->wire[burst->rx->port / 2].slots;
	const struct flow_record *const records = station->worker.shard->table.records;
	const bool both = station->direct->last_form & MARK_TCP;
	uint64_t bytes = 0;
	unsigned i;

	for (i = begin; i < n; i++) {
		uint32_t number = number_of(&slots, burst->packet[i]);

		if (unlikely(number == SLOT_NONE))
			break;
		burst->mark[i] = judge_mark(burst->packet[i]);
		direct_fetch(&burst->packet[i], 1);
		rte_prefetch0(&slots.tags[number]);
		if (slots.positions != NULL) {
			rte_prefetch0(&slots.positions[number]);
		} else if (both) {
			rte_prefetch1(&records[number]);
			rte_prefetch1(&records[number].bytes_high);
		} else {
			rte_prefetch0(&records[number]);
		}
		bytes += burst->packet[i]->pkt_len;
	}
	if (i > begin)
		burst->marked |= (UINT64_MAX >> (64 - (i - begin))) << begin;
	burst->bytes += bytes;
	return i;
}

/*
 * Puts the marked packets from the `begin`th on into a row, each beside its record, which is fetched: from where it is on
 * its way to, if it is, into the nearest cache.
 */
static __rte_always_inline void resolve_all(
	struct station *station, struct direct_burst *burst, unsigned begin)
{
	const struct slots slots = station->worker.agent->wire[burst->rx->port / 2].slots;
	const struct flow_record *const records = station->worker.shard->table.records;
	uint64_t left = burst->n == 0 ? 0 : burst->marked & UINT64_MAX >> (64 - burst->n);
	mark_named named = NULL;
	unsigned n = 0;

	for (left &= UINT64_MAX << begin; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);
		const uint32_t number = slots_number(&slots, burst->mark[i]);
		const uint32_t position = slots_position_of(&slots, number);

		named = resolve(&slots, records, number, position, burst->mark[i]);
		burst->named[n] = named;
		burst->row[n] = burst->packet[i];
		burst->place[n++] = (uint8_t)i;
		rte_prefetch0(&records[position]);
		rte_prefetch0(named);
	}
	burst->n_row = n;
	station->direct->last_form = mark_form_of(named);
}

/* A packet without a mark is read: see read_headers() of the other walk. False: it is not plain. */
static __rte_always_inline bool read_other(struct sorting *sorting, unsigned i, unsigned kinds)
{
	const struct station *station = sorting->station;
	struct direct_burst *burst = sorting->burst;
	const struct rte_mbuf *packet = burst->packet[i];
	struct packet_info *info = &burst->info[sorting->n_up];
	const struct common common = {
		.wire = sorting->rx->port / 2,
		.zone_vlan = station->zone_vlan,
		.flags = sorting->rx->port % 2 != 0 ? PACKET_SIDE : 0,
	};
	uint8_t flags = extract_common(&common, packet, info);

	if (unlikely(flags == 0))
		flags = direct_read_rare(
			station, packet, sorting->rx->port / 2, common.flags, info);
	if (unlikely(flags == 0 || (kinds != ALL_KINDS && !(kinds >> rss_kind(&info->key) & 1))))
		return false;
	burst->info_of[i] = (uint8_t)sorting->n_up;
	sorting->tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << sorting->n_up++;
	return true;
}

/*
 * Which of the packets from the `begin`th on have marks; what these name is fetched, and their bytes are added up. No
 * branch: they come in any order. For others the first number is fetched again, which costs nothing.
 */
static __rte_always_inline uint64_t fetch_marked(const struct slots *slots,
	const struct flow_record *records, struct direct_burst *burst, unsigned begin, unsigned n)
{
	uint64_t marked = 0, bytes = 0;

	for (unsigned i = begin; i < n; i++) {
		const struct rte_mbuf *packet = burst->packet[i];
		const uint32_t mark = judge_mark(packet), number = slots_number(slots, mark);
		const bool is = judge_has_mark(packet) & (number != SLOT_NONE);
		const uint32_t at = is ? number : 0;

		burst->mark[i] = mark;
		marked |= (uint64_t)is << i;
		bytes += is ? packet->pkt_len : 0;
		rte_prefetch0(&slots->tags[at]);
		if (slots->positions != NULL)
			rte_prefetch0(&slots->positions[at]);
		else
			rte_prefetch0(&records[at]);
	}
	burst->bytes += bytes;
	return marked;
}

/*
 * Packets from the `begin`th on, of which some have marks and some have not: those with marks first, then the others, so
 * that nothing depends on who comes after whom. Says where the first is that is not plain.
 */
static __rte_noinline unsigned sort_mixed(struct sorting *sorting, unsigned begin)
{
	const struct station *station = sorting->station;
	const struct slots slots = station->worker.agent->wire[sorting->rx->port / 2].slots;
	const unsigned kinds =
		station->worker.steer.n_shards == 1 ? ALL_KINDS : sorting->rx->trusted;
	struct direct_burst *burst = sorting->burst;
	const uint64_t all = UINT64_MAX >> (64 - sorting->n) & UINT64_MAX << begin;
	const uint64_t marked = fetch_marked(
		&slots, station->worker.shard->table.records, burst, begin, sorting->n);

	for (uint64_t left = all & ~marked; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		if (likely(read_other(sorting, i, kinds)))
			continue;
		/* those that come after it are not ours */
		for (uint64_t after = marked & UINT64_MAX << i; after != 0; after &= after - 1)
			burst->bytes -= burst->packet[__builtin_ctzll(after)]->pkt_len;
		burst->marked |= marked & ~(UINT64_MAX << i);
		return i;
	}
	burst->marked |= marked;
	station->direct->mixed = marked != all;
	return sorting->n;
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

	/* where the last ones were mixed these are, too: nothing is won by a guess */
	if (!station->direct->mixed)
		i = sort_marked(station, burst, begin, n);
	if (i < n) {
		direct_fetch(&burst->packet[i], n - i);
		i = sort_mixed(&sorting, i);
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
	if (record != NULL && (judge_has_mark(burst->packet[i]) ||
				      offload_is_watched(record, burst->rx->port % 2, info->from)))
		judge_packet(station->worker.agent, burst->rx->port, burst->packet[i],
			position_of(shard, record), info);
}

/*
 * A marked packet that is not common, or not settled, or not what its mark says: read as others are, and looked
 * up if need be. False: it is not plain.
 */
static __rte_noinline bool account_rare(struct station *station, struct direct_burst *burst,
	unsigned i, mark_named named, struct direct_exceptions *exceptions)
{
	const unsigned port = burst->rx->port;
	const struct common common = {
		.wire = port / 2,
		.zone_vlan = station->zone_vlan,
		.flags = port % 2 != 0 ? PACKET_SIDE : 0,
	};
	struct flow_shard *shard = station->worker.shard;
	struct flow_record *record = mark_record(named);
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

/* Packets with marks, in a row, and what their marks lead to. */
struct row {
	struct rte_mbuf *const *packet;
	const mark_named *named;
	const uint8_t *place; /* in the burst; NULL: the same as here */
};

/*
 * Packets with marks up to the first that is more than counted: says how many are left from there on. With a row of
 * packets the loop has every register to itself, and it has none to spare.
 */
static __rte_always_inline unsigned account_each(uint64_t now_us, const struct row *row,
	unsigned begin, unsigned end, unsigned side, bool trust)
{
	const struct mark_burst marks = mark_burst_of(side, now_us);
	struct rte_mbuf *const *packet = &row->packet[end];
	const mark_named *named = &row->named[end];
	ptrdiff_t i;

	for (i = (ptrdiff_t)begin - (ptrdiff_t)end; i != 0; i++) {
		if (unlikely(named[i] == NULL) ||
			unlikely(!mark_packet(&marks, named[i], packet[i], trust)))
			break;
	}
	return (unsigned)-i;
}

/* The side is a constant in the loop. */
static __rte_noinline unsigned account_row_0(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned end)
{
	return account_each(now_us, row, begin, end, 0, false);
}

static __rte_noinline unsigned account_row_1(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned end)
{
	return account_each(now_us, row, begin, end, 1, false);
}

static __rte_noinline unsigned trust_row(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned end, unsigned side)
{
	return account_each(now_us, row, begin, end, side, true);
}

/*
 * A row of packets with marks of this worker's numbers, which may name nobody; says where the first is that is
 * not plain.
 */
static inline unsigned account_named(struct station *station, struct direct_burst *burst,
	const struct row *row, unsigned n, struct direct_exceptions *exceptions)
{
	const uint64_t now_us = station->worker.shard->now_us;
	const unsigned side = burst->rx->port % 2;

	for (unsigned i = 0; i < n; i++) {
		unsigned left;

		if (unlikely(burst->trusted))
			left = trust_row(now_us, row, i, n, side);
		else if (side == 0)
			left = account_row_0(now_us, row, i, n);
		else
			left = account_row_1(now_us, row, i, n);
		if (likely(left == 0))
			break;
		i = n - left;
		const unsigned place = row->place == NULL ? i : row->place[i];

		if (!account_rare(station, burst, place, row->named[i], exceptions))
			return i;
	}
	return n;
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

/* Packets with marks from the front, as many as there are; their records are on their way, their bytes added up. */
static __rte_noinline unsigned fetch_front(const struct slots *of,
	const struct flow_record *records, struct direct_burst *burst, unsigned n)
{
	const struct slots slots = *of;
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *packet = burst->packet[i];
		uint32_t number = number_of(&slots, packet);

		if (unlikely(number == SLOT_NONE))
			break;
		const uint32_t position = slots_position_of(&slots, number);

		direct_fetch(&packet, 1);
		burst->named[i] = resolve(&slots, records, number, position, judge_mark(packet));
		mark_fetch(records, position, burst->named[i]);
		bytes += packet->pkt_len;
	}
	burst->bytes = bytes;
	burst->marked = i == 0 ? 0 : UINT64_MAX >> (64 - i);
	return i;
}

/*
 * Packets with marks from the front, fetched and accounted in one go: in a table that lies in the nearest caches
 * a second look at each packet costs more than its record. Says how many.
 */
static unsigned account_front(struct station *station, unsigned n, struct direct_burst *burst,
	struct direct_exceptions *exceptions)
{
	const unsigned fetched =
		fetch_front(&station->worker.agent->wire[burst->rx->port / 2].slots,
			station->worker.shard->table.records, burst, n);

	const struct row row = {.packet = burst->packet, .named = burst->named};
	const unsigned done = account_named(station, burst, &row, fetched, exceptions);

	for (unsigned i = done; i < fetched; i++)
		burst->bytes -= burst->packet[i]->pkt_len;
	return done;
}

/*
 * The rest of a burst, or all: those with marks, then the others; says where the first is that is not plain after
 * all.
 */
static unsigned account_sorted(struct station *station, struct direct_burst *burst, unsigned begin,
	struct direct_exceptions *exceptions)
{
	const struct row row = {.packet = burst->row, .named = burst->named, .place = burst->place};
	unsigned done = account_named(station, burst, &row, burst->n_row, exceptions);
	unsigned n = likely(done == burst->n_row) ? burst->n : burst->place[done];
	uint64_t others = n == 0 ? 0 : ~burst->marked & UINT64_MAX >> (64 - n);
	unsigned up = 0;

	for (others &= UINT64_MAX << begin; others != 0; others &= others - 1)
		account_found(station, burst, (unsigned)__builtin_ctzll(others), up++, exceptions);
	return n;
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
	if (burst->marked >> i & 1 || !agent_samples(worker->agent) || agent_leaves_out(info))
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
		plain = account_sorted(station, burst, done, exceptions);
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

/* The bytes of those with marks have been added up. */
static void count_received(struct station *station, struct direct_burst *burst)
{
	for (unsigned i = 0; i < burst->up.n; i++)
		burst->bytes += burst->info[i].bytes;
	direct_count(station, burst, burst->n);
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
	unsigned done = account_front(station, n, burst, &exceptions);
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
	burst->marked = 0;
	burst->bytes = 0;
	burst->n_top = 0;
	burst->trusted = trusts(&station->worker);
	memcpy(burst->packet, packets, n * sizeof(packets[0]));
	return flow_look_up_waits(&station->worker.shard->table) ? walk_carried(station, burst, n)
								 : walk_now(station, burst, n);
}

const struct direct_walk SIMD_SYMBOL(direct_watch) = {
	.begin = begin,
	.finish = finish,
};
