/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What subcommands say to whoever runs them, and the signals by which they are told to stop. Control's thread, but for say_interrupted(): from any. */

#include <stdbool.h>
#include <stdint.h>

/* One line on standard error, "millrace: TEXT"; returns `code`. */
int say_error(const char *text, int code);

/* What was printed has to have arrived: returns `code`, or EXIT_FAILURE after a line that says why it has not. */
int say_end(int code);

/* "" for one, else "s". */
const char *say_plural(uint64_t n);

/*
 * From here on SIGINT and SIGTERM are only noted: no more is read or tried, and what there is is told. The second signal of a kind kills, as if this had not been: somebody is
 * in a hurry.
 */
void say_catch_signals(void);
/* One of them has come. */
bool say_interrupted(void);
