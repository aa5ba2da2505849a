/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_rule 'LINE': parses a line of testpmd's flow syntax and shows the rte_flow arrays that it comes to. Those
 * of `flow create` could be given to rte_flow_create() as they are.
 */
#include <stdio.h>
#include <string.h>

#include "rule/command.h"

static void show_bytes(const char *name, const void *bytes, size_t size)
{
	if (!bytes)
		return;
	printf("  %s", name);
	for (size_t i = 0; i < size; i++)
		printf(" %02x", ((const unsigned char *)bytes)[i]);
	putchar('\n');
}

static void show_items(const struct rte_flow_item *item)
{
	for (; item && item->type != RTE_FLOW_ITEM_TYPE_END; item++) {
		const struct rule_thing *row = rule_item_of(item->type);

		printf("item %s\n", row->name);
		show_bytes("spec", item->spec, row->size);
		show_bytes("last", item->last, row->size);
		show_bytes("mask", item->mask, row->size);
	}
}

static void show_actions(const struct rte_flow_action *action)
{
	for (; action && action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		const struct rule_thing *row = rule_action_of(action->type);

		printf("action %s\n", row->name);
		show_bytes("conf", action->conf, row->size);
	}
}

int main(int argc, char **argv)
{
	const char *line = argc > 1 ? argv[1] : "";
	struct rule_command *command;
	struct error error;
	unsigned column;

	if (rule_command_parse(&command, NULL, line, strlen(line), &column, &error) < 0) {
		fprintf(stderr, "column %u: %s\n", column, error.text);
		return 1;
	}
	printf("port %u, group %u, priority %u%s%s%s\n", command->port, command->attr.group,
		command->attr.priority, command->attr.ingress ? ", ingress" : "",
		command->attr.egress ? ", egress" : "", command->attr.transfer ? ", transfer" : "");
	show_items(command->pattern);
	for (unsigned i = 0; i < RULE_MAX_LISTS; i++)
		show_actions(command->actions[i]);
	rule_command_destroy(command);
	return 0;
}
