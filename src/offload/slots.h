/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Slots: the numbers by which NICs name flows. A wire's numbers are split among the workers; this is one
 * worker's part of one wire's. A flow has at most one slot, carried by the rules of both its directions.
 *
 * A mark is a number and a generation:
 *	mark = generation * 2^number_bits + number, 1 <= mark <= mark_max
 * Each time that a number is given anew its generation goes on, by at least eight values before it comes
 * again; where it begins is random, so that marks of an earlier run's rules mean nothing in this one.
 *
 * Life of a slot: slots_take() gives one to a flow; slots_sever() when its flow ends, after which its mark
 * names nobody; slots_give_back() when no rule is in the NIC any more. It is given again no earlier
 * than SLOT_DRAIN_US and SLOT_DRAIN_TURNS of its worker after that, when what was in flight has been
 * received. Given again in the order in which they came back.
 *
 * What a marked packet reads is 8 bytes, on lines of their own that change only here. Nothing here knows
 * states; the rest of a slot is struct slot, which offload/agent.h fills.
 *
 * One thread, the worker. No global state.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/table.h"
#include "offload/counter.h"
#include "offload/state.h"

#define SLOT_NONE UINT32_MAX
#define SLOT_DRAIN_US 10000
#define SLOT_DRAIN_TURNS 64
/* Generations that a number has at least: what is left of a mark's bits beside the number. */
#define SLOT_GENERATIONS 8

/* What a mark leads to. */
struct slot_name {
	/*
	 * The mark that names the flow. When it names nobody: one of another number, which no packet's can be
	 * that leads here; so who compares marks need not ask whether there is a flow.
	 */
	uint32_t mark;
	/* position of the flow's record, and in the lowest bits its form; or SLOT_NOBODY */
	uint32_t target;
};

/* The form of its packets: whether it is TCP, and for each side the end that packets come from. */
#define SLOT_FORM_BITS 3
#define SLOT_TCP 1
#define SLOT_FROM(side) (2u << (side))
#define SLOT_NOBODY (UINT32_MAX << SLOT_FORM_BITS)

static_assert(FLOW_MAX_CAPACITY < SLOT_NOBODY >> SLOT_FORM_BITS, "a position leaves three bits");

/* One direction's rule: of packets that arrive at one port of the wire. Filled by the agent. */
struct slot_side {
	uint64_t since_us;  /* in its state; clock of the run */
	uint64_t queued_us; /* when it was queued, of the last way into the NIC */
	uint64_t base; /* packets of that end that came without the mark, while proven or suspect */
	uint64_t marked;  /* that came with it, besides those after `base` */
	uint64_t checked; /* packets of that end at the last look, and when that was */
	uint64_t checked_us;
	uint64_t nic_base;   /* marked packets when the rule was asked for */
	uint64_t asked;	     /* marked packets of this rule when its counter was asked for */
	uint64_t nic_due_us; /* when it is to be asked for next; UINT64_MAX: never */
	struct counter nic;  /* the NIC's own counter */
	uint32_t unmarked;   /* packets in a row that should have had the mark */
	uint32_t retry_ms;   /* the NIC is not asked before, where the side has a back-off */
	uint8_t state;	     /* enum offload_state: as in the record, and when that has gone */
	uint8_t reason;
	uint8_t from; /* the key's end that the packets come from */
	bool awaited; /* an answer of the installer: insert or remove */
	bool count_awaited;
	bool remove; /* to be taken out as soon as nothing is awaited */
};

/* The rest of a slot. */
struct slot {
	struct flow_key key; /* also when the record has gone */
	uint64_t reported;   /* marked packets that active reports have told */
	struct slot_side side[OFFLOAD_SIDES];
	uint32_t position; /* of the record; FLOW_NONE: it has gone */
	uint32_t next;	   /* of a free one: the next free one; else the agent's */
	/* slots.c's own */
	uint32_t generation; /* of its mark, or of its last one: slots_mark() */
	uint64_t back_us;    /* when it was given back, */
	uint64_t back_turn;  /* and in which turn */
};

struct slots {
	struct slot_name *names;
	struct slot *slots;
	uint32_t n;	      /* of this worker */
	uint32_t first;	      /* number of the first */
	unsigned number_bits; /* of the wire */
	uint32_t generations; /* 1 .. generations - 1 are in use */
	uint32_t n_used, n_draining;
	/* slots.c's own */
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
	uint32_t mark_max; /* the smaller of the wire's two ports */
	uint64_t random;   /* unlike from run to run */
};

/*
 * How many a wire has of `n` wanted: see SLOT_GENERATIONS. A multiple of n_workers: one for each at least,
 * or none when a mark has not the room for that.
 */
uint32_t slots_fit(const struct slots_config *config);

/* 0, -EINVAL or -ENOMEM; slots_fini() on a zeroed or failed one does nothing. */
int slots_init(struct slots *slots, const struct slots_config *config);
void slots_fini(struct slots *slots);
size_t slots_memory(const struct slots *slots);

/* Time passes: slots that have drained can be taken. Every turn. */
void slots_turn(struct slots *slots, uint64_t now_us);

/* A slot for the flow at `position`, zeroed but for that and its key: its number, or SLOT_NONE. */
uint32_t slots_take(struct slots *slots, const struct flow_key *key, uint32_t position);
/* Its mark names nobody any more. */
void slots_sever(struct slots *slots, uint32_t slot);
void slots_give_back(struct slots *slots, uint32_t slot);

static inline struct slot *slots_slot(const struct slots *slots, uint32_t slot)
{
	return &slots->slots[slot];
}

/* The mark that a slot was given last, also when it names nobody any more. */
static inline uint32_t slots_mark(const struct slots *slots, uint32_t slot)
{
	return slots->slots[slot].generation << slots->number_bits | (slots->first + slot);
}

/* Whether packets may have that mark from this run's rules: from slots_take() until it has drained. */
bool slots_is_given(const struct slots *slots, uint32_t mark);

/* The number that rules are kept under by the provider (their place), the same for all of the wire. */
static inline uint32_t slots_place(const struct slots *slots, uint32_t slot)
{
	return slots->first + slot;
}

/* The slot of this worker that a mark would name; SLOT_NONE: it is not one of this worker's. */
static inline uint32_t slots_of_mark(const struct slots *slots, uint32_t mark)
{
	uint32_t slot = (mark & ((UINT32_C(1) << slots->number_bits) - 1)) - slots->first;

	return slot < slots->n ? slot : SLOT_NONE;
}

/* The record that a mark names, if number and generation are right; else FLOW_NONE. To be verified. */
static inline uint32_t slots_position(const struct slots *slots, uint32_t mark)
{
	uint32_t slot = slots_of_mark(slots, mark);

	if (slot == SLOT_NONE || slots->names[slot].mark != mark)
		return FLOW_NONE;
	return slots->names[slot].target >> SLOT_FORM_BITS;
}

static inline void slots_set_from(struct slots *slots, uint32_t slot, unsigned side, unsigned from)
{
	uint32_t bit = SLOT_FROM(side);
	uint32_t target = slots->names[slot].target;

	slots->names[slot].target = from != 0 ? target | bit : target & ~bit;
}
