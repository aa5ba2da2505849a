/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The look-up of IPv4's headers with AVX-512: the same steps as in classifier_find.c, each for eight headers at once.
 * What a step knows of a header lies in lanes: arrays with a place for each header. Of the memory that it reads, eight
 * tuples or eight rules are loaded whole and turned, so that a vector has one field of all. There are no branches that
 * would go either way. After each round the lanes whose search goes on are moved together.
 */
#include "rule/classifier_walk.h"

#ifdef CLASSIFIER_HAS_LANES

#include <immintrin.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#define LANES 8u
#define BURST CLASSIFIER_BURST
#define V4_ROWS (CLASSES_V4 - 1)
/* With no more buckets than this all that is read lies in the second cache, and is not fetched ahead. */
#define NEAR_BUCKETS 1024u
#define PORT_FACTOR 0x9e3779b97f4a7c15ll /* as in hash_key_v4() */

struct lanes {
	uint64_t addresses[BURST], fields[BURST], ports[BURST]; /* words of the header */
	uint64_t low[BURST], high[BURST];			/* tuples that are left */
	uint64_t order[BURST];					/* of what was found */
	uint64_t place[BURST];					/* of the header in its part */
	uint32_t bucket[BURST], tag[BURST];			/* of the key; a bucket in bytes */
	uint32_t link[BURST], shared[BURST];			/* as in struct search */
	uint32_t row[V4_ROWS][2 * BURST], port_row[2 * BURST];	/* in bytes; source, destination */
	/* by place, what was found */
	uint64_t found_order[BURST];
	uint32_t found[BURST];
} __attribute__((aligned(64)));

/* Eight words of each field of what was loaded. */
struct turned {
	__m512i field[LANES];
};

static inline __m512i all_lanes(uint64_t word)
{
	return _mm512_set1_epi64((long long)word);
}

static inline __m512i all_pairs(uint32_t low, uint32_t high)
{
	return all_lanes((uint64_t)high << 32 | low);
}

/* Those of eight lanes that are among the first `n`. */
static inline __mmask8 lanes_below(unsigned n)
{
	return (__mmask8)(n >= LANES ? UINT8_MAX : (1u << n) - 1);
}

/* Rows. */

static inline void load_headers(const struct part *part, struct lanes *lanes, unsigned padded)
{
	for (unsigned i = 0; i < part->n; i++) {
		const struct classifier_header *header = part->headers[part->which[i]];

		lanes->addresses[i] = word_of_addresses(header);
		lanes->fields[i] = word_of_fields(header);
		lanes->ports[i] = word_of_ports(header);
	}
	for (unsigned i = part->n; i < padded; i++)
		lanes->addresses[i] = lanes->fields[i] = lanes->ports[i] = 0;
	for (unsigned i = 0; i < padded; i++)
		lanes->place[i] = i;
	for (unsigned i = 0; i < padded; i++)
		lanes->order[i] = UINT64_MAX;
}

/* Each port as a double word. */
static inline __m512i spread_ports(__m512i ports)
{
	const __m512i mask = all_lanes(UINT16_MAX);
	__m512i dst = _mm512_and_si512(_mm512_srli_epi64(ports, 16), mask);

	return _mm512_or_si512(_mm512_and_si512(ports, mask), _mm512_slli_epi64(dst, 32));
}

static inline __m512i rows_of(
	__m512i words, __m512i factor, __m512i salt, unsigned shift, __m512i base)
{
	__m512i row = _mm512_add_epi32(_mm512_mullo_epi32(words, factor), salt);

	row = _mm512_add_epi32(_mm512_srl_epi32(row, _mm_cvtsi32_si128((int)shift)), base);
	return _mm512_slli_epi32(row, 4);
}

static_assert(sizeof(struct bits) == 1 << 4, "rows in bytes");

