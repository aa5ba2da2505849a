/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/timeline.h"

#include <string.h>

#include "base/clock.h"

/* Longer silences are as long as this one: no flow outlives it, and the clock lasts. */
#define SILENCE_MOST_US (2 * CLOCK_GAP_US)
/* What went back belongs to the scale before, and not to a new one, if that was left so short a time ago. */
#define RETURN_US (UINT64_C(600) * CLOCK_US_PER_S)

void timeline_init(struct timeline *timeline)
{
	*timeline = (struct timeline){0};
}

void timeline_add(struct timeline *timeline, void *packet, uint64_t stamp_us)
{
	unsigned n = timeline->n_waiting++;

	timeline->waiting[n].packet = packet;
	timeline->waiting[n].stamp_us = stamp_us;
	if (timeline->begun && stamp_us < timeline->previous_us) {
		uint64_t back_us = timeline->previous_us - stamp_us;

		timeline->n_back++;
		if (back_us > timeline->most_back_us)
			timeline->most_back_us = back_us;
	}
	timeline->begun = true;
	timeline->previous_us = stamp_us;
}

void timeline_end(struct timeline *timeline)
{
	timeline->ended = true;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static bool is_near(const struct timeline_scale *scale, uint64_t stamp_us)
{
	return apart(scale->last_us, stamp_us) <= TIMELINE_NEAR_US;
}

/* The nearest of all scales that are near; n_scales: none is. */
static unsigned find_near(const struct timeline *timeline, uint64_t stamp_us)
{
	uint64_t least = TIMELINE_NEAR_US + 1;
	unsigned found = timeline->n_scales;

	for (unsigned i = 0; i < timeline->n_scales; i++) {
		uint64_t distance = apart(timeline->scale[i].last_us, stamp_us);

		if (distance < least) {
			least = distance;
			found = i;
		}
	}
	return found;
}

/* The scale that goes on after a silence, the stamp being ahead of the last one: the latest of all. */
static unsigned find_below(const struct timeline *timeline, uint64_t stamp_us)
{
	unsigned found = timeline->n_scales;

	for (unsigned i = 0; i < timeline->n_scales; i++) {
		const struct timeline_scale *scale = &timeline->scale[i];

		if (scale->last_us <= stamp_us &&
			(found == timeline->n_scales ||
				scale->last_us > timeline->scale[found].last_us))
			found = i;
	}
	return found;
}

/* The scale that was left for the last packet, if the stamp has gone back to it; n_scales: to none. */
static unsigned find_left(const struct timeline *timeline, uint64_t stamp_us)
{
	unsigned found = timeline->n_scales;

	for (unsigned i = 0; i < timeline->n_scales; i++)
		if (i != timeline->current &&
			(found == timeline->n_scales ||
				timeline->scale[i].used > timeline->scale[found].used))
			found = i;
	if (found == timeline->n_scales || timeline->scale[found].last_us > stamp_us ||
		stamp_us - timeline->scale[found].last_us > RETURN_US)
		return timeline->n_scales;
	return found;
}

/* Which scale a stamp is of; n_scales: a new one. */
static unsigned choose(const struct timeline *timeline, uint64_t stamp_us)
{
	unsigned near;

	if (timeline->n_scales == 0)
		return 0;
	if (is_near(&timeline->scale[timeline->current], stamp_us))
		return timeline->current;
	near = find_near(timeline, stamp_us);
	if (near != timeline->n_scales)
		return near;
	return stamp_us < timeline->scale[timeline->current].last_us
		       ? find_left(timeline, stamp_us)
		       : find_below(timeline, stamp_us);
}

/* A new scale that stands where the clock does; the one that was not used for the longest time makes room. */
static unsigned begin_scale(struct timeline *timeline, uint64_t stamp_us)
{
	unsigned number = timeline->n_scales, i;

	if (number < TIMELINE_SCALES) {
		timeline->n_scales++;
	} else {
		for (number = 0, i = 1; i < TIMELINE_SCALES; i++)
			if (timeline->scale[i].used < timeline->scale[number].used)
				number = i;
	}
	timeline->scale[number] = (struct timeline_scale){
		.last_us = stamp_us,
		.ahead_us = timeline->now_us - stamp_us,
	};
	return number;
}

/* Lets the clock go on to the stamp, by its scale; says when the packet came. */
static uint64_t go_on(struct timeline *timeline, struct timeline_scale *scale, uint64_t stamp_us)
{
	uint64_t came_us;

	/* the others have been going on meanwhile: it goes on from where the clock stands now */
	if ((int64_t)(timeline->now_us - (stamp_us + scale->ahead_us)) > (int64_t)TIMELINE_NEAR_US)
		scale->ahead_us = timeline->now_us - stamp_us;
	if (stamp_us > scale->last_us && stamp_us - scale->last_us > SILENCE_MOST_US)
		scale->ahead_us = timeline->now_us + SILENCE_MOST_US - stamp_us;
	if (stamp_us > scale->last_us)
		scale->last_us = stamp_us;
	came_us = stamp_us + scale->ahead_us;
	if ((int64_t)(came_us - timeline->now_us) > 0)
		timeline->now_us = came_us;
	/* before the first packet is no time */
	return came_us <= timeline->now_us ? came_us : 0;
}

static void place(struct timeline *timeline, unsigned number, struct timeline_packet *next)
{
	void *packet = timeline->waiting[0].packet;
	uint64_t stamp_us = timeline->waiting[0].stamp_us;

	if (number == timeline->n_scales)
		number = begin_scale(timeline, stamp_us);
	next->packet = packet;
	next->stamp_us = stamp_us;
	next->came_us = go_on(timeline, &timeline->scale[number], stamp_us);
	next->now_us = timeline->now_us;
	timeline->scale[number].used = ++timeline->n_placed;
	timeline->current = number;
	timeline->n_waiting--;
	memmove(&timeline->waiting[0], &timeline->waiting[1],
		timeline->n_waiting * sizeof(timeline->waiting[0]));
}

/*
 * Do the packets behind the first one that waits show that its stamp is astray? That is so if one lies between the
 * scale's last stamp and this one; what is before both is another scale's.
 */
static bool is_astray(const struct timeline *timeline, const struct timeline_scale *scale)
{
	for (unsigned i = 1; i < timeline->n_waiting; i++) {
		uint64_t stamp_us = timeline->waiting[i].stamp_us;

		if (stamp_us + TIMELINE_NEAR_US < timeline->waiting[0].stamp_us &&
			stamp_us + TIMELINE_NEAR_US >= scale->last_us)
			return true;
	}
	return false;
}

bool timeline_next(struct timeline *timeline, struct timeline_packet *next)
{
	const uint64_t stamp_us = timeline->waiting[0].stamp_us;
	unsigned number;

	if (timeline->n_waiting == 0)
		return false;
	number = choose(timeline, stamp_us);
	if (number < timeline->n_scales && stamp_us > timeline->scale[number].last_us &&
		!is_near(&timeline->scale[number], stamp_us)) {
		if (is_astray(timeline, &timeline->scale[number]))
			number = timeline->n_scales;
		else if (timeline->n_waiting < TIMELINE_WAIT && !timeline->ended)
			return false;
	}
	place(timeline, number, next);
	return true;
}
