/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a plane: made, started, stopped, gone. */
#include "plane/plane.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_errno.h>

#include "base/idle.h"
#include "base/monotonic.h"
#include "dataplane/poll.h"
#include "plane/ask.h"
#include "plane/plane_private.h"

/* Snapshots taken until nothing is under way any more; each waits for every lcore. */
#define DRAIN_SNAPSHOTS 2000
/*
 * Rings that a packet may come through: to the parser that ties the fragment it quotes, to the shard of the flow that it
 * quotes, to that of its own flow, and to the lcore that sends.
 */
#define RING_HOPS 4

/* So long reports are waited for at the end. */
#define HELD_US 5000000

/* af_xdp does not start with fewer. */
#define POOL_MIN 8191

static bool all_software(const struct plane *plane)
{
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (!plane->config.port[i]->software)
			return false;
	return true;
}

/* The pool of a NUMA node; made when its first port asks. NULL and rte_errno. */
static struct rte_mempool *pool_of(struct plane *plane, int socket)
{
	unsigned n = plane_buffers(plane);
	uint16_t data_room = 0;
	char name[32];

	for (unsigned i = 0; i < plane->n_pools; i++)
		if (plane->pool_socket[i] == socket || plane->n_pools == PLANE_MAX_SOCKETS)
			return plane->pools[i];
	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		const struct port *port = plane->config.port[i];

		/* a packet of any port may be held in any pool's stead: rooms are alike */
		if (data_room < port_data_room(port))
			data_room = port_data_room(port);
		if (port->socket == socket)
			n += port_buffers(port);
	}
	/* by the first number that no other plane of this process has taken */
	for (unsigned i = 0; i == 0 || rte_mempool_lookup(name) != NULL; i++)
		snprintf(name, sizeof(name), "packets%u", i);
	struct rte_mempool *pool = port_pool_create(name, RTE_MAX(n, (unsigned)POOL_MIN),
		PACKET_META_SIZE, data_room, socket, all_software(plane));

	if (pool != NULL) {
		plane->pool_socket[plane->n_pools] = socket;
		plane->pools[plane->n_pools++] = pool;
	}
	return pool;
}

int plane_start_ports(struct plane *plane, struct error *error)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < plane_n_ports(plane); i++) {
		struct port *port = plane->config.port[i];
		struct rte_mempool *pool = pool_of(plane, port->socket);

		if (pool == NULL)
			return error_set(error, -rte_errno, "no memory for packets: %s",
				strerror(rte_errno));
		ret = port_start(port, pool, error);
	}
	return ret;
}

int plane_prepare(struct plane **out, const struct plane_config *config, struct error *error)
{
	struct plane *plane = calloc(1, sizeof(*plane));

	*out = plane;
	if (plane == NULL) {
		error_set(error, -ENOMEM, "no memory for the plane");
		return -ENOMEM;
	}
	plane->config = *config;
	tsc_clock_start(&plane->clock);
	int ret = hash_secret_init(&plane->secret);

	if (ret < 0)
		error_set(error, ret, "no randomness from the kernel: %s", strerror(-ret));
	return ret;
}

int plane_create(struct plane **plane, const struct plane_config *config, struct error *error)
{
	int ret = plane_prepare(plane, config, error);

	if (ret == 0)
		ret = plane_start_ports(*plane, error);
	if (ret == 0)
		ret = plane_wire_up(*plane, error);
	return ret;
}

void plane_destroy(struct plane *plane)
{
	if (plane == NULL)
		return;
	plane_stop(plane);
	plane_take_down(plane);
	for (unsigned i = 0; i < plane->n_pools; i++)
		rte_mempool_free(plane->pools[i]);
	free(plane);
}

