/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Questions from control to an lcore, one at a time: control posts, the lcore answers between two
 * bursts and gives the question back. Neither waits in a system call for the other.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/lcore.h"
#include "plane/reply.h"

enum ask_kind {
	ASK_SNAPSHOT, /* `number` */
	ASK_PAGE,     /* `page` from `position` on */
	ASK_KILL,     /* `key`, `hash`: `found`, and the record, which has ended */
	ASK_FOLLOW,   /* `follow` */
	ASK_WATCH,    /* `drops` */
	/* of offload; lcores with an agent but for the first */
	ASK_FLOW,    /* `key`, `hash`: `found`, and `flow` */
	ASK_ADOPT,   /* `wire`, of the wire `number` */
	ASK_OFFLOAD, /* of the port `number`: `offload` */
	ASK_SLOTS,   /* of the wire `number`: `slots` */
	ASK_CHANGES, /* `from` on: `changes`, and where to go on */
	/* the end of a plane, in this order */
	ASK_STOP_RECEIVING,
	ASK_RELEASE, /* held packets go on */
	ASK_END,     /* every flow ends */
	ASK_HELD,    /* `number`: reports that wait for a NIC */
	ASK_LEAVE,   /* the thread ends */
};

/* Changes of one answer. */
#define ASK_CHANGES_MOST 64

struct ask {
	enum ask_kind kind;
	uint32_t number;
	uint32_t position;
	struct flow_key key;
	uint64_t hash;
	bool follow;
	struct drop_wanted drops;
	struct agent_wire wire;
	uint64_t from;
	/* answer */
	bool found;
	struct flow_record record;
	struct plane_page page;
	struct plane_flow flow;
	struct agent_counters offload;
	struct plane_slots slots;
	unsigned n_changes;
	struct offload_change changes[ASK_CHANGES_MOST];
};

/* How long control waits for an lcore. Of the plane; control's. */
struct ask_patience {
	bool quick;
	uint64_t quick_us;
};

/* The question that waits, in memory that lives as long as the lcore. */
struct ask_slot {
	atomic_bool waiting;
	bool late; /* control's: it was given up, whether or not it is answered by now */
	struct ask_patience *patience;
	struct ask ask;
};

/*
 * Control: ask_prepare() gives the question to fill in, ask_lcore() posts it and waits. The answer
 * stays until the next question. NULL and -ETIMEDOUT when the lcore has not answered for five seconds; or, of
 * quick patience, for a fifth of a second: then a question that it still has is not waited for any more, and each
 * further lcore that does not answer is waited for half as long, so that all of them together cost less than half
 * a second, once.
 */
struct ask *ask_prepare(struct lcore *lcore, enum ask_kind kind);
int ask_lcore(struct lcore *lcore);

/* Does the lcore still have a question? */
bool ask_waits(const struct lcore *lcore);
/* That question, if it is this one, was answered after it had been given up: NULL, or the answer. */
struct ask *ask_late(struct lcore *lcore, enum ask_kind kind, const struct flow_key *key);

void ask_be_patient(struct ask_patience *patience);
void ask_be_quick(struct ask_patience *patience);
/* An lcore has been waited for since `begin_us` (monotonic_us()), by so many looks: is it given up now? */
bool ask_gives_up(struct ask_patience *patience, unsigned looks, uint64_t begin_us);

/* The lcore: answers what waits. True when there was something. */
bool ask_answer(struct lcore *lcore);
