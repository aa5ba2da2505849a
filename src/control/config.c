/* SPDX-License-Identifier: BSD-3-Clause */

/* config show: what is in effect. */

#include <string.h>

#include "control/control.h"
#include "control/verbs.h"

static int show_config(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const char *json = answer->control->config_json;
	int ret = answer_add_text(answer, json, strlen(json));

	(void)values;
	if (ret == 0)
		ret = answer_add_text(answer, "\n", 1);
	return ret < 0 ? control_silent(error, ret, "config show") : 0;
}

const struct answer_verb config_show = {
	.ask = "config show",
	.begin = show_config,
};
