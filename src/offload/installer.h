/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The installer: one thread for each port with flow hardware, which makes every call of the port's provider.
 * Workers hand it requests and take its answers, over mailboxes, and neither waits for the other.
 *
 * Order: each worker's deletes go before its inserts, its inserts before its counter readings; workers take turns. For
 * one place a worker has one request under way at a time, and one of its counter beside it: a rule may
 * have gone when its counter's turn comes, and that answer is -EOPNOTSUPP, which is no refusal and no failure.
 * Answers always find room: at most INSTALLER_UNDER_WAY requests of a worker are under way, and no more are taken.
 *
 * A call that the NIC has not answered for a second is a stall: it is counted, told once until the NIC answers in time
 * again, and held against its health. After five seconds the worker is answered -EIO ("no answer"), and nobody takes what
 * the NIC says later: an insert is taken back first, and its place refuses others until then.
 *
 * Inserts beyond the limit of rules (`rules`) are answered -EAGAIN with the reason OFFLOAD_OUTRANKED, and those that come
 * while the breaker of the port's health (offload/health.h) is open with OFFLOAD_BREAKER; the NIC is not asked. Before
 * the breaker tries again the installer restarts the port if calls fail and that is allowed (all that is under way is
 * answered -EIO then); or gives other actions to kinds of flows that are never marked (offload/marking.h). Trials
 * that found less than the port may do are repeated (offload/trials.h). Static rules (offload/static_rules.h) are made and
 * removed between two looks at the port's health; while one waits for room no flow's rule is made.
 *
 * Life-cycle: installer_create() after the port has started: the thread tries what the port takes, then
 * is ready. installer_stop(): no request is taken any more, what is under way is answered (for a second at most), all
 * rules go together (provider_close()), and with them deletes that have not begun; such inserts are answered -EIO
 * (OFFLOAD_STOPPING). `rules` of the counters is what may still be there then. installer_destroy() comes when no worker
 * uses it any more.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tsc.h"
#include "offload/change.h"
#include "offload/health.h"
#include "offload/histogram.h"
#include "offload/refusal.h"
#include "offload/share.h"
#include "offload/static_rules.h"
#include "rteflow/provider.h"

#define INSTALLER_MAX_WORKERS SHARE_MAX_WORKERS
#define INSTALLER_UNDER_WAY 1024
/* Of these, counters that are asked for: who reads many of them is to keep room for inserts and deletes. */
#define INSTALLER_COUNTS (INSTALLER_UNDER_WAY / 4 * 3)
/* Changes of the port that control has not taken; those that find no room are lost. */
#define INSTALLER_CHANGES 256

enum installer_op {
	INSTALLER_INSERT,
	INSTALLER_REMOVE,
	INSTALLER_COUNT,
	INSTALLER_N_OPS,
};

struct installer_request {
	struct flow_key key;
	uint64_t tsc; /* when it was asked */
	uint32_t place;
	uint32_t mark;
	uint8_t op; /* enum installer_op */
	uint8_t from;
	uint8_t deed; /* enum provider_deed */
	uint8_t unused[5];
};

struct installer_answer {
	/* as the NIC tells them: INSTALLER_COUNT, and what was the last of a rule that counted alone */
	uint64_t packets, bytes;
	uint32_t place;
	int16_t result; /* 0 or an answer of the provider; never -EINPROGRESS */
	uint8_t op;
	uint8_t reason;	  /* of a refusal: OFFLOAD_REFUSALS + n; or the installer's own; else 0 */
	uint32_t took_us; /* from asked to answered */
	bool counted;	  /* there are packets, */
	bool has_bytes;	  /* and bytes; */
	bool final;	  /* and no more will come */
	uint8_t from;	  /* as it was asked */
};

