/* SPDX-License-Identifier: BSD-3-Clause */

/* The keyed hash, fingerprints of datagrams, and ports that come later. */

#include "packet/datagram.h"
#include "unit/packet_checks.h"

static struct packet_info fragment4(unsigned proto, unsigned id, unsigned offset, bool reverse)
{
	const char *a = "10.0.0.1";
	const char *b = "10.0.0.2";
	struct packet_info info;
	struct frame frame;

	frame_start(&frame);
	frame_ipv4(&frame, reverse ? b : a, reverse ? a : b, proto);
	frame_ipv4_fragment(&frame, id, offset, true);
	frame_udp(&frame, 9, 1);
	frame_finish(&frame);
	assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
	return info;
}

static struct packet_info fragment6(
	unsigned next_header, uint32_t id, unsigned offset, bool reverse)
{
	const char *a = "2001:db8::1";
	const char *b = "2001:db8::2";
	struct packet_info info;
	struct frame frame;

	frame_start(&frame);
	frame_ipv6(&frame, reverse ? b : a, reverse ? a : b, 44);
	frame_ipv6_fragment(&frame, next_header, id, offset, true);
	frame_udp(&frame, 9, 1);
	frame_finish(&frame);
	assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
	return info;
}

static uint64_t fingerprint(struct packet_info info)
{
	return datagram_fingerprint(&test_secret, &info);
}

/* All fragments of a datagram have one fingerprint, whatever else their keys say. */
static void one_datagram(void **state)
{
	(void)state;
	for (int reverse = 0; reverse <= 1; reverse++) {
		assert_int_equal(fingerprint(fragment4(17, 5, 0, reverse)),
			fingerprint(fragment4(17, 5, 1480, reverse)));
		assert_int_equal(fingerprint(fragment6(17, 5, 0, reverse)),
			fingerprint(fragment6(60, 5, 1448, reverse)));
	}
}

static void other_datagrams(void **state)
{
	struct packet_info base4 = fragment4(17, 5, 8, false);
	struct packet_info base6 = fragment6(17, 5, 8, false);
	struct packet_info other;

	(void)state;
	assert_int_not_equal(fingerprint(base4), fingerprint(fragment4(6, 5, 8, false)));
	assert_int_not_equal(fingerprint(base4), fingerprint(fragment4(17, 6, 8, false)));
	assert_int_not_equal(fingerprint(base4), fingerprint(fragment4(17, 5, 8, true)));
	assert_int_not_equal(fingerprint(base6), fingerprint(fragment6(17, 0x10005, 8, false)));
	assert_int_not_equal(fingerprint(base6), fingerprint(fragment6(17, 5, 8, true)));
	other = base4;
	other.key.zone++;
	assert_int_not_equal(fingerprint(base4), fingerprint(other));
	other = base6;
	other.key.version_wire = FLOW_KEY_VERSION_WIRE(6, TEST_WIRE + 1);
	assert_int_not_equal(fingerprint(base6), fingerprint(other));
}

/* Both addresses count, whichever end the packet comes from. */
static void other_addresses(void **state)
{
	(void)state;
	for (int reverse = 0; reverse <= 1; reverse++) {
		struct packet_info info = fragment6(17, 5, 8, reverse);
		uint64_t base = fingerprint(info);

		for (size_t i = 0; i < sizeof(info.key.addr); i++) {
			info.key.addr[i / 16][i % 16] ^= 1;
			assert_int_not_equal(fingerprint(info), base);
			info.key.addr[i / 16][i % 16] ^= 1;
		}
	}
}

/* A later fragment with its first fragment's ports has its first fragment's key. */
static void ports_of_first_fragment(void **state)
{
	(void)state;
	for (int reverse = 0; reverse <= 1; reverse++) {
		struct packet_info first = fragment4(17, 5, 0, reverse);
		struct packet_info later = fragment4(17, 5, 1480, reverse);

		assert_false(flow_key_equal(&first.key, &later.key));
		extract_set_upper(&test_options, &later, later.key.proto, packet_src_port(&first),
			packet_dst_port(&first));
		assert_sound_info(&later);
		assert_true(flow_key_equal(&first.key, &later.key));
		assert_int_equal(first.hash, later.hash);
		assert_int_equal(first.from, later.from);
		assert_int_equal(later.flags, PACKET_LATER_FRAGMENT);
	}
}

/* With equal addresses the ports alone decide which end comes first. */
static void ports_of_equal_addresses(void **state)
{
	struct packet_info info;
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_ipv4(&frame, "10.0.0.1", "10.0.0.1", 17);
	frame_ipv4_fragment(&frame, 5, 8, false);
	frame_finish(&frame);
	assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
	assert_int_equal(info.from, 0);
	extract_set_upper(
		&test_options, &info, info.key.proto, rte_cpu_to_be_16(256), rte_cpu_to_be_16(255));
	assert_sound_info(&info);
	assert_int_equal(info.from, 1);
	assert_ends(&info, "10.0.0.1", "10.0.0.1", 256, 255);
}

