/* SPDX-License-Identifier: BSD-3-Clause */
/* A router on the packet path: what it forwards, what it leaves to the kernel, and flows whose routes change. */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>

/* Link n is port n's, with this interface number; its network is 10.255.n.0/24, where gateway g of link g % 2 has .2 + g. */
#define IFINDEX(link) (7u + (link))
#define N_GATEWAYS 8

static const struct plane_router router_options = {
	.name = "r1",
	.taps = {"eth0", "eth1"},
	.table = ROUTER_TABLE_MAIN,
	.max_routes = {10000, 10000},
	.n_hops = 16384,
};

static const struct live_options shapes[] = {
	{.n_workers = 1, .router = &router_options},
	{.n_workers = 2, .router = &router_options},
	{.n_workers = 3, .router = &router_options},
	{.n_workers = 2, .threads = PLANE_SPLIT, .router = &router_options},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct kernel_follower follower(struct live *live)
{
	return router_follower(plane_router(live->plane, 0));
}

static void set_link(struct live *live, unsigned number, bool carrier)
{
	const struct kernel_follower tell = follower(live);
	struct kernel_link link = {.ifindex = IFINDEX(number),
		.mac = {2, 0, 0, 0, 0, 2}, /* as frame_start() sends to */
		.mtu = 1500,
		.up = true,
		.carrier = carrier};

	snprintf(link.name, sizeof(link.name), "eth%u", number);
	tell.link(tell.context, &link, false);
}

static void address_of(const char *text, uint8_t address[16])
{
	memset(address, 0, 16);
	assert_int_equal(
		inet_pton(strchr(text, ':') != NULL ? AF_INET6 : AF_INET, text, address), 1);
}

static void set_address(struct live *live, unsigned link, const char *text)
{
	const struct kernel_follower tell = follower(live);
	struct kernel_address address = {
		.ifindex = IFINDEX(link), .version = strchr(text, ':') != NULL ? 6 : 4};

	address_of(text, address.address);
	tell.address(tell.context, &address, false);
}

static void set_neighbour(
	struct live *live, unsigned link, const char *text, uint8_t number, bool valid, bool gone)
{
	const struct kernel_follower tell = follower(live);
	struct kernel_neighbour neighbour = {.ifindex = IFINDEX(link),
		.version = strchr(text, ':') != NULL ? 6 : 4,
		.mac = {2, 9, 0, 0, 0, number},
		.valid = valid,
		.reachable = valid};

	address_of(text, neighbour.address);
	tell.neighbour(tell.context, &neighbour, gone);
}

static void set_route(struct live *live, const char *prefix, enum kernel_route_kind kind,
	const struct kernel_hop *hops, unsigned n, bool gone)
{
	const struct kernel_follower tell = follower(live);
	struct route_prefix at;
	struct error error;

	assert_int_equal(route_prefix_parse(&at, prefix, &error), 0);
	struct kernel_route route = {.version = at.version,
		.length = at.length,
		.table = ROUTER_TABLE_MAIN,
		.kind = kind,
		.n_hops = n,
		.hops = hops};

	memcpy(route.prefix, at.addr, sizeof(route.prefix));
	tell.route(tell.context, &route, gone);
}

static struct kernel_hop on_link(unsigned link)
{
	return (struct kernel_hop){.ifindex = IFINDEX(link), .weight = 1};
}

static struct kernel_hop gateway(unsigned number)
{
	return (struct kernel_hop){.ifindex = IFINDEX(number % 2),
		.version = 4,
		.gateway = {10, 255, (uint8_t)(number % 2), (uint8_t)(2 + number)},
		.weight = 1};
}

static void set_gateway(struct live *live, unsigned number, bool valid)
{
	char text[24];

	snprintf(text, sizeof(text), "10.255.%u.%u", number % 2, 2 + number);
	set_neighbour(live, number % 2, text, (uint8_t)number, valid, false);
}

/* Two links with an address each, networks, and gateways. */
static struct live *begin(const struct live_options *options)
{
	struct live *live = live_begin(options);
	const struct kernel_hop hop[2] = {on_link(0), on_link(1)};

	for (unsigned link = 0; link < 2; link++)
		set_link(live, link, true);
	set_address(live, 0, "10.255.0.1");
	set_address(live, 1, "10.255.1.1");
	set_address(live, 0, "2001:db8::1");
	set_route(live, "10.255.0.0/24", KERNEL_UNICAST, &hop[0], 1, false);
	set_route(live, "10.255.1.0/24", KERNEL_UNICAST, &hop[1], 1, false);
	set_route(live, "2001:db8::/64", KERNEL_UNICAST, &hop[0], 1, false);
	set_route(live, "2001:db8:1::/64", KERNEL_UNICAST, &hop[1], 1, false);
	for (unsigned i = 0; i < N_GATEWAYS; i++)
		set_gateway(live, i, true);
	live_settle(live);
	return live;
}

/* Packets that the workers left to the kernel since the last time, by reason. */
static unsigned take_punts(struct live *live, unsigned reasons[PUNT_N_REASONS])
{
	unsigned n = 0;

	memset(reasons, 0, PUNT_N_REASONS * sizeof(reasons[0]));
	for (unsigned i = 0; i < plane_n_punt_lines(live->plane); i++) {
		ring_element element;

		while (ring_pop(&plane_punt_line(live->plane, 0, i)->to_host, &element, 1) == 1) {
			struct rte_mbuf *packet = ring_packet(element);

			assert_true(packet->hash.usr < PUNT_N_REASONS);
			reasons[packet->hash.usr]++;
			rte_pktmbuf_free(packet);
			n++;
		}
	}
	return n;
}

static void end(struct live *live)
{
	unsigned reasons[PUNT_N_REASONS];

	(void)take_punts(live, reasons);
	live_end(live);
}

static void udp(struct frame *frame, const char *src, const char *dst, unsigned port)
{
	frame_start(frame);
	if (strchr(src, ':') != NULL)
		frame_ipv6(frame, src, dst, IPPROTO_UDP);
	else
		frame_ipv4(frame, src, dst, IPPROTO_UDP);
	frame_udp(frame, port, 53);
	frame_fill(frame, 20);
	frame_finish(frame);
}

/* The last byte of the MAC that one packet sent from side 0 or 1 leaves for, and the side; -1: it does not leave. */
static int leaves_for(struct live *live, unsigned side, const struct frame *frame, unsigned *out)
{
	int number = -1;

	live_send(live, side, 0, frame);
	live_settle(live);
	for (unsigned i = 0; i < 2; i++) {
		struct rte_mbuf *packet = live_take_one(live, i);

		if (packet == NULL)
			continue;
		const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);

		assert_int_equal(number, -1);
		number = bytes[5];
		assert_int_equal(bytes[1], 9);
		assert_int_equal(bytes[11], 2);
		*out = i;
		rte_pktmbuf_free(packet);
	}
	return number;
}

