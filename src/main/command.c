/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/words.h"
#ifdef MILLRACE_BENCH
#include "bench/bench.h"
#endif
#include "base/say.h"
#include "cli/top.h"
#include "main/config_check.h"
#include "main/replay.h"
#include "main/rule_check.h"
#include "main/rule_grammar.h"
#include "main/run.h"
#include "main/shell.h"
#include "packet/simd.h"
#include "probe/probe.h"

#define EXIT_MISUSED 2

/* The client leaves them to us. */
const struct cli_local command_locals[] = {
	{"config", "check", "is a configuration file right?", config_check_main},
	{"rule", "check", "is each line of a file a rule?", rule_check_main},
	{"rule", "grammar", "what rules can say", rule_grammar_main},
	{.noun = NULL},
};

static int client_main(int argc, char **argv)
{
	return cli_main(argc, argv, command_locals);
}

#ifndef MILLRACE_BENCH
static int bench_missing(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs("millrace: bench: this program was built without it (meson setup -Dbench=true)\n",
		stderr);
	return EXIT_MISUSED;
}
#endif

#define NOUN(name, what) {#name, client_main, what, false}

const struct command commands[] = {
	{"run", run_main, "carry packets between live ports, flow by flow", true},
	{"replay", replay_main, "run the engine over captures, flow records out", true},
	{"probe", probe_main, "what a network card does with flow rules, by trial", true},
	{"top", top_main, "a running engine at one glance: busiest flows, workers, ports, drops",
		false},
	{"shell", shell_main, "all of this line by line, with completion and history", false},
#ifdef MILLRACE_BENCH
	{"bench", bench_main, "measure this machine, side by side with the best known way", true},
#else
	{"bench", bench_missing, NULL, false},
#endif
	CLI_NOUNS(NOUN),
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))
const unsigned n_commands = N_COMMANDS;

void command_usage(FILE *stream)
{
	fputs("Millrace, a stateful flow engine for DPDK: one record for every conversation.\n"
	      "\n"
	      "Usage: millrace COMMAND ...\n"
	      "\n",
		stream);
	for (unsigned i = 0; i < N_COMMANDS; i++)
		if (commands[i].what != NULL)
			fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("  help       this; \"help COMMAND [VERB]\" has the options of one\n"
	      "\n"
	      "  --version  print versions\n",
		stream);
}

static int unknown_word(const char *word)
{
	const char *known[N_COMMANDS + 2] = {"help", "--version"};
	char printable[64];

	for (unsigned i = 0; i < N_COMMANDS; i++)
		known[2 + i] = commands[i].name;
	const char *near = suggest(word, known, N_COMMANDS + 2);

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

int command_run(int argc, char **argv)
{
	for (unsigned i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (commands[i].engine && !command_is_help(argc > 1 ? argv[1] : "") &&
			check_simd() != EXIT_SUCCESS)
			return EXIT_MISUSED;
		return commands[i].main(argc, argv);
	}
	return unknown_word(argv[0]);
}

/* Is there a help of the program's own for these words, or for the noun that they begin with? */
static bool has_own_help(int argc, char *const *argv)
{
	bool is_command_name = false;

	for (unsigned i = 0; i < N_COMMANDS; i++)
		is_command_name |= strcmp(commands[i].name, argv[0]) == 0;
	if (argc == 1)
		return is_command_name;
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, argv[0]) == 0 &&
			strcmp(cli_verbs[i].name, argv[1]) == 0)
			return true;
	for (const struct cli_local *local = command_locals; local->noun != NULL; local++)
		if (strcmp(local->noun, argv[0]) == 0 && strcmp(local->verb, argv[1]) == 0)
			return true;
	return false;
}

/* "help flow list" is "flow list --help"; "help flow create" is of the rule language. */
int command_help(int argc, char **argv)
{
	char option[] = "--help";
	char *as_command[] = {argv[0], argc > 1 ? argv[1] : option, option, NULL};

	if (argc > 0 && !has_own_help(argc, argv) && rule_grammar_help(argc, argv))
		return say_end(EXIT_SUCCESS);
	if (argc > 0)
		return command_run(argc > 1 ? 3 : 2, as_command);
	command_usage(stdout);
	return say_end(EXIT_SUCCESS);
}
