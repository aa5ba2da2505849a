/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A port's health: the breaker. Workers tell what they saw of their flows in this port; the installer
 * tells what became of its calls, and decides:
 *
 *	closed: rules are asked for
 *	  | too much went wrong within a second: see health_turn()
 *	open: no rules; workers take theirs back. After a back-off (1 s, doubled each time up to a minute)
 *	  |	the device is restarted first, if that is allowed and its calls fail
 *	trying: each worker may have two canary flows in the NIC
 *	  +-- one was proven and stayed so for a second, and none failed: closed
 *	  +-- one failed: open
 *
 * Workers' numbers have one writer each; the state is the installer's alone. Nothing waits.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "offload/reason.h"

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
	_Atomic uint32_t in_hw;	 /* flows that are in_hw now */
	_Atomic uint8_t why;	 /* the reason of the last failure */
};

struct health_config {
	uint32_t least_failures; /* below that many a second the breaker stays closed; 0: 8 */
	uint32_t back_off_ms;	 /* first one; 0: 1000 */
};

struct health {
	struct health_config config;
	_Atomic uint8_t state; /* enum health_state */
	_Atomic uint8_t why;   /* enum offload_reason: why it is or was open */
	_Atomic uint64_t since_us;
	_Atomic uint64_t retry_us; /* when it is tried again; 0: not open */
	_Atomic uint32_t opened;   /* times */
	struct health_worker worker[HEALTH_MAX_WORKERS];
	/* the installer's own */
	uint64_t window_us;
	uint64_t failed_then, proven_then;
	uint64_t calls_failed, calls_failed_then; /* with -EIO or without an answer */
	uint64_t calls_done, calls_done_then;
	uint32_t back_off_ms;
};

/* What health_turn() decided. */
enum health_decision {
	HEALTH_STAYS,
	HEALTH_OPENS,
	HEALTH_TRIES,
	HEALTH_CLOSES,
};

void health_init(struct health *health, const struct health_config *config);

/* The installer: a call ended, well or not. */
void health_call(struct health *health, bool well);

/*
 * The installer, now and then: opens when within a second the failures of flows are `least_failures` or more
 * and at least a quarter of the flows in the NIC before, or when 16 calls in a row failed (of less than 16
 * calls: none of a second did well).
 */
enum health_decision health_turn(struct health *health, uint64_t now_us);

/* Any thread. */
static inline enum health_state health_state(const struct health *health)
{
	return (enum health_state)atomic_load_explicit(&health->state, memory_order_relaxed);
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
		memory_order_relaxed);
}
