/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's tables of calls, as this DPDK has them, call what was written once for all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rte_ethdev.h>
#include <rte_mbuf_ptype.h>

#include "drivers/flowsim/port/compat.h"

static int stats_of(
	struct rte_eth_dev *dev, struct rte_eth_stats *stats, struct sim_queue_stats *queues)
{
	(void)dev;
	stats->ipackets = 7;
	if (queues != NULL)
		queues->q_ipackets[1] = 3;
	return 0;
}
SIM_STATS_GET(stats_get, stats_of)

static const uint32_t ptypes[] = {RTE_PTYPE_L2_ETHER, RTE_PTYPE_L3_IPV4, RTE_PTYPE_UNKNOWN};
SIM_PTYPES_GET(ptypes_get, ptypes)

static int pushed;

static int async_push(struct rte_eth_dev *dev, uint32_t queue, struct rte_flow_error *error)
{
	(void)dev;
	(void)error;
	pushed = (int)queue;
	return 0;
}

#define OPS .push = async_push

static const struct eth_dev_ops eth_ops = {
	.stats_get = stats_get,
	.dev_supported_ptypes_get = ptypes_get,
};

static const struct rte_flow_ops flow_ops = {.validate = NULL, SIM_ASYNC_IN_FLOW_OPS(OPS)};

static void stats_are_told(void **state)
{
	struct rte_eth_dev dev = {.dev_ops = &eth_ops};
	struct rte_eth_stats stats = {0};
#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
	struct eth_queue_stats queues = {0};

	assert_int_equal(dev.dev_ops->stats_get(&dev, &stats, NULL), 0);
	assert_int_equal(dev.dev_ops->stats_get(&dev, &stats, &queues), 0);
	assert_int_equal(queues.q_ipackets[1], 3);
#else
	assert_int_equal(dev.dev_ops->stats_get(&dev, &stats), 0);
	assert_int_equal(stats.q_ipackets[1], 3);
#endif
	(void)state;
	assert_int_equal(stats.ipackets, 7);
}

static void packet_types_are_told(void **state)
{
	struct rte_eth_dev dev = {.dev_ops = &eth_ops};
	const uint32_t *told;
#if RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0)
	size_t n = 0;

	told = dev.dev_ops->dev_supported_ptypes_get(&dev, &n);
	assert_int_equal(n, 2);
#else
	told = dev.dev_ops->dev_supported_ptypes_get(&dev);
	assert_int_equal(told[2], RTE_PTYPE_UNKNOWN);
#endif
	(void)state;
	assert_int_equal(told[1], RTE_PTYPE_L3_IPV4);
}

/* Twice, as two ports do it; what we do not have refuses, and is no NULL that DPDK would call. */
static void async_calls_arrive(void **state)
{
	struct rte_eth_dev dev = {0};
	struct rte_flow_error error = {0};

	(void)state;
	SIM_ASYNC_SET(&dev, OPS);
	pushed = -1;
#if RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0)
	SIM_ASYNC_SET(&dev, OPS);
	assert_null(flow_ops.validate);
	assert_int_equal(dev.flow_fp_ops->push(&dev, 5, &error), 0);
	assert_int_equal(dev.flow_fp_ops->pull(&dev, 5, NULL, 0, &error), -ENOSYS);
#else
	assert_int_equal(flow_ops.push(&dev, 5, &error), 0);
#endif
	assert_int_equal(pushed, 5);
}

static void hash_functions_are_named_where_they_can_be(void **state)
{
	struct rte_eth_rss_conf conf = {0};
	struct rte_eth_dev_info info = {0};

	(void)state;
	sim_rss_offer(&info, 1U << RTE_ETH_HASH_FUNCTION_TOEPLITZ);
	sim_rss_tell(&conf, RTE_ETH_HASH_FUNCTION_TOEPLITZ);
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
	assert_int_equal(info.rss_algo_capa, RTE_ETH_HASH_ALGO_CAPA_MASK(TOEPLITZ));
	assert_int_equal(sim_rss_asked(&conf), RTE_ETH_HASH_FUNCTION_TOEPLITZ);
#else
	assert_int_equal(sim_rss_asked(&conf), RTE_ETH_HASH_FUNCTION_DEFAULT);
#endif
	/* a later DPDK's programs mean this one by it */
	assert_int_equal(SIM_HASH_SYMMETRIC_SORT, 4);
}

static void telemetry_takes_numbers(void **state)
{
	struct rte_tel_data *data = rte_tel_data_alloc();

	(void)state;
	assert_non_null(data);
	assert_int_equal(rte_tel_data_start_dict(data), 0);
	assert_int_equal(sim_tel_add_uint(data, "n", UINT64_MAX), 0);
	assert_int_equal(rte_tel_data_start_array(data, SIM_TEL_UINT_VAL), 0);
	assert_int_equal(sim_tel_array_uint(data, UINT64_MAX), 0);
	rte_tel_data_free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats_are_told),
		cmocka_unit_test(packet_types_are_told),
		cmocka_unit_test(async_calls_arrive),
		cmocka_unit_test(hash_functions_are_named_where_they_can_be),
		cmocka_unit_test(telemetry_takes_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
