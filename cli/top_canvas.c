/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_canvas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

static unsigned at_most(unsigned number, unsigned most)
{
	return number < most ? number : most;
}

int top_canvas_init(struct top_canvas *canvas, unsigned rows, unsigned cols, bool utf8)
{
	*canvas = (struct top_canvas){.utf8 = utf8};
	return top_canvas_resize(canvas, rows, cols);
}

int top_canvas_resize(struct top_canvas *canvas, unsigned rows, unsigned cols)
{
	struct top_cell *cells;

	rows = at_most(rows, TOP_CANVAS_MAX);
	cols = at_most(cols, TOP_CANVAS_MAX);
	if (canvas->cells && rows == canvas->rows && cols == canvas->cols)
		return 0;
	cells = calloc((size_t)rows * cols + 1, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	free(canvas->cells);
	canvas->cells = cells;
	canvas->rows = rows;
	canvas->cols = cols;
	return 0;
}

void top_canvas_clear(struct top_canvas *canvas)
{
	memset(canvas->cells, 0, (size_t)canvas->rows * canvas->cols * sizeof(*canvas->cells));
}

void top_canvas_fini(struct top_canvas *canvas)
{
	free(canvas->cells);
	*canvas = (struct top_canvas){.cells = NULL};
}

/* Bytes of the character that begins with this one, by its first byte; 0 where none does. */
static unsigned length_by_first(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Takes a character of the text, which has one. Returns its bytes; `code` is 0 where it is no UTF-8. */
static unsigned take_character(const char *text, uint32_t *code)
{
	const unsigned char *bytes = (const unsigned char *)text;
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	unsigned length = length_by_first(bytes[0]);

	*code = 0;
	if (length == 0)
		return 1;
	uint32_t value = bytes[0] & first_bits[length];

	for (unsigned i = 1; i < length; i++) {
		/* the end of the text is no such byte either */
		if ((bytes[i] & 0xc0) != 0x80)
			return i;
		value = value << 6 | (bytes[i] & 0x3f);
	}
	*code = value;
	return length;
}

/* Is it safe to show, and one column wide? */
static bool is_shown(const struct top_canvas *canvas, uint32_t code)
{
	if (code < 0x80)
		return code >= 0x20 && code != 0x7f;
	return canvas->utf8 && code >= 0xa0 && iswprint((wint_t)code) &&
	       wcwidth((wchar_t)code) == 1;
}

unsigned top_put(struct top_canvas *canvas, unsigned row, unsigned col, unsigned width,
	enum top_style style, const char *text)
{
	unsigned n = 0;

	if (row >= canvas->rows)
		return 0;
	for (; *text != '\0' && n < width && col + n < canvas->cols; n++) {
		struct top_cell *cell = &canvas->cells[(size_t)row * canvas->cols + col + n];
		uint32_t code;
		unsigned length = take_character(text, &code);

		memset(cell, 0, sizeof(*cell));
		cell->style = (uint8_t)style;
		if (is_shown(canvas, code))
			memcpy(cell->text, text, length);
		else
			cell->text[0] = '?';
		text += length;
	}
	return n;
}

unsigned top_width(const char *text)
{
	unsigned width = 0;
	uint32_t code;

	while (*text != '\0') {
		text += take_character(text, &code);
		width++;
	}
	return width;
}

void top_put_right(struct top_canvas *canvas, unsigned row, unsigned col, unsigned width,
	enum top_style style, const char *text)
{
	unsigned taken = top_width(text);

	if (taken < width)
		top_put(canvas, row, col + width - taken, taken, style, text);
	else
		top_put(canvas, row, col, width, style, text);
}

void top_style_row(struct top_canvas *canvas, unsigned row, enum top_style style)
{
	for (unsigned col = 0; row < canvas->rows && col < canvas->cols; col++)
		canvas->cells[(size_t)row * canvas->cols + col].style = (uint8_t)style;
}

const char *top_canvas_text(
	const struct top_canvas *canvas, unsigned row, char *buffer, size_t size)
{
	size_t length = 0, end = 0;

	for (unsigned col = 0; row < canvas->rows && col < canvas->cols; col++) {
		const struct top_cell *cell = &canvas->cells[(size_t)row * canvas->cols + col];
		size_t n = cell->text[0] == '\0' ? 1 : strlen(cell->text);

		if (length + n >= size)
			break;
		if (cell->text[0] == '\0')
			buffer[length] = ' ';
		else
			memcpy(buffer + length, cell->text, n);
		length += n;
		if (buffer[length - 1] != ' ')
			end = length;
	}
	buffer[end] = '\0';
	return buffer;
}
