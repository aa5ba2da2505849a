/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * DPDK's environment for a program that needs neither root nor hugepages nor a port: memory from the
 * heap of the process, no files, no shared configuration, so that any number run side by side.
 */

#include "base/error.h"

/* Starts the environment with `megabytes` of memory. Once per process. 0 or a negative errno. */
int dpdk_start(unsigned megabytes, struct error *error);
void dpdk_stop(void);
