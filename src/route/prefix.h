/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Prefixes of routes, their text, and the same bits as numbers.
 *
 * These functions keep no state; any thread may call them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of the longest text of a prefix, its ending zero included. */
#define ROUTE_PREFIX_TEXT_MAX 64

struct route_prefix {
	uint8_t addr[16]; /* in network order; IPv4 in the first 4 bytes; zero beyond `length` */
	uint8_t version;  /* 4 or 6 */
	uint8_t length;	  /* in bits, up to 32 or 128 */
};

/* An address with its first bit on top; IPv4 fills the upper half of `high`. */
struct route_bits {
	uint64_t high, low;
};

/*
 * Reads ADDRESS or ADDRESS/LENGTH; an address alone is a prefix of full length. Returns 0, or -EINVAL
 * with the reason. A prefix that has bits set beyond its length is refused, because one of the two
 * numbers is then wrong.
 */
int route_prefix_parse(struct route_prefix *prefix, const char *text, struct error *error);

/* Writes the text that route_prefix_parse() reads as the same prefix, and returns it. */
const char *route_prefix_format(
	const struct route_prefix *prefix, char text[ROUTE_PREFIX_TEXT_MAX]);

/* Whether version and length are possible, and no bits are set beyond the length. */
bool route_prefix_valid(const struct route_prefix *prefix);

/* The bits of an address of this version, and back. */
struct route_bits route_bits_of(const uint8_t addr[16], unsigned version);
void route_bits_to(struct route_bits bits, uint8_t addr[16]);

/* The same bits with those from `length` on cleared. */
struct route_bits route_bits_cut(struct route_bits bits, unsigned length);
