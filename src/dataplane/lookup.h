/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Looks up a burst in the steps of flow/find.h: the lines that its keys lie in are asked for, then their records. For
 * the stages that are compiled once per SIMD level.
 */

#include "dataplane/burst.h"
#include "flow/find.h"

/* First step, for keys whose hashes are to be made. */
static __rte_always_inline void lookup_begin(const struct flow_table *table, struct burst *burst)
{
	find_hash(table, &burst->up);
}

/* First step, for packets that were parsed before: their hashes are known. Returns a bit for each key of TCP. */
static inline uint64_t lookup_begin_hashed(const struct flow_table *table, struct burst *burst)
{
	const struct flow_table at = *table;
	uint64_t tcp = 0;

	for (unsigned i = 0; i < burst->up.n; i++) {
		find_fetch(&at, &burst->up, i, burst->info[i].hash);
		tcp |= (uint64_t)((burst->info[i].flags & PACKET_TCP) != 0) << i;
	}
	return tcp;
}

/* Second step. `tcp`: a bit for each key of TCP, whose record is wanted whole; `far` as fetch_record() has it. */
static __rte_always_inline void lookup_records(
	const struct flow_table *table, struct burst *burst, uint64_t tcp, bool far)
{
	find_candidates(table, &burst->up, tcp, far);
}
