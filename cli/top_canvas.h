/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A screen in memory: cells with a character and a style each. Everything that a terminal is shown goes through it. It
 * replaces every character that is not printable, or not one column wide, wherever the text comes from.
 *
 * Life-cycle: top_canvas_init(), top_canvas_resize() as often as need be, top_canvas_fini().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Without colour TOP_GOOD and TOP_DIM are as TOP_PLAIN, and TOP_BAD is as TOP_BOLD: nothing is told by colour alone. */
enum top_style {
	TOP_PLAIN,
	TOP_BOLD,
	TOP_TITLE,  /* of a table */
	TOP_CURSOR, /* the line under the cursor */
	TOP_GOOD,
	TOP_BAD,
	TOP_DIM,
	TOP_N_STYLES,
};

struct top_cell {
	char text[5]; /* one character in UTF-8; "" is a blank */
	uint8_t style;
};

struct top_canvas {
	unsigned rows, cols;
	bool utf8; /* else '?' stands for all that is not ASCII */
	struct top_cell *cells;
};

/* At most so many rows and columns are drawn; a larger terminal has an empty edge. */
#define TOP_CANVAS_MAX 2000

/* 0 or -ENOMEM. The canvas is blank. */
int top_canvas_init(struct top_canvas *canvas, unsigned rows, unsigned cols, bool utf8);
int top_canvas_resize(struct top_canvas *canvas, unsigned rows, unsigned cols);
void top_canvas_clear(struct top_canvas *canvas);
void top_canvas_fini(struct top_canvas *canvas);

/*
 * Writes the text from a column on, cut after `width` columns and at the edge. Returns how many columns it took. A
 * control character, one that is wider than a column or has no width, and what is no UTF-8 become '?'.
 */
unsigned top_put(struct top_canvas *canvas, unsigned row, unsigned col, unsigned width,
	enum top_style style, const char *text);
/* The same, ending at the last of `width` columns where it is shorter. */
void top_put_right(struct top_canvas *canvas, unsigned row, unsigned col, unsigned width,
	enum top_style style, const char *text);
/* The whole row in this style, whatever is written in it. */
void top_style_row(struct top_canvas *canvas, unsigned row, enum top_style style);

/* Columns that the text takes. */
unsigned top_width(const char *text);

/* The row as text without blanks at its end. Returns `buffer`, cut where it is too small. */
const char *top_canvas_text(
	const struct top_canvas *canvas, unsigned row, char *buffer, size_t size);
