/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where DPDK 22.11, 23.11, 24.11 and 25.11 differ for a driver, and nothing else: the driver's other
 * files have no #if about a version. It has no state of its own.
 *
 * What needs no wrapper because one way of writing it serves all: addresses of rte_ipv6_hdr and of
 * SET_IPV6 actions (an array, later a struct) are read through `(const uint8_t *)&field`; items of
 * Ethernet, VLAN, VXLAN and GTP by their old members or by `hdr`, as either is there (GTP: the old ones).
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <ethdev_driver.h>
#include <rte_flow_driver.h>
#include <rte_telemetry.h>
#include <rte_version.h>

/*
 * stats_get. Counters of queues left struct rte_eth_stats in 25.11 for a struct of their own. Written
 * once, as
 *
 *	static int stats_of(struct rte_eth_dev *dev, struct rte_eth_stats *stats,
 *		struct sim_queue_stats *queues);
 *
 * with `queues->q_ipackets[]` and so on, `queues` being NULL when nobody asks. SIM_STATS_GET(stats_get,
 * stats_of) makes the function for eth_dev_ops of it.
 */
#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
#define sim_queue_stats eth_queue_stats
#define SIM_STATS_GET(op, function)                                         \
	static int op(struct rte_eth_dev *dev, struct rte_eth_stats *stats, \
		struct eth_queue_stats *queues)                             \
	{                                                                   \
		return function(dev, stats, queues);                        \
	}
#else
#define sim_queue_stats rte_eth_stats
#define SIM_STATS_GET(op, function)                                         \
	static int op(struct rte_eth_dev *dev, struct rte_eth_stats *stats) \
	{                                                                   \
		return function(dev, stats, stats);                         \
	}
#endif

/*
 * dev_supported_ptypes_get of a constant array whose last element is RTE_PTYPE_UNKNOWN: that ended it
 * before 24.03, which asks for the number of those before it.
 */
#if RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0)
#define SIM_PTYPES_GET(op, array)                                     \
	static const uint32_t *op(struct rte_eth_dev *dev, size_t *n) \
	{                                                             \
		(void)dev;                                            \
		*n = RTE_DIM(array) - 1;                              \
		return array;                                         \
	}
#else
#define SIM_PTYPES_GET(op, array)                          \
	static const uint32_t *op(struct rte_eth_dev *dev) \
	{                                                  \
		(void)dev;                                 \
		return array;                              \
	}
#endif

/*
 * Asynchronous calls: members of struct rte_flow_ops, since 24.03 of a struct that the port points to.
 * Their names and types are the same. With a list in one place,
 *
 *	#define SIM_ASYNC_OPS .async_create = sim_async_create, .push = sim_async_push
 *
 * the table of flow calls has, as its last member, SIM_ASYNC_IN_FLOW_OPS(SIM_ASYNC_OPS), and probing
 * calls SIM_ASYNC_SET(dev, SIM_ASYNC_OPS). Before 24.03 only the first does something, since then only
 * the second. DPDK calls the new members without looking: what is not listed refuses by -ENOSYS, as it
 * does in a port for which SIM_ASYNC_SET() was not called.
 */
#if RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0)
#define SIM_ASYNC_IN_FLOW_OPS(...)
#define SIM_ASYNC_SET(dev, ...)                                                           \
	do {                                                                              \
		static struct rte_flow_fp_ops async_ops;                                  \
		sim_async_fill(&async_ops, &(const struct rte_flow_fp_ops){__VA_ARGS__}); \
		(dev)->flow_fp_ops = &async_ops;                                          \
	} while (0)

/* The same bytes every time, so that it may be done again while other ports use them. */
static inline void sim_async_fill(struct rte_flow_fp_ops *all, const struct rte_flow_fp_ops *ours)
{
	struct rte_flow_fp_ops sum = rte_flow_fp_default_ops;
	char *to = (char *)&sum;
	const char *from = (const char *)ours;
	static const char none[sizeof(ours->push)];

	for (size_t at = 0; at + sizeof(none) <= sizeof(sum); at += sizeof(none)) {
		if (memcmp(&from[at], none, sizeof(none)) != 0)
			memcpy(&to[at], &from[at], sizeof(none));
	}
	if (memcmp(all, &sum, sizeof(sum)) != 0)
		memcpy(all, &sum, sizeof(sum));
}
#else
#define SIM_ASYNC_IN_FLOW_OPS(...) __VA_ARGS__
#define SIM_ASYNC_SET(dev, ...) ((void)(dev))
#endif

