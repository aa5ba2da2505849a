/* SPDX-License-Identifier: BSD-3-Clause */

/* From lists of actions to what is done: each action, each refusal with what is at fault, sharing. */

#include "unit/flowsim_port.h"

#include <errno.h>
#include <stdlib.h>

#include <ethdev_driver.h>
#include <rte_cycles.h>
#include <rte_mtr.h>

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/packets/meter.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/flow_state.h"
#include "drivers/flowsim/sim.h"

#define END {.type = RTE_FLOW_ACTION_TYPE_END}
#define ACTION(name, pointer) {.type = RTE_FLOW_ACTION_TYPE_##name, .conf = (pointer)}

static struct nic nic, neighbour;
static struct sim_port *port;
static struct sim_actions read_last;
static struct sim_fault_at fault;

static int parse(const struct rte_flow_action *list)
{
	memset(&fault, 0, sizeof(fault));
	return sim_actions_parse(&read_last, port, 1, list, &fault);
}

static void assert_parsed(const struct rte_flow_action *list)
{
	if (parse(list) != 0)
		fail_msg("%s", fault.message);
}

static void assert_refused(const struct rte_flow_action *list, int code,
	enum rte_flow_error_type type, const void *cause)
{
	assert_int_equal(parse(list), code);
	assert_int_equal(fault.type, type);
	assert_ptr_equal(fault.cause, cause);
	assert_non_null(fault.message);
	assert_null(read_last.sampled);
}

/* Alone, and what its conf is at fault for. */
static void assert_conf_refused(enum rte_flow_action_type type, const void *conf)
{
	const struct rte_flow_action list[] = {{.type = type, .conf = conf}, END};

	assert_refused(list, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF,
		conf != NULL ? conf : (const void *)list);
}

static void test_marks_and_fates(void **state)
{
	const struct rte_flow_action_mark first = {.id = 1}, mark = {.id = 0xfffffffe};
	const struct rte_flow_action_queue queue = {.index = NIC_QUEUES - 1};
	const struct rte_flow_action_jump jump = {.group = 2};
	struct rte_flow_action_age age = {.timeout = 7, .context = &age};
	const struct rte_flow_action a[] = {ACTION(VOID, NULL), ACTION(MARK, &first),
		ACTION(COUNT, NULL), ACTION(QUEUE, &queue), ACTION(MARK, &mark), END};
	const struct rte_flow_action b[] = {ACTION(FLAG, NULL), ACTION(JUMP, &jump), END};
	const struct rte_flow_action c[] = {ACTION(PASSTHRU, NULL), ACTION(AGE, &age), END};
	const struct rte_flow_action d[] = {ACTION(DROP, NULL), END};

	(void)state;
	assert_parsed(a);
	assert_int_equal(read_last.named, 1 << RTE_FLOW_ACTION_TYPE_MARK |
						  1 << RTE_FLOW_ACTION_TYPE_COUNT |
						  1 << RTE_FLOW_ACTION_TYPE_QUEUE);
	assert_true(read_last.mark && read_last.count);
	assert_int_equal(read_last.mark_id, 0xfffffffe);
	assert_int_equal(read_last.fate, SIM_FATE_QUEUE);
	assert_int_equal(read_last.queue, NIC_QUEUES - 1);
	assert_parsed(b);
	assert_true(read_last.flag && read_last.jump && !read_last.mark);
	assert_int_equal(read_last.jump_group, 2);
	assert_int_equal(read_last.fate, SIM_FATE_NONE);
	assert_parsed(c);
	assert_true(read_last.passthru && read_last.age);
	assert_int_equal(read_last.age_seconds, 7);
	assert_ptr_equal(read_last.age_context, &age);
	assert_parsed(d);
	assert_int_equal(read_last.fate, SIM_FATE_DROP);
	assert_parsed(&a[5]);
	assert_int_equal(read_last.named, 0);
}

