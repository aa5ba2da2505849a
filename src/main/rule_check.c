/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/rule_check.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/json.h"
#include "main/options.h"
#include "rule/setup.h"

#define EXIT_MISUSED 2

#define FILE_NAME_MAX 160

enum option_id {
	OPTION_JSON = UCHAR_MAX + 1,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: millrace rule check [FILE] [--json]\n"
	"\n"
	"Checks the grammar of rules: lines of testpmd's flow syntax, one command a line, and\n"
	"the set and meter lines that they need. Says \"ok\" for each, or what is wrong and "
	"where,\n"
	"as FILE:LINE:COLUMN: error: what. Empty lines and comments (#) are skipped. Without\n"
	"FILE, or with -, it reads standard input. No engine is asked, and no card.\n"
	"\n"
	"  --json               one JSON object a line: file, line, ok; and the rule as it is\n"
	"                       printed, or column, error, and whether the line was parsed and a\n"
	"                       word in it is refused (parsed)\n"
	"\n"
	"Exit status: 0 when all are right, 1 when one is not or FILE cannot be read, 2 for a\n"
	"wrong command line.\n";

struct checking {
	FILE *file;
	const char *name; /* printable */
	bool json, wrong;
	unsigned line;
	struct rule_setup *setup;
};

/* What was printed has to have arrived. */
static int finish_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	perror("millrace: standard output");
	return EXIT_FAILURE;
}

static int complain(const char *text, int code)
{
	fprintf(stderr, "millrace: %s\n", text);
	return code;
}

/* "key":"text" with a comma in front. */
static void print_text(const char *key, const char *text)
{
	char *string = export_json_string(text);

	printf(",\"%s\":%s", key, string ? string : "null");
	free(string);
}

/* The keys that all lines have, the brace left open. */
static void begin_json(const struct checking *checking, bool ok)
{
	char *name = export_json_string(checking->name);

	printf("{\"file\":%s,\"line\":%u,\"ok\":%s", name ? name : "null", checking->line,
		ok ? "true" : "false");
	free(name);
}

static void tell_right(const struct checking *checking, const struct rule_command *command)
{
	static char rule[8 * RULE_LINE_MAX];

	if (!checking->json) {
		puts("ok");
		return;
	}
	rule_command_print(command, rule, sizeof(rule));
	begin_json(checking, true);
	print_text("rule", rule);
	puts("}");
}

static void tell_wrong(
	struct checking *checking, int code, unsigned column, const struct error *error)
{
	checking->wrong = true;
	if (!checking->json) {
		printf("%s:%u:%u: error: %s\n", checking->name, checking->line, column,
			error->text);
		return;
	}
	begin_json(checking, false);
	printf(",\"column\":%u", column);
	print_text("error", error->text);
	printf(",\"parsed\":%s}\n", code == -ENOTSUP ? "true" : "false");
}

static int check_line(struct checking *checking, const char *line, size_t length)
{
	struct rule_command *command;
	struct error error = {""};
	unsigned column = 1;
	int ret = rule_command_parse(&command, checking->setup, line, length, &column, &error);

	if (ret == -ENODATA)
		return 0;
	if (ret < 0) {
		tell_wrong(checking, ret, column, &error);
		return ret == -ENOMEM ? ret : 0;
	}
	tell_right(checking, command);
	ret = command->verb == RULE_SET ? rule_setup_learn(checking->setup, command) : 0;
	rule_command_destroy(command);
	return ret;
}

/* A line without its end; what is beyond any rule's length is left out, but counted. False at the end. */
static bool read_line(FILE *file, char *line, size_t size, size_t *length)
{
	int c;

	*length = 0;
	while ((c = getc(file)) != EOF && c != '\n') {
		if (*length < size)
			line[*length] = (char)c;
		++*length;
	}
	return c != EOF || *length > 0;
}

static int check_lines(struct checking *checking)
{
	static char line[RULE_LINE_MAX + 1];
	char text[FILE_NAME_MAX + 64];
	size_t length;
	int ret = 0;

	while (ret == 0 && read_line(checking->file, line, sizeof(line), &length)) {
		checking->line++;
		ret = check_line(checking, line, length < sizeof(line) ? length : sizeof(line));
	}
	if (ret < 0)
		return complain("no memory for the rules", EXIT_FAILURE);
	if (ferror(checking->file)) {
		snprintf(text, sizeof(text), "%s: %s", checking->name, strerror(errno));
		return complain(text, EXIT_FAILURE);
	}
	return finish_stdout() == EXIT_SUCCESS && !checking->wrong ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int check_file(const char *file, bool json)
{
	char name[FILE_NAME_MAX], text[FILE_NAME_MAX + 64];
	bool standard = strcmp(file, "-") == 0;
	struct checking checking = {
		.file = standard ? stdin : fopen(file, "r"),
		.name = text_printable(name, sizeof(name), file),
		.json = json,
		.setup = rule_setup_create(),
	};
	int code = EXIT_FAILURE;

	if (!checking.file) {
		snprintf(text, sizeof(text), "%s: %s", name, strerror(errno));
		complain(text, code);
	} else if (!checking.setup) {
		complain("no memory for the rules", code);
	} else {
		code = check_lines(&checking);
	}
	if (checking.file && !standard)
		fclose(checking.file);
	rule_setup_destroy(checking.setup);
	return code;
}

int rule_check_main(int argc, char **argv)
{
	bool json = false;
	struct error error;
	int id;

	optind = 0; /* glibc: begin anew, whatever was parsed before */
	while ((id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (id) {
		case OPTION_JSON:
			json = true;
			break;
		case 'h':
		case OPTION_HELP:
			fputs(help, stdout);
			return finish_stdout();
		default:
			option_refused(long_options, id, argv, &error);
			return complain(error.text, EXIT_MISUSED);
		}
	}
	if (argc - optind > 1)
		return complain("rule check: one file at a time", EXIT_MISUSED);
	return check_file(optind < argc ? argv[optind] : "-", json);
}
