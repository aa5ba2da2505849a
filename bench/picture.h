/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What pictures of benches share, as SVG: a title, a legend, up to four panels of one size. It goes with its page, light
 * or dark.
 *
 * The file is opened before anything is measured, so that a path which cannot be written is refused before hours are
 * spent on what goes into it. Owned by one thread.
 */

#include <stdio.h>

#include "base/error.h"

/* In its own units. */
#define PICTURE_WIDTH 1000
#define PICTURE_HEIGHT 800
#define PICTURE_LEFT 68 /* left of it, for an axis */
#define PICTURE_PANELS 4

struct picture {
	char *path;
	FILE *file;
};

/* Where a panel lies. */
struct picture_panel {
	double left, right, top, bottom;
};

/* 0, or a negative errno with a line. */
int picture_open(struct picture *picture, const char *path, struct error *error);
/*
 * Writes the file, all that `draw` does, and closes it; what was there goes. 0, or a negative errno with a line. The
 * picture is no more in either case.
 */
int picture_draw(struct picture *picture, void (*draw)(const struct picture *, const void *),
	const void *context, struct error *error);

/* For draw(): the first, with the date. */
void picture_begin(const struct picture *picture, const char *title, const char *machine);
/* Series by their colours: classes s0, s1 and so on. */
void picture_legend(const struct picture *picture, const char *const *names, unsigned n);
/* The place of a panel, which has a name now. */
struct picture_panel picture_panel(
	const struct picture *picture, unsigned number, const char *name);
/* Classes: "tick" in the middle, "left" to the left of x, "bar" over one, others to the right. */
void picture_text(
	const struct picture *picture, const char *class, double x, double y, const char *text);
/* The same, from below upwards. */
void picture_upright(const struct picture *picture, double x, double y, const char *text);
/* What is shown of the element that was begun when one points at it. */
void picture_title(const struct picture *picture, const char *text);
