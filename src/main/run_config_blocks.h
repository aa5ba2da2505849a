/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The section `blocks` of a configuration: what is blocked from the start, and how much may be. Its keys but `list` are
 * options of the command line too, by the name blocks-KEY, but for `file`, which is --blocks. `where` and errors are
 * as in base/options.h; all of it belongs to the thread that reads the command line.
 */

#include <stdint.h>

#include "base/error.h"
#include "rule/blocks.h"

#define RUN_BLOCKS_MAX 65536
#define RUN_BLOCKS_REASONS 4096
#define RUN_BLOCKS_REASONS_MAX 16777215
/* Lines in a configuration; more stand in a file of their own. */
#define RUN_BLOCKS_LIST_MAX 256

struct run_blocks {
	uint32_t max;	  /* 0: there is no list */
	uint32_t reasons; /* different texts */
	char *file;	  /* of lines; NULL: none */
	char *list[RUN_BLOCKS_LIST_MAX];
	unsigned n_list;
};

/* The keys with one value, in the order of enum run_option; of the list `list` the items. */
enum run_blocks_key {
	RUN_BLOCKS_FILE_KEY,
	RUN_BLOCKS_MAX_KEY,
	RUN_BLOCKS_REASONS_KEY,
	RUN_BLOCKS_LIST,
	RUN_BLOCKS_N_KEYS,
};

/* As a file calls it: "max". */
const char *run_blocks_key(enum run_blocks_key key);

void run_blocks_init(struct run_blocks *blocks);
void run_blocks_fini(struct run_blocks *blocks);

/* Reads a value; of the file, "none" is no file. */
int run_blocks_set(struct run_blocks *blocks, enum run_blocks_key key, const char *where,
	const char *value, struct error *error);

/* One more line, which is copied. */
int run_blocks_add(
	struct run_blocks *blocks, const char *where, const char *line, struct error *error);

/* Is there room for the lines? */
int run_blocks_complete(const struct run_blocks *blocks, const char *where, struct error *error);

/* The text of the blocks of a configuration: its lines, and its file as that was when it was read. Zeroed: nothing. */
struct run_blocks_text {
	char *lines, *bytes; /* NULL: there are none */
	size_t lines_size, size;
	char *file; /* that `bytes` are of */
};

/* 0 or a negative errno with a line. run_blocks_text_fini() in any case. */
int run_blocks_read(
	const struct run_blocks *from, struct run_blocks_text *text, struct error *error);
void run_blocks_text_fini(struct run_blocks_text *text);

/* Fills the list: with the lines, and with the file behind them. 0 or a negative errno with a line. */
int run_blocks_fill(const struct run_blocks_text *text, struct blocks *blocks, uint64_t now_us,
	struct error *error);
/* Both together, of a list that does not change later. */
int run_blocks_load(
	const struct run_blocks *from, struct blocks *blocks, uint64_t now_us, struct error *error);

/*
 * Would run_blocks_load() succeed? Reads the file and fills a list as large as the configuration's, which goes again. 0
 * or a negative errno with a line.
 */
int run_blocks_check(const struct run_blocks *from, struct error *error);
