/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/fib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "route/fib_private.h"

#define ROOT_BYTES (sizeof(uint32_t) << FIB_ROOT_BITS)
#define SHORTS_BYTES (sizeof(uint32_t) << (FIB_ROOT_BITS + 1))

size_t fib_memory_for(unsigned version, uint64_t routes)
{
	size_t each = version == 4 ? 20 : 48;
	size_t bytes = FIB_MIN_MEMORY;

	if (routes > FIB_MAX_MEMORY / each)
		return FIB_MAX_MEMORY;
	bytes += (size_t)routes * each;
	return bytes < FIB_MAX_MEMORY ? bytes : FIB_MAX_MEMORY;
}

/* All mappings but the arena. */
static int take_arrays(struct fib *fib, bool direct)
{
	fib->root = mapping_create(ROOT_BYTES, MAPPING_HUGE);
	fib->shorts = mapping_create(SHORTS_BYTES, 0);
	if (direct)
		fib->direct = mapping_create(FIB_DIRECT_MEMORY, MAPPING_HUGE);
	if (!fib->root || !fib->shorts || (direct && !fib->direct))
		return -errno;
	for (size_t i = 0; i < (size_t)1 << FIB_ROOT_BITS; i++)
		fib->root[i] = FIB_NO_ROUTE;
	fib_follow(fib, 0, UINT32_C(1) << FIB_ROOT_BITS);
	return 0;
}

static size_t array_bytes(bool direct)
{
	return ROOT_BYTES + SHORTS_BYTES + (direct ? FIB_DIRECT_MEMORY : 0);
}

int fib_create(struct fib **out, const struct fib_config *config)
{
	size_t least = FIB_MIN_MEMORY + (config->direct ? FIB_DIRECT_MEMORY : 0);
	struct fib *fib;
	int ret;

	*out = NULL;
	if ((config->version != 4 && config->version != 6) || config->memory < least ||
		config->memory > FIB_MAX_MEMORY || config->simd >= SIMD_N_LEVELS ||
		(config->direct && config->version != 4))
		return -EINVAL;
	fib = calloc(1, sizeof(*fib));
	if (!fib)
		return -ENOMEM;
	fib->version = config->version;
	fib->most = config->version == 4 ? 32 : 128;
	fib->simd = config->simd;
	fib->qsbr = config->qsbr;
	fib->stats.memory = config->memory;
	/* the books of the arena come out of the limit, too */
	size_t pages = (config->memory - array_bytes(config->direct)) /
		       (ARENA_PAGE + sizeof(struct arena_page));

	ret = arena_init(&fib->arena, pages * ARENA_PAGE);
	if (ret < 0) {
		free(fib);
		return ret;
	}
	ret = take_arrays(fib, config->direct);
	if (ret < 0) {
		fib_destroy(fib);
		return ret;
	}
	*out = fib;
	return 0;
}

void fib_destroy(struct fib *fib)
{
	if (!fib)
		return;
	mapping_destroy(fib->direct, FIB_DIRECT_MEMORY);
	mapping_destroy(fib->shorts, SHORTS_BYTES);
	mapping_destroy(fib->root, ROOT_BYTES);
	arena_fini(&fib->arena);
	free(fib);
}

unsigned fib_version(const struct fib *fib)
{
	return fib->version;
}

void fib_follow(struct fib *fib, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; fib->direct && i < first + n; i++) {
		uint32_t *direct = &fib->direct[(size_t)i * FIB_SLOTS], entry = fib->root[i];
		const uint32_t *run = NULL;
		uint64_t starts = 0;

		if (entry & FIB_IS_NODE) {
			starts = fib_node_at(fib, entry)->starts;
			run = fib_node_at(fib, entry)->entry;
		}

		for (unsigned slot = 0; slot < FIB_SLOTS; slot++) {
			if (starts >> slot & 1)
				entry = *run++;
			if (direct[slot] != entry)
				fib_store(&direct[slot], entry);
		}
	}
}

/* Memory that readers may still use. */

void fib_retire(struct fib *fib, uint32_t reference)
{
	struct fib_node *node = fib_node_at(fib, reference);

	/* readers look at the bitmap and the entries, not at this */
	node->prefixes = fib->fresh.first;
	fib->fresh.first = reference;
	fib->fresh.n++;
}

static void give_all(struct fib *fib, struct fib_retired *retired)
{
	while (retired->first != ARENA_NONE) {
		uint32_t reference = retired->first;

		retired->first = fib_node_at(fib, reference)->prefixes;
		arena_give(&fib->arena, reference);
	}
	retired->n = 0;
}

void fib_reclaim(struct fib *fib)
{
	if (fib->waiting.n > 0) {
		if (fib->qsbr && rte_rcu_qsbr_check(fib->qsbr, fib->token, false) != 1)
			return;
		give_all(fib, &fib->waiting);
	}
	if (fib->fresh.n == 0)
		return;
	fib->waiting = fib->fresh;
	fib->fresh = (struct fib_retired){.first = ARENA_NONE};
	if (fib->qsbr)
		fib->token = rte_rcu_qsbr_start(fib->qsbr);
	if (!fib->qsbr || rte_rcu_qsbr_check(fib->qsbr, fib->token, false) == 1)
		give_all(fib, &fib->waiting);
}