/* The one reason that a packet is left to the kernel for. */
static int punted(struct live *live, unsigned side, const struct frame *frame)
{
	unsigned reasons[PUNT_N_REASONS];

	live_send(live, side, 0, frame);
	live_settle(live);
	assert_int_equal(live_take(live, 0) + live_take(live, 1), 0);
	if (take_punts(live, reasons) != 1)
		return -1;
	for (int i = 0; i < PUNT_N_REASONS; i++)
		if (reasons[i] == 1)
			return i;
	return -1;
}

static uint64_t dropped(struct live *live, enum drop_reason reason)
{
	static struct plane_snapshot snapshot;

	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	return snapshot.wires[0].dropped[reason];
}

static void test_forwards(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(&shapes[shape]);
		const struct kernel_hop via = gateway(3);
		struct frame frame;
		unsigned side;

		set_route(live, "10.9.0.0/16", KERNEL_UNICAST, &via, 1, false);
		for (unsigned i = 0; i < 3; i++) {
			udp(&frame, "10.255.0.2", "10.255.1.3", 1000);
			assert_int_equal(leaves_for(live, 0, &frame, &side), 1);
			assert_int_equal(side, 1);
			udp(&frame, "10.255.1.3", "10.255.0.2", 1000);
			assert_int_equal(leaves_for(live, 1, &frame, &side), 0);
			assert_int_equal(side, 0);
			/* behind a gateway, and back by the port that it came in by */
			udp(&frame, "10.255.1.3", "10.9.8.7", 1000);
			assert_int_equal(leaves_for(live, 1, &frame, &side), 3);
			assert_int_equal(side, 1);
		}
		end(live);
	}
}

