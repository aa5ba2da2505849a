/* SPDX-License-Identifier: BSD-3-Clause */

/* flow explain, flow kill: one flow, named by its key. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/flow_explain.h"
#include "control/flow_filter.h"
#include "control/parts.h"
#include "control/verbs.h"
#include "export/json.h"
#include "path/plane_offload.h"

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

static const struct request_key keys[N_KEYS] = {
	[SRC] = {.name = "src", .type = REQUEST_TEXT, .needed = true},
	[DST] = {.name = "dst", .type = REQUEST_TEXT, .needed = true},
	[PROTO] = {.name = "proto", .type = REQUEST_PROTOCOL, .needed = true},
	[SPORT] = {.name = "sport", .type = REQUEST_NUMBER, .max = UINT16_MAX},
	[DPORT] = {.name = "dport", .type = REQUEST_NUMBER, .max = UINT16_MAX},
	[WIRE] = {.name = "wire", .type = REQUEST_NUMBER, .max = FLOW_MAX_WIRES - 1},
	[ZONE] = {.name = "zone", .type = REQUEST_NUMBER, .max = UINT16_MAX},
};

static int make_key(struct flow_key *key, const struct answer *answer,
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
	if (flow_filter_check(
		    ask, "wire", &values[WIRE], plane_config(answer->plane)->n_wires, error) < 0)
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

static int not_had(const struct answer *answer, int code, struct error *error)
{
	if (code == -ENOENT)
		return error_set(error, code, "no such flow");
	return control_silent(error, code, answer->verb->ask);
}

/* The record's line; `more` are further members, or NULL. */
static int add_record(struct answer *answer, const struct plane_flow *flow, const json_t *more)
{
	struct flow_report report = {
		.record = flow->record,
		.origin_us = plane_origin_us(answer->plane),
		.worker = flow->worker & UINT8_MAX,
		.offload = flow->offload,
	};
	char line[EXPORT_JSON_MAX];
	char *members = more ? json_dumps(more, JSON_COMPACT) : NULL;
	int ret = more && !members ? -ENOMEM
				   : answer_add_text(answer, line, export_json_live(line, &report));

	if (ret == 0 && members) {
		/* one object goes on in the other */
		members[0] = ',';
		ret = answer_add_text(answer, members, strlen(members) - 1);
	}
	free(members);
	return ret < 0 ? ret : answer_add_text(answer, "}\n", 2);
}

static int cpu_of(const struct plane_snapshot *snapshot, unsigned worker)
{
	for (unsigned i = 0; i < snapshot->n_stations; i++)
		if (snapshot->stations[i].kind == STATION_WORKER &&
			snapshot->stations[i].number == worker)
			return snapshot->stations[i].cpu;
	return -1;
}

static int explain(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct plane_flow flow;
	struct flow_key key;
	int ret = make_key(&key, answer, values, error);

	if (ret < 0)
		return ret;
	ret = plane_flow(answer->plane, &key, &flow);
	if (ret < 0)
		return not_had(answer, ret, error);
	ret = control_snapshot(answer->control, answer->verb->ask, error);
	if (ret < 0)
		return ret;
	json_t *more = flow_explain_record(
		answer->plane, &flow, cpu_of(&answer->control->snapshot, flow.worker));

	ret = more ? add_record(answer, &flow, more) : -ENOMEM;
	json_decref(more);
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

static int end_flow(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct plane_flow flow;
	struct flow_key key;
	int ret = make_key(&key, answer, values, error);

	if (ret < 0)
		return ret;
	/* first what the NIC has of it: that is gone with the flow */
	ret = plane_flow(answer->plane, &key, &flow);
	if (ret == 0)
		ret = plane_kill(answer->plane, &key, &flow.worker, &flow.record);
	if (ret < 0)
		return not_had(answer, ret, error);
	ret = add_record(answer, &flow, NULL);
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

const struct answer_verb flow_explain = {
	.ask = "flow explain",
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = explain,
};

const struct answer_verb flow_kill = {
	.ask = "flow kill",
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = end_flow,
};
