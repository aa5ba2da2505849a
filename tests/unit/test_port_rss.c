/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include <rte_ethdev.h>
#include <rte_thash.h>

#include "port/rss.h"

static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ICMP};

/* A packet from `src` to `dst`, and its key. */
struct packet {
	uint8_t src[16], dst[16];
	rte_be16_t src_port, dst_port;
	struct flow_key key;
};

static void make(struct packet *packet, unsigned version, uint8_t proto)
{
	bool ports = proto != IPPROTO_ICMP;

	memset(packet, 0, sizeof(*packet));
	for (unsigned i = 0; i < (version == 4 ? 4 : 16); i++) {
		packet->src[i] = (uint8_t)rand();
		packet->dst[i] = (uint8_t)rand();
	}
	packet->src_port = ports ? (rte_be16_t)rand() : 0;
	packet->dst_port = ports ? (rte_be16_t)rand() : 0;
	packet->key.proto = proto;
	packet->key.version_wire = FLOW_KEY_VERSION_WIRE(version, 3);
	flow_key_make(&packet->key, packet->src, packet->dst, packet->src_port, packet->dst_port);
}

/* What a NIC does: the fields as they stand in the packet, word by word, with the whole key. */
static uint32_t nic_hash(uint16_t pattern, const struct packet *packet, bool back)
{
	uint8_t key[RSS_KEY_BYTES];
	const uint8_t *src = back ? packet->dst : packet->src;
	const uint8_t *dst = back ? packet->src : packet->dst;
	unsigned bytes = flow_key_version(&packet->key) == 4 ? 4 : 16;
	uint32_t words[9];
	unsigned n = 2 * bytes / 4;

	memcpy(words, src, bytes);
	memcpy((uint8_t *)words + bytes, dst, bytes);
	for (unsigned i = 0; i < n; i++)
		words[i] = rte_be_to_cpu_32(words[i]);
	if (packet->key.proto != IPPROTO_ICMP) {
		uint32_t a = rte_be_to_cpu_16(packet->src_port);
		uint32_t b = rte_be_to_cpu_16(packet->dst_port);

		words[n++] = back ? b << 16 | a : a << 16 | b;
	}
	rss_key(pattern, key);
	return rte_softrss(words, n, key);
}

static void test_hash(void **state)
{
	struct packet packet;
	uint32_t all = 0, none = UINT32_MAX;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		for (unsigned version = 4; version <= 6; version += 2) {
			for (unsigned i = 0; i < sizeof(protocols); i++) {
				make(&packet, version, protocols[i]);
				uint16_t pattern = rss_pattern((uint16_t)rand());
				uint32_t hash = rss_hash(pattern, &packet.key);

				assert_int_equal(hash, nic_hash(pattern, &packet, false));
				assert_int_equal(hash, nic_hash(pattern, &packet, true));
				all |= hash;
				none &= hash;
			}
		}
	}
	assert_int_equal(all, UINT32_MAX);
	assert_int_equal(none, 0);
}

static void test_kinds(void **state)
{
	struct packet packet;

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned i = 0; i < sizeof(protocols); i++) {
			make(&packet, version, protocols[i]);
			assert_int_equal(rss_kind(&packet.key),
				(version == 4 ? RSS_IPV4_TCP : RSS_IPV6_TCP) + i);
		}
	/* asked for and taken is the same again, kind by kind */
	for (unsigned kind = 0; kind < RSS_N_KINDS; kind++)
		assert_int_equal(rss_kinds(rss_flags(UINT64_C(1) << kind)), UINT64_C(1) << kind);
	assert_int_equal(rss_kinds(rss_flags(0xff)), 0xff);
	assert_int_equal(rss_kinds(0), 0);
	assert_int_equal(rss_flags(0), 0);
	/* some drivers have one flag for all of IPv4, others one for each kind of it */
	assert_int_equal(rss_kinds(RTE_ETH_RSS_IPV4), UINT64_C(1) << RSS_IPV4_OTHER);
	assert_int_equal(rss_kinds(RTE_ETH_RSS_NONFRAG_IPV6_OTHER), UINT64_C(1) << RSS_IPV6_OTHER);
	assert_int_equal(rss_kinds(RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_VXLAN), 0);
}

/* The NIC takes entry `hash % size` of a table filled with rss_queue(entry). */
static void test_queue(void **state)
{
	(void)state;
	for (unsigned size = 128; size <= RSS_RETA_MAX; size *= 2)
		for (unsigned n = 1; n <= 16; n++)
			for (uint32_t hash = 0; hash < 2000; hash++)
				assert_int_equal(rss_queue(hash % size, n), rss_queue(hash, n));
	for (unsigned n = 1; n <= 16; n++) {
		unsigned seen = 0;

		for (uint32_t hash = 0; hash < 128; hash++) {
			assert_true(rss_queue(hash, n) < n);
			seen |= 1u << rss_queue(hash, n);
		}
		assert_int_equal(seen, (1u << n) - 1);
	}
}

/* Whatever the pattern, neighbouring addresses and ports go to all queues alike. */
static void test_patterns(void **state)
{
	static bool met[65536];
	unsigned n_patterns = 0;

	(void)state;
	for (unsigned random = 0; random < 65536; random++) {
		uint16_t pattern = rss_pattern((uint16_t)random);

		n_patterns += !met[pattern];
		met[pattern] = true;
		if (random % 16 != 0)
			continue;
		for (unsigned field = 0; field < 3; field++) {
			struct flow_key key = {
				.proto = IPPROTO_UDP, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
			unsigned seen[4] = {0};

			for (unsigned i = 0; i < 256; i++) {
				key.addr[0][field == 0 ? 3 : 2] = field == 2 ? 0 : (uint8_t)i;
				key.port[1] = field == 2 ? rte_cpu_to_be_16((uint16_t)i) : 0;
				seen[rss_queue(rss_hash(pattern, &key), 4)]++;
			}
			for (unsigned queue = 0; queue < 4; queue++)
				assert_int_equal(seen[queue], 64);
		}
	}
	assert_int_equal(n_patterns, 5344);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
