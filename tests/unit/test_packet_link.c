/* SPDX-License-Identifier: BSD-3-Clause */

/* The headers of links that are not Ethernet, one row each, whole and cut anywhere. */

#include "packet/link.h"
#include "packet/quote.h"
#include "unit/packet_checks.h"

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static const struct extract_options link_options = {
	.secret = &test_secret, .zone_vlan = true, .wire_is_link = true};

/* What follows the link's header. */
enum content { UDP4, UDP6, NOTHING_OF_IP };

struct row {
	const char *name;
	enum link_type link;
	const uint8_t *header;
	size_t length;
	enum content content;
	unsigned zone;
};

static const struct row rows[] = {
	{"raw 4", LINK_RAW, NULL, 0, UDP4, 0},
	{"raw 6", LINK_RAW, NULL, 0, UDP6, 0},
	{"sll", LINK_SLL, BYTES(0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0), UDP4, 0},
	{"sll 6", LINK_SLL, BYTES(0, 4, 3, 4, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0x86, 0xdd), UDP6, 0},
	{"sll, tag", LINK_SLL,
		BYTES(0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0, 0xe0, 7, 8, 0), UDP4, 7},
	{"sll, arp", LINK_SLL, BYTES(0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 6), NOTHING_OF_IP,
		0},
	{"sll2", LINK_SLL2, BYTES(8, 0, 0, 0, 0, 0, 0, 5, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0), UDP4,
		0},
	{"sll2, two tags", LINK_SLL2,
		BYTES(0x88, 0xa8, 0, 0, 0, 0, 0, 5, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0x81,
			0, 0, 7, 0x86, 0xdd),
		UDP6, 9},
	{"sll2, lldp", LINK_SLL2,
		BYTES(0x88, 0xcc, 0, 0, 0, 0, 0, 5, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0),
		NOTHING_OF_IP, 0},
	{"loopback, little", LINK_LOOPBACK, BYTES(2, 0, 0, 0), UDP4, 0},
	{"loopback, big", LINK_LOOPBACK, BYTES(0, 0, 0, 2), UDP4, 0},
	{"loopback 6, linux", LINK_LOOPBACK, BYTES(10, 0, 0, 0), UDP6, 0},
	{"loopback 6, windows", LINK_LOOPBACK, BYTES(23, 0, 0, 0), UDP6, 0},
	{"loopback 6, openbsd", LINK_LOOPBACK, BYTES(0, 0, 0, 24), UDP6, 0},
	{"loopback 6, freebsd", LINK_LOOPBACK, BYTES(28, 0, 0, 0), UDP6, 0},
	{"loopback 6, darwin", LINK_LOOPBACK, BYTES(30, 0, 0, 0), UDP6, 0},
	{"loopback, iso", LINK_LOOPBACK, BYTES(7, 0, 0, 0), NOTHING_OF_IP, 0},
	{"ppp", LINK_PPP, BYTES(0, 0x21), UDP4, 0},
	{"ppp 6", LINK_PPP, BYTES(0, 0x57), UDP6, 0},
	{"ppp, short protocol", LINK_PPP, BYTES(0x21), UDP4, 0},
	{"ppp, framed", LINK_PPP, BYTES(0xff, 3, 0, 0x57), UDP6, 0},
	{"ppp, framed, short protocol", LINK_PPP, BYTES(0xff, 3, 0x21), UDP4, 0},
	{"ppp, lcp", LINK_PPP, BYTES(0xff, 3, 0xc0, 0x21), NOTHING_OF_IP, 0},
	{"cisco", LINK_PPP, BYTES(0x0f, 0, 8, 0), UDP4, 0},
	{"cisco, broadcast", LINK_PPP, BYTES(0x8f, 0, 0x86, 0xdd), UDP6, 0},
	{"cisco, keep-alive", LINK_PPP, BYTES(0x8f, 0, 0x80, 0x35), NOTHING_OF_IP, 0},
	{"pppoe", LINK_PPPOE, BYTES(0x11, 0, 0, 1, 0, 40, 0, 0x21), UDP4, 0},
	{"pppoe 6", LINK_PPPOE, BYTES(0x11, 0, 0, 1, 0, 60, 0, 0x57), UDP6, 0},
	{"pppoe, discovery", LINK_PPPOE, BYTES(0x11, 9, 0, 0, 0, 0), NOTHING_OF_IP, 0},
};