/* One hop less, with a checksum that holds; everything else of the packet stays. */
static void test_changes_what_it_has_to(void **state)
{
	struct live *live = begin(&shapes[0]);
	struct frame frame;

	(void)state;
	udp(&frame, "10.255.0.2", "10.255.1.3", 1000);
	live_send(live, 0, 0, &frame);
	live_settle(live);

	struct rte_mbuf *packet = live_take_one(live, 1);

	assert_non_null(packet);
	assert_int_equal(packet->pkt_len, frame.length);
	uint8_t *bytes = rte_pktmbuf_mtod(packet, uint8_t *);
	uint8_t *ip = bytes + frame.ip[0];
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	assert_int_equal(ip[8], frame.bytes[frame.ip[0] + 8] - 1);
	ip[8]++;
	memcpy(ip + 10, frame.bytes + frame.ip[0] + 10, 2);
	assert_memory_equal(bytes + 12, frame.bytes + 12, frame.length - 12);
	rte_pktmbuf_free(packet);
	end(live);
}

static void test_leaves_to_the_kernel(void **state)
{
	struct live *live = begin(&shapes[0]);
	const struct kernel_hop via = gateway(1);
	struct frame frame;

	(void)state;
	set_route(live, "10.8.0.0/16", KERNEL_BLACKHOLE, NULL, 0, false);
	set_route(live, "10.7.0.0/16", KERNEL_UNREACHABLE, NULL, 0, false);
	set_route(live, "10.6.0.0/16", KERNEL_UNICAST, &via, 1, false);
	udp(&frame, "10.255.0.2", "10.255.0.1", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_LOCAL);
	udp(&frame, "2001:db8::7", "2001:db8::1", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_LOCAL);
	udp(&frame, "10.255.0.2", "10.255.1.77", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_NO_NEIGHBOUR);
	udp(&frame, "10.255.0.2", "192.0.2.1", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_NO_ROUTE);
	udp(&frame, "10.255.0.2", "10.7.2.1", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_NO_ROUTE);
	udp(&frame, "fe80::5", "fe80::1", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_MULTICAST);
	udp(&frame, "fe80::5", "2001:db8:1::1", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_MULTICAST);
	udp(&frame, "10.255.0.2", "224.0.0.5", 1);
	assert_int_equal(punted(live, 0, &frame), PUNT_MULTICAST);
	udp(&frame, "10.255.0.2", "10.6.0.1", 1);
	frame.bytes[frame.ip[0] + 8] = 1;
	frame_finish(&frame);
	assert_int_equal(punted(live, 0, &frame), PUNT_TTL);
	frame_start(&frame);
	frame_ipv4(&frame, "10.255.0.2", "10.6.0.1", IPPROTO_UDP);
	frame_udp(&frame, 7, 7);
	frame_fill(&frame, 1500);
	frame_finish(&frame);
	assert_int_equal(punted(live, 0, &frame), PUNT_TOO_BIG);
	frame_start(&frame);
	frame_type(&frame, 0x0806);
	frame_fill(&frame, 28);
	assert_int_equal(punted(live, 0, &frame), PUNT_ARP_ND);
	memset(frame.bytes, 0xff, 6);
	assert_int_equal(punted(live, 0, &frame), PUNT_ARP_ND);
	put_be16(frame.bytes + 12, 0x88cc);
	assert_int_equal(punted(live, 0, &frame), PUNT_OTHER);

	udp(&frame, "10.255.0.2", "10.8.0.1", 1);
	assert_int_equal(punted(live, 0, &frame), -1);
	assert_int_equal(dropped(live, DROP_BLACKHOLE), 1);
	udp(&frame, "127.0.0.1", "10.6.0.1", 1);
	assert_int_equal(punted(live, 0, &frame), -1);
	udp(&frame, "10.255.0.2", "240.0.0.1", 1);
	assert_int_equal(punted(live, 0, &frame), -1);
	/* an address of the router's own does not come from outside */
	udp(&frame, "10.255.0.1", "10.6.0.1", 1);
	assert_int_equal(punted(live, 0, &frame), -1);
	assert_int_equal(dropped(live, DROP_MARTIAN), 3);
	udp(&frame, "10.255.0.2", "10.6.0.1", 1);
	frame.bytes[frame.ip[0] + 10] ^= 1;
	assert_int_equal(punted(live, 0, &frame), -1);
	assert_int_equal(dropped(live, DROP_CHECKSUM), 1);
	udp(&frame, "10.255.0.2", "10.6.0.1", 1);
	frame.bytes[5] = 0x77;
	assert_int_equal(punted(live, 0, &frame), -1);
	assert_int_equal(dropped(live, DROP_OTHER_HOST), 1);
	end(live);
}

