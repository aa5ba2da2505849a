/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows that the NIC sends on alone: streams of which it is known how many packets they have, so that records can be
 * held against them to the packet, wherever these went.
 */
#include "offload_full.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const struct shape {
	const char *name, *words;
	struct offload_live_options options;
	uint32_t size; /* of each packet; 0: they differ */
} shapes[] = {
	{"UDP", "profile=cx5", {.n_flows = 16}, 64},
	{"TCP", "profile=cx5,proto=tcp", {.n_flows = 16}, 64},
	{"IPv6, sizes", "profile=cx5,ipv6=50,size=64-1500", {.n_flows = 16}, 0},
	{"every flow at once", "profile=tiny,async=0,proto=mix", {.n_flows = 16, .threshold = 0},
		64},
	{"by PORT_ID", "profile=cx5,actions=-represented_port", {.n_flows = 8}, 64},
	{"tags are zones", "profile=cx5,vlan=50", {.n_flows = 16, .zone_vlan = true}, 0},
	{"two workers", "profile=cx5", {.n_flows = 32, .n_workers = 2, .n_queues = 2}, 64},
	{"split threads", "profile=cx5", {.n_flows = 16, .n_workers = 2, .threads = PLANE_SPLIT},
		64},
	{"a large table", "profile=cx5", {.n_flows = 16, .large = true}, 64},
};

static void streams_are_sent_on(void **state)
{
	enum { PASSES = 200000 };
	const struct shape *shape = *state;
	struct offload_live *live = full_begin(&shape->options, shape->words, PASSES);

	full_run_to_the_end(live, PASSES, 120000);
	full_end_all(live);
	full_check_reports(live, PASSES, shape->size);
	full_check_snapshot(live, 0);
	/* the worker saw what came before the rules did; but ICMP always */
	if (strstr(shape->words, "mix") == NULL)
		assert_true(offload_live_received(live, 0) + offload_live_received(live, 1) <
			    2 * PASSES * live->options.n_flows / 20);
	offload_live_leave(live);
}

/* One flow whose packets and bytes come round many times. */
struct wrapping {
	const char *words;
	uint64_t passes;
	unsigned bits;
	/* after so long without a reading nobody can know how often bytes came round, and reports say so */
	uint64_t late_us;
	uint64_t longest_us; /* there was none for so long */
	uint64_t forwarded[2], read_us[2];
};

static bool is_silent_watched(struct offload_live *live, void *context)
{
	const struct agent *agent = plane_shard_lcore(live->plane, 0)->worker.agent;
	struct wrapping *wrapping = context;

	for (unsigned port = 0; port < 2; port++) {
		const uint64_t forwarded = agent->port[port].counters.forwarded;

		if (forwarded == wrapping->forwarded[port])
			continue;
		if (wrapping->forwarded[port] != 0)
			wrapping->longest_us = RTE_MAX(
				wrapping->longest_us, agent->now_us - wrapping->read_us[port]);
		wrapping->forwarded[port] = forwarded;
		wrapping->read_us[port] = agent->now_us;
	}
	return full_is_silent(live, &wrapping->passes);
}

/* False: the machine had no time for it. */
static bool all_came_round(struct wrapping *wrapping)
{
	const struct offload_live_options options = {.n_flows = 1};
	struct offload_live *live = full_begin(&options, wrapping->words, wrapping->passes);

	wrapping->longest_us = wrapping->forwarded[0] = wrapping->forwarded[1] = 0;
	assert_true(offload_live_until(live, is_silent_watched, wrapping, 60000));
	full_end_all(live);
	const bool too_late =
		live->flows[0].estimated > 0 && wrapping->longest_us >= wrapping->late_us;

	if (!too_late) {
		full_check_reports(live, wrapping->passes, 64);
		full_check_snapshot(live, 0);
	}
	for (unsigned port = 0; !too_late && port < 2; port++) {
		const struct tally_port *tally =
			&plane_shard_lcore(live->plane, 0)->worker.agent->port[port].tally;

		assert_int_equal(tally->packets.bits, wrapping->bits);
		assert_int_equal(tally->bytes.bits, wrapping->bits);
	}
	offload_live_leave(live);
	return !too_late;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRIES 12
#define SLOW true
#else
#define TRIES 5
#define SLOW false
#endif

static void counters_wrap(struct wrapping wrapping)
{
	for (unsigned i = 0; i < TRIES; i++) {
		if (all_came_round(&wrapping))
			return;
		print_message("no reading for %" PRIu64 " us: once more\n", wrapping.longest_us);
	}
	/* a sanitizer's threads, with other tests beside them, may never be in time */
	if (SLOW)
		skip();
	fail_msg("counters are read too late again and again");
}

static void counters_of_24_bits(void **state)
{
	(void)state;
	counters_wrap((struct wrapping){.words = "profile=cx5,counter_bits=24",
		.passes = 40000000,
		.bits = 24,
		.late_us = 50000});
}

/* 5.3 billion packets of 64 bytes: once, and 78 times. */
static void counters_of_32_bits(void **state)
{
	(void)state;
	counters_wrap((struct wrapping){
		.words = "profile=cx5,counter_bits=32,rate=1000000000,link_mbps=1000000",
		.passes = UINT64_C(5300000000),
		.bits = 32,
		.late_us = 130000});
}

int main(void)
{
	struct CMUnitTest tests[32] = {
		cmocka_unit_test_teardown(counters_of_24_bits, offload_live_tidy),
		cmocka_unit_test_teardown(counters_of_32_bits, offload_live_tidy),
	};
	unsigned n = 2;

	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		tests[n++] = (struct CMUnitTest){.name = shapes[i].name,
			.test_func = streams_are_sent_on,
			.teardown_func = offload_live_tidy,
			.initial_state = (void *)(uintptr_t)&shapes[i]};
	return _cmocka_run_group_tests("offload_full", tests, n, offload_live_environment, NULL);
}
