/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/firmware.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "drivers/flowsim/port/port.h"

#define NS_IN_S UINT64_C(1000000000)
#define FOREVER UINT64_MAX
/* What is due so soon is waited for awake: a sleep is not as short. */
#define AWAKE_NS 20000
/* After work it stays awake so long for more: a queue's next batch comes within microseconds. */
#define LINGER_NS 30000
/* When work does not end: how often others get the port's lock for certain. */
#define GIVE_WAY_NS 1000000
#define TURN_NS 2000000

struct sim_firmware {
	struct sim_port *port;
	const struct sim_firmware_jobs *jobs;
	pthread_t thread;
	pthread_mutex_t lock; /* the last of all */
	pthread_cond_t wake;
	bool woken, stop;
	bool asleep; /* seq_cst: see sim_firmware_nudge() */
	/* its own */
	uint64_t worked_at; /* when there was something to do for queues */
	uint64_t rested_at; /* when the port's lock was left alone */
	uint64_t look_at;   /* ages */
	uint64_t turn_at;   /* empty rounds */
	uint64_t turned_at; /* 0: there was none */
};

uint64_t sim_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_IN_S + (uint64_t)now.tv_nsec;
}

uint64_t sim_now_ms(void)
{
	return sim_now_ns() / 1000000;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_IN_S), .tv_nsec = (long)(ns % NS_IN_S)};
}

static void sleep_ns(uint64_t ns)
{
	struct timespec until = timespec_of(sim_now_ns() + ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
	}
}

void sim_firmware_wait(const struct sim_port *port, uint64_t ns)
{
	if (ns == 0)
		return;
	if (!port->args.profile.spin) {
		/* the kernel lets others sleep 50 us longer than they ask, more than some NICs take */
		int slack = prctl(PR_GET_TIMERSLACK);

		prctl(PR_SET_TIMERSLACK, 1UL);
		sleep_ns(ns);
		if (slack > 0)
			prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
		return;
	}
	uint64_t from = rte_rdtsc();
	uint64_t ticks = (uint64_t)((unsigned __int128)ns * rte_get_tsc_hz() / NS_IN_S);

	while (rte_rdtsc() - from < ticks)
		rte_pause();
}

void sim_firmware_wake(struct sim_port *port)
{
	struct sim_firmware *firmware = port->firmware;

	if (firmware == NULL)
		return;
	pthread_mutex_lock(&firmware->lock);
	firmware->woken = true;
	pthread_cond_signal(&firmware->wake);
	pthread_mutex_unlock(&firmware->lock);
}

void sim_firmware_nudge(struct sim_port *port)
{
	struct sim_firmware *firmware = port->firmware;

	if (firmware == NULL || !__atomic_load_n(&firmware->asleep, __ATOMIC_SEQ_CST))
		return;
	/* that it looks again before it sleeps, the word it looks at is there by now */
	pthread_mutex_lock(&firmware->lock);
	pthread_cond_signal(&firmware->wake);
	pthread_mutex_unlock(&firmware->lock);
}

/* Takes what others have called out, if they did. */
static bool firmware_was_woken(struct sim_firmware *firmware, bool *stop)
{
	pthread_mutex_lock(&firmware->lock);
	bool woken = firmware->woken;

	firmware->woken = false;
	*stop = firmware->stop;
	pthread_mutex_unlock(&firmware->lock);
	return woken;
}

/* Empty rounds go on at the source's rate; a round that has just become empty begins now. */
static void firmware_turn_rounds(struct sim_firmware *firmware)
{
	struct sim_port *port = firmware->port;
	bool any = false;

	pthread_mutex_lock(&port->lock);
	/* a rule that came while the lock was waited for has emptied its rounds by now, not before */
	uint64_t now = sim_now_ns();
	uint64_t passed = firmware->turned_at != 0 ? now - firmware->turned_at : 0;

	if (port->started && port->resolver != NULL)
		any = firmware->jobs->turn(port->resolver, passed);
	pthread_mutex_unlock(&port->lock);
	firmware->turned_at = any ? now : 0;
	firmware->turn_at = any ? now + TURN_NS : FOREVER;
}

/* Does what is due, and returns when the next thing is. */
static uint64_t firmware_work(struct sim_firmware *firmware, bool woken)
{
	uint64_t now = sim_now_ns();
	bool worked;
	uint64_t next = firmware->jobs->work(firmware->port, now, &worked);

	if (worked) {
		/* there may be the rule that empties a round, or the first that ages */
		firmware->worked_at = now;
		firmware->look_at = RTE_MIN(firmware->look_at, now + TURN_NS);
		firmware->turn_at = RTE_MIN(firmware->turn_at, now + TURN_NS);
	}
	if (now >= firmware->look_at || woken) {
		uint64_t after = firmware->jobs->look(firmware->port);

		firmware->look_at = after == FOREVER ? FOREVER : now + after;
	}
	if (now >= firmware->turn_at || (woken && firmware->turned_at == 0))
		firmware_turn_rounds(firmware);
	return RTE_MIN(next, RTE_MIN(firmware->look_at, firmware->turn_at));
}

