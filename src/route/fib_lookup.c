/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look-ups of bursts, compiled once per SIMD level. A burst goes down level by level: all its addresses take a
 * step in their nodes, which are independent loads, and those that have come to a next hop drop out.
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_prefetch.h>

#include "route/fib_private.h"

/* The thread sanitizer does not see that a gathered entry is read before what it leads to. */
#if SIMD_LEVEL >= SIMD_LEVEL_AVX512 && !defined(__SANITIZE_THREAD__)
#define BY_LANES 1
#include <immintrin.h>
#else
#define BY_LANES 0
#endif

#define BURST 64

/* The array that the first bits of an address index. */
struct root {
	const uint32_t *entries;
	unsigned bits;
	bool is_direct;
};

static inline struct root root_of(const struct fib *fib)
{
	if (fib->direct)
		return (struct root){fib->direct, FIB_DIRECT_BITS, true};
	return (struct root){fib->root, FIB_ROOT_BITS, false};
}

static inline const struct fib_node *node_of(const uint8_t *memory, uint32_t entry)
{
	/* the flags are shifted out */
	return (const void *)(memory + (size_t)(uint32_t)(entry << 2) * (ARENA_GRANULE / 4));
}

/* The step of an address whose inverted slot is `shift`. */
static inline uint32_t step(const uint8_t *memory, uint32_t entry, uint64_t shift)
{
	static const uint64_t full = ~UINT64_C(0);
	const struct fib_node *node = node_of(memory, entry);
	/* without a branch, which nobody could foresee */
	uintptr_t mask = (uintptr_t)(intptr_t)((int32_t)(entry << 1) >> 31);
	uintptr_t at = (uintptr_t)&node->starts;
	uint64_t starts = *(const uint64_t *)(at ^ ((at ^ (uintptr_t)&full) & mask));
	unsigned rank = (unsigned)__builtin_popcountll(starts << shift % FIB_SLOTS);

	return fib_load(&node->entry[rank - 1]);
}

/* The rest of the way of one address. */
static inline uint32_t finish(
	const struct fib *fib, struct route_bits bits, uint32_t entry, unsigned depth)
{
	for (; entry & FIB_IS_NODE; depth += FIB_STEP)
		entry = step(fib->arena.memory, entry, ~(uint64_t)fib_slot(bits, depth));
	return entry;
}

#if BY_LANES

/* Sixteen addresses side by side. */
#define LANES 16
#define GROUPS (BURST / LANES)
/* So few addresses are taken one by one. */
#define FEW 12

