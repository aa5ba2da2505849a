/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/help.h"

#include <ctype.h>
#include <string.h>

/* Where what options mean begins, and the last column of all. */
#define MEANING 21
#define LAST 79

#define FLOW_WORDS "ADDR:PORT ADDR:PORT PROTO"

#define NOUN_LINE(name, what) {#name, what}
static const struct {
	const char *name, *what;
} nouns[] = {CLI_NOUNS(NOUN_LINE)};

static void print_what(FILE *stream, const char *noun)
{
	for (unsigned i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++)
		if (strcmp(nouns[i].name, noun) == 0)
			fprintf(stream, "%c%s.\n", toupper(nouns[i].what[0]), nouns[i].what + 1);
}

void cli_help_noun(FILE *stream, const char *noun, const struct cli_local *locals)
{
	fprintf(stream, "Usage: millrace %s VERB ...\n\n", noun);
	print_what(stream, noun);
	fputs("\nVerbs\n", stream);
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, noun) == 0)
			fprintf(stream, "  %-9s %s\n", cli_verbs[i].name, cli_verbs[i].what);
	for (; locals->noun; locals++)
		if (strcmp(locals->noun, noun) == 0)
			fprintf(stream, "  %-9s %s\n", locals->verb, locals->what);
	fprintf(stream, "\n\"millrace help %s VERB\" has the options of one.\n", noun);
}

/* "  --port N             what it means", further lines indented. */
static void print_option(FILE *stream, const struct cli_option *option)
{
	int at = fprintf(stream, "  --%s%s%s", option->name, option->value ? " " : "",
		option->value ? option->value : "");

	fprintf(stream, "%*s", at + 2 <= MEANING ? MEANING - at : 2, "");
	for (const char *text = option->what; *text != '\0'; text++) {
		putc(*text, stream);
		if (*text == '\n')
			fprintf(stream, "%*s", MEANING, "");
	}
	putc('\n', stream);
}

static void print_words(FILE *stream, const struct cli_value_words *value)
{
	int at = fprintf(stream, "  %-8s", value->value);

	for (const char *const *word = value->words; *word; word++) {
		const char *comma = word[1] || value->more ? "," : "";

		if (at + 1 + (int)strlen(*word) + 1 > LAST)
			at = fprintf(stream, "\n%*s", 10, "") - 1;
		at += fprintf(stream, " %s%s", *word, comma);
	}
	fprintf(stream, "%s%s\n", value->more ? " or " : "", value->more ? value->more : "");
}

/* The words of every value that one of the options takes. */
static void print_values(FILE *stream, const struct cli_verb *verb)
{
	const char *title = "\nWords\n";

	for (unsigned i = 0; i < cli_n_value_words; i++) {
		bool used = verb->words != CLI_NO_WORDS && verb->words != CLI_RULE &&
			    verb->words != CLI_RULE_NUMBER && verb->words != CLI_FILE &&
			    verb->words != CLI_ROUTE &&
			    strcmp(cli_value_words[i].value, "PROTO") == 0;

		for (unsigned id = 0; id < CLI_N_OPTIONS; id++)
			used |= (verb->options & CLI_BIT(id)) && cli_options[id].value &&
				strcmp(cli_options[id].value, cli_value_words[i].value) == 0;
		if (!used)
			continue;
		fputs(title, stream);
		title = "";
		print_words(stream, &cli_value_words[i]);
	}
}

void cli_help_verb(FILE *stream, const struct cli_verb *verb)
{
	uint32_t options = cli_verb_options(verb);
	char title[CLI_TITLE_MAX];

	static const char *const words[] = {
		[CLI_NO_WORDS] = "",
		[CLI_FLOW] = " " FLOW_WORDS,
		[CLI_BLOCK] = " ADDR[/LENGTH] | " FLOW_WORDS,
		[CLI_BLOCK_MAYBE] = " [ADDR[/LENGTH] | " FLOW_WORDS "]",
		[CLI_WAY] = " " FLOW_WORDS " | PORT ITEMS / end",
		[CLI_RULE] = " COMMAND",
		[CLI_RULE_NUMBER] = " PORT NUMBER",
		[CLI_ROUTE] = " [PREFIX | lookup ADDR]",
		[CLI_FILE] = " FILE",
	};

	fprintf(stream, "Usage: millrace %s [OPTION]...%s\n\n%s: %s.\n",
		cli_verb_title(title, verb), words[verb->words],
		verb->name ? "Asks a running engine" : "Shows a running engine", verb->what);
	if (verb->words == CLI_WAY)
		fputs("\nIPv6 is [2001:db8::1]:443; where the protocol has no ports they are left "
		      "out.\n",
			stream);
	if (verb->words == CLI_FLOW || verb->words == CLI_BLOCK || verb->words == CLI_BLOCK_MAYBE)
		fputs("\nEither end may come first. IPv6 is [2001:db8::1]:443; where the protocol "
		      "has no\nports they are left out.\n",
			stream);
	if (verb->more)
		fprintf(stream, "\n%s", verb->more);
	fputs("\nOptions\n", stream);
	for (unsigned id = 0; id < CLI_N_OPTIONS; id++)
		if (options & CLI_BIT(id))
			print_option(stream, &cli_options[id]);
	print_values(stream, verb);
	fputs("\nExit status: 0 fine; 1 when no engine answers, or it could not do it; 2 for a "
	      "wrong "
	      "command line.\n",
		stream);
}
