/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a NIC has counted of a rule whose packets nobody else sees: its counters of packets and bytes made 64 bits wide.
 * Software knows nothing to hold them against, so a counter is read often enough for its width, at the flow's rate: at
 * most a quarter of it comes between two readings. Then the first number that is smaller than the one before says how
 * wide the counter is, since one in its upper half was told before. Until that, 24 bits are assumed, or as many as the
 * largest number has. What is learned holds for all rules of the port.
 *
 * A reading is believed as far as it can be true, and never further: records may have too little, and say so, but nothing
 * that was not sent.
 * - Packets cannot be more than the link carries in the time; and where the number went down, not many more than came
 *   before in such a time, unless the bytes say so. Bytes cannot be fewer than the shortest frames have, nor more than the
 *   longest; and where the number went down, they have to be about what these packets have by the size that was seen so far.
 * - A counter that was read late came round more often: how often is told by the other one, where that did not come
 *   round. Where it is not, and at the flow's rate half of the width or more was to come, the numbers are a guess.
 * - Beyond that a reading is unknown: the counter began anew, or became narrower. Of its packets nothing is counted,
 *   of bytes what the shortest frames have; its width is learned again.
 *
 * Pure; used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "offload/counter.h"
#include "rteflow/provider.h"

/* Of a port: how wide its counters are. Zeroed at the start. */
struct tally_width {
	uint8_t bits;	  /* 0: not known */
	uint64_t highest; /* that was ever told, since one was unknown */
};

struct tally_port {
	struct tally_width packets, bytes;
};

struct tally_counter {
	uint64_t total; /* made wide */
	uint64_t last;	/* as it was told */
};

/* Of a rule. */
struct tally {
	struct tally_counter packets, bytes;
	uint64_t waited_us; /* since its packets moved */
	uint64_t rate,
		before; /* packets a second of the last two times that they did; 0: not known */
	uint64_t last_us,
		last_packets; /* how long the last of these times was, and what came then */
	uint64_t sure_packets,
		sure_bytes; /* of readings that were no guess: the size of a packet */
};

void tally_begin(struct tally *tally);

/* What a reading is held against. */
struct tally_look {
	uint64_t passed_us; /* since the last one, or since the rule was there */
	uint64_t link_mbps; /* 0: not known */
	uint32_t longest;   /* frame, in bytes */
	uint32_t size;	    /* of the flow's packets so far, in bytes, at least 1 */
};

/* The NIC told these. False: the totals may be too low. */
bool tally_read(struct tally *tally, struct tally_port *port, const struct provider_count *told,
	const struct tally_look *look);

/* How long until they are to be read again, in us: at most `most_us`. `rate`: packets a second, of `size` bytes. */
uint64_t tally_interval_us(
	const struct tally_port *port, uint64_t rate, uint32_t size, uint64_t most_us);
