/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Draws what `millrace top` shows into a canvas of any size. It keeps nothing, but tells the view how many lines of the
 * list and of the pane the canvas has room for.
 */

#include <stdint.h>

#include <jansson.h>

#include "cli/top_canvas.h"
#include "cli/top_picture.h"
#include "cli/top_view.h"

/* Below that there is no room for a picture, and only that is said. */
#define TOP_MIN_ROWS 16
#define TOP_MIN_COLS 60

/* What stands in the picture beside it. */
struct top_state {
	const json_t *greeting; /* of the engine; NULL: none has come */
	int64_t now_us;		/* Unix time */
	unsigned interval_ms;
	unsigned
		silent_s; /* for how long an answer has been waited for, from some seconds on; else 0 */
	const char *lost;    /* why there is no engine, or NULL */
	const char *trouble; /* what the engine refused, or NULL */
	const char *text;    /* of the explanation; NULL as long as none has come */
};

void top_draw(struct top_canvas *canvas, const struct top_picture *picture, struct top_view *view,
	const struct top_state *state);

/* Rows that the whole picture takes, with every port, worker and flow. */
unsigned top_draw_rows(const struct top_picture *picture, unsigned cols);

/* "81.2k", "912", "-" where it is not known: at most 5 characters below 10^15. */
#define TOP_RATE_MAX 32
const char *top_rate_text(char text[TOP_RATE_MAX], double rate);
/* "59s", "59m59s", "2h04m", "12d03h": at most 6 characters below 1,000 days. */
const char *top_age_text(char text[TOP_RATE_MAX], int64_t us);
/* In so many columns: of what is too long the middle is left out, for '~'. `text` is ASCII or cut at a character. */
const char *top_fit(char *text, unsigned width);
