/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_pane.h"

#include <stdio.h>
#include <string.h>

/* What a line is continued with stands so far behind its begin, in most of the screen. */
#define CONTINUED 4
#define INDENT_MAX 30

/* Lines of at most 78 columns. */
static const char help[] =
	" up, down, j, k   move the cursor; also Page Up, Page Down, Home, End, g, G\n"
	" Enter, e         explain the flow under the cursor: where it is handled, why\n"
	" b                block it, after a question\n"
	" u                take back the block of this very flow\n"
	" s                next order; or r: by packets a second, p: by packets,\n"
	"                  y: by bytes, a: by age\n"
	" f, /             filter, by options of flow list: proto udp port 53; an\n"
	"                  address, a prefix or a protocol may stand alone; nothing: all\n"
	" space            freeze the picture, and go on\n"
	" Ctrl-L           paint the screen anew\n"
	" Esc, q           close this; q in the list: quit\n"
	"\n"
	" What is told of a flow is of both its directions. The part of the packets\n"
	" that NICs do is of the packets of listed flows: those that NICs marked, or\n"
	" sent on alone. Packets are missed that a port lost before the engine had\n"
	" them. A bar is the part of its time that a worker was busy.\n";

size_t top_pane_line(const char *text, unsigned cols, unsigned *indent, const char **next)
{
	size_t length = strcspn(text, "\n"), room = cols > *indent ? cols - *indent : 1;

	if (length <= room) {
		*next = text + length + (text[length] == '\n');
		*indent = 0;
		return length;
	}
	/* at the last blank that does not begin the line; a word that is too long is cut */
	size_t begin = strspn(text, " "), end = room;

	while (end > begin && text[end] != ' ')
		end--;
	if (end <= begin) {
		/* not within a character of UTF-8 */
		for (end = room; end > 1 && ((unsigned char)text[end] & 0xc0) == 0x80; end--)
			;
	}
	*next = text + end + strspn(text + end, " ");
	if (*indent == 0)
		*indent = (unsigned)(begin < INDENT_MAX ? begin : INDENT_MAX) + CONTINUED;
	return end;
}

static void draw_title(struct top_canvas *canvas, unsigned row, const struct top_view *view)
{
	static const char close[] = "Esc: back";
	const unsigned width = sizeof(close) - 1;
	char text[TOP_NAME_MAX + 32];

	if (view->mode == TOP_HELP)
		snprintf(text, sizeof(text), "keys");
	else
		snprintf(text, sizeof(text), "explain %s", view->target_name);
	top_style_row(canvas, row, TOP_TITLE);
	top_put(canvas, row, 1, canvas->cols, TOP_TITLE, text);
	top_put(canvas, row, canvas->cols - width - 1, width, TOP_TITLE, close);
}

void top_pane_draw(struct top_canvas *canvas, unsigned row, unsigned n, struct top_view *view,
	const char *explanation)
{
	const char *text = view->mode == TOP_HELP ? help
			   : explanation	  ? explanation
						  : " asking ...\n";
	const char *next;
	unsigned cols = canvas->cols - 1, indent = 0, lines = 0;
	char line[1024];

	draw_title(canvas, row++, view);
	view->pane = n - 1;
	for (; *text != '\0'; text = next, lines++) {
		unsigned at = indent;
		size_t length = top_pane_line(text, cols, &indent, &next);

		if (lines < view->line || lines - view->line >= view->pane)
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		top_put(canvas, row + lines - view->line, at, cols, TOP_PLAIN, line);
	}
	view->n_lines = lines;
}
