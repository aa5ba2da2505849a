/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of rules on its way to the engine, in requests that are as long as it takes them. */
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

/* The language is ASCII; what else comments have is not needed, and an error is in the same column. */
static char to_ascii(int c)
{
	return c == '\0' || c > 0x7f ? '?' : (char)c;
}

static int send_piece(
	struct cli_client *client, const char *text, size_t length, struct error *error)
{
	json_t *with = json_pack("{s:s%}", "text", text, length);
	struct cli_line line;
	const char *said;
	int ret = with == NULL ? error_set(error, -ENOMEM, "no memory for the request")
			       : cli_client_ask(client, "rule stage", with, error);

	json_decref(with);
	if (ret < 0)
		return ret;
	while ((ret = cli_client_next(client, &line, error)) > 0)
		;
	if (ret < 0)
		return ret;
	said = json_string_value(json_object_get(line.json, "error"));
	if (said == NULL)
		return 0;
	text_printable(error->text, sizeof(error->text), said);
	return -EPROTO;
}

/* The first bytes of the file, without a byte order mark, which says nothing. Returns how many, at most 3. */
static size_t read_head(FILE *file, char *piece)
{
	const size_t n = fread(piece, 1, 3, file);

	if (text_byte_order_mark(piece, n) != 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		piece[i] = to_ascii((unsigned char)piece[i]);
	return n;
}

static int send_all(struct cli_client *client, FILE *file, struct error *error)
{
	char piece[PIECE_MAX];
	size_t length = read_head(file, piece), size = 0;
	int c, ret = 0;

	if (ferror(file))
		return 0; /* the caller looks, too */
	for (size_t i = 0; i < length; i++)
		size += size_in_json(piece[i]);
	while (ret == 0 && !feof(file) && (c = getc(file)) != EOF) {
		const char byte = to_ascii(c);

		if (size + size_in_json(byte) > PIECE_MAX) {
			ret = send_piece(client, piece, length, error);
			length = size = 0;
		}
		piece[length++] = byte;
		size += size_in_json(byte);
	}
	return ret < 0 || length == 0 ? ret : send_piece(client, piece, length, error);
}

static int refuse_file(const char *path, struct error *error)
{
	const int code = errno != 0 ? errno : EIO;
	char word[WORD_MAX];

	return error_set(
		error, -code, "%s: %s", text_printable(word, sizeof(word), path), strerror(code));
}

int cli_stage_file(struct cli_client *client, const char *path, struct error *error)
{
	const bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "re");
	int ret;

	if (file == NULL)
		return refuse_file(path, error);
	errno = 0;
	ret = send_all(client, file, error);
	if (ret == 0 && ferror(file))
		ret = refuse_file(path, error);
	if (!standard)
		fclose(file);
	return ret;
}
