/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "drivers/flowsim/rules/actions_parts.h"

static const char *check_tpid(const uint8_t *value)
{
	switch (value[0] << 8 | value[1]) {
	case 0x8100:
	case 0x88a8:
	case 0x9100:
	case 0x9200:
		return NULL;
	default:
		return "no TPID of a VLAN tag";
	}
}

static const char *check_vid(const uint8_t *value)
{
	return value[0] > 0x0f ? "a VLAN number above 4095" : NULL;
}

static const char *check_pcp(const uint8_t *value)
{
	return value[0] > 7 ? "a VLAN priority above 7" : NULL;
}

/* Each configuration begins with the value, in network byte order, and holds nothing else of interest. */
static const struct edit {
	enum rte_flow_action_type action;
	enum sim_edit_type edit;
	uint8_t size;
	const char *(*check)(const uint8_t *value);
} edits[] = {
	{RTE_FLOW_ACTION_TYPE_OF_POP_VLAN, SIM_EDIT_POP_VLAN, 0, NULL},
	{RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN, SIM_EDIT_PUSH_VLAN, 2, check_tpid},
	{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID, SIM_EDIT_VLAN_VID, 2, check_vid},
	{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP, SIM_EDIT_VLAN_PCP, 1, check_pcp},
	{RTE_FLOW_ACTION_TYPE_SET_MAC_SRC, SIM_EDIT_MAC_SRC, 6, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_MAC_DST, SIM_EDIT_MAC_DST, 6, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, SIM_EDIT_IPV4_SRC, 4, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV4_DST, SIM_EDIT_IPV4_DST, 4, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV6_SRC, SIM_EDIT_IPV6_SRC, 16, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV6_DST, SIM_EDIT_IPV6_DST, 16, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_TP_SRC, SIM_EDIT_TP_SRC, 2, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_TP_DST, SIM_EDIT_TP_DST, 2, NULL},
	{RTE_FLOW_ACTION_TYPE_DEC_TTL, SIM_EDIT_DEC_TTL, 0, NULL},
};

static_assert(offsetof(struct rte_flow_action_of_push_vlan, ethertype) == 0 &&
		      offsetof(struct rte_flow_action_of_set_vlan_vid, vlan_vid) == 0 &&
		      offsetof(struct rte_flow_action_of_set_vlan_pcp, vlan_pcp) == 0 &&
		      offsetof(struct rte_flow_action_set_mac, mac_addr) == 0 &&
		      offsetof(struct rte_flow_action_set_ipv4, ipv4_addr) == 0 &&
		      offsetof(struct rte_flow_action_set_ipv6, ipv6_addr) == 0 &&
		      offsetof(struct rte_flow_action_set_tp, port) == 0,
	"values begin configurations");

static const struct edit *find_edit(enum rte_flow_action_type type)
{
	for (size_t i = 0; i < RTE_DIM(edits); i++)
		if (edits[i].action == type)
			return &edits[i];
	return NULL;
}

bool sim_action_is_edit(enum rte_flow_action_type type)
{
	return find_edit(type) != NULL;
}

static int read_edit(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	const struct edit *kind)
{
	struct sim_actions *actions = reader->actions;

	if (kind->size > 0 && action->conf == NULL)
		return sim_conf_refused(reader, action, "this action needs a configuration");
	if (actions->n_edits == SIM_MAX_EDITS)
		return sim_action_refused(reader, -ENOTSUP, action, "too many edits");

	struct sim_edit *edit = &actions->edits[actions->n_edits];

	*edit = (struct sim_edit){.type = kind->edit};
	if (kind->size > 0)
		memcpy(edit->value, action->conf, kind->size);

	const char *wrong = kind->check != NULL ? kind->check(edit->value) : NULL;

	if (wrong != NULL)
		return sim_conf_refused(reader, action, wrong);
	actions->n_edits++;
	reader->n_steps++;
	return 0;
}

bool sim_actions_read_edit(
	struct sim_actions_reader *reader, const struct rte_flow_action *action, int *result)
{
	const struct edit *kind = find_edit(action->type);

	if (kind == NULL)
		return false;
	*result = read_edit(reader, action, kind);
	return true;
}
