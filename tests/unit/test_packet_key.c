/* SPDX-License-Identifier: BSD-3-Clause */

/* The key that extraction makes: the same for both directions, and with wire and zone in it. */

#include "unit/packet_checks.h"

/* Both directions of a conversation have one key, and each says where it comes from. */
static void both_directions(void **state)
{
	static const struct {
		const char *a;
		const char *b;
		unsigned a_port;
		unsigned b_port;
	} pairs[] = {
		{"10.0.0.1", "10.0.0.2", 9, 1},
		{"10.0.0.255", "10.0.1.0", 9, 1},
		{"9.255.255.255", "10.0.0.0", 9, 1},
		{"127.0.0.1", "128.0.0.1", 9, 1},
		{"10.0.0.1", "10.0.0.1", 255, 256},
		{"2001:db8::1", "2001:db8::2", 9, 1},
		{"2001:db8::ff", "2001:db8::100", 9, 1},
		{"2001:db8::ffff", "2001:db8:1::", 9, 1},
		{"2001:db8::1", "2001:db8::1", 255, 256},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(pairs); i++) {
		bool v6 = strchr(pairs[i].a, ':') != NULL;
		void (*ip)(struct frame *, const char *, const char *, unsigned) =
			v6 ? frame_ipv6 : frame_ipv4;
		struct packet_info up, down;
		struct frame frame;

		frame_start(&frame);
		ip(&frame, pairs[i].a, pairs[i].b, 17);
		frame_udp(&frame, pairs[i].a_port, pairs[i].b_port);
		frame_finish(&frame);
		assert_int_equal(read_frame(&frame, &up), EXTRACT_IP);
		frame_start(&frame);
		ip(&frame, pairs[i].b, pairs[i].a, 17);
		frame_udp(&frame, pairs[i].b_port, pairs[i].a_port);
		frame_finish(&frame);
		assert_int_equal(read_frame(&frame, &down), EXTRACT_IP);

		assert_int_equal(up.from, 0);
		assert_int_equal(down.from, 1);
		assert_true(flow_key_equal(&up.key, &down.key));
		assert_int_equal(up.hash, down.hash);
	}
}

static void same_ends(void **state)
{
	struct packet_info info;
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_ipv4(&frame, "127.0.0.1", "127.0.0.1", 17);
	frame_udp(&frame, 7, 7);
	frame_finish(&frame);
	assert_int_equal(read_frame(&frame, &info), EXTRACT_IP);
	assert_int_equal(info.from, 0);
}

/* The zone is the VLAN's number only when it is asked for; the wire is always in the key. */
static void zone_and_wire(void **state)
{
	struct extract_options options = {.secret = &test_secret, .zone_vlan = false};
	struct packet_info info;
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_tag(&frame, 0x8100, 100);
	frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", 17);
	frame_udp(&frame, 1000, 53);
	frame_finish(&frame);
	for (size_t first = 3; first <= frame.length; first += frame.length - 3) {
		struct rte_mbuf *mbuf = frame_mbuf_sized(
			frame.bytes, frame.length, (uint16_t[]){(uint16_t)first}, 1);

		for (unsigned wire = 0; wire < FLOW_MAX_WIRES; wire++) {
			assert_int_equal(extract(&options, mbuf, wire, &info), EXTRACT_IP);
			assert_int_equal(info.key.zone, 0);
			assert_int_equal(flow_key_wire(&info.key), wire);
			assert_int_equal(flow_key_version(&info.key), 4);
		}
		frame_mbuf_free(mbuf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions),
		cmocka_unit_test(same_ends),
		cmocka_unit_test(zone_and_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
