/* SPDX-License-Identifier: BSD-3-Clause */
/* The one program: finds the subcommand and hands over to it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "base/say.h"
#include "main/command.h"
#include "millrace_version.h"

#define EXIT_MISUSED 2

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
		command_usage(stderr);
		return EXIT_MISUSED;
	}
	if (strcmp(argv[1], "help") == 0 || command_is_help(argv[1]))
		return command_help(argc - 2, argv + 2);
	if (strcmp(argv[1], "--version") == 0) {
		printf("millrace %s (%s)\n", MILLRACE_VERSION, rte_version());
		return say_end(EXIT_SUCCESS);
	}
	return command_run(argc - 1, argv + 1);
}
