/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/calls/template.h"

#include <errno.h>
#include <stdlib.h>

#include "drivers/flowsim/calls/async.h"
#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_read.h"

static struct sim_fault_at fault_of(const void *cause, const char *message)
{
	return (struct sim_fault_at){cause, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, message};
}

/* Refuses and unlocks. */
static int refuse_locked(struct sim_port *port, struct rte_flow_error *error, int code,
	const struct sim_fault_at *fault)
{
	pthread_mutex_unlock(&port->lock);
	return sim_refuse(port, error, code, fault);
}

struct rte_flow_pattern_template *sim_pattern_template_create(struct rte_eth_dev *dev,
	const struct rte_flow_pattern_template_attr *attr, const struct rte_flow_item items[],
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct rte_flow_pattern_template *template = calloc(1, sizeof(*template));
	struct sim_fault_at fault = fault_of(NULL, "no memory");
	int ret = -ENOMEM;

	pthread_mutex_lock(&port->lock);
	if (template != NULL) {
		template->port = port;
		template->domains[SIM_INGRESS] = attr->ingress;
		template->domains[SIM_EGRESS] = attr->egress;
		template->domains[SIM_TRANSFER] = attr->transfer;
		ret = sim_pattern_template_read(
			&template->read, items, attr->relaxed_matching, &fault);
	}
	if (ret < 0) {
		free(template);
		refuse_locked(port, error, ret, &fault);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&port->async->pattern_templates, template, link);
	pthread_mutex_unlock(&port->lock);
	return template;
}

int sim_pattern_template_destroy(struct rte_eth_dev *dev,
	struct rte_flow_pattern_template *template, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = fault_of(template, "no such pattern template");
	struct rte_flow_pattern_template *found;
	int ret = -ENOENT;

	pthread_mutex_lock(&port->lock);
	TAILQ_FOREACH(found, &port->async->pattern_templates, link) {
		if (found == template)
			break;
	}
	if (found != NULL && found->users > 0) {
		fault.message = "a table has this template";
		ret = -EBUSY;
	}
	if (found == NULL || ret == -EBUSY)
		return refuse_locked(port, error, ret, &fault);
	TAILQ_REMOVE(&port->async->pattern_templates, found, link);
	pthread_mutex_unlock(&port->lock);
	free(found);
	return 0;
}

struct rte_flow_actions_template *sim_actions_template_create(struct rte_eth_dev *dev,
	const struct rte_flow_actions_template_attr *attr, const struct rte_flow_action actions[],
	const struct rte_flow_action masks[], struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct rte_flow_actions_template *template = calloc(1, sizeof(*template));
	struct sim_fault_at fault = fault_of(NULL, "no memory");
	int ret = -ENOMEM;

	pthread_mutex_lock(&port->lock);
	if (template != NULL) {
		template->port = port;
		template->domains[SIM_INGRESS] = attr->ingress;
		template->domains[SIM_EGRESS] = attr->egress;
		template->domains[SIM_TRANSFER] = attr->transfer;
		ret = sim_actions_compile(template, actions, masks, &fault);
	}
	if (ret < 0) {
		if (template != NULL)
			free(template->list);
		free(template);
		refuse_locked(port, error, ret, &fault);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&port->async->actions_templates, template, link);
	pthread_mutex_unlock(&port->lock);
	return template;
}

int sim_actions_template_destroy(struct rte_eth_dev *dev,
	struct rte_flow_actions_template *template, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = fault_of(template, "no such actions template");
	struct rte_flow_actions_template *found;
	int ret = -ENOENT;

	pthread_mutex_lock(&port->lock);
	TAILQ_FOREACH(found, &port->async->actions_templates, link) {
		if (found == template)
			break;
	}
	if (found != NULL && found->users > 0) {
		fault.message = "a table has this template";
		ret = -EBUSY;
	}
	if (found == NULL || ret == -EBUSY)
		return refuse_locked(port, error, ret, &fault);
	TAILQ_REMOVE(&port->async->actions_templates, found, link);
	pthread_mutex_unlock(&port->lock);
	free(found->list);
	free(found);
	return 0;
}

static int read_table_attr(struct rte_flow_template_table *table,
	const struct rte_flow_template_table_attr *attr, struct sim_fault_at *fault)
{
	const struct rte_flow_attr *flow = &attr->flow_attr;

	*fault = fault_of(attr, "a table is ingress, egress or transfer");
	fault->type = RTE_FLOW_ERROR_TYPE_ATTR;
	if ((flow->ingress && flow->egress) || (!flow->ingress && !flow->egress && !flow->transfer))
		return -EINVAL;
	if (attr->nb_flows == 0) {
		fault->message = "a table for no rule";
		return -EINVAL;
	}
	if (!sim_table_by_pattern(attr)) {
		fault->message = "rules are put in by pattern only";
		return -ENOTSUP;
	}
	table->domain = flow->transfer ? SIM_TRANSFER : flow->egress ? SIM_EGRESS : SIM_INGRESS;
	table->group = flow->group;
	table->priority = flow->priority;
	table->n_flows = attr->nb_flows;
	return 0;
}

