/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/words.h"
#include "main/rule_grammar.h"
#include "packet/simd.h"

#define EXIT_MISUSED 2

void command_usage(const struct commands *commands, FILE *stream)
{
	fputs("Millrace, a stateful flow engine for DPDK: one record for every conversation.\n"
	      "\n"
	      "Usage: millrace COMMAND ...\n"
	      "\n",
		stream);
	for (unsigned i = 0; i < commands->n; i++)
		if (commands->list[i].what != NULL)
			fprintf(stream, "  %-10s %s\n", commands->list[i].name,
				commands->list[i].what);
	fputs("  help       this; \"help COMMAND [VERB]\" has the options of one\n"
	      "\n"
	      "  --version  print versions\n",
		stream);
}

static int unknown_word(const struct commands *commands, const char *word)
{
	const char *known[COMMANDS_MAX + 2] = {"help", "--version"};
	char printable[64];

	for (unsigned i = 0; i < commands->n; i++)
		known[2 + i] = commands->list[i].name;
	const char *near = suggest(word, known, commands->n + 2);

	fprintf(stderr, "millrace: %s: no such command; %s%s%smillrace help lists them\n",
		text_printable(printable, sizeof(printable), word), near ? "did you mean " : "",
		near ? near : "", near ? "? " : "");
	return EXIT_MISUSED;
}

/*
 * The SIMD level is chosen with each hash secret, deep inside. One that was asked for in vain is told here,
 * once and before anything is done.
 */
static int check_simd(void)
{
	enum simd_level level;
	int ret = simd_choose(&level);
	char printable[64];

	if (ret == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "millrace: " SIMD_VARIABLE "=%s: %s",
		text_printable(printable, sizeof(printable), getenv(SIMD_VARIABLE)),
		ret == -ENOTSUP ? "this processor lacks it; it has"
				: "no such SIMD level; this processor has");
	for (unsigned i = 0; i < SIMD_N_LEVELS; i++)
		if (simd_has((enum simd_level)i))
			fprintf(stderr, " %s", simd_name((enum simd_level)i));
	fputc('\n', stderr);
	return EXIT_MISUSED;
}

bool command_is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int command_run(const struct commands *commands, int argc, char **argv)
{
	for (unsigned i = 0; i < commands->n; i++) {
		if (strcmp(argv[0], commands->list[i].name) != 0)
			continue;
		if (commands->list[i].engine && !command_is_help(argc > 1 ? argv[1] : "") &&
			check_simd() != EXIT_SUCCESS)
			return EXIT_MISUSED;
		return commands->list[i].main(argc, argv);
	}
	return unknown_word(commands, argv[0]);
}

/* Is there a help of the program's own for these words, or for the noun that they begin with? */
static bool has_own_help(const struct commands *commands, int argc, char *const *argv)
{
	bool is_command_name = false;

	for (unsigned i = 0; i < commands->n; i++)
		is_command_name |= strcmp(commands->list[i].name, argv[0]) == 0;
	if (argc == 1)
		return is_command_name;
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, argv[0]) == 0 &&
			strcmp(cli_verbs[i].name, argv[1]) == 0)
			return true;
	for (const struct cli_local *local = commands->locals; local->noun != NULL; local++)
		if (strcmp(local->noun, argv[0]) == 0 && strcmp(local->verb, argv[1]) == 0)
			return true;
	return false;
}

/* "help flow list" is "flow list --help"; "help flow create" is of the rule language. */
int command_help(const struct commands *commands, int argc, char **argv)
{
	char option[] = "--help";
	char *as_command[] = {argv[0], argc > 1 ? argv[1] : option, option, NULL};

	if (argc > 0 && !has_own_help(commands, argc, argv) && rule_grammar_help(argc, argv))
		return say_end(EXIT_SUCCESS);
	if (argc > 0)
		return command_run(commands, argc > 1 ? 3 : 2, as_command);
	command_usage(commands, stdout);
	return say_end(EXIT_SUCCESS);
}
