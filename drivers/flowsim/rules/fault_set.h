/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Faults are set, and do what they do to rules: port/fault.h says what they are and counts their chances.
 * Under the port's lock, but where it says something else.
 */

#include "drivers/flowsim/port/fault.h"

struct sim_port;

/*
 * When the port is made, with its source and its table: args.faults, args.counter_bits and args.ghosts
 * are set. Returns 0 or a negative errno with a line; fini after either.
 */
int sim_faults_init(struct sim_port *port, struct error *error);
void sim_faults_fini(struct sim_port *port);

/* When the port is started, its queues set up: `dead` ends, queues learn of packet faults. Takes the
 * port's lock. */
void sim_faults_start(struct sim_port *port);

/* Sets faults from text (port/fault.h): all or, with an error, none. 0, or -EINVAL and a line. */
int sim_fault_parse(struct sim_port *port, const char *text, struct error *error);

/*
 * A chance for SIM_FAULT_FAIL and SIM_FAULT_DEAD, at the begin of a call: 0, or the negative errno to
 * fail with.
 */
int sim_fault_fails(struct sim_port *port, enum sim_fault_op op);

/*
 * What the NIC tells of a counter that stands at `count` since its rule or handle was made (a reset is
 * subtracted after this). `of` is the rule or the indirect action, `serial` the rule's, 0 for the other.
 */
struct sim_count sim_fault_count(
	struct sim_port *port, const void *of, uint64_t serial, struct sim_count count);
