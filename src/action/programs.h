/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The programs in use, each once, by 16-bit numbers: equal programs have the same number, which flows keep as their
 * verdict. Number 0 is plain forwarding, always there, and never counted.
 *
 * A number has as many references as its holders took: programs_intern() takes one, programs_hold() one more,
 * programs_release() gives one back. A number without references keeps its program until another program needs the
 * number; by then every worker has to have passed a quiescent state of the RCU variable since the last
 * release. Until then the same program gets the number back.
 *
 * Threads: one control thread calls everything but programs_get(). Workers, registered with the RCU variable, call
 * programs_get() with numbers that reached them from the control thread in an orderly way (a mailbox, or a
 * store that is released and a load that acquires), and use what they get until their next quiescent state.
 * Memory is taken at creation and belongs to the set.
 */

#include <stdint.h>

#include <rte_rcu_qsbr.h>

#include "action/program.h"
#include "base/error.h"

/*
 * Numbers 1 to 65,529: flows keep the last one for what is decided by packet (flow/verdict.h), and those before it are
 * programs that reject: PROGRAMS_REJECT and what the sender is told (enum reject_with). These are always there, and never
 * counted, like number 0; nobody runs them.
 */
#define PROGRAMS_MAX 65529
#define PROGRAMS_REJECT (PROGRAMS_MAX + 1)

struct programs {
	struct action_program *program; /* by number; set once */
	struct programs_book *book;	/* the control thread's alone */
};

/*
 * Makes room for `max` (1 to PROGRAMS_MAX) programs beside plain forwarding. `qsbr` outlives the set. Returns NULL with
 * errno EINVAL or ENOMEM.
 */
struct programs *programs_create(uint32_t max, struct rte_rcu_qsbr *qsbr);

/*
 * Finds or makes the number of a program, and takes a reference. Returns 0; -ENOSPC when all numbers are in use;
 * -EAGAIN when a number will be free once the workers have passed. Each with the reason in `error`; nothing has
 * changed then.
 */
int programs_intern(struct programs *programs, const struct action_program *program,
	uint16_t *number, struct error *error);

/*
 * Makes the program that drops, the first one of a new set, whose number therefore is PROGRAMS_DROP. Errors as
 * programs_intern(); -EINVAL: the set is not new.
 */
#define PROGRAMS_DROP 1
int programs_make_drop(struct programs *programs);

/* Takes one more reference to a number that the caller knows to have one. */
void programs_hold(struct programs *programs, uint16_t number);

/* Gives one reference back. The number has to have one. */
void programs_release(struct programs *programs, uint16_t number);

/* How many numbers have references, 0 not counted. */
uint32_t programs_count(const struct programs *programs);

/* The references of a number; 0 for those that are not counted. */
uint32_t programs_references(const struct programs *programs, uint16_t number);

/* Accepts NULL. No worker may read any more. */
void programs_destroy(struct programs *programs);

/* Workers: the program of a number that they were given. */
static inline const struct action_program *programs_get(
	const struct programs *programs, uint16_t number)
{
	return &programs->program[number];
}
