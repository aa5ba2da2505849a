/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "frames.h"
#include "packet/extract.h"
#include "traffic/stream.h"
#include "traffic/stream_write.h"

#define GUARD 0xa5

/* Every kind of flow, and lengths of all sorts. */
static const struct stream_config mixed = {
	.flows = 1000000,
	.seed = 7,
	.proto_share = {100, 80, 40, 36},
	.ipv6_share = 96,
	.vlan_share = 64,
	.size_min = 64,
	.size_max = 1518,
};

static struct stream_set *make(const struct stream_config *config)
{
	struct stream_set *set;
	struct error error;

	assert_int_equal(stream_set_create(&set, config, &error), 0);
	return set;
}

/* Writes a frame with guards around it; returns its length. */
static uint16_t write_frame(const struct stream_set *set, uint32_t stream, uint8_t *frame)
{
	uint16_t length = stream_length(set, stream);
	uint8_t *room = malloc(length + 2u);

	assert_non_null(room);
	memset(room, GUARD, length + 2u);
	assert_int_equal(stream_write(set, stream, room + 1), length);
	assert_int_equal(room[0], GUARD);
	assert_int_equal(room[length + 1], GUARD);
	memcpy(frame, room + 1, length);
	memset(room, ~GUARD, length + 2u);
	/* out of line, into other memory, the same */
	assert_int_equal(stream_frame(set, stream, room + 1), length);
	assert_memory_equal(room + 1, frame, length);
	free(room);
	return length;
}

static void read_key(
	const uint8_t *frame, uint16_t length, struct packet_info *info, const char *what)
{
	static const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6}};
	const struct extract_options options = {.secret = &secret, .zone_vlan = false};
	struct rte_mbuf *mbuf = frame_mbuf(frame, length);

	if (extract(&options, mbuf, 0, info) != EXTRACT_IP)
		fail_msg("%s: no IP packet", what);
	frame_mbuf_free(mbuf);
}

/* What a frame is, read without any of the code that made it. */
struct view {
	unsigned version, proto, vlan, l3, l4, l4_length, length;
	const uint8_t *bytes;
};

static unsigned be16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static struct view view_of(const uint8_t *bytes, unsigned length)
{
	struct view view = {.bytes = bytes, .length = length, .l3 = 14};
	unsigned type = be16(bytes + 12);

	if (type == 0x8100) {
		view.vlan = be16(bytes + 14);
		type = be16(bytes + 16);
		view.l3 = 18;
	}
	if (type == 0x0800) {
		assert_int_equal(bytes[view.l3], 0x45);
		view.version = 4;
		view.proto = bytes[view.l3 + 9];
		view.l4 = view.l3 + 20;
		view.l4_length = be16(bytes + view.l3 + 2) - 20;
	} else {
		assert_int_equal(type, 0x86dd);
		assert_int_equal(bytes[view.l3] >> 4, 6);
		view.version = 6;
		view.proto = bytes[view.l3 + 6];
		view.l4 = view.l3 + 40;
		view.l4_length = be16(bytes + view.l3 + 4);
	}
	return view;
}

