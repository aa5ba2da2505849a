/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "base/mapping.h"

#define HEAP "bench"
#define PAGE ((size_t)2 << 20)

/* Kilobytes on large pages of the mapping that this address lies in; negative errno: nobody says. */
static long huge_at(const void *address)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool inside = false;
	char line[512];
	long huge = -ENOENT;

	while (smaps != NULL && huge < 0 && fgets(line, sizeof(line), smaps) != NULL) {
		uintptr_t first, last;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2)
			inside = (uintptr_t)address >= first && (uintptr_t)address < last;
		else if (inside && sscanf(line, "AnonHugePages: %ld", &huge) != 1)
			huge = -ENOENT;
	}
	if (smaps != NULL)
		(void)fclose(smaps);
	return huge;
}

int bench_huge_pages(void)
{
	char *memory = mapping_create(PAGE, MAPPING_HUGE | MAPPING_POPULATE);
	long huge = memory == NULL ? -ENOMEM : huge_at(memory);

	mapping_destroy(memory, PAGE);
	return huge < 0 ? (int)huge : huge > 0;
}

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
