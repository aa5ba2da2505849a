/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any calls of rte_flow on a port of the simulated NIC, with any items and actions: create, validate,
 * destroy, query, flush, indirect actions, templates and rules by them, with packets received in between
 * and the port stopped and started. Handles are those that the driver gave; what was destroyed is tried
 * once more. Besides what sanitizers see: a refusal is filled in (hostile=0) and has a code, nothing is
 * left when all that was made has been destroyed, and every packet's memory has come back.
 */

#include <errno.h>
#include <stdint.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "base/dpdk.h"
#include "flowsim_input.h"

#define MAX_HANDLES 16
#define MAX_ACTIONS 8
#define MAX_CALLS 48
#define N_QUEUES 2
#define POOL 255
#define N_FLOW_QUEUES 2

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __lsan_is_turned_off(void);

/* A port's memory lies in DPDK's, where the sanitizer sees no pointers: all would be lost to it. */
int __lsan_is_turned_off(void)
{
	return 1;
}

static uint16_t port;
static struct rte_mempool *pool;
static FILE *nowhere;

struct handles {
	struct rte_flow *rule[MAX_HANDLES];
	struct rte_flow *async_rule[MAX_HANDLES];
	struct rte_flow_action_handle *action[MAX_HANDLES];
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
	unsigned n_rules, n_async, n_actions;
	struct rte_flow *destroyed;
};

struct action_list {
	struct rte_flow_action actions[MAX_ACTIONS + 1];
	void *owned[4 * MAX_ACTIONS];
	unsigned n_owned;
};

static void *own(struct action_list *list, void *memory)
{
	list->owned[list->n_owned++] = memory;
	return memory;
}

static void free_actions(struct action_list *list)
{
	while (list->n_owned > 0)
		free(list->owned[--list->n_owned]);
}

