/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of a burst of which some packets have marks: which are in the row, whereto their marks lead, what is
 * looked up instead, and whose bytes are counted. Compiled once per SIMD level, as the sorting is.
 */
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/mark_sort.h"
#include "traffic/draw.h"

#define FLOWS 32
#define ROUNDS 400
#define NO_PACKET LCORE_BURST

/* What a packet has. */
enum kind {
	NO_MARK,   /* though what lies there would be one */
	NAMES,	   /* a mark of a flow */
	SEVERED,   /* one that names nobody any more */
	FOREIGN,   /* one of another worker's */
	NOT_GIVEN, /* a number of this worker's, in a mark that nobody was ever given */
	N_KINDS
};

struct scene {
	struct draw draw;
	struct lcore lcore;
	struct flow_shard shard;
	struct agent agent;
	struct arrival from;
	struct hash_secret secret;
	struct flow_record *records;
	struct slots others; /* the other worker's */
	uint32_t slot[FLOWS], severed[FLOWS], foreign[FLOWS];
	struct frame plain[2], arp; /* UDP and TCP */
	/* a burst, and what is expected of it */
	struct rte_mbuf packet[LCORE_BURST];
	enum kind kind[LCORE_BURST];
	unsigned flow[LCORE_BURST];
};

static uint32_t draw(struct scene *scene, uint32_t n)
{
	return draw_below(draw_next(&scene->draw), n);
}

static void build(struct frame *frame, unsigned proto)
{
	const struct frame_tcp tcp = {.src_port = 1, .dst_port = 2, .flags = TCP_ACK};

	frame_start(frame);
	if (proto == 0) {
		frame_type(frame, 0x0806);
		frame_fill(frame, 46);
		return;
	}
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", proto);
	if (proto == IPPROTO_TCP)
		frame_tcp(frame, &tcp);
	else
		frame_udp(frame, 1, 2);
	frame_fill(frame, 20);
	frame_finish(frame);
}

/* Flows at the even positions are TCP's; packets of every third come from end 1. */
static void give_slots(struct scene *scene, struct slots *slots)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		struct flow_key key = {
			.proto = i & 1 ? IPPROTO_UDP : IPPROTO_TCP, .port = {(rte_be16_t)i, 1}};

		scene->severed[i] = slots_take(slots, &key, i);
		slots_sever(slots, scene->severed[i]);
		scene->slot[i] = slots_take(slots, &key, i);
		scene->foreign[i] = slots_take(&scene->others, &key, i);
		assert_int_not_equal(scene->slot[i], SLOT_NONE);
		assert_int_not_equal(scene->foreign[i], SLOT_NONE);
		slots_set_from(slots, scene->slot[i], scene->from.place, i % 3 == 0);
	}
}

static void set_up(struct scene *scene, unsigned port, bool by_position)
{
	struct slots_config config = {.n = 4 * FLOWS + 6,
		.n_workers = 2,
		.mark_max = by_position ? UINT32_MAX : 0xffff,
		.positions = by_position ? FLOWS : 1 << 24};
	struct slots *slots = &scene->agent.wire[0].slots;

	memset(scene, 0, sizeof(*scene));
	scene->draw.seed = 20261127;
	scene->agent.config.topology = topology_of_wires(1);
	scene->from.port = (uint8_t)port;
	scene->from.place = scene->agent.config.topology.place[port];
	scene->records = aligned_alloc(128, FLOWS * sizeof(scene->records[0]));
	assert_non_null(scene->records);
	scene->shard.table.records = scene->records;
	assert_int_equal(hash_secret_init(&scene->secret), 0);
	assert_int_equal(pipeline_create(&scene->lcore.pipeline, &scene->secret, true), 0);
	scene->lcore.secret = &scene->secret;
	scene->lcore.worker.shard = &scene->shard;
	scene->lcore.worker.agent = &scene->agent;
	scene->lcore.worker.steer.n_shards = 1;
	assert_int_equal(slots_init(&scene->others, &config), 0);
	config.worker = 1;
	assert_int_equal(slots_init(slots, &config), 0);
	assert_int_equal(slots->positions == NULL, by_position);
	give_slots(scene, slots);
	build(&scene->plain[0], IPPROTO_UDP);
	build(&scene->plain[1], IPPROTO_TCP);
	build(&scene->arp, 0);
}

static void tear_down(struct scene *scene)
{
	slots_fini(&scene->others);
	slots_fini(&scene->agent.wire[0].slots);
	pipeline_destroy(scene->lcore.pipeline);
	free(scene->records);
}

static uint32_t mark_of(const struct scene *scene, enum kind kind, unsigned flow)
{
	const struct slots *slots = &scene->agent.wire[0].slots;
	const uint32_t mark = slots_mark(slots, scene->slot[flow]);

	switch (kind) {
	case SEVERED:
		return slots_mark(slots, scene->severed[flow]);
	case FOREIGN:
		return slots_mark(&scene->others, scene->foreign[flow]);
	case NOT_GIVEN:
		return mark & ((UINT32_C(1) << slots->number_bits) - 1);
	case NO_MARK:
	case NAMES:
	case N_KINDS:
		break;
	}
	return mark;
}

