/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Planes whose NICs forward flows alone, and streams of which it is known how many packets they have: so that records
 * can be held against them to the packet, wherever these went.
 */

#include "offload_live.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FULL_PROVEN_MS 20000
#define FULL_RATE 20000

static inline struct offload_live *full_begin(
	const struct offload_live_options *more, const char *words, uint64_t passes)
{
	struct offload_live_options options = *more;
	static char text[400];

	snprintf(text, sizeof(text), "nic=n,%s,passes=%" PRIu64, words, passes);
	options.words = text;
	options.full = true;
	options.rate = FULL_RATE;
	return offload_live_begin(&options);
}

static inline uint64_t full_xstat(const struct offload_live *live, unsigned side, const char *name)
{
	uint64_t id, value;
	uint16_t port = live->side[side].port->id;

	assert_int_equal(rte_eth_xstats_get_id_by_name(port, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	return value;
}

/* Packets that the NICs sent on alone, by their own book. */
static inline uint64_t full_forwarded(const struct offload_live *live)
{
	return full_xstat(live, 0, "tx_nic_packets") + full_xstat(live, 1, "tx_nic_packets");
}

/* Packets that rules of the NICs dropped, by their own book. */
static inline uint64_t full_nic_dropped(const struct offload_live *live)
{
	return full_xstat(live, 0, "rx_rule_dropped_packets") +
	       full_xstat(live, 1, "rx_rule_dropped_packets");
}

/* For offload_live_until(): the NICs sent on at least *`context` packets. */
static inline bool full_is_sent_on(struct offload_live *live, void *context)
{
	return full_forwarded(live) >= *(uint64_t *)context;
}

/* A turn; *longest_us becomes the longest time without one, so far. */
static inline void full_turn(struct offload_live *live, uint64_t *longest_us)
{
	const uint64_t before_us = live->now_us;

	offload_live_turn(live);
	*longest_us = RTE_MAX(*longest_us, live->now_us - before_us);
}

/* The last round is over: what came, and what the NICs sent on or dropped, is all that there is. */
static inline bool full_is_silent(struct offload_live *live, void *context)
{
	const uint64_t *passes = context;
	uint64_t sum = full_forwarded(live) + full_nic_dropped(live);

	for (uint32_t i = 0; i < live->options.n_flows; i++)
		sum += live->flows[i].sent[0] + live->flows[i].sent[1];
	return sum == 2 * *passes * live->options.n_flows;
}

static inline void full_run_to_the_end(struct offload_live *live, uint64_t passes, unsigned ms)
{
	if (offload_live_until(live, full_is_silent, &passes, ms))
		return;
	offload_live_print(live);
	fail_msg("%" PRIu64 " packets were sent on, %" PRIu64 " and %" PRIu64 " came",
		full_forwarded(live), offload_live_received(live, 0),
		offload_live_received(live, 1));
}

static inline bool full_none_is_held(struct offload_live *live, void *unused)
{
	uint32_t held = 0;

	(void)unused;
	for (unsigned i = 0; i < live->plane->n_lcores; i++)
		if (live->plane->lcores[i].worker.agent != NULL)
			held += live->plane->lcores[i].worker.agent->n_held;
	return held == 0;
}

/* Every flow ends, and is reported when the NIC has told what it sent on last. */
static inline void full_end_all(struct offload_live *live)
{
	for (unsigned i = 0; i < live->plane->n_lcores; i++)
		if (live->plane->lcores[i].worker.shard != NULL)
			flow_shard_end_all(live->plane->lcores[i].worker.shard);
	assert_true(offload_live_until(live, full_none_is_held, NULL, 8000));
	offload_live_check(live);
}

/* Each flow's reports have so many packets each way, and none is a guess. */
static inline void full_check_reports(
	const struct offload_live *live, uint64_t passes, uint32_t size)
{
	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		const struct live_flow *flow = &live->flows[i];

		for (unsigned side = 0; side < 2; side++) {
			assert_int_equal(flow->reported[side], passes);
			if (size != 0)
				assert_int_equal(flow->reported_bytes[side], passes * size);
		}
		assert_int_equal(flow->estimated, 0);
	}
}

static inline void full_check_snapshot(struct offload_live *live, uint64_t unaccounted)
{
	static struct plane_snapshot snapshot;

	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	assert_int_equal(snapshot.wires[0].nic_forwarded, full_forwarded(live));
	assert_int_equal(snapshot.wires[0].nic_unaccounted, unaccounted);
}
