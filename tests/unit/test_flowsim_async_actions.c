/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates of all kinds of actions, and indirect actions, by the asynchronous calls of rte_flow. */
#include "flowsim_async.h"

#include <inttypes.h>

#define NIC "flows=4,load=order,profile=ideal,mark_bits=24,hostile=0"
#define END {.type = RTE_FLOW_ACTION_TYPE_END}

/* An actions template, a table of it and of the usual pattern. */
struct made {
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
};

static struct made make(struct async *async, const struct rte_flow_action actions[],
	const struct rte_flow_action masks[])
{
	const struct rte_flow_actions_template_attr attr = {.ingress = 1};
	const struct rte_flow_template_table_attr table_attr = {
		.flow_attr = {.ingress = 1}, .nb_flows = 16};
	struct rte_flow_error error = {0};
	struct made made;

	made.actions =
		rte_flow_actions_template_create(async->nic.id, &attr, actions, masks, &error);
	assert_non_null(made.actions);
	made.table = rte_flow_template_table_create(
		async->nic.id, &table_attr, &async->pattern, 1, &made.actions, 1, &error);
	assert_non_null(made.table);
	return made;
}

static void unmake(struct async *async, struct made *made)
{
	struct rte_flow_error error;

	assert_int_equal(rte_flow_template_table_destroy(async->nic.id, made->table, &error), 0);
	assert_int_equal(
		rte_flow_actions_template_destroy(async->nic.id, made->actions, &error), 0);
}

static struct rte_flow *create(struct async *async, const struct made *made,
	const struct tuple *tuple, const struct rte_flow_action actions[])
{
	struct rte_flow_error error;
	struct tuple_items items;

	return rte_flow_async_create(async->nic.id, 0, &at_once, made->table,
		tuple_items(&items, tuple), 0, actions, 0, NULL, &error);
}

static void remove_rule(struct async *async, struct rte_flow *flow)
{
	assert_int_equal(async_destroy(async, 0, &at_once, flow, 0), 0);
	assert_int_equal(async_await(async, 0, 1), 0);
}

static struct taken take(struct async *async, uint32_t mark)
{
	struct taken taken;

	nic_take(&async->nic, 0, 40, mark, NULL, &taken);
	return taken;
}

/* The template's mark is in force, whatever the rule says; the rule's where it fixes none. */
static void mask_says_who_gives_the_mark(void **state)
{
	const struct rte_flow_action_mark fixed = {.id = 7}, given = {.id = 8}, mask = {.id = 1};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &fixed}, END};
	const struct rte_flow_action masks[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mask}, END};
	const struct rte_flow_action no_masks[] = {{.type = RTE_FLOW_ACTION_TYPE_MARK}, END};
	const struct rte_flow_action rule[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &given}, END};
	const struct rte_flow_action other[] = {{.type = RTE_FLOW_ACTION_TYPE_DROP}, END};
	struct tuple tuple;
	struct async async;

	(void)state;
	async_begin(&async, NIC, 1, 16, 1);
	async_tuples(&async, &tuple, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct made made = make(&async, actions, i == 0 ? masks : no_masks);
		struct rte_flow *flow = create(&async, &made, &tuple, rule);

		assert_non_null(flow);
		assert_int_equal(async_await(&async, 0, 1), 0);
		assert_int_equal(take(&async, i == 0 ? 7 : 8).marked, 10);
		assert_null(create(&async, &made, &tuple, other));
		assert_int_equal(rte_errno, EINVAL);
		remove_rule(&async, flow);
		unmake(&async, &made);
	}
	async_end(&async);
}

/* What is beyond the NIC is refused at once, as a blocking create would. */
static void rules_are_refused_when_they_are_asked_for(void **state)
{
	const struct rte_flow_action_mark wide = {.id = 1u << 24};
	const struct rte_flow_action_queue far = {.index = 99};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK}, {.type = RTE_FLOW_ACTION_TYPE_QUEUE}, END};
	struct mark_queue given;
	struct tuple tuple;
	struct async async;

	(void)state;
	async_begin(&async, NIC, 1, 16, 1);
	async_tuples(&async, &tuple, 1);
	struct made made = make(&async, actions, actions);
	struct rte_flow_action list[3];

	memcpy(list, mark_queue(&given, 1, 1), sizeof(list));
	list[0].conf = &wide;
	assert_null(create(&async, &made, &tuple, list));
	list[0].conf = NULL;
	assert_null(create(&async, &made, &tuple, list));
	list[0].conf = &given.mark;
	list[1].conf = &far;
	assert_null(create(&async, &made, &tuple, list));
	list[1].conf = &given.queue;
	/* and they left nothing behind */
	struct rte_flow *flow = create(&async, &made, &tuple, list);

	assert_non_null(flow);
	assert_int_equal(async_await(&async, 0, 1), 0);
	struct taken taken;

	nic_take(&async.nic, 1, 10, 1, NULL, &taken);
	assert_int_equal(taken.marked, 10);
	remove_rule(&async, flow);
	unmake(&async, &made);
	async_end(&async);
}

