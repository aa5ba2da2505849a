/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions that rules share by a handle, and rules and handles that age. */
#include "flowsim_port.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static const struct rte_flow_attr ingress = {.ingress = 1};
static const struct rte_flow_indir_action_conf for_ingress = {.ingress = 1};
static const struct rte_flow_action_mark mark = {.id = 7};
static const struct rte_flow_action_queue queue0 = {.index = 0};
static const struct rte_flow_action count_action = {.type = RTE_FLOW_ACTION_TYPE_COUNT};
static const struct rte_flow_action age_action = {.type = RTE_FLOW_ACTION_TYPE_AGE};
static const struct rte_flow_item any_packet[] = {
	{.type = RTE_FLOW_ITEM_TYPE_ETH}, {.type = RTE_FLOW_ITEM_TYPE_END}};

static struct rte_flow_action_handle *make_handle(
	const struct nic *nic, const struct rte_flow_action *action)
{
	struct rte_flow_error error;
	struct rte_flow_action_handle *handle =
		rte_flow_action_handle_create(nic->id, &for_ingress, action, &error);

	assert_non_null(handle);
	return handle;
}

/* MARK, QUEUE, and what the handles do. */
static struct rte_flow *make_rule(const struct nic *nic, const struct rte_flow_item items[],
	struct rte_flow_action_handle *handle)
{
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue0},
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = handle},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error = {0};
	struct rte_flow *flow = rte_flow_create(nic->id, &ingress, items, actions, &error);

	if (flow == NULL)
		print_message("%s\n", error.message == NULL ? "?" : error.message);
	assert_non_null(flow);
	return flow;
}

static uint64_t hits(const struct nic *nic, struct rte_flow_action_handle *handle, bool reset)
{
	struct rte_flow_query_count count = {.reset = reset};
	struct rte_flow_error error;

	assert_int_equal(rte_flow_action_handle_query(nic->id, handle, &count, &error), 0);
	return count.hits;
}

/* The counter of what is gone stays in the handle, to the last packet. */
static void a_count_outlives_its_rules(void **state)
{
	struct tuple_items items, items2;
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_share", "flows=8,hostile=0");
	struct tuple tuple = nic_tuple(&nic), tuple2 = nic_tuple(&nic);
	struct rte_flow_action_handle *handle = make_handle(&nic, &count_action);
	struct rte_flow *one = make_rule(&nic, tuple_items(&items, &tuple), handle);
	struct rte_flow *two = make_rule(&nic, tuple_items(&items2, &tuple2), handle);

	assert_false(same_tuple(&tuple, &tuple2));
	nic_take(&nic, 0, 101, 7, NULL, &taken);
	uint64_t all = taken.marked;

	assert_true(all > 0);
	assert_int_equal(hits(&nic, handle, false), all);
	/* the rule's counter is the shared one */
	assert_int_equal(rte_flow_query(nic.id, one, &count_action, &count, &error), 0);
	assert_int_equal(count.hits, all);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), -EBUSY);
	assert_int_equal(rte_flow_destroy(nic.id, one, &error), 0);
	nic_take(&nic, 0, 99, 7, NULL, &taken);
	all += taken.marked;
	assert_int_equal(hits(&nic, handle, false), all);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), -EBUSY);
	assert_int_equal(rte_flow_destroy(nic.id, two, &error), 0);
	nic_take(&nic, 0, 99, 7, NULL, &taken);
	assert_int_equal(taken.marked, 0);
	/* the port's stop takes rules, not handles */
	assert_int_equal(rte_eth_dev_stop(nic.id), 0);
	nic_start(&nic);
	assert_int_equal(hits(&nic, handle, true), all);
	assert_int_equal(hits(&nic, handle, true), 0);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), 0);
	nic_close(&nic);
}

