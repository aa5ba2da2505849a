/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_rcu_qsbr.h>

#include "base/file.h"
#include "base/options.h"
#include "base/text.h"
#include "packet/hash.h"

#define FILE_NAME_MAX 256

const char *run_blocks_key(enum run_blocks_key key)
{
	static const char *const keys[RUN_BLOCKS_N_KEYS] = {
		[RUN_BLOCKS_FILE_KEY] = "file",
		[RUN_BLOCKS_MAX_KEY] = "max",
		[RUN_BLOCKS_REASONS_KEY] = "reasons",
		[RUN_BLOCKS_LIST] = "list",
	};

	return keys[key];
}

void run_blocks_init(struct run_blocks *blocks)
{
	*blocks = (struct run_blocks){.max = RUN_BLOCKS_MAX, .reasons = RUN_BLOCKS_REASONS};
}

void run_blocks_fini(struct run_blocks *blocks)
{
	free(blocks->file);
	for (unsigned i = 0; i < blocks->n_list; i++)
		free(blocks->list[i]);
	blocks->file = NULL;
	blocks->n_list = 0;
}

int run_blocks_set(struct run_blocks *blocks, enum run_blocks_key key, const char *where,
	const char *value, struct error *error)
{
	switch (key) {
	case RUN_BLOCKS_FILE_KEY:
		return option_file(where, value, &blocks->file, error);
	case RUN_BLOCKS_MAX_KEY:
		return option_range(
			where, value, value, 0, BLOCKS_MAX_ENTRIES, &blocks->max, error);
	case RUN_BLOCKS_REASONS_KEY:
		return option_range(
			where, value, value, 0, RUN_BLOCKS_REASONS_MAX, &blocks->reasons, error);
	case RUN_BLOCKS_LIST:
	case RUN_BLOCKS_N_KEYS:
		break;
	}
	return -EINVAL;
}

int run_blocks_add(
	struct run_blocks *blocks, const char *where, const char *line, struct error *error)
{
	char *copy = strdup(line), *cut = strdup(line);
	struct block block;
	struct error said;
	unsigned column;
	int ret = 0;

	if (!copy || !cut || blocks->n_list == RUN_BLOCKS_LIST_MAX)
		ret = error_set(error, -ENOMEM, "no memory for the configuration");
	else if (!option_is_line(line))
		ret = option_bad_value(where, line, "a block is one line", error);
	else if (block_parse_line(&block, cut, &column, &said) < 0)
		ret = error_set(error, -EINVAL, "%s column %u: %s", where, column, said.text);
	free(cut);
	if (ret < 0)
		free(copy);
	else
		blocks->list[blocks->n_list++] = copy;
	return ret;
}

int run_blocks_complete(const struct run_blocks *blocks, const char *where, struct error *error)
{
	char max[TEXT_NUMBER_MAX];

	if (blocks->max == 0 && (blocks->file || blocks->n_list > 0))
		return error_set(error, -EINVAL,
			"%s 0: there is something to block, but no list to put it in; at least 1 "
			"is needed",
			where);
	if (blocks->n_list > blocks->max)
		return error_set(error, -EINVAL, "%s %s: the list has %u blocks", where,
			text_grouped(max, blocks->max), blocks->n_list);
	return 0;
}

static int text_of_lines(
	const struct run_blocks *from, struct run_blocks_text *text, struct error *error)
{
	size_t at = 0;

	for (unsigned i = 0; i < from->n_list; i++)
		text->lines_size += strlen(from->list[i]) + 1;
	text->lines = malloc(text->lines_size + 1);
	if (!text->lines)
		return error_set(error, -ENOMEM, "no memory for the list of blocks");
	for (unsigned i = 0; i < from->n_list; i++)
		at += (size_t)sprintf(text->lines + at, "%s\n", from->list[i]);
	return 0;
}

int run_blocks_read(
	const struct run_blocks *from, struct run_blocks_text *text, struct error *error)
{
	char name[FILE_NAME_MAX];
	int ret = 0;

	*text = (struct run_blocks_text){0};
	if (from->n_list > 0)
		ret = text_of_lines(from, text, error);
	if (ret < 0 || !from->file)
		return ret;
	text->file = strdup(from->file);
	if (!text->file)
		return error_set(error, -ENOMEM, "no memory for the list of blocks");
	ret = file_read_all(from->file, BLOCKS_FILE_MAX_BYTES, &text->bytes, &text->size);
	if (ret == 0)
		return 0;
	return error_set(error, ret, "%s: %s", text_printable(name, sizeof(name), from->file),
		ret == -EFBIG ? "a list of blocks has at most 1 GiB" : strerror(-ret));
}

void run_blocks_text_fini(struct run_blocks_text *text)
{
	free(text->lines);
	free(text->bytes);
	free(text->file);
	*text = (struct run_blocks_text){0};
}

int run_blocks_fill(const struct run_blocks_text *text, struct blocks *blocks, uint64_t now_us,
	struct error *error)
{
	struct blocks_added added;
	struct error said;
	int ret = 0;

	if (!blocks)
		return 0;
	if (text->lines)
		ret = blocks_load_bytes(blocks, "blocks.list", text->lines, text->lines_size,
			now_us, &added, &said);
	if (ret == 0 && text->bytes)
		ret = blocks_load_bytes(
			blocks, text->file, text->bytes, text->size, now_us, &added, &said);
	if (ret == -ENOSPC)
		return error_set(
			error, ret, "%.400s (blocks.max and blocks.reasons make room)", said.text);
	return ret < 0 ? error_set(error, ret, "%s", said.text) : 0;
}

int run_blocks_load(
	const struct run_blocks *from, struct blocks *blocks, uint64_t now_us, struct error *error)
{
	struct run_blocks_text text;
	int ret = run_blocks_read(from, &text, error);

	if (ret == 0)
		ret = run_blocks_fill(&text, blocks, now_us, error);
	run_blocks_text_fini(&text);
	return ret;
}

int run_blocks_check(const struct run_blocks *from, struct error *error)
{
	const size_t size = rte_rcu_qsbr_get_memsize(1);
	struct rte_rcu_qsbr *qsbr = aligned_alloc(64, RTE_ALIGN_CEIL(size, (size_t)64));
	struct hash_secret secret;
	struct blocks *blocks = NULL;
	int ret = qsbr != NULL && rte_rcu_qsbr_init(qsbr, 1) == 0 ? hash_secret_init(&secret)
								  : -ENOMEM;

	if (from->max != 0 && ret == 0) {
		const struct blocks_config config = {.max_entries = from->max,
			.max_reasons = from->reasons,
			.n_workers = 1,
			.secret = &secret,
			.qsbr = qsbr};

		ret = blocks_create(&blocks, &config);
	}
	if (ret < 0)
		error_set(error, ret, "no memory for a list of %u blocks", from->max);
	else
		ret = run_blocks_load(from, blocks, 0, error);
	blocks_destroy(blocks);
	free(qsbr);
	return ret;
}
