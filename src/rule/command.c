/* SPDX-License-Identifier: BSD-3-Clause */
/* A line: its words, which form of a command they are, and what stands outside of lists. */
#include "rule/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "rule/outer.h"
#include "rule/parser.h"

#define MAX_FORMS 128
#define PROMPT "testpmd>"

/* The forms that the words so far may be the beginning of. */
struct candidates {
	const struct rule_form *forms[MAX_FORMS];
	unsigned n;
};

static const struct rule_step *step_of(const struct rule_form *form, unsigned i)
{
	return i < form->n_steps ? &form->steps[i] : NULL;
}

static bool step_is_word(const struct rule_step *step, const char *word)
{
	return word && step && step->step == RULE_STEP_WORD &&
	       (strcmp(step->name, word) == 0 || (step->alias && strcmp(step->alias, word) == 0));
}

static bool same_step(const struct rule_step *a, const struct rule_step *b)
{
	if (!a || !b || a->step != b->step)
		return false;
	switch (a->step) {
	case RULE_STEP_WORD:
		return strcmp(a->name, b->name) == 0;
	case RULE_STEP_VALUE:
		return a->kind == b->kind;
	case RULE_STEP_OPTIONS:
		return a->options == b->options;
	case RULE_STEP_MAYBE:
	case RULE_STEP_ITEMS:
	case RULE_STEP_ACTIONS:
	case RULE_STEP_ACTION:
	case RULE_STEP_FIELDS:
		break;
	}
	return false;
}

static int add_argument(
	struct rule_parser *parser, enum rule_argument_id id, uint64_t number, const char *text)
{
	struct rule_command *command = parser->command;

	if (command->n_arguments == RULE_MAX_ARGUMENTS)
		return rule_parser_fail(parser, parser->at - 1, -E2BIG, "too many words");
	parser->arguments[command->n_arguments++] =
		(struct rule_argument){.id = id, .number = number, .text = text};
	return 0;
}

/* How the value of an argument is read: as that of a field of this width. */
static struct rule_field field_of(const char *name, enum rule_kind kind, enum rule_argument_id id,
	const struct rule_word *words)
{
	bool wide = id == RULE_ARG_RATE || id == RULE_ARG_STATS_MASK || id == RULE_ARG_LATER;
	struct rule_field field = {
		.name = name, .what = name, .kind = kind, .words = words, .width = wide ? 8 : 4};

	if (id == RULE_ARG_PORT)
		field.max = RULE_NO_PORT - 1;
	if (id == RULE_ARG_INDEX)
		field.max = RULE_MAX_INDEX - 1;
	return field;
}

static int parse_value(struct rule_parser *parser, const struct rule_step *step)
{
	struct rule_field field = field_of(step->name, step->kind, step->id, step->words);
	const char *word = rule_parser_word(parser);
	struct rule_value value;
	int ret = rule_parser_value(parser, &field, false, &value);

	if (ret < 0)
		return ret;
	if (step->id == RULE_ARG_PORT) {
		parser->command->port = (uint16_t)value.number;
		return 0;
	}
	return add_argument(parser, step->id, value.number, word);
}

