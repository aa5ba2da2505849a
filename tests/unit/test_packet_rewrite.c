/* SPDX-License-Identifier: BSD-3-Clause */

/* Rewriting, compared with packets that are built anew from the changed description. */

#include "unit/rewrite_checks.h"

#include "packet/rewrite.h"

enum { N_PACKETS = 200000, HEADROOM = 16 };

static void change_link(struct random_packet *packet, struct rte_mbuf *mbuf,
	struct rewrite_headers *headers, uint64_t *state)
{
	uint16_t tpid = random_below(state, 2) ? 0x8100 : 0x88a8;
	uint16_t tci = (uint16_t)random_next(state);
	uint16_t vlan = tci & 0xfff;
	enum rewrite_side side = random_below(state, 2);

	switch (random_below(state, 4)) {
	case 0:
		random_fill(state, packet->mac[side], 6);
		rewrite_mac(mbuf, side, packet->mac[side]);
		break;
	case 1:
		if (packet->n_tags > RANDOM_MAX_TAGS)
			break;
		push_tag(packet, tpid, tci);
		assert_int_equal(rewrite_vlan_push(mbuf, headers, tpid, tci), REWRITE_DONE);
		break;
	case 2:
		if (packet->n_tags == 0) {
			assert_int_equal(rewrite_vlan_pop(mbuf, headers), REWRITE_UNTAGGED);
			break;
		}
		pop_tag(packet);
		assert_int_equal(rewrite_vlan_pop(mbuf, headers), REWRITE_DONE);
		break;
	default:
		if (packet->n_tags == 0) {
			assert_int_equal(rewrite_vlan_set(mbuf, headers, vlan), REWRITE_UNTAGGED);
			break;
		}
		packet->tci[0] = (packet->tci[0] & 0xf000) | vlan;
		assert_int_equal(rewrite_vlan_set(mbuf, headers, vlan), REWRITE_DONE);
	}
}

/* Ports stand in what was built, or there are none to set. */
static void change_port(struct random_packet *packet, struct rte_mbuf *mbuf,
	const struct rewrite_headers *headers, uint64_t *state)
{
	enum rewrite_side side = random_below(state, 2);
	uint16_t port = (uint16_t)random_next(state);
	enum rewrite_result wanted = REWRITE_DONE;

	if (packet->proto == 132 && packet->fragment == RANDOM_FIRST)
		wanted = REWRITE_FRAGMENT;
	else if (random_has_ports(packet->proto) && packet->fragment != RANDOM_LATER)
		packet->port[side] = port;
	assert_int_equal(rewrite_port(mbuf, headers, side, rte_cpu_to_be_16(port)), wanted);
}

static void change(struct random_packet *packet, struct rte_mbuf *mbuf,
	struct rewrite_headers *headers, uint64_t *state)
{
	enum rewrite_side side = random_below(state, 2);
	uint8_t address[16];

	switch (random_below(state, 4)) {
	case 0:
		change_link(packet, mbuf, headers, state);
		break;
	case 1:
		assert_int_equal(rewrite_ttl(mbuf, headers),
			packet->ttl <= 1 ? REWRITE_EXPIRED : REWRITE_DONE);
		if (packet->ttl > 1)
			packet->ttl--;
		break;
	case 2:
		random_fill(state, address, sizeof(address));
		assert_int_equal(
			rewrite_address(mbuf, headers, side, 10 - packet->version, address),
			REWRITE_OTHER_VERSION);
		assert_int_equal(rewrite_address(mbuf, headers, side, packet->version, address),
			REWRITE_DONE);
		memcpy(packet->addr[side], address, sizeof(address));
		break;
	default:
		change_port(packet, mbuf, headers, state);
	}
}

/*
 * A later fragment was built as the middle of the upper layer, of which the description knows nothing after a
 * change: its bytes after the IP headers stay as they were.
 */
static void check_packet(
	const struct random_packet *packet, const struct rte_mbuf *mbuf, const struct frame *before)
{
	struct frame wanted;

	random_build(packet, &wanted);
	if (packet->fragment == RANDOM_LATER)
		memcpy(wanted.bytes + wanted.upper, before->bytes + before->upper,
			before->length - before->upper);
	check_bytes(mbuf, wanted.bytes, wanted.length);
}

