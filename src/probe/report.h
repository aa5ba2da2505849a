/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of `millrace probe`. The parent (command.c) reads the command line and starts a child, which alone touches the
 * device (child.c): drivers crash, and drivers hang. What the child finds out it tells by a pipe, one JSON
 * object a line, so that nothing is lost when it ends in the middle:
 *	{"step":"...","rules":N,"allow_s":N}	what it is about to do, with how many rules in the NIC
 *	{"set":{...}}				members of the report
 *	{"cell":{...}}, {"table":{...}}, {"indirect":{...}}	one more of the report's list of these
 *	{"failed":"..."}			it cannot go on
 *	{"end":true}				that was all
 */

#include <jansson.h>
#include <stdio.h>

#include "probe/cell.h"
#include "probe/limits.h"
#include "probe/options.h"

/*
 * The child's life, since `begin_us` of the whole probe; `first` is the cell to begin with. Returns the exit code.
 * SIGTERM ends it, with nothing left behind. `parent` is who forked it: without that one it ends at once.
 */
int probe_child(const struct probe_options *options, pid_t parent, int pipe, uint64_t begin_us,
	unsigned first);

/* json.c: parts of the report. */
json_t *probe_json_cell(const struct form *form, const struct cell *cell);
/* `form`: of the rules, where they are none of the engine's. */
json_t *probe_json_limits(const struct limits *limits, const char *form);
/* A cell that the driver did not survive. */
json_t *probe_json_lost(unsigned number, const char *words);

/* text.c: the report for people. */
void probe_text(FILE *out, const json_t *report);
