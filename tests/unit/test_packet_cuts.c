/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Frames cut after every byte, and spread over segments in every way that matters: what is read
 * depends on the bytes that are there, never on where they lie.
 */

#include "packet/quote.h"
#include "unit/packet_checks.h"

static const uint8_t syn_options[] = {
	2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7};

static const struct frame_tcp syn = {
	.src_port = 40000,
	.dst_port = 80,
	.seq = 0x01020304,
	.flags = TCP_SYN,
	.window = 64240,
	.options = syn_options,
	.n_options = sizeof(syn_options),
};

static void tcp4(struct frame *f)
{
	frame_ipv4(f, "192.0.2.2", "192.0.2.1", 6);
	frame_tcp(f, &syn);
	frame_fill(f, 5);
}

static void tagged_udp4(struct frame *f)
{
	frame_tag(f, 0x88a8, 7);
	frame_tag(f, 0x8100, 8);
	frame_ipv4_options(f, "192.0.2.1", "192.0.2.2", 17, 8);
	frame_udp(f, 1000, 53);
	frame_fill(f, 5);
}

static void tcp6(struct frame *f)
{
	frame_tag(f, 0x8100, 8);
	frame_ipv6(f, "2001:db8::1", "2001:db8::2", 6);
	frame_tcp(f, &syn);
}

static void fragment6(struct frame *f)
{
	frame_ipv6(f, "2001:db8::1", "2001:db8::2", 0);
	frame_extension(f, 44, 0, 8);
	frame_ipv6_fragment(f, 17, 0x12345678, 0, true);
	frame_udp(f, 1000, 53);
}

static void error4(struct frame *f)
{
	frame_ipv4(f, "192.0.2.1", "192.0.2.2", 1);
	frame_icmp(f, 3, 1);
	frame_ipv4_options(f, "192.0.2.2", "192.0.2.9", 6, 4);
	frame_tcp(f, &(struct frame_tcp){.src_port = 40000, .dst_port = 80});
}

static void error6(struct frame *f)
{
	frame_ipv6(f, "2001:db8::1", "2001:db8::2", 58);
	frame_icmp(f, 1, 0);
	frame_ipv6(f, "2001:db8::2", "2001:db8::9", 60);
	frame_extension(f, 17, 0, 8);
	frame_udp(f, 1000, 53);
}

/* From which length on something is so; 0 means never. */
static const struct sample {
	const char *name;
	void (*build)(struct frame *frame);
	unsigned ip;	/* not malformed any more */
	unsigned ports; /* PACKET_HAS_PORTS */
	unsigned tcp;	/* PACKET_TCP */
	unsigned scale; /* the window scale is found */
	unsigned error; /* PACKET_ICMP_ERROR */
	unsigned quote; /* extract_quote() succeeds */
} samples[] = {
	{"tcp over ipv4", tcp4, 34, 38, 54, 74, 0, 0},
	{"tagged udp over ipv4 with options", tagged_udp4, 50, 54, 0, 0, 0, 0},
	{"tagged tcp over ipv6", tcp6, 58, 62, 78, 98, 0, 0},
	{"fragment over ipv6", fragment6, 54, 74, 0, 0, 0, 0},
	{"icmp error", error4, 34, 0, 0, 0, 35, 74},
	{"icmpv6 error", error6, 54, 0, 0, 0, 55, 114},
};

static bool reached(unsigned threshold, size_t length)
{
	return threshold != 0 && length >= threshold;
}

static void build(const struct sample *sample, struct frame *frame)
{
	frame_start(frame);
	sample->build(frame);
	frame_finish(frame);
}

static bool quote_of(const struct frame *frame, size_t length, const uint16_t *sizes,
	size_t n_sizes, const struct packet_info *info, struct packet_info *quoted)
{
	struct rte_mbuf *mbuf = frame_mbuf_sized(frame->bytes, length, sizes, n_sizes);
	bool found = extract_quote(&test_options, mbuf, info, quoted);

	frame_mbuf_free(mbuf);
	if (found)
		assert_sound_info(quoted);
	return found;
}

