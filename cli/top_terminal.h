/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The terminal that `millrace top` draws on, by ncurses: what a canvas has goes to it, and what is typed comes back.
 * There is one in a process.
 *
 * Life-cycle: top_terminal_open(), the other functions, top_terminal_close(), which leaves the terminal as it was.
 */

#include <stdbool.h>

#include "base/error.h"
#include "cli/top_canvas.h"

/* Are standard input and output a terminal? */
bool top_terminal_there(void);

/* Is text shown in UTF-8, by the locale, which is set to that of the environment? */
bool top_terminal_utf8(void);

/* 0, or a negative errno with a line where the terminal cannot be drawn on. */
int top_terminal_open(struct error *error);
void top_terminal_close(void);

/* Rows and columns that it has now. */
void top_terminal_size(unsigned *rows, unsigned *cols);

void top_terminal_show(const struct top_canvas *canvas);
/* Everything is painted anew with the next canvas. */
void top_terminal_repaint(void);

/* The next key that was typed (cli/top_view.h): -1 where there is none. */
int top_terminal_key(void);
