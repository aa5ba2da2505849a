/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A port's flow queue: rules by templates, whose results come later. An operation is known by its place and by a serial
 * number, which its result brings back. Operations are postponed until FLOW_QUEUE_PUSH_EACH of them go to the NIC together,
 * or flow_queue_push() is called.
 */

#include <rte_flow.h>

#include "rteflow/shape.h"

/* Number of the place of operations that nobody awaits. */
#define FLOW_QUEUE_NOBODY UINT32_MAX
#define FLOW_QUEUE_PUSH_EACH 64

/* Templates and table of rules of one shape; made when they are needed. */
struct flow_queue_set {
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
};

struct flow_queue {
	uint16_t port_id;
	uint32_t size;	  /* 0: the port has no queue */
	uint32_t n_rules; /* of a table */
	uint32_t serial;  /* of the last operation */
	uint32_t pushed;  /* the last one that the NIC was told of */
	uint32_t postponed;
	bool stuck; /* the last push failed */
	bool deaf;  /* the last pull failed, and why */
	struct provider_why deaf_why;
};

struct flow_queue_result {
	uint32_t place, serial;
	bool ok;
};

/* Sets up the queue of a port that is configured and not started. False: it has none. */
bool flow_queue_prepare(uint16_t port_id, uint32_t n_rules);
void flow_queue_init(struct flow_queue *queue, uint16_t port_id, uint32_t n_rules);

/* 0, or -1 with `why`. */
int flow_queue_set_make(const struct flow_queue *queue, struct flow_queue_set *set,
	enum provider_kind kind, const struct shape *shape, const struct shape_port *port,
	struct provider_why *why);
void flow_queue_set_free(const struct flow_queue *queue, struct flow_queue_set *set);

/*
 * Nothing is handed to a NIC that takes nothing, or tells nothing: 0 or -EIO. Callers of flow_queue_create() and
 * flow_queue_destroy() ask this first.
 */
int flow_queue_check(struct flow_queue *queue, struct provider_why *why);
/* The handle of a rule, whose result is that of queue->serial; NULL with `why`. */
struct rte_flow *flow_queue_create(struct flow_queue *queue, const struct flow_queue_set *set,
	const struct shape_items *items, const struct shape_actions *actions, uint32_t place,
	struct provider_why *why);
/* 0, -ENOENT: the driver knows no such rule; or an answer. */
int flow_queue_destroy(
	struct flow_queue *queue, struct rte_flow *flow, uint32_t place, struct provider_why *why);
/* Hands postponed operations to the NIC. 0 or -EIO. */
int flow_queue_push(struct flow_queue *queue, struct provider_why *why);
/* Takes results; how many, and below 0 when the call fails. */
int flow_queue_pull(struct flow_queue *queue, struct flow_queue_result *results, unsigned max);

/* Was the NIC told of this operation? */
static inline bool flow_queue_is_pushed(const struct flow_queue *queue, uint32_t serial)
{
	/* numbers run round */
	return (int32_t)(serial - queue->pushed) <= 0;
}
