/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The routing table: prefixes of one IP version to numbers of next hops, and which one is the longest
 * that an address matches (docs/routes.md has a picture).
 *
 * One structure serves IPv4 /0 to /32 and IPv6 /0 to /128. The first 18 bits of an address index an
 * array; behind it each node takes 6 bits more. A node has a bitmap with one bit for each of its 64
 * slots, set where a run of slots with the same entry begins, and the entries of the runs one after
 * the other: the number of bits set up to an address's slot is the place of its entry. A node of up to
 * 12 runs lies in one cache line. One with more gets an entry for each slot, and whoever leads to it
 * knows that its bitmap need not be read. So a step reads one cache line.
 *
 * The runs and bitmaps follow Degermark, Brodnik, Carlsson and Pink ("Small Forwarding Tables for Fast
 * Routing Lookups", SIGCOMM 1997); 6 bits a step found by population count, behind an array, Asai and
 * Ohara ("Poptrie", SIGCOMM 2015). The prefixes themselves lie in bitmaps beside the nodes, as in
 * Eatherton, Varghese and Dittia ("Tree Bitmap", ACM CCR 34(2), 2004), so that a change computes one
 * node again from the prefixes in it, and the rest of the table stays.
 *
 * Runs are cut by prefixes, not by values: another next hop for a prefix that is there is written in
 * place and takes no memory. The memory in use depends on the set of prefixes alone, not on how
 * it came about.
 *
 * Threads: one writer calls fib_add(), fib_delete(), fib_get(), fib_match(), fib_walk() and fib_stats(). Any number of
 * readers call the look-ups and never wait. They are readers of the RCU variable that the creator was
 * given and report their quiescent states there; memory that a change has freed is used again when
 * they all have. A look-up beside a change finds the old or the new next hop of that prefix; a change
 * of a prefix that covers many others reaches them one after the other.
 *
 * Memory is limited by what the creator gives. A change that finds no room is refused as a whole, after
 * what lies between blocks has been gathered; a deletion and a new next hop for a prefix that is
 * there are never refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_rcu_qsbr.h>

#include "packet/simd.h"
#include "route/prefix.h"

/* Next hops are 0 to FIB_MAX_NEXT_HOP: the table keeps the top bit of its 32-bit entries. */
#define FIB_MAX_NEXT_HOP UINT32_C(0x7ffffffe)
#define FIB_NO_ROUTE UINT32_C(0x7fffffff)

/* The least limit of memory, what `direct` takes of it beside, and the most. */
#define FIB_MIN_MEMORY ((size_t)4 << 20)
#define FIB_DIRECT_MEMORY ((size_t)64 << 20)
#define FIB_MAX_MEMORY ((size_t)7 << 30)

struct fib;

struct fib_config {
	unsigned version;     /* 4 or 6 */
	size_t memory;	      /* bytes at most; fib_memory_for() has a number for real tables */
	enum simd_level simd; /* for look-ups */
	bool direct; /* IPv4: 64 MB more of it hold an entry for each /24, read in one step */
	struct rte_rcu_qsbr
		*qsbr; /* the caller's, until after fib_destroy(); NULL: no other readers */
};

struct fib_stats {
	uint64_t routes, added, changed, deleted;
	uint64_t refused;  /* for want of memory */
	uint64_t gathered; /* times that blocks were moved together */
	size_t memory;	   /* the limit */
	size_t in_use;	   /* bytes of it, with what waits for readers */
	size_t waiting;	   /* blocks that wait for readers */
};

/*
 * Bytes for so many routes of a table like those of the Internet, with a fourth to spare. Prefixes that
 * lie far apart take more: an IPv6 /128 with nothing near it about 650.
 */
size_t fib_memory_for(unsigned version, uint64_t routes);

/* 0, -EINVAL, or what mapping_create() says. */
int fib_create(struct fib **fib, const struct fib_config *config);
/* After the readers have stopped. Accepts NULL. */
void fib_destroy(struct fib *fib);

/* 4 or 6. */
unsigned fib_version(const struct fib *fib);

/* The writer: */

/*
 * Adds a prefix, or gives it another next hop. 0: it is new. 1: it was there. Else nothing changes:
 * -EINVAL for a prefix of the other version, one that cannot be, or a next hop out of range; -ENOSPC when the memory
 * is full; -EAGAIN when it is full of blocks that readers may still use: try again later.
 */
int fib_add(struct fib *fib, const struct route_prefix *prefix, uint32_t next_hop);

/* Deletes a prefix; addresses in it find the next shorter one. 0, -ENOENT, or -EINVAL. */
int fib_delete(struct fib *fib, const struct route_prefix *prefix);

/* The next hop of exactly this prefix, or FIB_NO_ROUTE. */
uint32_t fib_get(const struct fib *fib, const struct route_prefix *prefix);

/*
 * The next hop of the longest prefix that holds an address, or FIB_NO_ROUTE, and which prefix that is.
 * Of the bytes of an IPv4 address the first 4 count.
 */
uint32_t fib_match(const struct fib *fib, const uint8_t addr[16], struct route_prefix *prefix);

/* Told of a prefix; false ends the walk. It must not change the table. */
typedef bool (*fib_walk_fn)(void *context, const struct route_prefix *prefix, uint32_t next_hop);

/* All prefixes in the order of their addresses, a shorter one before those in it. */
void fib_walk(const struct fib *fib, fib_walk_fn each, void *context);

/* Frees what no reader can use any more. Changes do so too. */
void fib_reclaim(struct fib *fib);

void fib_stats(const struct fib *fib, struct fib_stats *stats);

/* Readers: */

/* Next hops, or FIB_NO_ROUTE, of addresses in host order. */
void fib_lookup4_burst(
	const struct fib *fib, const uint32_t *addresses, uint32_t *next_hops, unsigned n);
uint32_t fib_lookup4(const struct fib *fib, uint32_t address);

/* The same of addresses in network order. */
void fib_lookup6_burst(
	const struct fib *fib, const uint8_t (*addresses)[16], uint32_t *next_hops, unsigned n);
uint32_t fib_lookup6(const struct fib *fib, const uint8_t address[16]);
