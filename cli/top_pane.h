/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Text over the list of `millrace top`: what a flow's explanation says, or the keys. It wraps, and can be scrolled. */

#include "cli/top_canvas.h"
#include "cli/top_view.h"

/* A title and `n - 1` lines from the row on. `explanation` is NULL as long as there is none. */
void top_pane_draw(struct top_canvas *canvas, unsigned row, unsigned n, struct top_view *view,
	const char *explanation);

/*
 * The next line of a text that is to fit so many columns: its length in bytes, and in `*next` where the one after it
 * begins. `*indent` is where the line is written: 0, or more for what a long line is continued with.
 */
size_t top_pane_line(const char *text, unsigned cols, unsigned *indent, const char **next);
