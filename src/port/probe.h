/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Devices brought to DPDK and taken away again, one at a time, so that what is wrong with one is an
 * error of that one. What drivers say meanwhile is kept for the error's text instead of going to the
 * log.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* The log of DPDK, diverted. */
struct probe_log {
	FILE *before;
	FILE *stream;
	char *text;
	size_t length;
};

void probe_log_begin(struct probe_log *log);
/* Puts the first line that was said into `line` ("" for none), and the log back where it was. */
void probe_log_end(struct probe_log *log, char *line, size_t size);

/* Does a driver hold this kernel interface already? */
bool probe_has_interface(unsigned index);

/*
 * Brings a device of `bus` ("vdev", "pci") to DPDK; one that it knows already is taken as it is,
 * if no other port has it: -EBUSY. 0, or
 * a negative errno and the driver's words in `said` (at least 1 byte), without a line for the user.
 */
int probe_device(const char *bus, const char *name, const char *arguments, uint16_t *id, char *said,
	size_t size);

/* Closes the ethdev and takes its device away. */
void probe_remove(const char *bus, const char *name, uint16_t id);