/* One's complement sum, RFC 1071; an odd last byte counts as the high one of its word. */
static uint32_t sum_of(const uint8_t *bytes, unsigned n, uint32_t sum)
{
	for (unsigned i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint32_t)bytes[i] << 8 : bytes[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t crc32c(const uint8_t *bytes, unsigned n)
{
	uint32_t crc = UINT32_MAX;

	for (unsigned i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return ~crc;
}

static void check_sctp(const struct view *view)
{
	uint8_t copy[STREAM_MAX_BYTES];
	const uint8_t *l4 = view->bytes + view->l4;

	memcpy(copy, l4, view->l4_length);
	memset(copy + 8, 0, 4);
	uint32_t crc = crc32c(copy, view->l4_length);

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(l4[8 + i], crc >> 8 * i & 0xff);
	/* a whole number of words; a chunk that fills it; a tag that is not that of an INIT */
	assert_int_equal(view->l4_length % 4, 0);
	assert_int_equal(be16(l4 + 14), view->l4_length - 12);
	assert_true(l4[4] != 0 || l4[5] != 0 || l4[6] != 0 || l4[7] != 0);
}

static void check_checksums(const struct view *view)
{
	const uint8_t *l3 = view->bytes + view->l3, *l4 = view->bytes + view->l4;
	bool pseudo = view->proto != IPPROTO_ICMP;
	uint32_t sum = 0;

	if (view->version == 4)
		assert_int_equal(sum_of(l3, 20, 0), 0xffff);
	if (view->proto == IPPROTO_SCTP) {
		check_sctp(view);
		return;
	}
	if (pseudo) {
		sum = view->proto + view->l4_length;
		sum = view->version == 4 ? sum_of(l3 + 12, 8, sum) : sum_of(l3 + 8, 32, sum);
	}
	assert_int_equal(sum_of(l4, view->l4_length, sum), 0xffff);
	if (view->proto == IPPROTO_UDP)
		assert_int_not_equal(be16(l4 + 6), 0);
}

/* Lengths that fit one another, whatever there is of padding. */
static void check_lengths(const struct view *view)
{
	unsigned end = view->l4 + view->l4_length;

	assert_true(end <= view->length);
	assert_true(view->length - end < (view->proto == IPPROTO_SCTP ? 4 : 1));
	if (view->proto == IPPROTO_UDP)
		assert_int_equal(be16(view->bytes + view->l4 + 4), view->l4_length);
}

/* Both streams of a flow: right in themselves, and of one key. */
static void check_flow(const struct stream_set *set, uint32_t flow, struct flow_key *key)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_SCTP, IPPROTO_ICMP};
	static uint8_t frame[STREAM_MAX_BYTES];
	struct packet_info info[2];
	unsigned kind = stream_kind(set, flow);
	uint8_t client_mac[6];

	for (unsigned side = 0; side < 2; side++) {
		uint16_t length = write_frame(set, 2 * flow + side, frame);
		struct view view = view_of(frame, length);
		unsigned address = view.version == 4 ? 4 : 16;
		const uint8_t *src = frame + view.l3 + (view.version == 4 ? 12 : 8);

		check_checksums(&view);
		check_lengths(&view);
		assert_int_equal(view.version == 6, (kind & STREAM_KIND_IPV6) != 0);
		assert_int_equal(view.l3 == 18, (kind & STREAM_KIND_VLAN) != 0);
		assert_true(view.l3 == 14 || (view.vlan >= 1 && view.vlan <= 4094));
		if (view.proto != IPPROTO_ICMPV6)
			assert_int_equal(view.proto, protocols[kind % STREAM_N_PROTOS]);
		assert_int_equal(
			stream_find(set, view.version, src, src + address), 2 * flow + side);
		if (side == 0)
			memcpy(client_mac, frame + 6, 6);
		else
			assert_memory_equal(client_mac, frame, 6);
		read_key(frame, length, &info[side], "a stream's frame");
		assert_int_equal(info[side].bytes, length);
		assert_int_equal(info[side].flags & (PACKET_CUT | PACKET_FRAGMENT), 0);
		if (view.proto == IPPROTO_TCP)
			assert_int_equal(info[side].tcp.flags, TCP_ACK);
	}
	assert_memory_equal(&info[0].key, &info[1].key, sizeof(info[0].key));
	assert_int_not_equal(info[0].from, info[1].from);
	/* the client has the higher port */
	if (info[0].flags & PACKET_HAS_PORTS)
		assert_true(rte_be_to_cpu_16(packet_src_port(&info[0])) >
			    rte_be_to_cpu_16(packet_dst_port(&info[0])));
	*key = info[0].key;
}

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct flow_key));
}

static void check_distinct(struct flow_key *keys, size_t n)
{
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < n; i++)
		if (flow_key_equal(&keys[i - 1], &keys[i]))
			fail_msg("two flows have one key");
}

static void test_every_kind_is_right(void **state)
{
	const uint32_t n = 20000;
	struct stream_set *set = make(&mixed);
	struct flow_key *keys = malloc(n * sizeof(*keys));
	unsigned seen[STREAM_N_KINDS] = {0};

	(void)state;
	assert_non_null(keys);
	for (uint32_t flow = 0; flow < n; flow++) {
		check_flow(set, flow, &keys[flow]);
		seen[stream_kind(set, flow)]++;
	}
	for (unsigned kind = 0; kind < STREAM_N_KINDS; kind++)
		assert_true(seen[kind] > 0);
	check_distinct(keys, n);
	free(keys);
	stream_set_destroy(set);
}

