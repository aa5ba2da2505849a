/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes. The node that a prefix ends in is computed again from its prefixes and put in the place of
 * the old one by one store; what it covers below gets its next hop in place. All memory is taken before
 * anything changes.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "route/fib_private.h"

#define MAX_PREFIXES 126
/* Nodes on the way to the longest prefix. */
#define MAX_PATH ((128 - FIB_ROOT_BITS + FIB_STEP - 1) / FIB_STEP)

/* A node taken apart. */
struct draft {
	uint64_t present[2];
	uint64_t children;	     /* slots that lead to nodes */
	uint32_t child[FIB_SLOTS];   /* entries of these */
	uint32_t covered[FIB_SLOTS]; /* next hops of the slots by prefixes alone */
	uint32_t next_hop[MAX_PREFIXES];
	unsigned n;
	uint32_t cover;
};

/* The slots of a prefix: the first, and how many. */
static inline unsigned first_slot(unsigned number, unsigned *n)
{
	unsigned free_bits = FIB_STEP - (31 - (unsigned)__builtin_clz(number));

	*n = 1u << free_bits;
	return (number << free_bits) - FIB_SLOTS;
}

static inline uint64_t slots_mask(unsigned first, unsigned n)
{
	return (n == FIB_SLOTS ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << first;
}

static void take_apart(const struct fib *fib, struct draft *draft, const struct fib_node *node)
{
	uint64_t left = node->starts;

	draft->cover = node->cover;
	draft->children = 0;
	for (unsigned i = 0; left != 0; i++, left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);

		draft->child[slot] = node->entry[i];
		draft->children |= (uint64_t)(node->entry[i] >> 31) << slot;
	}
	draft->present[0] = draft->present[1] = 0;
	draft->n = 0;
	if (node->prefixes == ARENA_NONE)
		return;
	const struct fib_prefixes *prefixes = arena_at(&fib->arena, node->prefixes);

	draft->present[0] = prefixes->present[0];
	draft->present[1] = prefixes->present[1];
	draft->n = fib_rank(prefixes->present, 127) + fib_has(prefixes, 127);
	memcpy(draft->next_hop, prefixes->next_hop, draft->n * sizeof(*draft->next_hop));
}

static void add_prefix(struct draft *draft, unsigned number, uint32_t next_hop)
{
	unsigned at = fib_rank(draft->present, number);

	if (!(draft->present[number / 64] >> number % 64 & 1)) {
		draft->present[number / 64] |= UINT64_C(1) << number % 64;
		memmove(&draft->next_hop[at + 1], &draft->next_hop[at],
			(draft->n++ - at) * sizeof(*draft->next_hop));
	}
	draft->next_hop[at] = next_hop;
}

static void drop_prefix(struct draft *draft, unsigned number)
{
	unsigned at = fib_rank(draft->present, number);

	draft->present[number / 64] &= ~(UINT64_C(1) << number % 64);
	memmove(&draft->next_hop[at], &draft->next_hop[at + 1],
		(--draft->n - at) * sizeof(*draft->next_hop));
}

/* Finds the slots where runs begin, by prefixes and children, and computes `covered`. */
static uint64_t lay_out(struct draft *draft)
{
	uint64_t starts = 1 | draft->children | draft->children << 1;
	unsigned at = 0;

	for (unsigned slot = 0; slot < FIB_SLOTS; slot++)
		draft->covered[slot] = draft->cover;
	/* shorter ones first, so that longer ones overwrite them */
	for (unsigned word = 0; word < 2; word++) {
		for (uint64_t left = draft->present[word]; left != 0; left &= left - 1) {
			unsigned number = word * 64 + (unsigned)__builtin_ctzll(left), n;
			unsigned first = first_slot(number, &n);
			uint32_t next_hop = draft->next_hop[at++];

			starts |= UINT64_C(1) << first;
			if (first + n < FIB_SLOTS)
				starts |= UINT64_C(1) << (first + n);
			for (unsigned slot = first; slot < first + n; slot++)
				draft->covered[slot] = next_hop;
		}
	}
	/* many runs: all slots, and no bitmap to read */
	return __builtin_popcountll(starts) <= FIB_LARGE_RUNS ? starts : ~UINT64_C(0);
}

