/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_prefetch.h>

#include "drivers/flowsim/calls/async.h"
#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/rules/indirect.h"
#include "drivers/flowsim/rules/rule_life.h"

#define NS_IN_S UINT64_C(1000000000)
#define FOREVER UINT64_MAX
/* The port's lock is held no longer at a time; looked at each so many operations. */
#define LOCKED_NS 50000
#define LOOK_EACH 16
#define TELL_EACH 16
#define STOCK_STEP 128
#define AHEAD 4 /* operations between one look at memory and the next */
#define STEPS 3 /* of sim_resolver_prefetch() */

/* What one goes through under the port's lock. */
struct work {
	struct sim_port *port;
	struct sim_async *async;
	uint64_t now, until;
	bool at_once; /* due or not */
	unsigned n;
};

static struct sim_op *op_at(const struct sim_flow_queue *queue, uint64_t number)
{
	return &queue->ops[number & queue->mask];
}

/* The NIC does one after the other, at its rate. In sixteenths of a nanosecond. */
static uint64_t time_of(const struct sim_profile *profile, const struct sim_op *op)
{
	if (op->kind != SIM_OP_RULE_CREATE && op->kind != SIM_OP_RULE_DESTROY)
		return 0;
	if (profile->rate != 0)
		return NS_IN_S * 16 / profile->rate;
	return 16 * (op->kind == SIM_OP_RULE_CREATE ? profile->create_ns : profile->destroy_ns);
}

/* What was pushed since the last look gets its due time, counted from now. */
static void see(struct work *work, struct sim_flow_queue *queue)
{
	const struct sim_profile *profile = &work->port->args.profile;
	struct sim_async *async = work->async;
	uint64_t pushed = __atomic_load_n(&queue->pushed, __ATOMIC_ACQUIRE);

	for (uint64_t i = queue->seen; i != pushed; i++) {
		struct sim_op *op = op_at(queue, i);

		async->free_at = RTE_MAX(async->free_at, work->now * 16) + time_of(profile, op);
		op->due_ns = async->free_at / 16;
		op->answer_ns = profile->answer_ns != 0 ? work->now + profile->answer_ns : 0;
	}
	__atomic_store_n(&queue->seen, pushed, __ATOMIC_RELAXED);
}

static bool is_handle(const struct sim_port *port, const struct sim_indirect *handle,
	enum rte_flow_action_type type)
{
	return handle == NULL || (sim_indirect_is(port, handle) && handle->type == type);
}

static int admit(struct sim_port *port, struct sim_op *op)
{
	struct rte_flow *rule = op->rule;
	struct sim_template_use *use = sim_template_use_of(rule);
	struct sim_actions *actions = op->held;
	struct sim_fault_at fault;
	int ret = -ENOENT;

	if (actions == NULL) {
		if (!is_handle(port, op->choice.rss, RTE_FLOW_ACTION_TYPE_RSS))
			return -ENOENT;
		actions =
			sim_actions_of_choice(port, &use->table->actions[op->actions], &op->choice);
		if (actions == NULL)
			return -errno;
	}
	if (is_handle(port, rule->count_handle, RTE_FLOW_ACTION_TYPE_COUNT) &&
		is_handle(port, rule->age_handle, RTE_FLOW_ACTION_TYPE_AGE))
		ret = sim_rule_admit(port, rule, use->sort, actions, &fault);
	if (ret < 0)
		sim_actions_release(port, actions);
	op->held = NULL;
	return ret;
}

static int do_create(struct sim_port *port, struct sim_op *op)
{
	int ret = admit(port, op);

	if (ret < 0)
		sim_op_drop(port, op);
	else
		sim_rule_go_live(op->rule);
	return ret;
}

/* *wait: it takes so much longer, and is asked for again then. */
static int do_destroy(struct sim_port *port, struct sim_op *op, uint64_t *wait)
{
	struct rte_flow *rule = op->rule;

	if (!op->delayed) {
		if (!sim_rule_is(port, rule))
			return -ENOENT;
		/* a blocking call is at it */
		if (rule->state == SIM_RULE_PENDING || rule->state == SIM_RULE_LEAVING)
			return -EBUSY;
		int ret = sim_fault_fails(port, SIM_OP_DESTROY);

		if (ret < 0)
			return ret;
		*wait = sim_fault_delay_ns(port, SIM_FAULT_STALL_DELETE);
		if (*wait != 0) {
			op->delayed = true;
			rule->state = SIM_RULE_LEAVING;
			return 0;
		}
	}
	sim_rule_destroy(rule);
	return 0;
}

