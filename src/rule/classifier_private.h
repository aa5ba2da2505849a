/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The classifier's memory (rule/classifier.h), for its own files alone: what readers read there, how a header finds its
 * way in it, and how the writer changes it. docs/classifier.md explains the algorithm.
 *
 * A group has three tuple spaces: for IPv4, for IPv6, and for rules that do not ask for the version. A
 * tuple is a set of header bits that its rules are hashed by. All spaces share one array of hash
 * chains, and one array of filter rows for each of the addresses and ports: a row has a bit for every
 * tuple of a space that has a rule with this prefix or port.
 */

#include <string.h>

#include <rte_branch_prediction.h>

#include "rule/classifier.h"

#define TUPLES 128u
#define NO_LINK UINT32_MAX

enum space_kind { SPACE_V4, SPACE_V6, SPACE_ANY, N_SPACES };

/*
 * The lengths that prefixes are cut down to before they are hashed, by IP version. Length 0 is class 0,
 * which every address has and no row stands for.
 */
#define CLASSES_V4 5u
#define CLASSES_V6 6u
extern const uint8_t classifier_lengths[N_SPACES][CLASSES_V6];
extern const uint64_t classifier_masks_v6[CLASSES_V6][2];

/* What a tuple hashes besides prefixes. */
#define TUPLE_SRC_PORT 1u
#define TUPLE_DST_PORT 2u
#define TUPLE_PROTO 4u
#define TUPLE_VLAN 8u
#define TUPLE_IN_PORT 16u
#define TUPLE_METADATA 32u

/* An order is a priority above a rank, by default the number of the rule since the start. */
#define AGE_BITS 40

static_assert(CLASSIFIER_MAX_RANK == UINT64_C(1) << AGE_BITS, "ranks");

/* Flags of a record: of those that readers of a list skip, and of those that jump to the group in the array of jumps. */
#define RECORD_HIDDEN(list) (uint8_t)(1u << (list))
#define RECORD_JUMPS 4u

/* A rule, as readers compare it. The version is in the mask of rules in SPACE_ANY only if they ask for it. */
struct record {
	uint64_t value[2], mask[2]; /* of word_of_addresses(), word_of_fields() */
	uint16_t src_first, src_span, dst_first, dst_span;
	uint64_t order; /* priority and age: the lowest wins */
	uint32_t id;
	uint32_t next; /* in its chain, by order */
	uint32_t wide; /* index, or NO_LINK */
	union {
		struct {
			uint16_t group;
			uint8_t tuple;
			uint8_t flags;
		};
		uint32_t
			belongs; /* all of these: what readers compare under a mask, see belonging_of() */
	};
};

static_assert(sizeof(struct record) == 64, "a line");

/* The mask for `belongs`: a rule is of the group and the list if it differs from them in none of these bits. */
static inline uint32_t belonging_of(unsigned list)
{
	const union {
		struct {
			uint16_t group;
			uint8_t tuple, flags;
		};
		uint32_t mask;
	} whole = {{.group = UINT16_MAX, .flags = RECORD_HIDDEN(list)}};

	return whole.mask;
}

/* The group, as `belongs` has it. */
static inline uint32_t belongs_to(uint32_t group)
{
	const union {
		uint16_t group;
		uint32_t belongs;
	} whole = {.group = (uint16_t)group};

	return whole.belongs;
}

static inline bool record_belongs(const struct record *record, uint32_t group, uint32_t mask)
{
	return ((__atomic_load_n(&record->belongs, __ATOMIC_RELAXED) ^ group) & mask) == 0;
}

/*
 * Chains of rules by the hash of their key. A slot is a tag above the link of the first rule; rules with the
 * same key are in one chain. What finds no slot of its own goes to the last one, whose chain has several keys.
 */
#define SLOTS 8u
#define SHARED (SLOTS - 1)
#define SLOT_FREE UINT64_MAX
#define SHARED_TAG UINT64_C(0x80000000)

struct bucket {
	uint64_t slot[SLOTS];
} __attribute__((aligned(64)));

#define WIDE_WORDS 11u

/* The rest of a rule: the words of an address beyond the first, and the header from metadata on. */
struct wide {
	uint32_t value[WIDE_WORDS], mask[WIDE_WORDS];
	uint16_t src_set, dst_set;
	uint32_t next_free;
};

