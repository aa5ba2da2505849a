/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Faults as text, from a devarg or telemetry, to settings:
 *
 *   NAME[:WORD=NUMBER...][/NAME...]      NAME:off
 *
 * Words stand after ':' or ',' (a devarg has no ','), numbers after '=' or ':'. `errno=` takes a number or a name, `op=` create,
 * destroy, query, push or any. A name twice: the last counts. No state of its own; any thread.
 */

#include "drivers/flowsim/port/fault.h"

/* What was said of each fault; `off` or a setting with `on`, by enum sim_fault_name. */
struct sim_fault_order {
	bool said[SIM_N_FAULTS];
	struct sim_fault_state to[SIM_N_FAULTS];
};

/* Returns 0, or -EINVAL with a line that names the word. */
int sim_fault_read(struct sim_fault_order *order, const char *text, struct error *error);
