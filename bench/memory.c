/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/memory.h"

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "base/mapping.h"

#define HEAP "bench"
#define PAGE ((size_t)2 << 20)

int bench_heap_create(size_t bytes)
{
	bytes = RTE_ALIGN_CEIL(bytes, PAGE);

	void *memory = mapping_create(bytes, MAPPING_HUGE);

	if (memory == NULL)
		return -ENOMEM;
	if (rte_malloc_heap_create(HEAP) != 0 ||
		rte_malloc_heap_memory_add(
			HEAP, memory, bytes, NULL, (unsigned)(bytes / PAGE), PAGE) != 0) {
		mapping_destroy(memory, bytes);
		return -rte_errno;
	}
	return rte_malloc_heap_get_socket(HEAP);
}
