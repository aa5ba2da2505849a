/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/calls/template.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/actions_read.h"

/* Bytes of an action's conf, where a mask over it can say something. */
static size_t conf_size(enum rte_flow_action_type type)
{
	static const struct {
		enum rte_flow_action_type type;
		size_t size;
	} sizes[] = {
		{RTE_FLOW_ACTION_TYPE_MARK, sizeof(struct rte_flow_action_mark)},
		{RTE_FLOW_ACTION_TYPE_QUEUE, sizeof(struct rte_flow_action_queue)},
		{RTE_FLOW_ACTION_TYPE_JUMP, sizeof(struct rte_flow_action_jump)},
		{RTE_FLOW_ACTION_TYPE_RSS, sizeof(struct rte_flow_action_rss)},
		{RTE_FLOW_ACTION_TYPE_PORT_ID, sizeof(struct rte_flow_action_port_id)},
		{RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, sizeof(struct rte_flow_action_ethdev)},
		{RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR, sizeof(struct rte_flow_action_ethdev)},
		{RTE_FLOW_ACTION_TYPE_METER, sizeof(struct rte_flow_action_meter)},
		{RTE_FLOW_ACTION_TYPE_SAMPLE, sizeof(struct rte_flow_action_sample)},
		{RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN, sizeof(struct rte_flow_action_of_push_vlan)},
		{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID,
			sizeof(struct rte_flow_action_of_set_vlan_vid)},
		{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP,
			sizeof(struct rte_flow_action_of_set_vlan_pcp)},
		{RTE_FLOW_ACTION_TYPE_SET_MAC_SRC, sizeof(struct rte_flow_action_set_mac)},
		{RTE_FLOW_ACTION_TYPE_SET_MAC_DST, sizeof(struct rte_flow_action_set_mac)},
		{RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, sizeof(struct rte_flow_action_set_ipv4)},
		{RTE_FLOW_ACTION_TYPE_SET_IPV4_DST, sizeof(struct rte_flow_action_set_ipv4)},
		{RTE_FLOW_ACTION_TYPE_SET_IPV6_SRC, sizeof(struct rte_flow_action_set_ipv6)},
		{RTE_FLOW_ACTION_TYPE_SET_IPV6_DST, sizeof(struct rte_flow_action_set_ipv6)},
		{RTE_FLOW_ACTION_TYPE_SET_TP_SRC, sizeof(struct rte_flow_action_set_tp)},
		{RTE_FLOW_ACTION_TYPE_SET_TP_DST, sizeof(struct rte_flow_action_set_tp)},
	};

	for (size_t i = 0; i < RTE_DIM(sizes); i++)
		if (sizes[i].type == type)
			return sizes[i].size;
	return 0;
}

static bool is_zero(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		if (at[i] != 0)
			return false;
	return true;
}

/* A mask that says anything of an action fixes it, but for AGE, of which it can fix either half. */
static enum sim_given given_of(enum rte_flow_action_type type, const void *mask)
{
	const struct rte_flow_action_age *age = mask;

	if (type == RTE_FLOW_ACTION_TYPE_AGE) {
		if (age == NULL || (age->timeout == 0 && age->context == NULL))
			return SIM_GIVEN_ALL;
		if (age->timeout == 0)
			return SIM_GIVEN_TIMEOUT;
		return age->context == NULL ? SIM_GIVEN_CONTEXT : SIM_GIVEN_NOTHING;
	}
	if (type == RTE_FLOW_ACTION_TYPE_INDIRECT)
		return mask == NULL ? SIM_GIVEN_ALL : SIM_GIVEN_NOTHING;
	if (conf_size(type) == 0)
		return SIM_GIVEN_NOTHING;
	return mask == NULL || is_zero(mask, conf_size(type)) ? SIM_GIVEN_ALL : SIM_GIVEN_NOTHING;
}

