/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look-ups of flows that somebody has chosen against look-ups of random ones, in tables with the same
 * secret, which he does not know. The flows are chosen
 * - crc: so that CRC-32c, which tables hash by that have no key, is the same of all of them
 * - self: by trying, so that our own hash has a few values of line and tag, if its secret were the one
 *   that the attacker knows; tables have another
 * - bytes: from one key that is known, in two bytes each that meet in a round of AES, so that differences
 *   might cancel
 *
 * Each is measured with the hash that this processor would have, and as `attack_portable` with the other,
 * which processors without AES have.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/mapping.h"
#include "bench/crc.h"
#include "bench/wire.h"
#include "flow/table.h"
#include "traffic/draw.h"

/* Within 10 %. */
#define GOAL 0.9

/* Look-ups of a round: these, or one of each flow. */
#define LOOK_UPS (1u << 18)
#define CHUNK 512u

/* Of our own hash under a known secret: the line's highest bits and the tag's, 9 together. */
#define SELF_LINE (UINT64_C(0x1f) << 59)
#define SELF_TAG (UINT64_C(0xf) << 12)

/* More would take too long to choose. */
#define MOST_FLOWS 4000000

#define PAIRS 16
#define DIFFERENCES 255 /* of a byte */

static const char *const set_names[] = {"random", "crc", "self", "bytes"};

enum set { RANDOM, CRC, SELF, BYTES, N_SETS };

struct attack {
	uint32_t flows;
	struct hash_secret secret;
	struct flow_key *keys[N_SETS];
	struct flow_table table[N_SETS];
	uint32_t *order; /* of look-ups */
};

static const uint64_t seed = UINT64_C(0x6d696c6c72616365);

static struct flow_key make_key(uint32_t low, uint32_t high, uint32_t ports)
{
	struct flow_key key = {.proto = IPPROTO_UDP, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	uint32_t big = rte_cpu_to_be_32(low);

	memcpy(key.addr[0], &big, sizeof(big));
	big = rte_cpu_to_be_32(high);
	memcpy(key.addr[1], &big, sizeof(big));
	memcpy(key.port, &ports, sizeof(ports));
	return key;
}

/* Different ones: the lower address counts. */
static void make_random(struct flow_key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t drawn = draw_at(seed, i);

		keys[i] = make_key(i, (uint32_t)drawn | UINT32_C(1) << 31, (uint32_t)(drawn >> 32));
	}
}

/* As rte_hash has it for a key of 40 bytes. */
static uint32_t crc_of(const struct flow_key *key)
{
	uint64_t word[5];
	uint32_t crc = 0;

	memcpy(word, key, sizeof(word));
	for (unsigned i = 0; i < 5; i++)
		crc = bench_crc(word[i], crc);
	return crc;
}

/*
 * A CRC is linear: each bit of the higher address changes bits of it, whatever the others are, and
 * together the 32 can change it to anything. `change` has what brings about each single bit.
 */
static int solve_crc(uint32_t change[32])
{
	struct flow_key none = make_key(0, 0, 0);
	uint32_t effect[32], cause[32];

	for (unsigned bit = 0; bit < 32; bit++) {
		struct flow_key one = make_key(0, UINT32_C(1) << bit, 0);

		effect[bit] = crc_of(&one) ^ crc_of(&none);
		cause[bit] = UINT32_C(1) << bit;
	}
	for (unsigned bit = 0; bit < 32; bit++) {
		unsigned row = bit;

		while (row < 32 && !(effect[row] >> bit & 1))
			row++;
		if (row == 32)
			return -EINVAL;
		uint32_t e = effect[row], c = cause[row];

		effect[row] = effect[bit];
		cause[row] = cause[bit];
		effect[bit] = e;
		cause[bit] = c;
		for (unsigned other = 0; other < 32; other++) {
			if (other == bit || !(effect[other] >> bit & 1))
				continue;
			effect[other] ^= e;
			cause[other] ^= c;
		}
	}
	memcpy(change, cause, sizeof(cause));
	return 0;
}

