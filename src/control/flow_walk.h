/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A walk over all live flows, worker by worker, page by page. */

#include <stdbool.h>

#include "plane/plane.h"

struct flow_walk {
	struct plane *plane;
	unsigned worker;     /* that the page is of */
	unsigned end_worker; /* the first one that is not walked */
	uint32_t next;	     /* where its next page begins; FLOW_NONE: it has no more */
	uint32_t from;	     /* where its page began */
	struct plane_page page;
};

/* From `position` of `worker` to the end of the last worker before `end_worker`. */
void flow_walk_begin(struct flow_walk *walk, struct plane *plane, unsigned worker,
	unsigned end_worker, uint32_t position);

/* Fetches the next page, which may be empty. 1; 0 when there is none; or plane_page()'s errno. */
int flow_walk_page(struct flow_walk *walk);
