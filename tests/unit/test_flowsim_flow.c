/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking calls of rte_flow, as a program calls them. */
#include "flowsim_port.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include <rte_errno.h>

#include "drivers/flowsim/sim.h"

#define MARK 4711

static const struct rte_flow_attr ingress = {.ingress = 1};
static const struct rte_flow_item any_packet[] = {
	{.type = RTE_FLOW_ITEM_TYPE_ETH}, {.type = RTE_FLOW_ITEM_TYPE_END}};
static const struct rte_flow_action_mark mark = {.id = MARK};
static const struct rte_flow_action_queue queue0 = {.index = 0};
static const struct rte_flow_action mark_count[] = {
	{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
	{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue0}, {.type = RTE_FLOW_ACTION_TYPE_COUNT},
	{.type = RTE_FLOW_ACTION_TYPE_END}};
static const struct rte_flow_action count_action = {.type = RTE_FLOW_ACTION_TYPE_COUNT};

/* Refuses nothing that is not refused on purpose. */
static struct rte_flow *make(const struct nic *nic, const struct rte_flow_item items[])
{
	struct rte_flow_error error = {0};
	struct rte_flow *flow = rte_flow_create(nic->id, &ingress, items, mark_count, &error);

	if (flow == NULL)
		print_message("%s\n", error.message == NULL ? "?" : error.message);
	assert_non_null(flow);
	return flow;
}

static struct rte_flow_query_count ask(const struct nic *nic, struct rte_flow *flow, bool reset)
{
	struct rte_flow_query_count count = {.reset = reset};
	struct rte_flow_error error;

	assert_int_equal(rte_flow_query(nic->id, flow, &count_action, &count, &error), 0);
	assert_true(count.hits_set && count.bytes_set);
	return count;
}

static void rule_counts_what_it_marks(void **state)
{
	struct rte_flow_error error;
	struct tuple_items items;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_count", "flows=8,hostile=0");
	struct tuple tuple = nic_tuple(&nic);

	assert_int_equal(rte_flow_validate(
				 nic.id, &ingress, tuple_items(&items, &tuple), mark_count, &error),
		0);
	nic_take(&nic, 0, 100, MARK, &tuple, &taken);
	assert_int_equal(taken.marked, 0);

	struct rte_flow *flow = make(&nic, items.items);

	nic_take(&nic, 0, 1003, MARK, &tuple, &taken);
	assert_true(taken.tuple > 0 && taken.tuple < taken.packets);
	assert_int_equal(taken.marked, taken.tuple);
	assert_int_equal(taken.others, 0);
	struct rte_flow_query_count count = ask(&nic, flow, true);

	assert_int_equal(count.hits, taken.tuple);
	assert_int_equal(count.bytes, taken.tuple_bytes);
	nic_take(&nic, 0, 500, MARK, &tuple, &taken);
	assert_int_equal(ask(&nic, flow, false).hits, taken.tuple);
	assert_int_equal(ask(&nic, flow, true).hits, taken.tuple);
	assert_int_equal(ask(&nic, flow, false).hits, 0);

	assert_int_equal(rte_flow_destroy(nic.id, flow, &error), 0);
	nic_take(&nic, 0, 500, MARK, &tuple, &taken);
	assert_int_equal(taken.marked, 0);
	nic_close(&nic);
}

static void what_is_no_handle_is_refused(void **state)
{
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;
	struct tuple_items items;
	struct nic nic;
	uint64_t stranger[64] = {0};

	(void)state;
	nic_open(&nic, "net_flowsim_handle", "flows=8,hostile=0");
	struct tuple tuple = nic_tuple(&nic);
	struct rte_flow *flow = make(&nic, tuple_items(&items, &tuple));
	struct rte_flow *const bad[] = {NULL, flow, (void *)stranger, (void *)(uintptr_t)1,
		(void *)UINTPTR_MAX, (void *)((uintptr_t)flow + 16)};

	assert_int_equal(rte_flow_destroy(nic.id, flow, &error), 0);
	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(rte_flow_destroy(nic.id, bad[i], &error), -ENOENT);
		assert_int_equal(error.type, RTE_FLOW_ERROR_TYPE_HANDLE);
		assert_int_equal(
			rte_flow_query(nic.id, bad[i], &count_action, &count, &error), -ENOENT);
		if (bad[i] == NULL)
			continue;
		assert_int_equal(rte_flow_dev_dump(nic.id, bad[i], stderr, &error), -ENOENT);
	}
	nic_close(&nic);
}

