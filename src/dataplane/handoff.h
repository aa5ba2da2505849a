/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Hands packets and notes from one lcore to another through the rings between them (dataplane/ring.h). What a
 * ring has no room for is dropped, and counted. The other end is dataplane/handoff_take.h.
 */

#include "dataplane/lcore.h"

/* Hands packets and notes to another lcore, and counts them. */
void handoff_to_lcore(struct lcore *lcore, unsigned to, struct rte_mbuf **packets, unsigned n);
