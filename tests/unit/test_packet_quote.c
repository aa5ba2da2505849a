/* SPDX-License-Identifier: BSD-3-Clause */

/* The packets that ICMP and ICMPv6 errors quote. */

#include "packet/quote.h"
#include "unit/packet_checks.h"

static bool quote(const struct frame *frame, struct packet_info *quoted)
{
	struct packet_info info;
	struct rte_mbuf *mbuf = frame_mbuf(frame->bytes, frame->length);

	assert_int_equal(extract(&test_options, mbuf, TEST_WIRE, &info), EXTRACT_IP);
	assert_true(info.flags & PACKET_ICMP_ERROR);
	bool found = extract_quote(&test_options, mbuf, &info, quoted);

	frame_mbuf_free(mbuf);
	if (found) {
		assert_sound_info(quoted);
		assert_int_equal(quoted->bytes, 0);
		assert_int_equal(quoted->key.zone, info.key.zone);
	}
	return found;
}

static void error4(struct frame *f, unsigned type)
{
	frame_start(f);
	frame_tag(f, 0x8100, 12);
	frame_ipv4(f, "203.0.113.1", "10.0.0.2", 1);
	frame_icmp(f, type, 0);
}

static void error6(struct frame *f, unsigned type)
{
	frame_start(f);
	frame_ipv6(f, "2001:db8::ffff", "2001:db8::2", 58);
	frame_icmp(f, type, 0);
}

static void types(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		bool is4 = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
		bool is6 = type >= 1 && type <= 4;
		struct packet_info info;
		struct frame frame;

		error4(&frame, type);
		frame_finish(&frame);
		assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
		assert_int_equal(info.flags, is4 ? PACKET_ICMP_ERROR : 0);
		error6(&frame, type);
		frame_finish(&frame);
		assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
		assert_int_equal(info.flags, is6 ? PACKET_ICMP_ERROR : 0);
	}
}

/* RFC 792: the header and 8 bytes. The quoted length is that of the packet as it was sent. */
static void header_and_8_bytes(void **state)
{
	struct packet_info quoted;
	struct packet_info original;
	struct frame frame;
	struct frame sent;

	(void)state;
	frame_start(&sent);
	frame_tag(&sent, 0x8100, 12);
	frame_ipv4(&sent, "10.0.0.2", "10.0.0.1", 6);
	frame_tcp(&sent, &(struct frame_tcp){.src_port = 40000, .dst_port = 80});
	frame_fill(&sent, 1000);
	frame_finish(&sent);
	assert_int_equal(read_frame(&sent, &original), EXTRACT_IP);

	error4(&frame, 3);
	memcpy(frame_add(&frame, 28), sent.bytes + sent.ip[0], 28);
	frame_finish(&frame);
	assert_true(quote(&frame, &quoted));
	assert_true(flow_key_equal(&quoted.key, &original.key));
	assert_int_equal(quoted.hash, original.hash);
	assert_int_equal(quoted.from, original.from);
	assert_int_equal(quoted.flags, PACKET_HAS_PORTS);
	assert_int_equal(quoted.l4_offset, 66);
}

static void ipv6_with_extensions(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	error6(&frame, 1);
	frame_ipv6(&frame, "2001:db8::2", "2001:db8::1", 0);
	frame_extension(&frame, 60, 1, 16);
	frame_extension(&frame, 17, 0, 8);
	frame_udp(&frame, 5000, 53);
	frame_finish(&frame);
	assert_true(quote(&frame, &quoted));
	assert_ends(&quoted, "2001:db8::2", "2001:db8::1", 5000, 53);
	assert_int_equal(quoted.key.proto, 17);

	/* An extension header that is cut leaves the protocol unknown. */
	frame.length -= 17;
	frame_finish(&frame);
	assert_false(quote(&frame, &quoted));
}

static void without_ports(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	error4(&frame, 11);
	frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 47);
	frame_finish(&frame);
	assert_true(quote(&frame, &quoted));
	assert_ends(&quoted, "10.0.0.2", "10.0.0.1", 0, 0);
	assert_int_equal(quoted.flags, 0);
}

static void fragments(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	error4(&frame, 11);
	frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 17);
	frame_ipv4_fragment(&frame, 77, 1480, false);
	frame_finish(&frame);
	assert_true(quote(&frame, &quoted));
	assert_ends(&quoted, "10.0.0.2", "10.0.0.1", 0, 0);
	assert_int_equal(quoted.flags, PACKET_LATER_FRAGMENT);
	assert_int_equal(quoted.fragment_id, 17 << 16 | 77);

	error6(&frame, 3);
	frame_ipv6(&frame, "2001:db8::2", "2001:db8::1", 44);
	frame_ipv6_fragment(&frame, 17, 0x87654321, 0, true);
	frame_udp(&frame, 5000, 53);
	frame_finish(&frame);
	assert_true(quote(&frame, &quoted));
	assert_ends(&quoted, "2001:db8::2", "2001:db8::1", 5000, 53);
	assert_int_equal(quoted.flags, PACKET_FIRST_FRAGMENT | PACKET_HAS_PORTS);
	assert_int_equal(quoted.fragment_id, 0x87654321);
}

