/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Shared by the files of the routing table. */

#include "route/arena.h"
#include "route/fib.h"

#define FIB_ROOT_BITS 18
#define FIB_STEP 6
#define FIB_DIRECT_BITS (FIB_ROOT_BITS + FIB_STEP)
#define FIB_SLOTS 64

/* An entry with the first bit is the reference of a node, else a next hop or FIB_NO_ROUTE. */
#define FIB_IS_NODE UINT32_C(0x80000000)
/* The node is full: each slot is a run of its own, so that its bitmap need not be read. */
#define FIB_IS_FULL UINT32_C(0x40000000)
#define FIB_REFERENCE UINT32_C(0x3fffffff)

/* Runs of nodes that lie in 32 and in 64 bytes, in one cache line. Nodes with more are full. */
#define FIB_SMALL_RUNS 4
#define FIB_LARGE_RUNS 12

enum fib_kind {
	FIB_KIND_NODE,
	FIB_KIND_PREFIXES,
};

/*
 * A node, as readers see it. Bitmap and size never change once it is published; single entries do, each
 * by one store.
 */
struct fib_node {
	uint64_t starts; /* slots where a run begins; slot 0 always */
	uint32_t
		prefixes; /* the writer's: reference of struct fib_prefixes; of a node that is retired, the next one */
	uint32_t cover; /* the writer's: what the node's slots have where none of its prefixes is */
	uint32_t entry[]; /* of each run */
};

/*
 * The prefixes that end in a node, 1 to 6 bits into it, for the writer: the bit of a prefix of `l` bits
 * with value `v` is 2^l + v, so that bits are sorted by length, then value; next hops in this order.
 */
struct fib_prefixes {
	uint64_t present[2];
	uint32_t next_hop[];
};

/* Nodes that no new look-up finds, chained by `prefixes`. */
struct fib_retired {
	uint32_t first;
	uint32_t n;
};

struct fib {
	uint32_t *root; /* an entry for each value of the first bits */
	uint32_t *
		direct; /* or NULL: an entry for each value of the first bits and those of the first node */
	struct arena arena;
	unsigned version;
	unsigned most; /* bits of an address */
	enum simd_level simd;
	/* the writer's */
	uint32_t *
		shorts; /* next hops of prefixes up to the root's bits, numbered as in nodes; 1 more, 0: none */
	struct rte_rcu_qsbr *qsbr;
	struct fib_retired fresh, waiting; /* `waiting` for `token`, `fresh` for what comes after */
	uint64_t token;
	uint32_t held[256]; /* how many prefixes of 8 bits and more begin with these 8 */
	struct fib_stats stats;
};

static inline struct fib_node *fib_node_at(const struct fib *fib, uint32_t entry)
{
	return arena_at(&fib->arena, entry & FIB_REFERENCE);
}

static inline uint32_t fib_load(const uint32_t *entry)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

static inline void fib_store(uint32_t *entry, uint32_t value)
{
	__atomic_store_n(entry, value, __ATOMIC_RELEASE);
}

/* The slot of an address in a node that begins at bit `depth`. */
static inline unsigned fib_slot(struct route_bits bits, unsigned depth)
{
	uint64_t slot;

	if (depth <= 64 - FIB_STEP)
		slot = bits.high >> (64 - FIB_STEP - depth);
	else if (depth < 64)
		slot = bits.high << (depth - 64 + FIB_STEP) | bits.low >> (128 - FIB_STEP - depth);
	else if (depth <= 128 - FIB_STEP)
		slot = bits.low >> (128 - FIB_STEP - depth);
	else
		slot = bits.low << (depth - 128 + FIB_STEP);
	return (unsigned)(slot % FIB_SLOTS);
}

/* The entry of the run that a slot lies in. */
static inline uint32_t *fib_entry(struct fib_node *node, unsigned slot)
{
	return &node->entry[__builtin_popcountll(node->starts << (FIB_SLOTS - 1 - slot)) - 1];
}

/* The index of an address in the root, and the number of a short prefix among `shorts`. */
static inline uint32_t fib_root_index(struct route_bits bits)
{
	return (uint32_t)(bits.high >> (64 - FIB_ROOT_BITS));
}

static inline uint32_t fib_short_number(struct route_bits bits, unsigned length)
{
	return UINT32_C(1) << length | (length == 0 ? 0 : (uint32_t)(bits.high >> (64 - length)));
}

/* The bits of a prefix, in the node at `depth` that it ends in, as numbered in struct fib_prefixes. */
static inline unsigned fib_prefix_number(struct route_bits bits, unsigned depth, unsigned length)
{
	unsigned l = length - depth;

	return 1u << l | fib_slot(bits, depth) >> (FIB_STEP - l);
}

static inline bool fib_has(const struct fib_prefixes *prefixes, unsigned number)
{
	return prefixes->present[number / 64] >> number % 64 & 1;
}

/* How many prefixes there are before this number. */
static inline unsigned fib_rank(const uint64_t present[2], unsigned number)
{
	uint64_t below = (UINT64_C(1) << number % 64) - 1;

	if (number < 64)
		return (unsigned)__builtin_popcountll(present[0] & below);
	return (unsigned)(__builtin_popcountll(present[0]) +
			  __builtin_popcountll(present[1] & below));
}

/* The depth of the node that a prefix longer than the root's bits ends in. */
static inline unsigned fib_depth_of(unsigned length)
{
	return FIB_ROOT_BITS + (length - FIB_ROOT_BITS - 1) / FIB_STEP * FIB_STEP;
}

/* The node where a prefix ends, or NULL when there is none. */
struct fib_node *fib_node_of(const struct fib *fib, struct route_bits bits, unsigned length);

/* After changes of these entries of the root, or of nodes that they lead to: the direct entries follow. */
void fib_follow(struct fib *fib, uint32_t first, uint32_t n);

/* Takes a node out of use, when nothing leads to it any more. */
void fib_retire(struct fib *fib, uint32_t reference);

/*
 * After a change has found no room: frees what readers are done with and gathers blocks, so that all that is free can be
 * taken. Returns 0 when there may be room now, -EAGAIN or -ENOSPC.
 */
int fib_make_room(struct fib *fib);

/* The look-ups, once per SIMD level: */
#define FIB_LOOKUPS(level)                                                            \
	void fib_burst4_##level(const struct fib *fib, const uint32_t *addresses,     \
		uint32_t *next_hops, unsigned n);                                     \
	void fib_burst6_##level(const struct fib *fib, const uint8_t(*addresses)[16], \
		uint32_t *next_hops, unsigned n)

FIB_LOOKUPS(portable);
FIB_LOOKUPS(sse42);
FIB_LOOKUPS(avx2);
FIB_LOOKUPS(avx512);