/* A packet of a table: how it comes about, and what becomes of it. */
struct row {
	const char *what;
	void (*make)(struct frame *frame);
	int punt;	       /* enum punt_reason, or -1 */
	enum drop_reason drop; /* where it is not left to the kernel, and does not leave */
	int leaves_for;	       /* the last byte of the MAC, or -1 */
};

static void make_plain(struct frame *frame)
{
	udp(frame, "10.255.0.2", "10.6.0.1", 1);
}

static void make_ttl(struct frame *frame, uint8_t ttl)
{
	make_plain(frame);
	frame->bytes[frame->ip[0] + 8] = ttl;
	frame_finish(frame);
}

static void make_ttl_0(struct frame *frame)
{
	make_ttl(frame, 0);
}

static void make_ttl_1(struct frame *frame)
{
	make_ttl(frame, 1);
}

static void make_ttl_2(struct frame *frame)
{
	make_ttl(frame, 2);
}

/* Four bytes of no operation. */
static void make_options(struct frame *frame)
{
	uint8_t *ip;

	make_plain(frame);
	ip = frame->bytes + frame->ip[0];
	memmove(ip + 24, ip + 20, frame->length - frame->ip[0] - 20);
	memset(ip + 20, 1, 4);
	frame->length += 4;
	ip[0] = 0x46;
	put_be16(ip + 2, (unsigned)(frame->length - frame->ip[0]));
	put_be16(ip + 10, 0);

	uint32_t sum = 0;

	for (unsigned i = 0; i < 24; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);
}

static void make_hop_by_hop(struct frame *frame)
{
	udp(frame, "2001:db8::7", "2001:db8:1::7", 1);
	frame->bytes[frame->ip[0] + 6] = IPPROTO_HOPOPTS;
}

static void make_solicitation(struct frame *frame)
{
	udp(frame, "2001:db8::7", "2001:db8::1", 1);
	frame->bytes[frame->ip[0] + 6] = IPPROTO_ICMPV6;
	frame->bytes[frame->ip[0] + 40] = 135;
}

/* Broadcast of the other link, which a local route of the kernel's tells. */
static void make_directed_broadcast(struct frame *frame)
{
	udp(frame, "10.255.0.2", "10.255.1.255", 1);
}

static void make_limited_broadcast(struct frame *frame)
{
	udp(frame, "0.0.0.0", "255.255.255.255", 67);
}

static void make_link_broadcast(struct frame *frame)
{
	make_plain(frame);
	memset(frame->bytes, 0xff, 6);
}

static void make_multicast6(struct frame *frame)
{
	udp(frame, "fe80::7", "ff02::5", 1);
	memcpy(frame->bytes, "\x33\x33\0\0\0\5", 6);
}

static void make_fragment(struct frame *frame, unsigned offset)
{
	make_plain(frame);
	put_be16(frame->bytes + frame->ip[0] + 6, offset);
	frame_finish(frame);
}

static void make_first_fragment(struct frame *frame)
{
	make_fragment(frame, 0x2000);
}

static void make_later_fragment(struct frame *frame)
{
	make_fragment(frame, 3);
}

static void make_from_loopback6(struct frame *frame)
{
	udp(frame, "::1", "2001:db8:1::7", 1);
}

static void make_from_mapped(struct frame *frame)
{
	udp(frame, "::ffff:10.0.0.1", "2001:db8:1::7", 1);
}

static void make_from_nowhere(struct frame *frame)
{
	udp(frame, "0.0.0.0", "10.6.0.1", 1);
}

static void make_from_multicast(struct frame *frame)
{
	udp(frame, "224.0.0.9", "10.6.0.1", 1);
}

static void make_to_loopback(struct frame *frame)
{
	udp(frame, "10.255.0.2", "127.0.0.1", 1);
}

