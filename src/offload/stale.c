/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/stale.h"

static void look_from(struct stale *stale, const struct stale_packet *packet)
{
	stale->since_us = packet->now_us;
	stale->packets = packet->packets;
	stale->marked = 1;
}

bool stale_marked(struct stale *stale, const struct stale_packet *packet)
{
	const uint64_t passed_us = packet->now_us - stale->since_us;

	if (stale->since_us == 0)
		return false;
	if (stale->marked == 0) {
		if (passed_us >= STALE_US && (uint32_t)packet->turn - stale->turn >= STALE_TURNS)
			look_from(stale, packet);
		return false;
	}
	/* its counters began anew, or it has paused: what was before says nothing */
	if (packet->packets <= stale->packets || passed_us > STALE_MOST_US) {
		look_from(stale, packet);
		return false;
	}
	if (++stale->marked < STALE_MARKED)
		return false;
	const bool most = (packet->packets + 1 - stale->packets) * 3 <= UINT64_C(4) * stale->marked;

	look_from(stale, packet);
	return most;
}
