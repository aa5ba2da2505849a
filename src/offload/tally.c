/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/tally.h"

#include <rte_common.h>

#include "base/clock.h"

/* Bytes of the shortest frame. */
#define LEAST_FRAME 60
/* A driver may tell what it read so long ago. */
#define CACHED_US UINT64_C(1200000)
/* Of a link whose speed is not known. */
#define FASTEST_MBPS 800000
/* Packets whose size is an average, and that a rate may be wrong by. */
#define SOME 64
/* What was to come is the rate's, or so many times that: it may have risen. */
#define RISES 2
/* What may have come is so small a part of a counter's width that no other width fits it by chance. */
#define SMALL_PART 64
/* A time that is no longer than this part of the one before was too short to tell a rate. */
#define SHORT_PART 8

void tally_begin(struct tally *tally)
{
	*tally = (struct tally){0};
}

static unsigned tally_bits_of(uint64_t number)
{
	return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

/* As wide as it is, or is taken to be. */
static unsigned width_of(const struct tally_width *width)
{
	unsigned bits = tally_bits_of(width->highest);

	if (width->bits != 0)
		return width->bits;
	/* no counter has all of 64: a number like that is none of packets */
	if (bits >= 64)
		bits = 63;
	return bits > COUNTER_ASSUMED ? bits : COUNTER_ASSUMED;
}

/* What was learned by one rule holds for all; and what turns out to be too narrow was wrong. */
static void know_width(struct tally_width *width, uint64_t raw)
{
	if (raw > width->highest)
		width->highest = raw;
	if (width->bits != 0 && raw >> width->bits != 0)
		width->bits = 0;
}

/* It is not the counter that it was. */
static void forget_width(struct tally_width *width, uint64_t raw)
{
	*width = (struct tally_width){.highest = raw};
}

/* What came between two numbers of a counter of that width, if it did not come round more than once. */
static uint64_t between(uint64_t last, uint64_t raw, unsigned bits)
{
	return counter_made_wide(raw, bits, last) - last;
}

static bool is_about(uint64_t number, uint64_t expected)
{
	return number >= expected - expected / 8 && number <= expected + expected / 8;
}

/* The count nearest to the expected one that a counter of that width can mean. */
static uint64_t near(uint64_t last, uint64_t raw, unsigned bits, uint64_t expected)
{
	const uint64_t half = UINT64_C(1) << (bits - 1),
		       from = expected > half ? expected - half : 0;

	return counter_made_wide(raw, bits, last + from) - last;
}

/* A reading in the making. */
struct reading {
	const struct provider_count *told;
	const struct tally_look *look;
	uint64_t rate;	       /* packets a second, the most of late; 0: not known */
	uint64_t to_come;      /* packets at that rate */
	uint64_t most_packets; /* that the link carries */
	uint64_t size;	       /* of a packet, as seen so far */
	uint64_t packets;      /* that came */
};

static uint64_t most_packets(const struct tally_look *look, uint64_t waited_us)
{
	const uint64_t mbps = look->link_mbps != 0 ? look->link_mbps : FASTEST_MBPS;

	/* a megabit a second is a bit each microsecond; what a NIC holds back may come with it */
	return (waited_us + CACHED_US) * mbps / 8 / LEAST_FRAME + SOME;
}

/* Bytes that so many packets may have: a few may be counted in one of both counters already. */
static uint64_t least_bytes(uint64_t packets)
{
	return packets > SOME ? (packets - SOME / 8) * LEAST_FRAME : 0;
}

static uint64_t most_bytes(const struct reading *reading, uint64_t packets)
{
	return (packets + SOME / 8) * reading->look->longest;
}

/* Do the bytes tell that so many packets came? Not where they may have come round themselves, and these are few. */
static bool bytes_tell(const struct tally *tally, const struct tally_port *port,
	const struct reading *reading, uint64_t packets)
{
	const uint64_t raw = reading->told->bytes, last = tally->bytes.last;
	const uint64_t bytes =
		port->bytes.bits != 0 ? between(last, raw, port->bytes.bits) : raw - last;

	if (!reading->told->has_bytes || (port->bytes.bits == 0 && raw < last))
		return false;
	const unsigned bits = width_of(&port->bytes);
	const bool once = reading->to_come * reading->size >> (bits - 1) == 0;

	return is_about(bytes, packets * reading->size) &&
	       (port->bytes.bits == 0 || packets * reading->size >> (bits - 1) == 0) &&
	       (once || packets >= reading->to_come / RISES);
}

/* As many rounds of the packets' counter as the bytes tell of. */
static bool rounds_by_bytes(const struct tally *tally, const struct tally_port *port,
	struct reading *reading, uint64_t least, unsigned bits)
{
	const uint64_t raw = reading->told->bytes, last = tally->bytes.last;
	const uint64_t bytes =
		port->bytes.bits != 0 ? between(last, raw, port->bytes.bits) : raw - last;
	const uint64_t packets = bytes / reading->size, round = UINT64_C(1) << bits;

	reading->packets =
		packets <= least ? least : least + (packets - least + round / 2) / round * round;
	/* a flow whose packets became longer is not one that came round; with a round more or less they would not tell the same */
	if (reading->packets > least && reading->packets > RISES * reading->to_come + SOME)
		return false;
	return reading->packets <= reading->most_packets && reading->packets / 4 < round &&
	       bytes_tell(tally, port, reading, reading->packets);
}

/*
 * The number went down, and the counter's width is not known: it is that of the last one, which was in its upper half, or
 * what it was taken for, if what came then is likely; 0: it is neither.
 */
static unsigned width_by_rate(
	const struct tally *tally, const struct tally_width *width, const struct reading *reading)
{
	const uint64_t last = tally->packets.last, most = RISES * reading->to_come + SOME;
	const unsigned highest =
		RTE_MIN(RTE_MAX(tally_bits_of(last), (unsigned)COUNTER_NARROWEST), 63u);
	uint64_t number;

	return counter_fit(width->highest, UINT64_C(1) << highest | UINT64_C(1) << width_of(width),
		reading->told->packets, last, last + most, &number);
}

enum belief {
	KNOWN,
	GUESSED, /* it may be more */
	UNKNOWN,
};

static enum belief read_packets(
	const struct tally *tally, struct tally_port *port, struct reading *reading)
{
	struct tally_width *width = &port->packets;
	const uint64_t raw = reading->told->packets, last = tally->packets.last;
	const bool down = raw < last;
	unsigned bits;

	know_width(width, raw);
	bits = width->bits;
	if (bits == 0 && down) {
		bits = width_by_rate(tally, width, reading);
		if (bits == 0)
			return UNKNOWN;
		width->bits = (uint8_t)bits;
	}
	reading->packets = bits == 0 ? raw - last : between(last, raw, bits);
	const uint64_t least = reading->packets;

	/* it came in time, and if it was more often round, the bytes know */
	if (least > reading->most_packets)
		return UNKNOWN;
	if (bits != 0 && tally->sure_packets >= SOME &&
		rounds_by_bytes(tally, port, reading, least, bits))
		return KNOWN;
	reading->packets = least;
	if (down && least > RISES * reading->to_come + SOME)
		return UNKNOWN;
	if (bits == 0 && bytes_tell(tally, port, reading, least))
		return KNOWN;
	/* half of the width is more than was to come: it may have been a whole one more */
	const uint64_t half = UINT64_C(1) << (width_of(width) - 1);

	return reading->to_come < half && least <= half ? KNOWN : GUESSED;
}

/* These bytes are what the packets may have. */
static bool may_be(const struct reading *reading, uint64_t bytes)
{
	return bytes >= least_bytes(reading->packets) &&
	       bytes <= most_bytes(reading, reading->packets);
}

/*
 * The number of bytes went down, and the counter's width is not known. Where it came round once, it is that of the last
 * number, which was in its upper half; where what may have come is a small part of it no other counter would have told
 * these two. Read so late that it may have come round more than once, it is one of the usual widths that fits what is
 * expected.
 */
static bool learn_bytes(const struct tally *tally, struct tally_width *width,
	const struct reading *reading, uint64_t *bytes)
{
	const uint64_t raw = reading->told->bytes, last = tally->bytes.last;
	const uint64_t expected = reading->packets * reading->size;
	const uint64_t least = least_bytes(reading->packets),
		       most = most_bytes(reading, reading->packets);
	const uint64_t low = RTE_MAX(least, expected - expected / 8),
		       high = RTE_MIN(most, expected + expected / 8);
	const unsigned bits = tally_bits_of(last);
	const bool once = raw < last && bits >= COUNTER_NARROWEST && bits <= COUNTER_WIDEST &&
			  expected >> (bits - 1) == 0;
	const bool small = bits >= COUNTER_ASSUMED && most <= (UINT64_C(1) << bits) / SMALL_PART;
	uint64_t late = 0, number;
	unsigned found = 0;

	/* with half of a round not known almost anything would fit */
	for (unsigned usual = COUNTER_ASSUMED; usual <= COUNTER_WIDEST; usual += 8)
		if (expected / 4 >> (usual - 1) == 0)
			late |= UINT64_C(1) << usual;
	if (once)
		found = counter_fit(width->highest, UINT64_C(1) << bits, raw,
			last + (small ? least : low), last + (small ? most : high), &number);
	if (found == 0)
		found = counter_fit(width->highest, late, raw, last + low, last + high, &number);
	if (found == 0)
		return false;
	width->bits = (uint8_t)found;
	*bytes = number - last;
	return true;
}

/* Of a known width. */
static enum belief read_known(const struct tally *tally, struct tally_width *width,
	const struct reading *reading, uint64_t *bytes)
{
	const uint64_t raw = reading->told->bytes, last = tally->bytes.last;
	const uint64_t expected = reading->packets * reading->size;

	/* it came round within what is not known of them */
	if (expected / 8 >> (width->bits - 1) != 0)
		return GUESSED;
	*bytes = near(last, raw, width->bits, expected);
	if (may_be(reading, *bytes) &&
		(raw >= last || is_about(*bytes, expected) || *bytes <= 4 * expected))
		return KNOWN;
	forget_width(width, raw);
	return UNKNOWN;
}

static enum belief read_bytes(const struct tally *tally, struct tally_width *width,
	const struct reading *reading, uint64_t *bytes)
{
	const uint64_t raw = reading->told->bytes, last = tally->bytes.last;
	const uint64_t expected = reading->packets * reading->size;

	know_width(width, raw);
	if (width->bits != 0)
		return read_known(tally, width, reading, bytes);
	*bytes = raw - last;
	if (raw >= last && may_be(reading, *bytes) &&
		(expected >> (width_of(width) - 1) == 0 || is_about(*bytes, expected)))
		return KNOWN;
	if (learn_bytes(tally, width, reading, bytes))
		return KNOWN;
	forget_width(width, raw);
	return UNKNOWN;
}

/*
 * Packets a second since they moved last. A number that came late makes that time too long, and the next one too short for
 * what came in it: a time that is far shorter than the one before is looked at together with that.
 */
static uint64_t tally_rate(const struct tally *tally, uint64_t packets)
{
	uint64_t us = RTE_MAX(tally->waited_us, UINT64_C(1));

	if (us < tally->last_us / SHORT_PART) {
		packets += tally->last_packets;
		us += tally->last_us;
	}
	return packets * CLOCK_US_PER_S / us;
}

static void tally_count(
	struct tally *tally, const struct reading *reading, uint64_t bytes, bool sure)
{
	tally->packets.total += reading->packets;
	tally->bytes.total += bytes;
	if (reading->packets == 0)
		return;
	tally->before = tally->rate;
	tally->rate = tally_rate(tally, reading->packets);
	tally->last_us = tally->waited_us;
	tally->last_packets = reading->packets;
	tally->waited_us = 0;
	if (!sure)
		return;
	tally->sure_packets += reading->packets;
	tally->sure_bytes += bytes;
}

/*
 * In what time all that is new can have come. A number that stands still may be an old one, which says nothing yet, or the
 * flow is silent: then a whole round can only have come since the last reading, as each of those before told the same. One
 * that moved may have been told late, and no later than that.
 */
static uint64_t time_to_come_us(
	const struct tally *tally, const struct provider_count *told, const struct tally_look *look)
{
	if (told->packets == tally->packets.last &&
		(!told->has_bytes || told->bytes == tally->bytes.last))
		return look->passed_us;
	return RTE_MIN(tally->waited_us, look->passed_us + CACHED_US);
}

bool tally_read(struct tally *tally, struct tally_port *port, const struct provider_count *told,
	const struct tally_look *look)
{
	struct reading reading = {.told = told, .look = look, .size = look->size};
	uint64_t bytes = 0;

	tally->waited_us += look->passed_us;
	if (tally->sure_packets >= SOME)
		reading.size = RTE_MAX(tally->sure_bytes / tally->sure_packets, UINT64_C(1));
	reading.most_packets = most_packets(look, tally->waited_us);
	reading.rate = RTE_MAX(tally->rate, tally->before);
	reading.to_come = reading.rate * time_to_come_us(tally, told, look) / CLOCK_US_PER_S;

	enum belief packets_are = read_packets(tally, port, &reading), bytes_are = UNKNOWN;

	if (packets_are == UNKNOWN) {
		forget_width(&port->packets, told->packets);
		reading.packets = 0;
	} else if (!told->has_bytes) {
		bytes = reading.packets * reading.size;
	} else {
		bytes_are = read_bytes(tally, &port->bytes, &reading, &bytes);
		if (bytes_are != KNOWN)
			bytes = least_bytes(reading.packets);
	}
	tally->packets.last = told->packets;
	tally->bytes.last = told->bytes;
	tally_count(tally, &reading, bytes, packets_are == KNOWN && bytes_are == KNOWN);
	return packets_are == KNOWN && bytes_are == KNOWN;
}

uint64_t tally_interval_us(
	const struct tally_port *port, uint64_t rate, uint32_t size, uint64_t most_us)
{
	uint64_t us = counter_interval_of_us(width_of(&port->packets), rate, most_us);

	return counter_interval_of_us(width_of(&port->bytes), rate * size, us);
}