/* Slots that lie in some prefix of the node. */
static uint64_t slots_in_prefixes(const struct fib *fib, const struct fib_node *node)
{
	uint64_t slots = 0;

	if (node->prefixes == ARENA_NONE)
		return 0;
	const struct fib_prefixes *prefixes = arena_at(&fib->arena, node->prefixes);

	for (unsigned word = 0; word < 2; word++) {
		for (uint64_t left = prefixes->present[word]; left != 0; left &= left - 1) {
			unsigned n, number = word * 64 + (unsigned)__builtin_ctzll(left);
			unsigned first = first_slot(number, &n);

			slots |= slots_mask(first, n);
		}
	}
	return slots;
}

/* The prefix that covers a node has another next hop now: all slots below it without a prefix of their own get that. */
static void cover(struct fib *fib, struct fib_node *node, uint32_t next_hop)
{
	uint64_t held = slots_in_prefixes(fib, node);
	uint64_t left = node->starts;

	node->cover = next_hop;
	for (unsigned i = 0; left != 0; i++, left &= left - 1) {
		if (held & left & -left)
			continue;
		if (node->entry[i] & FIB_IS_NODE)
			cover(fib, fib_node_at(fib, node->entry[i]), next_hop);
		else
			fib_store(&node->entry[i], next_hop);
	}
}

/* Writes the runs of a node; one that is published already must have at least these starts. */
static void write_runs(const struct draft *draft, struct fib_node *node)
{
	uint64_t left = node->starts;

	for (unsigned i = 0; left != 0; i++, left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		bool is_node = draft->children >> slot & 1;

		fib_store(&node->entry[i], is_node ? draft->child[slot] : draft->covered[slot]);
	}
}

static size_t node_bytes(uint64_t starts)
{
	unsigned runs = (unsigned)__builtin_popcountll(starts);

	runs = runs <= FIB_SMALL_RUNS	? FIB_SMALL_RUNS
	       : runs <= FIB_LARGE_RUNS ? FIB_LARGE_RUNS
					: FIB_SLOTS;
	return sizeof(struct fib_node) + runs * sizeof(uint32_t);
}

static uint32_t entry_of(uint32_t reference, uint64_t starts)
{
	return reference | FIB_IS_NODE | (starts == ~UINT64_C(0) ? FIB_IS_FULL : 0);
}

static size_t prefixes_bytes(unsigned n)
{
	return sizeof(struct fib_prefixes) + n * sizeof(uint32_t);
}

/* The block for the prefixes of a draft: that one if it is right, a new one, or ARENA_NONE with -ENOSPC. */
static int prefixes_block(struct fib *fib, const struct draft *draft, uint32_t old, uint32_t *out)
{
	size_t bytes = prefixes_bytes(draft->n);

	*out = old;
	if (draft->n == 0) {
		*out = ARENA_NONE;
		return 0;
	}
	if (old != ARENA_NONE && arena_block_bytes(&fib->arena, old) == arena_class_bytes(bytes))
		return 0;
	*out = arena_take(&fib->arena, FIB_KIND_PREFIXES, bytes);
	return *out == ARENA_NONE ? -ENOSPC : 0;
}

static void write_prefixes(struct fib *fib, const struct draft *draft, uint32_t reference)
{
	struct fib_prefixes *prefixes;

	if (reference == ARENA_NONE)
		return;
	prefixes = arena_at(&fib->arena, reference);
	prefixes->present[0] = draft->present[0];
	prefixes->present[1] = draft->present[1];
	memcpy(prefixes->next_hop, draft->next_hop, draft->n * sizeof(*draft->next_hop));
}

/* A node that nothing leads to yet. Returns its entry, or 0 when there is no room. */
static uint32_t make_node(struct fib *fib, struct draft *draft)
{
	uint64_t starts = lay_out(draft);
	uint32_t prefixes;

	if (prefixes_block(fib, draft, ARENA_NONE, &prefixes) < 0)
		return 0;
	uint32_t reference = arena_take(&fib->arena, FIB_KIND_NODE, node_bytes(starts));

	if (reference == ARENA_NONE) {
		if (prefixes != ARENA_NONE)
			arena_give(&fib->arena, prefixes);
		return 0;
	}
	struct fib_node *node = fib_node_at(fib, reference);

	node->starts = starts;
	node->cover = draft->cover;
	node->prefixes = prefixes;
	write_runs(draft, node);
	write_prefixes(fib, draft, prefixes);
	return entry_of(reference, starts);
}

