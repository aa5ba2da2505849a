/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Shared by the tests of the routing table: tables, prefixes by chance, and a plain reference beside it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route/fib.h"

/* The sanitizers make everything slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 10
#else
#define SLOWER 1
#endif

static uint64_t drawn = 1;

/* Draws one of `n` numbers by chance. */
static inline unsigned draw(unsigned n)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	return (unsigned)((drawn >> 16) % n);
}

static inline struct fib *make_fib(unsigned version, size_t memory, struct rte_rcu_qsbr *qsbr)
{
	/* tables that are large enough have direct entries, too */
	struct fib_config config = {.version = version,
		.memory = memory,
		.qsbr = qsbr,
		.direct = version == 4 && memory >= FIB_DIRECT_MEMORY + FIB_MIN_MEMORY};
	struct fib *fib = NULL;

	assert_int_equal(simd_choose(&config.simd), 0);
	assert_int_equal(fib_create(&fib, &config), 0);
	return fib;
}

static inline unsigned bits_of(unsigned version)
{
	return version == 4 ? 32 : 128;
}

/* The prefix of this length that an address lies in. */
static inline struct route_prefix prefix_at(
	const uint8_t addr[16], unsigned version, unsigned length)
{
	struct route_prefix prefix = {.version = (uint8_t)version, .length = (uint8_t)length};

	for (unsigned bit = 0; bit < length; bit++)
		prefix.addr[bit / 8] |= (uint8_t)(addr[bit / 8] & 0x80 >> bit % 8);
	return prefix;
}

static inline bool holds(const struct route_prefix *prefix, const uint8_t addr[16])
{
	struct route_prefix other = prefix_at(addr, prefix->version, prefix->length);

	return memcmp(other.addr, prefix->addr, sizeof(other.addr)) == 0;
}

/* The last address of a prefix. */
static inline void last_of(const struct route_prefix *prefix, uint8_t addr[16])
{
	memcpy(addr, prefix->addr, 16);
	for (unsigned bit = prefix->length; bit < bits_of(prefix->version); bit++)
		addr[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

static inline uint32_t lookup(const struct fib *fib, const uint8_t addr[16])
{
	if (fib_version(fib) == 6)
		return fib_lookup6(fib, addr);
	return fib_lookup4(fib, (uint32_t)addr[0] << 24 | (uint32_t)addr[1] << 16 |
					(uint32_t)addr[2] << 8 | addr[3]);
}

/* The same of many, in bursts of these. */
static inline void lookup_all(
	const struct fib *fib, const uint8_t (*addr)[16], uint32_t *next_hops, unsigned n)
{
	uint32_t v4[1024];

	if (fib_version(fib) == 6) {
		fib_lookup6_burst(fib, addr, next_hops, n);
		return;
	}
	assert_true(n <= 1024);
	for (unsigned i = 0; i < n; i++)
		v4[i] = (uint32_t)addr[i][0] << 24 | (uint32_t)addr[i][1] << 16 |
			(uint32_t)addr[i][2] << 8 | addr[i][3];
	fib_lookup4_burst(fib, v4, next_hops, n);
}
