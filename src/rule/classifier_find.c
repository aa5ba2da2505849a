/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The look-up of a burst, compiled once per SIMD level. It goes in steps for all headers of the burst:
 * the rows of their prefixes and ports are fetched; the tuples that the rows leave are searched in
 * rounds, each header's best tuple first: its chain is fetched, then its first rule, then compared.
 */
#include <rte_prefetch.h>

#include "rule/classifier_walk.h"

#if SIMD_LEVEL >= SIMD_LEVEL_AVX2
#include <immintrin.h>
#endif

#define N_V4_ROWS 8

struct rows {
	uint32_t addr[2 * (CLASSES_V6 - 1)] __attribute__((aligned(32)));
	uint32_t port[2];
};

static inline void find_rows_v4(
	const struct part *part, const struct classifier_header *header, struct rows *rows)
{
	const struct classifier *classifier = part->classifier;

#if SIMD_LEVEL >= SIMD_LEVEL_AVX2
	__m256i addr = _mm256_set_m128i(
		_mm_set1_epi32((int)header->dst[0]), _mm_set1_epi32((int)header->src[0]));

	addr = _mm256_and_si256(addr, _mm256_load_si256((const __m256i *)classifier->row_mask));
	addr = _mm256_mullo_epi32(addr, _mm256_load_si256((const __m256i *)classifier->row_factor));
	addr = _mm256_add_epi32(addr, _mm256_set1_epi32((int)part->salt));
	addr = _mm256_srl_epi32(addr, _mm_cvtsi32_si128((int)classifier->row_shift));
	addr = _mm256_add_epi32(addr, _mm256_load_si256((const __m256i *)classifier->row_base));
	_mm256_store_si256((__m256i *)rows->addr, addr);
#else
	for (unsigned lane = 0; lane < N_V4_ROWS; lane++)
		rows->addr[lane] = classifier->row_base[lane] +
				   row_v4(classifier, part->salt, lane,
					   lane < 4 ? header->src[0] : header->dst[0]);
#endif
}

static inline void find_rows_v6(
	const struct part *part, const struct classifier_header *header, struct rows *rows)
{
	const struct classifier *classifier = part->classifier;

	for (unsigned class = 1; class < CLASSES_V6; class ++) {
		rows->addr[class - 1] = row_v6(classifier, part->salt, class, header->src);
		rows->addr[class + CLASSES_V6 - 2] =
			classifier->n_rows + row_v6(classifier, part->salt, class, header->dst);
	}
}

static inline void find_rows(
	const struct part *part, const struct classifier_header *header, struct rows *rows)
{
	const struct classifier *classifier = part->classifier;
	unsigned n = part->kind == SPACE_V4   ? N_V4_ROWS
		     : part->kind == SPACE_V6 ? 2 * (CLASSES_V6 - 1)
					      : 0;

	if (part->kind == SPACE_V4)
		find_rows_v4(part, header, rows);
	else if (part->kind == SPACE_V6)
		find_rows_v6(part, header, rows);
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&classifier->rows[rows->addr[i]]);
	rows->port[0] = row_port(classifier, part->salt, false, header->src_port);
	rows->port[1] =
		classifier->n_port_rows + row_port(classifier, part->salt, true, header->dst_port);
	rte_prefetch0(&classifier->port_rows[rows->port[0]]);
	rte_prefetch0(&classifier->port_rows[rows->port[1]]);
}

static inline both both_of(const struct bits *bits)
{
#ifdef __SANITIZE_THREAD__
	struct bits loaded = bits_load(bits);

	return (both){loaded.word[0], loaded.word[1]};
#else
	return *(const both *)bits;
#endif
}

/* Tuples that have the address's prefixes, as far as rows know. */
static inline both tuples_of(const struct classifier *classifier, const both *by_class,
	const uint32_t *rows, unsigned classes)
{
	both sum = by_class[0];

	for (unsigned class = 1; class < classes; class ++)
		sum |= both_of(&classifier->rows[rows[class - 1]]) & by_class[class];
	return sum;
}

static inline void filter(const struct part *part, const struct known *known,
	const struct rows *rows, unsigned classes, struct search *search)
{
	const struct classifier *classifier = part->classifier;
	both left = tuples_of(classifier, known->src, rows->addr, classes);

	left &= tuples_of(classifier, known->dst, rows->addr + classes - 1, classes);
	left &= both_of(&classifier->port_rows[rows->port[0]]) | known->no_src_port;
	left &= both_of(&classifier->port_rows[rows->port[1]]) | known->no_dst_port;
	memcpy(&search->left, &left, sizeof(left));
}

