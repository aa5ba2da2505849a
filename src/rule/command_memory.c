/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that were parsed: their memory, and what lies in it. */
#include <stdlib.h>

#include "rule/parser.h"

struct rule_command *rule_command_create(void)
{
	struct rule_command *command = calloc(1, sizeof(*command) + sizeof(*command->parts));

	if (command) {
		command->parts = (struct rule_command_parts *)(command + 1);
		rule_memory_init(&command->parts->memory);
		command->port = RULE_NO_PORT;
	}
	return command;
}

void rule_command_destroy(struct rule_command *command)
{
	if (!command)
		return;
	while (command->parts->children) {
		struct rule_command *child = command->parts->children;

		command->parts->children = child->parts->sibling;
		rule_command_destroy(child);
	}
	rule_memory_fini(&command->parts->memory);
	free(command);
}

const struct rule_argument *rule_command_argument(
	const struct rule_command *command, enum rule_argument_id id, unsigned nth)
{
	for (unsigned i = 0; i < command->n_arguments; i++)
		if (command->arguments[i].id == id && nth-- == 0)
			return &command->arguments[i];
	return NULL;
}
