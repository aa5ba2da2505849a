/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_name.h"

#include <errno.h>

#include "control/flow_filter.h"
#include "control/parts.h"

enum {
	SRC,
	DST,
	PROTO,
	SPORT,
	DPORT,
	WIRE,
	ZONE,
	N_KEYS,
};

static_assert(N_KEYS == FLOW_NAME_KEYS, "all of them are in the header's array");

const struct request_key flow_name_keys[FLOW_NAME_KEYS] = {
	[SRC] = {.name = "src", .type = REQUEST_TEXT, .needed = true},
	[DST] = {.name = "dst", .type = REQUEST_TEXT, .needed = true},
	[PROTO] = {.name = "proto", .type = REQUEST_PROTOCOL, .needed = true},
	[SPORT] = {.name = "sport", .type = REQUEST_NUMBER, .max = UINT16_MAX},
	[DPORT] = {.name = "dport", .type = REQUEST_NUMBER, .max = UINT16_MAX},
	[WIRE] = {.name = "wire", .type = REQUEST_NUMBER, .max = FLOW_MAX_WIRES - 1},
	[ZONE] = {.name = "zone", .type = REQUEST_NUMBER, .max = UINT16_MAX},
};

int flow_name_key(struct flow_key *key, const struct answer *answer,
	const struct request_value *values, struct error *error)
{
	const char *ask = answer->verb->ask;
	uint8_t src[16], dst[16];
	unsigned version = flow_filter_address(src, values[SRC].text);
	unsigned other = flow_filter_address(dst, values[DST].text);

	if (version == 0)
		return request_bad(error, ask, "src", values[SRC].text, "no IP address");
	if (other == 0)
		return request_bad(error, ask, "dst", values[DST].text, "no IP address");
	if (version != other)
		return error_set(
			error, -EINVAL, "%s: src is of IPv%u, dst of IPv%u", ask, version, other);
	if (flow_filter_check(ask, "wire", &values[WIRE],
		    plane_config(answer->plane)->topology.n_domains, error) < 0)
		return -EINVAL;
	*key = (struct flow_key){
		.zone = (uint16_t)values[ZONE].number,
		.proto = (uint8_t)values[PROTO].number,
		.version_wire = FLOW_KEY_VERSION_WIRE(version, values[WIRE].number),
	};
	flow_key_make(key, src, dst, rte_cpu_to_be_16((uint16_t)values[SPORT].number),
		rte_cpu_to_be_16((uint16_t)values[DPORT].number));
	return 0;
}
