/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How long something took: counts by time, 16 steps for each power of two (6 % wide), from 1 ns to 2.4
 * hours. One thread adds, any may read meanwhile: what it reads is at most a few additions old.
 */

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_STEPS 640

struct histogram {
	_Atomic uint64_t times;
	_Atomic uint64_t sum_ns;
	_Atomic uint64_t max_ns;
	_Atomic uint32_t count[HISTOGRAM_STEPS];
};

void histogram_add(struct histogram *histogram, uint64_t ns);
/* The time that a `share` (0..1) of all did not exceed, in ns, to one step; 0 when there were none. */
uint64_t histogram_at(const struct histogram *histogram, double share);
/* How many were shorter than 2^bits ns; with 64 all. What is read later may be more, never less. */
uint64_t histogram_below(const struct histogram *histogram, unsigned bits);