/* As take_best(), where those left are sorted by their best rule: the first one is it. */
static inline uint32_t take_first(const struct space *space, struct search *search)
{
	for (;;) {
		unsigned i = search->left.word[0] == 0;
		uint64_t word = search->left.word[i];

		if (word == 0)
			return NO_LINK;
		uint32_t tuple = i * 64 + (uint32_t)__builtin_ctzll(word);

		search->left.word[i] = word & (word - 1);
		if (__atomic_load_n(&space->rest_best[tuple], __ATOMIC_RELAXED) >= search->order)
			return NO_LINK;
		if (__atomic_load_n(&space->best[tuple], __ATOMIC_RELAXED) < search->order)
			return tuple;
	}
}

static inline uint32_t take_tuple(
	const struct space *space, const struct bits *unsorted, struct search *search)
{
	if (((search->left.word[0] & unsorted->word[0]) |
		    (search->left.word[1] & unsorted->word[1])) == 0)
		return take_first(space, search);
	return take_best(space, search);
}

static inline uint64_t hash_in(
	const struct part *part, uint32_t number, const struct classifier_header *header)
{
	const struct space *space = part->space;
	const struct tuple *tuple = &space->tuple[number];

	if (part->kind == SPACE_V6)
		return hash_key_v6(part->classifier, tuple, space->src_class[number],
			space->dst_class[number], header);
	return hash_key_v4(part->classifier, tuple, header);
}

/* Fetches the chain of each header's best tuple; headers with none are through. */
static inline unsigned begin_round(
	const struct part *part, const struct bits *unsorted, uint8_t *active, unsigned n)
{
	const struct classifier *classifier = part->classifier;
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned at = active[i];
		struct search *search = &part->searches[at];
		uint32_t tuple = take_tuple(part->space, unsorted, search);

		if (tuple == NO_LINK)
			continue;
		search->hash = hash_in(part, tuple, part->headers[at]);
		rte_prefetch0(bucket_of(classifier, search->hash));
		active[kept++] = (uint8_t)at;
	}
	return kept;
}

/* As link_of_tag(), side by side where the level can. */
static inline uint32_t find_slot(const struct bucket *bucket, uint32_t tag)
{
#if SIMD_LEVEL >= SIMD_LEVEL_AVX2 && !defined(__SANITIZE_THREAD__)
	__m256i wanted = _mm256_set1_epi32((int)tag);
	__m256i low = _mm256_cmpeq_epi32(wanted, *(const __m256i *)bucket->slot);
	__m256i high = _mm256_cmpeq_epi32(wanted, *(const __m256i *)(bucket->slot + 4));
	/* of each slot one bit, without the shared one */
	unsigned bits = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(low)) |
			(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(high)) << 8;

	bits &= 0x2aaa;
	return bits == 0 ? NO_LINK
			 : (uint32_t)__atomic_load_n(
				   &bucket->slot[__builtin_ctz(bits) / 2], __ATOMIC_ACQUIRE);
#else
	return link_of_tag(bucket, tag);
#endif
}

/* Fetches the first rule of the chains of each header's key; headers without any are left out. */
static inline unsigned fetch_first(
	const struct part *part, const uint8_t *active, unsigned n, uint8_t *walking)
{
	const struct classifier *classifier = part->classifier;
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		struct search *search = &part->searches[active[i]];
		const struct bucket *bucket = bucket_of(classifier, search->hash);

		search->link = find_slot(bucket, tag_of(search->hash));
		search->shared = (uint32_t)__atomic_load_n(&bucket->slot[SHARED], __ATOMIC_ACQUIRE);
		if (unlikely(search->link == NO_LINK)) {
			search->link = search->shared;
			search->shared = NO_LINK;
		}
		walking[kept] = active[i];
		kept += search->link != NO_LINK;
		rte_prefetch0(
			&classifier->records[search->link & ~(0u - (search->link == NO_LINK))]);
	}
	return kept;
}

/* Compares one rule, of this group or another one; returns the next one to compare, or NO_LINK. */
static inline uint32_t compare(const struct part *part, unsigned at)
{
	const struct classifier_header *header = part->headers[at];
	struct search *search = &part->searches[at];
	const struct record *record = &part->classifier->records[search->link];

	if (record->order >= search->order)
		return NO_LINK;
	if (record->order >= part->from &&
		record_belongs(record, part->belongs, part->belongs_mask) &&
		record_matches(part->classifier, record, word_of_addresses(header),
			word_of_fields(header), header)) {
		part->found[at] = search->link;
		search->order = record->order;
		return NO_LINK;
	}
	return __atomic_load_n(&record->next, __ATOMIC_ACQUIRE);
}

