/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What replay and run let the user say about the engine: one struct, its part of the table of options,
 * the readers of its values and its part of the help.
 *
 * The struct has no memory of its own. All functions belong to the thread that reads the command line.
 */

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "flow/timeouts.h"
#include "rule/block.h"

#define ENGINE_FLOWS_MAX 67108864
#define ENGINE_FLOWS_DEFAULT 1048576

struct engine_options {
	unsigned workers;
	uint32_t flows;	       /* in all, shared among the workers */
	bool fragments_follow; /* later fragments belong to the flow of their first one */
	bool tcp_strict;       /* segments outside the window are dropped */
	bool zone_vlan;	       /* the outermost VLAN number is the zone */
	struct flow_timeouts timeouts;
	uint32_t active_s;		   /* 0 = no active reports */
	bool active_said;		   /* the user has said so */
	bool measure;			   /* flows are measured (flow/measure.h): */
	bool measure_all;		   /* all of them, or */
	struct block_match measure_what;   /* those that fit */
	char measure_text[BLOCK_LINE_MAX]; /* as the user wrote it; empty: nothing is measured */
};

/* Above every character: what getopt says of an option then tells which one it was. */
enum engine_option {
	ENGINE_OPTION_WORKERS = UCHAR_MAX + 1,
	ENGINE_OPTION_FLOWS,
	ENGINE_OPTION_FRAGMENTS,
	ENGINE_OPTION_TCP,
	ENGINE_OPTION_ZONE,
	ENGINE_OPTION_TIMEOUT,
	ENGINE_OPTION_ACTIVE,
	ENGINE_OPTION_MEASURE,
	ENGINE_OPTIONS_END, /* the numbers of other options begin here */
};

/* Entries of a table for getopt_long(). */
/* clang-format off */
#define ENGINE_OPTIONS                                                   \
	{"workers", required_argument, NULL, ENGINE_OPTION_WORKERS},     \
	{"flows", required_argument, NULL, ENGINE_OPTION_FLOWS},         \
	{"fragments", required_argument, NULL, ENGINE_OPTION_FRAGMENTS}, \
	{"tcp", required_argument, NULL, ENGINE_OPTION_TCP},             \
	{"zone", required_argument, NULL, ENGINE_OPTION_ZONE},           \
	{"timeout", required_argument, NULL, ENGINE_OPTION_TIMEOUT},     \
	{"active", required_argument, NULL, ENGINE_OPTION_ACTIVE},       \
	{"measure", required_argument, NULL, ENGINE_OPTION_MEASURE}
/* clang-format on */

/*
 * The words that say the default of an option which otherwise only asks for something. They are known
 * where a file may have asked for it, and the command line wants it otherwise.
 */
#define ENGINE_TCP_DEFAULT "count"
#define ENGINE_ZONE_DEFAULT "none"
#define ENGINE_ACTIVE_DEFAULT "off"
#define ENGINE_MEASURE_DEFAULT "no"

void engine_options_init(struct engine_options *options);

/*
 * Reads the value of option `id`, an enum engine_option; `where` and errors as in base/options.h.
 * `both_ways`: the words above are known.
 */
int engine_options_take(struct engine_options *options, int id, const char *where,
	const char *value, bool both_ways, struct error *error);

/*
 * Sets the timeout with this name, `length` long, or all of a protocol by the protocol's name alone;
 * says whether there is such a timeout.
 */
bool engine_timeout_set(
	struct engine_options *options, const char *name, size_t length, uint32_t seconds);

/* The lines of the help: the options, then the timeouts with every default. */
void engine_options_help(FILE *stream);