static int do_op(struct sim_port *port, struct sim_op *op, uint64_t *wait)
{
	switch ((enum sim_op_kind)op->kind) {
	case SIM_OP_RULE_CREATE:
		return do_create(port, op);
	case SIM_OP_RULE_DESTROY:
		return do_destroy(port, op, wait);
	case SIM_OP_INDIRECT_DESTROY:
		return sim_indirect_destroy(port, op->indirect);
	case SIM_OP_INDIRECT_QUERY:
		return sim_indirect_query(port, op->indirect, op->data);
	case SIM_OP_INDIRECT_DONE:
		break;
	}
	return op->status;
}

/* One operation, and what is told of it. False: it is not done yet, and `due_ns` says when. */
static bool carry_out(struct work *work, struct sim_op *op)
{
	struct sim_port *port = work->port;
	uint64_t wait = 0;

	op->status = do_op(port, op, &wait);
	if (wait != 0) {
		op->due_ns = work->now + wait;
		if (!work->at_once)
			return false;
		op->status = do_op(port, op, &wait);
	}
	uint64_t late = sim_fault_delay_ns(port, SIM_FAULT_LATE);

	if (late != 0) {
		op->answer_ns = RTE_MAX(op->answer_ns, work->now) + late;
		port->told.late++;
	}
	op->silent = sim_fault_strikes(port, SIM_FAULT_DROP_COMPLETION);
	return true;
}

static bool time_is_up(struct work *work)
{
	if (++work->n % LOOK_EACH != 0 || work->at_once)
		return false;
	work->now = sim_now_ns();
	return work->now >= work->until;
}

/* A rule that is about to come or go: the class and values that it is found by; NULL: none, or not sure. */
static const struct sim_class *class_of(const struct sim_port *port, const struct sim_op *op)
{
	if (op->kind == SIM_OP_RULE_CREATE)
		return sim_template_use_of(op->rule)->sort;
	if (op->kind == SIM_OP_RULE_DESTROY && sim_rule_is(port, op->rule))
		return op->rule->sort;
	return NULL;
}

/* A rule costs several looks at memory that was not used for long: they are begun some rules before. */
static void look_ahead(const struct work *work, const struct sim_flow_queue *queue)
{
	const struct sim_port *port = work->port;
	uint64_t ahead = queue->seen - queue->at;

	if (ahead > (STEPS + 1) * AHEAD) {
		const struct sim_op *op = op_at(queue, queue->at + (STEPS + 1) * AHEAD);

		/* whatever it is that a destroy names */
		if (op->kind <= SIM_OP_RULE_DESTROY) {
			rte_prefetch0(op->rule);
			rte_prefetch0((const char *)op->rule + RTE_CACHE_LINE_SIZE);
			rte_prefetch0((const char *)op->rule + 2 * RTE_CACHE_LINE_SIZE);
		}
	}
	for (unsigned step = 0; step < STEPS; step++) {
		if (ahead <= (STEPS - step) * AHEAD)
			continue;
		const struct sim_op *op = op_at(queue, queue->at + (STEPS - step) * AHEAD);
		const struct sim_class *sort = class_of(port, op);

		if (sort == NULL)
			continue;
		if (step == 0)
			sim_table_prefetch(port->table, sort, op->rule->values);
		sim_resolver_prefetch(port->resolver, sort, op->rule->values, step);
	}
}

/* What is due in a queue. Returns when its next is, or 0: the time is up. */
static uint64_t work_queue(struct work *work, struct sim_flow_queue *queue)
{
	uint64_t next = FOREVER;

	while (queue->at != queue->seen) {
		struct sim_op *op = op_at(queue, queue->at);

		if (op->due_ns > work->now && !work->at_once) {
			next = op->due_ns;
			break;
		}
		look_ahead(work, queue);
		if (!carry_out(work, op))
			continue;
		if (++queue->at % TELL_EACH == 0)
			__atomic_store_n(&queue->done, queue->at, __ATOMIC_RELEASE);
		if (time_is_up(work)) {
			next = 0;
			break;
		}
	}
	__atomic_store_n(&queue->done, queue->at, __ATOMIC_RELEASE);
	return next;
}

static struct sim_stock *stock_of(struct sim_flow_queue *queue, unsigned n_words)
{
	struct sim_stock *stock = queue->stocks[n_words];

