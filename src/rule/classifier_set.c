/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of addresses: the prefixes of all sets in one array of hash chains. A set knows the lengths that it
 * has prefixes of, so that a question is one probe for each of these.
 */
#include <errno.h>
#include <string.h>

#include "rule/classifier_private.h"

void sets_begin(struct sets *sets, const struct hash_secret *secret, struct rte_rcu_qsbr *qsbr)
{
	for (uint32_t i = 0; i < sets->n_heads; i++)
		sets->heads[i] = NO_LINK;
	sets->free = sets->first_gone = sets->last_gone = NO_LINK;
	memcpy(sets->secret, &secret->word[12], sizeof(sets->secret));
	sets->qsbr = qsbr;
}

bool sets_have(const struct sets *sets, uint32_t set)
{
	return set == 0 || (set <= sets->max_sets && sets->sets[set].name[0] != '\0');
}

/* The address without what lies beyond the length. */
static void cut_prefix(struct set_prefix *prefix, const uint32_t addr[4])
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned bits = prefix->length < 32 * i		? 0
				: prefix->length >= 32 * i + 32 ? 32
								: prefix->length - 32 * i;

		prefix->addr[i] = bits == 0 ? 0 : addr[i] & UINT32_MAX << (32 - bits);
	}
}

static uint32_t *head_of_prefix(const struct sets *sets, const struct set_prefix *prefix)
{
	uint64_t high = (uint64_t)prefix->addr[0] << 32 | prefix->addr[1];
	uint64_t low = (uint64_t)prefix->addr[2] << 32 | prefix->addr[3];
	uint64_t what =
		(uint64_t)prefix->set << 16 | (uint64_t)prefix->version << 8 | prefix->length;
	uint64_t hash = hash_fold(high ^ sets->secret[0],
		low ^ sets->secret[1] ^ what * UINT64_C(0x9e3779b97f4a7c15));

	return &sets->heads[(uint32_t)(hash >> 32) & (sets->n_heads - 1)];
}

static bool same_prefix(const struct set_prefix *a, const struct set_prefix *b)
{
	return memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 && a->set == b->set &&
	       a->version == b->version && a->length == b->length;
}

static uint32_t find_prefix(const struct sets *sets, const struct set_prefix *prefix)
{
	uint32_t link = __atomic_load_n(head_of_prefix(sets, prefix), __ATOMIC_ACQUIRE);

	while (link != NO_LINK && !same_prefix(&sets->prefixes[link], prefix))
		link = __atomic_load_n(&sets->prefixes[link].next, __ATOMIC_ACQUIRE);
	return link;
}

static bool contain_of(const struct sets *sets, struct set_prefix *wanted, const uint32_t addr[4],
	uint64_t lengths)
{
	for (unsigned base = wanted->length; lengths != 0; lengths &= lengths - 1) {
		wanted->length = (uint8_t)(base + (unsigned)__builtin_ctzll(lengths));
		cut_prefix(wanted, addr);
		if (find_prefix(sets, wanted) != NO_LINK)
			return true;
	}
	return false;
}

bool sets_contain(const struct sets *sets, uint32_t number, uint8_t version, const uint32_t addr[4])
{
	const struct set *set = &sets->sets[number];
	struct set_prefix wanted = {.set = (uint16_t)number, .version = version};

	if (version == 4)
		return contain_of(
			sets, &wanted, addr, __atomic_load_n(&set->in_use_v4, __ATOMIC_ACQUIRE));
	for (unsigned i = 0; version == 6 && i < 3; i++) {
		wanted.length = (uint8_t)(64 * i);
		if (contain_of(sets, &wanted, addr,
			    __atomic_load_n(&set->in_use_v6[i], __ATOMIC_ACQUIRE)))
			return true;
	}
	return false;
}

/* The writer. */

static void store_length(struct set *set, const struct set_prefix *prefix, bool in_use)
{
	uint64_t *word =
		prefix->version == 4 ? &set->in_use_v4 : &set->in_use_v6[prefix->length / 64];
	uint64_t bit = UINT64_C(1) << prefix->length % 64;

	__atomic_store_n(word, in_use ? *word | bit : *word & ~bit, __ATOMIC_RELEASE);
}

static void reclaim_prefixes(struct sets *sets)
{
	while (sets->first_gone != NO_LINK) {
		uint32_t position = sets->first_gone;

		if (!rte_rcu_qsbr_check(sets->qsbr, sets->tokens[position], false))
			return;
		sets->first_gone = sets->links[position];
		if (sets->first_gone == NO_LINK)
			sets->last_gone = NO_LINK;
		sets->n_gone--;
		sets->links[position] = sets->free;
		sets->free = position;
	}
}

