/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Flow queues: the asynchronous calls of rte_flow.h. What an application's thread enqueues is made ready
 * there and waits in the queue's ring; the firmware does it at its due time, in the order of the queue,
 * whether or not anybody pulls; pull tells what is done, in that order.
 *
 * A queue belongs to one thread at a time. It takes the port's lock only for what is rare: actions that
 * must be parsed, indirect actions, and when the firmware did not bring enough memory for rules. The
 * firmware has the port's lock for everything.
 *
 * Made with the port (sim_async_init(), calls.h), with queues when the application configures them.
 */

#include <rte_flow_driver.h>

#include "drivers/flowsim/calls/template.h"

#define SIM_ASYNC_MAX_QUEUES 32
#define SIM_ASYNC_MAX_SIZE 65536
#define SIM_ASYNC_SIZE 1024 /* of who leaves it to us */
#define SIM_STOCK 512	    /* rules in stock, power of two */

enum sim_op_kind {
	SIM_OP_RULE_CREATE,
	SIM_OP_RULE_DESTROY,
	SIM_OP_INDIRECT_DONE, /* done when it was enqueued: create, update */
	SIM_OP_INDIRECT_DESTROY,
	SIM_OP_INDIRECT_QUERY,
};

/* An operation under way: written by the queue's thread, then by the firmware, read by the thread. */
struct sim_op {
	uint8_t kind;	 /* enum sim_op_kind */
	uint8_t actions; /* of the table: which actions template */
	uint8_t n_words; /* of the rule */
	bool delayed;	 /* has met its STALL_DELETE */
	bool silent;	 /* its completion is dropped */
	int status;	 /* 0 or a negative errno, once done */
	void *user_data;
	uint64_t due_ns;    /* CLOCK_MONOTONIC */
	uint64_t answer_ns; /* when it may be told; 0: as soon as it is done */
	struct rte_flow *rule;
	struct rte_flow_template_table *table; /* of a create */
	union {
		struct {
			struct sim_actions *held; /* parsed already; NULL: by choice */
			struct sim_choice choice;
		};
		struct {
			struct sim_indirect *indirect;
			void *data;
		};
	};
};

/* Blank rules for a queue, all with as many words: the firmware puts them in, the thread takes them. */
struct sim_stock {
	uint64_t put __rte_cache_aligned;
	uint64_t taken __rte_cache_aligned;
	struct rte_flow *rules[SIM_STOCK] __rte_cache_aligned;
};

struct sim_flow_queue {
	struct sim_port *port;
	uint32_t size; /* operations at most: enqueued and not pulled */
	uint32_t mask; /* of the ring */
	struct sim_op *ops;
	struct sim_stock
		*stocks[SIM_VIEW_WORDS + 1]; /* by words; of use are those that are there */
	/* the thread's */
	uint64_t enqueued __rte_cache_aligned;
	uint64_t pulled;
	uint64_t pushed __rte_cache_aligned; /* the firmware may see these */
	/* by the firmware, or in its stead: under the port's lock */
	uint64_t done
		__rte_cache_aligned;	 /* told, some at a time: a thread that pulls looks at it */
	uint64_t at __rte_cache_aligned; /* done indeed */
	uint64_t seen;			 /* of these the due time is fixed */
};

struct sim_async {
	uint16_t n_queues; /* configured; they do not move */
	struct sim_flow_queue queues[SIM_ASYNC_MAX_QUEUES];
	struct sim_pattern_templates pattern_templates;
	struct sim_actions_templates actions_templates;
	struct sim_tables tables;
	uint16_t turn;	  /* whose turn it is in the firmware */
	uint64_t free_at; /* when the NIC can do one more by its rate: sixteenths of a nanosecond */
};

/* Before rules go because the port stops: what was pushed is done at once. Without the port's lock. */
void sim_async_stopped(struct sim_port *port);

/* Refills a queue's stock of rules of so many words. 0, or -ENOMEM. Under the port's lock. */
int sim_stock_fill(struct sim_flow_queue *queue, unsigned n_words);

/* An operation that will not be done. Under the port's lock. */
void sim_op_drop(struct sim_port *port, struct sim_op *op);

/*
 * The begin of a call: the queue with that number, and a place in it for one operation more, which counts
 * from sim_async_enqueue() on. -EINVAL: no such queue; -EAGAIN: it is full.
 */
int sim_async_begin(struct sim_port *port, uint32_t number, struct sim_flow_queue **queue,
	struct sim_op **op, struct sim_fault_at *fault);
void sim_async_enqueue(struct sim_flow_queue *queue, const struct rte_flow_op_attr *attr);

/*
 * The calls for a port's flow ops: puts them in where the profile has them. In versions of DPDK that
 * have the fast ones elsewhere sim_async_calls() sets these.
 */
void sim_async_add_ops(const struct sim_port *port, struct rte_flow_ops *ops);

/* async_rule.c, async_indirect.c: for the list of calls. */
struct rte_flow *sim_async_create(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow_template_table *table,
	const struct rte_flow_item items[], uint8_t pattern_template,
	const struct rte_flow_action actions[], uint8_t actions_template, void *user_data,
	struct rte_flow_error *error);
int sim_async_destroy(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow *flow, void *user_data,
	struct rte_flow_error *error);
int sim_async_push(struct rte_eth_dev *dev, uint32_t queue_id, struct rte_flow_error *error);
int sim_async_pull(struct rte_eth_dev *dev, uint32_t queue_id, struct rte_flow_op_result results[],
	uint16_t n, struct rte_flow_error *error);
struct rte_flow_action_handle *sim_async_handle_create(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, const struct rte_flow_indir_action_conf *conf,
	const struct rte_flow_action *action, void *user_data, struct rte_flow_error *error);
int sim_async_handle_destroy(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow_action_handle *handle, void *user_data,
	struct rte_flow_error *error);
int sim_async_handle_update(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow_action_handle *handle,
	const void *update, void *user_data, struct rte_flow_error *error);
int sim_async_handle_query(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, const struct rte_flow_action_handle *handle,
	void *data, void *user_data, struct rte_flow_error *error);
