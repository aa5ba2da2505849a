/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The steps of a look-up (struct flow_look_up), for what is compiled once per SIMD level and does other
 * work in between: find_hash() or find_fetch() for each key, find_candidates(), find_confirm() for each key.
 *
 * Prefetches are DPDK's and not the compiler's: gcc takes a function that does nothing but
 * __builtin_prefetch() for one without effect, and leaves its calls out.
 */

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "flow/fetch.h"
#include "flow/place.h"
#include "flow/table.h"

/* Hashes and places are made of four keys at a time where there are vectors of that size, and AES rounds. */
#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX2
#define FIND_FOUR
#endif

/* `table` is best a copy of its own, so that what is stored here is not taken for a change to it. */
static inline __attribute__((always_inline)) void find_fetch(
	const struct flow_table *table, struct flow_look_up *up, unsigned i, uint64_t hash)
{
	uint32_t number = place_number(table, hash);

	up->hash[i] = hash;
	up->home[i] = &table->lines[number];
	up->group[i] = &table->records[(size_t)place_group(table, number) * table->group_records];
	rte_prefetch0(up->home[i]);
}

#ifdef FIND_FOUR

/* find_fetch() for four keys whose hashes are to be made. */
static inline __attribute__((always_inline)) void find_hash_four(const struct flow_table *table,
	const struct hash_aes_four *aes, struct flow_look_up *up, unsigned i)
{
	__m256i hash = hash_keys_aes(aes, &up->key[i]);
	__m256i number = _mm256_srli_epi64(
		_mm256_mul_epu32(_mm256_srli_epi64(hash, 32), _mm256_set1_epi64x(table->n_lines)),
		32);
	__m256i group = _mm256_srli_epi64(
		_mm256_mul_epu32(number, _mm256_set1_epi64x(table->group_share)), PLACE_SHARE_BITS);
	const __m256i group_bytes =
		_mm256_set1_epi64x(table->group_records * (long long)sizeof(struct flow_record));

	_mm256_storeu_si256((__m256i *)&up->hash[i], hash);
	_mm256_storeu_si256((__m256i *)&up->home[i],
		_mm256_add_epi64(_mm256_slli_epi64(number, 6),
			_mm256_set1_epi64x((long long)(uintptr_t)table->lines)));
	_mm256_storeu_si256((__m256i *)&up->group[i],
		_mm256_add_epi64(_mm256_mul_epu32(group, group_bytes),
			_mm256_set1_epi64x((long long)(uintptr_t)table->records)));
	for (unsigned j = 0; j < 4; j++)
		rte_prefetch0(up->home[i + j]);
}

#endif

/* The hashes of keys, four at a time where that can be done. */
static inline __attribute__((always_inline)) void find_hashes(const struct flow_table *table,
	const struct flow_key *const *keys, uint64_t *hashes, unsigned n)
{
	const hash_ready ready = hash_ready_of(table->secret);
	unsigned i = 0;

#ifdef FIND_FOUR
	const struct hash_aes_four four = hash_aes_four_of(&ready);

	for (; i + 4 <= n; i += 4)
		_mm256_storeu_si256((__m256i *)&hashes[i], hash_keys_aes(&four, &keys[i]));
#endif
	for (; i < n; i++)
		hashes[i] = hash_ready_key(&ready, keys[i]);
}

/* The first step for the keys: their hashes, and find_fetch() for each. */
static inline __attribute__((always_inline)) void find_hash(
	const struct flow_table *table, struct flow_look_up *up)
{
	const struct flow_table at = *table;
	const hash_ready ready = hash_ready_of(table->secret);
	unsigned i = 0;

#ifdef FIND_FOUR
	const struct hash_aes_four four = hash_aes_four_of(&ready);

	for (; i + 4 <= up->n; i += 4)
		find_hash_four(&at, &four, up, i);
#endif
	for (; i < up->n; i++)
		find_fetch(&at, up, i, hash_ready_key(&ready, up->key[i]));
}

/* The record of the first of the slots found, which is fetched. */
static inline __attribute__((always_inline)) struct flow_record *find_first(
	const struct flow_line *line, struct flow_record *group, uint32_t found, bool both,
	bool far)
{
	struct flow_record *record = &group[line->record[line_first(found)]];

	fetch_record(record, both, far);
	return record;
}

/* Keys that are not at home but may be elsewhere: few. */
static __attribute__((noinline)) void find_elsewhere(const struct flow_table *table,
	struct flow_look_up *up, uint64_t both, uint64_t elsewhere, bool far)
{
	for (uint64_t left = elsewhere; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		struct place home = place_home(table, up->hash[i]);

		up->home[i] = place_line(table, place_other(table, home, line_tag(up->hash[i])));
		rte_prefetch0(up->home[i]);
	}
	for (uint64_t left = elsewhere; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint32_t found = line_match(up->home[i], line_tag(up->hash[i]));

		if (found != 0)
			up->record[i] =
				find_first(up->home[i], up->group[i], found, both >> i & 1, far);
	}
}

/*
 * The records that the keys may be: those at home, and of the others those in the other line, which is
 * fetched for all who need it before any of them looks. `both` has a bit for each key of whose record
 * the second line is wanted too. `far`: of a table that does not lie in the nearest caches, and whoever accounts
 * them calls fetch_rest().
 */
static inline __attribute__((always_inline)) void find_candidates(
	const struct flow_table *table, struct flow_look_up *up, uint64_t both, bool far)
{
	uint64_t elsewhere = 0;

/* rounds few enough for the processor to foresee the last one */
#ifndef __clang__
#pragma GCC unroll 4
#endif
	for (unsigned i = 0; i < up->n; i++) {
		const struct flow_line *home = up->home[i];
		uint16_t tag = line_tag(up->hash[i]);
		uint32_t found = line_match(home, tag);

		if (__builtin_expect(found == 0, 0)) {
			up->record[i] = NULL;
			/* nothing is away from most lines */
			if (unlikely(home->away != 0))
				elsewhere |= (uint64_t)line_has_away(home, tag) << i;
		} else {
			up->record[i] = find_first(home, up->group[i], found, both >> i & 1, far);
		}
	}
	if (__builtin_expect(elsewhere != 0, 0))
		find_elsewhere(table, up, both, elsewhere, far);
}

/* Where the first tag that fits was a stranger's, or strays have to be asked. */
static __attribute__((noinline)) struct flow_record *find_again(
	const struct flow_table *table, const struct flow_look_up *up, unsigned i)
{
	uint32_t position = flow_table_find(table, up->key[i], up->hash[i]);

	return position == FLOW_NONE ? NULL : flow_table_record(table, position);
}

/* The key's record, or NULL. */
static inline __attribute__((always_inline)) struct flow_record *find_confirm(
	const struct flow_table *table, const struct flow_look_up *up, unsigned i)
{
	struct flow_record *record = up->record[i];

	if (likely(record != NULL)) {
		if (likely(flow_key_equal(&record->key, up->key[i])))
			return record;
	} else if (table->n_strays == 0) {
		return NULL;
	}
	return find_again(table, up, i);
}
