/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adding and removing one rule. A reader finds a rule by its chain, and comes to the chain by the bits of
 * its tuple in the rows and by the tuple's best order. So a new rule lowers the best order, goes into its
 * chain, then sets its bits. A removed one leaves the chain first.
 */
#include "rule/classifier_private.h"

#include <errno.h>

#include <rte_common.h>

/* Readers. */

static void store_bit(struct bits *bits, unsigned tuple, bool set)
{
	uint64_t *word = &bits->word[tuple / 64], bit = UINT64_C(1) << tuple % 64;

	__atomic_store_n(word, set ? *word | bit : *word & ~bit, __ATOMIC_RELEASE);
}

/* Heaps: those of a tuple's rules, by order. Each meld goes down a random path. */

static bool flip(struct classifier *classifier)
{
	classifier->random ^= classifier->random << 13;
	classifier->random ^= classifier->random >> 7;
	classifier->random ^= classifier->random << 17;
	return classifier->random >> 40 & 1;
}

static uint32_t meld(struct classifier *classifier, uint32_t a, uint32_t b)
{
	uint32_t root = NO_LINK, parent = NO_LINK, *at = &root;
	struct own *own = classifier->own;

	while (a != NO_LINK && b != NO_LINK) {
		if (classifier->records[b].order < classifier->records[a].order) {
			uint32_t other = a;

			a = b;
			b = other;
		}
		*at = a;
		own[a].parent = parent;
		parent = a;
		at = flip(classifier) ? &own[a].left : &own[a].right;
		a = *at;
	}
	*at = a != NO_LINK ? a : b;
	if (*at != NO_LINK)
		own[*at].parent = parent;
	return root;
}

/*
 * Finds the longest row of tuples whose best orders rise; the others are unsorted. This is a hint: look-ups take
 * tuples of the row as they stand and search for the best one where there are others.
 */
static void sort_out(struct space *space)
{
	uint8_t length[TUPLES], before[TUPLES], last = TUPLES;
	struct bits unsorted = bits_load(&space->in_use);

	for (uint8_t i = 0; i < TUPLES; i++) {
		length[i] = 1;
		before[i] = TUPLES;
		if (space->best[i] == UINT64_MAX)
			continue;
		for (uint8_t j = 0; j < i; j++) {
			if (space->best[j] > space->best[i] || length[j] < length[i])
				continue;
			length[i] = (uint8_t)(length[j] + 1);
			before[i] = j;
		}
		if (last == TUPLES || length[i] > length[last])
			last = i;
	}
	for (; last != TUPLES; last = before[last])
		unsorted.word[last / 64] &= ~(UINT64_C(1) << last % 64);
	for (unsigned i = 0; i < 2; i++)
		__atomic_store_n(&space->unsorted.word[i], unsorted.word[i], __ATOMIC_RELAXED);
}

/* A best order that is too low for a while costs time; one that is too high would hide rules. */
static void store_best(struct classifier *classifier, struct space *space, unsigned tuple)
{
	uint32_t root = space->root[tuple];
	uint64_t best = root == NO_LINK ? UINT64_MAX : classifier->records[root].order;
	uint64_t rest = UINT64_MAX;

	if (best == space->best[tuple])
		return;
	__atomic_store_n(&space->best[tuple], best, __ATOMIC_RELAXED);
	for (unsigned i = TUPLES; i-- > 0;) {
		rest = RTE_MIN(rest, space->best[i]);
		__atomic_store_n(&space->rest_best[i], rest, __ATOMIC_RELAXED);
	}
	sort_out(space);
}

static void heap_insert(
	struct classifier *classifier, struct space *space, unsigned tuple, uint32_t position)
{
	struct own *own = &classifier->own[position];

	own->left = own->right = own->parent = NO_LINK;
	space->root[tuple] = meld(classifier, space->root[tuple], position);
	store_best(classifier, space, tuple);
}

