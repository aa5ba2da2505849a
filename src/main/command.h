/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The subcommands of the program, and the help that names them. */

#include <stdbool.h>
#include <stdio.h>

#include "cli/cli.h"

struct command {
	const char *name;
	int (*main)(int argc, char **argv); /* argv[0] is the name; returns the exit code */
	const char *what;		    /* one line for the help, or NULL */
	bool engine;			    /* there is a path for packets in it */
};

#define COMMANDS_MAX 64

/* The subcommands of a program. */
struct commands {
	const struct command *list;
	unsigned n; /* at most COMMANDS_MAX */
	const struct cli_local
		*locals; /* verbs that ask no running engine; an entry without a noun ends them */
};

/* Runs the subcommand that `argv[0]` names, and returns the exit code: 0 fine, 1 failed, 2 misused. */
int command_run(const struct commands *commands, int argc, char **argv);

/* "help" with what stands behind it: "help COMMAND" is "COMMAND --help". */
int command_help(const struct commands *commands, int argc, char **argv);

/* "-h" or "--help". */
bool command_is_help(const char *word);

/* All subcommands. */
void command_usage(const struct commands *commands, FILE *stream);
