/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "main/run_config.h"

/* A path may have any bytes, JSON has UTF-8 only: where it is none, what is not ASCII becomes '?'. */
static json_t *text(const char *bytes)
{
	if (!bytes)
		return json_null();
	json_t *string = json_string(bytes);
	char *copy = string ? NULL : strdup(bytes);

	if (!copy)
		return string;
	for (char *at = copy; *at != '\0'; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	string = json_string(copy);
	free(copy);
	return string;
}

static json_t *number(uint32_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *ports(const struct run_config *config)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < config->n_ports; i++) {
		json_t *port = json_object();

		json_object_set_new(port, "name", text(config->ports[i].name));
		json_object_set_new(port, "device", text(config->ports[i].device.text));
		json_array_append_new(list, port);
	}
	return list;
}

static json_t *wires(const struct run_config *config)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < config->n_wires; i++) {
		json_t *wire = json_array();

		for (unsigned end = 0; end < 2; end++)
			json_array_append_new(
				wire, text(config->ports[config->wires[i].port[end]].name));
		json_array_append_new(list, wire);
	}
	return list;
}

static json_t *routers(const struct run_config *config)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < config->n_routers; i++) {
		const struct run_router *from = &config->routers[i];
		json_t *router = json_object(), *all = json_array();

		json_object_set_new(router, "name", text(from->name));
		json_object_set_new(router, "netns", text(from->netns));
		json_object_set_new(router, "table",
			from->table == ROUTER_TABLE_MAIN ? text("main") : number(from->table));
		json_object_set_new(
			router, "source-check", text(routes_source_check_name(from->source_check)));
		json_object_set_new(router, "routes", number(from->max_routes[0]));
		json_object_set_new(router, "routes6", number(from->max_routes[1]));
		json_object_set_new(
			router, "fpm", from->fpm_port == 0 ? text("off") : number(from->fpm_port));
		for (unsigned at = 0; at < from->n_ports; at++) {
			json_t *port = json_object();

			json_object_set_new(
				port, "port", text(config->ports[from->ports[at].port].name));
			json_object_set_new(port, "name", text(from->ports[at].tap));
			json_array_append_new(all, port);
		}
		json_object_set_new(router, "ports", all);
		json_array_append_new(list, router);
	}
	return list;
}

static json_t *timeouts(const struct run_config *config)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		json_object_set_new(object, flow_timeout_name((enum flow_timeout)i),
			number(config->engine.timeouts.seconds[i]));
	return object;
}

static json_t *offload(const struct run_config *config)
{
	const struct run_offload *from = &config->offload;
	json_t *object = json_object(), *except = json_array();

	json_object_set_new(object, "enabled", json_boolean(from->on));
	json_object_set_new(object, "mode", text(from->full ? "full" : "mark"));
	json_object_set_new(object, "threshold", number(from->threshold));
	json_object_set_new(object, "slots", number(from->slots));
	json_object_set_new(object, "rules", number(from->rules));
	json_object_set_new(object, "rules-per-second", number(from->rules_per_s));
	json_object_set_new(object, "counters", json_boolean(from->counters));
	json_object_set_new(object, "restart", json_boolean(from->restart));
	json_object_set_new(object, "rules-in-nic", text(from->drops ? "drop" : "off"));
	for (unsigned i = 0; i < from->n_except; i++)
		json_array_append_new(except, text(from->except[i]));
	json_object_set_new(object, "except", except);
	return object;
}

static json_t *blocks(const struct run_config *config)
{
	const struct run_blocks *from = &config->blocks;
	json_t *object = json_object(), *list = json_array();

	json_object_set_new(object, "max", number(from->max));
	json_object_set_new(object, "reasons", number(from->reasons));
	json_object_set_new(object, "file", text(from->file));
	for (unsigned i = 0; i < from->n_list; i++)
		json_array_append_new(list, text(from->list[i]));
	json_object_set_new(object, "list", list);
	return object;
}

static json_t *exports(const struct run_config *config)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < config->exports.n; i++)
		json_array_append_new(list, text(config->exports.targets[i].text));
	return list;
}

static json_t *metrics(const struct run_config *config)
{
	json_t *object = json_object();

	json_object_set_new(object, "listen", text(config->metrics.listen));
	return object;
}

static json_t *rules(const struct run_config *config)
{
	const struct run_rules *from = &config->rules;
	json_t *object = json_object(), *list = json_array();

	json_object_set_new(object, "max", number(from->max));
	json_object_set_new(object, "reject-rate", number(from->reject_rate));
	json_object_set_new(object, "log-rate", number(from->log_rate));
	json_object_set_new(object, "file", text(from->file));
	json_object_set_new(object, "replies", text(from->replies_follow ? "follow" : "match"));
	json_object_set_new(object, "pickup", json_boolean(!from->no_pickup));
	for (unsigned i = 0; i < from->n_list; i++)
		json_array_append_new(list, text(from->list[i]));
	json_object_set_new(object, "list", list);
	list = json_array();
	for (unsigned i = 0; i < from->n_sets; i++)
		json_array_append_new(list, text(from->sets[i]));
	json_object_set_new(object, "sets", list);
	list = json_array();
	for (unsigned i = 0; i < from->n_captures; i++)
		json_array_append_new(list, text(from->captures[i]));
	json_object_set_new(object, "captures", list);
	return object;
}

char *run_config_json(const struct run_config *config)
{
	static const char *const sharding[] = {[PLANE_SHARDING_AUTO] = "auto",
		[PLANE_SHARDING_RSS] = "rss",
		[PLANE_SHARDING_SOFTWARE] = "software"};
	const struct engine_options *engine = &config->engine;
	const struct {
		const char *key;
		json_t *value;
	} rows[] = {
		{"ports", ports(config)},
		{"wires", wires(config)},
		{"routers", routers(config)},
		{"workers", number(engine->workers)},
		{"threads", text(config->threads == PLANE_SPLIT ? "split" : "run-to-completion")},
		{"sharding", text(sharding[config->sharding])},
		{"poll", text(config->poll_always ? "always" : "adaptive")},
		{"pin", json_boolean(config->pin)},
		{"one-armed", json_boolean(config->one_armed)},
		{"flows", number(engine->flows)},
		{"fragments", text(engine->fragments_follow ? "follow" : "separate")},
		{"tcp", text(engine->tcp_strict ? "strict" : ENGINE_TCP_DEFAULT)},
		{"zone", text(engine->zone_vlan ? "vlan" : ENGINE_ZONE_DEFAULT)},
		{"active", engine->active_s > 0 ? number(engine->active_s)
						: text(ENGINE_ACTIVE_DEFAULT)},
		{"measure", text(engine->measure ? engine->measure_text : ENGINE_MEASURE_DEFAULT)},
		{"timeouts", timeouts(config)},
		{"offload", offload(config)},
		{"blocks", blocks(config)},
		{"metrics", metrics(config)},
		{"rules", rules(config)},
		{"output", text(config->output)},
		{"exports", exports(config)},
		{"socket", text(config->socket)},
		{"telemetry", json_boolean(config->telemetry)},
		{"force", json_boolean(config->force)},
	};
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		json_object_set_new(object, rows[i].key, rows[i].value);
	char *line = json_dumps(object, JSON_COMPACT);

	json_decref(object);
	return line;
}