static void test_ports(void **state)
{
	const struct rte_flow_action_port_id own = {.original = 1, .id = 999};
	const struct rte_flow_action_port_id far = {.id = UINT32_MAX}, other = {.id = neighbour.id};
	const struct rte_flow_action_ethdev to = {.port_id = nic.id}, beyond = {.port_id = 65535};
	const struct rte_flow_action_ethdev stranger = {.port_id = neighbour.id};
	const struct rte_flow_action a[] = {ACTION(PORT_ID, &own), END};
	const struct rte_flow_action b[] = {ACTION(REPRESENTED_PORT, &to), END};
	const struct rte_flow_action c[] = {ACTION(PORT_REPRESENTOR, &to), END};

	(void)state;
	assert_parsed(a);
	assert_int_equal(read_last.fate, SIM_FATE_SEND);
	assert_int_equal(read_last.port, nic.id);
	assert_parsed(b);
	assert_int_equal(read_last.fate, SIM_FATE_SEND);
	assert_parsed(c);
	assert_int_equal(read_last.fate, SIM_FATE_GIVE);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_PORT_ID, &far);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_PORT_ID, &other);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, &beyond);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR, &stranger);
}

static void test_refusals(void **state)
{
	const struct rte_flow_action_queue queue = {.index = NIC_QUEUES}, fine = {.index = 0};
	const struct rte_flow_action_jump jump = {.group = 1}, low = {.group = 0};
	const struct rte_flow_action_age age = {.timeout = 0};
	const struct rte_flow_action_meter meter = {.mtr_id = 7};
	const struct rte_flow_action two[] = {ACTION(QUEUE, &fine), ACTION(DROP, NULL), END};
	const struct rte_flow_action none[] = {ACTION(PASSTHRU, NULL), ACTION(QUEUE, &fine), END};
	const struct rte_flow_action strange[] = {ACTION(VXLAN_DECAP, NULL), END};
	const struct rte_flow_action beyond[] = {{.type = (enum rte_flow_action_type)5000}, END};
	const struct rte_flow_action below[] = {{.type = (enum rte_flow_action_type) - 1}, END};
	static const enum rte_flow_action_type need[] = {RTE_FLOW_ACTION_TYPE_MARK,
		RTE_FLOW_ACTION_TYPE_QUEUE, RTE_FLOW_ACTION_TYPE_RSS, RTE_FLOW_ACTION_TYPE_JUMP,
		RTE_FLOW_ACTION_TYPE_AGE, RTE_FLOW_ACTION_TYPE_PORT_ID,
		RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR,
		RTE_FLOW_ACTION_TYPE_METER, RTE_FLOW_ACTION_TYPE_SAMPLE,
		RTE_FLOW_ACTION_TYPE_INDIRECT, RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN,
		RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID, RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP,
		RTE_FLOW_ACTION_TYPE_SET_MAC_SRC, RTE_FLOW_ACTION_TYPE_SET_MAC_DST,
		RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, RTE_FLOW_ACTION_TYPE_SET_IPV4_DST,
		RTE_FLOW_ACTION_TYPE_SET_IPV6_SRC, RTE_FLOW_ACTION_TYPE_SET_IPV6_DST,
		RTE_FLOW_ACTION_TYPE_SET_TP_SRC, RTE_FLOW_ACTION_TYPE_SET_TP_DST};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(need); i++)
		assert_conf_refused(need[i], NULL);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_QUEUE, &queue);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_JUMP, &jump);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_JUMP, &low);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_AGE, &age);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_METER, &meter);
	assert_refused(two, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &two[1]);
	assert_refused(none, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &none[1]);
	assert_refused(strange, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &strange[0]);
	assert_refused(beyond, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &beyond[0]);
	assert_refused(below, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &below[0]);
	assert_refused(NULL, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, NULL);
}

/* A list without END is not read beyond what a list may have. */
static void test_no_end(void **state)
{
	struct rte_flow_action *list = calloc(SIM_MAX_ACTIONS, sizeof(*list));

	(void)state;
	for (unsigned i = 0; i < SIM_MAX_ACTIONS; i++)
		list[i].type = RTE_FLOW_ACTION_TYPE_VOID;
	assert_refused(list, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, list);
	list[SIM_MAX_ACTIONS - 1].type = RTE_FLOW_ACTION_TYPE_END;
	assert_parsed(list);
	free(list);
}

