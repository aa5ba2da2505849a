/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/table.h"

#include <errno.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/mapping.h"

#define ALL_SLOTS ((UINT32_C(1) << FLOW_LINE_SLOTS) - 1)
#define MAX_BURST 64

/* What 144 bytes a flow leave for lines and records once fragments and wheels are paid. */
#define BYTES_A_FLOW 144
#define OTHER_BYTES (UINT64_C(736) << 10)
#define LINE_BYTES (sizeof(struct flow_line) + FLOW_LINE_SLOTS * sizeof(struct flow_record))

static inline uint32_t home_line(const struct flow_table *table, uint64_t hash)
{
	return (uint32_t)(((hash >> 32) * table->n_lines) >> 32);
}

static inline uint16_t tag_of(uint64_t hash)
{
	uint16_t tag = (uint16_t)hash;

	return tag == 0 ? 1 : tag;
}

static inline uint32_t next_line(const struct flow_table *table, uint32_t line)
{
	return line + 1 == table->n_lines ? 0 : line + 1;
}

/* One bit for each slot whose tag is `tag`. */
static inline uint32_t match(const struct flow_line *line, uint16_t tag)
{
#ifdef __SSE2__
	const __m128i *quarter = (const __m128i *)line;
	const __m128i wanted = _mm_set1_epi16((short)tag);
	__m128i low = _mm_packs_epi16(
		_mm_cmpeq_epi16(quarter[0], wanted), _mm_cmpeq_epi16(quarter[1], wanted));
	__m128i high = _mm_packs_epi16(
		_mm_cmpeq_epi16(quarter[2], wanted), _mm_cmpeq_epi16(quarter[3], wanted));

	return ((uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16) &
	       ALL_SLOTS;
#else
	uint32_t found = 0;

	for (unsigned slot = 0; slot < FLOW_LINE_SLOTS; slot++)
		found |= (uint32_t)(line->tag[slot] == tag) << slot;
	return found;
#endif
}

/*
 * Slots beyond the capacity keep lines from being full: one in 17, less where the promise of 144
 * bytes a flow (with fragments and wheels) allows no more. Tables below 64 k flows make no promise.
 */
static uint32_t lines_for(uint32_t capacity)
{
	uint64_t lines = (capacity + (uint64_t)capacity / 16) / FLOW_LINE_SLOTS + 1;

	if (capacity >= 65536) {
		uint64_t paid = (BYTES_A_FLOW * (uint64_t)capacity - OTHER_BYTES) / LINE_BYTES;

		if (paid < lines)
			lines = paid;
	}
	return (uint32_t)lines;
}

int flow_table_init(struct flow_table *table, uint32_t capacity, const struct hash_secret *secret,
	unsigned mapping)
{
	if (capacity == 0 || capacity > FLOW_MAX_CAPACITY)
		return -EINVAL;
	*table = (struct flow_table){
		.secret = secret,
		.n_lines = lines_for(capacity),
		.capacity = capacity,
	};
	size_t slots = (size_t)table->n_lines * FLOW_LINE_SLOTS;

	table->lines = mapping_create(table->n_lines * sizeof(*table->lines), mapping);
	table->records = mapping_create(slots * sizeof(*table->records), mapping);
	if (table->lines == NULL || table->records == NULL) {
		flow_table_fini(table);
		return -ENOMEM;
	}
	return 0;
}

void flow_table_fini(struct flow_table *table)
{
	size_t slots = (size_t)table->n_lines * FLOW_LINE_SLOTS;

	mapping_destroy(table->lines, table->n_lines * sizeof(*table->lines));
	mapping_destroy(table->records, slots * sizeof(*table->records));
	*table = (struct flow_table){0};
}

size_t flow_table_memory(const struct flow_table *table)
{
	return table->n_lines * LINE_BYTES;
}

/* Looks from `line` on; the first line's candidates may have been tried already. */
static uint32_t probe(const struct flow_table *table, const struct flow_key *key, uint64_t hash)
{
	uint32_t line = home_line(table, hash);

	for (uint32_t probed = 0; probed < table->n_lines; probed++) {
		uint32_t found = match(&table->lines[line], tag_of(hash));

		while (found != 0) {
			uint32_t position = line * FLOW_LINE_SLOTS + (uint32_t)__builtin_ctz(found);

			if (flow_key_equal(&table->records[position].key, key))
				return position;
			found &= found - 1;
		}
		if (table->lines[line].passed == 0)
			break;
		line = next_line(table, line);
	}
	return FLOW_NONE;
}

uint32_t flow_table_find(const struct flow_table *table, const struct flow_key *key, uint64_t hash)
{
	return probe(table, key, hash);
}

static inline void prefetch_record(const struct flow_table *table, uint32_t position)
{
	__builtin_prefetch(&table->records[position], 1);
	__builtin_prefetch((const char *)&table->records[position] + 64, 1);
}

void flow_table_find_burst(const struct flow_table *table, const struct flow_key *const *keys,
	const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	uint32_t lines[MAX_BURST];

	for (unsigned i = 0; i < n; i++) {
		lines[i] = home_line(table, hashes[i]);
		__builtin_prefetch(&table->lines[lines[i]]);
	}
	for (unsigned i = 0; i < n; i++) {
		const struct flow_line *line = &table->lines[lines[i]];
		uint32_t found = match(line, tag_of(hashes[i]));

		positions[i] = FLOW_NONE;
		if (found != 0) {
			positions[i] = lines[i] * FLOW_LINE_SLOTS + (uint32_t)__builtin_ctz(found);
			prefetch_record(table, positions[i]);
		} else if (line->passed != 0) {
			positions[i] = 0; /* not settled here: the check below probes */
		}
	}
	for (unsigned i = 0; i < n; i++) {
		if (positions[i] == FLOW_NONE)
			continue;
		if (!flow_key_equal(&table->records[positions[i]].key, keys[i]) ||
			table->lines[positions[i] / FLOW_LINE_SLOTS]
					.tag[positions[i] % FLOW_LINE_SLOTS] != tag_of(hashes[i]))
			positions[i] = probe(table, keys[i], hashes[i]);
	}
}

void flow_table_prefetch(const struct flow_table *table, const uint64_t *hashes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch(&table->lines[home_line(table, hashes[i])]);
	for (unsigned i = 0; i < n; i++) {
		uint32_t line = home_line(table, hashes[i]);
		uint32_t found = match(&table->lines[line], tag_of(hashes[i]));

		if (found != 0)
			prefetch_record(
				table, line * FLOW_LINE_SLOTS + (uint32_t)__builtin_ctz(found));
	}
}

uint32_t flow_table_insert(struct flow_table *table, const struct flow_key *key, uint64_t hash)
{
	uint32_t line = home_line(table, hash);
	uint32_t room;

	if (table->count == table->capacity)
		return FLOW_NONE;
	while ((room = match(&table->lines[line], 0)) == 0) {
		if (table->lines[line].passed != UINT16_MAX)
			table->lines[line].passed++;
		line = next_line(table, line);
	}
	uint32_t slot = (uint32_t)__builtin_ctz(room);
	uint32_t position = line * FLOW_LINE_SLOTS + slot;

	table->lines[line].tag[slot] = tag_of(hash);
	table->records[position] = (struct flow_record){.key = *key};
	table->count++;
	return position;
}

void flow_table_remove(struct flow_table *table, uint32_t position)
{
	uint32_t last = position / FLOW_LINE_SLOTS;
	uint64_t hash = flow_key_hash(table->secret, &table->records[position].key);

	table->lines[last].tag[position % FLOW_LINE_SLOTS] = 0;
	table->count--;
	for (uint32_t line = home_line(table, hash); line != last; line = next_line(table, line)) {
		/* at its maximum the count is no longer known, and stays */
		if (table->lines[line].passed != UINT16_MAX)
			table->lines[line].passed--;
	}
}

uint32_t flow_table_next(const struct flow_table *table, uint32_t position)
{
	uint32_t line = position / FLOW_LINE_SLOTS;
	uint32_t from = ALL_SLOTS & ~((UINT32_C(1) << position % FLOW_LINE_SLOTS) - 1);

	for (; line < table->n_lines; line++, from = ALL_SLOTS) {
		uint32_t used = ~match(&table->lines[line], 0) & from;

		if (used != 0)
			return line * FLOW_LINE_SLOTS + (uint32_t)__builtin_ctz(used);
	}
	return FLOW_NONE;
}
