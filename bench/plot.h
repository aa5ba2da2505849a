/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A chart as SVG (bench/picture.h): panels of the same kind, in each a line for every series, both axes logarithmic, so
 * that equal distances are equal ratios. It goes with its page, light or dark.
 *
 * The file is opened when the chart is made, so that a path which cannot be written is refused before
 * hours are spent on what goes into it. Owned by one thread.
 */

#include <stddef.h>

#include "base/error.h"

#define PLOT_MAX_PANELS 4
#define PLOT_MAX_SERIES 8
#define PLOT_MAX_POINTS 16

struct plot;

/* The panels' names stay the caller's, and outlive the chart. Returns 0, or a negative errno with a line. */
int plot_create(struct plot **plot, const char *path, const char *const *panels, unsigned n_panels,
	struct error *error);

/*
 * Adds a point, both above 0, to a series of a panel, which begins with it if there is none; series have
 * their order and colour from that. Points of panels that there are not are left out, so are those that
 * there is no room for, and second ones of the same x.
 */
void plot_add(struct plot *plot, const char *panel, const char *series, double x, double y);

/*
 * Writes the file and destroys the chart. `title` and `machine` are lines above the panels, beside the
 * date. Returns 0, or a negative errno with a line.
 */
int plot_finish(struct plot *plot, const char *title, const char *machine, struct error *error);
