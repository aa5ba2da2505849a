/* SPDX-License-Identifier: BSD-3-Clause */
/* Named sets of addresses: lines that fill them, and the names that patterns ask for. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "packet/headers.h"
#include "rule/block.h"
#include "rule/rules_private.h"
#include "rule/value.h"

#define NAME_MAX_SHOWN 160
/* Of a file. What has no line ends is no list, and would be read into memory whole. */
#define SET_LINE_MAX 65536
#define BLANKS " \t\r,"

/* One word of a line, and where it stands. */
struct word {
	char text[BLOCK_LINE_MAX];
	unsigned column; /* from 1 */
};

/* Takes the next word; false at the end of the line. A word that is too long is cut: it is no prefix then. */
static bool take_word(const char *line, size_t *at, struct word *word)
{
	size_t length;

	*at += strspn(line + *at, BLANKS);
	length = strcspn(line + *at, BLANKS "\n");
	word->column = (unsigned)*at + 1;
	snprintf(word->text, sizeof(word->text), "%.*s", (int)length, line + *at);
	*at += length;
	return length > 0 && word->text[0] != '#';
}

static int refuse_set(struct error *error, int code, const struct word *word, const char *what)
{
	return error_set(error, code, "column %u: %s", word->column, what);
}

/* The name in front of a line, and where the rest begins. */
static int take_name(const char *line, size_t *at, struct word *word, struct error *error)
{
	struct error said;

	*at = 0;
	if (!take_word(line, at, word))
		return refuse_set(error, -EINVAL, word, "the name of a set is needed");
	if (rule_name_check(word->text, &said) < 0)
		return refuse_set(error, -EINVAL, word, said.text);
	return 0;
}

/* The file that a line names, or NULL: it has the prefixes itself. */
static const char *file_of(const char *line, size_t at)
{
	struct word word;
	size_t behind = at;

	if (!take_word(line, &behind, &word) || strcmp(word.text, "file") != 0)
		return NULL;
	return line + behind + strspn(line + behind, " \t");
}

static int prefix_of_word(
	struct classifier_prefix *prefix, const struct word *word, struct error *error)
{
	struct block_match match;
	struct error said;

	if (block_parse_prefix(&match, word->text, BLOCK_ANY, BLOCK_ANY, &said) < 0)
		return refuse_set(error, -EINVAL, word, said.text);
	*prefix = (struct classifier_prefix){
		.version = match.prefix.version, .length = match.prefix.length};
	for (unsigned i = 0; i < (prefix->version == 4 ? 1u : 4u); i++)
		prefix->addr[i] = load_be32(match.prefix.addr + 4 * i);
	return 0;
}

/* What is done with the prefixes of a line. */
struct filling {
	struct rules *rules; /* NULL: they are counted */
	uint32_t set, n;
};

static int fill_one(struct filling *filling, const struct word *word, struct error *error)
{
	struct classifier_prefix prefix;
	int ret = prefix_of_word(&prefix, word, error);

	if (ret < 0)
		return ret;
	filling->n++;
	if (filling->rules == NULL)
		return 0;
	ret = classifier_set_add(filling->rules->full, filling->set, &prefix);
	return ret < 0 ? refuse_set(error, ret, word, "no room for the prefix") : 0;
}

static int fill_from(struct filling *filling, const char *line, size_t at, unsigned *n_words,
	struct error *error)
{
	struct word word;
	int ret = 0;

	for (*n_words = 0; ret == 0 && take_word(line, &at, &word); ++*n_words)
		ret = fill_one(filling, &word, error);
	return ret;
}

static int refuse_set_file(struct error *error, int code, const char *path, const char *what)
{
	char name[NAME_MAX_SHOWN];

	return error_set(error, code, "%s: %s", text_printable(name, sizeof(name), path), what);
}

/* The next line, without its end: SET_LINE_MAX bytes at most. 1, 0 at the end of the file, or a negative errno. */
static int next_line(FILE *file, char *line, struct error *error)
{
	struct word word = {.column = 1};
	unsigned length = 0;
	int c;

	while ((c = getc_unlocked(file)) != EOF && c != '\n') {
		word.column = length + 1;
		if (c == '\0')
			return refuse_set(error, -EINVAL, &word, "a zero byte; this is no text");
		if (length == SET_LINE_MAX)
			return refuse_set(
				error, -E2BIG, &word, "the line is longer than 65,536 bytes");
		line[length++] = (char)c;
	}
	line[length] = '\0';
	return c == '\n' || length > 0;
}

