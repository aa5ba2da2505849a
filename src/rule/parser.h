/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the files of the parser share. Private to rule/. */

#include "rule/command.h"
#include "rule/memory.h"
#include "rule/value.h"

/* Most words and values of a command outside of its lists. */
#define RULE_MAX_ARGUMENTS 128
#define RULE_MAX_WORDS 2048

struct rule_command_parts {
	struct rule_memory memory;
	/* The rows of the lists, for printing: what several rows make alike is told apart by them. */
	const struct rule_thing *const *items;
	const struct rule_thing *const *actions[RULE_MAX_LISTS];
	const uint64_t *
		named; /* of each item, a bit for each of the first 64 fields that the line names */
	void *conf;    /* of RULE_STEP_FIELDS */
	/* Commands of `set` lines whose arrays this one points to. */
	struct rule_command *children;
	struct rule_command *sibling;
};

struct rule_parser_word {
	const char *text;
	unsigned column;
};

/* An empty command, with memory of its own. NULL: no memory. */
struct rule_command *rule_command_create(void);

/* rule_command_parse(), for what it calls. */
typedef int (*rule_parse_fn)(struct rule_command **command, const struct rule_setup *setup,
	const char *line, size_t length, unsigned *column, struct error *error);

struct rule_parser {
	struct rule_command *command;
	const struct rule_setup *setup;
	struct rule_memory *memory;
	const struct rule_parser_word *words;
	unsigned n_words, at;
	unsigned decisive; /* the word that told the form of the command */
	unsigned end_column;
	struct rule_argument arguments[RULE_MAX_ARGUMENTS];
	/* A line within a line is parsed by it. */
	rule_parse_fn parse;
	/* Options that could stand here as well, for errors and completion. */
	const struct rule_option *options;
	unsigned n_options;
	/* The first word that is refused, once the whole line is known to be right. */
	const char *refused, *refused_word;
	unsigned refused_column;
	/* Completion: the word that is begun, and who wants to know what it may become. */
	const char *begun;
	const struct rule_complete *complete;
	unsigned *column;
	struct error *error;
};

struct rule_complete {
	void (*offer)(void *context, const char *word, const char *what);
	void *context;
};

/* The words that would have been right. */
#define RULE_MAX_EXPECTED 192

struct rule_expected {
	struct {
		const char *word, *what;
	} entries[RULE_MAX_EXPECTED];
	unsigned n;
	const char *value; /* a value would be, too: what it looks like */
	const char *all;   /* what to call all of them, where they are many */
	bool only;	   /* options could not stand here, but one may be meant */
};

/* The word at which the parser stands, or NULL at the end of the line. */
const char *rule_parser_word(const struct rule_parser *parser);
void rule_expect(struct rule_expected *expected, const char *word, const char *what);

/*
 * The word here is none of those expected: an error that says so, or completion. Returns a negative
 * errno; -ECANCELED where completion has got what it wants.
 */
int rule_parser_unexpected(struct rule_parser *parser, struct rule_expected *expected);

/* A word that no rule can have: remembers the first. */
void rule_parser_refuse(
	struct rule_parser *parser, const char *why, const struct rule_parser_word *word);

/* Reads the value that stands here. */
int rule_parser_value(struct rule_parser *parser, const struct rule_field *field, bool mask,
	struct rule_value *value);

/* An error about a word. Returns `code`. */
int rule_parser_fail(struct rule_parser *parser, unsigned at, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* After rule_memory_take() has failed. */
int rule_parser_no_memory(struct rule_parser *parser);

/* Lists (parse_list.c): up to the word `end`, or `end_set`. */
int rule_parse_items(struct rule_parser *parser, const char *end);
int rule_parse_actions(struct rule_parser *parser, unsigned list);
/* Fields of an action, or of a command, with their values, into its struct; `after` may follow them, or NULL. */
int rule_parse_fields(struct rule_parser *parser, const struct rule_thing *thing, void *conf,
	const char *after, struct rule_expected *expected);

/* Gives an action what `set` lines said (fill.c). */
int rule_fill(struct rule_parser *parser, const struct rule_thing *thing, void *conf);
