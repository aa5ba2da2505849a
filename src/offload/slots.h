/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Slots: what flows have in a NIC, and the marks by which it names them. A wire's are split among the workers;
 * this is one worker's part of one wire's. A flow has at most one slot, carried by the rules of both its directions.
 *
 * A mark is a number and a generation:
 *	mark = generation * 2^number_bits + number, 1 <= mark <= mark_max
 * Where marks have the room for it, the number is the position of the flow's record, so that a packet's record is
 * on its way as soon as its mark is read; else that of its slot. Each time that a number is given anew its generation
 * goes on, by at least seven values before it comes again; where it begins is random, so that marks of an earlier
 * run's rules mean nothing in this one. No mark is given while rules that had it may be there.
 *
 * Life of a slot: slots_take() gives one to a flow; slots_sever() when its flow ends, after which its mark
 * names nobody; slots_give_back() when no rule is in the NIC any more. It is given again no earlier
 * than SLOT_DRAIN_US and SLOT_DRAIN_TURNS of its worker after that, when what was in flight has been
 * received. Given again in the order in which they came back.
 *
 * What a marked packet reads is two bytes, on lines of their own that change only here. Nothing here knows
 * states; of struct slot the agent fills what is not slots.c's own.
 *
 * One thread, the worker, but for slots_gave(). No global state.
 */

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/table.h"
#include "offload/counter.h"
#include "offload/rate.h"
#include "offload/stale.h"
#include "offload/state.h"

#define SLOT_NONE UINT32_MAX
#define SLOT_DRAIN_US 10000
#define SLOT_DRAIN_TURNS 64
/* Generations that a number has at least: what is left of a mark's bits beside the number. */
#define SLOT_GENERATIONS 8
/* The same, of positions: 24 bits are to do for two million. */
#define SLOT_POSITION_GENERATIONS 7

/*
 * The tag of a number: that it was given, the generation of the mark that names a flow, and in the lowest bits the form
 * of the flow's packets, which is whether it is TCP, and the end that packets come from at the domain's first port; at any
 * other they come from the other one, as no end has rules at two ports. 0: it names nobody.
 *
 * A domain of more than two ports has besides a row of tags for each port, where a number has one while its mark names a
 * flow whose last rule for packets of one end is there; the tag says which end. Elsewhere the mark leads no packet to the
 * flow in passing.
 */
#define SLOT_GIVEN 0x8000u
#define SLOT_FORM_BITS 2
#define SLOT_TCP 1u
#define SLOT_FROM 2u
#define SLOT_FORM (SLOT_TCP | SLOT_FROM)
static_assert(SLOT_FORM == (1u << SLOT_FORM_BITS) - 1, "no bit is left over");
/* Generations are 1 to this. */
#define SLOT_LAST_GENERATION ((SLOT_GIVEN - 1) >> SLOT_FORM_BITS)

/*
 * One direction's rule, of packets that arrive at one port. Filled by the agent. The first line has
 * what the agent's look at a rule that is well needs.
 */
struct slot_direction {
	uint8_t state; /* enum offload_state: as in the record, and when that has gone */
	uint8_t reason;
	uint8_t port; /* whose state it is, and that has the rule or had the last one */
	bool awaited; /* an answer of the installer: insert or remove */
	bool late;    /* which was counted as late */
	bool count_awaited;
	uint8_t deed;	     /* enum provider_deed: what its rule does */
	bool remove;	     /* to be taken out as soon as nothing is awaited */
	uint64_t since_us;   /* in its state; clock of the run */
	struct rate rate;    /* of that direction, as of the last look */
	uint64_t nic_due_us; /* when its counter is to be asked for next; UINT64_MAX: never */
	uint64_t asked_us;   /* when the installer was asked for what is awaited */
	uint32_t unmarked;   /* packets in a row that should have had the mark */
	uint32_t retry_ms;   /* the NIC is not asked before, where the direction has a back-off */
	uint64_t queued_us;  /* when it was queued, of the last way into the NIC */
	uint64_t base; /* packets of that end that came without the mark, while proven or suspect */
	uint64_t marked;    /* that came with it, besides those after `base` */
	uint64_t nic_base;  /* marked packets when the rule was asked for */
	uint64_t asked;	    /* marked packets of this rule when its counter was asked for */
	struct counter nic; /* the NIC's own counter */
	bool stays;	    /* the NIC was asked to take it out, and refused */
	bool decided;	    /* its rule does otherwise than was decided since, and is not out yet */
	uint16_t unplain;   /* packets that no rule can be expected to match, */
	uint32_t plain;	    /* since so many came marked: the low bits */
	struct stale stale; /* whether its last rule works on, after the NIC said that it is gone */
} __attribute__((aligned(64)));
static_assert(offsetof(struct slot_direction, queued_us) == 64, "one line");
static_assert(sizeof(struct slot_direction) == 192, "not a line more");