static_assert(sizeof(struct wide) == 96, "as the header says");

struct bits {
	uint64_t word[2];
} __attribute__((aligned(16)));

struct tuple {
	uint32_t src_mask, dst_mask; /* of the first words of IPv4's addresses */
	uint64_t fields_mask;	     /* of word_of_fields() */
	uint64_t ports_mask;	     /* of word_of_ports() */
	uint64_t salt;
};

static inline bool has_bit(const struct bits *bits, unsigned tuple)
{
	return bits->word[tuple / 64] >> tuple % 64 & 1;
}

struct space {
	struct bits in_use;
	struct bits src[CLASSES_V6], dst[CLASSES_V6]; /* tuples by class of their length */
	struct bits src_port, dst_port;		      /* tuples that hash it */
	uint64_t best[TUPLES];			      /* the lowest order of their rules */
	uint64_t rest_best[TUPLES];		      /* of theirs and of all tuples after them */
	struct bits unsorted; /* tuples that are not in the order of the others by their best */
	struct tuple tuple[TUPLES];
	uint8_t src_class[TUPLES], dst_class[TUPLES], flags[TUPLES];

	/* the writer's own */
	uint32_t n_rules[TUPLES];
	uint32_t root[TUPLES];	/* of a heap by order */
	uint64_t token[TUPLES]; /* RCU's, since when a free one is free; 0: long ago */
	unsigned n_plain;	/* tuples without flags */
	unsigned n_tuples;
};

/* What the writer knows of a record: its neighbours in the heap of its tuple. */
struct own {
	uint32_t left; /* of a record that is not in use: the next such one */
	uint32_t right;
	uint32_t parent; /* NO_LINK: it is the root */
};

/* How many rules of a tuple have a bit in a row. */
struct row_count {
	uint32_t key; /* which row, of what, and the tuple */
	uint32_t n;   /* 0: the place is free */
};

struct set_prefix {
	uint32_t addr[4];
	uint32_t next;
	uint16_t set;
	uint8_t version; /* 4 or 6 */
	uint8_t length;
};

/* The lengths that a set has prefixes of, as bits; [2] for lengths 128. */
struct set {
	uint64_t in_use_v4;
	uint64_t in_use_v6[3];
	/* the writer's own */
	char name[CLASSIFIER_SET_NAME]; /* "": there is none */
	uint32_t n_prefixes, n_rules;
	uint32_t by_length[2][129];
};

struct sets {
	uint32_t max_sets, max_prefixes, n_sets, n_prefixes;
	uint32_t n_positions, n_begun, n_heads;
	struct set *sets; /* [0] is not used */
	struct set_prefix *prefixes;
	uint32_t *heads;
	/* free and removed ones, the writer's own */
	uint64_t *tokens;
	uint32_t *links;
	uint32_t free, first_gone, last_gone, n_gone;
	uint64_t secret[2];
	struct rte_rcu_qsbr *qsbr;
};

enum row_kind { ROW_SRC, ROW_DST, ROW_SRC_PORT, ROW_DST_PORT, N_ROW_KINDS };

struct classifier {
	/* what readers read */
	struct record *records;
	uint16_t *jumps; /* by record; 0: none. Read for few rules, whose records say so */
	struct wide *wides;
	struct bucket *buckets;
	struct space *spaces;
	struct bits *rows;	/* for sources, then for destinations */
	struct bits *port_rows; /* likewise */
	uint32_t n_buckets;
	uint32_t n_rows, n_port_rows; /* of either, powers of two */
	unsigned row_shift, port_shift;
	uint32_t max_groups;
	/* for IPv4's rows, as a vector has them: classes 1 to 4 of sources, then of destinations */
	uint32_t row_factor[8] __attribute__((aligned(32)));
	uint32_t row_mask[8] __attribute__((aligned(32)));
	uint32_t row_base[8] __attribute__((aligned(32)));
	uint32_t port_factor[2];
	uint64_t secret[6];
	struct sets sets;
	enum simd_level simd;