static void test_edits(void **state)
{
	const struct rte_flow_action_of_push_vlan push = {.ethertype = RTE_BE16(0x88a8)};
	const struct rte_flow_action_of_push_vlan bad_push = {.ethertype = RTE_BE16(0x0800)};
	const struct rte_flow_action_of_set_vlan_vid vid = {.vlan_vid = RTE_BE16(4095)};
	const struct rte_flow_action_of_set_vlan_vid bad_vid = {.vlan_vid = RTE_BE16(4096)};
	const struct rte_flow_action_of_set_vlan_pcp pcp = {.vlan_pcp = 7}, bad_pcp = {8};
	const struct rte_flow_action_set_mac mac = {.mac_addr = {1, 2, 3, 4, 5, 6}};
	const struct rte_flow_action_set_ipv4 ipv4 = {.ipv4_addr = RTE_BE32(0x0a000001)};
	const struct rte_flow_action_set_tp tp = {.port = RTE_BE16(80)};
	struct rte_flow_action_set_ipv6 ipv6;
	const struct rte_flow_action list[] = {ACTION(OF_PUSH_VLAN, &push),
		ACTION(OF_SET_VLAN_VID, &vid), ACTION(OF_SET_VLAN_PCP, &pcp),
		ACTION(SET_MAC_DST, &mac), ACTION(SET_IPV4_SRC, &ipv4), ACTION(SET_IPV6_DST, &ipv6),
		ACTION(SET_TP_DST, &tp), ACTION(DEC_TTL, NULL), ACTION(OF_POP_VLAN, NULL), END};
	static const uint8_t address[4] = {10, 0, 0, 1};
	struct rte_flow_action many[SIM_MAX_EDITS + 2];

	(void)state;
	memset(&ipv6, 0x5a, sizeof(ipv6));
	assert_parsed(list);
	assert_int_equal(read_last.n_edits, 9);
	assert_int_equal(read_last.edits[0].type, SIM_EDIT_PUSH_VLAN);
	assert_memory_equal(read_last.edits[0].value, "\x88\xa8", 2);
	assert_memory_equal(read_last.edits[1].value, "\x0f\xff", 2);
	assert_int_equal(read_last.edits[2].value[0], 7);
	assert_memory_equal(read_last.edits[3].value, mac.mac_addr, 6);
	assert_memory_equal(read_last.edits[4].value, address, 4);
	assert_memory_equal(read_last.edits[5].value, &ipv6, 16);
	assert_memory_equal(read_last.edits[6].value, "\x00\x50", 2);
	assert_int_equal(read_last.edits[8].type, SIM_EDIT_POP_VLAN);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN, &bad_push);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID, &bad_vid);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP, &bad_pcp);
	for (unsigned i = 0; i <= SIM_MAX_EDITS; i++)
		many[i] = list[7];
	many[SIM_MAX_EDITS + 1] = list[9];
	assert_refused(many, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &many[SIM_MAX_EDITS]);
}

static void test_rss(void **state)
{
	static uint16_t queues[SIM_MAX_RSS_QUEUES + 1];
	static const uint8_t key[SIM_RSS_KEY + 1] = {1, 2, 3};
	struct rte_flow_action_rss rss = {.func = RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ,
		.types = RTE_ETH_RSS_IP,
		.key_len = SIM_RSS_KEY,
		.key = key,
		.queue_num = SIM_MAX_RSS_QUEUES,
		.queue = queues};
	const struct rte_flow_action list[] = {ACTION(RSS, &rss), END};
	const struct rte_flow_action_rss good = rss;

	(void)state;
	queues[SIM_MAX_RSS_QUEUES - 1] = 1;
	assert_parsed(list);
	assert_int_equal(read_last.fate, SIM_FATE_RSS);
	assert_int_equal(read_last.rss.n_queues, SIM_MAX_RSS_QUEUES);
	assert_int_equal(read_last.rss.queues[SIM_MAX_RSS_QUEUES - 1], 1);
	assert_int_equal(read_last.rss.types, RTE_ETH_RSS_IP);
	assert_memory_equal(read_last.rss.key, key, SIM_RSS_KEY);
	rss.queue_num = SIM_MAX_RSS_QUEUES + 1;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss.queue_num = UINT32_MAX;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss.queue_num = 0;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss = good;
	rss.queue = NULL;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss = good;
	rss.key_len = SIM_RSS_KEY + 1;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss.key_len = UINT32_MAX;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss = good;
	rss.key = NULL;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss = good;
	rss.func = (enum rte_eth_hash_function)77;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	rss = good;
	rss.level = 2;
	assert_refused(list, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &rss);
	rss = good;
	queues[7] = NIC_QUEUES;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_RSS, &rss);
	queues[7] = 0;
}