/* A slot. */
struct slot {
	struct flow_key key; /* also when the record has gone */
	uint32_t position;   /* of the record; FLOW_NONE: it has gone */
	uint32_t next;	     /* of a free one: the next free one; else the agent's */
	/* slots.c's own: of its mark, or of its last one */
	uint32_t number, generation;
	uint32_t
		older; /* the slot that had its number before, and may have rules yet; SLOT_NONE: none */
	bool used;
	uint8_t row[2]; /* of each end's tag in a domain of more than two ports; 0: it has none */
	struct slot_direction direction[OFFLOAD_DIRECTIONS]; /* by the key's end */
	uint64_t reported;  /* marked packets that active reports have told */
	uint64_t back_us;   /* when it was given back, */
	uint64_t back_turn; /* and in which turn */
	/* slots.c's own: whose mark names nobody any more, of the same hash, the newest first */
	uint32_t severed_before, severed_after;
	bool severed;
};

struct slots {
	uint16_t *
		tags; /* by number; rows of each port's follow where the domain has more than two */
	size_t row;   /* from one row to the next; 0: there is one */
	unsigned n_rows;
	uint32_t *positions; /* of records, by number; NULL: a number is a position */
	struct slot *slots;
	uint32_t n;		  /* of this worker */
	uint32_t first;		  /* place of the first: slots_place() */
	uint32_t n_numbers;	  /* of this worker's marks */
	uint32_t first_number;	  /* in a mark */
	unsigned number_bits;	  /* of the wire */
	uint32_t last_generation; /* 1 .. this are in use */
	uint32_t n_used, n_draining, n_severed;
	/* slots.c's own */
	uint16_t *generations; /* by number: the last one; 0: it had none yet */
	uint32_t *
		newest; /* by number: the slot that had it last, or SLOT_NONE; NULL: a slot is a number */
	uint32_t *severed;   /* by the key's hash: the newest, or SLOT_NONE */
	uint32_t n_fresh;    /* never given yet: the last ones */
	uint32_t head, tail; /* of those given back, first given back first */
	uint32_t drains;     /* the first of these that drains still; SLOT_NONE: none does */
	uint64_t random;
	uint64_t now_us, turns;
};

struct slots_config {
	uint32_t n; /* wanted, of the whole wire; fewer where a mark has not the room */
	unsigned n_workers;
	unsigned worker;
	unsigned n_ports;   /* of the domain; 0: it is a wire */
	uint32_t mark_max;  /* the smallest of its ports */
	uint32_t positions; /* of each worker's records; 0: marks are not to name them */
	uint64_t random;    /* unlike from run to run */
};

/*
 * How many a wire has of `n` wanted: all where marks have the room for positions, else see SLOT_GENERATIONS. A
 * multiple of n_workers: one for each at least, or none when a mark has not the room for that.
 */
uint32_t slots_fit(const struct slots_config *config);

/* 0, -EINVAL or -ENOMEM; slots_fini() on a zeroed or failed one does nothing. */
int slots_init(struct slots *slots, const struct slots_config *config);
void slots_fini(struct slots *slots);

/* Time passes: slots that have drained can be taken. Every turn. */
void slots_turn(struct slots *slots, uint64_t now_us);

/*
 * A slot for the flow at `position`, zeroed but for that and its key: which one, or SLOT_NONE. All are in use then,
 * or so may be all marks of that position, or sixteen.
 */
