/* SPDX-License-Identifier: BSD-3-Clause */
/* Installers and agents of a plane: made, told of one another, asked. */
#include "plane/plane.h"

#include <errno.h>
#include <string.h>

#include <rte_random.h>

#include "base/monotonic.h"
#include "offload/known.h"
#include "plane/ask.h"
#include "plane/plane_private.h"

static bool is_offloaded(const struct plane *plane, unsigned port)
{
	return plane->config.offload.on && !plane->config.offload.off_port[port];
}

static int make_installer(struct plane *plane, unsigned number, struct error *error)
{
	static const uint8_t queues[PLANE_MAX_WORKERS] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	const struct port *port = plane->config.port[number];
	const struct known *known = plane->config.offload.known[number];
	struct installer_config config = {
		.rules = plane->config.offload.rules,
		.static_rules = plane_nic_rules_max(plane),
		.room = known != NULL && known->sized && known->full ? known->rules : 0,
		.number = number,
		.n_workers = plane->config.n_workers,
		.clock = &plane->clock,
		.cpus = CPU_COUNT(&plane->others) > 0 ? &plane->others : NULL,
		.provider =
			{
				.port_id = port->id,
				.n_places = plane->config.offload.slots,
				.n_queues = port->n_rx,
				.worker_queue =
					port->n_rx == plane->config.n_workers ? queues : NULL,
				.zone_vlan = plane->config.zone_vlan,
				.metadata = port->marks,
				.async = port->flow_queues,
				.full = plane->config.offload.full,
				.uncounted = !plane->config.offload.counters,
				.forward_to =
					plane->config.port[plane->config.topology.peer[number]]->id,
				.random = rte_rand(),
			},
	};

	plane->restart[number] = (struct plane_port){.plane = plane, .number = number};
	if (plane->config.offload.restart) {
		config.restart = plane_restart_port;
		config.restart_context = &plane->restart[number];
	}
	return installer_create(&plane->installer[number], &config, error);
}

static void tell(void *context, const struct offload_change *change)
{
	struct lcore *lcore = context;

	if (!lcore->worker.follow || change->kind != CHANGE_FLOW)
		return;
	lcore_event(lcore, (struct path_event){
				   .key = change->key,
				   .kind = PATH_EVENT_OFFLOAD,
				   .reason = change->reason,
				   .worker = (uint8_t)lcore->worker.number,
				   .port = (uint8_t)change->port,
				   .from = (uint8_t)change->from,
				   .before = (uint8_t)change->before,
				   .after = (uint8_t)change->after,
			   });
}

/* What a port's NIC can have counted at most: by its fastest link, and the longest frame it takes. 0: not known. */
static void bound(const struct port *port, uint64_t *link_mbps, uint32_t *longest)
{
	/* RTE_ETH_LINK_SPEED_FIXED, 10M_HD, 10M, and so on to 200G */
	static const uint32_t speeds[] = {0, 10, 10, 100, 100, 1000, 2500, 5000, 10000, 20000,
		25000, 40000, 50000, 56000, 100000, 200000};
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port->id, &info) < 0)
		return;
	*longest = info.max_rx_pktlen;
	if (info.speed_capa == 0)
		return;
	const unsigned fastest = 31 - (unsigned)__builtin_clz(info.speed_capa);

	*link_mbps = fastest < RTE_DIM(speeds) ? speeds[fastest] : 0;
}

/* Packets that a flow has had before a NIC is asked. */
static uint32_t least_packets(uint32_t threshold)
{
	return threshold == 0 ? 1 : PLANE_OFFLOAD_LEAST;
}

