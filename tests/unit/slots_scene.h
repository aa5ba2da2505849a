/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of slots share. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/slots.h"
#include "traffic/draw.h"

static inline uint32_t below(struct draw *draw, uint32_t n)
{
	return draw_below(draw_next(draw), n);
}

static const struct flow_key some_key = {.proto = 6, .zone = 77};

static inline uint32_t mark_of(const struct slots *slots, uint32_t slot)
{
	return slots_mark(slots, slot);
}

/* Time enough for whatever drains. */
static inline void drain(struct slots *slots, uint64_t *now_us)
{
	for (unsigned i = 0; i <= SLOT_DRAIN_TURNS + slots->n / 8; i++)
		slots_turn(slots, *now_us += SLOT_DRAIN_US);
}
