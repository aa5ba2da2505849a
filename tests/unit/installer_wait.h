/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What engines do not do: they go on while a port is being tried. */

#include <errno.h>

#include "base/idle.h"
#include "base/monotonic.h"
#include "offload/installer.h"

/* Until the port has been tried; at most `timeout_ms`. 0 or -ETIMEDOUT. */
static inline int installer_wait(struct installer *installer, unsigned timeout_ms)
{
	uint64_t end_us = monotonic_us() + (uint64_t)timeout_ms * 1000;
	unsigned idle = 0;

	while (!installer_ready(installer)) {
		if (monotonic_us() >= end_us)
			return -ETIMEDOUT;
		idle_wait(&idle);
	}
	return 0;
}