static inline void hash_rows(const struct part *part, struct lanes *lanes, unsigned padded)
{
	const struct classifier *of = part->classifier;
	const __m512i salt = _mm512_set1_epi32((int)part->salt);
	const __m512i base = all_pairs(0, of->n_rows), port_base = all_pairs(0, of->n_port_rows);
	const __m512i port_factor = all_pairs(of->port_factor[0], of->port_factor[1]);
	const unsigned shift = of->row_shift, port_shift = of->port_shift;
	__m512i mask[V4_ROWS], factor[V4_ROWS];

	for (unsigned i = 0; i < V4_ROWS; i++) {
		mask[i] = all_pairs(of->row_mask[i], of->row_mask[i + V4_ROWS]);
		factor[i] = all_pairs(of->row_factor[i], of->row_factor[i + V4_ROWS]);
	}
	for (unsigned at = 0; at < padded; at += LANES) {
		__m512i words = _mm512_load_si512(lanes->addresses + at);
		__m512i ports = spread_ports(_mm512_load_si512(lanes->ports + at));

		for (unsigned i = 0; i < V4_ROWS; i++)
			_mm512_store_si512(
				lanes->row[i] + 2 * at, rows_of(_mm512_and_si512(words, mask[i]),
								factor[i], salt, shift, base));
		_mm512_store_si512(lanes->port_row + 2 * at,
			rows_of(ports, port_factor, salt, port_shift, port_base));
	}
}

static inline const __m128i *row_at(const struct bits *rows, uint32_t offset)
{
	return (const __m128i *)((const char *)rows + offset);
}

static inline void fetch_rows(const struct part *part, const struct lanes *lanes)
{
	for (unsigned i = 0; i < 2 * part->n; i++) {
		for (unsigned class = 0; class < V4_ROWS; class ++)
			rte_prefetch0(row_at(part->classifier->rows, lanes->row[class][i]));
		rte_prefetch0(row_at(part->classifier->port_rows, lanes->port_row[i]));
	}
}

/* What `sum` has, and what both the row and `wanted` have. */
static inline __m128i or_row(__m128i sum, both wanted, const __m128i *row)
{
	return _mm_ternarylogic_epi64(sum, (__m128i)wanted, *row, 0xf8);
}

/* What `sum` has and the row or `anyway`, too. */
static inline __m128i and_row(__m128i sum, both anyway, const __m128i *row)
{
	return _mm_ternarylogic_epi64(sum, (__m128i)anyway, *row, 0xe0);
}

static inline void filter_lanes(
	const struct part *part, const struct known *known, struct lanes *lanes, unsigned padded)
{
	const struct bits *rows = part->classifier->rows, *port_rows = part->classifier->port_rows;

	for (unsigned i = 0; i < part->n; i++) {
		__m128i src = (__m128i)known->src[0], dst = (__m128i)known->dst[0];

		for (unsigned class = 1; class < CLASSES_V4; class ++) {
			const uint32_t *row = lanes->row[class - 1] + (size_t)2 * i;

			src = or_row(src, known->src[class], row_at(rows, row[0]));
			dst = or_row(dst, known->dst[class], row_at(rows, row[1]));
		}
		__m128i left = _mm_and_si128(src, dst);
		const uint32_t *port = lanes->port_row + (size_t)2 * i;

		left = and_row(left, known->no_src_port, row_at(port_rows, port[0]));
		left = and_row(left, known->no_dst_port, row_at(port_rows, port[1]));
		_mm_storeu_si64(&lanes->low[i], left);
		_mm_storeu_si64(&lanes->high[i], _mm_unpackhi_epi64(left, left));
	}
	for (unsigned i = part->n; i < padded; i++)
		lanes->low[i] = lanes->high[i] = 0;
}

/* Keys. */

