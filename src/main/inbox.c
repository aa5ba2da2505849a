/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/inbox.h"

#include <errno.h>
#include <signal.h>

#include <rte_lcore.h>

#include "base/idle.h"
#include "dataplane/pipeline.h"

static void *run_inbox(void *argument)
{
	struct inbox_worker *self = argument;
	struct rte_mbuf *packets[LCORE_BURST];
	unsigned idle = 0;

	/* A thread that DPDK knows has a cache of mbufs of its own; without, it only is slower. */
	int registered = rte_thread_register();

	for (;;) {
		/* asked before the last look, so that what was fed before the stop is found */
		bool stop = atomic_load_explicit(&self->stop, memory_order_acquire);
		unsigned n = mailbox_pop(self->inbox, packets, LCORE_BURST);

		if (n != 0) {
			pipeline_resume(&self->lcore, packets, n);
			atomic_store_explicit(&self->runs_ended, self->lcore.worker.runs_ended,
				memory_order_release);
			atomic_fetch_add_explicit(&self->done, n, memory_order_release);
			idle = 0;
		} else if (stop) {
			break;
		} else {
			idle_wait(&idle);
		}
	}
	if (registered == 0)
		rte_thread_unregister();
	return NULL;
}

int inbox_worker_start(struct inbox_worker *inbox_worker)
{
	inbox_worker->inbox = mailbox_create("inbox", sizeof(struct rte_mbuf *), INBOX_SIZE);
	if (inbox_worker->inbox == NULL)
		return -errno;
	sigset_t all, before;

	/* signals are the main thread's: this one starts with all of them blocked */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int ret = pthread_create(&inbox_worker->thread, NULL, run_inbox, inbox_worker);

	pthread_sigmask(SIG_SETMASK, &before, NULL);

	if (ret != 0) {
		mailbox_destroy(inbox_worker->inbox);
		inbox_worker->inbox = NULL;
	} else {
		pthread_setname_np(inbox_worker->thread, "worker");
	}
	return -ret;
}

void inbox_worker_feed(struct inbox_worker *inbox_worker, struct rte_mbuf **packets, unsigned n)
{
	unsigned idle = 0;
	unsigned fed = 0;

	inbox_worker->fed += n;
	while ((fed += mailbox_push(inbox_worker->inbox, &packets[fed], n - fed)) < n)
		idle_wait(&idle);
}

void inbox_worker_wait(const struct inbox_worker *inbox_worker)
{
	unsigned idle = 0;

	while (atomic_load_explicit(&inbox_worker->done, memory_order_acquire) != inbox_worker->fed)
		idle_wait(&idle);
}

void inbox_worker_wait_run(const struct inbox_worker *inbox_worker, unsigned runs)
{
	unsigned idle = 0;

	while (atomic_load_explicit(&inbox_worker->runs_ended, memory_order_acquire) < runs)
		idle_wait(&idle);
}

void inbox_worker_stop(struct inbox_worker *inbox_worker)
{
	if (inbox_worker->inbox == NULL)
		return;
	atomic_store_explicit(&inbox_worker->stop, true, memory_order_release);
	pthread_join(inbox_worker->thread, NULL);
	mailbox_destroy(inbox_worker->inbox);
	inbox_worker->inbox = NULL;
}
