/* SPDX-License-Identifier: BSD-3-Clause */
/* A station's thread: turns, and rest when there is nothing to do. */
#include <rte_lcore.h>

#include "base/idle.h"
#include "base/privilege.h"
#include "dataplane/turn.h"

void *turn_forever(void *argument)
{
	struct station *station = argument;
	unsigned idle = 0;
	uint64_t tsc = rte_rdtsc();

	privilege_drop_admin();
	/* a thread that DPDK knows has a cache of mbufs of its own; without, it only is slower */
	int registered = rte_thread_register();

	while (!station->leaving) {
		if (turn_timed(station, &tsc)) {
			idle = 0;
			if (!station->poll_always)
				turn_gather(station, &tsc);
		} else if (!station->poll_always) {
			idle_wait(&idle);

			uint64_t awake = rte_rdtsc();

			station->sleep_cycles += awake > tsc ? awake - tsc : 0;
			tsc = awake;
		}
	}
	if (registered == 0)
		rte_thread_unregister();
	return NULL;
}