/* Rules that give no more than a quick template takes are all alike: parsed once, as this list. */
static void list_of_base(
	const struct rte_flow_actions_template *template, struct rte_flow_action list[])
{
	static const struct rte_flow_action_mark mark = {0};
	static const struct rte_flow_action_queue queue = {0};
	static const struct rte_flow_action_age age = {.timeout = 1};
	static const uint16_t queues[] = {0};
	static const struct rte_flow_action_rss rss = {.queue_num = 1, .queue = queues};

	for (unsigned i = 0; i <= template->n; i++) {
		list[i] = template->list[i];
		if (i == template->n || template->given[i] == SIM_GIVEN_NOTHING)
			continue;
		if (list[i].type == RTE_FLOW_ACTION_TYPE_INDIRECT)
			list[i].type = template->behind[i];
		if (list[i].type == RTE_FLOW_ACTION_TYPE_MARK)
			list[i].conf = &mark;
		else if (list[i].type == RTE_FLOW_ACTION_TYPE_QUEUE)
			list[i].conf = &queue;
		else if (list[i].type == RTE_FLOW_ACTION_TYPE_AGE)
			list[i].conf =
				template->given[i] == SIM_GIVEN_CONTEXT ? list[i].conf : &age;
		else if (list[i].type == RTE_FLOW_ACTION_TYPE_RSS)
			list[i].conf = &rss;
	}
}

static int add_actions(struct rte_flow_template_table *table, struct sim_actions_use *use,
	struct rte_flow_actions_template *template, struct sim_fault_at *fault)
{
	struct rte_flow_action list[SIM_MAX_ACTIONS];

	use->template = template;
	template->users++;
	use->quick = template->quick;
	if (!use->quick)
		return 0;
	list_of_base(template, list);
	int ret = sim_actions_parse(&use->base, table->port, table->group, list, fault);

	if (ret < 0) {
		/* the list is ours, and goes */
		fault->cause = NULL;
		return ret;
	}
	if (use->base.sampled != NULL) {
		sim_actions_fini(&use->base);
		use->quick = false;
	}
	return 0;
}

static int add_pattern(struct rte_flow_template_table *table, struct sim_template_use *use,
	struct rte_flow_pattern_template *template, struct sim_fault_at *fault)
{
	use->use.left = &table->left;
	use->table = table;
	use->template = template;
	template->users++;
	use->sort = sim_table_class(
		table->port->table, table->domain, table->group, &template->read.pattern);
	if (use->sort == NULL) {
		*fault = fault_of(NULL, "no memory");
		return -ENOMEM;
	}
	use->sort->pins++;
	return 0;
}

/* What this kind of NIC does not do is refused here and not for each rule, where that can be known. */
static int check_combinations(struct rte_flow_template_table *table, struct sim_fault_at *fault)
{
	struct sim_draft draft = {
		.domain = table->domain, .group = table->group, .priority = table->priority};

	for (unsigned i = 0; i < table->n_patterns; i++) {
		draft.pattern = table->patterns[i].template->read.pattern;
		for (unsigned j = 0; j < table->n_actions; j++) {
			if (!table->actions[j].quick)
				continue;
			draft.actions = table->actions[j].base;
			int ret = sim_profile_check(&table->port->args.profile, &draft, fault);

			if (ret < 0) {
				fault->cause = NULL;
				return ret;
			}
		}
	}
	return 0;
}

static int take_templates(struct rte_flow_template_table *table,
	struct rte_flow_pattern_template *patterns[], unsigned n_patterns,
	struct rte_flow_actions_template *actions[], unsigned n_actions, struct sim_fault_at *fault)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < n_patterns; i++) {
		*fault = fault_of(patterns[i], "not a pattern template of this port and direction");
		if (patterns[i] == NULL || patterns[i]->port != table->port ||
			!patterns[i]->domains[table->domain])
			return -EINVAL;
		ret = add_pattern(table, &table->patterns[table->n_patterns++], patterns[i], fault);
	}
	for (unsigned i = 0; ret == 0 && i < n_actions; i++) {
		*fault = fault_of(actions[i], "not an actions template of this port and direction");
		if (actions[i] == NULL || actions[i]->port != table->port ||
			!actions[i]->domains[table->domain])
			return -EINVAL;
		ret = add_actions(table, &table->actions[table->n_actions++], actions[i], fault);
	}
	return ret == 0 ? check_combinations(table, fault) : ret;
}

