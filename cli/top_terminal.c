/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/top_view.h"

/* Behind our own headers: term.h makes macros of many a word. */
#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>

/* Between the bytes of a key, in milliseconds: also over a slow line. */
#define ESCAPE_MS 50
#define NAME_MAX 60

static SCREEN *screen;
static attr_t attributes[TOP_N_STYLES];

bool top_terminal_there(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Colour adds to what tells the styles apart without it. */
static void choose_attributes(void)
{
	const char *no_color = getenv("NO_COLOR");

	attributes[TOP_PLAIN] = A_NORMAL;
	attributes[TOP_BOLD] = A_BOLD;
	attributes[TOP_TITLE] = A_UNDERLINE;
	attributes[TOP_CURSOR] = A_REVERSE;
	attributes[TOP_GOOD] = A_NORMAL;
	attributes[TOP_BAD] = A_BOLD;
	attributes[TOP_DIM] = A_NORMAL;
	if ((no_color && *no_color != '\0') || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(1, COLOR_GREEN, -1);
	init_pair(2, COLOR_RED, -1);
	init_pair(3, COLOR_CYAN, -1);
	attributes[TOP_GOOD] |= COLOR_PAIR(1);
	attributes[TOP_BAD] |= COLOR_PAIR(2);
	attributes[TOP_TITLE] |= COLOR_PAIR(3);
}

static int not_usable(struct error *error, const char *why)
{
	const char *name = getenv("TERM");
	char printable[NAME_MAX];

	return error_set(error, -ENOTSUP,
		"top: the terminal \"%s\" %s; set TERM to what it is, or use --once",
		text_printable(printable, sizeof(printable), name ? name : ""), why);
}

bool top_terminal_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int top_terminal_open(struct error *error)
{
	int known = 0;

	if (setupterm(NULL, STDOUT_FILENO, &known) != OK)
		return not_usable(error, "is not known here");
	const char *move = tigetstr("cup");
	bool moves = move && move != (char *)-1;

	del_curterm(cur_term);
	if (!moves)
		return not_usable(error, "cannot be drawn on");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return not_usable(error, "cannot be drawn on");
	set_term(screen);
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	choose_attributes();
	return 0;
}

void top_terminal_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

void top_terminal_size(unsigned *rows, unsigned *cols)
{
	*rows = (unsigned)getmaxy(stdscr);
	*cols = (unsigned)getmaxx(stdscr);
}

void top_terminal_repaint(void)
{
	clearok(stdscr, TRUE);
}

void top_terminal_show(const struct top_canvas *canvas)
{
	unsigned rows, cols;

	top_terminal_size(&rows, &cols);
	erase();
	for (unsigned row = 0; row < canvas->rows && row < rows; row++) {
		wmove(stdscr, (int)row, 0);
		for (unsigned col = 0; col < canvas->cols && col < cols; col++) {
			const struct top_cell *cell =
				&canvas->cells[(size_t)row * canvas->cols + col];

			attrset((int)attributes[cell->style]);
			/* the very last cell: it is written, and the error that the cursor cannot go on is none */
			(void)addstr(cell->text[0] != '\0' ? cell->text : " ");
		}
	}
	attrset(A_NORMAL);
	refresh();
}

int top_terminal_key(void)
{
	static const struct {
		int curses, key;
	} keys[] = {
		{KEY_UP, TOP_KEY_UP},
		{KEY_DOWN, TOP_KEY_DOWN},
		{KEY_PPAGE, TOP_KEY_PAGE_UP},
		{KEY_NPAGE, TOP_KEY_PAGE_DOWN},
		{KEY_HOME, TOP_KEY_HOME},
		{KEY_END, TOP_KEY_END},
		{KEY_ENTER, TOP_KEY_ENTER},
		{'\r', TOP_KEY_ENTER},
		{'\n', TOP_KEY_ENTER},
		{0x1b, TOP_KEY_ESCAPE},
		{KEY_BACKSPACE, TOP_KEY_BACKSPACE},
		{0x7f, TOP_KEY_BACKSPACE},
		{CTRL('H'), TOP_KEY_BACKSPACE},
		{CTRL('U'), TOP_KEY_CLEAR},
	};
	int key;

	/* the new size is looked at when it is drawn */
	do
		key = getch();
	while (key == KEY_RESIZE);
	if (key == ERR)
		return -1;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].curses == key)
			return keys[i].key;
	return key < 0x100 ? key : TOP_KEY_OTHER;
}
