/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A worker on a thread of its own, fed through an inbox by one other thread that parses.
 *
 * When its inbox is empty the thread looks again, then yields, then sleeps, longer and longer up to
 * 250 us. The feeding thread waits the same way while the inbox is full: packets handed over are
 * never lost here.
 *
 * Life-cycle: inbox_worker_start(); feed with inbox_worker_feed(); wait for a run's end with
 * inbox_worker_wait_run(); inbox_worker_stop() when nothing is fed any more. All four belong to the
 * feeding thread. The worker's counters may be read after wait_run or stop.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/mailbox.h"
#include "dataplane/lcore.h"

/* Packets and notes that an inbox holds. */
#define INBOX_SIZE 1024

struct inbox_worker {
	struct lcore lcore; /* set by the caller before the start */
	struct mailbox *inbox;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint runs_ended; /* by the worker, after everything else of the run */
	atomic_uint done;	/* by the worker: packets and notes; their number may wrap */
	unsigned fed;
};

/* Starts the thread. Returns 0 or a negative errno. */
int inbox_worker_start(struct inbox_worker *inbox_worker);

/* Hands over `n` packets or notes, all of them. */
void inbox_worker_feed(struct inbox_worker *inbox_worker, struct rte_mbuf **packets, unsigned n);

/* Waits until the worker has done all that it was fed. */
void inbox_worker_wait(const struct inbox_worker *inbox_worker);

/* Waits until the worker has ended `runs` runs since its start. */
void inbox_worker_wait_run(const struct inbox_worker *inbox_worker, unsigned runs);

/* Lets the worker finish what is in its inbox and ends the thread. */
void inbox_worker_stop(struct inbox_worker *inbox_worker);
