/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of a plane's wires: made when it is known what marks their ports take, and given to the workers. */
#include <errno.h>

#include "base/monotonic.h"
#include "plane/ask.h"
#include "plane/plane.h"
#include "plane/plane_private.h"

/* For a port's trial its wire's slots wait so long. */
#define WAIT_FOR_TRIAL_US 2000000

/* Of a wire's ports, in what they can do. */
enum wire_ports {
	WIRE_WAITS, /* for the trial of one, a while */
	WIRE_ABLE,  /* one at least takes rules */
	WIRE_TRIES, /* none takes any, and one is tried again soon */
	WIRE_UNABLE,
};

/* A port whose trial takes long does not keep its wire's other one from being used. */
static enum wire_ports look_at_ports(const struct plane *plane, unsigned wire)
{
	const struct topology *topology = &plane->config.topology;
	bool waits = monotonic_us() - plane->began_us < WAIT_FOR_TRIAL_US;
	enum wire_ports ports = WIRE_UNABLE;

	for (unsigned place = 0; place < topology->size[wire]; place++) {
		const struct installer *installer =
			plane->installer[topology_port(topology, wire, place)];

		if (installer == NULL)
			continue;
		/* in this order: who becomes ready in between has abilities that were not read */
		const bool ready = installer_ready(installer);
		const struct provider_abilities *abilities = installer_abilities(installer);

		if (abilities->mark_max != 0)
			ports = WIRE_ABLE;
		else if (!ready && waits)
			return WIRE_WAITS;
		else if ((!ready || provider_is_trying(abilities)) && ports == WIRE_UNABLE)
			ports = WIRE_TRIES;
	}
	return ports;
}

/* The largest mark that both ports of a wire take: of those that are known. */
static uint32_t agree_on_marks(const struct plane *plane, unsigned wire)
{
	const struct topology *topology = &plane->config.topology;
	uint32_t most = UINT32_MAX, before;

	for (unsigned place = 0; place < topology->size[wire]; place++) {
		const struct installer *installer =
			plane->installer[topology_port(topology, wire, place)];

		if (installer != NULL && installer_abilities(installer)->mark_max != 0)
			most = RTE_MIN(most, installer_abilities(installer)->mark_max);
	}
	do {
		before = most;
		for (unsigned place = 0; place < topology->size[wire]; place++) {
			struct installer *installer =
				plane->installer[topology_port(topology, wire, place)];

			if (installer != NULL)
				most = installer_agree_on_marks(installer, most);
		}
	} while (most < before);
	return most;
}

/* 0: the worker has its slots, or will have. -ENOMEM, or -ETIMEDOUT: it has to be asked again. */
static int adopt(struct plane *plane, unsigned worker, unsigned number, uint32_t mark_max)
{
	struct lcore *lcore = plane_shard_lcore(plane, worker);
	struct agent *agent = lcore->worker.agent;
	struct agent_wire wire;

	if (lcore->started && plane->patience.quick && ask_waits(lcore))
		return -ETIMEDOUT;
	int ret = agent_slots_init(&wire, &agent->config, number, mark_max);

	if (ret < 0)
		return ret;
	const uint32_t n = wire.slots.n;

	if (!lcore->started) {
		agent_adopt(agent, number, &wire);
		plane->n_slots[number] += n;
		return 0;
	}
	struct ask *ask = ask_prepare(lcore, ASK_ADOPT);

	if (ask == NULL) {
		agent_slots_fini(&wire);
		return -ETIMEDOUT;
	}
	ask->number = number;
	ask->wire = wire;
	/* it is adopted, if late */
	(void)ask_lcore(lcore);
	plane->n_slots[number] += n;
	return 0;
}

static void tell_no_slots(struct plane *plane, unsigned wire)
{
	for (unsigned i = 0; i < plane->config.n_workers; i++)
		atomic_fetch_or_explicit(&plane_shard_lcore(plane, i)->worker.agent->without_slots,
			(uint16_t)(1u << wire), memory_order_relaxed);
}

/* A worker that does not answer now has its part at the next call. */
static void make_slots(struct plane *plane, unsigned wire)
{
	uint32_t mark_max = agree_on_marks(plane, wire);
	uint16_t *have = &plane->have_slots[wire];

	for (unsigned i = 0; i < plane->config.n_workers; i++) {
		if (*have & 1u << i)
			continue;
		int ret = adopt(plane, i, wire, mark_max);

		if (ret == -ENOMEM) {
			/* flows of workers that have no part stay in software */
			plane->tended[wire] = true;
			tell_no_slots(plane, wire);
			return;
		}
		if (ret == 0)
			*have |= (uint16_t)(1u << i);
	}
	plane->tended[wire] = *have == (1u << plane->config.n_workers) - 1;
}

bool plane_has_no_slots(const struct plane *plane, unsigned wire)
{
	const struct agent *agent = plane_shard_lcore(plane, 0)->worker.agent;

	/* all of them have been told */
	return agent != NULL &&
	       atomic_load_explicit(&agent->without_slots, memory_order_relaxed) >> wire & 1;
}

uint32_t plane_n_slots(const struct plane *plane, unsigned wire)
{
	return plane->n_slots[wire];
}

bool plane_tend(struct plane *plane)
{
	bool all = true;

	for (unsigned wire = 0; plane->config.offload.on && wire < plane->config.topology.n_domains;
		wire++) {
		if (plane->tended[wire])
			continue;
		enum wire_ports ports = look_at_ports(plane, wire);

		if (ports == WIRE_ABLE)
			make_slots(plane, wire);
		all &= plane->tended[wire] || ports == WIRE_UNABLE;
	}
	return all;
}
