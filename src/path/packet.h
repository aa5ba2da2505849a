/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A packet on its way: what triage found out about it, kept in the private area of its mbuf while it
 * is handed from thread to thread or held back.
 *
 * Besides packets, the same queues carry notes: mbufs without data that tell a worker something at
 * the right place among its packets.
 *
 * Written by the thread that has the mbuf, until it hands it on.
 */

#include <assert.h>

#include <rte_mbuf.h>

#include "packet/extract.h"

enum packet_kind {
	PACKET_KIND_FLOW,     /* a packet with a key, for the shard of its key */
	PACKET_KIND_OTHER,    /* a packet without one: carried, not tracked */
	PACKET_KIND_FRAGMENT, /* for the triage that ties its datagram's fragments */
	PACKET_KIND_SEND,     /* has been through its shard: for whoever has the port's queue */
	/* notes */
	PACKET_KIND_QUOTE,	    /* `info` is the packet that an ICMP error quotes */
	PACKET_KIND_QUOTE_FRAGMENT, /* the same, a later fragment: first to the triage that ties it */
	PACKET_KIND_BEGIN,	    /* a run begins */
	PACKET_KIND_END, /* a run ends: the clock goes to time_us, then every flow ends */
};

struct packet_meta {
	struct packet_info info;
	uint64_t time_us; /* clock of the run; BEGIN: Unix time of its clock 0 */
	union {
		struct rte_mbuf *next_held; /* while held back */
		uint32_t run;		    /* BEGIN: number of the run */
	};
	uint8_t kind;	   /* enum packet_kind */
	uint8_t wire;	   /* that it came over; of a note too */
	uint8_t side;	   /* 0 or 1: which of the wire's ports it came in by */
	uint8_t unchecked; /* its shard was taken to be where RSS brought it */
};

/* The private area that every mbuf of a pool for packets has: whole lines, so that a frame begins at one. */
#define PACKET_META_SIZE RTE_ALIGN(sizeof(struct packet_meta), RTE_CACHE_LINE_SIZE)

static_assert(
	(sizeof(struct rte_mbuf) + PACKET_META_SIZE + RTE_PKTMBUF_HEADROOM) % RTE_CACHE_LINE_SIZE ==
		0,
	"else a header lies in two lines");

static inline struct packet_meta *packet_meta(const struct rte_mbuf *packet)
{
	return RTE_PTR_ADD(packet, sizeof(*packet));
}

static inline bool packet_is_note(const struct rte_mbuf *packet)
{
	return packet_meta(packet)->kind >= PACKET_KIND_QUOTE;
}
