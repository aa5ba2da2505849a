/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/arena.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mapping.h"

#define GRANULES (ARENA_PAGE / ARENA_GRANULE)
#define FREE_PAGE UINT8_MAX
#define N_CLASSES (ARENA_CLASSES * ARENA_KINDS)
/* Blocks of a page at most. */
#define MOST (ARENA_PAGE / 16)

static const uint16_t class_bytes[ARENA_CLASSES] = {16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128,
	160, 192, 224, 256, 272, 352, 416, 496, ARENA_MAX_BLOCK};

static unsigned class_of(size_t bytes)
{
	unsigned class = 0;

	if (bytes <= 64)
		return bytes <= 16 ? 0 : (unsigned)((bytes - 9) / 8);
	for (class = 7; class_bytes[class] < bytes; class ++)
		assert(class < ARENA_CLASSES);
	return class;
}

size_t arena_class_bytes(size_t bytes)
{
	return class_bytes[class_of(bytes)];
}

static size_t page_block_bytes(const struct arena_page *page)
{
	return class_bytes[page->class % ARENA_CLASSES];
}

static unsigned page_capacity(const struct arena_page *page)
{
	return (unsigned)(ARENA_PAGE / page_block_bytes(page));
}

static uint32_t page_of(uint32_t reference)
{
	return reference / GRANULES;
}

size_t arena_block_bytes(const struct arena *arena, uint32_t reference)
{
	return page_block_bytes(&arena->pages[page_of(reference)]);
}

int arena_init(struct arena *arena, size_t bytes)
{
	size_t n_pages = bytes / ARENA_PAGE;

	*arena = (struct arena){.size = n_pages * ARENA_PAGE, .n_touched = 1};
	if (n_pages < 2 || bytes > ARENA_MAX_BYTES)
		return -EINVAL;
	arena->n_pages = (uint32_t)n_pages;
	arena->memory = mapping_create(arena->size, MAPPING_HUGE);
	arena->pages = mapping_create(n_pages * sizeof(*arena->pages), 0);
	if (!arena->memory || !arena->pages) {
		int code = -errno;

		arena_fini(arena);
		return code;
	}
	return 0;
}

void arena_fini(struct arena *arena)
{
	mapping_destroy(arena->memory, arena->size);
	mapping_destroy(arena->pages, arena->n_pages * sizeof(*arena->pages));
	*arena = (struct arena){.memory = NULL};
}

static void link_page(struct arena *arena, uint32_t *head, uint32_t number)
{
	struct arena_page *page = &arena->pages[number];

	page->previous = 0;
	page->next = *head;
	if (*head != 0)
		arena->pages[*head].previous = number;
	*head = number;
}

static void unlink_page(struct arena *arena, uint32_t *head, uint32_t number)
{
	const struct arena_page *page = &arena->pages[number];

	if (page->previous != 0)
		arena->pages[page->previous].next = page->next;
	else
		*head = page->next;
	if (page->next != 0)
		arena->pages[page->next].previous = page->previous;
}

/* Chains the blocks of an empty page. */
static void cut_page(struct arena *arena, uint32_t number, unsigned class)
{
	struct arena_page *page = &arena->pages[number];
	uint8_t *memory = arena->memory + (size_t)number * ARENA_PAGE;

	page->class = (uint8_t)class;
	page->n_used = 0;
	page->leaving = false;
	page->free = 0;
	unsigned step = (unsigned)(page_block_bytes(page) / ARENA_GRANULE);
	unsigned n = page_capacity(page);

	for (unsigned i = 0; i < n; i++) {
		uint16_t next = (uint16_t)(i + 1 < n ? (i + 1) * step : GRANULES);

		memcpy(memory + (size_t)i * step * ARENA_GRANULE, &next, sizeof(next));
	}
}

/* The number of a page of this class, 0 when there is none. */
static uint32_t new_page(struct arena *arena, unsigned class)
{
	uint32_t number = arena->free_pages;

	if (number != 0) {
		unlink_page(arena, &arena->free_pages, number);
	} else {
		if (arena->n_touched == arena->n_pages)
			return 0;
		number = arena->n_touched++;
	}
	arena->n_in_use++;
	cut_page(arena, number, class);
	link_page(arena, &arena->with_room[class], number);
	return number;
}

uint32_t arena_take(struct arena *arena, unsigned kind, size_t bytes)
{
	unsigned class = class_of(bytes) + kind * ARENA_CLASSES;
	uint32_t number = arena->with_room[class];

	if (number == 0)
		number = new_page(arena, class);
	if (number == 0)
		return ARENA_NONE;
	struct arena_page *page = &arena->pages[number];
	uint32_t reference = number * (uint32_t)GRANULES + page->free;

	memcpy(&page->free, arena_at(arena, reference), sizeof(page->free));
	page->n_used++;
	if (page->free == GRANULES)
		unlink_page(arena, &arena->with_room[class], number);
	return reference;
}

void arena_give(struct arena *arena, uint32_t reference)
{
	uint32_t number = page_of(reference);
	struct arena_page *page = &arena->pages[number];
	bool was_full = page->free == GRANULES;

	memcpy(arena_at(arena, reference), &page->free, sizeof(page->free));
	page->free = (uint16_t)(reference % GRANULES);
	if (--page->n_used > 0) {
		if (was_full && !page->leaving)
			link_page(arena, &arena->with_room[page->class], number);
		return;
	}
	if (!was_full && !page->leaving)
		unlink_page(arena, &arena->with_room[page->class], number);
	page->class = FREE_PAGE;
	page->leaving = false;
	link_page(arena, &arena->free_pages, number);
	arena->n_in_use--;
}

size_t arena_in_use(const struct arena *arena)
{
	return arena->n_in_use * (ARENA_PAGE + sizeof(struct arena_page));
}

/* How many pages of a class have so many blocks in use, and how many blocks are free on them. */
struct filling {
	uint32_t pages[MOST + 1];
	uint64_t n_free;
};

/* Marks the emptiest pages of a class. */
static uint32_t thin_class(struct arena *arena, unsigned class)
{
	struct filling filling = {.n_free = 0};
	unsigned capacity = (unsigned)(ARENA_PAGE / class_bytes[class % ARENA_CLASSES]);
	uint32_t marked = 0;

	for (uint32_t at = arena->with_room[class]; at != 0; at = arena->pages[at].next) {
		filling.pages[arena->pages[at].n_used]++;
		filling.n_free += capacity - arena->pages[at].n_used;
	}
	/* a page that leaves takes its free blocks along and fills as many as it had in use */
	uint32_t leave = (uint32_t)(filling.n_free / capacity);
	unsigned bound = 0;
	uint32_t below = 0;

	while (bound < capacity && below + filling.pages[bound] <= leave)
		below += filling.pages[bound++];
	for (uint32_t at = arena->with_room[class], next; at != 0; at = next) {
		struct arena_page *page = &arena->pages[at];

		next = page->next;
		/* all pages emptier than the bound leave, and some of those that are as full as it */
		if (page->n_used > bound || (page->n_used == bound && below >= leave))
			continue;
		below += page->n_used == bound;
		page->leaving = true;
		unlink_page(arena, &arena->with_room[class], at);
		marked++;
	}
	return marked;
}

uint32_t arena_thin_out(struct arena *arena)
{
	uint32_t marked = 0;

	for (unsigned class = 0; class < N_CLASSES; class ++)
		marked += thin_class(arena, class);
	return marked;
}

bool arena_leaves(const struct arena *arena, uint32_t reference)
{
	return arena->pages[page_of(reference)].leaving;
}
