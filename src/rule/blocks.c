/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/blocks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/clock.h"
#include "base/mapping.h"
#include "rule/block_index.h"
#include "rule/expiry.h"

/* Removed entries beyond `max_entries` that may wait until they are settled. */
#define SPARE(max_entries) ((max_entries) / 16 + 1024)
static_assert(BLOCKS_MAX_ENTRIES + SPARE(BLOCKS_MAX_ENTRIES) < BLOCK_INDEX_MAX, "fits a link");

#define LIST_LOOKS 65536

/* What an entry has of ours: while it is in the list, and while it is removed and not settled. */
#define ADDED_US 0
#define EXPIRES_US 1 /* 0: never */
#define TOKEN 0	     /* of RCU */
#define GENERATION 1 /* of its removal */

struct blocks {
	/* what readers read */
	struct block_index index;
	uint64_t generation;
	struct blocks_count *counts;
	uint32_t n_positions;
	uint32_t max_entries;

	/* the writer's own */
	struct rte_rcu_qsbr *qsbr;
	unsigned n_workers;
	uint32_t n_entries;
	uint32_t n_begun; /* positions below were in use at some time */
	uint32_t n_unsettled;
	uint32_t free;			/* the first free position below n_begun */
	uint32_t first_gone, last_gone; /* those removed and unsettled, oldest first */
	uint64_t settled;		/* generation */
	uint64_t last_number;
	uint32_t n_heads;
	struct block_entry *entries;
	uint64_t *heads; /* the index's, as `next` */
	uint32_t *next;
	uint32_t number_mask;
	uint32_t *number_heads; /* chains of entries by number */
	uint32_t *number_next;	/* also that of free and of unsettled positions */
	uint32_t *reason;
	uint64_t *occupied; /* bit by position */
	struct reasons *reasons;
	struct expiry expiry;
	struct blocks_stats stats;
	void *memory;
	size_t size;
};

