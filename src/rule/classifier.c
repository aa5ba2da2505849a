/* SPDX-License-Identifier: BSD-3-Clause */
/* The classifier's life, its readers' entry, and its rules as the caller sees them. */
#include "rule/classifier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/mapping.h"
#include "rule/classifier_private.h"

/* Positions for removed rules that some reader may still see. */
#define SPARE(max_rules) ((max_rules) / 16 + 64)

const uint8_t classifier_lengths[N_SPACES][CLASSES_V6] = {
	[SPACE_V4] = {0, 6, 16, 24, 30, UINT8_MAX},
	[SPACE_V6] = {0, 28, 48, 64, 96, 124},
	[SPACE_ANY] = {0, UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX},
};

const uint64_t classifier_masks_v6[CLASSES_V6][2] = {
	{0, 0},
	{UINT64_MAX << 36, 0},
	{UINT64_MAX << 16, 0},
	{UINT64_MAX, 0},
	{UINT64_MAX, UINT64_MAX << 32},
	{UINT64_MAX, UINT64_MAX << 4},
};

struct classifier_rule classifier_rule_any(uint32_t id)
{
	return (struct classifier_rule){
		.src_port = {0, UINT16_MAX},
		.dst_port = {0, UINT16_MAX},
		.id = id,
	};
}

/* Life. */

static uint32_t table_size(uint32_t n)
{
	return (uint32_t)rte_align32pow2(RTE_MAX(n, 64u));
}

/* The place of an array in the mapping, behind those before it; NULL while there is none. */
static void *place_array(const struct classifier *classifier, size_t *used, size_t n, size_t size)
{
	size_t at = *used;

	*used += RTE_ALIGN_CEIL(n * size, (size_t)RTE_CACHE_LINE_SIZE);
	return classifier->memory ? (char *)classifier->memory + at : NULL;
}

/* Lays the arrays out in one mapping, and returns its size. */
static size_t lay_out_classifier(struct classifier *classifier)
{
	size_t n = classifier->n_positions, used = 0;
	struct sets *sets = &classifier->sets;

	classifier->records = place_array(classifier, &used, n, sizeof(*classifier->records));
	classifier->jumps = place_array(classifier, &used, n, sizeof(*classifier->jumps));
	classifier->wides =
		place_array(classifier, &used, classifier->max_wide, sizeof(*classifier->wides));
	classifier->buckets =
		place_array(classifier, &used, classifier->n_buckets, sizeof(*classifier->buckets));
	classifier->rows = place_array(
		classifier, &used, 2 * (size_t)classifier->n_rows, sizeof(*classifier->rows));
	classifier->port_rows = place_array(classifier, &used, 2 * (size_t)classifier->n_port_rows,
		sizeof(*classifier->port_rows));
	classifier->spaces = place_array(classifier, &used,
		(size_t)classifier->max_groups * N_SPACES, sizeof(*classifier->spaces));
	classifier->own = place_array(classifier, &used, n, sizeof(*classifier->own));
	classifier->in_use =
		place_array(classifier, &used, (n + 63) / 64, sizeof(*classifier->in_use));
	classifier->counts =
		place_array(classifier, &used, classifier->n_counts, sizeof(*classifier->counts));
	sets->sets = place_array(classifier, &used, sets->max_sets + 1, sizeof(*sets->sets));
	sets->prefixes = place_array(classifier, &used, sets->n_positions, sizeof(*sets->prefixes));
	sets->heads = place_array(classifier, &used, sets->n_heads, sizeof(*sets->heads));
	sets->tokens = place_array(classifier, &used, sets->n_positions, sizeof(*sets->tokens));
	sets->links = place_array(classifier, &used, sets->n_positions, sizeof(*sets->links));
	return used;
}

static void set_sizes(struct classifier *classifier, const struct classifier_config *config)
{
	const uint32_t max = config->max_rules, most = max + config->max_beside;
	struct sets *sets = &classifier->sets;

	classifier->max_rules = most;
	classifier->max_groups = config->max_groups;
	classifier->n_positions = most + SPARE(max);
	/* a wide rule keeps its part as long as its position */
	classifier->max_wide =
		config->max_wide == 0
			? 0
			: RTE_MIN(config->max_wide + config->max_beside + SPARE(config->max_wide),
				  classifier->n_positions);
	/* full, a bucket has three to four keys, and few have more than eight */
	classifier->n_buckets = max / 7 * 2 + 16;
	classifier->n_rows = table_size(max / 4 * 3);
	classifier->n_port_rows = RTE_MIN(table_size(max / 16), 65536u);
	classifier->row_shift = 32 - rte_log2_u32(classifier->n_rows);
	classifier->port_shift = 32 - rte_log2_u32(classifier->n_port_rows);
	/* up to four a rule, and some more so that searches end soon */
	classifier->n_counts = most * N_ROW_KINDS + most / 2 + 64;
	sets->max_sets = config->max_sets;
	sets->max_prefixes = config->max_prefixes;
	sets->n_positions =
		config->max_prefixes == 0 ? 0 : config->max_prefixes + SPARE(config->max_prefixes);
	sets->n_heads = config->max_prefixes == 0 ? 0 : table_size(config->max_prefixes);
}

