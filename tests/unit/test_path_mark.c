/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a marked packet is held against: every bit of the headers and of the record that says whose a packet is,
 * and whether it is nothing but counted. Compiled once per SIMD level, as the compare is.
 */
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "dataplane/mark.h"
#include "traffic/draw.h"

#define NOW_US UINT64_C(0x123456789abc)
#define SCENES 40
#define SEQ 1000
#define ACK 5000

struct scene {
	struct flow_record record __attribute__((aligned(128)));
	struct hash_secret secret;
	struct frame frame;
	unsigned from;
	bool tcp, far;
};

static void draw_frame(struct scene *scene, struct draw *draw)
{
	const struct frame_tcp tcp = {
		.src_port = 1024 + draw_below(draw_next(draw), 60000),
		.dst_port = 1024 + draw_below(draw_next(draw), 60000),
		.seq = SEQ,
		.ack = ACK,
		.flags = TCP_ACK,
		.window = 100,
	};
	char ends[2][32];

	for (unsigned i = 0; i < 2; i++)
		snprintf(ends[i], sizeof(ends[i]), "%u.%u.%u.%u",
			1 + draw_below(draw_next(draw), 200), draw_below(draw_next(draw), 256),
			draw_below(draw_next(draw), 256), draw_below(draw_next(draw), 256));
	frame_start(&scene->frame);
	frame_ipv4(&scene->frame, ends[0], ends[1], scene->tcp ? IPPROTO_TCP : IPPROTO_UDP);
	if (scene->tcp)
		frame_tcp(&scene->frame, &tcp);
	else
		frame_udp(&scene->frame, tcp.src_port, tcp.dst_port);
	frame_fill(&scene->frame, 32);
	frame_finish(&scene->frame);
}

static struct rte_mbuf packet_of(const struct frame *frame)
{
	return (struct rte_mbuf){
		.buf_addr = (void *)(uintptr_t)frame->bytes,
		.data_len = (uint16_t)frame->length,
		.pkt_len = (uint32_t)frame->length,
		.nb_segs = 1,
	};
}

/* The definition of a common packet. */
static bool read_common(
	const struct scene *scene, const struct frame *frame, struct packet_info *info)
{
	const struct common common = {.secret = &scene->secret};
	const struct rte_mbuf packet = packet_of(frame);

	return extract_common(&common, &packet, info) != 0;
}

/* A flow that is settled, and the rule for packets of the frame's end proven; whose record is far or near. */
static void make(struct scene *scene, struct draw *draw, bool tcp, bool far)
{
	struct packet_info info;

	memset(scene, 0, sizeof(*scene));
	assert_int_equal(hash_secret_init(&scene->secret), 0);
	scene->tcp = tcp;
	scene->far = far;
	draw_frame(scene, draw);
	assert_true(read_common(scene, &scene->frame, &info));
	scene->from = info.from;
	scene->record.key = info.key;
	scene->record.state = tcp ? FLOW_ESTABLISHED : FLOW_REPLIED;
	scene->record.window_known = tcp ? 3 : 0;
	offload_set_state(&scene->record, info.from, OFFLOAD_PROVEN);
	for (unsigned end = 0; end < 2; end++) {
		scene->record.tcp_end[end] = end == info.from ? SEQ : ACK;
		scene->record.tcp_max_end[end] = scene->record.tcp_end[end] + 65535;
		scene->record.end[end].tcp_window = 65535;
	}
}

/* Whether the packet is accounted; the record is changed then alone. */
static bool offer(struct scene *scene, const struct frame *frame)
{
	const struct mark_burst marks = mark_burst_of(NOW_US);
	const uint32_t form = (scene->tcp ? SLOT_TCP : 0) | (scene->from != 0 ? SLOT_FROM : 0);
	const struct flow_record before = scene->record;
	const struct rte_mbuf packet = packet_of(frame);
	/* near or far: it is accounted alike */
	const bool far = scene->far;
	bool taken = mark_packet(
		&marks, mark_target(&scene->record, form), &packet, frame->bytes, scene->tcp, far);

	if (!taken)
		assert_memory_equal(&before, &scene->record, sizeof(before));
	return taken;
}

typedef void (*scene_check)(struct scene *scene);

static void all_scenes(scene_check check)
{
	struct draw draw = {.seed = 20261122};
	struct scene scene;

	for (unsigned i = 0; i < SCENES; i++) {
		make(&scene, &draw, i & 1, i >> 1 & 1);
		check(&scene);
	}
}

