/* SPDX-License-Identifier: BSD-3-Clause */
/* Full offload by calls that wait for the NIC: transfer rules, whose counters are to tell the last packet, too. */
/* indirect actions are one still */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_flow.h>

#include "offload/answer.h"
#include "offload/sync_parts.h"

static const struct rte_flow_attr transfer = {.transfer = 1};

static struct rte_flow_action_handle *make_counter(
	const struct sync *sync, struct provider_why *why)
{
	static const struct rte_flow_indir_action_conf conf = {.transfer = 1};
	static const struct rte_flow_action_count count;
	const struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &count};
	struct rte_flow_error said = {0};

	rte_errno = 0;
	struct rte_flow_action_handle *handle =
		rte_flow_action_handle_create(sync->port.id, &conf, &action, &said);

	if (handle == NULL)
		answer_why(why, rte_errno, &said);
	return handle;
}

int sync_full_create(const struct sync *sync, struct sync_rule *made, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct shape_items items;
	struct shape_actions actions;

	*made = (struct sync_rule){.counts = true, .full = true};
	if (shape->indirect)
		made->handle = make_counter(sync, why);
	if (shape->indirect && made->handle == NULL)
		return why->error;
	shape_items(&items, shape, kind, &sync->port, rule);
	shape_full_actions(&actions, shape, &sync->port, rule, made->handle);
	rte_errno = 0;
	made->flow = rte_flow_create(sync->port.id, &transfer, items.list, actions.list, &said);
	if (made->flow != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	sync_full_let_go(sync, made);
	return why->error;
}

static int count_by_handle(const struct sync *sync, const struct rte_flow_action_handle *handle,
	struct provider_count *count, struct provider_why *why)
{
	struct rte_flow_query_count told = {0};
	struct rte_flow_error said = {0};
	int ret = rte_flow_action_handle_query(sync->port.id, handle, &told, &said);

	return answer_told(ret, &told, &said, count, why);
}

int sync_full_count(const struct sync *sync, const struct sync_rule *rule,
	struct provider_count *count, struct provider_why *why)
{
	return rule->handle != NULL ? count_by_handle(sync, rule->handle, count, why)
				    : answer_count(sync->port.id, rule->flow, count, why);
}

void sync_full_end(const struct sync *sync, struct sync_place *place)
{
	struct provider_why why;
	int ret = -EIO;

	if (place->rule.handle == NULL)
		return; /* what it told before it went is all there is */
	for (unsigned i = 0; i < SYNC_TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = count_by_handle(sync, place->rule.handle, &place->last, &why);
	place->has_last = ret == 0;
	place->last.final = place->has_last;
	sync_full_let_go(sync, &place->rule);
}

void sync_full_let_go(const struct sync *sync, struct sync_rule *rule)
{
	struct rte_flow_error said = {0};
	int ret = -EIO;

	/* what does not go goes with the port */
	for (unsigned i = 0; i < SYNC_TRIES && ret != 0 && rule->handle != NULL; i++)
		ret = rte_flow_action_handle_destroy(sync->port.id, rule->handle, &said);
	rule->handle = NULL;
}
