/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/block_index.h"

#include <assert.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_prefetch.h>

#define LINK_NONE UINT32_MAX
#define FILTER_MASK (UINT64_MAX << 32)
/* Searched at a time, so that their memory is fetched side by side. */
#define PROBES 16

static_assert(sizeof(struct block_entry) == 64, "a line each");

void block_index_init(struct block_index *index, const struct hash_secret *secret,
	struct block_entry *entries, uint32_t *next, uint64_t *heads, uint32_t n_heads)
{
	*index = (struct block_index){
		.bucket_mask = n_heads - 1,
		.heads = heads,
		.next = next,
		.entries = entries,
	};
	memcpy(index->secret, secret->word, sizeof(index->secret));
	for (uint32_t i = 0; i < n_heads; i++)
		heads[i] = LINK_NONE;
}

static void address_words(uint64_t word[2], const uint8_t addr[16])
{
	memcpy(word, addr, 16);
	word[0] = rte_be_to_cpu_64(word[0]);
	word[1] = rte_be_to_cpu_64(word[1]);
}

/* 0 for IPv4, 1 for IPv6. */
static unsigned family_of(unsigned version)
{
	return version == 6;
}

static unsigned combination_of(unsigned family, unsigned length, bool port, bool proto)
{
	return ((family ? 128 : 32) - length) * 4 + 3 - (port * 2 + proto);
}

/* The third word of a prefix: all that is compared besides the address. */
static uint64_t kind_word(unsigned family, unsigned combination, uint16_t port, uint8_t proto)
{
	return UINT64_C(1) << 63 | (uint64_t)family << 48 | (uint64_t)combination << 32 |
	       (uint64_t)proto << 16 | port;
}

static bool has_port(unsigned combination)
{
	return ((3 - combination % 4) & 2) != 0;
}

static bool has_proto(unsigned combination)
{
	return ((3 - combination % 4) & 1) != 0;
}

static unsigned length_of(unsigned family, unsigned combination)
{
	return (family ? 128 : 32) - combination / 4;
}

static unsigned combination_of_prefix(const struct block_prefix *prefix)
{
	return combination_of(family_of(prefix->version), prefix->length, prefix->port != BLOCK_ANY,
		prefix->proto != BLOCK_ANY);
}

void block_to_words(struct block_words *words, const struct block_match *match)
{
	const struct block_prefix *prefix = &match->prefix;

	*words = (struct block_words){0};
	if (match->is_flow) {
		memcpy(words, &match->flow, sizeof(*words));
		return;
	}
	address_words(words->word, prefix->addr);
	words->word[2] = kind_word(family_of(prefix->version), combination_of_prefix(prefix),
		prefix->port == BLOCK_ANY ? 0 : (uint16_t)prefix->port,
		prefix->proto == BLOCK_ANY ? 0 : (uint8_t)prefix->proto);
}

/* A key's last word is never 0: it has the IP version. */
static bool is_flow(const struct block_words *words)
{
	return words->word[4] != 0;
}

static unsigned words_family(const struct block_words *words)
{
	return words->word[2] >> 48 & 1;
}

static unsigned words_combination(const struct block_words *words)
{
	return words->word[2] >> 32 & UINT16_MAX;
}

void block_from_words(struct block_match *match, const struct block_words *words)
{
	unsigned family = words_family(words), combination = words_combination(words);
	uint64_t kind = words->word[2];

	*match = (struct block_match){.is_flow = is_flow(words)};
	if (match->is_flow) {
		memcpy(&match->flow, words, sizeof(match->flow));
		return;
	}
	uint64_t addr[2] = {rte_cpu_to_be_64(words->word[0]), rte_cpu_to_be_64(words->word[1])};
	struct block_prefix *prefix = &match->prefix;

	memcpy(prefix->addr, addr, sizeof(addr));
	prefix->version = family ? 6 : 4;
	prefix->length = (uint8_t)length_of(family, combination);
	prefix->port = has_port(combination) ? (uint16_t)kind : BLOCK_ANY;
	prefix->proto = has_proto(combination) ? (uint8_t)(kind >> 16) : BLOCK_ANY;
}

static inline uint64_t hash_prefix(const struct block_index *index, const uint64_t word[3])
{
	const uint64_t *secret = index->secret;

	return hash_fold(hash_fold(word[0] ^ secret[0], word[1] ^ secret[1]) ^ word[2] ^ secret[2],
		secret[3]);
}

static inline uint64_t hash_flow(const struct block_index *index, const uint64_t word[5])
{
	const uint64_t *secret = index->secret;
	uint64_t a = hash_fold(word[0] ^ secret[0], word[1] ^ secret[1]);
	uint64_t b = hash_fold(word[2] ^ secret[2], word[3] ^ secret[3]);

	return hash_fold(a ^ word[4] ^ secret[4], b ^ secret[3]);
}

