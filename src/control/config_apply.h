/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Calls for other requests: they go back to the configuration before, and save rules to the engine's own file. */

#include "control/server.h"

/* The configuration before is in effect again, once. `why`: who wanted it. 0 or a negative errno with a line. */
struct control_config_change;
int config_go_back(struct control *control, const char *why, struct control_config_change *change,
	struct error *error);

/* Has the engine a file of rules that can be replaced? 0 or -ENOENT with a line. */
int config_can_save_rules(const struct control *control, struct error *error);
/* Writes control->policy.save to it, and forgets that. 0 or a negative errno with a line. */
int config_save_rules(struct control *control, struct error *error);
