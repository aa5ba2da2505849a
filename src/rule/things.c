/* SPDX-License-Identifier: BSD-3-Clause */
/* Items, actions and their fields, found in the tables of the grammar. */
#include <string.h>

#include "rule/grammar.h"

static const struct rule_thing *find_named(
	const struct rule_thing *things, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (things[i].name[0] == name[0] && strcmp(things[i].name, name) == 0)
			return &things[i];
	return NULL;
}

const struct rule_thing *rule_item_find(const char *name)
{
	return find_named(rule_items, rule_n_items, name);
}

const struct rule_thing *rule_action_find(const char *name)
{
	return find_named(rule_actions, rule_n_actions, name);
}

static const struct rule_thing *of_type(const struct rule_thing *things, unsigned n, int type)
{
	for (unsigned i = 0; i < n; i++)
		if (things[i].type == type && !things[i].refused)
			return &things[i];
	return NULL;
}

const struct rule_thing *rule_item_of(enum rte_flow_item_type type)
{
	return of_type(rule_items, rule_n_items, (int)type);
}

const struct rule_thing *rule_action_of(enum rte_flow_action_type type)
{
	return of_type(rule_actions, rule_n_actions, (int)type);
}

bool rule_source_fits(const struct rule_field *field, uint64_t type)
{
	if (field->kind == RULE_INLINE)
		return type == RTE_FLOW_FIELD_VALUE;
	if (field->kind == RULE_HEX)
		return type == RTE_FLOW_FIELD_POINTER;
	return type != RTE_FLOW_FIELD_VALUE && type != RTE_FLOW_FIELD_POINTER;
}