/* Each line has prefixes, or a comment. */
static int fill_from_lines(
	struct filling *filling, FILE *file, const char *path, char *line, struct error *error)
{
	unsigned number = 0, n_words;
	struct error said;
	char what[sizeof(said.text) + 32];
	int ret = 0, more = 1;

	errno = 0;
	while (ret == 0 && (more = next_line(file, line, &said)) != 0) {
		number++;
		const size_t at = number == 1 ? text_byte_order_mark(line, strlen(line)) : 0;

		ret = more < 0 ? more : fill_from(filling, line, at, &n_words, &said);
	}
	if (ret < 0) {
		snprintf(what, sizeof(what), "line %u, %s", number, said.text);
		return refuse_set_file(error, ret, path, what);
	}
	if (ferror(file))
		return refuse_set_file(error, errno != 0 ? -errno : -EIO, path,
			strerror(errno != 0 ? errno : EIO));
	return 0;
}

static int fill_from_file(struct filling *filling, const char *path, struct error *error)
{
	FILE *file = fopen(path, "re");
	char *line;
	int ret;

	if (file == NULL)
		return refuse_set_file(error, -errno, path, strerror(errno));
	line = malloc(SET_LINE_MAX + 1);
	ret = line != NULL ? fill_from_lines(filling, file, path, line, error)
			   : refuse_set_file(error, -ENOMEM, path, "no memory to read it");
	free(line);
	fclose(file);
	return ret;
}

static int fill_set(struct filling *filling, const char *line, size_t at, struct error *error)
{
	const char *path = file_of(line, at);
	const struct word end = {.column = (unsigned)strlen(line) + 1};
	unsigned n_words;

	if (path != NULL && *path == '\0')
		return refuse_set(error, -EINVAL, &end, "the path of a file is needed");
	if (path != NULL && strcmp(path, "-") == 0)
		return refuse_set_file(error, -EINVAL, path,
			"standard input is not taken; ./- is a file of this name");
	if (path != NULL)
		return fill_from_file(filling, path, error);
	int ret = fill_from(filling, line, at, &n_words, error);

	if (ret == 0 && n_words == 0)
		ret = refuse_set(
			error, -EINVAL, &end, "prefixes are needed, or the word file and a path");
	return ret;
}

int rules_set_check(const char *line, struct error *error)
{
	struct filling filling = {.rules = NULL};
	struct word word;
	size_t at;
	int ret = take_name(line, &at, &word, error);

	if (ret < 0 || file_of(line, at) != NULL)
		return ret;
	return fill_set(&filling, line, at, error);
}

int rules_set_count(const char *line, uint32_t *n, struct error *error)
{
	struct filling filling = {.rules = NULL};
	struct word word;
	size_t at;
	int ret = take_name(line, &at, &word, error);

	if (ret == 0)
		ret = fill_set(&filling, line, at, error);
	*n = filling.n;
	return ret;
}

int rules_set_fill(struct rules *rules, const char *line, struct error *error)
{
	struct filling filling = {.rules = rules};
	struct word word;
	size_t at;
	int ret = take_name(line, &at, &word, error);

	if (ret < 0)
		return ret;
	ret = classifier_set_open(rules->full, word.text, &filling.set);
	if (ret < 0)
		return refuse_set(error, ret, &word, "no room for the set");
	return fill_set(&filling, line, at, error);
}

/* In rules that are only checked every set is there, and has all addresses. */
static uint32_t make_any(struct rules *rules, const char *name)
{
	const struct classifier_prefix any[] = {{.version = 4}, {.version = 6}};
	uint32_t set;

	if (classifier_set_open(rules->full, name, &set) < 0)
		return 0;
	for (unsigned i = 0; i < 2; i++)
		if (classifier_set_add(rules->full, set, &any[i]) < 0)
			return 0;
	return set;
}

uint32_t rules_find_set(void *context, const char *name)
{
	struct rules *rules = context;
	const uint32_t set = classifier_set_find(rules->full, name);

	return set == 0 && rules->any_set ? make_any(rules, name) : set;
}
