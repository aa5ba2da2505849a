/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A program may have this driver twice: linked into it, and loaded by -d or from DPDK's directory of
 * drivers. Two drivers of one name would share their ports' names and telemetry commands, but no memory.
 * So only the first copy announces itself:
 *
 *	RTE_INIT(announce)
 *	{
 *		if (sim_copy_is_first())
 *			... rte_vdev_register(), rte_telemetry_register_cmd() ...
 *	}
 *
 * Answers alike as often as it is asked, by any thread.
 */

#include <stdbool.h>

bool sim_copy_is_first(void);