static void attributes_and_lists_are_looked_at(void **state)
{
	static const struct rte_flow_action none[] = {{.type = RTE_FLOW_ACTION_TYPE_END}};
	static const struct {
		struct rte_flow_attr attr;
		int error;
	} cases[] = {
		{{.ingress = 0}, -EINVAL},
		{{.ingress = 1, .egress = 1}, -ENOTSUP},
		{{.ingress = 1, .reserved = 1}, -EINVAL},
		{{.ingress = 1}, 0},
		{{.transfer = 1}, 0},
	};
	struct rte_flow_error error;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_attr", "flows=8,hostile=0");
	for (unsigned i = 0; i < RTE_DIM(cases); i++)
		assert_int_equal(
			rte_flow_validate(nic.id, &cases[i].attr, any_packet, mark_count, &error),
			cases[i].error);
	assert_int_equal(rte_flow_validate(nic.id, NULL, any_packet, mark_count, &error), -EINVAL);
	assert_int_equal(rte_flow_validate(nic.id, &ingress, NULL, mark_count, &error), -EINVAL);
	assert_int_equal(rte_flow_validate(nic.id, &ingress, any_packet, NULL, &error), -EINVAL);
	(void)rte_flow_validate(nic.id, &ingress, any_packet, none, &error);
	nic_close(&nic);
}

/* So many rules on distinct ports; returns the first errno. */
static int fill(const struct nic *nic, struct rte_flow *flows[], unsigned n, unsigned *made)
{
	struct tuple tuple = {.src = 1, .dst = 2};
	struct rte_flow_error error = {0};
	struct tuple_items items;

	for (*made = 0; *made < n; (*made)++) {
		tuple.sport = rte_cpu_to_be_16((uint16_t)*made);
		flows[*made] = rte_flow_create(
			nic->id, &ingress, tuple_items(&items, &tuple), mark_count, &error);
		if (flows[*made] == NULL)
			return -rte_errno;
	}
	return 0;
}

static void a_full_table_refuses(void **state)
{
	struct rte_flow *flows[10];
	struct rte_flow_error error;
	struct nic nic;
	unsigned made;

	(void)state;
	nic_open(&nic, "net_flowsim_full", "flows=8,rules=9,hostile=0");
	assert_int_equal(fill(&nic, flows, 10, &made), -ENOSPC);
	assert_int_equal(made, 9);
	assert_int_equal(rte_flow_destroy(nic.id, flows[4], &error), 0);
	assert_int_equal(fill(&nic, &flows[4], 1, &made), 0);
	assert_int_equal(fill(&nic, &flows[9], 1, &made), -ENOSPC);
	assert_int_equal(rte_flow_flush(nic.id, &error), 0);
	assert_int_equal(rte_flow_destroy(nic.id, flows[0], &error), -ENOENT);
	assert_int_equal(fill(&nic, flows, 10, &made), -ENOSPC);
	assert_int_equal(made, 9);
	nic_close(&nic);
}