/* As hash_fold(). */
static inline __m512i fold_lanes(__m512i a, __m512i b)
{
	const __m512i half = all_lanes(UINT32_MAX);
	__m512i a_high = _mm512_srli_epi64(a, 32), b_high = _mm512_srli_epi64(b, 32);
	__m512i low = _mm512_mul_epu32(a, b);
	__m512i middle = _mm512_add_epi64(_mm512_mul_epu32(a_high, b), _mm512_srli_epi64(low, 32));
	__m512i other =
		_mm512_add_epi64(_mm512_mul_epu32(a, b_high), _mm512_and_si512(middle, half));
	__m512i high = _mm512_add_epi64(_mm512_mul_epu32(a_high, b_high),
		_mm512_add_epi64(_mm512_srli_epi64(middle, 32), _mm512_srli_epi64(other, 32)));

	/* of the low word the upper half is that of `other` */
	low = _mm512_mask_mov_epi32(low, 0xaaaa, _mm512_slli_epi64(other, 32));
	return _mm512_xor_si512(low, high);
}

/* The number of the lowest bit, or TUPLES; `in_high`: the lanes whose low word has none. */
static inline __m512i first_left(__m512i low, __m512i high, __mmask8 *in_high)
{
	*in_high = _mm512_testn_epi64_mask(low, low);
	__m512i word = _mm512_mask_mov_epi64(low, *in_high, high);
	__m512i bit = _mm512_and_si512(word, _mm512_sub_epi64(_mm512_setzero_si512(), word));
	__m512i first = _mm512_sub_epi64(all_lanes(63), _mm512_lzcnt_epi64(bit));

	first = _mm512_mask_add_epi64(first, *in_high, first, all_lanes(64));
	return _mm512_mask_mov_epi64(first, _mm512_testn_epi64_mask(word, word), all_lanes(TUPLES));
}

static_assert(sizeof(struct tuple) == 32, "half a vector");

static inline __m512i two_tuples(const struct tuple *a, const struct tuple *b)
{
	__m256i low = _mm256_loadu_si256((const __m256i *)a);

	return _mm512_inserti64x4(
		_mm512_castsi256_si512(low), _mm256_loadu_si256((const __m256i *)b), 1);
}

/* The first four fields are the tuples' words. */
static inline struct turned load_tuples(const struct tuple *tuples, const uint64_t number[LANES])
{
	const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
	const __m512i second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
	__m512i a = two_tuples(&tuples[number[0]], &tuples[number[4]]);
	__m512i b = two_tuples(&tuples[number[1]], &tuples[number[5]]);
	__m512i c = two_tuples(&tuples[number[2]], &tuples[number[6]]);
	__m512i d = two_tuples(&tuples[number[3]], &tuples[number[7]]);
	__m512i ab_even = _mm512_unpacklo_epi64(a, b), ab_odd = _mm512_unpackhi_epi64(a, b);
	__m512i cd_even = _mm512_unpacklo_epi64(c, d), cd_odd = _mm512_unpackhi_epi64(c, d);

	return (struct turned){{
		_mm512_permutex2var_epi64(ab_even, first, cd_even),
		_mm512_permutex2var_epi64(ab_odd, first, cd_odd),
		_mm512_permutex2var_epi64(ab_even, second, cd_even),
		_mm512_permutex2var_epi64(ab_odd, second, cd_odd),
	}};
}

/* As hash_key_v4(). */
static inline __m512i hash_lanes(
	const struct part *part, const struct lanes *lanes, unsigned at, const uint64_t *number)
{
	const struct turned tuple = load_tuples(part->space->tuple, number);
	__m512i addresses =
		_mm512_and_si512(tuple.field[0], _mm512_load_si512(lanes->addresses + at));
	__m512i fields = _mm512_and_si512(tuple.field[1], _mm512_load_si512(lanes->fields + at));
	__m512i ports = _mm512_and_si512(tuple.field[2], _mm512_load_si512(lanes->ports + at));

	fields = _mm512_xor_si512(fields, _mm512_mullo_epi64(ports, all_lanes(PORT_FACTOR)));
	return fold_lanes(_mm512_xor_si512(addresses, tuple.field[3]),
		_mm512_xor_si512(fields, all_lanes(part->classifier->secret[0])));
}

