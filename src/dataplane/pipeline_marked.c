/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline up to account where NICs mark packets: compiled once per SIMD level. */
#include "dataplane/account.h"
#include "dataplane/lookup.h"
#include "dataplane/mark.h"
#include "dataplane/mark_sort.h"
#include "dataplane/mark_verify.h"
#include "dataplane/parse.h"
#include "flow/fetch.h"

/*
 * A marked packet that is not common, or not settled, or not what its mark says: read as others are, and looked
 * up if need be. False: it is not plain.
 */
static __rte_noinline bool account_rare(struct lcore *lcore, struct burst *burst, unsigned i,
	uintptr_t target, struct outcome *outcome)
{
	const struct parse_fast parse = parse_fast_of(lcore, &burst->from);
	struct flow_record *record = mark_record(target);
	struct flow_table *table = &lcore->worker.shard->table;
	unsigned at = LCORE_BURST - 1 - burst->n_top;
	struct packet_info *info = &burst->info[at];

	/* that RSS brought it need not be asked: the mark says so */
	if (extract_common(&parse.common, burst->packet[i], info) == 0 &&
		parse_rare(lcore, burst->packet[i], burst->from.domain, parse.common.flags, info) ==
			0)
		return false;
	if (!flow_key_equal(&record->key, &info->key)) {
		info->hash = flow_key_hash(lcore->secret, &info->key);
		uint32_t position = flow_table_find(table, &info->key, info->hash);

		record = position == FLOW_NONE ? NULL : flow_table_record(table, position);
	} else if (account_plain(record, info, lcore->worker.shard->now_us)) {
		/* as mark_fits() has it: by that end, the mark's rule is not at another port */
		if (info->from != mark_from(target) ||
			offload_state(record, info->from) != OFFLOAD_PROVEN)
			mark_verify(lcore->worker.agent, burst->from.port, burst->packet[i],
				flow_table_position_of(table, record), info);
		return true;
	}
	burst->n_top++;
	burst->info_of[i] = (uint8_t)at;
	account_rest(lcore, burst, i, record, outcome);
	return true;
}

/* Packets with marks, in a row, and what their marks lead to. */
struct row {
	struct rte_mbuf *const *packet;
	const uintptr_t *target;
	const uint8_t *place; /* in the burst; NULL: the same as here */
};

/*
 * Packets of one protocol, from place `i` of the row, counted from its end, up to the first of the other one, or that is
 * more than counted: says where that is. A loop of its own for each, as what is asked of TCP takes all registers.
 */
static __rte_always_inline ptrdiff_t account_run(
	const struct mark_burst *marks, const struct row *end, ptrdiff_t i, bool tcp, bool far)
{
	do {
		const uint8_t *frame = (const uint8_t *)end->target[LCORE_BURST + i];

		if (unlikely(!mark_packet(marks, end->target[i], end->packet[i], frame, tcp, far)))
			break;
		i++;
	} while (i != 0 && ((end->target[i] & MARK_TCP) != 0) == tcp);
	return i;
}

/*
 * Packets with marks, one at least, up to the first that is more than counted: says how many are left from there on.
 */
static __rte_always_inline unsigned account_each(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned n, bool far)
{
	const struct mark_burst marks = mark_burst_of(now_us);
	const struct row end = {.packet = &row->packet[n], .target = &row->target[n]};
	ptrdiff_t i = (ptrdiff_t)begin - (ptrdiff_t)n, from;

	/* one that is more than counted is the first of its run the second time */
	do {
		from = i;
		i = end.target[i] & MARK_TCP ? account_run(&marks, &end, i, true, far)
					     : account_run(&marks, &end, i, false, far);
	} while (i != from && i != 0);
	return (unsigned)-i;
}

/* How far the records are is a constant in the loop. */
static __rte_noinline unsigned near_row(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned n)
{
	return account_each(now_us, row, begin, n, false);
}

static __rte_noinline unsigned far_row(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned n)
{
	return account_each(now_us, row, begin, n, true);
}

static inline unsigned account_row(
	uint64_t now_us, const struct row *row, unsigned begin, unsigned n, bool far)
{
	return far ? far_row(now_us, row, begin, n) : near_row(now_us, row, begin, n);
}

/*
 * Packets from index `i` of the row on that are SYNs and SYN-ACKs of handshakes that come again: says how many. A load of
 * nothing else is not to take account_rare() for each.
 */
static __rte_noinline unsigned account_again(const struct lcore *lcore, const struct burst *burst,
	const struct row *row, unsigned i, unsigned n)
{
	const struct mark_burst marks = mark_burst_of(lcore->worker.shard->now_us);
	const struct row of = *row;
	const bool side = burst->from.place != 0;
	const unsigned begin = i;

	while (i < n && of.target[i] & MARK_TCP &&
		mark_comes_again(&marks, of.target[i], of.packet[i],
			(const uint8_t *)of.target[LCORE_BURST + i], side))
		i++;
	return i - begin;
}

