/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The rate of one direction of a flow, decayed: what came long ago counts for less. It is kept from its record's
 * packets whenever somebody looks; nothing is done for each packet.
 *
 * How much the new part weighs against the old one: as much as the time that it stands for (RATE_HALF_US halves
 * what was before), and more where it says more. That are many packets, or few where many were expected:
 * a flow of ten thousand packets a second is known for one after some tens of milliseconds, and for a silent one as soon;
 * of one with three a second neither is known before a second has passed.
 *
 * Pure; integers alone.
 */

#include <stdint.h>

#include "base/clock.h"

#define RATE_HALF_US 500000
/* Rates have so many bits behind the point: 1 is a sixteenth of a packet a second. */
#define RATE_FRACTION 4
#define RATE_ONE (1u << RATE_FRACTION)
/* Nothing is learned from less time than that: a handful of packets in a row would be a rate. */
#define RATE_LEAST_US 25000
/* Of a flow that is looked at for the first time: as if it had been silent so long before it began. */
#define RATE_PRIOR_US 250000
/* So many packets say as much as all that was known before. */
#define RATE_TELLING 64

struct rate {
	uint64_t packets; /* at the last look, of that direction */
	uint64_t us;	  /* and when that was */
	uint32_t value;	  /* packets a second, RATE_FRACTION */
};

/* What is left of 256 after that time. */
uint32_t rate_decay(uint64_t us);

/* The first look at a flow that has had so many packets since then. */
void rate_begin(struct rate *rate, uint64_t packets, uint64_t since_us, uint64_t now_us);

/* Another look. Counters that began anew (fewer packets than at the last look) are begun with. */
void rate_look(struct rate *rate, uint64_t packets, uint64_t now_us);

/* What it is after a silence since the last look; the rate is not changed. */
static inline uint32_t rate_after_silence(const struct rate *rate, uint64_t now_us)
{
	return (uint32_t)((uint64_t)rate->value * rate_decay(now_us - rate->us) >> 8);
}

/* Packets a second, rounded down. */
static inline uint32_t rate_pps(uint32_t value)
{
	return value >> RATE_FRACTION;
}

static inline uint32_t rate_of_pps(uint32_t pps)
{
	return pps < UINT32_MAX >> RATE_FRACTION ? pps << RATE_FRACTION : UINT32_MAX;
}