static void random_packets(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < N_PACKETS; i++) {
		struct random_packet packet = random_packet(&random);
		struct rewrite_headers headers;
		uint16_t sizes[6];
		struct frame frame;

		for (size_t j = 0; j < RTE_DIM(sizes); j++)
			sizes[j] = (uint16_t)random_below(&random, i % 4 == 0 ? 12 : 70);
		random_build(&packet, &frame);

		struct rte_mbuf *mbuf =
			mbuf_of(&frame, HEADROOM, sizes, i % 2 ? 0 : RTE_DIM(sizes));

		assert_true(rewrite_read(mbuf, &headers));
		assert_int_equal(headers.version, packet.version);
		assert_int_equal(headers.l4, frame.upper);
		for (unsigned n = 1 + random_below(&random, 4); n > 0; n--)
			change(&packet, mbuf, &headers, &random);
		check_packet(&packet, mbuf, &frame);

		struct rewrite_headers again;

		assert_true(rewrite_read(mbuf, &again));
		assert_memory_equal(&again, &headers, sizeof(again));
		frame_mbuf_free(mbuf);
	}
}

static const uint8_t other[16] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7};

/* Cut anywhere: what is beyond the cut is not missed, and what lies before it is as in the whole frame. */
static void cut_anywhere(void **state)
{
	uint64_t random = 2;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		struct random_packet packet = random_packet(&random);
		struct rewrite_headers headers;
		struct frame frame;

		packet.n_tags = RTE_MIN(packet.n_tags, 1u);
		random_build(&packet, &frame);
		for (size_t length = 0; length <= frame.length; length++) {
			struct frame cut = frame;

			cut.length = length;
			struct rte_mbuf *mbuf = mbuf_of(&cut, 0, NULL, 0);

			if (rewrite_read(mbuf, &headers)) {
				rewrite_mac(mbuf, REWRITE_SOURCE, other);
				rewrite_ttl(mbuf, &headers);
				rewrite_address(mbuf, &headers, REWRITE_DESTINATION, 4, other);
				rewrite_address(mbuf, &headers, REWRITE_SOURCE, 6, other);
				rewrite_port(mbuf, &headers, REWRITE_SOURCE, 7);
				assert_int_equal(rewrite_vlan_push(mbuf, &headers, 0x8100, 1),
					REWRITE_NO_ROOM);
				rewrite_vlan_pop(mbuf, &headers);
			}
			frame_mbuf_free(mbuf);
		}
	}
}

/* Cut between the ports and the checksum: the ports change, and no byte behind them. */
static void cut_behind_ports(void **state)
{
	struct random_packet packet = {.version = 4, .ttl = 9, .proto = 6, .payload = 40};
	struct rewrite_headers headers;
	struct frame frame, wanted;

	(void)state;
	random_build(&packet, &frame);
	frame.length = frame.upper + 17;
	wanted = frame;
	put_be16(wanted.bytes + wanted.upper + 2, 0x1234);

	struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);

	assert_true(rewrite_read(mbuf, &headers));
	assert_int_equal(
		rewrite_port(mbuf, &headers, REWRITE_DESTINATION, rte_cpu_to_be_16(0x1234)),
		REWRITE_DONE);
	check_bytes(mbuf, wanted.bytes, wanted.length);
	frame_mbuf_free(mbuf);
}

/* A damaged packet is not made to look right. */
static void damage_stays(void **state)
{
	static const uint8_t protos[] = {6, 17, 132, 58};
	uint64_t random = 3;

	(void)state;
	for (unsigned i = 0; i < 4000; i++) {
		struct random_packet packet = random_packet(&random);
		struct rewrite_headers headers;
		struct frame frame, right;

		packet.proto = protos[i % RTE_DIM(protos)];
		packet.version = 6;
		packet.n_options = 0;
		packet.fragment = RANDOM_WHOLE;
		packet.no_checksum = false;
		packet.payload = 32;
		random_build(&packet, &frame);
		frame.bytes[frame.length - 1] ^= 0x10;

		struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);

		assert_true(rewrite_read(mbuf, &headers));
		memcpy(packet.addr[0], other, sizeof(other));
		rewrite_address(mbuf, &headers, REWRITE_SOURCE, 6, other);
		packet.port[0] = 77;
		rewrite_port(mbuf, &headers, REWRITE_SOURCE, rte_cpu_to_be_16(77));
		random_build(&packet, &right);
		right.bytes[right.length - 1] ^= 0x10;
		check_bytes(mbuf, right.bytes, right.length);
		frame_mbuf_free(mbuf);
	}
}

