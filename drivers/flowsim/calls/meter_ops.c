/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/calls/meter_policy.h"
#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/packets/meter_lists.h"
#include "drivers/flowsim/port/port.h"

#define STATS_MASK                                                                             \
	(RTE_MTR_STATS_N_PKTS_GREEN | RTE_MTR_STATS_N_PKTS_YELLOW | RTE_MTR_STATS_N_PKTS_RED | \
		RTE_MTR_STATS_N_PKTS_DROPPED | RTE_MTR_STATS_N_BYTES_GREEN |                   \
		RTE_MTR_STATS_N_BYTES_YELLOW | RTE_MTR_STATS_N_BYTES_RED |                     \
		RTE_MTR_STATS_N_BYTES_DROPPED)

static int capabilities_get(struct rte_eth_dev *dev, struct rte_mtr_capabilities *capabilities,
	struct rte_mtr_error *error)
{
	(void)dev;
	(void)error;
	*capabilities = (struct rte_mtr_capabilities){
		.n_max = SIM_MAX_METERS,
		.n_shared_max = SIM_MAX_METERS,
		.identical = 1,
		.shared_identical = 1,
		.shared_n_flows_per_mtr_max = UINT32_MAX,
		.chaining_n_mtrs_per_flow_max = 1,
		.meter_srtcm_rfc2697_n_max = SIM_MAX_METERS,
		.meter_rate_max = UINT64_MAX,
		.meter_policy_n_max = SIM_MAX_METER_POLICIES,
		.srtcm_rfc2697_byte_mode_supported = 1,
		.srtcm_rfc2697_packet_mode_supported = 1,
		.stats_mask = STATS_MASK,
	};
	return 0;
}

static int params_refused(const struct rte_mtr_params *params, struct rte_mtr_error *error)
{
	if (params == NULL)
		return -rte_mtr_error_set(
			error, EINVAL, RTE_MTR_ERROR_TYPE_MTR_PARAMS, NULL, "no parameters");
	if (params->use_prev_mtr_color || params->dscp_table != NULL || params->vlan_table != NULL)
		return -rte_mtr_error_set(error, ENOTSUP, RTE_MTR_ERROR_TYPE_MTR_PARAMS, params,
			"meters of this NIC are colour-blind");
	if (params->stats_mask & ~(uint64_t)STATS_MASK)
		return -rte_mtr_error_set(
			error, EINVAL, RTE_MTR_ERROR_TYPE_STATS_MASK, params, "unknown counters");
	return 0;
}

/* Under the lock. */
static int create(struct sim_meters *meters, uint32_t id, const struct rte_mtr_params *params,
	struct rte_mtr_error *error)
{
	struct sim_meter_profile *profile = sim_meters_profile(meters, params->meter_profile_id);
	struct sim_meter_policy *policy = sim_meters_policy(meters, params->meter_policy_id);
	struct sim_meter *meter;

	if (sim_meters_find(meters, id) != NULL)
		return -rte_mtr_error_set(error, EEXIST, RTE_MTR_ERROR_TYPE_MTR_ID, NULL,
			"there is a meter of this number");
	if (profile == NULL)
		return -rte_mtr_error_set(error, ENOENT, RTE_MTR_ERROR_TYPE_METER_PROFILE_ID,
			params, "no such profile");
	if (policy == NULL)
		return -rte_mtr_error_set(error, ENOENT, RTE_MTR_ERROR_TYPE_METER_POLICY_ID, params,
			"no such policy");
	if (meters->n_meters == SIM_MAX_METERS)
		return -rte_mtr_error_set(
			error, ENOSPC, RTE_MTR_ERROR_TYPE_MTR_ID, NULL, "all meters are in use");
	meter = calloc(1, sizeof(*meter));
	if (meter == NULL)
		return -rte_mtr_error_set(
			error, ENOMEM, RTE_MTR_ERROR_TYPE_UNSPECIFIED, NULL, "no memory");
	rte_spinlock_init(&meter->lock);
	meter->id = id;
	meter->profile = profile;
	meter->policy = policy;
	meter->enabled = params->meter_enable != 0;
	meter->stats_mask = params->stats_mask;
	profile->users++;
	policy->users++;
	sim_meter_begin(meter);
	TAILQ_INSERT_TAIL(&meters->meters, meter, link);
	meters->n_meters++;
	return 0;
}

static int meter_create(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_params *params,
	int shared, struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	int result = params_refused(params, error);

	(void)shared; /* all may be */
	if (result != 0)
		return result;
	pthread_mutex_lock(&meters->lock);
	result = create(meters, id, params, error);
	pthread_mutex_unlock(&meters->lock);
	return result;
}

/* The meter, with the lock held; NULL: no such meter, said, and the lock is not held. */
static struct sim_meter *locked(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	struct sim_meter *meter;

	pthread_mutex_lock(&meters->lock);
	meter = sim_meters_find(meters, id);
	if (meter == NULL) {
		pthread_mutex_unlock(&meters->lock);
		rte_mtr_error_set(error, ENOENT, RTE_MTR_ERROR_TYPE_MTR_ID, NULL, "no such meter");
	}
	return meter;
}

