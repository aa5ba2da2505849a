/* SPDX-License-Identifier: BSD-3-Clause */
/* What all of the parser needs: words, errors that name what was expected, values. */
#include "rule/parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"

#define PRINTABLE_MAX 64
/* More words than this are called by one name instead of being listed. */
#define LISTED_MAX 12

const char *rule_parser_word(const struct rule_parser *parser)
{
	return parser->at < parser->n_words ? parser->words[parser->at].text : NULL;
}

static unsigned column_of(const struct rule_parser *parser, unsigned at)
{
	return at < parser->n_words ? parser->words[at].column : parser->end_column;
}

int rule_parser_fail(struct rule_parser *parser, unsigned at, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parser->error->text, sizeof(parser->error->text), format, arguments);
	va_end(arguments);
	*parser->column = column_of(parser, at);
	return code;
}

int rule_parser_no_memory(struct rule_parser *parser)
{
	if (errno == E2BIG)
		return rule_parser_fail(parser, 0, -E2BIG, "the line needs too much memory");
	return rule_parser_fail(parser, 0, -ENOMEM, "no memory for the line");
}

void rule_expect(struct rule_expected *expected, const char *word, const char *what)
{
	if (expected->n < RULE_MAX_EXPECTED) {
		expected->entries[expected->n].word = word;
		expected->entries[expected->n++].what = what;
	}
}

/* Options that could stand here are expected too. */
static void expect_options(struct rule_parser *parser, struct rule_expected *expected)
{
	for (unsigned i = 0; i < parser->n_options; i++)
		if (!parser->options[i].alias && !parser->options[i].refused)
			rule_expect(expected, parser->options[i].name, parser->options[i].what);
}

static void offer(const struct rule_parser *parser, const struct rule_expected *expected)
{
	const struct rule_complete *complete = parser->complete;
	size_t length = strlen(parser->begun);

	for (unsigned i = 0; i < expected->n; i++)
		if (strncmp(expected->entries[i].word, parser->begun, length) == 0)
			complete->offer(complete->context, expected->entries[i].word,
				expected->entries[i].what);
	if (expected->value)
		complete->offer(complete->context, NULL, expected->value);
}

/* "a, b or c"; by their common name where they are many. */
static void list(char *text, size_t size, const struct rule_expected *expected)
{
	bool all = expected->n > LISTED_MAX && expected->all;
	unsigned n = all ? 0 : expected->n;
	/* a word alone would be taken for one of the sentence */
	const char *quote = expected->n == 1 && !expected->value ? "\"" : "";
	const char *last = all ? expected->all : expected->value;
	size_t length = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < n && length < size; i++) {
		bool end = i + 1 == n && !last;

		length += (size_t)snprintf(text + length, size - length, "%s%s%s%s",
			i == 0 ? "" : (end ? " or " : ", "), quote, expected->entries[i].word,
			quote);
	}
	if (last && length < size)
		snprintf(text + length, size - length, "%s%s", length ? " or " : "", last);
}

int rule_parser_unexpected(struct rule_parser *parser, struct rule_expected *expected)
{
	const char *word = rule_parser_word(parser), *known[RULE_MAX_EXPECTED], *near = NULL;
	char text[360], printable[PRINTABLE_MAX];
	unsigned n = 0;

	if (!expected->only)
		expect_options(parser, expected);
	if (!word && parser->complete) {
		offer(parser, expected);
		return -ECANCELED;
	}
	list(text, sizeof(text), expected);
	if (!word)
		return rule_parser_fail(
			parser, parser->at, -EINVAL, "the line ends early: %s is needed", text);
	for (; n < expected->n; n++)
		known[n] = expected->entries[n].word;
	for (unsigned i = 0; i < parser->n_options && n < RULE_MAX_EXPECTED; i++)
		known[n++] = parser->options[i].name;
	near = suggest(word, known, n);
	text_visible(printable, sizeof(printable), word);
	if (expected->n == 0 && !expected->value)
		return rule_parser_fail(parser, parser->at, -EINVAL,
			"%s: the line is complete before this word", printable);
	return rule_parser_fail(parser, parser->at, -EINVAL, "%s: %s is needed here%s%s%s",
		printable, text, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

void rule_parser_refuse(
	struct rule_parser *parser, const char *why, const struct rule_parser_word *word)
{
	if (!why || parser->refused)
		return;
	parser->refused = why;
	parser->refused_word = word->text;
	parser->refused_column = word->column;
}

int rule_parser_value(struct rule_parser *parser, const struct rule_field *field, bool mask,
	struct rule_value *value)
{
	const char *word = rule_parser_word(parser);
	const struct rule_word *words = field->kind == RULE_BOOLEAN ? rule_booleans : field->words;
	int ret;

	if (!word) {
		struct rule_expected expected = {.all = rule_value_what(field)};
		char what[PRINTABLE_MAX];

		if (words)
			for (; words->name; words++) {
				if (!words->refused)
					rule_expect(&expected, words->name, NULL);
			}
		else
			expected.value = what;
		snprintf(what, sizeof(what), "%s%s%s", rule_value_what(field),
			field->name[0] ? " for " : "", field->name);
		parser->n_options = 0;
		return rule_parser_unexpected(parser, &expected);
	}
	ret = rule_value_read(value, field, mask, word, parser->error);
	if (ret < 0) {
		*parser->column = column_of(parser, parser->at);
		return ret;
	}
	rule_parser_refuse(parser, value->refused, &parser->words[parser->at]);
	parser->at++;
	parser->n_options = 0;
	return 0;
}
