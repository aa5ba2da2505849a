/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Templates and tables of them, compiled: which words of a pattern a rule gives and where in its items
 * they stand; which actions are fixed and what of them a rule may say. Made and destroyed under the
 * port's lock. The thread of a flow queue reads them without one (rte_flow.h: a template is not
 * destroyed while a table has it, nor a table while a queue uses it), the firmware with it.
 */

#include "drivers/flowsim/rule.h"
#include "drivers/flowsim/sim.h"

/*
 * A pattern template in a table: counts the rules that are made of it. `taken` is counted by the threads
 * of flow queues, `n_rules` and `left` under the port's lock.
 */
struct sim_template_use;

/* A rule of it goes for good. Under the port's lock. */
void sim_template_left(struct sim_template_use *use);
