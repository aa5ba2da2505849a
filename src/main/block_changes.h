/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The changes of a running engine's list of blocks that a new configuration makes: blocks that the configuration
 * before said and the new one does not say are removed, new ones and those with another time or reason are added. What
 * clients have blocked stays.
 *
 * block_changes_find(), then block_changes_add(), which may fail; then block_changes_remove(), or block_changes_undo() where
 * something else has failed meanwhile. block_changes_fini() in any case. One thread's, control's.
 */

#include "base/error.h"
#include "main/run_config_blocks.h"
#include "rule/blocks.h"

/* A block that was there when another one with the same match was added. */
struct block_before {
	uint32_t number; /* of the added one */
	uint64_t expires_us;
	char *reason;
};

struct block_changes {
	struct blocks_list lists[4];
	struct block *added;
	struct block_match *removed;
	uint32_t n_added, n_removed;
	struct block_before *before;
	uint32_t n_before;
	bool done; /* they are added */
};

/* Zeroes `changes` first. 0 or a negative errno with a line. */
int block_changes_find(struct block_changes *changes, const struct run_blocks_text *before,
	const struct run_blocks_text *after, struct error *error);
/* 0 or a negative errno with a line, and nothing has changed: -EAGAIN: later there may be room. */
int block_changes_add(
	struct block_changes *changes, struct blocks *blocks, uint64_t now_us, struct error *error);
void block_changes_undo(struct block_changes *changes, struct blocks *blocks, uint64_t now_us);
void block_changes_remove(const struct block_changes *changes, struct blocks *blocks);
void block_changes_fini(struct block_changes *changes);