static const struct {
	enum rte_flow_action_type type;
	size_t size;
} kinds[] = {
	{RTE_FLOW_ACTION_TYPE_VOID, 0},
	{RTE_FLOW_ACTION_TYPE_PASSTHRU, 0},
	{RTE_FLOW_ACTION_TYPE_JUMP, sizeof(struct rte_flow_action_jump)},
	{RTE_FLOW_ACTION_TYPE_MARK, sizeof(struct rte_flow_action_mark)},
	{RTE_FLOW_ACTION_TYPE_FLAG, 0},
	{RTE_FLOW_ACTION_TYPE_QUEUE, sizeof(struct rte_flow_action_queue)},
	{RTE_FLOW_ACTION_TYPE_DROP, 0},
	{RTE_FLOW_ACTION_TYPE_COUNT, sizeof(struct rte_flow_action_count)},
	{RTE_FLOW_ACTION_TYPE_RSS, sizeof(struct rte_flow_action_rss)},
	{RTE_FLOW_ACTION_TYPE_AGE, sizeof(struct rte_flow_action_age)},
	{RTE_FLOW_ACTION_TYPE_PORT_ID, sizeof(struct rte_flow_action_port_id)},
	{RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, sizeof(struct rte_flow_action_ethdev)},
	{RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR, sizeof(struct rte_flow_action_ethdev)},
	{RTE_FLOW_ACTION_TYPE_OF_POP_VLAN, 0},
	{RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN, sizeof(struct rte_flow_action_of_push_vlan)},
	{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID, sizeof(struct rte_flow_action_of_set_vlan_vid)},
	{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP, sizeof(struct rte_flow_action_of_set_vlan_pcp)},
	{RTE_FLOW_ACTION_TYPE_SET_MAC_SRC, sizeof(struct rte_flow_action_set_mac)},
	{RTE_FLOW_ACTION_TYPE_SET_MAC_DST, sizeof(struct rte_flow_action_set_mac)},
	{RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, sizeof(struct rte_flow_action_set_ipv4)},
	{RTE_FLOW_ACTION_TYPE_SET_IPV6_DST, sizeof(struct rte_flow_action_set_ipv6)},
	{RTE_FLOW_ACTION_TYPE_SET_TP_DST, sizeof(struct rte_flow_action_set_tp)},
	{RTE_FLOW_ACTION_TYPE_DEC_TTL, 0},
	{RTE_FLOW_ACTION_TYPE_METER, sizeof(struct rte_flow_action_meter)},
	{RTE_FLOW_ACTION_TYPE_SAMPLE, sizeof(struct rte_flow_action_sample)},
	{RTE_FLOW_ACTION_TYPE_INDIRECT, 0},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void take_actions(
	struct input *input, struct handles *handles, struct action_list *list, unsigned depth);

/* Pointers inside of a conf must be right; their lengths are what the input says, within bounds. */
static void mend(struct input *input, struct handles *handles, struct action_list *list,
	enum rte_flow_action_type type, void *conf, struct action_list *inner)
{
	if (type == RTE_FLOW_ACTION_TYPE_RSS) {
		struct rte_flow_action_rss *rss = conf;

		rss->queue_num = take_byte(input) % 200;
		rss->key_len = take_byte(input) % 80;
		rss->queue = own(list, take_bytes(input, rss->queue_num * sizeof(uint16_t)));
		rss->key = own(list, take_bytes(input, rss->key_len));
		if (take_byte(input) & 1)
			rss->queue = NULL, rss->queue_num = 0;
	} else if (type == RTE_FLOW_ACTION_TYPE_SAMPLE) {
		struct rte_flow_action_sample *sample = conf;

		sample->actions = NULL;
		if (inner != NULL) {
			take_actions(input, handles, inner, 1);
			sample->actions = inner->actions;
		}
	}
}

static struct action_list inner_list;

static void take_actions(
	struct input *input, struct handles *handles, struct action_list *list, unsigned depth)
{
	unsigned n = take_byte(input) % (MAX_ACTIONS + 1);

	memset(list, 0, sizeof(*list));
	for (unsigned i = 0; i < n; i++) {
		unsigned kind = take_byte(input);
		struct rte_flow_action *action = &list->actions[i];
		struct action_list *inner = NULL;

		if (kind >= 2 * N_KINDS) {
			action->type = (enum rte_flow_action_type)kind;
			action->conf = own(list, calloc(1, 128));
			continue;
		}
		kind %= N_KINDS;
		action->type = kinds[kind].type;
		if (action->type == RTE_FLOW_ACTION_TYPE_INDIRECT) {
			action->conf =
				handles->n_actions == 0
					? NULL
					: handles->action[take_byte(input) % handles->n_actions];
			continue;
		}
		if (kinds[kind].size == 0 || take_byte(input) % 16 == 0)
			continue;

		void *conf = own(list, take_bytes(input, kinds[kind].size));

		/* one list inside of another, once */
		if (depth == 0 && inner_list.n_owned == 0)
			inner = &inner_list;
		mend(input, handles, list, action->type, conf, inner);
		action->conf = conf;
	}
}

static void refused(int ret, const struct rte_flow_error *error)
{
	if (ret >= 0)
		return;
	check(ret >= -4095, "code");
	check(error->type != RTE_FLOW_ERROR_TYPE_NONE, "filled in");
}

static struct rte_flow_attr take_attr(struct input *input)
{
	unsigned bits = take_byte(input), numbers = take_byte(input);

	return (struct rte_flow_attr){
		.group = numbers & 3,
		.priority = numbers >> 2 & 3,
		/* mostly ingress alone */
		.ingress = (bits & 3) != 0,
		.egress = (bits & 12) == 12,
		.transfer = (bits & 48) == 48,
	};
}

static void create(struct input *input, struct handles *handles, bool only_validate)
{
	struct rte_flow_attr attr = take_attr(input);
	struct list list = take_list(input);
	struct rte_flow_error error = {0};
	struct action_list actions;

	take_actions(input, handles, &actions, 0);
	if (only_validate) {
		refused(rte_flow_validate(port, &attr, list.items, actions.actions, &error),
			&error);
	} else if (handles->n_rules < MAX_HANDLES) {
		struct rte_flow *rule =
			rte_flow_create(port, &attr, list.items, actions.actions, &error);

		if (rule != NULL)
			handles->rule[handles->n_rules++] = rule;
		else
			refused(-rte_errno, &error);
	}
	free_actions(&actions);
	free_actions(&inner_list);
	free_list(&list);
}

static void destroy(struct input *input, struct handles *handles)
{
	struct rte_flow_error error = {0};
	unsigned i;

	if (handles->destroyed != NULL && take_byte(input) & 1)
		check(rte_flow_destroy(port, handles->destroyed, &error) < 0, "destroyed twice");
	if (handles->n_rules == 0)
		return;
	i = take_byte(input) % handles->n_rules;
	handles->destroyed = handles->rule[i];
	check(rte_flow_destroy(port, handles->rule[i], &error) == 0, "destroyed");
	handles->rule[i] = handles->rule[--handles->n_rules];
}

static void query(struct input *input, struct handles *handles)
{
	struct rte_flow_query_count count = {.reset = take_byte(input) & 1};
	struct rte_flow_query_age age;
	struct rte_flow_error error = {0};
	struct rte_flow_action what[2] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT}};
	unsigned kind = take_byte(input);
	void *data = &count;

	if (handles->n_rules == 0)
		return;
	if (kind & 1) {
		what[0].type = RTE_FLOW_ACTION_TYPE_AGE;
		data = &age;
	} else if (kind & 2) {
		what[0].type = RTE_FLOW_ACTION_TYPE_MARK;
	}
	refused(rte_flow_query(port, handles->rule[kind % handles->n_rules], what, data, &error),
		&error);
}

