/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soak: every truth of the design under every fault of the simulated NIC, at full rate. Rounds go in pairs,
 * each pair with an engine of its own: one round without faults, in which nothing may be noticed, and one with,
 * a fault alone or many by chance. Flows begin, end, fall silent and come back all the while, and marks come
 * late. At all times every packet is out, or was for a port that was being restarted, and is its own flow's;
 * every flow says why it is where it is. When the faults are over everything comes back by itself.
 *
 * A burst's CPU time is that of a turn of its lcore, which handles up to four bursts a queue, with what
 * the test does to count them; 99.99 % take at most a millisecond. CPU time, not time: what other programs take
 * of the processor meanwhile is not in it, so that a busy machine fails no test.
 *
 * So many seconds: MILLRACE_SOAK_S (6), and until the pair that is under way is done. The seed is printed, and
 * MILLRACE_SOAK_SEED sets it. MILLRACE_SOAK_SETUP and MILLRACE_SOAK_FAULT choose one by its number, from 0, for
 * all pairs: with them and the seed that it printed, a pair that failed is the first one.
 */
#include "offload_soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rte_random.h>

#include "base/monotonic.h"

#define PROVEN_MS 20000
#define AGAIN_MS 40000
#define WELL_MS 600
#define FAULTY_MS 1200
#define CHECK_US 200000
#define STIR_MS 20

/* Sanitized programs are slow: fewer flows, so that none comes so rarely that it ends. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 4
#else
#define SLOWER 1
#endif

/* Of so many bursts the 99.99th per cent says something. */
#define ENOUGH 100000
#define MOST_NS 1000000

static const struct setup {
	const char *name;
	struct offload_live_options options;
	unsigned has;
} setups[] = {
	{"completions", {.n_flows = 200, .words = "proto=mix,ipv6=50", .counters = true},
		SOAK_COMPLETIONS | SOAK_COUNTERS},
	{"two workers, blocking",
		{.n_flows = 200,
			.words = "proto=mix,ipv6=50,async=0",
			.n_workers = 2,
			.n_queues = 2,
			.counters = true,
			.restart = true},
		SOAK_COUNTERS | SOAK_RESTART},
	{"X710", {.n_flows = 200, .words = "profile=x710,proto=tcp,ipv6=50"}, 0},
	{"ConnectX-6",
		{.n_flows = 200,
			.words = "profile=cx6-hws,proto=udp,ipv6=50",
			.counters = true,
			.restart = true},
		SOAK_COMPLETIONS | SOAK_COUNTERS | SOAK_RESTART},
	{"E810, one way, a large table",
		{.n_flows = 200,
			.words = "profile=e810,proto=udp,ipv6=50",
			.one_way = true,
			.large = true,
			.counters = true},
		SOAK_COUNTERS},
	{"tiny, few records",
		{.n_flows = 200,
			.words = "profile=tiny,proto=mix,ipv6=50",
			.capacity = 150,
			.restart = true},
		SOAK_RESTART},
	{"ConnectX-5, two workers, large tables",
		{.n_flows = 200,
			.words = "profile=cx5,proto=tcp,ipv6=50",
			.n_workers = 2,
			.n_queues = 2,
			.large = true,
			.counters = true},
		SOAK_COUNTERS},
	{"completions, one way",
		{.n_flows = 200,
			.words = "proto=mix,ipv6=50,size=64-1500",
			.one_way = true,
			.counters = true},
		SOAK_COMPLETIONS | SOAK_COUNTERS},
	{"marks of 16 bits, a large table",
		{.n_flows = 200,
			.words = "proto=mix,ipv6=50,mark_bits=16",
			.large = true,
			.counters = true},
		SOAK_COMPLETIONS | SOAK_COUNTERS},
	{"X710 of 11 ms", {.n_flows = 40, .words = "profile=x710-stock,proto=udp"}, 0},
};

#define ANY UINT64_MAX
/* After so many pairs each fault was tried alone. */
#define ALL_ONCE (SOAK_ALONE * 3 / 2)

static uint64_t number_of(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text == NULL ? usual : strtoull(text, NULL, 0);
}

static uint64_t received(const struct offload_live *live)
{
	return offload_live_received(live, 0) + offload_live_received(live, 1);
}

static uint64_t marked(const struct offload_live *live)
{
	return offload_live_marked(live, 0) + offload_live_marked(live, 1);
}

/* What was noticed since the last look. */
static void take_notices(struct soak *soak, struct offload_live *live)
{
	for (unsigned i = 0; i < live->n_events; i++)
		soak->notices[live->events[i].kind]++;
	live->n_events = 0;
}

static void check(struct soak *soak, struct offload_live *live)
{
	offload_live_check(live);
	soak_check_explanations(live);
	take_notices(soak, live);
}

