/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of the simulated NIC in a seeded random mix, on both ports, while flows end, fall silent and come
 * back and marks come late: every packet is out, or was for a port that was being restarted, and is its own
 * flow's. Five seconds, or MILLRACE_SOAK_S; the seed is printed, and MILLRACE_SOAK_SEED sets it.
 */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rte_random.h>

#include "base/monotonic.h"

#define FLOWS 200
#define RATE 40000
#define CHECK_US 500000
#define OLD_MARKS 64

/* Words of each fault that are chosen among. */
static const char *const faults[] = {
	"stop_mark",
	"stop_mark:every=3",
	"stop_mark:times=1000",
	"wrong_mark",
	"wrong_mark:value=7:every=2",
	"wrong_mark:value=65536",
	"dead",
	"dead:after=20",
	"lose:every=2",
	"lose",
	"fail:op=create:errno=ENOSPC",
	"fail:op=create:every=2",
	"fail:op=destroy:every=2",
	"fail:op=query:errno=EBUSY",
	"fail:every=5",
	"stall_delete:ms=20",
	"late:ms=5",
	"late:ms=700:times=1",
	"drop_completion:every=20:times=3",
	"count_nothing",
	"wrap:bits=16",
	"forget",
	"evict:every=3",
	"ghost:rules=20",
	"stop_mark/wrong_mark:every=3/evict:every=10/fail:every=7",
};

static uint64_t random_state;

/* Our own: the same numbers from the same seed everywhere (S. Vigna's splitmix64). */
static uint32_t draw(uint32_t below)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static uint64_t number_of(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text == NULL ? usual : strtoull(text, NULL, 0);
}

static void change_fault(struct offload_live *live)
{
	unsigned side = draw(2);
	char text[64];

	/* most of the time nothing is to be wrong: else hardly a flow is ever in the NIC */
	if (draw(4) != 0) {
		for (unsigned name = 0; name < SIM_N_FAULTS; name++) {
			snprintf(text, sizeof(text), "%s:off", sim_fault_name(name));
			offload_live_fault(live, side, text);
		}
		return;
	}
	offload_live_fault(live, side, faults[draw(RTE_DIM(faults))]);
}

static void do_something(struct offload_live *live, uint32_t *old)
{
	struct live_flow *flow = &live->flows[draw(FLOWS)];
	uint32_t mark = old[draw(OLD_MARKS)];

	old[draw(OLD_MARKS)] = flow->mark;
	switch (draw(6)) {
	case 0:
	case 1:
		change_fault(live);
		break;
	case 2:
		if (offload_live_knows(live, flow))
			offload_live_kill(live, flow);
		break;
	case 3:
		flow->muted = !flow->muted;
		break;
	default:
		for (unsigned i = draw(8); i > 0 && live->side[0].n_put < OFFLOAD_LIVE_PUT; i--)
			offload_live_put(live, flow, 0, mark, 0);
		break;
	}
}

static void soak(const char *words, unsigned n_workers, uint64_t seconds)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = FLOWS,
		.words = words,
		.rate = RATE,
		.n_workers = n_workers,
		.n_queues = n_workers,
		.capacity = 150,
		.counters = true,
		.restart = true,
		.idle_s = 1,
	});
	uint64_t end_us = monotonic_us() + seconds * 1000000, check_us = 0;
	struct agent_counters counters[2];
	uint32_t old[OLD_MARKS] = {0};
	unsigned n = 0;

	for (; monotonic_us() < end_us; n++) {
		offload_live_run(live, 1 + draw(30));
		do_something(live, old);
		if (monotonic_us() - check_us < CHECK_US)
			continue;
		check_us = monotonic_us();
		offload_live_check(live);
		live->n_events = 0;
	}
	for (unsigned port = 0; port < 2; port++)
		offload_live_counters(live, port, &counters[port]);
	print_message("%s, %u workers: %u events; %lu packets, %lu marked; rules %lu, strangers "
		      "%lu, fell out %lu\n",
		words, n_workers, n, offload_live_received(live, 0), offload_live_marked(live, 0),
		counters[0].arrows[OFFLOAD_INSTALLING][OFFLOAD_ACCEPTED], counters[0].strangers,
		counters[0].arrows[OFFLOAD_SUSPECT][OFFLOAD_LEAVING]);
	offload_live_end(live);
}

static void packets_are_their_flows_whatever_happens(void **state)
{
	uint64_t seconds = number_of("MILLRACE_SOAK_S", 5);
	uint64_t seed = number_of("MILLRACE_SOAK_SEED", rte_rand());

	(void)state;
	print_message("seed: MILLRACE_SOAK_SEED=%lu\n", seed);
	random_state = seed;
	soak("proto=mix,ipv6=50", 1, (seconds + 2) / 3);
	soak("proto=mix,ipv6=50,async=0", 2, (seconds + 1) / 3);
	soak("profile=tiny,proto=tcp,create_ns=22000", 1, seconds / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			packets_are_their_flows_whatever_happens, offload_live_tidy),
	};

	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