static void make_tagged(struct frame *frame)
{
	frame_start(frame);
	frame_tag(frame, 0x8100, 7);
	frame_ipv4(frame, "10.255.0.2", "10.6.0.1", IPPROTO_UDP);
	frame_udp(frame, 7, 7);
	frame_finish(frame);
}

static const struct row rows[] = {
	{"plain", make_plain, -1, 0, 1},
	{"TTL 0", make_ttl_0, PUNT_TTL, 0, -1},
	{"TTL 1", make_ttl_1, PUNT_TTL, 0, -1},
	{"TTL 2", make_ttl_2, -1, 0, 1},
	{"IPv4 options", make_options, PUNT_OPTIONS, 0, -1},
	{"hop-by-hop options", make_hop_by_hop, PUNT_OPTIONS, 0, -1},
	{"neighbour solicitation", make_solicitation, PUNT_ARP_ND, 0, -1},
	{"directed broadcast", make_directed_broadcast, PUNT_LOCAL, 0, -1},
	{"limited broadcast", make_limited_broadcast, PUNT_LOCAL, 0, -1},
	{"broadcast of the link", make_link_broadcast, PUNT_MULTICAST, 0, -1},
	{"IPv6 multicast of the link", make_multicast6, PUNT_MULTICAST, 0, -1},
	{"first fragment", make_first_fragment, -1, 0, 1},
	{"later fragment", make_later_fragment, -1, 0, 1},
	{"from ::1", make_from_loopback6, -1, DROP_MARTIAN, -1},
	{"from an IPv4-mapped address", make_from_mapped, -1, DROP_MARTIAN, -1},
	{"from 0.0.0.0", make_from_nowhere, -1, DROP_MARTIAN, -1},
	{"from a multicast address", make_from_multicast, -1, DROP_MARTIAN, -1},
	{"to 127.0.0.1", make_to_loopback, -1, DROP_MARTIAN, -1},
	{"with a VLAN tag", make_tagged, PUNT_OTHER, 0, -1},
};

/* Each kind of packet ends where it belongs, in one counter, as the first of its flow and as a later one. */
static void test_table(void **state)
{
	struct live *live = begin(&shapes[0]);
	const struct kernel_hop via = gateway(1);

	(void)state;
	set_route(live, "10.6.0.0/16", KERNEL_UNICAST, &via, 1, false);
	set_route(live, "10.255.1.255/32", KERNEL_BROADCAST, NULL, 0, false);
	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i / 2];
		const uint64_t before = dropped(live, row->drop);
		unsigned reasons[PUNT_N_REASONS], side;
		struct frame frame;
		int number;

		row->make(&frame);
		number = leaves_for(live, 0, &frame, &side);
		/* a later fragment waits for its first one */
		live->now_us += 400000;
		live_settle(live);
		if (number < 0 && row->leaves_for >= 0)
			number = live_take(live, 1) == 1 ? row->leaves_for : -1;
		if (number != row->leaves_for)
			print_error("%s\n", row->what);
		assert_int_equal(number, row->leaves_for);
		assert_int_equal(take_punts(live, reasons), row->punt >= 0);
		if (row->punt >= 0 && reasons[row->punt] != 1)
			print_error("%s\n", row->what);
		if (row->punt >= 0)
			assert_int_equal(reasons[row->punt], 1);
		assert_int_equal(
			dropped(live, row->drop) - before, row->punt < 0 && row->leaves_for < 0);
	}
	end(live);
}

/* Packets from an address without a route back are dropped, as are those whose route back leads by another port. */
static void test_source_checks(void **state)
{
	(void)state;
	for (unsigned check = 0; check < ROUTES_N_SOURCE_CHECKS; check++) {
		struct plane_router strict = router_options;
		const struct live_options options = {.n_workers = 2, .router = &strict};
		const struct kernel_hop via[2] = {gateway(0), gateway(1)};
		struct frame frame;
		struct live *live;
		unsigned side;

		strict.source_check = (enum routes_source_check)check;
		live = begin(&options);
		set_route(live, "10.6.0.0/16", KERNEL_UNICAST, &via[1], 1, false);
		set_route(live, "10.5.0.0/16", KERNEL_UNICAST, &via[0], 1, false);
		for (unsigned i = 0; i < 2; i++) {
			udp(&frame, "10.5.0.1", "10.6.0.1", 1);
			assert_int_equal(leaves_for(live, 0, &frame, &side), 1);
			udp(&frame, "192.0.2.1", "10.6.0.1", 1);
			assert_int_equal(leaves_for(live, 0, &frame, &side),
				check == ROUTES_SOURCE_OFF ? 1 : -1);
			udp(&frame, "10.5.0.9", "10.255.0.4", 1);
			assert_int_equal(leaves_for(live, 1, &frame, &side),
				check == ROUTES_SOURCE_STRICT ? -1 : 2);
		}
		assert_int_equal(dropped(live, DROP_SOURCE), 2 * check);
		end(live);
	}
}