static uint64_t hash_of(const struct block_index *index, const struct block_words *words)
{
	return is_flow(words) ? hash_flow(index, words->word) : hash_prefix(index, words->word);
}

static inline uint32_t block_tag(uint64_t hash)
{
	return (uint32_t)(hash >> 56);
}

/* The upper half of a chain's head is a filter of the tags in the chain. */
static inline uint64_t filter_bit(uint32_t tag)
{
	return UINT64_C(1) << (32 + tag % 32);
}

static inline uint32_t block_bucket(const struct block_index *index, uint64_t hash)
{
	return (uint32_t)hash & index->bucket_mask;
}

/* Finding. */

static inline bool same_words(const uint64_t *a, const uint64_t *b)
{
	return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4])) == 0;
}

/*
 * The first link of the hash's chain, or none where the chain's filter says that no entry has its tag.
 * The lines that a walk from there reads are fetched meanwhile.
 */
static inline uint32_t first_link(const struct block_index *index, uint64_t hash)
{
	uint64_t head = __atomic_load_n(&index->heads[block_bucket(index, hash)], __ATOMIC_ACQUIRE);

	if (likely((head & filter_bit(block_tag(hash))) == 0))
		return LINK_NONE;
	uint32_t link = (uint32_t)head, position = link & BLOCK_INDEX_MAX;

	rte_prefetch0(&index->next[position]);
	if (link >> BLOCK_INDEX_POSITION_BITS == block_tag(hash))
		rte_prefetch0(&index->entries[position]);
	return link;
}

/* The position of the entry with these words, from `link` on, or BLOCK_INDEX_NONE. */
static inline uint32_t walk(const struct block_index *index, const struct block_words *words,
	uint64_t hash, uint32_t link)
{
	while (link != LINK_NONE) {
		uint32_t position = link & BLOCK_INDEX_MAX;

		if (link >> BLOCK_INDEX_POSITION_BITS == block_tag(hash) &&
			same_words(index->entries[position].words.word, words->word))
			return position;
		link = __atomic_load_n(&index->next[position], __ATOMIC_ACQUIRE);
	}
	return BLOCK_INDEX_NONE;
}

uint32_t block_index_get(const struct block_index *index, const struct block_words *words)
{
	uint64_t hash = hash_of(index, words);

	return walk(index, words, hash, first_link(index, hash));
}

/* One step of a search: the probes of one combination, for end 0 and end 1, stand side by side. */
struct probes {
	unsigned n;
	struct block_words words[PROBES];
	uint64_t hash[PROBES];
	uint32_t link[PROBES];
};

static inline void add_probe(const struct block_index *index, struct probes *probes,
	const uint64_t addr[2], unsigned length, uint64_t kind)
{
	uint64_t *word = probes->words[probes->n].word;
	uint64_t high = length == 0 ? 0 : length >= 64 ? UINT64_MAX : UINT64_MAX << (64 - length);
	uint64_t low = length <= 64 ? 0 : UINT64_MAX << (128 - length);

	word[0] = addr[0] & high;
	word[1] = addr[1] & low;
	word[2] = kind;
	word[3] = word[4] = 0;
	uint64_t hash = hash_prefix(index, word);

	rte_prefetch0(&index->heads[block_bucket(index, hash)]);
	probes->hash[probes->n++] = hash;
}

static inline void add_combination(const struct block_index *index, struct probes *probes,
	const struct flow_key *key, unsigned combination)
{
	unsigned family = family_of(flow_key_version(key));
	unsigned length = length_of(family, combination);
	uint8_t proto = has_proto(combination) ? key->proto : 0;

	for (unsigned end = 0; end < 2; end++) {
		uint16_t port = has_port(combination) ? rte_be_to_cpu_16(key->port[end]) : 0;
		uint64_t addr[2];

		address_words(addr, key->addr[end]);
		add_probe(index, probes, addr, length, kind_word(family, combination, port, proto));
	}
}

/* The first combination of which an entry is found wins. */
static uint32_t run_probes(const struct block_index *index, struct probes *probes)
{
	for (unsigned i = 0; i < probes->n; i++)
		probes->link[i] = first_link(index, probes->hash[i]);
	for (unsigned i = 0; i < probes->n; i += 2) {
		uint32_t found[2];

		for (unsigned end = 0; end < 2; end++)
			found[end] = walk(index, &probes->words[i + end], probes->hash[i + end],
				probes->link[i + end]);
		if (likely(found[0] == BLOCK_INDEX_NONE && found[1] == BLOCK_INDEX_NONE))
			continue;
		if (found[0] == BLOCK_INDEX_NONE || found[1] == BLOCK_INDEX_NONE)
			return found[0] == BLOCK_INDEX_NONE ? found[1] : found[0];
		return found[index->entries[found[1]].number < index->entries[found[0]].number];
	}
	return BLOCK_INDEX_NONE;
}

