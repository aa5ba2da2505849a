/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Learns the flows of a burst's unknown packets, which is where their verdicts are decided. A packet that RSS brought
 * here, and that would begin a flow, is checked first: one that belongs to another worker is handed off to it, and
 * that kind of packet is not left to RSS for a while.
 */

#include "dataplane/burst.h"
#include "dataplane/lcore.h"

void learn_burst(struct lcore *lcore, struct burst *burst, struct outcome *outcome);
