/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/direct_parts.h"

#include <errno.h>
#include <stdlib.h>

static const struct direct_walk *const walks[SIMD_N_LEVELS] = {
	[SIMD_PORTABLE] = &direct_walk_portable,
#ifdef __x86_64__
	[SIMD_SSE42] = &direct_walk_sse42,
	[SIMD_AVX2] = &direct_walk_avx2,
	[SIMD_AVX512] = &direct_walk_avx512,
#endif
};

static const struct direct_walk *const watches[SIMD_N_LEVELS] = {
	[SIMD_PORTABLE] = &direct_watch_portable,
#ifdef __x86_64__
	[SIMD_SSE42] = &direct_watch_sse42,
	[SIMD_AVX2] = &direct_watch_avx2,
	[SIMD_AVX512] = &direct_watch_avx512,
#endif
};

struct flow_record direct_nobody;

int direct_create(struct direct **out, const struct hash_secret *secret, bool watched)
{
	struct direct *direct = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*direct), 64));

	if (direct == NULL)
		return -ENOMEM;
	direct->walk = (watched ? watches : walks)[secret->simd];
	direct->turn = 0;
	direct->waits = false;
	direct->unwatched = false;
	direct->last_tcp = false;
	direct->mixed = false;
	for (unsigned i = 0; i < RTE_DIM(direct->burst); i++)
		for (unsigned j = 0; j < STATION_BURST; j++) {
			direct->burst[i].up.key[j] = &direct->burst[i].info[j].key;
			direct->burst[i].info_of[j] = (uint8_t)j;
		}
	*out = direct;
	return 0;
}

void direct_destroy(struct direct *direct)
{
	free(direct);
}

struct rte_mbuf **direct_room(struct station *station)
{
	struct direct *direct = station->direct;

	return direct->burst[direct->turn].packet;
}

unsigned direct_begin(struct station *station, const struct station_rx *rx, unsigned n)
{
	return station->direct->walk->begin(station, rx, n);
}

void direct_finish(struct station *station)
{
	if (station->direct != NULL && station->direct->waits)
		station->direct->walk->finish(station);
}

/* A packet that may begin a flow goes on as triage would have handed it over. */
static void make_meta(const struct station *station, const struct station_rx *rx,
	struct rte_mbuf *packet, const struct packet_info *info)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->info = *info;
	meta->time_us = station->now_us;
	meta->wire = rx->domain;
	meta->port = rx->port;
	meta->kind = PACKET_KIND_FLOW;
	meta->unchecked = station->worker.steer.n_shards > 1;
	meta->waited = 0;
}

void direct_learn(struct station *station, const struct station_rx *rx, struct rte_mbuf **packets,
	const struct packet_info *const *infos, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		make_meta(station, rx, packets[i], infos[i]);
	worker_walk(&station->worker, packets, n);
}