/* Which action of the list a rule's word goes to; what has no such place makes it not quick. */
static void place_given(struct rte_flow_actions_template *template, unsigned i)
{
	int8_t at = (int8_t)i;
	enum rte_flow_action_type type = template->list[i].type;

	if (template->given[i] == SIM_GIVEN_NOTHING)
		return;
	if (type == RTE_FLOW_ACTION_TYPE_INDIRECT)
		type = template->behind[i];
	else if (type == RTE_FLOW_ACTION_TYPE_RSS)
		type = RTE_FLOW_ACTION_TYPE_END;
	bool indirect = template->list[i].type == RTE_FLOW_ACTION_TYPE_INDIRECT;

	if (type == RTE_FLOW_ACTION_TYPE_MARK && !indirect)
		template->mark = at;
	else if (type == RTE_FLOW_ACTION_TYPE_QUEUE && !indirect)
		template->queue = at;
	else if (type == RTE_FLOW_ACTION_TYPE_AGE)
		*(indirect ? &template->age_handle : &template->age) = at;
	else if (type == RTE_FLOW_ACTION_TYPE_COUNT)
		template->count_handle = at;
	else if (type == RTE_FLOW_ACTION_TYPE_RSS)
		template->rss_handle = at;
	else
		template->quick = false;
}

/* What the last of several means is for the parser to say. */
static bool is_repeated(const struct rte_flow_actions_template *template, unsigned at)
{
	for (unsigned i = 0; i < template->n; i++) {
		enum rte_flow_action_type type = template->list[i].type;
		enum rte_flow_action_type other = template->list[at].type;

		type = type == RTE_FLOW_ACTION_TYPE_INDIRECT ? template->behind[i] : type;
		other = other == RTE_FLOW_ACTION_TYPE_INDIRECT ? template->behind[at] : other;
		if (i != at && type == other)
			return true;
	}
	return false;
}

static int refuse_action(
	struct sim_fault_at *fault, const struct rte_flow_action *action, int code, const char *why)
{
	*fault = (struct sim_fault_at){action, RTE_FLOW_ERROR_TYPE_ACTION, why};
	return code;
}

/* Pointers in what is copied lead to lists: that they end, and where, is known once it was parsed. */
static int check_deep(
	struct sim_port *port, const struct rte_flow_action *action, struct sim_fault_at *fault)
{
	const struct rte_flow_action list[] = {*action, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct sim_actions actions;

	if (action->type != RTE_FLOW_ACTION_TYPE_RSS && action->type != RTE_FLOW_ACTION_TYPE_SAMPLE)
		return 0;
	int ret = sim_actions_parse(&actions, port, 0, list, fault);

	if (ret < 0)
		return refuse_action(fault, action, ret, fault->message);
	sim_actions_fini(&actions);
	return 0;
}

/* One action, as the list for the copy has it. */
static int compile_one(struct rte_flow_actions_template *template, unsigned i,
	const struct rte_flow_action *action, const struct rte_flow_action *mask,
	struct rte_flow_action *out, struct sim_fault_at *fault)
{
	bool indirect = action->type == RTE_FLOW_ACTION_TYPE_INDIRECT;

	if (!indirect && mask->type != action->type)
		return refuse_action(fault, mask, -EINVAL, "its mask is of another action");
	if (sim_action_bit(action->type) < 0)
		return refuse_action(fault, action, -ENOTSUP, "this NIC has no such action");
	template->behind[i] = mask->type;
	template->given[i] = (uint8_t)given_of(action->type, mask->conf);
	*out = (struct rte_flow_action){.type = action->type};
	if (template->given[i] == SIM_GIVEN_ALL || indirect)
		return 0;
	if (action->type != RTE_FLOW_ACTION_TYPE_AGE && conf_size(action->type) == 0)
		return 0;
	if (action->conf == NULL)
		return refuse_action(fault, action, -EINVAL, "fixed by its mask, and not said");
	out->conf = action->conf;
	return check_deep(template->port, action, fault);
}

static int copy_list(struct rte_flow_actions_template *template,
	const struct rte_flow_action list[], const struct rte_flow_action actions[],
	struct sim_fault_at *fault)
{
	int size = rte_flow_conv(RTE_FLOW_CONV_OP_ACTIONS, NULL, 0, list, NULL);

