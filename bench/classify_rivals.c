/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contenders of the bench of the classifier: ours; rte_acl with the fastest of its algorithms that the
 * machine has; tuple space search in sequence over rte_hash, tables with the best rules first and left
 * as soon as no better rule can follow, bursts by rte_hash's bulk look-up, port ranges kept in the rules.
 */
/* to let rte_acl use vectors of 512 bits, which DPDK 22.11 has by an experimental call only */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_cycles.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_vect.h>

#include "bench/classify.h"

#define BURST CLASSIFIER_BURST

int classify_socket;
struct rte_rcu_qsbr *classify_qsbr;

/* Ours. */

struct ours {
	struct classifier_header headers[CLASSIFY_PREPARED];
	struct classifier *classifier;
	uint32_t *handles;
};

static void ours_destroy(void *side)
{
	struct ours *ours = side;

	classifier_destroy(ours->classifier);
	free(ours->handles);
	free(ours);
}

static int ours_create(void **side, const struct classify_set *set)
{
	static struct hash_secret secret;
	struct ours *ours = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*ours), (size_t)RTE_CACHE_LINE_SIZE));

	if (!ours)
		return -ENOMEM;
	memset(ours, 0, sizeof(*ours));
	int ret = hash_secret_init(&secret);
	struct classifier_config config = {
		.max_rules = set->n,
		.max_groups = 1,
		.secret = &secret,
		.qsbr = classify_qsbr,
	};

	ours->handles = calloc(set->n, sizeof(*ours->handles));
	if (ret == 0)
		ret = ours->handles ? classifier_create(&ours->classifier, &config) : -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < set->n; i++)
		ret = classifier_add(ours->classifier, &set->rules[i], &ours->handles[i]);
	if (ret < 0)
		ours_destroy(ours);
	else
		*side = ours;
	return ret;
}

static void ours_prepare(void *side, const struct classifier_header *headers, unsigned n)
{
	struct ours *ours = side;

	memcpy(ours->headers, headers, n * sizeof(*headers));
}

static void ours_find(void *side, unsigned from, unsigned n, uint32_t *ids)
{
	struct ours *ours = side;
	const struct classifier_header *headers[BURST];

	for (unsigned i = 0; i < n; i++)
		headers[i] = &ours->headers[from + i];
	classifier_find_burst(ours->classifier, 0, headers, ids, n);
}

struct classifier *classify_ours_classifier(void *side)
{
	return ((struct ours *)side)->classifier;
}

uint32_t *classify_ours_handles(void *side)
{
	return ((struct ours *)side)->handles;
}

const struct classify_side classify_ours = {
	"ours", ours_create, ours_destroy, ours_prepare, ours_find};

/* rte_acl. */

struct acl_key {
	uint8_t proto;
	uint8_t pad[3];
	uint32_t src, dst; /* network order, as all fields */
	uint16_t src_port, dst_port;
};

enum { PROTO, SRC, DST, SRC_PORT, DST_PORT, N_FIELDS };

RTE_ACL_RULE_DEF(acl_rule, N_FIELDS);

struct acl {
	struct rte_acl_ctx *ctx;
	double build_s;
	struct acl_key keys[CLASSIFY_PREPARED];
};

static const struct rte_acl_field_def acl_fields[N_FIELDS] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTO, 0, offsetof(struct acl_key, proto)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, SRC, 1, offsetof(struct acl_key, src)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, DST, 2, offsetof(struct acl_key, dst)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, SRC_PORT, 3, offsetof(struct acl_key, src_port)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, DST_PORT, 3, offsetof(struct acl_key, dst_port)},
};

static struct acl_rule acl_rule_of(const struct classifier_rule *rule)
{
	struct acl_rule made = {
		.data = {.userdata = rule->id + 1,
			.category_mask = 1,
			.priority = RTE_ACL_MAX_PRIORITY - (int32_t)rule->id},
	};

