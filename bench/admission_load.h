/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets of flows that come and go, as times and numbers, for the bench of admission.
 *
 *	zipf-1.0, zipf-1.1	a million flows, five million packets a second, by rank^-s
 *	churn-1.05, churn-1.2	20,000 new flows a second; size = min(floor(1 + Pareto(a)), 10^6) packets, rate =
 *				lognormal(median 3 packets a second, sigma 1.2) x size^0.45, life at most 600 s
 *	websearch		1,000 new flows a second of the sizes of a search engine's data centre: M. Alizadeh
 *				et al., Data Center TCP (DCTCP), SIGCOMM 2010, figure 4, in packets of 1,460 bytes as
 *				M. Alizadeh et al., pFabric, SIGCOMM 2013 have them; rate and life as above
 *
 *	a capture		its packets of IP, both directions of a flow as one, when they came
 *
 * Flows begin at random times, and of each the packets come at random times (Poisson). By seed; the same
 * everywhere, as far as logarithms are the same to the last digit; a capture's are its own. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct admission_packet {
	uint64_t us;   /* since the begin of the load */
	uint32_t flow; /* numbered from 0 as they begin (Zipf and captures: by chance) */
};

struct admission_load;

/* The names above, NULL at the end. */
extern const char *const admission_loads[];

/* Returns 0, -EINVAL (no such name) or -ENOMEM. */
int admission_load_create(struct admission_load **load, const char *name, uint64_t seed);
/* The same of a capture. 0, or a negative errno with a line. */
int admission_load_open(struct admission_load **load, const char *path, struct error *error);
/* Accepts NULL. */
void admission_load_destroy(struct admission_load *load);

/* No load has more flows in its first so many seconds. */
uint32_t admission_load_flows(const struct admission_load *load, unsigned seconds);
/* How many it has, or had so far. */
uint32_t admission_load_begun(const struct admission_load *load);
/* How long a capture is, in whole seconds; of other loads 0: they never end. */
unsigned admission_load_seconds(const struct admission_load *load);

/* The packets of the next millisecond, in order of time; the array is good until the next call. NULL: no memory. */
const struct admission_packet *admission_load_next(struct admission_load *load, uint32_t *n);

/* admission_capture.c: all packets in order of time, which the caller frees, and how many flows they are of. */
int admission_capture_read(const char *path, struct admission_packet **packets, uint32_t *n,
	uint32_t *n_flows, struct error *error);
