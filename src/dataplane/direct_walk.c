/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way's walk where no NIC marks packets: compiled once per SIMD level. */
#include "flow/fetch.h"
#include "dataplane/direct_common.h"

/* Headers that are about to be read, on their way. */
static inline void fetch_headers(struct rte_mbuf *const *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], const void *));
}

/*
 * Reads headers up to the first packet that is not plain: whole, and surely for this worker. Sets how many
 * were read; returns a bit for each that is TCP.
 */
static inline uint64_t read_headers(const struct station *station, const struct station_rx *rx,
	unsigned n, struct direct_burst *burst)
{
	const struct common common = {
		.wire = rx->domain,
		.zone_vlan = station->zone_vlan,
		.flags = rx->place != 0 ? PACKET_SIDE : 0,
	};
	const unsigned kinds = station->worker.steer.n_shards == 1 ? ALL_KINDS : rx->trusted;
	uint64_t tcp = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct packet_info *info = &burst->info[i];
		uint8_t flags = extract_common(&common, burst->packet[i], info);

		if (unlikely(flags == 0)) {
			flags = direct_read_rare(
				station, burst->packet[i], rx->domain, common.flags, info);
			if (flags == 0)
				break;
		}
		if (kinds != ALL_KINDS && !(kinds >> rss_kind(&info->key) & 1))
			break;
		tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << i;
	}
	burst->up.n = i;
	burst->n = i;
	return tcp;
}

/* `far`: see fetch_record(). */
static __rte_always_inline void account(struct worker *worker, struct direct_burst *burst,
	struct direct_exceptions *exceptions, bool far)
{
	struct flow_shard *shard = worker->shard;
	const uint64_t now_us = shard->now_us;

	*exceptions = (struct direct_exceptions){0};
	for (unsigned i = 0; i < burst->up.n; i++) {
		struct flow_record *record = find_confirm(&shard->table, &burst->up, i);

		if (likely(record != NULL)) {
			fetch_rest(record, far);
			if (likely(account_plain(record, &burst->info[i], now_us)))
				continue;
			if (account_acting(record, &burst->info[i], now_us)) {
				direct_act(burst, i, record, burst->info[i].from, exceptions);
				continue;
			}
		}
		burst->info[i].hash = burst->up.hash[i];
		direct_except(worker, burst, i, record, exceptions);
	}
	flow_shard_counted(shard, burst->up.n - exceptions->n, burst->bytes - exceptions->bytes);
}

/* Each by itself: with what comes before it the loop has too few registers. */
static __rte_noinline void finish_near(struct station *station, struct direct_burst *burst)
{
	struct direct_exceptions exceptions;

	account(&station->worker, burst, &exceptions, false);
	if (station->worker.agent != NULL)
		direct_sample(station, burst);
	direct_dispatch(station, burst, &exceptions);
}

static __rte_noinline void finish_far(struct station *station, struct direct_burst *burst)
{
	struct direct_exceptions exceptions;

	account(&station->worker, burst, &exceptions, true);
	if (station->worker.agent != NULL)
		direct_sample(station, burst);
	direct_dispatch(station, burst, &exceptions);
}

static void finish(struct station *station)
{
	struct direct *direct = station->direct;

	direct->waits = false;
	finish_far(station, &direct->burst[!direct->turn]);
}

static unsigned begin(struct station *station, const struct station_rx *rx, unsigned n)
{
	struct direct *direct = station->direct;
	struct direct_burst *burst = &direct->burst[direct->turn];
	struct stage_times *stages = &station->worker.stages;
	struct flow_shard *shard = station->worker.shard;

	fetch_headers(burst->packet, n);
	const uint64_t tcp = read_headers(station, rx, n, burst);

	n = burst->up.n;
	burst->rx = rx;
	burst->bytes = 0;
	for (unsigned i = 0; i < n; i++)
		burst->bytes += burst->info[i].bytes;
	direct_count(station, burst, n);
	find_hash(&shard->table, &burst->up);
	stage_end(stages, STAGE_TRIAGE, n);
	if (direct->waits)
		finish(station);
	direct_pass_time(station);
	if (flow_look_up_waits(&shard->table)) {
		find_candidates(&shard->table, &burst->up, tcp, true);
		stage_end(stages, STAGE_LOOK_UP, n);
		direct->turn ^= n != 0;
		direct->waits = n != 0;
	} else {
		find_candidates(&shard->table, &burst->up, tcp, false);
		stage_end(stages, STAGE_LOOK_UP, n);
		if (n != 0)
			finish_near(station, burst);
	}
	return n;
}

const struct direct_walk SIMD_SYMBOL(direct_walk) = {
	.begin = begin,
	.finish = finish,
};
