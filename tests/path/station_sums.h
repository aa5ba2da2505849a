/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a station received, told in two places: by port, and by the way that packets went. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plane/plane.h"

static inline void check_station_sums(const struct plane_station *station)
{
	uint64_t packets = 0, bytes = 0;

	for (unsigned port = 0; port < PLANE_MAX_PORTS; port++) {
		packets += station->ports[port].rx_packets;
		bytes += station->ports[port].rx_bytes;
	}
	assert_int_equal(station->sum.received, packets);
	assert_int_equal(station->sum.received_bytes, bytes);
}