static void build(const struct row *row, struct frame *frame)
{
	memset(frame, 0, sizeof(*frame));
	if (row->length > 0)
		memcpy(frame_add(frame, row->length), row->header, row->length);
	if (row->content == NOTHING_OF_IP) {
		frame_fill(frame, 30);
		return;
	}

	struct frame inner;

	frame_start(&inner);
	if (row->content == UDP4)
		frame_ipv4(&inner, "10.0.0.9", "10.0.0.10", 17);
	else
		frame_ipv6(&inner, "2001:db8::9", "2001:db8::10", 17);
	frame_udp(&inner, 1000, 53);
	frame_fill(&inner, 5);
	frame_finish(&inner);
	memcpy(frame_add(frame, inner.length - 14), inner.bytes + 14, inner.length - 14);
}

static enum extract_result read_link(const struct row *row, const struct frame *frame,
	size_t length, const uint16_t *sizes, size_t n_sizes, struct packet_info *info)
{
	struct rte_mbuf *mbuf = frame_mbuf_sized(frame->bytes, length, sizes, n_sizes);
	enum extract_result result = extract(&link_options, mbuf, row->link, info);

	frame_mbuf_free(mbuf);
	return result;
}

static void check(const struct row *row, const struct frame *frame, const struct packet_info *info)
{
	bool v4 = row->content == UDP4;

	assert_ends(
		info, v4 ? "10.0.0.9" : "2001:db8::9", v4 ? "10.0.0.10" : "2001:db8::10", 1000, 53);
	assert_int_equal(info->key.proto, 17);
	assert_int_equal(info->key.zone, row->zone);
	assert_int_equal(flow_key_version(&info->key), v4 ? 4 : 6);
	assert_int_equal(flow_key_wire(&info->key), row->link);
	assert_int_equal(info->l4_offset, row->length + (v4 ? 20 : 40));
	/* what NICs make of such a packet is no question here */
	assert_int_equal(info->flags & ~PACKET_UNPLAIN, PACKET_HAS_PORTS);
	assert_int_equal(info->bytes, frame->length);
}

static void every_row(void **state)
{
	static const uint16_t ones[64] = {[0 ... 63] = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		bool ip = row->content != NOTHING_OF_IP;
		enum extract_result whole = ip ? EXTRACT_IP : EXTRACT_NON_IP;
		struct packet_info info;
		struct frame frame;

		build(row, &frame);
		if (read_link(row, &frame, frame.length, NULL, 0, &info) != whole)
			fail_msg("%s", row->name);
		if (ip)
			check(row, &frame, &info);
		assert_int_equal(read_link(row, &frame, frame.length, ones, 64, &info), whole);
		if (ip)
			check(row, &frame, &info);

		/* cut: malformed within the link's and the network's header, else the same flow */
		size_t headers = row->length + (row->content == UDP4	      ? 20
						       : row->content == UDP6 ? 40
									      : 0);

		for (size_t length = 0; length < frame.length; length++) {
			enum extract_result result = read_link(row, &frame, length, NULL, 0, &info);

			if (result != (length < headers ? EXTRACT_MALFORMED : whole))
				fail_msg("%s, %zu bytes", row->name, length);
		}
	}
}

/* Raw bytes that are no IP; a link type's own bytes are not taken for Ethernet. */
static void not_ip(void **state)
{
	const struct row raw = {"raw", LINK_RAW, NULL, 0, NOTHING_OF_IP, 0};
	struct packet_info info;
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_ipv4(&frame, "10.0.0.9", "10.0.0.10", 17);
	frame_udp(&frame, 1000, 53);
	frame_finish(&frame);
	assert_int_equal(read_link(&raw, &frame, frame.length, NULL, 0, &info), EXTRACT_MALFORMED);
}

/* An error's quote lies behind the link's header, too. */
static void quotes(void **state)
{
	struct packet_info info, quoted;
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_ipv4(&frame, "192.0.2.1", "10.0.0.9", 1);
	frame_icmp(&frame, 3, 3);
	frame_ipv4(&frame, "10.0.0.9", "10.0.0.10", 17);
	frame_udp(&frame, 1000, 53);
	frame_finish(&frame);

	struct rte_mbuf *mbuf = frame_mbuf(frame.bytes + 14, frame.length - 14);

	assert_int_equal(extract(&link_options, mbuf, LINK_RAW, &info), EXTRACT_IP);
	assert_int_equal(info.flags, PACKET_ICMP_ERROR);
	assert_true(extract_quote(&link_options, mbuf, &info, &quoted));
	assert_ends(&quoted, "10.0.0.9", "10.0.0.10", 1000, 53);
	frame_mbuf_free(mbuf);
}

static void names(void **state)
{
	(void)state;
	for (unsigned type = 0; type < LINK_N_TYPES; type++)
		assert_non_null(link_type_name((enum link_type)type));
	assert_string_equal(link_type_name(LINK_SLL2), "linux_sll2");
	assert_in_range(LINK_N_TYPES, 1, FLOW_MAX_WIRES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(not_ip),
		cmocka_unit_test(quotes),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
