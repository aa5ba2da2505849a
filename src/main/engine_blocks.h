/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The list of blocks of an engine that reads captures: filled from a file at the start, and never changed. */

#include "base/error.h"
#include "rule/blocks.h"

/* Zeroed: there is none. */
struct engine_blocks {
	struct blocks *list;
	struct rte_rcu_qsbr *qsbr;
};

/* As large as the file has lines. 0 or a negative errno with a line; engine_blocks_fini() follows in any case. */
int engine_blocks_load(struct engine_blocks *blocks, const char *file, unsigned n_workers,
	const struct hash_secret *secret, struct error *error);
void engine_blocks_fini(struct engine_blocks *blocks);
