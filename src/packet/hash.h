/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The keyed hash of a flow key and of a datagram's identity.
 *
 * A secret taken from the kernel's randomness at start is mixed into every word, so that nobody
 * who does not know it can choose keys that collide. The hash is portable: each pair of words is
 * folded by one 64 x 64 -> 128 bit multiplication (the construction of wyhash and MUM).
 *
 * Users take different bits, so that they do not depend on one another: the table's line from bits
 * 32..63, its tag from bits 0..15, the shard from bits 16..31.
 *
 * A secret is set once, before the first hash, and read by every thread after that.
 */

#include <stdint.h>
#include <string.h>

#include "packet/key.h"

struct hash_secret {
	uint64_t word[6];
};

/* Fills the secret from the kernel's randomness. Returns 0, or a negative errno. */
int hash_secret_init(struct hash_secret *secret);

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* For 40 bytes that are still in registers. */
static inline uint64_t hash_words(const struct hash_secret *secret, const uint64_t word[5])
{
	uint64_t a = hash_fold(word[0] ^ secret->word[0], word[1] ^ secret->word[1]);
	uint64_t b = hash_fold(word[2] ^ secret->word[2], word[3] ^ secret->word[3]);

	return hash_fold(a ^ word[4] ^ secret->word[4], b ^ secret->word[5]);
}

static inline uint64_t hash_40_bytes(const struct hash_secret *secret, const void *bytes)
{
	uint64_t word[5];

	memcpy(word, bytes, sizeof(word));
	return hash_words(secret, word);
}

static inline uint64_t flow_key_hash(const struct hash_secret *secret, const struct flow_key *key)
{
	return hash_40_bytes(secret, key);
}

/* The shard of a flow among `n_shards` (1..65536). */
static inline unsigned hash_shard(uint64_t hash, unsigned n_shards)
{
	return (unsigned)((((uint32_t)hash >> 16) * (uint64_t)n_shards) >> 16);
}