	if (size < 0)
		return refuse_action(fault, actions, size, "actions that cannot be copied");
	template->list = malloc((size_t)size);
	if (template->list == NULL)
		return refuse_action(fault, NULL, -ENOMEM, "no memory");
	size = rte_flow_conv(RTE_FLOW_CONV_OP_ACTIONS, template->list, (size_t)size, list, NULL);
	if (size < 0)
		return refuse_action(fault, actions, size, "actions that cannot be copied");
	/* a handle is not what it points to */
	for (unsigned i = 0; i < template->n; i++)
		if (template->list[i].type == RTE_FLOW_ACTION_TYPE_INDIRECT &&
			template->given[i] == SIM_GIVEN_NOTHING)
			template->list[i].conf = actions[i].conf;
	return 0;
}

int sim_actions_compile(struct rte_flow_actions_template *template,
	const struct rte_flow_action actions[], const struct rte_flow_action masks[],
	struct sim_fault_at *fault)
{
	struct rte_flow_action list[SIM_MAX_ACTIONS];
	unsigned n = 0;
	int ret = 0;

	if (actions == NULL || masks == NULL)
		return refuse_action(fault, NULL, -EINVAL, "no list of actions");
	for (; ret == 0 && n < SIM_MAX_ACTIONS && actions[n].type != RTE_FLOW_ACTION_TYPE_END; n++)
		ret = compile_one(template, n, &actions[n], &masks[n], &list[n], fault);
	if (ret < 0)
		return ret;
	if (n == SIM_MAX_ACTIONS)
		return refuse_action(fault, actions, -EINVAL, "no END among 32 actions");
	list[n] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_END};
	template->n = (uint8_t)n;
	ret = copy_list(template, list, actions, fault);
	if (ret < 0)
		return ret;
	template->quick = true;
	template->mark = template->queue = template->age = -1;
	template->count_handle = template->age_handle = template->rss_handle = -1;
	for (unsigned i = 0; i < n; i++) {
		place_given(template, i);
		if (template->given[i] != SIM_GIVEN_NOTHING && is_repeated(template, i))
			template->quick = false;
	}
	return 0;
}

int sim_actions_merge(const struct rte_flow_actions_template *template,
	const struct rte_flow_action given[], struct rte_flow_action list[SIM_MAX_ACTIONS],
	struct rte_flow_action_age ages[SIM_MAX_ACTIONS], struct sim_fault_at *fault)
{
	for (unsigned i = 0; i <= template->n; i++) {
		const struct rte_flow_action *fixed = &template->list[i];

		list[i] = *fixed;
		if (given[i].type != fixed->type)
			return refuse_action(
				fault, &given[i], -EINVAL, "another action than in the template");
		if (i == template->n || template->given[i] == SIM_GIVEN_NOTHING)
			continue;
		list[i].conf = given[i].conf;
		if (template->given[i] == SIM_GIVEN_ALL || given[i].conf == NULL)
			continue;
		ages[i] = *(const struct rte_flow_action_age *)fixed->conf;
		if (template->given[i] == SIM_GIVEN_CONTEXT)
			ages[i].context =
				((const struct rte_flow_action_age *)given[i].conf)->context;
		else
			ages[i].timeout =
				((const struct rte_flow_action_age *)given[i].conf)->timeout;
		list[i].conf = &ages[i];
	}
	return 0;
}

