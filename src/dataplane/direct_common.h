/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the short way's two walks share, without offload and with it: direct_walk.c, direct_watch.c. */

#include "flow/account.h"
#include "flow/find.h"
#include "offload/agent.h"
#include "packet/extract_common.h"
#include "dataplane/direct_parts.h"
#include "dataplane/judge.h"
#include "dataplane/policy.h"
#include "dataplane/send.h"
#include "port/rss.h"

/* A packet that is not common; its flags, or 0 when it is not to go this way. */
static __rte_noinline uint8_t direct_read_rare(const struct station *station,
	const struct rte_mbuf *packet, unsigned wire, uint8_t flags, struct packet_info *info)
{
	const struct extract_options options = {
		.secret = station->secret, .zone_vlan = station->zone_vlan};

	if (extract(&options, packet, wire, info) != EXTRACT_IP ||
		info->flags & (PACKET_FRAGMENT | PACKET_ICMP_ERROR))
		return 0;
	/* it may have to be dropped */
	if (info->key.proto == PROTO_TCP && !(info->flags & PACKET_TCP))
		return 0;
	/* the NIC may have made its hash of something else: the packet's shard is to be computed */
	if (station->worker.steer.n_shards > 1 && info->flags & (PACKET_CUT | PACKET_UNPLAIN))
		return 0;
	/* PACKET_CUT, or nothing but that there are ports: never 0 with this one */
	info->flags |= flags;
	return info->flags | PACKET_SIDE;
}

/* So many packets of a burst were taken, and `burst->bytes` are theirs. */
static inline void direct_count(
	struct station *station, const struct direct_burst *burst, unsigned n)
{
	struct path_counters *counters = &station->worker.counters[burst->rx->domain];

	counters->received += n;
	counters->received_bytes += burst->bytes;
	station->ports[burst->rx->port].rx_bytes += burst->bytes;
}

/* Every kind of packet that RSS may be trusted with. */
#define ALL_KINDS ((1u << RSS_N_KINDS) - 1)

/* What of a burst is not simply counted and sent; a bit for each packet. */
struct direct_exceptions {
	uint64_t unknown; /* without a record: to be learned */
	uint64_t odd;	  /* to be dropped */
	uint64_t blocked; /* to be dropped, by the flow's verdict */
	uint64_t acts;	  /* the flow's verdict is an action program that is to be run */
	unsigned n;	  /* neither of these, and such as were accounted by the shard */
	uint64_t bytes;
	uint64_t unsent_bytes;
};

/* The packet has been accounted, and is to go on as its flow's verdict says. */
static inline void direct_act(struct direct_burst *burst, unsigned i,
	const struct flow_record *record, unsigned from, struct direct_exceptions *exceptions)
{
	burst->verdict[i] = flow_verdict(record, from);
	exceptions->acts |= (uint64_t)(burst->verdict[i] != FLOW_VERDICT_FORWARD) << i;
}

static __rte_noinline void direct_except(struct worker *worker, struct direct_burst *burst,
	unsigned i, const struct flow_record *record, struct direct_exceptions *exceptions)
{
	struct flow_shard *shard = worker->shard;
	struct packet_info *info = &burst->info[burst->info_of[i]];
	const uint64_t bit = UINT64_C(1) << i;

	exceptions->n++;
	exceptions->bytes += info->bytes;
	if (record == NULL) {
		exceptions->unknown |= bit;
		exceptions->unsent_bytes += info->bytes;
		return;
	}
	switch (flow_shard_account(shard, (uint32_t)(record - shard->table.records), info)) {
	case FLOW_ACCOUNT_GO:
		direct_act(burst, i, record, info->from, exceptions);
		break;
	case FLOW_ACCOUNT_ONE_SIDED:
		direct_act(burst, i, record, info->from, exceptions);
		worker->counters[burst->rx->domain].one_sided++;
		break;
	case FLOW_ACCOUNT_TCP_ODD:
		exceptions->odd |= bit;
		exceptions->unsent_bytes += info->bytes;
		break;
	case FLOW_ACCOUNT_DROPPED:
		exceptions->blocked |= bit;
		exceptions->unsent_bytes += info->bytes;
		policy_count(worker->policy, shard, (uint32_t)(record - shard->table.records), 1,
			info->bytes);
		judge_dropped(worker->agent, burst->rx->port, burst->packet[i],
			(uint32_t)(record - shard->table.records), info);
		break;
	}
}

