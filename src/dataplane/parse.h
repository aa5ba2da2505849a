/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Parser: the first stage of a packet's way. It reads the headers, ties later fragments to their
 * first, finds the flow that an ICMP error quotes, and hands every packet to the shard of its key.
 *
 * What cannot be read is dropped here (malformed); what is not IP is carried. A later fragment whose
 * first has not come yet is held back, and follows it. When that does not come for a while, or another fragment
 * needs the room, it goes on as a flow without ports and is counted as untied; either way it keeps the time at which it
 * came. With strict TCP, what has no whole TCP header or would write over one is dropped (tcp_header), and with a
 * first fragment all of its datagram. An ICMP error goes to
 * the shard of its own key, and a note to the shard of the flow it quotes. Where rules may ask whether it is related to that
 * flow (`relates`), it travels with the note, and goes on to the shard of its own key from there.
 *
 * Where several lcores receive, each has a parser of its own, and a datagram's fragments, the first
 * too, are dealt by a hash of addresses and identification: they meet in one parser whatever they
 * arrived by, and keep their order (parser_handed()).
 *
 * Packets of one shard are handed over in the order of their arrival, but for those that were held, with the clock of
 * the run, which never goes back.
 *
 * A paced parser lets go of no more held packets in an iteration than its pace, and one more for each packet that arrives where
 * no more may be held. An iteration ends with a call of parser_advance(): what goes on as packets arrive, and what that call
 * lets go, have one pace together. Nothing that the parser does takes longer the more datagrams it knows.
 *
 * A parser belongs to one thread, the one that receives.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "dataplane/drop_watch.h"
#include "flow/fragments.h"
#include "packet/meta.h"
#include "port/steer.h"

#define PARSER_BURST 64

/*
 * Takes packets and notes for a shard, all of them; from then on they are its. Called from
 * the functions below.
 */
typedef void (*parser_hand_over_fn)(
	void *context, unsigned shard, struct rte_mbuf **packets, unsigned n);

/* Waits until that shard has done all that it was given: what it found out about an ICMP error is known. */
typedef void (*parser_wait_fn)(void *context, unsigned shard);

struct parser_config {
	struct extract_options extract;
	struct steer steer;
	unsigned self;	 /* the shard beside this parser: takes what is not IP */
	bool shared;	 /* every shard has a parser beside it: fragments are dealt among them */
	bool tcp_strict; /* TCP without a whole header is to be dropped */
	bool relates;	 /* an ICMP error is decided by what the flow is that it quotes */
	uint32_t max_datagrams;	    /* fragmented datagrams remembered; 0: fragments are not tied */
	uint32_t max_held;	    /* buffers of packets held back */
	uint32_t max_held_datagram; /* packets of one datagram held back */
	uint64_t max_wait_us;	    /* how long a fragment waits for its first */
	unsigned pace;		    /* held packets let go in an iteration; 0: all that may go */
	struct rte_mempool *pool;   /* for notes; its mbufs have PACKET_META_SIZE private bytes */
	struct drop_watch *drops;   /* those who follow drops; NULL: nobody can */
	parser_hand_over_fn hand_over;
	/* with `relates`, where shards hand on nothing to each other: the error stays here meanwhile. Else NULL */
	parser_wait_fn wait;
	void *context;
};

struct parser;

/* Returns 0 or -ENOMEM. All memory is taken here. */
int parser_create(struct parser **parser, const struct parser_config *config);
/* Accepts NULL. Nothing may be held: end the run first. */
void parser_destroy(struct parser *parser);

/* A run begins with clock 0 at `origin_us` (Unix time): every shard is told. 0, or -ENOMEM. */
int parser_begin(struct parser *parser, uint64_t origin_us, uint32_t run);

/* `n` packets, at most PARSER_BURST, that arrived at `now_us` of the run's clock. */
void parser_burst(struct parser *parser, struct arrival from, uint64_t now_us,
	struct rte_mbuf **packets, unsigned n);

/* A PACKET_KIND_FRAGMENT or _QUOTE_FRAGMENT that another parser handed to this one. */
void parser_handed(struct parser *parser, uint64_t now_us, struct rte_mbuf *packet);

/* An iteration is over: what has waited too long, or was left because of the pace, goes on. */
void parser_advance(struct parser *parser, uint64_t now_us);

/*
 * Hands over what is gathered for each shard; without it, that happens whenever a shard has a full
 * burst. A receiver calls it when it has nothing more to receive.
 */
void parser_flush(struct parser *parser);

/* What is held goes on, untied. */
void parser_release(struct parser *parser);

/* The run ends at `now_us`: what is held goes on untied, and every shard is told. 0, or -ENOMEM. */
int parser_end(struct parser *parser, uint64_t now_us);

/* Packets held back now. */
uint32_t parser_held(const struct parser *parser);
/* By wire: FLOW_MAX_WIRES of them. */
const struct path_counters *parser_counters(const struct parser *parser);
