/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Part of the act stage: the sender of a packet that a rule rejects is told (packet/reject.h), by the port that the packet came
 * in by, and so many times a second at most. The packet itself is dropped by whoever calls.
 *
 * Each rejected packet is counted under one of reject_replies, reject_limited and reject_unanswered.
 */

#include "dataplane/burst.h"

struct lcore;

/* The packet at index `i`, whose verdict rejects it: burst->verdict. */
void reject_packet(struct lcore *lcore, const struct burst *burst, unsigned i);
