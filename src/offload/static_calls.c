/* SPDX-License-Identifier: BSD-3-Clause */
/* Static rules as calls of rte_flow that wait for the NIC. */
/* indirect actions are one still */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>

#include <rte_errno.h>

#include "offload/static_calls.h"
#include "rteflow/answer.h"
#include "rule/nic_pattern.h"

/* How often a counter is asked for what it had at last, and its handle to go. */
#define TRIES 8

static const struct rte_flow_attr ingress = {.ingress = 1};

/* From the counter that tells the last packet, too, to none. */
enum counter {
	COUNTER_INDIRECT,
	COUNTER_OWN,
	COUNTER_NONE,
	N_COUNTERS,
};

static int make_handle(
	uint16_t port_id, struct rte_flow_action_handle **handle, struct provider_why *why)
{
	static const struct rte_flow_indir_action_conf conf = {.ingress = 1};
	static const struct rte_flow_action_count count;
	const struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &count};
	struct rte_flow_error said = {0};

	rte_errno = 0;
	*handle = rte_flow_action_handle_create(port_id, &conf, &action, &said);
	if (*handle != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	return answer_insert(why->error, false);
}

static void destroy_handle(uint16_t port_id, struct rte_flow_action_handle **handle)
{
	struct rte_flow_error said = {0};
	int ret = *handle == NULL ? 0 : -EIO;

	/* what does not go goes with the port */
	for (unsigned i = 0; i < TRIES && ret != 0; i++)
		ret = rte_flow_action_handle_destroy(port_id, *handle, &said);
	*handle = NULL;
}

static void list_drop(struct rte_flow_action list[3], enum counter counter,
	const struct rte_flow_action_handle *handle)
{
	static const struct rte_flow_action_count count;
	unsigned n = 0;

	if (counter == COUNTER_INDIRECT)
		list[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_INDIRECT, handle};
	if (counter == COUNTER_OWN)
		list[n++] = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_COUNT, &count};
	list[n++] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_DROP};
	list[n] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_END};
}

/* With this counter. -EOPNOTSUPP: the NIC does not take such a rule. */
static int make_with(uint16_t port_id, const struct rte_flow_item *items, enum counter counter,
	struct static_made *made, struct provider_why *why)
{
	struct rte_flow_action actions[3];
	struct rte_flow_error said = {0};
	int ret;

	*made = (struct static_made){.counts = counter != COUNTER_NONE};
	if (counter == COUNTER_INDIRECT && make_handle(port_id, &made->handle, why) < 0)
		return -EOPNOTSUPP;
	list_drop(actions, counter, made->handle);
	ret = rte_flow_validate(port_id, &ingress, items, actions, &said);
	/* a driver may have no such call, or say yes to all */
	if (ret != 0 && ret != -ENOSYS) {
		answer_why(why, -ret, &said);
		destroy_handle(port_id, &made->handle);
		return -EOPNOTSUPP;
	}
	said = (struct rte_flow_error){0};
	rte_errno = 0;
	made->flow = rte_flow_create(port_id, &ingress, items, actions, &said);
	if (made->flow != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	destroy_handle(port_id, &made->handle);
	return answer_insert(why->error, false);
}

int static_make(uint16_t port_id, const struct classifier_rule *rule, struct static_made *made,
	struct provider_why *why)
{
	struct rule_nic_items items;
	int ret = -EOPNOTSUPP;

	*made = (struct static_made){0};
	if (rule_nic_pattern(rule, &items) != RULE_NIC_FITS) {
		answer_words(why, ENOTSUP, "there is no such pattern");
		return ret;
	}
	for (unsigned i = 0; i < N_COUNTERS && ret == -EOPNOTSUPP; i++)
		ret = make_with(port_id, items.list, (enum counter)i, made, why);
	if (ret < 0)
		*made = (struct static_made){0};
	return ret;
}

int static_count(uint16_t port_id, const struct static_made *made, struct provider_count *count)
{
	struct rte_flow_query_count told = {0};
	struct rte_flow_error said = {0};
	struct provider_why why;

	if (!made->counts)
		return -EOPNOTSUPP;
	if (made->handle == NULL)
		return answer_count(port_id, made->flow, count, &why);
	return answer_told(rte_flow_action_handle_query(port_id, made->handle, &told, &said), &told,
		&said, count, &why);
}

bool static_let_go(uint16_t port_id, struct static_made *made, struct provider_count *count)
{
	bool counted = false;

	/* a counter of the rule's own went with it */
	for (unsigned i = 0; i < TRIES && !counted && made->handle != NULL; i++)
		counted = static_count(port_id, made, count) == 0;
	destroy_handle(port_id, &made->handle);
	*made = (struct static_made){0};
	return counted;
}

int static_unmake(uint16_t port_id, struct static_made *made, struct provider_count *count,
	bool *counted, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret;

	*counted = made->handle == NULL && static_count(port_id, made, count) == 0;
	ret = rte_flow_destroy(port_id, made->flow, &said);
	if (ret != 0) {
		answer_why(why, -ret, &said);
		ret = answer_remove(why->error);
	}
	if (ret == 0)
		*counted |= static_let_go(port_id, made, count);
	return ret;
}
