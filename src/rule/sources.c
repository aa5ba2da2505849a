/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/sources.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/mapping.h"

/*
 * An entry: the fingerprint of a limit and a source, and its value: a number of flows, or a time. The fingerprint is a keyed
 * hash of 62 bits, which nobody can choose to be another's. Both words are 0 where the entry is free.
 */
union entry {
	uint64_t word[2];
	unsigned __int128 all;
};

enum { FINGERPRINT, VALUE };

/* The lowest bits of a fingerprint. While an entry is being made nobody but its maker uses it. */
#define MADE UINT64_C(1)
#define OF_LIVE UINT64_C(2)
#define STATE_BITS UINT64_C(3)

/* A source's entry is in one of two buckets of two lines each. */
#define BUCKET 8u
#define BUCKETS 2u
#define PLACES (BUCKET * BUCKETS)

/* How often somebody may be in the way until the table counts as full. */
#define TRIES 64

struct sources {
	union entry *entries;
	uint32_t bucket_mask;
	uint32_t max;
	size_t size;
	struct hash_secret secret;
	/* on a line of its own: it is written when the table is full */
	uint64_t full __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
};

/* A change of one source's value. */
struct change {
	const struct sources_rate *rate; /* NULL: a live flow more */
	uint64_t now;
	uint32_t most;
};

int sources_create(struct sources **sources, uint32_t max, const struct hash_secret *secret)
{
	struct sources *created;
	uint32_t n_buckets;

	if (max < 1 || max > SOURCES_MAX)
		return -EINVAL;
	/* twice as many places as there are sources: two buckets of eight are hardly ever full before that */
	n_buckets = RTE_MAX(rte_align32pow2(max) * 2 / BUCKET, 2u);
	created = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*created), (size_t)RTE_CACHE_LINE_SIZE));
	if (created == NULL)
		return -ENOMEM;
	*created = (struct sources){
		.bucket_mask = n_buckets - 1,
		.max = max,
		.size = (size_t)n_buckets * BUCKET * sizeof(union entry),
		.secret = *secret,
	};
	created->entries = mapping_create(created->size, MAPPING_HUGE | MAPPING_POPULATE);
	if (created->entries == NULL) {
		const int code = -errno;

		free(created);
		return code;
	}
	*sources = created;
	return 0;
}

void sources_destroy(struct sources *sources)
{
	if (sources == NULL)
		return;
	mapping_destroy(sources->entries, sources->size);
	free(sources);
}

size_t sources_memory(const struct sources *sources)
{
	return sources->size;
}

void sources_restart(struct sources *sources)
{
	memset(sources->entries, 0, sources->size);
}

struct sources_rate sources_rate_of(uint32_t flows, uint32_t seconds, uint32_t burst)
{
	const uint64_t interval =
		(UINT64_C(1000000) * seconds << SOURCES_TIME_SHIFT) / RTE_MAX(flows, 1u);

	return (struct sources_rate){interval, interval * (RTE_MAX(burst, 1u) - 1)};
}

/* The places where a source's entry may be. */
struct places {
	union entry *bucket[BUCKETS];
	uint64_t fingerprint; /* of an entry that is made */
};

static struct places places_of(
	const struct sources *sources, const struct sources_key *key, uint64_t kind)
{
	const uint64_t word[5] = {
		(uint64_t)key->version << 32 | key->limit,
		(uint64_t)key->addr[0] << 32 | key->addr[1],
		(uint64_t)key->addr[2] << 32 | key->addr[3],
		0,
		0,
	};
	const uint64_t hash = hash_words(&sources->secret, word);
	const uint32_t first = (uint32_t)(hash >> 32) & sources->bucket_mask;
	uint32_t other = (uint32_t)(hash >> 4) & sources->bucket_mask;

	other ^= other == first;
	return (struct places){
		.bucket = {&sources->entries[(size_t)first * BUCKET],
			&sources->entries[(size_t)other * BUCKET]},
		.fingerprint = (hash & ~STATE_BITS) | kind | MADE,
	};
}

static union entry *entry_at(const struct places *places, unsigned i)
{
	return &places->bucket[i / BUCKET][i % BUCKET];
}

/* The words are of one moment only if an exchange finds them so. */
static union entry load_entry(const union entry *entry)
{
	union entry loaded;

	loaded.word[FINGERPRINT] = __atomic_load_n(&entry->word[FINGERPRINT], __ATOMIC_SEQ_CST);
	loaded.word[VALUE] = __atomic_load_n(&entry->word[VALUE], __ATOMIC_SEQ_CST);
	return loaded;
}

#ifdef __x86_64__
__attribute__((target("cx16")))
#endif
static bool
exchange_entry(union entry *entry, union entry before, uint64_t fingerprint, uint64_t value)
{
	const union entry after = {.word = {fingerprint, value}};

	return __sync_bool_compare_and_swap(&entry->all, before.all, after.all);
}

/* The entry of the source, as it was loaded. NULL: there is none. */
static union entry *find_made(const struct places *places, union entry *loaded)
{
	for (unsigned i = 0; i < PLACES; i++) {
		union entry *entry = entry_at(places, i);

		if (__atomic_load_n(&entry->word[FINGERPRINT], __ATOMIC_SEQ_CST) !=
			places->fingerprint)
			continue;
		*loaded = load_entry(entry);
		if (loaded->word[FINGERPRINT] == places->fingerprint)
			return entry;
	}
	return NULL;
}

static bool is_idle(union entry loaded, uint64_t now)
{
	return loaded.word[FINGERPRINT] == 0 ||
	       ((loaded.word[FINGERPRINT] & STATE_BITS) == MADE && loaded.word[VALUE] <= now);
}

