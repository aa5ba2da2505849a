/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of extraction share: reading a frame, and comparing what was read. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/extract.h"
#include "unit/frames.h"

#define TEST_WIRE 5

static struct hash_secret test_secret = {
	.word = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x2545f4914f6cdd1d,
		0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3,
		0x589965cc75374cc3, 0x1d8e4e27c47d124f, 0xeb44accab455d165, 0x9c6e6877736c46e3,
		0x452821e638d01377, 0xbe5466cf34e90c6c, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917,
		0x9216d5d98979fb1b, 0xd1310ba698dfb5ac},
};

/* Before main(): each SIMD level is tested in turn (tests/with_simd.c). */
static __attribute__((constructor)) void test_secret_choose_level(void)
{
	if (simd_choose(&test_secret.simd) < 0)
		abort();
}

static const struct extract_options test_options = {.secret = &test_secret, .zone_vlan = true};

/* The padding of the struct is nobody's promise, so fields are compared one by one. */
static inline void assert_same_info(const struct packet_info *a, const struct packet_info *b)
{
	assert_memory_equal(&a->key, &b->key, sizeof(a->key));
	assert_int_equal(a->hash, b->hash);
	assert_memory_equal(&a->tcp, &b->tcp, sizeof(a->tcp));
	assert_int_equal(a->fragment_id, b->fragment_id);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->l4_offset, b->l4_offset);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->from, b->from);
	if (a->flags & PACKET_FRAGMENT) {
		assert_int_equal(a->fragment_offset, b->fragment_offset);
		assert_int_equal(a->fragment_length, b->fragment_length);
	}
}

/* Whatever was read: its key is sorted, its hash is the key's, and its end is the right one. */
static inline void assert_sound_info(const struct packet_info *info)
{
	struct flow_key key = info->key;

	assert_in_range(info->from, 0, 1);
	assert_int_equal(
		flow_key_make(&key, info->key.addr[info->from], info->key.addr[!info->from],
			packet_src_port(info), packet_dst_port(info)),
		info->from);
	assert_true(flow_key_equal(&key, &info->key));
	assert_int_equal(flow_key_hash(&test_secret, &key), info->hash);
	assert_int_equal(flow_key_wire(&key), TEST_WIRE);
}

/* Reads the first `length` bytes of a frame in segments of the given sizes. */
static inline enum extract_result read_sized(const struct frame *frame, size_t length,
	const uint16_t *sizes, size_t n_sizes, struct packet_info *info)
{
	struct rte_mbuf *mbuf = frame_mbuf_sized(frame->bytes, length, sizes, n_sizes);
	struct packet_info before;

	memset(info, 0xa5, sizeof(*info));
	before = *info;
	enum extract_result result = extract(&test_options, mbuf, TEST_WIRE, info);

	frame_mbuf_free(mbuf);
	if (result == EXTRACT_IP)
		assert_sound_info(info);
	else
		assert_memory_equal(info, &before, sizeof(before));
	return result;
}

static inline enum extract_result read_frame(const struct frame *frame, struct packet_info *info)
{
	return read_sized(frame, frame->length, NULL, 0, info);
}

/* The packet's own source and destination, as text; `address` is one of its key's. */
static inline void assert_address(
	const struct packet_info *info, const uint8_t address[16], const char *text)
{
	uint8_t want[16] = {0};
	int family = flow_key_version(&info->key) == 4 ? AF_INET : AF_INET6;

	assert_int_equal(inet_pton(family, text, want), 1);
	assert_memory_equal(address, want, sizeof(want));
}

static inline void assert_ends(const struct packet_info *info, const char *src, const char *dst,
	unsigned sport, unsigned dport)
{
	assert_address(info, info->key.addr[info->from], src);
	assert_address(info, info->key.addr[!info->from], dst);
	assert_int_equal(rte_be_to_cpu_16(packet_src_port(info)), sport);
	assert_int_equal(rte_be_to_cpu_16(packet_dst_port(info)), dport);
}
