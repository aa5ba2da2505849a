/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Items without a mask of their own: they have the one that rte_flow has for their type. */

#include <stddef.h>

#include <rte_flow.h>

struct rule_command;

/*
 * The default mask of an item, whose struct has `*size` bytes of its beginning in common with that of the item. NULL: none
 * of its fields counts.
 */
const void *rule_default_mask(enum rte_flow_item_type type, size_t *size);

/*
 * Tells in a line each which items of a command's pattern mean something else than they seem to: their default mask asks
 * for fields that they do not name, or does not ask for those that they do.
 */
void rule_default_mask_warn(const struct rule_command *command,
	void (*tell)(void *context, const char *line), void *context);
