/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/counter.h"

#include "base/clock.h"

#define UNKNOWN 64
#define ALL_WIDTHS ((UINT64_C(2) << COUNTER_WIDEST) - (UINT64_C(1) << COUNTER_NARROWEST))
/* Wider ones wrap after hours at any rate. */
#define MOST_BITS 44

void counter_begin(struct counter *counter, unsigned bits)
{
	*counter = (struct counter){
		.bits = bits ? (uint8_t)bits : UNKNOWN,
		.given = bits != 0,
	};
}

unsigned counter_fit(uint64_t highest, uint64_t widths, uint64_t raw, uint64_t least, uint64_t most,
	uint64_t *number)
{
	for (unsigned bits = 63; bits > 0; bits--) {
		const uint64_t wide = counter_made_wide(raw, bits, least);

		if ((widths >> bits & 1) == 0 || highest >> bits != 0 || wide > most)
			continue;
		*number = wide;
		return bits;
	}
	return 0;
}

/* With this width `raw` is one of `least` to `most`: then that is the total, which does not run back if it can. */
static bool fits(
	struct counter *counter, unsigned bits, uint64_t raw, uint64_t least, uint64_t most)
{
	uint64_t from = counter->total > least ? counter->total : least;
	uint64_t total = counter_made_wide(raw, bits, from);

	if (total > most || total < from)
		total = counter_made_wide(raw, bits, least);
	if (total > most || total < least)
		return false;
	counter->total = total;
	return true;
}

/* A width for a number that is too small. Where any number would fit one, nothing is learned, and it is believed. */
static bool learn(struct counter *counter, uint64_t raw, uint64_t least, uint64_t most)
{
	uint64_t telling = ALL_WIDTHS, number;

	for (unsigned bits = COUNTER_NARROWEST; bits <= COUNTER_WIDEST; bits++)
		if (most - least >= UINT64_C(1) << bits)
			telling &= ~(UINT64_C(1) << bits);
	const unsigned bits = counter_fit(counter->highest, telling, raw, least, most, &number);

	if (bits != 0) {
		counter->bits = (uint8_t)bits;
		return fits(counter, bits, raw, least, most);
	}
	if (counter_fit(counter->highest, ALL_WIDTHS & ~telling, raw, least, most, &number) == 0)
		return false;
	if (counter->total < least)
		counter->total = least;
	return true;
}

/* Nothing explains it: is it nearer to too much, or to too little? */
static enum counter_verdict wrong(
	struct counter *counter, uint64_t raw, uint64_t least, uint64_t most)
{
	unsigned bits = counter->bits;
	uint64_t above = counter_made_wide(raw, bits, least);
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
	/* what was learned was too narrow */
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

uint64_t counter_interval_of_us(unsigned bits, uint64_t rate, uint64_t most_us)
{
	if (rate == 0)
		return most_us;
	if (bits > MOST_BITS)
		bits = MOST_BITS;
	const uint64_t us = (UINT64_C(1) << (bits - 2)) * CLOCK_US_PER_S / rate;

	return us < most_us ? us : most_us;
}

uint64_t counter_interval_us(const struct counter *counter, uint64_t rate, uint64_t most_us)
{
	const bool is_known = counter->bits != UNKNOWN || counter->given;

	return counter_interval_of_us(is_known ? counter->bits : COUNTER_ASSUMED, rate, most_us);
}
