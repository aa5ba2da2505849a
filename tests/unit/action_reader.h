/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A worker, as what it reads by RCU needs one: registered, online, and quiescent between its looks. */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_rcu_qsbr.h>

struct action_reader {
	struct rte_rcu_qsbr *qsbr;
	void (*look)(void *context); /* once between two quiescent states */
	void *context;
	pthread_t thread;
	atomic_bool stop;
	atomic_ulong looks;
};

static inline struct rte_rcu_qsbr *action_qsbr_create(unsigned n_threads)
{
	size_t size = RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(n_threads), RTE_CACHE_LINE_SIZE);
	struct rte_rcu_qsbr *qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, size);

	assert(qsbr != NULL);
	assert(rte_rcu_qsbr_init(qsbr, n_threads) == 0);
	return qsbr;
}

static inline void *action_reader_run(void *argument)
{
	struct action_reader *reader = argument;

	while (!atomic_load(&reader->stop)) {
		reader->look(reader->context);
		rte_rcu_qsbr_quiescent(reader->qsbr, 0);
		atomic_fetch_add(&reader->looks, 1);
	}
	rte_rcu_qsbr_thread_offline(reader->qsbr, 0);
	return NULL;
}

/* It is online before this returns. */
static inline void action_reader_start(struct action_reader *reader)
{
	assert(rte_rcu_qsbr_thread_register(reader->qsbr, 0) == 0);
	rte_rcu_qsbr_thread_online(reader->qsbr, 0);
	assert(pthread_create(&reader->thread, NULL, action_reader_run, reader) == 0);
}

static inline void action_reader_stop(struct action_reader *reader)
{
	atomic_store(&reader->stop, true);
	pthread_join(reader->thread, NULL);
	rte_rcu_qsbr_thread_unregister(reader->qsbr, 0);
}