/* Refusals that lie, each turned on by itself. */
static void quirks(void **state)
{
	struct rte_flow_error error, before;
	struct rte_flow *flows[2];
	unsigned made;
	struct nic nic;

	(void)state;
	memset(&before, 0x5a, sizeof(before));
	nic_open(&nic, "net_flowsim_unfilled", "flows=8,hostile=unfilled");
	error = before;
	assert_int_equal(rte_flow_destroy(nic.id, NULL, &error), -ENOENT);
	assert_memory_equal(&error, &before, sizeof(error));
	nic_close(&nic);

	nic_open(&nic, "net_flowsim_blame", "flows=8,hostile=blame");
	assert_int_equal(rte_flow_destroy(nic.id, NULL, &error), -ENOENT);
	assert_int_equal(error.type, RTE_FLOW_ERROR_TYPE_ACTION);
	nic_close(&nic);

	nic_open(&nic, "net_flowsim_novalid", "flows=8,hostile=no_validate");
	assert_int_equal(
		rte_flow_validate(nic.id, &ingress, any_packet, mark_count, &error), -ENOSYS);
	assert_int_equal(fill(&nic, flows, 1, &made), 0);
	nic_close(&nic);

	nic_open(&nic, "net_flowsim_yes", "flows=8,actions=mark+queue,hostile=validate_yes");
	assert_int_equal(rte_flow_validate(nic.id, &ingress, any_packet, mark_count, &error), 0);
	assert_null(rte_flow_create(nic.id, &ingress, any_packet, mark_count, &error));
	nic_close(&nic);

	nic_open(&nic, "net_flowsim_errno", "flows=8,rules=1,profile=tiny,hostile=full_errno");
	assert_int_equal(fill(&nic, flows, 2, &made), -ENOSYS);
	assert_int_equal(made, 1);
	nic_close(&nic);
}

static void stop_takes_the_rules_along(void **state)
{
	struct rte_flow_error error;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_stop", "flows=8,hostile=0");
	struct rte_flow *flow = make(&nic, any_packet);

	assert_int_equal(rte_flow_isolate(nic.id, 1, &error), -EBUSY);
	assert_int_equal(rte_eth_dev_stop(nic.id), 0);
	nic_start(&nic);
	assert_int_equal(rte_flow_destroy(nic.id, flow, &error), -ENOENT);
	nic_take(&nic, 0, 100, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 0);
	nic_close(&nic);

	nic_open(&nic, "net_flowsim_keep", "flows=8,hostile=0,keep_rules=1");
	flow = make(&nic, any_packet);
	nic_take(&nic, 0, 100, MARK, NULL, &taken);
	assert_int_equal(rte_eth_dev_stop(nic.id), 0);
	assert_int_equal(ask(&nic, flow, false).hits, 100);
	nic_start(&nic);
	nic_take(&nic, 0, 50, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 50);
	assert_int_equal(ask(&nic, flow, false).hits, 150);
	nic_close(&nic);
}

/* Rules made before the start work from there on; in isolated mode nothing else arrives. */
static void isolated_ports_get_what_rules_say(void **state)
{
	struct rte_flow_error error;
	struct tuple_items items;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_alone", "flows=8,hostile=0");
	struct tuple tuple = nic_tuple(&nic);

	assert_int_equal(rte_eth_dev_stop(nic.id), 0);
	assert_int_equal(rte_flow_isolate(nic.id, 1, &error), 0);
	struct rte_flow *flow = make(&nic, tuple_items(&items, &tuple));

	nic_start(&nic);
	nic_take(&nic, 0, 64, MARK, &tuple, &taken);
	assert_int_equal(taken.tuple, 64);
	assert_int_equal(taken.marked, 64);
	assert_int_equal(ask(&nic, flow, false).hits, 64);
	nic_close(&nic);
}

static void dump_says_what_is_there(void **state)
{
	struct rte_flow_error error;
	struct taken taken;
	char *text = NULL;
	size_t size;
	FILE *file;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_dump", "flows=8,hostile=0");
	struct rte_flow *flow = make(&nic, any_packet);

	nic_take(&nic, 0, 7, MARK, NULL, &taken);
	file = open_memstream(&text, &size);
	assert_non_null(file);
	assert_int_equal(rte_flow_dev_dump(nic.id, NULL, file, &error), 0);
	assert_int_equal(rte_flow_dev_dump(nic.id, flow, file, &error), 0);
	assert_int_equal(fclose(file), 0);
	assert_non_null(strstr(text, "net_flowsim_dump: 1 rules\n"));
	assert_non_null(strstr(text,
		" live ingress group 0 priority 0: eth => mark 4711 count queue 0; 7 packets,"));
	free(text);
	nic_close(&nic);
}

