/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Command lines of `millrace run`, for the tests of its configuration. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "main/run_config.h"

#define MAX_WORDS 96

/* A command line made of a text: words between blanks; ~ stands for an empty word. */
struct line {
	char text[2048];
	char *argv[MAX_WORDS + 1];
	int argc;
};

struct row {
	const char *words, *text;
};

static inline int parse(
	struct line *line, const char *words, struct run_config *config, struct error *error)
{
	assert_true(snprintf(line->text, sizeof(line->text), "run %s", words) <
		    (int)sizeof(line->text));
	line->argc = 0;
	error->text[0] = '\0';
	for (char *word = strtok(line->text, " "); word; word = strtok(NULL, " ")) {
		assert_true(line->argc < MAX_WORDS);
		if (strcmp(word, "~") == 0)
			*word = '\0';
		line->argv[line->argc++] = word;
	}
	line->argv[line->argc] = NULL;
	return run_config_parse(config, line->argc, line->argv, error);
}

/* Each command line is refused with its text. */
static inline void check_refused(const struct row *rows, size_t n)
{
	struct run_config config;
	struct error error;
	struct line line;

	for (size_t i = 0; i < n; i++) {
		int ret = parse(&line, rows[i].words, &config, &error);

		run_config_fini(&config);
		assert_string_equal(error.text, rows[i].text);
		assert_int_equal(ret, -EINVAL);
	}
}
