/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A receive queue's round: the places that its worker goes through again and again, and the accounts of
 * those that left because the NIC keeps their packets. Everything is under the queue's lock; `rounds`
 * may be read without.
 *
 * [0, at) was served in the round that is open, [at, n) was not. Places leave and come back without any
 * being served twice or left out in a round: one that leaves unserved counts for the NIC in this round,
 * one that was served from the next round on.
 *
 * The round passes for those that left as it does for the host: of n places at, and those that have come and
 * wait to be served. When somebody looks at a stream that left (its rule is read, or it comes back), as
 * large a part of its places as has passed since counts for its exit at once, as served in this round; what is
 * between two numbers is by chance. The others count at the end of the round, or are served when the
 * stream is back. Were all of them served then, its packets of a whole round would come in what is left of
 * it: a burst, at a pace, whenever a rule goes.
 */

#include <stdbool.h>
#include <stdint.h>

#define SIM_MAX_EXITS 10 /* dropped, and a port of the NIC each */
#define SIM_EXIT_DROP 0
#define SIM_EXIT_ISOLATED 1 /* dropped since no rule wants it */

/* A place of a round. */
struct sim_place {
	uint32_t stream;
	uint32_t rss; /* the packet's RSS hash */
};

/*
 * Flag and mark are the bits that an mbuf has for them (RTE_MBUF_F_RX_FDIR, .._FDIR_ID), and who is marked is flagged,
 * too. All three are so far apart that a burst's flags can be added up (packets/receive.c).
 */
enum sim_entry_flag {
	SIM_ENTRY_PROGRAM =
		1 << 0, /* edits, meter, sample: the slow way, with the stream's chain */
	SIM_ENTRY_FLAG = 1 << 2,
	SIM_ENTRY_MARK = 1 << 13,
	SIM_ENTRY_MATCHED = 1 << 24, /* count it */
};

/* What the NIC does with a stream; 16 bytes, four to a line. */
struct sim_entry {
	uint32_t mark;
	uint32_t flags;
	uint64_t hits; /* while SIM_ENTRY_MATCHED, since the stream came into this round */
};

/* Places whose packets leave the same way. */
struct sim_exit {
	uint32_t n, n_next;	    /* counted at the end of each round; from the next round on */
	uint64_t bytes, bytes_next; /* the lengths of their packets in all */
};

struct sim_round {
	struct sim_place *places;
	struct sim_entry
		*entries; /* of the same places, by position; NULL: they are not kept here */
	uint32_t *ids;	  /* likewise: what control calls these places */
	uint32_t n;
	uint32_t at;
	uint64_t rounds; /* whole ones; written with sim_round_end(), read by anyone */
	uint64_t settled;
	uint32_t drawn; /* so far, for positions by chance */
	struct sim_exit exits[SIM_MAX_EXITS];
	uint64_t n_gone; /* places of all exits */
};

/* Memory for `n` places, and their entries if asked for; it is taken as it is used. 0 or -ENOMEM. */
int sim_round_create(struct sim_round *round, uint32_t n, bool entries);
void sim_round_destroy(struct sim_round *round, uint32_t n);

static inline void sim_round_end(struct sim_round *round)
{
	round->at = 0;
	__atomic_store_n(&round->rounds, round->rounds + 1, __ATOMIC_RELAXED);
}

/* How many places are still to be served until `passes` rounds are over; without end with 0 of them. */
static inline uint64_t sim_round_left(const struct sim_round *round, uint64_t passes)
{
	uint64_t left;

	if (passes == 0)
		return UINT64_MAX;
	if (round->rounds >= passes)
		return 0;
	if (__builtin_mul_overflow(passes - round->rounds, (uint64_t)round->n, &left))
		return UINT64_MAX;
	return left - round->at;
}

/*
 * Takes out the place at `position`; *moved tells which ids stand elsewhere now (at most two, with their
 * positions). Returns whether it had been served. sim_round_close() must follow when all are out.
 */
struct sim_moved {
	unsigned n;
	uint32_t id[2], position[2];
};
bool sim_round_take(struct sim_round *round, uint32_t position, struct sim_moved *moved);

/* A place at the end, before the first round has begun, its entry all 0; returns its position. */
uint32_t sim_round_add(struct sim_round *round, struct sim_place place, uint32_t id);

/*
 * Puts a place in again, as one that was served in this round or not, its entry all 0; returns its position. That is
 * anywhere among those: a stream may have many places, and in a row they would be a burst each round.
 */
uint32_t sim_round_put_back(struct sim_round *round, struct sim_place place, uint32_t id,
	bool served, struct sim_moved *moved);

/*
 * How much of the open round has passed, in 65,536ths, when so many places have come and wait. Of one
 * without places nothing has: time turns it whole.
 */
static inline uint16_t sim_round_passed(const struct sim_round *round, double waiting)
{
	const double most = UINT16_MAX;
	double passed;

	if (round->n == 0)
		return 0;
	passed = ((double)round->at + waiting) / (double)round->n * (most + 1);
	return (uint16_t)(passed < most ? passed : most);
}

/*
 * Of `n` places that left by that exit, and count for it in this round, those that have passed from the
 * moment *since of it to `now` (sim_round_passed()); *since is `now` then. The exit has them from the next round
 * on; in this one the caller counts them, and says so when he puts them back. The accounts have been
 * settled.
 */
uint32_t sim_round_pass(struct sim_round *round, struct sim_exit *way, uint32_t n, uint32_t length,
	uint16_t now, uint16_t *since);

/* Ends the round when the places that were taken out were the last that had to be served. */
void sim_round_close(struct sim_round *round);

/*
 * What the exits have counted since the last time: packets and bytes by exit, added to `packets` and
 * `bytes`. Must be called before the exits change.
 */
void sim_round_settle(
	struct sim_round *round, uint64_t packets[SIM_MAX_EXITS], uint64_t bytes[SIM_MAX_EXITS]);
