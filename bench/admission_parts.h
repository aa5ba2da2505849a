/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The parts of `millrace bench admission`. */

#include "bench/bench.h"

/* Packets a second from which on a flow may get in: what `millrace run` has, if nobody says otherwise. */
#define ADMISSION_THRESHOLD 1

void admission_say(const char *line);

/* What admission costs a worker: prints its row. 0 or a negative errno after a line. */
int admission_cost(const struct bench_options *options);
