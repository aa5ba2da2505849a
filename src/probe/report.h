/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The report: what was found, as the parts of one JSON object (docs/probe.md), and that object as text. */

#include <jansson.h>
#include <stdio.h>

#include "probe/cell.h"
#include "probe/limits.h"

/* {"errno":S,"words":S}: what a driver said. */
json_t *report_refusal(const struct provider_why *why);
json_t *report_cell(const struct form *form, const struct cell *cell);
/* A cell that the driver did not survive. NULL: there is no such cell. */
json_t *report_lost(unsigned number, const char *words);
/* `form`: of rules that are none of the engine's. */
json_t *report_limits(const struct limits *limits, const struct form *form);

/* The report for people. */
void report_print(FILE *out, const json_t *report);
