/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in a packet socket's ring, with a kernel of the test's own: which were taken, and which stood in the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "port/packet.h"

#define FRAME 2048
#define FRAMES 64

/* The ring, who puts frames into it, and the kernel that takes them out in their order. */
struct ring {
	struct packet_tx tx; /* first: the kick finds the rest by it */
	uint8_t *memory;
	unsigned next, head;
	uint32_t refuse_from; /* bytes */
	int fails;	      /* a negative errno: nothing is sent */
	unsigned kicks;
	uint64_t passed, passed_bytes, thrown_away;
	/* as told by packet_tx_settle() */
	uint64_t offered, offered_bytes;
	uint64_t taken, taken_bytes, discarded;
	bool refused;
	uint64_t now_us;
};

static struct tpacket2_hdr *frame_at(const struct ring *ring, unsigned i)
{
	return (void *)&ring->memory[(size_t)i * FRAME];
}

/* As tpacket_snd() does with PACKET_LOSS. */
static int kick(struct packet_tx *tx)
{
	struct ring *ring = (void *)tx;

	ring->kicks++;
	if (ring->fails != 0)
		return ring->fails;
	for (;;) {
		struct tpacket2_hdr *frame = frame_at(ring, ring->head);

		if (frame->tp_status != TP_STATUS_SEND_REQUEST)
			return 0;
		if (frame->tp_len >= ring->refuse_from)
			return -ENOBUFS;
		if (frame->tp_len < 14) {
			ring->thrown_away++;
		} else {
			ring->passed++;
			ring->passed_bytes += frame->tp_len;
		}
		frame->tp_status = TP_STATUS_AVAILABLE;
		ring->head = (ring->head + 1) % FRAMES;
	}
}

static void begin(struct ring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->memory = calloc(FRAMES, FRAME);
	assert_non_null(ring->memory);
	ring->tx = (struct packet_tx){
		.fd = -1,
		.frames = ring->memory,
		.frame_bytes = FRAME,
		.n_frames = FRAMES,
		.kick = kick,
		.refused = UINT32_MAX,
	};
	ring->refuse_from = UINT32_MAX;
	ring->now_us = 1000000;
}

static void settle(struct ring *ring)
{
	struct packet_sent sent = packet_tx_settle(&ring->tx, ring->now_us);

	ring->taken += sent.taken;
	ring->taken_bytes += sent.taken_bytes;
	ring->discarded += sent.discarded;
	ring->refused |= sent.refused;
	assert_int_equal(ring->taken, ring->passed);
	assert_int_equal(ring->taken_bytes, ring->passed_bytes);
	assert_int_equal(
		ring->offered, ring->taken + ring->discarded + packet_tx_waiting(&ring->tx));
	assert_int_equal(atomic_load(&ring->tx.discarded), ring->discarded);
}

/* As the driver does; false: its ring is full. */
static bool offer(struct ring *ring, uint32_t bytes)
{
	struct tpacket2_hdr *frame = frame_at(ring, ring->next);

	if (frame->tp_status != TP_STATUS_AVAILABLE)
		return false;
	frame->tp_len = bytes;
	frame->tp_status = TP_STATUS_SEND_REQUEST;
	ring->next = (ring->next + 1) % FRAMES;
	(void)kick(&ring->tx);
	packet_tx_offered(&ring->tx, 1, ring->now_us);
	ring->offered++;
	ring->offered_bytes += bytes;
	settle(ring);
	return true;
}

static void pass_time(struct ring *ring, uint64_t us)
{
	for (uint64_t end = ring->now_us + us; ring->now_us < end;) {
		ring->now_us += 100;
		settle(ring);
	}
}

static void end(struct ring *ring)
{
	pass_time(ring, 2 * PACKET_TX_WAIT_US);
	assert_int_equal(packet_tx_waiting(&ring->tx), 0);
	ring->fails = 0;
	(void)kick(&ring->tx);
	/* whatever was discarded has left the ring */
	assert_int_equal(ring->thrown_away, ring->discarded);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(frame_at(ring, i)->tp_status, TP_STATUS_AVAILABLE);
	free(ring->memory);
}

static void frames_that_pass_are_taken_at_once(void **state)
{
	(void)state;
	struct ring ring;

	begin(&ring);
	for (unsigned i = 0; i < 3 * FRAMES; i++) {
		assert_true(offer(&ring, 60 + i));
		assert_int_equal(ring.taken, i + 1);
	}
	/* the driver's own calls were enough */
	assert_int_equal(ring.kicks, 3 * FRAMES);
	assert_int_equal(ring.taken_bytes, ring.offered_bytes);
	end(&ring);
}

