/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The table of flows in `millrace top`: columns by what there is room for, and the cursor. */

#include <stdint.h>

#include "cli/top_canvas.h"
#include "cli/top_picture.h"
#include "cli/top_view.h"

/* Titles and `n` rows from the row on. The view is told how many flows there is room for. */
void top_flows_draw(struct top_canvas *canvas, unsigned row, unsigned n,
	const struct top_picture *picture, struct top_view *view, int64_t now_us);
