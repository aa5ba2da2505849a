/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where the packets of a bench come from and go to: two ports in this process, made one after the other
 * and joined by nothing. The first brings the forward streams of a set, the second the reverse ones, each
 * in an order of its own; what is sent by them is freed.
 *
 * Life-cycle: bench_source_open(); the ports are started by whoever needs them so, with a plane or by
 * hand; bench_source_begin() then lets packets come; bench_source_close() after the last one has been
 * given back. One thread.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "base/error.h"
#include "port/port.h"
#include "traffic/sequence.h"

#define BENCH_BURST PORT_BURST

struct bench_source {
	struct port *port[2];
	struct bench_stream_side *side[2];
};

struct bench_source_config {
	uint32_t flows;
	enum sequence_load load; /* Zipf's exponent is 1 */
	const char *words;	 /* more device arguments; NULL: none */
};

/* Returns 0 or a negative errno with a line. A source that failed to open is to be closed too. */
int bench_source_open(
	struct bench_source *source, const struct bench_source_config *config, struct error *error);
int bench_source_begin(struct bench_source *source, struct rte_mempool *pool, struct error *error);
void bench_source_close(struct bench_source *source);
