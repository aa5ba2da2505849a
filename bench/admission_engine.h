/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The engine as `millrace run` has it, whose worker is handed flows and times in place of packets: its shard learns,
 * counts and ages, its agent samples, asks, is answered, and has an installer's thread, whose rules go to a
 * simulated X710. What a mark would say is known from the flow's state: nothing is received.
 *
 * Life-cycle: admission_engine_open(), packets, admission_engine_close(), which takes a zeroed one too and has to follow a
 * failure. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/source.h"
#include "plane/plane_private.h"

#define ADMISSION_BURST 32
/* Packets a second from which on a flow may get in: what `millrace run` has, if nobody says otherwise. */
#define ADMISSION_THRESHOLD 1

struct admission_engine {
	struct bench_source source;
	struct plane *plane;
	uint32_t *position; /* by flow: of its record, if that is its yet */
	uint32_t drawn;
};

/* With a NIC of so many entries. 0 or a negative errno with a line. */
int admission_engine_open(struct admission_engine *engine, unsigned number, uint32_t n_flows,
	uint32_t entries, struct error *error);
void admission_engine_close(struct admission_engine *engine);

/* A burst of packets of these flows is received now; how many the NIC would have marked. */
unsigned admission_engine_burst(struct admission_engine *engine, const uint32_t *flows, unsigned n);
/* Time passes. */
void admission_engine_turn(struct admission_engine *engine);

/* Rules that the NIC was asked to make and to take away, so far. */
uint64_t admission_engine_rules(const struct admission_engine *engine);