/* Of edits a rule gives what the mask leaves open: by a parse. */
static void edits_are_given_by_rules(void **state)
{
	const struct rte_flow_action_set_ipv4 to = {.ipv4_addr = RTE_BE32(0x01020304)};
	const struct rte_flow_action_set_ipv4 also = {.ipv4_addr = RTE_BE32(0x05060708)};
	const struct rte_flow_action_set_ipv4 mask = {.ipv4_addr = UINT32_MAX};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, .conf = &to},
		{.type = RTE_FLOW_ACTION_TYPE_SET_IPV4_DST}, {.type = RTE_FLOW_ACTION_TYPE_COUNT},
		END};
	const struct rte_flow_action masks[] = {
		{.type = RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, .conf = &mask},
		{.type = RTE_FLOW_ACTION_TYPE_SET_IPV4_DST}, {.type = RTE_FLOW_ACTION_TYPE_COUNT},
		END};
	const struct rte_flow_action rule[] = {{.type = RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC},
		{.type = RTE_FLOW_ACTION_TYPE_SET_IPV4_DST, .conf = &also},
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, END};
	const struct rte_flow_action count = {.type = RTE_FLOW_ACTION_TYPE_COUNT};
	struct rte_flow_query_count answer = {0};
	struct rte_flow_error error;
	struct tuple tuple, edited;
	struct taken taken;
	struct async async;

	(void)state;
	async_begin(&async, NIC, 1, 16, 1);
	async_tuples(&async, &tuple, 1);
	struct made made = make(&async, actions, masks);
	struct rte_flow *flow = create(&async, &made, &tuple, rule);

	assert_non_null(flow);
	assert_int_equal(async_await(&async, 0, 1), 0);
	edited = (struct tuple){to.ipv4_addr, also.ipv4_addr, tuple.sport, tuple.dport};
	nic_take(&async.nic, 0, 40, 0, &edited, &taken);
	assert_int_equal(taken.tuple, 10);
	/* the blocking query knows rules of queues too */
	assert_int_equal(rte_flow_query(async.nic.id, flow, &count, &answer, &error), 0);
	assert_int_equal(answer.hits, 10);
	remove_rule(&async, flow);
	unmake(&async, &made);
	async_end(&async);
}

static struct rte_flow_action_handle *shared(
	struct async *async, const struct rte_flow_action *action)
{
	const struct rte_flow_indir_action_conf conf = {.ingress = 1};
	struct rte_flow_error error;
	struct rte_flow_action_handle *handle = rte_flow_async_action_handle_create(
		async->nic.id, 0, &at_once, &conf, action, NULL, &error);

	assert_non_null(handle);
	assert_int_equal(async_await(async, 0, 1), 0);
	return handle;
}

/* Create the handle, make the rules, destroy the rules, query the handle, destroy it. */
static void shared_counter_outlives_its_rules(void **state)
{
	static const struct rte_flow_action count = {.type = RTE_FLOW_ACTION_TYPE_COUNT};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK}, {.type = RTE_FLOW_ACTION_TYPE_INDIRECT}, END};
	const struct rte_flow_action masks[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK}, {.type = RTE_FLOW_ACTION_TYPE_COUNT}, END};
	const struct rte_flow_action_mark mark = {.id = 3};
	struct rte_flow_query_count answer = {0};
	struct rte_flow_error error;
	struct rte_flow *flows[2];
	struct tuple tuples[2];
	struct async async;

	(void)state;
	async_begin(&async, NIC, 1, 16, 1);
	async_tuples(&async, tuples, 2);
	struct made made = make(&async, actions, masks);
	struct rte_flow_action_handle *handle = shared(&async, &count);
	const struct rte_flow_action rule[] = {{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = handle}, END};
	uint16_t id = async.nic.id;

	for (unsigned i = 0; i < 2; i++)
		flows[i] = create(&async, &made, &tuples[i], rule);
	assert_int_equal(async_await(&async, 0, 2), 0);
	assert_int_equal(take(&async, 3).marked, 20);
	/* in use: refused, with the completion */
	assert_int_equal(
		rte_flow_async_action_handle_destroy(id, 0, &at_once, handle, NULL, &error), 0);
	assert_int_equal(async_await(&async, 0, 1), 1);
	for (unsigned i = 0; i < 2; i++)
		remove_rule(&async, flows[i]);
	assert_int_equal(
		rte_flow_async_action_handle_query(id, 0, &at_once, handle, &answer, NULL, &error),
		0);
	assert_int_equal(async_await(&async, 0, 1), 0);
	assert_int_equal(answer.hits, 20);
	assert_int_equal(
		rte_flow_async_action_handle_destroy(id, 0, &at_once, handle, NULL, &error), 0);
	assert_int_equal(async_await(&async, 0, 1), 0);
	/* a rule with what is no handle any more, and with one of another kind */
	assert_non_null(create(&async, &made, &tuples[0], rule));
	assert_int_equal(async_await(&async, 0, 1), 1);
	unmake(&async, &made);
	async_end(&async);
}