/* Of some bursts nearly all packets have marks of flows; `odd`: that one is not plain, if it is one of them. */
static void draw_burst(struct scene *scene, struct burst *burst, unsigned n, unsigned odd)
{
	unsigned named = draw(scene, 5);

	for (unsigned i = 0; i < n; i++) {
		const struct frame *frame = &scene->plain[draw(scene, 2)];

		scene->kind[i] = draw(scene, 5) < named ? NAMES : (enum kind)draw(scene, N_KINDS);
		scene->flow[i] = draw(scene, FLOWS);
		if (i == odd) {
			frame = &scene->arp;
			scene->kind[i] = NO_MARK;
		}
		scene->packet[i] = (struct rte_mbuf){
			.buf_addr = (void *)(uintptr_t)frame->bytes,
			.data_len = (uint16_t)frame->length,
			.pkt_len = (uint32_t)frame->length + draw(scene, 1000),
			.nb_segs = 1,
			.ol_flags = scene->kind[i] == NO_MARK ? RTE_MBUF_F_RX_RSS_HASH
							      : RTE_MBUF_F_RX_FDIR_ID,
			.hash.fdir.hi = mark_of(scene, scene->kind[i], scene->flow[i]),
		};
		burst->packet[i] = &scene->packet[i];
	}
}

/* One in the row is there with what its mark leads to. */
static void check_target(const struct scene *scene, unsigned i, uintptr_t target)
{
	const unsigned flow = scene->flow[i];

	if (scene->kind[i] != NAMES) {
		assert_ptr_equal(mark_record(target), &mark_nobody);
		return;
	}
	assert_ptr_equal(mark_record(target), &scene->records[flow]);
	assert_int_equal((target & MARK_TCP) != 0, flow % 2 == 0);
	assert_int_equal(mark_from(target), flow % 3 == 0);
}

static bool is_in_row(enum kind kind)
{
	return kind == NAMES || kind == SEVERED;
}

static void check_burst(
	const struct scene *scene, const struct burst *burst, unsigned begin, unsigned n)
{
	uint64_t marked = begin == 0 ? 0 : UINT64_MAX >> (64 - begin), bytes = 1;
	unsigned n_row = begin, n_up = 0;

	assert_int_equal(burst->n, n);
	for (unsigned i = begin; i < n; i++) {
		if (!is_in_row(scene->kind[i])) {
			assert_int_equal(burst->info_of[i], n_up);
			assert_int_equal(burst->info[n_up].bytes, scene->packet[i].pkt_len);
			n_up++;
			continue;
		}
		assert_true(n_row < burst->n_row);
		assert_ptr_equal(burst->row[n_row], &scene->packet[i]);
		assert_int_equal(burst->place[n_row], i);
		assert_int_equal(burst->target[LCORE_BURST + n_row],
			rte_pktmbuf_mtod(&scene->packet[i], uintptr_t));
		check_target(scene, i, burst->target[n_row]);
		n_row++;
		marked |= UINT64_C(1) << i;
		bytes += scene->packet[i].pkt_len;
	}
	assert_int_equal(burst->n_row, n_row);
	assert_int_equal(burst->up.n, n_up);
	assert_int_equal(burst->marked, marked);
	assert_int_equal(burst->bytes, bytes);
}

static void sort_bursts(struct scene *scene, bool far)
{
	struct burst *burst = &scene->lcore.pipeline->burst[0];

	burst->from = scene->from;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned n = 1 + draw(scene, LCORE_BURST), begin = draw(scene, n);
		unsigned odd = draw(scene, 2) ? NO_PACKET : begin + draw(scene, n - begin);

		draw_burst(scene, burst, n, odd);
		burst->marked = begin == 0 ? 0 : UINT64_MAX >> (64 - begin);
		burst->bytes = 1;
		sort(&scene->lcore, begin, n, burst, far);
		resolve_all(&scene->lcore, burst, begin, far);
		check_burst(scene, burst, begin, odd == NO_PACKET ? n : odd);
	}
}

/* Those with marks are told from the others, whichever port they come by and however marks name records. */
static void test_sort(void **state)
{
	static struct scene scene;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		set_up(&scene, i & 1, i & 2);
		sort_bursts(&scene, i & 4);
		tear_down(&scene);
	}
}

/* From the front those with marks of flows are taken, up to the first without. */
static void test_front(void **state)
{
	static struct scene scene;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		set_up(&scene, i & 1, i & 2);
		struct burst *burst = &scene.lcore.pipeline->burst[0];

		burst->from = scene.from;
		for (unsigned round = 0; round < ROUNDS; round++) {
			unsigned n = 1 + draw(&scene, LCORE_BURST), first = 0;
			uint64_t bytes = 0;

			draw_burst(&scene, burst, n, NO_PACKET);
			unsigned done = fetch_front(&scene.lcore, burst, n, i & 4);

			for (; first < n && scene.kind[first] == NAMES; first++) {
				check_target(&scene, first, burst->target[first]);
				bytes += scene.packet[first].pkt_len;
			}
			assert_int_equal(done, first);
			assert_int_equal(burst->bytes, bytes);
			assert_int_equal(__builtin_popcountll(burst->marked), first);
		}
		tear_down(&scene);
	}
}

/* Where there are no slots a mark is nobody's. */
static void test_no_slots(void **state)
{
	static struct scene scene;

	(void)state;
	set_up(&scene, 0, true);
	struct burst *burst = &scene.lcore.pipeline->burst[0];

	burst->from = scene.from;
	draw_burst(&scene, burst, LCORE_BURST, NO_PACKET);
	slots_fini(&scene.agent.wire[0].slots);
	for (unsigned i = 0; i < LCORE_BURST; i++)
		scene.kind[i] = NO_MARK;
	burst->marked = 0;
	burst->bytes = 1;
	assert_int_equal(fetch_front(&scene.lcore, burst, LCORE_BURST, true), 0);
	sort(&scene.lcore, 0, LCORE_BURST, burst, true);
	resolve_all(&scene.lcore, burst, 0, true);
	check_burst(&scene, burst, 0, LCORE_BURST);
	tear_down(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_front),
		cmocka_unit_test(test_no_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
