/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Lists of rules that are put in force in place of another, for the requests that do so: rule load, config apply. */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "rule/rules.h"

struct answer;

/* How often it is looked how far a list has come. */
#define POLICY_LOOK_US UINT64_C(5000)

/*
 * Puts lines that were read in force, or nothing has changed. The list is gone in any case; `name` is where it came from. 0 or a
 * negative errno as rules_replace().
 */
int policy_put(struct control *control, const char *name, struct rules_list *list,
	struct rules_change *change, struct error *error);

/* The list before is in force again. `why`: who wanted it. 0 or a negative errno as rules_go_back(). */
int policy_go_back(
	struct control *control, const char *why, struct rules_change *change, struct error *error);

/* -EBUSY with a line while something that was loaded or applied waits to be confirmed. */
int policy_check_unconfirmed(const struct control *control, struct error *error);

/* Goes back, by `back`, after so many seconds, unless policy_confirm() comes. `of_config`: with the whole configuration. */
void policy_await(struct control *control, uint32_t seconds, bool of_config, policy_back_fn back);
/* Seconds until it goes back, 0: nothing waits; `of_config`: is it about the configuration, or about rules? */
uint32_t policy_waits_s(const struct control *control, bool of_config);
/* False: nothing of that kind waits. */
bool policy_confirm(struct control *control, bool of_config);

/*
 * For answers that wait until a list is in force everywhere: enum answer_turn, ANSWER_GO where it is, or a negative errno
 * with a line. Another list may have come meanwhile: then it is that one.
 */
int policy_turn_of(struct answer *answer, uint32_t epoch, struct error *error);

/* Sees how far a list has come that replaced another, and goes back where that was not confirmed. */
void policy_begin_control(struct control *control);
void policy_tend(struct control *control);
