/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a port's driver said when it refused: errno and its own sentence, kept once per port so that a
 * record needs a byte for it. At most OFFLOAD_N_REFUSALS; the last one then stands for all others.
 *
 * One thread writes (the installer), any may read: an entry never changes once its number is known.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "offload/reason.h"

#define OFFLOAD_N_REFUSALS (256 - OFFLOAD_REFUSALS)
#define REFUSAL_WORDS 112

struct refusal {
	int error;		   /* positive errno */
	char words[REFUSAL_WORDS]; /* cut to size; "" when the driver said nothing */
	_Atomic uint64_t times;
};

struct refusals {
	atomic_uint n;
	struct refusal refusal[OFFLOAD_N_REFUSALS];
};

/*
 * The reason (OFFLOAD_REFUSALS + n) for this errno and sentence (may be NULL); counts it. Bytes that are
 * not printable ASCII become '?'.
 */
uint8_t refusal_note(struct refusals *refusals, int error, const char *words);

/* NULL for reasons that are not refusals of this port. */
const struct refusal *refusal_of(const struct refusals *refusals, uint8_t reason);
