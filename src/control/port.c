/* SPDX-License-Identifier: BSD-3-Clause */

/* port show: what each port is, and what it and its driver have counted. */

#include "control/control.h"
#include "control/verbs.h"

static const char *sharding(
	const struct plane_config *config, const struct plane_snapshot *snapshot, unsigned number)
{
	const struct port *port = config->port[number];

	if (config->n_workers == 1)
		return "one worker";
	if (config->sharding == PLANE_SHARDING_SOFTWARE)
		return "software";
	if (snapshot->rss_fallen_back[number])
		return "rss, fallen back";
	return port->rss != 0 && port->n_rx > 1 ? "rss" : "hand-over";
}

static void describe_device(json_t *line, const struct port *port, unsigned wire)
{
	const uint8_t *mac = port->mac.addr_bytes;

	json_object_set_new(line, "port", answer_string(port->name));
	json_object_set_new(line, "device", answer_string(port->device.text));
	json_object_set_new(line, "driver", answer_string(port->driver));
	if (port->interface[0] != '\0')
		json_object_set_new(line, "interface", answer_string(port->interface));
	answer_number(line, "wire", wire);
	json_object_set_new(line, "mac",
		json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
			mac[4], mac[5]));
	json_object_set_new(line, "link", json_string(port_link_name(port->link)));
	if (port->speed_mbps != 0)
		answer_number(line, "speed_mbps", port->speed_mbps);
	answer_number(line, "mtu", port->mtu);
	if (port->far_mtu != 0)
		answer_number(line, "far_mtu", port->far_mtu);
	if (port->socket >= 0)
		answer_number(line, "numa", (unsigned)port->socket);
	answer_number(line, "rx_queues", port->n_rx);
	answer_number(line, "tx_queues", port->n_tx);
}

static void describe_traffic(json_t *line, const struct plane_snapshot *snapshot, unsigned number)
{
	struct plane_port_counters sum = {0};

	for (unsigned i = 0; i < snapshot->n_lcores; i++) {
		const struct plane_port_counters *counters = &snapshot->lcores[i].ports[number];

		sum.rx_packets += counters->rx_packets;
		sum.rx_bytes += counters->rx_bytes;
		sum.tx_packets += counters->tx_packets;
		sum.tx_bytes += counters->tx_bytes;
		sum.reject_replies += counters->reject_replies;
	}
	answer_number(line, "rx_packets", sum.rx_packets);
	answer_number(line, "rx_bytes", sum.rx_bytes);
	answer_number(line, "tx_packets", sum.tx_packets);
	answer_number(line, "tx_bytes", sum.tx_bytes);
	answer_number(line, "reject_replies", sum.reject_replies);
}

/* Absent where the driver does not count, and while the port is restarted. */
static void describe_nic(json_t *line, struct port *port)
{
	struct rte_eth_stats stats = {0};
	json_t *nic;

	if (port_stats(port, &stats) < 0)
		return;
	nic = json_object();
	answer_number(nic, "rx_packets", stats.ipackets);
	answer_number(nic, "tx_packets", stats.opackets);
	answer_number(nic, "rx_missed", stats.imissed);
	answer_number(nic, "rx_errors", stats.ierrors);
	answer_number(nic, "tx_errors", stats.oerrors);
	answer_number(nic, "rx_no_buffer", stats.rx_nombuf);
	json_object_set_new(line, "nic", nic);
}

static int show_ports(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct plane_config *config = plane_config(answer->plane);
	const struct plane_snapshot *snapshot = &answer->control->snapshot;
	int ret = show_snapshot(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < config->topology.n_ports && ret == 0; i++) {
		json_t *line = json_object();

		describe_device(line, config->port[i], config->topology.domain[i]);
		json_object_set_new(line, "sharding", json_string(sharding(config, snapshot, i)));
		answer_number(line, "sharding_fallbacks", snapshot->rss_fallbacks[i]);
		describe_traffic(line, snapshot, i);
		describe_nic(line, config->port[i]);
		ret = answer_add(answer, line);
	}
	return ret < 0 ? control_silent(error, ret, "port show") : 0;
}

const struct answer_verb port_show = {
	.ask = "port show",
	.begin = show_ports,
};
