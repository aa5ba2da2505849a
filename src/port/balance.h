/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Whether a worker has far more than its share. Each worker publishes once a second what it has had, new flows and packets,
 * and looks at what all of them had since it looked last: it is crowded when what it had is more than half-way from an
 * equal share to all of it, and all of it was enough to tell that from chance, twice in a row: looks are not at one time.
 *
 * A struct balance belongs to its worker's thread; struct balance_board is all workers', each of whom writes its own
 * place.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BALANCE_MAX_WORKERS 16
#define BALANCE_LOOK_US UINT64_C(1000000)

enum balance_of {
	BALANCE_FLOWS,	 /* new ones */
	BALANCE_PACKETS, /* of flows */
	BALANCE_N,
};

/* In a second, of all workers: fewer say nothing. */
#define BALANCE_LEAST_FLOWS 1000
#define BALANCE_LEAST_PACKETS 100000
/* It is told again after so many seconds without it. */
#define BALANCE_QUIET_S 60

/* Since the start, by worker. Zeroed at the start. */
struct balance_board {
	_Atomic uint64_t had[BALANCE_N][BALANCE_MAX_WORKERS];
};

/* Zeroed at the start. */
struct balance {
	uint64_t seen[BALANCE_N][BALANCE_MAX_WORKERS]; /* on the board, at the last look */
	uint64_t crowded_s[BALANCE_N];		       /* looks at which it was crowded */
	uint32_t quiet_s[BALANCE_N];		       /* looks since then */
	bool was[BALANCE_N];			       /* more than that at the last look */
};

/*
 * A look, once in BALANCE_LOOK_US: `had` are the worker's own numbers. Returns a bit for each of which it is to be
 * told that the worker is crowded.
 */
unsigned balance_look(struct balance *balance, struct balance_board *board, unsigned worker,
	unsigned n_workers, const uint64_t had[BALANCE_N]);
