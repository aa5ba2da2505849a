/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Which flows a list is of. */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "control/request.h"
#include "flow/report.h"
#include "plane/plane.h"

/*
 * The keys of a request that filter, to stand first among a verb's keys, in this order: first those of what never
 * changes of a flow.
 */
enum flow_filter_key {
	FLOW_FILTER_ADDRESS,
	FLOW_FILTER_PORT,
	FLOW_FILTER_PROTO,
	FLOW_FILTER_WIRE,
	FLOW_FILTER_ZONE,
	FLOW_FILTER_N_FIXED,
	FLOW_FILTER_STATE = FLOW_FILTER_N_FIXED,
	FLOW_FILTER_WORKER,
	FLOW_FILTER_OFFLOAD,
	FLOW_FILTER_BLOCKED,
	FLOW_FILTER_N_KEYS,
};

/* clang-format off */
#define FLOW_FILTER_FIXED_KEYS \
	[FLOW_FILTER_ADDRESS] = {.name = "address", .type = REQUEST_TEXT}, \
	[FLOW_FILTER_PORT] = {.name = "port", .type = REQUEST_NUMBER, .max = UINT16_MAX}, \
	[FLOW_FILTER_PROTO] = {.name = "proto", .type = REQUEST_PROTOCOL}, \
	[FLOW_FILTER_WIRE] = {.name = "wire", .type = REQUEST_NUMBER, .max = FLOW_MAX_WIRES - 1}, \
	[FLOW_FILTER_ZONE] = {.name = "zone", .type = REQUEST_NUMBER, .max = UINT16_MAX}
#define FLOW_FILTER_KEYS \
	FLOW_FILTER_FIXED_KEYS, \
	[FLOW_FILTER_STATE] = {.name = "state", .type = REQUEST_TEXT}, \
	[FLOW_FILTER_WORKER] = {.name = "worker", .type = REQUEST_NUMBER, \
		.max = PLANE_MAX_WORKERS - 1}, \
	[FLOW_FILTER_OFFLOAD] = {.name = "offload", .type = REQUEST_TEXT}, \
	[FLOW_FILTER_BLOCKED] = {.name = "blocked", .type = REQUEST_FLAG}
/* clang-format on */

#define FLOW_FILTER_ANY (-1)

struct flow_filter {
	/* of addresses, 0: any; else 4 or 6 */
	unsigned version;
	uint8_t address[16], mask[16];
	/* FLOW_FILTER_ANY, or the number that it must be */
	int port, proto, wire, worker, zone;
	int blocked;	 /* FLOW_FILTER_ANY, or whether it must be */
	uint32_t states; /* bit by enum flow_state */
	uint32_t places; /* bit by enum offload_state */
};

/* What the values ask for; the first: those of the fixed keys alone. 0 or -EINVAL with a line. */
int flow_filter_init_fixed(struct flow_filter *filter, const char *ask,
	const struct request_value *values, const struct plane_config *config, struct error *error);
int flow_filter_init(struct flow_filter *filter, const char *ask,
	const struct request_value *values, const struct plane_config *config, struct error *error);

/* Does the flow pass, by what never changes of it? And as it is now? */
bool flow_filter_key(const struct flow_filter *filter, const struct flow_key *key);
bool flow_filter_match(const struct flow_filter *filter, const struct flow_record *record,
	const struct flow_offload *offload);

/*
 * Reads an address into 16 bytes as keys have it. Returns its IP version, or 0 when it is none.
 */
unsigned flow_filter_address(uint8_t address[16], const char *text);

/* Wires and workers that this engine does not have are told from those that have no flows. */
int flow_filter_check(const char *ask, const char *key, const struct request_value *value,
	unsigned n, struct error *error);
