/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Frames of every kind that extraction tells apart, and what it makes of them, one row each. */

#include "frames.h"
#include "packet/extract.h"

#define V4A "10.0.0.9"
#define V4B "10.0.0.10"
#define V6A "2001:db8::9"
#define V6B "2001:db8::10"

struct packet_row {
	const char *name;
	void (*build)(struct frame *frame);
	enum extract_result result;
	unsigned version;
	unsigned proto;
	unsigned sport;
	unsigned dport;
	unsigned flags;
	unsigned zone;
	uint32_t fragment_id;
	unsigned l4_offset;
};

static void udp_ports(struct frame *f)
{
	frame_udp(f, 1000, 53);
	frame_fill(f, 18);
	frame_finish(f);
}

static void udp4(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 17);
	udp_ports(f);
}

static void udp6(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 17);
	udp_ports(f);
}

static void tcp4(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 6);
	frame_tcp(f, &(struct frame_tcp){.src_port = 1000, .dst_port = 53, .flags = TCP_ACK});
	frame_finish(f);
}

static void tcp6(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 6);
	frame_tcp(f, &(struct frame_tcp){.src_port = 1000, .dst_port = 53, .flags = TCP_ACK});
	frame_finish(f);
}

static void proto4(struct frame *f, unsigned proto)
{
	frame_ipv4(f, V4A, V4B, proto);
	udp_ports(f);
}

static void udp_lite(struct frame *f)
{
	proto4(f, 136);
}

static void sctp(struct frame *f)
{
	proto4(f, 132);
}

static void dccp(struct frame *f)
{
	proto4(f, 33);
}

static void gre(struct frame *f)
{
	proto4(f, 47);
}

static void esp(struct frame *f)
{
	proto4(f, 50);
}

/* RFC 4302 section 2.2: its length counts units of 4 bytes beyond the first two. */
static void ipv4_authentication(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 51);
	frame_extension(f, 6, 4, 24);
	frame_tcp(f, &(struct frame_tcp){.src_port = 1000, .dst_port = 53, .flags = TCP_ACK});
	frame_finish(f);
}

static void ipv6_authentication(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 51);
	frame_extension(f, 6, 4, 24);
	frame_tcp(f, &(struct frame_tcp){.src_port = 1000, .dst_port = 53, .flags = TCP_ACK});
	frame_finish(f);
}

/* Behind options, and one header after the other; what it protects in tunnel mode is not opened. */
static void ipv4_authentication_twice(struct frame *f)
{
	frame_ipv4_options(f, V4A, V4B, 51, 8);
	frame_extension(f, 51, 4, 24);
	frame_extension(f, 4, 1, 12);
	frame_fill(f, 40);
	frame_finish(f);
}

static void ipv4_authentication_cut(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 51);
	frame_extension(f, 17, 4, 7);
	frame_finish(f);
}

static void ipv4_authentication_body_cut(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 51);
	frame_extension(f, 17, 4, 12);
	frame_finish(f);
}

/* The other extension headers are IPv6's. */
static void ipv4_hop_by_hop(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 0);
	frame_extension(f, 17, 0, 8);
	udp_ports(f);
}

static void first_fragment_authentication(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 51);
	frame_ipv4_fragment(f, 7, 0, true);
	frame_extension(f, 17, 4, 24);
	udp_ports(f);
}

/* What looks like an authentication header here is data. */
static void later_fragment_authentication(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 51);
	frame_ipv4_fragment(f, 7, 800, false);
	frame_extension(f, 17, 4, 24);
	udp_ports(f);
}

static void ipv4_icmpv6(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 58);
	frame_icmp(f, 1, 0);
	frame_finish(f);
}

static void ipv4_options(struct frame *f)
{
	frame_ipv4_options(f, V4A, V4B, 17, 40);
	udp_ports(f);
}

static void one_tag(struct frame *f)
{
	frame_tag(f, 0x8100, 0xe064);
	udp4(f);
}

