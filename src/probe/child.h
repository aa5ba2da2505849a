/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of the child of `millrace probe`: child.c has its life, trials.c what it tries. */

#include <stdatomic.h>
#include <stdio.h>

#include "probe/packets.h"
#include "probe/report.h"

struct child {
	const struct probe_options *options;
	int pipe;
	uint64_t begin_us;
	uint64_t told_us; /* the last step */
	char told[160];
	struct port *port, *peer, *to; /* the last two may not be there */
	struct rte_mempool *pool;
	struct probe_packets *packets;
	struct eyes eyes;
	struct cell_port cells;
	unsigned n_vdevs;
	bool spoilt; /* so many rules did not go that what is seen may be theirs */
	bool failed; /* it takes no rule any more that it took before */
	/* the first forms that mark, that mark and count, and of all: those that work before others */
	struct form marks, counts, taken;
	enum level marks_level, counts_level, taken_level;
	FILE *nowhere;		 /* for what drivers say to the log: their answers say it too */
	const atomic_bool *stop; /* somebody wants it to end */
};

/* {"KEY":value} for the parent; takes the value. */
void probe_tell(const struct child *child, const char *key, json_t *value);
/* What it is about to do; `allow_s`: it may take so long, 0: as long as others. */
void probe_tell_step(struct child *child, const char *what, unsigned rules, unsigned allow_s);

/* All that is tried of an open port, from the cell `first` on. 0 or a negative errno with a line. */
int probe_trials(struct child *child, unsigned first, struct error *error);
/* What could not be destroyed goes with all others, or with the port. */
void probe_leave(struct child *child);