static bool choose_age(const struct rte_flow_actions_template *template,
	const struct rte_flow_action given[], struct sim_choice *choice, void **context)
{
	unsigned at = (unsigned)template->age;
	const struct rte_flow_action_age *age = given[at].conf;
	const struct rte_flow_action_age *fixed = template->list[at].conf;

	if (age == NULL)
		return false;
	choice->age_seconds =
		template->given[at] == SIM_GIVEN_CONTEXT ? fixed->timeout : age->timeout;
	*context = template->given[at] == SIM_GIVEN_TIMEOUT ? fixed->context : age->context;
	return choice->age_seconds != 0;
}

static bool choose_handle(
	int8_t at, const struct rte_flow_action given[], struct sim_indirect **handle)
{
	if (at < 0)
		return true;
	*handle = (struct sim_indirect *)(uintptr_t)given[at].conf;
	return *handle != NULL;
}

bool sim_actions_choose(const struct sim_actions_use *use, const struct rte_flow_action given[],
	struct sim_choice *choice, struct rte_flow *rule)
{
	const struct rte_flow_actions_template *template = use->template;
	const struct sim_port *port = template->port;

	if (!use->quick)
		return false;
	for (unsigned i = 0; i <= template->n; i++)
		if (given[i].type != template->list[i].type)
			return false;
	*choice =
		(struct sim_choice){.queue = use->base.queue, .age_seconds = use->base.age_seconds};
	rule->mark_id = use->base.mark_id;
	rule->age_context = use->base.age_context;
	rule->count_handle = use->base.count_handle;
	rule->age_handle = use->base.age_handle;
	if (template->mark >= 0) {
		const struct rte_flow_action_mark *mark = given[template->mark].conf;

		/* what does not fit is refused by those who know the words for it */
		if (mark == NULL || (uint64_t)mark->id >> port->args.profile.mark_bits != 0)
			return false;
		rule->mark_id = mark->id;
	}
	if (template->queue >= 0) {
		const struct rte_flow_action_queue *queue = given[template->queue].conf;

		if (queue == NULL || queue->index >= port->n_rx)
			return false;
		choice->queue = queue->index;
	}
	return (template->age < 0 || choose_age(template, given, choice, &rule->age_context)) &&
	       choose_handle(template->count_handle, given, &rule->count_handle) &&
	       choose_handle(template->age_handle, given, &rule->age_handle) &&
	       choose_handle(template->rss_handle, given, &choice->rss);
}

static struct sim_actions *hold_choice(
	struct sim_port *port, const struct sim_actions_use *use, const struct sim_choice *choice)
{
	struct sim_actions actions = use->base;

	actions.queue = choice->queue;
	actions.age_seconds = choice->age_seconds;
	/* these are the rule's */
	actions.count_handle = actions.age_handle = NULL;
	if (choice->rss != NULL)
		actions.rss_handle = choice->rss;
	return sim_actions_hold(port, &actions);
}

static bool same_choice(const struct sim_choice *a, const struct sim_choice *b)
{
	return a->queue == b->queue && a->age_seconds == b->age_seconds && a->rss == b->rss;
}

struct sim_actions *sim_actions_of_choice(
	struct sim_port *port, struct sim_actions_use *use, const struct sim_choice *choice)
{
	unsigned at = choice->queue % SIM_SHARED_ACTIONS;

	if (use->shared[at].held == NULL || !same_choice(&use->shared[at].choice, choice)) {
		struct sim_actions *held = hold_choice(port, use, choice);

		if (held == NULL)
			return NULL;
		sim_actions_release(port, use->shared[at].held);
		use->shared[at].held = held;
		use->shared[at].choice = *choice;
	}
	sim_actions_share(port, use->shared[at].held);
	return use->shared[at].held;
}

void sim_actions_use_fini(struct sim_port *port, struct sim_actions_use *use)
{
	for (unsigned i = 0; i < SIM_SHARED_ACTIONS; i++)
		sim_actions_release(port, use->shared[i].held);
	sim_actions_fini(&use->base);
}