static void test_sample(void **state)
{
	const struct rte_flow_action_mark mark = {.id = 5};
	const struct rte_flow_action_queue queue = {.index = 1};
	const struct rte_flow_action_set_tp tp = {.port = RTE_BE16(80)};
	const struct rte_flow_action copy[] = {ACTION(MARK, &mark), ACTION(QUEUE, &queue), END};
	const struct rte_flow_action counted[] = {ACTION(COUNT, NULL), END};
	struct rte_flow_action_sample sample = {.ratio = 3, .actions = copy}, deep[200];
	const struct rte_flow_action list[] = {ACTION(SET_TP_SRC, &tp), ACTION(DEC_TTL, NULL),
		ACTION(SAMPLE, &sample), ACTION(SET_TP_DST, &tp), END};
	struct rte_flow_action nested[RTE_DIM(deep)][2];
	const struct rte_flow_action twice[] = {
		ACTION(SAMPLE, &sample), ACTION(SAMPLE, &sample), END};

	(void)state;
	assert_parsed(list);
	assert_int_equal(read_last.sample_ratio, 3);
	assert_int_equal(read_last.sample_at, 2);
	assert_int_equal(read_last.n_edits, 3);
	assert_int_equal(read_last.sampled->mark_id, 5);
	assert_int_equal(read_last.sampled->queue, 1);
	assert_false(read_last.mark);
	assert_true(read_last.named & 1 << RTE_FLOW_ACTION_TYPE_QUEUE);
	sim_actions_fini(&read_last);
	assert_refused(twice, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &twice[1]);
	sample.actions = counted;
	assert_refused(list, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, counted);
	sample.actions = NULL;
	assert_refused(list, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, &sample);
	sample.actions = copy;
	sample.ratio = 0;
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_SAMPLE, &sample);
	for (size_t i = 0; i < RTE_DIM(deep); i++) {
		deep[i] = (struct rte_flow_action_sample){
			.ratio = 1, .actions = nested[(i + 1) % RTE_DIM(deep)]};
		nested[i][0] = (struct rte_flow_action)ACTION(SAMPLE, &deep[i]);
		nested[i][1] = (struct rte_flow_action)END;
	}
	assert_refused(nested[0], -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, nested[1]);
}

static void test_handles(void **state)
{
	const struct rte_flow_indir_action_conf conf = {.ingress = 1};
	const struct rte_flow_action count = ACTION(COUNT, NULL);
	struct rte_flow_action_handle *handle, *foreign;
	struct rte_flow_error error;
	int on_stack = 0;

	(void)state;
	handle = rte_flow_action_handle_create(nic.id, &conf, &count, &error);
	foreign = rte_flow_action_handle_create(neighbour.id, &conf, &count, &error);
	assert_non_null(handle);
	assert_non_null(foreign);

	const struct rte_flow_action list[] = {ACTION(INDIRECT, handle), END};

	assert_parsed(list);
	assert_true(read_last.count);
	assert_ptr_equal(read_last.count_handle, handle);
	assert_true(read_last.named & 1 << RTE_FLOW_ACTION_TYPE_COUNT);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_INDIRECT, foreign);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_INDIRECT, &on_stack);
	assert_int_equal(rte_flow_action_handle_destroy(nic.id, handle, &error), 0);
	assert_conf_refused(RTE_FLOW_ACTION_TYPE_INDIRECT, handle);
	assert_int_equal(rte_flow_action_handle_destroy(neighbour.id, foreign, &error), 0);
}

static struct sim_actions *hold(const struct rte_flow_action *list)
{
	struct sim_actions *held;

	assert_parsed(list);
	held = sim_actions_hold(port, &read_last);
	assert_non_null(held);
	assert_null(read_last.sampled);
	return held;
}