/* One rule of each header's chain; those with more rules are kept, and these are fetched. */
static inline unsigned walk_on(const struct part *part, uint8_t *walking, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned at = walking[i];
		struct search *search = &part->searches[at];

		search->link = compare(part, at);
		if (unlikely(search->link == NO_LINK && search->shared != NO_LINK)) {
			search->link = search->shared;
			search->shared = NO_LINK;
		}
		if (search->link == NO_LINK)
			continue;
		rte_prefetch0(&part->classifier->records[search->link]);
		walking[kept++] = (uint8_t)at;
	}
	return kept;
}

static inline __attribute__((always_inline)) void search_part(
	const struct part *part, unsigned classes)
{
	struct rows rows[CLASSIFIER_BURST];
	uint8_t active[CLASSIFIER_BURST], walking[CLASSIFIER_BURST];
	struct known known;
	struct bits unsorted = bits_load(&part->space->unsorted);
	unsigned n = part->n;

	know(&known, part->space);
	for (unsigned i = 0; i < n; i++)
		find_rows(part, part->headers[part->which[i]], &rows[i]);
	for (unsigned i = 0; i < n; i++)
		filter(part, &known, &rows[i], classes, &part->searches[part->which[i]]);
	memcpy(active, part->which, sizeof(active));
	while ((n = begin_round(part, &unsorted, active, n)) > 0) {
		unsigned n_walking = fetch_first(part, active, n, walking);

		while (n_walking > 0)
			n_walking = walk_on(part, walking, n_walking);
	}
}

static inline void search_v4(const struct part *part)
{
#ifdef CLASSIFIER_HAS_LANES
	SIMD_SYMBOL(classifier_search_lanes)(part);
#else
	search_part(part, CLASSES_V4);
#endif
}

static void search_space(struct part *part, enum space_kind kind)
{
	uint32_t number = part->group * N_SPACES + kind;

	part->space = &part->classifier->spaces[number];
	part->salt = space_salt(part->classifier, number);
	part->kind = kind;
	struct bits in_use = bits_load(&part->space->in_use);

	if (part->n == 0 || (in_use.word[0] | in_use.word[1]) == 0)
		return;
	if (kind == SPACE_V4)
		search_v4(part);
	else if (kind == SPACE_V6)
		search_part(part, CLASSES_V6);
	else
		search_part(part, 1);
}

#if SIMD_LEVEL == SIMD_LEVEL_PORTABLE
void SIMD_SYMBOL(classifier_walk_behind)(const struct classifier *classifier, unsigned list,
	uint32_t group, uint64_t from, const struct classifier_header *header, uint32_t *found)
{
	struct search search = {.order = UINT64_MAX};
	struct part part = {.classifier = classifier,
		.group = group,
		.belongs = belongs_to(group),
		.belongs_mask = belonging_of(list),
		.from = from,
		.headers = &header,
		.searches = &search,
		.found = found,
		.n = 1};

	*found = NO_LINK;
	if (header->version == 4)
		search_space(&part, SPACE_V4);
	else if (header->version == 6)
		search_space(&part, SPACE_V6);
	search_space(&part, SPACE_ANY);
}
#endif

void SIMD_SYMBOL(classifier_walk)(const struct classifier *classifier, unsigned list,
	uint32_t group, const struct classifier_header *const *headers, uint32_t *found, unsigned n)
{
	struct search searches[CLASSIFIER_BURST];
	struct part v4 = {.classifier = classifier,
		.group = group,
		.belongs = belongs_to(group),
		.belongs_mask = belonging_of(list),
		.headers = headers,
		.searches = searches,
		.found = found};
	struct part v6 = v4;
	unsigned n_v4 = 0, n_v6 = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t version = headers[i]->version;

		found[i] = NO_LINK;
		searches[i].order = UINT64_MAX;
		v4.which[n_v4] = v6.which[n_v6] = (uint8_t)i;
		n_v4 += version == 4;
		n_v6 += version == 6;
	}
	v4.n = n_v4;
	v6.n = n_v6;
	search_space(&v4, SPACE_V4);
	search_space(&v6, SPACE_V6);
	v4.n = n;
	for (unsigned i = 0; i < n; i++)
		v4.which[i] = (uint8_t)i;
	search_space(&v4, SPACE_ANY);
}
