/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/state.h"

#include <string.h>

static const char *const names[OFFLOAD_N_STATES] = {
	[OFFLOAD_SOFTWARE] = "software",
	[OFFLOAD_QUEUED] = "queued",
	[OFFLOAD_REFUSED] = "refused",
	[OFFLOAD_INSTALLING] = "installing",
	[OFFLOAD_LEAVING] = "leaving",
	[OFFLOAD_SUSPECT] = "suspect",
	[OFFLOAD_ACCEPTED] = "in_hw",
	[OFFLOAD_PROVEN] = "in_hw",
};

const char *offload_state_name(enum offload_state state)
{
	return names[state];
}
