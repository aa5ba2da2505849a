/* SPDX-License-Identifier: BSD-3-Clause */
/* What a soak came to. */
#include "offload_soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/monotonic.h"

static void print_kinds(const struct soak *soak)
{
	static const char *const names[SOAK_N_KINDS] = {"fault-free", "faulty"};

	print_message("%-12s %8s %14s %14s %10s %10s %10s %10s\n", "rounds", "number", "packets",
		"marked", "turns", "p50 us", "p99.99 us", "max us");
	for (unsigned kind = 0; kind < SOAK_N_KINDS; kind++) {
		const struct histogram *times = &soak->times[kind];

		print_message("%-12s %8u %14lu %14lu %10lu %10.1f %10.1f %10.1f\n", names[kind],
			soak->rounds[kind], soak->packets[kind], soak->marked[kind], times->times,
			(double)histogram_at(times, 0.5) / 1000,
			(double)histogram_at(times, 0.9999) / 1000, (double)times->max_ns / 1000);
	}
}

static void print_faults(const struct soak *soak)
{
	print_message("%-30s rounds\n", "fault");
	for (unsigned i = 0; i <= SOAK_MIX; i++)
		print_message("%-30s %6u\n", soak_fault_name(i), soak->tried[i]);
	print_message("strikes:");
	for (unsigned i = 0; i < SIM_N_FAULTS; i++)
		print_message(" %s %lu", sim_fault_name((enum sim_fault_name)i), soak->strikes[i]);
	print_message("\n");
}

void soak_print(const struct soak *soak)
{
	print_kinds(soak);
	print_faults(soak);
	print_message("notices:");
	for (unsigned i = CHANGE_FLOW + 1; i < CHANGE_N_KINDS; i++)
		print_message(" %s %lu", change_kind_name((enum change_kind)i), soak->notices[i]);
	for (unsigned i = 0; i < OFFLOAD_N_REASONS; i++)
		if (soak->fell_out[i] != 0)
			print_message(", fell out %s %lu", offload_reason_name((uint8_t)i),
				soak->fell_out[i]);
	print_message(", refused %lu, strangers %lu\n", soak->refused, soak->strangers);
	print_message("all was well again after %lu ms at most; %lu s in all\n", soak->longest_ms,
		(monotonic_us() - soak->begin_us) / 1000000);
}