static int choose_crc(struct flow_key *keys, uint32_t n)
{
	uint32_t change[32];
	int ret = solve_crc(change);

	for (uint32_t i = 0, tried = 0; ret == 0 && i < n; tried++) {
		uint32_t ports = (uint32_t)draw_at(seed + 1, tried), high = 0;
		struct flow_key key = make_key(tried, high, ports);
		uint32_t crc = crc_of(&key);

		for (unsigned bit = 0; bit < 32; bit++)
			high ^= change[bit] & -(crc >> bit & 1);
		/* the lower address is the lower one of every other try */
		if (high <= tried)
			continue;
		keys[i] = make_key(tried, high, ports);
		if (crc_of(&keys[i]) != 0)
			ret = -EINVAL;
		i++;
	}
	return ret;
}

/* By trying ends of one network and their ports: one of 512 will do. */
static void choose_self(struct flow_key *keys, uint32_t n, enum simd_level simd)
{
	struct hash_secret known = {.simd = simd};

	for (unsigned i = 0; i < HASH_SECRET_WORDS; i++)
		known.word[i] = draw_at(seed + 2, i);
	for (uint32_t i = 0, tried = 0; i < n; tried++) {
		struct flow_key key = make_key(UINT32_C(0x0a000000) | (tried & 0xffffff),
			UINT32_C(0xc6120001), tried >> 24 | UINT32_C(0x1389) << 16);

		if ((flow_key_hash(&known, &key) & (SELF_LINE | SELF_TAG)) == 0)
			keys[i++] = key;
	}
}

/*
 * Two bytes of the same column after a round's rotation of rows, or of the same place in two of the
 * hash's parts; all differences of both. Enough for 1,040,400 keys; more take a third byte.
 */
static void choose_bytes(struct flow_key *keys, uint32_t n)
{
	static const uint8_t pairs[PAIRS][2] = {{5, 10}, {10, 15}, {4, 9}, {9, 14}, {8, 13}, {2, 7},
		{12, 1}, {6, 11}, {21, 26}, {25, 30}, {29, 18}, {22, 27}, {5, 21}, {10, 26},
		{2, 34}, {3, 19}};
	struct flow_key base = {.proto = IPPROTO_UDP,
		.version_wire = FLOW_KEY_VERSION_WIRE(6, 0),
		.port = {RTE_BE16(5001), RTE_BE16(5001)}};

	base.addr[0][0] = 0x20;
	base.addr[1][0] = 0x30;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t pair = i % PAIRS, difference = i / PAIRS;
		uint8_t *bytes = (uint8_t *)&keys[i];

		keys[i] = base;
		bytes[pairs[pair][0]] ^= (uint8_t)(1 + difference % DIFFERENCES);
		difference /= DIFFERENCES;
		bytes[pairs[pair][1]] ^= (uint8_t)(1 + difference % DIFFERENCES);
		bytes[17] = (uint8_t)(difference / DIFFERENCES);
	}
}

static int fill(struct attack *attack, enum set set)
{
	struct flow_table *table = &attack->table[set];
	int ret = flow_table_init(table, RTE_MAX((uint32_t)(attack->flows / 0.875), 1024u),
		&attack->secret, MAPPING_HUGE | MAPPING_POPULATE);

	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < attack->flows; i++) {
		const struct flow_key *key = &attack->keys[set][i];
		uint32_t at = flow_table_insert(table, key, flow_key_hash(&attack->secret, key));

		if (at == FLOW_NONE)
			return -ENOSPC;
		flow_table_record(table, at)->state = FLOW_REQUEST;
	}
	return 0;
}

/* Keys of the next look-ups, as warm as a packet's are when they have just been read. */
static void copy_keys(
	const struct attack *attack, enum set set, uint32_t *at, struct flow_key keys[CHUNK])
{
	for (unsigned i = 0; i < CHUNK; i++) {
		keys[i] = attack->keys[set][attack->order[*at]];
		*at = *at + 1 == attack->flows ? 0 : *at + 1;
	}
}