static void heap_remove(
	struct classifier *classifier, struct space *space, unsigned tuple, uint32_t position)
{
	struct own *own = &classifier->own[position];
	uint32_t rest = meld(classifier, own->left, own->right), parent = own->parent;

	if (rest != NO_LINK)
		classifier->own[rest].parent = parent;
	if (parent == NO_LINK)
		space->root[tuple] = rest;
	else if (classifier->own[parent].left == position)
		classifier->own[parent].left = rest;
	else
		classifier->own[parent].right = rest;
	store_best(classifier, space, tuple);
}

/* Tuples. */

static unsigned leading_ones(uint32_t word)
{
	return word == UINT32_MAX ? 32 : (unsigned)__builtin_clz(~word);
}

static unsigned leading_ones_of(const uint32_t mask[4])
{
	unsigned n = 0;

	for (unsigned i = 0; i < 4; i++) {
		n += leading_ones(mask[i]);
		if (mask[i] != UINT32_MAX)
			break;
	}
	return n;
}

static uint8_t class_of(enum space_kind kind, const uint32_t mask[4])
{
	unsigned length = leading_ones_of(mask);
	uint8_t class = 0;

	while (class + 1u < CLASSES_V6 && classifier_lengths[kind][class + 1] <= length)
		class ++;
	return class;
}

uint32_t change_space_of(const struct classifier_rule *rule)
{
	enum space_kind kind = SPACE_ANY;

	if (rule->mask.version != 0 && rule->value.version != 0)
		kind = rule->value.version == 4 ? SPACE_V4 : SPACE_V6;
	return rule->group * N_SPACES + kind;
}

/* The protocol is hashed where no port is, which says more. */
static uint8_t flags_of(const struct classifier_rule *rule)
{
	const struct classifier_header *mask = &rule->mask;
	unsigned flags = 0;

	if (rule->src_port.first == rule->src_port.last)
		flags |= TUPLE_SRC_PORT;
	if (rule->dst_port.first == rule->dst_port.last)
		flags |= TUPLE_DST_PORT;
	if (flags == 0 && mask->proto == UINT8_MAX)
		flags |= TUPLE_PROTO;
	if ((mask->vlan & 0xfff) == 0xfff)
		flags |= TUPLE_VLAN;
	if (mask->in_port == UINT16_MAX)
		flags |= TUPLE_IN_PORT;
	if (mask->metadata == UINT32_MAX)
		flags |= TUPLE_METADATA;
	return (uint8_t)flags;
}

void change_begin_space(struct space *space)
{
	for (unsigned i = 0; i < TUPLES; i++) {
		space->best[i] = space->rest_best[i] = UINT64_MAX;
		space->root[i] = NO_LINK;
	}
}

static void fill_tuple(struct classifier *classifier, struct space *space, uint32_t number,
	unsigned at, const uint8_t class[2], uint8_t flags)
{
	struct classifier_header mask = {
		.proto = flags & TUPLE_PROTO ? UINT8_MAX : 0,
		.vlan = flags & TUPLE_VLAN ? 0xfff : 0,
		.in_port = flags & TUPLE_IN_PORT ? UINT16_MAX : 0,
		.src_port = flags & TUPLE_SRC_PORT ? UINT16_MAX : 0,
		.dst_port = flags & TUPLE_DST_PORT ? UINT16_MAX : 0,
		.metadata = flags & TUPLE_METADATA ? UINT32_MAX : 0,
	};
	uint64_t what =
		(uint64_t)number << 32 | (uint32_t)flags << 16 | (uint32_t)class[0] << 8 | class[1];
	const uint8_t *lengths = classifier_lengths[space_kind_of(number)];
	bool is_v4 = space_kind_of(number) == SPACE_V4;

	space->tuple[at] = (struct tuple){
		.src_mask = is_v4 && class[0] != 0 ? UINT32_MAX << (32 - lengths[class[0]]) : 0,
		.dst_mask = is_v4 && class[1] != 0 ? UINT32_MAX << (32 - lengths[class[1]]) : 0,
		.fields_mask = word_of_fields(&mask),
		.ports_mask = word_of_ports(&mask),
		.salt = hash_fold(what ^ classifier->secret[5], classifier->secret[3]),
	};
	space->src_class[at] = class[0];
	space->dst_class[at] = class[1];
	space->flags[at] = flags;
}

