/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Items of one size by their keys, at most so many: a hash table for what the kernel has told. Several items may have the same
 * key. An item begins with its head, after which its key follows; its memory does not move while it is there.
 *
 * A dump of the kernel's tells all items of a kind again. Each dump has a number, and an item keeps the number of the last
 * one that named it (`marked`), and of the last one during which a message of its own told of it (`told`). When a dump is
 * complete, what it has not named and nobody has told of meanwhile is stale. What was removed during a dump is kept in mind
 * until its end, since the dump may name it still.
 *
 * The functions return items as what their users have made of them: structures that begin with a struct item.
 *
 * One thread's. Memory is the table's own: it is reserved whole, and the system gives it page by page.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct item {
	uint32_t next; /* in its bucket, plus 1; in the list of free ones too */
	bool used;
	uint32_t marked, told;
};

/* Removals that are kept in mind during a dump. */
#define ITEMS_REMOVED 4096

struct items {
	char *memory;
	uint32_t *buckets;
	size_t item_bytes, key_bytes;
	uint32_t n_buckets, max, fresh; /* `fresh` on: never used */
	uint32_t free;			/* the first free one, plus 1 */
	uint32_t n;
	bool dumping;
	bool removed_lost; /* there were more than are kept in mind */
	unsigned n_removed;
	uint32_t removed[ITEMS_REMOVED]; /* hashes of their keys */
};

/* 0, or -ENOMEM and nothing is taken. `item_bytes` is a multiple of 8, with the head. */
int items_init(struct items *items, size_t item_bytes, size_t key_bytes, uint32_t max);
/* Accepts zeros. */
void items_fini(struct items *items);

static inline const void *item_key(const struct item *item)
{
	return item + 1;
}

/* The dump of this number has not named it, and no message since that began. */
static inline bool item_is_stale(const struct item *item, uint32_t number)
{
	return item->marked != number && item->told != number;
}

/* The first item with this key; NULL: there is none. */
void *items_find(const struct items *items, const void *key);
/* The next one with the same key as `item`. */
void *items_again(const struct items *items, const struct item *item);
/* Adds an item of zeros with this key, whether or not there is one; NULL: there is no room. */
void *items_add(struct items *items, const void *key);
void items_remove(struct items *items, struct item *item);

/* The first item at `*position` or after it, which is set behind it; NULL: there is none. Begin with 0; removing is allowed. */
void *items_next(const struct items *items, uint32_t *position);

/* Its number: it stays the same as long as it is there. */
uint32_t items_number(const struct items *items, const struct item *item);
void *items_at(const struct items *items, uint32_t number);

/* A dump begins, and ends; between them was_removed() tells whether one with this key was removed meanwhile. */
void items_dump_begin(struct items *items);
void items_dump_end(struct items *items);
bool items_was_removed(const struct items *items, const void *key);
