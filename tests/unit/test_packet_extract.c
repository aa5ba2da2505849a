/* SPDX-License-Identifier: BSD-3-Clause */

/* What extraction makes of whole frames, one row each. */

#include "unit/packet_checks.h"
#include "unit/packet_rows.h"

static void check_row(
	const struct packet_row *row, const struct frame *frame, const struct packet_info *info)
{
	bool v4 = row->version == 4;

	assert_int_equal(flow_key_version(&info->key), row->version);
	assert_int_equal(info->key.proto, row->proto);
	assert_ends(info, v4 ? V4A : V6A, v4 ? V4B : V6B, row->sport, row->dport);
	assert_int_equal(info->flags, row->flags);
	assert_int_equal(info->key.zone, row->zone);
	assert_int_equal(info->fragment_id, row->fragment_id);
	assert_int_equal(info->l4_offset, row->l4_offset);
	assert_int_equal(info->bytes, frame->length);
}

static void every_row(void **state)
{
	struct tcp_segment none = {0};
	const uint16_t sizes[] = {0, 3, 9, 1, 0, 7, 11};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(packet_rows); i++) {
		struct packet_info info;
		struct packet_info split;
		struct frame frame;

		print_message("row: %s\n", packet_rows[i].name);
		frame_start(&frame);
		packet_rows[i].build(&frame);
		assert_int_equal(read_frame(&frame, &info), packet_rows[i].result);
		assert_int_equal(read_sized(&frame, frame.length, sizes, RTE_DIM(sizes), &split),
			packet_rows[i].result);
		if (packet_rows[i].result != EXTRACT_IP)
			continue;
		check_row(&packet_rows[i], &frame, &info);
		assert_same_info(&info, &split);
		if (info.flags & PACKET_TCP)
			continue;
		/* of ICMP it is type and code */
		none.window = info.key.proto == 1 || info.key.proto == 58 ? info.tcp.window : 0;
		assert_memory_equal(&info.tcp, &none, sizeof(none));
	}
}

/* Whether a NIC can be expected to read the first `length` bytes alike. */
static bool is_plain(const struct frame *frame, size_t length, uint64_t ol_flags)
{
	struct rte_mbuf *mbuf = frame_mbuf(frame->bytes, length);
	struct packet_info info;

	mbuf->ol_flags = ol_flags;
	assert_int_equal(extract(&test_options, mbuf, TEST_WIRE, &info), EXTRACT_IP);
	bool plain = extract_is_plain(mbuf, &info);

	frame_mbuf_free(mbuf);
	return plain;
}

/* All other rows are not plain, whatever it is. */
static void plain_rows(void **state)
{
	static const char *const plain[] = {"udp over ipv4", "udp over ipv6", "tcp over ipv4",
		"tcp over ipv6", "udp-lite", "sctp", "dccp", "gre", "esp", "hop-by-hop over ipv4",
		"icmpv6 over ipv4", "one tag", "two tags", "echo", "redirect",
		"neighbour solicitation"};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(packet_rows); i++) {
		const char *name = packet_rows[i].name;
		struct frame frame;
		bool wanted = false;

		if (packet_rows[i].result != EXTRACT_IP)
			continue;
		for (size_t j = 0; j < RTE_DIM(plain); j++)
			wanted |= strcmp(plain[j], name) == 0;
		frame_start(&frame);
		packet_rows[i].build(&frame);
		print_message("row: %s\n", name);
		assert_int_equal(is_plain(&frame, frame.length, 0), wanted);
	}
}

/* A common frame with one thing that a NIC may mind. */
static void what_is_common_and_not_plain(void **state)
{
	struct frame frame;

	(void)state;
	frame_start(&frame);
	udp4(&frame);
	assert_true(is_plain(&frame, frame.length, 0));
	assert_false(is_plain(&frame, frame.length, RTE_MBUF_F_RX_IP_CKSUM_BAD));
	assert_false(is_plain(&frame, frame.length, RTE_MBUF_F_RX_L4_CKSUM_BAD));
	assert_true(is_plain(
		&frame, frame.length, RTE_MBUF_F_RX_L4_CKSUM_NONE | RTE_MBUF_F_RX_IP_CKSUM_GOOD));
	/* cut behind what is read of it */
	assert_false(is_plain(&frame, frame.length - 1, 0));
	/* a wrong checksum */
	frame.bytes[frame.ip[0] + 10] ^= 1;
	assert_false(is_plain(&frame, frame.length, 0));
	/* lengths of UDP below its header, and beyond the datagram */
	frame_start(&frame);
	udp4(&frame);
	put_be16(&frame.bytes[frame.ip[0] + 24], 7);
	assert_false(is_plain(&frame, frame.length, 0));
	put_be16(&frame.bytes[frame.ip[0] + 24], 8 + 18);
	assert_true(is_plain(&frame, frame.length, 0));
	put_be16(&frame.bytes[frame.ip[0] + 24], 8 + 19);
	assert_false(is_plain(&frame, frame.length, 0));
	/* a TCP header that is longer than the datagram */
	frame_start(&frame);
	tcp6(&frame);
	assert_true(is_plain(&frame, frame.length, 0));
	frame.bytes[frame.upper + 12] = 0x60;
	assert_false(is_plain(&frame, frame.length, 0));
}

/* A chain of headers of 64 KiB and more: the walk goes on, the offset stays at its largest. */
static void offset_saturates(void **state)
{
	enum { N = 33, LENGTH = 54 + N * 2048 + 8 };
	uint8_t *bytes = calloc(1, LENGTH);
	struct packet_info info;
	struct frame frame;

	(void)state;
	assert_non_null(bytes);
	frame_start(&frame);
	frame_ipv6(&frame, V6A, V6B, 60);
	memcpy(bytes, frame.bytes, frame.length);
	for (size_t i = 0; i < N; i++) {
		bytes[54 + i * 2048] = i + 1 < N ? 60 : 17;
		bytes[54 + i * 2048 + 1] = 255;
	}
	put_be16(bytes + LENGTH - 8, 1000);
	put_be16(bytes + LENGTH - 6, 53);

	struct rte_mbuf *mbuf = frame_mbuf(bytes, LENGTH);

	assert_int_equal(extract(&test_options, mbuf, TEST_WIRE, &info), EXTRACT_IP);
	assert_ends(&info, V6A, V6B, 1000, 53);
	assert_int_equal(info.l4_offset, 65535);
	frame_mbuf_free(mbuf);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(plain_rows),
		cmocka_unit_test(what_is_common_and_not_plain),
		cmocka_unit_test(offset_saturates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
