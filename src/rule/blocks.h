/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The list of what an operator has blocked: flows, and prefixes with or without a port and a protocol
 * (rule/block.h).
 *
 * Threads: one writer, the control thread, adds, removes, expires, lists and reads statistics. Any
 * number of workers call blocks_find(), blocks_number() and blocks_generation(), and never wait: they
 * are readers of the RCU variable that the creator was given, and report their quiescent states there.
 * Each worker counts dropped packets in its own array (blocks_counts()).
 *
 * When several blocks fit, this one applies: that of the flow itself, then the longest prefix, then with
 * equal length the one with port and protocol, with port, with protocol, with neither. If both ends of
 * a flow fit blocks of the same length and kind, the older block applies.
 *
 * How a change reaches live flows: each change that may alter a decision raises the generation after
 * it has become visible. A worker reads the generation, then decides a flow; when the generation is
 * higher than that later, the worker decides its flows again. When every worker has done so, the
 * caller says so by blocks_settled(). Until then removed entries keep their positions, so that a
 * worker may count on the position that a flow was given, without any check.
 *
 * Memory is taken at creation: for a million entries about 110 bytes each, and 17 more for each
 * worker (blocks_memory()). Adding to a full list is refused and counted. The list has room for a
 * sixteenth more entries that are removed but not settled; when they fill it, adding is -EAGAIN.
 *
 * Times are microseconds of the run (base/clock.h) and come from the caller.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_rcu_qsbr.h>

#include "base/error.h"
#include "packet/hash.h"
#include "packet/key.h"
#include "rule/block.h"

#define BLOCKS_NONE UINT32_MAX
#define BLOCKS_MAX_ENTRIES 15728640u

struct blocks;

struct blocks_config {
	uint32_t max_entries;		  /* 1 to BLOCKS_MAX_ENTRIES */
	uint32_t max_reasons;		  /* different texts; 0: none can be given */
	unsigned n_workers;		  /* how many count */
	const struct hash_secret *secret; /* copied */
	struct rte_rcu_qsbr *qsbr;	  /* the caller's, until after blocks_destroy() */
};

/* The drops of a worker, by position. Only that worker writes them. */
struct blocks_count {
	uint64_t packets, bytes;
};

/* An entry as the writer sees it. */
struct block_view {
	uint64_t number;     /* from 1, never used again */
	uint64_t added_us;   /* when it was added first */
	uint64_t expires_us; /* 0: never */
	struct block_match match;
	const char *reason; /* or NULL; valid until the next change */
	uint64_t packets, bytes;
	uint32_t position;
};

struct blocks_stats {
	uint32_t entries, flows, max_entries;
	uint32_t unsettled; /* removed, but their positions are not free yet */
	uint32_t reasons, max_reasons;
	uint64_t added, replaced, removed, expired;
	uint64_t refused_full, refused_reasons, refused_unsettled;
	/* what was dropped by entries that are removed and settled */
	uint64_t gone_packets, gone_bytes;
};

/* 0, -EINVAL, or what mapping_create() says. */
int blocks_create(struct blocks **blocks, const struct blocks_config *config);
/* After the workers have stopped. Accepts NULL. */
void blocks_destroy(struct blocks *blocks);
size_t blocks_memory(const struct blocks *blocks);

/* Workers: */

/*
 * The position of the block that applies to a flow, or BLOCKS_NONE. It costs one probe for the flow
 * and two for each combination of length, port and protocol that is in use for the IP version.
 */
uint32_t blocks_find(const struct blocks *blocks, const struct flow_key *key);

/* The number of the block at a position that blocks_find() gave and that has not settled since. */
uint64_t blocks_number(const struct blocks *blocks, uint32_t position);

/* Rises with each change that may alter a decision. Starts at 1. */
uint64_t blocks_generation(const struct blocks *blocks);

/* The array of a worker, by position, for blocks_count_packets(). */
struct blocks_count *blocks_counts(struct blocks *blocks, unsigned worker);

/* Counts dropped packets. */
static inline void blocks_count_packets(
	struct blocks_count *counts, uint32_t position, uint64_t packets, uint64_t bytes)
{
	struct blocks_count *count = &counts[position];

	/* plain adds; atomic only in that the writer may read at the same time */
	__atomic_store_n(&count->packets, count->packets + packets, __ATOMIC_RELAXED);
	__atomic_store_n(&count->bytes, count->bytes + bytes, __ATOMIC_RELAXED);
}

