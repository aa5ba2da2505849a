/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/indirect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/extra.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/rules/flow_state.h"
#include "drivers/flowsim/rules/rule_life.h"

bool sim_indirect_is(const struct sim_port *port, const struct sim_indirect *indirect)
{
	return sim_slab_has(&port->flow->handles, indirect);
}

static int refuse(
	struct sim_fault_at *fault, int code, const struct rte_flow_action *action, const char *why)
{
	*fault = (struct sim_fault_at){
		.cause = action, .type = RTE_FLOW_ERROR_TYPE_ACTION, .message = why};
	return code;
}

/* Whether this kind of NIC has the action, and has it by a handle. */
static int check_kind(const struct sim_port *port, const struct rte_flow_action *action,
	struct sim_fault_at *fault)
{
	uint64_t has = port->args.profile.actions;
	int indirect = sim_action_bit(RTE_FLOW_ACTION_TYPE_INDIRECT), type;

	if (action == NULL)
		return refuse(fault, -EINVAL, NULL, "no action");
	if (action->type != RTE_FLOW_ACTION_TYPE_COUNT &&
		action->type != RTE_FLOW_ACTION_TYPE_AGE &&
		action->type != RTE_FLOW_ACTION_TYPE_RSS)
		return refuse(fault, -ENOTSUP, action, "only COUNT, AGE and RSS can be shared");
	type = sim_action_bit(action->type);
	if (type < 0 || !(has >> type & 1) || indirect < 0 || !(has >> indirect & 1))
		return refuse(fault, -ENOTSUP, action, "this NIC does not share such an action");
	return 0;
}

static int fill(struct sim_port *port, struct sim_indirect *made,
	const struct rte_flow_action *action, struct sim_fault_at *fault)
{
	const struct rte_flow_action_age *age = action->conf;

	made->port = port;
	made->type = action->type;
	TAILQ_INIT(&made->rules);
	if (action->type == RTE_FLOW_ACTION_TYPE_AGE) {
		if (age == NULL || age->reserved != 0)
			return refuse(fault, -EINVAL, action, "AGE without what it asks for");
		made->age.handle = made;
		made->age.context = age->context != NULL ? age->context : made;
		sim_age_start(port, &made->age, age->timeout);
	}
	if (action->type != RTE_FLOW_ACTION_TYPE_RSS)
		return 0;
	made->rss = calloc(1, sizeof(*made->rss));
	if (made->rss == NULL)
		return -ENOMEM;
	return sim_actions_parse_rss(made->rss, port, action, fault);
}

struct sim_indirect *sim_indirect_create(struct sim_port *port,
	const struct rte_flow_action *action, int *error, struct sim_fault_at *fault)
{
	struct sim_indirect *made;

	*fault = (struct sim_fault_at){.cause = NULL};
	*error = sim_fault_fails(port, SIM_OP_CREATE);
	if (*error == 0)
		*error = check_kind(port, action, fault);
	if (*error < 0)
		return NULL;
	made = sim_slab_alloc(&port->flow->handles, sizeof(*made));
	*error = made == NULL ? -ENOMEM : fill(port, made, action, fault);
	if (*error < 0) {
		if (made != NULL)
			free(made->rss);
		sim_slab_free(&port->flow->handles, made);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&port->indirects, made, link);
	return made;
}

static void end(struct sim_port *port, struct sim_indirect *indirect)
{
	sim_age_stop(port, &indirect->age);
	TAILQ_REMOVE(&port->indirects, indirect, link);
	free(indirect->rss);
	sim_slab_free(&port->flow->handles, indirect);
}

int sim_indirect_destroy(struct sim_port *port, struct sim_indirect *indirect)
{
	int ret = sim_fault_fails(port, SIM_OP_DESTROY);

	if (ret < 0)
		return ret;
	if (!sim_indirect_is(port, indirect))
		return -ENOENT;
	if (indirect->users > 0)
		return -EBUSY;
	end(port, indirect);
	return 0;
}

void sim_indirects_drop(struct sim_port *port)
{
	struct sim_indirect *indirect, *next;

	for (indirect = TAILQ_FIRST(&port->indirects); indirect != NULL; indirect = next) {
		next = TAILQ_NEXT(indirect, link);
		if (indirect->users == 0)
			end(port, indirect);
	}
}

