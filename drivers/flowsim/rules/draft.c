/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/draft.h"

static int refuse(struct sim_fault_at *fault, int code, enum rte_flow_error_type type,
	const void *cause, const char *message)
{
	*fault = (struct sim_fault_at){.cause = cause, .type = type, .message = message};
	return code;
}

/* `ingress transfer`, which once was the way to say transfer, is refused by ethdev since 22.11. */
static int read_attributes(
	struct sim_draft *draft, const struct rte_flow_attr *attr, struct sim_fault_at *fault)
{
	if (attr == NULL)
		return refuse(
			fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, NULL, "no attributes are given");
	if (attr->reserved != 0)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, attr,
			"reserved attributes are not zero");
	draft->group = attr->group;
	draft->priority = attr->priority;
	if (attr->egress && (attr->ingress || attr->transfer))
		return refuse(fault, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS, attr,
			"egress goes with neither ingress nor transfer");
	if (attr->transfer)
		draft->domain = SIM_TRANSFER;
	else if (attr->egress)
		draft->domain = SIM_EGRESS;
	else if (attr->ingress)
		draft->domain = SIM_INGRESS;
	else
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS, attr,
			"neither ingress, egress nor transfer");
	return 0;
}

/* A port that a pattern names: in transfer rules one of the NIC, else the rule's own. */
static int check_port(
	const struct sim_port *port, const struct sim_draft *draft, struct sim_fault_at *fault)
{
	uint16_t named = draft->pattern.port;

	if (named == SIM_NO_PORT || named == port->id)
		return 0;
	if (draft->domain != SIM_TRANSFER)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, NULL,
			"only a transfer rule is for another port's packets");
	if (sim_nic_port(port, named) == NULL)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, NULL,
			"the pattern's port is not of this NIC");
	return 0;
}

int sim_draft_read(struct sim_draft *draft, struct sim_port *port, const struct rte_flow_attr *attr,
	const struct rte_flow_item items[], const struct rte_flow_action actions[],
	struct sim_fault_at *fault)
{
	int ret = read_attributes(draft, attr, fault);

	if (ret == 0 && items == NULL)
		ret = refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_NUM, NULL, "no pattern");
	if (ret == 0 && actions == NULL)
		ret = refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, NULL, "no actions");
	if (ret == 0)
		ret = sim_pattern_parse(&draft->pattern, items, fault);
	if (ret == 0)
		ret = check_port(port, draft, fault);
	if (ret == 0)
		ret = sim_actions_parse(&draft->actions, port, draft->group, actions, fault);
	return ret;
}

int sim_draft_parse(struct sim_draft *draft, struct sim_port *port,
	const struct rte_flow_attr *attr, const struct rte_flow_item items[],
	const struct rte_flow_action actions[], struct sim_fault_at *fault)
{
	int ret = sim_draft_read(draft, port, attr, items, actions, fault);

	if (ret < 0)
		return ret;
	ret = sim_profile_check(&port->args.profile, draft, fault);
	if (ret < 0)
		sim_draft_fini(draft);
	return ret;
}

void sim_draft_fini(struct sim_draft *draft)
{
	sim_actions_fini(&draft->actions);
}
