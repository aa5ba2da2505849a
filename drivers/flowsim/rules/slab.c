/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/slab.h"

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

/* A chunk lies at a multiple of its size, so that any pointer says which chunk it would be in. */
#define CHUNK_SHIFT 18
#define CHUNK_SIZE ((size_t)1 << CHUNK_SHIFT)
#define LEAST_OBJECT 16

struct sim_slab_chunk {
	uint64_t lives[CHUNK_SIZE / LEAST_OBJECT / 64]; /* a bit an object */
	uint8_t objects[];
};

/* In the memory of an object that was freed. */
struct sim_slab_free {
	struct sim_slab_free *next;
};

/* Address sanitizer is told what is free: it would not know. The link of the list stays readable. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

void sim_slab_init(struct sim_slab *slab, size_t size)
{
	*slab = (struct sim_slab){.size = (uint32_t)RTE_ALIGN(size, (size_t)LEAST_OBJECT)};
	slab->per_chunk = (uint32_t)((CHUNK_SIZE - sizeof(struct sim_slab_chunk)) / slab->size);
}

void sim_slab_fini(struct sim_slab *slab)
{
	for (uint32_t i = 0; i < slab->n_places; i++) {
		if (slab->chunks[i] == NULL)
			continue;
		ASAN_UNPOISON_MEMORY_REGION(slab->chunks[i], CHUNK_SIZE);
		free(slab->chunks[i]);
	}
	free(slab->chunks);
	*slab = (struct sim_slab){.size = slab->size, .per_chunk = slab->per_chunk};
}

/* Where the chunk at an address stands in the set, or would. */
static uint32_t place_of(struct sim_slab_chunk *const *chunks, uint32_t n_places, uintptr_t address)
{
	uint32_t at = (uint32_t)((address >> CHUNK_SHIFT) * 0x9e3779b97f4a7c15u >> 32);

	for (at &= n_places - 1; chunks[at] != NULL && (uintptr_t)chunks[at] != address;)
		at = (at + 1) & (n_places - 1);
	return at;
}

/* The set is at most half full. */
static bool make_place(struct sim_slab *slab)
{
	uint32_t n_places = slab->n_places == 0 ? 16 : 2 * slab->n_places;
	struct sim_slab_chunk **chunks;

	if (2 * (slab->n_chunks + 1) <= slab->n_places)
		return true;
	chunks = calloc(n_places, sizeof(struct sim_slab_chunk *));
	if (chunks == NULL)
		return false;
	for (uint32_t i = 0; i < slab->n_places; i++) {
		struct sim_slab_chunk *chunk = slab->chunks[i];

		if (chunk != NULL)
			chunks[place_of(chunks, n_places, (uintptr_t)chunk)] = chunk;
	}
	free(slab->chunks);
	slab->chunks = chunks;
	slab->n_places = n_places;
	return true;
}

static bool grow(struct sim_slab *slab)
{
	struct sim_slab_chunk *chunk;

	if (!make_place(slab))
		return false;
	chunk = aligned_alloc(CHUNK_SIZE, CHUNK_SIZE);
	if (chunk == NULL)
		return false;
	memset(chunk->lives, 0, sizeof(chunk->lives));
	ASAN_POISON_MEMORY_REGION(chunk->objects, CHUNK_SIZE - sizeof(*chunk));
	slab->chunks[place_of(slab->chunks, slab->n_places, (uintptr_t)chunk)] = chunk;
	slab->n_chunks++;
	slab->last = chunk;
	slab->carved = 0;
	return true;
}

static struct sim_slab_free *take_oldest(struct sim_slab *slab)
{
	struct sim_slab_free *oldest = slab->oldest;

	if (oldest == NULL)
		return NULL;
	slab->oldest = oldest->next;
	if (slab->oldest == NULL)
		slab->newest = NULL;
	slab->n_free--;
	return oldest;
}

static void *carve(struct sim_slab *slab)
{
	return slab->last->objects + (size_t)slab->carved++ * slab->size;
}

/* The chunk of an object that was this slab's once, and which of it it is. */
static struct sim_slab_chunk *chunk_of(
	const struct sim_slab *slab, const void *object, uint32_t *number)
{
	struct sim_slab_chunk *chunk =
		(struct sim_slab_chunk *)((uintptr_t)object & ~(CHUNK_SIZE - 1));

	*number = (uint32_t)((const uint8_t *)object - chunk->objects) / slab->size;
	return chunk;
}

void *sim_slab_alloc(struct sim_slab *slab, size_t zeroed)
{
	struct sim_slab_chunk *chunk;
	uint32_t number;
	void *object;

	if (slab->n_free > SIM_SLAB_QUARANTINE)
		object = take_oldest(slab);
	else if ((slab->last != NULL && slab->carved < slab->per_chunk) || grow(slab))
		object = carve(slab);
	else
		object = take_oldest(slab);
	if (object == NULL)
		return NULL;
	chunk = chunk_of(slab, object, &number);
	chunk->lives[number / 64] |= 1ull << (number % 64);
	ASAN_UNPOISON_MEMORY_REGION(object, slab->size);
	memset(object, 0, zeroed);
	return object;
}

void sim_slab_free(struct sim_slab *slab, void *object)
{
	struct sim_slab_free *newest = object;
	struct sim_slab_chunk *chunk;
	uint32_t number;

	if (object == NULL)
		return;
	chunk = chunk_of(slab, object, &number);
	chunk->lives[number / 64] &= ~(1ull << (number % 64));
	newest->next = NULL;
	ASAN_POISON_MEMORY_REGION(
		(uint8_t *)object + LEAST_OBJECT, slab->size - (size_t)LEAST_OBJECT);
	if (slab->newest != NULL)
		slab->newest->next = newest;
	else
		slab->oldest = newest;
	slab->newest = newest;
	slab->n_free++;
}

bool sim_slab_has(const struct sim_slab *slab, const void *pointer)
{
	uintptr_t at = (uintptr_t)pointer & ~(CHUNK_SIZE - 1);
	uintptr_t offset = (uintptr_t)pointer - at;
	const struct sim_slab_chunk *chunk;

	if (slab->n_chunks == 0 || offset < sizeof(*chunk))
		return false;
	chunk = slab->chunks[place_of(slab->chunks, slab->n_places, at)];
	if (chunk == NULL)
		return false;
	offset -= sizeof(*chunk);
	if (offset % slab->size != 0 || offset / slab->size >= slab->per_chunk)
		return false;
	return chunk->lives[offset / slab->size / 64] >> (offset / slab->size % 64) & 1;
}