/* A round of that time. */
static void run(struct soak *soak, struct offload_live *live, unsigned fault, unsigned ms)
{
	enum soak_kind kind = fault > SOAK_MIX ? SOAK_WELL : SOAK_FAULTY;
	uint64_t packets = received(live), with_mark = marked(live);
	uint64_t end_us = monotonic_us() + UINT64_C(1000) * ms, check_us = monotonic_us();

	live->times = &soak->times[kind];
	while (monotonic_us() < end_us) {
		offload_live_run(live, 1 + soak_draw(soak, STIR_MS));
		soak_stir(soak, live, kind == SOAK_FAULTY);
		if (fault == SOAK_MIX && soak_draw(soak, 2) == 0)
			soak_stir_mix(soak, live);
		if (monotonic_us() - check_us < CHECK_US)
			continue;
		check(soak, live);
		check_us = monotonic_us();
	}
	check(soak, live);
	live->times = NULL;
	soak->rounds[kind]++;
	soak->packets[kind] += received(live) - packets;
	soak->marked[kind] += marked(live) - with_mark;
}

/* When was looked last for the one, and for the other. */
struct looks {
	uint64_t well_us, explained_us;
};

/* Every flow that comes is in the NIC, and no rule is there that is not such a flow's. */
static bool is_well(struct offload_live *live, void *context)
{
	struct looks *looks = context;
	struct agent_counters counters;

	if (monotonic_us() - looks->well_us < 1000)
		return false;
	looks->well_us = monotonic_us();
	if (looks->well_us - looks->explained_us >= CHECK_US) {
		soak_check_explanations(live);
		looks->explained_us = looks->well_us;
	}
	if (!offload_live_all_proven(live, NULL))
		return false;
	for (unsigned side = 0; side < 2; side++) {
		offload_live_counters(live, side, &counters);
		if (offload_live_rules(live, side) != counters.flows[OFFLOAD_PROVEN])
			return false;
	}
	return true;
}

/* More flows than there are records are never all known. */
static void mute_most(struct offload_live *live)
{
	for (uint32_t i = live->options.capacity / 3; i < live->options.n_flows; i++)
		live->flows[i].muted = true;
}

static uint64_t await(struct offload_live *live, unsigned ms, const char *what)
{
	uint64_t begin_us = monotonic_us();
	struct looks looks = {0};

	if (live->options.capacity != 0)
		mute_most(live);
	if (offload_live_until(live, is_well, &looks, ms))
		return (monotonic_us() - begin_us) / 1000;
	offload_live_print(live);
	print_message(
		"rules: %u and %u\n", offload_live_rules(live, 0), offload_live_rules(live, 1));
	fail_msg("%s: not every flow is in the NIC", what);
	return 0;
}

/* Whoever stays in the NIC has the mark that the engine says. */
static void check_marks(struct offload_live *live)
{
	struct plane_flow answer;

	offload_live_run(live, 5);
	offload_live_check(live);
	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		/* who was not turned for a second has ended, and begins anew */
		if (!offload_live_proven(live, &live->flows[i]))
			continue;
		offload_live_ask(live, &live->flows[i], &answer);
		assert_int_equal(answer.mark, live->flows[i].mark);
	}
}

static uint64_t fell_out(struct offload_live *live)
{
	struct agent_counters counters;
	uint64_t sum = 0;

	for (unsigned port = 0; port < 2; port++) {
		offload_live_counters(live, port, &counters);
		for (unsigned i = 0; i < OFFLOAD_N_REASONS; i++)
			sum += counters.fell_out[i];
	}
	return sum;
}

static void add_counters(struct soak *soak, struct offload_live *live)
{
	struct agent_counters counters;

	for (unsigned port = 0; port < 2; port++) {
		offload_live_counters(live, port, &counters);
		for (unsigned i = 0; i < OFFLOAD_N_REASONS; i++)
			soak->fell_out[i] += counters.fell_out[i];
		soak->refused += counters.refused;
		soak->strangers += counters.strangers;
		for (unsigned name = 0; name < SIM_N_FAULTS; name++)
			soak->strikes[name] +=
				sim_fault_look(live->side[port].sim, (enum sim_fault_name)name)
					.total_strikes;
	}
}