static inline uint32_t direct_position(
	const struct flow_shard *shard, const struct flow_record *record)
{
	return record == NULL ? FLOW_NONE : (uint32_t)(record - shard->table.records);
}

/* One packet of the burst, another place each time, for the rate of its flow. */
static __rte_noinline void direct_sample(struct station *station, const struct direct_burst *burst)
{
	struct worker *worker = &station->worker;
	unsigned i = worker_draw(worker, burst->n);
	const struct packet_info *info = &burst->info[burst->info_of[i]];

	worker->sampled++;
	/* what its mark names is in the NIC */
	if (burst->marked >> i & 1 || !agent_samples(worker->agent))
		return;
	const struct flow_record *record =
		find_confirm(&worker->shard->table, &burst->up, burst->info_of[i]);

	if (record != NULL)
		judge_sample(worker->agent, burst->rx->port, burst->packet[i],
			direct_position(worker->shard, record), info);
}

/*
 * Time passes, and flows end, before a burst's records are looked for; where there is an agent it hears of those that
 * have ended.
 */
static inline void direct_pass_time(struct station *station)
{
	struct flow_shard *shard = station->worker.shard;

	/* all bursts of a turn have one time */
	if (likely(station->now_us <= shard->now_us && !shard->behind && shard->n_reports == 0))
		return;
	flow_shard_advance(shard, station->now_us);
	if (station->worker.agent != NULL)
		flow_shard_flush(shard);
}

/* Runs the verdict of a packet; true: it goes out with the others of its burst. */
static inline bool direct_run(struct station *station, const struct direct_burst *burst, unsigned i,
	struct direct_exceptions *exceptions)
{
	const struct station_rx *rx = burst->rx;
	const struct packet_info *info = &burst->info[burst->info_of[i]];
	const struct act_from from = {.domain = rx->domain, .peer = rx->peer};
	struct rte_mbuf *packet = burst->packet[i];

	/* it may be longer or shorter than it was */
	exceptions->unsent_bytes += info->bytes;
	if (!act_packet(station, from, packet, info, burst->verdict[i]))
		return false;
	exceptions->unsent_bytes -= packet->pkt_len;
	return true;
}

/* Takes the packets of these bits out of a burst's row; says how many are left. */
static unsigned direct_part(struct station *station, struct direct_burst *burst,
	struct direct_exceptions *exceptions, struct rte_mbuf **learn,
	const struct packet_info **infos)
{
	unsigned n_out = 0, n_learn = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		struct rte_mbuf *packet = burst->packet[i];

		if (exceptions->unknown >> i & 1) {
			infos[n_learn] = &burst->info[burst->info_of[i]];
			learn[n_learn++] = packet;
		} else if (exceptions->odd >> i & 1) {
			worker_drop_of(
				&station->worker, burst->rx->domain, packet, DROP_TCP_WINDOW);
		} else if (exceptions->blocked >> i & 1) {
			worker_drop_of(&station->worker, burst->rx->domain, packet, DROP_BLOCKED);
		} else if (likely((exceptions->acts >> i & 1) == 0) ||
			   direct_run(station, burst, i, exceptions)) {
			burst->packet[n_out++] = packet;
		}
	}
	return n_out;
}

/* Sends what is to go, learns what is not known, and drops the rest. */
static void direct_dispatch(
	struct station *station, struct direct_burst *burst, struct direct_exceptions *exceptions)
{
	struct stage_times *stages = &station->worker.stages;
	const struct packet_info *infos[STATION_BURST];
	struct rte_mbuf *learn[STATION_BURST];
	unsigned n = burst->n;

	stage_end(stages, STAGE_ACCOUNT, n);
	if (unlikely((exceptions->unknown | exceptions->odd | exceptions->blocked |
			     exceptions->acts) != 0))
		n = direct_part(station, burst, exceptions, learn, infos);
	send_burst(station, burst->rx->peer, burst->packet, n,
		burst->bytes - exceptions->unsent_bytes);
	stage_end(stages, STAGE_OUT, burst->n);
	if (exceptions->unknown != 0)
		direct_learn(station, burst->rx, learn, infos,
			(unsigned)__builtin_popcountll(exceptions->unknown));
}