	/* the writer's own */
	struct rte_rcu_qsbr *qsbr;
	struct own *own;
	uint64_t *in_use; /* bit by record */
	struct row_count *counts;
	uint32_t n_counts;
	uint32_t max_rules, max_wide, n_positions;
	unsigned shown; /* list */
	uint32_t n_rules, n_wide, n_begun, n_wide_begun, n_gone;
	uint32_t free, first_gone, last_gone, free_wide;
	uint64_t next_age;
	uint64_t random;
	void *memory;
	size_t size;
};

/* Reading a header. */

static inline uint64_t word_of_addresses(const struct classifier_header *header)
{
	return (uint64_t)header->dst[0] << 32 | header->src[0];
}

/* Protocol, TCP flags, version, TOS, VLAN and input port. */
static inline uint64_t word_of_fields(const struct classifier_header *header)
{
	uint64_t word;

	memcpy(&word, &header->proto, sizeof(word));
	return word;
}

/* Both ports and the metadata. */
static inline uint64_t word_of_ports(const struct classifier_header *header)
{
	uint64_t word;

	memcpy(&word, &header->src_port, sizeof(word));
	return word;
}

static_assert(offsetof(struct classifier_header, proto) % 8 == 0 &&
		      offsetof(struct classifier_header, src_port) ==
			      offsetof(struct classifier_header, proto) + 8,
	"words of fields");

static inline void wide_words(const struct classifier_header *header, uint32_t word[WIDE_WORDS])
{
	memcpy(word, &header->src[1], 12);
	memcpy(word + 3, &header->dst[1], 12);
	memcpy(word + 6, &header->metadata, 20);
}

/* Hashes. */

/* The key of a header in a tuple of SPACE_V4 or SPACE_ANY. */
static inline uint64_t hash_key_v4(const struct classifier *classifier, const struct tuple *tuple,
	const struct classifier_header *header)
{
	uint64_t addresses = (uint64_t)(header->dst[0] & tuple->dst_mask) << 32 |
			     (header->src[0] & tuple->src_mask);
	uint64_t rest = (word_of_fields(header) & tuple->fields_mask) ^
			(word_of_ports(header) & tuple->ports_mask) * UINT64_C(0x9e3779b97f4a7c15);

	return hash_fold(addresses ^ tuple->salt, rest ^ classifier->secret[0]);
}

static inline uint64_t hash_prefix_v6(const struct classifier *classifier, const uint32_t addr[4],
	const uint64_t mask[2], uint64_t salt)
{
	uint64_t high = (uint64_t)addr[0] << 32 | addr[1], low = (uint64_t)addr[2] << 32 | addr[3];

	return hash_fold((high & mask[0]) ^ salt, (low & mask[1]) ^ classifier->secret[1]);
}

static inline uint64_t hash_key_v6(const struct classifier *classifier, const struct tuple *tuple,
	unsigned src_class, unsigned dst_class, const struct classifier_header *header)
{
	uint64_t rest = (word_of_fields(header) & tuple->fields_mask) ^
			(word_of_ports(header) & tuple->ports_mask) * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t src = hash_prefix_v6(
		classifier, header->src, classifier_masks_v6[src_class], tuple->salt);
	uint64_t dst = hash_prefix_v6(
		classifier, header->dst, classifier_masks_v6[dst_class], classifier->secret[2]);

	return hash_fold(src ^ rest, dst ^ classifier->secret[3]);
}

/* Below that of a free slot and of a shared one. */
static inline uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 33);
}

static inline struct bucket *bucket_of(const struct classifier *classifier, uint64_t hash)
{
	return &classifier->buckets[((hash & UINT32_MAX) * classifier->n_buckets) >> 32];
}

/* The link of the slot with this tag, or NO_LINK. */
static inline uint32_t link_of_tag(const struct bucket *bucket, uint32_t tag)
{
	for (unsigned i = 0; i < SHARED; i++) {
		uint64_t slot = __atomic_load_n(&bucket->slot[i], __ATOMIC_ACQUIRE);

		if (slot >> 32 == tag)
			return (uint32_t)slot;
	}
	return NO_LINK;
}

/* Rows. */

/* Keeps equal prefixes of different spaces apart. */
static inline uint32_t space_salt(const struct classifier *classifier, uint32_t space)
{
	return space * 0x9e3779b1u + (uint32_t)classifier->secret[4];
}

