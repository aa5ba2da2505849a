/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How a thread waits for another without a signal between them: look again at once for a while, then
 * let others run, then sleep, longer each time, up to 250 us.
 */

#include <sched.h>
#include <time.h>

#include <rte_pause.h>

#define IDLE_SPINS 64
#define IDLE_YIELDS 32
#define IDLE_MAX_NS 250000

/* So many looks in vain are a pause: what can wait for one is done then. */
#define IDLE_PAUSE (IDLE_SPINS + IDLE_YIELDS + 4)

/* `idle` counts the looks that found nothing; the waiter sets it to 0 when it finds something. */
static inline void idle_wait(unsigned *idle)
{
	unsigned looks = (*idle)++;

	if (looks < IDLE_SPINS) {
		rte_pause();
	} else if (looks < IDLE_SPINS + IDLE_YIELDS) {
		sched_yield();
	} else {
		unsigned rounds = looks - IDLE_SPINS - IDLE_YIELDS;
		long ns = rounds < 8 ? 1000L << rounds : IDLE_MAX_NS;
		struct timespec sleep = {.tv_nsec = ns};

		nanosleep(&sleep, NULL);
	}
}
