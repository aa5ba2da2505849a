/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contenders of the bench of the routing table: ours; rte_fib as DIR24_8 and rte_fib6 as TRIE, with
 * entries of 4 bytes, as many groups of 8 bits as take all routes, and the fastest
 * look-up that DPDK has for the SIMD level in use.
 */
/* to let DPDK use vectors of 512 bits, which 22.11 has by an experimental call only */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_malloc.h>
#include <rte_vect.h>
#include <rte_version.h>

#include "bench/route.h"

#define BURST 64
#define LEAST_GROUPS 256

#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#define V6_ADDRESS(addr) ((const struct rte_ipv6_addr *)(const void *)(addr))
#define V6_ADDRESSES(addr) ((const struct rte_ipv6_addr *)(const void *)(addr))
#else
#define V6_ADDRESS(addr) (addr)
/* the call does not change what it is not told to be constant */
#define V6_ADDRESSES(addr) ((uint8_t(*)[RTE_FIB6_IPV6_ADDR_SIZE])(uintptr_t)(addr))
#endif

int route_socket;

/* Ours. */

static int make_ours(void **side, const struct route_set *set, bool direct)
{
	struct fib_config config = {.version = set->version,
		.memory = fib_memory_for(set->version, set->n) + (direct ? FIB_DIRECT_MEMORY : 0),
		.direct = direct};
	struct fib *fib;
	int ret = simd_choose(&config.simd);

	if (ret == 0)
		ret = fib_create(&fib, &config);
	if (ret == 0)
		*side = fib;
	return ret;
}

static int ours_create(void **side, const struct route_set *set, uint32_t spare)
{
	(void)spare;
	return make_ours(side, set, false);
}

static int direct_create(void **side, const struct route_set *set, uint32_t spare)
{
	(void)spare;
	return make_ours(side, set, true);
}

static void ours_destroy(void *side)
{
	fib_destroy(side);
}

static int ours_add(void *side, const struct route_prefix *prefix, uint32_t next_hop)
{
	return fib_add(side, prefix, next_hop);
}

static int ours_delete(void *side, const struct route_prefix *prefix)
{
	return fib_delete(side, prefix);
}

static uint64_t ours_lookup(void *side, const struct route_addresses *addresses, unsigned from,
	unsigned n, uint32_t *next_hops)
{
	if (fib_version(side) == 4)
		fib_lookup4_burst(side, addresses->v4 + from, next_hops, n);
	else
		fib_lookup6_burst(side, addresses->v6 + from, next_hops, n);
	return next_hops[0];
}

static size_t ours_memory(void *side)
{
	struct fib_stats stats;

	fib_stats(side, &stats);
	return stats.in_use;
}

const struct route_side route_ours = {
	"ours", ours_create, ours_destroy, ours_add, ours_delete, ours_lookup, ours_memory};

const struct route_side route_direct = {
	"direct", direct_create, ours_destroy, ours_add, ours_delete, ours_lookup, ours_memory};

/* DPDK's. */

struct theirs {
	struct rte_fib *fib;
	struct rte_fib6 *fib6;
	size_t before;
};

static size_t heap_bytes(void)
{
	struct rte_malloc_socket_stats stats = {0};

	rte_malloc_get_socket_stats(route_socket, &stats);
	return stats.heap_allocsz_bytes;
}

static bool uses_avx512(void)
{
	enum simd_level level;

	if (simd_choose(&level) != 0 || level < SIMD_AVX512)
		return false;
	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	return true;
}

/*
 * Groups that the routes take: one for each different beginning of 3 bytes and more that longer prefixes have. Routes come in
 * order.
 */
static uint32_t groups_of(const struct route_set *set, uint32_t spare)
{
	const struct route_prefix *last[16] = {NULL};
	uint32_t groups = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct route_prefix *prefix = &set->routes[i].prefix;

		for (unsigned bytes = 3; 8 * bytes < prefix->length; bytes++) {
			if (!last[bytes] || memcmp(last[bytes]->addr, prefix->addr, bytes) != 0)
				groups++;
			last[bytes] = prefix;
		}
	}
	return groups + (uint32_t)((uint64_t)groups * spare / 100) + LEAST_GROUPS;
}

static void theirs_destroy(void *side)
{
	struct theirs *theirs = side;

	rte_fib_free(theirs->fib);
	rte_fib6_free(theirs->fib6);
	free(theirs);
}

