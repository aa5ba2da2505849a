/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/engine_blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_common.h>
#include <rte_rcu_qsbr.h>

#include "base/text.h"

#define FILE_NAME_MAX 160

static int blocks_refuse(struct error *error, const char *file, int code, const char *what)
{
	char word[FILE_NAME_MAX];

	return error_set(error, code, "%s: %s", text_printable(word, sizeof(word), file), what);
}

/* The file is read twice, so that it must not be a pipe. */
int engine_blocks_lines(const char *file, uint32_t max, uint32_t *lines, struct error *error)
{
	FILE *stream = fopen(file, "re");
	char piece[65536];
	struct stat status;
	size_t n;

	if (stream == NULL)
		return blocks_refuse(error, file, -errno, strerror(errno));
	*lines = 1;
	if (fstat(fileno(stream), &status) == 0 && !S_ISREG(status.st_mode)) {
		fclose(stream);
		return blocks_refuse(error, file, -EINVAL, "such a list is read from a file alone");
	}
	do {
		n = fread(piece, 1, sizeof(piece), stream);
		for (size_t i = 0; i < n; i++)
			*lines += piece[i] == '\n' && *lines < max;
	} while (n == sizeof(piece));
	fclose(stream);
	return 0;
}

int engine_blocks_load(struct engine_blocks *blocks, const char *file, unsigned n_workers,
	const struct hash_secret *secret, struct error *error)
{
	const size_t size = rte_rcu_qsbr_get_memsize(n_workers);
	struct blocks_config config = {.n_workers = n_workers, .secret = secret};
	struct blocks_added added;
	int ret = engine_blocks_lines(file, BLOCKS_MAX_ENTRIES, &config.max_entries, error);

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
