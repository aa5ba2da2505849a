/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/direct.h"

#include "path/send.h"
#include "port/rss.h"

/* What a burst carries from stage to stage. */
struct burst {
	unsigned n;
	struct packet_info info[STATION_BURST];
	const struct flow_key *key[STATION_BURST];
	uint64_t hash[STATION_BURST];
	uint32_t position[STATION_BURST];
};

bool direct_may(const struct station *station, const struct station_rx *rx)
{
	const struct worker *worker = &station->worker;

	/* who follows hears of each change of phase: worker_walk() tells */
	return worker->shard != NULL && !worker->follow && station->tx[rx->port ^ 1u].own &&
	       (worker->steer.n_shards == 1 || rx->trusted != 0);
}

/* Whether a packet is surely for this worker, and whole. */
static bool is_plain(
	const struct station *station, const struct station_rx *rx, const struct packet_info *info)
{
	if (info->flags & (PACKET_FRAGMENT | PACKET_ICMP_ERROR))
		return false;
	return station->worker.steer.n_shards == 1 || rx->trusted >> rss_kind(&info->key) & 1;
}

static void read_headers(struct station *station, const struct station_rx *rx,
	struct rte_mbuf **packets, unsigned n, struct burst *burst)
{
	const struct extract_options options = {.secret = station->secret};
	const uint8_t side = rx->port % 2 != 0 ? PACKET_SIDE : 0;
	struct path_counters *counters = &station->worker.counters[rx->port / 2];
	uint64_t bytes = 0;

	for (burst->n = 0; burst->n < n; burst->n++) {
		struct packet_info *info = &burst->info[burst->n];

		if (extract(&options, packets[burst->n], rx->port / 2, info) != EXTRACT_IP ||
			!is_plain(station, rx, info))
			break;
		info->flags |= side;
		burst->key[burst->n] = &info->key;
		burst->hash[burst->n] = info->hash;
		bytes += info->bytes;
	}
	counters->received += burst->n;
	counters->received_bytes += bytes;
}

/* TCP needs the second line of its records too. */
static void fetch_second_lines(const struct flow_table *table, const struct burst *burst)
{
	for (unsigned i = 0; i < burst->n; i++)
		if (burst->position[i] != FLOW_NONE && burst->info[i].flags & PACKET_TCP)
			rte_prefetch0(&flow_table_record(table, burst->position[i])->bytes_high);
}

/* A packet that may begin a flow goes on as triage would have handed it over. */
static void make_meta(const struct station *station, const struct station_rx *rx,
	struct rte_mbuf *packet, const struct packet_info *info)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->info = *info;
	meta->time_us = station->now_us;
	meta->wire = rx->port / 2;
	meta->side = rx->port % 2;
	meta->kind = PACKET_KIND_FLOW;
	meta->unchecked = station->worker.steer.n_shards > 1;
}

/* Accounts the packets of known flows, and parts them: to be sent, dropped, or to be learned. */
static void account(struct station *station, const struct station_rx *rx, struct rte_mbuf **packets,
	struct burst *burst)
{
	struct worker *worker = &station->worker;
	struct rte_mbuf *out[STATION_BURST], *learn[STATION_BURST];
	unsigned n_out = 0, n_learn = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		if (burst->position[i] == FLOW_NONE) {
			make_meta(station, rx, packets[i], &burst->info[i]);
			learn[n_learn++] = packets[i];
		} else if (flow_shard_account(worker->shard, burst->position[i], &burst->info[i]) ==
			   FLOW_ACCOUNT_TCP_ODD) {
			worker_drop_of(worker, rx->port / 2, packets[i], DROP_TCP_WINDOW);
		} else {
			out[n_out++] = packets[i];
		}
	}
	stage_end(&worker->stages, STAGE_ACCOUNT, burst->n);
	send_burst(station, rx->port ^ 1u, out, n_out);
	stage_end(&worker->stages, STAGE_OUT, burst->n);
	if (n_learn != 0)
		worker_walk(worker, learn, n_learn);
}

unsigned direct_burst(
	struct station *station, const struct station_rx *rx, struct rte_mbuf **packets, unsigned n)
{
	struct worker *worker = &station->worker;
	struct burst burst;

	read_headers(station, rx, packets, n, &burst);
	stage_end(&worker->stages, STAGE_TRIAGE, burst.n);
	flow_shard_advance(worker->shard, station->now_us);
	flow_table_find_burst(
		&worker->shard->table, burst.key, burst.hash, burst.position, burst.n);
	fetch_second_lines(&worker->shard->table, &burst);
	stage_end(&worker->stages, STAGE_LOOK_UP, burst.n);
	account(station, rx, packets, &burst);
	return burst.n;
}
