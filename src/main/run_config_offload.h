/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The section `offload` of a configuration: what NICs are given, and how far they are believed. Its keys
 * are options of the command line too, by the name offload-KEY, but for `enabled`, which is --offload.
 * `where` and errors are as in base/options.h; all of it belongs to the thread that reads the command line.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "plane/plane.h"

#define RUN_OFFLOAD_THRESHOLD 1
#define RUN_OFFLOAD_SLOTS 65536
#define RUN_OFFLOAD_SLOTS_MAX 2097152

struct run_offload {
	bool on;
	bool full;	      /* flows are forwarded by the NIC alone, where it can; else marked */
	uint32_t threshold;   /* packets a second; 0: every flow at once */
	uint32_t slots;	      /* a wire */
	uint32_t rules;	      /* a port; 0: as many as it takes */
	uint32_t rules_per_s; /* a port; 0: as many as it does */
	bool counters;
	bool restart;
	bool drops; /* rules that drop are given to NICs */
	/* ports that are left out, by name; they are looked for when the wires are known */
	unsigned n_except;
	char except[PLANE_MAX_PORTS][PORT_NAME_MAX];
};

/* The keys with one value, in the order of enum run_option; of the list `except` the items. */
enum run_offload_key {
	RUN_OFFLOAD_ENABLED,
	RUN_OFFLOAD_MODE,
	RUN_OFFLOAD_THRESHOLD_KEY,
	RUN_OFFLOAD_SLOTS_KEY,
	RUN_OFFLOAD_RULES,
	RUN_OFFLOAD_RULES_PER_SECOND,
	RUN_OFFLOAD_COUNTERS,
	RUN_OFFLOAD_RESTART,
	RUN_OFFLOAD_RULES_IN_NIC,
	RUN_OFFLOAD_EXCEPT,
	RUN_OFFLOAD_N_KEYS,
};

/* As a file calls it: "threshold". */
const char *run_offload_key(enum run_offload_key key);

void run_offload_init(struct run_offload *offload);

/* Reads a value; of `except` names with commas between them, or "none", in place of those before. */
int run_offload_set(struct run_offload *offload, enum run_offload_key key, const char *where,
	const char *value, struct error *error);

/* One more port that is left out. */
int run_offload_add_except(
	struct run_offload *offload, const char *where, const char *name, struct error *error);
