/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An iteration of an lcore: one round of receiving, taking from rings, walking, sending, and answering
 * control. Between two iterations everything that was taken has ended in a counter, in a ring or in
 * parser's hold, so that questions are answered there.
 *
 * Called from the lcore's own thread.
 */

#include "dataplane/lcore.h"

/* One round at `now_us` of the run's clock. True when there was something to do. */
bool lcore_poll(struct lcore *lcore, uint64_t now_us);

/* The same by the lcore's own clock, from TSC *tsc on, whose cycles are booked as busy or idle. */
bool lcore_poll_timed(struct lcore *lcore, uint64_t *tsc);

/*
 * An iteration that took all there was is over: the next one is put off by some microseconds, so that it brings more. A
 * poll costs much the same whatever it brings: polled at once, a worker that has half of the packets that it could carry has
 * no time left. Idle time.
 */
void lcore_gather(struct lcore *lcore, uint64_t *tsc);
/* The same of an iteration that may have left some where they were: the cycles that were waited, from TSC *tsc on, moved on. */
uint64_t lcore_wait(bool more_wait, uint64_t *tsc);

/* Polls until told to leave; the thread of a live lcore. */
void *lcore_run(void *lcore);