static void check_cut(const struct sample *sample, const struct frame *frame, size_t length)
{
	struct packet_info info;
	struct packet_info quoted;
	enum extract_result result = read_sized(frame, length, NULL, 0, &info);

	assert_int_equal(result, reached(sample->ip, length) ? EXTRACT_IP : EXTRACT_MALFORMED);
	if (result != EXTRACT_IP)
		return;
	assert_int_equal(info.bytes, length);
	assert_int_equal((info.flags & PACKET_HAS_PORTS) != 0, reached(sample->ports, length));
	assert_int_equal(
		(info.flags & PACKET_CUT) != 0, sample->ports != 0 && length < sample->ports);
	assert_int_equal((info.flags & PACKET_TCP) != 0, reached(sample->tcp, length));
	if (info.flags & PACKET_TCP)
		assert_int_equal(
			info.tcp.scale, reached(sample->scale, length) ? 7 : TCP_SCALE_NONE);
	assert_int_equal((info.flags & PACKET_ICMP_ERROR) != 0, reached(sample->error, length));
	if (info.flags & PACKET_ICMP_ERROR)
		assert_int_equal(quote_of(frame, length, NULL, 0, &info, &quoted),
			reached(sample->quote, length));
}

static void every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(samples); i++) {
		struct frame frame;

		build(&samples[i], &frame);
		for (size_t length = 0; length <= frame.length; length++)
			check_cut(&samples[i], &frame, length);
	}
}

/* The frame in these segments reads as the frame in one. */
static void check_split(
	const struct frame *frame, size_t length, const uint16_t *sizes, size_t n_sizes)
{
	struct packet_info whole, split, whole_quoted, split_quoted;
	enum extract_result result = read_sized(frame, length, NULL, 0, &whole);

	assert_int_equal(read_sized(frame, length, sizes, n_sizes, &split), result);
	if (result != EXTRACT_IP)
		return;
	assert_same_info(&whole, &split);
	if (!(whole.flags & PACKET_ICMP_ERROR))
		return;

	bool found = quote_of(frame, length, NULL, 0, &whole, &whole_quoted);

	assert_int_equal(quote_of(frame, length, sizes, n_sizes, &whole, &split_quoted), found);
	if (found)
		assert_same_info(&whole_quoted, &split_quoted);
}

static void every_split_in_three(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(samples); i++) {
		struct frame frame;

		build(&samples[i], &frame);
		for (uint16_t first = 0; first <= frame.length; first++) {
			for (uint16_t second = 0; second <= frame.length - first; second++)
				check_split(&frame, frame.length, (uint16_t[]){first, second}, 2);
		}
	}
}

/* Segments of one size, with an empty one before each; and that of every cut. */
static void every_size(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(samples); i++) {
		struct frame frame;

		build(&samples[i], &frame);
		for (uint16_t size = 1; size <= 24; size++) {
			uint16_t sizes[400];

			for (size_t at = 0; at < RTE_DIM(sizes); at++)
				sizes[at] = at % 2 ? size : 0;
			for (size_t length = 0; length <= frame.length; length++)
				check_split(&frame, length, sizes, RTE_DIM(sizes));
		}
	}
}

/* A length that no segment bears out ends the walk; it does not lead off the chain. */
static void chain_ends_early(void **state)
{
	struct packet_info info;
	struct frame frame;

	(void)state;
	build(&samples[0], &frame);
	for (size_t length = 0; length < samples[0].ip; length++) {
		struct rte_mbuf *mbuf =
			frame_mbuf_sized(frame.bytes, length, (uint16_t[]){3, 20}, 2);

		mbuf->pkt_len = (uint32_t)frame.length;
		assert_int_equal(extract(&test_options, mbuf, TEST_WIRE, &info), EXTRACT_MALFORMED);
		frame_mbuf_free(mbuf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cut),
		cmocka_unit_test(every_split_in_three),
		cmocka_unit_test(every_size),
		cmocka_unit_test(chain_ends_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
