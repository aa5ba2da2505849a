/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What stands on an interface, and would lose its packets to a wire: an address, a default route, an
 * interface above it (a bridge or bond that it is a member of, a VLAN or macvlan that it is the parent
 * of), and what stands on that in turn. And whether a wire closes a loop that the kernel closes already.
 *
 * All of it is decided from the lists of netlink.h alone.
 */

#include <stdbool.h>
#include <stddef.h>

#include "port/netlink.h"

/*
 * Writes what stands on the interface, as it goes on after the interface's name: "carries 10.0.0.5/24
 * and the default route", "is a member of bridge br0, which carries 10.0.0.5/24". Of several things
 * the nearest that has an address or a default route is named, else the nearest. False, and "", where
 * nothing stands on it. `cut_off`: there is an address or a default route, which this machine needs.
 */
bool standing_on(
	const struct netlink_state *state, unsigned index, bool *cut_off, char *text, size_t size);

/* The command that takes away the nearest thing above it, or "" where that is an address or a route. */
void standing_remedy(const struct netlink_state *state, unsigned index, char *text, size_t size);

/* The two interfaces of a wire; 0: a port that is none of this namespace's. */
struct standing_wire {
	unsigned index[2];
};

/*
 * Are the two ends of the last of `n` wires joined already, by the kernel (the two ends of a veth pair, the
 * members of a bridge) or the wires before it? Then a packet would go round for ever, or arrive twice. Writes
 * the way from one to the other: "va, br0, vb".
 */
bool standing_joined(const struct netlink_state *state, const struct standing_wire *wires,
	unsigned n, char *text, size_t size);