static uint32_t power_of_two_from(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

/* The place of an array in the mapping, behind those before it; NULL while there is none. */
static void *place(const struct blocks *blocks, size_t *used, size_t n, size_t size)
{
	size_t at = *used;

	*used += RTE_ALIGN_CEIL(n * size, (size_t)RTE_CACHE_LINE_SIZE);
	return blocks->memory ? (char *)blocks->memory + at : NULL;
}

/* Lays the arrays out in one mapping, and returns its size. */
static size_t lay_out(struct blocks *blocks)
{
	size_t n = blocks->n_positions, used = 0;

	blocks->entries = place(blocks, &used, n, sizeof(*blocks->entries));
	blocks->counts = place(blocks, &used, n * blocks->n_workers, sizeof(*blocks->counts));
	blocks->heads = place(blocks, &used, blocks->n_heads, sizeof(*blocks->heads));
	blocks->next = place(blocks, &used, n, sizeof(*blocks->next));
	blocks->number_heads = place(
		blocks, &used, (size_t)blocks->number_mask + 1, sizeof(*blocks->number_heads));
	blocks->number_next = place(blocks, &used, n, sizeof(*blocks->number_next));
	blocks->reason = place(blocks, &used, n, sizeof(*blocks->reason));
	blocks->occupied = place(blocks, &used, (n + 63) / 64, sizeof(*blocks->occupied));
	blocks->expiry.links = place(blocks, &used, n, sizeof(*blocks->expiry.links));
	return used;
}

static void begin(struct blocks *blocks, const struct hash_secret *secret)
{
	block_index_init(&blocks->index, secret, blocks->entries, blocks->next, blocks->heads,
		blocks->n_heads);
	memset(blocks->number_heads, 0xff, (blocks->number_mask + 1) * sizeof(uint32_t));
	expiry_init(&blocks->expiry, blocks->expiry.links, blocks->n_positions);
	blocks->free = blocks->first_gone = blocks->last_gone = BLOCKS_NONE;
	blocks->generation = 1;
}

int blocks_create(struct blocks **blocks, const struct blocks_config *config)
{
	uint32_t max = config->max_entries;
	struct blocks *created = NULL;

	if (max < 1 || max > BLOCKS_MAX_ENTRIES || !config->secret || !config->qsbr)
		return -EINVAL;
	size_t size = RTE_ALIGN_CEIL(sizeof(*created), (size_t)RTE_CACHE_LINE_SIZE);

	created = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (!created)
		return -ENOMEM;
	memset(created, 0, size);
	created->max_entries = max;
	created->n_positions = max + SPARE(max);
	created->n_heads = power_of_two_from(created->n_positions / 2);
	created->number_mask = power_of_two_from(max) - 1;
	created->n_workers = config->n_workers;
	created->qsbr = config->qsbr;
	created->size = lay_out(created);
	created->memory = mapping_create(created->size, MAPPING_HUGE | MAPPING_POPULATE);
	int ret = created->memory ? reasons_create(&created->reasons, config->max_reasons,
					    config->secret->word[5])
				  : -errno;

	if (ret < 0) {
		blocks_destroy(created);
		return ret;
	}
	lay_out(created);
	begin(created, config->secret);
	*blocks = created;
	return 0;
}

void blocks_destroy(struct blocks *blocks)
{
	if (!blocks)
		return;
	reasons_destroy(blocks->reasons);
	mapping_destroy(blocks->memory, blocks->size);
	free(blocks);
}

size_t blocks_memory(const struct blocks *blocks)
{
	return sizeof(*blocks) + blocks->size + reasons_memory(blocks->reasons);
}

uint32_t blocks_find(const struct blocks *blocks, const struct flow_key *key)
{
	return block_index_find(&blocks->index, key);
}

uint64_t blocks_number(const struct blocks *blocks, uint32_t position)
{
	return blocks->entries[position].number;
}

uint64_t blocks_generation(const struct blocks *blocks)
{
	return __atomic_load_n(&blocks->generation, __ATOMIC_ACQUIRE);
}

struct blocks_count *blocks_counts(struct blocks *blocks, unsigned worker)
{
	return &blocks->counts[(size_t)worker * blocks->n_positions];
}

/* Positions. */

static struct blocks_count sum(const struct blocks *blocks, uint32_t position)
{
	struct blocks_count total = {0};

	for (unsigned i = 0; i < blocks->n_workers; i++) {
		const struct blocks_count *count =
			&blocks->counts[(size_t)i * blocks->n_positions + position];

		total.packets += __atomic_load_n(&count->packets, __ATOMIC_RELAXED);
		total.bytes += __atomic_load_n(&count->bytes, __ATOMIC_RELAXED);
	}
	return total;
}

/* Frees the positions of those that were removed, as far as no reader and no flow has them. */
static void reclaim_blocks(struct blocks *blocks)
{
	while (blocks->first_gone != BLOCKS_NONE) {
		uint32_t position = blocks->first_gone;
		const struct block_entry *entry = &blocks->entries[position];

		if (entry->own[GENERATION] > blocks->settled ||
			!rte_rcu_qsbr_check(blocks->qsbr, entry->own[TOKEN], false))
			return;
		struct blocks_count total = sum(blocks, position);

		blocks->stats.gone_packets += total.packets;
		blocks->stats.gone_bytes += total.bytes;
		for (unsigned i = 0; i < blocks->n_workers; i++)
			blocks_counts(blocks, i)[position] = (struct blocks_count){0};
		blocks->first_gone = blocks->number_next[position];
		if (blocks->first_gone == BLOCKS_NONE)
			blocks->last_gone = BLOCKS_NONE;
		blocks->number_next[position] = blocks->free;
		blocks->free = position;
		blocks->n_unsettled--;
	}
}

static uint32_t free_positions(const struct blocks *blocks)
{
	return blocks->n_positions - blocks->n_entries - blocks->n_unsettled;
}

static uint32_t take_position(struct blocks *blocks)
{
	uint32_t position = blocks->free;

	if (position == BLOCKS_NONE)
		return blocks->n_begun++;
	blocks->free = blocks->number_next[position];
	return position;
}

/* From here on readers find the entry. */
static void link_entry(struct blocks *blocks, uint32_t position)
{
	uint64_t number = blocks->entries[position].number;
	uint32_t *head = &blocks->number_heads[number & blocks->number_mask];

	blocks->number_next[position] = *head;
	*head = position;
	blocks->occupied[position / 64] |= UINT64_C(1) << position % 64;
	blocks->n_entries++;
	block_index_link(&blocks->index, position);
}

static void unlink_entry(struct blocks *blocks, uint32_t position)
{
	uint64_t number = blocks->entries[position].number;
	uint32_t *at = &blocks->number_heads[number & blocks->number_mask];

	block_index_unlink(&blocks->index, position);
	while (*at != position)
		at = &blocks->number_next[*at];
	*at = blocks->number_next[position];
	blocks->occupied[position / 64] &= ~(UINT64_C(1) << position % 64);
	blocks->n_entries--;
}

static void raise_generation(struct blocks *blocks)
{
	__atomic_store_n(&blocks->generation, blocks->generation + 1, __ATOMIC_RELEASE);
}

/* Unlinks an entry, whose position waits until it is settled. The caller raises the generation. */
static void drop_entry(struct blocks *blocks, uint32_t position)
{
	struct block_entry *entry = &blocks->entries[position];

	expiry_remove(&blocks->expiry, position);
	reasons_release(blocks->reasons, blocks->reason[position]);
	unlink_entry(blocks, position);
	entry->own[TOKEN] = rte_rcu_qsbr_start(blocks->qsbr);
	entry->own[GENERATION] = blocks->generation + 1;
	blocks->number_next[position] = BLOCKS_NONE;
	if (blocks->last_gone == BLOCKS_NONE)
		blocks->first_gone = position;
	else
		blocks->number_next[blocks->last_gone] = position;
	blocks->last_gone = position;
	blocks->n_unsettled++;
}

void blocks_settled(struct blocks *blocks, uint64_t generation)
{
	if (generation > blocks->settled)
		blocks->settled = generation;
	reclaim_blocks(blocks);
}

/* Adding. */

static void set_expiry(struct blocks *blocks, uint32_t position, uint32_t for_s, uint64_t now_us)
{
	struct block_entry *entry = &blocks->entries[position];

	expiry_remove(&blocks->expiry, position);
	entry->own[EXPIRES_US] = 0;
	if (for_s == 0)
		return;
	entry->own[EXPIRES_US] = now_us + for_s * CLOCK_US_PER_S;
	expiry_add(&blocks->expiry, position, (uint32_t)clock_second_from(entry->own[EXPIRES_US]));
}

/* The same match again. */
static int replace(
	struct blocks *blocks, uint32_t position, const struct block *block, uint64_t now_us)
{
	uint32_t old = blocks->reason[position], reason;

	if (reasons_take(blocks->reasons, block->reason, &reason) < 0) {
		/* the old one's place is the new one's, if this was its last use */
		if (reasons_uses(blocks->reasons, old) != 1) {
			blocks->stats.refused_reasons++;
			return -ENOSPC;
		}
		reasons_release(blocks->reasons, old);
		reasons_take(blocks->reasons, block->reason, &reason);
		old = 0;
	}
	reasons_release(blocks->reasons, old);
	blocks->reason[position] = reason;
	set_expiry(blocks, position, block->for_s, now_us);
	blocks->stats.replaced++;
	return 1;
}

static int add_new(struct blocks *blocks, const struct block_words *words,
	const struct block *block, uint64_t now_us, uint32_t *position)
{
	uint32_t reason;

	if (blocks->n_entries == blocks->max_entries) {
		blocks->stats.refused_full++;
		return -ENOSPC;
	}
	if (free_positions(blocks) == 0)
		reclaim_blocks(blocks);
	if (free_positions(blocks) == 0) {
		blocks->stats.refused_unsettled++;
		return -EAGAIN;
	}
	if (reasons_take(blocks->reasons, block->reason, &reason) < 0) {
		blocks->stats.refused_reasons++;
		return -ENOSPC;
	}
	*position = take_position(blocks);
	struct block_entry *entry = &blocks->entries[*position];

	entry->words = *words;
	entry->number = ++blocks->last_number;
	entry->own[ADDED_US] = now_us;
	blocks->reason[*position] = reason;
	set_expiry(blocks, *position, block->for_s, now_us);
	link_entry(blocks, *position);
	blocks->stats.added++;
	return 0;
}

static int check(const struct block *block)
{
	if (block->for_s > BLOCK_FOR_MAX_S || block_reason_check(block->reason) < 0)
		return -EINVAL;
	return block_match_check(&block->match);
}

/* Without raising the generation. */
static int add(
	struct blocks *blocks, const struct block *block, uint64_t now_us, uint32_t *position)
{
	struct block_words words;

	block_to_words(&words, &block->match);
	*position = block_index_get(&blocks->index, &words);
	return *position == BLOCKS_NONE ? add_new(blocks, &words, block, now_us, position)
					: replace(blocks, *position, block, now_us);
}

int blocks_add(struct blocks *blocks, const struct block *block, uint64_t now_us, uint64_t *number)
{
	uint32_t position;
	int ret = check(block);

	if (ret < 0)
		return ret;
	ret = add(blocks, block, now_us, &position);
	if (ret == 0)
		raise_generation(blocks);
	if (ret >= 0 && number)
		*number = blocks->entries[position].number;
	return ret;
}

static int compare_words(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct block_words));
}

