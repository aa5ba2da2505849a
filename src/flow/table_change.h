/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the burst functions leave to the table's slower half (flow/table_change.c). */

#include "flow/place.h"

/*
 * Enters a record of `group` that has been taken: at home, in the other line, with moves of others, or as
 * a stray; what is a stray in its own group, or lies in another group than its home.
 */
void table_enter(
	struct flow_table *table, struct place home, uint16_t tag, uint32_t group, uint32_t number);
