/* SPDX-License-Identifier: BSD-3-Clause */
#include "rteflow/answer.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#define FLUSH_TRIES 8

static bool is_room(int error)
{
	return error == ENOSPC || error == ENOBUFS || error == ENOMEM;
}

/* No room to remove or read something is not now, either. */
static int later_or_failed(int error)
{
	return error == EEXIST || error == EAGAIN || error == EBUSY || is_room(error) ? -EAGAIN
										      : -EIO;
}

/* ENOTSUP and EOPNOTSUPP are one number here, and two elsewhere. */
static bool is_unknown(int error)
{
	return error == ENOSYS || error == ENOTSUP || error == EOPNOTSUPP;
}

int answer_insert(int error, bool taken)
{
	if (is_room(error))
		return -ENOSPC;
	if (is_unknown(error) || error == EINVAL || error == EPERM)
		return taken ? -ENOSPC : -EOPNOTSUPP;
	return later_or_failed(error);
}

int answer_remove(int error)
{
	return error == ENOENT ? 0 : later_or_failed(error);
}

int answer_query(int error)
{
	return is_unknown(error) ? -EOPNOTSUPP : later_or_failed(error);
}

void answer_words(struct provider_why *why, int error, const char *words)
{
	memset(why, 0, sizeof(*why));
	why->error = error > 0 ? error : EIO;
	for (size_t i = 0; words != NULL && words[i] != '\0' && i < sizeof(why->words) - 1; i++)
		why->words[i] = words[i] >= 0x20 && words[i] < 0x7f ? words[i] : '?';
}

int answer_with_words(struct provider_why *why, int answer, int error, const char *words)
{
	answer_words(why, error, words);
	return answer;
}

void answer_why(struct provider_why *why, int error, const struct rte_flow_error *said)
{
	answer_words(why, error, said->message);
}

int answer_told(int ret, const struct rte_flow_query_count *told, const struct rte_flow_error *said,
	struct provider_count *count, struct provider_why *why)
{
	if (ret < 0) {
		answer_why(why, -ret, said);
		return answer_query(-ret);
	}
	if (!told->hits_set) {
		answer_words(why, ENOTSUP, "the counter tells no packets");
		return -EOPNOTSUPP;
	}
	*count = (struct provider_count){
		.packets = told->hits, .bytes = told->bytes, .has_bytes = told->bytes_set};
	return 0;
}

int answer_count(uint16_t port_id, struct rte_flow *flow, struct provider_count *count,
	struct provider_why *why)
{
	static const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count told = {0};
	struct rte_flow_error said = {0};
	int ret = rte_flow_query(port_id, flow, actions, &told, &said);

	return answer_told(ret, &told, &said, count, why);
}

int answer_flush(uint16_t port_id, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = -EIO;

	for (unsigned n = 0; n < FLUSH_TRIES && ret != 0; n++) {
		ret = rte_flow_flush(port_id, &said);
		if (ret == 0)
			return 0;
		answer_why(why, -ret, &said);
		if (is_unknown(-ret))
			return -EOPNOTSUPP;
	}
	return -EIO;
}

bool answer_keeps_rules(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port_id, &info) == 0 &&
	       (info.dev_capa & RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP) != 0;
}