static void shared_spreading_and_ageing(void **state)
{
	static const uint16_t queues[] = {1};
	static const struct rte_flow_action_rss rss_conf = {.queue_num = 1, .queue = queues};
	static const struct rte_flow_action_age age_conf = {.timeout = 1000};
	static const struct rte_flow_action rss = {
		.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &rss_conf};
	static const struct rte_flow_action age = {
		.type = RTE_FLOW_ACTION_TYPE_AGE, .conf = &age_conf};
	const struct rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_INDIRECT},
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT}, END};
	const struct rte_flow_action masks[] = {
		{.type = RTE_FLOW_ACTION_TYPE_RSS}, {.type = RTE_FLOW_ACTION_TYPE_AGE}, END};
	const struct rte_flow_update_age update = {.timeout_valid = 1, .timeout = 2000};
	struct rte_flow_error error;
	struct tuple tuple;
	struct taken taken;
	struct async async;

	(void)state;
	async_begin(&async, NIC, 1, 16, 1);
	async_tuples(&async, &tuple, 1);
	struct made made = make(&async, actions, masks);
	struct rte_flow_action rule[] = {
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = shared(&async, &rss)},
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = shared(&async, &age)}, END};
	struct rte_flow *flow = create(&async, &made, &tuple, rule);

	assert_int_equal(async_await(&async, 0, 1), 0);
	nic_take(&async.nic, 1, 10, 0, &tuple, &taken);
	assert_int_equal(taken.tuple, 10);
	assert_int_equal(rte_flow_async_action_handle_update(async.nic.id, 0, &at_once,
				 (struct rte_flow_action_handle *)(uintptr_t)rule[1].conf, &update,
				 NULL, &error),
		0);
	assert_int_equal(async_await(&async, 0, 1), 0);
	/* one for the other */
	rule[0].conf = rule[1].conf;
	assert_non_null(create(&async, &made, &tuple, rule));
	assert_int_equal(async_await(&async, 0, 1), 1);
	remove_rule(&async, flow);
	unmake(&async, &made);
	async_end(&async);
}

static struct rte_flow_actions_template *try_actions(struct async *async,
	const struct rte_flow_action actions[], const struct rte_flow_action masks[])
{
	const struct rte_flow_actions_template_attr attr = {.ingress = 1};
	struct rte_flow_error error;

	return rte_flow_actions_template_create(async->nic.id, &attr, actions, masks, &error);
}

static void odd_templates_are_refused(void **state)
{
	const struct rte_flow_action mark[] = {{.type = RTE_FLOW_ACTION_TYPE_MARK}, END};
	const struct rte_flow_action queue[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE}, END};
	const struct rte_flow_action unknown[] = {{.type = (enum rte_flow_action_type)100000}, END};
	const struct rte_flow_action_mark one = {.id = 1};
	const struct rte_flow_action mark_mask[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &one}, END};
	struct rte_flow_action endless[64], sampled[64];
	struct rte_flow_action_sample sample = {.ratio = 1, .actions = endless};
	const struct rte_flow_action deep[] = {
		{.type = RTE_FLOW_ACTION_TYPE_SAMPLE, .conf = &sample}, END};
	struct async async;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		endless[i] = sampled[i] =
			(struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_VOID};
	async_begin(&async, NIC, 1, 16, 1);
	assert_null(try_actions(&async, mark, queue));
	assert_null(try_actions(&async, unknown, unknown));
	assert_null(try_actions(&async, mark, mark_mask));
	assert_null(try_actions(&async, endless, endless));
	assert_null(try_actions(&async, deep, deep));
	/* a sample in a sample in ... */
	endless[0] = deep[0];
	endless[1].type = RTE_FLOW_ACTION_TYPE_END;
	assert_null(try_actions(&async, deep, deep));
	/* two fates: known when the table is made */
	const struct rte_flow_action fates[] = {
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, {.type = RTE_FLOW_ACTION_TYPE_PASSTHRU}, END};
	const struct rte_flow_template_table_attr attr = {
		.flow_attr = {.ingress = 1}, .nb_flows = 1};
	struct rte_flow_actions_template *template = try_actions(&async, fates, fates);
	struct rte_flow_error error;

	assert_non_null(template);
	assert_null(rte_flow_template_table_create(
		async.nic.id, &attr, &async.pattern, 1, &template, 1, &error));
	assert_int_equal(rte_flow_actions_template_destroy(async.nic.id, template, &error), 0);
	async_end(&async);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mask_says_who_gives_the_mark),
		cmocka_unit_test(rules_are_refused_when_they_are_asked_for),
		cmocka_unit_test(edits_are_given_by_rules),
		cmocka_unit_test(shared_counter_outlives_its_rules),
		cmocka_unit_test(shared_spreading_and_ageing),
		cmocka_unit_test(odd_templates_are_refused),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
