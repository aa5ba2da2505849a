/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/say.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t interrupted;

int say_error(const char *text, int code)
{
	fprintf(stderr, "millrace: %s\n", text);
	return code;
}

int say_end(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	perror("millrace: standard output");
	return EXIT_FAILURE;
}

const char *say_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void note_signal(int number)
{
	(void)number;
	interrupted = 1;
}

void say_catch_signals(void)
{
	const struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool say_interrupted(void)
{
	return interrupted != 0;
}
