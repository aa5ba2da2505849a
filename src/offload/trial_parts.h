/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the trial's files share: trial.c, and trial_full.c for what comes beside marks. Nobody else includes this. */

#include "offload/trial.h"

#define TRIAL_TAGGED 1

/* A trial that is under way. */
struct trier {
	struct trial *trial;
	const struct trial_calls *calls;
	bool patient; /* ends at an answer that may be another the next time */
	bool passing; /* there was such an answer, of the kind that is tried */
	uint64_t begin_us;
	struct provider_why last; /* what that answer was */
};

/* Makes a rule of documentation's addresses, and takes it away; true: it was taken. */
bool trial_try(struct trier *trier, enum provider_kind kind, const struct shape *shape,
	struct provider_why *why);
/* No more is asked for now. */
bool trial_is_over(struct trier *trier);

/* trial_full.c: of a kind whose marks are settled, what can be done without the CPU. */
void trial_try_full(struct trier *trier, enum provider_kind kind);
