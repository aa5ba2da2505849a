/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A turn of a station: one round of receiving, taking from rings, walking, sending, and answering
 * control. Between two turns everything that was taken has ended in a counter, in a ring or in
 * parser's hold, so that questions are answered there.
 *
 * Called from the station's own thread.
 */

#include "dataplane/station.h"

/* One round at `now_us` of the run's clock. True when there was something to do. */
bool turn_station(struct station *station, uint64_t now_us);

/* The same by the station's own clock, from TSC *tsc on, whose cycles are booked as busy or idle. */
bool turn_timed(struct station *station, uint64_t *tsc);

/*
 * A turn that took all there was is over: the next one is put off by some microseconds, so that it brings more. A
 * poll costs much the same whatever it brings: polled at once, a worker that has half of the packets that it could carry has
 * no time left. Idle time.
 */
void turn_gather(struct station *station, uint64_t *tsc);
/* The same of a turn that may have left some where they were: the cycles that were waited, from TSC *tsc on, moved on. */
uint64_t turn_wait(bool more_wait, uint64_t *tsc);

/* Turns until told to leave; the thread of a live station. */
void *turn_forever(void *station);
