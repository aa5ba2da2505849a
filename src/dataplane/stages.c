/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/stages.h"

const char *stage_name(enum stage stage)
{
	static const char *const names[N_STAGES] = {
		[STAGE_RX] = "rx",
		[STAGE_PARSE] = "parse",
		[STAGE_LOOK_UP] = "look_up",
		[STAGE_ACCOUNT] = "account",
		[STAGE_LEARN] = "learn",
		[STAGE_OUT] = "out",
	};

	return names[stage];
}