/* Counted by the thread, read by any. */
struct installer_counters {
	_Atomic uint64_t done[INSTALLER_N_OPS];
	_Atomic uint64_t failed[INSTALLER_N_OPS];
	_Atomic uint64_t by_answer[5]; /* ENOSPC, EOPNOTSUPP, EAGAIN, EIO, timed out */
	_Atomic uint32_t rules;	       /* that the NIC has taken, and not given back */
	_Atomic uint32_t under_way;
	_Atomic uint64_t oldest_us;    /* since when the oldest of those is; 0: there is none */
	_Atomic uint64_t changes_lost; /* that found no room, as nobody had taken those before */
};

struct installer_histograms {
	struct histogram wait;			/* from asked to the call */
	struct histogram call[INSTALLER_N_OPS]; /* the call, to its completion */
};

struct installer_config {
	unsigned number; /* of the port */
	unsigned n_workers;
	uint32_t rules;	       /* of all workers, at most; 0: as many as the port takes */
	uint32_t room;	       /* that the port is known to take; 0: not known */
	uint32_t static_rules; /* at most; 0: there are none */
	const struct tsc_clock *clock;
	const cpu_set_t *cpus; /* where the thread may run; NULL: where the caller's may */
	struct provider_config provider;
	/* NULL: provider_open() */
	int (*open)(struct provider **provider, const struct provider_config *config);
	struct health_config health;
	/*
	 * Stops and starts the port, which workers do not use meanwhile; NULL: it may not be done. Called from
	 * the installer's thread. 0 or a negative errno.
	 */
	int (*restart)(void *context);
	void *restart_context;
};

struct installer;

/* 0 or a negative errno with a line. */
int installer_create(
	struct installer **installer, const struct installer_config *config, struct error *error);
/* Another limit of rules, as `rules` of the configuration. Control's thread. */
void installer_set_rules(struct installer *installer, uint32_t rules);
/* Control's thread. */
void installer_stop(struct installer *installer);
/* Accepts NULL. Stops first if need be. */
void installer_destroy(struct installer *installer);

/* A worker: hands in a request, of a place that the port has; false: not now. */
bool installer_ask(
	struct installer *installer, unsigned worker, const struct installer_request *request);
/* A worker: takes answers. */
unsigned installer_answers(struct installer *installer, unsigned worker,
	struct installer_answer *answers, unsigned max);

/*
 * Any thread. Until the port is ready everything of what it does is zero; later trials may grant more kinds of flows,
 * and never take one back. What was told is good for the installer's life, and may be old the next moment.
 */
/* About how many us the call for a counter takes, rounded up. Any thread. */
uint32_t installer_count_us(const struct installer *installer);

bool installer_ready(const struct installer *installer);
const struct provider_abilities *installer_abilities(const struct installer *installer);
/* When the port is tried again, clock of the run; 0: it is not to be. */
uint64_t installer_trial_us(const struct installer *installer);

/*
 * Control's thread: marks up to `most` are wanted on the port's wire. Returns what the port takes of that, where that is
 * known; a port that can be tried only later has to take it, or does without offload.
 */
uint32_t installer_agree_on_marks(struct installer *installer, uint32_t most);
struct health *installer_health(struct installer *installer);
/* Workers' threads: how they share the port's rules. */
struct share *installer_share(struct installer *installer);
/*
 * Why the port is not to be asked for rules of such flows now: its trial, no NIC, the kind, marks that never come, the
 * breaker. OFFLOAD_QUIET: nothing is in the way. `kind` may be PROVIDER_N_KINDS.
 */
uint8_t installer_reason(struct installer *installer, enum provider_kind kind);
/* The port's static rules; NULL: it has none. */
struct static_rules *installer_static_rules(const struct installer *installer);
const struct refusals *installer_refusals(const struct installer *installer);
const struct installer_counters *installer_counters(const struct installer *installer);
const struct installer_histograms *installer_histograms(const struct installer *installer);

/* Control: changes of the port itself (breaker, stalls, resets) since the last call, at most `max`. */
unsigned installer_changes(
	struct installer *installer, struct offload_change *changes, unsigned max);
