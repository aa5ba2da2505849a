/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A packet on its way: what parser found out about it, kept in the private area of its mbuf while it
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
	PACKET_KIND_FRAGMENT, /* for the parser that ties its datagram's fragments */
	PACKET_KIND_SEND,     /* has been through its shard: for whoever has the port's queue */
	/* notes */
	PACKET_KIND_QUOTE, /* `info` is the packet that an ICMP error quotes: see `error` */
	PACKET_KIND_QUOTE_FRAGMENT, /* the same, a later fragment: first to the parser that ties it */
	PACKET_KIND_BEGIN,	    /* a run begins */
	PACKET_KIND_END, /* a run ends: the clock goes to time_us, then every flow ends */
};

/* Where a packet or a burst came in: base/topology.h. */
struct arrival {
	uint8_t port;		     /* its number */
	uint8_t domain, place, peer; /* of the port */
	/* bit by enum rss_kind: packets that RSS brought where they belong, unless proved wrong */
	uint8_t trusted;
	bool router;  /* the domain is one */
	bool stamped; /* the packets have came_us and a stamp already; else they have come now */
};

struct packet_meta {
	struct packet_info info;
	uint64_t time_us;      /* clock of the run; BEGIN: Unix time of its clock 0 */
	uint8_t kind;	       /* enum packet_kind */
	uint8_t wire;	       /* that it came over; of a note too */
	uint8_t port;	       /* that it came in by; of a note too */
	uint8_t unchecked : 1; /* its shard was taken to be where RSS brought it */
	uint8_t waited : 1;    /* it was held back: it came at came_us, not at time_us */
	union {
		uint32_t list; /* while held back: number of its list */
		uint32_t run;  /* BEGIN: number of the run */
		uint32_t out;  /* SEND: the port that it is to leave by */
	};
	uint64_t came_us;
	union {
		struct rte_mbuf *next_held; /* while held back (flow/held.h) */
		/* QUOTE, QUOTE_FRAGMENT: the error, which waits for what the note finds; NULL: it went on */
		struct rte_mbuf *error;
	};
	struct rte_mbuf *older, *newer; /* while held back */
};

/*
 * A packet's own time stamp, Unix time, in replay: there it stands where a packet to be sent has what its NIC is to do
 * with it, as nothing is sent.
 */
static inline void packet_set_stamp_us(struct rte_mbuf *packet, uint64_t stamp_us)
{
	packet->tx_offload = stamp_us;
}

static inline uint64_t packet_stamp_us(const struct rte_mbuf *packet)
{
	return packet->tx_offload;
}

/* In replay: so many bytes at the end of a frame its capture has left out. They stand where a NIC puts its hash. */
static inline void packet_set_missing(struct rte_mbuf *packet, uint32_t missing)
{
	packet->hash.rss = missing;
}

static inline uint32_t packet_missing(const struct rte_mbuf *packet)
{
	return packet->hash.rss;
}

static_assert(sizeof(struct packet_meta) <= 128, "two lines before the headroom");

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

/* The ICMP error that travels with a note, or NULL. */
static inline struct rte_mbuf *packet_error_of(const struct rte_mbuf *packet)
{
	const struct packet_meta *meta = packet_meta(packet);

	return meta->kind == PACKET_KIND_QUOTE || meta->kind == PACKET_KIND_QUOTE_FRAGMENT
		       ? meta->error
		       : NULL;
}

/* Is it a packet that was received, or does one travel with it? */
static inline bool packet_is_counted(const struct rte_mbuf *packet)
{
	return !packet_is_note(packet) || packet_error_of(packet) != NULL;
}