/* Adds probes from `*combination` on, which it moves on; at the end it is that of the last one. */
static void fill_probes(const struct block_index *index, struct probes *probes,
	const struct flow_key *key, unsigned *combination)
{
	unsigned family = family_of(flow_key_version(key));
	unsigned end = family ? BLOCK_INDEX_COMBINATIONS : 33 * 4;

	probes->n = 0;
	while (*combination < end && probes->n < PROBES) {
		uint64_t bits = __atomic_load_n(
			&index->in_use[family][*combination / 64], __ATOMIC_ACQUIRE);

		bits &= UINT64_MAX << *combination % 64;
		*combination -= *combination % 64;
		if (bits == 0) {
			*combination += 64;
			continue;
		}
		*combination += (unsigned)__builtin_ctzll(bits);
		add_combination(index, probes, key, (*combination)++);
	}
}

uint32_t block_index_find(const struct block_index *index, const struct flow_key *key)
{
	bool flows = __atomic_load_n(&index->n_flows, __ATOMIC_ACQUIRE) != 0;
	uint32_t found = BLOCK_INDEX_NONE;
	unsigned combination = 0;
	struct block_words words;
	struct probes probes;
	uint64_t hash = 0;

	if (flows) {
		memcpy(&words, key, sizeof(words));
		hash = hash_flow(index, words.word);
		rte_prefetch0(&index->heads[block_bucket(index, hash)]);
	}
	fill_probes(index, &probes, key, &combination);
	if (flows)
		found = walk(index, &words, hash, first_link(index, hash));
	while (found == BLOCK_INDEX_NONE && probes.n > 0) {
		found = run_probes(index, &probes);
		fill_probes(index, &probes, key, &combination);
	}
	return found;
}

/* Links. */

static void use_combination(struct block_index *index, const struct block_words *words)
{
	unsigned family = words_family(words), combination = words_combination(words);
	uint64_t *word = &index->in_use[family][combination / 64];

	if (index->combinations[family][combination]++ == 0)
		__atomic_store_n(word, *word | UINT64_C(1) << combination % 64, __ATOMIC_RELEASE);
}

static void leave_combination(struct block_index *index, const struct block_words *words)
{
	unsigned family = words_family(words), combination = words_combination(words);
	uint64_t *word = &index->in_use[family][combination / 64];

	if (--index->combinations[family][combination] == 0)
		__atomic_store_n(
			word, *word & ~(UINT64_C(1) << combination % 64), __ATOMIC_RELEASE);
}

void block_index_link(struct block_index *index, uint32_t position)
{
	struct block_entry *entry = &index->entries[position];
	uint64_t hash = hash_of(index, &entry->words);
	uint64_t *head = &index->heads[block_bucket(index, hash)];
	uint64_t filter = (*head & FILTER_MASK) | filter_bit(block_tag(hash));

	__atomic_store_n(&index->next[position], (uint32_t)*head, __ATOMIC_RELEASE);
	__atomic_store_n(head, filter | block_tag(hash) << BLOCK_INDEX_POSITION_BITS | position,
		__ATOMIC_RELEASE);
	if (is_flow(&entry->words))
		__atomic_store_n(&index->n_flows, index->n_flows + 1, __ATOMIC_RELEASE);
	else
		use_combination(index, &entry->words);
}

void block_index_unlink(struct block_index *index, uint32_t position)
{
	struct block_entry *entry = &index->entries[position];
	uint64_t *head = &index->heads[block_bucket(index, hash_of(index, &entry->words))];
	uint32_t first = (uint32_t)*head, link = first, *before = &first;
	uint64_t filter = 0;

	/* the entry's own link stays, for readers that stand on it */
	for (; link != LINK_NONE; link = index->next[link & BLOCK_INDEX_MAX]) {
		uint32_t at = link & BLOCK_INDEX_MAX;

		if (at == position) {
			__atomic_store_n(before, index->next[at], __ATOMIC_RELEASE);
			continue;
		}
		filter |= filter_bit(link >> BLOCK_INDEX_POSITION_BITS);
		before = &index->next[at];
	}
	__atomic_store_n(head, filter | first, __ATOMIC_RELEASE);
	if (is_flow(&entry->words))
		__atomic_store_n(&index->n_flows, index->n_flows - 1, __ATOMIC_RELEASE);
	else
		leave_combination(index, &entry->words);
}
