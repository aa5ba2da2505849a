/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A burst of which NICs may have marked packets: those with marks, beside the records that they name, and the others,
 * whose headers are read. What is to be read next is on its way. For pipeline_marked.c, which is compiled once per SIMD
 * level.
 */

#include "dataplane/mark.h"
#include "dataplane/mark_verify.h"
#include "dataplane/parse_fast.h"
#include "flow/fetch.h"

/*
 * Packets with marks of flows from the front, as many as there are: each beside its record, which is fetched, `both` and
 * `far` as fetch_record() has them, and their bytes are added up. `positions`: by number, NULL where numbers are
 * positions.
 */
static __rte_always_inline unsigned fetch_each(const struct slots *of, struct flow_record *first,
	const uint32_t *positions, struct burst *burst, unsigned n, bool both, bool far)
{
	const struct slots slots = *of;
	const unsigned place = burst->from.place;
	const uint16_t *tags = slots_tags(&slots, place);
	struct flow_record *records = first - slots.first_number;
	uint32_t bytes = 0; /* room for a burst's, and a length is added as it lies in memory */
	unsigned i;

	/* else the compiler takes the first number from each again */
	__asm__("" : "+r"(tags), "+r"(records));
	for (i = 0; i < n; i++) {
		const struct rte_mbuf *packet = burst->packet[i];
		const uint64_t mark = mark_value(packet);
		const uint64_t number = mark_number(mark, slots.number_bits);
		const uint64_t form = slots_form(&slots, tags[number], mark, place);

		if (unlikely(!mark_is_there(packet)) || unlikely(form > SLOT_FORM))
			break;
		struct flow_record *record =
			positions == NULL ? &records[number]
					  : &first[positions[number - slots.first_number]];

		burst->target[i] = mark_target(record, form);
		burst->target[LCORE_BURST + i] = rte_pktmbuf_mtod(packet, uintptr_t);
		rte_prefetch0((const void *)burst->target[LCORE_BURST + i]);
		fetch_record(record, both, far);
		bytes += packet->pkt_len;
	}
	burst->bytes = bytes;
	burst->marked = i == 0 ? 0 : UINT64_MAX >> (64 - i);
	return i;
}

/* Each a loop of its own, as the common ones have no register to spare. */
static __rte_noinline unsigned fetch_near(const struct slots *slots, struct flow_record *first,
	struct burst *burst, unsigned n, bool both)
{
	return fetch_each(slots, first, NULL, burst, n, both, false);
}

static __rte_noinline unsigned fetch_far(
	const struct slots *slots, struct flow_record *first, struct burst *burst, unsigned n)
{
	return fetch_each(slots, first, NULL, burst, n, true, true);
}

static __rte_noinline unsigned fetch_by_number(const struct slots *slots, struct flow_record *first,
	struct burst *burst, unsigned n, bool both, bool far)
{
	return fetch_each(slots, first, slots->positions, burst, n, both, far);
}

/* Says how many there are: most bursts are of such packets alone, or of none. */
static inline unsigned fetch_front(
	const struct lcore *lcore, struct burst *burst, unsigned n, bool far)
{
	const struct slots *slots = &lcore->worker.agent->wire[burst->from.domain].slots;
	struct flow_record *first = lcore->worker.shard->table.records;
	const bool both = lcore->pipeline->last_tcp;
	unsigned fetched;

	if (slots->tags == NULL)
		return 0;
	if (slots->positions != NULL)
		fetched = fetch_by_number(slots, first, burst, n, both, far);
	else
		fetched = far ? fetch_far(slots, first, burst, n)
			      : fetch_near(slots, first, burst, n, both);
	if (fetched != 0)
		lcore->pipeline->last_tcp = burst->target[fetched - 1] & MARK_TCP;
	return fetched;
}

/*
 * Of packets with and without marks those from the `begin`th on that have one of this worker's numbers go into a row,
 * what these name is on its way, and their bytes are added up; says which they are. `positions` as above. No branch: they
 * come in any order. Any other is written where the next of them will be, and what the first number names is fetched
 * again, which costs nothing.
 */
static __rte_always_inline uint64_t mixed_each(const struct slots *of, struct flow_record *first,
	const uint32_t *positions, struct burst *burst, unsigned begin, unsigned n, bool far)
{
	const struct slots slots = *of;
	const uint16_t *tags = slots_own_tags(&slots, burst->from.place);
	uint64_t marked = 0, bytes = 0;
	size_t n_row = begin;

	/* else the compiler adds the row up for each */
	__asm__("" : "+r"(tags));
	for (size_t i = begin; i < n; i++) {
		struct rte_mbuf *packet = burst->packet[i];
		const uint64_t mark = mark_value(packet), generation = mark >> slots.number_bits;
		const uint64_t number = mark_number(mark, slots.number_bits) - slots.first_number;
		uint64_t is =
			mark_is_there(packet) & (generation != 0) & (number < slots.n_numbers);

		/* what slots_number() says, of which the compiler makes branches, as it would here */
		__asm__("" : "+r"(is));
		const uint64_t at = number & -is;
		const uintptr_t frame = rte_pktmbuf_mtod(packet, uintptr_t);

		rte_prefetch0((const void *)frame);
		rte_prefetch0(&tags[at]);
		if (positions == NULL)
			fetch_record(&first[at], false, far);
		else
			rte_prefetch0(&positions[at]);
		burst->row[n_row] = packet;
		burst->place[n_row] = (uint8_t)i;
		burst->target[LCORE_BURST + n_row] = frame;
		n_row += is;
		marked |= is << i;
		bytes += packet->pkt_len & -is;
	}
	burst->bytes += bytes;
	burst->n_row = (unsigned)n_row;
	return marked;
}