/* The row of an IPv4 prefix among those of its kind; `lane` is class - 1, or class + 3 of a destination. */
static inline uint32_t row_v4(
	const struct classifier *classifier, uint32_t salt, unsigned lane, uint32_t addr)
{
	uint32_t prefix = addr & classifier->row_mask[lane];

	return (prefix * classifier->row_factor[lane] + salt) >> classifier->row_shift;
}

static inline uint32_t row_v6(
	const struct classifier *classifier, uint32_t salt, unsigned class, const uint32_t addr[4])
{
	uint64_t hash = hash_prefix_v6(
		classifier, addr, classifier_masks_v6[class], (salt + class) * 0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 32) >> classifier->row_shift;
}

static inline uint32_t row_port(
	const struct classifier *classifier, uint32_t salt, bool dst, uint16_t port)
{
	return (port * classifier->port_factor[dst] + salt) >> classifier->port_shift;
}

/* A word of a row, or of what a space knows of its tuples. */
static inline struct bits bits_load(const struct bits *bits)
{
	return (struct bits){{__atomic_load_n(&bits->word[0], __ATOMIC_ACQUIRE),
		__atomic_load_n(&bits->word[1], __ATOMIC_ACQUIRE)}};
}

/* Comparing. */

/* Sets and all that is beyond the record. Not inlined: few rules ask for it. */
bool classifier_wide_matches(
	const struct classifier *classifier, uint32_t wide, const struct classifier_header *header);

static inline bool record_matches(const struct classifier *classifier, const struct record *record,
	uint64_t addresses, uint64_t fields, const struct classifier_header *header)
{
	uint64_t differs = ((addresses & record->mask[0]) ^ record->value[0]) |
			   ((fields & record->mask[1]) ^ record->value[1]);

	if (differs != 0 || (uint16_t)(header->src_port - record->src_first) > record->src_span ||
		(uint16_t)(header->dst_port - record->dst_first) > record->dst_span)
		return false;
	return likely(record->wide == NO_LINK) ||
	       classifier_wide_matches(classifier, record->wide, header);
}

/* The walk of a burst through one group, for one SIMD level: `found` becomes records, or NO_LINK. */
typedef void (*classifier_walk_fn)(const struct classifier *classifier, unsigned list,
	uint32_t group, const struct classifier_header *const *headers, uint32_t *found,
	unsigned n);

void classifier_walk_portable(const struct classifier *classifier, unsigned list, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *found, unsigned n);
void classifier_walk_sse42(const struct classifier *classifier, unsigned list, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *found, unsigned n);
void classifier_walk_avx2(const struct classifier *classifier, unsigned list, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *found, unsigned n);
void classifier_walk_avx512(const struct classifier *classifier, unsigned list, uint32_t group,
	const struct classifier_header *const *headers, uint32_t *found, unsigned n);

/*
 * The same of one header, without the rules of lower orders than `from`. It is compiled once, since few packets need it: those of flows
 * that are below a limit.
 */
void classifier_walk_behind_portable(const struct classifier *classifier, unsigned list,
	uint32_t group, uint64_t from, const struct classifier_header *header, uint32_t *found);

/* Sets (rule/classifier_set.c). */

void sets_begin(struct sets *sets, const struct hash_secret *secret, struct rte_rcu_qsbr *qsbr);
bool sets_contain(const struct sets *sets, uint32_t set, uint8_t version, const uint32_t addr[4]);
bool sets_have(const struct sets *sets, uint32_t set);

/* Changes (rule/classifier_change.c): how a checked rule gets into the memory, and out of it. The writer's alone. */

void change_begin_space(struct space *space);

/* 0, -ENOSPC or -EAGAIN. */
int change_add(struct classifier *classifier, const struct classifier_rule *rule,
	const struct classifier_position *at, uint32_t *position);
bool change_is_there(const struct classifier *classifier, uint32_t position);
void change_remove(struct classifier *classifier, uint32_t position);
void change_get(
	const struct classifier *classifier, uint32_t position, struct classifier_rule *rule);

/* The rule without the bits of its value that do not count. */
struct classifier_rule change_normal(const struct classifier_rule *rule);
/* The number of the space that a rule belongs to. */
uint32_t change_space_of(const struct classifier_rule *rule);

static inline enum space_kind space_kind_of(uint32_t space)
{
	return (enum space_kind)(space % N_SPACES);
}
