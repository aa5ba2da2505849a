/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What several rules share, and how often it is used: lists of actions that `flow indirect_action` has named, and
 * meters (rule/meters.h). A rule that names a list does what the list says, as if its actions stood there. What is used is not
 * removed.
 *
 * The writer's thread of rule/rules.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rule/command.h"

/* Of a thing that is shared. Rules that flows may still have are among those that use it. */
struct rule_use {
	uint32_t rules;
	/* what the rules have counted that used it and are gone */
	uint64_t packets, bytes;
};

struct rule_shared;

/* NULL: no memory. */
struct rule_shared *rule_shared_create(void);
/* Accepts NULL. */
void rule_shared_destroy(struct rule_shared *shared);

/* The actions of this name, which end with END, and their use; NULL: there are none. `shared` may be NULL. */
const struct rte_flow_action *rule_shared_find(
	const struct rule_shared *shared, uint16_t port, uint64_t number, struct rule_use **use);

/*
 * Adds the actions of a command (RULE_INDIRECT_CREATE), which belongs to the list then. Without a number it gets the one
 * after the highest. 0; -EEXIST; -EINVAL; -ENOMEM: the command is still the caller's.
 */
int rule_shared_add(struct rule_shared *shared, struct rule_command *command, uint32_t *number,
	struct error *error);
/* Whether a list is there that a command of the same words has made. */
bool rule_shared_has(const struct rule_shared *shared, const struct rule_command *command);
/* 0; -ENOENT; or -EBUSY: rules use it. */
int rule_shared_remove(
	struct rule_shared *shared, uint16_t port, uint64_t number, struct error *error);

/* How many lists were added so far; and removes those that were added after that, unless they are used. */
uint64_t rule_shared_mark(const struct rule_shared *shared);
void rule_shared_undo(struct rule_shared *shared, uint64_t mark);
