/* SPDX-License-Identifier: BSD-3-Clause */
/* domain show: the wires and routers, and what routers left to the kernel. */
#include "control/control.h"
#include "control/domain_host.h"
#include "control/verbs.h"
#include "route/router.h"

static json_t *punts_describe(const struct path_counters *counters)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < PUNT_N_REASONS; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:I, s:I, s:s}", "reason", punt_name((enum punt_reason)i),
				"packets", (json_int_t)counters->punted[i], "limited",
				(json_int_t)counters->punt_limited[i], "what",
				punt_what((enum punt_reason)i)));
	return list;
}

static void add_router(json_t *line, struct router *router, const struct path_counters *counters)
{
	const struct router_config *config = router_config(router);
	struct router_counters of;

	router_counters(router, &of);
	json_object_set_new(line, "router", answer_string(config->name));
	if (config->table == ROUTER_TABLE_MAIN)
		json_object_set_new(line, "table", json_string("main"));
	else
		answer_number(line, "table", config->table);
	json_object_set_new(
		line, "source_check", json_string(routes_source_check_name(config->source_check)));
	answer_number(line, "links", of.links);
	answer_number(line, "neighbours", of.neighbours);
	answer_number(line, "routes", of.routes);
	answer_number(line, "prefixes", of.prefixes[0]);
	answer_number(line, "prefixes6", of.prefixes[1]);
	answer_number(line, "next_hops", of.hops);
	answer_number(line, "groups", of.groups);
	answer_number(line, "changes", of.changes);
	answer_number(line, "next_hop_changes", of.hop_changes);
	answer_number(line, "refused", of.refused);
	answer_number(line, "left_to_kernel", of.full);
	answer_number(line, "dumps", of.dumps);
	answer_number(line, "delivered", counters->delivered);
	answer_number(line, "from_kernel", counters->from_kernel);
	json_object_set_new(line, "punts", punts_describe(counters));
}

static json_t *domain_describe(struct answer *answer, unsigned domain)
{
	const struct plane_config *config = plane_config(answer->plane);
	const struct topology *topology = &config->topology;
	struct host *const *hosts = answer->control->hosts;
	json_t *line = json_object(), *ports = json_array();

	for (unsigned place = 0; place < topology->size[domain]; place++)
		json_array_append_new(ports,
			json_string(config->port[topology_port(topology, domain, place)]->name));
	answer_number(line, "domain", domain);
	json_object_set_new(
		line, "kind", json_string(topology->router[domain] ? "router" : "wire"));
	json_object_set_new(line, "ports", ports);
	answer_number(line, "flows", answer->control->snapshot.wire_flows[domain]);
	if (topology->router[domain])
		add_router(line, plane_router(answer->plane, domain),
			&answer->control->snapshot.wires[domain]);
	if (hosts != NULL && hosts[domain] != NULL)
		json_object_set_new(
			line, "kernel", domain_host_describe(hosts[domain], config, domain));
	return line;
}

static int show_domains(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	int ret = show_snapshot(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < plane_config(answer->plane)->topology.n_domains && ret == 0; i++)
		ret = answer_add(answer, domain_describe(answer, i));
	return ret < 0 ? control_silent(error, ret, "domain show") : 0;
}

const struct answer_verb domain_show = {
	.ask = "domain show",
	.begin = show_domains,
};