/*
 * A row of packets with marks of this worker's numbers, which may name nobody; says where the first is that is
 * not plain.
 */
static inline unsigned account_named(struct lcore *lcore, struct burst *burst,
	const struct row *row, unsigned n, bool far, struct outcome *outcome)
{
	const uint64_t now_us = lcore->worker.shard->now_us;

	for (unsigned i = 0; i < n; i++) {
		const unsigned left = account_row(now_us, row, i, n, far);

		if (likely(left == 0))
			break;
		i = n - left;
		const unsigned again = account_again(lcore, burst, row, i, n);

		if (again != 0) {
			i += again - 1;
			continue;
		}
		const unsigned place = row->place == NULL ? i : row->place[i];

		if (!account_rare(lcore, burst, place, row->target[i], outcome))
			return i;
	}
	return n;
}

/* The packets from the front that are fetched: says where the first is that is not plain. */
static unsigned account_front(
	struct lcore *lcore, struct burst *burst, unsigned n, bool far, struct outcome *outcome)
{
	const struct row row = {.packet = burst->packet, .target = burst->target};

	return account_named(lcore, burst, &row, n, far, outcome);
}

/*
 * The rest of a burst, or all: those with marks, then the others; says where the first is that is not plain after
 * all.
 */
static unsigned account_sorted(
	struct lcore *lcore, struct burst *burst, unsigned begin, bool far, struct outcome *outcome)
{
	const struct row row = {.packet = burst->row + begin,
		.target = burst->target + begin,
		.place = burst->place + begin};
	unsigned n_row = burst->n_row - begin;
	unsigned done = account_named(lcore, burst, &row, n_row, far, outcome);
	unsigned n = likely(done == n_row) ? burst->n : row.place[done];
	uint64_t others = n == 0 ? 0 : ~burst->marked & UINT64_MAX >> (64 - n);
	unsigned up = 0;

	for (others &= UINT64_MAX << begin; others != 0; others &= others - 1)
		account_found(
			lcore, burst, (unsigned)__builtin_ctzll(others), up++, far, true, outcome);
	return n;
}

/* What was not plain after all, and all that came after it, is for parser. */
static __rte_noinline void leave_to_parser(
	struct lcore *lcore, struct burst *burst, unsigned begin, struct rte_mbuf **rest)
{
	struct path_counters *counters = &lcore->worker.counters[burst->from.domain];

	for (unsigned i = begin; i < burst->n; i++) {
		rest[i - begin] = burst->packet[i];
		burst->bytes -= burst->packet[i]->pkt_len;
		counters->received_bytes -= burst->packet[i]->pkt_len;
	}
	counters->received -= burst->n - begin;
	burst->n = begin;
}

/* All of a burst but its first packets, `done` of them, which have been accounted. */
static void finish_part(
	struct lcore *lcore, struct burst *burst, unsigned plain, struct outcome *outcome)
{
	struct rte_mbuf *rest[LCORE_BURST];
	unsigned n = burst->n;

	if (unlikely(plain < n))
		leave_to_parser(lcore, burst, plain, rest);
	flow_shard_counted(
		lcore->worker.shard, burst->n - outcome->n, burst->bytes - outcome->bytes);
	if (burst->n != 0) {
		account_sample(lcore, burst);
		pipeline_end(lcore, burst, outcome);
	}
	if (unlikely(plain < n)) {
		parser_burst(lcore->parser, burst->from, lcore->now_us, rest, n - plain);
		parser_flush(lcore->parser);
	}
}

static void finish_burst(
	struct lcore *lcore, struct burst *burst, unsigned done, bool far, struct outcome *outcome)
{
	unsigned plain = burst->n;

	if (done < plain)
		plain = account_sorted(lcore, burst, done, far, outcome);
	finish_part(lcore, burst, plain, outcome);
}

static void finish_carried(struct lcore *lcore)
{
	struct pipeline *pipeline = lcore->pipeline;
	struct burst *burst = &pipeline->burst[!pipeline->next];
	struct outcome outcome = {0};
	unsigned done = account_front(lcore, burst, burst->front, true, &outcome);

	pipeline->waits = false;
	if (likely(done == burst->front))
		finish_burst(lcore, burst, done, true, &outcome);
	else
		finish_part(lcore, burst, done, &outcome);
}

/* The bytes of those with marks have been added up. */
static void count_received(struct lcore *lcore, struct burst *burst)
{
	for (unsigned i = 0; i < burst->up.n; i++)
		burst->bytes += burst->info[i].bytes;
	parse_count(lcore, burst, burst->n);
}