/* Of some lanes, which have tuples that are not in order. A lane without any that can win gets tuple 0, in vain. */
static __attribute__((noinline)) void take_unsorted(const struct space *space, struct lanes *lanes,
	unsigned at, unsigned mask, uint64_t *number)
{
	for (; mask != 0; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask), lane = at + i;
		struct search search = {
			.left = {{lanes->low[lane], lanes->high[lane]}},
			.order = lanes->order[lane],
		};

		number[i] = take_best(space, &search) % TUPLES;
		lanes->low[lane] = search.left.word[0];
		lanes->high[lane] = search.left.word[1];
	}
}

/* The best tuple of eight lanes, out of those left. Lanes that have none get tuple 0, in vain. */
static inline void take_tuples(const struct part *part, const struct bits *unsorted,
	struct lanes *lanes, unsigned at, uint64_t *number)
{
	const __m512i ones = all_lanes(UINT64_MAX);
	__m512i low = _mm512_load_si512(lanes->low + at);
	__m512i high = _mm512_load_si512(lanes->high + at);
	__mmask8 in_high;
	__m512i first = first_left(low, high, &in_high);
	unsigned mixed = _mm512_test_epi64_mask(low, all_lanes(unsorted->word[0])) |
			 _mm512_test_epi64_mask(high, all_lanes(unsorted->word[1]));

	_mm512_store_si512(number, _mm512_and_si512(first, all_lanes(TUPLES - 1)));
	if (unlikely(mixed != 0))
		take_unsorted(part->space, lanes, at, mixed, number);
	__mmask8 sorted = (__mmask8)~mixed;

	_mm512_mask_store_epi64(
		lanes->low + at, sorted, _mm512_and_si512(low, _mm512_add_epi64(low, ones)));
	_mm512_mask_store_epi64(lanes->high + at, sorted & in_high,
		_mm512_and_si512(high, _mm512_add_epi64(high, ones)));
}

static inline void begin_lanes(const struct part *part, const struct bits *unsorted,
	struct lanes *lanes, unsigned n, bool near)
{
	const struct classifier *classifier = part->classifier;
	uint64_t number[LANES] __attribute__((aligned(64)));

	for (unsigned at = 0; at < n; at += LANES) {
		take_tuples(part, unsorted, lanes, at, number);
		__m512i hash = hash_lanes(part, lanes, at, number);
		__m512i bucket = _mm512_srli_epi64(
			_mm512_mul_epu32(hash, all_lanes(classifier->n_buckets)), 32);

		bucket = _mm512_slli_epi64(bucket, 6);
		_mm256_store_si256((__m256i *)(lanes->tag + at),
			_mm512_cvtepi64_epi32(_mm512_srli_epi64(hash, 33)));
		_mm256_store_si256((__m256i *)(lanes->bucket + at), _mm512_cvtepi64_epi32(bucket));
		for (unsigned i = 0; i < LANES && !near; i++)
			rte_prefetch0((const char *)classifier->buckets + lanes->bucket[at + i]);
	}
}

static_assert(sizeof(struct bucket) == 1 << 6, "buckets in bytes");

/* The first rule of each lane's key, or what is in the shared slot. */
static inline void link_lanes(const struct part *part, struct lanes *lanes, unsigned n, bool near)
{
	const struct classifier *classifier = part->classifier;

	for (unsigned i = 0; i < RTE_ALIGN_CEIL(n, LANES); i++) {
		const struct bucket *bucket =
			(const struct bucket *)((const char *)classifier->buckets +
						lanes->bucket[i]);
		unsigned halves = _mm512_cmpeq_epi32_mask(
			_mm512_load_si512(bucket), _mm512_set1_epi32((int)lanes->tag[i]));
		/* of each slot one bit; that of the shared one is always there */
		unsigned slot = (unsigned)__builtin_ctz((halves & 0x2aaa) | 0x8000) / 2;
		uint32_t link = (uint32_t)__atomic_load_n(&bucket->slot[slot], __ATOMIC_ACQUIRE);

		lanes->link[i] = link;
		lanes->shared[i] =
			(uint32_t)__atomic_load_n(&bucket->slot[SHARED], __ATOMIC_ACQUIRE);
		if (!near)
			rte_prefetch0(&classifier->records[link & ~(0u - (link == NO_LINK))]);
	}
}

