/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments of TCP as the walks of each SIMD level read them and hold them against a record's windows: the same as
 * extract() and flow_tcp_track() do, which are compiled once and know no vectors. Compiled once per SIMD level.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "dataplane/mark.h"
#include "traffic/draw.h"

#define NOW_US UINT64_C(0x123456789abc)
#define SEGMENTS 400000
#define USUAL(flags) (((flags) & (TCP_ACK | TCP_SYN | TCP_RST | TCP_FIN)) == TCP_ACK)

struct scene {
	struct flow_record record __attribute__((aligned(128)));
	struct hash_secret secret;
	uint8_t frame[128];
	size_t length;
	struct packet_info info; /* as extract() reads the frame */
	bool whole;		 /* the datagram holds the header that it announces */
	unsigned n_taken, n_left, n_next;
};

static uint32_t pick(struct draw *draw, const uint32_t *from, unsigned n)
{
	return from[draw_below(draw_next(draw), n)];
}

/* About where something changes, or anywhere. */
static uint32_t draw_distance(struct draw *draw, uint32_t window)
{
	const uint32_t marks[] = {0, 0, 0, 0, 1, 1460, window, TCP_ACK_LAG, 1 << 30, 1u << 31,
		(uint32_t)draw_next(draw), draw_below(draw_next(draw), 100000)};
	const uint32_t beside[] = {0, 0, 0, 1, UINT32_MAX};
	uint32_t distance = pick(draw, marks, RTE_DIM(marks)) + pick(draw, beside, RTE_DIM(beside));

	return draw_next(draw) & 1 ? distance : -distance;
}

static void draw_record(struct scene *scene, struct draw *draw)
{
	struct flow_record *record = &scene->record;

	memset(record, 0, sizeof(*record));
	record->state = FLOW_ESTABLISHED;
	record->window_known = 3;
	for (unsigned from = 0; from < 2; from++)
		offload_set_state(record, from, OFFLOAD_PROVEN);
	for (unsigned end = 0; end < 2; end++) {
		const uint32_t scale = draw_below(draw_next(draw), 16);

		record->end[end].tcp_scale = (uint8_t)(scale < 15 ? scale : FLOW_SCALE_UNKNOWN);
		record->tcp_end[end] = (uint32_t)draw_next(draw);
		record->end[end].tcp_window = (uint16_t)draw_next(draw);
		record->tcp_max_end[end] = record->tcp_end[end] + (uint32_t)draw_next(draw) % 70000;
	}
}

static void store_be(uint8_t *to, uint32_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * (n - 1 - i));
}

static void draw_frame(struct scene *scene, struct draw *draw, unsigned from)
{
	static const uint32_t flags[] = {TCP_ACK, TCP_ACK, TCP_ACK, TCP_ACK | TCP_PSH,
		TCP_ACK | TCP_URG | 0xc0, TCP_ACK | TCP_FIN, TCP_ACK | TCP_SYN, TCP_RST, TCP_PSH};
	const struct flow_record *record = &scene->record;
	const uint32_t header_length = 20 + 4 * draw_below(draw_next(draw), 11);
	const uint32_t payload = draw_below(draw_next(draw), 4) * 1460;
	const uint16_t windows[] = {record->end[from].tcp_window, record->end[from].tcp_window, 0,
		(uint16_t)(record->end[from].tcp_window + 1), (uint16_t)draw_next(draw)};
	uint32_t ours = tcp_window_bytes(record, from), theirs = tcp_window_bytes(record, !from);
	uint8_t *ip = scene->frame + MARK_IPV4_OFFSET, *tcp = scene->frame + MARK_UPPER_OFFSET;

	for (size_t i = 0; i < sizeof(scene->frame); i++)
		scene->frame[i] = (uint8_t)draw_next(draw);
	scene->whole = draw_below(draw_next(draw), 16) != 0;
	scene->length = MARK_UPPER_OFFSET + header_length;
	store_be(ip - 2, ETHERTYPE_IPV4, 2);
	ip[0] = 0x45;
	store_be(ip + 2,
		IPV4_LENGTH + (scene->whole ? header_length + payload
					    : draw_below(draw_next(draw), header_length - 20)),
		2);
	store_be(ip + 6, 0x4000, 2);
	ip[9] = IPPROTO_TCP;
	/* the lower address is end 0's */
	ip[12] = from == 0 ? 10 : 20;
	ip[16] = from == 0 ? 20 : 10;
	store_be(tcp + 4, record->tcp_end[from] + draw_distance(draw, theirs), 4);
	store_be(tcp + 8, record->tcp_end[!from] + draw_distance(draw, ours), 4);
	tcp[12] = (uint8_t)(header_length << 2 | (draw_next(draw) & 15));
	tcp[13] = (uint8_t)pick(draw, flags, RTE_DIM(flags));
	store_be(tcp + 14, windows[draw_below(draw_next(draw), RTE_DIM(windows))], 2);
}

static struct rte_mbuf packet_of(struct scene *scene)
{
	return (struct rte_mbuf){
		.buf_addr = scene->frame,
		.data_len = (uint16_t)scene->length,
		.pkt_len = (uint32_t)scene->length,
		.nb_segs = 1,
	};
}

