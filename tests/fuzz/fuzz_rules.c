/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as lines of the rule language, the later ones with what the earlier ones have set. Besides what
 * sanitizers see:
 *
 * - what is refused is told in one line of printable text, with a column in the line or just behind it;
 * - what is taken is printed as a line that comes to the same arrays and is printed the same;
 * - what is offered as completion can be printed, and offering it changes nothing;
 * - what a rule means is read, or refused with a reason and a column in the line.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/program.h"
#include "rule/effect.h"
#include "rule/setup.h"
#include "unit/rule_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void check_refused(int code, unsigned column, const struct error *error, size_t length)
{
	check(code == -EINVAL || code == -ENOTSUP || code == -E2BIG || code == -ENODATA ||
			code == -ENOMEM,
		"code");
	check(column >= 1 && column <= length + 1, "column");
	check(error->text[0] != '\0', "a text");
	for (const char *at = error->text; *at != '\0'; at++)
		check((unsigned char)*at >= 0x20 && *at != 0x7f, "one line");
}

static void count(void *context, const char *word, const char *what)
{
	check(word || what, "something is offered");
	check(!word || word[0] != '\0', "a word");
	++*(unsigned *)context;
}

static void check_taken(const struct rule_setup *setup, const struct rule_command *command)
{
	static char text[8 * RULE_LINE_MAX], other[8 * RULE_LINE_MAX];
	struct rule_command *again;
	struct error error = {""};
	unsigned column;
	size_t length = rule_command_print(command, text, sizeof(text));

	check(length < sizeof(text), "length");
	if (length > RULE_LINE_MAX)
		return;
	int ret = rule_command_parse(&again, setup, text, length, &column, &error);

	/* numbers can be longer in print, and then there may be no memory for them */
	if (ret < 0) {
		fprintf(stderr, "%s\n%s\n", text, error.text);
		check(false, "printed and refused");
	}
	if (!rule_same(command, again)) {
		fprintf(stderr, "%s\n", text);
		check(false, "the same");
	}
	rule_command_print(again, other, sizeof(other));
	check(strcmp(text, other) == 0, "printed the same");
	rule_command_destroy(again);
}

/* What a rule means: all of it is read, or refused with a word that stands in the line. */
static void check_meaning(const struct rule_command *command, const char *line, size_t length)
{
	static const struct topology topology = {
		.n_ports = 2, .n_domains = 1, .peer = {1, 0}, .size = {2}};
	const struct rule_ground ground = {.topology = &topology, .zone_vlan = length % 2};
	struct classifier_rule rule, of_flows;
	struct action_program program;
	struct rule_refusal refusal;
	struct rule_effect effect;
	struct error error = {""};
	int ret = rule_pattern_read(command, &ground, &rule, &refusal, &error);

	if (ret == 0)
		ret = rule_effect_read(command, &ground, &rule, &effect, &refusal, &error);
	if (ret < 0) {
		const unsigned column = rule_refusal_column(line, length, &refusal);

		check(ret == -EINVAL || ret == -ENOTSUP, "code");
		check(error.text[0] != '\0', "a reason");
		check(column >= 1 && column <= length, "column");
		return;
	}
	rule_pattern_of_flows(&rule, &ground, &of_flows);
	check(effect.n <= ACTION_LIST_MAX, "length of the list");
	ret = action_program_compile(&program, effect.list, effect.n, &error);
	check(ret == 0 || error.text[0] != '\0', "a reason");
}

static void take_line(struct rule_setup *setup, const char *line, size_t length)
{
	struct rule_command *command;
	struct error error = {""};
	unsigned column = 0, offered = 0;

	rule_complete(line, length, count, &offered);
	int ret = rule_command_parse(&command, setup, line, length, &column, &error);

	if (ret < 0) {
		check_refused(ret, column, &error, length);
		return;
	}
	check_taken(setup, command);
	if (command->verb == RULE_CREATE || command->verb == RULE_VALIDATE)
		check_meaning(command, line, length);
	if (command->verb == RULE_SET)
		check(rule_setup_learn(setup, command) == 0, "learned");
	rule_command_destroy(command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rule_setup *setup = rule_setup_create();
	const char *text = (const char *)data;

	check(setup != NULL, "memory");
	while (size > 0) {
		const char *end = memchr(text, '\n', size);
		size_t length = end ? (size_t)(end - text) : size;
		/* of its exact size, so that a sanitizer sees its end */
		char *line = malloc(length + (length == 0));

		check(line != NULL, "memory");
		memcpy(line, text, length);
		take_line(setup, line, length);
		free(line);
		text += length + (end != NULL);
		size -= length + (end != NULL);
	}
	rule_setup_destroy(setup);
	return 0;
}
