/* SPDX-License-Identifier: BSD-3-Clause */

/* flow explain, flow kill: one flow, named by its key. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/flow_explain.h"
#include "control/flow_name.h"
#include "control/verbs.h"
#include "export/json.h"
#include "plane/plane.h"

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
		.dropped = flow->dropped,
		.rules = flow->rules,
	};
	char line[EXPORT_JSON_MAX];
	char *members = more ? json_dumps(more, ANSWER_JSON) : NULL;
	flow_report_set_measured(&report, flow->measure);

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
	for (unsigned i = 0; i < snapshot->n_lcores; i++)
		if (snapshot->lcores[i].kind == LCORE_WORKER &&
			snapshot->lcores[i].number == worker)
			return snapshot->lcores[i].cpu;
	return -1;
}

static int explain(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct plane_flow flow;
	struct flow_key key;
	int ret = flow_name_key(&key, answer, values, error);

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
	int ret = flow_name_key(&key, answer, values, error);

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
	.keys = flow_name_keys,
	.n_keys = FLOW_NAME_KEYS,
	.begin = explain,
};

const struct answer_verb flow_kill = {
	.ask = "flow kill",
	.keys = flow_name_keys,
	.n_keys = FLOW_NAME_KEYS,
	.begin = end_flow,
};