static void store_tuple_bits(struct space *space, unsigned at, bool set)
{
	store_bit(&space->src[space->src_class[at]], at, set);
	store_bit(&space->dst[space->dst_class[at]], at, set);
	if (space->flags[at] & TUPLE_SRC_PORT)
		store_bit(&space->src_port, at, set);
	if (space->flags[at] & TUPLE_DST_PORT)
		store_bit(&space->dst_port, at, set);
	store_bit(&space->in_use, at, set);
}

/* A number for a new tuple, or TUPLES. Readers may still search what a free one was before. */
static unsigned free_tuple(const struct classifier *classifier, const struct space *space)
{
	for (unsigned at = 0; at < TUPLES; at++)
		if (!has_bit(&space->in_use, at) &&
			(space->token[at] == 0 ||
				rte_rcu_qsbr_check(classifier->qsbr, space->token[at], false)))
			return at;
	return TUPLES;
}

/* The tuple of the rule's classes with most of its flags, or TUPLES. */
static unsigned nearest_tuple(const struct space *space, const uint8_t class[2], uint8_t flags)
{
	unsigned nearest = TUPLES;
	int most = -1;

	for (unsigned at = 0; at < TUPLES; at++) {
		int n = __builtin_popcount(space->flags[at]);

		if (!has_bit(&space->in_use, at) || space->src_class[at] != class[0] ||
			space->dst_class[at] != class[1] || (space->flags[at] & ~flags) != 0 ||
			n <= most)
			continue;
		most = n;
		nearest = at;
	}
	return nearest;
}

/*
 * The tuple for a rule, made if need be; TUPLES: none is free yet. There is always room for one without
 * flags of each pair of classes, so that every rule has a tuple however many kinds there are.
 */
static unsigned tuple_for(
	struct classifier *classifier, uint32_t number, const struct classifier_rule *rule)
{
	static const unsigned classes[N_SPACES] = {
		[SPACE_V4] = CLASSES_V4, [SPACE_V6] = CLASSES_V6, [SPACE_ANY] = 1};
	struct space *space = &classifier->spaces[number];
	enum space_kind kind = space_kind_of(number);
	uint8_t class[2] = {class_of(kind, rule->mask.src), class_of(kind, rule->mask.dst)};
	uint8_t flags = flags_of(rule);
	unsigned at = nearest_tuple(space, class, flags);
	unsigned kept = classes[kind] * classes[kind] - space->n_plain;

	if (at != TUPLES && space->flags[at] == flags)
		return at;
	if (space->n_tuples + kept >= TUPLES) {
		if (at != TUPLES)
			return at;
		flags = 0;
	}
	unsigned fresh = free_tuple(classifier, space);

	if (fresh == TUPLES)
		return at;
	fill_tuple(classifier, space, number, fresh, class, flags);
	space->n_tuples++;
	space->n_plain += flags == 0;
	store_tuple_bits(space, fresh, true);
	return fresh;
}

static void leave_tuple(struct classifier *classifier, struct space *space, unsigned at)
{
	if (--space->n_rules[at] > 0)
		return;
	store_tuple_bits(space, at, false);
	space->n_tuples--;
	space->n_plain -= space->flags[at] == 0;
	space->token[at] = rte_rcu_qsbr_start(classifier->qsbr);
}

/* Rows, and how many rules have each of their bits. */

static uint32_t count_at(const struct classifier *classifier, uint32_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(((hash >> 32) * classifier->n_counts) >> 32);
}

static uint32_t next_count(const struct classifier *classifier, uint32_t at)
{
	return at + 1 == classifier->n_counts ? 0 : at + 1;
}

static uint32_t find_count(const struct classifier *classifier, uint32_t key)
{
	uint32_t at = count_at(classifier, key);

	while (classifier->counts[at].n != 0 && classifier->counts[at].key != key)
		at = next_count(classifier, at);
	return at;
}

