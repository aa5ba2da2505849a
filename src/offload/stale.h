/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Whether a rule works on that the NIC said is gone: its mark goes on coming with nearly all packets of its
 * direction. A few such packets prove nothing: they may have been on their way. So nothing counts before STALE_US and
 * STALE_TURNS of the worker have passed since the NIC said so, and then STALE_MARKED with at most a third as many
 * without the mark among them, within STALE_MOST_US, for as long as which a flow may wait for its next rule.
 *
 * Pure; used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#define STALE_US 50000
#define STALE_TURNS 64
#define STALE_MOST_US 60000000
#define STALE_MARKED 32

struct stale {
	/* when it was said; 0: nothing was. Or when this look at its packets began */
	uint64_t since_us;
	uint64_t packets; /* that the direction had when the look began */
	uint32_t turn;	  /* in which it was said */
	uint32_t marked;  /* that came with the mark since the look began; 0: none is under way */
};

/* When and where a packet comes. */
struct stale_packet {
	uint64_t now_us; /* not 0 */
	uint64_t turn;
	uint64_t packets; /* that its direction has had, with this one */
};

/* The NIC said that the rule is gone. */
static inline void stale_gone(struct stale *stale, uint64_t now_us, uint64_t turn)
{
	*stale = (struct stale){.since_us = now_us, .turn = (uint32_t)turn};
}

/* The place of the rule has another, or is to. */
static inline void stale_forget(struct stale *stale)
{
	*stale = (struct stale){0};
}

/* A packet came with its mark. True: the rule works on. Then all begins anew. */
bool stale_marked(struct stale *stale, const struct stale_packet *packet);
