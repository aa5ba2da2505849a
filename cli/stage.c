/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of rules, or a configuration, on its way to the engine, in requests that are as long as it takes them. */
#include "cli/stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A request takes no more bytes of text than this, counted as JSON writes them. */
#define PIECE_MAX 3900
#define WORD_MAX 200

/* How many bytes a character takes in JSON. */
static size_t size_in_json(char c)
{
	if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r')
		return 2;
	return (unsigned char)c < ' ' || c == 0x7f ? 6 : 1;
}

/* A text that is being read, and the piece of it that is sent next. */
struct staging {
	struct cli_client *client;
	const struct cli_stage *stage;
	FILE *file;
	struct error *error;
	char piece[PIECE_MAX];
	size_t length, size; /* of the piece, and as JSON */
	size_t all;
	unsigned line;
};

static int send_piece(struct staging *staging)
{
	json_t *with = json_pack("{s:s%}", "text", staging->piece, staging->length);
	struct error *error = staging->error;
	struct cli_line line;
	const char *said;
	int ret = with == NULL ? error_set(error, -ENOMEM, "no memory for the request")
			       : cli_client_ask(staging->client, staging->stage->ask, with, error);

	json_decref(with);
	staging->length = staging->size = 0;
	if (ret < 0)
		return ret;
	while ((ret = cli_client_next(staging->client, &line, error)) > 0)
		;
	if (ret < 0)
		return ret;
	said = json_string_value(json_object_get(line.json, "error"));
	if (said == NULL)
		return 0;
	text_printable(error->text, sizeof(error->text), said);
	return -EPROTO;
}

/* One character of `n` bytes. */
static int put(struct staging *staging, const char *bytes, unsigned n)
{
	const size_t size = n == 1 ? size_in_json(bytes[0]) : n;
	char word[WORD_MAX];

	staging->all += n;
	if (staging->stage->most != 0 && staging->all > staging->stage->most)
		return error_set(staging->error, -EFBIG,
			"%s: more than 1 MB, too long for a configuration",
			text_printable(word, sizeof(word), staging->stage->path));
	if (staging->size + size > PIECE_MAX) {
		int ret = send_piece(staging);

		if (ret < 0)
			return ret;
	}
	memcpy(staging->piece + staging->length, bytes, n);
	staging->length += n;
	staging->size += size;
	staging->line += bytes[0] == '\n';
	return 0;
}

/* Bytes that are no text: one '?' each, so that what follows is in the same column. */
static int put_no_text(struct staging *staging, unsigned n)
{
	char word[WORD_MAX];
	int ret = 0;

	if (staging->stage->exact)
		return error_set(staging->error, -EILSEQ,
			"%s:%u: it has bytes that are no text in UTF-8",
			text_printable(word, sizeof(word), staging->stage->path), staging->line);
	while (ret == 0 && n-- > 0)
		ret = put(staging, "?", 1);
	return ret;
}

/* How many bytes a character of UTF-8 has that begins so; 0: none does. */
static unsigned length_by_first(unsigned char first)
{
	if (first < 0xc2)
		return 0;
	if (first < 0xe0)
		return 2;
	return first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Neither longer than need be, nor half of a pair, nor beyond the last one. */
static bool is_character(const char *bytes, unsigned n)
{
	const unsigned first = (unsigned char)bytes[0], second = (unsigned char)bytes[1];

	if (n == 3)
		return !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second >= 0xa0);
	return n != 4 || (!(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second >= 0x90));
}

/* A character that begins with a byte beyond ASCII. */
static int put_wide(struct staging *staging, int first)
{
	const unsigned wanted = length_by_first((unsigned char)first);
	char bytes[4] = {(char)first};
	unsigned n = 1;

	while (n < wanted) {
		int c = getc(staging->file);

		if (c == EOF || (c & 0xc0) != 0x80) {
			if (c != EOF)
				(void)ungetc(c, staging->file);
			return put_no_text(staging, n);
		}
		bytes[n++] = (char)c;
	}
	return wanted != 0 && is_character(bytes, n) ? put(staging, bytes, n)
						     : put_no_text(staging, n);
}

static int send_all(struct staging *staging)
{
	int c, ret = 0;

	while (ret == 0 && !feof(staging->file) && !ferror(staging->file) &&
		(c = getc(staging->file)) != EOF) {
		const char byte = (char)c;

		if (c == '\0')
			ret = put_no_text(staging, 1);
		else
			ret = c < 0x80 ? put(staging, &byte, 1) : put_wide(staging, c);
	}
	return ret < 0 || staging->length == 0 ? ret : send_piece(staging);
}

static int refuse_file(const char *path, struct error *error)
{
	const int code = errno != 0 ? errno : EIO;
	char word[WORD_MAX];

	return error_set(
		error, -code, "%s: %s", text_printable(word, sizeof(word), path), strerror(code));
}

int cli_stage_file(struct cli_client *client, const struct cli_stage *stage, struct error *error)
{
	const bool standard = strcmp(stage->path, "-") == 0;
	struct staging staging = {.client = client,
		.stage = stage,
		.file = standard ? stdin : fopen(stage->path, "re"),
		.error = error,
		.line = 1};
	int ret;

	if (staging.file == NULL)
		return refuse_file(stage->path, error);
	errno = 0;
	ret = send_all(&staging);
	if (ret == 0 && ferror(staging.file))
		ret = refuse_file(stage->path, error);
	if (!standard)
		fclose(staging.file);
	return ret;
}
