/* SPDX-License-Identifier: BSD-3-Clause */

/* What extraction tells of a TCP segment. */

#include "unit/packet_checks.h"

/* Reads the segment in one piece, and once more byte by byte. */
static struct packet_info read_segment(const struct frame *frame)
{
	struct packet_info info;
	struct packet_info split;
	uint16_t ones[256];

	for (size_t i = 0; i < RTE_DIM(ones); i++)
		ones[i] = 1;
	assert_int_equal(read_frame(frame, &info), EXTRACT_IP);
	assert_int_equal(read_sized(frame, frame->length, ones, RTE_DIM(ones), &split), EXTRACT_IP);
	assert_same_info(&info, &split);
	assert_true(info.flags & PACKET_TCP);
	return info;
}

static void start(struct frame *frame, bool v6, const struct frame_tcp *tcp, size_t payload)
{
	frame_start(frame);
	if (v6)
		frame_ipv6(frame, "2001:db8::2", "2001:db8::1", 6);
	else
		frame_ipv4(frame, "10.0.0.2", "10.0.0.1", 6);
	frame_tcp(frame, tcp);
	frame_fill(frame, payload);
	frame_finish(frame);
}

static void fields(void **state)
{
	(void)state;
	for (int v6 = 0; v6 <= 1; v6++) {
		struct frame frame;

		start(&frame, v6,
			&(struct frame_tcp){.src_port = 1025,
				.dst_port = 80,
				.seq = 0xfffffff0,
				.ack = 0x80000001,
				.flags = 0xff & ~TCP_SYN,
				.window = 0xfedc},
			100);

		struct packet_info info = read_segment(&frame);

		assert_int_equal(info.tcp.seq, 0xfffffff0);
		assert_int_equal(info.tcp.ack, 0x80000001);
		assert_int_equal(info.tcp.window, 0xfedc);
		assert_int_equal(info.tcp.flags, 0xfd);
		assert_int_equal(info.tcp.payload, 100);
		assert_int_equal(info.tcp.scale, TCP_SCALE_NONE);
	}
}

/* The declared length counts: neither Ethernet's padding nor what a capture left out. */
static void payload_by_declared_length(void **state)
{
	static const struct {
		unsigned declared; /* of the upper layer */
		uint32_t payload4;
		uint32_t payload6;
	} lengths[] = {
		{20, 0, 0},
		{21, 1, 1},
		{26, 6, 6},
		{1480, 1460, 1460},
		{65515, 65495, 65495},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(lengths); i++) {
		struct frame frame;

		start(&frame, false, &(struct frame_tcp){.flags = TCP_ACK}, 6);
		put_be16(frame.bytes + frame.ip[0] + 2, lengths[i].declared + 20);
		assert_int_equal(read_segment(&frame).tcp.payload, lengths[i].payload4);
		start(&frame, true, &(struct frame_tcp){.flags = TCP_ACK}, 6);
		put_be16(frame.bytes + frame.ip[0] + 4, lengths[i].declared);
		assert_int_equal(read_segment(&frame).tcp.payload, lengths[i].payload6);
	}
}

/* 0 is what segmentation offload leaves: the frame says how long the segment is. */
static void payload_by_frame(void **state)
{
	struct frame frame;

	(void)state;
	start(&frame, false, &(struct frame_tcp){.flags = TCP_ACK}, 1000);
	put_be16(frame.bytes + frame.ip[0] + 2, 0);
	assert_int_equal(read_segment(&frame).tcp.payload, 1000);
	start(&frame, true, &(struct frame_tcp){.flags = TCP_ACK}, 1000);
	put_be16(frame.bytes + frame.ip[0] + 4, 0);
	assert_int_equal(read_segment(&frame).tcp.payload, 1000);
}

