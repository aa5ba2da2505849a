/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A chart of bars as SVG (bench/picture.h): panels with a group for each load, in each group a bar for every series, its
 * value above it, from nothing to the panel's largest. Owned by one thread.
 */

#include "base/error.h"

#define BARS_MAX_GROUPS 8
#define BARS_MAX_SERIES 4

struct bars;

struct bars_names {
	const char *const *panels; /* up to PICTURE_PANELS */
	unsigned n_panels;
	const char *const *series; /* up to BARS_MAX_SERIES */
	unsigned n_series;
};

/* Names stay the caller's, and outlive the chart. Returns 0, or a negative errno with a line. */
int bars_create(
	struct bars **bars, const char *path, const struct bars_names *names, struct error *error);

/* Begins a group in all panels, whose name outlives the chart; what is added belongs to it. Past the last: ignored. */
void bars_group(struct bars *bars, const char *name);
/* A bar of the group that was begun last. One that is not added is not there. */
void bars_add(struct bars *bars, unsigned panel, unsigned series, double value);

/* Writes the file and destroys the chart. Returns 0, or a negative errno with a line. */
int bars_finish(struct bars *bars, const char *title, const char *machine, struct error *error);
