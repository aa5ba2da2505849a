/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_json.h"

#include "cli/field.h"

/* Rates are whole, percentages have one decimal. */
static void add_rate(json_t *object, const char *key, double rate)
{
	if (rate >= 0 && rate < 9e18)
		json_object_set_new(object, key, json_integer((json_int_t)(rate + 0.5)));
}

static void add_percent(json_t *object, const char *key, double percent)
{
	if (percent >= 0)
		json_object_set_new(object, key, json_real((double)(int)(percent * 10 + 0.5) / 10));
}

/* An object of its own with what the line has. */
static json_t *copy_of(const json_t *line)
{
	return json_copy((json_t *)(uintptr_t)line);
}

static json_t *ports_of(const struct top_picture *picture)
{
	json_t *ports = json_array();

	for (unsigned i = 0; i < picture->n_ports; i++) {
		const struct top_port *port = &picture->ports[i];
		json_t *line = copy_of(port->line);

		add_rate(line, "rx_pps", port->rx_pps);
		add_rate(line, "rx_bps", port->rx_bps);
		add_rate(line, "tx_pps", port->tx_pps);
		add_rate(line, "tx_bps", port->tx_bps);
		add_rate(line, "missed_pps", port->missed_pps);
		json_array_append_new(ports, line);
	}
	return ports;
}

static json_t *workers_of(const struct top_picture *picture)
{
	json_t *workers = json_array();

	for (unsigned i = 0; i < picture->n_workers; i++) {
		json_t *line = copy_of(picture->workers[i].line);

		add_rate(line, "pps", picture->workers[i].pps);
		add_percent(line, "busy_now_percent", picture->workers[i].busy);
		json_array_append_new(workers, line);
	}
	return workers;
}

static json_t *drops_of(const struct top_picture *picture)
{
	json_t *drops = json_array();

	for (unsigned i = 0; i < picture->n_drops; i++) {
		json_t *line = copy_of(picture->drops[i].line);

		add_rate(line, "pps", picture->drops[i].pps);
		json_array_append_new(drops, line);
	}
	return drops;
}

static json_t *flows_of(const struct top_picture *picture)
{
	json_t *flows = json_array();

	for (unsigned i = 0; i < picture->n_listed; i++) {
		json_t *line = copy_of(picture->flows[i].line);

		add_rate(line, "rate_pps", picture->flows[i].pps);
		add_rate(line, "rate_bps", picture->flows[i].bps);
		json_array_append_new(flows, line);
	}
	return flows;
}

json_t *top_json(const struct top_picture *picture, const json_t *greeting)
{
	json_t *object = json_object();

	json_object_set(object, "millrace", json_object_get(greeting, "millrace"));
	if (field_has(greeting, "started"))
		json_object_set(object, "started", json_object_get(greeting, "started"));
	json_object_set_new(object, "flows", json_integer((json_int_t)picture->n_flows));
	add_rate(object, "pps", picture->pps);
	add_rate(object, "bps", picture->bps);
	add_rate(object, "drops_pps", picture->drops_pps);
	add_rate(object, "new_flows_pps", picture->new_flows_pps);
	json_object_set_new(object, "in_nic", json_integer((json_int_t)picture->n_in_nic));
	add_percent(object, "nic_percent", picture->nic_percent);
	json_object_set(object, "wires", picture->counters[TOP_WIRES]);
	json_object_set_new(object, "ports", ports_of(picture));
	json_object_set_new(object, "workers", workers_of(picture));
	json_object_set_new(object, "drops", drops_of(picture));
	json_object_set(object, "offload", picture->counters[TOP_OFFLOAD]);
	json_object_set_new(object, "list", flows_of(picture));
	return object;
}
