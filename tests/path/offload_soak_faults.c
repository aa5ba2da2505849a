/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong in a soak, and what flows do meanwhile. */
#include "offload_soak.h"

#include <stdio.h>

/* As docs/hardware.md has them; each alone in a round. */
static const struct {
	const char *text;
	unsigned needs;
} faults[SOAK_ALONE + 1] = {
	{"stop_mark", 0},
	{"wrong_mark", 0},
	{"dead", SOAK_RESTART},
	{"lose", 0},
	{"fail:op=create:errno=ENOSPC", 0},
	{"fail:op=create:errno=EIO", 0},
	{"fail:op=destroy:errno=EIO", 0},
	{"fail:op=query", SOAK_COUNTERS},
	{"fail:op=push", SOAK_COMPLETIONS},
	{"fail:op=any", 0},
	{"stall_delete:ms=300", 0},
	{"late:ms=300", 0},
	{"drop_completion:every=5", SOAK_COMPLETIONS},
	{"count_nothing", SOAK_COUNTERS},
	{"wrap:bits=16", SOAK_COUNTERS},
	{"forget", 0},
	{"reset", 0},
	{"evict", 0},
	{"ghost:rules=20", 0},
	{"wrong_mark:every=3:value=7", 0},
	/* rules that stay, unheard */
	{"fail:op=destroy:errno=EIO/drop_completion:every=2", SOAK_COMPLETIONS},
	[SOAK_MIX] = {"mix", 0},
};

/* Words of each fault that a mix chooses among. */
static const char *const mixed[] = {
	"stop_mark",
	"stop_mark:every=3",
	"stop_mark:times=1000",
	"wrong_mark",
	"wrong_mark:value=7:every=2",
	"wrong_mark:value=65536",
	"lose:every=2",
	"lose",
	"fail:op=create:errno=ENOSPC",
	"fail:op=create:every=2",
	"fail:op=destroy:every=2",
	"fail:op=query:errno=EBUSY",
	"fail:op=push:every=2",
	"fail:every=5",
	"stall_delete:ms=20",
	"late:ms=5",
	"late:ms=700:times=1",
	"drop_completion:every=20:times=3",
	"count_nothing",
	"wrap:bits=16",
	"forget",
	"reset",
	"evict:every=3",
	"ghost:rules=20",
	"stop_mark/wrong_mark:every=3/evict:every=10/fail:every=7",
	/* only a port that may be restarted comes back: these are the last */
	"dead",
	"dead:after=20",
};
#define FATAL 2

/* Our own: the same numbers from the same seed everywhere (S. Vigna's splitmix64). */
uint32_t soak_draw(struct soak *soak, uint32_t below)
{
	uint64_t z = soak->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

const char *soak_fault_name(unsigned fault)
{
	return faults[fault].text;
}

unsigned soak_fault_needs(unsigned fault)
{
	return faults[fault].needs;
}

void soak_fault_begin(struct soak *soak, struct offload_live *live, unsigned fault)
{
	/* one, the other, both; nothing arrives at the second of a wire that has one way */
	unsigned sides = live->options.one_way ? 1 : 1 + soak_draw(soak, 3);

	for (unsigned side = 0; fault != SOAK_MIX && side < 2; side++)
		if (sides >> side & 1)
			offload_live_fault(live, side, faults[fault].text);
}

static void end_faults_of(struct offload_live *live, unsigned side)
{
	char text[64];

	for (unsigned name = 0; name < SIM_N_FAULTS; name++) {
		snprintf(text, sizeof(text), "%s:off", sim_fault_name((enum sim_fault_name)name));
		offload_live_fault(live, side, text);
	}
}

void soak_faults_end(struct offload_live *live)
{
	for (unsigned side = 0; side < 2; side++)
		end_faults_of(live, side);
}

void soak_stir(struct soak *soak, struct offload_live *live, bool faulty)
{
	struct live_flow *flow = &live->flows[soak_draw(soak, live->options.n_flows)];
	uint32_t mark = soak->old[soak_draw(soak, SOAK_OLD_MARKS)];

	soak->old[soak_draw(soak, SOAK_OLD_MARKS)] = flow->mark;
	switch (soak_draw(soak, faulty ? 4 : 2)) {
	case 0:
		if (offload_live_knows(live, flow))
			offload_live_kill(live, flow);
		break;
	case 1:
		flow->muted = !flow->muted;
		break;
	default:
		for (unsigned i = soak_draw(soak, 8);
			i > 0 && live->side[0].n_put < OFFLOAD_LIVE_PUT; i--)
			offload_live_put(live, flow, 0, mark, 0);
		break;
	}
}

void soak_stir_mix(struct soak *soak, struct offload_live *live)
{
	unsigned n = RTE_DIM(mixed) - (live->options.restart ? 0 : FATAL);
	unsigned side = soak_draw(soak, 2);

	/* most of the time nothing is to be wrong: else hardly a flow is ever in the NIC */
	if (soak_draw(soak, 4) != 0)
		end_faults_of(live, side);
	else
		offload_live_fault(live, side, mixed[soak_draw(soak, n)]);
}
