/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How blocks are found: hash chains that readers walk without locks.
 *
 * An entry is a position in an array that the owner gives, with a match in the form that is hashed and
 * compared. A chain is made of links: a link is the position of an entry, and 8 bits of its hash, its
 * tag. The head of a chain has a filter of the tags in it, so that a miss rarely reads more than that.
 * Entries are linked in front of their chain. An entry that is
 * taken off keeps its own link, for readers that stand on it: the owner must not link its position
 * again before all readers have been quiescent.
 *
 * One bit for each combination of prefix length, port and protocol says whether it is in use, so that
 * a search costs two probes for each of these, one for each end, and one for the flow.
 *
 * One thread links and unlinks. Any thread may call the functions that take a const index.
 */

#include <stddef.h>
#include <stdint.h>

#include "packet/hash.h"
#include "packet/key.h"
#include "rule/block.h"

#define BLOCK_INDEX_POSITION_BITS 24
#define BLOCK_INDEX_MAX ((UINT32_C(1) << BLOCK_INDEX_POSITION_BITS) - 1)
#define BLOCK_INDEX_NONE UINT32_MAX

/* IPv4 uses the combinations of 33 lengths, IPv6 those of 129. */
#define BLOCK_INDEX_COMBINATIONS (129 * 4)
#define BLOCK_INDEX_WORDS ((BLOCK_INDEX_COMBINATIONS + 63) / 64)

/* A match as it is hashed and compared: the key, or the prefix with the last two words 0. */
struct block_words {
	uint64_t word[5];
};

/* A cache line. Readers read the words and the number, which stay while a reader may stand here. */
struct block_entry {
	struct block_words words;
	uint64_t number; /* of two that fit equally well the lower one is found */
	uint64_t own[2]; /* the owner's */
};

struct block_index {
	uint64_t in_use[2][BLOCK_INDEX_WORDS]; /* for IPv4, for IPv6; most specific first */
	uint32_t n_flows;
	uint32_t bucket_mask;
	uint64_t *heads; /* by bucket: the first link, and a filter of the tags in the chain */
	uint32_t *next;
	struct block_entry *entries;
	uint64_t secret[5];
	uint32_t combinations[2][BLOCK_INDEX_COMBINATIONS]; /* the writer's: entries of each */
};

/*
 * An empty index of `entries`; `next` has a link for each of them, and `heads` `n_heads`, a power of
 * two. All of it is the owner's memory.
 */
void block_index_init(struct block_index *index, const struct hash_secret *secret,
	struct block_entry *entries, uint32_t *next, uint64_t *heads, uint32_t n_heads);

/* A match that block_match_check() takes, as words, and back. */
void block_to_words(struct block_words *words, const struct block_match *match);
void block_from_words(struct block_match *match, const struct block_words *words);

/* The position of the entry with these words, or BLOCK_INDEX_NONE. */
uint32_t block_index_get(const struct block_index *index, const struct block_words *words);

/* The position of the entry that applies to a flow, or BLOCK_INDEX_NONE. */
uint32_t block_index_find(const struct block_index *index, const struct flow_key *key);

/* From here on readers find the entry, which is filled. */
void block_index_link(struct block_index *index, uint32_t position);
/* From here on new searches do not find it. */
void block_index_unlink(struct block_index *index, uint32_t position);