/* Gathering. */

static void move_prefixes(struct fib *fib, struct fib_node *node)
{
	if (node->prefixes == ARENA_NONE || !arena_leaves(&fib->arena, node->prefixes))
		return;
	size_t bytes = arena_block_bytes(&fib->arena, node->prefixes);
	uint32_t moved = arena_take(&fib->arena, FIB_KIND_PREFIXES, bytes);

	if (moved == ARENA_NONE)
		return;
	memcpy(arena_at(&fib->arena, moved), arena_at(&fib->arena, node->prefixes), bytes);
	arena_give(&fib->arena, node->prefixes);
	node->prefixes = moved;
}

/* Moves the node that an entry leads to, if its page is to become free, and those below. */
static void move_node(struct fib *fib, uint32_t *entry)
{
	uint32_t old = *entry & FIB_REFERENCE;
	struct fib_node *node = fib_node_at(fib, old);

	move_prefixes(fib, node);
	if (arena_leaves(&fib->arena, old)) {
		size_t bytes = arena_block_bytes(&fib->arena, old);
		uint32_t moved = arena_take(&fib->arena, FIB_KIND_NODE, bytes);

		if (moved != ARENA_NONE) {
			memcpy(arena_at(&fib->arena, moved), node, bytes);
			node = arena_at(&fib->arena, moved);
			fib_store(entry, moved | (*entry & ~FIB_REFERENCE));
			fib_retire(fib, old);
		}
	}
	unsigned runs = (unsigned)__builtin_popcountll(node->starts);

	for (unsigned i = 0; i < runs; i++)
		if (node->entry[i] & FIB_IS_NODE)
			move_node(fib, &node->entry[i]);
}

int fib_make_room(struct fib *fib)
{
	uint32_t pages = fib->arena.n_in_use;
	uint32_t blocks = fib->fresh.n + fib->waiting.n;

	/* twice: what is freed waits in two steps */
	fib_reclaim(fib);
	fib_reclaim(fib);
	if (fib->waiting.n == 0 && arena_thin_out(&fib->arena) > 0) {
		fib->stats.gathered++;
		for (size_t i = 0; i < (size_t)1 << FIB_ROOT_BITS; i++)
			if (fib->root[i] & FIB_IS_NODE)
				move_node(fib, &fib->root[i]);
		fib_follow(fib, 0, UINT32_C(1) << FIB_ROOT_BITS);
		fib_reclaim(fib);
	}
	if (fib->arena.n_in_use < pages || fib->fresh.n + fib->waiting.n < blocks)
		return 0;
	return fib->waiting.n > 0 ? -EAGAIN : -ENOSPC;
}

/* The prefixes that the table holds. */

struct fib_node *fib_node_of(const struct fib *fib, struct route_bits bits, unsigned length)
{
	uint32_t entry = fib->root[fib_root_index(bits)];
	unsigned last = fib_depth_of(length);

	for (unsigned depth = FIB_ROOT_BITS; depth < last && entry & FIB_IS_NODE; depth += FIB_STEP)
		entry = *fib_entry(fib_node_at(fib, entry), fib_slot(bits, depth));
	return entry & FIB_IS_NODE ? fib_node_at(fib, entry) : NULL;
}

static uint32_t next_hop_in(const struct fib *fib, const struct fib_node *node, unsigned number)
{
	const struct fib_prefixes *prefixes = arena_at(&fib->arena, node->prefixes);

	if (node->prefixes == ARENA_NONE || !fib_has(prefixes, number))
		return FIB_NO_ROUTE;
	return prefixes->next_hop[fib_rank(prefixes->present, number)];
}

static uint32_t get(const struct fib *fib, struct route_bits bits, unsigned length)
{
	if (length <= FIB_ROOT_BITS) {
		uint32_t next_hop = fib->shorts[fib_short_number(bits, length)];

		return next_hop == 0 ? FIB_NO_ROUTE : next_hop - 1;
	}
	const struct fib_node *node = fib_node_of(fib, bits, length);

	return node ? next_hop_in(fib, node, fib_prefix_number(bits, fib_depth_of(length), length))
		    : FIB_NO_ROUTE;
}

uint32_t fib_get(const struct fib *fib, const struct route_prefix *prefix)
{
	if (prefix->version != fib->version || !route_prefix_valid(prefix))
		return FIB_NO_ROUTE;
	return get(fib, route_bits_of(prefix->addr, prefix->version), prefix->length);
}

uint32_t fib_match(const struct fib *fib, const uint8_t addr[16], struct route_prefix *prefix)
{
	struct route_bits bits = route_bits_of(addr, fib->version);
	uint32_t next_hop = FIB_NO_ROUTE;
	unsigned length = fib->most + 1;

	/* the longest first */
	while (next_hop == FIB_NO_ROUTE && length > 0)
		next_hop = get(fib, bits, --length);
	*prefix =
		(struct route_prefix){.version = (uint8_t)fib->version, .length = (uint8_t)length};
	if (next_hop != FIB_NO_ROUTE)
		route_bits_to(route_bits_cut(bits, length), prefix->addr);
	return next_hop;
}

