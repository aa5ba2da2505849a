/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A NIC's counter made 64 bits wide. NICs do not tell how wide theirs are, but software has counted the
 * same packets: what the NIC tells has to be its count modulo 2^bits. So the width is learned: a number that
 * is too small is taken for one that wrapped, when there is a width (16 to 48) for which it fits; the widest
 * that does. One that was taken too wide by chance gives way to a narrower one later. A width that wraps
 * within what may have come meanwhile proves nothing, and is neither learned nor held against the NIC.
 *
 * Pure; used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct counter {
	uint64_t total;	  /* made wide */
	uint64_t highest; /* that it ever told: it is at least so wide */
	uint8_t bits;	  /* that it has; 64 until it is known to have fewer */
	bool given;	  /* that width was not learned */
};

enum counter_verdict {
	COUNTER_FITS,
	COUNTER_STUCK, /* it is behind what has come for certain, and no width explains it */
	COUNTER_AHEAD, /* it counts what has not come: a rule that matches more than it should */
};

/* `bits` 0: to be learned. */
void counter_begin(struct counter *counter, unsigned bits);

/*
 * The NIC told `raw`. It has counted at least `least` (what software had when the question was asked) and at
 * most `most` packets in all.
 */
enum counter_verdict counter_update(
	struct counter *counter, uint64_t raw, uint64_t least, uint64_t most);

/*
 * The longest that may pass until the next look, in us, so that not more than a quarter of 2^bits comes in
 * between at `rate` a second; at most `most_us`. With a width that is not known: 24 bits are assumed.
 */
uint64_t counter_interval_us(const struct counter *counter, uint64_t rate, uint64_t most_us);
