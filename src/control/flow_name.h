/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How requests name one flow: both its ends, protocol, wire and zone. */

#include "control/answer.h"
#include "packet/key.h"

/* Where they stand among a verb's keys: first. */
enum flow_name_key {
	FLOW_NAME_SRC,
	FLOW_NAME_DST,
	FLOW_NAME_PROTO,
	FLOW_NAME_SPORT,
	FLOW_NAME_DPORT,
	FLOW_NAME_WIRE,
	FLOW_NAME_ZONE,
	FLOW_NAME_KEYS,
};

/* clang-format off */
#define FLOW_NAME_ROWS(must) \
	[FLOW_NAME_SRC] = {.name = "src", .type = REQUEST_TEXT, .needed = (must)}, \
	[FLOW_NAME_DST] = {.name = "dst", .type = REQUEST_TEXT, .needed = (must)}, \
	[FLOW_NAME_PROTO] = {.name = "proto", .type = REQUEST_PROTOCOL, .needed = (must)}, \
	[FLOW_NAME_SPORT] = {.name = "sport", .type = REQUEST_NUMBER, .max = UINT16_MAX}, \
	[FLOW_NAME_DPORT] = {.name = "dport", .type = REQUEST_NUMBER, .max = UINT16_MAX}, \
	[FLOW_NAME_WIRE] = {.name = "wire", .type = REQUEST_NUMBER, .max = FLOW_MAX_WIRES - 1}, \
	[FLOW_NAME_ZONE] = {.name = "zone", .type = REQUEST_NUMBER, .max = UINT16_MAX}
/* clang-format on */

extern const struct request_key flow_name_keys[FLOW_NAME_KEYS];

/* Names what is done with packets of this verdict: "forward", "drop", "reject", "by_packet", "program". */
const char *flow_verdict_name(uint16_t verdict);

/* The key that the values name; src, dst and proto are given. 0 or -EINVAL with a line. */
int flow_name_key(struct flow_key *key, const struct answer *answer,
	const struct request_value *values, struct error *error);
