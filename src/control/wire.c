/* SPDX-License-Identifier: BSD-3-Clause */

/* wire show: every packet of a wire, and where it ended. */

#include "control/control.h"
#include "control/verbs.h"

static json_t *wires_describe(
	const struct plane_config *config, const struct plane_snapshot *snapshot, unsigned wire)
{
	const struct path_counters *counters = &snapshot->wires[wire];
	const struct topology *topology = &config->topology;
	json_t *line = json_object(), *ports = json_array();

	for (unsigned place = 0; place < topology->size[wire]; place++)
		json_array_append_new(ports,
			json_string(config->port[topology_port(topology, wire, place)]->name));
	answer_number(line, "wire", wire);
	json_object_set_new(line, "ports", ports);
	answer_number(line, "received", counters->received);
	answer_number(line, "received_bytes", counters->received_bytes);
	answer_number(line, "non_ip", counters->non_ip);
	answer_number(line, "out", counters->out);
	answer_number(line, "out_bytes", counters->out_bytes);
	answer_number(line, "delivered", counters->delivered);
	answer_number(line, "dropped", path_counters_dropped(counters));
	answer_number(line, "held", counters->held);
	answer_number(line, "mirrored", counters->mirrored);
	answer_number(line, "from_kernel", counters->from_kernel);
	answer_number(line, "reject_replies", counters->reject_replies);
	answer_number(line, "reject_limited", counters->reject_limited);
	answer_number(line, "reject_unanswered", counters->reject_unanswered);
	answer_number(line, "logged", counters->logged);
	answer_number(line, "log_lost", counters->log_lost);
	answer_number(line, "captured", counters->captured);
	answer_number(line, "capture_lost", counters->capture_lost);
	answer_number(line, "nic_forwarded", counters->nic_forwarded);
	answer_number(line, "nic_forwarded_bytes", counters->nic_forwarded_bytes);
	answer_number(line, "nic_dropped", counters->nic_dropped);
	answer_number(line, "nic_dropped_bytes", counters->nic_dropped_bytes);
	answer_number(line, "nic_unaccounted", counters->nic_unaccounted);
	answer_number(line, "fragments_untied", counters->fragments_untied);
	answer_number(line, "icmp_untied", counters->icmp_untied);
	answer_number(line, "one_sided", counters->one_sided);
	answer_number(line, "flows", snapshot->wire_flows[wire]);
	return line;
}

static int show_wires(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct plane_config *config = plane_config(answer->plane);
	int ret = show_snapshot(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < config->topology.n_domains && ret == 0; i++)
		ret = answer_add(answer, wires_describe(config, &answer->control->snapshot, i));
	return ret < 0 ? control_silent(error, ret, "wire show") : 0;
}

const struct answer_verb wire_show = {
	.ask = "wire show",
	.begin = show_wires,
};