/* The shortest frames of each kind hold their headers. */
static void test_shortest(void **state)
{
	struct stream_config config = mixed;
	unsigned least = STREAM_MAX_BYTES, most = 0;
	struct stream_set *set;
	struct flow_key key;

	(void)state;
	config.size_max = 0;
	set = make(&config);
	for (uint32_t flow = 0; flow < 2048; flow++) {
		unsigned length = stream_length(set, 2 * flow);

		least = length < least ? length : least;
		most = length > most ? length : most;
		check_flow(set, flow, &key);
	}
	assert_int_equal(least, 64);
	assert_int_equal(most, 90);
	stream_set_destroy(set);
}

static void test_longest(void **state)
{
	struct stream_config config = mixed;
	struct stream_set *set;
	struct flow_key key;

	(void)state;
	config.size_min = STREAM_MAX_BYTES;
	config.size_max = STREAM_MAX_BYTES;
	set = make(&config);
	for (uint32_t flow = 0; flow < 512; flow++) {
		assert_int_equal(stream_length(set, 2 * flow), STREAM_MAX_BYTES);
		check_flow(set, flow, &key);
	}
	stream_set_destroy(set);
}

/* A million flows of all kinds, and the last ones that there can be. */
static void test_keys_are_distinct(void **state)
{
	const uint32_t n = 1000000;
	struct stream_config config = mixed;
	struct flow_key *keys = malloc(n * sizeof(*keys));
	static uint8_t frame[STREAM_MAX_BYTES];
	struct packet_info info;

	(void)state;
	assert_non_null(keys);
	config.flows = STREAM_MAX_FLOWS;
	config.size_max = 0;
	struct stream_set *set = make(&config);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t flow = i % 2 == 0 ? i : STREAM_MAX_FLOWS - i;
		struct view view;

		uint16_t length = stream_frame(set, 2 * flow, frame);

		read_key(frame, length, &info, "one of a million");
		keys[i] = info.key;
		/* whatever names the pair of addresses names one flow */
		view = view_of(frame, length);
		const uint8_t *src = frame + view.l3 + (view.version == 4 ? 12 : 8);

		assert_int_equal(
			stream_find(set, view.version, src, src + (view.version == 4 ? 4 : 16)),
			2 * flow);
	}
	check_distinct(keys, n);
	free(keys);
	stream_set_destroy(set);
}

/* A plain set's frames are those that the same flows have in a set that is not plain. */
static void check_plain(enum stream_proto proto)
{
	static uint8_t a[STREAM_MAX_BYTES], b[STREAM_MAX_BYTES];
	struct stream_config plain = {.flows = 100000}, other = {.flows = 100000};
	struct flow_key key;

	plain.proto_share[proto] = 256;
	other.proto_share[proto] = 255;
	other.proto_share[STREAM_ICMP] = 1;
	for (unsigned size = 64; size < 9000; size = size * 5 + 1) {
		plain.size_min = other.size_min = (uint16_t)size;
		struct stream_set *fast = make(&plain), *slow = make(&other);

		assert_true(stream_set_is_plain(fast));
		assert_false(stream_set_is_plain(slow));
		for (uint32_t stream = 0; stream < (size == 64 ? 200000 : 2000); stream++) {
			if (stream_kind(slow, stream / 2) != proto)
				continue;
			assert_int_equal(stream_write_plain(fast, stream, a), size);
			assert_int_equal(stream_frame(slow, stream, b), size);
			assert_memory_equal(a, b, size);
		}
		check_flow(fast, 77, &key);
		stream_set_destroy(fast);
		stream_set_destroy(slow);
	}
}

static void test_plain_is_the_same(void **state)
{
	(void)state;
	check_plain(STREAM_UDP);
	check_plain(STREAM_TCP);
}