/* Cycles a look-up, every flow in random order; negative: one was not found. */
static double measure(const struct attack *attack, enum set set)
{
	static struct flow_key keys[CHUNK];
	const struct flow_key *pointers[FLOW_BURST];
	uint64_t hashes[FLOW_BURST], look_ups = RTE_MAX(attack->flows, LOOK_UPS);
	uint64_t cycles = 0, missing = 0, done;
	uint32_t positions[FLOW_BURST], at = 0;

	for (done = 0; done < look_ups; done += CHUNK) {
		copy_keys(attack, set, &at, keys);
		uint64_t begin = rte_rdtsc_precise();

		for (unsigned first = 0; first < CHUNK; first += FLOW_BURST) {
			for (unsigned i = 0; i < FLOW_BURST; i++)
				pointers[i] = &keys[first + i];
			flow_table_look_up_burst(
				&attack->table[set], pointers, hashes, positions, FLOW_BURST);
			for (unsigned i = 0; i < FLOW_BURST; i++)
				missing += positions[i] == FLOW_NONE;
		}
		cycles += rte_rdtsc_precise() - begin;
	}
	return missing != 0 ? -1 : (double)cycles / (double)done;
}

static int measure_set(const struct wire_bench *bench, const struct attack *attack, enum set set,
	const char *measure_name)
{
	struct bench_row row = {.bench = "wire",
		.measure = measure_name,
		.load = set_names[set],
		.flows = attack->flows,
		.unit = "cycles",
		.against = set_names[RANDOM],
		.goal = GOAL,
		.rounds = BENCH_ROUNDS};

	measure(attack, set);
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.theirs[i] = measure(attack, RANDOM);
		row.ours[i] = measure(attack, set);
		if (row.ours[i] < 0 || row.theirs[i] < 0) {
			wire_say("attack: a flow is not found");
			return -EIO;
		}
	}
	wire_print(bench, "attack", &row);
	return 0;
}

static int create(struct attack *attack)
{
	size_t bytes = (size_t)attack->flows * sizeof(struct flow_key);

	attack->order = calloc(attack->flows, sizeof(*attack->order));
	for (enum set set = RANDOM; set < N_SETS; set++) {
		attack->keys[set] = mapping_create(bytes, MAPPING_HUGE | MAPPING_POPULATE);
		if (attack->keys[set] == NULL)
			return -ENOMEM;
	}
	if (attack->order == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < attack->flows; i++) {
		uint32_t other = draw_below(draw_at(seed + 3, i), i + 1);

		attack->order[i] = attack->order[other];
		attack->order[other] = i;
	}
	make_random(attack->keys[RANDOM], attack->flows);
	choose_bytes(attack->keys[BYTES], attack->flows);
	return choose_crc(attack->keys[CRC], attack->flows);
}

static void destroy(struct attack *attack)
{
	for (enum set set = RANDOM; set < N_SETS; set++) {
		mapping_destroy(attack->keys[set], (size_t)attack->flows * sizeof(struct flow_key));
		flow_table_fini(&attack->table[set]);
	}
	free(attack->order);
}

/* With the secret's level as it stands. */
static int measure_level(
	const struct wire_bench *bench, struct attack *attack, const char *measure_name)
{
	int ret = 0;

	choose_self(attack->keys[SELF], attack->flows, attack->secret.simd);
	for (enum set set = RANDOM; ret == 0 && set < N_SETS; set++)
		ret = fill(attack, set);
	if (ret < 0)
		wire_say("attack: the flows do not find room");
	measure(attack, RANDOM);
	for (enum set set = CRC; ret == 0 && set < N_SETS; set++)
		ret = measure_set(bench, attack, set, measure_name);
	for (enum set set = RANDOM; set < N_SETS; set++)
		flow_table_fini(&attack->table[set]);
	return ret;
}

int wire_attack(const struct wire_bench *bench, uint32_t flows)
{
	struct attack attack = {.flows = flows};
	int ret;

	if (flows > MOST_FLOWS) {
		wire_say("attack: more than 4,000,000 flows take too long to choose");
		return -EINVAL;
	}
	ret = hash_secret_init(&attack.secret);
	if (ret < 0) {
		wire_say("attack: no secret for the hash");
		return ret;
	}
	ret = create(&attack);
	if (ret < 0)
		wire_say("attack: the keys cannot be made");
	if (ret == 0)
		ret = measure_level(bench, &attack, "attack");
	if (ret == 0 && attack.secret.simd >= SIMD_AVX2) {
		attack.secret.simd = simd_has(SIMD_SSE42) ? SIMD_SSE42 : SIMD_PORTABLE;
		ret = measure_level(bench, &attack, "attack_portable");
	}
	destroy(&attack);
	return ret;
}
