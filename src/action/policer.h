/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A policer: which packets of a stream are within a rate, by their theoretical arrival time (ITU-T I.371, annex A),
 * in integers and without a division per packet.
 *
 * Each rate has a bucket of `burst` units that fills at `rate` units a second; a unit is a byte of the frame, or a
 * packet. The bucket is kept as the time at which it will be full again: a packet takes the time that its units take
 * at that rate, if that time then lies no more than a whole bucket ahead of now. Time is kept in 2^-32 ns, the
 * bucket's depth in 2^-16 ns.
 *
 * One rate: a packet for which the bucket has too little is red and takes nothing, the others are green.
 * Two rates (RFC 2698, color-blind): too little in the peak bucket is red; then too little in the committed
 * bucket is yellow, and takes from the peak bucket alone; else green, which takes from both.
 *
 * A burst is at least as large as the largest packet, and as what the rate brings between two values of the clock: more
 * never passes at once.
 *
 * A policer belongs to the one thread that calls it; time must not run back, but if it does the policer only
 * waits for it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/error.h"

enum policer_color {
	POLICER_GREEN,
	POLICER_YELLOW,
	POLICER_RED,
};

enum policer_rate {
	POLICER_PEAK = 0, /* the only one of one rate */
	POLICER_COMMITTED = 1,
};

/* Units a second, and units at once. */
struct policer_limit {
	uint64_t rate;
	uint64_t burst;
};

/* At most: 100 Tbit/s. At least 1 unit a second, whose bucket is full in at most 2^47 ns (39 hours). */
#define POLICER_MAX_RATE UINT64_C(12500000000000)
#define POLICER_MAX_BURST_NS (UINT64_C(1) << 47)

struct policer_options {
	struct policer_limit peak;	/* with one rate, that one */
	struct policer_limit committed; /* rate 0: one rate; else at most the peak rate */
	bool packets;			/* units are packets, not bytes */
};

struct policer {
	uint64_t full_ns[2];	   /* when the bucket is full again; in enum policer_rate's order */
	uint32_t full_fraction[2]; /* in 2^-32 ns */
	uint64_t unit_time[2];	   /* in 2^-32 ns */
	uint64_t depth[2];	   /* in 2^-16 ns */
	bool two_rates;
	bool packets;
};

/*
 * Full buckets. Returns 0, or -EINVAL when the options can't be: a rate or burst out of range, a committed rate above
 * the peak.
 */
int policer_init(
	struct policer *policer, const struct policer_options *options, struct error *error);

/* The rest is for policer_color(). */

/* When the bucket will be full again once `units` were taken, in 2^-32 ns. */
static inline unsigned __int128 policer_full_after(
	const struct policer *policer, enum policer_rate rate, uint64_t now_ns, uint32_t units)
{
	unsigned __int128 now = (unsigned __int128)now_ns << 32;
	unsigned __int128 full =
		((unsigned __int128)policer->full_ns[rate] << 32) | policer->full_fraction[rate];

	return (full < now ? now : full) + (unsigned __int128)policer->unit_time[rate] * units;
}

static inline bool policer_fits(const struct policer *policer, enum policer_rate rate,
	uint64_t now_ns, unsigned __int128 full)
{
	return full <=
	       ((unsigned __int128)now_ns << 32) + ((unsigned __int128)policer->depth[rate] << 16);
}

static inline void policer_take(
	struct policer *policer, enum policer_rate rate, unsigned __int128 full)
{
	policer->full_ns[rate] = (uint64_t)(full >> 32);
	policer->full_fraction[rate] = (uint32_t)full;
}

/* Meters a packet of `bytes` that comes at `now_ns`, of any clock. */
static inline enum policer_color policer_color(
	struct policer *policer, uint64_t now_ns, uint32_t bytes)
{
	uint32_t units = policer->packets ? 1 : bytes;
	unsigned __int128 peak = policer_full_after(policer, POLICER_PEAK, now_ns, units);

	if (!policer_fits(policer, POLICER_PEAK, now_ns, peak))
		return POLICER_RED;
	policer_take(policer, POLICER_PEAK, peak);
	if (likely(!policer->two_rates))
		return POLICER_GREEN;

	unsigned __int128 committed = policer_full_after(policer, POLICER_COMMITTED, now_ns, units);

	if (!policer_fits(policer, POLICER_COMMITTED, now_ns, committed))
		return POLICER_YELLOW;
	policer_take(policer, POLICER_COMMITTED, committed);
	return POLICER_GREEN;
}
