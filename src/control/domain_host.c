/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/domain_host.h"

#include "host/host.h"

static json_t *describe_drops(const struct taps_counts *counts)
{
	json_t *drops = json_object();

	for (unsigned i = 0; i < HOST_N_DROPS; i++)
		if (counts->dropped[i] != 0)
			json_object_set_new(drops, host_drop_name((enum host_drop)i),
				json_integer((json_int_t)counts->dropped[i]));
	return drops;
}

static json_t *describe_taps(
	const struct host *host, const struct plane_config *config, unsigned domain)
{
	const struct topology *topology = &config->topology;
	json_t *list = json_array();
	struct taps_counts counts;

	for (unsigned place = 0; place < topology->size[domain]; place++) {
		const unsigned port = topology_port(topology, domain, place);

		if (!host_port_counts(host, port, &counts))
			continue;
		json_array_append_new(
			list, json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:o}", "port",
				      config->port[port]->name, "there", counts.there, "ifindex",
				      (json_int_t)counts.ifindex, "to_kernel",
				      (json_int_t)counts.to_kernel, "from_kernel",
				      (json_int_t)counts.from_kernel, "lost",
				      (json_int_t)counts.lost, "dropped", describe_drops(&counts)));
	}
	return list;
}

json_t *domain_host_describe(struct host *host, const struct plane_config *config, unsigned domain)
{
	struct host_status status;

	host_status(host, &status);
	return json_pack(
		"{s:b, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:o}",
		"synced", status.synced, "routes", (json_int_t)status.mirror.routes[SOURCE_KERNEL],
		"fpm_routes", (json_int_t)status.mirror.routes[SOURCE_FPM], "only_kernel",
		(json_int_t)status.mirror.only_kernel, "foreign_rules",
		(json_int_t)status.mirror.foreign_rules, "foreign_rule", status.foreign_rule,
		"refused", (json_int_t)status.mirror.refused, "cut", (json_int_t)status.mirror.cut,
		"malformed", (json_int_t)status.mirror.malformed, "overruns",
		(json_int_t)status.watch.overruns, "buffer", (json_int_t)status.watch.buffer_bytes,
		"fpm_connected", status.fpm.connected, "fpm_messages",
		(json_int_t)status.fpm.messages, "fpm_malformed", (json_int_t)status.fpm.malformed,
		"taps", describe_taps(host, config, domain));
}