/* A transfer rule of another port's packets: made here, works there. */
static void transfer_rules_reach_other_ports(void **state)
{
	static const struct rte_flow_attr transfer = {.transfer = 1};
	struct rte_flow_item_ethdev port = {0};
	const struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT, .spec = &port},
		{.type = RTE_FLOW_ITEM_TYPE_END}};
	struct rte_flow_error error;
	struct taken taken;
	struct nic one, two;

	(void)state;
	nic_open(&one, "net_flowsim_one", "flows=8,hostile=0,nic=pair");
	nic_open(&two, "net_flowsim_two", "flows=8,hostile=0,nic=pair");
	port.port_id = two.id;
	struct rte_flow *flow = rte_flow_create(one.id, &transfer, items, mark_count, &error);

	assert_non_null(flow);
	nic_take(&one, 0, 20, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 0);
	nic_take(&two, 0, 33, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 33);
	assert_int_equal(ask(&one, flow, false).hits, 33);
	assert_int_equal(rte_flow_destroy(two.id, flow, &error), -ENOENT);
	assert_int_equal(rte_flow_flush(two.id, &error), 0);
	assert_int_equal(ask(&one, flow, false).hits, 33);
	assert_int_equal(rte_flow_destroy(one.id, flow, &error), 0);
	assert_non_null(rte_flow_create(one.id, &transfer, items, mark_count, &error));
	assert_int_equal(rte_flow_flush(one.id, &error), 0);
	nic_take(&two, 0, 33, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 0);
	port.port_id = 31;
	assert_null(rte_flow_create(one.id, &transfer, items, mark_count, &error));
	nic_close(&two);
	nic_close(&one);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void latency_is_the_callers(void **state)
{
	struct rte_flow *flows[10];
	struct rte_flow_error error;
	struct nic nic;
	unsigned made;
	double begin;

	(void)state;
	nic_open(
		&nic, "net_flowsim_slow", "flows=8,hostile=0,create_ns=3000000,destroy_ns=2000000");
	begin = now();
	assert_int_equal(fill(&nic, flows, 10, &made), 0);
	assert_true(now() - begin >= 0.03);
	begin = now();
	assert_int_equal(rte_flow_flush(nic.id, &error), 0);
	assert_true(now() - begin >= 0.02);
	nic_close(&nic);
}

/* Some NICs have a call that empties the table, however many rules there are. */
static void flush_may_be_one_call(void **state)
{
	struct rte_flow *flows[32];
	struct rte_flow_error error;
	struct nic nic;
	unsigned made;
	double begin;

	(void)state;
	nic_open(&nic, "net_flowsim_empty",
		"flows=8,hostile=0,destroy_ns=500000000,flush_ns=3000000");
	assert_int_equal(fill(&nic, flows, 32, &made), 0);
	begin = now();
	assert_int_equal(rte_flow_flush(nic.id, &error), 0);
	assert_in_range((uint64_t)(1000 * (now() - begin)), 3, 15999);
	assert_int_equal(fill(&nic, flows, 32, &made), 0);
	assert_int_equal(made, 32);
	assert_int_equal(rte_flow_flush(nic.id, &error), 0);
	/* of a table that is empty nothing is to be cleared */
	assert_int_equal(rte_flow_flush(nic.id, &error), 0);
	nic_close(&nic);
}

/* Counts on while nobody receives. */
static void count_goes_on(const struct nic *nic, struct rte_flow *flow)
{
	uint64_t begin = ask(nic, flow, false).hits;
	double give_up = now() + 60;

	while (ask(nic, flow, false).hits < begin + 1000) {
		assert_true(now() < give_up);
		(void)sched_yield();
	}
}