/* An error goes to who sent the packet that it quotes; one that goes to anybody else is not about theirs. */
static void goes_to_the_sender(void **state)
{
	static const char *const to4[] = {"10.0.0.2", "10.0.0.1", "10.0.0.3", "0.0.0.0"};
	static const char *const to6[] = {
		"2001:db8::2", "2001:db8::1", "2001:db8:1::2", "2001:db8::1:0:0:2"};
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		frame_start(&frame);
		frame_ipv4(&frame, "203.0.113.1", to4[i], 1);
		frame_icmp(&frame, 3, 0);
		frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 17);
		frame_udp(&frame, 5000, 53);
		frame_finish(&frame);
		assert_int_equal(quote(&frame, &quoted), i == 0);
		frame_start(&frame);
		frame_ipv6(&frame, "2001:db8::ffff", to6[i], 58);
		frame_icmp(&frame, 1, 0);
		frame_ipv6(&frame, "2001:db8::2", "2001:db8::1", 17);
		frame_udp(&frame, 5000, 53);
		frame_finish(&frame);
		assert_int_equal(quote(&frame, &quoted), i == 0);
	}
}

/* Of TCP the sequence number comes with the ports, or the quote is too short. */
static void sequence_number(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	for (unsigned length = 0; length <= 20; length++) {
		error4(&frame, 3);
		frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 6);
		frame_tcp(&frame,
			&(struct frame_tcp){.src_port = 1, .dst_port = 2, .seq = 0xfedcba98});
		frame.length -= 20 - length;
		frame_finish(&frame);
		assert_int_equal(quote(&frame, &quoted), length >= 8);
		if (length >= 8) {
			assert_int_equal(quoted.tcp.seq, 0xfedcba98);
			assert_int_equal(quoted.flags, PACKET_HAS_PORTS);
		}
	}
}

/* Padding behind the error's datagram is not part of the quote. */
static void ends_with_datagram(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	error4(&frame, 3);
	frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 17);
	frame_udp(&frame, 5000, 53);
	frame_finish(&frame);
	assert_true(quote(&frame, &quoted));
	put_be16(frame.bytes + frame.ip[0] + 2, 20 + 8 + 20 + 4);
	assert_true(quote(&frame, &quoted));
	put_be16(frame.bytes + frame.ip[0] + 2, 20 + 8 + 20 + 3);
	assert_false(quote(&frame, &quoted));
	put_be16(frame.bytes + frame.ip[0] + 2, 20 + 8 + 19);
	assert_false(quote(&frame, &quoted));
}

/* Nor do bytes behind the quoted packet's own end make its ports. */
static void ends_with_quoted_datagram(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	error4(&frame, 3);
	frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 17);
	frame_udp(&frame, 5000, 53);
	frame_finish(&frame);
	put_be16(frame.bytes + frame.ip[1] + 2, 23);
	assert_false(quote(&frame, &quoted));
	/* A length that cannot be is no length. */
	put_be16(frame.bytes + frame.ip[1] + 2, 0);
	assert_true(quote(&frame, &quoted));
	assert_ends(&quoted, "10.0.0.2", "10.0.0.1", 5000, 53);
}

/* ICMP quotes IPv4 and ICMPv6 quotes IPv6; nothing else is one of their packets. */
static void other_version(void **state)
{
	struct packet_info quoted;
	struct frame frame;

	(void)state;
	error4(&frame, 3);
	frame_ipv6(&frame, "2001:db8::2", "2001:db8::1", 59);
	frame_finish(&frame);
	assert_false(quote(&frame, &quoted));
	error6(&frame, 1);
	frame_ipv4(&frame, "10.0.0.2", "10.0.0.1", 47);
	frame_fill(&frame, 20);
	frame_finish(&frame);
	assert_false(quote(&frame, &quoted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(header_and_8_bytes),
		cmocka_unit_test(ipv6_with_extensions),
		cmocka_unit_test(without_ports),
		cmocka_unit_test(fragments),
		cmocka_unit_test(goes_to_the_sender),
		cmocka_unit_test(sequence_number),
		cmocka_unit_test(ends_with_datagram),
		cmocka_unit_test(ends_with_quoted_datagram),
		cmocka_unit_test(other_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