static void set_secret(struct classifier *classifier, const struct hash_secret *secret)
{
	memcpy(classifier->secret, secret->word, sizeof(classifier->secret));
	classifier->simd = secret->simd;
	for (unsigned lane = 0; lane < 8; lane++) {
		uint64_t word = hash_fold(secret->word[6] ^ lane, secret->word[7]);

		classifier->row_factor[lane] = (uint32_t)word | 1;
		classifier->row_mask[lane] = UINT32_MAX
					     << (32 - classifier_lengths[SPACE_V4][lane % 4 + 1]);
		classifier->row_base[lane] = lane < 4 ? 0 : classifier->n_rows;
	}
	for (unsigned i = 0; i < 2; i++)
		classifier->port_factor[i] =
			(uint32_t)hash_fold(secret->word[8] ^ i, secret->word[9]) | 1;
	classifier->random = secret->word[11] | 1;
}

static void begin_empty(struct classifier *classifier, const struct hash_secret *secret)
{
	set_secret(classifier, secret);
	memset(classifier->buckets, 0xff, classifier->n_buckets * sizeof(*classifier->buckets));
	for (size_t i = 0; i < (size_t)classifier->max_groups * N_SPACES; i++)
		change_begin_space(&classifier->spaces[i]);
	classifier->free = classifier->first_gone = classifier->last_gone = NO_LINK;
	classifier->free_wide = NO_LINK;
	sets_begin(&classifier->sets, secret, classifier->qsbr);
}

int classifier_create(struct classifier **classifier, const struct classifier_config *config)
{
	struct classifier *created;

	if (config->max_rules < 1 || config->max_rules > CLASSIFIER_MAX_RULES ||
		config->max_wide > config->max_rules || config->max_groups < 1 ||
		config->max_beside > config->max_rules ||
		config->max_groups > CLASSIFIER_MAX_GROUPS ||
		config->max_sets > CLASSIFIER_MAX_SETS ||
		config->max_prefixes > CLASSIFIER_MAX_PREFIXES || !config->secret || !config->qsbr)
		return -EINVAL;
	size_t size = RTE_ALIGN_CEIL(sizeof(*created), (size_t)RTE_CACHE_LINE_SIZE);

	created = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (!created)
		return -ENOMEM;
	memset(created, 0, size);
	set_sizes(created, config);
	created->qsbr = config->qsbr;
	created->size = lay_out_classifier(created);
	created->memory = mapping_create(created->size, MAPPING_HUGE | MAPPING_POPULATE);
	if (!created->memory) {
		int ret = -errno;

		classifier_destroy(created);
		return ret;
	}
	lay_out_classifier(created);
	begin_empty(created, config->secret);
	*classifier = created;
	return 0;
}

void classifier_destroy(struct classifier *classifier)
{
	if (!classifier)
		return;
	mapping_destroy(classifier->memory, classifier->size);
	free(classifier);
}

size_t classifier_memory(const struct classifier *classifier)
{
	return sizeof(*classifier) + classifier->size;
}

/* Looking up. */

static classifier_walk_fn walk_of(const struct classifier *classifier)
{
	static const classifier_walk_fn walks[SIMD_N_LEVELS] = {
		[SIMD_PORTABLE] = classifier_walk_portable,
#ifdef __x86_64__
		[SIMD_SSE42] = classifier_walk_sse42,
		[SIMD_AVX2] = classifier_walk_avx2,
		[SIMD_AVX512] = classifier_walk_avx512,
#endif
	};

	return walks[classifier->simd];
}

static bool record_jumps(const struct record *record)
{
	return __atomic_load_n(&record->flags, __ATOMIC_RELAXED) & RECORD_JUMPS;
}

/* The record's id, or that of the rule which applies in the group that it jumps to. */
static uint32_t follow(const struct classifier *classifier, unsigned list, uint32_t found,
	const struct classifier_header *header)
{
	while (found != NO_LINK && record_jumps(&classifier->records[found]))
		walk_of(classifier)(classifier, list, classifier->jumps[found], &header, &found, 1);
	return found == NO_LINK ? CLASSIFIER_NONE : classifier->records[found].id;
}

void classifier_find_in_list(const struct classifier *classifier, unsigned list, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *ids, unsigned n)
{
	classifier_walk_fn walk = walk_of(classifier);

	if (unlikely(group >= classifier->max_groups)) {
		memset(ids, 0xff, n * sizeof(*ids));
		return;
	}
	for (unsigned at = 0; at < n; at += CLASSIFIER_BURST) {
		unsigned size = RTE_MIN(n - at, CLASSIFIER_BURST);

		walk(classifier, list, group, headers + at, ids + at, size);
		for (unsigned i = at; i < at + size; i++)
			ids[i] = follow(classifier, list, ids[i], headers[i]);
	}
}

