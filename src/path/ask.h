/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Questions from control to a station, one at a time: control posts, the station answers between two
 * bursts and gives the question back. Neither waits in a system call for the other.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "path/plane.h"

enum ask_kind {
	ASK_SNAPSHOT, /* `number` */
	ASK_PAGE,     /* `page` from `position` on */
	ASK_FIND,     /* `key`, `hash`: `found`, and the record */
	ASK_KILL,     /* the same, and it ends */
	ASK_FOLLOW,   /* `follow` */
	/* the end of a plane, in this order */
	ASK_STOP_RECEIVING,
	ASK_RELEASE, /* held packets go on */
	ASK_END,     /* every flow ends */
	ASK_LEAVE,   /* the thread ends */
};

struct ask {
	enum ask_kind kind;
	uint32_t number;
	uint32_t position;
	struct flow_key key;
	uint64_t hash;
	bool follow;
	/* answer */
	bool found;
	struct flow_record record;
	struct plane_page page;
};

/* The question that waits, in memory that lives as long as the station. */
struct ask_slot {
	atomic_bool waiting;
	struct ask ask;
};

struct station;

/*
 * Control: ask_prepare() gives the question to fill in, ask_station() posts it and waits. The answer
 * stays until the next question. NULL and -ETIMEDOUT when the station has not answered for a second.
 */
struct ask *ask_prepare(struct station *station, enum ask_kind kind);
int ask_station(struct station *station);

/* The station: answers what waits. True when there was something. */
bool ask_answer(struct station *station);
