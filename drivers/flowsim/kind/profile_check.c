/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>

#include <rte_common.h>

#include "drivers/flowsim/kind/input_set.h"
#include "drivers/flowsim/kind/profile.h"
#include "drivers/flowsim/match/rule.h"

static int refuse(
	struct sim_fault_at *fault, int code, enum rte_flow_error_type type, const char *message)
{
	*fault = (struct sim_fault_at){.type = type, .message = message};
	return -code;
}

static int bad_action(struct sim_fault_at *fault, int code, const char *message)
{
	return refuse(fault, code, RTE_FLOW_ERROR_TYPE_ACTION, message);
}

/* i40e_flow.c:1220 and ice_generic_flow.c:2019 refuse these one by one, mlx5 too. */
static int check_attributes(const struct sim_profile *profile, const struct sim_draft *draft,
	struct sim_fault_at *fault)
{
	int code = profile->unsupported;

	if (draft->domain == SIM_EGRESS && !profile->egress)
		return refuse(
			fault, code, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS, "egress is not supported");
	if (draft->domain == SIM_TRANSFER && !profile->transfer)
		return refuse(fault, code, RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER,
			"transfer is not supported");
	if (draft->priority >= profile->priorities)
		return refuse(
			fault, code, RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY, "priority out of range");
	if (draft->group >= profile->groups)
		return refuse(fault, code, RTE_FLOW_ERROR_TYPE_ATTR_GROUP, "group out of range");
	return 0;
}

static int check_items(const struct sim_profile *profile, const struct sim_draft *draft,
	struct sim_fault_at *fault)
{
	const struct sim_pattern *pattern = &draft->pattern;
	const uint16_t fragment = offsetof(struct sim_level, ip) + 6;

	if (pattern->items & ~profile->items)
		return refuse(fault, profile->unsupported, RTE_FLOW_ERROR_TYPE_ITEM,
			"an item is not supported");
	for (unsigned i = 0; i < pattern->n_ranges && !profile->ranges; i++) {
		/* mlx5_flow.h: MLX5_ITEM_RANGE_NOT_ACCEPTED, but for IPv4's fragments */
		if (profile->maker != SIM_MAKER_MLX5 || (pattern->layers & SIM_IPV4) == 0 ||
			pattern->ranges[i].at != fragment)
			return refuse(fault, profile->unsupported, RTE_FLOW_ERROR_TYPE_ITEM_LAST,
				"ranges are not supported");
	}
	if (profile->input_set == SIM_INPUT_ANY)
		return 0;
	return sim_input_set_check(profile->maker, pattern, fault);
}

static int check_mark(const struct sim_profile *profile, const struct sim_actions *actions,
	struct sim_fault_at *fault)
{
	uint64_t marks;

	if (!actions->mark)
		return 0;
	if (profile->mark_bits == 0)
		return bad_action(fault, profile->unsupported, "MARK is not supported");
	marks = (1ull << profile->mark_bits) - profile->mark_kept;
	if (actions->mark_id >= marks)
		return refuse(fault, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF,
			"the mark is too large for this NIC");
	return 0;
}

/* i40e_flow.c:2444: one of QUEUE, DROP, PASSTHRU, MARK, then at most one of MARK, FLAG, RSS. */
static int check_i40e(const struct sim_actions *actions, struct sim_fault_at *fault)
{
	bool steers = actions->fate == SIM_FATE_QUEUE || actions->fate == SIM_FATE_DROP;
	bool rss = actions->fate == SIM_FATE_RSS;
	unsigned n = (actions->fate != SIM_FATE_NONE) + actions->passthru + actions->mark +
		     actions->flag;

	if (n == 0)
		return bad_action(fault, EINVAL, "invalid action");
	if (n > 2 || (actions->mark && actions->flag) || (actions->passthru && steers))
		return bad_action(fault, EINVAL, "invalid action");
	if (actions->flag && !steers && !actions->passthru)
		return bad_action(fault, EINVAL, "invalid action");
	if (rss && actions->flag)
		return bad_action(fault, EINVAL, "invalid action");
	return 0;
}

/* ice_fdir_filter.c:1621: a region of queues is 2, 4, ... 128 that lie together. */
static bool is_region(const struct sim_rss *rss)
{
	if (rss->n_queues < 2 || rss->n_queues > 128 || !rte_is_power_of_2(rss->n_queues))
		return false;
	for (unsigned i = 1; i < rss->n_queues; i++) {
		if (rss->queues[i] != rss->queues[0] + i)
			return false;
	}
	return true;
}

