/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/rule_life.h"

#include <errno.h>
#include <string.h>

#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/extra.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/rules/flow_state.h"

static struct sim_slab *slab_of(struct sim_port *port, unsigned n_words)
{
	return &port->flow->rules[(n_words + 1) / 2];
}

struct rte_flow *sim_rule_alloc(struct sim_port *port, unsigned n_words)
{
	return sim_slab_alloc(slab_of(port, n_words), sizeof(struct rte_flow));
}

void sim_rule_free(struct sim_port *port, struct rte_flow *rule, unsigned n_words)
{
	sim_slab_free(slab_of(port, n_words), rule);
}

bool sim_rule_is(const struct sim_port *port, const struct rte_flow *flow)
{
	for (unsigned i = 0; i < RTE_DIM(port->flow->rules); i++)
		if (sim_slab_has(&port->flow->rules[i], flow))
			return flow->magic == SIM_RULE_MAGIC && !flow->ghost;
	return false;
}

/* Faults, and room: as many as the size says, wherever they are in their lives. */
static int may_enter(struct sim_port *port, struct sim_fault_at *fault)
{
	const struct sim_profile *profile = &port->args.profile;
	int ret = sim_fault_fails(port, SIM_OP_CREATE);

	*fault = (struct sim_fault_at){.cause = NULL};
	if (ret < 0)
		return ret;
	if (profile->size == UINT32_MAX || port->n_rules < profile->size)
		return 0;
	fault->type = RTE_FLOW_ERROR_TYPE_HANDLE;
	fault->message = "the table is full";
	return profile->quirks & SIM_QUIRK_FULL_ERRNO ? -profile->full_errno : -ENOSPC;
}

static bool handle_is(const struct sim_port *port, const struct sim_indirect *handle)
{
	return handle == NULL || sim_indirect_is(port, handle);
}

static void use_handles(struct rte_flow *rule)
{
	struct sim_indirect *rss = rule->actions->rss_handle;

	if (rule->count_handle != NULL) {
		rule->count_handle->users++;
		TAILQ_INSERT_TAIL(&rule->count_handle->rules, rule->extra, of_count);
	}
	if (rule->age_handle != NULL) {
		rule->age_handle->users++;
		TAILQ_INSERT_TAIL(&rule->age_handle->rules, rule->extra, of_age);
	}
	if (rss != NULL)
		rss->users++;
}

/* The counter of rules that are gone stays in the handle. */
static void leave_count(struct sim_indirect *handle, const struct rte_flow *rule)
{
	handle->count.hits += rule->count.hits;
	handle->count.bytes += rule->count.bytes;
	handle->users--;
}

static void leave_handles(struct rte_flow *rule)
{
	struct sim_indirect *rss = rule->actions->rss_handle;

	if (rule->count_handle != NULL) {
		TAILQ_REMOVE(&rule->count_handle->rules, rule->extra, of_count);
		leave_count(rule->count_handle, rule);
	}
	if (rule->age_handle != NULL) {
		TAILQ_REMOVE(&rule->age_handle->rules, rule->extra, of_age);
		leave_count(rule->age_handle, rule);
	}
	if (rss != NULL)
		rss->users--;
}

static int make_extra(
	struct sim_port *port, struct rte_flow *rule, const struct sim_actions *actions)
{
	if (!actions->count && !actions->age && rule->count_handle == NULL &&
		rule->age_handle == NULL)
		return 0;
	rule->extra = sim_slab_alloc(&port->flow->extras, sizeof(*rule->extra));
	if (rule->extra == NULL)
		return -ENOMEM;
	rule->extra->rule = rule;
	rule->extra->age.rule = rule;
	rule->extra->age.context = rule->age_context != NULL ? rule->age_context : rule;
	return 0;
}

/* What nothing stands in the way of any more but memory, and handles that went meanwhile. */
static int enter(struct sim_port *port, struct rte_flow *rule, struct sim_class *sort,
	struct sim_actions *actions)
{
	int ret;