static int compare_texts(const void *a, const void *b)
{
	const char *const *left = a, *const *right = b;

	return strcmp(*left, *right);
}

/* How many entries the list would have more. -ENOMEM. */
static int64_t count_new(const struct blocks *blocks, const struct block *list, uint32_t n)
{
	struct block_words *all = malloc((n + (n == 0)) * sizeof(*all));
	uint32_t n_new = 0;
	int64_t different = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		block_to_words(&all[n_new], &list[i].match);
		n_new += block_index_get(&blocks->index, &all[n_new]) == BLOCKS_NONE;
	}
	qsort(all, n_new, sizeof(*all), compare_words);
	for (uint32_t i = 0; i < n_new; i++)
		different += i == 0 || compare_words(&all[i], &all[i - 1]) != 0;
	free(all);
	return different;
}

/* How many different texts would be stored more; those that replacing frees are not subtracted. */
static int64_t count_new_reasons(const struct blocks *blocks, const struct block *list, uint32_t n)
{
	const char **all = malloc((n + (n == 0)) * sizeof(*all));
	uint32_t n_new = 0;
	int64_t different = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (list[i].reason && list[i].reason[0] != '\0' &&
			reasons_find(blocks->reasons, list[i].reason) == 0)
			all[n_new++] = list[i].reason;
	qsort(all, n_new, sizeof(*all), compare_texts);
	for (uint32_t i = 0; i < n_new; i++)
		different += i == 0 || strcmp(all[i], all[i - 1]) != 0;
	free(all);
	return different;
}