/* A reason has its rate, and a ring its room: what is above them is dropped by name, and the rest goes on. */
static void test_limits(void **state)
{
	struct live *live = begin(&shapes[0]);
	unsigned reasons[PUNT_N_REASONS];
	struct frame frame;

	(void)state;
	udp(&frame, "10.255.0.2", "192.0.2.1", 1);
	for (unsigned i = 0; i < 400; i++)
		live_send(live, 0, 0, &frame);
	live_settle(live);
	/* a tenth of a second's rate at once */
	assert_int_equal(take_punts(live, reasons), 100);
	assert_int_equal(dropped(live, DROP_PUNT_LIMITED), 300);
	udp(&frame, "10.255.0.2", "10.255.0.1", 1);
	for (unsigned i = 0; i < PUNT_RING + 10; i++)
		live_send(live, 0, 0, &frame);
	live_settle(live);
	assert_int_equal(take_punts(live, reasons), PUNT_RING);
	assert_int_equal(dropped(live, DROP_PUNT_RING), 10);
	end(live);
}

/* Frames of the kernel leave untouched, and are counted. */
static void test_kernel_sends(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(&shapes[shape]);

		for (unsigned port = 0; port < 2; port++) {
			struct rte_mbuf *packet = rte_pktmbuf_alloc(live->plane->pools[0]), *left;
			struct frame frame;

			udp(&frame, "10.255.0.1", "10.255.0.2", 1);
			memcpy(rte_pktmbuf_append(packet, (uint16_t)frame.length), frame.bytes,
				frame.length);
			packet->port = (uint16_t)port;
			assert_int_equal(
				ring_push(&plane_punt_line_of(live->plane, port)->from_host,
					&packet, 1),
				1);
			live_settle(live);
			left = live_take_one(live, port);
			assert_non_null(left);
			assert_memory_equal(
				rte_pktmbuf_mtod(left, uint8_t *), frame.bytes, frame.length);
			rte_pktmbuf_free(left);
		}
		end(live);
	}
}

static void numbered(char text[24], unsigned number)
{
	snprintf(text, 24, "10.9.%u.%u", number / 250, 1 + number % 250);
}

#define N_TALKS 600

/* The gateway of each flow. */
static void gateways_of(struct live *live, int numbers[N_TALKS])
{
	for (unsigned i = 0; i < N_TALKS; i++) {
		struct frame frame;
		char text[24];
		unsigned side;

		numbered(text, i);
		udp(&frame, "10.255.0.2", text, 1000 + i);
		numbers[i] = leaves_for(live, 0, &frame, &side);
		assert_true(numbers[i] < 0 || side == (unsigned)numbers[i] % 2);
	}
}

/* A member that leaves a group moves its own flows alone; one that comes back has the same again. */
static void test_groups_are_resilient(void **state)
{
	struct live *live = begin(&shapes[1]);
	const struct kernel_hop all[] = {gateway(0), gateway(1), gateway(2), gateway(3)};
	const struct kernel_hop fewer[] = {gateway(0), gateway(1), gateway(3)};
	int first[N_TALKS], then[N_TALKS], count[4] = {0};

	(void)state;
	set_route(live, "10.9.0.0/16", KERNEL_UNICAST, all, 4, false);
	gateways_of(live, first);
	for (unsigned i = 0; i < N_TALKS; i++)
		count[first[i]]++;
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(count[i], N_TALKS / 8, N_TALKS / 2);
	set_route(live, "10.9.0.0/16", KERNEL_UNICAST, fewer, 3, false);
	live_settle(live);
	gateways_of(live, then);
	for (unsigned i = 0; i < N_TALKS; i++) {
		assert_int_not_equal(then[i], 2);
		if (first[i] != 2)
			assert_int_equal(then[i], first[i]);
	}
	set_route(live, "10.9.0.0/16", KERNEL_UNICAST, all, 4, false);
	live_settle(live);
	gateways_of(live, then);
	for (unsigned i = 0; i < N_TALKS; i++)
		assert_int_equal(then[i], first[i]);
	end(live);
}

