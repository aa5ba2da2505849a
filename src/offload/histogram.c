/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/histogram.h"

/*
 * Below 16 ns each number has a step of its own. From there on each power of two has 16: the highest bit
 * says which power, the four bits below it which step.
 */
#define STEP_BITS 4
#define STEPS (1u << STEP_BITS)

static unsigned histogram_step_of(uint64_t ns)
{
	if (ns < STEPS)
		return (unsigned)ns;
	unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
	unsigned step = (shift << STEP_BITS) + (unsigned)(ns >> shift);

	return step < HISTOGRAM_STEPS ? step : HISTOGRAM_STEPS - 1;
}

/* The longest time that is counted at a step. */
static uint64_t longest_of(unsigned step)
{
	if (step < STEPS)
		return step;
	unsigned shift = (step >> STEP_BITS) - 1;

	return ((uint64_t)(step - (shift << STEP_BITS) + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	_Atomic uint32_t *count = &histogram->count[histogram_step_of(ns)];
	uint32_t n = atomic_load_explicit(count, memory_order_relaxed);

	if (n < UINT32_MAX)
		atomic_store_explicit(count, n + 1, memory_order_relaxed);
	if (ns > atomic_load_explicit(&histogram->max_ns, memory_order_relaxed))
		atomic_store_explicit(&histogram->max_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&histogram->sum_ns,
		atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed) + ns,
		memory_order_relaxed);
	atomic_store_explicit(&histogram->times,
		atomic_load_explicit(&histogram->times, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static uint64_t count_of(const struct histogram *histogram, unsigned step)
{
	return atomic_load_explicit(&histogram->count[step], memory_order_relaxed);
}

uint64_t histogram_at(const struct histogram *histogram, double share)
{
	uint64_t max = atomic_load_explicit(&histogram->max_ns, memory_order_relaxed);
	uint64_t all = 0, passed = 0;

	/* of the steps themselves: they may be ahead of the total */
	for (unsigned step = 0; step < HISTOGRAM_STEPS; step++)
		all += count_of(histogram, step);
	if (all == 0)
		return 0;
	double wanted = share * (double)all;

	for (unsigned step = 0; step < HISTOGRAM_STEPS - 1; step++) {
		passed += count_of(histogram, step);
		if (passed > 0 && (double)passed >= wanted)
			return longest_of(step) < max ? longest_of(step) : max;
	}
	return max;
}

uint64_t histogram_below(const struct histogram *histogram, unsigned bits)
{
	unsigned end = bits < STEP_BITS ? 1u << bits : (bits - STEP_BITS + 1) * STEPS;
	uint64_t below = 0;

	if (end > HISTOGRAM_STEPS)
		end = HISTOGRAM_STEPS;
	for (unsigned step = 0; step < end; step++)
		below += count_of(histogram, step);
	return below;
}
