/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that know their packets in advance receive what rules give them besides. */
#include "flowsim_port.h"

#include <sched.h>

#define FLOWS 100

/* All UDP of one port to another: to its host, or out of it. */
static void transfer(const struct nic *from, const struct nic *to, enum rte_flow_action_type how)
{
	const struct rte_flow_attr attr = {.transfer = 1};
	const struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_UDP}, {.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action_ethdev port = {.port_id = to->id};
	const struct rte_flow_action actions[] = {
		{.type = how, .conf = &port}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;

	assert_non_null(rte_flow_create(from->id, &attr, items, actions, &error));
}

static uint64_t take_all(const struct nic *nic)
{
	struct taken taken;
	uint64_t n = 0;

	for (uint16_t queue = 0; queue < NIC_QUEUES; queue++) {
		nic_take(nic, queue, 0, 0, NULL, &taken);
		n += taken.packets;
	}
	return n;
}

static void packets_of_another_port_come_beside_ones_own(void **state)
{
	struct nic from, to;

	(void)state;
	nic_open(&from, "net_flowsim0", "flows=100,passes=1,nic=given,hostile=0");
	nic_open(&to, "net_flowsim1", "flows=100,passes=1,nic=given,hostile=0");
	transfer(&from, &to, RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR);
	assert_int_equal(take_all(&from), 0);
	assert_int_equal(take_all(&to), 2 * FLOWS);
	nic_close(&from);
	nic_close(&to);
}

static uint64_t xstat(uint16_t port, const char *name)
{
	uint64_t id, value = 0;

	assert_int_equal(rte_eth_xstats_get_id_by_name(port, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	return value;
}

/* What the NIC has sent out of a port is told there, though nobody has asked the port it came from. */
static void what_is_sent_is_told_by_the_port_it_left_by(void **state)
{
	struct nic from, to;

	(void)state;
	nic_open(&from, "net_flowsim0", "flows=100,passes=7,nic=sent,hostile=0");
	nic_open(&to, "net_flowsim1", "source=none,nic=sent,hostile=0");
	transfer(&from, &to, RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT);
	while (xstat(to.id, "tx_nic_packets") < 7 * FLOWS)
		sched_yield();
	assert_int_equal(xstat(to.id, "tx_nic_packets"), 7 * FLOWS);
	assert_int_equal(xstat(from.id, "rx_forwarded_packets"), 7 * FLOWS);
	assert_int_equal(rte_eth_dev_set_link_down(to.id), 0);
	assert_int_equal(xstat(to.id, "tx_nic_packets"), 7 * FLOWS);
	nic_close(&from);
	nic_close(&to);
}

/* A port without link takes nothing, in line or resolved. */
static void without_link_nothing_is_sent(void **state)
{
	struct rte_eth_stats stats;
	struct nic from, to;

	(void)state;
	nic_open(&from, "net_flowsim0", "flows=100,passes=7,nic=down,hostile=0");
	nic_open(&to, "net_flowsim1", "source=none,nic=down,hostile=0");
	assert_int_equal(rte_eth_dev_set_link_down(to.id), 0);
	transfer(&from, &to, RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT);
	do {
		assert_int_equal(rte_eth_stats_get(from.id, &stats), 0);
		sched_yield();
	} while (stats.imissed < 7 * FLOWS);
	assert_int_equal(stats.imissed, 7 * FLOWS);
	assert_int_equal(xstat(to.id, "tx_nic_packets"), 0);
	assert_int_equal(xstat(from.id, "rx_forwarded_packets"), 0);
	nic_close(&from);
	nic_close(&to);
}

/* A copy to a queue of one's own, and the packet itself. */
static void a_copy_comes_beside_its_packet(void **state)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_UDP}, {.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action_queue other = {.index = 1}, own = {.index = 0};
	const struct rte_flow_action copied[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &other},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	const struct rte_flow_action_sample sample = {.ratio = 4, .actions = copied};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_SAMPLE, .conf = &sample},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &own},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;
	struct taken taken;
	struct nic nic;

	(void)state;
	nic_open(&nic, "net_flowsim0", "flows=100,passes=1,hostile=0");
	assert_non_null(rte_flow_create(nic.id, &attr, items, actions, &error));
	nic_take(&nic, 0, 0, 0, NULL, &taken);
	assert_int_equal(taken.packets, FLOWS);
	nic_take(&nic, 1, 0, 0, NULL, &taken);
	assert_int_equal(taken.packets, FLOWS / 4);
	nic_close(&nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_of_another_port_come_beside_ones_own),
		cmocka_unit_test(what_is_sent_is_told_by_the_port_it_left_by),
		cmocka_unit_test(without_link_nothing_is_sent),
		cmocka_unit_test(a_copy_comes_beside_its_packet),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
