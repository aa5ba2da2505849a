/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_eth_rx_metadata_negotiate() is one still */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "rteflow/answer.h"
#include "rteflow/back_end.h"
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
	return provider_prepare_async(port_id, n_places);
}

static void describe(struct provider_abilities *told, const struct provider_config *config)
{
	struct rte_eth_dev_info info;

	memset(told, 0, sizeof(*told));
	if (rte_eth_dev_info_get(config->port_id, &info) == 0)
		snprintf(told->nic, sizeof(told->nic), "%s", info.driver_name);
}

bool provider_is_trying(const struct provider_abilities *abilities)
{
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (abilities->trying[kind])
			return true;
	return false;
}

/* The better back end may be had yet. */
static bool waits(const struct provider_abilities *told, const struct provider_config *config)
{
	return provider_is_trying(told) && trial_is_patient(config->trials);
}

/*
 * By the other calls, in place of flow queues where the port has such. Who does not know these calls at all says nothing
 * of what its queues may take another day.
 */
static int open_sync_instead(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told)
{
	const struct provider_abilities by_queues = *told;
	int ret = provider_open_sync(provider, config, told);

	if (ret == -EOPNOTSUPP && config->async && !told->perhaps &&
		(by_queues.perhaps || provider_is_trying(&by_queues)))
		*told = by_queues;
	return ret;
}

int provider_open(struct provider **provider, const struct provider_config *config)
{
	struct provider_abilities told;
	int ret = -EOPNOTSUPP;

	describe(&told, config);
	if (!config->metadata) {
		snprintf(told.unable, sizeof(told.unable),
			"%s says that packets come without marks", told.nic);
		return provider_open_none(provider, &told);
	}
	if (config->async)
		ret = provider_open_async(provider, config, &told);
	if (ret == -EOPNOTSUPP && !waits(&told, config))
		ret = open_sync_instead(provider, config, &told);
	if (ret == -EOPNOTSUPP)
		ret = provider_open_none(provider, &told);
	return ret;
}

int provider_try_again(struct provider **provider, const struct provider_config *config)
{
	struct provider *made;
	int ret;

	if ((*provider)->ops->try_again != NULL) {
		(*provider)->ops->try_again(*provider, config->trials);
		return 0;
	}
	ret = provider_open(&made, config);
	if (ret < 0)
		return ret;
	provider_close(*provider);
	*provider = made;
	return 0;
}

uint32_t provider_close(struct provider *provider)
{
	return provider != NULL ? provider->ops->close(provider) : 0;
}

const struct provider_abilities *provider_abilities(const struct provider *provider)
{
	return &provider->abilities;
}

int provider_insert(struct provider *provider, uint32_t place, const struct offload_rule *rule,
	struct provider_why *why)
{
	if (rule->rewrite != NULL && rule->deed != PROVIDER_FORWARDS) {
		answer_words(why, ENOTSUP, "only packets that are sent on are rewritten");
		return -EOPNOTSUPP;
	}
	return provider->ops->insert(provider, place, rule, why);
}

int provider_remove(struct provider *provider, uint32_t place, struct provider_why *why)
{
	return provider->ops->remove(provider, place, why);
}

int provider_query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why)
{
	return provider->ops->query(provider, place, count, why);
}

bool provider_last_count(struct provider *provider, uint32_t place, struct provider_count *count)
{
	return provider->ops->last_count != NULL &&
	       provider->ops->last_count(provider, place, count);
}

unsigned provider_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	return provider->ops->poll(provider, done, max);
}

bool provider_next_shape(struct provider *provider, enum provider_kind kind)
{
	return provider->ops->next_shape(provider, kind);
}

int provider_flush(struct provider *provider, struct provider_why *why)
{
	memset(why, 0, sizeof(*why));
	return provider->ops->flush == NULL ? 0 : provider->ops->flush(provider, why);
}

void provider_reset(struct provider *provider)
{
	provider->ops->reset(provider);
}