static void unlock(struct rte_eth_dev *dev)
{
	pthread_mutex_unlock(&sim_port_of(dev)->meters->lock);
}

static int meter_destroy(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	struct sim_meter *meter = locked(dev, id, error);
	int result = 0;

	if (meter == NULL)
		return -ENOENT;
	if (meter->users > 0) {
		result = -rte_mtr_error_set(
			error, EBUSY, RTE_MTR_ERROR_TYPE_MTR_ID, NULL, "a rule has it");
	} else {
		meter->profile->users--;
		meter->policy->users--;
		TAILQ_REMOVE(&meters->meters, meter, link);
		meters->n_meters--;
		free(meter);
	}
	unlock(dev);
	return result;
}

static int set_enabled(
	struct rte_eth_dev *dev, uint32_t id, bool enabled, struct rte_mtr_error *error)
{
	struct sim_meter *meter = locked(dev, id, error);

	if (meter == NULL)
		return -ENOENT;
	rte_spinlock_lock(&meter->lock);
	if (enabled && !meter->enabled)
		sim_meter_begin(meter);
	meter->enabled = enabled;
	rte_spinlock_unlock(&meter->lock);
	unlock(dev);
	return 0;
}

static int meter_enable(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error)
{
	return set_enabled(dev, id, true, error);
}

static int meter_disable(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error)
{
	return set_enabled(dev, id, false, error);
}

static int profile_update(
	struct rte_eth_dev *dev, uint32_t id, uint32_t profile_id, struct rte_mtr_error *error)
{
	struct sim_meter *meter = locked(dev, id, error);
	struct sim_meter_profile *profile;
	int result = 0;

	if (meter == NULL)
		return -ENOENT;
	profile = sim_meters_profile(sim_port_of(dev)->meters, profile_id);
	if (profile == NULL) {
		result = -rte_mtr_error_set(error, ENOENT, RTE_MTR_ERROR_TYPE_METER_PROFILE_ID,
			NULL, "no such profile");
	} else {
		meter->profile->users--;
		profile->users++;
		rte_spinlock_lock(&meter->lock);
		meter->profile = profile;
		sim_meter_begin(meter);
		rte_spinlock_unlock(&meter->lock);
	}
	unlock(dev);
	return result;
}

static int policy_update(
	struct rte_eth_dev *dev, uint32_t id, uint32_t policy_id, struct rte_mtr_error *error)
{
	struct sim_meter *meter = locked(dev, id, error);
	struct sim_meter_policy *policy;
	int result = 0;

	if (meter == NULL)
		return -ENOENT;
	policy = sim_meters_policy(sim_port_of(dev)->meters, policy_id);
	if (policy == NULL) {
		result = -rte_mtr_error_set(
			error, ENOENT, RTE_MTR_ERROR_TYPE_METER_POLICY_ID, NULL, "no such policy");
	} else {
		meter->policy->users--;
		policy->users++;
		rte_spinlock_lock(&meter->lock);
		meter->policy = policy;
		rte_spinlock_unlock(&meter->lock);
	}
	unlock(dev);
	return result;
}

static int stats_update(
	struct rte_eth_dev *dev, uint32_t id, uint64_t mask, struct rte_mtr_error *error)
{
	struct sim_meter *meter;

	if (mask & ~(uint64_t)STATS_MASK)
		return -rte_mtr_error_set(
			error, EINVAL, RTE_MTR_ERROR_TYPE_STATS_MASK, NULL, "unknown counters");
	meter = locked(dev, id, error);
	if (meter == NULL)
		return -ENOENT;
	rte_spinlock_lock(&meter->lock);
	meter->stats_mask = mask;
	rte_spinlock_unlock(&meter->lock);
	unlock(dev);
	return 0;
}

static int stats_read(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_stats *stats,
	uint64_t *mask, int clear, struct rte_mtr_error *error)
{
	struct sim_meter *meter = locked(dev, id, error);

	if (meter == NULL)
		return -ENOENT;
	rte_spinlock_lock(&meter->lock);
	if (stats != NULL)
		*stats = meter->stats;
	if (mask != NULL)
		*mask = meter->stats_mask;
	if (clear)
		memset(&meter->stats, 0, sizeof(meter->stats));
	rte_spinlock_unlock(&meter->lock);
	unlock(dev);
	return 0;
}

static const struct rte_mtr_ops meter_calls = {
	.capabilities_get = capabilities_get,
	.meter_profile_add = sim_mtr_profile_add,
	.meter_profile_delete = sim_mtr_profile_delete,
	.create = meter_create,
	.destroy = meter_destroy,
	.meter_enable = meter_enable,
	.meter_disable = meter_disable,
	.meter_profile_update = profile_update,
	.stats_update = stats_update,
	.stats_read = stats_read,
	.meter_policy_validate = sim_mtr_policy_validate,
	.meter_policy_add = sim_mtr_policy_add,
	.meter_policy_delete = sim_mtr_policy_delete,
	.meter_policy_update = policy_update,
};

const struct rte_mtr_ops *sim_mtr_ops_get(const struct sim_port *port)
{
	bool meters = port->args.profile.actions & UINT64_C(1) << RTE_FLOW_ACTION_TYPE_METER;

	return meters ? &meter_calls : NULL;
}
