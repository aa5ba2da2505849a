/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An ageing wheel: records filed by the tick at which to look at them again.
 *
 * Three levels of slots (512 of half a second, 256 of 256 s, 64 of 65,536 s) hold doubly linked lists of record
 * positions; links lie in the records. Packets never touch a wheel: a record is filed at the time it
 * would end if nothing more came, and when that time comes the owner either ends it or files it
 * anew by the packets it has had since. Hashed hierarchical wheels: G. Varghese and T. Lauck,
 * "Hashed and Hierarchical Timing Wheels", 1987, scheme 7.
 *
 * Time is in ticks of the run (base/clock.h). A record due further away than 48 days is looked at
 * in between. Owned by one shard.
 */

#include <stdbool.h>
#include <stdint.h>

#include "flow/record.h"

#define WHEEL_SLOTS (512 + 256 + 64)
#define WHEEL_WORDS ((WHEEL_SLOTS + 63) / 64)

struct wheel {
	struct flow_record *records; /* of the table; set once */
	uint64_t tick;		     /* last tick that was worked off, or begun */
	bool begun;		     /* it was not finished: some of its records are still filed */
	uint32_t count;
	uint32_t head[WHEEL_SLOTS]; /* filed first */
	uint32_t tail[WHEEL_SLOTS];
	uint64_t occupied[WHEEL_WORDS];
};

/*
 * Called for each record that is due, or perhaps due soon (a slot's width is the precision); it is on
 * no wheel then, and the callee ends it or files it anew.
 */
typedef void (*wheel_due_fn)(void *context, uint32_t position);

/* Empties the wheel and sets its clock to 0. */
void wheel_init(struct wheel *wheel, struct flow_record *records);

/* Files a record to be due at `due` (the next tick when that has passed). */
void wheel_add(struct wheel *wheel, uint32_t position, uint64_t due);

/* Takes off a record that is on this wheel. */
void wheel_remove(struct wheel *wheel, uint32_t position);

/*
 * The next tick after wheel->tick, and not after `until`, at which something is to be done (a record
 * is due or may be); `until` when there is none before.
 */
uint64_t wheel_next_tick(const struct wheel *wheel, uint64_t until);

/*
 * Works off the tick that wheel_next_tick() gave: everything filed for it goes to `due`, at most
 * `*budget` records, which it counts down. False when more remain: then it is to be called again with
 * the same tick, before anything but adding, removing and asking for the oldest.
 */
bool wheel_turn(
	struct wheel *wheel, uint64_t tick, wheel_due_fn due, void *context, unsigned *budget);

/*
 * Up to `max` records from the old end: by the time at which they are to be looked at, to the slot's
 * width, and among those of one slot by the time at which they were filed. Returns how many.
 */
unsigned wheel_oldest(const struct wheel *wheel, uint32_t *positions, unsigned max);