/* Rules. */

/* Rows of eight words become columns. */
static inline struct turned turn(const __m512i row[LANES])
{
	__m512i pair[LANES], four[LANES];
	struct turned turned;

	for (unsigned i = 0; i < LANES; i += 2) {
		pair[i] = _mm512_unpacklo_epi64(row[i], row[i + 1]);
		pair[i + 1] = _mm512_unpackhi_epi64(row[i], row[i + 1]);
	}
	/* of rows 0 to 3 and 4 to 7, columns i and i + 4, and i + 2 and i + 6 */
	for (unsigned i = 0; i < 2; i++) {
		four[i] = _mm512_shuffle_i64x2(pair[i], pair[i + 2], 0x88);
		four[i + 2] = _mm512_shuffle_i64x2(pair[i], pair[i + 2], 0xdd);
		four[i + 4] = _mm512_shuffle_i64x2(pair[i + 4], pair[i + 6], 0x88);
		four[i + 6] = _mm512_shuffle_i64x2(pair[i + 4], pair[i + 6], 0xdd);
	}
	for (unsigned i = 0; i < 4; i++) {
		turned.field[i] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0x88);
		turned.field[i + 4] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0xdd);
	}
	return turned;
}

/* The words of struct record. */
enum record_word { VALUE_0, VALUE_1, MASK_0, MASK_1, PORTS, ORDER, ID_NEXT, WIDE_GROUP };

static_assert(offsetof(struct record, src_first) == 8 * PORTS &&
		      offsetof(struct record, order) == 8 * ORDER &&
		      offsetof(struct record, next) == 8 * ID_NEXT + 4 &&
		      offsetof(struct record, wide) == 8 * WIDE_GROUP &&
		      offsetof(struct record, group) == 8 * WIDE_GROUP + 4,
	"words of a record");

/* Which lanes' headers a rule matches, but for its wide part. */
static inline __mmask8 matching_lanes(
	const struct part *part, const struct lanes *lanes, unsigned at, const struct turned *rule)
{
	const __m512i group = all_lanes((uint64_t)part->belongs << 32);
	const __m512i *word = rule->field;
	__m512i addresses = _mm512_load_si512(lanes->addresses + at);
	__m512i fields = _mm512_load_si512(lanes->fields + at);
	__m512i ports = spread_ports(_mm512_load_si512(lanes->ports + at));
	/* nothing where a port is no farther from the first than the last is */
	__m512i over = _mm512_subs_epu16(
		_mm512_sub_epi16(ports, word[PORTS]), _mm512_srli_epi32(word[PORTS], 16));

	addresses = _mm512_xor_si512(_mm512_and_si512(addresses, word[MASK_0]), word[VALUE_0]);
	fields = _mm512_xor_si512(_mm512_and_si512(fields, word[MASK_1]), word[VALUE_1]);
	over = _mm512_and_si512(over, all_pairs(UINT16_MAX, UINT16_MAX));
	__m512i other = _mm512_and_si512(
		_mm512_xor_si512(word[WIDE_GROUP], group), all_pairs(0, part->belongs_mask));
	__m512i differs =
		_mm512_or_si512(_mm512_or_si512(addresses, fields), _mm512_or_si512(over, other));

	return _mm512_testn_epi64_mask(differs, differs);
}

/* Which of some lanes' rules match in what is wide, too. */
static __attribute__((noinline)) unsigned match_wide(
	const struct part *part, const struct lanes *lanes, unsigned at, unsigned mask)
{
	unsigned matching = 0;

	for (; mask != 0; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		const struct record *record = &part->classifier->records[lanes->link[at + i]];
		unsigned which = part->which[lanes->place[at + i]];

		if (classifier_wide_matches(part->classifier, record->wide, part->headers[which]))
			matching |= 1u << i;
	}
	return matching;
}

static inline struct turned load_records(const struct classifier *classifier, __m256i links)
{
	uint32_t link[LANES] __attribute__((aligned(32)));
	__m512i row[LANES];

	_mm256_store_si256((__m256i *)link, links);
	for (unsigned i = 0; i < LANES; i++)
		row[i] = _mm512_load_si512(&classifier->records[link[i]]);
	return turn(row);
}