static void two_tags(struct frame *f)
{
	frame_tag(f, 0x88a8, 7);
	frame_tag(f, 0x8100, 8);
	udp6(f);
}

static void four_tags(struct frame *f)
{
	frame_tag(f, 0x9100, 0x0fff);
	frame_tag(f, 0x9200, 2);
	frame_tag(f, 0x88a8, 3);
	frame_tag(f, 0x8100, 4);
	tcp4(f);
}

static void arp(struct frame *f)
{
	frame_type(f, 0x0806);
	frame_fill(f, 46);
}

static void tagged_mpls(struct frame *f)
{
	frame_tag(f, 0x8100, 7);
	frame_type(f, 0x8847);
	frame_fill(f, 46);
}

static void llc(struct frame *f)
{
	frame_type(f, 46);
	frame_fill(f, 46);
}

static void wrong_version4(struct frame *f)
{
	udp4(f);
	f->bytes[f->ip[0]] = 0x65;
}

static void wrong_version6(struct frame *f)
{
	udp6(f);
	f->bytes[f->ip[0]] = 0x45;
}

static void header_length_4(struct frame *f)
{
	udp4(f);
	f->bytes[f->ip[0]] = 0x44;
}

static void header_length_above_frame(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 17);
	frame_fill(f, 39);
	frame_finish(f);
	f->bytes[f->ip[0]] = 0x4f;
}

static void total_length(struct frame *f, unsigned length)
{
	udp4(f);
	put_be16(f->bytes + f->ip[0] + 2, length);
}

static void total_length_0(struct frame *f)
{
	total_length(f, 0);
}

static void total_length_19(struct frame *f)
{
	total_length(f, 19);
}

static void total_length_20(struct frame *f)
{
	total_length(f, 20);
}

static void total_length_23(struct frame *f)
{
	total_length(f, 23);
}

static void total_length_24(struct frame *f)
{
	total_length(f, 24);
}

static void total_length_65535(struct frame *f)
{
	total_length(f, 65535);
}

static void payload_length(struct frame *f, unsigned length)
{
	udp6(f);
	put_be16(f->bytes + f->ip[0] + 4, length);
}

static void payload_length_0(struct frame *f)
{
	payload_length(f, 0);
}

static void payload_length_3(struct frame *f)
{
	payload_length(f, 3);
}

static void payload_length_4(struct frame *f)
{
	payload_length(f, 4);
}

static void no_next_header(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 59);
	frame_fill(f, 8);
	frame_finish(f);
	put_be16(f->bytes + f->ip[0] + 4, 0);
}

/* RFC 8200 section 4.1, in its order, and the three that came later. */
static void extensions(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 0);
	frame_extension(f, 60, 0, 8);
	frame_extension(f, 43, 0, 8);
	frame_extension(f, 51, 1, 16);
	frame_extension(f, 135, 4, 24); /* RFC 4302 section 2.2: (4 + 2) * 4 */
	frame_extension(f, 139, 0, 8);
	frame_extension(f, 140, 0, 8);
	frame_extension(f, 17, 0, 8);
	udp_ports(f);
}

static void extension_cut(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 0);
	frame_extension(f, 43, 0, 8);
	frame_extension(f, 17, 0, 7);
	frame_finish(f);
}

static void extension_beyond_datagram(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 0);
	frame_extension(f, 60, 0, 8);
	frame_extension(f, 17, 0, 8);
	udp_ports(f);
	put_be16(f->bytes + f->ip[0] + 4, 15);
}

static void extension_body_cut(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 60);
	frame_extension(f, 17, 255, 64);
	frame_finish(f);
}

static void first_fragment4(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 17);
	frame_ipv4_fragment(f, 0xabcd, 0, true);
	udp_ports(f);
}

static void later_fragment4(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 6);
	frame_ipv4_fragment(f, 0xabcd, 8, true);
	frame_fill(f, 32);
	frame_finish(f);
}

