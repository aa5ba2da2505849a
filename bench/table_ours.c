/* SPDX-License-Identifier: BSD-3-Clause */
/* Our table as a contender. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/mapping.h"
#include "bench/table.h"

struct ours {
	struct flow_table table;
	const struct hash_secret *secret;
};

/* About: index, records and what is little. */
#define BYTES_A_FLOW 152

static size_t needs(const struct table_config *config)
{
	return (size_t)config->flows * BYTES_A_FLOW;
}

static int create(void **side, const struct table_config *config)
{
	struct ours *ours = calloc(1, sizeof(*ours));
	int ret = ours == NULL ? -ENOMEM
			       : flow_table_init(&ours->table, config->flows, config->secret,
					 config->small_pages ? MAPPING_SMALL : MAPPING_HUGE);

	if (ret < 0) {
		free(ours);
		return ret;
	}
	ours->secret = config->secret;
	*side = ours;
	return 0;
}

static void destroy(void *side)
{
	struct ours *ours = side;

	flow_table_fini(&ours->table);
	free(ours);
}

static size_t memory(const void *side)
{
	return flow_table_memory(table_ours_inside(side));
}

const struct flow_table *table_ours_inside(const void *side)
{
	return &((const struct ours *)side)->table;
}

static bool has(const void *side, const struct table_key *key)
{
	const struct ours *ours = side;

	return flow_table_find(&ours->table, &key->key, flow_key_hash(ours->secret, &key->key)) !=
	       FLOW_NONE;
}

static inline void find(struct ours *ours, unsigned way, const struct flow_key *const *keys,
	uint64_t *hashes, uint32_t *positions, unsigned n)
{
	if (way != TABLE_OURS_SINGLE && way != TABLE_OURS_APART) {
		flow_table_look_up_burst(&ours->table, keys, hashes, positions, n);
		return;
	}
	if (way == TABLE_OURS_SINGLE) {
		for (unsigned i = 0; i < n; i++) {
			hashes[i] = flow_key_hash(ours->secret, keys[i]);
			positions[i] = flow_table_find(&ours->table, keys[i], hashes[i]);
		}
		return;
	}
	flow_table_hash_burst(&ours->table, keys, hashes, n);
	flow_table_find_burst(&ours->table, keys, hashes, positions, n);
}

static inline void count(struct ours *ours, uint32_t position, uint64_t now)
{
	struct flow_record *record = flow_table_record(&ours->table, position);

	record->count[0].packets_low++;
	record->count[0].bytes_low += TABLE_PACKET_BYTES;
	record->last_seen_us = now & UINT64_C(0xffffffffffff);
}

static inline void count_all(struct ours *ours, const uint32_t *positions, unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++)
		if (likely(positions[i] != FLOW_NONE))
			count(ours, positions[i], now);
}

/* Bursts that wait for each of the last two steps of their look-up. */
enum { AHEAD = 2, UNDER_WAY = 4 };

static inline void begin_burst(struct ours *ours, struct flow_look_up *up,
	const struct table_chunk *chunk, unsigned first, unsigned n)
{
	up->n = n;
	memcpy(up->key, &chunk->pointers[first], n * sizeof(up->key[0]));
	flow_look_up_begin(&ours->table, up);
}

/*
 * Bursts one after the other, carried as far as it pays: while one's lines and records come from memory, the
 * two before and after it are worked on.
 */
static inline void carry(struct ours *ours, const struct table_chunk *chunk, unsigned n,
	unsigned burst, bool update, uint64_t now)
{
	static __thread struct flow_look_up under_way[UNDER_WAY];
	const struct flow_table *table = &ours->table;
	const unsigned n_bursts = (n + burst - 1) / burst;
	uint32_t positions[TABLE_BURST];

	for (unsigned i = 0; i < n_bursts + AHEAD; i++) {
		if (i < n_bursts) {
			unsigned first = i * burst;

			begin_burst(ours, &under_way[i % UNDER_WAY], chunk, first,
				RTE_MIN(burst, n - first));
		}
		if (i >= 1 && i - 1 < n_bursts)
			flow_look_up_find(table, &under_way[(i - 1) % UNDER_WAY]);
		if (i >= AHEAD) {
			struct flow_look_up *last = &under_way[(i - AHEAD) % UNDER_WAY];

			flow_look_up_end(table, last, positions);
			if (update)
				count_all(ours, positions, last->n, now);
		}
	}
}

/*
 * In the order of the packets' way (dataplane/pipeline_plain.c): while a burst's lines come from memory the one
 * before it is compared and counted, and then this one's records are asked for.
 */
static void update_as_engine(struct ours *ours, const struct table_chunk *chunk, unsigned n,
	unsigned burst, uint64_t now)
{
	static __thread struct flow_look_up under_way[2];
	const struct flow_table *table = &ours->table;
	uint32_t positions[TABLE_BURST];
	unsigned turn = 0;

	for (unsigned i = 0; i < n + burst; i += burst) {
		struct flow_look_up *up = &under_way[turn], *before = &under_way[turn ^= 1];

		if (i < n)
			begin_burst(ours, up, chunk, i, RTE_MIN(burst, n - i));
		if (i > 0) {
			flow_look_up_end(table, before, positions);
			count_all(ours, positions, before->n, now);
		}
		if (i < n)
			flow_look_up_find(table, up);
	}
}

