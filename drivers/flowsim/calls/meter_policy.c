/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/calls/meter_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/packets/meter_lists.h"
#include "drivers/flowsim/port/port.h"

static int refused(struct rte_mtr_error *error, int code, enum rte_mtr_error_type type,
	const void *cause, const char *message)
{
	return -rte_mtr_error_set(error, code, type, cause, message);
}

static int add_profile(struct sim_meters *meters, uint32_t id,
	const struct rte_mtr_meter_profile *asked, const struct rte_meter_srtcm_profile *rates)
{
	struct sim_meter_profile *profile;

	if (sim_meters_profile(meters, id) != NULL)
		return -EEXIST;
	if (meters->n_profiles == SIM_MAX_METER_PROFILES)
		return -ENOSPC;
	profile = calloc(1, sizeof(*profile));
	if (profile == NULL)
		return -ENOMEM;
	profile->id = id;
	profile->packets = asked->packet_mode != 0;
	profile->rates = *rates;
	TAILQ_INSERT_TAIL(&meters->profiles, profile, link);
	meters->n_profiles++;
	return 0;
}

int sim_mtr_profile_add(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_meter_profile *profile,
	struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	struct rte_meter_srtcm_profile rates;
	int result;

	if (profile == NULL || profile->alg != RTE_MTR_SRTCM_RFC2697)
		return refused(error, ENOTSUP, RTE_MTR_ERROR_TYPE_METER_PROFILE, profile,
			"meters are of RFC 2697");

	struct rte_meter_srtcm_params params = {
		.cir = profile->srtcm_rfc2697.cir,
		.cbs = profile->srtcm_rfc2697.cbs,
		.ebs = profile->srtcm_rfc2697.ebs,
	};

	if (rte_meter_srtcm_profile_config(&rates, &params) != 0)
		return refused(error, EINVAL, RTE_MTR_ERROR_TYPE_METER_PROFILE, profile,
			"a rate of 0, or no burst at all");
	pthread_mutex_lock(&meters->lock);
	result = add_profile(meters, id, profile, &rates);
	pthread_mutex_unlock(&meters->lock);
	if (result == 0)
		return 0;
	return refused(error, -result, RTE_MTR_ERROR_TYPE_METER_PROFILE_ID, NULL,
		result == -EEXIST ? "there is a profile of this number" : "no room");
}

int sim_mtr_profile_delete(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	struct sim_meter_profile *profile;
	int result = -ENOENT;

	pthread_mutex_lock(&meters->lock);
	profile = sim_meters_profile(meters, id);
	if (profile != NULL && profile->users > 0) {
		result = -EBUSY;
	} else if (profile != NULL) {
		TAILQ_REMOVE(&meters->profiles, profile, link);
		meters->n_profiles--;
		free(profile);
		result = 0;
	}
	pthread_mutex_unlock(&meters->lock);
	if (result == 0)
		return 0;
	return refused(error, -result, RTE_MTR_ERROR_TYPE_METER_PROFILE_ID, NULL,
		result == -EBUSY ? "a meter has it" : "no such profile");
}

/*
 * What is done to packets of a colour: nothing, DROP, or naming the colour that they have. *drop says
 * which. -EINVAL: no END; -ENOTSUP: anything else.
 */
static int read_color(const struct rte_flow_action list[], enum rte_color color, bool *drop)
{
	*drop = false;
	if (list == NULL)
		return 0;
	for (unsigned i = 0; i < SIM_MAX_ACTIONS; i++) {
		const struct rte_flow_action_meter_color *conf = list[i].conf;

		if (list[i].type == RTE_FLOW_ACTION_TYPE_END)
			return 0;
		if (list[i].type == RTE_FLOW_ACTION_TYPE_DROP)
			*drop = true;
		else if (list[i].type == RTE_FLOW_ACTION_TYPE_METER_COLOR) {
			if (conf == NULL || conf->color != color)
				return -ENOTSUP;
		} else if (list[i].type != RTE_FLOW_ACTION_TYPE_VOID) {
			return -ENOTSUP;
		}
	}
	return -EINVAL;
}

static int read_policy(bool drop[RTE_COLORS], const struct rte_mtr_meter_policy_params *policy,
	struct rte_mtr_error *error)
{
	static const enum rte_color colors[] = {RTE_COLOR_GREEN, RTE_COLOR_YELLOW, RTE_COLOR_RED};

	if (policy == NULL)
		return refused(error, EINVAL, RTE_MTR_ERROR_TYPE_METER_POLICY, NULL, "no policy");
	for (unsigned i = 0; i < RTE_DIM(colors); i++) {
		enum rte_color color = colors[i];
		int result = read_color(policy->actions[color], color, &drop[color]);

		if (result != 0)
			return refused(error, -result, RTE_MTR_ERROR_TYPE_METER_POLICY,
				policy->actions[color],
				result == -EINVAL ? "no END among 32 actions"
						  : "a meter drops a colour or lets it pass");
	}
	return 0;
}

int sim_mtr_policy_validate(struct rte_eth_dev *dev, struct rte_mtr_meter_policy_params *policy,
	struct rte_mtr_error *error)
{
	bool drop[RTE_COLORS];

	(void)dev;
	return read_policy(drop, policy, error);
}

static int add_policy(struct sim_meters *meters, uint32_t id, const bool drop[RTE_COLORS])
{
	struct sim_meter_policy *policy;

	if (sim_meters_policy(meters, id) != NULL)
		return -EEXIST;
	if (meters->n_policies == SIM_MAX_METER_POLICIES)
		return -ENOSPC;
	policy = calloc(1, sizeof(*policy));
	if (policy == NULL)
		return -ENOMEM;
	policy->id = id;
	memcpy(policy->drop, drop, sizeof(policy->drop));
	TAILQ_INSERT_TAIL(&meters->policies, policy, link);
	meters->n_policies++;
	return 0;
}

int sim_mtr_policy_add(struct rte_eth_dev *dev, uint32_t id,
	struct rte_mtr_meter_policy_params *policy, struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	bool drop[RTE_COLORS];
	int result = read_policy(drop, policy, error);

	if (result != 0)
		return result;
	pthread_mutex_lock(&meters->lock);
	result = add_policy(meters, id, drop);
	pthread_mutex_unlock(&meters->lock);
	if (result == 0)
		return 0;
	return refused(error, -result, RTE_MTR_ERROR_TYPE_METER_POLICY_ID, NULL,
		result == -EEXIST ? "there is a policy of this number" : "no room");
}

int sim_mtr_policy_delete(struct rte_eth_dev *dev, uint32_t id, struct rte_mtr_error *error)
{
	struct sim_meters *meters = sim_port_of(dev)->meters;
	struct sim_meter_policy *policy;
	int result = -ENOENT;

	pthread_mutex_lock(&meters->lock);
	policy = sim_meters_policy(meters, id);
	if (policy != NULL && policy->users > 0) {
		result = -EBUSY;
	} else if (policy != NULL) {
		TAILQ_REMOVE(&meters->policies, policy, link);
		meters->n_policies--;
		free(policy);
		result = 0;
	}
	pthread_mutex_unlock(&meters->lock);
	if (result == 0)
		return 0;
	return refused(error, -result, RTE_MTR_ERROR_TYPE_METER_POLICY_ID, NULL,
		result == -EBUSY ? "a meter has it" : "no such policy");
}