static int update_age(struct sim_port *port, struct sim_indirect *indirect,
	const struct rte_flow_update_age *update)
{
	if (update->reserved != 0)
		return -EINVAL;
	if (update->timeout_valid)
		sim_age_start(port, &indirect->age, update->timeout);
	if (update->touch)
		sim_age_touch(port, &indirect->age);
	return 0;
}

static int update_rss(
	struct sim_port *port, struct sim_indirect *indirect, const struct rte_flow_action *update)
{
	struct sim_fault_at fault;
	struct sim_rss rss = {0};
	int ret;

	if (update->type != RTE_FLOW_ACTION_TYPE_RSS)
		return -EINVAL;
	ret = sim_actions_parse_rss(&rss, port, update, &fault);
	if (ret < 0)
		return ret;
	pthread_rwlock_wrlock(&port->rules_lock);
	*indirect->rss = rss;
	pthread_rwlock_unlock(&port->rules_lock);
	/* which of the streams it concerns is not kept anywhere */
	if (indirect->users > 0)
		sim_resolver_all(port->resolver);
	return 0;
}

int sim_indirect_update(struct sim_port *port, struct sim_indirect *indirect, const void *update)
{
	int ret = sim_fault_fails(port, SIM_OP_ANY);

	if (ret < 0)
		return ret;
	if (!sim_indirect_is(port, indirect))
		return -ENOENT;
	if (update == NULL)
		return -EINVAL;
	if (indirect->type == RTE_FLOW_ACTION_TYPE_AGE)
		return update_age(port, indirect, update);
	if (indirect->type == RTE_FLOW_ACTION_TYPE_RSS)
		return update_rss(port, indirect, update);
	return -ENOTSUP;
}

struct sim_count sim_indirect_count(const struct sim_indirect *indirect)
{
	bool age = indirect->type == RTE_FLOW_ACTION_TYPE_AGE;
	struct sim_count count = indirect->count;
	const struct sim_rule_extra *extra = TAILQ_FIRST(&indirect->rules);

	while (extra != NULL) {
		struct sim_count more = sim_rule_count(extra->rule);

		count.hits += more.hits;
		count.bytes += more.bytes;
		extra = age ? TAILQ_NEXT(extra, of_age) : TAILQ_NEXT(extra, of_count);
	}
	return count;
}

/* Where a counter of few bits starts again: what it counts since a reset does so too. */
static uint64_t counter_mask(const struct sim_port *port)
{
	const struct sim_fault_state *wrap = &port->faults.fault[SIM_FAULT_WRAP];

	return wrap->on && wrap->value < 64 ? (UINT64_C(1) << wrap->value) - 1 : UINT64_MAX;
}

static uint64_t since(uint64_t now, uint64_t then, uint64_t mask)
{
	if (now < then && mask == UINT64_MAX)
		return 0;
	return (now - then) & mask;
}

void sim_count_answer(struct sim_port *port, struct sim_count now, const void *of, uint64_t serial,
	struct sim_count *reported, struct rte_flow_query_count *answer)
{
	struct sim_count told = sim_fault_count(port, of, serial, now);
	uint64_t mask = counter_mask(port);

	answer->hits = since(told.hits, reported->hits, mask);
	answer->bytes = since(told.bytes, reported->bytes, mask);
	answer->hits_set = 1;
	answer->bytes_set = 1;
	if (answer->reset)
		*reported = told;
}

void sim_age_answer(struct sim_port *port, struct sim_age *age, struct rte_flow_query_age *answer)
{
	bool aged;
	uint32_t seconds = sim_age_query(port, age, &aged);

	*answer = (struct rte_flow_query_age){
		.aged = aged,
		.sec_since_last_hit_valid = 1,
		.sec_since_last_hit = RTE_MIN(seconds, 0xffffffu) & 0xffffffu,
	};
}

int sim_indirect_query(struct sim_port *port, struct sim_indirect *indirect, void *data)
{
	int ret = sim_fault_fails(port, SIM_OP_QUERY);

	if (ret < 0)
		return ret;
	if (!sim_indirect_is(port, indirect))
		return -ENOENT;
	if (indirect->uncounted)
		return -EIO;
	if (data == NULL)
		return -EINVAL;
	port->told.queried++;
	if (indirect->type == RTE_FLOW_ACTION_TYPE_COUNT) {
		sim_count_answer(
			port, sim_indirect_count(indirect), indirect, 0, &indirect->reported, data);
		return 0;
	}
	if (indirect->type != RTE_FLOW_ACTION_TYPE_AGE)
		return -ENOTSUP;
	sim_age_answer(port, &indirect->age, data);
	return 0;
}