/* Frees a place; those after it that would not be found any more move up. */
static void free_count(struct classifier *classifier, uint32_t hole)
{
	struct row_count *counts = classifier->counts;

	for (uint32_t at = next_count(classifier, hole); counts[at].n != 0;
		at = next_count(classifier, at)) {
		uint32_t home = count_at(classifier, counts[at].key);
		bool stays = hole <= at ? hole < home && home <= at : hole < home || home <= at;

		if (stays)
			continue;
		counts[hole] = counts[at];
		hole = at;
	}
	counts[hole].n = 0;
}

static void change_row(
	struct classifier *classifier, enum row_kind kind, uint32_t row, unsigned tuple, bool add)
{
	bool is_port = kind == ROW_SRC_PORT || kind == ROW_DST_PORT, is_dst = kind & 1;
	struct bits *rows = is_port ? classifier->port_rows : classifier->rows;
	uint32_t n = is_port ? classifier->n_port_rows : classifier->n_rows;
	uint32_t key = (row * TUPLES + tuple) * N_ROW_KINDS + kind;
	uint32_t at = find_count(classifier, key);
	struct row_count *count = &classifier->counts[at];

	if (add) {
		count->key = key;
		if (count->n++ == 0)
			store_bit(&rows[is_dst * n + row], tuple, true);
	} else if (count->n > 1) {
		count->n--;
	} else {
		free_count(classifier, at);
		store_bit(&rows[is_dst * n + row], tuple, false);
	}
}

static void change_prefix_row(struct classifier *classifier, uint32_t number, bool is_dst,
	unsigned class, const uint32_t addr[4], unsigned tuple, bool add)
{
	uint32_t salt = space_salt(classifier, number);
	uint32_t row;

	if (class == 0)
		return;
	if (space_kind_of(number) == SPACE_V4)
		row = row_v4(classifier, salt, class - 1 + is_dst * 4, addr[0]);
	else
		row = row_v6(classifier, salt, class, addr);
	change_row(classifier, is_dst ? ROW_DST : ROW_SRC, row, tuple, add);
}

static void change_rows(struct classifier *classifier, uint32_t number, unsigned tuple,
	const struct classifier_rule *rule, bool add)
{
	const struct space *space = &classifier->spaces[number];
	uint32_t salt = space_salt(classifier, number);

	change_prefix_row(
		classifier, number, false, space->src_class[tuple], rule->value.src, tuple, add);
	change_prefix_row(
		classifier, number, true, space->dst_class[tuple], rule->value.dst, tuple, add);
	if (space->flags[tuple] & TUPLE_SRC_PORT)
		change_row(classifier, ROW_SRC_PORT,
			row_port(classifier, salt, false, rule->src_port.first), tuple, add);
	if (space->flags[tuple] & TUPLE_DST_PORT)
		change_row(classifier, ROW_DST_PORT,
			row_port(classifier, salt, true, rule->dst_port.first), tuple, add);
}

/* Chains. */

static uint64_t key_hash_of(const struct classifier *classifier, uint32_t number, unsigned tuple,
	const struct classifier_rule *rule)
{
	const struct space *space = &classifier->spaces[number];
	struct classifier_header header = rule->value;

	header.src_port = rule->src_port.first;
	header.dst_port = rule->dst_port.first;
	if (space_kind_of(number) == SPACE_V6)
		return hash_key_v6(classifier, &space->tuple[tuple], space->src_class[tuple],
			space->dst_class[tuple], &header);
	return hash_key_v4(classifier, &space->tuple[tuple], &header);
}

static bool chain_has(const struct classifier *classifier, uint64_t slot, uint32_t position)
{
	for (uint32_t link = (uint32_t)slot; link != NO_LINK; link = classifier->records[link].next)
		if (link == position)
			return true;
	return false;
}

