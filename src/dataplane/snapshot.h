/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A picture of all lcores at one moment, though none stops for it and their packets are on the way
 * from one to another (K. M. Chandy, L. Lamport, "Distributed Snapshots", 1985).
 *
 * Control asks every lcore for snapshot N. An lcore that hears of N, from control or by a marker in
 * a ring, whichever comes first, copies its counters and pushes a marker into each ring that it feeds.
 * What it then takes from a ring before that ring's marker was under way at the moment of the picture:
 * the sender had counted it as handed out, the receiver not yet as handed in. It is counted apart, and
 * makes the sums of all lcores exact.
 *
 * Belongs to the lcore; control reads it once `done` says so.
 */

#include <stdint.h>

#include "dataplane/lcore.h"

/* Between bursts: control asks for snapshot `number`. */
void snapshot_asked(struct lcore *lcore, uint32_t number);

/* Between bursts: the marker of snapshot `number` was taken from the ring of lcore `sender`. */
void snapshot_marker(struct lcore *lcore, unsigned sender, uint32_t number);

/* Once more for the markers that found no room. */
void snapshot_push_markers(struct lcore *lcore);

/* A packet was taken from that ring. */
static inline void snapshot_packet(struct snapshot *snapshot, unsigned sender, unsigned wire)
{
	if (__builtin_expect(snapshot->awaited[sender], 0))
		snapshot->under_way[wire]++;
}
