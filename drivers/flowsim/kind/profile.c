/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/kind/profile.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#define ITEM(name) (1ull << RTE_FLOW_ITEM_TYPE_##name)
#define ACTION(name) (1ull << RTE_FLOW_ACTION_TYPE_##name)

static_assert(RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT < 64, "items are bits of 64");
static_assert(RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT < 64, "actions are bits of 64");

/* Everything that match/pattern_items.c and rules/actions_read.c know; they say so by refusing the rest. */
#define ALL UINT64_MAX

/* i40e_flow.c:995, those of flow director without extra firmware; ETH to SCTP, one tag, no tunnels. */
#define I40E_ITEMS                                                                               \
	(ITEM(VOID) | ITEM(ETH) | ITEM(VLAN) | ITEM(IPV4) | ITEM(IPV6) | ITEM(TCP) | ITEM(UDP) | \
		ITEM(SCTP))
/* i40e_flow.c:2444 */
#define I40E_ACTIONS                                                                     \
	(ACTION(VOID) | ACTION(QUEUE) | ACTION(DROP) | ACTION(PASSTHRU) | ACTION(MARK) | \
		ACTION(FLAG) | ACTION(RSS))

/* ice_fdir_filter.c:109 */
#define ICE_ITEMS                                                                             \
	(ITEM(VOID) | ITEM(ETH) | ITEM(IPV4) | ITEM(IPV6) | ITEM(IPV6_FRAG_EXT) | ITEM(TCP) | \
		ITEM(UDP) | ITEM(SCTP) | ITEM(VXLAN) | ITEM(GTPU))
/* ice_fdir_filter.c:1692 */
#define ICE_ACTIONS                                                                     \
	(ACTION(VOID) | ACTION(QUEUE) | ACTION(DROP) | ACTION(PASSTHRU) | ACTION(RSS) | \
		ACTION(MARK) | ACTION(COUNT))

/* doc/guides/nics/features/mlx5.ini, as far as this NIC knows them; SCTP is not among them. */
#define MLX5_ITEMS                                                                           \
	(ITEM(VOID) | ITEM(PORT_ID) | ITEM(REPRESENTED_PORT) | ITEM(PORT_REPRESENTOR) |      \
		ITEM(ETH) | ITEM(VLAN) | ITEM(IPV4) | ITEM(IPV6) | ITEM(IPV6_FRAG_EXT) |     \
		ITEM(TCP) | ITEM(UDP) | ITEM(ICMP) | ITEM(ICMP6) | ITEM(VXLAN) | ITEM(GRE) | \
		ITEM(GRE_KEY) | ITEM(GENEVE) | ITEM(GTPU) | ITEM(GTP))
#define MLX5_ACTIONS (ALL & ~ACTION(PASSTHRU))