static void look_up(
	void *side, unsigned way, const struct table_chunk *chunk, unsigned n, unsigned burst)
{
	uint64_t hashes[TABLE_BURST];
	uint32_t positions[TABLE_BURST];

	if (way == TABLE_OURS_CARRIED && flow_look_up_waits(table_ours_inside(side))) {
		carry(side, chunk, n, burst, false, 0);
		return;
	}
	for (unsigned i = 0; i < n; i += burst)
		find(side, way, &chunk->pointers[i], hashes, positions, RTE_MIN(burst, n - i));
}

static void update(void *side, unsigned way, const struct table_chunk *chunk, unsigned n,
	unsigned burst, uint64_t now)
{
	uint64_t hashes[TABLE_BURST];
	uint32_t positions[TABLE_BURST];

	if (way == TABLE_OURS_CARRIED && flow_look_up_waits(table_ours_inside(side))) {
		carry(side, chunk, n, burst, true, now);
		return;
	}
	if (way == TABLE_OURS_ENGINE && flow_look_up_waits(table_ours_inside(side))) {
		update_as_engine(side, chunk, n, burst, now);
		return;
	}
	for (unsigned i = 0; i < n; i += burst) {
		unsigned part = RTE_MIN(burst, n - i);

		find(side, way, &chunk->pointers[i], hashes, positions, part);
		count_all(side, positions, part, now);
	}
}

static bool insert(void *side, const struct table_chunk *chunk, unsigned n, uint32_t *positions)
{
	struct ours *ours = side;

	for (unsigned i = 0; i < n; i += TABLE_BURST) {
		unsigned part = RTE_MIN((unsigned)TABLE_BURST, n - i);
		uint64_t hashes[TABLE_BURST];

		flow_table_hash_burst(&ours->table, &chunk->pointers[i], hashes, part);
		flow_table_insert_burst(
			&ours->table, &chunk->pointers[i], hashes, &positions[i], part);
		for (unsigned j = 0; j < part; j++) {
			if (unlikely(positions[i + j] == FLOW_NONE))
				return false;
			flow_table_record(&ours->table, positions[i + j])->state = FLOW_REQUEST;
		}
	}
	return true;
}

/* By their keys, of which none is missing. */
static void remove_keys(void *side, const struct table_chunk *chunk, unsigned n)
{
	struct ours *ours = side;

	for (unsigned i = 0; i < n; i += TABLE_BURST) {
		unsigned part = RTE_MIN((unsigned)TABLE_BURST, n - i);
		uint64_t hashes[TABLE_BURST];
		uint32_t positions[TABLE_BURST];

		flow_table_look_up_burst(
			&ours->table, &chunk->pointers[i], hashes, positions, part);
		flow_table_remove_burst(&ours->table, positions, part);
	}
}

static void remove_known(void *side, const uint32_t *positions, unsigned n)
{
	struct ours *ours = side;

	for (unsigned i = 0; i < n; i += TABLE_BURST)
		flow_table_remove_burst(
			&ours->table, &positions[i], RTE_MIN((unsigned)TABLE_BURST, n - i));
}

/* Those of a burst that are new, with their first packet counted. */
static void learn(struct ours *ours, const struct flow_key *const *keys, const uint64_t *hashes,
	uint32_t *positions, unsigned n, uint64_t now)
{
	flow_table_insert_burst(&ours->table, keys, hashes, positions, n);
	for (unsigned i = 0; i < n; i++) {
		/* in this order: a word is not loaded again of which a byte has just been stored */
		count(ours, positions[i], now);
		flow_table_record(&ours->table, positions[i])->state = FLOW_REQUEST;
	}
}

/*
 * The burst's end: known flows are counted, those that no record was found for are learned. `again`: the
 * burst before may have learned one since this one was looked for.
 */
static void churn_end(struct ours *ours, const struct flow_key *const *keys, const uint64_t *hashes,
	uint32_t *positions, uint32_t *new_positions, bool again, uint64_t now)
{
	const struct flow_key *fresh[TABLE_CHURN_BURST];
	uint64_t fresh_hashes[TABLE_CHURN_BURST];
	unsigned n_fresh = 0;

	for (unsigned i = 0; i < TABLE_CHURN_BURST; i++) {
		if (unlikely(positions[i] == FLOW_NONE) && again)
			positions[i] = flow_table_find(&ours->table, keys[i], hashes[i]);
		if (likely(positions[i] != FLOW_NONE)) {
			count(ours, positions[i], now);
			continue;
		}
		fresh[n_fresh] = keys[i];
		fresh_hashes[n_fresh++] = hashes[i];
	}
	learn(ours, fresh, fresh_hashes, new_positions, n_fresh, now);
}