static inline __m512i popcount(__m512i words)
{
	const __m512i bits = _mm512_broadcast_i32x4(
		_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
	const __m512i low = _mm512_set1_epi8(0xf);
	__m512i count = _mm512_add_epi8(_mm512_shuffle_epi8(bits, _mm512_and_si512(words, low)),
		_mm512_shuffle_epi8(bits, _mm512_and_si512(_mm512_srli_epi32(words, 4), low)));

	return _mm512_sad_epu8(count, _mm512_setzero_si512());
}

/* Counts the run that each of eight addresses' slots lies in, from 1; the answer is 1 more than the slot where no bitmap is read. */
static inline __m256i ranks(
	const uint8_t *memory, __m256i reference, __m256i inverted, __mmask8 partial)
{
	__m512i starts = _mm512_mask_i32gather_epi64(
		_mm512_set1_epi64(-1), partial, reference, memory, ARENA_GRANULE);

	starts = _mm512_sllv_epi64(starts, _mm512_cvtepu32_epi64(inverted));
	return _mm512_cvtepi64_epi32(popcount(starts));
}

/* The step of those in `active`. */
static inline __m512i step_lanes(
	const uint8_t *memory, __m512i entry, __m512i inverted, __mmask16 active)
{
	__m512i reference = _mm512_and_si512(entry, _mm512_set1_epi32(FIB_REFERENCE));
	__mmask16 partial =
		_mm512_mask_testn_epi32_mask(active, entry, _mm512_set1_epi32(FIB_IS_FULL));
	__m256i low = ranks(memory, _mm512_castsi512_si256(reference),
		_mm512_castsi512_si256(inverted), (__mmask8)partial);
	__m256i high = ranks(memory, _mm512_extracti64x4_epi64(reference, 1),
		_mm512_extracti64x4_epi64(inverted, 1), (__mmask8)(partial >> 8));
	__m512i rank = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
	/* in words: twice the reference, and the last word of the head is what rank 0 would be */
	__m512i word = _mm512_add_epi32(_mm512_slli_epi32(reference, 1),
		_mm512_add_epi32(rank, _mm512_set1_epi32(sizeof(struct fib_node) / 4 - 1)));

	return _mm512_mask_i32gather_epi32(entry, active, word, memory, 4);
}

/*
 * The addresses of a burst, those in `active` on their way. IPv4's lie in `low`, 32 bits each; IPv6's in both
 * halves, eight each, of which the first 64 bits are looked at until bit 60.
 */
struct lanes {
	__m512i low[GROUPS], high[GROUPS];
	__m512i entry[GROUPS];
	__mmask16 active[GROUPS];
	unsigned n_groups;
	bool is_v4; /* known when the code is compiled */
};

static inline __mmask16 lanes_there(unsigned n, unsigned group)
{
	return (__mmask16)_bzhi_u32(UINT16_MAX, n - group * LANES);
}

/* `n` bits of a group's addresses from `depth` on; behind the end they are 0. */
static inline __m512i bits_at(const struct lanes *lanes, unsigned group, unsigned depth, unsigned n)
{
	__m128i left = _mm_cvtsi32_si128((int)depth);

	if (lanes->is_v4)
		return _mm512_srl_epi32(_mm512_sll_epi32(lanes->low[group], left),
			_mm_cvtsi32_si128((int)(32 - n)));
	__m128i right = _mm_cvtsi32_si128((int)(64 - n));
	__m512i low = _mm512_srl_epi64(_mm512_sll_epi64(lanes->low[group], left), right);
	__m512i high = _mm512_srl_epi64(_mm512_sll_epi64(lanes->high[group], left), right);

	return _mm512_inserti64x4(
		_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low)), _mm512_cvtepi64_epi32(high), 1);
}

static inline void fetch_words(const void *memory, __m512i word)
{
	uint32_t words[LANES] __attribute__((aligned(64)));

	_mm512_store_si512(words, word);
	for (unsigned i = 0; i < LANES; i++)
		rte_prefetch0((const uint32_t *)memory + words[i]);
}

/* Asks for what the next step reads first: the bitmap, or the entry of a full node. */
static inline void fetch_lanes(const uint8_t *memory, __m512i entry, __m512i slot, __mmask16 active)
{
	__mmask16 full = _mm512_mask_test_epi32_mask(active, entry, _mm512_set1_epi32(FIB_IS_FULL));
	__m512i word = _mm512_maskz_slli_epi32(active, entry, 1);

	/* the flag of full nodes is where a word's number has its sign */
	word = _mm512_and_si512(word, _mm512_set1_epi32(INT32_MAX));
	word = _mm512_mask_add_epi32(word, full, word,
		_mm512_add_epi32(slot, _mm512_set1_epi32(sizeof(struct fib_node) / 4)));
	fetch_words(memory, word);
}

/* The entries of the root. */
static inline void begin_lanes(const struct root *root, struct lanes *lanes, unsigned n)
{
	__m512i index[GROUPS];

	for (unsigned i = 0; i < lanes->n_groups; i++) {
		index[i] = bits_at(lanes, i, 0, root->bits);
		/* a single read needs no asking */
		if (!root->is_direct)
			fetch_words(root->entries, index[i]);
	}
	for (unsigned i = 0; i < lanes->n_groups; i++) {
		lanes->entry[i] = _mm512_mask_i32gather_epi32(
			_mm512_setzero_si512(), lanes_there(n, i), index[i], root->entries, 4);
		lanes->active[i] = _mm512_movepi32_mask(lanes->entry[i]);
	}
}

static inline unsigned count_active(const struct lanes *lanes)
{
	unsigned n = 0;

	for (unsigned i = 0; i < lanes->n_groups; i++)
		n += (unsigned)__builtin_popcount(lanes->active[i]);
	return n;
}

