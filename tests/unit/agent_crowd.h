/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Flows of one or two workers that want the rules of one NIC, which has too few: their packets come as time passes, and
 * time stands still until the NIC has done what it was asked for. The second of two workers has every other flow.
 */

#include <sched.h>

#include "agent_scene.h"

#define CROWD_FLOWS 24
#define CROWD_MAX_WORKERS 2

struct crowd {
	struct agent_scene scene[CROWD_MAX_WORKERS]; /* a worker each */
	unsigned n_workers;
	uint32_t flow[CROWD_FLOWS];
	uint32_t pps[CROWD_FLOWS];
	uint64_t sent[CROWD_FLOWS];
	unsigned most_rules;
};

static inline struct agent_nic *crowd_nic(void)
{
	return &agent_nics[0];
}

static inline struct agent_scene *crowd_scene(struct crowd *crowd, unsigned flow)
{
	return &crowd->scene[flow % crowd->n_workers];
}

static inline void crowd_introduce(struct crowd *crowd)
{
	struct agent *agents[CROWD_MAX_WORKERS];

	for (unsigned i = 0; i < crowd->n_workers; i++)
		agents[i] = crowd->scene[i].agent;
	agent_introduce(agents, crowd->n_workers);
}

/* A hundred packets a second, two hundred, ... */
static inline void crowd_begin(struct crowd *crowd, unsigned n_workers, unsigned room)
{
	*crowd = (struct crowd){.n_workers = n_workers};
	for (unsigned i = 0; i < n_workers; i++) {
		const struct agent_scene as = {
			.n_workers = n_workers, .first = i == 0 ? NULL : &crowd->scene[0]};

		agent_scene_begin_as(&crowd->scene[i], n_workers * 64, false, &as);
		crowd->scene[i].agent->config.threshold = 1;
		crowd->scene[i].agent->config.min_packets = 4;
	}
	crowd_introduce(crowd);
	atomic_store(&crowd_nic()->room, room);
	for (unsigned i = 0; i < CROWD_FLOWS; i++) {
		struct agent_scene *scene = crowd_scene(crowd, i);

		crowd->flow[i] = agent_flow(scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_record(scene, crowd->flow[i])->start_us = scene->now_us & CLOCK_MAX_US;
		crowd->pps[i] = 100 * (i + 1);
	}
}

static inline void crowd_end(struct crowd *crowd)
{
	for (unsigned i = crowd->n_workers; i > 0; i--)
		agent_scene_end(&crowd->scene[i - 1]);
}

static inline bool crowd_is_held(struct crowd *crowd, unsigned i)
{
	return agent_state(crowd_scene(crowd, i), crowd->flow[i], 0) >= OFFLOAD_SUSPECT;
}

/* Each packet is marked by its rule, or sampled. */
static inline void crowd_send(struct crowd *crowd, unsigned i)
{
	struct agent_scene *scene = crowd_scene(crowd, i);

	if (crowd_is_held(crowd, i)) {
		agent_packet(scene, crowd->flow[i], 0, 0, true);
	} else {
		agent_record(scene, crowd->flow[i])->count[0].packets_low++;
		agent_sample(scene->agent, crowd->flow[i], 0, 0);
	}
}

static inline bool crowd_is_awaited(const struct agent *agent)
{
	const struct agent_wire *wire = &agent->wire[0];

	for (uint32_t i = 0; i < wire->slots.n; i++)
		if (slots_slot(&wire->slots, i)->direction[0].awaited)
			return true;
	return false;
}

/* Time stands still until the NIC has done what it was asked for. */
static inline void crowd_await(struct agent_scene *scene)
{
	const uint64_t from_us = monotonic_us();

	while (crowd_is_awaited(scene->agent)) {
		if (monotonic_us() - from_us > AGENT_WAIT_US)
			fail_msg("the installer does not answer");
		sched_yield();
		agent_turn(scene->agent, scene->now_us);
	}
}

static inline void crowd_pass(struct crowd *crowd, unsigned ms)
{
	for (unsigned now = 0; now < ms; now++) {
		for (unsigned i = 0; i < CROWD_FLOWS; i++) {
			uint64_t due = crowd->pps[i] * UINT64_C(1000);

			for (crowd->sent[i] += due; crowd->sent[i] >= CLOCK_US_PER_S;
				crowd->sent[i] -= CLOCK_US_PER_S)
				crowd_send(crowd, i);
		}
		for (unsigned i = 0; i < crowd->n_workers; i++) {
			agent_pass_ms(&crowd->scene[i], 1);
			crowd_await(&crowd->scene[i]);
		}
		unsigned rules = atomic_load(&crowd_nic()->n_rules);

		if (rules > crowd->most_rules)
			crowd->most_rules = rules;
	}
}

static inline unsigned crowd_n_held(struct crowd *crowd)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CROWD_FLOWS; i++)
		n += crowd_is_held(crowd, i);
	return n;
}

/* All that are held are busier than the first that is not, but for what hysteresis leaves as it is. */
static inline void crowd_assert_busiest(struct crowd *crowd)
{
	uint32_t least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < CROWD_FLOWS; i++) {
		if (crowd_is_held(crowd, i) && crowd->pps[i] < least)
			least = crowd->pps[i];
		if (!crowd_is_held(crowd, i) && crowd->pps[i] > most)
			most = crowd->pps[i];
	}
	assert_true(most <= least + least * 6 / 10);
}

static inline void crowd_turn_around(struct crowd *crowd)
{
	for (unsigned i = 0; i < CROWD_FLOWS; i++)
		crowd->pps[i] = 100 * (CROWD_FLOWS - i);
}
