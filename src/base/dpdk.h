/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * DPDK's environment, as a program among others: no shared configuration and no files, so that any
 * number run side by side, and no processor taken. What it asks of the machine depends on what is
 * needed: nothing at all for captures; hugepages where there are some; PCI devices only those named.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define DPDK_MAX_PCI 32

struct dpdk_needs {
	unsigned megabytes; /* of memory, at most */
	bool hugepages;	    /* to be used if that much is free */
	bool telemetry;	    /* with EAL's telemetry socket: the one file that there is then */
	unsigned n_pci;	    /* addresses of the PCI devices that may be touched */
	const char *pci[DPDK_MAX_PCI];
};

/* Starts the environment. Once per process. 0 or a negative errno with a line. */
int dpdk_start_for(const struct dpdk_needs *needs, struct error *error);

/* For those who need nothing but memory from the heap. */
int dpdk_start(unsigned megabytes, struct error *error);

/*
 * Where this process's telemetry socket is: of several in one directory each has a number of its own. 0, or
 * -ENOENT: there is none.
 */
int dpdk_telemetry_socket(char *path, size_t size);

void dpdk_stop(void);
