/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The sums of a replay, of one capture or of all: what the engine counted between two moments, and
 * how long that took.
 */

#include "main/engine.h"
#include "main/summary.h"

struct replay_total {
	struct engine_counters before;
	struct engine_counters after;
	struct exporter_totals exported; /* known only when everything is written, else zero */
	uint64_t n_back;		 /* how often time went back, */
	uint64_t most_back_us;		 /* and how far at most */
	uint64_t begin_ns;		 /* by the monotonic clock */
	uint64_t end_ns;
};

/* Counts from nothing, or from where `total` stands. */
void replay_total_start(struct replay_total *total);
void replay_total_resume(struct replay_total *part, const struct replay_total *total);

/* Counts up to now. Between runs only. */
void replay_total_count(struct replay_total *total, const struct engine *engine);

/* In a capture time went back so often, and so far at most. */
void replay_total_went_back(struct replay_total *total, uint64_t n, uint64_t most_us);

/* The summary on stderr; `name` is NULL for several captures. */
void replay_total_print(const struct replay_total *total, const char *name, unsigned n_captures);
void replay_total_json(const struct replay_total *total, const char *name, unsigned n_captures,
	const struct flow_report *top, unsigned n_top);
