/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The meters of a port, their profiles and policies, as the calls of rte_mtr find and change them. All lists are under the
 * lock of sim_meters; what a packet changes in a meter is under the meter's.
 */

#include <pthread.h>
#include <sys/queue.h>

#include <rte_meter.h>
#include <rte_mtr_driver.h>
#include <rte_spinlock.h>

#include "drivers/flowsim/packets/meter.h"

#define SIM_MAX_METERS 4096
#define SIM_MAX_METER_PROFILES 256
#define SIM_MAX_METER_POLICIES 256

struct sim_meter_profile {
	TAILQ_ENTRY(sim_meter_profile) link;
	uint32_t id;
	uint32_t users; /* meters */
	bool packets;	/* counts packets, not bytes */
	struct rte_meter_srtcm_profile rates;
};

struct sim_meter_policy {
	TAILQ_ENTRY(sim_meter_policy) link;
	uint32_t id;
	uint32_t users; /* meters */
	bool drop[RTE_COLORS];
};

struct sim_meter {
	TAILQ_ENTRY(sim_meter) link;
	uint32_t id;
	uint32_t users; /* rules */
	struct sim_meter_profile *profile;
	struct sim_meter_policy *policy;
	rte_spinlock_t lock; /* of what follows, and of which profile and policy it is */
	bool enabled;
	uint64_t stats_mask;
	struct rte_meter_srtcm state;
	struct rte_mtr_stats stats;
};

struct sim_meters {
	pthread_mutex_t lock;
	uint32_t n_meters, n_profiles, n_policies;
	TAILQ_HEAD(, sim_meter) meters;
	TAILQ_HEAD(, sim_meter_profile) profiles;
	TAILQ_HEAD(, sim_meter_policy) policies;
};

/* Under the lock of sim_meters; NULL: there is none. */
struct sim_meter *sim_meters_find(const struct sim_meters *meters, uint32_t id);
struct sim_meter_profile *sim_meters_profile(const struct sim_meters *meters, uint32_t id);
struct sim_meter_policy *sim_meters_policy(const struct sim_meters *meters, uint32_t id);

/* Full buckets, from now on. The meter's lock is held, or nobody knows it yet. */
void sim_meter_begin(struct sim_meter *meter);
