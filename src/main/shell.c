/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/shell.h"

#include <errno.h>
#include <getopt.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "base/options.h"
#include "base/say.h"
#include "cli/words.h"
#include "main/command.h"
#include "main/shell_line.h"

#define EXIT_MISUSED 2
#define HISTORY_LINES 1000
/* Candidates of a completion that are shown. */
#define OFFERS_MAX 200
#define OFFER_COLUMN 24
#define OFFER_WIDTH 79

enum option_id {
	OPTION_SOCKET = UCHAR_MAX + 1,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: millrace shell [OPTION]...\n"
	"\n"
	"Runs line by line what would stand behind \"millrace\": flow list, wire show,\n"
	"help rule list, ... A line in testpmd's syntax (flow create 0 ...) goes to the\n"
	"running engine, as with \"millrace rule add\". On a terminal Tab completes, and\n"
	"lines are remembered in millrace/history below $XDG_STATE_HOME (else\n"
	"~/.local/state). From a file or a pipe lines are read up to the end, whether\n"
	"or not one fails. What follows a # is a comment. quit, exit or Ctrl-D ends.\n"
	"\n"
	"  --socket PATH        the engine's control socket, for every line (default\n"
	"                       millrace.sock in $XDG_RUNTIME_DIR, else in /run)\n"
	"  --help               this\n"
	"\n"
	"Exit status: 0; 1 when a line failed that was not typed; 2 for a wrong command\n"
	"line.\n";

struct shell {
	const struct commands *commands;
	const char *socket; /* NULL: the default */
	unsigned line;	    /* number of it, where lines are not typed */
	bool failed;
	bool over; /* somebody said quit */
	/* on a terminal */
	EditLine *edit;
	History *history;
	char file[PATH_MAX]; /* of the history; "": there is none */
};

/* Signals that were blocked before Ctrl-C was; SIGINT is heeded while a character is waited for, and by what runs. */
static sigset_t signals_before;

/* Ctrl-C: only that the line is left. */
static void interrupted(int number)
{
	(void)number;
}

/* ------------------------------ a line is run */

/* What the line's process does. */
static _Noreturn void run_words(const struct commands *commands, struct shell_words *words)
{
	int code;

	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_SETMASK, &signals_before, NULL);
	optind = 0; /* getopt begins anew */
	if (strcmp(words->word[0], "help") == 0)
		code = command_help(commands, words->n - 1, words->word + 1);
	else
		code = command_run(commands, words->n, words->word);
	fflush(stdout);
	_exit(code);
}

/* Puts an option and its value before word `at`; the row of words ends with a NULL. */
static void insert_option(struct shell_words *words, int at, char *option, const char *value)
{
	memmove(&words->word[at + 2], &words->word[at],
		(size_t)(words->n + 1 - at) * sizeof(words->word[0]));
	words->word[at] = option;
	words->word[at + 1] = (char *)(uintptr_t)value;
	words->n += 2;
}

/* Tells the engine's socket to a verb that asks an engine. */
static void add_socket(const struct shell *shell, struct shell_words *words)
{
	static char option[] = "--socket";

	if (shell->socket == NULL)
		return;
	if (strcmp(words->word[0], cli_top_verb.noun) == 0) {
		insert_option(words, 1, option, shell->socket);
		return;
	}
	if (words->n < 2)
		return;
	for (unsigned i = 0; i < cli_n_verbs; i++) {
		if (strcmp(cli_verbs[i].noun, words->word[0]) != 0 ||
			strcmp(cli_verbs[i].name, words->word[1]) != 0)
			continue;
		insert_option(words, 2, option, shell->socket);
		return;
	}
}

