/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/memory.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK 2048
#define ALIGN _Alignof(max_align_t)

struct rule_memory_chunk {
	struct rule_memory_chunk *next;
	size_t size, used;
	max_align_t bytes[];
};

void rule_memory_init(struct rule_memory *memory)
{
	*memory = (struct rule_memory){NULL, 0};
}

void rule_memory_fini(struct rule_memory *memory)
{
	while (memory->chunks) {
		struct rule_memory_chunk *chunk = memory->chunks;

		memory->chunks = chunk->next;
		free(chunk);
	}
	memory->total = 0;
}

void *rule_memory_take(struct rule_memory *memory, size_t size)
{
	struct rule_memory_chunk *chunk = memory->chunks;

	errno = E2BIG;
	if (size > RULE_MEMORY_MAX)
		return NULL;
	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > CHUNK ? size : CHUNK;

		if (memory->total + room > RULE_MEMORY_MAX)
			return NULL;
		chunk = calloc(1, sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->size = room;
		chunk->next = memory->chunks;
		memory->chunks = chunk;
		memory->total += room;
	}
	void *taken = (char *)chunk->bytes + chunk->used;

	chunk->used += size;
	return taken;
}
