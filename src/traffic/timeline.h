/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * From the time stamps of a capture, which may go back and forth, to a clock that never goes back: flows age by it.
 *
 * Captures are joined in the wrong order, their parts come from machines whose clocks differ, clocks are set while they
 * are taken, and single packets have stamps that are far off. So stamps are sorted into scales: each is a clock that
 * some packets went by, and stands at a fixed distance from the run's. A stamp near the last one of a scale is of that
 * scale; one that went back begins another where the run's clock stands; one that is ahead is a silence. The clock goes
 * on as each scale does, and never as far as two of them differ.
 *
 * Whether a packet far ahead comes after a silence, or has a stamp that is wrong, is shown by the next ones: behind a wrong
 * one they go on where the scale was left. So packets that lie behind a leap wait for some more.
 *
 * A packet keeps its own stamp whatever the clock does. One that is a little out of order has come before the clock's
 * present time; `came_us` tells when, so that the order of a scale's packets is known.
 *
 * Life: timeline_init(), for each packet timeline_add() and then timeline_next() until there is none, timeline_end() and
 * timeline_next() again. Owned by one thread. The packets stay the caller's.
 */

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_SCALES 16
/* So many packets show whether one far ahead is astray. */
#define TIMELINE_WAIT 32
/* Stamps that are no further apart are of one scale, whatever their order. */
#define TIMELINE_NEAR_US UINT64_C(1000000)

struct timeline_packet {
	void *packet;
	uint64_t stamp_us; /* as it was given */
	uint64_t now_us;   /* the clock, 0 at the first packet */
	uint64_t came_us;  /* when it came, by its own scale: now or a little before */
};

struct timeline_scale {
	uint64_t last_us;  /* the latest stamp */
	uint64_t ahead_us; /* the clock is that far ahead of its stamps, modulo 2^64 */
	uint64_t used;	   /* the larger, the later */
};

struct timeline {
	/* how often a stamp lay before that of the packet before it, and how far at most */
	uint64_t n_back;
	uint64_t most_back_us;
	/* the rest is the timeline's own */
	uint64_t now_us;
	uint64_t previous_us;
	uint64_t n_placed;
	unsigned current;
	unsigned n_scales;
	struct timeline_scale scale[TIMELINE_SCALES];
	bool begun;
	bool ended;
	unsigned n_waiting;
	struct {
		void *packet;
		uint64_t stamp_us;
	} waiting[TIMELINE_WAIT];
};

void timeline_init(struct timeline *timeline);

/* The capture's next packet. timeline_next() has returned false since the one before. */
void timeline_add(struct timeline *timeline, void *packet, uint64_t stamp_us);

/* No more are to come: none waits any longer. */
void timeline_end(struct timeline *timeline);

/* The next packet whose time is known, in the order in which they were added; false: there is none now. */
bool timeline_next(struct timeline *timeline, struct timeline_packet *next);
