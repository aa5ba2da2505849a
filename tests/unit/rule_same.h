/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Are two commands the same, in all that a driver could see? Structs are compared byte by byte, but for
 * pointers, which are followed as the table says.
 */

#include <string.h>

#include "rule/command.h"
#include "rule/value.h"

static inline const struct rule_thing *rule_row(
	const struct rule_thing *things, unsigned n, int type, unsigned nth)
{
	for (unsigned i = 0; i < n; i++)
		if (things[i].type == type && nth-- == 0)
			return &things[i];
	return NULL;
}

static inline bool rule_same_bytes(const void *a, const void *b, size_t n)
{
	return !a == !b && (!a || memcmp(a, b, n) == 0);
}

static inline bool rule_source_is_pointer(const void *conf)
{
	const struct rte_flow_action_modify_field *modify = conf;

	return modify->src.field == RTE_FLOW_FIELD_POINTER;
}

/* Two structs of one row, with what is behind their pointers. */
static inline bool rule_same_struct(const struct rule_thing *row, const void *a, const void *b)
{
	uint8_t copy[2][512] = {{0}};

	if (!a || !b)
		return a == b;
	memcpy(copy[0], a, row->size);
	memcpy(copy[1], b, row->size);
	for (unsigned i = 0; i < row->n_fields; i++) {
		const struct rule_field *field = &row->fields[i];
		bool list = field->kind == RULE_QUEUES;

		if (!rule_field_points(field) && !list)
			continue;
		if ((field->flags & RULE_SOURCE) && !rule_source_is_pointer(a))
			continue;
		const void *from = rule_field_pointer(field, a),
			   *other = rule_field_pointer(field, b);
		int length = rule_field_length(field, a);
		size_t n = length < 0 || length > field->max ? field->max : (size_t)length;

		if (!rule_same_bytes(from, other, list ? 2 * n : n))
			return false;
		memset(copy[0] + field->offset, 0, sizeof(from));
		memset(copy[1] + field->offset, 0, sizeof(from));
	}
	return memcmp(copy[0], copy[1], row->size) == 0;
}

static inline bool rule_same_items(const struct rte_flow_item *a, const struct rte_flow_item *b)
{
	if (!a || !b)
		return a == b;
	for (;; a++, b++) {
		const struct rule_thing *row = rule_row(rule_items, rule_n_items, (int)a->type, 0);

		if (a->type != b->type || !row || !rule_same_struct(row, a->spec, b->spec) ||
			!rule_same_struct(row, a->last, b->last) ||
			!rule_same_struct(row, a->mask, b->mask))
			return false;
		if (a->type == RTE_FLOW_ITEM_TYPE_END)
			return true;
	}
}

static inline bool rule_same_actions(
	const struct rte_flow_action *a, const struct rte_flow_action *b);

/* Structs of actions that have pointers which are no fields. */
static inline bool rule_same_conf(const struct rte_flow_action *a, const struct rte_flow_action *b)
{
	const struct rule_thing *row = rule_row(rule_actions, rule_n_actions, (int)a->type, 0);

	if (!a->conf || !b->conf)
		return a->conf == b->conf;
	if (a->type == RTE_FLOW_ACTION_TYPE_VXLAN_ENCAP ||
		a->type == RTE_FLOW_ACTION_TYPE_NVGRE_ENCAP) {
		const struct rte_flow_action_vxlan_encap *x = a->conf, *y = b->conf;

		return rule_same_items(x->definition, y->definition);
	}
	if (a->type == RTE_FLOW_ACTION_TYPE_RAW_ENCAP) {
		const struct rule_raw_encap *x = a->conf, *y = b->conf;

		return x->index == y->index && x->given == y->given &&
		       x->encap.size == y->encap.size &&
		       rule_same_bytes(x->encap.data, y->encap.data, x->encap.size);
	}
	if (a->type == RTE_FLOW_ACTION_TYPE_RAW_DECAP) {
		const struct rule_raw_decap *x = a->conf, *y = b->conf;

		return x->index == y->index && x->given == y->given &&
		       x->decap.size == y->decap.size &&
		       rule_same_bytes(x->decap.data, y->decap.data, x->decap.size);
	}
	if (a->type == RTE_FLOW_ACTION_TYPE_SAMPLE) {
		const struct rule_sample *x = a->conf, *y = b->conf;

		return x->sample.ratio == y->sample.ratio && x->index == y->index &&
		       x->given == y->given &&
		       rule_same_actions(x->sample.actions, y->sample.actions);
	}
	/* the smaller one, where two rows have this type: the other's first bytes are its first field */
	for (unsigned nth = 1; rule_row(rule_actions, rule_n_actions, (int)a->type, nth); nth++) {
		const struct rule_thing *other =
			rule_row(rule_actions, rule_n_actions, (int)a->type, nth);

		row = other->size < row->size ? other : row;
	}
	return rule_same_struct(row, a->conf, b->conf);
}

static inline bool rule_same_actions(
	const struct rte_flow_action *a, const struct rte_flow_action *b)
{
	if (!a || !b)
		return a == b;
	for (;; a++, b++) {
		if (a->type != b->type || !rule_same_conf(a, b))
			return false;
		if (a->type == RTE_FLOW_ACTION_TYPE_END)
			return true;
	}
}

static inline bool rule_same(const struct rule_command *a, const struct rule_command *b)
{
	if (a->verb != b->verb || a->form != b->form || a->port != b->port ||
		memcmp(&a->attr, &b->attr, sizeof(a->attr)) != 0 ||
		a->n_arguments != b->n_arguments || !rule_same_items(a->pattern, b->pattern))
		return false;
	for (unsigned i = 0; i < RULE_MAX_LISTS; i++)
		if (!rule_same_actions(a->actions[i], b->actions[i]))
			return false;
	/* options may have changed places */
	for (unsigned i = 0; i < a->n_arguments; i++) {
		unsigned nth = 0;

		for (unsigned before = 0; before < i; before++)
			nth += a->arguments[before].id == a->arguments[i].id;
		const struct rule_argument *other =
			rule_command_argument(b, a->arguments[i].id, nth);

		if (!other || other->number != a->arguments[i].number)
			return false;
	}
	return true;
}
