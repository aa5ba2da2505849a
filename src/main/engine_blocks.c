/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/engine_blocks.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_rcu_qsbr.h>

#include "base/options.h"

int engine_blocks_load(struct engine_blocks *blocks, const char *file, unsigned n_workers,
	const struct hash_secret *secret, struct error *error)
{
	const size_t size = rte_rcu_qsbr_get_memsize(n_workers);
	struct blocks_config config = {.n_workers = n_workers, .secret = secret};
	struct blocks_added added;
	int ret = option_file_lines(file, BLOCKS_MAX_ENTRIES, &config.max_entries, error);

	if (ret < 0)
		return ret;
	/* each may have a reason of its own */
	config.max_reasons = config.max_entries;
	blocks->qsbr = aligned_alloc(64, RTE_ALIGN_CEIL(size, (size_t)64));
	if (blocks->qsbr == NULL || rte_rcu_qsbr_init(blocks->qsbr, n_workers) != 0)
		return error_set(error, -ENOMEM, "no memory for a list of blocks");
	config.qsbr = blocks->qsbr;
	ret = blocks_create(&blocks->list, &config);
	if (ret < 0)
		return error_set(
			error, ret, "no memory for a list of %u blocks", config.max_entries);
	return blocks_load_file(blocks->list, file, 0, &added, error);
}

void engine_blocks_fini(struct engine_blocks *blocks)
{
	blocks_destroy(blocks->list);
	free(blocks->qsbr);
}
