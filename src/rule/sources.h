/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Sources and what limits know of them: for each limit and source either how many live flows it has, or how far its new
 * flows have used up what it may begin (a token bucket, kept as the time at which it is full again).
 *
 * One table for all workers, so that a limit is exact wherever flows are learned. It has no lock: an entry is two words,
 * exchanged as one. Nobody waits for another worker; who finds that another one is just making the same entry takes that
 * one's away and makes his own.
 *
 * Memory is taken at creation. An entry that says nothing (no live flow, or a bucket that is full) is free for others. Where
 * no entry is free the source is not known: SOURCES_FULL, which is counted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/hash.h"

#define SOURCES_MAX 16777216u

/* A source of a limit: addresses as in a classifier's header, with zeros where they do not count. */
struct sources_key {
	uint32_t limit;
	uint32_t version;
	uint32_t addr[4];
};

/* Times are in parts of a microsecond. */
#define SOURCES_TIME_SHIFT 10

/* A bucket: each new flow takes `interval`, and at most `span` may be taken before a flow. */
struct sources_rate {
	uint64_t interval, span;
};

/* So many flows in so many seconds, and `burst` at once; all from 1 to 1,000,000, seconds up to 3,600. */
struct sources_rate sources_rate_of(uint32_t flows, uint32_t seconds, uint32_t burst);

enum sources_answer {
	SOURCES_TAKEN, /* the flow was counted */
	SOURCES_ABOVE, /* it would be above the limit, and was not counted */
	SOURCES_FULL,  /* the table has no entry left for its source */
};

struct sources;

/* Room for so many sources of limits, 1 to SOURCES_MAX. 0, -EINVAL, or what mapping_create() says. */
int sources_create(struct sources **sources, uint32_t max, const struct hash_secret *secret);
/* Accepts NULL. */
void sources_destroy(struct sources *sources);
size_t sources_memory(const struct sources *sources);

/* The clock begins anew, and nobody else is here: there is no flow, and all buckets are full. */
void sources_restart(struct sources *sources);

/* Any thread: */

/* A new flow. `now_us`: the clock of the run. */
enum sources_answer sources_begin(struct sources *sources, const struct sources_key *key,
	const struct sources_rate *rate, uint64_t now_us);
/* A live flow more, if there are not `most` yet. `now_us` as above: by it full buckets are told. */
enum sources_answer sources_enter(
	struct sources *sources, const struct sources_key *key, uint32_t most, uint64_t now_us);
/* One less, which was counted. */
void sources_leave(struct sources *sources, const struct sources_key *key);

/* How many live flows the source has. */
uint32_t sources_live(const struct sources *sources, const struct sources_key *key);
/* Would a new flow be above? */
bool sources_is_above(const struct sources *sources, const struct sources_key *key,
	const struct sources_rate *rate, uint64_t now_us);

struct sources_stats {
	uint32_t max;
	uint32_t used; /* entries that say something */
	uint64_t full; /* how often no entry was free */
};
void sources_stats(const struct sources *sources, uint64_t now_us, struct sources_stats *stats);
