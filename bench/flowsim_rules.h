/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The part of `millrace bench flowsim` that measures rules a second through flow queues. Call it with EAL
 * started and no port of bench/source.h open; it prints its rows and leaves nothing behind, also when it
 * fails: 0 or a negative errno with a line. One thread.
 */

#include "base/error.h"
#include "bench/bench.h"

int bench_flowsim_rules(const struct bench_options *options, uint32_t flows, struct error *error);