	made.field[PROTO].value.u8 = rule->value.proto;
	made.field[PROTO].mask_range.u8 = rule->mask.proto;
	made.field[SRC].value.u32 = rule->value.src[0];
	made.field[SRC].mask_range.u32 = (uint32_t)__builtin_popcount(rule->mask.src[0]);
	made.field[DST].value.u32 = rule->value.dst[0];
	made.field[DST].mask_range.u32 = (uint32_t)__builtin_popcount(rule->mask.dst[0]);
	made.field[SRC_PORT].value.u16 = rule->src_port.first;
	made.field[SRC_PORT].mask_range.u16 = rule->src_port.last;
	made.field[DST_PORT].value.u16 = rule->dst_port.first;
	made.field[DST_PORT].mask_range.u16 = rule->dst_port.last;
	return made;
}

static void acl_destroy(void *side)
{
	struct acl *acl = side;

	rte_acl_free(acl->ctx);
	free(acl);
}

static int acl_build(struct acl *acl)
{
	struct rte_acl_config config = {.num_categories = 1, .num_fields = N_FIELDS};
	uint64_t begin = rte_rdtsc();

	memcpy(config.defs, acl_fields, sizeof(acl_fields));
	int ret = rte_acl_build(acl->ctx, &config);

	acl->build_s = (double)(rte_rdtsc() - begin) / (double)rte_get_tsc_hz();
	return ret;
}

static void acl_prepare(void *side, const struct classifier_header *headers, unsigned n)
{
	struct acl *acl = side;

	for (unsigned i = 0; i < n; i++)
		acl->keys[i] = (struct acl_key){
			.proto = headers[i].proto,
			.src = rte_cpu_to_be_32(headers[i].src[0]),
			.dst = rte_cpu_to_be_32(headers[i].dst[0]),
			.src_port = rte_cpu_to_be_16(headers[i].src_port),
			.dst_port = rte_cpu_to_be_16(headers[i].dst_port),
		};
}

static void acl_find(void *side, unsigned from, unsigned n, uint32_t *ids)
{
	struct acl *acl = side;
	const uint8_t *keys[BURST];

	for (unsigned i = 0; i < n; i++)
		keys[i] = (const uint8_t *)&acl->keys[from + i];
	rte_acl_classify(acl->ctx, keys, ids, n, 1);
	for (unsigned i = 0; i < n; i++)
		ids[i]--;
}

/* The fastest algorithm that there is, as tried with some of the set's headers. */
static void acl_choose(struct acl *acl, const struct classify_set *set)
{
	static const enum rte_acl_classify_alg all[] = {RTE_ACL_CLASSIFY_SCALAR,
		RTE_ACL_CLASSIFY_SSE, RTE_ACL_CLASSIFY_AVX2, RTE_ACL_CLASSIFY_AVX512X16,
		RTE_ACL_CLASSIFY_AVX512X32, RTE_ACL_CLASSIFY_NEON};
	static struct classifier_header headers[CLASSIFY_PREPARED];
	enum rte_acl_classify_alg best = RTE_ACL_CLASSIFY_DEFAULT;
	uint64_t least = UINT64_MAX, state = 77;
	uint32_t ids[BURST];

	classify_headers(set, &state, headers, RTE_DIM(headers));
	acl_prepare(acl, headers, RTE_DIM(headers));
	for (unsigned i = 0; i < RTE_DIM(all); i++) {
		if (rte_acl_set_ctx_classify(acl->ctx, all[i]) != 0)
			continue;
		for (unsigned turn = 0; turn < 16; turn++) {
			uint64_t begin = rte_rdtsc();

			for (unsigned at = 0; at < RTE_DIM(headers); at += BURST)
				acl_find(acl, at, BURST, ids);
			uint64_t took = rte_rdtsc() - begin;

			if (took >= least)
				continue;
			least = took;
			best = all[i];
		}
	}
	rte_acl_set_ctx_classify(acl->ctx, best);
}

static int acl_create(void **side, const struct classify_set *set)
{
	static unsigned number;
	char name[RTE_ACL_NAMESIZE];
	struct acl *acl = calloc(1, sizeof(*acl));
	struct rte_acl_param param = {.name = name,
		.socket_id = classify_socket,
		.rule_size = RTE_ACL_RULE_SZ(N_FIELDS),
		.max_rule_num = set->n};

	if (!acl)
		return -ENOMEM;
	snprintf(name, sizeof(name), "acl%u", number++);
	rte_vect_set_max_simd_bitwidth(bench_vector_bits());
	acl->ctx = rte_acl_create(&param);
	int ret = acl->ctx ? 0 : -ENOMEM;

	for (uint32_t i = 0; ret == 0 && i < set->n; i++) {
		struct acl_rule rule = acl_rule_of(&set->rules[i]);

		ret = rte_acl_add_rules(acl->ctx, (const struct rte_acl_rule *)&rule, 1);
	}
	if (ret == 0)
		ret = acl_build(acl);
	if (ret < 0) {
		acl_destroy(acl);
		return ret;
	}
	acl_choose(acl, set);
	*side = acl;
	return 0;
}