static void receive(unsigned tries)
{
	struct rte_mbuf *packets[32];

	for (unsigned i = 0; i <= tries; i++) {
		uint16_t n = rte_eth_rx_burst(port, (uint16_t)(i % N_QUEUES), packets, 32);

		rte_eth_tx_burst(port, 0, packets, n);
	}
}

static void indirect(struct input *input, struct handles *handles)
{
	const struct rte_flow_indir_action_conf conf = {.ingress = 1};
	struct rte_flow_error error = {0};
	struct action_list list;
	unsigned what = take_byte(input) % 4, i = take_byte(input);

	take_actions(input, handles, &list, 1);
	if (what == 0 && handles->n_actions < MAX_HANDLES) {
		struct rte_flow_action_handle *handle =
			rte_flow_action_handle_create(port, &conf, &list.actions[0], &error);

		if (handle != NULL)
			handles->action[handles->n_actions++] = handle;
	} else if (handles->n_actions > 0) {
		struct rte_flow_action_handle **handle = &handles->action[i % handles->n_actions];
		struct rte_flow_query_count count = {0};
		struct rte_flow_query_age age;
		union {
			struct rte_flow_query_count count;
			struct rte_flow_query_age age;
		} data = {.count = count};

		(void)age;
		if (what == 1)
			refused(rte_flow_action_handle_query(port, *handle, &data, &error), &error);
		else if (what == 2)
			refused(rte_flow_action_handle_update(
					port, *handle, &list.actions[0], &error),
				&error);
		else if (rte_flow_action_handle_destroy(port, *handle, &error) == 0)
			*handle = handles->action[--handles->n_actions];
	}
	free_actions(&list);
}

static void drop_async(struct handles *handles)
{
	const struct rte_flow_op_attr attr = {0};
	struct rte_flow_op_result results[32];
	struct rte_flow_error error = {0};

	for (unsigned tries = 0; handles->n_async > 0 && tries < 1000000; tries++) {
		if (rte_flow_async_destroy(port, 0, &attr,
			    handles->async_rule[handles->n_async - 1], NULL, &error) == 0)
			handles->n_async--;
		rte_flow_push(port, 0, &error);
		rte_flow_pull(port, 0, results, 32, &error);
	}
	check(handles->n_async == 0, "rules of queues");
	for (unsigned tries = 0; handles->table != NULL && tries < 1000000; tries++) {
		/* what was flushed may wait to be pushed still */
		rte_flow_push(port, 0, &error);
		rte_flow_pull(port, 0, results, 32, &error);
		if (rte_flow_template_table_destroy(port, handles->table, &error) == 0)
			handles->table = NULL;
	}
	check(handles->table == NULL, error.message != NULL ? error.message : "table destroyed");
	if (handles->actions != NULL)
		check(rte_flow_actions_template_destroy(port, handles->actions, &error) == 0,
			"actions template");
	if (handles->pattern != NULL)
		check(rte_flow_pattern_template_destroy(port, handles->pattern, &error) == 0,
			"pattern template");
	handles->actions = NULL;
	handles->pattern = NULL;
}

/* Templates and a table anew. */
static void make_table(struct input *input, struct handles *handles)
{
	const struct rte_flow_pattern_template_attr pattern_attr = {
		.relaxed_matching = take_byte(input) & 1, .ingress = 1};
	const struct rte_flow_actions_template_attr actions_attr = {.ingress = 1};
	const struct rte_flow_template_table_attr attr = {
		.flow_attr = {.ingress = 1, .group = take_byte(input) & 1},
		.nb_flows = take_byte(input) & 15};
	struct rte_flow_error error = {0};
	struct list list = take_list(input);
	struct action_list actions, masks;

	drop_async(handles);
	handles->pattern =
		rte_flow_pattern_template_create(port, &pattern_attr, list.items, &error);
	take_actions(input, handles, &actions, 1);
	take_actions(input, handles, &masks, 1);
	/* masks are for the same actions */
	for (unsigned i = 0; i <= MAX_ACTIONS; i++)
		if (take_byte(input) & 7)
			masks.actions[i] = actions.actions[i];
	handles->actions = rte_flow_actions_template_create(
		port, &actions_attr, actions.actions, masks.actions, &error);
	if (handles->pattern != NULL && handles->actions != NULL)
		handles->table = rte_flow_template_table_create(
			port, &attr, &handles->pattern, 1, &handles->actions, 1, &error);
	free_actions(&actions);
	free_actions(&masks);
	free_list(&list);
}

