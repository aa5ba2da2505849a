/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Memory of one command: taken piece by piece, given back all at once. There is a limit, so that no line
 * can take more than that.
 */

#include <stddef.h>

struct rule_memory_chunk;

struct rule_memory {
	struct rule_memory_chunk *chunks; /* newest first */
	size_t total;
};

#define RULE_MEMORY_MAX (256 * 1024)

void rule_memory_init(struct rule_memory *memory);
void rule_memory_fini(struct rule_memory *memory);

/* Returns zeroed memory for any type, or NULL with errno: ENOMEM, or E2BIG beyond the limit. */
void *rule_memory_take(struct rule_memory *memory, size_t size);