/* A burst of a small table: all in one go. */
static unsigned walk_now(struct lcore *lcore, struct burst *burst, unsigned n)
{
	struct outcome outcome = {0};
	struct stage_times *stages = &lcore->worker.stages;
	struct flow_table *table = &lcore->worker.shard->table;

	pipeline_pass_time(lcore, lcore->now_us);
	const unsigned fetched = fetch_front(lcore, burst, n, false);
	unsigned done = account_front(lcore, burst, fetched, false, &outcome);
	uint64_t tcp = 0;

	for (unsigned i = done; i < fetched; i++)
		burst->bytes -= burst->packet[i]->pkt_len;

	burst->n = done;
	burst->up.n = 0;
	if (done < n)
		tcp = sort(lcore, done, n, burst, false);
	count_received(lcore, burst);
	if (burst->up.n != 0) {
		lookup_begin(table, burst);
		lookup_records(table, burst, tcp, false);
	}
	if (done < burst->n)
		resolve_all(lcore, burst, done, false);
	stage_end(stages, STAGE_LOOK_UP, burst->n);
	n = burst->n;
	finish_burst(lcore, burst, done, false, &outcome);
	return n;
}

/* One of a large table: begun, and finished when the next one is begun. */
static unsigned walk_carried(struct lcore *lcore, struct burst *burst, unsigned n)
{
	struct pipeline *pipeline = lcore->pipeline;
	struct stage_times *stages = &lcore->worker.stages;
	struct flow_table *table = &lcore->worker.shard->table;
	uint64_t tcp = 0;

	/* where the last ones were mixed these are, too: nothing is won by a guess */
	burst->front = pipeline->mixed ? 0 : fetch_front(lcore, burst, n, true);
	burst->n = burst->front;
	burst->up.n = 0;
	if (burst->front < n)
		tcp = sort(lcore, burst->front, n, burst, true);
	count_received(lcore, burst);
	if (burst->up.n != 0)
		lookup_begin(table, burst);
	stage_end(stages, STAGE_PARSE, burst->n);
	if (pipeline->waits)
		finish_carried(lcore);
	pipeline_pass_time(lcore, lcore->now_us);
	if (burst->up.n != 0)
		lookup_records(table, burst, tcp, true);
	if (burst->front < burst->n)
		resolve_all(lcore, burst, burst->front, true);
	stage_end(stages, STAGE_LOOK_UP, burst->n);
	if (burst->n != 0) {
		pipeline->next = !pipeline->next;
		pipeline->waits = true;
	}
	return burst->n;
}

/* The burst that waits, whichever way it went. */
static void marked_finish(struct lcore *lcore)
{
	if (lcore->pipeline->unmarked)
		SIMD_SYMBOL(pipeline_plain).finish(lcore);
	else
		finish_carried(lcore);
}

/*
 * No flow has a rule at the wire, or is about to, and no packet has a mark: there is nothing to watch, and the burst
 * goes the way of engines without offload.
 */
static bool has_no_marks(
	const struct lcore *lcore, unsigned wire, const struct burst *burst, unsigned n)
{
	bool marked = false;

	if (lcore->worker.agent->wire[wire].slots.n_used != 0)
		return false;
	for (unsigned i = 0; i < n; i++)
		marked |= mark_is_there(burst->packet[i]);
	return !marked;
}

static unsigned begin_unmarked(
	struct lcore *lcore, const struct lcore_rx *rx, struct burst *burst, unsigned n)
{
	burst->marked = 0;
	for (unsigned i = 0; i < LCORE_BURST; i++)
		burst->info_of[i] = (uint8_t)i;
	return SIMD_SYMBOL(pipeline_plain).begin(lcore, rx, n);
}

static unsigned marked_begin(struct lcore *lcore, const struct lcore_rx *rx, unsigned n)
{
	struct pipeline *pipeline = lcore->pipeline;
	struct burst *burst = &pipeline->burst[pipeline->next];
	const bool unmarked = has_no_marks(lcore, rx->from.domain, burst, n);

	if (pipeline->waits && pipeline->unmarked != unmarked)
		marked_finish(lcore);
	pipeline->unmarked = unmarked;
	if (unmarked)
		return begin_unmarked(lcore, rx, burst, n);
	burst->from = rx->from;
	burst->unchecked = lcore->worker.steer.n_shards > 1 ? UINT64_MAX : 0;
	burst->marked = 0;
	burst->bytes = 0;
	burst->n_top = 0;
	return flow_look_up_waits(&lcore->worker.shard->table) ? walk_carried(lcore, burst, n)
							       : walk_now(lcore, burst, n);
}

static void marked_resume(struct lcore *lcore, uint64_t flows, bool slow)
{
	struct burst *burst = &lcore->pipeline->resumed;
	const struct flow_table *table = &lcore->worker.shard->table;
	struct outcome outcome = {0};

	const uint64_t tcp = lookup_begin_hashed(table, burst);

	lookup_records(table, burst, tcp, false);
	stage_end(&lcore->worker.stages, STAGE_LOOK_UP, burst->n);
	account_resumed(lcore, burst, flows, slow, true, &outcome);
	account_sample(lcore, burst);
	pipeline_end(lcore, burst, &outcome);
}

const struct pipeline_level SIMD_SYMBOL(pipeline_marked) = {
	.begin = marked_begin,
	.finish = marked_finish,
	.resume = marked_resume,
};