static void last_fragment4(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 1);
	frame_ipv4_fragment(f, 0xabcd, 8 * 0x1000, false);
	frame_fill(f, 32);
	frame_finish(f);
}

/* Do-not-fragment and the evil bit make no fragment. */
static void dont_fragment(struct frame *f)
{
	udp4(f);
	put_be16(f->bytes + f->ip[0] + 6, 0xc000);
}

static void first_fragment_cut(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 17);
	frame_ipv4_fragment(f, 1, 0, true);
	frame_fill(f, 3);
	frame_finish(f);
}

static void fragment6(struct frame *f, unsigned offset, bool more)
{
	frame_ipv6(f, V6A, V6B, 44);
	frame_ipv6_fragment(f, 17, 0x89abcdef, offset, more);
	udp_ports(f);
}

static void first_fragment6(struct frame *f)
{
	fragment6(f, 0, true);
}

static void later_fragment6(struct frame *f)
{
	fragment6(f, 1448, true);
}

static void atomic_fragment(struct frame *f)
{
	fragment6(f, 0, false);
}

/* In a later fragment a next header says what the first one began with: it is not walked. */
static void later_fragment_of_options(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 44);
	frame_ipv6_fragment(f, 60, 77, 8, false);
	udp_ports(f);
}

static void first_fragment_options_cut(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 44);
	frame_ipv6_fragment(f, 60, 77, 0, true);
	frame_fill(f, 7);
	frame_finish(f);
}

static void data_offset_4(struct frame *f)
{
	tcp4(f);
	f->bytes[f->upper + 12] = 0x40;
}

static void tcp_header_cut(struct frame *f)
{
	tcp4(f);
	f->length--;
}

static void tcp_header_beyond_datagram(struct frame *f)
{
	tcp4(f);
	put_be16(f->bytes + f->ip[0] + 2, 39);
}

static void echo4(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 1);
	frame_icmp(f, 8, 0);
	frame_finish(f);
}

static void redirect(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 1);
	frame_icmp(f, 5, 0);
	frame_finish(f);
}

static void packet_too_big(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 0);
	frame_extension(f, 58, 0, 8);
	frame_icmp(f, 2, 0);
	frame_finish(f);
}

static void neighbour6(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 58);
	frame_icmp(f, 135, 0);
	frame_finish(f);
}

static void icmp_error_fragment(struct frame *f)
{
	frame_ipv4(f, V4A, V4B, 1);
	frame_ipv4_fragment(f, 9, 8, false);
	frame_icmp(f, 3, 0);
	frame_finish(f);
}

/* The headers may be anywhere, but 16 bits do not say where. */
static void far_upper_layer(struct frame *f)
{
	frame_ipv6(f, V6A, V6B, 60);
	frame_extension(f, 60, 255, 2048);
	frame_extension(f, 47, 0, 8);
	frame_finish(f);
}

#define IP EXTRACT_IP
#define PORTS PACKET_HAS_PORTS
#define FIRST PACKET_FIRST_FRAGMENT
#define LATER PACKET_LATER_FRAGMENT
#define CUT PACKET_CUT
#define UNPLAIN PACKET_UNPLAIN