/* Where a rule with this tag goes: to those of its key, to a free slot, or to the shared one. */
static uint64_t *slot_for(struct bucket *bucket, uint32_t tag)
{
	uint64_t *free = &bucket->slot[SHARED];

	for (unsigned i = 0; i < SHARED; i++) {
		if (bucket->slot[i] >> 32 == tag)
			return &bucket->slot[i];
		if (bucket->slot[i] == SLOT_FREE && free == &bucket->slot[SHARED])
			free = &bucket->slot[i];
	}
	return free;
}

static void link_record(struct classifier *classifier, uint32_t position, uint64_t hash)
{
	struct record *record = &classifier->records[position];
	struct bucket *bucket = bucket_of(classifier, hash);
	uint64_t *slot = slot_for(bucket, tag_of(hash));
	uint64_t tag = slot == &bucket->slot[SHARED] ? SHARED_TAG : tag_of(hash);
	uint32_t next = (uint32_t)*slot, before = NO_LINK;

	while (next != NO_LINK && classifier->records[next].order < record->order) {
		before = next;
		next = classifier->records[next].next;
	}
	__atomic_store_n(&record->next, next, __ATOMIC_RELEASE);
	if (before == NO_LINK)
		__atomic_store_n(slot, tag << 32 | position, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&classifier->records[before].next, position, __ATOMIC_RELEASE);
}

/* The record's own link stays, for readers that stand on it. */
static void unlink_record(struct classifier *classifier, uint32_t position, uint64_t hash)
{
	struct bucket *bucket = bucket_of(classifier, hash);
	uint32_t next = classifier->records[position].next;
	uint64_t *slot = slot_for(bucket, tag_of(hash));

	if (!chain_has(classifier, *slot, position))
		slot = &bucket->slot[SHARED];
	uint32_t link = (uint32_t)*slot;

	if (link == position) {
		__atomic_store_n(slot,
			next == NO_LINK ? SLOT_FREE : (*slot & ~(uint64_t)UINT32_MAX) | next,
			__ATOMIC_RELEASE);
		return;
	}
	while (classifier->records[link].next != position)
		link = classifier->records[link].next;
	__atomic_store_n(&classifier->records[link].next, next, __ATOMIC_RELEASE);
}

/* Positions. */

static void store_in_use(struct classifier *classifier, uint32_t position, bool in_use)
{
	uint64_t *word = &classifier->in_use[position / 64], bit = UINT64_C(1) << position % 64;

	*word = in_use ? *word | bit : *word & ~bit;
}

bool change_is_there(const struct classifier *classifier, uint32_t position)
{
	return position < classifier->n_begun &&
	       classifier->in_use[position / 64] >> position % 64 & 1;
}

static void free_position(struct classifier *classifier, uint32_t position)
{
	uint32_t wide = classifier->records[position].wide;

	if (wide != NO_LINK) {
		classifier->wides[wide].next_free = classifier->free_wide;
		classifier->free_wide = wide;
		classifier->n_wide--;
	}
	classifier->own[position].left = classifier->free;
	classifier->free = position;
}

/* The token of a removed record: two links of its heap, which it has left. */
static uint64_t token_of(const struct own *own)
{
	return (uint64_t)own->right << 32 | own->parent;
}

static void reclaim(struct classifier *classifier)
{
	while (classifier->first_gone != NO_LINK) {
		uint32_t position = classifier->first_gone;
		const struct own *own = &classifier->own[position];

		if (!rte_rcu_qsbr_check(classifier->qsbr, token_of(own), false))
			return;
		classifier->first_gone = own->left;
		if (classifier->first_gone == NO_LINK)
			classifier->last_gone = NO_LINK;
		classifier->n_gone--;
		free_position(classifier, position);
	}
}

static void retire(struct classifier *classifier, uint32_t position)
{
	struct own *own = &classifier->own[position];
	uint64_t token = rte_rcu_qsbr_start(classifier->qsbr);

	store_in_use(classifier, position, false);
	own->left = NO_LINK;
	own->right = (uint32_t)(token >> 32);
	own->parent = (uint32_t)token;
	if (classifier->last_gone == NO_LINK)
		classifier->first_gone = position;
	else
		classifier->own[classifier->last_gone].left = position;
	classifier->last_gone = position;
	classifier->n_gone++;
}