static int read_prefix(const struct sets *sets, uint32_t set,
	const struct classifier_prefix *prefix, struct set_prefix *read)
{
	if (set == 0 || !sets_have(sets, set))
		return -ENOENT;
	if ((prefix->version != 4 || prefix->length > 32) &&
		(prefix->version != 6 || prefix->length > 128))
		return -EINVAL;
	*read = (struct set_prefix){
		.set = (uint16_t)set,
		.version = prefix->version,
		.length = prefix->length,
	};
	cut_prefix(read, prefix->addr);
	return 0;
}

int classifier_set_add(
	struct classifier *classifier, uint32_t set, const struct classifier_prefix *prefix)
{
	struct sets *sets = &classifier->sets;
	struct set_prefix wanted;
	int ret = read_prefix(sets, set, prefix, &wanted);

	if (ret < 0)
		return ret;
	if (sets->max_prefixes > 0 && find_prefix(sets, &wanted) != NO_LINK)
		return 1;
	reclaim_prefixes(sets);
	if (sets->n_prefixes == sets->max_prefixes)
		return -ENOSPC;
	if (sets->free == NO_LINK && sets->n_begun == sets->n_positions)
		return -EAGAIN;
	uint32_t position = sets->free;

	if (position == NO_LINK)
		position = sets->n_begun++;
	else
		sets->free = sets->links[position];
	uint32_t *head = head_of_prefix(sets, &wanted);

	wanted.next = *head;
	sets->prefixes[position] = wanted;
	__atomic_store_n(head, position, __ATOMIC_RELEASE);
	if (sets->sets[set].by_length[wanted.version == 6][wanted.length]++ == 0)
		store_length(&sets->sets[set], &wanted, true);
	sets->sets[set].n_prefixes++;
	sets->n_prefixes++;
	return 0;
}

int classifier_set_remove(
	struct classifier *classifier, uint32_t set, const struct classifier_prefix *prefix)
{
	struct sets *sets = &classifier->sets;
	struct set_prefix wanted;
	int ret = read_prefix(sets, set, prefix, &wanted);

	if (ret < 0)
		return ret;
	uint32_t position = sets->max_prefixes == 0 ? NO_LINK : find_prefix(sets, &wanted);

	if (position == NO_LINK)
		return -ENOENT;
	uint32_t *at = head_of_prefix(sets, &wanted);

	/* its own link stays, for readers that stand on it */
	while (*at != position)
		at = &sets->prefixes[*at].next;
	__atomic_store_n(at, sets->prefixes[position].next, __ATOMIC_RELEASE);
	if (--sets->sets[set].by_length[wanted.version == 6][wanted.length] == 0)
		store_length(&sets->sets[set], &wanted, false);
	sets->sets[set].n_prefixes--;
	sets->n_prefixes--;
	sets->tokens[position] = rte_rcu_qsbr_start(sets->qsbr);
	sets->links[position] = NO_LINK;
	if (sets->last_gone == NO_LINK)
		sets->first_gone = position;
	else
		sets->links[sets->last_gone] = position;
	sets->last_gone = position;
	sets->n_gone++;
	reclaim_prefixes(sets);
	return 0;
}

int classifier_set_open(struct classifier *classifier, const char *name, uint32_t *set)
{
	struct sets *sets = &classifier->sets;
	uint32_t free = 0;

	if (name[0] == '\0' || strlen(name) >= CLASSIFIER_SET_NAME)
		return -EINVAL;
	for (uint32_t i = 1; i <= sets->max_sets; i++) {
		if (strcmp(sets->sets[i].name, name) == 0) {
			*set = i;
			return 0;
		}
		if (free == 0 && sets->sets[i].name[0] == '\0')
			free = i;
	}
	if (free == 0)
		return -ENOSPC;
	memcpy(sets->sets[free].name, name, strlen(name) + 1);
	sets->n_sets++;
	*set = free;
	return 0;
}

uint32_t classifier_set_find(const struct classifier *classifier, const char *name)
{
	const struct sets *sets = &classifier->sets;

	for (uint32_t i = 1; i <= sets->max_sets && name[0] != '\0'; i++)
		if (strcmp(sets->sets[i].name, name) == 0)
			return i;
	return 0;
}

void classifier_share_sets(struct classifier *classifier, const struct classifier *other)
{
	classifier->sets = other->sets;
}

int classifier_set_close(struct classifier *classifier, uint32_t number)
{
	struct sets *sets = &classifier->sets;

	if (number == 0 || !sets_have(sets, number))
		return -ENOENT;
	if (sets->sets[number].n_prefixes > 0 || sets->sets[number].n_rules > 0)
		return -EBUSY;
	sets->sets[number].name[0] = '\0';
	sets->n_sets--;
	return 0;
}