static void time_turns_what_the_nic_keeps(void **state)
{
	static const struct rte_flow_action drop_count[] = {{.type = RTE_FLOW_ACTION_TYPE_DROP},
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim_drop", "flows=8,hostile=0,keep_rules=1");
	struct rte_flow *flow = rte_flow_create(nic.id, &ingress, any_packet, drop_count, &error);

	assert_non_null(flow);
	nic_take(&nic, 0, 0, MARK, NULL, &taken);
	assert_int_equal(taken.packets, 0);
	count_goes_on(&nic, flow);
	assert_int_equal(rte_eth_dev_stop(nic.id), 0);
	uint64_t stopped = ask(&nic, flow, false).hits;

	assert_int_equal(ask(&nic, flow, false).hits, stopped);
	nic_start(&nic);
	count_goes_on(&nic, flow);
	nic_close(&nic);
}

struct leaver {
	const struct nic *nic;
	struct rte_flow *flow;
};

static void *destroy(void *arg)
{
	struct leaver *leaver = arg;
	struct rte_flow_error error;

	return rte_flow_destroy(leaver->nic->id, leaver->flow, &error) == 0 ? leaver : NULL;
}

/* A rule that leaves works on until it is gone; who asked for it waits. */
static void a_rule_works_until_it_is_gone(void **state)
{
	struct taken taken;
	struct nic nic;
	struct leaver leaver = {.nic = &nic};
	pthread_t thread;
	void *done;

	(void)state;
	nic_open(&nic, "net_flowsim_stall", "flows=8,hostile=0,fault=stall_delete:ms=2000");
	leaver.flow = make(&nic, any_packet);
	struct sim_port *port = sim_port_of(&rte_eth_devices[nic.id]);
	enum sim_rule_state now_is = SIM_RULE_LIVE;

	assert_int_equal(pthread_create(&thread, NULL, destroy, &leaver), 0);
	while (now_is != SIM_RULE_LEAVING) {
		pthread_mutex_lock(&port->lock);
		assert_false(TAILQ_EMPTY(&port->rules));
		now_is = leaver.flow->state;
		pthread_mutex_unlock(&port->lock);
		(void)sched_yield();
	}
	nic_take(&nic, 0, 64, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 64);
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_ptr_equal(done, &leaver);
	nic_take(&nic, 0, 64, MARK, NULL, &taken);
	assert_int_equal(taken.marked, 0);
	nic_close(&nic);
}

/* What it costs is told, not judged. */
static void many_rules(void **state)
{
	enum { N = 60000 };
	struct rte_flow **flows = calloc(N, sizeof(*flows));
	struct rte_flow_error error;
	struct nic nic;
	unsigned made;
	double begin, created, destroyed;

	(void)state;
	assert_non_null(flows);
	nic_open(&nic, "net_flowsim_many", "source=none,hostile=0");
	/* the second time in memory that is there */
	for (unsigned round = 0; round < 2; round++) {
		begin = now();
		assert_int_equal(fill(&nic, flows, N, &made), 0);
		created = now();
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(rte_flow_destroy(nic.id, flows[i], &error), 0);
		destroyed = now();
		print_message("create %.0f ns, destroy %.0f ns\n",
			(created - begin) * 1e9 / (double)N,
			(destroyed - created) * 1e9 / (double)N);
	}
	nic_close(&nic);
	free(flows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_counts_what_it_marks),
		cmocka_unit_test(what_is_no_handle_is_refused),
		cmocka_unit_test(attributes_and_lists_are_looked_at),
		cmocka_unit_test(a_full_table_refuses),
		cmocka_unit_test(quirks),
		cmocka_unit_test(stop_takes_the_rules_along),
		cmocka_unit_test(isolated_ports_get_what_rules_say),
		cmocka_unit_test(dump_says_what_is_there),
		cmocka_unit_test(transfer_rules_reach_other_ports),
		cmocka_unit_test(latency_is_the_callers),
		cmocka_unit_test(flush_may_be_one_call),
		cmocka_unit_test(a_rule_works_until_it_is_gone),
		cmocka_unit_test(time_turns_what_the_nic_keeps),
		cmocka_unit_test(many_rules),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
