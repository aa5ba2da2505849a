/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The NIC's own clockwork: a thread a port that does at its due time what was pushed, tells of it, looks
 * which rules have aged and turns rounds that reach no worker. It goes on whether or not anybody pulls.
 * Sleeps until something is due.
 */

#include "drivers/flowsim/rule.h"

enum sim_op_kind {
	SIM_OP_RULE_CREATE,
	SIM_OP_RULE_DESTROY,
	SIM_OP_INDIRECT_CREATE,
	SIM_OP_INDIRECT_UPDATE,
	SIM_OP_INDIRECT_DESTROY,
	SIM_OP_INDIRECT_QUERY,
};

/* An asynchronous operation under way. Owned by the firmware from submit to completion. */
struct sim_op {
	TAILQ_ENTRY(sim_op) link;
	enum sim_op_kind kind;
	uint64_t due_ns;    /* CLOCK_MONOTONIC */
	uint64_t answer_ns; /* when it is told; not before due_ns */
	uint32_t queue;	    /* flow queue */
	void *user_data;
	struct rte_flow *rule;
	struct sim_indirect *indirect;
	void *data; /* of a query or an update */
	int status; /* 0 or a negative errno, once done */
};

struct sim_port;
struct sim_firmware;

int sim_firmware_start(struct sim_port *port);
void sim_firmware_stop(struct sim_port *port); /* what is under way is done first */

/* Under the port's lock. Its due time follows from the profile's rate and latencies, and from faults. */
void sim_firmware_submit(struct sim_port *port, struct sim_op *op);

/*
 * The wait of a blocking call: `ns` asleep or, with profile.spin, burning. Without the port's lock.
 */
void sim_firmware_wait(const struct sim_port *port, uint64_t ns);

/* Something to do earlier than it thought. Under the port's lock. */
void sim_firmware_wake(struct sim_port *port);

/* CLOCK_MONOTONIC in nanoseconds and milliseconds. */
uint64_t sim_now_ns(void);
uint64_t sim_now_ms(void);
