/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_name.h"

#include <errno.h>

#include "control/control.h"
#include "control/flow_filter.h"

const struct request_key flow_name_keys[FLOW_NAME_KEYS] = {FLOW_NAME_ROWS(true)};

const char *flow_verdict_name(uint16_t verdict)
{
	if (flow_verdict_rejects(verdict))
		return "reject";
	switch (verdict) {
	case FLOW_VERDICT_FORWARD:
		return "forward";
	case FLOW_VERDICT_DROP:
		return "drop";
	case FLOW_VERDICT_BY_PACKET:
		return "by_packet";
	default:
		return "program";
	}
}

int flow_name_key(struct flow_key *key, const struct answer *answer,
	const struct request_value *values, struct error *error)
{
	const char *ask = answer->verb->ask;
	uint8_t src[16], dst[16];
	unsigned version = flow_filter_address(src, values[FLOW_NAME_SRC].text);
	unsigned other = flow_filter_address(dst, values[FLOW_NAME_DST].text);

	if (version == 0)
		return request_bad(error, ask, "src", values[FLOW_NAME_SRC].text, "no IP address");
	if (other == 0)
		return request_bad(error, ask, "dst", values[FLOW_NAME_DST].text, "no IP address");
	if (version != other)
		return error_set(
			error, -EINVAL, "%s: src is of IPv%u, dst of IPv%u", ask, version, other);
	if (flow_filter_check(ask, "wire", &values[FLOW_NAME_WIRE],
		    plane_config(answer->plane)->topology.n_domains, error) < 0)
		return -EINVAL;
	*key = (struct flow_key){
		.zone = (uint16_t)values[FLOW_NAME_ZONE].number,
		.proto = (uint8_t)values[FLOW_NAME_PROTO].number,
		.version_wire = FLOW_KEY_VERSION_WIRE(version, values[FLOW_NAME_WIRE].number),
	};
	flow_key_make(key, src, dst, rte_cpu_to_be_16((uint16_t)values[FLOW_NAME_SPORT].number),
		rte_cpu_to_be_16((uint16_t)values[FLOW_NAME_DPORT].number));
	return 0;
}
