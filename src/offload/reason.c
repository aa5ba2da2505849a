/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/reason.h"

#define REASON_WORDS(reason, name, what) {#name, what},

static const struct {
	const char *name, *what;
} reasons[OFFLOAD_N_REASONS] = {OFFLOAD_REASONS(REASON_WORDS)};

const char *offload_reason_name(uint8_t reason)
{
	if (reason >= OFFLOAD_REFUSALS)
		return "refused";
	return reason < OFFLOAD_N_REASONS ? reasons[reason].name : "unknown";
}

const char *offload_reason_what(uint8_t reason)
{
	if (reason >= OFFLOAD_REFUSALS)
		return "the NIC's driver refused it";
	return reason < OFFLOAD_N_REASONS ? reasons[reason].what : "nobody knows";
}
