/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets held back: those of a datagram are a list, known by a number. A list's number is given out with its first
 * packet and free again when its last is taken. Its packets wait until they are the oldest and taken one by one, or
 * until their fate is known: then the list is ready, and its packets are taken in the order in which lists became so.
 * Packets are chained through their private area.
 *
 * Two things are bounded: the buffers that all of them keep from others, of which a packet of several segments counts as
 * that many, and the packets of a list.
 *
 * Used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "flow/fragments.h"

#define HELD_NONE UINT32_MAX

enum held_fate {
	HELD_WAITS,
	HELD_TIED, /* goes on with the ports of the datagram's first fragment */
	HELD_UNTIED,
	HELD_DROPPED,
};

struct held;

/* Returns 0 or -ENOMEM. The memory is taken here. */
int held_create(struct held **held, uint32_t max_buffers, uint32_t max_in_list);
/* Accepts NULL. Nothing may be held. */
void held_destroy(struct held *held);

/* Is there room for another packet, and could there ever be? */
bool held_has_room(const struct held *held, const struct rte_mbuf *packet);
bool held_could(const struct held *held, const struct rte_mbuf *packet);

/*
 * Appends a packet, for which there is room, to a list that waits, or to a new list for HELD_NONE. Returns the list's
 * number, or HELD_NONE when the list takes no more.
 */
uint32_t held_add(struct held *held, uint32_t list, struct rte_mbuf *packet);

/* The packets of a list that waits are ready. `ports` are those of HELD_TIED. */
void held_settle(
	struct held *held, uint32_t list, enum held_fate fate, struct fragment_ports ports);

/* Takes the next packet that is ready, and says what is to become of it; NULL when there is none. */
struct rte_mbuf *held_take_ready(
	struct held *held, enum held_fate *fate, struct fragment_ports *ports);

/* The packet that has been held for longest; NULL when there is none. */
struct rte_mbuf *held_oldest(const struct held *held);
/* Takes it, when none is ready. `*last` says that no other of its list was left. */
struct rte_mbuf *held_take_oldest(struct held *held, bool *last);

/* Packets held now. */
uint32_t held_count(const struct held *held);
