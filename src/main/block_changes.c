/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/block_changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* A block of one of the lists, and how late it stands there: of equal ones the last counts. */
struct said {
	const struct block *block;
	uint32_t at;
};

static int compare_matches(const struct block_match *a, const struct block_match *b)
{
	if (a->is_flow != b->is_flow)
		return a->is_flow ? 1 : -1;
	if (a->is_flow)
		return memcmp(&a->flow, &b->flow, sizeof(a->flow));
	if (a->prefix.port != b->prefix.port)
		return a->prefix.port < b->prefix.port ? -1 : 1;
	if (a->prefix.proto != b->prefix.proto)
		return a->prefix.proto < b->prefix.proto ? -1 : 1;
	if (a->prefix.length != b->prefix.length)
		return a->prefix.length < b->prefix.length ? -1 : 1;
	if (a->prefix.version != b->prefix.version)
		return a->prefix.version < b->prefix.version ? -1 : 1;
	return memcmp(a->prefix.addr, b->prefix.addr, sizeof(a->prefix.addr));
}

static int compare_said(const void *a, const void *b)
{
	const struct said *left = a, *right = b;
	int by_match = compare_matches(&left->block->match, &right->block->match);

	if (by_match != 0)
		return by_match;
	return left->at < right->at ? -1 : left->at > right->at;
}

/* All of two lists by their matches, of equal ones the last. Returns how many; `said` has room for all. */
static uint32_t sort_lists(const struct blocks_list lists[2], struct said *said)
{
	uint32_t n = 0, kept = 0;

	for (unsigned i = 0; i < 2; i++)
		for (uint32_t j = 0; j < lists[i].n; j++, n++)
			said[n] = (struct said){&lists[i].blocks[j], n};
	qsort(said, n, sizeof(*said), compare_said);
	for (uint32_t i = 0; i < n; i++) {
		if (kept > 0 &&
			compare_matches(&said[kept - 1].block->match, &said[i].block->match) == 0)
			kept--;
		said[kept++] = said[i];
	}
	return kept;
}

static bool is_same(const struct block *a, const struct block *b)
{
	if (a->for_s != b->for_s || (a->reason == NULL) != (b->reason == NULL))
		return false;
	return a->reason == NULL || strcmp(a->reason, b->reason) == 0;
}

/* Both are sorted. */
static void compare_all(struct block_changes *changes, const struct said *before, uint32_t n_before,
	const struct said *after, uint32_t n_after)
{
	uint32_t i = 0, j = 0;

	while (i < n_before || j < n_after) {
		int order = i == n_before ? 1 : -1;

		if (i < n_before && j < n_after)
			order = compare_matches(&before[i].block->match, &after[j].block->match);
		if (order < 0)
			changes->removed[changes->n_removed++] = before[i].block->match;
		else if (order > 0 || !is_same(before[i].block, after[j].block))
			changes->added[changes->n_added++] = *after[j].block;
		i += order <= 0;
		j += order >= 0;
	}
}

static int read_lists(
	struct blocks_list lists[2], const struct run_blocks_text *text, struct error *error)
{
	int ret = 0;

	if (text->lines != NULL)
		ret = blocks_list_read(
			&lists[0], "blocks.list", text->lines, text->lines_size, error);
	if (ret == 0 && text->bytes != NULL)
		ret = blocks_list_read(&lists[1], text->file, text->bytes, text->size, error);
	return ret;
}

static bool is_same_bytes(const char *a, size_t a_size, const char *b, size_t b_size)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static bool is_same_text(const struct run_blocks_text *a, const struct run_blocks_text *b)
{
	return is_same_bytes(a->lines, a->lines_size, b->lines, b->lines_size) &&
	       is_same_bytes(a->bytes, a->size, b->bytes, b->size);
}

