/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the user asks of `millrace replay`. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "main/engine_options.h"
#include "main/exports.h"

/* How many flows --summary shows. */
#define REPLAY_TOP_FLOWS 10

/* What replay_options_parse() returns when help was asked for. */
#define REPLAY_HELP 1

struct replay_options {
	char **paths; /* the captures, within argv; "-" is standard input */
	unsigned n_paths;
	struct engine_options engine;
	const char *blocks;		/* file of what is dropped; NULL: nothing is */
	const char *rules;		/* file of rules; NULL: there are none */
	bool replies_follow, no_pickup; /* as in struct rules_config */
	const char *output;		/* NULL or "-" = standard output */
	bool summary;			/* with the flows of most bytes */
	bool json;			/* the summary as JSON */
	bool one_stream;		/* --continue: all captures are one */
	bool pace;			/* packets come when they came in the capture */
	struct exports exports;
};

/*
 * Reads the command line, argv[0] being "replay"; argv is reordered. Returns 0, REPLAY_HELP, or
 * -EINVAL with one line for the user in `error`. exports_fini() in every case.
 */
int replay_options_parse(
	struct replay_options *options, int argc, char **argv, struct error *error);

/* The full help, with every default. */
void replay_options_help(FILE *stream);
