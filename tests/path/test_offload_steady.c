/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A steady load, and NICs with room for the busiest flows alone, which they forward: once these have their rules, they
 * keep them. Whoever is without one is measured by packets that come as evenly as those that the NIC counts.
 */
#include "offload_full.h"

/* words of the devices, too */
#define RULES 40
#define PPS 20000 /* of each port */

enum {
	FLOWS = 200,
	SETTLE_MS = 5000,
	SECONDS = 6,
	/* a second, of both: some come and go whose rates differ by little */
	MOST_EXCHANGES = 4,
	/* a worker that was away for so long measures nothing right */
	LATE_US = 20000,
};

static uint64_t rules_made(const struct offload_live *live)
{
	uint64_t sum = 0;

	for (unsigned port = 0; port < 2; port++)
		sum += atomic_load_explicit(&installer_counters(plane_installer(live->plane, port))
						    ->done[INSTALLER_INSERT],
			memory_order_relaxed);
	return sum;
}

static uint64_t received(const struct offload_live *live)
{
	return full_xstat(live, 0, "rx_good_packets") + full_xstat(live, 1, "rx_good_packets");
}

/* Turns for that time; says how often none was begun for LATE_US. */
static unsigned turn_for(struct offload_live *live, unsigned ms)
{
	const uint64_t end_us = live->now_us + UINT64_C(1000) * ms;
	unsigned n_late = 0;

	while (live->now_us < end_us) {
		const uint64_t before_us = live->now_us;

		offload_live_turn(live);
		n_late += live->now_us - before_us >= LATE_US;
	}
	return n_late;
}

/* A flow gives way a moment before the other that takes its place is there. */
static bool is_full(struct offload_live *live)
{
	return offload_live_rules(live, 0) == RULES && offload_live_rules(live, 1) == RULES;
}

/*
 * What a late turn measured wrong costs each rule its place once, at worst: so many exchanges are forgiven, and no more,
 * however slow the machine is.
 */
static void the_busiest_keep_their_rules(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = FLOWS,
		.words = "nic=n,profile=cx5,rules=" RTE_STR(RULES) ",pace=" RTE_STR(PPS),
		.load = "zipf",
		.rate = OFFLOAD_LIVE_FULL,
		.threshold = 10,
		.full = true,
	});

	(void)state;
	turn_for(live, SETTLE_MS);
	for (const uint64_t end_us = live->now_us + 20000000; !is_full(live);) {
		assert_true(live->now_us < end_us);
		offload_live_turn(live);
	}
	const uint64_t made = rules_made(live), forwarded = full_forwarded(live),
		       came = received(live);
	const unsigned n_late = turn_for(live, SECONDS * 1000);
	const uint64_t exchanges = rules_made(live) - made,
		       alone = full_forwarded(live) - forwarded,
		       all = received(live) - came + alone;

	print_message("%" PRIu64
		      " rules made in %d s, %.1f percent forwarded; %u turns were late\n",
		exchanges, SECONDS, 100 * (double)alone / (double)all, n_late);
	assert_in_range(exchanges, 0, MOST_EXCHANGES * SECONDS + 2 * RULES * n_late);
	offload_live_leave(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_busiest_keep_their_rules, offload_live_tidy),
	};

	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
