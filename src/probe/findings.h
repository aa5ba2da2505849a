/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Rules can tell more of a NIC: how wide its marks and counters are, and whether actions can be shared by handles.
 * Each is found out by a form that works.
 */

#include "probe/cell.h"

struct cell_marks {
	unsigned accepted_bits; /* 6 to 32; 0: not even so many */
	unsigned seen_bits;	/* with which packets came; 0: nobody looked, or they never did */
};

/* `form` marks. */
void cell_marks(struct rule_port *port, const struct form *form, struct cell_marks *marks);

#define CELL_SAMPLES 64

struct cell_width {
	unsigned n;
	uint64_t expected[CELL_SAMPLES]; /* packets since the rule was made */
	uint64_t counted[CELL_SAMPLES];
	bool has_bytes;
	unsigned bits;	   /* it went round; 0: it did not, while it was watched */
	unsigned at_least; /* bits that were seen */
};

/* `form` works and counts: watches its counter for that long. False: nothing was found out. */
bool cell_counter_width(
	struct rule_port *port, const struct form *form, uint64_t for_us, struct cell_width *width);
/* Sets `bits` and `at_least` by the samples. */
void cell_judge_width(struct cell_width *width);

enum cell_shared {
	CELL_SHARED_COUNT,
	CELL_SHARED_AGE,
	CELL_SHARED_RSS,
	CELL_N_SHARED,
};

/*
 * An action that several rules have by a handle: LEVEL_ACCEPTS when there is a handle, LEVEL_WORKS when rules use it;
 * else `why` not. `form` has a counter; NULL: no rule is made with it.
 */
enum level cell_indirect(struct rule_port *port, const struct form *form, enum cell_shared shared,
	struct provider_why *why);
