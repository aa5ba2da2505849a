/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/meter.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "drivers/flowsim/packets/meter_lists.h"
#include "drivers/flowsim/port/port.h"

int sim_meters_init(struct sim_port *port)
{
	struct sim_meters *meters = calloc(1, sizeof(*meters));

	if (meters == NULL)
		return -ENOMEM;
	pthread_mutex_init(&meters->lock, NULL);
	TAILQ_INIT(&meters->meters);
	TAILQ_INIT(&meters->profiles);
	TAILQ_INIT(&meters->policies);
	port->meters = meters;
	return 0;
}

void sim_meters_fini(struct sim_port *port)
{
	struct sim_meters *meters = port->meters;
	struct sim_meter *meter;
	struct sim_meter_profile *profile;
	struct sim_meter_policy *policy;

	if (meters == NULL)
		return;
	port->meters = NULL;
	while ((meter = TAILQ_FIRST(&meters->meters)) != NULL) {
		TAILQ_REMOVE(&meters->meters, meter, link);
		free(meter);
	}
	while ((profile = TAILQ_FIRST(&meters->profiles)) != NULL) {
		TAILQ_REMOVE(&meters->profiles, profile, link);
		free(profile);
	}
	while ((policy = TAILQ_FIRST(&meters->policies)) != NULL) {
		TAILQ_REMOVE(&meters->policies, policy, link);
		free(policy);
	}
	pthread_mutex_destroy(&meters->lock);
	free(meters);
}

struct sim_meter *sim_meters_find(const struct sim_meters *meters, uint32_t id)
{
	struct sim_meter *meter;

	TAILQ_FOREACH(meter, &meters->meters, link)
		if (meter->id == id)
			return meter;
	return NULL;
}

struct sim_meter_profile *sim_meters_profile(const struct sim_meters *meters, uint32_t id)
{
	struct sim_meter_profile *profile;

	TAILQ_FOREACH(profile, &meters->profiles, link)
		if (profile->id == id)
			return profile;
	return NULL;
}

struct sim_meter_policy *sim_meters_policy(const struct sim_meters *meters, uint32_t id)
{
	struct sim_meter_policy *policy;

	TAILQ_FOREACH(policy, &meters->policies, link)
		if (policy->id == id)
			return policy;
	return NULL;
}

bool sim_meter_is(struct sim_port *port, uint32_t id)
{
	struct sim_meters *meters = port->meters;
	bool is;

	if (meters == NULL)
		return false;
	pthread_mutex_lock(&meters->lock);
	is = sim_meters_find(meters, id) != NULL;
	pthread_mutex_unlock(&meters->lock);
	return is;
}

struct sim_meter *sim_meter_hold(struct sim_port *port, uint32_t id)
{
	struct sim_meters *meters = port->meters;
	struct sim_meter *meter;

	if (meters == NULL)
		return NULL;
	pthread_mutex_lock(&meters->lock);
	meter = sim_meters_find(meters, id);
	if (meter != NULL)
		meter->users++;
	pthread_mutex_unlock(&meters->lock);
	return meter;
}

void sim_meter_release(struct sim_port *port, struct sim_meter *meter)
{
	pthread_mutex_lock(&port->meters->lock);
	meter->users--;
	pthread_mutex_unlock(&port->meters->lock);
}

void sim_meter_begin(struct sim_meter *meter)
{
	rte_meter_srtcm_config(&meter->state, &meter->profile->rates);
}

bool sim_meter_packet(struct sim_meter *meter, uint32_t bytes)
{
	bool pass = true;

	rte_spinlock_lock(&meter->lock);
	if (meter->enabled) {
		enum rte_color color = rte_meter_srtcm_color_blind_check(&meter->state,
			&meter->profile->rates, rte_rdtsc(), meter->profile->packets ? 1 : bytes);

		pass = !meter->policy->drop[color];
		if (pass) {
			meter->stats.n_pkts[color]++;
			meter->stats.n_bytes[color] += bytes;
		} else {
			meter->stats.n_pkts_dropped++;
			meter->stats.n_bytes_dropped += bytes;
		}
	}
	rte_spinlock_unlock(&meter->lock);
	return pass;
}