/* The steps up to `last`, or until few are left. Returns the depth of the next one. */
static inline unsigned walk_lanes(
	const struct fib *fib, struct lanes *lanes, unsigned first, unsigned last)
{
	const uint8_t *memory = fib->arena.memory;
	unsigned depth = first;

	for (; depth < last && count_active(lanes) > FEW; depth += FIB_STEP) {
		__m512i slot[GROUPS];

		for (unsigned i = 0; i < lanes->n_groups; i++) {
			slot[i] = bits_at(lanes, i, depth, FIB_STEP);
			fetch_lanes(memory, lanes->entry[i], slot[i], lanes->active[i]);
		}
		for (unsigned i = 0; i < lanes->n_groups; i++) {
			lanes->entry[i] = step_lanes(memory, lanes->entry[i],
				_mm512_sub_epi32(_mm512_set1_epi32(FIB_SLOTS - 1), slot[i]),
				lanes->active[i]);
			lanes->active[i] = _mm512_movepi32_mask(lanes->entry[i]);
		}
	}
	return depth;
}

static inline void end_lanes(const struct lanes *lanes, uint32_t *next_hops, unsigned n)
{
	for (unsigned i = 0; i < lanes->n_groups; i++)
		_mm512_mask_storeu_epi32(next_hops + i * LANES, lanes_there(n, i), lanes->entry[i]);
}

static void burst4(
	const struct fib *fib, const uint32_t *addresses, uint32_t *next_hops, unsigned n)
{
	struct lanes lanes = {.n_groups = (n + LANES - 1) / LANES, .is_v4 = true};

	for (unsigned i = 0; i < lanes.n_groups; i++)
		lanes.low[i] = _mm512_maskz_loadu_epi32(lanes_there(n, i), addresses + i * LANES);
	const struct root root = root_of(fib);

	begin_lanes(&root, &lanes, n);
	unsigned depth = walk_lanes(fib, &lanes, root.bits, 32);

	end_lanes(&lanes, next_hops, n);
	for (unsigned i = 0; i < lanes.n_groups; i++) {
		for (unsigned left = lanes.active[i]; left != 0; left &= left - 1) {
			unsigned at = i * LANES + (unsigned)__builtin_ctz(left);
			struct route_bits bits = {.high = (uint64_t)addresses[at] << 32};

			next_hops[at] = finish(fib, bits, next_hops[at], depth);
		}
	}
}

/* How many of eight addresses from `at` on there are. */
static inline unsigned lanes_eight(unsigned n, unsigned at)
{
	return n <= at ? 0 : n - at < LANES / 2 ? n - at : LANES / 2;
}

/* The first halves of up to eight addresses, as numbers. */
static inline __m512i load_eight(const uint8_t (*addresses)[16], unsigned n)
{
	const __m512i halves = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
	const __m512i turn = _mm512_broadcast_i32x4(
		_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
	uint16_t there = (uint16_t)((1u << 2 * n) - 1);
	__m512i first = _mm512_maskz_loadu_epi64((__mmask8)there, addresses);
	__m512i second =
		_mm512_maskz_loadu_epi64((__mmask8)(there >> 8), (const uint8_t *)addresses + 64);

	return _mm512_shuffle_epi8(_mm512_permutex2var_epi64(first, halves, second), turn);
}

static void burst6(
	const struct fib *fib, const uint8_t (*addresses)[16], uint32_t *next_hops, unsigned n)
{
	struct lanes lanes = {.n_groups = (n + LANES - 1) / LANES};

	for (unsigned i = 0; i < lanes.n_groups; i++) {
		lanes.low[i] = load_eight(addresses + i * LANES, lanes_eight(n, i * LANES));
		lanes.high[i] = load_eight(
			addresses + i * LANES + LANES / 2, lanes_eight(n, i * LANES + LANES / 2));
	}
	const struct root root = root_of(fib);

	begin_lanes(&root, &lanes, n);
	unsigned depth = walk_lanes(fib, &lanes, root.bits, 60);

	end_lanes(&lanes, next_hops, n);
	for (unsigned i = 0; i < lanes.n_groups; i++) {
		for (unsigned left = lanes.active[i]; left != 0; left &= left - 1) {
			unsigned at = i * LANES + (unsigned)__builtin_ctz(left);

			next_hops[at] =
				finish(fib, route_bits_of(addresses[at], 6), next_hops[at], depth);
		}
	}
}

#else

/* Inverted, so that a bitmap shifted left by the inverted slot ends at that slot. */
struct lanes {
	uint64_t high[BURST];
	uint32_t entry[BURST];
	uint8_t active[BURST];
};

/* Asks for what the next step of the active addresses reads first. */
static inline void fetch(
	const struct fib *fib, const struct lanes *lanes, unsigned n, unsigned depth)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned lane = lanes->active[i];
		uint32_t entry = lanes->entry[lane];
		uint64_t slot = ~lanes->high[lane] << depth >> (64 - FIB_STEP);
		uint64_t mask = (uint64_t)(int64_t)((int32_t)(entry << 1) >> 31);

		rte_prefetch0((const uint8_t *)node_of(fib->arena.memory, entry) +
			      ((slot * 4 + 16) & mask));
	}
}

