/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/stateless.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_prefetch.h>

#include "base/mapping.h"
#include "bench/crc.h"
#include "packet/words.h"

#define BURST 64
#define KEY_WORDS 6 /* five, and padding */

struct padded_key {
	uint64_t word[KEY_WORDS];
};

struct record {
	struct {
		uint64_t packets, bytes;
	} side[2];
	uint64_t first, last;
	uint8_t rest[16];
};

static_assert(sizeof(struct record) == 64, "one line");

struct stateless {
	struct rte_hash *hash;
	struct record *records;
	uint32_t capacity;
	uint32_t n;
};

int stateless_create(struct stateless **out, uint32_t capacity, int socket)
{
	struct stateless *stateless = calloc(1, sizeof(*stateless));
	const struct rte_hash_parameters parameters = {.name = "stateless",
		.entries = capacity,
		.key_len = sizeof(struct padded_key),
		.hash_func = rte_hash_crc,
		.socket_id = socket};

	*out = stateless;
	if (stateless == NULL)
		return -ENOMEM;
	stateless->capacity = capacity;
	stateless->hash = rte_hash_create(&parameters);
	stateless->records =
		mapping_create(capacity * sizeof(struct record), MAPPING_HUGE | MAPPING_POPULATE);
	return stateless->hash == NULL || stateless->records == NULL ? -ENOMEM : 0;
}

void stateless_destroy(struct stateless *stateless)
{
	if (stateless == NULL)
		return;
	rte_hash_free(stateless->hash);
	mapping_destroy(stateless->records, stateless->capacity * sizeof(struct record));
	free(stateless);
}

/* Of what is not 0 in a key of IPv4. */
static inline uint32_t hash_key(const uint64_t word[5])
{
	uint32_t a = bench_crc(word[0] << 32 | word[2], 0), b = bench_crc(word[4], 1);

	return bench_crc((uint64_t)a << 32 | b, 2);
}

/* The key's words, sorted, and which end has sent it; false for what is not plain. */
static inline bool parse(
	const struct rte_mbuf *packet, struct padded_key *key, uint32_t *hash, uint8_t *from)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
	uint32_t proto = bytes[23];

	if (unlikely(load_be16(bytes + 12) != RTE_ETHER_TYPE_IPV4 || bytes[14] != 0x45 ||
		     (load_be16(bytes + 20) & 0x3fff) != 0 ||
		     (proto != IPPROTO_UDP && proto != IPPROTO_TCP)))
		return false;
	uint32_t src = load_32(bytes + 26), dst = load_32(bytes + 30), ports = load_32(bytes + 34);
	uint32_t swap = -(uint32_t)(rte_be_to_cpu_32(src) > rte_be_to_cpu_32(dst));
	uint32_t change = (src ^ dst) & swap;
	uint64_t word[5] = {src ^ change, 0, dst ^ change, 0,
		key_tail((ports ^ (((ports << 16 | ports >> 16) ^ ports) & swap)), 0,
			(uint8_t)proto, 0x40)};

	*hash = hash_key(word);
	*from = swap & 1;
	memcpy(key->word, word, sizeof(word));
	key->word[5] = 0;
	return true;
}

static void learn(struct stateless *stateless, const struct padded_key *key, uint32_t hash,
	void **data, uint64_t now)
{
	/* it may have been learned since, in this burst */
	if (rte_hash_lookup_with_hash_data(stateless->hash, key, hash, data) >= 0)
		return;
	*data = NULL;
	if (stateless->n == stateless->capacity ||
		rte_hash_add_key_with_hash_data(
			stateless->hash, key, hash, &stateless->records[stateless->n]) != 0)
		return;
	*data = &stateless->records[stateless->n++];
	((struct record *)*data)->first = now;
}

void stateless_burst(
	struct stateless *stateless, struct rte_mbuf **packets, unsigned n, uint64_t now)
{
	struct padded_key keys[BURST];
	const void *pointers[BURST];
	uint32_t hashes[BURST], bytes[BURST];
	uint8_t from[BURST];
	void *data[BURST];
	unsigned known = 0;
	uint64_t hits = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (unsigned i = 0; i < n; i++) {
		if (!parse(packets[i], &keys[known], &hashes[known], &from[known]))
			continue;
		pointers[known] = &keys[known];
		bytes[known++] = packets[i]->pkt_len;
	}
	if (known == 0)
		return;
	rte_hash_lookup_with_hash_bulk_data(stateless->hash, pointers, hashes, known, &hits, data);
	for (unsigned i = 0; i < known; i++)
		if (likely(hits >> i & 1))
			rte_prefetch0(data[i]);
	for (unsigned i = 0; i < known; i++) {
		if (unlikely(!(hits >> i & 1)))
			learn(stateless, &keys[i], hashes[i], &data[i], now);
		struct record *record = data[i];

		if (unlikely(record == NULL))
			continue;
		record->side[from[i]].packets++;
		record->side[from[i]].bytes += bytes[i];
		record->last = now;
	}
}

uint32_t stateless_flows(const struct stateless *stateless)
{
	return stateless->n;
}
