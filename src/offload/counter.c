/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/counter.h"

#include "base/clock.h"

#define UNKNOWN 64
#define NARROWEST 16
#define WIDEST 48
/* Of one whose width is not known. */
#define ASSUMED 24

void counter_begin(struct counter *counter, unsigned bits)
{
	*counter = (struct counter){
		.bits = bits ? (uint8_t)bits : UNKNOWN,
		.given = bits != 0,
	};
}

/* The smallest number from `from` on whose low `bits` are those of `raw`. */
static uint64_t made_wide(uint64_t raw, unsigned bits, uint64_t from)
{
	if (bits >= 64)
		return raw;
	uint64_t mask = (UINT64_C(1) << bits) - 1;

	return from + ((raw - from) & mask);
}

/* With this width `raw` is one of `least` to `most`: then that is the total, which does not run back if it can. */
static bool fits(
	struct counter *counter, unsigned bits, uint64_t raw, uint64_t least, uint64_t most)
{
	uint64_t from = counter->total > least ? counter->total : least;
	uint64_t total = made_wide(raw, bits, from);

	if (total > most || total < from)
		total = made_wide(raw, bits, least);
	if (total > most || total < least)
		return false;
	counter->total = total;
	return true;
}

/* A width for a number that is too small. */
static bool learn(struct counter *counter, uint64_t raw, uint64_t least, uint64_t most)
{
	for (unsigned bits = WIDEST; bits >= NARROWEST && counter->highest >> bits == 0; bits--) {
		if (most - least >= UINT64_C(1) << bits) {
			/* whatever it told would fit */
			if (counter->total < least)
				counter->total = least;
			return true;
		}
		if (fits(counter, bits, raw, least, most)) {
			counter->bits = (uint8_t)bits;
			return true;
		}
	}
	return false;
}

/* Of a known width: is it nearer to too much, or to too little? */
static enum counter_verdict wrong(
	struct counter *counter, uint64_t raw, uint64_t least, uint64_t most)
{
	unsigned bits = counter->bits;
	uint64_t above = made_wide(raw, bits, least);
	bool ahead =
		bits >= 64 ? raw > most : above - most < least - (above - (UINT64_C(1) << bits));

	if (!ahead)
		return COUNTER_STUCK;
	counter->total = above;
	return COUNTER_AHEAD;
}

enum counter_verdict counter_update(
	struct counter *counter, uint64_t raw, uint64_t least, uint64_t most)
{
	if (raw > counter->highest)
		counter->highest = raw;
	if (counter->given)
		return fits(counter, counter->bits, raw, least, most)
			       ? COUNTER_FITS
			       : wrong(counter, raw, least, most);
	/* no width makes a number smaller than it is told */
	if (raw > most) {
		counter->total = raw;
		return COUNTER_AHEAD;
	}
	/* what was learned too narrow */
	if (counter->bits < 64 && counter->highest >> counter->bits != 0)
		counter->bits = UNKNOWN;
	if (fits(counter, counter->bits, raw, least, most) || learn(counter, raw, least, most))
		return COUNTER_FITS;
	return wrong(counter, raw, least, most);
}

/* Whether answers are of now: soon after one another, and each with what came in between. */
static void judge_age(struct counter *counter, const struct counter_look *look, bool fits)
{
	bool soon = counter->last_us != 0 && look->now_us - counter->last_us <= COUNTER_SOON_US;

	if (!fits)
		counter->fresh = 0;
	else if (soon && look->raw != counter->last && counter->fresh < COUNTER_FRESH)
		counter->fresh++;
}

/* It was late, and has told now what it owed then. */
static bool came_after(const struct counter *counter, const struct counter_look *look)
{
	struct counter then = *counter;

	return counter->late_us != 0 && look->raw != counter->last &&
	       counter_update(&then, look->raw, counter->owed, look->most) == COUNTER_FITS;
}

enum counter_verdict counter_watch(struct counter *counter, const struct counter_look *look)
{
	enum counter_verdict verdict = counter_update(counter, look->raw, look->least, look->most);
	bool came = came_after(counter, look);

	judge_age(counter, look, verdict == COUNTER_FITS);
	counter->last = look->raw;
	counter->last_us = look->now_us;
	counter->caches |= came;
	if (verdict != COUNTER_STUCK) {
		counter->late_us = 0;
		return verdict;
	}
	if (counter->late_us == 0 || came) {
		counter->owed = look->least;
		counter->late_us = look->now_us;
	}
	return look->now_us - counter->late_us < look->patience_us ? COUNTER_BEHIND : COUNTER_STUCK;
}

uint64_t counter_interval_us(const struct counter *counter, uint64_t rate, uint64_t most_us)
{
	unsigned bits = counter->bits == UNKNOWN && !counter->given ? ASSUMED : counter->bits;

	/* wider ones last for hours at any rate, and would not fit below */
	if (bits > 44)
		bits = 44;
	if (rate == 0)
		return most_us;
	uint64_t us = (UINT64_C(1) << (bits - 2)) * CLOCK_US_PER_S / rate;

	return us < most_us ? us : most_us;
}
