/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a shard remembers of TCP segments that moved nothing: a SYN on ports that are in use, and data
 * that runs ahead of all that was seen. Whoever forges a segment cannot see what it is answered; so a
 * segment is believed when the other end answers it (or, where only one direction is seen, when the
 * next one follows it in order).
 *
 * A table of fixed size that flow_shard_create() takes: sets of TCP_MEMORY_WAYS entries, chosen by the
 * hash of the flow's key. A full set forgets its oldest entry, which is counted. An entry is forgotten
 * TCP_MEMORY_US after its last segment. One flow may have several, so that a forged SYN does not take
 * the place of a genuine one.
 *
 * The common segment of an established connection (flow/tcp_common.h) is never looked for here.
 *
 * Used by the shard's worker alone.
 */

#include <stddef.h>

#include "flow/tcp.h"
#include "packet/hash.h"

#define TCP_MEMORY_WAYS 8
#define TCP_MEMORY_US (UINT64_C(120) * 1000000)

struct tcp_remembered {
	uint64_t hash;	   /* of the flow's key; together with `used` it names the flow */
	uint64_t first_us; /* when the first of these segments came, and the last */
	uint64_t last_us;
	uint64_t before_us; /* when the record had its last packet before */
	struct tcp_segment segment;
	uint32_t end;	  /* sequence number behind it, and behind what followed in order */
	uint32_t packets; /* counted in the record: they may belong to a new one */
	uint32_t bytes;
	int32_t excess;	   /* of these bytes: flow/octets.h */
	uint8_t odd;	   /* so many of them were counted as outside the window */
	uint8_t new_flags; /* the record had not seen before */
	uint8_t from : 1;
	uint8_t side : 1;
	uint8_t used : 1;
} __attribute__((aligned(8)));

struct tcp_memory {
	const struct hash_secret *secret;
	struct tcp_remembered *sets;
	uint32_t n_sets; /* a power of two */
	uint32_t n_used;
	uint64_t forgotten; /* entries that gave way to others */
};

/* How much is taken for a table of so many flows. */
size_t tcp_memory_bytes(uint32_t capacity);
/* Returns 0 or -ENOMEM. The secret outlives the memory. */
int tcp_memory_init(struct tcp_memory *memory, uint32_t capacity, const struct hash_secret *secret);
void tcp_memory_fini(struct tcp_memory *memory);
/* Forgets all. */
void tcp_memory_clear(struct tcp_memory *memory);

/* A segment of a flow, as the shard has it. */
struct tcp_sight {
	uint64_t now_us;
	uint32_t bytes; /* of the frame */
	int32_t excess; /* of these, where octets are counted */
	unsigned from;
	bool side;	/* of the wire: which port it came in by */
	bool two_sided; /* an answer comes by the other one */
	const struct tcp_segment *segment;
};

/*
 * flow_tcp_track() and what is remembered together. The verdict is one of tcp.h's, or TCP_ANEW: then
 * the record is unchanged, and `begin` is what was remembered, the first segment of a new record on the
 * same key, which is forgotten here. The segment seen is the next one of that new record.
 */
enum tcp_verdict tcp_memory_track(struct tcp_memory *memory, struct flow_record *record,
	const struct tcp_sight *sight, bool strict, struct tcp_remembered *begin);