/* An entry that says nothing, in the bucket that has more of them: so both are filled alike. */
static union entry *find_idle(const struct places *places, uint64_t now, union entry *loaded)
{
	union entry *found[BUCKETS] = {NULL, NULL}, before[BUCKETS];
	unsigned n[BUCKETS] = {0, 0};

	for (unsigned i = 0; i < PLACES; i++) {
		union entry *entry = entry_at(places, i);
		const union entry seen = load_entry(entry);

		if (!is_idle(seen, now))
			continue;
		found[i / BUCKET] = entry;
		before[i / BUCKET] = seen;
		n[i / BUCKET]++;
	}
	const unsigned bucket = n[1] > n[0];

	if (found[bucket] != NULL)
		*loaded = before[bucket];
	return found[bucket];
}

/* False: the change would be above the limit. */
static bool take_step(const struct change *change, uint64_t before, uint64_t *after)
{
	if (change->rate == NULL) {
		*after = before + 1;
		return before < change->most;
	}
	const uint64_t from = RTE_MAX(before, change->now);

	*after = from + change->rate->interval;
	return from - change->now <= change->rate->span;
}

/*
 * Others may be making the same entry: what they have not finished is taken away from them. True: one of them has
 * finished, so that this one is not needed.
 */
static bool look_for_others(const struct places *places, const union entry *own)
{
	for (unsigned i = 0; i < PLACES; i++) {
		union entry *entry = entry_at(places, i);
		union entry loaded = load_entry(entry);

		while (entry != own && loaded.word[FINGERPRINT] == (places->fingerprint & ~MADE)) {
			(void)exchange_entry(entry, loaded, 0, 0);
			loaded = load_entry(entry);
		}
		if (entry != own && loaded.word[FINGERPRINT] == places->fingerprint)
			return true;
	}
	return false;
}

/*
 * Makes an entry with the first value: announced first, then finished, unless another worker was faster. Of two that announce
 * the same source at least one sees the other, so that never both finish.
 */
static bool make_entry(
	union entry *entry, union entry before, const struct places *places, uint64_t value)
{
	const uint64_t announced = places->fingerprint & ~MADE;
	const union entry own = {.word = {announced, value}};

	if (!exchange_entry(entry, before, announced, value))
		return false;
	if (look_for_others(places, entry)) {
		(void)exchange_entry(entry, own, 0, 0);
		return false;
	}
	return exchange_entry(entry, own, places->fingerprint, value);
}

static enum sources_answer apply_change(
	struct sources *sources, const struct sources_key *key, const struct change *change)
{
	const struct places places = places_of(sources, key, change->rate == NULL ? OF_LIVE : 0);
	union entry before;
	uint64_t value;

	for (unsigned i = 0; i < TRIES; i++) {
		union entry *entry = find_made(&places, &before);

		if (!take_step(change, entry == NULL ? 0 : before.word[VALUE], &value))
			return SOURCES_ABOVE;
		if (entry != NULL) {
			if (exchange_entry(entry, before, places.fingerprint, value))
				return SOURCES_TAKEN;
			continue;
		}
		entry = find_idle(&places, change->now, &before);
		if (entry == NULL)
			break;
		if (make_entry(entry, before, &places, value))
			return SOURCES_TAKEN;
	}
	__atomic_fetch_add(&sources->full, 1, __ATOMIC_RELAXED);
	return SOURCES_FULL;
}

enum sources_answer sources_begin(struct sources *sources, const struct sources_key *key,
	const struct sources_rate *rate, uint64_t now_us)
{
	const struct change change = {.rate = rate, .now = now_us << SOURCES_TIME_SHIFT};

	return apply_change(sources, key, &change);
}

enum sources_answer sources_enter(
	struct sources *sources, const struct sources_key *key, uint32_t most, uint64_t now_us)
{
	const struct change change = {.most = most, .now = now_us << SOURCES_TIME_SHIFT};

	return apply_change(sources, key, &change);
}

void sources_leave(struct sources *sources, const struct sources_key *key)
{
	const struct places places = places_of(sources, key, OF_LIVE);
	union entry before, *entry;

	while ((entry = find_made(&places, &before)) != NULL) {
		const bool last = before.word[VALUE] <= 1;

		if (exchange_entry(entry, before, last ? 0 : places.fingerprint,
			    last ? 0 : before.word[VALUE] - 1))
			return;
	}
}

uint32_t sources_live(const struct sources *sources, const struct sources_key *key)
{
	const struct places places = places_of(sources, key, OF_LIVE);
	union entry loaded;

	return find_made(&places, &loaded) == NULL ? 0 : (uint32_t)loaded.word[VALUE];
}

bool sources_is_above(const struct sources *sources, const struct sources_key *key,
	const struct sources_rate *rate, uint64_t now_us)
{
	const struct change change = {.rate = rate, .now = now_us << SOURCES_TIME_SHIFT};
	const struct places places = places_of(sources, key, 0);
	union entry loaded;
	uint64_t after;

	return find_made(&places, &loaded) != NULL &&
	       !take_step(&change, loaded.word[VALUE], &after);
}

void sources_stats(const struct sources *sources, uint64_t now_us, struct sources_stats *stats)
{
	const uint64_t now = now_us << SOURCES_TIME_SHIFT;

	*stats = (struct sources_stats){
		.max = sources->max,
		.full = __atomic_load_n(&sources->full, __ATOMIC_RELAXED),
	};
	for (size_t i = 0; i < sources->size / sizeof(union entry); i++) {
		const union entry loaded = load_entry(&sources->entries[i]);

		stats->used += loaded.word[FINGERPRINT] & OF_LIVE ||
			       (loaded.word[FINGERPRINT] != 0 && loaded.word[VALUE] > now);
	}
}