/* A neighbour's new MAC, a neighbour or a link that is lost: all flows move at once, before any is decided again. */
static void test_next_hops_move_flows(void **state)
{
	struct live *live = begin(&shapes[0]);
	const struct kernel_hop all[] = {gateway(0), gateway(1)};
	const atomic_uint_fast64_t *generation = &live->plane->routes_generation;
	int first[N_TALKS], then[N_TALKS];
	unsigned reasons[PUNT_N_REASONS];

	(void)state;
	set_route(live, "10.9.0.0/16", KERNEL_UNICAST, all, 2, false);
	gateways_of(live, first);
	const uint64_t before = atomic_load(generation);

	set_neighbour(live, 1, "10.255.1.3", 43, true, false);
	gateways_of(live, then);
	for (unsigned i = 0; i < N_TALKS; i++)
		assert_int_equal(then[i], first[i] == 1 ? 43 : 0);
	set_gateway(live, 1, true);
	set_link(live, 1, false);
	gateways_of(live, then);
	for (unsigned i = 0; i < N_TALKS; i++)
		assert_int_equal(then[i], 0);
	set_link(live, 1, true);
	gateways_of(live, then);
	assert_memory_equal(then, first, sizeof(first));
	assert_int_equal(atomic_load(generation), before);
	/* with none left, packets go to the kernel */
	set_link(live, 0, false);
	set_link(live, 1, false);
	gateways_of(live, then);
	for (unsigned i = 0; i < N_TALKS; i++)
		assert_int_equal(then[i], -1);
	const unsigned n = take_punts(live, reasons);

	assert_int_equal(n, reasons[PUNT_NO_NEIGHBOUR]);
	assert_true(n > 0);
	end(live);
}

/* ---------------------------------------------------------------- a storm of changes */

struct told {
	bool there;
	struct route_prefix prefix;
	enum kernel_route_kind kind;
	unsigned gateways; /* a bit for each */
};

#define N_PREFIXES 200

static unsigned draw(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % below;
}

/* Tells the router of one change, and takes note of it. */
static void change(struct live *live, struct told *told, unsigned *seed, bool *known)
{
	char text[ROUTE_PREFIX_TEXT_MAX];
	struct kernel_hop hops[N_GATEWAYS];
	struct told *one = &told[draw(seed, N_PREFIXES)];
	unsigned n = 0;

	if (draw(seed, 8) == 0) {
		const unsigned number = draw(seed, N_GATEWAYS);

		known[number] = !known[number];
		set_gateway(live, number, known[number]);
		return;
	}
	route_prefix_format(&one->prefix, text);
	if (one->there && draw(seed, 2) == 0) {
		set_route(live, text, one->kind, NULL, 0, true);
		one->there = false;
		return;
	}
	one->there = true;
	one->kind = draw(seed, 10) == 0 ? KERNEL_BLACKHOLE : KERNEL_UNICAST;
	one->gateways = 1 + draw(seed, (1u << N_GATEWAYS) - 1);
	if (draw(seed, 2) == 0)
		one->gateways = 1u << draw(seed, N_GATEWAYS);
	for (unsigned i = 0; i < N_GATEWAYS; i++)
		if (one->gateways >> i & 1)
			hops[n++] = gateway(i);
	set_route(live, text, one->kind, hops, n, false);
}

static const struct told *longest(const struct told *told, const uint8_t address[16])
{
	const struct route_bits bits = route_bits_of(address, 4);
	const struct told *best = NULL;

	for (unsigned i = 0; i < N_PREFIXES; i++) {
		const struct route_bits cut = route_bits_cut(bits, told[i].prefix.length);

		if (told[i].there && cut.high == route_bits_of(told[i].prefix.addr, 4).high &&
			(best == NULL || told[i].prefix.length > best->prefix.length))
			best = &told[i];
	}
	return best;
}