/* Nodes below get what the draft's prefixes have for them, among these slots. */
static void cover_children(struct fib *fib, const struct draft *draft, uint64_t slots)
{
	for (uint64_t left = draft->children & slots; left != 0; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		struct fib_node *child = fib_node_at(fib, draft->child[slot]);

		if (child->cover != draft->covered[slot])
			cover(fib, child, draft->covered[slot]);
	}
}

/*
 * Makes the node that `entry` leads to what the draft says. `slots` are those whose next hop may have
 * changed. -ENOSPC only when runs or prefixes are more than before.
 */
static int replace_node(struct fib *fib, uint32_t *entry, struct draft *draft, uint64_t slots)
{
	uint32_t old = *entry & FIB_REFERENCE, prefixes, fresh = ARENA_NONE;
	struct fib_node *node = fib_node_at(fib, old);
	uint64_t starts = lay_out(draft);
	uint32_t old_prefixes = node->prefixes;

	if (prefixes_block(fib, draft, old_prefixes, &prefixes) < 0) {
		if (old_prefixes == ARENA_NONE ||
			arena_block_bytes(&fib->arena, old_prefixes) < prefixes_bytes(draft->n))
			return -ENOSPC;
		prefixes = old_prefixes; /* larger than it must be */
	}
	if (starts != node->starts) {
		fresh = arena_take(&fib->arena, FIB_KIND_NODE, node_bytes(starts));
		/* more runs than must be do no harm */
		if (fresh == ARENA_NONE && (starts & ~node->starts) != 0) {
			if (prefixes != old_prefixes && prefixes != ARENA_NONE)
				arena_give(&fib->arena, prefixes);
			return -ENOSPC;
		}
	}
	write_prefixes(fib, draft, prefixes);
	if (prefixes != old_prefixes && old_prefixes != ARENA_NONE)
		arena_give(&fib->arena, old_prefixes);
	if (fresh != ARENA_NONE) {
		node = fib_node_at(fib, fresh);
		node->starts = starts;
		node->cover = draft->cover;
	}
	node->prefixes = prefixes;
	write_runs(draft, node);
	if (fresh != ARENA_NONE) {
		fib_store(entry, entry_of(fresh, starts));
		fib_retire(fib, old);
	}
	cover_children(fib, draft, slots);
	return 0;
}

/* The entries on the way to the node of a prefix. */
struct path {
	uint32_t *entry[MAX_PATH];
	unsigned n;    /* entries that lead to nodes, from the root's on */
	uint32_t *end; /* the entry that leads on from there, or where the node is missing */
};

static void find_path(
	const struct fib *fib, struct path *path, struct route_bits bits, unsigned last)
{
	unsigned depth = FIB_ROOT_BITS;

	path->n = 0;
	path->end = &fib->root[fib_root_index(bits)];
	for (; depth <= last && *path->end & FIB_IS_NODE; depth += FIB_STEP) {
		path->entry[path->n++] = path->end;
		path->end = fib_entry(fib_node_at(fib, *path->end), fib_slot(bits, depth));
	}
}

/* Gives back a chain of nodes that was never published. */
static void give_chain(struct fib *fib, uint32_t entry)
{
	while (entry & FIB_IS_NODE) {
		const struct fib_node *node = fib_node_at(fib, entry);
		uint32_t next = 0;

		for (unsigned i = 0; i < (unsigned)__builtin_popcountll(node->starts); i++)
			if (node->entry[i] & FIB_IS_NODE)
				next = node->entry[i];
		if (node->prefixes != ARENA_NONE)
			arena_give(&fib->arena, node->prefixes);
		arena_give(&fib->arena, entry & FIB_REFERENCE);
		entry = next;
	}
}