/* Its rules have gone. */
static void free_table(struct rte_flow_template_table *table)
{
	for (unsigned i = 0; i < table->n_patterns; i++) {
		table->patterns[i].template->users--;
		if (table->patterns[i].sort != NULL)
			table->patterns[i].sort->pins--;
	}
	for (unsigned i = 0; i < table->n_actions; i++) {
		table->actions[i].template->users--;
		sim_actions_use_fini(table->port, &table->actions[i]);
	}
	table->magic = 0;
	free(table->actions);
	free(table);
}

static struct rte_flow_template_table *new_table(struct sim_port *port, unsigned n_actions)
{
	struct rte_flow_template_table *table = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*table));

	if (table == NULL)
		return NULL;
	memset(table, 0, sizeof(*table));
	table->port = port;
	table->actions = calloc(n_actions, sizeof(table->actions[0]));
	if (table->actions == NULL) {
		free(table);
		return NULL;
	}
	return table;
}

struct rte_flow_template_table *sim_template_table_create(struct rte_eth_dev *dev,
	const struct rte_flow_template_table_attr *attr,
	struct rte_flow_pattern_template *patterns[], uint8_t n_patterns,
	struct rte_flow_actions_template *actions[], uint8_t n_actions,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = fault_of(NULL, "no templates, or too many in one table");
	struct rte_flow_template_table *table;

	if (n_patterns == 0 || n_patterns > SIM_TEMPLATE_MAX_TABLE || n_actions == 0 ||
		n_actions > SIM_TEMPLATE_MAX_TABLE) {
		sim_refuse(port, error, -EINVAL, &fault);
		return NULL;
	}
	table = new_table(port, n_actions);
	if (table == NULL) {
		fault.message = "no memory";
		sim_refuse(port, error, -ENOMEM, &fault);
		return NULL;
	}
	int ret = read_table_attr(table, attr, &fault);

	pthread_mutex_lock(&port->lock);
	if (ret == 0)
		ret = take_templates(table, patterns, n_patterns, actions, n_actions, &fault);
	if (ret < 0) {
		free_table(table);
		refuse_locked(port, error, ret, &fault);
		return NULL;
	}
	table->magic = SIM_TABLE_MAGIC;
	TAILQ_INSERT_TAIL(&port->async->tables, table, link);
	pthread_mutex_unlock(&port->lock);
	return table;
}

int sim_template_table_destroy(struct rte_eth_dev *dev, struct rte_flow_template_table *table,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = fault_of(table, "no such table");
	struct rte_flow_template_table *found;
	int ret = -ENOENT;

	pthread_mutex_lock(&port->lock);
	TAILQ_FOREACH(found, &port->async->tables, link) {
		if (found == table)
			break;
	}
	if (found != NULL && __atomic_load_n(&found->taken, __ATOMIC_RELAXED) != found->left) {
		fault.message = "rules are in this table";
		ret = -EBUSY;
	}
	if (found == NULL || ret == -EBUSY)
		return refuse_locked(port, error, ret, &fault);
	TAILQ_REMOVE(&port->async->tables, found, link);
	free_table(found);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

void sim_templates_free(struct sim_async *async)
{
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;

	while ((table = TAILQ_FIRST(&async->tables)) != NULL) {
		TAILQ_REMOVE(&async->tables, table, link);
		free_table(table);
	}
	while ((pattern = TAILQ_FIRST(&async->pattern_templates)) != NULL) {
		TAILQ_REMOVE(&async->pattern_templates, pattern, link);
		free(pattern);
	}
	while ((actions = TAILQ_FIRST(&async->actions_templates)) != NULL) {
		TAILQ_REMOVE(&async->actions_templates, actions, link);
		free(actions->list);
		free(actions);
	}
}

bool sim_template_take(struct rte_flow_template_table *table)
{
	uint64_t taken = __atomic_fetch_add(&table->taken, 1, __ATOMIC_RELAXED);

	/* what `left` was at an earlier look does for nearly all */
	if (taken - __atomic_load_n(&table->left_seen, __ATOMIC_RELAXED) < table->n_flows)
		return true;
	uint64_t left = __atomic_load_n(&table->left, __ATOMIC_RELAXED);

	__atomic_store_n(&table->left_seen, left, __ATOMIC_RELAXED);
	if (taken - left < table->n_flows)
		return true;
	sim_template_untake(table);
	return false;
}

void sim_template_untake(struct rte_flow_template_table *table)
{
	__atomic_fetch_sub(&table->taken, 1, __ATOMIC_RELAXED);
}