/* The entries of the root. Returns how many addresses go on, which `active` lists. */
static inline unsigned begin(
	const struct root *root, const struct fib *fib, struct lanes *lanes, unsigned n)
{
	unsigned active = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&root->entries[~lanes->high[i] >> (64 - root->bits)]);
	for (unsigned i = 0; i < n; i++) {
		uint32_t entry = fib_load(&root->entries[~lanes->high[i] >> (64 - root->bits)]);

		lanes->entry[i] = entry;
		lanes->active[active] = (uint8_t)i;
		active += (entry & FIB_IS_NODE) != 0;
	}
	fetch(fib, lanes, active, root->bits);
	return active;
}

/* One level for the `n` addresses that are active. Returns how many go on. */
static inline unsigned step_all(
	const struct fib *fib, struct lanes *lanes, unsigned n, unsigned depth)
{
	const uint8_t *memory = fib->arena.memory;
	unsigned active = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned lane = lanes->active[i];
		uint32_t entry = step(
			memory, lanes->entry[lane], lanes->high[lane] >> (64 - FIB_STEP - depth));

		lanes->entry[lane] = entry;
		lanes->active[active] = (uint8_t)lane;
		active += (entry & FIB_IS_NODE) != 0;
	}
	fetch(fib, lanes, active, depth + FIB_STEP);
	return active;
}

static void burst4(
	const struct fib *fib, const uint32_t *addresses, uint32_t *next_hops, unsigned n)
{
	struct lanes lanes;

	for (unsigned i = 0; i < n; i++)
		lanes.high[i] = (uint64_t)~addresses[i] << 32 | UINT32_MAX;

	const struct root root = root_of(fib);
	unsigned active = begin(&root, fib, &lanes, n);

	for (unsigned depth = root.bits; active > 0; depth += FIB_STEP)
		active = step_all(fib, &lanes, active, depth);
	memcpy(next_hops, lanes.entry, n * sizeof(*next_hops));
}

static void burst6(
	const struct fib *fib, const uint8_t (*addresses)[16], uint32_t *next_hops, unsigned n)
{
	struct lanes lanes;

	for (unsigned i = 0; i < n; i++) {
		uint64_t high;

		memcpy(&high, addresses[i], sizeof(high));
		lanes.high[i] = ~rte_be_to_cpu_64(high);
	}
	const struct root root = root_of(fib);
	unsigned active = begin(&root, fib, &lanes, n);

	for (unsigned depth = root.bits; active > 0 && depth < 60; depth += FIB_STEP)
		active = step_all(fib, &lanes, active, depth);
	/* behind bit 60 one by one: few routes are that long */
	for (unsigned i = 0; i < active; i++) {
		unsigned lane = lanes.active[i];

		lanes.entry[lane] =
			finish(fib, route_bits_of(addresses[lane], 6), lanes.entry[lane], 60);
	}
	memcpy(next_hops, lanes.entry, n * sizeof(*next_hops));
}

#endif

void SIMD_SYMBOL(fib_burst4)(
	const struct fib *fib, const uint32_t *addresses, uint32_t *next_hops, unsigned n)
{
	for (unsigned at = 0; at < n; at += BURST)
		burst4(fib, addresses + at, next_hops + at, n - at < BURST ? n - at : BURST);
}

void SIMD_SYMBOL(fib_burst6)(
	const struct fib *fib, const uint8_t (*addresses)[16], uint32_t *next_hops, unsigned n)
{
	for (unsigned at = 0; at < n; at += BURST)
		burst6(fib, addresses + at, next_hops + at, n - at < BURST ? n - at : BURST);
}