/* Nodes from `depth` down to the one at `last`, with the prefix in it. Returns the entry of the first, or 0. */
static uint32_t make_chain(struct fib *fib, struct route_bits bits, unsigned length,
	uint32_t next_hop, unsigned depth, uint32_t around)
{
	unsigned at = fib_depth_of(length);
	struct draft draft = {.cover = around};
	uint32_t entry;

	add_prefix(&draft, fib_prefix_number(bits, at, length), next_hop);
	entry = make_node(fib, &draft);
	while (entry != 0 && at > depth) {
		at -= FIB_STEP;
		unsigned slot = fib_slot(bits, at);

		draft.present[0] = draft.present[1] = 0;
		draft.n = 0;
		draft.children = UINT64_C(1) << slot;
		draft.child[slot] = entry;
		uint32_t above = make_node(fib, &draft);

		if (above == 0)
			give_chain(fib, entry);
		entry = above;
	}
	return entry;
}

/* Hangs a chain of nodes below the last node of the path. */
static int add_chain(struct fib *fib, const struct path *path, struct route_bits bits,
	unsigned length, uint32_t next_hop)
{
	unsigned depth = FIB_ROOT_BITS + path->n * FIB_STEP;
	uint32_t entry = make_chain(fib, bits, length, next_hop, depth, *path->end);

	if (entry == 0)
		return -ENOSPC;
	if (path->n == 0) {
		fib_store(path->end, entry);
		return 0;
	}
	uint32_t *above = path->entry[path->n - 1];
	unsigned slot = fib_slot(bits, depth - FIB_STEP);
	struct draft draft;

	take_apart(fib, &draft, fib_node_at(fib, *above));
	draft.children |= UINT64_C(1) << slot;
	draft.child[slot] = entry;
	int ret = replace_node(fib, above, &draft, 0);

	if (ret < 0)
		give_chain(fib, entry);
	return ret;
}

static int add_long(
	struct fib *fib, struct route_bits bits, unsigned length, uint32_t next_hop, bool *is_new)
{
	unsigned last = fib_depth_of(length);
	unsigned number = fib_prefix_number(bits, last, length), n;
	struct draft draft;
	struct path path;

	find_path(fib, &path, bits, last);
	if (FIB_ROOT_BITS + path.n * FIB_STEP <= last) {
		*is_new = true;
		return add_chain(fib, &path, bits, length, next_hop);
	}
	uint32_t *entry = path.entry[path.n - 1];
	unsigned first = first_slot(number, &n);

	take_apart(fib, &draft, fib_node_at(fib, *entry));
	unsigned before = draft.n;

	add_prefix(&draft, number, next_hop);
	*is_new = draft.n > before;
	return replace_node(fib, entry, &draft, slots_mask(first, n));
}

/* The slots of the root that a short prefix has and no longer one takes from it. */
static void cover_root(struct fib *fib, uint32_t number, unsigned length, uint32_t next_hop)
{
	if (length < FIB_ROOT_BITS) {
		for (uint32_t half = 2 * number; half <= 2 * number + 1; half++)
			if (fib->shorts[half] == 0)
				cover_root(fib, half, length + 1, next_hop);
		return;
	}
	uint32_t *entry = &fib->root[number - (UINT32_C(1) << FIB_ROOT_BITS)];

	if (*entry & FIB_IS_NODE)
		cover(fib, fib_node_at(fib, *entry), next_hop);
	else
		fib_store(entry, next_hop);
}

static bool add_short(struct fib *fib, struct route_bits bits, unsigned length, uint32_t next_hop)
{
	uint32_t number = fib_short_number(bits, length);
	bool is_new = fib->shorts[number] == 0;

	fib->shorts[number] = next_hop + 1;
	cover_root(fib, number, length, next_hop);
	return is_new;
}

static void follow(struct fib *fib, struct route_bits bits, unsigned length)
{
	unsigned free_bits = length < FIB_ROOT_BITS ? FIB_ROOT_BITS - length : 0;

	fib_follow(fib, fib_root_index(bits), UINT32_C(1) << free_bits);
}

static int add(
	struct fib *fib, struct route_bits bits, unsigned length, uint32_t next_hop, bool *is_new)
{
	if (length > FIB_ROOT_BITS)
		return add_long(fib, bits, length, next_hop, is_new);
	*is_new = add_short(fib, bits, length, next_hop);
	return 0;
}

