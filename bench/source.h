/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where the packets of a bench come from and go to: two simulated NICs in this process. The first brings
 * the forward streams of a set, the second the reverse ones, each in an order of its own; what is sent by
 * them is freed.
 *
 * Life-cycle: bench_source_open(); the ports are started by whoever has a pool for them, a plane or
 * port_start(); bench_source_close() after the last packet has been given back. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "port/port.h"
#include "traffic/sequence.h"

#define BENCH_BURST PORT_BURST

struct bench_source {
	struct port *port[2];
};

struct bench_source_config {
	uint32_t flows;
	enum sequence_load load; /* Zipf's exponent is 1 */
	bool same;		 /* both bring the forward streams, in the same order */
	bool alone;		 /* only the first is there */
	const char *capture
		[2]; /* files with what either port brings, in place of streams; NULL: streams */
	const char *words;	 /* more device arguments, as "size=64"; NULL: none */
	unsigned n_queues;	 /* of each port, among which flows are spread; 0: one */
	unsigned number;	 /* of several sources in one process: which */
	uint32_t offload_places; /* see struct port_config */
};

/* Returns 0 or a negative errno with a line. A source that failed to open is to be closed too. */
int bench_source_open(
	struct bench_source *source, const struct bench_source_config *config, struct error *error);
/*
 * Instead of them two ports of DPDK's net_null, for who brings bursts of his own. Each port that was opened is
 * the caller's to close.
 */
int bench_null_ports(struct port *port[2], struct error *error);

/* A zeroed one too. */
void bench_source_close(struct bench_source *source);
