/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_eth_rx_metadata_negotiate() is one still */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "rteflow/answer.h"
#include "rteflow/back_end.h"
#include "rteflow/flow_queue.h"
#include "rteflow/trial.h"

bool provider_negotiate(uint16_t port_id)
{
	uint64_t features = RTE_ETH_RX_METADATA_USER_MARK;

	/* whoever cannot be asked delivers what its rules say */
	if (rte_eth_rx_metadata_negotiate(port_id, &features) < 0)
		return true;
	return (features & RTE_ETH_RX_METADATA_USER_MARK) != 0;
}

bool provider_prepare(uint16_t port_id, uint32_t n_places)
{
	return flow_queue_prepare(port_id, n_places + TRIAL_HANDS);
}

bool provider_is_trying(const struct provider_abilities *abilities)
{
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (abilities->trying[kind])
			return true;
	return false;
}

/* By calls that wait. Who does not know these at all says nothing of what its queue may take another day. */
static int open_blocking(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told)
{
	const struct provider_abilities by_queue = *told;
	int ret = back_end_open(provider, config, false, told);

	if (ret == -EOPNOTSUPP && config->async && !told->perhaps &&
		(by_queue.perhaps || provider_is_trying(&by_queue)))
		*told = by_queue;
	return ret;
}

/* It takes no rules, for the reasons that are told. */
static int open_none(struct provider **provider, const struct provider_abilities *told)
{
	struct provider *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return -ENOMEM;
	made->abilities = *told;
	made->abilities.back_end = "none";
	*provider = made;
	return 0;
}

int provider_open(struct provider **provider, const struct provider_config *config)
{
	struct provider_abilities told = {0};
	struct rte_eth_dev_info info;
	int ret = -EOPNOTSUPP;

	if (rte_eth_dev_info_get(config->port_id, &info) == 0)
		snprintf(told.nic, sizeof(told.nic), "%s", info.driver_name);
	if (!config->metadata) {
		snprintf(told.unable, sizeof(told.unable),
			"%s says that packets come without marks", told.nic);
		return open_none(provider, &told);
	}
	if (config->async)
		ret = back_end_open(provider, config, true, &told);
	/* the queue may be had yet */
	if (ret == -EOPNOTSUPP && !(provider_is_trying(&told) && trial_is_patient(config->trials)))
		ret = open_blocking(provider, config, &told);
	return ret == -EOPNOTSUPP ? open_none(provider, &told) : ret;
}

int provider_try_again(struct provider **provider, const struct provider_config *config)
{
	struct provider *made;

	if ((*provider)->ops != NULL) {
		(*provider)->ops->try_again(*provider, config->trials);
		return 0;
	}
	int ret = provider_open(&made, config);

	if (ret < 0)
		return ret;
	free(*provider);
	*provider = made;
	return 0;
}

uint32_t provider_close(struct provider *provider)
{
	if (provider != NULL && provider->ops != NULL)
		return provider->ops->close(provider);
	free(provider);
	return 0;
}

const struct provider_abilities *provider_abilities(const struct provider *provider)
{
	return &provider->abilities;
}

static int refuse_all(const struct provider *provider, struct provider_why *why)
{
	return answer_with_words(why, -EOPNOTSUPP, ENOTSUP, provider->abilities.unable);
}

int provider_insert(struct provider *provider, uint32_t place, const struct offload_rule *rule,
	struct provider_why *why)
{
	if (rule->rewrite != NULL && rule->deed != PROVIDER_FORWARDS)
		return answer_with_words(
			why, -EOPNOTSUPP, ENOTSUP, "only packets that are sent on are rewritten");
	return provider->ops != NULL ? provider->ops->insert(provider, place, rule, why)
				     : refuse_all(provider, why);
}

int provider_remove(struct provider *provider, uint32_t place, struct provider_why *why)
{
	return provider->ops != NULL ? provider->ops->remove(provider, place, why)
				     : refuse_all(provider, why);
}

int provider_query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why)
{
	return provider->ops != NULL ? provider->ops->query(provider, place, count, why)
				     : refuse_all(provider, why);
}

bool provider_last_count(struct provider *provider, uint32_t place, struct provider_count *count)
{
	return provider->ops != NULL && provider->ops->last_count != NULL &&
	       provider->ops->last_count(provider, place, count);
}

unsigned provider_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	return provider->ops != NULL ? provider->ops->poll(provider, done, max) : 0;
}

bool provider_next_shape(struct provider *provider, enum provider_kind kind)
{
	return provider->ops != NULL && provider->ops->next_shape(provider, kind);
}

int provider_flush(struct provider *provider, struct provider_why *why)
{
	memset(why, 0, sizeof(*why));
	return provider->ops == NULL || provider->ops->flush == NULL
		       ? 0
		       : provider->ops->flush(provider, why);
}

void provider_reset(struct provider *provider)
{
	if (provider->ops != NULL)
		provider->ops->reset(provider);
}
