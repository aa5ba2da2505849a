/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The lines of the shell: a line is a subcommand, as it would stand behind "millrace", or a command of the rule
 * language (docs/rules.md), which goes to the running engine whole. Both are completed from the tables that parse them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "main/command.h"
#include "rule/command.h"

#define SHELL_WORDS_MAX 128

/* The words of a line, with room for an option in front of the last ones. */
struct shell_words {
	int n;
	char *word[SHELL_WORDS_MAX + 4]; /* ends with NULL */
	char text[RULE_LINE_MAX + 1];
};

/*
 * Cuts a line into words, as other shells do: '...' and "..." hold blanks, a backslash takes the next character as it
 * is, and what follows a # at the beginning of a word is a comment. Returns 0; -EINVAL for an open quote, -E2BIG, each
 * with a line.
 */
int shell_split(struct shell_words *words, const char *line, struct error *error);

/* Is the line one of the rule language? `flow list 0` is, `flow list` is not. */
bool shell_is_rule(const struct commands *commands, const char *line);

/* Told of what may stand next: a word, or NULL where no word but a value is expected, and what it means (may be ""). */
typedef void (*shell_offer_fn)(void *context, const char *word, const char *what);

/* What may the last word of the line's beginning become? With a blank at its end: what may follow? */
void shell_complete(const struct commands *commands, const char *line, size_t length,
	shell_offer_fn offer, void *context);