static const struct sim_profile profiles[] = {
	{
		.name = "ideal",
		.about = "everything that this NIC knows, without limits, at once",
		.size = UINT32_MAX,
		.sync = true,
		.async = true,
		.mark_bits = 32,
		.items = ALL,
		.actions = ALL,
		.transfer = true,
		.egress = true,
		.groups = UINT32_MAX,
		.priorities = UINT32_MAX,
		.ranges = true,
		.input_set = SIM_INPUT_ANY,
		.unsupported = ENOTSUP,
		.quirks = SIM_QUIRK_UNFILLED | SIM_QUIRK_NO_VALIDATE,
		.full_errno = ENOSPC,
		.thread_safe = true,
	},
	{
		.name = "x710-stock",
		.about = "Intel X710 with a driver that waits 10 ms for each rule: 7,168 rules",
		.size = 7168,
		.create_ns = 11000000,
		.destroy_ns = 11000000,
		.flush_ns = 5000000,
		.sync = true,
		.mark_bits = 32,
		.items = I40E_ITEMS,
		.actions = I40E_ACTIONS,
		.groups = 1,
		.priorities = 1,
		.maker = SIM_MAKER_I40E,
		.input_set = SIM_INPUT_PER_TYPE,
		.unsupported = EINVAL,
		.quirks = SIM_QUIRK_FULL_ERRNO | SIM_QUIRK_BLAME | SIM_QUIRK_PACKET_TYPE,
		.full_errno = ENOBUFS,
		.keeps_rules = 2,
	},
	{
		.name = "x710",
		.about = "Intel X710 with a driver that looks when a rule is done: 22 us",
		.size = 7168,
		.create_ns = 22000,
		.destroy_ns = 22000,
		.flush_ns = 5000000,
		.sync = true,
		.mark_bits = 32,
		.items = I40E_ITEMS,
		.actions = I40E_ACTIONS,
		.groups = 1,
		.priorities = 1,
		.maker = SIM_MAKER_I40E,
		.input_set = SIM_INPUT_PER_TYPE,
		.unsupported = EINVAL,
		.quirks = SIM_QUIRK_FULL_ERRNO | SIM_QUIRK_BLAME | SIM_QUIRK_PACKET_TYPE,
		.full_errno = ENOBUFS,
		.keeps_rules = 2,
	},
	{
		.name = "tiny",
		.about = "512 rules at 22 us, and no other limit of its hardware",
		.size = 512,
		.create_ns = 22000,
		.destroy_ns = 22000,
		.sync = true,
		.mark_bits = 32,
		.items = ALL,
		.actions = ALL,
		.transfer = true,
		.egress = true,
		.groups = UINT32_MAX,
		.priorities = UINT32_MAX,
		.ranges = true,
		.input_set = SIM_INPUT_ANY,
		.unsupported = ENOTSUP,
		.quirks = SIM_QUIRK_VALIDATE_YES | SIM_QUIRK_FULL_ERRNO | SIM_QUIRK_BLAME,
		.full_errno = ENOSYS,
	},
	{
		.name = "e810",
		.about = "Intel E810, its flow director: counters, one input set a packet type",
		.size = 16384,
		.create_ns = 22000,
		.destroy_ns = 22000,
		.sync = true,
		.mark_bits = 32,
		.items = ICE_ITEMS,
		.actions = ICE_ACTIONS,
		.groups = 1,
		.priorities = 2,
		.maker = SIM_MAKER_ICE,
		.input_set = SIM_INPUT_PER_TYPE,
		.unsupported = EINVAL,
		.quirks = SIM_QUIRK_VALIDATE_YES | SIM_QUIRK_FULL_ERRNO,
		.full_errno = EINVAL,
	},
	{
		.name = "cx5",
		.about = "NVIDIA ConnectX-5 by blocking calls: whole flows, 1 M rules",
		.size = 1048576,
		.create_ns = 20000,
		.destroy_ns = 20000,
		.query_ns = 1000,
		.sync = true,
		.mark_bits = 24,
		.mark_kept = 16,
		.items = MLX5_ITEMS,
		.actions = MLX5_ACTIONS,
		.transfer = true,
		.egress = true,
		.groups = 65531,
		.priorities = 21844,
		.fate_needed = true,
		.maker = SIM_MAKER_MLX5,
		.input_set = SIM_INPUT_ANY,
		.unsupported = ENOTSUP,
		.quirks = SIM_QUIRK_FULL_ERRNO,
		.full_errno = ENOMEM,
		.thread_safe = true,
	},
	{
		.name = "cx6-hws",
		.about = "NVIDIA ConnectX-6 Dx by templates and queues: 4 M rules, 4.5 M a second",
		.size = 4194304,
		.async = true,
		.rate = 4500000,
		.answer_ns = 10000,
		.query_ns = 1000,
		.mark_bits = 24,
		.mark_kept = 16,
		.items = MLX5_ITEMS,
		.actions = MLX5_ACTIONS,
		.transfer = true,
		.egress = true,
		.groups = 65531,
		.priorities = 21844,
		.fate_needed = true,
		.maker = SIM_MAKER_MLX5,
		.input_set = SIM_INPUT_ANY,
		.unsupported = ENOTSUP,
		.quirks = SIM_QUIRK_FULL_ERRNO,
		.full_errno = ENOMEM,
		.thread_safe = true,
	},
};

static const char *const quirk_names[SIM_N_QUIRKS] = {
	"unfilled", "no_validate", "validate_yes", "full_errno", "blame", "packet_type"};

const char *sim_profile_name(unsigned i)
{
	return i < RTE_DIM(profiles) ? profiles[i].name : NULL;
}

const struct sim_profile *sim_profile_find(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(profiles); i++) {
		if (strcmp(name, profiles[i].name) == 0)
			return &profiles[i];
	}
	return NULL;
}

const char *sim_quirk_name(unsigned i)
{
	return i < SIM_N_QUIRKS ? quirk_names[i] : NULL;
}
