/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates and flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "offload/answer.h"
#include "offload/async_parts.h"

#define QUEUE 0
/* All that installers have under way, and some. */
#define QUEUE_SIZE 4096
#define PULL_MAX 64

static const struct rte_flow_op_attr postponed = {.postpone = 1};

static void *user_data(uint32_t place, uint32_t serial)
{
	return (void *)(uintptr_t)((uint64_t)serial << 32 | place);
}

static bool ask_port(
	uint16_t port_id, struct rte_flow_port_info *port, struct rte_flow_queue_info *queue)
{
	struct rte_flow_error said = {0};

	memset(port, 0, sizeof(*port));
	memset(queue, 0, sizeof(*queue));
	return rte_flow_info_get(port_id, port, queue, &said) == 0 && port->max_nb_queues > 0;
}

static uint32_t async_size_of(const struct rte_flow_queue_info *queue)
{
	return queue->max_size != 0 ? RTE_MIN(queue->max_size, (uint32_t)QUEUE_SIZE) : QUEUE_SIZE;
}

uint32_t async_queue_size(uint16_t port_id)
{
	struct rte_flow_port_info port;
	struct rte_flow_queue_info queue;

	return ask_port(port_id, &port, &queue) ? async_size_of(&queue) : 0;
}

bool provider_prepare_async(uint16_t port_id, uint32_t n_places)
{
	struct rte_flow_port_attr attr = {0};
	struct rte_flow_queue_attr queue_attr = {0};
	const struct rte_flow_queue_attr *queues[] = {&queue_attr};
	struct rte_flow_error said = {0};
	struct rte_flow_port_info port;
	struct rte_flow_queue_info queue;

	if (!ask_port(port_id, &port, &queue))
		return false;
	queue_attr.size = async_size_of(&queue);
	attr.nb_counters = RTE_MIN(port.max_nb_counters, n_places + TRIAL_HANDS);
	if (rte_flow_configure(port_id, &attr, RTE_DIM(queues), queues, &said) == 0)
		return true;
	attr.nb_counters = 0;
	return rte_flow_configure(port_id, &attr, RTE_DIM(queues), queues, &said) == 0;
}

static int refused(struct provider_why *why, const struct rte_flow_error *said)
{
	answer_why(why, rte_errno, said);
	return -EIO;
}

static int async_make_templates(const struct async *async, struct async_set *set,
	enum provider_kind kind, const struct shape *shape, struct provider_why *why)
{
	static const struct rte_flow_pattern_template_attr pattern_attr = {.ingress = 1};
	static const struct rte_flow_actions_template_attr actions_attr = {.ingress = 1};
	static const struct offload_rule nobodys;
	struct rte_flow_error said = {0};
	struct shape_actions actions, masks;
	struct shape_items items;

	rte_errno = 0;
	shape_items(&items, shape, kind, &async->port, &nobodys);
	if (set->pattern == NULL)
		set->pattern = rte_flow_pattern_template_create(
			async->port.id, &pattern_attr, items.list, &said);
	if (set->pattern == NULL)
		return refused(why, &said);
	shape_actions(&actions, shape, &async->port, &nobodys);
	shape_action_masks(&masks, shape, &async->port);
	if (set->actions == NULL)
		set->actions = rte_flow_actions_template_create(
			async->port.id, &actions_attr, actions.list, masks.list, &said);
	return set->actions != NULL ? 0 : refused(why, &said);
}

int async_set_make(struct async *async, struct async_set *set, enum provider_kind kind,
	const struct shape *shape, struct provider_why *why)
{
	const struct rte_flow_template_table_attr attr = {
		.flow_attr = {.ingress = 1}, .nb_flows = async->n_places + TRIAL_HANDS};
	struct rte_flow_error said = {0};

	if (set->table != NULL)
		return 0;
	if (async_make_templates(async, set, kind, shape, why) < 0)
		return -EIO;
	rte_errno = 0;
	set->table = rte_flow_template_table_create(
		async->port.id, &attr, &set->pattern, 1, &set->actions, 1, &said);
	return set->table != NULL ? 0 : refused(why, &said);
}

void async_set_free(const struct async *async, struct async_set *set)
{
	struct rte_flow_error said = {0};
	uint16_t id = async->port.id;

	/* what does not go goes with the port */
	if (set->table != NULL)
		(void)rte_flow_template_table_destroy(id, set->table, &said);
	if (set->actions != NULL)
		(void)rte_flow_actions_template_destroy(id, set->actions, &said);
	if (set->pattern != NULL)
		(void)rte_flow_pattern_template_destroy(id, set->pattern, &said);
	memset(set, 0, sizeof(*set));
}

struct rte_flow *async_create(const struct async *async, const struct async_set *set,
	enum provider_kind kind, const struct shape *shape, const struct offload_rule *rule,
	uint32_t place, uint32_t serial, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct shape_items items;
	struct shape_actions actions;
	struct rte_flow *flow;

	shape_items(&items, shape, kind, &async->port, rule);
	shape_actions(&actions, shape, &async->port, rule);
	rte_errno = 0;
	flow = rte_flow_async_create(async->port.id, QUEUE, &postponed, set->table, items.list, 0,
		actions.list, 0, user_data(place, serial), &said);
	if (flow == NULL)
		answer_why(why, rte_errno, &said);
	return flow;
}

int async_destroy(const struct async *async, struct rte_flow *flow, uint32_t place, uint32_t serial,
	struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_async_destroy(
		async->port.id, QUEUE, &postponed, flow, user_data(place, serial), &said);

	if (ret == 0)
		return 0;
	answer_why(why, -ret, &said);
	return ret == -ENOENT ? -ENOENT : answer_remove(-ret);
}

int async_push(const struct async *async, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_push(async->port.id, QUEUE, &said);

	if (ret == 0)
		return 0;
	answer_why(why, -ret, &said);
	return -EIO;
}

int async_pull(const struct async *async, struct async_result *results, unsigned max,
	struct provider_why *why)
{
	struct rte_flow_op_result told[PULL_MAX];
	struct rte_flow_error said = {0};
	uint16_t n = (uint16_t)RTE_MIN(max, (unsigned)PULL_MAX);
	int got = rte_flow_pull(async->port.id, QUEUE, told, n, &said);

	if (got < 0)
		answer_why(why, -got, &said);
	for (int i = 0; i < got; i++) {
		uint64_t data = (uintptr_t)told[i].user_data;

		results[i] = (struct async_result){.place = (uint32_t)data,
			.serial = (uint32_t)(data >> 32),
			.ok = told[i].status == RTE_FLOW_OP_SUCCESS};
	}
	return got;
}