/*
 * What a burst looks up: its packets' keys and, by key, those of the flows that end with it. Sets the
 * pointers; says how many.
 */
static unsigned churn_keys(
	const struct table_churn *what, unsigned burst, bool by_key, const struct flow_key **keys)
{
	unsigned n = TABLE_CHURN_BURST;

	memcpy(keys, &what->chunk.pointers[burst * TABLE_CHURN_BURST],
		TABLE_CHURN_BURST * sizeof(keys[0]));
	for (unsigned i = 0; by_key && i < TABLE_CHURN_NEW; i++)
		keys[n++] = &what->ended[burst * TABLE_CHURN_NEW + i].key;
	return n;
}

/* Those flows end: by the positions that were found, or by those that are known. */
static void churn_remove(struct ours *ours, const struct table_churn *what, unsigned burst,
	bool by_key, const uint32_t *positions)
{
	flow_table_remove_burst(&ours->table,
		by_key ? &positions[TABLE_CHURN_BURST]
		       : &what->ended_positions[burst * TABLE_CHURN_NEW],
		TABLE_CHURN_NEW);
}

static void churn_alone(struct ours *ours, bool by_key, struct table_churn *what, uint64_t now)
{
	for (unsigned burst = 0; burst < TABLE_CHURN_BURSTS; burst++) {
		const struct flow_key *keys[TABLE_BURST];
		uint64_t hashes[TABLE_BURST];
		uint32_t positions[TABLE_BURST];

		flow_table_look_up_burst(&ours->table, keys, hashes, positions,
			churn_keys(what, burst, by_key, keys));
		churn_end(ours, keys, hashes, positions,
			&what->new_positions[burst * TABLE_CHURN_NEW], false, now);
		churn_remove(ours, what, burst, by_key, positions);
	}
}

/* Bursts that wait for their end while the next one is begun, by where the table lies. */
static unsigned churn_ahead(const struct ours *ours)
{
	return ours->table.capacity < 262144 ? 1 : AHEAD;
}

struct churning {
	struct ours *ours;
	bool by_key;
	struct table_churn *what;
	struct flow_look_up under_way[UNDER_WAY];
};

static void churn_begin(struct churning *churning, unsigned burst)
{
	struct flow_look_up *up = &churning->under_way[burst % UNDER_WAY];

	up->n = churn_keys(churning->what, burst, churning->by_key, up->key);
	flow_look_up_begin(&churning->ours->table, up);
	if (!churning->by_key)
		flow_table_remove_begin(&churning->ours->table,
			&churning->what->ended_positions[burst * TABLE_CHURN_NEW], TABLE_CHURN_NEW);
}

static void churn_find(struct churning *churning, unsigned burst)
{
	flow_look_up_find(&churning->ours->table, &churning->under_way[burst % UNDER_WAY]);
	if (!churning->by_key)
		flow_table_remove_find(&churning->ours->table,
			&churning->what->ended_positions[burst * TABLE_CHURN_NEW], TABLE_CHURN_NEW);
}

static void churn_last(struct churning *churning, unsigned burst, bool again, uint64_t now)
{
	struct flow_look_up *up = &churning->under_way[burst % UNDER_WAY];
	uint32_t positions[TABLE_BURST];

	flow_look_up_end(&churning->ours->table, up, positions);
	churn_end(churning->ours, up->key, up->hash, positions,
		&churning->what->new_positions[burst * TABLE_CHURN_NEW], again, now);
	churn_remove(churning->ours, churning->what, burst, churning->by_key, positions);
}

/* Bursts carried on beside one another: see carry(). What ends with a burst is known with it. */
static void churn(void *side, unsigned way, struct table_churn *what, uint64_t now)
{
	static __thread struct churning churning;
	const unsigned ahead = churn_ahead(side);

	if (!flow_look_up_waits(table_ours_inside(side))) {
		churn_alone(side, way == TABLE_OURS_BY_KEY, what, now);
		return;
	}
	churning.ours = side;
	churning.by_key = way == TABLE_OURS_BY_KEY;
	churning.what = what;
	for (unsigned i = 0; i < TABLE_CHURN_BURSTS + ahead; i++) {
		if (ahead == 2 && i >= 1 && i - 1 < TABLE_CHURN_BURSTS)
			churn_find(&churning, i - 1);
		if (i < TABLE_CHURN_BURSTS)
			churn_begin(&churning, i);
		if (i >= ahead)
			churn_last(&churning, i - ahead, ahead == 2, now);
		if (ahead == 1 && i < TABLE_CHURN_BURSTS)
			churn_find(&churning, i);
	}
}

const struct table_contender table_ours = {
	.name = "ours",
	.look_up_ways = 1,
	.update_ways = 1,
	.churn_ways = 2,
	.needs = needs,
	.create = create,
	.destroy = destroy,
	.memory = memory,
	.has = has,
	.look_up = look_up,
	.update = update,
	.insert = insert,
	.remove = remove_keys,
	.remove_known = remove_known,
	.churn = churn,
};
