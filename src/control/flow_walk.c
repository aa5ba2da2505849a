/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_walk.h"

#include <errno.h>

void flow_walk_begin(struct flow_walk *walk, struct plane *plane, unsigned worker,
	unsigned end_worker, uint32_t position)
{
	walk->plane = plane;
	walk->worker = worker;
	walk->end_worker = end_worker;
	walk->next = position;
	walk->page.n = 0;
}

int flow_walk_page(struct flow_walk *walk)
{
	if (walk->next == FLOW_NONE) {
		walk->worker++;
		walk->next = 0;
	}
	walk->page.n = 0;
	if (walk->worker >= walk->end_worker) {
		walk->worker = walk->end_worker;
		walk->next = 0;
		return 0;
	}
	int ret = plane_page(walk->plane, walk->worker, walk->next, &walk->page);

	if (ret < 0)
		return ret;
	walk->from = walk->next;
	walk->next = walk->page.next;
	return 1;
}
