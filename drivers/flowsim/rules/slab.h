/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Memory for very many objects of one size whose addresses an application gives back: for any pointer,
 * whatever it points to, it can be told whether an object lives there. An object's place is not used
 * again before SIM_SLAB_QUARANTINE others were freed after it, so that a handle that was destroyed just
 * before is known to be none.
 *
 * Memory is given back when the slab ends. Not thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_SLAB_QUARANTINE 1024

struct sim_slab_chunk;
struct sim_slab_free;

struct sim_slab {
	uint32_t size;			/* of an object: a multiple of 16 */
	uint32_t per_chunk;		/* objects */
	struct sim_slab_chunk **chunks; /* a hash set by address, open */
	uint32_t n_chunks, n_places;
	struct sim_slab_chunk *last; /* objects of it from `carved` on were never used */
	uint32_t carved;
	struct sim_slab_free *oldest, *newest; /* freed */
	uint64_t n_free;
};

/* Up to 4096 bytes. */
void sim_slab_init(struct sim_slab *slab, size_t size);
void sim_slab_fini(struct sim_slab *slab); /* objects that live go too */

/* Its first `zeroed` bytes are 0. NULL without memory. */
void *sim_slab_alloc(struct sim_slab *slab, size_t zeroed);
void sim_slab_free(struct sim_slab *slab, void *object); /* accepts NULL */

/* Whether an object lives exactly there. Any pointer. */
bool sim_slab_has(const struct sim_slab *slab, const void *pointer);
