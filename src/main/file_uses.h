/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The files that a user names, and what each is for. Two outputs must not write to one file, which would mix or overwrite
 * their records, and no output may write to a file that is read.
 *
 * The list is plain data of the caller's; names and paths outlive it.
 */

#include <stdbool.h>

#include "base/error.h"
#include "main/exports.h"

/* Exports, the output, and some files besides: captures that rules write, and what is read. */
#define FILE_USES_MAX (EXPORTS_MAX + 32)

struct file_use {
	const char *option; /* that named the file: "--output" */
	const char *value;  /* of the option */
	const char *path;   /* NULL: standard output */
	bool written;
};

/* Zero at first. */
struct file_uses {
	struct file_use use[FILE_USES_MAX];
	unsigned n;
};

/* Adds a file that is read. NULL is none. */
void file_uses_read(struct file_uses *uses, const char *option, const char *path);
/* Adds a file that is written; "-" is standard output, NULL is none. */
void file_uses_write(struct file_uses *uses, const char *option, const char *path);
/* Adds those of exports to files. */
void file_uses_export(struct file_uses *uses, const char *option, const struct exports *exports);

/* Do both paths lead to one file or FIFO? It need not be there yet. NULL is standard output. */
bool file_uses_are_same(const char *a, const char *b);

/* Returns 0, or -EINVAL with a line that names two options that get into each other's way. */
int file_uses_check(const struct file_uses *uses, struct error *error);