double classify_acl_build_s(const void *side)
{
	return ((const struct acl *)side)->build_s;
}

const struct classify_side classify_acl = {
	"rte_acl", acl_create, acl_destroy, acl_prepare, acl_find};

/* Tuple space in sequence. */

struct tuple_key {
	uint32_t src, dst;
	uint16_t src_port, dst_port;
	uint32_t proto;
};

static_assert(sizeof(struct tuple_key) == 16, "a size that rte_hash compares by SIMD");

struct table {
	struct tuple_key mask;
	struct rte_hash *hash;
	uint32_t best;
	uint32_t n;
};

struct space {
	struct table *tables; /* the best rules first */
	unsigned n_tables;
	const struct classify_set *set;
	uint32_t *next; /* of a rule: the next of its key */
	struct classifier_header headers[CLASSIFY_PREPARED];
};

static struct tuple_key mask_of_rule(const struct classifier_rule *rule)
{
	return (struct tuple_key){
		.src = rule->mask.src[0],
		.dst = rule->mask.dst[0],
		.src_port = rule->src_port.first == rule->src_port.last ? UINT16_MAX : 0,
		.dst_port = rule->dst_port.first == rule->dst_port.last ? UINT16_MAX : 0,
		.proto = rule->mask.proto,
	};
}

static struct tuple_key key_of(const struct classifier_header *header, const struct tuple_key *mask)
{
	return (struct tuple_key){
		.src = header->src[0] & mask->src,
		.dst = header->dst[0] & mask->dst,
		.src_port = header->src_port & mask->src_port,
		.dst_port = header->dst_port & mask->dst_port,
		.proto = header->proto & mask->proto,
	};
}

static void tuples_destroy(void *side)
{
	struct space *space = side;

	for (unsigned i = 0; i < space->n_tables; i++)
		rte_hash_free(space->tables[i].hash);
	free(space->tables);
	free(space->next);
	free(space);
}

/* The table of a mask, new with no hash if there is none yet; in the order of their first rules. */
static struct table *table_of(struct space *space, const struct tuple_key *mask, uint32_t rule)
{
	for (unsigned i = 0; i < space->n_tables; i++)
		if (memcmp(&space->tables[i].mask, mask, sizeof(*mask)) == 0)
			return &space->tables[i];
	struct table *table = &space->tables[space->n_tables++];

	*table = (struct table){.mask = *mask, .best = rule};
	return table;
}

static uint32_t crc_of_key(const void *key, uint32_t length, uint32_t seed)
{
	uint64_t word[2];

	(void)length;
	memcpy(word, key, sizeof(word));
	return rte_hash_crc_8byte(word[1], rte_hash_crc_8byte(word[0], seed));
}

static int create_hash(struct table *table)
{
	static unsigned number;
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters parameters = {.name = name,
		.entries = RTE_MAX(table->n + table->n / 4, 8u),
		.key_len = sizeof(struct tuple_key),
		.hash_func = crc_of_key,
		.socket_id = classify_socket,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};

	snprintf(name, sizeof(name), "tuple%u", number++);
	table->hash = rte_hash_create(&parameters);
	return table->hash ? 0 : -ENOMEM;
}

/* Rules of one key in a chain, the first one first. */
static int add_rule(struct space *space, struct table *table, uint32_t rule)
{
	struct classifier_header header = space->set->rules[rule].value;
	void *data;

	header.src_port = space->set->rules[rule].src_port.first;
	header.dst_port = space->set->rules[rule].dst_port.first;
	struct tuple_key key = key_of(&header, &table->mask);

	space->next[rule] = UINT32_MAX;
	if (rte_hash_lookup_data(table->hash, &key, &data) < 0)
		return rte_hash_add_key_data(table->hash, &key, (void *)(uintptr_t)rule);
	uint32_t at = (uint32_t)(uintptr_t)data;

	while (space->next[at] != UINT32_MAX)
		at = space->next[at];
	space->next[at] = rule;
	return 0;
}