static __rte_noinline uint64_t mixed_near(const struct slots *slots, struct flow_record *first,
	struct burst *burst, unsigned begin, unsigned n)
{
	return mixed_each(slots, first, NULL, burst, begin, n, false);
}

static __rte_noinline uint64_t mixed_far(const struct slots *slots, struct flow_record *first,
	struct burst *burst, unsigned begin, unsigned n)
{
	return mixed_each(slots, first, NULL, burst, begin, n, true);
}

static __rte_noinline uint64_t mixed_by_number(const struct slots *slots, struct flow_record *first,
	struct burst *burst, unsigned begin, unsigned n)
{
	return mixed_each(slots, first, slots->positions, burst, begin, n, false);
}

static inline uint64_t fetch_mixed(
	const struct lcore *lcore, struct burst *burst, unsigned begin, unsigned n, bool far)
{
	const struct slots *slots = &lcore->worker.agent->wire[burst->from.domain].slots;
	struct flow_record *first = lcore->worker.shard->table.records;

	if (slots->positions != NULL)
		return mixed_by_number(slots, first, burst, begin, n);
	return far ? mixed_far(slots, first, burst, begin, n)
		   : mixed_near(slots, first, burst, begin, n);
}

/* What those in the row lead to, of which what is read here is there by now. */
static __rte_always_inline void resolve_each(const struct slots *of, struct flow_record *first,
	const uint32_t *positions, struct burst *burst, unsigned begin, bool far)
{
	const struct slots slots = *of;
	const unsigned place = burst->from.place, n = burst->n_row;
	const uint16_t *tags = slots_own_tags(&slots, place);

	__asm__("" : "+r"(tags)); /* as above */
	for (unsigned i = begin; i < n; i++) {
		const uint64_t mark = mark_value(burst->row[i]);
		const uint64_t at = mark_number(mark, slots.number_bits) - slots.first_number;
		const uint64_t form = slots_form(&slots, tags[at], mark, place);
		struct flow_record *record = &first[positions == NULL ? at : positions[at]];

		if (positions != NULL)
			fetch_record(record, false, far);
		/* its second line, if it is TCP's, else the first again */
		if (!far)
			rte_prefetch0((const uint8_t *)record +
				      (form & SLOT_TCP) * offsetof(struct flow_record, end));
		burst->target[i] = mark_target(
			likely(form <= SLOT_FORM) ? record : &mark_nobody, form & SLOT_FORM);
	}
}

static __rte_always_inline void resolve_all(
	struct lcore *lcore, struct burst *burst, unsigned begin, bool far)
{
	const struct slots *slots = &lcore->worker.agent->wire[burst->from.domain].slots;
	struct flow_record *first = lcore->worker.shard->table.records;

	if (burst->n_row == begin)
		return;
	if (slots->positions == NULL)
		resolve_each(slots, first, NULL, burst, begin, far);
	else
		resolve_each(slots, first, slots->positions, burst, begin, far);
	lcore->pipeline->last_tcp = burst->target[burst->n_row - 1] & MARK_TCP;
}

/* A burst that is being sorted. */
struct sorting {
	const struct lcore *lcore;
	unsigned n;
	struct burst *burst;
	uint64_t tcp;  /* by place among those that are looked up */
	unsigned n_up; /* those */
};

/* A packet without a mark is parsed. False: it is for the parser. */
static __rte_always_inline bool read_other(
	struct sorting *sorting, unsigned i, const struct parse_fast *parse)
{
	struct burst *burst = sorting->burst;
	const uint8_t flags =
		parse_one(sorting->lcore, parse, burst->packet[i], &burst->info[sorting->n_up]);

	if (unlikely(flags == 0))
		return false;
	burst->info_of[i] = (uint8_t)sorting->n_up;
	sorting->tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << sorting->n_up++;
	return true;
}

/*
 * Packets from the `begin`th on, of which some have marks and some have not: those with marks first, then the others, so
 * that nothing depends on who comes after whom. Says where the first is that is not plain.
 */
static __rte_noinline unsigned sort_mixed(struct sorting *sorting, unsigned begin, bool far)
{
	const struct lcore *lcore = sorting->lcore;
	struct burst *burst = sorting->burst;
	const struct parse_fast parse = parse_fast_of(lcore, &burst->from);
	const uint64_t all = UINT64_MAX >> (64 - sorting->n) & UINT64_MAX << begin;
	const uint64_t marked = fetch_mixed(lcore, burst, begin, sorting->n, far);

	for (uint64_t left = all & ~marked; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		if (likely(read_other(sorting, i, &parse)))
			continue;
		/* those that come after it are not ours */
		for (uint64_t after = marked & UINT64_MAX << i; after != 0; after &= after - 1)
			burst->bytes -= burst->row[--burst->n_row]->pkt_len;
		burst->marked |= marked & ~(UINT64_MAX << i);
		return i;
	}
	burst->marked |= marked;
	lcore->pipeline->mixed = marked != all;
	return sorting->n;
}

/*
 * Sorts packets from the `begin`th on, up to the first that is not plain. Returns a bit for each TCP one that is
 * looked up. What is named by a mark is surely this worker's; whether it is plain is seen when it is read.
 */
static inline uint64_t sort(
	const struct lcore *lcore, unsigned begin, unsigned n, struct burst *burst, bool far)
{
	struct sorting sorting = {.lcore = lcore, .n = n, .burst = burst};

	burst->n = sort_mixed(&sorting, begin, far);
	burst->up.n = sorting.n_up;
	return sorting.tcp;
}
