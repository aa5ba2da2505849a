/* SPDX-License-Identifier: BSD-3-Clause */
/* A port is stopped and started while packets of the others flow. */
#include <errno.h>

#include "base/idle.h"
#include "plane/plane.h"
#include "plane/plane_private.h"

/* Looks in vain for lcores that still use the port, most of them 250 us apart. */
#define PAUSE_TRIES 8000

static bool all_have_seen(const struct plane *plane, uint32_t paused)
{
	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (atomic_load_explicit(&plane->lcores[i].paused_seen, memory_order_acquire) !=
			paused)
			return false;
	return true;
}

static int pause_port(struct plane *plane, unsigned port, bool pause)
{
	uint32_t bit = UINT32_C(1) << port;
	uint32_t paused;
	unsigned idle = 0;

	if (pause)
		paused = atomic_fetch_or(&plane->paused, bit) | bit;
	else
		paused = atomic_fetch_and(&plane->paused, ~bit) & ~bit;
	/* another port may be paused or let go meanwhile: then that one's number is seen */
	for (unsigned tries = 0; !all_have_seen(plane, paused); tries++) {
		if (tries == PAUSE_TRIES)
			return -ETIMEDOUT;
		idle_wait(&idle);
		/* another port may be paused or let go meanwhile */
		paused = atomic_load(&plane->paused);
	}
	return 0;
}

int plane_restart_port(void *context)
{
	const struct plane_port *which = context;
	struct plane *plane = which->plane;
	int ret = pause_port(plane, which->number, true);

	/* with somebody at work on it, it is left alone; a port that does not start again stays paused */
	if (ret == 0) {
		ret = port_restart(plane->config.port[which->number]);
		if (ret < 0)
			return ret;
	}
	pause_port(plane, which->number, false);
	return ret;
}
