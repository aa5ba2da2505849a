/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "base/error.h"
#include "bench/bench.h"

/* Measures what admission costs the worker that carries the packets, and prints the row. Returns 0, or a negative errno with a line. */
int admission_cost(const struct bench_options *options, struct error *error);
