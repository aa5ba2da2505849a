/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A command of the rule language, parsed: testpmd's `flow` commands and the lines that prepare them.
 * What a rule comes to are ordinary rte_flow arrays, as an application would write them by hand.
 *
 *	struct rule_command *command;
 *
 *	if (rule_command_parse(&command, NULL, line, strlen(line), &column, &error) == 0) {
 *		rte_flow_create(command->port, &command->attr, command->pattern,
 *			command->actions[0], &flow_error);
 *		rule_command_destroy(command);
 *	}
 *
 * Where rte_flow has a pointer to an object (the handle of an indirect action, a flex item, a meter's
 * profile or policy) a rule has a number: it stands in the place of the pointer, or for `indirect` in a
 * struct rule_indirect, and the caller exchanges it.
 *
 * The functions keep no state. A command belongs to its caller, with all that it points to; nothing in it
 * points into the line or the setup.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rule/grammar.h"

struct rule_setup;
struct rule_command_parts;

/* Bytes of the longest line, and the most items or actions of a list, its end included. */
#define RULE_LINE_MAX 8192
#define RULE_LIST_MAX 64

#define RULE_NO_PORT UINT16_MAX

struct rule_argument {
	enum rule_argument_id id;
	uint64_t number;
	const char *text; /* as it was written */
};

struct rule_command {
	enum rule_verb verb;
	const struct rule_form *form;
	uint16_t port; /* RULE_NO_PORT: the command names none */
	struct rte_flow_attr attr;
	const struct rte_flow_item *pattern; /* ends with END; NULL: the command has none */
	const struct rte_flow_action *actions[RULE_MAX_LISTS]; /* each ends with END, or is NULL */
	const struct rule_argument *arguments;		       /* in the order of the line */
	unsigned n_arguments;
	struct rule_command_parts *parts; /* for the functions below */
};

/*
 * Parses one line. `setup`, or NULL, has what `set` lines said before: a rule whose action needs such a
 * line and has none gets an empty definition, or no bytes. A comment begins with #; a prompt "testpmd>"
 * in front is skipped.
 *
 * Returns 0, or, with `column` the place of the word that is wrong (in bytes from 1) and a line of
 * printable text:
 *
 *	-EINVAL   the line is not of the language
 *	-ENOTSUP  it is, but a word is of another release than DPDK 22.11, or cannot be supported
 *	-E2BIG    it is too long, or has too many words
 *	-ENODATA  it is empty, or a comment
 *	-ENOMEM
 */
int rule_command_parse(struct rule_command **command, const struct rule_setup *setup,
	const char *line, size_t length, unsigned *column, struct error *error);

void rule_command_destroy(struct rule_command *command);

/*
 * Writes the command as a line that parses to the same arrays and that is printed the same again.
 * Returns its length; where that is `size` or more, the line is cut, as by snprintf().
 */
size_t rule_command_print(const struct rule_command *command, char *buffer, size_t size);
/* The same in memory that is the caller's; NULL: there is none. */
char *rule_command_text(const struct rule_command *command);

/* The argument of this meaning, the first or a later one; NULL: there is none. */
const struct rule_argument *rule_command_argument(
	const struct rule_command *command, enum rule_argument_id id, unsigned nth);

/*
 * Which words may follow the beginning of a line? With a blank at its end, those after it; without, those
 * that its last word may become. A value has no word, only what it means. Nothing follows what is wrong. The texts hold
 * until `offer` returns.
 */
void rule_complete(const char *line, size_t length,
	void (*offer)(void *context, const char *word, const char *what), void *context);
