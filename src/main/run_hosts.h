/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The routers of a run, and the threads that stand between them and the kernel: one for each, in its network namespace. */

#include "main/running.h"

/* Fills in the routers of the configuration for the plane. */
void run_hosts_fill(const struct run *run, struct plane_config *config);

/* The plane is there, and does not run yet. 0 or a negative errno with a line; run_hosts_stop() in every case. */
int run_hosts_start(struct run *run, struct error *error);
/* After plane_stop(). */
void run_hosts_stop(struct run *run);

/* Several times a second: links that came or went are the kernel's to know. */
void run_hosts_tend(struct run *run);
