/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the files of the look-up share, each compiled once per SIMD level: a burst's headers of one space, how far the
 * search for each has come, and what is known of the space's tuples. classifier_find.c searches headers of all spaces;
 * classifier_lanes.c does it for IPv4 with AVX-512.
 */

#include "rule/classifier_private.h"

/* The look-up of IPv4's headers by vectors of eight. The thread sanitizer cannot follow their loads. */
#if SIMD_LEVEL >= SIMD_LEVEL_AVX512 && !defined(__SANITIZE_THREAD__)
#define CLASSIFIER_HAS_LANES
#endif

struct search {
	struct bits left; /* tuples that may have a better rule */
	uint64_t order;	  /* of what was found, or UINT64_MAX */
	uint64_t hash;
	uint32_t link, shared; /* of chains that are to be searched */
};

/* A part of a burst, in one space. */
struct part {
	const struct classifier *classifier;
	const struct space *space;
	uint32_t group;
	uint32_t belongs, belongs_mask; /* of records: those of the group and list */
	uint32_t salt;
	uint64_t from; /* rules of a lower order are left out */
	enum space_kind kind;
	const struct classifier_header *const *headers;
	struct search *searches; /* as `headers` */
	uint32_t *found;	 /* likewise: records, or NO_LINK */
	unsigned n;
	uint8_t which[CLASSIFIER_BURST]; /* of the headers */
};

/* Both words of bits. Torn ones would do: each word stands for tuples of its own. */
typedef uint64_t both __attribute__((vector_size(16)));

/* What a space knows of its tuples, loaded once for a burst. */
struct known {
	both src[CLASSES_V6], dst[CLASSES_V6], no_src_port, no_dst_port;
};

static inline both known_of(const struct bits *bits)
{
	struct bits loaded = bits_load(bits);

	return (both){loaded.word[0], loaded.word[1]};
}

static inline void know(struct known *known, const struct space *space)
{
	for (unsigned class = 0; class < CLASSES_V6; class ++) {
		known->src[class] = known_of(&space->src[class]);
		known->dst[class] = known_of(&space->dst[class]);
	}
	known->no_src_port = ~known_of(&space->src_port);
	known->no_dst_port = ~known_of(&space->dst_port);
}

/*
 * Takes the tuple with the best rule out of those left, and all that cannot win. NO_LINK: none is left. There
 * are no branches but those of the loops, since they would go either way.
 */
static inline uint32_t take_best(const struct space *space, struct search *search)
{
	uint64_t limit = search->order, best = limit;
	uint32_t taken = NO_LINK;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t rest = 0;

		for (uint64_t word = search->left.word[i]; word != 0; word &= word - 1) {
			uint32_t tuple = i * 64 + (uint32_t)__builtin_ctzll(word);
			uint64_t order = __atomic_load_n(&space->best[tuple], __ATOMIC_RELAXED);
			uint64_t better = 0 - (uint64_t)(order < best);

			rest |= word & -word & (0 - (uint64_t)(order < limit));
			best ^= (best ^ order) & better;
			taken ^= (taken ^ tuple) & (uint32_t)better;
		}
		search->left.word[i] = rest;
	}
	if (taken != NO_LINK)
		search->left.word[taken / 64] &= ~(UINT64_C(1) << taken % 64);
	return taken;
}

#ifdef CLASSIFIER_HAS_LANES
/* Searches the space of IPv4 for all headers of the part, for which nothing has been found before. */
void SIMD_SYMBOL(classifier_search_lanes)(const struct part *part);
#endif