/* Reads as the walks do what extract() reads. */
static void check_read(struct scene *scene)
{
	const struct common common = {.secret = &scene->secret};
	const struct extract_options options = {.secret = &scene->secret};
	const struct rte_mbuf packet = packet_of(scene);
	struct packet_info info;

	assert_int_equal(extract(&options, &packet, 0, &scene->info), EXTRACT_IP);
	if (extract_common(&common, &packet, &info) == 0) {
		assert_false(scene->whole);
		return;
	}
	assert_int_equal(info.flags, scene->info.flags);
	assert_memory_equal(&info.tcp, &scene->info.tcp, sizeof(info.tcp));
}

/* Moves the record as flow_tcp_track() does, or leaves it alone. */
static void check_track(struct scene *scene, unsigned from)
{
	const struct tcp_segment *tcp = &scene->info.tcp;
	struct flow_record record = scene->record, before = scene->record, known = scene->record;
	bool fits = flow_tcp_track(&known, from, tcp) == TCP_IN_WINDOW && USUAL(tcp->flags);

	assert_int_equal(tcp_track_common(&record, from, tcp, true), fits);
	assert_memory_equal(&record, fits ? &known : &before, sizeof(record));
	scene->n_taken += fits;
	scene->n_left += !fits;
}

/* What nearly every segment is: it brings nothing old, and an acknowledgement that lags no further than it may. */
static bool is_next(const struct flow_record *record, unsigned from, const struct tcp_segment *tcp)
{
	return tcp->seq + tcp->payload - record->tcp_end[from] < UINT32_C(1) << 30 &&
	       (int32_t)(record->tcp_max_end[from] - tcp->seq) >= 0 &&
	       record->tcp_end[!from] - tcp->ack <= TCP_ACK_LAG &&
	       tcp->window <= record->end[from].tcp_window;
}

/*
 * The same of a marked packet, which is read as it lies in the frame. The common ones of those that fit are surely
 * taken.
 */
static void check_marked(struct scene *scene, unsigned from)
{
	const struct mark_burst marks = mark_burst_of(NOW_US);
	const uint32_t form = SLOT_TCP | (from != 0 ? SLOT_FROM : 0);
	const struct rte_mbuf packet = packet_of(scene);
	const struct tcp_segment *tcp = &scene->info.tcp;

	scene->record.key = scene->info.key;

	struct flow_record known = scene->record;
	bool next = is_next(&scene->record, from, tcp);
	bool fits = scene->whole && USUAL(tcp->flags) &&
		    flow_tcp_track(&known, from, tcp) == TCP_IN_WINDOW;
	bool taken = mark_packet(
		&marks, mark_target(&scene->record, form), &packet, packet.buf_addr, true, false);

	assert_true(taken ? fits : !(fits && next));
	scene->n_next += taken && next;
	if (!taken)
		known = scene->record;
	if (taken) {
		known.count[from].packets_low = 1;
		known.count[from].bytes_low = (uint32_t)scene->length;
		known.end[from].tcp_flags = tcp->flags;
		known.last_seen_us = NOW_US;
	}
	assert_memory_equal(&scene->record, &known, sizeof(known));
}

static void segments_are_read_and_tracked_as_their_definition_says(void **state)
{
	struct draw draw = {.seed = 20261123};
	struct scene scene = {0};

	(void)state;
	assert_int_equal(hash_secret_init(&scene.secret), 0);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		unsigned from = i & 1;

		draw_record(&scene, &draw);
		draw_frame(&scene, &draw, from);
		check_read(&scene);
		/* of a header that is cut by the datagram's end extract() tells nothing */
		if (!(scene.info.flags & PACKET_TCP))
			continue;
		assert_int_equal(scene.info.from, from);
		check_track(&scene, from);
		check_marked(&scene, from);
	}
	assert_true(scene.n_taken > SEGMENTS / 20);
	assert_true(scene.n_left > SEGMENTS / 20);
	assert_true(scene.n_next > SEGMENTS / 50);
}

/* A handshake up to its SYN, or to the SYN-ACK; perhaps counted anew since, and heard on any port. */
static void draw_handshake(struct scene *scene, struct draw *draw)
{
	static const uint32_t heard[] = {FLOW_HEARD_APART, FLOW_HEARD_APART, FLOW_HEARD_ONE,
		FLOW_HEARD_SAME, FLOW_HEARD_MOVED};
	struct flow_record *record = &scene->record;
	const unsigned initiator = draw_next(draw) & 1;
	const struct tcp_segment syn = {.seq = (uint32_t)draw_next(draw),
		.window = (uint16_t)draw_next(draw),
		.flags = TCP_SYN,
		.scale = draw_next(draw) & 1 ? TCP_SCALE_NONE : 7};
	const struct tcp_segment answer = {.seq = (uint32_t)draw_next(draw),
		.ack = syn.seq + 1,
		.window = (uint16_t)draw_next(draw),
		.flags = TCP_SYN | TCP_ACK,
		.scale = draw_next(draw) & 1 ? TCP_SCALE_NONE : 7};

	memset(record, 0, sizeof(*record));
	record->initiator = initiator & 1;
	flow_tcp_first(record, initiator, &syn);
	if (draw_below(draw_next(draw), 4) != 0)
		assert_int_equal(flow_tcp_track(record, !initiator, &answer), TCP_IN_WINDOW);
	for (unsigned end = 0; end < 2; end++) {
		offload_set_state(record, end, OFFLOAD_PROVEN);
		if (draw_below(draw_next(draw), 8) != 0)
			record->end[end].tcp_flags =
				end == initiator ? syn.flags : answer.flags | 0x40;
	}
	record->side = draw_next(draw) & 1;
	record->heard = pick(draw, heard, RTE_DIM(heard)) & 3;
}

