/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Trust in a port's RSS, as one station has it of one queue: packets of the kinds that it is trusted with are where they
 * belong, and their shard is not computed. It is lost, for one kind, when TRUST_PACKETS plain packets that begin flows
 * came to the wrong worker within TRUST_WINDOW_US: one or two may be a stranger's, made so that the NIC reads them
 * otherwise. It is tried again after a second, doubled each time up to ten minutes; after a second again where it has
 * held for ten times as long as it was lost. Whether it is trusted or not, each packet comes to its own shard.
 *
 * Pure; used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/rss.h"

#define TRUST_PACKETS 16
#define TRUST_WINDOW_US UINT64_C(10000000)
#define TRUST_FIRST_US UINT64_C(1000000)
#define TRUST_MOST_US UINT64_C(600000000)

struct trust_kind {
	uint64_t since_us; /* of the first packet of those that are counted, or when it was lost */
	uint64_t again_us; /* when it is trusted again, or was last */
	uint64_t back_off_us; /* of the last time; 0: there was none */
	uint32_t misplaced;
};

/* Zeroed at the start. */
struct trust {
	uint8_t lost; /* bit by enum rss_kind */
	struct trust_kind kind[RSS_N_KINDS];
};

/* A plain packet of that kind began a flow, and is another worker's. True: with this one trust is lost. */
bool trust_misplaced(struct trust *trust, enum rss_kind kind, uint64_t now_us);

/* The kinds that are trusted again from now on: a bit for each. */
uint8_t trust_again(struct trust *trust, uint64_t now_us);