int block_changes_find(struct block_changes *changes, const struct run_blocks_text *before,
	const struct run_blocks_text *after, struct error *error)
{
	*changes = (struct block_changes){0};
	if (is_same_text(before, after))
		return 0;
	int ret = read_lists(&changes->lists[0], before, error);

	if (ret == 0)
		ret = read_lists(&changes->lists[2], after, error);
	if (ret < 0)
		return ret;
	const size_t n_old = (size_t)changes->lists[0].n + changes->lists[1].n;
	const size_t n_new = (size_t)changes->lists[2].n + changes->lists[3].n;
	struct said *old = calloc(n_old + 1, sizeof(*old)), *new = calloc(n_new + 1, sizeof(*new));

	changes->added = calloc(n_new + 1, sizeof(changes->added[0]));
	changes->removed = calloc(n_old + 1, sizeof(changes->removed[0]));
	if (old == NULL || new == NULL || changes->added == NULL || changes->removed == NULL) {
		ret = error_set(error, -ENOMEM, "no memory to compare the lists of blocks");
	} else {
		const uint32_t kept = sort_lists(&changes->lists[0], old);

		compare_all(changes, old, kept, new, sort_lists(&changes->lists[2], new));
	}
	free(old);
	free(new);
	return ret;
}

/* Those that are about to be replaced are kept. */
static int remember(struct block_changes *changes, const struct blocks *blocks)
{
	changes->before = calloc((size_t)changes->n_added + 1, sizeof(changes->before[0]));
	if (changes->before == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < changes->n_added; i++) {
		struct block_before *before = &changes->before[changes->n_before];
		struct block_view view;

		if (blocks_get(blocks, &changes->added[i].match, &view) < 0)
			continue;
		*before = (struct block_before){.number = i, .expires_us = view.expires_us};
		changes->n_before++;
		if (view.reason == NULL)
			continue;
		before->reason = strdup(view.reason);
		if (before->reason == NULL)
			return -ENOMEM;
	}
	return 0;
}

int block_changes_add(
	struct block_changes *changes, struct blocks *blocks, uint64_t now_us, struct error *error)
{
	struct blocks_added added;
	struct blocks_stats stats;
	int ret = 0;

	if (changes->n_added > 0)
		ret = remember(changes, blocks);
	if (ret == 0 && changes->n_added > 0)
		ret = blocks_add_all(blocks, changes->added, changes->n_added, now_us, &added);
	changes->done = ret == 0;
	if (ret == 0)
		return 0;
	if (ret == -EAGAIN)
		return error_set(error, ret,
			"blocks that were just removed are still in use; try again in a second");
	if (ret != -ENOSPC)
		return error_set(error, ret, "no memory to change the list of blocks");
	blocks_stats(blocks, &stats);
	return error_set(error, ret,
		"no room for %u new blocks beside those that go: %u of %u are in use, with %u of "
		"%u reasons (blocks.max and blocks.reasons)",
		changes->n_added, stats.entries, stats.max_entries, stats.reasons,
		stats.max_reasons);
}

void block_changes_undo(struct block_changes *changes, struct blocks *blocks, uint64_t now_us)
{
	uint32_t next = 0;

	for (uint32_t i = 0; changes->done && i < changes->n_added; i++) {
		struct block block = {.match = changes->added[i].match};

		if (next == changes->n_before || changes->before[next].number != i) {
			(void)blocks_remove(blocks, &block.match, NULL);
			continue;
		}
		const struct block_before *before = &changes->before[next++];

		block.reason = before->reason;
		if (before->expires_us > now_us)
			block.for_s =
				(uint32_t)((before->expires_us - now_us + CLOCK_US_PER_S - 1) /
					   CLOCK_US_PER_S);
		/* it is there, so that there is room for it */
		(void)blocks_add(blocks, &block, now_us, NULL);
	}
	changes->done = false;
}

void block_changes_remove(const struct block_changes *changes, struct blocks *blocks)
{
	/* some may have ended by themselves, or were taken back */
	for (uint32_t i = 0; i < changes->n_removed; i++)
		(void)blocks_remove(blocks, &changes->removed[i], NULL);
}

void block_changes_fini(struct block_changes *changes)
{
	for (unsigned i = 0; i < 4; i++)
		blocks_list_fini(&changes->lists[i]);
	for (uint32_t i = 0; i < changes->n_before; i++)
		free(changes->before[i].reason);
	free(changes->before);
	free(changes->added);
	free(changes->removed);
	*changes = (struct block_changes){0};
}
