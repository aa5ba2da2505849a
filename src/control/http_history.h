/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the engine counted over the last ten minutes, for the page: a ring of sums over all wires, so that a page that has
 * just been opened shows them at once. Fixed memory; belongs to control's thread.
 */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "plane/plane.h"

#define HTTP_HISTORY_STEP_US UINT64_C(2000000)
#define HTTP_HISTORY 301

/* In the order in which they are told. */
enum http_history_column {
	HISTORY_TIME_MS, /* Unix time */
	HISTORY_RECEIVED,
	HISTORY_RECEIVED_BYTES,
	HISTORY_OUT,
	HISTORY_OUT_BYTES,
	HISTORY_DROPPED,
	HISTORY_NIC_FORWARDED,
	HISTORY_NIC_FORWARDED_BYTES,
	HISTORY_NIC_DROPPED,
	HISTORY_FLOWS, /* live now; all others are counters */
	HISTORY_LEARNED,
	HISTORY_N_COLUMNS,
};

struct http_history {
	uint64_t n; /* ever added */
	uint64_t row[HTTP_HISTORY][HISTORY_N_COLUMNS];
};

void http_history_add(struct http_history *history, const struct plane_snapshot *snapshot,
	unsigned n_wires, uint64_t origin_us);

/* {"step_ms":2000,"columns":[...],"rows":[[...],...]}, the oldest row first. NULL without memory. */
json_t *http_history_json(const struct http_history *history);
