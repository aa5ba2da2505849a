/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The parts of the soak: engines between two simulated NICs at full rate, each of which has a round without
 * faults and one with; what goes wrong there; what each flow has to say of itself meanwhile.
 *
 * Everything that is chosen comes from one seed. When it happens does not: that is the machine's.
 */

#include "offload_live.h"

enum soak_kind {
	SOAK_WELL,
	SOAK_FAULTY,
	SOAK_N_KINDS,
};

/* Faults that are tried alone, and after the last of them: a random mix of all. */
#define SOAK_ALONE 21
#define SOAK_MIX SOAK_ALONE

/* What a fault needs in order to strike. */
#define SOAK_COMPLETIONS (1u << 0)
#define SOAK_COUNTERS (1u << 1)
#define SOAK_RESTART (1u << 2)

#define SOAK_OLD_MARKS 64

struct soak {
	uint64_t random;
	unsigned rounds[SOAK_N_KINDS];
	uint64_t packets[SOAK_N_KINDS], marked[SOAK_N_KINDS];
	struct histogram times[SOAK_N_KINDS];
	unsigned tried[SOAK_ALONE + 1]; /* rounds of each fault, and of the mix */
	uint64_t strikes[SIM_N_FAULTS];
	uint64_t notices[CHANGE_N_KINDS]; /* of flows only those of fell_out are counted */
	uint64_t refused, strangers;
	uint64_t fell_out[OFFLOAD_N_REASONS];
	uint64_t longest_ms; /* until all was well again */
	uint64_t begin_us;
	uint32_t old[SOAK_OLD_MARKS]; /* marks of packets that came before */
};

/* A number below that, from the seed. */
uint32_t soak_draw(struct soak *soak, uint32_t below);

/* The fault as it is told; "mix". */
const char *soak_fault_name(unsigned fault);
unsigned soak_fault_needs(unsigned fault);
/* Begins at one port, or at both. */
void soak_fault_begin(struct soak *soak, struct offload_live *live, unsigned fault);
/* Every fault is over, at both ports. */
void soak_faults_end(struct offload_live *live);

/* Something happens to the flows; with `faulty` marks come late, too. In a mix something breaks or heals. */
void soak_stir(struct soak *soak, struct offload_live *live, bool faulty);
void soak_stir_mix(struct soak *soak, struct offload_live *live);

/* Reads docs/offload.md: which reasons go with which states. For the group's begin. */
int soak_read_reasons(void);
/* Each flow that is known says where it is and why, and its last changes lead there. */
void soak_check_explanations(struct offload_live *live);

/* What a round came to, and all of them together. */
void soak_print(const struct soak *soak);
