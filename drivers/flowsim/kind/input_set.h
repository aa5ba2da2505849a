/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * NICs that match whole fields: which fields of which packet types Intel's flow directors know, and what
 * a packet type is to them. No state; any thread.
 */

#include "drivers/flowsim/kind/profile.h"

/*
 * Whether all that the pattern compares are whole fields that the maker's NIC has for packets of that
 * type; SIM_MAKER_NONE: whole bytes of any. -EINVAL and why.
 */
int sim_input_set_check(
	enum sim_maker maker, const struct sim_pattern *pattern, struct sim_fault_at *fault);

/* SIM_QUIRK_PACKET_TYPE: the pattern of an IP packet, narrowed to that packet type. */
void sim_input_set_narrow(struct sim_pattern *pattern);