/* Tables of templates whose rules are put in by number instead of by pattern came with 23.03. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
static inline bool sim_table_by_pattern(const struct rte_flow_template_table_attr *attr)
{
	return attr->insertion_type == RTE_FLOW_TABLE_INSERTION_TYPE_PATTERN;
}
#else
static inline bool sim_table_by_pattern(const struct rte_flow_template_table_attr *attr)
{
	(void)attr;
	return true;
}
#endif

/*
 * The RSS hash function of a whole port can be named since 23.11, and which there are; before, it is
 * told by a flow rule or by the key alone. sim_rss_asked() is the function that an application asks
 * for: RTE_ETH_HASH_FUNCTION_DEFAULT where it cannot. SIM_HASH_SYMMETRIC_SORT is the symmetric hash that
 * sorts the ends, in 22.11 by the number that it got later.
 */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
#define SIM_HASH_SYMMETRIC_SORT RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ_SORT

/* Functions as bits 1 << RTE_ETH_HASH_FUNCTION_*. */
static inline void sim_rss_offer(struct rte_eth_dev_info *info, uint32_t functions)
{
	info->rss_algo_capa = functions;
}

static inline enum rte_eth_hash_function sim_rss_asked(const struct rte_eth_rss_conf *conf)
{
	return conf->algorithm;
}

static inline void sim_rss_tell(struct rte_eth_rss_conf *conf, enum rte_eth_hash_function function)
{
	conf->algorithm = function;
}
#else
#define SIM_HASH_SYMMETRIC_SORT \
	((enum rte_eth_hash_function)(RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ + 1))

static inline void sim_rss_offer(struct rte_eth_dev_info *info, uint32_t functions)
{
	(void)info;
	(void)functions;
}

static inline enum rte_eth_hash_function sim_rss_asked(const struct rte_eth_rss_conf *conf)
{
	(void)conf;
	return RTE_ETH_HASH_FUNCTION_DEFAULT;
}

static inline void sim_rss_tell(struct rte_eth_rss_conf *conf, enum rte_eth_hash_function function)
{
	(void)conf;
	(void)function;
}
#endif

/*
 * What dpdk-pmdinfo tells of a driver: SIM_PMD_DESCRIBE(net_flowsim, "word=<value> ..."), with no
 * semicolon. Since 25.11 the variables that it makes are not static, and their names count nothing.
 */
#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
#define SIM_PMD_DESCRIBE(name, words)                               \
	extern const char this_pmd_name##name[];                    \
	extern const char DRV_EXP_TAG(name, param_string_export)[]; \
	RTE_PMD_EXPORT_NAME(name);                                  \
	RTE_PMD_REGISTER_PARAM_STRING(name, words);
#else
#define SIM_PMD_DESCRIBE(name, words)           \
	RTE_PMD_EXPORT_NAME(name, __COUNTER__); \
	RTE_PMD_REGISTER_PARAM_STRING(name, words);
#endif

/* Telemetry's unsigned numbers were called u64 before 23.03. Both return 0 or a negative errno. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define SIM_TEL_UINT_VAL RTE_TEL_UINT_VAL

static inline int sim_tel_add_uint(struct rte_tel_data *dict, const char *name, uint64_t value)
{
	return rte_tel_data_add_dict_uint(dict, name, value);
}

static inline int sim_tel_array_uint(struct rte_tel_data *array, uint64_t value)
{
	return rte_tel_data_add_array_uint(array, value);
}
#else
#define SIM_TEL_UINT_VAL RTE_TEL_U64_VAL

static inline int sim_tel_add_uint(struct rte_tel_data *dict, const char *name, uint64_t value)
{
	return rte_tel_data_add_dict_u64(dict, name, value);
}

static inline int sim_tel_array_uint(struct rte_tel_data *array, uint64_t value)
{
	return rte_tel_data_add_array_u64(array, value);
}
#endif
