/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/table_heap.h"

#include <errno.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "base/mapping.h"

/* As DPDK is told, which does not look. */
#define PAGE ((size_t)2 << 20)

int table_heap_create(struct table_heap *heap, size_t bytes, bool small_pages)
{
	static unsigned n;

	*heap = (struct table_heap){.bytes = RTE_ALIGN_CEIL(bytes, PAGE)};
	snprintf(heap->name, sizeof(heap->name), "table%u", n++);
	/* aligned as for large pages: DPDK wants that */
	heap->memory =
		mapping_create(heap->bytes, MAPPING_HUGE | (small_pages ? MAPPING_SMALL : 0));
	if (heap->memory == NULL)
		return -errno;
	if (rte_malloc_heap_create(heap->name) == 0) {
		if (rte_malloc_heap_memory_add(heap->name, heap->memory, heap->bytes, NULL,
			    (unsigned)(heap->bytes / PAGE), PAGE) == 0) {
			heap->socket = rte_malloc_heap_get_socket(heap->name);
			return 0;
		}
		rte_malloc_heap_destroy(heap->name);
	}
	mapping_destroy(heap->memory, heap->bytes);
	heap->memory = NULL;
	return -rte_errno;
}

void table_heap_destroy(struct table_heap *heap)
{
	if (heap->memory == NULL)
		return;
	rte_malloc_heap_memory_remove(heap->name, heap->memory, heap->bytes);
	rte_malloc_heap_destroy(heap->name);
	mapping_destroy(heap->memory, heap->bytes);
	heap->memory = NULL;
}

size_t table_heap_used(const struct table_heap *heap)
{
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats(heap->socket, &stats) == 0 ? stats.heap_allocsz_bytes
								      : 0;
}
