/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The exports that a user asks for, on the command line or in a file: a list of targets (export/target.h), and their
 * collectors once they are opened. Owned by one thread; exports_fini() in every case.
 */

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "export/collector.h"

#define EXPORTS_MAX 128
/* Records a second that a replay sends to a collector over UDP, unless its target says otherwise. */
#define EXPORTS_REPLAY_RATE 200000
/* Seconds after which a flow that lives on is reported, with exports. */
#define EXPORTS_ACTIVE_S 60

struct exports {
	struct export_target *targets;
	unsigned n;
	bool from_file; /* the first of the command line takes their place */
};

/* Adds one; "none" takes all of them out. 0 or a negative errno with a line. */
int exports_add(struct exports *exports, const char *where, const char *value, struct error *error);
void exports_fini(struct exports *exports);

/* Opens all; `collectors` has room for EXPORTS_MAX. After an error none is left open. */
int exports_open(const struct exports *exports, const struct export_ports *ports,
	export_patience *patience, struct export_collector **collectors, struct error *error);

/* What was told of an export while it runs: zero at first, owned by whoever looks. */
struct exports_news {
	uint64_t lost, lost_before; /* as of the last look, and when the trouble began */
	uint64_t trouble_us;	    /* when there last was any; 0: there is none */
};

/* Tells when an export begins to lose records, with why, and when that is over. For about once a second. */
void exports_look(struct export_collector *const *collectors, unsigned n, struct exports_news *news,
	uint64_t now_us, void (*tell)(void *context, const char *line), void *context);

/* A line for each, in the end: what was sent, and what was lost. Returns whether some was lost. */
bool exports_tell(struct export_collector *const *collectors, unsigned n, FILE *stream);
