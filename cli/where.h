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

/*
 * "sent on by the NIC alone: 12 packets, 1.2 kB; 3 of these are in no record" behind `head`, a line, if there were any: of
 * `forwarded`, `forwarded_bytes` and `unaccounted`, whose names begin with `prefix`.
 */
void print_sent_on(FILE *out, const char *head, const json_t *line, const char *prefix);

/* How many columns print_wrapped() fills from now on: 99, unless a screen has fewer. */
void print_wrap_at(unsigned columns);

/* A sentence of any length behind a blank and `head`, its further lines indented by so many blanks. */
void print_wrapped(FILE *out, const char *head, const char *text, int indent);