/* In a process of its own: a verb may be interrupted, and may end its process. Returns the exit code. */
static int run_apart(const struct commands *commands, struct shell_words *words)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_words(commands, words);
	if (pid < 0) {
		fprintf(stderr, "millrace: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGINT)
		fprintf(stderr, "millrace: %s\n", strsignal(WTERMSIG(status)));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

/* A line of the rule language is one word of `rule add`. */
static int split(const struct commands *commands, struct shell_words *words, const char *line,
	struct error *error)
{
	static char noun[] = "rule", verb[] = "add", end_of_options[] = "--";

	if (!shell_is_rule(commands, line))
		return shell_split(words, line, error);
	snprintf(words->text, sizeof(words->text), "%s", line);
	words->word[0] = noun;
	words->word[1] = verb;
	words->word[2] = end_of_options;
	words->word[3] = words->text;
	words->word[4] = NULL;
	words->n = 4;
	return 0;
}

static void run_line(struct shell *shell, const char *line)
{
	struct shell_words words;
	struct error error;
	int code;

	if (split(shell->commands, &words, line, &error) < 0) {
		fprintf(stderr, "millrace: %s\n", error.text);
		code = EXIT_MISUSED;
	} else if (words.n == 0) {
		return;
	} else if (strcmp(words.word[0], "quit") == 0 || strcmp(words.word[0], "exit") == 0) {
		shell->over = true;
		return;
	} else if (strcmp(words.word[0], "shell") == 0) {
		fputs("millrace: this is the shell\n", stderr);
		code = EXIT_MISUSED;
	} else {
		add_socket(shell, &words);
		code = run_apart(shell->commands, &words);
	}
	if (code != EXIT_SUCCESS && shell->edit == NULL)
		fprintf(stderr, "millrace: line %u failed\n", shell->line);
	shell->failed |= code != EXIT_SUCCESS;
}

/* ------------------------------ completion */

struct offers {
	unsigned n; /* words and values; those above OFFERS_MAX are not kept */
	struct {
		char word[64], what[64];
	} list[OFFERS_MAX];
};

/* The first line of what a word means, as far as it fits behind the words. */
static void take_offer(void *context, const char *word, const char *what)
{
	struct offers *offers = context;

	/* both languages may have it: the first one says what it means */
	for (unsigned i = 0; word != NULL && i < offers->n && i < OFFERS_MAX; i++)
		if (strcmp(offers->list[i].word, word) == 0)
			return;
	if (offers->n++ >= OFFERS_MAX)
		return;
	snprintf(offers->list[offers->n - 1].word, sizeof(offers->list[0].word), "%s",
		word == NULL ? "" : word);
	snprintf(offers->list[offers->n - 1].what, sizeof(offers->list[0].what), "%.*s",
		(int)strcspn(what == NULL ? "" : what, "\n"), what == NULL ? "" : what);
}

/* How much all the words have in common. */
static size_t common_of(const struct offers *offers, unsigned n)
{
	size_t common = strlen(offers->list[0].word);

	for (unsigned i = 1; i < n; i++)
		for (size_t at = 0; at < common; at++)
			if (offers->list[i].word[at] != offers->list[0].word[at])
				common = at;
	return common;
}

static void show_offers(const struct offers *offers, unsigned n)
{
	putchar('\n');
	for (unsigned i = 0; i < n; i++) {
		const bool is_word = offers->list[i].word[0] != '\0';

		printf("  %-*s %.*s\n", OFFER_COLUMN,
			is_word ? offers->list[i].word : offers->list[i].what,
			OFFER_WIDTH - OFFER_COLUMN - 3, is_word ? offers->list[i].what : "");
	}
	if (offers->n > n)
		printf("  and %u more\n", offers->n - n);
	fflush(stdout);
}

static unsigned char complete_word(EditLine *edit, int key)
{
	const LineInfo *info = el_line(edit);
	const size_t length = (size_t)(info->cursor - info->buffer);
	struct offers *offers = calloc(1, sizeof(*offers));
	unsigned char result = CC_ERROR;
	size_t begun = 0;
	const struct shell *shell = NULL;

	(void)key;
	if (offers == NULL || el_get(edit, EL_CLIENTDATA, &shell) < 0) {
		free(offers);
		return CC_ERROR;
	}
	while (begun < length && !strchr(" \t", info->cursor[-(ptrdiff_t)begun - 1]))
		begun++;
	shell_complete(shell->commands, info->buffer, length, take_offer, offers);

	const unsigned n = offers->n < OFFERS_MAX ? offers->n : OFFERS_MAX;

	if (n > 0) {
		const size_t common = common_of(offers, n);
		char rest[66];

		snprintf(rest, sizeof(rest), "%.*s%s", common > begun ? (int)(common - begun) : 0,
			offers->list[0].word + (common > begun ? begun : 0),
			n == 1 && offers->list[0].word[0] != '\0' ? " " : "");
		if (rest[0] != '\0' && el_insertstr(edit, rest) == 0) {
			result = CC_REFRESH;
		} else {
			show_offers(offers, n);
			result = CC_REDISPLAY;
		}
	}
	free(offers);
	return result;
}

/* ------------------------------ a terminal */

static char *prompt(EditLine *edit)
{
	static char text[] = "millrace> ";

	(void)edit;
	return text;
}

/* Makes the directories of a path, as far as they are missing. */
static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			fprintf(stderr, "millrace: %s: %s; lines are not remembered\n", path,
				strerror(errno));
		*slash = '/';
	}
}

/* Where the lines are remembered; without a home nowhere. */
static void find_history(struct shell *shell)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int length = 0;

	if (state != NULL && state[0] == '/')
		length = snprintf(shell->file, sizeof(shell->file), "%s/millrace/history", state);
	else if (home != NULL && home[0] == '/')
		length = snprintf(
			shell->file, sizeof(shell->file), "%s/.local/state/millrace/history", home);
	if (length <= 0 || (size_t)length >= sizeof(shell->file))
		shell->file[0] = '\0';
}

