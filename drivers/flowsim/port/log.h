/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Lines of the driver in DPDK's log, under the type pmd.net.flowsim. Never from a burst. */

#include <rte_log.h>

extern int sim_log_type;

/* SIM_LOG(ERR, "%s: ...", name): a line; its end is added. */
#define SIM_LOG(level, format, ...) \
	rte_log(RTE_LOG_##level, sim_log_type, format "\n" __VA_OPT__(, ) __VA_ARGS__)
