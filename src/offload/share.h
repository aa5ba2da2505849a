/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How workers share a port's rules. A worker whose flow is busier than another's that has a rule says so, and waits; the
 * one with the least busy flow of all lets that go, and the place is left to the worker that waits.
 *
 * Every worker writes its own part once a turn and reads the others'. What is read may be a turn old: then a place is free
 * for a moment, one more is asked for in vain, or two workers take the same place, and the NIC refuses one.
 *
 * How many rules the port takes holds for all: workers that knew different numbers would make places for one another
 * without end.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#define SHARE_MAX_WORKERS 16
#define SHARE_NOBODY UINT32_MAX

/* Rates are those of offload/rate.h. */
struct share_worker {
	_Atomic uint32_t rules;	  /* that it has, has asked for, or is about to lose */
	_Atomic uint32_t leaving; /* of these, those that are on their way out */
	_Atomic uint32_t
		bar; /* the least rate that takes a place of its; SHARE_NOBODY: none does */
	_Atomic uint32_t
		waits; /* rate of its flow that waits for a place of another's; 0: none does */
} __rte_cache_aligned;

struct share {
	struct share_worker worker[SHARE_MAX_WORKERS];
	_Atomic uint32_t
		room; /* rules that the port is known to take, of all workers; 0: not known */
};

/* What a worker tells. */
struct share_told {
	uint32_t rules, leaving, bar, waits;
};

/* Nobody has anything. `room` as above. */
void share_init(struct share *share, uint32_t room);

/* Its worker alone. Lines that do not change are not written. */
void share_tell(struct share *share, unsigned worker, const struct share_told *told);

/* The others' rules. */
uint32_t share_rules(const struct share *share, unsigned n_workers, unsigned worker);

/* The least bar of the others; SHARE_NOBODY: none gives way. */
uint32_t share_bar(const struct share *share, unsigned n_workers, unsigned worker);

/* Places that are left to others whose flows wait, and go before whoever waits here, if anyone does. */
uint32_t share_before(const struct share *share, unsigned n_workers, unsigned worker);

/* Has it told that such a flow waits, or a less busy one, and does a place of another's become free? */
bool share_is_served(const struct share *share, unsigned n_workers, unsigned worker, uint32_t rate);

/*
 * The rate that this worker, who has told its bar, is to make a place for now; 0: none. It is, when another waits with
 * such a rate, all have `room` rules, nobody is on the way out, and no other's bar is lower.
 */
uint32_t share_asks(const struct share *share, unsigned n_workers, unsigned worker, uint32_t room);
