/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a NIC has counted of a rule whose packets nobody else sees: its counters of packets and bytes made 64 bits wide
 * (offload/counter.h has the arithmetic). Software knows nothing to hold them against, so a counter is read often
 * enough for its width, at the flow's rate: at most a quarter of it comes between two readings. Then the first number
 * that is smaller than the one before says how wide the counter is, since one in its upper half was told before.
 * Until that, 24 bits are assumed, or as many as the largest number has. What is learned holds for all rules of the
 * port.
 *
 * Bytes come round many times as often as packets. How often they did is told by the packets that came meanwhile, and
 * by the size that the flow's packets had so far.
 *
 * Pure; used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "offload/counter.h"
#include "offload/provider.h"

/* Of a port: how wide its counters are. Zeroed at the start. */
struct tally_width {
	uint8_t bits;	  /* 0: not known */
	uint64_t highest; /* that was ever told */
};

struct tally_port {
	struct tally_width packets, bytes;
};

/* Of a rule. */
struct tally {
	struct counter packets, bytes;
};

void tally_begin(struct tally *tally);

/*
 * The NIC told these. `size`: of the flow's packets so far, in bytes, at least 1. False: the totals are the likeliest,
 * as the counters were not read often enough for their width, or are narrower than any that can be.
 */
bool tally_read(struct tally *tally, struct tally_port *port, const struct provider_count *told,
	uint32_t size);

/* How long until they are to be read again, in us: at most `most_us`. `rate`: packets a second, of `size` bytes. */
uint64_t tally_interval_us(
	const struct tally_port *port, uint64_t rate, uint32_t size, uint64_t most_us);
