/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Where a flow is handled, in words of text: "in NIC", "software", ... And sentences that wrap. */

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "cli/field.h"

/* A state of offload as people read it: "in_hw" is "in NIC", others are what they are. */
const char *where_text(const json_t *line, const char *key, char buffer[FIELD_MAX]);

/* "in NIC -> software", of a line with `before` and `after`; `buffer` has FIELD_MAX bytes or more. */
const char *where_change(const json_t *change, char *buffer, size_t size);

/* A sentence of any length behind a blank and `head`, its further lines indented by so many blanks. */
void print_wrapped(FILE *out, const char *head, const char *text, int indent);