/* ice_fdir_filter.c:1678 */
static int check_ice(const struct sim_actions *actions, struct sim_fault_at *fault)
{
	unsigned fates = (actions->fate != SIM_FATE_NONE) + actions->passthru;

	if (fates > 1)
		return bad_action(fault, EINVAL, "unsupported action combination");
	if (fates + actions->mark + actions->count == 0)
		return bad_action(fault, EINVAL, "empty action");
	if (actions->fate == SIM_FATE_RSS && actions->rss_handle == NULL &&
		!is_region(&actions->rss))
		return bad_action(fault, EINVAL, "the queues are no region");
	return 0;
}

static bool edits_with(const struct sim_actions *actions, enum sim_edit_type type)
{
	for (unsigned i = 0; i < actions->n_edits; i++) {
		if (actions->edits[i].type == type)
			return true;
	}
	return false;
}

/* mlx5_flow_dv.c:8196 to :8250, and what follows it of VLANs. */
static int check_mlx5(
	enum sim_domain domain, const struct sim_actions *actions, struct sim_fault_at *fault)
{
	bool sends = actions->fate == SIM_FATE_SEND || actions->fate == SIM_FATE_GIVE;
	bool host = actions->fate == SIM_FATE_QUEUE || actions->fate == SIM_FATE_RSS;

	if (actions->mark && actions->flag)
		return bad_action(fault, EINVAL, "can't flag and mark in same flow");
	if (actions->fate == SIM_FATE_DROP &&
		(actions->mark || actions->flag || actions->n_edits != 0 || actions->meter))
		return bad_action(fault, EINVAL, "drop goes with count, sample and age only");
	if (domain == SIM_TRANSFER && (actions->mark || actions->flag || host))
		return bad_action(
			fault, ENOTSUP, "mark, flag, queue and rss are not for the switch");
	if (domain != SIM_TRANSFER && sends)
		return bad_action(fault, ENOTSUP, "ports are for the switch: transfer");
	if (domain == SIM_INGRESS && edits_with(actions, SIM_EDIT_PUSH_VLAN))
		return bad_action(fault, ENOTSUP, "push vlan is not for received packets");
	if (domain == SIM_EGRESS && edits_with(actions, SIM_EDIT_POP_VLAN))
		return bad_action(fault, ENOTSUP, "pop vlan is not for sent packets");
	return 0;
}

static int check_actions(const struct sim_profile *profile, enum sim_domain domain,
	const struct sim_actions *actions, struct sim_fault_at *fault)
{
	int ret;

	if (actions->named & ~profile->actions)
		return bad_action(fault, profile->unsupported, "an action is not supported");
	if (actions->jump && actions->jump_group >= profile->groups)
		return bad_action(fault, profile->unsupported, "no such group");
	ret = check_mark(profile, actions, fault);
	if (ret != 0)
		return ret;
	if (profile->fate_needed && domain != SIM_EGRESS && actions->fate == SIM_FATE_NONE &&
		!actions->jump)
		return bad_action(fault, EINVAL, "no fate action is found");
	switch (profile->maker) {
	case SIM_MAKER_NONE:
		return 0;
	case SIM_MAKER_I40E:
		return check_i40e(actions, fault);
	case SIM_MAKER_ICE:
		return check_ice(actions, fault);
	case SIM_MAKER_MLX5:
		return check_mlx5(domain, actions, fault);
	}
	return 0;
}

/* What a copy may do: mark, queue, port or drop, if the NIC can at all. */
static int check_sampled(const struct sim_profile *profile, const struct sim_actions *sampled,
	struct sim_fault_at *fault)
{
	if (sampled == NULL)
		return 0;
	if (sampled->named & ~profile->actions)
		return bad_action(fault, profile->unsupported, "an action is not supported");
	return check_mark(profile, sampled, fault);
}

int sim_profile_check(
	const struct sim_profile *profile, struct sim_draft *draft, struct sim_fault_at *fault)
{
	int ret = check_attributes(profile, draft, fault);

	if (ret == 0)
		ret = check_items(profile, draft, fault);
	if (ret == 0)
		ret = check_actions(profile, draft->domain, &draft->actions, fault);
	if (ret == 0)
		ret = check_sampled(profile, draft->actions.sampled, fault);
	if (ret == 0 && (profile->quirks & SIM_QUIRK_PACKET_TYPE))
		sim_input_set_narrow(&draft->pattern);
	return ret;
}