static void async(struct input *input, struct handles *handles)
{
	const struct rte_flow_op_attr attr = {.postpone = take_byte(input) & 1};
	struct rte_flow_op_result results[8];
	struct rte_flow_error error = {0};
	struct list list = take_list(input);
	struct action_list actions;

	take_actions(input, handles, &actions, 1);
	if (handles->table != NULL && handles->n_async < MAX_HANDLES) {
		struct rte_flow *rule = rte_flow_async_create(port, 0, &attr, handles->table,
			list.items, take_byte(input) & 1, actions.actions, take_byte(input) & 1,
			NULL, &error);

		if (rule != NULL)
			handles->async_rule[handles->n_async++] = rule;
	}
	rte_flow_push(port, take_byte(input) & 1, &error);
	rte_flow_pull(port, take_byte(input) & 1, results, 8, &error);
	free_actions(&actions);
	free_list(&list);
}

static void restart(struct handles *handles)
{
	/* rules go with the stop */
	drop_async(handles);
	check(rte_eth_dev_stop(port) == 0, "stop");
	handles->n_rules = 0;
	handles->destroyed = NULL;
	check(rte_eth_dev_start(port) == 0, "start");
}

static void one_call(struct input *input, struct handles *handles)
{
	struct rte_flow_error error = {0};
	void *contexts[4];

	switch (take_byte(input) % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		create(input, handles, false);
		break;
	case 5:
		create(input, handles, true);
		break;
	case 6:
		destroy(input, handles);
		break;
	case 7:
		query(input, handles);
		break;
	case 8:
		receive(take_byte(input) & 7);
		break;
	case 9:
	case 10:
		indirect(input, handles);
		break;
	case 11:
		make_table(input, handles);
		break;
	case 12:
	case 13:
		async(input, handles);
		break;
	case 14:
		refused(rte_flow_dev_dump(port, NULL, nowhere, &error), &error);
		refused(rte_flow_get_aged_flows(port, contexts, 4, &error), &error);
		break;
	default:
		if (take_byte(input) & 3) {
			/* what is still on its way into the NIC would come after the flush */
			if (handles->n_async > 0)
				drop_async(handles);
			check(rte_flow_flush(port, &error) == 0, "flush");
		} else {
			restart(handles);
		}
		handles->n_rules = 0;
		break;
	}
}

static void set_up(void)
{
	const struct rte_flow_port_attr port_attr = {.nb_counters = 64};
	const struct rte_flow_queue_attr queue_attr = {.size = 32};
	const struct rte_flow_queue_attr *attrs[N_FLOW_QUEUES] = {&queue_attr, &queue_attr};
	struct rte_eth_conf conf = {0};
	struct rte_flow_error flow_error;

	check(rte_vdev_init("net_flowsim0", "flows=16,proto=mix,ipv6=30,vlan=30,hostile=0") == 0 &&
			rte_eth_dev_get_port_by_name("net_flowsim0", &port) == 0,
		"probe");
	pool = rte_pktmbuf_pool_create(
		"fuzz", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	check(pool != NULL && rte_eth_dev_configure(port, N_QUEUES, 1, &conf) == 0, "configure");
	for (uint16_t i = 0; i < N_QUEUES; i++)
		check(rte_eth_rx_queue_setup(port, i, 64, (unsigned)SOCKET_ID_ANY, NULL, pool) == 0,
			"queue");
	check(rte_eth_tx_queue_setup(port, 0, 64, (unsigned)SOCKET_ID_ANY, NULL) == 0, "queue");
	check(rte_flow_configure(port, &port_attr, N_FLOW_QUEUES, attrs, &flow_error) == 0,
		"flows");
	check(rte_eth_dev_start(port) == 0, "start");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct error error;

	(void)argc;
	(void)argv;
	check(dpdk_start(128, &error) == 0, error.text);
	nowhere = fopen("/dev/null", "w");
	check(nowhere != NULL, "/dev/null");
	set_up();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.data = data, .size = size};
	static struct handles handles;
	struct rte_flow_error error;

	memset(&handles, 0, sizeof(handles));
	for (unsigned i = 0; i < MAX_CALLS && input.size > 0; i++)
		one_call(&input, &handles);
	drop_async(&handles);
	check(rte_flow_flush(port, &error) == 0, "flush at the end");
	while (handles.n_actions > 0)
		check(rte_flow_action_handle_destroy(
			      port, handles.action[--handles.n_actions], &error) == 0,
			"handle at the end");
	/* copies that nobody has received yet: they come before others */
	receive(8 * N_QUEUES);
	check(rte_mempool_avail_count(pool) == POOL, "packets at the end");
	return 0;
}