/* The writer: */

/*
 * Adds a block. 0: it is new. 1: a block with the same match was there; it keeps its number, its
 * counters and the time when it was added, and gets the expiry and reason of this one. `number` may be
 * NULL. Else nothing changes: -EINVAL for a match, expiry or reason that cannot be; -ENOSPC when the list
 * or the memory for reasons is full; -EAGAIN when removed entries must settle first.
 */
int blocks_add(struct blocks *blocks, const struct block *block, uint64_t now_us, uint64_t *number);

struct blocks_added {
	uint32_t added, replaced;
};

/*
 * Adds all of them or, with the errors of blocks_add(), none. Of equal matches the last one counts.
 * -ENOMEM when there is no memory to check a list that may not fit. Workers may see some of the
 * blocks before others; the generation rises once, at the end.
 */
int blocks_add_all(struct blocks *blocks, const struct block *list, uint32_t n, uint64_t now_us,
	struct blocks_added *added);

/*
 * Removes a block. 0 or -ENOENT. `gone` (or NULL) becomes what it was; packets that workers count on
 * it until it settles are in blocks_stats.gone_packets alone.
 */
int blocks_remove(struct blocks *blocks, const struct block_match *match, struct block_view *gone);
int blocks_remove_number(struct blocks *blocks, uint64_t number, struct block_view *gone);

/* Told of an entry that has expired. It must not change the list. */
typedef void (*blocks_expired_fn)(void *context, const struct block_view *gone);

/*
 * Removes what is due by `now_us` and tells each by `expired` (or NULL); returns how many. An entry
 * lives as long as it was to, and less than a second longer if this is called often enough.
 */
uint32_t blocks_expire(
	struct blocks *blocks, uint64_t now_us, blocks_expired_fn expired, void *context);

/*
 * Every worker has decided all its live flows at this generation or a later one: what was removed
 * until then is in no flow any more.
 */
void blocks_settled(struct blocks *blocks, uint64_t generation);

/* What a list is of. Zeroed, it is of everything. */
struct blocks_filter {
	/* flows with an end in this prefix, prefixes that lie in it or hold it; version 0: all */
	struct block_prefix prefix;
	/* blocks that fit this flow, or NULL */
	const struct flow_key *flow;
};

/*
 * Fills up to `max` views of entries from position `*from` on, which it moves on; it becomes
 * BLOCKS_NONE at the end of the list. Begin with 0. A call looks at 65,536 entries at most, so that it may
 * find none before the end. An entry that is there all the time is listed exactly once.
 */
uint32_t blocks_list(const struct blocks *blocks, const struct blocks_filter *filter,
	uint32_t *from, struct block_view *views, uint32_t max);

/* One entry. 0 or -ENOENT. */
int blocks_get(
	const struct blocks *blocks, const struct block_match *match, struct block_view *view);
int blocks_get_number(const struct blocks *blocks, uint64_t number, struct block_view *view);

void blocks_stats(const struct blocks *blocks, struct blocks_stats *stats);

/* Files (rule/block_file.c): */

#define BLOCKS_FILE_MAX_BYTES ((size_t)1 << 30)

/*
 * Adds the blocks of a text: one a line (rule/block.h), with empty lines and lines that begin with
 * '#'. All or none. The error names the file, the line and the column: -EBADMSG for a line that is wrong
 * and -EFBIG for a text that is too long; others as in blocks_add_all(), or why a file cannot be read.
 */
int blocks_load_file(struct blocks *blocks, const char *path, uint64_t now_us,
	struct blocks_added *added, struct error *error);
/* The same from memory; `name` stands for the file. */
int blocks_load_bytes(struct blocks *blocks, const char *name, const char *bytes, size_t size,
	uint64_t now_us, struct blocks_added *added, struct error *error);

/* The blocks of a text, in its order. Zeroed, it has none. blocks_list_fini() frees it. */
struct blocks_list {
	struct block *blocks; /* their reasons lie in `text` */
	uint32_t n;
	char *text;
};

/* Reads a text as blocks_load_bytes() does, but nothing is added anywhere. After an error the list is empty. */
int blocks_list_read(struct blocks_list *list, const char *name, const char *bytes, size_t size,
	struct error *error);
void blocks_list_fini(struct blocks_list *list);