static void a_refused_frame_stops_the_others_for_some_milliseconds(void **state)
{
	(void)state;
	struct ring ring;

	begin(&ring);
	ring.refuse_from = 1419;
	offer(&ring, 100);
	offer(&ring, 1514);
	for (unsigned i = 0; i < 10; i++)
		offer(&ring, 1418);
	assert_int_equal(ring.taken, 1);
	pass_time(&ring, PACKET_TX_WAIT_US - 200);
	assert_int_equal(ring.taken, 1);
	assert_int_equal(ring.discarded, 0);
	pass_time(&ring, 1000);
	assert_int_equal(ring.taken, 11);
	assert_int_equal(ring.discarded, 1);
	assert_true(ring.refused);
	assert_int_equal(ring.taken_bytes, 100 + 10 * 1418);
	end(&ring);
}

/* What was waited for once is not waited for again, until it passes. */
static void frames_of_a_refused_length_are_tried_once(void **state)
{
	(void)state;
	struct ring ring;

	begin(&ring);
	ring.refuse_from = 1400;
	offer(&ring, 1450);
	pass_time(&ring, PACKET_TX_WAIT_US + 1000);
	assert_int_equal(ring.discarded, 1);
	for (unsigned i = 0; i < 100; i++) {
		offer(&ring, 1450 + i % 3);
		offer(&ring, 64);
		assert_int_equal(packet_tx_waiting(&ring.tx), 0);
	}
	assert_int_equal(ring.discarded, 101);
	assert_int_equal(ring.taken, 100);

	/* a shorter one is waited for */
	offer(&ring, 1420);
	assert_int_equal(packet_tx_waiting(&ring.tx), 1);
	pass_time(&ring, PACKET_TX_WAIT_US + 1000);
	offer(&ring, 1420);
	assert_int_equal(ring.discarded, 103);

	/* the other end takes more again */
	ring.refuse_from = UINT32_MAX;
	offer(&ring, 1514);
	assert_int_equal(ring.taken, 101);
	ring.refuse_from = 1400;
	offer(&ring, 1514);
	assert_int_equal(packet_tx_waiting(&ring.tx), 1);
	end(&ring);
}

/* An interface that is down sends nothing: what waits is lost, and what comes later passes when it is up. */
static void nothing_waits_for_an_interface_that_is_down(void **state)
{
	(void)state;
	struct ring ring;
	unsigned n = 0;

	begin(&ring);
	ring.fails = -ENETDOWN;
	while (offer(&ring, 1000))
		n++;
	assert_int_equal(n, FRAMES);
	pass_time(&ring, PACKET_TX_WAIT_US + 1000);
	assert_int_equal(ring.discarded, FRAMES);
	assert_false(ring.refused);
	/* the kernel has not taken them out: no room */
	assert_false(offer(&ring, 1000));
	ring.fails = 0;
	(void)kick(&ring.tx);
	assert_int_equal(ring.thrown_away, FRAMES);
	assert_true(offer(&ring, 1000));
	assert_int_equal(ring.taken, 1);
	end(&ring);
}

/* One that was refused for a moment is not lost. */
static void congestion_is_waited_for(void **state)
{
	(void)state;
	struct ring ring;

	begin(&ring);
	for (unsigned i = 0; i < 20; i++) {
		ring.refuse_from = 14;
		ring.fails = i % 2 ? -EAGAIN : 0;
		offer(&ring, 500);
		pass_time(&ring, PACKET_TX_WAIT_US / 2);
		ring.refuse_from = UINT32_MAX;
		ring.fails = 0;
		pass_time(&ring, 1000);
		assert_int_equal(ring.taken, i + 1);
	}
	assert_int_equal(ring.discarded, 0);
	end(&ring);
}

/* Lengths and limits by chance: each frame counts once, and what is short enough always passes. */
static void each_frame_counts_once(void **state)
{
	(void)state;
	struct ring ring;
	unsigned seed = 1;
	uint64_t full = 0, short_ones = 0, long_ones = 0;

	begin(&ring);
	for (unsigned i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		const uint32_t bytes = 60 + (seed >> 16) % 1455;

		/* at times all pass, at others no more than so much */
		ring.refuse_from = i / 1000 % 3 == 0 ? UINT32_MAX : 900 + i / 1000 * 20;
		if (!offer(&ring, bytes))
			full++;
		else if (bytes < 900)
			short_ones++;
		else
			long_ones++;
		ring.now_us += seed >> 28;
	}
	pass_time(&ring, (uint64_t)FRAMES * 2 * PACKET_TX_WAIT_US);
	assert_int_equal(ring.offered, short_ones + long_ones);
	assert_int_equal(ring.offered + full, 20000);
	assert_int_equal(ring.offered, ring.taken + ring.discarded);
	assert_true(ring.discarded != 0 && ring.discarded < long_ones);
	assert_true(ring.taken > short_ones);
	end(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_that_pass_are_taken_at_once),
		cmocka_unit_test(a_refused_frame_stops_the_others_for_some_milliseconds),
		cmocka_unit_test(frames_of_a_refused_length_are_tried_once),
		cmocka_unit_test(nothing_waits_for_an_interface_that_is_down),
		cmocka_unit_test(congestion_is_waited_for),
		cmocka_unit_test(each_frame_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
