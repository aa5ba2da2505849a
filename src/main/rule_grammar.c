/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/rule_grammar.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/say.h"
#include "rule/grammar.h"

#define LISTED_WORDS 12

#define EXIT_MISUSED 2
#define HELP_COLUMNS 79

enum option_id {
	OPTION_HELP = UCHAR_MAX + 1,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: millrace rule grammar\n"
	"\n"
	"Prints what rules can say, as Markdown: the commands, pattern items and\n"
	"actions, with every field. docs/rules.md ends with it.\n"
	"\n"
	"  --help               this\n"
	"\n"
	"Exit status: 0, 1 when it could not be written, 2 for a wrong command line.\n";

/* What a value is called in the tables. */
static const char *kind_name(enum rule_kind kind)
{
	switch (kind) {
	case RULE_NUMBER:
	case RULE_SIGNED:
		return "number";
	case RULE_BOOLEAN:
		return "yes or no";
	case RULE_MAC:
		return "MAC address";
	case RULE_IPV4:
		return "IPv4 address";
	case RULE_IPV6:
		return "IPv6 address";
	case RULE_ADDRESS:
		return "IP address";
	case RULE_PATH:
		return "word";
	case RULE_NAME:
		return "name";
	case RULE_INLINE:
	case RULE_HEX:
		return "hexadecimal digits";
	case RULE_STRING:
		return "word";
	case RULE_QUEUES:
		return "numbers, `end`";
	case RULE_TYPES:
		return "hash types, `end`";
	case RULE_WORD:
	case RULE_WORDS:
	case RULE_VARIANT:
	case RULE_FLAG:
	case RULE_EMPTY:
		break;
	}
	return "";
}

static void print_words(const struct rule_word *words)
{
	const char *comma = "";

	for (; words != NULL && words->name; words++) {
		if (words->refused)
			continue;
		printf("%s`%s`", comma, words->name);
		comma = ", ";
	}
}

/* How wide a number is. */
static void print_range(const struct rule_field *field)
{
	unsigned bits = field->bits ? field->bits : 8u * field->width;

	if (field->kind == RULE_SIGNED)
		printf(", 32 bits with a sign");
	else if (field->kind == RULE_NUMBER && field->max)
		printf(" up to %u", field->max);
	else if (field->kind == RULE_NUMBER)
		printf(", %u bit%s", bits, bits == 1 ? "" : "s");
	else if ((field->kind == RULE_HEX || field->kind == RULE_INLINE))
		printf(", up to %u bytes",
			field->kind == RULE_HEX ? field->max : (unsigned)field->width);
}

/* Too many to be listed in a line. */
static bool are_many(const struct rule_word *words)
{
	unsigned n = 0;

	while (words[n].name && n <= LISTED_WORDS)
		n++;
	return n > LISTED_WORDS;
}

static void print_field(const struct rule_thing *thing, const struct rule_field *field)
{
	bool many = field->words && field->kind != RULE_TYPES && are_many(field->words);

	printf("| ");
	if (field == &thing->fields[0])
		printf("`%s`", thing->name);
	printf(" | ");
	if (field->name[0] != '\0')
		printf("`%s`", field->name);
	printf(" | ");
	if (field->kind == RULE_WORD || field->kind == RULE_WORDS || field->kind == RULE_VARIANT) {
		if (many)
			printf("field");
		else
			print_words(field->words);
	}
	printf("%s", kind_name(field->kind));
	print_range(field);
	printf(" | %s%s |\n", field->flags & RULE_ALIAS ? "(another name) " : "", field->what);
}

static void print_things(
	const char *title, const char *text, const struct rule_thing *things, unsigned n)
{
	printf("\n## %s\n\n%s\n\n| name | what |\n|---|---|\n", title, text);
	for (unsigned i = 0; i < n; i++)
		if (!things[i].refused)
			printf("| `%s` | %s |\n", things[i].name, things[i].what);
	printf("\nTheir fields:\n\n| of | field | value | what |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < n; i++)
		for (unsigned f = 0; f < things[i].n_fields && !things[i].refused; f++)
			print_field(&things[i], &things[i].fields[f]);
}

static void print_options(const struct rule_step *step)
{
	for (unsigned i = 0; i < step->n_options; i++) {
		const struct rule_option *option = &step->options[i];
		bool needed = option->min && !step->optional;

		if (option->alias || option->refused)
			continue;
		printf(" %s%s%s%s", needed ? "" : "[", option->name,
			option->kind == RULE_FLAG ? "" : " ...", needed ? "" : "]");
	}
}

static void print_step(const struct rule_step *step)
{
	switch (step->step) {
	case RULE_STEP_WORD:
		printf(step->optional ? " [%s ACTIONS]" : " %s", step->name);
		break;
	case RULE_STEP_VALUE:
		printf(" {%s}", step->name);
		break;
	case RULE_STEP_MAYBE:
		printf(" [{%s}%s]", step->name, step->list ? " ..." : "");
		break;
	case RULE_STEP_OPTIONS:
		print_options(step);
		break;
	case RULE_STEP_ITEMS:
		printf(" ITEM / ... / %s", step->name);
		break;
	case RULE_STEP_ACTIONS:
		printf(" ACTION / ... / end");
		break;
	case RULE_STEP_ACTION:
		printf(" {%s}", step->name);
		break;
	case RULE_STEP_FIELDS:
		for (unsigned i = 0; i < step->thing->n_fields; i++)
			printf(" [%s ...]", step->thing->fields[i].name);
		break;
	}
}

static void print_form(const struct rule_form *form)
{
	for (unsigned s = 0; s < form->n_steps; s++) {
		const struct rule_step *before = s > 0 ? &form->steps[s - 1] : NULL;

		/* the list of a word that may be left out has been told with it */
		if (before && before->step == RULE_STEP_WORD && before->optional)
			continue;
		if (s == 0)
			printf("%s", form->steps[0].name);
		else
			print_step(&form->steps[s]);
	}
}

static void print_forms(void)
{
	printf("## Commands\n\n"
	       "What stands in [ ] may be left out; what stands there together may stand in any "
	       "order. \"...\" is a value.\n\n");
	for (unsigned i = 0; i < rule_n_forms; i++) {
		const struct rule_form *form = &rule_forms[i];

		if (form->refused)
			continue;
		printf("- `");
		print_form(form);
		printf("`: %s\n", form->what);
	}
}

static void print_refused(void)
{
	printf("\n## Words of other releases\n\nThey are read, and refused with the reason.\n\n"
	       "| word | what | why |\n|---|---|---|\n");
	for (unsigned i = 0; i < rule_n_items; i++)
		if (rule_items[i].refused)
			printf("| `%s` (item) | %s | %s |\n", rule_items[i].name,
				rule_items[i].what, rule_items[i].refused);
	for (unsigned i = 0; i < rule_n_actions; i++)
		if (rule_actions[i].refused)
			printf("| `%s` (action) | %s | %s |\n", rule_actions[i].name,
				rule_actions[i].what, rule_actions[i].refused);
	for (unsigned i = 0; i < rule_n_forms; i++) {
		const struct rule_form *form = &rule_forms[i];

		if (!form->refused)
			continue;
		printf("| `");
		for (unsigned s = 0; s < form->n_steps && form->steps[s].step != RULE_STEP_ACTIONS;
			s++)
			if (s == 0 || form->steps[s].step == RULE_STEP_WORD)
				printf("%s%s", s == 0 ? "" : " ", form->steps[s].name);
		printf("` | %s | %s |\n", form->what, form->refused);
	}
}

static int print_all(void)
{
	print_forms();
	print_things("Pattern items",
		"A field of an item is followed by `is`, `spec`, `last`, `mask` or `prefix` and a "
		"value.",
		rule_items, rule_n_items);
	print_things("Actions", "A field of an action is followed by its value.", rule_actions,
		rule_n_actions);
	printf("\nHash types of `rss`: ");
	print_words(rule_rss_types);
	printf(".\n");
	print_refused();
	return say_end(EXIT_SUCCESS);
}

/* Do the words of the form, without its values, begin with these? */
static bool form_begins(const struct rule_form *form, int n, char *const *words)
{
	int at = 0;

	for (unsigned s = 0; s < form->n_steps && at < n; s++) {
		const struct rule_step *step = &form->steps[s];

		if (step->step != RULE_STEP_WORD)
			continue;
		if (strcmp(step->name, words[at]) != 0 &&
			(step->alias == NULL || strcmp(step->alias, words[at]) != 0))
			return false;
		at++;
	}
	return at == n;
}

/* The step of a form of this kind, or NULL. */
static const struct rule_step *step_of(const struct rule_form *form, enum rule_step_kind kind)
{
	for (unsigned s = 0; s < form->n_steps; s++)
		if (form->steps[s].step == kind)
			return &form->steps[s];
	return NULL;
}

static void print_names(const char *title, const struct rule_thing *things, unsigned n)
{
	int at = printf("\n%s", title);

	for (unsigned i = 0; i < n; i++) {
		const int length = (int)strlen(things[i].name);

		if (things[i].refused)
			continue;
		if (at + 1 + length > HELP_COLUMNS)
			at = printf("\n ") - 1;
		at += printf(" %s", things[i].name);
	}
	putchar('\n');
}

static void print_form_help(const struct rule_form *form)
{
	const struct rule_step *options = step_of(form, RULE_STEP_OPTIONS);

	print_form(form);
	printf("\n    %s\n", form->what);
	for (unsigned i = 0; options != NULL && i < options->n_options; i++) {
		const struct rule_option *option = &options->options[i];

		if (!option->refused && !option->alias)
			printf("      %-20s %s\n", option->name, option->what);
	}
}

bool rule_grammar_help(int n, char *const *words)
{
	bool has_items = false, has_actions = false, found = false;

	for (unsigned i = 0; i < rule_n_forms; i++) {
		const struct rule_form *form = &rule_forms[i];

		if (form->refused || !form_begins(form, n, words))
			continue;
		print_form_help(form);
		has_items |= step_of(form, RULE_STEP_ITEMS) != NULL;
		has_actions |= step_of(form, RULE_STEP_ACTIONS) != NULL;
		found = true;
	}
	if (has_items)
		print_names("Pattern items:", rule_items, rule_n_items);
	if (has_actions)
		print_names("Actions:", rule_actions, rule_n_actions);
	if (found)
		puts("\nThe shell gives such a line to the running engine, as \"millrace rule "
		     "add\" "
		     "does.\nmillrace rule grammar prints every field.");
	return found;
}

int rule_grammar_main(int argc, char **argv)
{
	struct error error;
	int id;

	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (id == 'h' || id == OPTION_HELP) {
			fputs(help, stdout);
			return say_end(EXIT_SUCCESS);
		}
		option_refused(long_options, id, argv, &error);
		fprintf(stderr, "millrace: %s\n", error.text);
		return EXIT_MISUSED;
	}
	if (optind < argc) {
		fputs("millrace: rule grammar: one word too many\n", stderr);
		return EXIT_MISUSED;
	}
	return print_all();
}