	if (stock != NULL)
		return stock;
	stock = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*stock));
	if (stock == NULL)
		return NULL;
	memset(stock, 0, sizeof(*stock));
	__atomic_store_n(&queue->stocks[n_words], stock, __ATOMIC_RELEASE);
	return stock;
}

static int stock_put(
	struct sim_flow_queue *queue, struct sim_stock *stock, unsigned n_words, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_flow *rule = sim_rule_alloc(queue->port, n_words);

		if (rule == NULL)
			return -ENOMEM;
		stock->rules[stock->put % SIM_STOCK] = rule;
		__atomic_store_n(&stock->put, stock->put + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

int sim_stock_fill(struct sim_flow_queue *queue, unsigned n_words)
{
	struct sim_stock *stock = stock_of(queue, n_words);

	if (stock == NULL)
		return -ENOMEM;
	/* the firmware may have been faster */
	if (stock->put != __atomic_load_n(&stock->taken, __ATOMIC_ACQUIRE))
		return 0;
	int ret = stock_put(queue, stock, n_words, STOCK_STEP);

	return stock->put != stock->taken ? 0 : ret;
}

/* Some for each size that the queue has asked for before. */
static void refill_stocks(struct sim_flow_queue *queue)
{
	for (unsigned i = 0; i < RTE_DIM(queue->stocks); i++) {
		struct sim_stock *stock = queue->stocks[i];

		if (stock == NULL)
			continue;
		uint64_t there = stock->put - __atomic_load_n(&stock->taken, __ATOMIC_ACQUIRE);

		if (there < SIM_STOCK / 2)
			stock_put(queue, stock, i, STOCK_STEP);
	}
}

static uint64_t work_all(struct work *work)
{
	struct sim_async *async = work->async;
	uint64_t next = FOREVER;

	for (unsigned i = 0; i < async->n_queues; i++)
		see(work, &async->queues[i]);
	for (unsigned i = 0; i < async->n_queues && next != 0; i++) {
		struct sim_flow_queue *queue = &async->queues[async->turn++ % async->n_queues];

		if (queue->at == queue->seen)
			continue;
		next = RTE_MIN(next, work_queue(work, queue));
		refill_stocks(queue);
	}
	return next;
}

static bool is_idle(const struct sim_async *async)
{
	unsigned n = __atomic_load_n(&async->n_queues, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++) {
		const struct sim_flow_queue *queue = &async->queues[i];

		if (__atomic_load_n(&queue->pushed, __ATOMIC_SEQ_CST) !=
			__atomic_load_n(&queue->done, __ATOMIC_RELAXED))
			return false;
	}
	return true;
}

uint64_t sim_async_work(struct sim_port *port, uint64_t now, bool *worked)
{
	struct sim_async *async = __atomic_load_n(&port->async, __ATOMIC_ACQUIRE);
	struct work work = {.port = port, .async = async, .now = now, .until = now + LOCKED_NS};

	*worked = false;
	if (async == NULL || is_idle(async))
		return FOREVER;
	pthread_mutex_lock(&port->lock);
	uint64_t next = work_all(&work);

	pthread_mutex_unlock(&port->lock);
	*worked = work.n > 0;
	return next;
}

bool sim_async_waits(const struct sim_port *port)
{
	const struct sim_async *async = __atomic_load_n(&port->async, __ATOMIC_ACQUIRE);

	if (async == NULL)
		return false;
	unsigned n = __atomic_load_n(&async->n_queues, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++) {
		const struct sim_flow_queue *queue = &async->queues[i];

		if (__atomic_load_n(&queue->pushed, __ATOMIC_SEQ_CST) !=
			__atomic_load_n(&queue->seen, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void sim_async_stopped(struct sim_port *port)
{
	struct work work = {.port = port, .async = port->async, .at_once = true};

	if (port->async == NULL)
		return;
	pthread_mutex_lock(&port->lock);
	work.now = sim_now_ns();
	work_all(&work);
	work.async->free_at = 0;
	pthread_mutex_unlock(&port->lock);
}

void sim_op_drop(struct sim_port *port, struct sim_op *op)
{
	if (op->kind != SIM_OP_RULE_CREATE)
		return;
	sim_actions_release(port, op->held);
	op->held = NULL;
	sim_count_add(op->rule->use->left, 1);
	sim_rule_free(port, op->rule, op->n_words);
}
