/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of cells: cell.c has their levels, findings.c what else rules of a form can tell, cell_calls.c one rule, made
 * and destroyed by whatever calls the port has. Nobody else includes this.
 */

#include "probe/cell.h"

struct cell_rule {
	struct rte_flow *flow;
	/* of ports without blocking calls */
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
};

/* What fails for a reason of the device's, and not of its own, is asked so often. */
#define CELL_AGAIN 4

/* 0 or a negative errno of the driver's, with its words. */
int cell_create(struct cell_port *port, const struct form_rule *built, struct cell_rule *rule,
	struct provider_why *why);
/* Asks several times. */
int cell_destroy(struct cell_port *port, struct cell_rule *rule, struct provider_why *why);
/* -ENOSYS: the driver cannot be asked. */
int cell_validate(
	const struct cell_port *port, const struct form_rule *built, struct provider_why *why);

/* A form that is being tried. */
struct trying {
	struct cell_port *port;
	const struct form *form;
	struct cell *cell;
	struct form_aim aim;
	struct eyes_flow flow;
	bool looked;
	bool careful; /* of another flow nothing was seen: it may have paused by itself */
	uint64_t
		steady_us; /* that its packets took before there was a rule; 0: not known, or too few came */
	struct cell_rule rule;
};

/* Says what is about to be done, while there are so many rules. */
void cell_step(const struct trying *trying, const char *what, unsigned rules);
/* Of the next rule. */
uint32_t cell_mark(struct cell_port *port);
/* What the rule is for. False: nobody looks, or there are no such packets. */
bool cell_aim_at(struct trying *trying);
/* Queues that packets do not come by without the rule, where there are enough; bit by number. */
uint64_t cell_aim_queues(struct trying *trying);
void cell_watch(struct trying *trying, uint64_t queues, unsigned wanted, bool absent,
	struct eyes_seen *seen);
