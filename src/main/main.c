/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: its subcommands. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "base/say.h"
#ifdef MILLRACE_BENCH
#include "bench/bench.h"
#endif
#include "cli/top.h"
#include "main/command.h"
#include "main/config_check.h"
#include "main/replay.h"
#include "main/rule_check.h"
#include "main/rule_grammar.h"
#include "main/run.h"
#include "main/shell.h"
#include "millrace_version.h"
#include "probe/probe.h"

#define EXIT_MISUSED 2

/* The client leaves them to us. */
static const struct cli_local locals[] = {
	{"config", "check", "is a configuration file right?", config_check_main},
	{"rule", "check", "is each line of a file a rule?", rule_check_main},
	{"rule", "grammar", "what rules can say", rule_grammar_main},
	{.noun = NULL},
};

static int client_main(int argc, char **argv)
{
	return cli_main(argc, argv, locals);
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

static int shell_command(int argc, char **argv);

#define NOUN(name, what) {#name, client_main, what, false}

static const struct command list[] = {
	{"run", run_main, "carry packets between live ports, flow by flow", true},
	{"replay", replay_main, "run the engine over captures, flow records out", true},
	{"probe", probe_main, "what a network card does with flow rules, by trial", true},
	{"top", top_main, "a running engine at one glance: busiest flows, workers, ports, drops",
		false},
	{"shell", shell_command, "all of this line by line, with completion and history", false},
#ifdef MILLRACE_BENCH
	{"bench", bench_main, "measure this machine, side by side with the best known way", true},
#else
	{"bench", bench_missing, NULL, false},
#endif
	CLI_NOUNS(NOUN),
};

static_assert(sizeof(list) / sizeof(list[0]) <= COMMANDS_MAX, "struct commands says so");

static const struct commands commands = {
	.list = list,
	.n = sizeof(list) / sizeof(list[0]),
	.locals = locals,
};

/* The shell runs all of them. */
static int shell_command(int argc, char **argv)
{
	return shell_main(&commands, argc, argv);
}

/*
 * A descriptor closed at start would be given to the first file that DPDK opens, and be read or written
 * as if it were ours. It is filled with what cannot be read or written: whoever tries has an error.
 */
static void fill_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open() gives the lowest one that is free: this one, those below being taken */
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	}
}

int main(int argc, char **argv)
{
	fill_standard_files();
	/* a reader that goes away is an error of a write, with a line and an exit code */
	signal(SIGPIPE, SIG_IGN);

	if (argc < 2) {
		command_usage(&commands, stderr);
		return EXIT_MISUSED;
	}
	if (strcmp(argv[1], "help") == 0 || command_is_help(argv[1]))
		return command_help(&commands, argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0) {
		printf("millrace %s (%s)\n", MILLRACE_VERSION, rte_version());
		return say_end(EXIT_SUCCESS);
	}
	return command_run(&commands, argc - 1, argv + 1);
}