static const struct packet_row packet_rows[] = {
	{"udp over ipv4", udp4, IP, 4, 17, 1000, 53, PORTS, 0, 0, 34},
	{"udp over ipv6", udp6, IP, 6, 17, 1000, 53, PORTS, 0, 0, 54},
	{"tcp over ipv4", tcp4, IP, 4, 6, 1000, 53, PORTS | PACKET_TCP, 0, 0, 34},
	{"tcp over ipv6", tcp6, IP, 6, 6, 1000, 53, PORTS | PACKET_TCP, 0, 0, 54},
	{"udp-lite", udp_lite, IP, 4, 136, 1000, 53, PORTS, 0, 0, 34},
	{"sctp", sctp, IP, 4, 132, 1000, 53, PORTS, 0, 0, 34},
	{"dccp", dccp, IP, 4, 33, 1000, 53, PORTS, 0, 0, 34},
	{"gre", gre, IP, 4, 47, 0, 0, 0, 0, 0, 34},
	{"esp", esp, IP, 4, 50, 0, 0, 0, 0, 0, 34},
	{"authentication over ipv4", ipv4_authentication, IP, 4, 6, 1000, 53,
		PORTS | PACKET_TCP | UNPLAIN, 0, 0, 58},
	{"authentication over ipv6", ipv6_authentication, IP, 6, 6, 1000, 53,
		PORTS | PACKET_TCP | UNPLAIN, 0, 0, 78},
	{"authentication twice", ipv4_authentication_twice, IP, 4, 4, 0, 0, UNPLAIN, 0, 0, 78},
	{"authentication cut", ipv4_authentication_cut, IP, 4, 51, 0, 0, CUT, 0, 0, 34},
	{"authentication body cut", ipv4_authentication_body_cut, IP, 4, 17, 0, 0, CUT | UNPLAIN, 0,
		0, 58},
	{"hop-by-hop over ipv4", ipv4_hop_by_hop, IP, 4, 0, 0, 0, 0, 0, 0, 34},
	{"first fragment, authentication", first_fragment_authentication, IP, 4, 17, 1000, 53,
		PORTS | FIRST | UNPLAIN, 0, 51 << 16 | 7, 58},
	{"later fragment, authentication", later_fragment_authentication, IP, 4, 51, 0, 0, LATER, 0,
		51 << 16 | 7, 34},
	{"icmpv6 over ipv4", ipv4_icmpv6, IP, 4, 58, 0, 0, 0, 0, 0, 34},
	{"ipv4 options", ipv4_options, IP, 4, 17, 1000, 53, PORTS | UNPLAIN, 0, 0, 74},
	{"one tag", one_tag, IP, 4, 17, 1000, 53, PORTS, 0x064, 0, 38},
	{"two tags", two_tags, IP, 6, 17, 1000, 53, PORTS, 7, 0, 62},
	{"four tags", four_tags, IP, 4, 6, 1000, 53, PORTS | PACKET_TCP | UNPLAIN, 0xfff, 0, 50},
	{"arp", arp, EXTRACT_NON_IP, 0, 0, 0, 0, 0, 0, 0, 0},
	{"tagged mpls", tagged_mpls, EXTRACT_NON_IP, 0, 0, 0, 0, 0, 0, 0, 0},
	{"llc", llc, EXTRACT_NON_IP, 0, 0, 0, 0, 0, 0, 0, 0},
	{"ipv6 as ipv4", wrong_version4, EXTRACT_MALFORMED, 0, 0, 0, 0, 0, 0, 0, 0},
	{"ipv4 as ipv6", wrong_version6, EXTRACT_MALFORMED, 0, 0, 0, 0, 0, 0, 0, 0},
	{"header of 16", header_length_4, EXTRACT_MALFORMED, 0, 0, 0, 0, 0, 0, 0, 0},
	{"header cut", header_length_above_frame, EXTRACT_MALFORMED, 0, 0, 0, 0, 0, 0, 0, 0},
	{"total length 0", total_length_0, IP, 4, 17, 1000, 53, PORTS | UNPLAIN, 0, 0, 34},
	{"total length 19", total_length_19, IP, 4, 17, 1000, 53, PORTS | UNPLAIN, 0, 0, 34},
	{"total length 20", total_length_20, IP, 4, 17, 0, 0, CUT, 0, 0, 34},
	{"total length 23", total_length_23, IP, 4, 17, 0, 0, CUT, 0, 0, 34},
	{"total length 24", total_length_24, IP, 4, 17, 1000, 53, PORTS, 0, 0, 34},
	{"total length 65535", total_length_65535, IP, 4, 17, 1000, 53, PORTS, 0, 0, 34},
	{"payload length 0", payload_length_0, IP, 6, 17, 1000, 53, PORTS | UNPLAIN, 0, 0, 54},
	{"payload length 3", payload_length_3, IP, 6, 17, 0, 0, CUT, 0, 0, 54},
	{"payload length 4", payload_length_4, IP, 6, 17, 1000, 53, PORTS, 0, 0, 54},
	{"no next header", no_next_header, IP, 6, 59, 0, 0, UNPLAIN, 0, 0, 54},
	{"extension headers", extensions, IP, 6, 17, 1000, 53, PORTS | UNPLAIN, 0, 0, 134},
	{"extension cut", extension_cut, IP, 6, 43, 0, 0, CUT | UNPLAIN, 0, 0, 62},
	{"extension beyond", extension_beyond_datagram, IP, 6, 60, 0, 0, CUT | UNPLAIN, 0, 0, 62},
	{"extension body cut", extension_body_cut, IP, 6, 17, 0, 0, CUT | UNPLAIN, 0, 0, 54 + 2048},
	{"first fragment", first_fragment4, IP, 4, 17, 1000, 53, PORTS | FIRST, 0,
		17 << 16 | 0xabcd, 34},
	{"later fragment", later_fragment4, IP, 4, 6, 0, 0, LATER, 0, 6 << 16 | 0xabcd, 34},
	{"last fragment", last_fragment4, IP, 4, 1, 0, 0, LATER, 0, 1 << 16 | 0xabcd, 34},
	{"do not fragment", dont_fragment, IP, 4, 17, 1000, 53, PORTS, 0, 0, 34},
	{"first fragment cut", first_fragment_cut, IP, 4, 17, 0, 0, FIRST | CUT, 0, 17 << 16 | 1,
		34},
	{"first fragment, ipv6", first_fragment6, IP, 6, 17, 1000, 53, PORTS | FIRST | UNPLAIN, 0,
		0x89abcdef, 62},
	{"later fragment, ipv6", later_fragment6, IP, 6, 17, 0, 0, LATER | UNPLAIN, 0, 0x89abcdef,
		62},
	{"atomic fragment", atomic_fragment, IP, 6, 17, 1000, 53, PORTS | UNPLAIN, 0, 0, 62},
	{"later fragment of options", later_fragment_of_options, IP, 6, 60, 0, 0, LATER | UNPLAIN,
		0, 77, 62},
	{"first fragment, options cut", first_fragment_options_cut, IP, 6, 60, 0, 0,
		FIRST | CUT | UNPLAIN, 0, 77, 62},
	{"data offset 4", data_offset_4, IP, 4, 6, 1000, 53, PORTS, 0, 0, 34},
	{"tcp header cut", tcp_header_cut, IP, 4, 6, 1000, 53, PORTS, 0, 0, 34},
	{"tcp beyond datagram", tcp_header_beyond_datagram, IP, 4, 6, 1000, 53, PORTS, 0, 0, 34},
	{"echo", echo4, IP, 4, 1, 0, 0, 0, 0, 0, 34},
	{"redirect", redirect, IP, 4, 1, 0, 0, PACKET_ICMP_ERROR, 0, 0, 34},
	{"packet too big", packet_too_big, IP, 6, 58, 0, 0, PACKET_ICMP_ERROR | UNPLAIN, 0, 0, 62},
	{"neighbour solicitation", neighbour6, IP, 6, 58, 0, 0, 0, 0, 0, 54},
	{"later fragment of an error", icmp_error_fragment, IP, 4, 1, 0, 0, LATER, 0, 1 << 16 | 9,
		34},
	{"far upper layer", far_upper_layer, IP, 6, 47, 0, 0, UNPLAIN, 0, 0, 54 + 2048 + 8},
};
