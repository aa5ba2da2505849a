/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What `set` lines have said: outer headers of encapsulations, actions of samples, the connection of
 * conntrack. Rules that are parsed later take it from here; those that were parsed before keep what they
 * have. A caller that parses several ports or files has one for each.
 *
 * One thread at a time.
 */

#include "rule/command.h"

/* NULL: no memory. */
struct rule_setup *rule_setup_create(void);
void rule_setup_destroy(struct rule_setup *setup);

/* Remembers a command with the verb RULE_SET. 0, -EINVAL for another verb, or -ENOMEM. */
int rule_setup_learn(struct rule_setup *setup, const struct rule_command *command);

/* The line that was learned last, or NULL. */
const char *rule_setup_line(const struct rule_setup *setup, enum rule_slot slot, unsigned index);
