/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A port's health: the breaker. Workers tell what they saw of their flows in this port; the installer
 * tells what became of its calls, and decides:
 *
 *	closed: rules are asked for
 *	  | too much went wrong within a second, or a rule works on that is to be gone: see health_turn()
 *	open: no rules; workers take theirs back. After a back-off (1 s, doubled each time up to a minute;
 *	  |	from the beginning when it has been closed for longer than the last one)
 *	  |	the device is restarted first, if that is allowed and its calls fail
 *	trying: each worker may have two canary flows in the NIC
 *	  +-- one was proven and stayed so for a second, and none failed: closed
 *	  +-- one failed, or a rule works on that is to be gone: open
 *
 * A kind of flow whose rules were accepted with whatever actions, and never marked one packet, is out: that would
 * open the breaker for all others again and again. Each worker may have two flows of it in the NIC at each of the
 * installer's tries; that they fall out as OFFLOAD_UNSEEN is not held against the port.
 *
 * Workers' numbers have one writer each; the state is the installer's alone. Nothing waits.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "offload/reason.h"
#include "rteflow/provider.h"

#define HEALTH_MAX_WORKERS 16
#define HEALTH_CANARIES 2

enum health_state {
	HEALTH_CLOSED,
	HEALTH_OPEN,
	HEALTH_TRYING,
	HEALTH_N_STATES,
};

/* What a worker counts of a port, since the start. */
struct health_worker {
	_Atomic uint64_t proven; /* rules whose first marked packet came */
	_Atomic uint64_t failed; /* flows that the audit took out */
	_Atomic uint64_t
		stale; /* times that a rule was seen to work on which the NIC said is gone */
	_Atomic uint32_t in_hw; /* flows that are in_hw now */
	_Atomic uint8_t why;	/* the reason of the last failure */
	/* by kind of flow, for the choice of their rules' actions: proven, and taken out as OFFLOAD_UNSEEN */
	_Atomic uint32_t proven_of[PROVIDER_N_KINDS], unseen_of[PROVIDER_N_KINDS];
};

struct health_config {
	uint32_t least_failures; /* below that many a second the breaker stays closed; 0: 8 */
	uint32_t back_off_ms;	 /* first one; 0: 1000 */
};

/* Of all workers, and of the calls. */
struct health_sums {
	uint64_t proven, failed, stale;
	/* failed: with -EIO, or without an answer; without deletes */
	uint64_t calls_done, calls_failed;
	uint64_t us;
	uint32_t in_hw; /* the most of the time until the next */
};

/* A second is looked at in so many parts. */
#define HEALTH_PARTS 8

struct health {
	struct health_config config;
	_Atomic uint8_t state; /* enum health_state */
	_Atomic uint8_t why;   /* enum offload_reason, or a refusal: why it is or was open */
	_Atomic uint64_t since_us;
	_Atomic uint64_t retry_us; /* when it is tried again; 0: not open */
	_Atomic uint32_t opened;   /* times */
	_Atomic uint32_t
		out[PROVIDER_N_KINDS]; /* number of the try, of kinds that are out; else 0 */
	struct health_worker worker[HEALTH_MAX_WORKERS];
	/* the installer's own */
	struct health_sums now, last;	       /* last: at the last look */
	struct health_sums part[HEALTH_PARTS]; /* as the last parts of a second began */
	unsigned n_parts;		       /* since the start; the last one is under way */
	uint64_t seen[HEALTH_MAX_WORKERS];     /* of each worker's failures */
	struct health_sums then;	       /* when the state began */
	uint64_t proven_us;		       /* trying: since when one is proven; 0: none is */
	uint32_t row;	    /* calls that failed since the last one that did not, */
	uint32_t guesses;   /* and of these, that may have: health_call_guessed() */
	uint32_t n_guessed; /* tries after nothing but such, since a call did well */
	uint32_t
		stuck; /* deletes that failed since then, or since the state began, and when the first did */
	uint64_t stuck_us;
	uint32_t back_off_ms;
	uint8_t flow_why, call_why; /* the last failure's */
	bool calls_fail;
	bool has_stale;
};

/* What health_turn() decided. */
enum health_decision {
	HEALTH_STAYS,
	HEALTH_OPENS,
	HEALTH_TRIES,
	HEALTH_CLOSES,
};

void health_init(struct health *health, const struct health_config *config);

/* The installer: a call ended, well or not; then `why` is the reason. */
void health_call(struct health *health, bool well, uint8_t why);
/*
 * An insert failed, the NIC does not say why, and no rule of ours is in it: it is dead, or full of others' rules.
 * A call that failed; but a port of which nothing else is known is restarted more and more seldom.
 */
void health_call_guessed(struct health *health, uint8_t why);
/*
 * Of deletes that fail this instead; `again`: that of the same rule did before. What could not be taken out costs a
 * slot, no packet: each rule counts once, among the 16 in a row only, and no canary fails by it. But where for two
 * seconds deletes fail, four or more, no call does well, and no flow is in the NIC any more, it is the port.
 */
void health_delete_failed(struct health *health, uint8_t why, bool again);

/*
 * The installer, now and then: opens when within a second the failures of flows are `least_failures` or more
 * and at least a quarter of the flows in the NIC before, or when 16 calls in a row failed (of 3 to 15 calls that
 * are no deletes: none of a second did well), or when a rule works on that the NIC said is gone (offload/stale.h).
 */
enum health_decision health_turn(struct health *health, uint64_t now_us);

/*
 * The installer: when it was tried last, calls had failed, and none did well since it was opened. Where it is a
 * guess that they had: the first such time, the second, the fourth, the eighth, and so on, until a call does well.
 */
bool health_calls_fail(const struct health *health);
/*
 * The installer, when it is tried: rules worked on that the NIC said are gone, since it was closed, so that those of
 * before are to be taken out by other means.
 */
bool health_has_stale(const struct health *health);
/* The installer, when it is being tried: they were, now. What has their marks may be on its way. */
void health_flushed(struct health *health, uint64_t now_us);
/* The installer, when it is open or trying: what had to be done first did not succeed. Opens it anew. */
void health_reopen(struct health *health, uint64_t now_us);

/* Any thread. */
static inline enum health_state health_state(const struct health *health)
{
	return (enum health_state)atomic_load_explicit(&health->state, memory_order_relaxed);
}

/* Any thread. Number of the try, where the kind is out; 0: it is not. */
static inline uint32_t health_kind_out(const struct health *health, enum provider_kind kind)
{
	return atomic_load_explicit(&health->out[kind], memory_order_relaxed);
}

/* "closed", "open", "trying". */
const char *health_state_name(enum health_state state);

/* Its worker alone. */
static inline void health_proven(struct health_worker *worker)
{
	atomic_store_explicit(&worker->proven,
		atomic_load_explicit(&worker->proven, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static inline void health_failed(struct health_worker *worker, uint8_t why)
{
	atomic_store_explicit(&worker->why, why, memory_order_relaxed);
	atomic_store_explicit(&worker->failed,
		atomic_load_explicit(&worker->failed, memory_order_relaxed) + 1,
		memory_order_release);
}

static inline void health_stale(struct health_worker *worker)
{
	atomic_store_explicit(&worker->stale,
		atomic_load_explicit(&worker->stale, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static inline void health_add(_Atomic uint32_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Beside the two above; the failure's before it, so that who sees that sees this. */
static inline void health_kind_proven(struct health_worker *worker, enum provider_kind kind)
{
	health_add(&worker->proven_of[kind]);
}

static inline void health_kind_unseen(struct health_worker *worker, enum provider_kind kind)
{
	health_add(&worker->unseen_of[kind]);
}