static int make_agent(struct plane *plane, unsigned worker)
{
	struct lcore *lcore = plane_shard_lcore(plane, worker);
	struct agent_config config = {
		.worker = worker,
		.n_workers = plane->config.n_workers,
		.topology = plane->config.topology,
		.table = &lcore->worker.shard->table,
		.dropped = lcore->worker.shard->verdict_dropped,
		.clock = &plane->clock,
		.threshold = plane->config.offload.threshold,
		.slots = plane->config.offload.slots,
		.rules = plane->config.offload.rules,
		.rules_per_s = plane->config.offload.rules_per_s,
		.min_packets = least_packets(plane->config.offload.threshold),
		.audit_counters = plane->config.offload.counters,
		.random = rte_rand(),
		.full = plane->config.offload.full,
		.tcp_strict = plane->config.tcp_strict,
		.tell = tell,
		.credit = lcore_credit,
		.silent = lcore_end_silent,
		.release = lcore_take_held_report,
		.room = lcore_room,
		.context = lcore,
	};

	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		config.installer[i] = plane->installer[i];
		bound(plane->config.port[i], &config.link_mbps[i], &config.longest[i]);
	}
	return agent_create(&lcore->worker.agent, &config);
}

static void introduce_agents(struct plane *plane)
{
	struct agent *agents[PLANE_MAX_WORKERS];

	for (unsigned i = 0; i < plane->config.n_workers; i++)
		agents[i] = plane_shard_lcore(plane, i)->worker.agent;
	agent_introduce(agents, plane->config.n_workers);
}

int plane_offload_make(struct plane *plane, struct error *error)
{
	int ret = 0;

	if (!plane->config.offload.on)
		return 0;
	if (plane->config.offload.slots < plane->config.n_workers)
		return error_set(error, -EINVAL, "there are fewer slots than workers");
	/* none were no limit */
	if (plane->config.offload.rules_per_s != 0 &&
		plane->config.offload.rules_per_s < plane->config.n_workers)
		return error_set(error, -EINVAL, "there are fewer rules a second than workers");
	plane->began_us = monotonic_us();
	for (unsigned i = 0; ret == 0 && i < plane_n_ports(plane); i++)
		if (is_offloaded(plane, i))
			ret = make_installer(plane, i, error);
	if (ret < 0)
		return ret;
	for (unsigned i = 0; ret == 0 && i < plane->config.n_workers; i++)
		ret = make_agent(plane, i);
	if (ret < 0)
		return error_set(error, ret, "no memory for what is offloaded");
	introduce_agents(plane);
	if (plane_nic_rules_make(plane) < 0)
		return error_set(error, -ENOMEM, "no memory for rules of NICs");
	return 0;
}

void plane_offload_stop(struct plane *plane)
{
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (plane->installer[i] != NULL)
			installer_stop(plane->installer[i]);
}

void plane_offload_take_down(struct plane *plane)
{
	for (unsigned i = 0; i < plane->n_lcores; i++)
		agent_destroy(plane->lcores[i].worker.agent);
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		installer_destroy(plane->installer[i]);
	plane_nic_rules_free(plane);
}

struct installer *plane_installer(const struct plane *plane, unsigned port)
{
	return plane->installer[port];
}

/* Asks one worker, or answers in its stead when it has no thread. */
static int ask_worker(struct plane *plane, unsigned worker, enum ask_kind kind, uint64_t number,
	struct ask **asked)
{
	struct lcore *lcore = plane_shard_lcore(plane, worker);

	*asked = ask_prepare(lcore, kind);
	if (*asked == NULL)
		return -ETIMEDOUT;
	(*asked)->number = (uint32_t)number;
	(*asked)->from = number;
	if (lcore->started)
		return ask_lcore(lcore);
	atomic_store_explicit(&lcore->ask->waiting, true, memory_order_release);
	ask_answer(lcore);
	return 0;
}

int plane_offload_counters(struct plane *plane, unsigned port, struct agent_counters *counters)
{
	uint64_t *sum = (uint64_t *)counters, read_us = 0;

	memset(counters, 0, sizeof(*counters));
	for (unsigned i = 0; plane->config.offload.on && i < plane->config.n_workers; i++) {
		struct ask *ask;

		if (ask_worker(plane, i, ASK_OFFLOAD, port, &ask) < 0)
			return -ETIMEDOUT;
		const uint64_t *part = (const uint64_t *)&ask->offload;

		/* nothing but counters of 64 bits */
		for (unsigned j = 0; j < sizeof(*counters) / sizeof(*sum); j++)
			sum[j] += part[j];
		read_us = RTE_MAX(read_us, ask->offload.read_us);
	}
	/* the longest is what all can be sure of */
	counters->read_us = read_us;
	return 0;
}

