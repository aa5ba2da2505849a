/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The abilities of a port, as its trials find them, and the time of the next trial: after one second, then two, up to every
 * 15 s. Abilities that were told stay as they are, so that any thread may look at them for as long as it likes.
 *
 * Nothing may be under way when a port is tried. So nothing new is begun before that, for a tenth of a second at first and,
 * when that was too short, for up to one; in between all goes on for ten times as long.
 *
 * Threads: the installer's, but where it is said.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "rteflow/provider.h"

/* So many sets of abilities can be told while an engine runs. */
#define TRIALS_TOLD 24

struct trials {
	_Atomic(const struct provider_abilities *) abilities; /* one of those told; NULL: not yet */
	_Atomic uint64_t due_us; /* when the port is tried again; 0: it is not to be */
	pthread_mutex_t lock;
	uint32_t marks_most; /* under the lock: marks that the wire's slots need; 0: any do */
	struct provider_abilities told[TRIALS_TOLD + 1]; /* the last one is never told */
	unsigned n_told, n;
	bool holds;		    /* nothing new is begun, */
	uint64_t holds_us, hold_us; /* since then, for so long at most */
};

/* The changes that a trial found. */
struct trials_news {
	bool untried;	  /* from now on something is untried, */
	uint32_t granted; /* kinds that were not granted before, a bit each */
};

void trials_init(struct trials *trials);
void trials_destroy(struct trials *trials);
/* Any thread; all zero before the first trial. */
const struct provider_abilities *trials_abilities(const struct trials *trials);
/* Control's thread: installer_agree_on_marks(). */
uint32_t trials_agree_on_marks(struct trials *trials, uint32_t most);
/* Is the port to be tried now? `n_awaited` calls are under way. */
bool trials_due(struct trials *trials, uint64_t now_us, uint32_t n_awaited);
/* A trial has ended with these abilities: tells them, and plans the next. */
struct trials_news trials_end(
	struct trials *trials, const struct provider_abilities *abilities, uint64_t now_us);
