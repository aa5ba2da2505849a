/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The timing wheel of a wire's slots: each that is in use is filed by the time at which the agent has to look at it next,
 * for whatever reason comes first. A look files it anew.
 *
 * A tick is 512 us. Level 0 has a bucket for each of the next 512 ticks, level 1 for each of the next 255 rows of so many
 * (67 s); what is due later is looked at in between. Buckets are circular lists, so that a slot leaves its bucket without
 * knowing which one it is in. No call but due_hurry() takes longer for more slots.
 *
 * One thread, the worker; memory is taken at the start.
 */

#include <stdbool.h>
#include <stdint.h>

#define DUE_TICK_BITS 9 /* of us */
#define DUE_TICK_US (1u << DUE_TICK_BITS)
#define DUE_ROW_BITS 9 /* of ticks */
#define DUE_ROW (1u << DUE_ROW_BITS)
#define DUE_ROWS 256u

struct due_link {
	uint32_t before, next;
	uint64_t tick; /* of a slot that is filed; 0: it is not */
};

struct due {
	struct due_link *link; /* of n slots, and then of the buckets of both levels */
	uint32_t n;
	uint32_t filed; /* so many slots are */
	uint64_t tick;	/* that is worked off */
	bool row_left;	/* slots of its row are still in level 1 */
};

/* 0 or -ENOMEM. due_fini() on a zeroed one does nothing. */
int due_init(struct due *due, uint32_t n);
void due_fini(struct due *due);

/* Files a slot that may be filed already: to be looked at then, or in the next tick. */
void due_file(struct due *due, uint32_t slot, uint64_t at_us);
/* The same, unless it is looked at earlier. */
void due_hasten(struct due *due, uint32_t slot, uint64_t at_us);
/* A slot that may not be filed is not any more. */
void due_remove(struct due *due, uint32_t slot);

/*
 * Takes slots off the wheel that are due, in at most `*budget` steps, which it counts down; at most `max` of them. 0:
 * no more are due, or the budget is used up.
 */
unsigned due_take(
	struct due *due, uint64_t now_us, uint32_t *slots, unsigned max, unsigned *budget);

/* Whatever is filed will be looked at within a row (0.26 s). */
void due_hurry(struct due *due);
