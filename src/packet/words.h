/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of packet/: a flow key as five words.
 *
 * The key is sorted and hashed while its words are in registers, and stored afterwards. Stored
 * first, byte by byte, and loaded again for the hash, it would stall on store forwarding for longer
 * than all the rest takes. Which end comes first is as good as random, so nothing branches on it.
 *
 * Words hold bytes in the order of the memory, whatever the CPU's own order is.
 */

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/extract.h"
#include "packet/hash.h"
#include "packet/key.h"

static inline uint16_t load_be16(const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	/* DPDK's own is inline assembly, which compilers cannot compute with */
	return RTE_BYTE_ORDER == RTE_BIG_ENDIAN ? value : __builtin_bswap16(value);
}

/* As it lies in memory. */
static inline uint32_t load_32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static inline uint32_t load_be32(const uint8_t *bytes)
{
	const uint32_t value = load_32(bytes);

	return RTE_BYTE_ORDER == RTE_BIG_ENDIAN ? value : __builtin_bswap32(value);
}

/* The 16 bytes of an address in a key. */
struct address {
	uint64_t word[2];
};

static inline struct address address_load(const uint8_t bytes[16])
{
	struct address address;

	memcpy(&address, bytes, sizeof(address));
	return address;
}

/* Four bytes of an IPv4 address, and twelve zeros. */
static inline struct address address_load_ipv4(const uint8_t bytes[4])
{
	uint64_t word = load_32(bytes);

	if (RTE_BYTE_ORDER == RTE_BIG_ENDIAN)
		word <<= 32;
	return (struct address){.word = {word, 0}};
}

/* The last 8 bytes of a key: 4 bytes as they lie in memory (its ports), then the rest. */
static inline uint64_t key_tail(
	uint64_t ports, uint64_t zone, uint64_t proto, uint64_t version_wire)
{
	if (RTE_BYTE_ORDER == RTE_BIG_ENDIAN)
		return ports << 32 | zone << 16 | proto << 8 | version_wire;
	return ports | zone << 32 | proto << 48 | version_wire << 56;
}

/* What makes a key, in the packet's own order. */
struct key_parts {
	struct address src;
	struct address dst;
	uint32_t ports; /* source and destination port as they lie in the packet */
	/* wide: what is spilled as a byte and loaded as a word waits for the store */
	uint64_t zone;
	uint64_t proto;
	uint64_t version_wire;
};

/* 1 when the source is the higher end, else 0: the order of flow_key_make(). */
static inline uint64_t key_parts_order(const struct key_parts *parts)
{
	uint64_t src[2] = {
		rte_be_to_cpu_64(parts->src.word[0]), rte_be_to_cpu_64(parts->src.word[1])};
	uint64_t dst[2] = {
		rte_be_to_cpu_64(parts->dst.word[0]), rte_be_to_cpu_64(parts->dst.word[1])};
	uint32_t ports = rte_be_to_cpu_32(parts->ports);
	unsigned by_port = (ports >> 16) > (ports & 0xffff);
	unsigned by_low = (src[1] > dst[1]) | ((src[1] == dst[1]) & by_port);

	return (src[0] > dst[0]) | ((src[0] == dst[0]) & by_low);
}

/*
 * Stores a key, and its hash if there is a secret to make it by. The words go one by one: copied as a
 * whole, compilers put them on the stack for wider loads.
 */
static inline __attribute__((always_inline)) void key_store(
	struct packet_info *info, const struct hash_secret *secret, const uint64_t word[5])
{
	if (secret != NULL)
		info->hash = hash_words(secret, word);
	memcpy(&info->key.addr[0][0], &word[0], sizeof(word[0]));
	memcpy(&info->key.addr[0][8], &word[1], sizeof(word[1]));
	memcpy(&info->key.addr[1][0], &word[2], sizeof(word[2]));
	memcpy(&info->key.addr[1][8], &word[3], sizeof(word[3]));
	memcpy((uint8_t *)&info->key + 32, &word[4], sizeof(word[4]));
}

/* What the last word of a key has of an IPv4 packet, beside ports, zone, protocol and wire. */
#define FLOW_KEY_TAIL_IPV4 ((uint64_t)FLOW_KEY_VERSION_WIRE(4, 0) << 56)

/*
 * Sets the key of an IPv4 packet, its hash if there is a secret, and the end that it comes from: addresses and
 * both ports as they lie in the packet; `rest` is the key's last word without the ports.
 */
static inline __attribute__((always_inline)) void key_write_ipv4(uint32_t src, uint32_t dst,
	uint32_t ports, uint64_t rest, const struct hash_secret *secret, struct packet_info *info)
{
	uint32_t both = __builtin_bswap32(ports);
	/* address and port of an end, as one number */
	uint64_t src_end = (uint64_t)__builtin_bswap32(src) << 16 | both >> 16;
	uint64_t dst_end = (uint64_t)__builtin_bswap32(dst) << 16 | (both & 0xffff);
	uint64_t from = src_end > dst_end;
	uint32_t swap = (src ^ dst) & -(uint32_t)from;
	unsigned turn = (unsigned)from << 4;
	const uint64_t word[5] = {
		src ^ swap,
		0,
		dst ^ swap,
		0,
		(ports << turn | ports >> ((32 - turn) & 31)) | rest,
	};

	key_store(info, secret, word);
	info->from = (uint8_t)from;
}

/* Sets the key, its hash if there is a secret, and the end that the packet comes from. */
static inline __attribute__((always_inline)) void key_parts_write(
	const struct key_parts *parts, const struct hash_secret *secret, struct packet_info *info)
{
	uint64_t from = key_parts_order(parts);
	uint64_t swap[2] = {
		(parts->src.word[0] ^ parts->dst.word[0]) & -from,
		(parts->src.word[1] ^ parts->dst.word[1]) & -from,
	};
	/* The ports are two halves of a word: they change places by a turn of 16 bits or of none. */
	uint32_t turn = (uint32_t)from << 4;
	uint32_t ports = parts->ports << turn | parts->ports >> ((32 - turn) & 31);
	const uint64_t word[5] = {
		parts->src.word[0] ^ swap[0],
		parts->src.word[1] ^ swap[1],
		parts->dst.word[0] ^ swap[0],
		parts->dst.word[1] ^ swap[1],
		key_tail(ports, parts->zone, parts->proto, parts->version_wire),
	};

	key_store(info, secret, word);
	info->from = (uint8_t)from;
}