/* A value that may be left out: taken where the word looks like one. */
static int parse_maybe(struct rule_parser *parser, const struct rule_step *step)
{
	unsigned most = step->list ? step->list : 1;

	for (unsigned i = 0; i < most; i++) {
		const char *word = rule_parser_word(parser);
		bool takes = word != NULL;

		if (takes && step->kind == RULE_NUMBER)
			takes = isdigit((unsigned char)word[0]);
		else if (takes && step->kind == RULE_WORD)
			takes = rule_word_find(step->words, word) != NULL;
		else if (takes && step->kind == RULE_BOOLEAN)
			takes = rule_word_find(rule_booleans, word) != NULL;
		if (!takes)
			return 0;
		int ret = parse_value(parser, step);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void set_attr(struct rte_flow_attr *attr, enum rule_attr which, uint64_t number)
{
	switch (which) {
	case RULE_ATTR_GROUP:
		attr->group = (uint32_t)number;
		break;
	case RULE_ATTR_PRIORITY:
		attr->priority = (uint32_t)number;
		break;
	case RULE_ATTR_INGRESS:
		attr->ingress = 1;
		break;
	case RULE_ATTR_EGRESS:
		attr->egress = 1;
		break;
	case RULE_ATTR_TRANSFER:
		attr->transfer = 1;
		break;
	case RULE_ATTR_NONE:
		break;
	}
}

static int parse_option(struct rule_parser *parser, const struct rule_option *option)
{
	struct rule_field field = field_of(option->name, option->kind, option->id, option->words);
	struct rule_value value = {.number = 1};
	const char *text = option->name;

	rule_parser_refuse(parser, option->refused, &parser->words[parser->at]);
	parser->at++;
	if (option->kind != RULE_FLAG) {
		text = rule_parser_word(parser);
		int ret = rule_parser_value(parser, &field, false, &value);

		if (ret < 0)
			return ret;
	}
	if (option->attr == RULE_ATTR_NONE)
		return add_argument(parser, option->id, value.number, text);
	set_attr(&parser->command->attr, option->attr, value.number);
	return 0;
}

static bool has_argument(const struct rule_parser *parser, enum rule_argument_id id)
{
	for (unsigned i = 0; i < parser->command->n_arguments; i++)
		if (parser->arguments[i].id == id)
			return true;
	return false;
}

static int parse_options(struct rule_parser *parser, const struct rule_step *step)
{
	struct rule_expected missing = {.n = 0};
	const char *word;

	while ((word = rule_parser_word(parser))) {
		unsigned i = 0;

		while (i < step->n_options && strcmp(step->options[i].name, word) != 0)
			i++;
		if (i == step->n_options)
			break;
		int ret = parse_option(parser, &step->options[i]);

		if (ret < 0)
			return ret;
	}
	for (unsigned i = 0; i < step->n_options; i++)
		if (step->options[i].min && !step->optional &&
			!has_argument(parser, step->options[i].id))
			rule_expect(&missing, step->options[i].name, step->options[i].what);
	parser->options = step->options;
	parser->n_options = step->n_options;
	if (missing.n == 0)
		return 0;
	if (parser->complete)
		missing.n = 0;
	else
		missing.only = true;
	return rule_parser_unexpected(parser, &missing);
}

static int parse_action_name(struct rule_parser *parser)
{
	const char *word = rule_parser_word(parser);
	const struct rule_thing *thing = word ? rule_action_find(word) : NULL;

	if (!thing) {
		struct rule_expected expected = {.all = "the name of an action"};

		for (unsigned i = 0; i < rule_n_actions; i++)
			if (!rule_actions[i].refused)
				rule_expect(&expected, rule_actions[i].name, rule_actions[i].what);
		return rule_parser_unexpected(parser, &expected);
	}
	rule_parser_refuse(parser, thing->refused, &parser->words[parser->at]);
	parser->at++;
	return add_argument(parser, RULE_ARG_ACTION, (uint64_t)(int64_t)thing->type, word);
}

static int parse_conf(struct rule_parser *parser, const struct rule_thing *thing)
{
	struct rule_expected expected = {.all = "a word of set conntrack"};
	void *conf = rule_memory_take(parser->memory, thing->size);

	if (!conf)
		return rule_parser_no_memory(parser);
	parser->command->parts->conf = conf;
	int ret = rule_parse_fields(parser, thing, conf, NULL, &expected);

	return ret < 0 || !rule_parser_word(parser) ? ret
						    : rule_parser_unexpected(parser, &expected);
}

/* The word `name`. Returns 1 where it may be left out, and the line ends before it. */
static int parse_word(struct rule_parser *parser, const struct rule_step *step)
{
	struct rule_expected expected = {.n = 0};

	if (step_is_word(step, rule_parser_word(parser))) {
		parser->at++;
		parser->n_options = 0;
		return 0;
	}
	if (step->optional && !rule_parser_word(parser) && !parser->complete)
		return 1;
	rule_expect(&expected, step->name, NULL);
	return rule_parser_unexpected(parser, &expected);
}

/* Returns 1 where the command ends before this step. */
static int parse_step(struct rule_parser *parser, const struct rule_step *step)
{
	switch (step->step) {
	case RULE_STEP_WORD:
		return parse_word(parser, step);
	case RULE_STEP_VALUE:
		return parse_value(parser, step);
	case RULE_STEP_MAYBE:
		return parse_maybe(parser, step);
	case RULE_STEP_OPTIONS:
		return parse_options(parser, step);
	case RULE_STEP_ITEMS:
		return rule_parse_items(parser, step->name);
	case RULE_STEP_ACTIONS:
		return rule_parse_actions(parser, step->list);
	case RULE_STEP_ACTION:
		return parse_action_name(parser);
	case RULE_STEP_FIELDS:
		return parse_conf(parser, step->thing);
	}
	return -EINVAL;
}

static bool is_value(const struct rule_step *step)
{
	return step && step->step == RULE_STEP_VALUE;
}

/* No candidate goes on with this word. */
static int no_candidate(struct rule_parser *parser, const struct candidates *candidates, unsigned i)
{
	struct rule_expected expected = {.all = "a command"};

	for (unsigned c = 0; c < candidates->n; c++) {
		const struct rule_step *step = step_of(candidates->forms[c], i);
		bool known = false;

		if (is_value(step))
			expected.value = step->name;
		if (!step || step->step != RULE_STEP_WORD || candidates->forms[c]->refused)
			continue;
		for (unsigned e = 0; e < expected.n; e++) {
			if (strcmp(expected.entries[e].word, step->name) != 0)
				continue;
			/* several commands begin with it */
			expected.entries[e].what = NULL;
			known = true;
		}
		if (!known)
			rule_expect(&expected, step->name, candidates->forms[c]->what);
	}
	return rule_parser_unexpected(parser, &expected);
}

/*
 * Keeps those candidates whose step `i` is this word, or else those that have a value there. Returns 1
 * when the word has been taken.
 */
static int narrow(struct rule_parser *parser, struct candidates *candidates, unsigned i)
{
	const char *word = rule_parser_word(parser);
	unsigned n_words = 0, n_values = 0;
	struct candidates all = *candidates;

	for (unsigned c = 0; c < all.n; c++)
		if (step_is_word(step_of(all.forms[c], i), word))
			candidates->forms[n_words++] = all.forms[c];
	candidates->n = n_words;
	if (n_words > 0) {
		parser->decisive = parser->at++;
		parser->n_options = 0;
		return 1;
	}
	for (unsigned c = 0; c < all.n && word; c++)
		if (is_value(step_of(all.forms[c], i)))
			candidates->forms[n_values++] = all.forms[c];
	candidates->n = n_values;
	return n_values > 0 ? 0 : no_candidate(parser, &all, i);
}

static bool all_same(const struct candidates *candidates, unsigned i)
{
	for (unsigned c = 1; c < candidates->n; c++)
		if (!same_step(step_of(candidates->forms[0], i), step_of(candidates->forms[c], i)))
			return false;
	return true;
}

static int parse_form(struct rule_parser *parser)
{
	struct candidates candidates = {.forms = {&rule_forms[0]}, .n = 1};
	unsigned i = 0;
	int ret;

	for (unsigned f = 1; f < rule_n_forms && f < MAX_FORMS; f++)
		candidates.forms[candidates.n++] = &rule_forms[f];
	while (candidates.n > 1 || i < candidates.forms[0]->n_steps) {
		if (all_same(&candidates, i)) {
			ret = parse_step(parser, step_of(candidates.forms[0], i));
			if (ret < 0)
				return ret;
			if (ret > 0)
				break;
			i++;
			continue;
		}
		ret = narrow(parser, &candidates, i);
		if (ret < 0)
			return ret;
		i += (unsigned)ret;
	}
	parser->command->form = candidates.forms[0];
	parser->command->verb = candidates.forms[0]->verb;
	if (rule_parser_word(parser) || parser->complete) {
		struct rule_expected nothing = {.n = 0};

		return rule_parser_unexpected(parser, &nothing);
	}
	rule_parser_refuse(parser, candidates.forms[0]->refused, &parser->words[parser->decisive]);
	return 0;
}

/* Copies the line and cuts it into words. */
static int cut(struct rule_parser *parser, const char *line, size_t length)
{
	char *text = rule_memory_take(parser->memory, length + 1);
	struct rule_parser_word *words;
	unsigned n = 0, most = 1;

	if (!text)
		return rule_parser_no_memory(parser);
	memcpy(text, line, length);
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\0' || text[i] == '#')
			length = i;
	text[length] = '\0';
	for (size_t i = 0; i < length; i++)
		most += isspace((unsigned char)text[i]) != 0;
	if (most > RULE_MAX_WORDS)
		return rule_parser_fail(parser, 0, -E2BIG, "the line has too many words");
	words = rule_memory_take(parser->memory, most * sizeof(*words));
	if (!words)
		return rule_parser_no_memory(parser);
	for (char *at = text; *at != '\0';) {
		size_t blank = strspn(at, " \t\r\n\v\f");

		at += blank;
		if (*at == '\0')
			break;
		words[n++] = (struct rule_parser_word){at, (unsigned)(at - text) + 1};
		at += strcspn(at, " \t\r\n\v\f");
		if (*at != '\0')
			*at++ = '\0';
	}
	parser->words = words;
	parser->n_words = n;
	parser->at = n > 0 && strcmp(words[0].text, PROMPT) == 0;
	/* blanks at the end do not count */
	parser->end_column = n > 0 ? words[n - 1].column + (unsigned)strlen(words[n - 1].text) : 1;
	return 0;
}

static int keep_arguments(struct rule_parser *parser)
{
	struct rule_command *command = parser->command;
	size_t size = command->n_arguments * sizeof(parser->arguments[0]);
	struct rule_argument *arguments;

	if (size == 0)
		return 0;
	arguments = rule_memory_take(parser->memory, size);
	if (!arguments)
		return rule_parser_no_memory(parser);
	memcpy(arguments, parser->arguments, size);
	command->arguments = arguments;
	return 0;
}

/* The whole line is right; is there a word in it that no rule can have? */
static int finish(struct rule_parser *parser)
{
	char printable[64];
	int ret = keep_arguments(parser);

	if (ret == 0 && parser->refused) {
		ret = rule_parser_fail(parser, 0, -ENOTSUP,
			strncmp(parser->refused, "it came", 7) == 0
				? "%s: %s; rules here are those of DPDK 22.11"
				: "%s: %s",
			text_visible(printable, sizeof(printable), parser->refused_word),
			parser->refused);
		*parser->column = parser->refused_column;
	}
	if (ret == 0 && parser->command->verb == RULE_SET)
		ret = rule_outer_check(parser);
	return ret;
}

static int parse(struct rule_parser *parser, const char *line, size_t length)
{
	int ret;

	if (length > RULE_LINE_MAX)
		return rule_parser_fail(
			parser, 0, -E2BIG, "the line is longer than %u bytes", RULE_LINE_MAX);
	ret = cut(parser, line, length);
	if (ret == 0 && parser->at == parser->n_words)
		return rule_parser_fail(parser, 0, -ENODATA, "the line has no words");
	if (ret == 0)
		ret = parse_form(parser);
	return ret < 0 ? ret : finish(parser);
}

int rule_command_parse(struct rule_command **command, const struct rule_setup *setup,
	const char *line, size_t length, unsigned *column, struct error *error)
{
	struct rule_parser parser;

	memset(&parser, 0, offsetof(struct rule_parser, arguments));
	parser.options = NULL;
	parser.n_options = 0;
	parser.refused = parser.refused_word = NULL;
	parser.refused_column = 0;
	parser.begun = NULL;
	parser.complete = NULL;
	parser.end_column = 1;
	parser.column = column;
	parser.error = error;
	parser.setup = setup;
	parser.parse = rule_command_parse;
	parser.command = rule_command_create();
	*command = NULL;
	if (!parser.command)
		return rule_parser_no_memory(&parser);
	parser.memory = &parser.command->parts->memory;
	int ret = parse(&parser, line, length);

	if (ret < 0)
		rule_command_destroy(parser.command);
	else
		*command = parser.command;
	return ret;
}

void rule_complete(const char *line, size_t length,
	void (*offer)(void *context, const char *word, const char *what), void *context)
{
	struct rule_complete complete = {offer, context};
	struct error error;
	unsigned column;
	struct rule_parser parser = {
		.command = rule_command_create(),
		.parse = rule_command_parse,
		.complete = &complete,
		.begun = "",
		.column = &column,
		.error = &error,
	};

	if (!parser.command)
		return;
	parser.memory = &parser.command->parts->memory;
	if (length <= RULE_LINE_MAX && !memchr(line, '#', length) &&
		cut(&parser, line, length) == 0) {
		if (length > 0 && !isspace((unsigned char)line[length - 1]) &&
			parser.n_words > parser.at)
			parser.begun = parser.words[--parser.n_words].text;
		parse_form(&parser);
	}
	rule_command_destroy(parser.command);
}