static void what_is_no_handle_is_refused(void **state)
{
	static const struct rte_flow_indir_action_conf nowhere = {0};
	static const struct rte_flow_action drop = {.type = RTE_FLOW_ACTION_TYPE_DROP};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_bad", "flows=8,hostile=0");
	struct rte_flow_action_handle *handle = make_handle(&nic, &count_action);
	struct rte_flow_action_handle *const bad[] = {
		NULL, handle, (void *)&nic, (void *)(uintptr_t)8, (void *)UINTPTR_MAX};

	assert_int_equal(
		rte_flow_action_handle_update(nic.id, handle, &count_action, &error), -ENOTSUP);
	assert_int_equal(rte_flow_action_handle_update(nic.id, handle, NULL, &error), -EINVAL);
	assert_int_equal(rte_flow_action_handle_query(nic.id, handle, NULL, &error), -EINVAL);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), 0);
	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		const struct rte_flow_action actions[] = {
			{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = bad[i]},
			{.type = RTE_FLOW_ACTION_TYPE_END}};

		assert_int_equal(rte_flow_action_handle_destroy(nic.id, bad[i], &error), -ENOENT);
		assert_int_equal(
			rte_flow_action_handle_query(nic.id, bad[i], &count, &error), -ENOENT);
		assert_int_equal(
			rte_flow_action_handle_update(nic.id, bad[i], &count, &error), -ENOENT);
		assert_null(rte_flow_create(nic.id, &ingress, any_packet, actions, &error));
	}
	assert_null(rte_flow_action_handle_create(nic.id, &nowhere, &count_action, &error));
	assert_null(rte_flow_action_handle_create(nic.id, NULL, &count_action, &error));
	assert_null(rte_flow_action_handle_create(nic.id, &for_ingress, &drop, &error));
	assert_null(rte_flow_action_handle_create(nic.id, &for_ingress, NULL, &error));
	/* AGE and RSS have to say what they want */
	assert_null(rte_flow_action_handle_create(nic.id, &for_ingress, &age_action, &error));
	nic_close(&nic);

	nic_open(&nic, "net_flowsim_none", "flows=8,hostile=0,actions=mark+queue+count");
	assert_null(rte_flow_action_handle_create(nic.id, &for_ingress, &count_action, &error));
	nic_close(&nic);
}

static void rss_goes_where_its_handle_says(void **state)
{
	uint16_t queue = 1;
	struct rte_flow_action_rss rss = {.types = RTE_ETH_RSS_IP, .queue_num = 1, .queue = &queue};
	const struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &rss};
	struct rte_flow_error error;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_rss", "flows=8,hostile=0");
	struct rte_flow_action_handle *handle = make_handle(&nic, &action);
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = handle},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow *flow = rte_flow_create(nic.id, &ingress, any_packet, actions, &error);

	assert_non_null(flow);
	nic_take(&nic, 1, 50, 7, NULL, &taken);
	assert_int_equal(taken.marked, 50);
	nic_take(&nic, 0, 0, 7, NULL, &taken);
	assert_int_equal(taken.packets, 0);
	queue = 0;
	assert_int_equal(rte_flow_action_handle_update(nic.id, handle, &action, &error), 0);
	nic_take(&nic, 0, 50, 7, NULL, &taken);
	assert_int_equal(taken.marked, 50);
	nic_take(&nic, 1, 0, 7, NULL, &taken);
	assert_int_equal(taken.packets, 0);
	queue = 99;
	assert_true(rte_flow_action_handle_update(nic.id, handle, &action, &error) < 0);
	nic_take(&nic, 0, 50, 7, NULL, &taken);
	assert_int_equal(taken.marked, 50);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), -EBUSY);
	assert_int_equal(rte_flow_destroy(nic.id, flow, &error), 0);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), 0);
	nic_close(&nic);
}

/* Events that came, and someone who waits for them. */
struct events {
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned n;
};

static int on_event(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct events *events = arg;

	(void)port;
	(void)type;
	(void)ret;
	pthread_mutex_lock(&events->lock);
	events->n++;
	pthread_cond_signal(&events->more);
	pthread_mutex_unlock(&events->lock);
	return 0;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Until there have been more than so many; says how many. */
static unsigned wait_for_more(struct events *events, unsigned seen)
{
	struct timespec until;
	unsigned n;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&events->lock);
	while (events->n <= seen)
		assert_int_equal(pthread_cond_timedwait(&events->more, &events->lock, &until), 0);
	n = events->n;
	pthread_mutex_unlock(&events->lock);
	return n;
}

/* A rule with AGE of its own, and one with a handle's; their contexts are their own addresses. */
struct ageing {
	struct nic nic;
	struct events events;
	struct tuple tuple, tuple2;
	struct rte_flow *flow;
	struct rte_flow_action_handle *handle;
};

static void set_handle_age(const struct ageing *scene, uint32_t seconds)
{
	const struct rte_flow_update_age update = {
		.timeout_valid = 1, .timeout = seconds & 0xffffff};
	struct rte_flow_error error;

	assert_int_equal(
		rte_flow_action_handle_update(scene->nic.id, scene->handle, &update, &error), 0);
}