static bool is_wide(const struct classifier_rule *rule)
{
	uint32_t word[WIDE_WORDS];

	wide_words(&rule->mask, word);
	for (unsigned i = 0; i < WIDE_WORDS; i++)
		if (word[i] != 0)
			return true;
	return rule->src_set != 0 || rule->dst_set != 0;
}

/* A position, and a wide part if there has to be one. */
static int take_rule_position(struct classifier *classifier, bool wide, uint32_t *position)
{
	bool full = classifier->free == NO_LINK && classifier->n_begun == classifier->n_positions;
	bool wide_full = wide && classifier->free_wide == NO_LINK &&
			 classifier->n_wide_begun == classifier->max_wide;

	if (full)
		return -EAGAIN;
	if (wide_full)
		return classifier->n_gone > 0 ? -EAGAIN : -ENOSPC;
	*position = classifier->free;
	if (*position == NO_LINK)
		*position = classifier->n_begun++;
	else
		classifier->free = classifier->own[*position].left;
	classifier->records[*position].wide = NO_LINK;
	if (!wide)
		return 0;
	uint32_t at = classifier->free_wide;

	if (at == NO_LINK)
		at = classifier->n_wide_begun++;
	else
		classifier->free_wide = classifier->wides[at].next_free;
	classifier->n_wide++;
	classifier->records[*position].wide = at;
	return 0;
}

/* Rules. */

struct classifier_rule change_normal(const struct classifier_rule *rule)
{
	struct classifier_rule normal = *rule;
	uint8_t *value = (uint8_t *)&normal.value, *mask = (uint8_t *)&normal.mask;

	normal.mask.src_port = normal.mask.dst_port = 0;
	for (size_t i = 0; i < sizeof(normal.value); i++)
		value[i] &= mask[i];
	return normal;
}

/* Ranks that are not given go on behind all others. */
static uint64_t take_rank(struct classifier *classifier, uint64_t given)
{
	const uint64_t rank = given != 0 ? given : classifier->next_age;

	classifier->next_age = RTE_MAX(classifier->next_age, rank + 1);
	return rank;
}

static uint8_t flags_of_lists(unsigned lists)
{
	return (uint8_t)(~lists & CLASSIFIER_BOTH_LISTS);
}

static_assert(RECORD_HIDDEN(1) == CLASSIFIER_LIST(1), "one bit for both");

void classifier_set_lists(struct classifier *classifier, uint32_t handle, unsigned lists)
{
	struct record *record = &classifier->records[handle];

	__atomic_store_n(&record->flags,
		(uint8_t)((record->flags & RECORD_JUMPS) | flags_of_lists(lists)),
		__ATOMIC_RELAXED);
}

static void fill_record(struct classifier *classifier, uint32_t position,
	const struct classifier_rule *rule, const struct classifier_position *at)
{
	struct record *record = &classifier->records[position];

	record->value[0] = word_of_addresses(&rule->value);
	record->value[1] = word_of_fields(&rule->value);
	record->mask[0] = word_of_addresses(&rule->mask);
	record->mask[1] = word_of_fields(&rule->mask);
	record->src_first = rule->src_port.first;
	record->src_span = (uint16_t)(rule->src_port.last - rule->src_port.first);
	record->dst_first = rule->dst_port.first;
	record->dst_span = (uint16_t)(rule->dst_port.last - rule->dst_port.first);
	record->order = (uint64_t)rule->priority << AGE_BITS | take_rank(classifier, at->rank);
	record->id = rule->id;
	record->group = (uint16_t)rule->group;
	record->flags = (uint8_t)(flags_of_lists(at->lists) | (rule->jump != 0 ? RECORD_JUMPS : 0));
	classifier->jumps[position] = (uint16_t)rule->jump;
	if (record->wide == NO_LINK)
		return;
	struct wide *wide = &classifier->wides[record->wide];

	wide_words(&rule->value, wide->value);
	wide_words(&rule->mask, wide->mask);
	wide->src_set = (uint16_t)rule->src_set;
	wide->dst_set = (uint16_t)rule->dst_set;
}

