/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Conversations by their addresses, for tests of offload: both ends send one frame in each round. */

#include "offload_live.h"

#define TALKS_MAX 32

struct talk {
	const char *a, *b; /* a sends to the wire's first port */
	unsigned proto;
	unsigned a_port, b_port; /* of protocols that have any */
	unsigned vlan;		 /* 0: no tag */
};

/* A packet from a to b, or `back`. Of ICMP, an echo request and its reply. */
void talk_frame(struct frame *frame, const struct talk *talk, bool back);
/* A datagram's first fragment from a to b, or its `later` one. */
void talk_fragment(struct frame *frame, const struct talk *talk, bool later);

/* Talk i is flow i. The frames, flows and their numbers in `options` are set here. */
struct offload_live *talks_begin(
	const struct talk *talks, unsigned n, const struct offload_live_options *options);
