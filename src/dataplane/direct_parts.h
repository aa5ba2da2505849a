/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the short way's two halves share: direct.c and, once per SIMD level, direct_walk.c. */

#include "dataplane/direct.h"

/* A burst on its way. */
struct direct_burst {
	const struct station_rx *rx;
	unsigned n;
	uint64_t bytes; /* of all packets */
	struct flow_look_up up;
	struct packet_info info[STATION_BURST]; /* first those that are looked up */
	struct rte_mbuf *packet[STATION_BURST];
	uint16_t verdict
		[STATION_BURST]; /* of packets that something is done with: direct_exceptions.acts */
	uint8_t info_of[STATION_BURST]; /* where each packet's is; as it comes without offload */
	/* with offload: direct_watch.c */
	uint64_t marked; /* a bit for each packet whose mark would name a slot of this worker */
	unsigned n_top;	 /* infos at the end of the row: of marked packets that had to be read */
	unsigned front;	 /* packets with marks from the front, which are fetched at once */
	/* packets with such marks in a row of their own, and whence they came */
	unsigned n_row;
	uint8_t place[STATION_BURST];
	struct rte_mbuf *row[STATION_BURST];
	/*
	 * What the mark leads to (direct_form.h), direct_nobody where there is no record; and behind all of these the
	 * first byte of each of the packets. In one row, as each takes a register of those who read both.
	 */
	uintptr_t target[2 * STATION_BURST];
};

/* The walk, compiled for one SIMD level. */
struct direct_walk {
	unsigned (*begin)(struct station *station, const struct station_rx *rx, unsigned n);
	void (*finish)(struct station *station);
};

struct direct {
	const struct direct_walk *walk;
	/* the worker's */
	unsigned turn; /* which of the two is begun next */
	bool waits;    /* the other one is to be finished */
	/* with offload: the one that waits went the way without (direct_watch.c) */
	bool unwatched;
	bool last_tcp; /* the last packet with a mark was of TCP, as the next ones may be */
	bool mixed;    /* the last burst that was sorted had packets with and without marks */
	struct direct_burst burst[2];
};

/* Without offload, and where NICs mark packets. */
extern const struct direct_walk direct_walk_portable, direct_watch_portable;
#ifdef __x86_64__
extern const struct direct_walk direct_walk_sse42, direct_watch_sse42;
extern const struct direct_walk direct_walk_avx2, direct_watch_avx2;
extern const struct direct_walk direct_walk_avx512, direct_watch_avx512;
#endif

/* The record of whom a mark names that names nobody: no packet fits it. */
extern struct flow_record direct_nobody;

/* Packets without a record, of one queue: to be learned, in their order. */
void direct_learn(struct station *station, const struct station_rx *rx, struct rte_mbuf **packets,
	const struct packet_info *const *infos, unsigned n);
