/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Meters by the names that commands give them: a port and a number. A meter is made of a profile, which has its rates,
 * and a policy, which says for each color whether its packets are dropped; it keeps what it was made of. What is
 * used is not removed: a profile and a policy by meters, a meter by rules.
 *
 * The writer's thread of rule/rules.h. Workers read the meters themselves (action/meter.h), by their place in the table.
 */

#include <stdbool.h>
#include <stdint.h>

#include "action/meter.h"
#include "base/error.h"
#include "rule/command.h"
#include "rule/shared.h"

/* Of all ports together. */
#define RULE_MAX_METERS 4096

struct rule_meters;

/* NULL: no memory. */
struct rule_meters *rule_meters_create(void);
/* Accepts NULL. */
void rule_meters_destroy(struct rule_meters *meters);

/* The table of RULE_MAX_METERS places. */
struct action_meter *rule_meters_table(struct rule_meters *meters);

/*
 * The place of a meter in the table, and its use; NULL: there is none of this name.
 * `meters` may be NULL.
 */
struct rule_use *rule_meters_find(
	const struct rule_meters *meters, uint16_t port, uint32_t number, uint32_t *place);

/* Whether a command is of meters; `makes`: it does nothing but make something. */
bool rule_meters_are_meant(const struct rule_command *command);
bool rule_meters_are_made(const struct rule_command *command);

/*
 * Does a command of meters and says in `told` what it did. 0; -EINVAL, -ENOTSUP: it cannot be, and `word` is the one to
 * point at, or NULL; -EEXIST, -ENOENT; -EBUSY: it is used; -ENOSPC; -ENOMEM.
 */
int rule_meters_do(struct rule_meters *meters, const struct rule_command *command, char *told,
	size_t size, const char **word, struct error *error);

/* Whether what a command makes is there, and a command of the same words has made it. */
bool rule_meters_have(const struct rule_meters *meters, const struct rule_command *command);

/* How many things were made so far; and removes those that were made after that, unless they are used. */
uint64_t rule_meters_mark(const struct rule_meters *meters);
void rule_meters_undo(struct rule_meters *meters, uint64_t mark);

/* The clock begins anew: all buckets are full. */
void rule_meters_restart(struct rule_meters *meters);
