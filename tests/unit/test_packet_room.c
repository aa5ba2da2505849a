/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that fill the room of a driver's buffers: cut, or whole by chance. */
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "packet/cut.h"

#define ROOM 1982

/* What is left of a frame in a room; tagged: the kernel took a tag off, and the driver put it back. */
static bool cut(const struct frame *frame, size_t length, bool tagged)
{
	static const uint16_t segments[] = {13, 2, 3, 700};
	struct rte_mbuf *packet[2] = {
		frame_mbuf(frame->bytes, length),
		frame_mbuf_sized(frame->bytes, length, segments, 4),
	};
	bool ret[2];

	for (unsigned i = 0; i < 2; i++) {
		packet[i]->ol_flags = tagged ? RTE_MBUF_F_RX_VLAN : 0;
		ret[i] = frame_may_be_cut(packet[i], ROOM);
		frame_mbuf_free(packet[i]);
	}
	assert_int_equal(ret[0], ret[1]);
	return ret[0];
}

static void make(struct frame *frame, unsigned version, bool tagged, size_t length)
{
	frame_start(frame);
	if (tagged)
		frame_tag(frame, 0x8100, 5);
	if (version == 4)
		frame_ipv4(frame, "10.0.0.1", "10.0.0.2", 17);
	else
		frame_ipv6(frame, "fd00::1", "fd00::2", 17);
	frame_udp(frame, 1000, 53);
	frame_fill(frame, length - frame->length);
	frame_finish(frame);
}

static void datagrams(void **state)
{
	(void)state;
	struct frame frame;

	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned tagged = 0; tagged < 2; tagged++) {
			const size_t room = ROOM + 4 * tagged;

			for (size_t length = room - 5; length <= room; length++) {
				make(&frame, version, tagged, length);
				assert_false(cut(&frame, length, tagged));
			}
			for (size_t length = room + 1; length < 4000; length += 111) {
				make(&frame, version, tagged, length);
				assert_true(cut(&frame, room, tagged));
				/* below the room it is the sender's own */
				assert_false(cut(&frame, room - 1, tagged));
			}
		}
}

/* No length, as in a frame of more than 64 KiB; something behind the datagram; something else than IP. */
static void what_cannot_be_told(void **state)
{
	(void)state;
	struct frame frame;

	make(&frame, 4, false, ROOM);
	put_be16(&frame.bytes[frame.ip[0] + 2], 0);
	assert_true(cut(&frame, ROOM, false));
	make(&frame, 6, false, ROOM);
	put_be16(&frame.bytes[frame.ip[0] + 4], 0);
	assert_true(cut(&frame, ROOM, false));
	make(&frame, 4, false, ROOM);
	put_be16(&frame.bytes[frame.ip[0] + 2], 600);
	assert_true(cut(&frame, ROOM, false));
	assert_false(cut(&frame, ROOM - 1, false));

	frame_start(&frame);
	frame_type(&frame, 0x0806);
	frame_fill(&frame, ROOM - frame.length);
	assert_true(cut(&frame, ROOM, false));
	assert_false(cut(&frame, ROOM - 1, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams),
		cmocka_unit_test(what_cannot_be_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
