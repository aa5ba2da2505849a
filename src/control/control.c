/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/control.h"

#include <errno.h>
#include <string.h>

int control_silent(struct error *error, int code, const char *ask)
{
	if (code == -ETIMEDOUT)
		return error_set(
			error, code, "%s: a thread of the packet path does not answer", ask);
	return error_set(error, code, "%s: %s", ask, strerror(-code));
}

int control_snapshot(struct control *control, const char *ask, struct error *error)
{
	int ret = plane_snapshot(control->plane, &control->snapshot);

	return ret < 0 ? control_silent(error, ret, ask) : 0;
}

int show_snapshot(struct answer *answer, struct error *error)
{
	int ret = control_snapshot(answer->control, answer->verb->ask, error);

	if (ret == 0)
		answer->clock_us = answer->control->snapshot.now_us;
	return ret;
}
