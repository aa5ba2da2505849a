/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bytes as lines of the rule language, the later ones with what the earlier ones have set. Besides what
 * sanitizers see:
 *
 * - what is refused is told in one line of printable text, with a column in the line or just behind it;
 * - what is taken is printed as a line that comes to the same arrays and is printed the same;
 * - what is offered as completion can be printed, and offering it changes nothing;
 * - what a rule means is read, or refused with a reason and a column in the line;
 * - meters and indirect actions are made, used and removed, and what cannot be is refused with a reason.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/program.h"
#include "rule/effect.h"
#include "rule/meters.h"
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

/* What lines have made, with all of the setup. */
struct made {
	struct rule_setup *setup;
	struct rule_meters *meters;
	struct rule_shared *shared;
};

static void take_meter(const struct made *made, const struct rule_command *command)
{
	struct error error = {""};
	const char *word;
	char told[256] = "";
	int ret = rule_meters_do(made->meters, command, told, sizeof(told), &word, &error);

	check(ret == 0 ? told[0] != '\0' : error.text[0] != '\0', "something is told");
}

/* Of the line that the command was parsed from. */
static void take_shared(const struct made *made, const struct rule_command *command,
	const char *line, size_t length)
{
	struct rule_command *own;
	struct error error = {""};
	unsigned column;
	uint32_t number;

	if (command->verb == RULE_INDIRECT_DESTROY) {
		const struct rule_argument *argument =
			rule_command_argument(command, RULE_ARG_ACTION_ID, 0);
		int ret = rule_shared_remove(made->shared, command->port, argument->number, &error);

		check(ret == 0 || (ret == -ENOENT && error.text[0] != '\0'), "a reason");
		return;
	}
	/* rules_share() takes no list that has another one in it */
	for (const struct rte_flow_action *action = command->actions[0];
		action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		if (action->type == RTE_FLOW_ACTION_TYPE_INDIRECT)
			return;
	if (rule_command_parse(&own, made->setup, line, length, &column, &error) < 0)
		return;
	if (rule_shared_add(made->shared, own, &number, &error) < 0) {
		check(error.text[0] != '\0', "a reason");
		rule_command_destroy(own);
	}
}

/* What a rule means: all of it is read, or refused with a word that stands in the line. */
static void check_meaning(const struct made *made, const struct rule_command *command,
	const char *line, size_t length)
{
	static const struct topology topology = {
		.n_ports = 2, .n_domains = 1, .peer = {1, 0}, .size = {2}};
	const struct rule_ground ground = {.topology = &topology,
		.zone_vlan = length % 2,
		.meters = made->meters,
		.shared = made->shared};
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

static void take_line(const struct made *made, const char *line, size_t length)
{
	struct rule_setup *setup = made->setup;
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
		check_meaning(made, command, line, length);
	if (rule_meters_are_meant(command))
		take_meter(made, command);
	if (command->verb == RULE_INDIRECT_CREATE || command->verb == RULE_INDIRECT_DESTROY)
		take_shared(made, command, line, length);
	if (command->verb == RULE_SET)
		check(rule_setup_learn(setup, command) == 0, "learned");
	rule_command_destroy(command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct made made = {
		.setup = rule_setup_create(),
		.meters = rule_meters_create(),
		.shared = rule_shared_create(),
	};
	const char *text = (const char *)data;

	check(made.setup != NULL && made.meters != NULL && made.shared != NULL, "memory");
	while (size > 0) {
		const char *end = memchr(text, '\n', size);
		size_t length = end ? (size_t)(end - text) : size;
		/* of its exact size, so that a sanitizer sees its end */
		char *line = malloc(length + (length == 0));

		check(line != NULL, "memory");
		memcpy(line, text, length);
		take_line(&made, line, length);
		free(line);
		text += length + (end != NULL);
		size -= length + (end != NULL);
	}
	rule_shared_destroy(made.shared);
	rule_meters_destroy(made.meters);
	rule_setup_destroy(made.setup);
	return 0;
}