/* Four at once are what they are one by one, whatever is beside them. */
static void test_four_at_once(void **state)
{
	const struct stream_config plain = {.flows = STREAM_MAX_FLOWS};
	const struct stream_config tcp = {.flows = STREAM_MAX_FLOWS, .proto_share = {0, 256}};
	struct stream_config longer = plain;
	const struct stream_config *configs[] = {&plain, &tcp, &longer, &mixed};
	static uint8_t frames[4][STREAM_MAX_BYTES], one[STREAM_MAX_BYTES];

	(void)state;
	longer.size_min = 777;
	for (unsigned c = 0; c < 4; c++) {
		struct stream_set *set = make(configs[c]);
		uint32_t streams = 2 * configs[c]->flows;

		for (uint32_t i = 0; i < 40000; i++) {
			uint32_t four[4] = {i, streams - 1 - i, i * 7919 % streams, 5};
			uint8_t *const to[4] = {frames[0], frames[1], frames[2], frames[3]};

			for (unsigned k = 0; k < 4; k++)
				memset(frames[k], GUARD, stream_length(set, four[k]) + 1u);
			stream_write_4(set, four, to);
			for (unsigned k = 0; k < 4; k++) {
				unsigned length = stream_frame(set, four[k], one);

				assert_memory_equal(frames[k], one, length);
				assert_int_equal(frames[k][length], GUARD);
			}
			if (c > 1 && i == 4000)
				break;
		}
		stream_set_destroy(set);
	}
}

static uint64_t digest(const struct stream_config *config)
{
	struct stream_set *set = make(config);
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	static uint8_t frame[STREAM_MAX_BYTES];

	for (uint32_t stream = 0; stream < 4096; stream++) {
		unsigned length = stream_frame(set, stream, frame);

		for (unsigned i = 0; i < length; i++)
			hash = (hash ^ frame[i]) * UINT64_C(0x100000001b3);
	}
	stream_set_destroy(set);
	return hash;
}

/* On every machine, and from now on: what others have measured or stored would change its meaning. */
static void test_same_words_same_bytes(void **state)
{
	const struct stream_config plain = {.flows = 2048};
	struct stream_config imix = mixed, reseeded = mixed;

	(void)state;
	imix.size_min = imix.size_max = 0;
	imix.imix = true;
	reseeded.seed++;
	assert_int_equal(digest(&plain), UINT64_C(0x81ff0e3975ec1a81));
	assert_int_equal(digest(&mixed), UINT64_C(0x9431e2cd608a951b));
	assert_int_equal(digest(&imix), UINT64_C(0x63fe4b648a0a7691));
	assert_int_not_equal(digest(&mixed), digest(&reseeded));
}

/* Any 256 flows in a row have exactly their shares, and each share of another has its part. */
static void test_shares_are_exact(void **state)
{
	struct stream_set *set = make(&mixed);

	(void)state;
	for (uint32_t first = 0; first < 1000; first += 37) {
		unsigned n[STREAM_N_KINDS] = {0}, protos[STREAM_N_PROTOS] = {0};
		unsigned ipv6 = 0, vlan = 0, both = 0;

		for (uint32_t flow = first; flow < first + 256; flow++)
			n[stream_kind(set, flow)]++;
		for (unsigned kind = 0; kind < STREAM_N_KINDS; kind++) {
			protos[kind % STREAM_N_PROTOS] += n[kind];
			ipv6 += kind & STREAM_KIND_IPV6 ? n[kind] : 0;
			vlan += kind & STREAM_KIND_VLAN ? n[kind] : 0;
			both += (kind & STREAM_KIND_IPV6) && (kind & STREAM_KIND_VLAN) ? n[kind]
										       : 0;
		}
		for (unsigned i = 0; i < STREAM_N_PROTOS; i++)
			assert_int_equal(protos[i], mixed.proto_share[i]);
		assert_int_equal(ipv6, 96);
		assert_int_equal(vlan, 64);
		assert_in_range(both, 96 * 64 / 256 - 2, 96 * 64 / 256 + 2);
		/* UDP with IPv6: 100 * 96 / 256 = 37.5 */
		assert_in_range(n[STREAM_UDP | STREAM_KIND_IPV6] +
					n[STREAM_UDP | STREAM_KIND_IPV6 | STREAM_KIND_VLAN],
			35, 40);
	}
	stream_set_destroy(set);
}

