/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What an lcore received, told in two places: by port, and by the way that packets went. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plane/plane.h"

static inline void check_lcore_sums(const struct plane_lcore *lcore)
{
	uint64_t packets = 0, bytes = 0;

	for (unsigned port = 0; port < PLANE_MAX_PORTS; port++) {
		packets += lcore->ports[port].rx_packets;
		bytes += lcore->ports[port].rx_bytes;
	}
	assert_int_equal(lcore->sum.received, packets);
	assert_int_equal(lcore->sum.received_bytes, bytes);
}