/*
 * Compares the rules that eight lanes are linked to, of this group or another one. Links become those of the next rules
 * to compare, or NO_LINK. Returns the lanes that have one. In lanes that are not there is what others left. Those that are not there have what was left behind.
 */
static inline __mmask8 compare_eight(
	const struct part *part, struct lanes *lanes, unsigned at, __mmask8 there, bool first)
{
	const __m256i no_link = _mm256_set1_epi32(-1);
	__m256i link = _mm256_load_si256((const __m256i *)(lanes->link + at));
	__m256i shared = _mm256_load_si256((const __m256i *)(lanes->shared + at));
	__mmask8 none = (__mmask8)~there | _mm256_cmpeq_epi32_mask(link, no_link);
	const struct turned rule = load_records(
		part->classifier, _mm256_mask_mov_epi32(link, none, _mm256_setzero_si256()));
	__m512i order = _mm512_load_si512(lanes->order + at);
	__mmask8 late = none | _mm512_cmpge_epu64_mask(rule.field[ORDER], order);
	__mmask8 match = (__mmask8)~late & matching_lanes(part, lanes, at, &rule);
	__mmask8 wide = match & (__mmask8)~_mm256_cmpeq_epi32_mask(
					_mm512_cvtepi64_epi32(rule.field[WIDE_GROUP]), no_link);

	if (unlikely(wide != 0))
		match &= (__mmask8)(~wide | match_wide(part, lanes, at, wide));
	__m256i next = _mm512_cvtepi64_epi32(_mm512_srli_epi64(rule.field[ID_NEXT], 32));

	next = _mm256_mask_mov_epi32(next, match | late, no_link);
	/* what came from the shared slot is not searched twice */
	shared = _mm256_mask_mov_epi32(shared, _mm256_cmpeq_epi32_mask(shared, link), no_link);
	__mmask8 ended = _mm256_cmpeq_epi32_mask(next, no_link);

	next = _mm256_mask_mov_epi32(next, ended, shared);
	_mm256_store_si256((__m256i *)(lanes->link + at), next);
	_mm256_store_si256(
		(__m256i *)(lanes->shared + at), _mm256_mask_mov_epi32(shared, ended, no_link));
	order = _mm512_mask_mov_epi64(order, match, rule.field[ORDER]);
	_mm512_store_si512(lanes->order + at, order);
	if (first) {
		_mm512_store_si512(lanes->found_order + at, order);
		_mm256_store_si256((__m256i *)(lanes->found + at),
			_mm256_mask_mov_epi32(no_link, match, link));
	} else {
		__m512i place = _mm512_load_si512(lanes->place + at);

		_mm512_mask_i64scatter_epi64(lanes->found_order, match, place, order, 8);
		_mm512_mask_i64scatter_epi32(lanes->found, match, place, link, 4);
	}
	return there & (__mmask8)~_mm256_cmpeq_epi32_mask(next, no_link);
}

static inline unsigned compare_lanes(
	const struct part *part, struct lanes *lanes, unsigned n, bool first, uint32_t *walking)
{
	__m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	unsigned kept = 0;

	for (unsigned at = 0; at < n; at += LANES) {
		__mmask8 more = compare_eight(part, lanes, at, lanes_below(n - at), first);

		_mm256_storeu_si256(
			(__m256i *)(walking + kept), _mm256_maskz_compress_epi32(more, number));
		kept += (unsigned)__builtin_popcount(more);
		number = _mm256_add_epi32(number, _mm256_set1_epi32(LANES));
	}
	return kept;
}

/*
 * Compares the rest of a lane's rules, one by one: the next link is read before the last rule has been compared, as
 * long as the branches are foreseen.
 */
