/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A heap of a contender's own, on 2 MB pages or on 4 KB ones, given back when it is done: at the largest
 * sizes the memory of one is what the next needs.
 */

#include <stdbool.h>
#include <stddef.h>

struct table_heap {
	void *memory;
	size_t bytes;
	int socket; /* by which DPDK's functions ask it */
	char name[24];
};

/* Returns 0 or a negative errno; after that table_heap_destroy() does nothing, nor on a zeroed one. */
int table_heap_create(struct table_heap *heap, size_t bytes, bool small_pages);
/* What was allocated from it must have been freed. */
void table_heap_destroy(struct table_heap *heap);
/* Bytes that are allocated from it. */
size_t table_heap_used(const struct table_heap *heap);
