/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of the installer: installer.c is what others call, installer_thread.c the thread's turns,
 * installer_trial.c what the port does at all and with which actions, installer_call.c the provider's calls and their
 * ends. Each uses those that stand behind it here.
 * Nobody else includes this.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/mailbox.h"
#include "offload/installer.h"

#define AWAIT_NONE UINT32_MAX
#define INSTALLER_STALL_US 1000000
#define INSTALLER_GIVE_UP_US 5000000
/* Changes of the port that control has not taken; those that find no room are lost. */
#define INSTALLER_CHANGES 256
/* So long a kind of flow that is out is tried with the same actions. */
#define INSTALLER_TRY_KIND_US 10000000
/* What the port does, as it was told from time to time. */
#define INSTALLER_TOLD 24
/* Inserts that were given up, and are being taken back. */
#define INSTALLER_OWN 1024

/* By the place in installer_counters.by_answer. */
enum {
	ANSWER_ENOSPC,
	ANSWER_EOPNOTSUPP,
	ANSWER_EAGAIN,
	ANSWER_EIO,
	ANSWER_TIMED_OUT,
};

/* A call of the provider, from its begin to its end. */
struct call {
	uint64_t asked_tsc, tsc, us;
	uint32_t place;
	uint8_t op; /* enum installer_op */
	uint8_t worker;
	uint8_t from;
	bool own;     /* an insert that was given up is taken back: no worker awaits it */
	bool late;    /* a stall already */
	bool gave_up; /* and nobody waits for its answer any more */
};

/* One that the NIC has not answered; in the order in which they began. */
struct awaited {
	struct call call;
	uint32_t before, after; /* of a free one: `after` is the next free one */
};

struct place_state {
	uint32_t awaited; /* its index; AWAIT_NONE: none */
	bool rule;	  /* taken by the NIC, and not given back */
	bool orphan;	  /* may have a rule by an insert that was given up */
	bool stays;	  /* its delete failed, which the port's health was told */
};

/* Of one worker. The worker hands in and takes out, the thread the other way round. */
struct desk {
	/* the worker's: asked, answer not taken, and of these how many counters */
	_Alignas(128) unsigned n_out;
	unsigned n_counts;
	_Alignas(128) struct mailbox *asked[INSTALLER_N_OPS];
	struct mailbox *answered;
	_Alignas(128) struct installer_request held; /* the thread's: the NIC's queue was full */
	uint64_t held_us;			     /* since when; 0: none */
	int64_t counts_us; /* the thread's: for so long counters go before all else */
};

struct installer {
	struct installer_config config;
	_Atomic uint32_t most_rules;	   /* of all workers; 0: as many as the port takes */
	struct provider *provider;	   /* NULL: there was no memory for it */
	struct static_rules *static_rules; /* NULL: there are none */
	_Atomic(const struct provider_abilities *) abilities; /* one of those told; NULL: not yet */
	_Atomic uint64_t trial_us; /* when the port is tried again; 0: it is not to be */
	pthread_mutex_t marks_lock;
	uint32_t marks_most; /* under the lock: marks that the wire's slots need; 0: any do */
	pthread_t thread;
	bool running;
	atomic_bool ready, stopping;
	atomic_bool done; /* the thread takes no requests any more, and has closed the provider */
	struct desk desk[INSTALLER_MAX_WORKERS];
	struct mailbox *changes;
	struct health health;
	struct share share;
	struct refusals refusals;
	struct installer_counters counters;
	struct installer_histograms histograms;
	/* the thread's own */
	struct awaited *awaited; /* room for all that can be under way */
	struct place_state *places;
	uint32_t free, oldest, newest;
	uint32_t in_time; /* the first of those under way that is not late yet */
	uint32_t n_awaited, n_late, n_own;
	uint32_t n_inserts; /* of those under way */
	_Atomic uint32_t
		count_16us; /* what the call for a counter takes on average, in sixteenths */
	uint32_t n_orphans, orphan; /* places that have one, and where the next look begins */
	uint64_t orphans_us;	    /* when they are taken back again */
	bool stalled;
	bool down; /* a restart failed: nothing comes by the port until one does not */

	bool holds;		    /* begins nothing until nothing is under way, */
	uint64_t holds_us, hold_us; /* since then, for so long at most */

	struct provider_abilities told[INSTALLER_TOLD + 1]; /* the last one is never told */
	unsigned n_told, n_trials;
	uint64_t looked_us;
	uint32_t unseen_then[PROVIDER_N_KINDS]; /* when that kind's actions were changed last */
	uint64_t tried_us[PROVIDER_N_KINDS];	/* since when a kind that is out is tried */
};

/* installer_call.c */

/* Carries out a request; false: the NIC's queue is full, and it is to be asked again. */
bool installer_carry_out(
	struct installer *installer, unsigned worker, const struct installer_request *request);
/* Without asking the NIC. */
void installer_answer(struct installer *installer, unsigned worker,
	const struct installer_request *request, int result, uint8_t reason);
/* A call has ended. `count`: what came with that; NULL: nothing did. */
void installer_end(struct installer *installer, const struct call *call, int result,
	const struct provider_why *why, const struct provider_count *count);
/* Takes what the NIC has to say; true when it was something. */
bool installer_poll(struct installer *installer);
/* Stops and starts the port. 0, or it did not come up again. */
int installer_restart(struct installer *installer);
/*
 * All rules go by one call, when the port is being tried: some work on that are to be gone. 0, or it failed, and the
 * breaker is open again.
 */
int installer_flush(struct installer *installer);
/* Static rules go, by one call for all rules of the port if nothing else is left there. Returns how many may be there. */
uint32_t installer_clear_static_rules(struct installer *installer);
void installer_note(struct installer *installer, enum change_kind kind, uint8_t reason);
void installer_note_kind(
	struct installer *installer, enum change_kind change, enum provider_kind kind);
void installer_note_detail(struct installer *installer, enum change_kind change, uint32_t detail);
uint64_t installer_now_us(const struct installer *installer);

/* What is under way: `n` may be. */
void await_init(struct installer *installer, uint32_t n);
/* The oldest one of all; false: there is none. */
bool await_take_oldest(struct installer *installer, struct call *call);
/* Counts those that are late, and gives up what is hopeless. */
void await_judge(struct installer *installer, uint64_t now_us);
/* Rules of inserts that were given up, and that could not be taken back: they are to go. Now and then. */
void await_orphans(struct installer *installer, uint64_t now_us);
/* What any thread may read: `begins_us` of a call that is being made; 0: none is. */
void await_gauge(struct installer *installer, uint64_t begins_us);

/* installer_trial.c */

/* The first trial. */
void installer_open(struct installer *installer);
/* Now and then: the next one, when it is due. */
void installer_look_at_trial(struct installer *installer, uint64_t now_us);
/* The breaker tries again: other actions for kinds that never were marked; whose actions were all tried is out. */
void kinds_change_actions(struct installer *installer);
/* A kind that is out: is it marked now, or to be tried anew? */
void kinds_look(struct installer *installer, uint64_t now_us);

/* installer_thread.c */

void *installer_run(void *installer);
