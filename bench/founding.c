/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/founding.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_table_hash.h>
#include <rte_udp.h>

#include "base/mapping.h"
#include "bench/crc.h"

#define KEY_BYTES 64 /* a power of two, says the table */

/* Idle for longer than any bench: nothing ends. */
#define IDLE_TICKS (UINT64_C(1) << 62)

/* The lower address first, and with it its port. */
struct founding_key {
	uint8_t address[2][16];
	uint16_t port[2];
	uint8_t proto;
	uint8_t version;
	uint8_t unused[26];
};

static_assert(sizeof(struct founding_key) == KEY_BYTES, "as the table has it");

struct side {
	uint64_t packets, bytes, last;
};

/* What each packet writes is one line; all of it 192 bytes, as theirs. */
struct record {
	TAILQ_ENTRY(record) list;
	struct side side[2];
	struct founding_key key;
	uint64_t first[2];
	uint8_t tcp_flags[2];
	uint8_t state;
} __attribute__((aligned(64)));

static_assert(offsetof(struct record, key) == 64, "one line");
static_assert(sizeof(struct record) == 192, "as theirs");

TAILQ_HEAD(record_list, record);

struct founding {
	void *table;
	struct record *records;
	uint32_t capacity;
	uint32_t n;
	struct record_list by_use; /* the idlest first */
	uint64_t unrecorded;
};

/* Of the words that are not always 0: CRC-32c in chains side by side, as DPDK's own function for it. */
static uint64_t hash_key(void *key, void *mask, uint32_t key_bytes, uint64_t seed)
{
	const uint64_t *k = key, *m = mask;
	uint64_t k0 = k[0] & m[0], k2 = k[2] & m[2];

	(void)key_bytes;
	uint32_t a = bench_crc(k0, (uint32_t)seed),
		 b = bench_crc(k[1] & m[1], (uint32_t)(k0 >> 32));
	uint32_t c = bench_crc(k2, (uint32_t)k[4]),
		 d = bench_crc(k[3] & m[3], (uint32_t)(k2 >> 32));

	return bench_crc((uint64_t)a << 32 | b, c) ^ bench_crc((uint64_t)d << 32 | k[4] >> 32, 0);
}

int founding_create(struct founding **out, uint32_t capacity, int socket)
{
	struct founding *founding = calloc(1, sizeof(*founding));
	struct rte_table_hash_params params = {
		.name = "founding",
		.key_size = KEY_BYTES,
		.key_offset = sizeof(struct rte_mbuf),
		.n_keys = rte_align32pow2(capacity),
		.n_buckets = rte_align32pow2(capacity) / 2,
		.f_hash = hash_key,
	};

	*out = founding;
	if (founding == NULL)
		return -ENOMEM;
	TAILQ_INIT(&founding->by_use);
	founding->capacity = capacity;
	founding->table = rte_table_hash_ext_ops.f_create(&params, socket, sizeof(uint32_t));
	founding->records =
		mapping_create(capacity * sizeof(struct record), MAPPING_HUGE | MAPPING_POPULATE);
	return founding->table == NULL || founding->records == NULL ? -ENOMEM : 0;
}

void founding_destroy(struct founding *founding)
{
	if (founding == NULL)
		return;
	if (founding->table != NULL)
		rte_table_hash_ext_ops.f_free(founding->table);
	mapping_destroy(founding->records, founding->capacity * sizeof(struct record));
	free(founding);
}

/* Which end of the key has sent it: 0 or 1; -1 when it is no IP packet. `flags`: TCP's. */
static int parse(struct rte_mbuf *packet, struct founding_key *key, uint8_t *flags)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(packet, uint8_t *, RTE_ETHER_HDR_LEN);
	uint16_t type = rte_pktmbuf_mtod(packet, struct rte_ether_hdr *)->ether_type;
	const uint8_t *l4;
	uint16_t src_port = 0, dst_port = 0;
	int swapped;

	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		memcpy(&type, l3 + 2, sizeof(type));
		l3 += sizeof(struct rte_vlan_hdr);
	}
	memset(key, 0, sizeof(*key));
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
		const struct rte_ipv4_hdr *ip = (const void *)l3;

		swapped = rte_be_to_cpu_32(ip->src_addr) > rte_be_to_cpu_32(ip->dst_addr);
		memcpy(key->address[swapped], &ip->src_addr, 4);
		memcpy(key->address[!swapped], &ip->dst_addr, 4);
		key->proto = ip->next_proto_id;
		key->version = 4;
		l4 = l3 + (ip->version_ihl & 0xf) * 4;
	} else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6)) {
		const struct rte_ipv6_hdr *ip = (const void *)l3;

		swapped = memcmp(l3 + 8, l3 + 24, 16) > 0;
		memcpy(key->address[swapped], l3 + 8, 16);
		memcpy(key->address[!swapped], l3 + 24, 16);
		key->proto = ip->proto;
		key->version = 6;
		l4 = l3 + sizeof(*ip);
	} else {
		return -1;
	}
	*flags = 0;
	if (key->proto == IPPROTO_TCP || key->proto == IPPROTO_UDP || key->proto == IPPROTO_SCTP) {
		memcpy(&src_port, l4, 2);
		memcpy(&dst_port, l4 + 2, 2);
	}
	if (key->proto == IPPROTO_TCP)
		*flags = l4[13];
	key->port[swapped] = src_port;
	key->port[!swapped] = dst_port;
	return swapped;
}

/* Gives a new flow a record, as long as there are some. */
static struct record *learn(struct founding *founding, struct founding_key *key, uint64_t now)
{
	uint32_t number = founding->n;
	int found;
	void *entry;

	if (number == founding->capacity ||
		rte_table_hash_ext_ops.f_add(founding->table, key, &number, &found, &entry) != 0) {
		founding->unrecorded++;
		return NULL;
	}
	struct record *record = &founding->records[founding->n++];

	record->key = *key;
	record->first[0] = record->first[1] = now;
	TAILQ_INSERT_TAIL(&founding->by_use, record, list);
	return record;
}

static inline void one(
	struct founding *founding, struct rte_mbuf *packet, uint64_t now, bool listed)
{
	struct founding_key *key = RTE_PTR_ADD(packet, sizeof(*packet));
	struct record *record;
	uint64_t hit = 0;
	uint8_t flags;
	void *entry;
	int side = parse(packet, key, &flags);

	if (side < 0)
		return;
	rte_table_hash_ext_ops.f_lookup(founding->table, &packet, 1, &hit, &entry);
	if (hit != 0) {
		record = &founding->records[*(uint32_t *)entry];
		if (listed) {
			TAILQ_REMOVE(&founding->by_use, record, list);
			TAILQ_INSERT_TAIL(&founding->by_use, record, list);
		}
	} else {
		record = learn(founding, key, now);
		if (record == NULL)
			return;
	}
	record->side[side].packets++;
	record->side[side].bytes += packet->pkt_len;
	record->side[side].last = now;
	if (flags != 0)
		record->tcp_flags[side] |= flags;
}

void founding_burst(
	struct founding *founding, struct rte_mbuf **packets, unsigned n, uint64_t now, bool listed)
{
	struct record *idlest;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (unsigned i = 0; i < n; i++)
		one(founding, packets[i], now, listed);
	idlest = TAILQ_FIRST(&founding->by_use);
	if (idlest != NULL &&
		now - RTE_MAX(idlest->side[0].last, idlest->side[1].last) > IDLE_TICKS)
		TAILQ_REMOVE(&founding->by_use, idlest, list);
}

uint32_t founding_flows(const struct founding *founding)
{
	return founding->n;
}
