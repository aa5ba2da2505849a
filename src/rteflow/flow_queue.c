/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates and flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include "rteflow/flow_queue.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "rteflow/answer.h"

#define QUEUE 0
/* All that installers have under way, and some. */
#define QUEUE_SIZE 4096
#define PULL_MAX 64

static const struct rte_flow_op_attr postponed = {.postpone = 1};

static uint32_t ask_port(uint16_t port_id, struct rte_flow_port_info *port)
{
	struct rte_flow_queue_info queue = {0};
	struct rte_flow_error said = {0};

	memset(port, 0, sizeof(*port));
	if (rte_flow_info_get(port_id, port, &queue, &said) != 0 || port->max_nb_queues == 0)
		return 0;
	return queue.max_size != 0 ? RTE_MIN(queue.max_size, (uint32_t)QUEUE_SIZE) : QUEUE_SIZE;
}

bool flow_queue_prepare(uint16_t port_id, uint32_t n_rules)
{
	struct rte_flow_port_info port;
	const struct rte_flow_queue_attr queue = {.size = ask_port(port_id, &port)};
	const struct rte_flow_queue_attr *queues[] = {&queue};
	struct rte_flow_port_attr attr = {.nb_counters = RTE_MIN(port.max_nb_counters, n_rules)};
	struct rte_flow_error said = {0};

	if (queue.size == 0)
		return false;
	if (rte_flow_configure(port_id, &attr, RTE_DIM(queues), queues, &said) == 0)
		return true;
	attr.nb_counters = 0;
	return rte_flow_configure(port_id, &attr, RTE_DIM(queues), queues, &said) == 0;
}

void flow_queue_init(struct flow_queue *queue, uint16_t port_id, uint32_t n_rules)
{
	struct rte_flow_port_info port;

	*queue = (struct flow_queue){
		.port_id = port_id, .size = ask_port(port_id, &port), .n_rules = n_rules};
}

int flow_queue_set_make(const struct flow_queue *queue, struct flow_queue_set *set,
	enum provider_kind kind, const struct shape *shape, const struct shape_port *port,
	struct provider_why *why)
{
	static const struct rte_flow_pattern_template_attr pattern = {.ingress = 1};
	static const struct rte_flow_actions_template_attr action = {.ingress = 1};
	const struct rte_flow_template_table_attr table = {
		.flow_attr = {.ingress = 1}, .nb_flows = queue->n_rules};
	static const struct offload_rule any;
	struct shape_actions actions, masks;
	struct rte_flow_error said = {0};
	struct shape_items items;

	if (set->table != NULL)
		return 0;
	shape_items(&items, shape, kind, port, &any);
	shape_actions(&actions, shape, port, &any);
	shape_action_masks(&masks, shape, port);
	rte_errno = 0;
	if (set->pattern == NULL)
		set->pattern = rte_flow_pattern_template_create(
			queue->port_id, &pattern, items.list, &said);
	if (set->pattern != NULL && set->actions == NULL)
		set->actions = rte_flow_actions_template_create(
			queue->port_id, &action, actions.list, masks.list, &said);
	if (set->pattern != NULL && set->actions != NULL)
		set->table = rte_flow_template_table_create(
			queue->port_id, &table, &set->pattern, 1, &set->actions, 1, &said);
	if (set->table != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	return -1;
}

void flow_queue_set_free(const struct flow_queue *queue, struct flow_queue_set *set)
{
	struct rte_flow_error said = {0};

	/* what does not go goes with the port */
	if (set->table != NULL)
		(void)rte_flow_template_table_destroy(queue->port_id, set->table, &said);
	if (set->actions != NULL)
		(void)rte_flow_actions_template_destroy(queue->port_id, set->actions, &said);
	if (set->pattern != NULL)
		(void)rte_flow_pattern_template_destroy(queue->port_id, set->pattern, &said);
	memset(set, 0, sizeof(*set));
}

/* The cookie of the next operation. 0 is that of none. */
static void *next_operation(const struct flow_queue *queue, uint32_t place, uint32_t *serial)
{
	*serial = queue->serial + 1 == 0 ? 1 : queue->serial + 1;
	return (void *)(uintptr_t)((uint64_t)*serial << 32 | place);
}

static void postpone(struct flow_queue *queue, uint32_t serial)
{
	struct provider_why why;

	queue->serial = serial;
	if (++queue->postponed % FLOW_QUEUE_PUSH_EACH == 0)
		flow_queue_push(queue, &why);
}

int flow_queue_check(struct flow_queue *queue, struct provider_why *why)
{
	if (queue->deaf) {
		*why = queue->deaf_why;
		return -EIO;
	}
	return queue->stuck ? flow_queue_push(queue, why) : 0;
}

struct rte_flow *flow_queue_create(struct flow_queue *queue, const struct flow_queue_set *set,
	const struct shape_items *items, const struct shape_actions *actions, uint32_t place,
	struct provider_why *why)
{
	struct rte_flow_error said = {0};
	uint32_t serial;
	void *data = next_operation(queue, place, &serial);

	rte_errno = 0;
	struct rte_flow *flow = rte_flow_async_create(queue->port_id, QUEUE, &postponed, set->table,
		items->list, 0, actions->list, 0, data, &said);

	if (flow != NULL)
		postpone(queue, serial);
	else
		answer_why(why, rte_errno, &said);
	return flow;
}

int flow_queue_destroy(
	struct flow_queue *queue, struct rte_flow *flow, uint32_t place, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	uint32_t serial;
	void *data = next_operation(queue, place, &serial);
	int ret = rte_flow_async_destroy(queue->port_id, QUEUE, &postponed, flow, data, &said);

	if (ret == 0) {
		postpone(queue, serial);
		return 0;
	}
	answer_why(why, -ret, &said);
	return ret == -ENOENT ? -ENOENT : answer_remove(-ret);
}

int flow_queue_push(struct flow_queue *queue, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_push(queue->port_id, QUEUE, &said);

	queue->stuck = ret != 0;
	if (ret == 0) {
		queue->postponed = 0;
		queue->pushed = queue->serial;
		return 0;
	}
	answer_why(why, -ret, &said);
	return -EIO;
}

int flow_queue_pull(struct flow_queue *queue, struct flow_queue_result *results, unsigned max)
{
	struct rte_flow_op_result told[PULL_MAX];
	struct rte_flow_error said = {0};
	int got = rte_flow_pull(
		queue->port_id, QUEUE, told, (uint16_t)RTE_MIN(max, (unsigned)PULL_MAX), &said);

	queue->deaf = got < 0;
	if (got < 0)
		answer_why(&queue->deaf_why, -got, &said);
	for (int i = 0; i < got; i++) {
		uint64_t data = (uintptr_t)told[i].user_data;

		results[i] = (struct flow_queue_result){.place = (uint32_t)data,
			.serial = (uint32_t)(data >> 32),
			.ok = told[i].status == RTE_FLOW_OP_SUCCESS};
	}
	return got;
}