int fib_add(struct fib *fib, const struct route_prefix *prefix, uint32_t next_hop)
{
	bool is_new = false;

	if (prefix->version != fib->version || !route_prefix_valid(prefix) ||
		next_hop > FIB_MAX_NEXT_HOP)
		return -EINVAL;
	struct route_bits bits = route_bits_of(prefix->addr, prefix->version);

	fib_reclaim(fib);
	int ret = add(fib, bits, prefix->length, next_hop, &is_new);

	if (ret == -ENOSPC) {
		ret = fib_make_room(fib);
		/* from the start: nodes may have moved */
		if (ret == 0)
			ret = add(fib, bits, prefix->length, next_hop, &is_new);
	}
	if (ret < 0) {
		fib->stats.refused++;
		return ret;
	}
	follow(fib, bits, prefix->length);
	fib->stats.routes += is_new;
	fib->held[bits.high >> 56] += is_new && prefix->length >= 8;
	fib->stats.added += is_new;
	fib->stats.changed += !is_new;
	return !is_new;
}

/* Takes away the nodes at the end of the path that have become empty, the last one first. */
static void drop_nodes(struct fib *fib, const struct path *path, struct route_bits bits)
{
	unsigned keep = path->n - 1; /* nodes of the path that stay */
	struct draft draft;

	while (keep > 0) {
		const struct fib_node *above = fib_node_at(fib, *path->entry[keep - 1]);

		take_apart(fib, &draft, above);
		unsigned slot = fib_slot(bits, FIB_ROOT_BITS + (keep - 1) * FIB_STEP);

		draft.children &= ~(UINT64_C(1) << slot);
		if (draft.n > 0 || draft.children != 0)
			break;
		keep--;
	}
	uint32_t gone = *path->entry[keep];

	if (keep == 0)
		fib_store(path->entry[0], fib_node_at(fib, gone)->cover);
	else
		/* fewer runs always fit */
		(void)replace_node(fib, path->entry[keep - 1], &draft, 0);
	while (gone & FIB_IS_NODE) {
		const struct fib_node *node = fib_node_at(fib, gone);
		uint32_t below = 0;

		for (unsigned i = 0; i < (unsigned)__builtin_popcountll(node->starts); i++)
			if (node->entry[i] & FIB_IS_NODE)
				below = node->entry[i];
		if (node->prefixes != ARENA_NONE)
			arena_give(&fib->arena, node->prefixes);
		fib_retire(fib, gone & FIB_REFERENCE);
		gone = below;
	}
}

static void delete_long(struct fib *fib, struct route_bits bits, unsigned length)
{
	unsigned last = fib_depth_of(length);
	unsigned number = fib_prefix_number(bits, last, length), n;
	unsigned first = first_slot(number, &n);
	struct draft draft;
	struct path path;

	find_path(fib, &path, bits, last);
	assert(path.n > 0);
	uint32_t *entry = path.entry[path.n - 1];

	take_apart(fib, &draft, fib_node_at(fib, *entry));
	drop_prefix(&draft, number);
	if (draft.n == 0 && draft.children == 0)
		drop_nodes(fib, &path, bits);
	else
		(void)replace_node(fib, entry, &draft, slots_mask(first, n));
}

static void delete_short(struct fib *fib, struct route_bits bits, unsigned length)
{
	uint32_t number = fib_short_number(bits, length), around = number;

	fib->shorts[number] = 0;
	do
		around /= 2;
	while (around > 0 && fib->shorts[around] == 0);
	cover_root(fib, number, length, around == 0 ? FIB_NO_ROUTE : fib->shorts[around] - 1);
}

int fib_delete(struct fib *fib, const struct route_prefix *prefix)
{
	if (prefix->version != fib->version || !route_prefix_valid(prefix))
		return -EINVAL;
	if (fib_get(fib, prefix) == FIB_NO_ROUTE)
		return -ENOENT;
	struct route_bits bits = route_bits_of(prefix->addr, prefix->version);

	fib_reclaim(fib);
	if (prefix->length <= FIB_ROOT_BITS)
		delete_short(fib, bits, prefix->length);
	else
		delete_long(fib, bits, prefix->length);
	follow(fib, bits, prefix->length);
	fib->stats.routes--;
	fib->held[bits.high >> 56] -= prefix->length >= 8;
	fib->stats.deleted++;
	return 0;
}