static void test_shared(void **state)
{
	struct rte_flow_action_mark mark = {.id = 1}, copy_mark = {.id = 9};
	struct rte_flow_action_queue queue = {.index = 0};
	struct rte_flow_action_age age = {.timeout = 3, .context = &mark};
	struct rte_flow_action_set_tp tp = {.port = RTE_BE16(80)};
	const struct rte_flow_action copy[] = {ACTION(MARK, &copy_mark), END};
	struct rte_flow_action_sample sample = {.ratio = 2, .actions = copy};
	const uint16_t queues[] = {0, 1};
	struct rte_flow_action_rss rss = {.queue_num = 2, .queue = queues};
	const struct rte_flow_action plain[] = {
		ACTION(MARK, &mark), ACTION(AGE, &age), ACTION(QUEUE, &queue), END};
	const struct rte_flow_action rich[] = {ACTION(SAMPLE, &sample), ACTION(SET_TP_SRC, &tp),
		ACTION(MARK, &mark), ACTION(RSS, &rss), END};
	const struct rte_flow_action late[] = {ACTION(SET_TP_SRC, &tp), ACTION(SAMPLE, &sample),
		ACTION(MARK, &mark), ACTION(RSS, &rss), END};
	struct sim_actions *held[9];

	(void)state;
	held[0] = hold(plain);
	assert_int_equal(held[0]->mark_id, 0);
	assert_null(held[0]->age_context);
	mark.id = 2;
	age.context = &age;
	held[1] = hold(plain);
	assert_ptr_equal(held[1], held[0]);
	age.timeout = 4;
	held[2] = hold(plain);
	queue.index = 1;
	held[3] = hold(plain);
	held[4] = hold(rich);
	mark.id = 3;
	held[5] = hold(rich);
	assert_ptr_equal(held[5], held[4]);
	copy_mark.id = 8;
	held[6] = hold(rich);
	tp.port = RTE_BE16(81);
	held[7] = hold(rich);
	held[8] = hold(late);
	assert_int_equal(port->flow->actions_pool.n_entries, 7);
	assert_int_equal(held[6]->sampled->mark_id, 8);
	assert_int_equal(held[4]->sampled->mark_id, 9);
	assert_int_equal(held[4]->rss.queues[1], 1);
	sim_actions_share(port, held[0]);
	sim_actions_release(port, held[0]);
	for (size_t i = 0; i < RTE_DIM(held); i++)
		sim_actions_release(port, held[i]);
	sim_actions_release(port, NULL);
	assert_int_equal(port->flow->actions_pool.n_entries, 0);
}

/* As many different ones as there are ports: the table grows, all are found again, and all go. */
static void test_many(void **state)
{
	enum { MANY = 60000, SAME = 1000000 };
	struct rte_flow_action_set_tp tp = {0};
	struct rte_flow_action_mark mark = {0};
	struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action list[] = {ACTION(SET_TP_SRC, &tp), END};
	const struct rte_flow_action plain[] = {ACTION(MARK, &mark), ACTION(QUEUE, &queue), END};
	struct sim_actions **held = calloc(MANY, sizeof(void *)), *same;
	uint64_t start;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		tp.port = (rte_be16_t)i;
		held[i] = hold(list);
	}
	assert_int_equal(port->flow->actions_pool.n_entries, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		tp.port = (rte_be16_t)i;
		assert_ptr_equal(hold(list), held[i]);
		sim_actions_release(port, held[i]);
	}
	same = hold(plain);
	start = rte_rdtsc();
	for (mark.id = 0; mark.id < SAME; mark.id++)
		hold(plain);
	print_message("          %.0f ns to read and hold one of a million rules MARK + QUEUE\n",
		(double)(rte_rdtsc() - start) * 1e9 / (double)rte_get_tsc_hz() / (double)SAME);
	for (unsigned i = 0; i <= SAME; i++)
		sim_actions_release(port, same);
	for (unsigned i = 0; i < MANY; i++)
		sim_actions_release(port, held[i]);
	assert_int_equal(port->flow->actions_pool.n_entries, 0);
	free(held);
}

/* Every type, any bytes as its configuration: an answer, and no crash. */
static void test_any_bytes(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 200000; round++) {
		_Alignas(8) uint8_t bytes[64] = {0};
		struct rte_flow_action list[] = {{0}, {0}, END};

		for (unsigned i = 0; i < 2; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			list[i].type = (enum rte_flow_action_type)(seed >> 33) % 70;
			/* numbers of any kind; what would be pointers stays NULL */
			memcpy(bytes, &seed, 4);
			list[i].conf = seed >> 60 ? bytes : NULL;
		}
		if (parse(list) == 0)
			sim_actions_fini(&read_last);
		else
			assert_non_null(fault.message);
	}
}

static int begin(void **state)
{
	if (nic_begin(state) < 0)
		return -1;
	nic_open(&nic, "net_flowsim_a", "source=none,hostile=0");
	nic_open(&neighbour, "net_flowsim_b", "source=none,hostile=0");
	port = rte_eth_devices[nic.id].data->dev_private;
	return 0;
}

static int end(void **state)
{
	(void)state;
	nic_close(&nic);
	nic_close(&neighbour);
	dpdk_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks_and_fates),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_rss),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