static void one_pair(struct soak *soak, const struct setup *setup, unsigned fault, uint64_t seed)
{
	struct offload_live_options options = setup->options;
	struct offload_live *live;
	uint64_t again_ms;

	options.n_flows /= SLOWER;
	options.capacity /= SLOWER;
	options.rate = OFFLOAD_LIVE_FULL;
	options.idle_s = 1;
	options.restart |= soak_fault_needs(fault) & SOAK_RESTART;
	print_message(
		"%s, %s: MILLRACE_SOAK_SEED=%lu MILLRACE_SOAK_SETUP=%lu MILLRACE_SOAK_FAULT=%u\n",
		setup->name, soak_fault_name(fault), seed, (unsigned long)(setup - setups), fault);
	live = offload_live_begin(&options);
	memset(soak->old, 0, sizeof(soak->old));
	await(live, PROVEN_MS, "at first");
	take_notices(soak, live);
	run(soak, live, SOAK_MIX + 1, WELL_MS);
	/* there is no alarm without a fault */
	if (fell_out(live) != 0) {
		offload_live_print(live);
		fail_msg("%lu flows fell out, and nothing was wrong", fell_out(live));
	}
	soak_fault_begin(soak, live, fault);
	run(soak, live, fault, FAULTY_MS);
	soak->tried[fault]++;
	soak_faults_end(live);
	again_ms = await(live, AGAIN_MS, soak_fault_name(fault));
	check(soak, live);
	check_marks(live);
	soak->longest_ms = RTE_MAX(soak->longest_ms, again_ms);
	print_message("%s, %s: %lu packets, %lu marked; all back after %lu ms\n", setup->name,
		soak_fault_name(fault), received(live), marked(live), again_ms);
	add_counters(soak, live);
	offload_live_end(live);
}

static const struct setup *setup_for(unsigned number, unsigned fault)
{
	unsigned needs = soak_fault_needs(fault) & ~SOAK_RESTART;

	while ((setups[number % RTE_DIM(setups)].has & needs) != needs)
		number++;
	return &setups[number % RTE_DIM(setups)];
}

/* A fault that never struck was not tried. */
static void check_strikes(const struct soak *soak)
{
	if (soak->rounds[SOAK_FAULTY] < ALL_ONCE || number_of("MILLRACE_SOAK_FAULT", ANY) != ANY)
		return;
	for (unsigned name = 0; name < SIM_N_FAULTS; name++)
		if (soak->strikes[name] == 0)
			fail_msg("'%s' never struck", sim_fault_name((enum sim_fault_name)name));
}

static void check_times(const struct soak *soak)
{
	for (unsigned kind = 0; SLOWER == 1 && kind < SOAK_N_KINDS; kind++) {
		const struct histogram *times = &soak->times[kind];

		if (times->times >= ENOUGH && histogram_at(times, 0.9999) > MOST_NS)
			fail_msg("one turn in 10,000 takes %lu ns of CPU time or more",
				histogram_at(times, 0.9999));
	}
}

/* Each alone, and a mix after every two of them; then by chance. */
static unsigned choose_fault(struct soak *soak, unsigned first, unsigned n)
{
	/* drawn in any case: so that a pair can be had again, by its seed and its fault */
	const bool mix = soak_draw(soak, 2) == 0;

	if (n < ALL_ONCE)
		return n % 3 == 2 ? SOAK_MIX : (first + n - n / 3) % SOAK_ALONE;
	return mix ? SOAK_MIX : soak_draw(soak, SOAK_ALONE);
}

static void truths_hold_whatever_happens(void **state)
{
	static struct soak soak;
	uint64_t seconds = number_of("MILLRACE_SOAK_S", 6);
	uint64_t seed = number_of("MILLRACE_SOAK_SEED", rte_rand());
	uint64_t only_setup = number_of("MILLRACE_SOAK_SETUP", ANY);
	uint64_t only_fault = number_of("MILLRACE_SOAK_FAULT", ANY);

	(void)state;
	print_message("seed: MILLRACE_SOAK_SEED=%lu\n", seed);
	soak.random = seed;
	soak.begin_us = monotonic_us();
	uint64_t end_us = soak.begin_us + seconds * 1000000;
	unsigned first_fault = soak_draw(&soak, SOAK_ALONE);
	unsigned first_setup = soak_draw(&soak, RTE_DIM(setups));

	for (unsigned n = 0; monotonic_us() < end_us; n++) {
		/* how often the pair before drew is the machine's */
		soak.random = seed + n;
		unsigned fault = choose_fault(&soak, first_fault, n);

		if (only_fault <= SOAK_MIX)
			fault = (unsigned)only_fault;
		if (only_setup < RTE_DIM(setups))
			one_pair(&soak, &setups[only_setup], fault, seed + n);
		else
			one_pair(&soak, setup_for(first_setup + n, fault), fault, seed + n);
	}
	soak_print(&soak);
	check_strikes(&soak);
	check_times(&soak);
}

static int begin(void **state)
{
	return soak_read_reasons() < 0 ? -1 : offload_live_environment(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(truths_hold_whatever_happens, offload_live_tidy),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