/* A segment that may be the SYN or the SYN-ACK once more, or nearly is. */
static void draw_once_more(struct scene *scene, struct draw *draw, unsigned from)
{
	static const uint32_t flags[] = {TCP_SYN, TCP_SYN, TCP_SYN | TCP_ACK, TCP_SYN | TCP_ACK,
		TCP_SYN | TCP_ACK | 0x40, TCP_ACK, TCP_SYN | TCP_FIN, TCP_SYN | TCP_RST,
		TCP_SYN | 0x80};
	static const uint32_t beside[] = {0, 0, 0, 0, 0, 0, 1, UINT32_MAX};
	const struct flow_record *record = &scene->record;
	uint8_t *tcp = scene->frame + MARK_UPPER_OFFSET;

	draw_frame(scene, draw, from);
	tcp[13] = (uint8_t)pick(draw, flags, RTE_DIM(flags));
	store_be(tcp + 4, record->tcp_end[from] - 1 + pick(draw, beside, RTE_DIM(beside)), 4);
	store_be(tcp + 8, record->tcp_end[!from] + pick(draw, beside, RTE_DIM(beside)), 4);
	if (scene->whole && draw_below(draw_next(draw), 4) != 0)
		store_be(scene->frame + MARK_IPV4_OFFSET + 2,
			(uint32_t)scene->length - MARK_IPV4_OFFSET, 2);
}

/* A segment that is taken for a repeated handshake is in the window, moves nothing, and tells nothing new of ports. */
static bool check_once_more(struct scene *scene, unsigned from, bool side)
{
	const struct tcp_segment *tcp = &scene->info.tcp;
	const struct flow_record *record = &scene->record;
	struct flow_record known = *record;

	if (tcp->payload != 0 || !tcp_comes_again(record, from, tcp))
		return false;
	assert_int_equal(flow_tcp_track(&known, from, tcp), TCP_IN_WINDOW);
	assert_memory_equal(&known, record, sizeof(known));
	assert_int_equal(tcp->flags & ~record->end[from].tcp_flags, 0);
	if (!flow_sides_knows(record, record->initiator != from, side))
		return false;
	scene->info.flags |= side ? PACKET_SIDE : 0;
	assert_true(flow_sides_hear(&known, &scene->info));
	assert_memory_equal(&known, record, sizeof(known));
	return true;
}

/* The same of a marked packet: of a handshake that was answered. */
static void check_marked_once_more(struct scene *scene, unsigned from, bool side, bool again)
{
	const struct mark_burst marks = mark_burst_of(NOW_US);
	const uint32_t form = SLOT_TCP | (from != 0 ? SLOT_FROM : 0);
	const struct rte_mbuf packet = packet_of(scene);

	scene->record.key = scene->info.key;

	struct flow_record known = scene->record;
	const bool taken = mark_comes_again(
		&marks, mark_target(&scene->record, form), &packet, packet.buf_addr, side);

	assert_int_equal(taken, again && scene->record.state == FLOW_SYN_RECEIVED);
	if (taken) {
		known.count[from].packets_low = 1;
		known.count[from].bytes_low = (uint32_t)scene->length;
		known.last_seen_us = NOW_US;
	}
	assert_memory_equal(&scene->record, &known, sizeof(known));
	scene->n_taken += taken;
	scene->n_left += !taken;
	scene->n_next += again && !taken;
}

static void handshakes_that_come_again_move_nothing(void **state)
{
	struct draw draw = {.seed = 20261129};
	struct scene scene = {0};

	(void)state;
	assert_int_equal(hash_secret_init(&scene.secret), 0);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		const unsigned from = i & 1;
		const bool side = draw_next(&draw) & 1;

		draw_handshake(&scene, &draw);
		draw_once_more(&scene, &draw, from);
		check_read(&scene);
		if (!(scene.info.flags & PACKET_TCP))
			continue;
		const bool again = check_once_more(&scene, from, side);

		check_marked_once_more(&scene, from, side, again);
	}
	assert_true(scene.n_taken > SEGMENTS / 50);
	assert_true(scene.n_left > SEGMENTS / 20);
	assert_true(scene.n_next > SEGMENTS / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshakes_that_come_again_move_nothing),
		cmocka_unit_test(segments_are_read_and_tracked_as_their_definition_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
