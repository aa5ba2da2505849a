/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Blocks of flows. */

#include "control/control.h"

/* Removes blocks that are due, if it is time, and sets when to look again. */
void blocks_tend(struct control *control);
