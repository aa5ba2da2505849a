/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/tally.h"

/* Of a counter whose width is not known. */
#define ASSUMED 24
#define WIDEST 48
#define LEAST_FRAME 14
/* Packets whose size is an average. */
#define SOME 64

void tally_begin(struct tally *tally)
{
	counter_begin(&tally->packets, 0);
	counter_begin(&tally->bytes, 0);
}

static unsigned bits_of(uint64_t number)
{
	return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

/* As wide as it is, or is taken to be. */
static unsigned width_of(const struct tally_width *width)
{
	unsigned bits = bits_of(width->highest);

	if (width->bits != 0)
		return width->bits;
	/* no counter has all of 64: a number like that is none of packets */
	if (bits >= 64)
		bits = 63;
	return bits > ASSUMED ? bits : ASSUMED;
}

/* What was learned by one rule holds for all; and what turns out to be too narrow was wrong. */
static void know_width(struct tally_width *width, uint64_t raw)
{
	if (raw > width->highest)
		width->highest = raw;
	if (width->bits != 0 && raw >> width->bits != 0)
		width->bits = 0;
}

/* The smallest total from `least` on that is told so by a counter of that width. */
static void read_as(struct counter *counter, unsigned bits, uint64_t raw, uint64_t least)
{
	struct counter as = *counter;

	as.bits = (uint8_t)bits;
	as.given = true;
	(void)counter_update(&as, raw, least, least + (UINT64_C(1) << bits) - 1);
	counter->total = as.total;
}

/*
 * A number that is smaller than what was told before, of a counter whose width is not known: it came round, from its
 * upper half.
 */
static bool read_wrapped(struct counter *counter, struct tally_width *width, uint64_t raw)
{
	unsigned bits = width_of(width);

	read_as(counter, bits, raw, counter->total);
	if (width->highest >> (bits - 1) == 0)
		return false;
	width->bits = (uint8_t)bits;
	return true;
}

static bool read_packets(struct tally *tally, struct tally_width *width, uint64_t raw)
{
	struct counter *counter = &tally->packets;
	uint64_t before = counter->total;

	know_width(width, raw);
	if (width->bits == 0 && raw < before)
		return read_wrapped(counter, width, raw);
	if (width->bits == 0) {
		counter->total = raw;
		return true;
	}
	read_as(counter, width->bits, raw, before);
	/* more than half of the width is more than was to come: it may have been a whole one more */
	return counter->total - before <= UINT64_C(1) << (width->bits - 1);
}

/* Of the totals that are told so, the one that is nearest to what is expected to have come. */
static void read_near(struct counter *counter, unsigned bits, uint64_t raw, uint64_t expected)
{
	uint64_t half = UINT64_C(1) << (bits - 1);

	read_as(counter, bits, raw, counter->total + (expected > half ? expected - half : 0));
}

static bool is_about(uint64_t bytes, uint64_t expected)
{
	return bytes >= expected - expected / 8 && bytes <= expected + expected / 8;
}

/*
 * Bytes of a counter whose width is not known, which was read so late that it may have come round more than once: how
 * often is told by what is expected, and its width by which of the usual ones fits that.
 */
static bool read_late(
	struct counter *counter, struct tally_width *width, uint64_t raw, uint64_t expected)
{
	const uint64_t before = counter->total;

	for (unsigned bits = ASSUMED; raw < before + expected - expected / 8 && bits <= WIDEST;
		bits += 8) {
		if (width->highest >> bits != 0)
			continue;
		read_near(counter, bits, raw, expected);
		if (is_about(counter->total - before, expected)) {
			width->bits = (uint8_t)bits;
			return true;
		}
		counter->total = before;
	}
	counter->total = raw > before ? raw : before + expected;
	return raw > before && is_about(raw - before, expected);
}

static bool read_bytes(struct tally *tally, struct tally_width *width, uint64_t raw,
	uint64_t packets, uint64_t expected)
{
	struct counter *counter = &tally->bytes;

	know_width(width, raw);
	if (width->bits != 0) {
		read_near(counter, width->bits, raw, expected);
		return expected / 8 < UINT64_C(1) << (width->bits - 1);
	}
	if (expected >> (width_of(width) - 1) != 0)
		return read_late(counter, width, raw, expected);
	if (raw < counter->total)
		return read_wrapped(counter, width, raw);
	/* of a width that nobody has */
	if (raw - counter->total < packets * LEAST_FRAME)
		return read_late(counter, width, raw, expected);
	counter->total = raw;
	return true;
}

/* Bytes of a packet: as they were counted, where these are some. */
static uint64_t size_of(const struct tally *tally, uint32_t size)
{
	return tally->packets.total < SOME ? size : tally->bytes.total / tally->packets.total;
}

bool tally_read(struct tally *tally, struct tally_port *port, const struct provider_count *told,
	uint32_t size)
{
	uint64_t before = tally->packets.total, bytes = size_of(tally, size);
	bool sure = read_packets(tally, &port->packets, told->packets);
	uint64_t packets = tally->packets.total - before;

	if (!told->has_bytes) {
		tally->bytes.total += packets * bytes;
		return false;
	}
	return read_bytes(tally, &port->bytes, told->bytes, packets, packets * bytes) && sure;
}

static uint64_t interval_us(const struct tally_width *width, uint64_t rate, uint64_t most_us)
{
	const struct counter counter = {.bits = (uint8_t)width_of(width), .given = true};

	return counter_interval_us(&counter, rate, most_us);
}

uint64_t tally_interval_us(
	const struct tally_port *port, uint64_t rate, uint32_t size, uint64_t most_us)
{
	uint64_t us = interval_us(&port->packets, rate, most_us);

	return interval_us(&port->bytes, rate * size, us);
}