int plane_slots(struct plane *plane, unsigned wire, struct plane_slots *slots)
{
	*slots = (struct plane_slots){0};
	for (unsigned i = 0; plane->config.offload.on && i < plane->config.n_workers; i++) {
		struct ask *ask;

		if (ask_worker(plane, i, ASK_SLOTS, wire, &ask) < 0)
			return -ETIMEDOUT;
		slots->n += ask->slots.n;
		slots->used += ask->slots.used;
		slots->draining += ask->slots.draining;
	}
	return 0;
}

unsigned plane_port_changes(struct plane *plane, struct offload_change *changes, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (plane->installer[i] != NULL)
			n += installer_changes(plane->installer[i], &changes[n], max - n);
	return n;
}

int plane_changes(struct plane *plane, struct plane_changes *where, struct offload_change *changes,
	unsigned max, unsigned *n)
{
	*n = plane_port_changes(plane, changes, max);
	for (unsigned asked = 0; plane->config.offload.on && asked < plane->config.n_workers;
		asked++) {
		const unsigned i = where->next;
		struct ask *ask;

		if (*n + ASK_CHANGES_MOST > max)
			break;
		/* who comes last has a turn too, however much the others tell */
		where->next = (i + 1) % plane->config.n_workers;
		if (ask_worker(plane, i, ASK_CHANGES, where->worker[i], &ask) < 0)
			return -ETIMEDOUT;
		memcpy(&changes[*n], ask->changes, ask->n_changes * sizeof(changes[0]));
		*n += ask->n_changes;
		where->worker[i] = ask->from;
	}
	return 0;
}

int plane_flow(struct plane *plane, const struct flow_key *key, struct plane_flow *flow)
{
	const struct packet_info info = {.key = *key, .hash = flow_key_hash(&plane->secret, key)};
	unsigned worker = steer_shard(&plane->steer, &info);
	struct lcore *lcore = plane_shard_lcore(plane, worker);
	struct ask *ask = ask_prepare(lcore, ASK_FLOW);

	if (ask == NULL)
		return -ETIMEDOUT;
	ask->key = info.key;
	ask->hash = info.hash;
	if (lcore->started) {
		if (ask_lcore(lcore) < 0)
			return -ETIMEDOUT;
	} else {
		atomic_store_explicit(&lcore->ask->waiting, true, memory_order_release);
		ask_answer(lcore);
	}
	*flow = ask->flow;
	flow->worker = worker;
	return ask->found ? 0 : -ENOENT;
}

static void set_offload(struct plane *plane, const struct plane_settings *settings)
{
	struct plane_offload *offload = &plane->config.offload;

	if (!offload->on)
		return;
	offload->paused = !settings->offload_on;
	offload->threshold = settings->threshold;
	offload->rules = settings->rules;
	offload->rules_per_s = settings->rules_per_s;
	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (plane->installer[i] != NULL)
			installer_set_rules(plane->installer[i], settings->rules);
}

void plane_set(struct plane *plane, const struct plane_settings *settings)
{
	const struct settings put = {
		.timeouts = settings->timeouts,
		.active_s = settings->active_s,
		.reject_rate = settings->reject_rate,
		.log_rate = settings->log_rate,
		.offload =
			{
				.on = settings->offload_on,
				.threshold = settings->threshold,
				.min_packets = least_packets(settings->threshold),
				.rules = settings->rules,
				.rules_per_s = settings->rules_per_s,
			},
	};

	plane->config.timeouts = settings->timeouts;
	plane->config.active_s = settings->active_s;
	plane->config.reject_rate = settings->reject_rate;
	plane->config.log_rate = settings->log_rate;
	set_offload(plane, settings);
	settings_put(&plane->settings, &put);
}