static int fib_begin(void **side, const struct route_set *set, uint32_t spare)
{
	struct theirs *theirs = calloc(1, sizeof(*theirs));
	struct rte_fib_conf config = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = FIB_NO_ROUTE,
		.max_routes = (int)set->n + 1,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = groups_of(set, spare)},
	};

	if (!theirs)
		return -ENOMEM;
	theirs->before = heap_bytes();
	theirs->fib = rte_fib_create("route", route_socket, &config);
	*side = theirs;
	if (!theirs->fib) {
		free(theirs);
		return -rte_errno;
	}
	if (!uses_avx512() ||
		rte_fib_select_lookup(theirs->fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512) != 0)
		rte_fib_select_lookup(theirs->fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
	return 0;
}

static uint32_t v4_of(const struct route_prefix *prefix)
{
	return (uint32_t)(route_bits_of(prefix->addr, 4).high >> 32);
}

static int fib_do_add(void *side, const struct route_prefix *prefix, uint32_t next_hop)
{
	const struct theirs *theirs = side;

	return rte_fib_add(theirs->fib, v4_of(prefix), prefix->length, next_hop);
}

static int fib_do_delete(void *side, const struct route_prefix *prefix)
{
	const struct theirs *theirs = side;

	return rte_fib_delete(theirs->fib, v4_of(prefix), prefix->length);
}

/* Narrower where they are compared; a user of it takes the 64-bit numbers as they come. */
static uint64_t narrow(const uint64_t *found, uint32_t *next_hops, unsigned n)
{
	for (unsigned i = 0; next_hops && i < n; i++)
		next_hops[i] = (uint32_t)found[i];
	return found[0];
}

static uint64_t fib_do_lookup(void *side, const struct route_addresses *addresses, unsigned from,
	unsigned n, uint32_t *next_hops)
{
	const struct theirs *theirs = side;
	uint32_t *v4 = (uint32_t *)(uintptr_t)(addresses->v4 + from);
	uint64_t found[BURST];

	rte_fib_lookup_bulk(theirs->fib, v4, found, (int)n);
	return narrow(found, next_hops, n);
}

static size_t theirs_memory(void *side)
{
	const struct theirs *theirs = side;

	return heap_bytes() - theirs->before;
}

const struct route_side route_rte_fib = {"rte_fib", fib_begin, theirs_destroy, fib_do_add,
	fib_do_delete, fib_do_lookup, theirs_memory};

static int fib6_begin(void **side, const struct route_set *set, uint32_t spare)
{
	struct theirs *theirs = calloc(1, sizeof(*theirs));
	struct rte_fib6_conf config = {
		.type = RTE_FIB6_TRIE,
		.default_nh = FIB_NO_ROUTE,
		.max_routes = (int)set->n + 1,
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = groups_of(set, spare)},
	};

	if (!theirs)
		return -ENOMEM;
	theirs->before = heap_bytes();
	theirs->fib6 = rte_fib6_create("route6", route_socket, &config);
	*side = theirs;
	if (!theirs->fib6) {
		free(theirs);
		return -rte_errno;
	}
	if (!uses_avx512() ||
		rte_fib6_select_lookup(theirs->fib6, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512) != 0)
		rte_fib6_select_lookup(theirs->fib6, RTE_FIB6_LOOKUP_TRIE_SCALAR);
	return 0;
}

static int fib6_do_add(void *side, const struct route_prefix *prefix, uint32_t next_hop)
{
	const struct theirs *theirs = side;

	return rte_fib6_add(theirs->fib6, V6_ADDRESS(prefix->addr), prefix->length, next_hop);
}

static int fib6_do_delete(void *side, const struct route_prefix *prefix)
{
	const struct theirs *theirs = side;

	return rte_fib6_delete(theirs->fib6, V6_ADDRESS(prefix->addr), prefix->length);
}

static uint64_t fib6_do_lookup(void *side, const struct route_addresses *addresses, unsigned from,
	unsigned n, uint32_t *next_hops)
{
	const struct theirs *theirs = side;
	uint64_t found[BURST];

	rte_fib6_lookup_bulk(theirs->fib6, V6_ADDRESSES(addresses->v6 + from), found, (int)n);
	return narrow(found, next_hops, n);
}

const struct route_side route_rte_fib6 = {"rte_fib6", fib6_begin, theirs_destroy, fib6_do_add,
	fib6_do_delete, fib6_do_lookup, theirs_memory};
