/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A NIC's counter made 64 bits wide. NICs do not tell how wide theirs are, but software has counted the
 * same packets: what the NIC tells has to be its count modulo 2^bits. So the width is learned: a number that
 * is too small is taken for one that wrapped, when there is a width (16 to 48) for which it fits; the widest
 * that does. One that was taken too wide by chance gives way to a narrower one later. A width that wraps
 * within what may have come meanwhile proves nothing, and is neither learned nor held against the NIC.
 *
 * Some drivers answer with what they read a while ago. So one answer that is behind proves nothing either: the
 * counter is asked again, and stuck when it did not come as far as it had to be at the first of these answers
 * for longer than such a reading may be old.
 *
 * Pure; used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* Widths that counters have, and that of one whose width is not known. */
#define COUNTER_NARROWEST 16
#define COUNTER_WIDEST 48
#define COUNTER_ASSUMED 24

struct counter {
	uint64_t total;	  /* made wide */
	uint64_t highest; /* that it ever told: it is at least so wide */
	uint8_t bits;	  /* that it has; 64 until it is known to have fewer */
	bool given;	  /* that width was not learned */
	/* by counter_watch() */
	bool caches; /* it was behind, and came after: it tells what it read before */
	uint8_t fresh; /* looks in a row, soon after one another, that told what came since the one before */
	uint64_t last; /* that it told, and when */
	uint64_t last_us;
	uint64_t owed; /* since `late_us` it has not told as many: 0: it is not late */
	uint64_t late_us;
};

/* The smallest number from `from` on whose low `bits` are those of `raw`. */
static inline uint64_t counter_made_wide(uint64_t raw, unsigned bits, uint64_t from)
{
	return bits >= 64 ? raw : from + ((raw - from) & ((UINT64_C(1) << bits) - 1));
}

/*
 * The widest of `widths` (a bit for each) with which a counter that never told more than `highest` may have told `raw`
 * when it had counted `*number`, one of `least` to `most`; 0: there is none. All that is inferred of widths is inferred by
 * this.
 */
unsigned counter_fit(uint64_t highest, uint64_t widths, uint64_t raw, uint64_t least, uint64_t most,
	uint64_t *number);

enum counter_verdict {
	COUNTER_FITS,
	COUNTER_BEHIND, /* it is to be asked again soon */
	COUNTER_STUCK,	/* it is behind what has come for certain, and no width explains it */
	COUNTER_AHEAD,	/* it counts what has not come: a rule that matches more than it should */
};

/* `bits` 0: to be learned. */
void counter_begin(struct counter *counter, unsigned bits);

/*
 * By one answer alone, which is not COUNTER_BEHIND. The NIC told `raw`. It has counted at least `least` (what
 * software had when the question was asked) and at most `most` packets in all; when it tells more (COUNTER_AHEAD)
 * the total is what it tells.
 */
enum counter_verdict counter_update(
	struct counter *counter, uint64_t raw, uint64_t least, uint64_t most);

/* Looks that lie no further apart say whether answers are fresh; so many in a row say that they are. */
#define COUNTER_SOON_US 150000
#define COUNTER_FRESH 2

/* An answer and what it is held against: the same, and the time, and how old a reading may be at most. */
struct counter_look {
	uint64_t raw, least, most;
	uint64_t now_us; /* not 0 */
	uint64_t patience_us;
};

/* By all answers so far. */
enum counter_verdict counter_watch(struct counter *counter, const struct counter_look *look);

/*
 * The longest that may pass until the next look, in us, so that not more than a quarter of 2^bits comes in
 * between at `rate` a second; at most `most_us`. With a width that is not known: 24 bits are assumed.
 */
uint64_t counter_interval_us(const struct counter *counter, uint64_t rate, uint64_t most_us);
/* The same with a width. */
uint64_t counter_interval_of_us(unsigned bits, uint64_t rate, uint64_t most_us);
