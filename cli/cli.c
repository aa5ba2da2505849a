/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/help.h"
#include "cli/stage.h"
#include "cli/view.h"
#include "cli/words.h"

#define EXIT_MISUSED 2

#define WORD_MAX 80
#define MAX_VERBS 16
/* Bytes of a configuration. */
#define CONFIG_MAX 1048576

static int complain(const struct error *error, int code)
{
	fprintf(stderr, "millrace: %s\n", error->text);
	return code;
}

/*
 * The exit code when stdout could not be written. A reader that has gone has seen enough (`| head`);
 * everything else is told.
 */
static int output_failed(int code)
{
	if (code == EPIPE)
		return EXIT_SUCCESS;
	fprintf(stderr, "millrace: standard output: %s\n", strerror(code));
	return EXIT_FAILURE;
}

int cli_finish_stdout(int code)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	return output_failed(errno ? errno : EIO);
}

/*
 * Whoever interrupts a view that never ends has seen enough. Nothing is lost, every line is written
 * out by itself; and it has to work while a pager does not read.
 */
static void end_well(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_SUCCESS);
}

static int64_t unix_now_us(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}

/* The last line of an answer: what went wrong, or the sums. Returns the exit code. */
static int end_of_answer(struct cli_show *show, const json_t *end)
{
	const struct cli_args *args = show->args;
	const json_t *message = json_object_get(end, "error");
	const char *cursor = json_string_value(json_object_get(end, "cursor"));
	struct error error;

	if (message && !json_is_null(message)) {
		const char *text = json_string_value(message);
		int code = (int)json_integer_value(json_object_get(end, "code"));

		text_printable(error.text, sizeof(error.text), text ? text : "failed");
		return complain(&error, code == EXIT_MISUSED ? EXIT_MISUSED : EXIT_FAILURE);
	}
	if (!cli_args_given(args, CLI_JSON)) {
		if (args->verb->view->end)
			args->verb->view->end(show, end);
	} else if (cursor) {
		text_printable(error.text, sizeof(error.text), cursor);
		fprintf(stderr, "millrace: more with --cursor %s\n", error.text);
	}
	return EXIT_SUCCESS;
}

static void show_line(struct cli_show *show, const struct cli_line *line)
{
	if (cli_args_given(show->args, CLI_JSON)) {
		fwrite(line->text, 1, line->length, show->out);
		putc('\n', show->out);
	} else {
		show->args->verb->view->line(show, line->json);
	}
	show->lines++;
}

/* Everything that the engine answers, written out. Returns the exit code. */
static int show_answer(struct cli_show *show, struct cli_client *client)
{
	bool follow = cli_args_follow(show->args);
	struct cli_line line;
	struct error error;
	int ret;

	while ((ret = cli_client_next(client, &line, &error)) > 0) {
		errno = 0;
		show_line(show, &line);
		if ((follow && fflush(show->out) != 0) || ferror(show->out))
			return output_failed(errno ? errno : EIO);
	}
	if (ret == -EPIPE)
		return EXIT_SUCCESS;
	/* what came before stands before what went wrong */
	if (ret < 0) {
		fflush(show->out);
		return complain(&error, EXIT_FAILURE);
	}
	return cli_finish_stdout(end_of_answer(show, line.json));
}

static int stage_file(struct cli_client *client, const struct cli_args *args, struct error *error)
{
	const bool is_config = strcmp(args->verb->noun, "config") == 0;
	const struct cli_stage stage = {
		.ask = is_config ? "config stage" : "rule stage",
		.path = args->file,
		.exact = is_config || cli_args_given(args, CLI_SAVE),
		.most = is_config ? CONFIG_MAX : 0,
	};

	return cli_stage_file(client, &stage, error);
}

static int ask(const struct cli_args *args)
{
	const struct cli_verb *verb = args->verb;
	struct cli_show show = {.out = stdout, .args = args};
	struct cli_client client;
	struct error error;
	char request[32];

	snprintf(request, sizeof(request), "%s %s", verb->noun, verb->name);
	int ret = cli_client_open(&client, args->socket, &error);

	if (ret == 0 && args->file)
		ret = stage_file(&client, args, &error);
	if (ret == 0)
		ret = cli_client_ask(&client, request, args->with, &error);
	if (ret < 0) {
		cli_client_close(&client);
		return complain(
			&error, ret == -E2BIG || ret == -EINVAL ? EXIT_MISUSED : EXIT_FAILURE);
	}
	if (cli_args_follow(args)) {
		signal(SIGINT, end_well);
		client.reader = STDOUT_FILENO;
	}
	show.now_us = unix_now_us();
	int code = show_answer(&show, &client);

	cli_client_close(&client);
	return code;
}

static int run_verb(const struct cli_verb *verb, int argc, char **argv)
{
	struct cli_args args;
	struct error error;
	int code = EXIT_SUCCESS, ret = cli_args_parse(&args, verb, argc, argv, &error);

	if (ret == CLI_ARGS_HELP) {
		cli_help_verb(stdout, verb);
		code = cli_finish_stdout(EXIT_SUCCESS);
	} else if (ret < 0) {
		code = complain(&error, ret == -EINVAL ? EXIT_MISUSED : EXIT_FAILURE);
	} else {
		code = ask(&args);
	}
	cli_args_fini(&args);
	return code;
}

static int unknown_verb(const char *noun, const char *word, const struct cli_local *locals)
{
	const char *known[MAX_VERBS];
	char printable[WORD_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < cli_n_verbs && n < MAX_VERBS; i++)
		if (strcmp(cli_verbs[i].noun, noun) == 0)
			known[n++] = cli_verbs[i].name;
	for (; locals->noun && n < MAX_VERBS; locals++)
		if (strcmp(locals->noun, noun) == 0)
			known[n++] = locals->verb;
	const char *near = suggest(word, known, n);

	fprintf(stderr, "millrace: %s %s: no such verb; %s%s%smillrace help %s lists them\n", noun,
		text_printable(printable, sizeof(printable), word), near ? "did you mean " : "",
		near ? near : "", near ? "? " : "", noun);
	return EXIT_MISUSED;
}

int cli_main(int argc, char **argv, const struct cli_local *locals)
{
	const char *noun = argv[0];

	if (argc < 2) {
		cli_help_noun(stderr, noun, locals);
		return EXIT_MISUSED;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		cli_help_noun(stdout, noun, locals);
		return cli_finish_stdout(EXIT_SUCCESS);
	}
	for (const struct cli_local *local = locals; local->noun; local++)
		if (strcmp(local->noun, noun) == 0 && strcmp(local->verb, argv[1]) == 0)
			return local->main(argc - 1, argv + 1);
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, noun) == 0 && strcmp(cli_verbs[i].name, argv[1]) == 0)
			return run_verb(&cli_verbs[i], argc - 1, argv + 1);
	return unknown_verb(noun, argv[1], locals);
}