/* The verdict of a flow towards an address is what the last word of the kernel makes of it. */
static void check_verdict(struct live *live, const struct told *told, const bool *known,
	const uint8_t address[16], uint16_t verdict)
{
	const struct routes_verdicts *verdicts = &live->plane->verdicts;
	const struct told *best = longest(told, address);
	const uint32_t number = (uint32_t)verdict - verdicts->first_hop;
	unsigned usable = 0;

	if (best == NULL) {
		assert_int_equal(verdict, verdicts->punt[PUNT_NO_ROUTE]);
		return;
	}
	if (best->kind == KERNEL_BLACKHOLE) {
		assert_int_equal(verdict, verdicts->discard[ACTION_DISCARD_BLACKHOLE]);
		return;
	}
	assert_true(number < verdicts->n_hops);
	const struct next_hop *hop = next_hops_get(live->plane->next_hops, number);

	for (unsigned i = 0; i < N_GATEWAYS; i++)
		usable |= (unsigned)known[i] << i & best->gateways;
	if (!hop->valid)
		/* nobody of them is known, or this one never was since it is in the group */
		assert_int_not_equal(usable, best->gateways);
	else {
		assert_true(usable >> hop->mac_dst[5] & 1);
		assert_int_equal(hop->port, hop->mac_dst[5] % 2);
	}
}

static unsigned check_all(struct live *live, const struct told *told, const bool *known)
{
	unsigned n = 0;

	for (unsigned i = 0; i < live->plane->n_lcores; i++) {
		const struct flow_shard *shard = live->plane->lcores[i].worker.shard;

		if (shard == NULL)
			continue;
		for (uint32_t at = flow_table_touched(&shard->table, 0); at != FLOW_NONE;
			at = flow_table_touched(&shard->table, at + 1)) {
			const struct flow_record *record = flow_table_record(&shard->table, at);

			if (record->state == FLOW_FREE)
				continue;
			for (unsigned from = 0; from < 2; from++)
				if (record->key.addr[!from][1] != 255)
					check_verdict(live, told, known, record->key.addr[!from],
						flow_verdict(record, from));
			n++;
		}
	}
	return n;
}

/*
 * Routes, groups and neighbours change thousands of times while flows live. In the end the next hop of every flow, not of a
 * sample, is that of the longest route that was told last.
 */
static void test_storm(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(&shapes[shape]);
		struct told told[N_PREFIXES] = {0};
		bool known[N_GATEWAYS];
		unsigned seed = 20 + shape;

		for (unsigned i = 0; i < N_GATEWAYS; i++)
			known[i] = true;
		for (unsigned i = 0; i < N_PREFIXES; i++) {
			const unsigned length = 12 + draw(&seed, 21);
			const uint8_t address[16] = {
				10, 9, (uint8_t)draw(&seed, 3), (uint8_t)draw(&seed, 256)};

			told[i].prefix =
				(struct route_prefix){.version = 4, .length = (uint8_t)length};
			route_bits_to(route_bits_cut(route_bits_of(address, 4), length),
				told[i].prefix.addr);
			/* the same prefix twice would be two words on one thing */
			for (unsigned j = 0; j < i; j++)
				if (memcmp(&told[j].prefix, &told[i].prefix,
					    sizeof(told[i].prefix)) == 0) {
					i--;
					break;
				}
		}
		for (unsigned round = 0; round < 20; round++) {
			unsigned reasons[PUNT_N_REASONS];

			for (unsigned i = 0; i < 200; i++) {
				struct frame frame;
				char text[24];

				change(live, told, &seed, known);
				numbered(text, draw(&seed, N_TALKS));
				udp(&frame, "10.255.0.2", text, 1000 + draw(&seed, 2));
				live_send(live, 0, 0, &frame);
				live_turn(live, draw(&seed, live->plane->n_lcores));
			}
			live_settle(live);
			assert_int_equal(plane_router_settled(live->plane),
				atomic_load(&live->plane->routes_generation));
			assert_true(check_all(live, told, known) > 100 + round);
			live_take(live, 0);
			live_take(live, 1);
			(void)take_punts(live, reasons);
		}
		end(live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forwards),
		cmocka_unit_test(test_changes_what_it_has_to),
		cmocka_unit_test(test_leaves_to_the_kernel),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_source_checks),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_kernel_sends),
		cmocka_unit_test(test_groups_are_resilient),
		cmocka_unit_test(test_next_hops_move_flows),
		cmocka_unit_test(test_storm),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
