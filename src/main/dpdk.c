/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/dpdk.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

/* The processors that we may use, as EAL writes a set: "(0,1,5)". */
static void allowed_processors(char *text, size_t size)
{
	cpu_set_t allowed;
	size_t used = 0;

	CPU_ZERO(&allowed);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_SET(0, &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < size; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			used += (size_t)snprintf(
				&text[used], size - used, "%c%d", used == 0 ? '(' : ',', cpu);
	}
	snprintf(&text[used], size - used, ")");
}

int dpdk_start(unsigned megabytes, struct error *error)
{
	char processors[2048];
	char lcores[sizeof(processors) + 2];
	char memory[16];

	/* One lcore, free to run wherever we may: EAL would pin it, and all of us to the same. */
	allowed_processors(processors, sizeof(processors));
	snprintf(lcores, sizeof(lcores), "0@%s", processors);
	snprintf(memory, sizeof(memory), "%u", megabytes);

	/* EAL only moves the pointers about */
	const char *argv[] = {"millrace", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
		"--log-level=*:error", "-m", memory, "--lcores", lcores, NULL};

	if (rte_eal_init((int)RTE_DIM(argv) - 1, (char **)(uintptr_t)argv) < 0)
		return error_set(error, -rte_errno, "DPDK does not start: %s", strerror(rte_errno));
	return 0;
}

void dpdk_stop(void)
{
	rte_eal_cleanup();
}