/* Signals are control's: an lcore's thread starts with all of them blocked. */
static int start_thread(struct lcore *lcore, struct error *error)
{
	static const char *const kinds[] = {
		[LCORE_WORKER] = "worker",
		[LCORE_RX] = "rx",
		[LCORE_TX] = "tx",
	};
	char name[16];
	cpu_set_t cpus;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int ret = pthread_create(&lcore->thread, NULL, lcore_run, lcore);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	snprintf(name, sizeof(name), "%s-%u", kinds[lcore->kind], lcore->number);
	if (ret != 0)
		return error_set(error, -ret, "%s does not start: %s", name, strerror(ret));
	lcore->started = true;
	pthread_setname_np(lcore->thread, name);
	CPU_ZERO(&cpus);
	if (lcore->cpu >= 0) {
		CPU_SET(lcore->cpu, &cpus);
		if (pthread_setaffinity_np(lcore->thread, sizeof(cpus), &cpus) != 0)
			lcore->cpu = -1;
	}
	return 0;
}

int plane_start(struct plane *plane, struct error *error)
{
	int ret = 0;

	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (plane->lcores[i].worker.shard != NULL)
			policy_begin(&plane->lcores[i].policy, plane->lcores[i].worker.shard);
	for (unsigned i = 0; ret == 0 && i < plane->n_lcores; i++)
		ret = start_thread(&plane->lcores[i], error);
	plane->running = true;
	if (ret < 0)
		plane_stop(plane);
	return ret;
}

/*
 * Asks every lcore that can be asked this, however long the answer takes: flows that end may wait
 * for the exporter, which has a limit of its own.
 */
static void ask_all(struct plane *plane, enum ask_kind kind)
{
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];

		if (!lcore->started || (kind == ASK_RELEASE && lcore->parser == NULL) ||
			(kind == ASK_END && lcore->worker.shard == NULL))
			continue;
		while (ask_prepare(lcore, kind) == NULL)
			;
		(void)ask_lcore(lcore);
	}
}

/*
 * Until no packet is in a ring or held. What waits for a first fragment goes on without; more than once,
 * since a fragment may come out of a ring yet. Each snapshot takes what is in a ring past the next one.
 */
static void drain(struct plane *plane)
{
	struct plane_snapshot *snapshot = malloc(sizeof(*snapshot));

	for (unsigned tries = 0; snapshot != NULL && tries < DRAIN_SNAPSHOTS; tries++) {
		uint64_t held = 0;

		if (plane_snapshot(plane, snapshot) < 0)
			break;
		for (unsigned wire = 0; wire < plane->config.topology.n_domains; wire++)
			held += snapshot->wires[wire].held;
		if (held == 0 && tries + 1 >= RING_HOPS)
			break;
		if (held != 0)
			ask_all(plane, ASK_RELEASE);
	}
	free(snapshot);
}

/* Reports of flows that a NIC forwarded alone wait for its last numbers, a while. */
static void await_held(struct plane *plane)
{
	uint64_t end_us = monotonic_us() + HELD_US;
	uint32_t held = 1;

	while (plane->config.offload.full && held != 0 && monotonic_us() < end_us) {
		held = 0;
		for (unsigned i = 0; i < plane->n_lcores; i++) {
			struct lcore *lcore = &plane->lcores[i];
			struct ask *ask;

			if (!lcore->started || lcore->worker.shard == NULL)
				continue;
			ask = ask_prepare(lcore, ASK_HELD);
			if (ask != NULL && ask_lcore(lcore) == 0)
				held += ask->number;
		}
		if (held != 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static bool all_started(const struct plane *plane)
{
	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (!plane->lcores[i].started)
			return false;
	return true;
}

void plane_stop(struct plane *plane)
{
	if (!plane->running) {
		plane_offload_stop(plane);
		return;
	}
	ask_be_patient(&plane->patience);
	ask_all(plane, ASK_STOP_RECEIVING);
	if (all_started(plane))
		drain(plane);
	if (plane->config.ending != NULL)
		plane->config.ending(plane->config.sink_context);
	ask_all(plane, ASK_END);
	await_held(plane);
	ask_all(plane, ASK_LEAVE);
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		if (plane->lcores[i].started)
			pthread_join(plane->lcores[i].thread, NULL);
		plane->lcores[i].started = false;
	}
	plane_offload_stop(plane);
	plane->running = false;
}