uint32_t slots_take(struct slots *slots, const struct flow_key *key, uint32_t position);
/* Its mark names nobody any more; whoever comes with its key may find its rules there until it is given back. */
void slots_sever(struct slots *slots, uint32_t slot);
void slots_give_back(struct slots *slots, uint32_t slot);

/*
 * Of slots that were severed and are not given back, those of a key, the newest first: the one after `slot`, or the
 * first after SLOT_NONE; SLOT_NONE: there are no more, or not among the sixteen that are looked at.
 */
uint32_t slots_severed(const struct slots *slots, const struct flow_key *key, uint32_t slot);

static inline struct slot *slots_slot(const struct slots *slots, uint32_t slot)
{
	return &slots->slots[slot];
}

/* The mark that a slot was given last, also when it names nobody any more. */
static inline uint32_t slots_mark(const struct slots *slots, uint32_t slot)
{
	const struct slot *of = &slots->slots[slot];

	return of->generation << slots->number_bits | (slots->first_number + of->number);
}

/* Whether packets may have that mark from this run's rules: from slots_take() until it has drained. */
bool slots_is_given(const struct slots *slots, uint32_t mark);

/*
 * Whether it is the mark that its number, one of this worker's, was given last. May be asked by any thread, from when it
 * is told of these slots until they are gone.
 */
bool slots_gave(const struct slots *slots, uint32_t mark);

/* The number that rules are kept under by the provider (their place), the same for all of the wire. */
static inline uint32_t slots_place(const struct slots *slots, uint32_t slot)
{
	return slots->first + slot;
}

/* The slot of this worker whose mark it is or was last; SLOT_NONE: there is none. Looks at sixteen at most. */
uint32_t slots_of_mark(const struct slots *slots, uint32_t mark);

/* The number in a mark; SLOT_NONE: it is none of this worker's. */
static inline uint32_t slots_number(const struct slots *slots, uint32_t mark)
{
	const uint32_t mask = (UINT32_C(1) << slots->number_bits) - 1;
	uint32_t number = (mark & mask) - slots->first_number;

	return number < slots->n_numbers && mark > mask ? number : SLOT_NONE;
}

/* Whose the number in a mark is, if anybody's: all workers have as many. */
static inline unsigned slots_worker(const struct slots *slots, uint32_t mark)
{
	const uint32_t number = mark & ((UINT32_C(1) << slots->number_bits) - 1);

	return slots->n_numbers != 0 ? number / slots->n_numbers : UINT_MAX;
}

/* Tags of this worker's numbers, from the first on, for packets that come in at that place of the domain. */
static inline const uint16_t *slots_own_tags(const struct slots *slots, unsigned place)
{
	return slots->tags + (place + 1) * slots->row;
}

/* Those of all numbers that a mark can have, by the number in it: what is none of this worker's names nobody. */
static inline const uint16_t *slots_tags(const struct slots *slots, unsigned place)
{
	return slots_own_tags(slots, place) - slots->first_number;
}

/*
 * The form in the tag of a mark's number, of packets that come in at that place; more than SLOT_FORM: the mark names
 * nobody.
 */
static inline uint64_t slots_form(
	const struct slots *slots, uint32_t tag, uint64_t mark, unsigned place)
{
	const uint64_t generation = mark >> slots->number_bits;

	return tag ^ ((generation << SLOT_FORM_BITS) + SLOT_GIVEN +
			     (slots->row == 0 && place != 0 ? SLOT_FROM : 0));
}

/* The position that belongs to a number, whether it names a flow or not. */
static inline uint32_t slots_position_of(const struct slots *slots, uint32_t number)
{
	return slots->positions == NULL ? number : slots->positions[number];
}

/* The record that a mark names, if number and generation are right; else FLOW_NONE. To be verified. */
static inline uint32_t slots_position(const struct slots *slots, uint32_t mark)
{
	uint32_t number = slots_number(slots, mark);

	if (number == SLOT_NONE || slots_form(slots, slots->tags[number], mark, 0) > SLOT_FORM)
		return FLOW_NONE;
	return slots_position_of(slots, number);
}

/*
 * Of a slot whose mark names its flow: packets of that end are to have it at that place of the domain, and at no other.
 * No rule of the other end is there.
 */
void slots_set_from(struct slots *slots, uint32_t slot, unsigned place, unsigned from);