/* Every bit of a key counts, and each of the first `n_words` words of the secret. */
static void check_sight(enum simd_level level, size_t n_words)
{
	struct flow_key key = {.proto = 17};
	struct hash_secret secret = test_secret;
	uint8_t *bytes = (uint8_t *)&key;

	secret.simd = level;
	uint64_t base = flow_key_hash(&secret, &key);

	for (size_t bit = 0; bit < sizeof(key) * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(flow_key_hash(&secret, &key), base);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(flow_key_hash(&secret, &key), base);
	for (size_t i = 0; i < n_words; i++) {
		secret.word[i] ^= 1;
		assert_int_not_equal(flow_key_hash(&secret, &key), base);
		secret.word[i] ^= 1;
	}
}

static void hash_of_plain_c_sees_everything(void **state)
{
	(void)state;
	check_sight(SIMD_PORTABLE, 8);
	if (simd_has(SIMD_SSE42))
		check_sight(SIMD_SSE42, 8);
}

static void hash_by_aes_sees_everything(void **state)
{
	(void)state;
	if (!simd_has(SIMD_AVX2))
		skip();
	check_sight(SIMD_AVX2, HASH_SECRET_WORDS);
	if (simd_has(SIMD_AVX512))
		check_sight(SIMD_AVX512, HASH_SECRET_WORDS);
}

/* The levels of one kind give one hash, the two kinds different ones. */
static void levels_of_one_kind_agree(void **state)
{
	struct hash_secret secret = test_secret;
	struct flow_key key = {.proto = 17};

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t hash[SIMD_N_LEVELS];

		put_be16(key.addr[i % 2] + i % 15, i * 77);
		for (unsigned level = 0; level < SIMD_N_LEVELS; level++) {
			secret.simd = simd_has((enum simd_level)level) ? (enum simd_level)level
								       : SIMD_PORTABLE;
			hash[level] = flow_key_hash(&secret, &key);
		}
		assert_int_equal(hash[SIMD_SSE42], hash[SIMD_PORTABLE]);
		if (simd_has(SIMD_AVX2))
			assert_int_not_equal(hash[SIMD_AVX2], hash[SIMD_PORTABLE]);
		if (simd_has(SIMD_AVX512))
			assert_int_equal(hash[SIMD_AVX512], hash[SIMD_AVX2]);
	}
}

static void secrets_differ(void **state)
{
	struct hash_secret a = {0};
	struct hash_secret b = {0};

	(void)state;
	assert_int_equal(hash_secret_init(&a), 0);
	assert_int_equal(hash_secret_init(&b), 0);
	for (size_t i = 0; i < RTE_DIM(a.word); i++)
		assert_int_not_equal(a.word[i], b.word[i]);
}

/* Flows that differ by a counter in address or port spread over shards within a few per cent. */
static void shards_are_even(void **state)
{
	enum { FLOWS = 96000, SHARDS = 6 };
	unsigned n[SHARDS] = {0};

	(void)state;
	for (unsigned i = 0; i < FLOWS; i++) {
		struct flow_key key = {.proto = 6, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
		unsigned shard;

		put_be16(key.addr[0] + 2, i / 300);
		key.port[1] = rte_cpu_to_be_16((uint16_t)(i % 300));
		shard = hash_shard(flow_key_hash(&test_secret, &key), SHARDS);
		assert_in_range(shard, 0, SHARDS - 1);
		n[shard]++;
	}
	for (unsigned i = 0; i < SHARDS; i++)
		assert_in_range(n[i], FLOWS / SHARDS * 95 / 100, FLOWS / SHARDS * 105 / 100);
	assert_int_equal(hash_shard(UINT64_MAX, 1), 0);
	assert_int_equal(hash_shard(UINT64_MAX, 65536), 65535);
}

/* The next number drawn: splitmix64. */
static uint64_t mixed(uint64_t *seed)
{
	uint64_t number = *seed += UINT64_C(0x9e3779b97f4a7c15);

	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* As many ports in a row as a host uses in a moment have both of two shards, whatever the secret is. */
static void ports_in_a_row_are_spread(void **state)
{
	enum { SECRETS = 2000, PORTS = 64 };
	static const enum simd_level kinds[] = {SIMD_PORTABLE, SIMD_AVX2};
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < SECRETS * RTE_DIM(kinds); i++) {
		struct hash_secret secret = {.simd = kinds[i % RTE_DIM(kinds)]};
		struct flow_key key = {.proto = 17,
			.addr = {{10, 0, 0, 1}, {10, 9, 0, 1}},
			.port[1] = rte_cpu_to_be_16(53)};
		unsigned n = 0;

		if (!simd_has(secret.simd))
			continue;
		for (size_t word = 0; word < HASH_SECRET_WORDS; word++)
			secret.word[word] = mixed(&seed);
		for (unsigned port = 0; port < PORTS; port++) {
			key.port[0] = rte_cpu_to_be_16((uint16_t)(1024 + port));
			n += hash_shard(flow_key_hash(&secret, &key), 2);
		}
		/* a fair coin does not leave this in a million times */
		assert_in_range(n, 12, PORTS - 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_datagram),
		cmocka_unit_test(other_datagrams),
		cmocka_unit_test(other_addresses),
		cmocka_unit_test(ports_of_first_fragment),
		cmocka_unit_test(ports_of_equal_addresses),
		cmocka_unit_test(hash_of_plain_c_sees_everything),
		cmocka_unit_test(hash_by_aes_sees_everything),
		cmocka_unit_test(levels_of_one_kind_agree),
		cmocka_unit_test(secrets_differ),
		cmocka_unit_test(shards_are_even),
		cmocka_unit_test(ports_in_a_row_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
