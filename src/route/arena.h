/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Memory of a routing table: blocks of many sizes out of one mapping, whose size is fixed at start.
 *
 * The mapping is cut into pages of 4 KB. A page holds blocks of one kind and size class, and goes back
 * to the free pages when its last block does. Blocks are named by 30-bit references, so that an entry
 * of a node can hold one beside a flag.
 *
 * Blocks of changed sizes leave pages that are partly empty. What they hold together is never lost:
 * arena_thin_out() picks the emptiest pages of each class, as many as the class's other pages have room
 * for, and takes no more blocks from them. The owner then moves the blocks that lie there
 * (arena_leaves()), and the pages become free. Every class can so be brought down to one page that is
 * partly empty.
 *
 * One thread owns an arena. Others may read blocks that the owner has published.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_PAGE ((size_t)4096)
#define ARENA_GRANULE ((size_t)8)
#define ARENA_MAX_BLOCK ((size_t)576)
#define ARENA_CLASSES 20
#define ARENA_KINDS 2
#define ARENA_NONE UINT32_C(0)
#define ARENA_MAX_BYTES ((size_t)7 << 30)

struct arena_page {
	uint32_t next, previous; /* of the pages of this class that have room, or that are free */
	uint16_t free; /* first free block, in granules from the page's start; or the end */
	uint16_t n_used;
	uint8_t class; /* kind and size; ARENA_FREE: none */
	bool leaving;
};

struct arena {
	uint8_t *memory;
	size_t size;
	struct arena_page *pages; /* page 0 is not used: a reference of 0 is none */
	uint32_t n_pages, n_touched, n_in_use;
	uint32_t free_pages;
	uint32_t with_room[ARENA_CLASSES * ARENA_KINDS];
};

/* 0, -EINVAL for less than two pages or too many, or what mapping_create() says. */
int arena_init(struct arena *arena, size_t bytes);
void arena_fini(struct arena *arena);

/* A block of at least `bytes`, or ARENA_NONE when there is no room. */
uint32_t arena_take(struct arena *arena, unsigned kind, size_t bytes);
void arena_give(struct arena *arena, uint32_t reference);

/* Bytes of the block, and of the block that arena_take() would find for `bytes`. */
size_t arena_block_bytes(const struct arena *arena, uint32_t reference);
size_t arena_class_bytes(size_t bytes);

static inline void *arena_at(const struct arena *arena, uint32_t reference)
{
	return arena->memory + (size_t)reference * ARENA_GRANULE;
}

/* Bytes of the pages that hold blocks, and of the books about them. */
size_t arena_in_use(const struct arena *arena);

/* How many pages will be free when the blocks in them have been moved. */
uint32_t arena_thin_out(struct arena *arena);
/* Whether the block lies on a page that is to become free. */
bool arena_leaves(const struct arena *arena, uint32_t reference);
