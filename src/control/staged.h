/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Texts that are longer than a request: a connection sends them in pieces, for the request that follows. */

#include "control/answer.h"

/* One piece more, which is answered; `what` is told where the text has more than `most` bytes. 0 or a negative errno with a line. */
int staged_add(struct answer *answer, const char *text, size_t most, const char *what,
	struct error *error);
/* Forgets what was sent. */
void staged_drop(struct control_staged *staged);
