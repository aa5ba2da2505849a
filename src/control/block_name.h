/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How requests name a block: by what it fits, which is a flow (its ends, protocol, wire and zone), or an address or prefix
 * with or without port and protocol. And the JSON of one.
 */

#include "control/answer.h"
#include "control/flow_name.h"
#include "rule/blocks.h"

/* They stand first among a verb's keys: those of a flow, and then these. */
enum block_name_key {
	BLOCK_NAME_PREFIX = FLOW_NAME_KEYS,
	BLOCK_NAME_PORT,
	BLOCK_NAME_KEYS,
};

/* clang-format off */
#define BLOCK_NAME_ROWS \
	FLOW_NAME_ROWS(false), \
	[BLOCK_NAME_PREFIX] = {.name = "prefix", .type = REQUEST_TEXT}, \
	[BLOCK_NAME_PORT] = {.name = "port", .type = REQUEST_NUMBER, .min = 1, .max = UINT16_MAX}
/* clang-format on */

/* The engine's list; NULL with a line (-ENOTSUP) where it keeps none. */
struct blocks *block_list_of(const struct answer *answer, struct error *error);

/* Does the request name one at all? */
bool block_name_given(const struct request_value *values);

/* What the values name. 0 or -EINVAL with a line. */
int block_name_match(struct block_match *match, const struct answer *answer,
	const struct request_value *values, struct error *error);

/* Bytes of the longest object that block_json() writes, and its ending zero. */
#define BLOCK_JSON_MAX 1280

/*
 * The members of a block as JSON, {"number":1,"match":"192.0.2.0/24",... without the closing brace (docs/control.md has
 * them). `origin_us` is the Unix time of the run's clock 0. Returns the length.
 */
size_t block_json(char line[BLOCK_JSON_MAX], const struct block_view *view, uint64_t origin_us,
	uint64_t now_us);

/* The same as an object. NULL without memory. */
json_t *block_object(const struct block_view *view, uint64_t origin_us, uint64_t now_us);
