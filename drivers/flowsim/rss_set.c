/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "drivers/flowsim/ops.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/log.h"
#include "drivers/flowsim/port/rss.h"

/* A key has at least what an IPv6 packet with ports needs. */
#define KEY_LEAST 40

static int check(const struct sim_port *port, const struct rte_eth_rss_conf *conf)
{
	enum rte_eth_hash_function function = sim_rss_asked(conf);

	if ((conf->rss_hf & ~SIM_RSS_TYPES) != 0) {
		SIM_LOG(ERR, "%s: RSS types %#" PRIx64 " are not there, of %#" PRIx64, port->name,
			conf->rss_hf & ~SIM_RSS_TYPES, conf->rss_hf);
		return -EINVAL;
	}
	if (conf->rss_key != NULL && conf->rss_key_len != 0 &&
		(conf->rss_key_len < KEY_LEAST || conf->rss_key_len > SIM_RSS_KEY)) {
		SIM_LOG(ERR, "%s: an RSS key of %u bytes: it has %u to %u", port->name,
			conf->rss_key_len, KEY_LEAST, SIM_RSS_KEY);
		return -EINVAL;
	}
	if (function < 0 || function >= 32 || !(sim_rss_functions >> function & 1)) {
		SIM_LOG(ERR, "%s: there is no RSS function %d", port->name, (int)function);
		return -EINVAL;
	}
	return 0;
}

static void set_key(struct sim_port *port, const uint8_t *key, unsigned length)
{
	memset(port->rss_key, 0, sizeof(port->rss_key));
	memcpy(port->rss_key, key, length);
	sim_rss_table_fill(&port->rss_table, port->rss_key, sizeof(port->rss_key));
}

/* Under the port's lock. */
static void set(struct sim_port *port, const struct rte_eth_rss_conf *conf)
{
	static const uint8_t none[SIM_RSS_KEY];

	rte_rwlock_write_lock(&port->rss_lock);
	if (conf->rss_key != NULL && conf->rss_key_len != 0)
		set_key(port, conf->rss_key, conf->rss_key_len);
	else if (memcmp(port->rss_key, none, sizeof(none)) == 0)
		set_key(port, sim_rss_default_key, sizeof(sim_rss_default_key));
	/* receive looks at it without the lock: is a hash asked for? */
	__atomic_store_n(&port->rss_hf, conf->rss_hf, __ATOMIC_RELAXED);
	port->rss_function = sim_rss_asked(conf);
	rte_rwlock_write_unlock(&port->rss_lock);
}

int sim_rss_configure(struct sim_port *port, const struct rte_eth_rss_conf *conf, uint16_t n_queues)
{
	int ret = check(port, conf);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&port->lock);
	set(port, conf);
	for (unsigned i = 0; i < SIM_RETA; i++)
		__atomic_store_n(
			&port->reta[i], (uint16_t)(i % RTE_MAX(n_queues, 1)), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

/* Streams go to other queues by now. Under the port's lock. */
static void changed(struct sim_port *port)
{
	if (port->resolver != NULL)
		sim_resolver_all(port->resolver);
}

int sim_reta_update(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	struct sim_port *port = sim_port_of(dev);

	if (size != SIM_RETA)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	for (unsigned i = 0; i < SIM_RETA; i++) {
		const struct rte_eth_rss_reta_entry64 *group = &reta[i / RTE_ETH_RETA_GROUP_SIZE];

		if (group->mask >> i % RTE_ETH_RETA_GROUP_SIZE & 1)
			__atomic_store_n(&port->reta[i], group->reta[i % RTE_ETH_RETA_GROUP_SIZE],
				__ATOMIC_RELAXED);
	}
	changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

int sim_reta_query(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	const struct sim_port *port = sim_port_of(dev);

	if (size != SIM_RETA)
		return -EINVAL;
	for (unsigned i = 0; i < SIM_RETA; i++) {
		struct rte_eth_rss_reta_entry64 *group = &reta[i / RTE_ETH_RETA_GROUP_SIZE];

		if (group->mask >> i % RTE_ETH_RETA_GROUP_SIZE & 1)
			group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = sim_rss_queue(port, i);
	}
	return 0;
}

int sim_rss_update(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf)
{
	struct sim_port *port = sim_port_of(dev);
	int ret = check(port, conf);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&port->lock);
	set(port, conf);
	changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

int sim_rss_conf_get(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf)
{
	struct sim_port *port = sim_port_of(dev);

	pthread_mutex_lock(&port->lock);
	conf->rss_hf = port->rss_hf;
	if (conf->rss_key != NULL) {
		if (conf->rss_key_len == 0 || conf->rss_key_len > SIM_RSS_KEY)
			conf->rss_key_len = SIM_RSS_KEY;
		memcpy(conf->rss_key, port->rss_key, conf->rss_key_len);
	}
	sim_rss_tell(conf, port->rss_function);
	pthread_mutex_unlock(&port->lock);
	return 0;
}
