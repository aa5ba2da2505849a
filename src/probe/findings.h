/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What else rules can tell of a NIC: how wide its marks and counters are, whether actions can be shared by handles,
 * and what its flow queues hold. Each is found out by a form that works. As in probe/cell.h, one thread.
 */

#include "probe/cell.h"

struct cell_marks {
	unsigned accepted_bits; /* 6 to 32; 0: not even so many */
	unsigned seen_bits;	/* with which packets came; 0: nobody looked, or they never did */
};

/* Of a form that marks. */
void cell_marks(struct cell_port *port, const struct form *form, struct cell_marks *marks);

#define CELL_SAMPLES 64

struct cell_width {
	unsigned n;
	uint64_t expected[CELL_SAMPLES]; /* packets since the rule was made */
	uint64_t counted[CELL_SAMPLES];
	bool has_bytes;
	unsigned bits;	   /* it went round; 0: it did not, while it was looked at */
	unsigned at_least; /* bits that were seen */
};

/* Of a form that works and counts: looks for that long. False: nothing was found out. */
bool cell_counter_width(
	struct cell_port *port, const struct form *form, uint64_t for_us, struct cell_width *width);
/* What the samples tell. Pure. */
void cell_judge_width(struct cell_width *width);

enum cell_shared {
	CELL_SHARED_COUNT,
	CELL_SHARED_AGE,
	CELL_SHARED_RSS,
	CELL_N_SHARED,
};

struct cell_indirect {
	const char *name;
	enum level level; /* NO, ACCEPTS: there is a handle, WORKS: and rules use it */
	struct provider_why why;
};

/* An action that several rules have by a handle. `form` has a counter; NULL: no rule is made with it. */
void cell_indirect(struct cell_port *port, const struct form *form, enum cell_shared shared,
	struct cell_indirect *indirect);

struct cell_async {
	uint32_t queues, queue_size, counters, ages, meters,
		connections; /* queue_size 0: no limit */
};

/* False: it has no flow queues. */
bool cell_async(const struct cell_port *port, struct cell_async *async);