static void count_sets(struct classifier *classifier, const struct classifier_rule *rule, int n)
{
	if (rule->src_set != 0)
		classifier->sets.sets[rule->src_set].n_rules += (uint32_t)n;
	if (rule->dst_set != 0)
		classifier->sets.sets[rule->dst_set].n_rules += (uint32_t)n;
}

int change_add(struct classifier *classifier, const struct classifier_rule *given,
	const struct classifier_position *at, uint32_t *position)
{
	struct classifier_rule rule = change_normal(given);
	uint32_t number = change_space_of(&rule);
	struct space *space = &classifier->spaces[number];
	bool wide = is_wide(&rule);

	reclaim(classifier);
	int ret = take_rule_position(classifier, wide, position);

	if (ret < 0)
		return ret;
	unsigned tuple = tuple_for(classifier, number, &rule);

	if (tuple == TUPLES) {
		free_position(classifier, *position);
		return -EAGAIN;
	}
	struct record *record = &classifier->records[*position];
	uint64_t hash = key_hash_of(classifier, number, tuple, &rule);

	fill_record(classifier, *position, &rule, at);
	record->tuple = (uint8_t)tuple;
	space->n_rules[tuple]++;
	heap_insert(classifier, space, tuple, *position);
	link_record(classifier, *position, hash);
	change_rows(classifier, number, tuple, &rule, true);
	store_in_use(classifier, *position, true);
	count_sets(classifier, &rule, 1);
	classifier->n_rules++;
	return 0;
}

void change_remove(struct classifier *classifier, uint32_t position)
{
	unsigned tuple = classifier->records[position].tuple;
	struct classifier_rule rule;

	change_get(classifier, position, &rule);
	uint32_t number = change_space_of(&rule);
	struct space *space = &classifier->spaces[number];

	unlink_record(classifier, position, key_hash_of(classifier, number, tuple, &rule));
	change_rows(classifier, number, tuple, &rule, false);
	heap_remove(classifier, space, tuple, position);
	leave_tuple(classifier, space, tuple);
	count_sets(classifier, &rule, -1);
	classifier->n_rules--;
	retire(classifier, position);
	reclaim(classifier);
}

static void put_wide_words(struct classifier_header *header, const uint32_t word[WIDE_WORDS])
{
	memcpy(&header->src[1], word, 12);
	memcpy(&header->dst[1], word + 3, 12);
	memcpy(&header->metadata, word + 6, 20);
}

static void put_words(struct classifier_header *header, uint64_t addresses, const uint64_t *fields)
{
	header->src[0] = (uint32_t)addresses;
	header->dst[0] = (uint32_t)(addresses >> 32);
	memcpy(&header->proto, fields, sizeof(*fields));
}

void change_get(
	const struct classifier *classifier, uint32_t position, struct classifier_rule *rule)
{
	const struct record *record = &classifier->records[position];

	*rule = (struct classifier_rule){
		.src_port = {record->src_first, (uint16_t)(record->src_first + record->src_span)},
		.dst_port = {record->dst_first, (uint16_t)(record->dst_first + record->dst_span)},
		.group = record->group,
		.priority = (uint32_t)(record->order >> AGE_BITS),
		.jump = classifier->jumps[position],
		.id = record->id,
	};
	put_words(&rule->value, record->value[0], &record->value[1]);
	put_words(&rule->mask, record->mask[0], &record->mask[1]);
	if (record->wide == NO_LINK)
		return;
	const struct wide *wide = &classifier->wides[record->wide];

	put_wide_words(&rule->value, wide->value);
	put_wide_words(&rule->mask, wide->mask);
	rule->src_set = wide->src_set;
	rule->dst_set = wide->dst_set;
}
