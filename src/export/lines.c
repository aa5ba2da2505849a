/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int lines_init(struct lines *lines, size_t size)
{
	*lines = (struct lines){.buffer = malloc(size), .size = size};
	return lines->buffer ? 0 : -ENOMEM;
}

void lines_fini(struct lines *lines)
{
	free(lines->buffer);
}

bool lines_fit(struct lines *lines, size_t length)
{
	/* what is taken makes room only from here on: else slow takers make us move memory for nothing */
	const size_t worth_moving = lines->size / 4;
	size_t gone = lines->line;

	if (lines->size - lines->length >= length)
		return true;
	if (gone < worth_moving || lines->size - lines->length + gone < length)
		return false;
	memmove(lines->buffer, lines->buffer + gone, lines->length - gone);
	lines->line = 0;
	lines->start -= gone;
	lines->length -= gone;
	return true;
}

void lines_add(struct lines *lines, const char *bytes, size_t length)
{
	memcpy(lines->buffer + lines->length, bytes, length);
	lines->length += length;
	lines->n++;
}

const char *lines_bytes(const struct lines *lines, size_t *length)
{
	*length = lines->length - lines->start;
	return *length > 0 ? lines->buffer + lines->start : NULL;
}

size_t lines_take(struct lines *lines, size_t length)
{
	const char *from = lines->buffer + lines->start, *end = from + length, *newline;
	size_t n = 0;

	while ((newline = memchr(from, '\n', (size_t)(end - from))) != NULL) {
		n++;
		from = newline + 1;
		lines->line = (size_t)(from - lines->buffer);
	}
	lines->start += length;
	lines->n -= n;
	if (lines->start == lines->length)
		lines->line = lines->start = lines->length = 0;
	return n;
}

size_t lines_cut_rest(const struct lines *lines)
{
	const char *from = lines->buffer + lines->start;

	if (lines->start == lines->line)
		return 0;

	const char *newline = memchr(from, '\n', lines->length - lines->start);

	return (size_t)(newline + 1 - from);
}

size_t lines_cut_begin(const struct lines *lines)
{
	return lines->start - lines->line;
}

void lines_cut_restore(struct lines *lines)
{
	lines->start = lines->line;
}

void lines_cut_drop(struct lines *lines)
{
	(void)lines_take(lines, lines_cut_rest(lines));
}

size_t lines_clear(struct lines *lines)
{
	size_t n = lines->n;

	lines->line = lines->start = lines->length = lines->n = 0;
	return n;
}