uint32_t classifier_find_behind(const struct classifier *classifier, unsigned list,
	const struct classifier_header *header, struct classifier_place *place)
{
	uint32_t found;

	classifier_walk_behind_portable(
		classifier, list, place->group, place->order, header, &found);
	while (found != NO_LINK && record_jumps(&classifier->records[found])) {
		place->group = classifier->jumps[found];
		walk_of(classifier)(classifier, list, place->group, &header, &found, 1);
	}
	if (found == NO_LINK)
		return CLASSIFIER_NONE;
	place->order = classifier->records[found].order + 1;
	return classifier->records[found].id;
}

/* Rules as the caller sees them. */

static bool any_set(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		if (at[i] != 0)
			return true;
	return false;
}

/* 0 or -EINVAL. */
static int check_rule(const struct classifier *classifier, const struct classifier_rule *rule)
{
	const struct classifier_header *mask = &rule->mask;
	bool addresses = any_set(mask->src, sizeof(mask->src) + sizeof(mask->dst));
	bool rest = any_set(&mask->src[1], 12) || any_set(&mask->dst[1], 12);

	if (rule->group >= classifier->max_groups || rule->priority > CLASSIFIER_MAX_PRIORITY ||
		rule->id == CLASSIFIER_NONE || rule->src_port.first > rule->src_port.last ||
		rule->dst_port.first > rule->dst_port.last)
		return -EINVAL;
	if (mask->version != 0 && mask->version != UINT8_MAX)
		return -EINVAL;
	if (addresses && (mask->version == 0 || rule->value.version == 0))
		return -EINVAL;
	if (mask->version != 0 && rule->value.version != 0 && rule->value.version != 4 &&
		rule->value.version != 6)
		return -EINVAL;
	return rest && rule->value.version != 6 ? -EINVAL : 0;
}

static int check_limits(const struct classifier *classifier, const struct classifier_rule *rule)
{
	int ret = check_rule(classifier, rule);

	if (ret < 0)
		return ret;
	if (rule->jump >= classifier->max_groups)
		return -EINVAL;
	if (rule->jump != 0 && rule->jump <= rule->group)
		return -ELOOP;
	if (!sets_have(&classifier->sets, rule->src_set) ||
		!sets_have(&classifier->sets, rule->dst_set))
		return -ENOENT;
	return classifier->n_rules >= classifier->max_rules ? -ENOSPC : 0;
}

int classifier_add(
	struct classifier *classifier, const struct classifier_rule *rule, uint32_t *handle)
{
	static const struct classifier_position last = {.lists = CLASSIFIER_BOTH_LISTS};

	return classifier_add_at(classifier, rule, &last, handle);
}

void classifier_show_list(struct classifier *classifier, unsigned list)
{
	classifier->shown = list;
}

int classifier_add_at(struct classifier *classifier, const struct classifier_rule *rule,
	const struct classifier_position *at, uint32_t *handle)
{
	uint32_t position;
	int ret = check_limits(classifier, rule);

	if (ret == 0 && at->rank >= CLASSIFIER_MAX_RANK)
		ret = -EINVAL;
	if (ret == 0 && at->rank == 0 && classifier->next_age >= CLASSIFIER_MAX_RANK)
		ret = -ENOSPC;
	if (ret == 0)
		ret = change_add(classifier, rule, at, &position);
	if (ret == 0 && handle)
		*handle = position;
	return ret;
}

int classifier_remove(struct classifier *classifier, uint32_t handle)
{
	if (!change_is_there(classifier, handle))
		return -ENOENT;
	change_remove(classifier, handle);
	return 0;
}

int classifier_get(
	const struct classifier *classifier, uint32_t handle, struct classifier_rule *rule)
{
	if (!change_is_there(classifier, handle))
		return -ENOENT;
	change_get(classifier, handle, rule);
	return 0;
}

static uint32_t longest_chain(const struct classifier *classifier)
{
	uint32_t longest = 0;

	for (uint64_t i = 0; i < (uint64_t)classifier->n_buckets * SLOTS; i++) {
		uint32_t link = (uint32_t)classifier->buckets[i / SLOTS].slot[i % SLOTS], n = 0;

		for (; link != NO_LINK; link = classifier->records[link].next)
			n++;
		longest = RTE_MAX(longest, n);
	}
	return longest;
}

void classifier_stats(const struct classifier *classifier, struct classifier_stats *stats)
{
	*stats = (struct classifier_stats){
		.rules = classifier->n_rules,
		.wide = classifier->n_wide,
		.sets = classifier->sets.n_sets,
		.prefixes = classifier->sets.n_prefixes,
		.passing = classifier->n_gone,
		.longest = longest_chain(classifier),
	};
	for (size_t i = 0; i < (size_t)classifier->max_groups * N_SPACES; i++)
		stats->tuples += classifier->spaces[i].n_tuples;
}