static void test_imix(void **state)
{
	const struct stream_config config = {.flows = 120000, .imix = true};
	struct stream_set *set = make(&config);
	unsigned n[3] = {0};

	(void)state;
	for (uint32_t flow = 0; flow < config.flows; flow++) {
		unsigned length = stream_length(set, 2 * flow);

		assert_true(length == 64 || length == 594 || length == 1518);
		n[length == 64 ? 0 : length == 594 ? 1 : 2]++;
		assert_int_equal(length, stream_length(set, 2 * flow + 1));
	}
	/* 70,000, 40,000 and 10,000, to four standard deviations */
	assert_in_range(n[0], 70000 - 700, 70000 + 700);
	assert_in_range(n[1], 40000 - 660, 40000 + 660);
	assert_in_range(n[2], 10000 - 390, 10000 + 390);
	stream_set_destroy(set);
}

static void test_sizes(void **state)
{
	const struct stream_config config = {.flows = 10000, .size_min = 100, .size_max = 103};
	struct stream_set *set = make(&config);
	unsigned n[4] = {0};

	(void)state;
	for (uint32_t flow = 0; flow < config.flows; flow++) {
		unsigned length = stream_length(set, 2 * flow);

		assert_in_range(length, 100, 103);
		n[length - 100]++;
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(n[i], 2500 - 180, 2500 + 180);
	stream_set_destroy(set);
}

/* Addresses that no stream of the set has. */
static void test_find_nothing(void **state)
{
	const struct stream_config config = {.flows = 1000, .ipv6_share = 128};
	struct stream_config fewer = config;
	struct stream_set *set, *few;
	uint8_t frame[128];

	(void)state;
	fewer.flows = 10;
	set = make(&config);
	few = make(&fewer);
	for (uint32_t stream = 0; stream < 2000; stream++) {
		struct view view = view_of(frame, stream_frame(set, stream, frame));
		unsigned address = view.version == 4 ? 4 : 16;
		uint8_t ends[32];

		memcpy(ends, frame + view.l3 + (view.version == 4 ? 12 : 8), 2 * address);
		assert_int_equal(stream_find(few, view.version, ends, ends + address),
			stream < 20 ? stream : STREAM_NONE);
		assert_int_equal(stream_find(set, view.version, ends, ends + address), stream);
		/* the same pair the other way round is the other direction */
		assert_int_equal(stream_find(set, view.version, ends + address, ends), stream ^ 1);
		for (unsigned bit = 0; bit < 16 * address; bit++) {
			ends[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(
				stream_find(set, view.version, ends, ends + address), STREAM_NONE);
			ends[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	stream_set_destroy(set);
	stream_set_destroy(few);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		struct stream_config config;
		const char *text;
	} wrong[] = {
		{{.flows = 0}, "flows: 0 is not 1 to 67108864"},
		{{.flows = STREAM_MAX_FLOWS + 1}, "flows: 67108865 is not 1 to 67108864"},
		{{.flows = 1, .proto_share = {1}},
			"udp, tcp, sctp, icmp: the shares add up to 1, not to 256"},
		{{.flows = 1, .proto_share = {0, 65535, 257}},
			"tcp: a share of 65535 is more than all 256"},
		{{.flows = 1, .ipv6_share = 257}, "ipv6: a share of 257 is more than all 256"},
		{{.flows = 1, .vlan_share = 999}, "vlan: a share of 999 is more than all 256"},
		{{.flows = 1, .size_min = 63}, "size: 63 to 63 bytes is not within 64 to 9216"},
		{{.flows = 1, .size_max = 9217}, "size: 64 to 9217 bytes is not within 64 to 9216"},
		{{.flows = 1, .size_min = 65, .size_max = 64},
			"size: from 65 to 64 bytes runs backwards"},
		{{.flows = 1, .size_min = 64, .imix = true}, "imix: has sizes of its own"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct stream_set *set;
		struct error error;

		assert_int_equal(stream_set_create(&set, &wrong[i].config, &error), -EINVAL);
		assert_string_equal(error.text, wrong[i].text);
	}
	stream_set_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_is_right),
		cmocka_unit_test(test_shortest),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_keys_are_distinct),
		cmocka_unit_test(test_plain_is_the_same),
		cmocka_unit_test(test_four_at_once),
		cmocka_unit_test(test_same_words_same_bytes),
		cmocka_unit_test(test_shares_are_exact),
		cmocka_unit_test(test_imix),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_find_nothing),
		cmocka_unit_test(test_what_is_refused),
	};

	return cmocka_run_group_tests_name("traffic/stream", tests, NULL, NULL);
}
