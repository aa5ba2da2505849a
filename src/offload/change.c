/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/change.h"

static const char *const names[CHANGE_N_KINDS] = {
	[CHANGE_FLOW] = "flow",
	[CHANGE_BREAKER_OPEN] = "breaker_open",
	[CHANGE_BREAKER_TRIES] = "breaker_tries",
	[CHANGE_BREAKER_CLOSED] = "breaker_closed",
	[CHANGE_GHOST] = "ghost",
	[CHANGE_STALLED] = "stalled",
	[CHANGE_DELETE_REFUSED] = "delete_refused",
	[CHANGE_COUNTER_REFUSED] = "counter_refused",
	[CHANGE_RESET] = "reset",
	[CHANGE_FLUSHED] = "flushed",
	[CHANGE_SHAPE] = "shape",
	[CHANGE_KIND_OUT] = "kind_out",
	[CHANGE_KIND_IN] = "kind_in",
	[CHANGE_UNTRIED] = "untried",
	[CHANGE_TRIED] = "tried",
};

const char *change_kind_name(enum change_kind kind)
{
	return names[kind];
}

/* Number of the oldest one that is still there. */
static uint64_t oldest(const struct change_ring *ring)
{
	return ring->n > CHANGE_RING ? ring->n - CHANGE_RING : 0;
}

void change_note(struct change_ring *ring, const struct offload_change *change)
{
	ring->change[ring->n++ % CHANGE_RING] = *change;
}

unsigned change_of_flow(const struct change_ring *ring, const struct flow_key *key,
	struct offload_change *changes, unsigned max, bool *lost)
{
	unsigned n = 0;

	*lost = ring->n > CHANGE_RING;
	for (uint64_t i = ring->n; i-- > oldest(ring);) {
		const struct offload_change *change = &ring->change[i % CHANGE_RING];

		if (change->kind != CHANGE_FLOW || !flow_key_equal(&change->key, key))
			continue;
		if (n == max) {
			*lost = true;
			break;
		}
		changes[n++] = *change;
	}
	return n;
}

unsigned change_read(const struct change_ring *ring, uint64_t *from, struct offload_change *changes,
	unsigned max)
{
	unsigned n = 0;

	if (*from < oldest(ring))
		*from = oldest(ring);
	while (n < max && *from < ring->n)
		changes[n++] = ring->change[(*from)++ % CHANGE_RING];
	return n;
}