/* A header that ends beyond its datagram, or before its own least length, cannot be: there is no segment. */
static void headers_that_cannot_be(void **state)
{
	(void)state;
	for (unsigned offset = 0; offset < 16; offset++) {
		for (unsigned more = 0; more <= 44; more += 4) {
			for (unsigned i = 0; i < 4; i++) {
				unsigned flags = i & 2 ? TCP_SYN : TCP_ACK;
				struct packet_info info, split;
				struct frame frame;
				uint16_t one[] = {1, 1, 60};
				bool can_be = offset >= 5 && offset * 4 <= 20 + more;

				start(&frame, i & 1, &(struct frame_tcp){.flags = flags}, more);
				frame.bytes[frame.ip[0] + (i & 1 ? 40 : 20) + 12] =
					(uint8_t)(offset << 4);
				assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
				assert_int_equal(read_sized(&frame, frame.length, one, 3, &split),
					EXTRACT_IP);
				assert_same_info(&info, &split);
				assert_int_equal((info.flags & PACKET_TCP) != 0, can_be);
				assert_true(info.flags & PACKET_HAS_PORTS);
				if (can_be)
					assert_int_equal(info.tcp.payload, 20 + more - offset * 4);
			}
		}
	}
}

static const struct option_row {
	const char *name;
	uint8_t bytes[40];
	size_t n;
	unsigned scale;
} option_rows[] = {
	{"none", {0}, 0, TCP_SCALE_NONE},
	{"scale alone", {3, 3, 9, 0}, 4, 9},
	{"scale 0", {3, 3, 0, 0}, 4, 0},
	{"scale 14", {3, 3, 14, 0}, 4, 14},
	{"scale 15 is 14", {3, 3, 15, 0}, 4, 14},
	{"scale 255 is 14", {3, 3, 255, 0}, 4, 14},
	{"after others", {2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7}, 12, 7},
	{"at the very end", {1, 3, 3, 5}, 4, 5},
	{"the last of two", {3, 3, 5, 3, 3, 6, 1, 1}, 8, 6},
	{"behind the end", {0, 3, 3, 5}, 4, TCP_SCALE_NONE},
	{"kept before the end", {3, 3, 5, 0, 3, 3, 6, 0}, 8, 5},
	{"length 2", {3, 2, 1, 1}, 4, TCP_SCALE_NONE},
	{"length 4", {3, 4, 5, 5}, 4, TCP_SCALE_NONE},
	{"length 0", {8, 0, 3, 3, 5, 0, 0, 0}, 8, TCP_SCALE_NONE},
	{"length 1", {8, 1, 3, 3, 5, 0, 0, 0}, 8, TCP_SCALE_NONE},
	{"length beyond the header", {1, 1, 3, 3}, 4, TCP_SCALE_NONE},
	{"kind without length", {1, 1, 1, 3}, 4, TCP_SCALE_NONE},
	{"other option hides it", {8, 10, 3, 3, 5, 3, 3, 5, 3, 3, 1, 1}, 12, TCP_SCALE_NONE},
	{"full header",
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
			1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 2},
		40, 2},
};

static void window_scale(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(option_rows); i++) {
		const struct option_row *row = &option_rows[i];
		struct frame_tcp tcp = {
			.flags = TCP_SYN, .options = row->bytes, .n_options = row->n};
		struct frame frame;

		print_message("row: %s\n", row->name);
		start(&frame, i % 2, &tcp, 3);
		assert_int_equal(read_segment(&frame).tcp.scale, row->scale);
		tcp.flags = TCP_SYN | TCP_ACK;
		start(&frame, i % 2, &tcp, 0);
		assert_int_equal(read_segment(&frame).tcp.scale, row->scale);
		/* RFC 7323 section 2.2: the option is only meant in a SYN. */
		tcp.flags = TCP_ACK;
		start(&frame, i % 2, &tcp, 3);
		assert_int_equal(read_segment(&frame).tcp.scale, TCP_SCALE_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(payload_by_declared_length),
		cmocka_unit_test(payload_by_frame),
		cmocka_unit_test(headers_that_cannot_be),
		cmocka_unit_test(window_scale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
