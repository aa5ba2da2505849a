/* SPDX-License-Identifier: BSD-3-Clause */

/* worker show: the threads of the packet path, and what they do with their time. */

#include "control/control.h"
#include "control/verbs.h"

static const char *kind_name(enum lcore_kind kind)
{
	static const char *const names[] = {
		[LCORE_WORKER] = "worker",
		[LCORE_RX] = "rx",
		[LCORE_TX] = "tx",
	};

	return names[kind];
}

static void describe_thread(
	json_t *line, const struct plane_lcore *lcore, const struct plane *plane)
{
	const char *kind = kind_name(lcore->kind);
	bool worker = lcore->kind == LCORE_WORKER;

	json_object_set_new(line, "thread", json_sprintf("%s %u", kind, lcore->number));
	json_object_set_new(line, "kind", json_string(kind));
	if (worker)
		answer_number(line, "worker", lcore->number);
	if (lcore->cpu >= 0)
		answer_number(line, "cpu", (unsigned)lcore->cpu);
	if (worker) {
		answer_number(line, "flows", lcore->flows);
		answer_number(line, "capacity", lcore->capacity);
		answer_number(line, "new_flows", lcore->flow.learned);
		answer_number(line, "crowded_flows_s", lcore->crowded_s[BALANCE_FLOWS]);
		answer_number(line, "crowded_packets_s", lcore->crowded_s[BALANCE_PACKETS]);
		json_object_set_new(line, "simd", json_string(simd_name(plane_simd(plane))));
	}
}

static void describe_packets(json_t *line, const struct plane_lcore *lcore)
{
	answer_number(line, "received", lcore->sum.received);
	answer_number(line, "out", lcore->sum.out);
	answer_number(line, "dropped", path_counters_dropped(&lcore->sum));
	answer_number(line, "handed_out", lcore->sum.handed_out);
	answer_number(line, "handed_in", lcore->sum.handed_in);
	answer_number(line, "held", lcore->sum.held);
}

/* `part` of `whole` times `factor`; absent where there is nothing to divide by. */
static void describe_ratio(
	json_t *line, const char *name, uint64_t part, uint64_t whole, double factor)
{
	if (whole > 0)
		json_object_set_new(
			line, name, answer_tenths((double)part * factor / (double)whole));
}

static void describe_time(json_t *line, const struct plane_lcore *lcore)
{
	uint64_t packets = lcore->sum.received + lcore->sum.handed_in;
	uint64_t all = lcore->busy_cycles + lcore->idle_cycles + lcore->sleep_cycles;
	json_t *stages = json_object();

	answer_number(line, "bursts", lcore->bursts);
	describe_ratio(line, "packets_per_burst", packets, lcore->bursts, 1);
	answer_number(line, "idle_polls", lcore->idle_polls);
	answer_number(line, "busy_cycles", lcore->busy_cycles);
	answer_number(line, "idle_cycles", lcore->idle_cycles);
	answer_number(line, "sleep_cycles", lcore->sleep_cycles);
	describe_ratio(line, "busy_percent", lcore->busy_cycles, all, 100);
	describe_ratio(line, "sleep_percent", lcore->sleep_cycles, all, 100);
	describe_ratio(line, "cycles_per_packet", lcore->busy_cycles, packets, 1);
	for (unsigned i = 0; i < N_STAGES; i++)
		describe_ratio(stages, stage_name((enum stage)i), lcore->stages.cycles[i],
			lcore->stages.packets[i], 1);
	json_object_set_new(line, "stages", stages);
}

static void describe_ports(
	json_t *line, const struct plane_lcore *lcore, const struct plane_config *config)
{
	json_t *ports = json_array();

	for (unsigned i = 0; i < config->topology.n_ports; i++) {
		const struct plane_port_counters *counters = &lcore->ports[i];
		json_t *port = json_object();

		json_object_set_new(port, "port", answer_string(config->port[i]->name));
		answer_number(port, "rx_packets", counters->rx_packets);
		answer_number(port, "rx_bytes", counters->rx_bytes);
		answer_number(port, "tx_packets", counters->tx_packets);
		answer_number(port, "tx_bytes", counters->tx_bytes);
		json_array_append_new(ports, port);
	}
	json_object_set_new(line, "ports", ports);
}

static int show_workers(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct plane_snapshot *snapshot = &answer->control->snapshot;
	int ret = show_snapshot(answer, error);

	(void)values;
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < snapshot->n_lcores && ret == 0; i++) {
		const struct plane_lcore *lcore = &snapshot->lcores[i];
		json_t *line = json_object();

		describe_thread(line, lcore, answer->plane);
		describe_packets(line, lcore);
		describe_time(line, lcore);
		describe_ports(line, lcore, plane_config(answer->plane));
		ret = answer_add(answer, line);
	}
	return ret < 0 ? control_silent(error, ret, "worker show") : 0;
}

const struct answer_verb worker_show = {
	.ask = "worker show",
	.begin = show_workers,
};
