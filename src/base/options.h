/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the command lines have in common: values read, and complaints put into words.
 *
 * A value is told with the place where it stands, `where`: "--workers" on a command line,
 * "millrace.yaml:3: workers:" in a file. Complaints then read "WHERE VALUE: what is needed". All
 * functions return 0 or -EINVAL with a line for the user.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Words of the command line, made fit for a line of text. */
#define OPTION_WORD_MAX 64

/* "WHERE VALUE: wanted"; always -EINVAL. */
int option_bad_value(const char *where, const char *value, const char *wanted, struct error *error);

/* A whole number from 1 to `max`. `value` is what the user wrote, `number` the part that has to be one. */
int option_number(const char *where, const char *value, const char *number, uint32_t max,
	uint32_t *out, struct error *error);

/* The same from `min`. */
int option_range(const char *where, const char *value, const char *number, uint32_t min,
	uint32_t max, uint32_t *out, struct error *error);

/* One of `n` words, 1 or 2; says which one. */
int option_word(const char *where, const char *value, const char *const *words, unsigned n,
	unsigned *which, struct error *error);

/* yes or no, true or false, on or off. */
int option_yes_no(const char *where, const char *value, bool *yes, struct error *error);
/* The same, for what is turned on or off: a complaint asks for these. */
int option_on_off(const char *where, const char *value, bool *on, struct error *error);

/*
 * getopt_long()'s complaint `id` put into words: ':' a value is missing, '?' anything else. The numbers
 * of the options in `table` lie above every character's. Always -EINVAL.
 */
int option_refused(const struct option *table, int id, char **argv, struct error *error);

/* Nothing in it ends a line: texts are shown as one line of JSON, or of YAML, and read back. */
bool option_is_line(const char *text);

/* The name of the option with this number, or NULL. */
const char *option_name(const struct option *table, int id);

/* Refuses "" and "-" as the name of a file: the file may be read more than once, which standard input cannot. */
int option_file_name(const char *where, const char *value, struct error *error);

/*
 * The name of a file, copied to `*name`, which is freed before; "none" is no file, and makes it NULL. -ENOMEM beside
 * -EINVAL.
 */
int option_file(const char *where, const char *value, char **name, struct error *error);

/*
 * Counts the lines of a file of lists, the last one without its newline too, up to `max`. The caller reads the file again,
 * so that a pipe is refused. 0 or a negative errno with a line.
 */
int option_file_lines(const char *file, uint32_t max, uint32_t *lines, struct error *error);
