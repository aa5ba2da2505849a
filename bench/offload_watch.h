/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How long packets and rules of `millrace bench offload` take. One engine is watched at a time; its packets tell when
 * they came (offload_times_init()), and are met again where they leave. The thread that turns the engine.
 */

#include "bench/offload.h"

/* Before the engine's first packet; `times` is filled from here on. 0, -ENOMEM or what ethdev says. */
int watch_begin(const struct wire_engine *engine, struct offload_times *times);

/* What has become of rules since the last call. Nothing where no engine is watched. */
void watch_changes(const struct wire_engine *engine);

/*
 * Times of packets, of an engine whose load is steady and whose rules are made, in two seconds; `cycles` are what it
 * takes for a packet above what receiving and sending do, for bare times in two more; 0: none. 0 or -ENOMEM after a line.
 */
int watch_packets(const struct wire_engine *engine, double cycles);

/* Accepts engines that are not watched. */
void watch_end(const struct wire_engine *engine);