static int fill(struct space *space)
{
	const struct classify_set *set = space->set;
	int ret = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		struct tuple_key mask = mask_of_rule(&set->rules[i]);

		table_of(space, &mask, i)->n++;
	}
	for (unsigned i = 0; ret == 0 && i < space->n_tables; i++)
		ret = create_hash(&space->tables[i]);
	for (uint32_t i = 0; ret == 0 && i < set->n; i++) {
		struct tuple_key mask = mask_of_rule(&set->rules[i]);

		ret = add_rule(space, table_of(space, &mask, i), i);
	}
	return ret;
}

static int tuples_create(void **side, const struct classify_set *set)
{
	struct space *space = calloc(1, sizeof(*space));

	if (!space)
		return -ENOMEM;
	space->set = set;
	space->tables = calloc(set->n, sizeof(*space->tables));
	space->next = calloc(set->n, sizeof(*space->next));
	int ret = space->tables && space->next ? fill(space) : -ENOMEM;

	if (ret < 0)
		tuples_destroy(space);
	else
		*side = space;
	return ret;
}

static void tuples_prepare(void *side, const struct classifier_header *headers, unsigned n)
{
	struct space *space = side;

	memcpy(space->headers, headers, n * sizeof(*headers));
}

static bool fits(const struct classifier_rule *rule, const struct classifier_header *header)
{
	return ((header->src[0] ^ rule->value.src[0]) & rule->mask.src[0]) == 0 &&
	       ((header->dst[0] ^ rule->value.dst[0]) & rule->mask.dst[0]) == 0 &&
	       ((header->proto ^ rule->value.proto) & rule->mask.proto) == 0 &&
	       header->src_port >= rule->src_port.first &&
	       header->src_port <= rule->src_port.last &&
	       header->dst_port >= rule->dst_port.first && header->dst_port <= rule->dst_port.last;
}

static uint32_t better(const struct space *space, uint32_t rule, uint32_t found,
	const struct classifier_header *header)
{
	for (; rule < found; rule = space->next[rule])
		if (fits(&space->set->rules[rule], header))
			return rule;
	return found;
}

static void search_table(const struct space *space, const struct table *table,
	const struct classifier_header *headers, const uint8_t *active, unsigned n, uint32_t *ids)
{
	struct tuple_key keys[BURST];
	const void *pointers[BURST];
	void *data[BURST];
	uint64_t hits;

	for (unsigned i = 0; i < n; i++) {
		keys[i] = key_of(&headers[active[i]], &table->mask);
		pointers[i] = &keys[i];
	}
	if (rte_hash_lookup_bulk_data(table->hash, pointers, n, &hits, data) <= 0)
		return;
	for (; hits != 0; hits &= hits - 1) {
		unsigned i = (unsigned)__builtin_ctzll(hits);
		uint32_t *id = &ids[active[i]];

		*id = better(space, (uint32_t)(uintptr_t)data[i], *id, &headers[active[i]]);
	}
}

static void tuples_find(void *side, unsigned from, unsigned n, uint32_t *ids)
{
	const struct space *space = side;
	uint8_t active[BURST];

	for (unsigned i = 0; i < n; i++) {
		active[i] = (uint8_t)i;
		ids[i] = CLASSIFIER_NONE;
	}
	for (unsigned t = 0; t < space->n_tables && n > 0; t++) {
		unsigned kept = 0;

		for (unsigned i = 0; i < n; i++)
			if (ids[active[i]] > space->tables[t].best)
				active[kept++] = active[i];
		n = kept;
		if (n > 0)
			search_table(
				space, &space->tables[t], &space->headers[from], active, n, ids);
	}
}

unsigned classify_tuples_number(const void *side)
{
	return ((const struct space *)side)->n_tables;
}

const struct classify_side classify_tuples = {
	"tuple_space", tuples_create, tuples_destroy, tuples_prepare, tuples_find};
