/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "drivers/flowsim/calls/async.h"
#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/calls/flow.h"
#include "drivers/flowsim/calls/flow_find.h"
#include "drivers/flowsim/packets/index.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/extra.h"
#include "drivers/flowsim/rules/flow_state.h"
#include "drivers/flowsim/rules/rule_life.h"
#include "drivers/flowsim/rules/slab.h"

static bool locked_has(struct sim_port *home, const struct rte_flow *rule, uint16_t asked_by)
{
	pthread_mutex_lock(&home->lock);
	if (sim_rule_is(home, rule) && rule->asked_by == asked_by)
		return true;
	pthread_mutex_unlock(&home->lock);
	return false;
}

struct sim_port *sim_find_rule(struct sim_port *port, const struct rte_flow *rule)
{
	if (locked_has(port, rule, 0))
		return port;
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++) {
		struct sim_port *other = id == port->id ? NULL : sim_nic_port(port, id);

		if (other != NULL && locked_has(other, rule, (uint16_t)(port->id + 1)))
			return other;
	}
	return NULL;
}

/* What this kind of NIC does not have is not in its table: ethdev says -ENOSYS. */
static void set_ops(struct sim_port *port)
{
	const struct sim_profile *profile = &port->args.profile;
	struct rte_flow_ops *ops = &port->flow->ops;

	*ops = sim_flow_ops;
	if (!profile->sync) {
		ops->validate = NULL;
		ops->create = NULL;
		ops->destroy = NULL;
	}
	if (profile->quirks & SIM_QUIRK_NO_VALIDATE)
		ops->validate = NULL;
	if (profile->async)
		sim_async_add_ops(port, ops);
}

int sim_rules_init(struct sim_port *port)
{
	struct sim_flow *flow = calloc(1, sizeof(*flow));

	if (flow == NULL)
		return -ENOMEM;
	TAILQ_INIT(&port->rules);
	TAILQ_INIT(&port->indirects);
	pthread_mutex_init(&flow->calls, NULL);
	sim_ages_init(&flow->ages);
	for (unsigned i = 0; i < RTE_DIM(flow->rules); i++)
		sim_slab_init(&flow->rules[i], sizeof(struct rte_flow) + i * 2 * sizeof(uint64_t));
	sim_slab_init(&flow->extras, sizeof(struct sim_rule_extra));
	sim_slab_init(&flow->handles, sizeof(struct sim_indirect));
	port->flow = flow;
	set_ops(port);
	port->table = sim_table_create(sim_index_destroy);
	port->input_sets = sim_input_sets_create();
	return port->table == NULL || port->input_sets == NULL ? -ENOMEM : 0;
}

static bool is_at_work(const struct rte_flow *rule)
{
	return rule->state == SIM_RULE_PENDING || rule->state == SIM_RULE_LEAVING;
}

static void drop(struct sim_port *port, bool all)
{
	struct rte_flow *rule, *next;

	pthread_mutex_lock(&port->lock);
	for (rule = TAILQ_FIRST(&port->rules); rule != NULL; rule = next) {
		next = TAILQ_NEXT(rule, link);
		if (all || (!rule->ghost && !is_at_work(rule)))
			sim_rule_destroy(rule);
	}
	if (all)
		sim_indirects_drop(port);
	pthread_mutex_unlock(&port->lock);
}

void sim_rules_drop_all(struct sim_port *port)
{
	pthread_mutex_lock(&port->flow->calls);
	drop(port, false);
	pthread_mutex_unlock(&port->flow->calls);
}

void sim_rules_stopped(struct sim_port *port)
{
	if (port->async != NULL)
		sim_async_stopped(port);
	if (!port->args.profile.keeps_rules)
		sim_rules_drop_all(port);
}

void sim_rules_fini(struct sim_port *port)
{
	struct sim_flow *flow = port->flow;

	if (flow == NULL)
		return;
	drop(port, true);
	sim_table_destroy(port->table);
	port->table = NULL;
	sim_input_sets_destroy(port->input_sets);
	port->input_sets = NULL;
	sim_actions_pool_fini(&port->flow->actions_pool);
	for (unsigned i = 0; i < RTE_DIM(flow->rules); i++)
		sim_slab_fini(&flow->rules[i]);
	sim_slab_fini(&flow->extras);
	sim_slab_fini(&flow->handles);
	pthread_mutex_destroy(&flow->calls);
	port->flow = NULL;
	free(flow);
}

const struct rte_flow_ops *sim_flow_ops_get(const struct sim_port *port)
{
	const struct sim_profile *profile = &port->args.profile;

	return profile->sync || profile->async ? &port->flow->ops : NULL;
}
