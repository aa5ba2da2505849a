/* SPDX-License-Identifier: BSD-3-Clause */
/* Meters and lists of actions, which rules share: commands of them, and what their users count. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rule/rules_private.h"

bool rules_shares(const struct rule_command *command)
{
	return rule_meters_are_meant(command) ||
	       (command->verb >= RULE_INDIRECT_CREATE && command->verb <= RULE_INDIRECT_QUERY);
}

bool rules_makes_shared(const struct rule_command *command)
{
	return rule_meters_are_made(command) || command->verb == RULE_INDIRECT_CREATE;
}

/* Is each action of the list done in software? What stands in the rest of a rule is not known here. */
static int check_list(const struct rules *rules, const struct rule_command *command,
	struct rule_refusal *refusal, struct error *error)
{
	const struct classifier_rule any = classifier_rule_any(0);
	const struct rte_flow_action *actions = command->actions[0];
	struct rule_effect effect;

	*refusal = (struct rule_refusal){.part = RULE_PART_ACTIONS};
	if (command->attr.egress)
		return error_set(error, -ENOTSUP, "egress: not done in software");
	for (; actions->type != RTE_FLOW_ACTION_TYPE_END; actions++, refusal->index++)
		if (actions->type == RTE_FLOW_ACTION_TYPE_INDIRECT)
			return error_set(error, -ENOTSUP,
				"action 'indirect': in software no list has another one in it");
	return rule_effect_read(command, &rules->ground, &any, &effect, refusal, error);
}

static int create_list(struct rules *rules, const struct rules_line *line,
	struct rule_refusal *refusal, struct error *error)
{
	struct rule_command *own;
	uint32_t number;
	unsigned column;
	int ret = check_list(rules, line->command, refusal, error);

	if (ret < 0)
		return ret;
	*refusal = (struct rule_refusal){.part = RULE_PART_COMMAND};
	ret = rule_command_parse(&own, rules->setup, line->text, line->length, &column, error);
	if (ret < 0)
		return ret;
	ret = rule_shared_add(rules->shared, own, &number, error);
	if (ret < 0)
		rule_command_destroy(own);
	else
		snprintf(line->told, line->size, "Indirect action #%" PRIu32 " created", number);
	return ret;
}

/* All that are named, or none. */
static int destroy_lists(struct rules *rules, const struct rules_line *line, struct error *error)
{
	const struct rule_command *command = line->command;
	const struct rule_argument *argument;
	struct rule_use *use;
	size_t at = 0;

	for (unsigned i = 0;
		(argument = rule_command_argument(command, RULE_ARG_ACTION_ID, i)) != NULL; i++)
		if (rule_shared_find(rules->shared, command->port, argument->number, &use) ==
				NULL ||
			use->rules != 0)
			return rule_shared_remove(
				rules->shared, command->port, argument->number, error);
	for (unsigned i = 0;
		(argument = rule_command_argument(command, RULE_ARG_ACTION_ID, i)) != NULL; i++)
		/* one that is named twice is gone */
		if (rule_shared_remove(rules->shared, command->port, argument->number, error) ==
				0 &&
			at < line->size)
			at += (size_t)snprintf(line->told + at, line->size - at,
				"%sIndirect action #%" PRIu64 " destroyed", at == 0 ? "" : "; ",
				argument->number);
	return 0;
}

static bool is_user(const struct rules_own *own, const struct rule_use *use)
{
	for (unsigned i = 0;
		own->made != NULL && own->made->uses != NULL && own->made->uses[i] != NULL; i++)
		if (own->made->uses[i] == use)
			return true;
	return false;
}

static int query_list(const struct rules *rules, const struct rules_line *line, struct error *error)
{
	const struct rule_command *command = line->command;
	const struct rule_argument *number = rule_command_argument(command, RULE_ARG_ACTION_ID, 0);
	const struct rte_flow_action *actions;
	struct rule_use *use;

	actions = number == NULL
			  ? NULL
			  : rule_shared_find(rules->shared, command->port, number->number, &use);
	if (actions == NULL)
		return error_set(error, -ENOENT,
			"there is no indirect action %" PRIu64 " of port %u",
			number != NULL ? number->number : 0, command->port);
	while (actions->type != RTE_FLOW_ACTION_TYPE_COUNT &&
		actions->type != RTE_FLOW_ACTION_TYPE_END)
		actions++;
	if (actions->type == RTE_FLOW_ACTION_TYPE_END)
		return error_set(error, -ENOTSUP,
			"query: indirect action %" PRIu64 " has no action 'count'", number->number);
	uint64_t packets = use->packets, bytes = use->bytes;

	for (uint32_t slot = 0; slot < rules->n_begun; slot++) {
		if (!is_user(&rules->own[slot], use))
			continue;
		const struct rules_count count = rules_sum(rules, slot);

		packets += count.packets;
		bytes += count.bytes;
	}
	snprintf(line->told, line->size, "count: hits %" PRIu64 ", bytes %" PRIu64, packets, bytes);
	return 0;
}

int rules_share(struct rules *rules, const struct rules_line *line, struct rule_refusal *refusal,
	struct error *error)
{
	const struct rule_command *command = line->command;

	if (line->again && rules_makes_shared(command) &&
		(rule_meters_have(rules->meters, command) ||
			rule_shared_has(rules->shared, command)))
		return 0;
	switch ((int)command->verb) {
	case RULE_INDIRECT_CREATE:
		return create_list(rules, line, refusal, error);
	case RULE_INDIRECT_DESTROY:
		return destroy_lists(rules, line, error);
	case RULE_INDIRECT_QUERY:
		return query_list(rules, line, error);
	case RULE_INDIRECT_UPDATE:
		refusal->word = "update";
		return error_set(error, -ENOTSUP,
			"update: in software an indirect action is not changed; make another one");
	default:
		return rule_meters_do(
			rules->meters, command, line->told, line->size, &refusal->word, error);
	}
}

int rules_take_uses(const struct rule_effect *effect, struct rule_use ***uses, struct error *error)
{
	if (effect->n_uses == 0)
		return 0;
	*uses = calloc(effect->n_uses + 1, sizeof(struct rule_use *));
	if (*uses == NULL)
		return error_set(error, -ENOMEM, "no memory for the rule");
	for (unsigned i = 0; i < effect->n_uses; i++) {
		(*uses)[i] = effect->uses[i];
		effect->uses[i]->rules++;
	}
	return 0;
}

void rules_give_uses_back(struct rule_use **uses)
{
	for (unsigned i = 0; uses != NULL && uses[i] != NULL; i++)
		uses[i]->rules--;
	free(uses);
}

void rules_count_uses(struct rule_use **uses, const struct rules_count *count)
{
	for (unsigned i = 0; uses != NULL && uses[i] != NULL; i++) {
		uses[i]->packets += count->packets;
		uses[i]->bytes += count->bytes;
	}
}
