/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The command line of one verb: options anywhere, and the words of a FLOW. What is wrong is said before
 * the engine is asked; what the engine knows better (which wires there are) is left to it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "cli/words.h"

/* What cli_args_parse() returns when help was asked for. */
#define CLI_ARGS_HELP 1

struct cli_args {
	const struct cli_verb *verb;
	uint32_t given;	    /* bit by enum cli_option_id */
	const char *socket; /* NULL: the default path */
	const char *file;   /* NULL: none is sent */
	json_t *with;	    /* of the request; owned */
};

/*
 * argv[0] is the verb's own name. Returns 0, CLI_ARGS_HELP, or -EINVAL (-ENOMEM) with one line for the
 * user. The caller frees with cli_args_fini() in every case.
 */
int cli_args_parse(struct cli_args *args, const struct cli_verb *verb, int argc, char **argv,
	struct error *error);
void cli_args_fini(struct cli_args *args);

/* Is the option on the command line? */
static inline bool cli_args_given(const struct cli_args *args, enum cli_option_id id)
{
	return args->given & CLI_BIT(id);
}

/* Does the answer go on until somebody interrupts it? */
static inline bool cli_args_follow(const struct cli_args *args)
{
	return args->verb->follow || cli_args_given(args, CLI_FOLLOW);
}
