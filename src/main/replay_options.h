/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the user asks of `millrace replay`. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "flow/timeouts.h"

#define REPLAY_WORKERS_MAX 16
#define REPLAY_FLOWS_MAX 67108864
#define REPLAY_FLOWS_DEFAULT 1048576

/* How many flows --summary shows. */
#define REPLAY_TOP_FLOWS 10

/* What replay_options_parse() returns when help was asked for. */
#define REPLAY_HELP 1

struct replay_options {
	char **paths; /* the captures, within argv; "-" is standard input */
	unsigned n_paths;
	unsigned workers;
	bool fragments_follow; /* later fragments belong to the flow of their first one */
	bool tcp_strict;       /* segments outside the window are dropped */
	bool zone_vlan;	       /* the outermost VLAN number is the zone */
	struct flow_timeouts timeouts;
	uint32_t active_s;  /* 0 = no active reports */
	uint32_t flows;	    /* in all, shared among the workers */
	const char *output; /* NULL or "-" = standard output */
	bool summary;	    /* with the flows of most bytes */
	bool json;	    /* the summary as JSON */
};

/*
 * Reads the command line, argv[0] being "replay"; argv is reordered. Returns 0, REPLAY_HELP, or
 * -EINVAL with one line for the user in `error`.
 */
int replay_options_parse(
	struct replay_options *options, int argc, char **argv, struct error *error);

/* The full help, with every default. */
void replay_options_help(FILE *stream);