/* Whether all of the list fits. It is counted exactly only where that matters. */
static int check_room(struct blocks *blocks, const struct block *list, uint32_t n)
{
	uint32_t room = blocks->max_entries - blocks->n_entries;
	int64_t entries = n, reasons = n;

	reclaim_blocks(blocks);
	if (n > room || n > free_positions(blocks))
		entries = count_new(blocks, list, n);
	if (n > reasons_room(blocks->reasons))
		reasons = count_new_reasons(blocks, list, n);
	if (entries < 0 || reasons < 0)
		return -ENOMEM;
	if (entries > room) {
		blocks->stats.refused_full++;
		return -ENOSPC;
	}
	if (reasons > reasons_room(blocks->reasons)) {
		blocks->stats.refused_reasons++;
		return -ENOSPC;
	}
	if (entries > free_positions(blocks)) {
		blocks->stats.refused_unsettled++;
		return -EAGAIN;
	}
	return 0;
}

int blocks_add_all(struct blocks *blocks, const struct block *list, uint32_t n, uint64_t now_us,
	struct blocks_added *added)
{
	int ret = 0;

	*added = (struct blocks_added){0};
	for (uint32_t i = 0; i < n && ret == 0; i++)
		ret = check(&list[i]);
	if (ret == 0)
		ret = check_room(blocks, list, n);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t position;

		int one = add(blocks, &list[i], now_us, &position);

		/* there is room for all of them */
		assert(one >= 0);
		added->replaced += one == 1;
		added->added += one == 0;
	}
	if (added->added > 0)
		raise_generation(blocks);
	return 0;
}

/* Looking and removing. */

static void view_entry(const struct blocks *blocks, uint32_t position, struct block_view *view)
{
	const struct block_entry *entry = &blocks->entries[position];
	struct blocks_count total = sum(blocks, position);

	*view = (struct block_view){
		.number = entry->number,
		.added_us = entry->own[ADDED_US],
		.expires_us = entry->own[EXPIRES_US],
		.reason = reasons_text(blocks->reasons, blocks->reason[position]),
		.packets = total.packets,
		.bytes = total.bytes,
		.position = position,
	};
	block_from_words(&view->match, &entry->words);
}

static uint32_t position_of(const struct blocks *blocks, const struct block_match *match)
{
	struct block_words words;

	if (block_match_check(match) < 0)
		return BLOCKS_NONE;
	block_to_words(&words, match);
	return block_index_get(&blocks->index, &words);
}

static uint32_t position_of_number(const struct blocks *blocks, uint64_t number)
{
	uint32_t position = blocks->number_heads[number & blocks->number_mask];

	while (position != BLOCKS_NONE && blocks->entries[position].number != number)
		position = blocks->number_next[position];
	return position;
}

static int get_at(const struct blocks *blocks, uint32_t position, struct block_view *view)
{
	if (position == BLOCKS_NONE)
		return -ENOENT;
	view_entry(blocks, position, view);
	return 0;
}

int blocks_get(
	const struct blocks *blocks, const struct block_match *match, struct block_view *view)
{
	return get_at(blocks, position_of(blocks, match), view);
}

int blocks_get_number(const struct blocks *blocks, uint64_t number, struct block_view *view)
{
	return get_at(blocks, position_of_number(blocks, number), view);
}

