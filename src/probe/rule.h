/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * One rule of a form (probe/form.h) at a port: aimed at a flow of which packets come, made and destroyed by whichever
 * calls the driver has, blocking ones or templates and a flow queue. One thread.
 */

#include <errno.h>

#include "probe/form.h"
#include "probe/observer.h"
#include "rteflow/provider.h"

/* The port, and how rules are made there. */
struct rule_port {
	uint16_t id, n_queues;
	uint16_t target;		 /* ethdev that packets may be sent out of */
	struct shape_port rss;		 /* how the port spreads packets */
	const struct observer *observer; /* NULL: nobody looks */
	bool flow_queues;		 /* templates may be used */
	bool by_templates;		 /* there are no blocking calls: the first rule finds out */
	uint32_t mark;			 /* of all rules; 0: each has another one */
	unsigned n_marks;		 /* marks that were asked for */
	unsigned n_left;		 /* rules that could not be destroyed */
	uint32_t serial;		 /* of the last operation of the flow queue */
	/* of cells: counters that did not move, and forms whose packets were not seen, waited for in vain */
	unsigned n_stuck, n_silent;
	/* Called before each thing that is done: a driver may never come back. `rules` are there meanwhile. */
	void (*step)(void *context, const char *what, unsigned rules);
	void *context;
};

/* The handles that destroy a rule. */
struct rule_handle {
	struct rte_flow *flow;
	/* of ports without blocking calls */
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
};

struct rule {
	struct rule_port *port;
	const struct form *form;
	struct form_aim aim;
	struct observed_flow flow;
	bool observed;	 /* there is such a flow */
	uint64_t queues; /* that its packets are to come by; bit by number */
	struct rule_handle handle;
};

/* A call that fails for a reason of the device is made so often. */
#define RULE_TRIES 4

/* May an errno of create be another one the next time? It is of the device then, not of the form. */
static inline bool rule_is_passing(int error)
{
	return error == EIO || error == EAGAIN || error == EBUSY || error == ETIMEDOUT;
}

void rule_step(const struct rule *rule, const char *what, unsigned rules);
/* The next rule's mark. */
uint32_t rule_mark(struct rule_port *port);
/*
 * Chooses the flow, and queues that its packets do not come by without the rule, where there are enough. False: nobody
 * looks, or no packets of such a flow come; the rule is aimed at one of documentation.
 */
bool rule_aim(struct rule *rule, struct rule_port *port, const struct form *form);
/* Watches the rule's flow by the observer, until `wanted` packets came. */
void rule_watch(const struct rule *rule, uint64_t queues, unsigned wanted, struct observed *seen);

/* All three: 0 or a negative errno of the driver's, with its words. -ENOSYS: the driver cannot be asked. */
int rule_validate(
	const struct rule_port *port, const struct form_rule *built, struct provider_why *why);
int rule_create(struct rule_port *port, const struct form_rule *built, struct rule_handle *handle,
	struct provider_why *why);
/* Asks several times. */
int rule_destroy(struct rule_port *port, struct rule_handle *handle, struct provider_why *why);