	if (rule->count_handle == NULL)
		rule->count_handle = actions->count_handle;
	if (rule->age_handle == NULL)
		rule->age_handle = actions->age_handle;
	if (!handle_is(port, rule->count_handle) || !handle_is(port, rule->age_handle) ||
		!handle_is(port, actions->rss_handle))
		return -ENOENT;
	ret = make_extra(port, rule, actions);
	if (ret < 0)
		return ret;
	rule->actions = actions;
	rule->sort = sort;
	sort->pins++;
	rule->state = SIM_RULE_PENDING;
	rule->serial = ++port->serial;
	rule->magic = SIM_RULE_MAGIC;
	TAILQ_INSERT_TAIL(&port->rules, rule, link);
	port->n_rules++;
	use_handles(rule);
	return 0;
}

int sim_rule_admit(struct sim_port *port, struct rte_flow *rule, struct sim_class *sort,
	struct sim_actions *actions, struct sim_fault_at *fault)
{
	int ret = may_enter(port, fault);

	if (ret == 0)
		ret = enter(port, rule, sort, actions);
	if (ret < 0)
		port->told.refused++;
	return ret;
}

/* From the draft, but for its actions: these are shared from here on, with what is the rule's own out
 * of them. */
static struct rte_flow *rule_of(
	struct sim_port *port, const struct sim_draft *draft, const struct sim_class *sort)
{
	const struct sim_pattern *pattern = &draft->pattern;
	struct rte_flow *rule = sim_rule_alloc(port, sort->shape.n_words);

	if (rule == NULL)
		return NULL;
	rule->port = port;
	rule->domain = draft->domain;
	rule->group = draft->group;
	rule->priority = draft->priority;
	rule->ingress = pattern->port == SIM_NO_PORT ? port->id : pattern->port;
	rule->mark_id = draft->actions.mark_id;
	rule->age_context = draft->actions.age_context;
	rule->count_handle = draft->actions.count_handle;
	rule->age_handle = draft->actions.age_handle;
	for (unsigned i = 0; i < pattern->n_words; i++)
		rule->values[i] = pattern->value[pattern->words[i]];
	return rule;
}

static int make(struct sim_port *port, struct sim_draft *draft, struct rte_flow **made)
{
	struct sim_class *sort =
		sim_table_class(port->table, draft->domain, draft->group, &draft->pattern);
	struct rte_flow *rule = sort == NULL ? NULL : rule_of(port, draft, sort);
	struct sim_actions *actions;
	int ret;

	if (rule == NULL)
		return -ENOMEM;
	draft->actions.count_handle = NULL;
	draft->actions.age_handle = NULL;
	actions = sim_actions_hold(port, &draft->actions);
	if (actions == NULL) {
		ret = -errno;
		draft->actions.count_handle = rule->count_handle;
		draft->actions.age_handle = rule->age_handle;
		sim_rule_free(port, rule, sort->shape.n_words);
		return ret;
	}
	memset(&draft->actions, 0, sizeof(draft->actions));
	ret = enter(port, rule, sort, actions);
	if (ret < 0) {
		sim_actions_release(port, actions);
		sim_rule_free(port, rule, sort->shape.n_words);
		return ret;
	}
	*made = rule;
	return 0;
}

struct rte_flow *sim_rule_create(
	struct sim_port *port, struct sim_draft *draft, int *error, struct sim_fault_at *fault)
{
	bool counted = port->args.profile.input_set == SIM_INPUT_PER_TYPE;
	struct rte_flow *rule = NULL;
	int ret = may_enter(port, fault);

	if (ret == 0 && counted)
		ret = sim_input_sets_add(port->input_sets, &draft->pattern, fault);
	if (ret == 0) {
		ret = make(port, draft, &rule);
		if (ret < 0 && counted)
			sim_input_sets_remove(port->input_sets, &draft->pattern);
		if (rule != NULL)
			rule->in_input_sets = counted;
	}
	if (ret < 0)
		port->told.refused++;
	*error = ret;
	return rule;
}

/* A round that is empty now, or may be, is the firmware's to turn: packets that the NIC keeps to itself. */
static void mind_rounds(struct sim_port *port)
{
	if (port->resolver != NULL && port->flow->n_keepers > 0)
		sim_firmware_nudge(port);
}

