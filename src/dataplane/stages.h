/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the stages of a packet's way cost: one burst in 1,024 is timed, stage by stage, so that timing
 * costs the others one predictable branch a stage.
 */

#include <stdint.h>

#include <rte_cycles.h>

#define STAGES_SAMPLE 1024

enum stage {
	STAGE_RX,
	STAGE_PARSE,
	STAGE_LOOK_UP,
	STAGE_ACCOUNT,
	STAGE_LEARN,
	STAGE_OUT,
	N_STAGES,
};

/* Owned by one thread. */
struct stage_times {
	uint64_t cycles[N_STAGES];
	uint64_t packets[N_STAGES];
	/* the running one */
	uint64_t last;	 /* TSC at the end of the stage before; 0: this burst is not timed */
	uint64_t bursts; /* all of them */
};

/* "rx", "parse", "look_up", "account", "learn", "out". */
const char *stage_name(enum stage stage);

/* A poll begins; if it brings packets (stage_burst()), they may be a burst that is timed. */
static inline void stage_begin(struct stage_times *times)
{
	times->last = times->bursts % STAGES_SAMPLE == STAGES_SAMPLE - 1 ? rte_rdtsc() : 0;
}

static inline void stage_burst(struct stage_times *times)
{
	times->bursts++;
}

/* What follows belongs to no burst. */
static inline void stage_stop(struct stage_times *times)
{
	times->last = 0;
}

/* A stage of the burst is over; it handled `n` packets. */
static inline void stage_end(struct stage_times *times, enum stage stage, unsigned n)
{
	if (__builtin_expect(times->last == 0, 1))
		return;
	uint64_t now = rte_rdtsc();

	/* the counter may have begun anew */
	times->cycles[stage] += now > times->last ? now - times->last : 0;
	times->packets[stage] += n;
	times->last = now;
}
