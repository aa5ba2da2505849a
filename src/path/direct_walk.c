/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way's walk: compiled once per SIMD level. */
#include "flow/account.h"
#include "flow/find.h"
#include "packet/extract_common.h"
#include "path/direct_parts.h"
#include "path/send.h"
#include "port/rss.h"

/* A packet that is not common; its flags, or 0 when it is not to go this way. */
static __rte_noinline uint8_t read_rare(const struct station *station,
	const struct rte_mbuf *packet, unsigned wire, uint8_t flags, struct packet_info *info)
{
	const struct extract_options options = {
		.secret = station->secret, .zone_vlan = station->zone_vlan};

	if (extract(&options, packet, wire, info) != EXTRACT_IP ||
		info->flags & (PACKET_FRAGMENT | PACKET_ICMP_ERROR))
		return 0;
	/* PACKET_CUT, or nothing but that there are ports: never 0 with this one */
	info->flags |= flags;
	return info->flags | PACKET_SIDE;
}

/* Every kind of packet that RSS may be trusted with. */
#define ALL_KINDS ((1u << RSS_N_KINDS) - 1)

/*
 * Reads headers up to the first packet that is not plain: whole, and surely for this worker. Sets how many
 * were read; returns a bit for each that is TCP.
 */
static inline uint64_t read_headers(const struct station *station, const struct station_rx *rx,
	struct rte_mbuf **packets, unsigned n, struct direct_burst *burst)
{
	const struct common common = {
		.wire = rx->port / 2,
		.zone_vlan = station->zone_vlan,
		.flags = rx->port % 2 != 0 ? PACKET_SIDE : 0,
	};
	const unsigned kinds = station->worker.steer.n_shards == 1 ? ALL_KINDS : rx->trusted;
	uint64_t tcp = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct packet_info *info = &burst->info[i];
		uint8_t flags = extract_common(&common, packets[i], info);

		if (unlikely(flags == 0)) {
			flags = read_rare(station, packets[i], rx->port / 2, common.flags, info);
			if (flags == 0)
				break;
		}
		if (kinds != ALL_KINDS && !(kinds >> rss_kind(&info->key) & 1))
			break;
		tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << i;
	}
	memcpy(burst->packet, packets, i * sizeof(packets[0]));
	burst->up.n = i;
	return tcp;
}

/* What of a burst is not simply counted and sent; a bit for each packet. */
struct exceptions {
	uint64_t unknown; /* without a record: to be learned */
	uint64_t odd;	  /* to be dropped */
	unsigned n;	  /* neither of these, and such as were accounted by the shard */
	uint64_t bytes;
	uint64_t unsent_bytes;
};

static __rte_noinline void except(struct flow_shard *shard, struct direct_burst *burst, unsigned i,
	const struct flow_record *record, struct exceptions *exceptions)
{
	struct packet_info *info = &burst->info[i];
	const uint64_t bit = UINT64_C(1) << i;

	exceptions->n++;
	exceptions->bytes += info->bytes;
	if (record == NULL) {
		info->hash = burst->up.hash[i];
		exceptions->unknown |= bit;
		exceptions->unsent_bytes += info->bytes;
	} else if (flow_shard_account(shard, (uint32_t)(record - shard->table.records), info) ==
		   FLOW_ACCOUNT_TCP_ODD) {
		exceptions->odd |= bit;
		exceptions->unsent_bytes += info->bytes;
	}
}

static inline void account(
	struct flow_shard *shard, struct direct_burst *burst, struct exceptions *exceptions)
{
	const uint64_t now_us = shard->now_us;

	*exceptions = (struct exceptions){0};
	for (unsigned i = 0; i < burst->up.n; i++) {
		struct flow_record *record = find_confirm(&shard->table, &burst->up, i);

		if (unlikely(record == NULL || !account_plain(record, &burst->info[i], now_us)))
			except(shard, burst, i, record, exceptions);
	}
	flow_shard_counted(shard, burst->up.n - exceptions->n, burst->bytes - exceptions->bytes);
}

/* Takes the packets of these bits out of a burst's row; says how many are left. */
static unsigned part(struct station *station, struct direct_burst *burst,
	const struct exceptions *exceptions, struct rte_mbuf **learn,
	const struct packet_info **infos)
{
	unsigned n_out = 0, n_learn = 0;

	for (unsigned i = 0; i < burst->up.n; i++) {
		struct rte_mbuf *packet = burst->packet[i];

		if (exceptions->unknown >> i & 1) {
			infos[n_learn] = &burst->info[i];
			learn[n_learn++] = packet;
		} else if (exceptions->odd >> i & 1) {
			worker_drop_of(
				&station->worker, burst->rx->port / 2, packet, DROP_TCP_WINDOW);
		} else {
			burst->packet[n_out++] = packet;
		}
	}
	return n_out;
}

static void finish_burst(struct station *station, struct direct_burst *burst)
{
	struct stage_times *stages = &station->worker.stages;
	const struct packet_info *infos[STATION_BURST];
	struct rte_mbuf *learn[STATION_BURST];
	struct exceptions exceptions;
	unsigned n = burst->up.n;

	account(station->worker.shard, burst, &exceptions);
	stage_end(stages, STAGE_ACCOUNT, n);
	if (unlikely((exceptions.unknown | exceptions.odd) != 0))
		n = part(station, burst, &exceptions, learn, infos);
	send_burst(station, burst->rx->port ^ 1u, burst->packet, n,
		burst->bytes - exceptions.unsent_bytes);
	stage_end(stages, STAGE_OUT, burst->up.n);
	if (exceptions.unknown != 0)
		direct_learn(station, burst->rx, learn, infos,
			(unsigned)__builtin_popcountll(exceptions.unknown));
}

static void finish(struct station *station)
{
	struct direct *direct = station->direct;

	direct->waits = false;
	finish_burst(station, &direct->burst[!direct->turn]);
}

static unsigned begin(
	struct station *station, const struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	struct direct *direct = station->direct;
	struct direct_burst *burst = &direct->burst[direct->turn];
	struct path_counters *counters = &station->worker.counters[rx->port / 2];
	struct stage_times *stages = &station->worker.stages;
	struct flow_shard *shard = station->worker.shard;
	const uint64_t tcp = read_headers(station, rx, packets, n, burst);

	n = burst->up.n;
	burst->rx = rx;
	counters->received += n;
	burst->bytes = 0;
	for (unsigned i = 0; i < n; i++)
		burst->bytes += burst->info[i].bytes;
	counters->received_bytes += burst->bytes;
	find_hash(&shard->table, &burst->up);
	stage_end(stages, STAGE_TRIAGE, n);
	if (direct->waits)
		finish(station);
	/* time passes, and flows end, before this burst looks for records */
	flow_shard_advance(shard, station->now_us);
	find_candidates(&shard->table, &burst->up, tcp);
	stage_end(stages, STAGE_LOOK_UP, n);
	if (n != 0 && flow_look_up_waits(&shard->table)) {
		direct->turn = !direct->turn;
		direct->waits = true;
	} else if (n != 0) {
		finish_burst(station, burst);
	}
	return n;
}

const struct direct_walk SIMD_SYMBOL(direct_walk) = {
	.begin = begin,
	.finish = finish,
};
