/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/log.h"

RTE_LOG_REGISTER(sim_log_type, pmd.net.flowsim, NOTICE)
