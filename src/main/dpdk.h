/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * DPDK's environment, as a program among others: no shared configuration and no files, so that any
 * number run side by side, and no processor taken. What it asks of the machine depends on what is
 * needed: nothing at all for captures; hugepages where there are some; PCI devices only those named.
 */

#include <stdbool.h>

#include "base/error.h"

#define DPDK_MAX_PCI 32

struct dpdk_needs {
	unsigned megabytes; /* of memory, at most */
	bool hugepages;	    /* to be used if that much is free */
	unsigned n_pci;	    /* addresses of the PCI devices that may be touched */
	const char *pci[DPDK_MAX_PCI];
};

/* Starts the environment. Once per process. 0 or a negative errno with a line. */
int dpdk_start_for(const struct dpdk_needs *needs, struct error *error);

/* For those who need nothing but memory from the heap. */
int dpdk_start(unsigned megabytes, struct error *error);

void dpdk_stop(void);
