/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The files of the export bench share this. */

#include <stdbool.h>
#include <stdint.h>

/*
 * Whole programs on one capture of so many flows each time: a row for each rival in `against` (NULL: softflowd and
 * nfprobe) that is installed; of others a line on stderr says so. They send to that port of the loopback. 0 or a negative
 * errno. The calling process waits for children that it did not start from then on, so that it should have no others.
 */
int export_rivals(const uint32_t *flows, unsigned n, uint16_t port, const char *against, bool json);
