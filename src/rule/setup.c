/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rule_setup {
	char *lines[RULE_N_SLOTS][RULE_MAX_INDEX];
};

struct rule_setup *rule_setup_create(void)
{
	return calloc(1, sizeof(struct rule_setup));
}

void rule_setup_destroy(struct rule_setup *setup)
{
	if (!setup)
		return;
	for (unsigned slot = 0; slot < RULE_N_SLOTS; slot++)
		for (unsigned i = 0; i < RULE_MAX_INDEX; i++)
			free(setup->lines[slot][i]);
	free(setup);
}

int rule_setup_learn(struct rule_setup *setup, const struct rule_command *command)
{
	const struct rule_argument *index = rule_command_argument(command, RULE_ARG_INDEX, 0);
	char *line;

	if (command->verb != RULE_SET)
		return -EINVAL;
	line = rule_command_text(command);
	if (!line)
		return -ENOMEM;
	char **slot = &setup->lines[command->form->slot][index ? index->number : 0];

	free(*slot);
	*slot = line;
	return 0;
}

const char *rule_setup_line(const struct rule_setup *setup, enum rule_slot slot, unsigned index)
{
	return setup ? setup->lines[slot][index] : NULL;
}
