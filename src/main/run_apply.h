/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Another configuration for a running engine, in one transaction: what it says is read and checked, files, rules, blocks and exports
 * with it, before anything changes; then all of it is in effect, or nothing is. Control's thread.
 */

#include "main/running.h"

/* Keeps what the configuration of the start came from; before the plane is made. 0 or a negative errno with a line. */
int run_apply_begin(struct run *run, struct error *error);
/* Control asks for it from here on. The plane and the exporter are there. */
void run_apply_serve(struct run *run);
void run_apply_end(struct run *run);