static void check_counts(struct scene *scene)
{
	struct flow_record *record = &scene->record;
	const unsigned from = scene->from;
	uint64_t high = record->status >> MARK_STATUS_SHIFT;

	assert_true(offer(scene, &scene->frame));
	assert_int_equal(flow_packets(record, from), 1);
	assert_int_equal(flow_bytes(record, from), scene->frame.length);
	assert_int_equal(flow_packets(record, !from), 0);
	assert_int_equal(record->last_seen_us, NOW_US);
	assert_int_equal(record->status >> MARK_STATUS_SHIFT, high);
	assert_int_equal(record->end[from].tcp_flags, scene->tcp ? TCP_ACK : 0);

	flow_set_counts(record, from, UINT32_MAX, UINT32_MAX);
	assert_true(offer(scene, &scene->frame));
	assert_int_equal(flow_packets(record, from), UINT64_C(1) << 32);
	assert_int_equal(flow_bytes(record, from), UINT32_MAX + (uint64_t)scene->frame.length);
}

static void a_packet_of_the_flow_is_counted(void **state)
{
	(void)state;
	all_scenes(check_counts);
}

static void check_frame_bits(struct scene *scene)
{
	/* of TCP: what comes after the ports is for the window to judge */
	const size_t end = scene->tcp ? MARK_UPPER_OFFSET + 4 : scene->frame.length;
	const struct flow_record fresh = scene->record;

	for (size_t bit = 0; bit < 8 * end; bit++) {
		struct frame frame = scene->frame;
		struct packet_info info;

		frame.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);

		bool same = read_common(scene, &frame, &info) &&
			    flow_key_equal(&info.key, &fresh.key) && info.from == scene->from;

		scene->record = fresh;
		if (offer(scene, &frame) == same)
			continue;
		/* a length that leaves no TCP header, or another payload */
		if (!(scene->tcp && same && bit / 8 >= 16 && bit / 8 < 18))
			fail_msg("%s, from %u: byte %zu, bit %zu", scene->tcp ? "tcp" : "udp",
				scene->from, bit / 8, bit % 8);
	}
}

static void every_bit_of_the_frame_counts_or_not_as_extraction_says(void **state)
{
	(void)state;
	all_scenes(check_frame_bits);
}

/* Is the bit of the record's first line one that says whose packets are counted so? */
static bool is_held(const struct scene *scene, size_t bit)
{
	/* state, whether it is plain, window_known, and where the NIC stands with that direction: flow/record.h */
	const uint64_t held =
		UINT64_C(0x1f) << 48 | UINT64_C(3) << 53 | UINT64_C(7) << (56 + 3 * scene->from);

	if (bit / 8 < 32)
		return bit / 8 % 16 < 4; /* the rest of an IPv4 address is zeros */
	if (bit / 8 < sizeof(struct flow_key))
		return bit / 8 < 39 || bit % 8 >= 4; /* all but the wire */
	return bit / 8 >= 56 && held >> (bit - 448) & 1;
}

static void check_record_bits(struct scene *scene)
{
	const struct flow_record fresh = scene->record;

	for (size_t bit = 0; bit < 512; bit++) {
		uint8_t *byte = (uint8_t *)&scene->record + bit / 8;

		scene->record = fresh;
		*byte ^= (uint8_t)(1 << bit % 8);
		if (offer(scene, &scene->frame) == is_held(scene, bit))
			fail_msg("%s, from %u: byte %zu, bit %zu of the record",
				scene->tcp ? "tcp" : "udp", scene->from, bit / 8, bit % 8);
	}
}

static void every_bit_of_the_record_that_says_whose_it_is_is_held(void **state)
{
	(void)state;
	all_scenes(check_record_bits);
}

static void check_ends(struct scene *scene)
{
	struct frame frame = scene->frame;

	/* of the other end's packets this is none, wherever their rule is */
	offload_set_state(&scene->record, !scene->from, OFFLOAD_PROVEN);
	scene->from = !scene->from;
	assert_false(offer(scene, &frame));
	scene->from = !scene->from;
	scene->tcp = !scene->tcp;
	assert_false(offer(scene, &frame));
	scene->tcp = !scene->tcp;
	frame.length = MARK_LEAST - 1;
	assert_false(offer(scene, &frame));
}

static void other_ends_protocols_and_short_frames_are_not_counted(void **state)
{
	(void)state;
	all_scenes(check_ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_of_the_flow_is_counted),
		cmocka_unit_test(every_bit_of_the_frame_counts_or_not_as_extraction_says),
		cmocka_unit_test(every_bit_of_the_record_that_says_whose_it_is_is_held),
		cmocka_unit_test(other_ends_protocols_and_short_frames_are_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