static void open_ageing(struct ageing *scene)
{
	const struct rte_flow_action_age age = {.timeout = 1, .context = &scene->flow};
	const struct rte_flow_action_age age2 = {.timeout = 1, .context = &scene->handle};
	const struct rte_flow_action shared = {.type = RTE_FLOW_ACTION_TYPE_AGE, .conf = &age2};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue0},
		{.type = RTE_FLOW_ACTION_TYPE_AGE, .conf = &age},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;
	struct tuple_items items;

	nic_open(&scene->nic, "net_flowsim_age", "flows=8,hostile=0");
	assert_int_equal(rte_eth_dev_callback_register(
				 scene->nic.id, RTE_ETH_EVENT_FLOW_AGED, on_event, &scene->events),
		0);
	scene->tuple = nic_tuple(&scene->nic);
	scene->tuple2 = nic_tuple(&scene->nic);
	scene->handle = make_handle(&scene->nic, &shared);
	/* it begins to age when it is told to */
	set_handle_age(scene, 0);
	make_rule(&scene->nic, tuple_items(&items, &scene->tuple2), scene->handle);
	scene->flow = rte_flow_create(
		scene->nic.id, &ingress, tuple_items(&items, &scene->tuple), actions, &error);
	assert_non_null(scene->flow);
}

static struct rte_flow_query_age ask_age(const struct ageing *scene)
{
	struct rte_flow_query_age answer;
	struct rte_flow_error error;

	assert_int_equal(
		rte_flow_query(scene->nic.id, scene->flow, &age_action, &answer, &error), 0);
	assert_true(answer.sec_since_last_hit_valid);
	return answer;
}

/* The rule's and the handle's silence, by one event or by one each, after so many. */
static void take_both(struct ageing *scene, unsigned seen)
{
	struct rte_flow_error error;
	void *contexts[4];
	unsigned told = 0;

	while (told < 2) {
		seen = wait_for_more(&scene->events, seen);
		int got = rte_flow_get_aged_flows(scene->nic.id, &contexts[told], 4 - told, &error);

		assert_true(got >= 0);
		told += (unsigned)got;
	}
	assert_int_equal(told, 2);
	assert_ptr_not_equal(contexts[0], contexts[1]);
	for (unsigned i = 0; i < 2; i++)
		assert_true(contexts[i] == &scene->flow || contexts[i] == &scene->handle);
}

/*
 * A packet comes, and the rule is not silent for a second; who was held up for that long takes what was told meanwhile,
 * and tries again. Says how many events there have been.
 */
static unsigned end_silence(struct ageing *scene, unsigned seen)
{
	struct rte_flow_error error;
	struct taken taken;
	void *contexts[4];

	for (unsigned tries = 20; tries > 0; tries--) {
		double begin = now();

		nic_take(&scene->nic, 0, 32, 7, &scene->tuple, &taken);
		assert_true(taken.tuple > 0);
		if (ask_age(scene).aged == 0)
			return seen;
		assert_true(now() - begin >= 0.9);
		seen = wait_for_more(&scene->events, seen);
		assert_int_equal(rte_flow_get_aged_flows(scene->nic.id, contexts, 4, &error), 1);
	}
	fail_msg("held up too often");
	return seen;
}

/* The last one may still be on its way to who was told already. */
static void stop_events(struct ageing *scene)
{
	double begin = now();
	int ret;

	do {
		ret = rte_eth_dev_callback_unregister(
			scene->nic.id, RTE_ETH_EVENT_FLOW_AGED, on_event, &scene->events);
	} while (ret == -EAGAIN && now() - begin < 60);
	assert_int_equal(ret, 0);
}

static void silence_is_told_once(void **state)
{
	struct ageing scene = {
		.events = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER}};
	struct rte_flow_query_age answer;
	struct rte_flow_error error;
	double begin = now();
	void *contexts[4];

	(void)state;
	open_ageing(&scene);
	const uint16_t id = scene.nic.id;

	unsigned seen = wait_for_more(&scene.events, 0);

	assert_int_equal(seen, 1);
	assert_true(now() - begin >= 1.0);
	assert_int_equal(ask_age(&scene).aged, 1);
	assert_true(ask_age(&scene).sec_since_last_hit >= 1);
	assert_int_equal(rte_flow_get_aged_flows(id, NULL, 0, &error), 1);
	assert_int_equal(rte_flow_get_aged_flows(id, contexts, 4, &error), 1);
	assert_ptr_equal(contexts[0], &scene.flow);
	assert_int_equal(rte_flow_get_aged_flows(id, contexts, 4, &error), 0);

	/* a packet, and another silence; and the handle's */
	seen = end_silence(&scene, seen);
	set_handle_age(&scene, 1);
	take_both(&scene, seen);
	assert_int_equal(rte_flow_action_handle_query(id, scene.handle, &answer, &error), 0);
	assert_int_equal(answer.aged, 1);
	stop_events(&scene);
	nic_close(&scene.nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_count_outlives_its_rules),
		cmocka_unit_test(what_is_no_handle_is_refused),
		cmocka_unit_test(rss_goes_where_its_handle_says),
		cmocka_unit_test(silence_is_told_once),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