static int remove_at(struct blocks *blocks, uint32_t position, struct block_view *gone)
{
	if (position == BLOCKS_NONE)
		return -ENOENT;
	if (gone)
		view_entry(blocks, position, gone);
	drop_entry(blocks, position);
	raise_generation(blocks);
	blocks->stats.removed++;
	return 0;
}

int blocks_remove(struct blocks *blocks, const struct block_match *match, struct block_view *gone)
{
	return remove_at(blocks, position_of(blocks, match), gone);
}

int blocks_remove_number(struct blocks *blocks, uint64_t number, struct block_view *gone)
{
	return remove_at(blocks, position_of_number(blocks, number), gone);
}

struct expiring {
	struct blocks *blocks;
	blocks_expired_fn expired;
	void *context;
	uint32_t n;
};

static void expire_one(void *context, uint32_t position)
{
	struct expiring *expiring = context;
	struct block_view gone;

	if (expiring->expired) {
		view_entry(expiring->blocks, position, &gone);
		expiring->expired(expiring->context, &gone);
	}
	drop_entry(expiring->blocks, position);
	expiring->n++;
}

uint32_t blocks_expire(
	struct blocks *blocks, uint64_t now_us, blocks_expired_fn expired, void *context)
{
	struct expiring expiring = {.blocks = blocks, .expired = expired, .context = context};

	expiry_advance(&blocks->expiry, clock_second(now_us), expire_one, &expiring);
	if (expiring.n > 0)
		raise_generation(blocks);
	blocks->stats.expired += expiring.n;
	reclaim_blocks(blocks);
	return expiring.n;
}

/* Listing. */

/* Do the first `length` bits agree? */
static bool same_bits(const uint8_t a[16], const uint8_t b[16], unsigned length)
{
	unsigned bytes = length / 8, bits = length % 8;

	return memcmp(a, b, bytes) == 0 && (bits == 0 || (a[bytes] ^ b[bytes]) >> (8 - bits) == 0);
}

static bool touches(const struct block_match *match, const struct block_prefix *prefix)
{
	const struct flow_key *key = &match->flow;

	if (match->is_flow)
		return flow_key_version(key) == prefix->version &&
		       (same_bits(key->addr[0], prefix->addr, prefix->length) ||
			       same_bits(key->addr[1], prefix->addr, prefix->length));
	return match->prefix.version == prefix->version &&
	       same_bits(match->prefix.addr, prefix->addr,
		       RTE_MIN(match->prefix.length, prefix->length));
}

static bool passes(
	const struct blocks *blocks, const struct blocks_filter *filter, uint32_t position)
{
	struct block_match match;

	if (!filter || (filter->prefix.version == 0 && !filter->flow))
		return true;
	block_from_words(&match, &blocks->entries[position].words);
	if (filter->prefix.version != 0 && !touches(&match, &filter->prefix))
		return false;
	return !filter->flow || block_match_fits(&match, filter->flow);
}

/* The first occupied position from `from` on, or BLOCKS_NONE. */
static uint32_t next_occupied(const struct blocks *blocks, uint32_t from)
{
	if (from >= blocks->n_begun)
		return BLOCKS_NONE;
	uint64_t bits = blocks->occupied[from / 64] & UINT64_MAX << from % 64;

	for (uint32_t i = from / 64; bits == 0; bits = blocks->occupied[i])
		if (++i >= (blocks->n_begun + 63) / 64)
			return BLOCKS_NONE;
		else
			from = i * 64;
	return from / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
}

uint32_t blocks_list(const struct blocks *blocks, const struct blocks_filter *filter,
	uint32_t *from, struct block_view *views, uint32_t max)
{
	uint32_t n = 0, looks = 0;
	uint32_t position = *from == BLOCKS_NONE ? BLOCKS_NONE : next_occupied(blocks, *from);

	for (; position != BLOCKS_NONE && n < max && looks < LIST_LOOKS; looks++) {
		if (passes(blocks, filter, position))
			view_entry(blocks, position, &views[n++]);
		position = next_occupied(blocks, position + 1);
	}
	*from = position;
	return n;
}

void blocks_stats(const struct blocks *blocks, struct blocks_stats *stats)
{
	*stats = blocks->stats;
	stats->entries = blocks->n_entries;
	stats->flows = blocks->index.n_flows;
	stats->max_entries = blocks->max_entries;
	stats->unsettled = blocks->n_unsettled;
	stats->reasons = reasons_count(blocks->reasons);
	stats->max_reasons = stats->reasons + reasons_room(blocks->reasons);
}