static void ttl_ends(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		struct random_packet packet = {
			.version = i % 2 ? 4 : 6, .ttl = (uint8_t)(i / 2), .proto = 17};
		enum rewrite_result wanted = i / 2 <= 1 ? REWRITE_EXPIRED : REWRITE_DONE;
		struct rewrite_headers headers;
		struct frame frame;

		(void)state;
		random_build(&packet, &frame);

		struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);

		assert_true(rewrite_read(mbuf, &headers));
		assert_int_equal(rewrite_ttl_check(mbuf, &headers), wanted);
		assert_int_equal(rewrite_ttl(mbuf, &headers), wanted);
		if (packet.ttl > 1)
			packet.ttl--;
		random_build(&packet, &frame);
		check_bytes(mbuf, frame.bytes, frame.length);
		frame_mbuf_free(mbuf);
	}
}

/* Every port that a UDP datagram may get, one of which makes its sum 0. */
static void udp_sum_0(void **state)
{
	struct random_packet packet = {.version = 4, .ttl = 9, .proto = 17, .payload = 5};
	struct rewrite_headers headers;
	unsigned n_all_ones = 0;
	struct frame frame;

	(void)state;
	random_build(&packet, &frame);

	struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);

	assert_true(rewrite_read(mbuf, &headers));
	for (unsigned port = 0; port <= UINT16_MAX; port++) {
		packet.port[1] = (uint16_t)port;
		random_build(&packet, &frame);
		rewrite_port(mbuf, &headers, REWRITE_DESTINATION, rte_cpu_to_be_16(packet.port[1]));
		check_bytes(mbuf, frame.bytes, frame.length);
		n_all_ones += frame.bytes[frame.upper + 6] == 0xff &&
			      frame.bytes[frame.upper + 7] == 0xff;
	}
	assert_in_range(n_all_ones, 1, 2);
	frame_mbuf_free(mbuf);
}

/* ICMPv6 in an IPv4 packet has no pseudo-header that anybody would know of. */
static void icmpv6_over_ipv4(void **state)
{
	struct random_packet packet = {.version = 4, .ttl = 9, .proto = 58, .payload = 20};
	struct rewrite_headers headers;
	struct frame before, frame;

	(void)state;
	random_build(&packet, &before);

	struct rte_mbuf *mbuf = mbuf_of(&before, 0, NULL, 0);

	assert_true(rewrite_read(mbuf, &headers));
	memcpy(packet.addr[0], other, 4);
	assert_int_equal(rewrite_address(mbuf, &headers, REWRITE_SOURCE, 4, other), REWRITE_DONE);
	random_build(&packet, &frame);
	memcpy(frame.bytes + frame.upper, before.bytes + before.upper, frame.length - frame.upper);
	check_bytes(mbuf, frame.bytes, frame.length);
	frame_mbuf_free(mbuf);
}

static void not_ip(void **state)
{
	struct rewrite_headers headers;
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_type(&frame, 0x0806);
	frame_fill(&frame, 28);

	struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);

	assert_true(rewrite_read(mbuf, &headers));
	assert_int_equal(rewrite_ttl(mbuf, &headers), REWRITE_NOT_IP);
	assert_int_equal(rewrite_address(mbuf, &headers, REWRITE_SOURCE, 4, other), REWRITE_NOT_IP);
	assert_int_equal(rewrite_port(mbuf, &headers, REWRITE_SOURCE, 1), REWRITE_DONE);
	check_bytes(mbuf, frame.bytes, frame.length);
	frame_mbuf_free(mbuf);
}

static void names(void **state)
{
	(void)state;
	for (unsigned i = REWRITE_DONE; i <= REWRITE_FRAGMENT; i++)
		for (unsigned j = REWRITE_DONE; j < i; j++)
			assert_string_not_equal(rewrite_result_name(i), rewrite_result_name(j));
	assert_string_equal(rewrite_result_name(REWRITE_EXPIRED), "ttl expired");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_packets),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(cut_behind_ports),
		cmocka_unit_test(damage_stays),
		cmocka_unit_test(ttl_ends),
		cmocka_unit_test(udp_sum_0),
		cmocka_unit_test(icmpv6_over_ipv4),
		cmocka_unit_test(not_ip),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
