/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload_talks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#define TPID 0x8100
#define DATA_BYTES 32
#define DATAGRAM 77

static void add_ip(struct frame *frame, const struct talk *talk, bool back, unsigned next_header)
{
	const char *src = back ? talk->b : talk->a, *dst = back ? talk->a : talk->b;

	frame_start(frame);
	if (talk->vlan != 0)
		frame_tag(frame, TPID, talk->vlan);
	if (strchr(src, ':') != NULL)
		frame_ipv6(frame, src, dst, next_header);
	else
		frame_ipv4(frame, src, dst, next_header);
}

void talk_frame(struct frame *frame, const struct talk *talk, bool back)
{
	unsigned src_port = back ? talk->b_port : talk->a_port;
	unsigned dst_port = back ? talk->a_port : talk->b_port;

	add_ip(frame, talk, back, talk->proto);
	switch (talk->proto) {
	case IPPROTO_TCP:
		frame_tcp(frame, &(struct frame_tcp){.src_port = src_port,
					 .dst_port = dst_port,
					 .seq = back ? 500 : 100,
					 .ack = back ? 100 : 500,
					 .flags = TCP_ACK,
					 .window = 8192});
		break;
	case IPPROTO_ICMP:
		frame_icmp(frame, back ? 0 : 8, 0);
		break;
	case IPPROTO_ICMPV6:
		frame_icmp(frame, back ? 129 : 128, 0);
		break;
	default:
		/* SCTP's ports are where UDP's are */
		frame_udp(frame, src_port, dst_port);
		frame_fill(frame, DATA_BYTES);
	}
	frame_fill(frame, DATA_BYTES);
	frame_finish(frame);
}

void talk_fragment(struct frame *frame, const struct talk *talk, bool later)
{
	enum { HEADER_FRAGMENT = 44 };
	bool ipv6 = strchr(talk->a, ':') != NULL;
	unsigned offset = later ? DATA_BYTES + 8 : 0;

	add_ip(frame, talk, false, ipv6 ? HEADER_FRAGMENT : talk->proto);
	if (ipv6)
		frame_ipv6_fragment(frame, talk->proto, DATAGRAM, offset, !later);
	else
		frame_ipv4_fragment(frame, DATAGRAM, offset, !later);
	if (!later)
		frame_udp(frame, talk->a_port, talk->b_port);
	frame_fill(frame, DATA_BYTES);
	frame_finish(frame);
}

struct offload_live *talks_begin(
	const struct talk *talks, unsigned n, const struct offload_live_options *options)
{
	static struct frame frames[TALKS_MAX][2];
	static struct live_frame list[2 * TALKS_MAX];
	struct offload_live_options with = *options;

	assert_true(n <= TALKS_MAX);
	for (unsigned i = 0; i < n; i++)
		for (unsigned side = 0; side < 2; side++) {
			talk_frame(&frames[i][side], &talks[i], side != 0);
			list[2 * i + side] =
				(struct live_frame){&frames[i][side], i, (uint8_t)side};
		}
	with.n_flows = n;
	with.frames = list;
	with.n_frames = 2 * n;
	return offload_live_begin(&with);
}