static bool keeps_packets(const struct rte_flow *rule)
{
	return rule->actions->fate == SIM_FATE_DROP || rule->actions->fate == SIM_FATE_SEND;
}

static void put_in(struct rte_flow *rule)
{
	struct sim_port *port = rule->port;

	pthread_rwlock_wrlock(&port->rules_lock);
	sim_table_insert(port->table, rule);
	pthread_rwlock_unlock(&port->rules_lock);
	rule->in_table = true;
	port->flow->n_keepers += keeps_packets(rule);
	sim_resolver_changed(port->resolver, rule);
	mind_rounds(port);
}

/* After this nobody who receives knows the rule, and its packets are counted to the last. */
static void take_out(struct rte_flow *rule)
{
	struct sim_port *port = rule->port;

	if (!rule->in_table)
		return;
	pthread_rwlock_wrlock(&port->rules_lock);
	sim_table_remove(port->table, rule);
	pthread_rwlock_unlock(&port->rules_lock);
	rule->in_table = false;
	sim_resolver_changed(port->resolver, rule);
	port->flow->n_keepers -= keeps_packets(rule);
	mind_rounds(port);
}

/* The fault EVICT: the oldest other live rule goes. Nothing to evict is no chance. */
static void evict_oldest(struct sim_port *port, const struct rte_flow *rule)
{
	struct rte_flow *oldest;

	if (!sim_fault_is_on(&port->faults, SIM_FAULT_EVICT))
		return;
	TAILQ_FOREACH(oldest, &port->rules, link) {
		if (oldest != rule && oldest->state == SIM_RULE_LIVE)
			break;
	}
	if (oldest != NULL && sim_fault_strikes(port, SIM_FAULT_EVICT))
		sim_rule_forget(oldest);
}

void sim_rule_go_live(struct rte_flow *rule)
{
	struct sim_port *port = rule->port;
	enum sim_rule_state state = SIM_RULE_LIVE;

	if (!rule->ghost)
		port->told.created++;
	if (port->dead) {
		state = SIM_RULE_GONE;
		port->told.forgotten++;
	} else if (sim_fault_strikes(port, SIM_FAULT_LOSE)) {
		state = SIM_RULE_LOST;
		port->told.lost++;
	}
	if (rule->state == SIM_RULE_PENDING)
		rule->state = state;
	if (state == SIM_RULE_LIVE)
		put_in(rule);
	if (rule->actions->age && rule->age_handle == NULL)
		sim_age_start(port, &rule->extra->age, rule->actions->age_seconds);
	if (state == SIM_RULE_LIVE && rule->state == SIM_RULE_LIVE)
		evict_oldest(port, rule);
}

void sim_rule_forget(struct rte_flow *rule)
{
	if (!rule->in_table)
		return;
	take_out(rule);
	rule->port->told.forgotten++;
	if (rule->state == SIM_RULE_LIVE)
		rule->state = SIM_RULE_GONE;
}

void sim_rule_destroy(struct rte_flow *rule)
{
	struct sim_port *port = rule->port;
	struct sim_class *sort = rule->sort;

	take_out(rule);
	if (rule->use != NULL)
		sim_count_add(rule->use->left, 1);
	if (!rule->ghost)
		port->told.destroyed++;
	leave_handles(rule);
	if (rule->extra != NULL) {
		sim_age_stop(port, &rule->extra->age);
		sim_slab_free(&port->flow->extras, rule->extra);
	}
	if (rule->in_input_sets)
		sim_input_sets_remove(port->input_sets, &sort->shape);
	sim_actions_release(port, rule->actions);
	sort->pins--;
	TAILQ_REMOVE(&port->rules, rule, link);
	port->n_rules--;
	rule->magic = 0;
	sim_rule_free(port, rule, sort->shape.n_words);
}

struct sim_count sim_rule_count(const struct rte_flow *rule)
{
	struct sim_count count = {
		.hits = sim_count_get(&rule->count.hits),
		.bytes = sim_count_get(&rule->count.bytes),
	};

	if (rule->in_table) {
		struct sim_count more = sim_resolver_count(rule->port->resolver, rule);

		count.hits += more.hits;
		count.bytes += more.bytes;
	}
	return count;
}