/* A character, or -1 with EINTR after a Ctrl-C: one that came at any time since the last character, too. */
static int read_character(EditLine *edit, wchar_t *character)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	mbstate_t state = {0};
	char byte;

	(void)edit;
	for (;;) {
		if (ppoll(&input, 1, NULL, &signals_before) < 0)
			return -1;
		const ssize_t n = read(STDIN_FILENO, &byte, 1);

		if (n <= 0)
			return (int)n;
		const size_t length = mbrtowc(character, &byte, 1, &state);

		if (length == (size_t)-1)
			*character = (wchar_t)(unsigned char)byte;
		if (length != (size_t)-2)
			return 1;
	}
}

static int open_terminal(struct shell *shell)
{
	HistEvent event;

	setlocale(LC_CTYPE, "");
	shell->history = history_init();
	shell->edit = el_init("millrace", stdin, stdout, stderr);
	if (shell->history == NULL || shell->edit == NULL) {
		fputs("millrace: no memory, or no terminal that lines can be edited on\n", stderr);
		return -ENOMEM;
	}
	history(shell->history, &event, H_SETSIZE, HISTORY_LINES);
	history(shell->history, &event, H_SETUNIQUE, 1);
	find_history(shell);
	if (shell->file[0] != '\0') {
		make_directories(shell->file);
		history(shell->history, &event, H_LOAD, shell->file);
	}
	el_set(shell->edit, EL_CLIENTDATA, shell);
	el_set(shell->edit, EL_PROMPT, prompt);
	el_set(shell->edit, EL_EDITOR, "emacs");
	el_set(shell->edit, EL_GETCFN, read_character);
	el_set(shell->edit, EL_HIST, history, shell->history);
	el_set(shell->edit, EL_ADDFN, "complete", "Completes the word", complete_word);
	el_set(shell->edit, EL_BIND, "^I", "complete", NULL);
	el_set(shell->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	/* the user's own ~/.editrc */
	el_source(shell->edit, NULL);
	return 0;
}

static void close_terminal(struct shell *shell)
{
	HistEvent event;

	if (shell->history != NULL && shell->file[0] != '\0') {
		mode_t before = umask(0077);

		history(shell->history, &event, H_SAVE, shell->file);
		umask(before);
	}
	if (shell->edit != NULL)
		el_end(shell->edit);
	if (shell->history != NULL)
		history_end(shell->history);
}

static void read_terminal(struct shell *shell)
{
	const struct sigaction action = {.sa_handler = interrupted};
	HistEvent event;
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &signals_before);
	sigaction(SIGINT, &action, NULL);
	while (!shell->over) {
		int n = 0;
		const char *line = el_gets(shell->edit, &n);

		if (line == NULL && n < 0 && errno == EINTR) {
			el_reset(shell->edit);
			putchar('\n');
			continue;
		}
		if (line == NULL || n <= 0) {
			putchar('\n');
			break;
		}
		if (line[strspn(line, " \t\n")] != '\0')
			history(shell->history, &event, H_ENTER, line);
		run_line(shell, line);
	}
	/* whoever typed has seen what failed */
	shell->failed = false;
}

static void read_lines(struct shell *shell)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while (!shell->over && (n = getline(&line, &size, stdin)) >= 0) {
		shell->line++;
		if (n > 0 && line[n - 1] == '\n')
			line[n - 1] = '\0';
		run_line(shell, line);
	}
	if (ferror(stdin)) {
		fprintf(stderr, "millrace: standard input: %s\n", strerror(errno));
		shell->failed = true;
	}
	free(line);
}

int shell_main(const struct commands *commands, int argc, char **argv)
{
	struct shell shell = {.commands = commands};
	struct error error;

	sigprocmask(SIG_SETMASK, NULL, &signals_before);

	for (int id; (id = getopt_long(argc, argv, ":", long_options, NULL)) != -1;) {
		switch (id) {
		case OPTION_SOCKET:
			shell.socket = optarg;
			break;
		case OPTION_HELP:
			fputs(help, stdout);
			return say_end(EXIT_SUCCESS);
		default:
			option_refused(long_options, id, argv, &error);
			fprintf(stderr, "millrace: shell: %s\n", error.text);
			return EXIT_MISUSED;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"millrace: shell: it takes no words; lines are read from the standard "
			"input\n");
		return EXIT_MISUSED;
	}
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		if (open_terminal(&shell) == 0)
			read_terminal(&shell);
		else
			shell.failed = true;
		close_terminal(&shell);
	} else {
		read_lines(&shell);
	}
	return shell.failed ? EXIT_FAILURE : say_end(EXIT_SUCCESS);
}
