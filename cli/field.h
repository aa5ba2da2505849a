/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a line of an answer says, as text to print. What is absent, or of another kind than it should
 * be, is "-"; strings are made printable, whoever chose them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Room for any name of a port, a device, a state, an address. */
#define FIELD_MAX 320

/* A string, or a number in digits. Returns `buffer`, as all that have one do. */
const char *field_text(const json_t *line, const char *key, char buffer[FIELD_MAX]);
/* 1,024 */
const char *field_grouped(const json_t *line, const char *key, char buffer[FIELD_MAX]);
/* 5.5 MB */
const char *field_bytes(const json_t *line, const char *key, char buffer[FIELD_MAX]);
/* A number with one decimal, grouped without it from 1,000 on. */
const char *field_decimal(const json_t *line, const char *key, char buffer[FIELD_MAX]);
/* 10.0.0.1:80 or [2001:db8::1]:443; without a port where the line's protocol has none. */
const char *field_endpoint(
	const json_t *line, const char *address, const char *port, char buffer[FIELD_MAX]);
/* tcp, 253 */
const char *field_proto(const json_t *line, char buffer[FIELD_MAX]);

/* "source 10.0.0.7 has 201 live flows, limit 200", of a limit of a rule. */
const char *field_limit(const json_t *limit, char buffer[2 * FIELD_MAX]);

bool field_has(const json_t *line, const char *key);
/* 0 when it is absent or no number above 0. */
uint64_t field_number(const json_t *line, const char *key);
