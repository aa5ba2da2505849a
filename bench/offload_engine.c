/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines of the founding experiment, and what is read off them. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include <rte_ethdev.h>

#include "base/monotonic.h"
#include "bench/offload_watch.h"
#include "dataplane/poll.h"

#define SLOTS 65536
/* Until no rule was made for so long, or for so long in all. */
#define QUIET_US 1000000
#define SETTLE_US 10000000
#define BUSY_STEP 64

/* Bytes of a packet that the card writes: more is what a real one costs nobody. */
#define WRITTEN 64

void offload_say(const char *line)
{
	fprintf(stderr, "millrace: bench offload: %s\n", line);
}

static struct lcore *lcore_of(const struct wire_engine *engine)
{
	return &engine->plane->lcores[0];
}

static uint64_t rules_of(const struct wire_engine *engine)
{
	uint64_t rules = 0;

	for (unsigned port = 0; port < 2; port++)
		if (plane_installer(engine->plane, port) != NULL)
			rules += atomic_load_explicit(
				&installer_counters(plane_installer(engine->plane, port))
					->done[INSTALLER_INSERT],
				memory_order_relaxed);
	return rules;
}

/* Of both ports. */
static uint64_t sum_of(const struct wire_engine *engine, const char *name)
{
	uint64_t sum = 0;

	for (unsigned side = 0; side < 2; side++) {
		uint64_t id, value;

		if (rte_eth_xstats_get_id_by_name(engine->source.port[side]->id, name, &id) == 0 &&
			rte_eth_xstats_get_by_id(engine->source.port[side]->id, &id, &value, 1) ==
				1)
			sum += value;
	}
	return sum;
}

double offload_share(const struct wire_engine *engine, struct offload_share *last)
{
	const uint64_t forwarded = sum_of(engine, "rx_forwarded_packets");
	const struct offload_share now = {
		.all = sum_of(engine, "rx_good_packets") + forwarded,
		.named = sum_of(engine, "rx_marked") + forwarded,
	};
	const uint64_t all = now.all - last->all, named = now.named - last->named;

	*last = now;
	return all == 0 ? 0 : (double)named / (double)all;
}

double offload_busy(const struct wire_engine *engine, uint64_t us, bool gathers)
{
	struct lcore *lcore = lcore_of(engine);
	const uint64_t busy = lcore->busy_cycles, idle = lcore->idle_cycles;
	const uint64_t end_us = monotonic_us() + us;
	uint64_t tsc = rte_rdtsc();

	do {
		for (unsigned i = 0; i < BUSY_STEP; i++)
			if (lcore_poll_timed(lcore, &tsc) && gathers)
				lcore_gather(lcore, &tsc);
	} while (monotonic_us() < end_us);
	const double worked = (double)(lcore->busy_cycles - busy);

	return worked / (worked + (double)(lcore->idle_cycles - idle));
}

/* Nothing is done for so long. */
static void spend(uint64_t cycles)
{
	const uint64_t end = rte_rdtsc() + cycles;

	while (rte_rdtsc() < end)
		;
}

double offload_floor(const struct wire_engine *engine, uint64_t us, bool gathers, double cycles)
{
	struct rte_mbuf *burst[BENCH_BURST];
	const struct bench_source *source = &engine->source;
	const uint64_t end_us = monotonic_us() + us;
	uint64_t tsc = rte_rdtsc(), idle = 0;
	const uint64_t begin = tsc;

	do {
		unsigned brought = 0;
		bool more_wait = false;

		for (unsigned side = 0; side < 2; side++) {
			uint16_t n =
				rte_eth_rx_burst(source->port[side]->id, 0, burst, BENCH_BURST);

			if (cycles > 0 && n > 0)
				spend((uint64_t)(cycles * n));
			uint16_t sent = rte_eth_tx_burst(source->port[!side]->id, 0, burst, n);

			rte_pktmbuf_free_bulk(&burst[sent], n - sent);
			brought += n;
			more_wait |= n == BENCH_BURST;
		}
		uint64_t now = rte_rdtsc();

		if (brought == 0)
			idle += now - tsc;
		tsc = now;
		/* as lcore_gather() does */
		if (gathers && brought > 0)
			idle += lcore_wait(more_wait, &tsc);
	} while (monotonic_us() < end_us);
	return 1 - (double)idle / (double)(tsc - begin);
}

/* Processors, before the bench took one for itself. */
static cpu_set_t allowed;

/* Rules are being made, be it that one alone takes long. */
static bool is_making(const struct wire_engine *engine)
{
	const struct agent *agent = lcore_of(engine)->worker.agent;

	return agent != NULL && (agent->port[0].counters.flows[OFFLOAD_INSTALLING] != 0 ||
					agent->port[1].counters.flows[OFFLOAD_INSTALLING] != 0);
}

/* Until the NIC has the flows that it is to have. */
static void settle(const struct wire_engine *engine)
{
	const uint64_t begin_us = monotonic_us();
	uint64_t quiet_us = begin_us, rules = 0, now_us;

	while (!plane_tend(engine->plane) && monotonic_us() < begin_us + SETTLE_US)
		sched_yield();
	do {
		offload_busy(engine, 10000, false);
		now_us = monotonic_us();
		if (rules_of(engine) != rules || is_making(engine))
			quiet_us = now_us;
		rules = rules_of(engine);
		watch_changes(engine);
	} while (now_us - quiet_us < QUIET_US && now_us - begin_us < SETTLE_US);
}

void offload_pin(void)
{
	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	bench_pin();
}

/* Installers and simulated NICs run elsewhere, as `millrace run` has it. */
static int open_elsewhere(struct wire_engine *engine, const struct bench_source_config *source,
	const struct plane_offload *offload, struct error *error)
{
	struct wire_schedule mine;

	wire_leave_schedule(&allowed, &mine);
	int ret = wire_engine_open_as(engine, source, offload, error);

	wire_resume_schedule(&mine);
	return ret;
}

int offload_open(struct wire_engine *engine, const struct offload_load *load,
	const struct offload_setup *setup)
{
	const bool on = setup->mode != IN_SOFTWARE;
	char words[96];
	const struct bench_source_config source = {
		.flows = load->flows,
		.load = load->load,
		.capture = {load->streams ? NULL : load->capture[0],
			load->streams ? NULL : load->capture[1]},
		.words = words,
		.number = setup->number,
		.offload_places = on ? SLOTS : 0,
	};
	const struct plane_offload offload = {
		.on = on,
		.threshold = setup->threshold,
		.slots = SLOTS,
		.counters = true,
		.full = setup->mode == WHOLE,
	};
	struct error error;

	snprintf(words, sizeof(words), "profile=cx5,nic=nic%u,pace=%" PRIu64 "%s", setup->number,
		setup->pps, load->streams ? "" : ",written=" RTE_STR(WRITTEN));
	int ret = open_elsewhere(engine, &source, &offload, &error);

	if (ret < 0) {
		offload_say(error.text);
		return ret;
	}
	ret = setup->times == NULL ? 0 : watch_begin(engine, setup->times);
	if (ret < 0)
		offload_say("packets cannot be watched where they leave");
	else
		settle(engine);
	return ret == 0 && setup->packets ? watch_packets(engine, setup->cycles) : ret;
}

void offload_close(struct wire_engine *engine)
{
	watch_end(engine);
	wire_engine_close(engine);
}