struct walk {
	const struct fib *fib;
	fib_walk_fn each;
	void *context;
};

static bool tell(
	const struct walk *walk, struct route_bits bits, unsigned length, uint32_t next_hop)
{
	struct route_prefix prefix = {
		.version = (uint8_t)walk->fib->version, .length = (uint8_t)length};

	route_bits_to(bits, prefix.addr);
	return walk->each(walk->context, &prefix, next_hop);
}

/* `bits` with a bit set at `at`. */
static struct route_bits with_bit(struct route_bits bits, unsigned at)
{
	if (at < 64)
		bits.high |= UINT64_C(1) << (63 - at);
	else if (at < 128)
		bits.low |= UINT64_C(1) << (127 - at);
	return bits;
}

/* All that lies below a number of a node that begins at `depth`; below the last bits the next nodes. */
static bool walk_node(const struct walk *walk, struct fib_node *node, struct route_bits bits,
	unsigned depth, unsigned number)
{
	unsigned length = depth + 31 - (unsigned)__builtin_clz(number);

	if (number > 1) {
		uint32_t next_hop = next_hop_in(walk->fib, node, number);

		if (next_hop != FIB_NO_ROUTE && !tell(walk, bits, length, next_hop))
			return false;
	}
	if (number >= FIB_SLOTS) {
		uint32_t entry = *fib_entry(node, number - FIB_SLOTS);

		return !(entry & FIB_IS_NODE) ||
		       walk_node(walk, fib_node_at(walk->fib, entry), bits, depth + FIB_STEP, 1);
	}
	return walk_node(walk, node, bits, depth, 2 * number) &&
	       walk_node(walk, node, with_bit(bits, length), depth, 2 * number + 1);
}

static bool walk_root(const struct walk *walk, struct route_bits bits, uint32_t number)
{
	const struct fib *fib = walk->fib;
	unsigned length = 31 - (unsigned)__builtin_clz(number);

	if (length == 8 && fib->held[number - 256] == 0)
		return true;
	if (fib->shorts[number] != 0 && !tell(walk, bits, length, fib->shorts[number] - 1))
		return false;
	if (length == FIB_ROOT_BITS) {
		uint32_t entry = fib->root[fib_root_index(bits)];

		return !(entry & FIB_IS_NODE) ||
		       walk_node(walk, fib_node_at(fib, entry), bits, FIB_ROOT_BITS, 1);
	}
	return walk_root(walk, bits, 2 * number) &&
	       walk_root(walk, with_bit(bits, length), 2 * number + 1);
}

void fib_walk(const struct fib *fib, fib_walk_fn each, void *context)
{
	const struct walk walk = {.fib = fib, .each = each, .context = context};

	walk_root(&walk, (struct route_bits){0, 0}, 1);
}

void fib_stats(const struct fib *fib, struct fib_stats *stats)
{
	*stats = fib->stats;
	stats->in_use = array_bytes(fib->direct != NULL) + arena_in_use(&fib->arena);
	stats->waiting = fib->waiting.n + fib->fresh.n;
}

/* Look-ups, by level; those that a processor cannot have are never its table's. */
static const struct {
	void (*burst4)(
		const struct fib *fib, const uint32_t *addresses, uint32_t *next_hops, unsigned n);
	void (*burst6)(const struct fib *fib, const uint8_t (*addresses)[16], uint32_t *next_hops,
		unsigned n);
} lookups[SIMD_N_LEVELS] = {
	[SIMD_PORTABLE] = {fib_burst4_portable, fib_burst6_portable},
#ifdef __x86_64__
	[SIMD_SSE42] = {fib_burst4_sse42, fib_burst6_sse42},
	[SIMD_AVX2] = {fib_burst4_avx2, fib_burst6_avx2},
	[SIMD_AVX512] = {fib_burst4_avx512, fib_burst6_avx512},
#endif
};

void fib_lookup4_burst(
	const struct fib *fib, const uint32_t *addresses, uint32_t *next_hops, unsigned n)
{
	lookups[fib->simd].burst4(fib, addresses, next_hops, n);
}

void fib_lookup6_burst(
	const struct fib *fib, const uint8_t (*addresses)[16], uint32_t *next_hops, unsigned n)
{
	lookups[fib->simd].burst6(fib, addresses, next_hops, n);
}

uint32_t fib_lookup4(const struct fib *fib, uint32_t address)
{
	uint32_t next_hop;

	fib_lookup4_burst(fib, &address, &next_hop, 1);
	return next_hop;
}

uint32_t fib_lookup6(const struct fib *fib, const uint8_t address[16])
{
	uint8_t one[1][16];
	uint32_t next_hop;

	memcpy(one[0], address, sizeof(one[0]));
	fib_lookup6_burst(fib, one, &next_hop, 1);
	return next_hop;
}