static inline void walk_lane(const struct part *part, struct lanes *lanes, unsigned at)
{
	const struct classifier *classifier = part->classifier;
	unsigned place = (unsigned)lanes->place[at];
	const struct classifier_header *header = part->headers[part->which[place]];
	uint32_t link = lanes->link[at], shared = lanes->shared[at];

	while (link != NO_LINK) {
		const struct record *record = &classifier->records[link];
		uint32_t next = NO_LINK;

		if (record->order < lanes->order[at]) {
			if (record_belongs(record, part->belongs, part->belongs_mask) &&
				record_matches(classifier, record, lanes->addresses[at],
					lanes->fields[at], header)) {
				lanes->found[place] = link;
				lanes->order[at] = lanes->found_order[place] = record->order;
			} else {
				next = __atomic_load_n(&record->next, __ATOMIC_ACQUIRE);
			}
		}
		link = next;
		if (link == NO_LINK) {
			link = shared;
			shared = NO_LINK;
		}
	}
}

static inline void keep_words(uint64_t *to, __mmask8 mask, __m512i words)
{
	_mm512_storeu_si512(to, _mm512_maskz_compress_epi64(mask, words));
}

/* Moves the lanes together for which some tuple that is left may have a better rule. */
static inline unsigned keep_lanes(const struct part *part, struct lanes *lanes, unsigned n)
{
	uint64_t *const words[] = {lanes->addresses, lanes->fields, lanes->ports, lanes->place};
	unsigned kept = 0;

	for (unsigned at = 0; at < n; at += LANES) {
		__m512i low = _mm512_load_si512(lanes->low + at);
		__m512i high = _mm512_load_si512(lanes->high + at);
		__m512i order = _mm512_load_si512(lanes->order + at);
		__mmask8 in_high;
		__m512i first = first_left(low, high, &in_high);
		__mmask8 some =
			_mm512_mask_cmplt_epu64_mask(lanes_below(n - at), first, all_lanes(TUPLES));
		__m512i best = _mm512_mask_i64gather_epi64(
			order, some, first, part->space->rest_best, sizeof(uint64_t));
		__mmask8 open = _mm512_mask_cmplt_epu64_mask(some, best, order);

		for (unsigned i = 0; i < RTE_DIM(words); i++)
			keep_words(words[i] + kept, open, _mm512_load_si512(words[i] + at));
		keep_words(lanes->low + kept, open, low);
		keep_words(lanes->high + kept, open, high);
		keep_words(lanes->order + kept, open, order);
		kept += (unsigned)__builtin_popcount(open);
	}
	return kept;
}

/* The rounds: each lane's best tuple is searched. */
static inline void search_lanes(
	const struct part *part, const struct bits *unsorted, struct lanes *lanes, bool near)
{
	uint32_t walking[BURST];
	bool first = true;

	for (unsigned n = part->n; n > 0; first = false) {
		begin_lanes(part, unsorted, lanes, n, near);
		link_lanes(part, lanes, n, near);
		unsigned n_walking = first ? compare_lanes(part, lanes, n, true, walking)
					   : compare_lanes(part, lanes, n, false, walking);

		for (unsigned i = 0; i < n_walking; i++)
			walk_lane(part, lanes, walking[i]);
		n = keep_lanes(part, lanes, n);
	}
}

void SIMD_SYMBOL(classifier_search_lanes)(const struct part *part)
{
	struct lanes lanes;
	struct known known;
	struct bits unsorted = bits_load(&part->space->unsorted);
	unsigned padded = RTE_ALIGN_CEIL(part->n, LANES);
	bool near = part->classifier->n_buckets <= NEAR_BUCKETS;

	know(&known, part->space);
	load_headers(part, &lanes, padded);
	hash_rows(part, &lanes, padded);
	if (!near)
		fetch_rows(part, &lanes);
	filter_lanes(part, &known, &lanes, padded);
	if (near)
		search_lanes(part, &unsorted, &lanes, true);
	else
		search_lanes(part, &unsorted, &lanes, false);
	for (unsigned i = 0; i < part->n; i++) {
		part->found[part->which[i]] = lanes.found[i];
		part->searches[part->which[i]].order = lanes.found_order[i];
	}
}

#endif
