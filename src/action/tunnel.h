/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of action/: the headers of tunnels, which come off the front of a frame or onto it. See ACTION_DECAP and
 * ACTION_ENCAP. Outer headers are read in the frame's first segment alone.
 */

#include <stdbool.h>

#include "action/program.h"

/* Reads the headers that are to come on, into the program. NULL, or why they cannot. */
const char *action_tunnel_compile(struct action_program *program, const struct action_encap *encap);

/* Can the frame be changed so? `strip` becomes the number of bytes that come off. */
bool action_tunnel_possible(
	const struct action_program *program, const struct rte_mbuf *frame, unsigned *strip);

/* Takes `strip` bytes off and puts the program's headers on; both are possible. */
void action_tunnel(const struct action_program *program, struct rte_mbuf *frame, unsigned strip);