static void firmware_sleep(struct sim_firmware *firmware, uint64_t until)
{
	pthread_mutex_lock(&firmware->lock);
	__atomic_store_n(&firmware->asleep, true, __ATOMIC_SEQ_CST);
	if (!firmware->woken && !firmware->stop && !firmware->jobs->waits(firmware->port)) {
		if (until == FOREVER) {
			pthread_cond_wait(&firmware->wake, &firmware->lock);
		} else {
			struct timespec at = timespec_of(until);

			pthread_cond_timedwait(&firmware->wake, &firmware->lock, &at);
		}
	}
	__atomic_store_n(&firmware->asleep, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&firmware->lock);
}

/* Until the next thing is due, or somebody brings something. */
static void firmware_rest(struct sim_firmware *firmware, uint64_t next)
{
	uint64_t now = sim_now_ns();

	if (next <= now) {
		if (now - firmware->rested_at > GIVE_WAY_NS) {
			sleep_ns(1);
			firmware->rested_at = sim_now_ns();
		}
		return;
	}
	uint64_t awake = next - now < AWAKE_NS ? next : firmware->worked_at + LINGER_NS;

	for (; now < awake; now = sim_now_ns()) {
		if (firmware->jobs->waits(firmware->port))
			return;
		rte_pause();
	}
	if (now < next) {
		firmware_sleep(firmware, next);
		firmware->rested_at = sim_now_ns();
	}
}

/*
 * Threads begin on the processor of the one that made them, which is an lcore and may be busy for ever.
 * The NIC has a processor of its own: any but those of workers or, where these have all, any.
 */
void sim_firmware_settle(void)
{
	cpu_set_t all, idle;
	unsigned lcore;

	memset(&all, 0xff, sizeof(all));
	idle = all;
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		rte_cpuset_t set = rte_lcore_cpuset(lcore);

		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &set))
				CPU_CLR(i, &idle);
	}
	/* where neither is allowed it stays where it is */
	if (sched_setaffinity(0, sizeof(idle), &idle) != 0)
		(void)sched_setaffinity(0, sizeof(all), &all);
}

static void *firmware_run(void *arg)
{
	struct sim_firmware *firmware = arg;
	bool stop = false;

	sim_firmware_settle();
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	for (;;) {
		bool woken = firmware_was_woken(firmware, &stop);

		if (stop)
			return NULL;
		firmware_rest(firmware, firmware_work(firmware, woken));
	}
}

static int firmware_thread(struct sim_firmware *firmware)
{
	char name[16];
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int ret = pthread_create(&firmware->thread, NULL, firmware_run, firmware);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret != 0)
		return -ret;
	snprintf(name, sizeof(name), "flowsim-%u", firmware->port->id);
	pthread_setname_np(firmware->thread, name);
	return 0;
}

int sim_firmware_start(struct sim_port *port, const struct sim_firmware_jobs *jobs)
{
	struct sim_firmware *firmware = calloc(1, sizeof(*firmware));
	pthread_condattr_t attr;

	if (firmware == NULL)
		return -ENOMEM;
	firmware->port = port;
	firmware->jobs = jobs;
	firmware->look_at = firmware->turn_at = FOREVER;
	firmware->woken = true; /* ages and rounds may be there already */
	pthread_mutex_init(&firmware->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&firmware->wake, &attr);
	pthread_condattr_destroy(&attr);
	int ret = firmware_thread(firmware);

	if (ret < 0) {
		pthread_cond_destroy(&firmware->wake);
		pthread_mutex_destroy(&firmware->lock);
		free(firmware);
		return ret;
	}
	port->firmware = firmware;
	return 0;
}

void sim_firmware_stop(struct sim_port *port)
{
	struct sim_firmware *firmware = port->firmware;

	if (firmware == NULL)
		return;
	pthread_mutex_lock(&firmware->lock);
	firmware->stop = true;
	pthread_cond_signal(&firmware->wake);
	pthread_mutex_unlock(&firmware->lock);
	pthread_join(firmware->thread, NULL);
	port->firmware = NULL;
	pthread_cond_destroy(&firmware->wake);
	pthread_mutex_destroy(&firmware->lock);
	free(firmware);
}
