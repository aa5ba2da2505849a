/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Which ports a later fragment belongs to.
 *
 * One entry per datagram, found by its 64-bit keyed fingerprint (packet/datagram.h), of which 37 bits
 * are stored beside those that choose the line: the chance that a fragment is tied to a stranger
 * is below 10^-10, and then only to other ports between the same two addresses. An entry is either
 * - known: the first fragment was seen; holds its protocol and ports, or
 * - waiting: only later fragments so far; holds the number of the caller's list of held packets.
 *
 * An entry lives 60 seconds from the first fragment seen, of either kind (RFC 8200 section 4.5), to
 * the whole second: it ends at the first second of the run that is not before first seen + 60 s. A new first
 * fragment of the same datagram takes the place of the old one, and its 60 seconds begin anew; those
 * of a waiting datagram run on when it becomes known.
 *
 * Entries lie six to a 64-byte line, 10 bytes each, in one of the two lines that the fingerprint
 * chooses; a new entry may move others to their second line. A look-up reads two lines, in a full table
 * too, and removal leaves no tombstones. The table made for N datagrams takes N, whatever their
 * fingerprints.
 *
 * Belongs to one thread. Time is the clock of the run (base/clock.h), never backwards.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#define FRAGMENTS_LIFETIME_S 60
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

enum fragments_answer {
	FRAGMENTS_KNOWN,   /* ports are filled */
	FRAGMENTS_WAITING, /* the packet is to be held */
	FRAGMENTS_FULL,	   /* no room for another datagram: the fragment can't be tied */
};

/*
 * A waiting datagram came to its end without a first fragment: its held packets are released. Called
 * with the table half swept: it must not call back. Not called for a list that is FRAGMENTS_NONE.
 */
typedef void (*fragments_expired_fn)(void *context, uint32_t waiting);

/*
 * How many datagrams are remembered beside a table of so many flows: one for every fourth flow, between
 * 1,024 and 65,536. And the bytes that a table for so many datagrams takes.
 */
uint32_t fragments_for(uint32_t flows);
size_t fragments_bytes(uint32_t max_datagrams);

/* Returns 0 or -ENOMEM. The memory is taken here, all of it. */
int fragments_create(struct fragments **fragments, uint32_t max_datagrams,
	fragments_expired_fn expired, void *context);
/* Accepts NULL. Waiting lists are not released: see fragments_flush(). */
void fragments_destroy(struct fragments *fragments);

/* Bytes of memory taken. */
size_t fragments_memory(const struct fragments *fragments);
/* Datagrams known or waiting. */
uint32_t fragments_count(const struct fragments *fragments);

/*
 * A first fragment seen at `now_us`, with its ports. Returns the list of packets that waited for it,
 * which the caller now releases, or FRAGMENTS_NONE. `*tied` is false when there was no room to
 * remember it (then nothing waited either).
 */
uint32_t fragments_first(struct fragments *fragments, uint64_t fingerprint,
	struct fragment_ports ports, uint64_t now_us, bool *tied);

/*
 * A later fragment seen at `now_us`. FRAGMENTS_KNOWN fills `ports`. FRAGMENTS_WAITING fills `waiting`
 * with the datagram's list, FRAGMENTS_NONE when its entry is new; the caller puts the packet on that
 * list and says its new number by fragments_set_waiting(), or, if it cannot hold the packet and the
 * list is FRAGMENTS_NONE, calls fragments_forget().
 */
enum fragments_answer fragments_later(struct fragments *fragments, uint64_t fingerprint,
	uint64_t now_us, struct fragment_ports *ports, uint32_t *waiting);

/* Looks without making an entry: true and `ports` filled when the first fragment is known. */
bool fragments_find(const struct fragments *fragments, uint64_t fingerprint, uint64_t now_us,
	struct fragment_ports *ports);

/* Sets the list number of the waiting entry of this datagram (which must be there). */
void fragments_set_waiting(struct fragments *fragments, uint64_t fingerprint, uint32_t waiting);

/* Removes the entry of this datagram, if there is one. */
void fragments_forget(struct fragments *fragments, uint64_t fingerprint);

/*
 * Lets time run to `now_us`: entries that end are removed, `expired` is called for the waiting ones.
 * Cheap when nothing can be due.
 */
void fragments_advance(struct fragments *fragments, uint64_t now_us);

/* Removes every entry, calling `expired` for the waiting ones. Time may start at 0 again. */
void fragments_flush(struct fragments *fragments);
