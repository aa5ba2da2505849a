/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Which ports a later fragment belongs to.
 *
 * One entry per datagram, found by its 64-bit keyed fingerprint (packet/datagram.h), of which 39 bits are
 * stored: the chance that a fragment is tied to a stranger is below 10^-10, and then only to other ports
 * between the same two addresses. An entry is one of
 * - known: the first fragment was seen; holds its protocol and ports,
 * - dropped: the first fragment was seen, and was dropped; so is to be what belongs to it,
 * - waiting: only later fragments so far; holds the number of the caller's list of held packets.
 *
 * What is known or dropped lives 60 seconds from the first fragment seen, of either kind (RFC 8200 section 4.5).
 * A new first fragment of the same datagram takes the place of the old one, and its 60 seconds begin anew; those
 * of a waiting datagram run on when it becomes known. When all pieces of a datagram have been seen it
 * lives FRAGMENTS_LINGER_US more, for what is carried twice: its identification may soon be that of another datagram
 * (RFC 4963). How long a datagram waits is for the caller to say, who forgets it then.
 *
 * Entries lie four to a 64-byte line, in one of the two lines that the fingerprint chooses. Nothing is moved and
 * nothing is swept: an entry whose time is over is as good as none, and where both lines are full of such as live, a new
 * entry takes the place of the one that was seen first. So every call reads two lines at most.
 *
 * Belongs to one thread. Time is the clock of the run (base/clock.h), never backwards.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "base/clock.h"

#define FRAGMENTS_LIFETIME_US (60 * CLOCK_US_PER_S)
#define FRAGMENTS_LINGER_US (2 * CLOCK_US_PER_S)
#define FRAGMENTS_NONE UINT32_MAX

struct fragments;

/*
 * What later fragments have from the first: the protocol of the upper layer (in IPv6 their own next
 * header may differ from it) and its ports, in the packet's own order; 0 for protocols without.
 */
struct fragment_ports {
	rte_be16_t src;
	rte_be16_t dst;
	uint8_t proto;
};

/* Which part of its datagram a fragment is; in units of 8 bytes, the last one rounded up. */
struct fragment_piece {
	uint16_t offset;
	uint16_t length;
	bool more; /* it is not the end */
};

enum fragments_answer {
	FRAGMENTS_KNOWN,   /* ports are filled */
	FRAGMENTS_DROPPED, /* the packet is to be dropped */
	FRAGMENTS_WAITING, /* the packet is to be held */
};

/*
 * A waiting datagram had to make room for another one: its held packets go on. Called before the call that needs the
 * room returns; it must not call back. Not called for a list that is FRAGMENTS_NONE.
 */
typedef void (*fragments_evicted_fn)(void *context, uint32_t waiting);

/*
 * How many datagrams are remembered beside a table of so many flows: one for every eighth flow, between
 * 1,024 and 65,536. And the bytes that a table for so many datagrams takes.
 */
uint32_t fragments_for(uint32_t flows);
size_t fragments_bytes(uint32_t max_datagrams);

/* Returns 0 or -ENOMEM. The memory is taken here, all of it. */
int fragments_create(struct fragments **fragments, uint32_t max_datagrams,
	fragments_evicted_fn evicted, void *context);
/* Accepts NULL. */
void fragments_destroy(struct fragments *fragments);

/* Bytes of memory taken. */
size_t fragments_memory(const struct fragments *fragments);

/*
 * A first fragment seen at `now_us`, with its ports. Returns the list of packets that waited for it, which the caller
 * now lets go, or FRAGMENTS_NONE.
 */
uint32_t fragments_first(struct fragments *fragments, uint64_t fingerprint,
	struct fragment_ports ports, struct fragment_piece piece, uint64_t now_us);

/* The same of a first fragment that is dropped: so is to be the list that is returned. */
uint32_t fragments_drop(struct fragments *fragments, uint64_t fingerprint, uint64_t now_us);

/*
 * A later fragment seen at `now_us`. FRAGMENTS_KNOWN fills `ports`. FRAGMENTS_WAITING fills `waiting` with the
 * datagram's list, FRAGMENTS_NONE when its entry is new; the caller puts the packet on that list and says its new number
 * by fragments_set_waiting(), or, if it cannot hold the packet and the list is FRAGMENTS_NONE, calls
 * fragments_forget().
 */
enum fragments_answer fragments_later(struct fragments *fragments, uint64_t fingerprint,
	struct fragment_piece piece, uint64_t now_us, struct fragment_ports *ports,
	uint32_t *waiting);

/* Looks without making an entry: true and `ports` filled when the first fragment is known. */
bool fragments_find(const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us,
	struct fragment_ports *ports);

/* True when the first fragment was dropped. */
bool fragments_is_dropped(const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us);

/* Sets the list number of the waiting entry of this datagram, if it is there. */
void fragments_set_waiting(struct fragments *fragments, uint64_t fingerprint, uint32_t waiting);

/* Removes the entry of this datagram, if there is one. */
void fragments_forget(struct fragments *fragments, uint64_t fingerprint);

/* Removes every entry; the lists of those that wait are the caller's to let go. Time may start at 0 again. */
void fragments_clear(struct fragments *fragments);
