/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every metric, in the order in which they are told. A new one is a new row: docs/metrics.md is made from the table, and
 * a test holds the two against each other. First stand the functions that rows go through what they count by.
 */

#include <stdio.h>

#include <rte_version.h>

#include "control/metrics.h"
#include "export/exporter.h"
#include "millrace_version.h"
#include "offload/reason.h"
#include "offload/state.h"
#include "packet/simd.h"

/* A number as the value of a label. */
#define NUMBER_MAX 16

#define US_TO_S 1e6

/* The flows of a worker are learned by protocols, of which some have a name. */
static const struct {
	const char *name;
	uint8_t numbers[2];
	unsigned n;
} protocols[] = {
	{"tcp", {6}, 1},
	{"udp", {17}, 1},
	{"sctp", {132}, 1},
	{"icmp", {1, 58}, 2},
};

#define N_PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

static const char *const operations[INSTALLER_N_OPS] = {
	[INSTALLER_INSERT] = "insert",
	[INSTALLER_REMOVE] = "remove",
	[INSTALLER_COUNT] = "counter",
};

static void write_build(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metric_label labels[] = {
		{"version", MILLRACE_VERSION},
		{"dpdk", rte_version()},
		{"simd", simd_name(source->simd)},
		{NULL, NULL},
	};

	metric_write_whole(writer, labels, 1);
}

static void of_engine(const struct metric_writer *writer, const struct metrics_source *source)
{
	metric_write_at(writer, NULL, &source->engine);
}

static void write_lost(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct control_records *records = &source->engine.records;
	const struct {
		const char *reason;
		uint64_t n;
	} rows[] = {
		{"overflow", records->overflowed},
		{"write", records->lost_write},
		{"reader", records->lost_reader},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct metric_label labels[] = {{"reason", rows[i].reason}, {NULL, NULL}};

		metric_write_whole(writer, labels, rows[i].n);
	}
}

/* Exports, by their URLs, which stand in the configuration. */
static void of_exports(const struct metric_writer *writer, const struct metrics_source *source)
{
	const unsigned n = source->exporter == NULL ? 0 : exporter_n_collectors(source->exporter);

	for (unsigned i = 0; i < n; i++) {
		struct export_collector *collector = exporter_collector(source->exporter, i);
		const struct metric_label labels[] = {
			{"export", export_collector_target(collector)->text}, {NULL, NULL}};
		struct export_counters counters;

		export_collector_counters(collector, &counters);
		metric_write_at(writer, labels, &counters);
	}
}

/* Wires. */

static void of_wires(const struct metric_writer *writer, const struct metrics_source *source)
{
	char number[NUMBER_MAX];

	for (unsigned i = 0; i < source->config->topology.n_domains; i++) {
		const struct metric_label labels[] = {{"wire", number}, {NULL, NULL}};

		snprintf(number, sizeof(number), "%u", i);
		metric_write_at(writer, labels, &source->snapshot->wires[i]);
	}
}

static void write_drops(const struct metric_writer *writer, const struct metrics_source *source)
{
	char number[NUMBER_MAX];

	for (unsigned i = 0; i < source->config->topology.n_domains; i++) {
		snprintf(number, sizeof(number), "%u", i);
		for (unsigned reason = 0; reason < DROP_N_REASONS; reason++) {
			const struct metric_label labels[] = {
				{"wire", number},
				{"reason", drop_name((enum drop_reason)reason)},
				{NULL, NULL},
			};

			metric_write_whole(
				writer, labels, source->snapshot->wires[i].dropped[reason]);
		}
	}
}

static void write_wire_flows(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	char number[NUMBER_MAX];

	for (unsigned i = 0; i < source->config->topology.n_domains; i++) {
		const struct metric_label labels[] = {{"wire", number}, {NULL, NULL}};

		snprintf(number, sizeof(number), "%u", i);
		metric_write_whole(writer, labels, source->snapshot->wire_flows[i]);
	}
}

static void write_slots(const struct metric_writer *writer, const struct metrics_source *source)
{
	char number[NUMBER_MAX];

	for (unsigned i = 0; i < source->config->topology.n_domains && source->has_slots; i++) {
		const struct plane_slots *slots = &source->slots[i];
		const struct {
			const char *state;
			uint32_t n;
		} rows[] = {
			{"free", slots->n - slots->used - slots->draining},
			{"used", slots->used},
			{"draining", slots->draining},
		};

		snprintf(number, sizeof(number), "%u", i);
		for (unsigned row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			const struct metric_label labels[] = {
				{"wire", number},
				{"state", rows[row].state},
				{NULL, NULL},
			};

			metric_write_whole(writer, labels, rows[row].n);
		}
	}
}

/* Ports. */

static const char *metric_port(const struct metrics_source *source, unsigned number)
{
	return source->config->port[number]->name;
}

static void of_ports(const struct metric_writer *writer, const struct metrics_source *source)
{
	for (unsigned i = 0; i < source->config->topology.n_ports; i++) {
		const struct metric_label labels[] = {
			{"port", metric_port(source, i)}, {NULL, NULL}};

		metric_write_at(writer, labels, &source->port[i]);
	}
}

/* Those whose driver counts. */
static void of_nics(const struct metric_writer *writer, const struct metrics_source *source)
{
	for (unsigned i = 0; i < source->config->topology.n_ports; i++) {
		const struct metric_label labels[] = {
			{"port", metric_port(source, i)}, {NULL, NULL}};

		if (source->port[i].counts)
			metric_write_at(writer, labels, &source->port[i]);
	}
}

static void write_ports(const struct metric_writer *writer, const struct metrics_source *source)
{
	char number[NUMBER_MAX];

	for (unsigned i = 0; i < source->config->topology.n_ports; i++) {
		const struct metric_label labels[] = {
			{"port", metric_port(source, i)},
			{"wire", number},
			{"driver", source->config->port[i]->driver},
			{NULL, NULL},
		};

		snprintf(number, sizeof(number), "%u", source->config->topology.domain[i]);
		metric_write_whole(writer, labels, 1);
	}
}

/* Threads of the packet path. */

static const char *thread_name(const struct plane_lcore *lcore, char name[NUMBER_MAX])
{
	static const char *const kinds[] = {
		[LCORE_WORKER] = "worker",
		[LCORE_RX] = "rx",
		[LCORE_TX] = "tx",
	};

	snprintf(name, NUMBER_MAX, "%s %u", kinds[lcore->kind], lcore->number);
	return name;
}

static void of_threads(const struct metric_writer *writer, const struct metrics_source *source)
{
	char name[NUMBER_MAX];

	for (unsigned i = 0; i < source->snapshot->n_lcores; i++) {
		const struct plane_lcore *lcore = &source->snapshot->lcores[i];
		const struct metric_label labels[] = {
			{"thread", thread_name(lcore, name)}, {NULL, NULL}};

		metric_write_at(writer, labels, lcore);
	}
}

static void write_thread_drops(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	char name[NUMBER_MAX];

	for (unsigned i = 0; i < source->snapshot->n_lcores; i++) {
		const struct plane_lcore *lcore = &source->snapshot->lcores[i];
		const struct metric_label labels[] = {
			{"thread", thread_name(lcore, name)}, {NULL, NULL}};

		metric_write_whole(writer, labels, path_counters_dropped(&lcore->sum));
	}
}

/* How long a thread did what. Not told where nobody knows how fast the processor's counter counts. */
static void write_times(const struct metric_writer *writer, const struct metrics_source *source)
{
	char name[NUMBER_MAX];

	for (unsigned i = 0; i < source->snapshot->n_lcores && source->hz > 0; i++) {
		const struct plane_lcore *lcore = &source->snapshot->lcores[i];
		const struct {
			const char *state;
			uint64_t cycles;
		} rows[] = {
			{"busy", lcore->busy_cycles},
			{"idle", lcore->idle_cycles},
			{"sleep", lcore->sleep_cycles},
		};

		for (unsigned row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			const struct metric_label labels[] = {
				{"thread", thread_name(lcore, name)},
				{"state", rows[row].state},
				{NULL, NULL},
			};

			metric_write(writer, labels, (double)rows[row].cycles / source->hz);
		}
	}
}

static void write_stage_packets(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	char name[NUMBER_MAX];

	for (unsigned i = 0; i < source->snapshot->n_lcores; i++) {
		const struct plane_lcore *lcore = &source->snapshot->lcores[i];

		for (unsigned stage = 0; stage < N_STAGES; stage++) {
			const struct metric_label labels[] = {
				{"thread", thread_name(lcore, name)},
				{"stage", stage_name((enum stage)stage)},
				{NULL, NULL},
			};

			metric_write_whole(writer, labels, lcore->stages.packets[stage]);
		}
	}
}

static void write_stage_times(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	char name[NUMBER_MAX];

	for (unsigned i = 0; i < source->snapshot->n_lcores && source->hz > 0; i++) {
		const struct plane_lcore *lcore = &source->snapshot->lcores[i];

		for (unsigned stage = 0; stage < N_STAGES; stage++) {
			const struct metric_label labels[] = {
				{"thread", thread_name(lcore, name)},
				{"stage", stage_name((enum stage)stage)},
				{NULL, NULL},
			};

			metric_write(
				writer, labels, (double)lcore->stages.cycles[stage] / source->hz);
		}
	}
}

/* Workers: threads that have flows. The next one from `*at` on, with its number as text; NULL: that was the last. */
static const struct plane_lcore *next_worker(
	const struct metrics_source *source, unsigned *at, char number[NUMBER_MAX])
{
	while (*at < source->snapshot->n_lcores) {
		const struct plane_lcore *lcore = &source->snapshot->lcores[(*at)++];

		snprintf(number, NUMBER_MAX, "%u", lcore->number);
		if (lcore->kind == LCORE_WORKER)
			return lcore;
	}
	return NULL;
}

static void of_workers(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct plane_lcore *lcore;
	char number[NUMBER_MAX];

	for (unsigned at = 0; (lcore = next_worker(source, &at, number)) != NULL;) {
		const struct metric_label labels[] = {{"worker", number}, {NULL, NULL}};

		metric_write_at(writer, labels, lcore);
	}
}

static void write_flows(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct plane_lcore *lcore;
	char number[NUMBER_MAX];

	for (unsigned at = 0; (lcore = next_worker(source, &at, number)) != NULL;) {
		for (unsigned phase = 0; phase < FLOW_N_PHASES; phase++) {
			const struct metric_label labels[] = {
				{"worker", number},
				{"state", flow_phase_name((enum flow_phase)phase)},
				{NULL, NULL},
			};

			metric_write_whole(writer, labels, lcore->phase_flows[phase]);
		}
	}
}

static void write_capacity(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct plane_lcore *lcore;
	char number[NUMBER_MAX];

	for (unsigned at = 0; (lcore = next_worker(source, &at, number)) != NULL;) {
		const struct metric_label labels[] = {{"worker", number}, {NULL, NULL}};

		metric_write_whole(writer, labels, lcore->capacity);
	}
}

static void write_learned(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct plane_lcore *lcore;
	char number[NUMBER_MAX];

	for (unsigned at = 0; (lcore = next_worker(source, &at, number)) != NULL;) {
		uint64_t others = lcore->flow.learned;

		for (unsigned i = 0; i < N_PROTOCOLS; i++) {
			const struct metric_label labels[] = {
				{"worker", number},
				{"protocol", protocols[i].name},
				{NULL, NULL},
			};
			uint64_t learned = 0;

			for (unsigned k = 0; k < protocols[i].n; k++)
				learned += lcore->flow.learned_by_proto[protocols[i].numbers[k]];
			others -= learned;
			metric_write_whole(writer, labels, learned);
		}
		const struct metric_label labels[] = {
			{"worker", number}, {"protocol", "other"}, {NULL, NULL}};

		metric_write_whole(writer, labels, others);
	}
}

static void write_ended(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct plane_lcore *lcore;
	char number[NUMBER_MAX];

	for (unsigned at = 0; (lcore = next_worker(source, &at, number)) != NULL;) {
		for (unsigned end = 0; end < FLOW_N_ENDS; end++) {
			const struct metric_label labels[] = {
				{"worker", number},
				{"reason", flow_end_name((enum flow_end)end)},
				{NULL, NULL},
			};

			/* those are reports of flows that live on */
			if (end != FLOW_END_ACTIVE)
				metric_write_whole(writer, labels, lcore->flow.ended[end]);
		}
	}
}

static void write_crowded_time(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	static const char *const what[BALANCE_N] = {
		[BALANCE_FLOWS] = "flows",
		[BALANCE_PACKETS] = "packets",
	};
	const struct plane_lcore *lcore;
	char number[NUMBER_MAX];

	for (unsigned at = 0; (lcore = next_worker(source, &at, number)) != NULL;) {
		for (unsigned i = 0; i < BALANCE_N; i++) {
			const struct metric_label labels[] = {
				{"worker", number}, {"of", what[i]}, {NULL, NULL}};

			metric_write_whole(writer, labels, lcore->crowded_s[i]);
		}
	}
}

/* Ports that are given rules. The next one from `*at` on; NULL: that was the last. */
static const struct metrics_offload *next_offload(
	const struct metrics_source *source, unsigned *at, const char **port)
{
	while (*at < source->config->topology.n_ports) {
		const struct metrics_offload *offload = &source->offload[*at];

		*port = metric_port(source, (*at)++);
		if (offload->installer)
			return offload;
	}
	return NULL;
}

static void of_offload(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		const struct metric_label labels[] = {{"port", port}, {NULL, NULL}};

		metric_write_at(writer, labels, offload);
	}
}

static void write_offload_flows(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		for (unsigned state = OFFLOAD_QUEUED; state < OFFLOAD_N_STATES; state++) {
			/* both are in_hw: that marks came, or that they did not yet, is another label */
			const bool in_hw = state == OFFLOAD_ACCEPTED || state == OFFLOAD_PROVEN;
			const struct metric_label labels[] = {
				{"port", port},
				{"state", offload_state_name((enum offload_state)state)},
				{"proven", in_hw && state == OFFLOAD_PROVEN ? "yes" : "no"},
				{NULL, NULL},
			};

			metric_write_whole(writer, labels, offload->agent.flows[state]);
		}
	}
}

static void write_operations(
	const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		const struct installer_counters *counters = installer_counters(offload->installer);

		for (unsigned i = 0; i < 2 * INSTALLER_N_OPS; i++) {
			const _Atomic uint64_t *n =
				i % 2 == 0 ? &counters->done[i / 2] : &counters->failed[i / 2];
			const struct metric_label labels[] = {
				{"port", port},
				{"operation", operations[i / 2]},
				{"result", i % 2 == 0 ? "done" : "failed"},
				{NULL, NULL},
			};

			metric_write_whole(
				writer, labels, atomic_load_explicit(n, memory_order_relaxed));
		}
	}
}

static void write_failures(const struct metric_writer *writer, const struct metrics_source *source)
{
	static const char *const answers[] = {
		"ENOSPC", "EOPNOTSUPP", "EAGAIN", "EIO", "not_answered"};
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		const struct installer_counters *counters = installer_counters(offload->installer);

		for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
			const struct metric_label labels[] = {
				{"port", port}, {"answer", answers[i]}, {NULL, NULL}};

			metric_write_whole(writer, labels,
				atomic_load_explicit(
					&counters->by_answer[i], memory_order_relaxed));
		}
	}
}

static void write_audit(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		for (unsigned i = 0; i < OFFLOAD_N_REASONS; i++) {
			const struct metric_label labels[] = {
				{"port", port},
				{"reason", offload_reason_name((uint8_t)i)},
				{NULL, NULL},
			};

			metric_write_whole(writer, labels, offload->agent.fell_out[i]);
		}
	}
}

static void write_breaker(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		const enum health_state now = health_state(installer_health(offload->installer));

		for (unsigned state = 0; state < HEALTH_N_STATES; state++) {
			const struct metric_label labels[] = {
				{"port", port},
				{"state", health_state_name((enum health_state)state)},
				{NULL, NULL},
			};

			metric_write_whole(writer, labels, state == now);
		}
	}
}

static void write_calls(const struct metric_writer *writer, const struct metrics_source *source)
{
	const struct metrics_offload *offload;
	const char *port;

	for (unsigned at = 0; (offload = next_offload(source, &at, &port)) != NULL;) {
		const struct installer_histograms *histograms =
			installer_histograms(offload->installer);

		for (unsigned i = 0; i <= INSTALLER_N_OPS; i++) {
			const struct metric_label labels[] = {
				{"port", port},
				{"operation", i == 0 ? "wait" : operations[i - 1]},
				{NULL, NULL},
			};

			metric_write_histogram(writer, labels,
				i == 0 ? &histograms->wait : &histograms->call[i - 1]);
		}
	}
}

/* clang-format off */
#define ENGINE(field) .write = of_engine, .offset = offsetof(struct metrics_engine, field)
#define WIRE(field) .labels = "wire", .write = of_wires, .offset = offsetof(struct path_counters, field)
#define PORT(field) .labels = "port", .write = of_ports, .offset = offsetof(struct metrics_port, field)
#define NIC(field) .labels = "port", .write = of_nics, .offset = offsetof(struct metrics_port, field)
#define THREAD(field) .labels = "thread", .write = of_threads, .offset = offsetof(struct plane_lcore, field)
#define WORKER(field) .labels = "worker", .write = of_workers, .offset = offsetof(struct plane_lcore, field)
#define EXPORT(field) .labels = "export", .write = of_exports, .offset = offsetof(struct export_counters, field)
#define OFFLOAD(field) .labels = "port", .write = of_offload, .offset = offsetof(struct metrics_offload, field)
#define COUNTER(called, about) .name = (called), .type = METRIC_COUNTER, .help = (about)
#define GAUGE(called, about) .name = (called), .type = METRIC_GAUGE, .help = (about)

const struct metric metric_table[] = {
	{.name = "build", .type = METRIC_INFO, .labels = "version, dpdk, simd", .write = write_build,
		.help = "The program that runs, the DPDK below it, and the SIMD level that workers use"},
	{GAUGE("start_time_seconds", "When the engine started, as Unix time"),
		.unit = "seconds", .labels = "", ENGINE(start_us), .per = US_TO_S},

	{COUNTER("wire_received_packets", "Packets that came in by the ports of a wire"), WIRE(received)},
	{COUNTER("wire_received_bytes", "Bytes of the packets that came in, as frames without check sequence"),
		.unit = "bytes", WIRE(received_bytes)},
	{COUNTER("wire_non_ip_packets", "Of the packets received, those that are carried without a flow"), WIRE(non_ip)},
	{COUNTER("wire_out_packets", "Packets that went out by the ports of a wire"), WIRE(out)},
	{COUNTER("wire_out_bytes", "Bytes of the packets that went out"), .unit = "bytes", WIRE(out_bytes)},
	{COUNTER("wire_delivered_packets", "Packets for the machine itself"), WIRE(delivered)},
	{COUNTER("wire_dropped_packets", "Packets that ended here, by reason"),
		.labels = "wire, reason", .write = write_drops},
	{GAUGE("wire_held_packets", "Packets that are on their way between threads, wait for a fragment or for the kernel"),
		WIRE(held)},
	{COUNTER("wire_mirrored_packets", "Copies that rules made"), WIRE(mirrored)},
	{COUNTER("wire_from_kernel", "Frames of the kernel's that left by a router's ports"), WIRE(from_kernel)},
	{COUNTER("wire_reject_replies", "Frames that the engine made to tell senders that their packets were rejected"), WIRE(reject_replies)},
	{COUNTER("wire_reject_limited_packets", "Rejected packets whose senders were not told, above the rate for that"), WIRE(reject_limited)},
	{COUNTER("wire_reject_unanswered_packets", "Rejected packets that are not to be answered, or found no memory for it"), WIRE(reject_unanswered)},
	{COUNTER("wire_log_lines", "Lines that rules logged"), WIRE(logged)},
	{COUNTER("wire_log_lost_lines", "Lines that rules would have logged, above the rate for that or without room"), WIRE(log_lost)},
	{COUNTER("wire_nic_forwarded_packets", "Packets that network cards sent on alone, as far as they have told; not received"),
		WIRE(nic_forwarded)},
	{COUNTER("wire_nic_forwarded_bytes", "Bytes that network cards sent on alone, as far as they have told"), .unit = "bytes", WIRE(nic_forwarded_bytes)},
	{COUNTER("wire_nic_dropped_packets", "Packets that network cards dropped alone; not received"), WIRE(nic_dropped)},
	{COUNTER("wire_nic_dropped_bytes", "Bytes that network cards dropped alone"), .unit = "bytes", WIRE(nic_dropped_bytes)},
	{COUNTER("wire_nic_unaccounted_packets", "Of those sent on by network cards alone, packets that are in no record"),
		WIRE(nic_unaccounted)},
	{COUNTER("wire_untied_fragments", "Later fragments that met no first one"), WIRE(fragments_untied)},
	{COUNTER("wire_untied_icmp_errors", "ICMP errors that belong to no known flow"), WIRE(icmp_untied)},
	{COUNTER("wire_one_sided_packets", "Packets that opened no flow, as they came by the port of the other end"),
		WIRE(one_sided)},
	{GAUGE("wire_flows", "Live flows of a wire"), .labels = "wire", .write = write_wire_flows},

	{.name = "port", .type = METRIC_INFO, .labels = "port, wire, driver", .write = write_ports,
		.help = "The ports of the engine"},
	{GAUGE("port_up", "1 while the link of the port is up, else 0"), PORT(up)},
	{GAUGE("port_mtu_bytes", "The MTU of the port"), .unit = "bytes", PORT(mtu)},
	{COUNTER("port_rx_packets", "Packets that workers received by the port"), PORT(sum.rx_packets)},
	{COUNTER("port_rx_bytes", "Bytes that workers received by the port"), .unit = "bytes", PORT(sum.rx_bytes)},
	{COUNTER("port_tx_packets", "Packets that workers sent by the port"), PORT(sum.tx_packets)},
	{COUNTER("port_tx_bytes", "Bytes that workers sent by the port"), .unit = "bytes", PORT(sum.tx_bytes)},
	{COUNTER("port_reject_replies", "Frames of the engine's own making that were given to the port"), PORT(sum.reject_replies)},
	{COUNTER("port_sharding_fallbacks", "Times that the port sent packets to the wrong workers, and was trusted no longer"),
		PORT(fallbacks)},
	{COUNTER("port_nic_rx_packets", "Packets received, as the driver of the port counts them"), NIC(nic_rx)},
	{COUNTER("port_nic_tx_packets", "Packets sent, as the driver of the port counts them"), NIC(nic_tx)},
	{COUNTER("port_nic_rx_missed_packets", "Packets that the network card lost, as nobody took them in time"),
		NIC(nic_missed)},
	{COUNTER("port_nic_rx_errors", "Packets that the network card received with errors"), NIC(nic_rx_errors)},
	{COUNTER("port_nic_tx_errors", "Packets that the network card failed to send"), NIC(nic_tx_errors)},
	{COUNTER("port_nic_rx_no_buffers", "Times that the driver had no buffer for a packet"), NIC(nic_no_buffer)},

	{COUNTER("thread_received_packets", "Packets that a thread of the packet path received from ports"),
		THREAD(sum.received)},
	{COUNTER("thread_out_packets", "Packets that a thread of the packet path sent by ports"), THREAD(sum.out)},
	{COUNTER("thread_dropped_packets", "Packets that a thread of the packet path dropped, for any reason"),
		.labels = "thread", .write = write_thread_drops},
	{COUNTER("thread_handed_in_packets", "Packets that a thread of the packet path got from other threads"), THREAD(sum.handed_in)},
	{COUNTER("thread_handed_out_packets", "Packets that a thread of the packet path gave to other threads"), THREAD(sum.handed_out)},
	{COUNTER("thread_bursts", "Polls of queues that brought packets"), THREAD(bursts)},
	{COUNTER("thread_idle_polls", "Polls of queues that brought none"), THREAD(idle_polls)},
	{COUNTER("thread_time_seconds", "Time that a thread of the packet path was busy with packets, looked for some in vain, or slept"),
		.unit = "seconds", .labels = "thread, state", .write = write_times},
	{COUNTER("thread_stage_packets", "Packets of the bursts that were timed, by stage of the packet path"),
		.labels = "thread, stage", .write = write_stage_packets},
	{COUNTER("thread_stage_seconds", "Time that packets of the bursts that were timed took in a stage"),
		.unit = "seconds", .labels = "thread, stage", .write = write_stage_times},

	{GAUGE("flows", "Live flows, by state"), .labels = "worker, state", .write = write_flows},
	{GAUGE("flow_capacity", "Flows that a worker has room for"), .labels = "worker", .write = write_capacity},
	{COUNTER("flows_learned", "Flows that began"), .labels = "worker, protocol", .write = write_learned},
	{COUNTER("flows_ended", "Flows that ended, by reason"), .labels = "worker, reason", .write = write_ended},
	{COUNTER("flow_packets", "Packets that were accounted to flows"), WORKER(flow.packets)},
	{COUNTER("flow_bytes", "Bytes that were accounted to flows"), .unit = "bytes", WORKER(flow.bytes)},
	{COUNTER("flow_tcp_out_of_window_packets", "TCP segments outside the window of their flow"), WORKER(flow.tcp_odd)},
	{COUNTER("worker_crowded_seconds", "Seconds in which a worker had far more than its share of new flows, or of packets"),
		.unit = "seconds", .labels = "worker, of", .write = write_crowded_time},

	{GAUGE("blocks", "Blocks in force"), .labels = "", ENGINE(blocks)},
	{GAUGE("blocks_limit", "Blocks that there may be"), .labels = "", ENGINE(max_blocks)},
	{COUNTER("blocks_added", "Blocks that were added"), .labels = "", ENGINE(blocks_added)},
	{COUNTER("blocks_expired", "Blocks that ended, as their time was over"), .labels = "", ENGINE(blocks_expired)},
	{GAUGE("rules", "Rules in force"), .labels = "", ENGINE(rules)},
	{GAUGE("rules_limit", "Rules that there may be"), .labels = "", ENGINE(max_rules)},
	{GAUGE("rules_per_packet", "Of the rules in force, those that look at each packet of a flow"),
		.labels = "", ENGINE(rules_by_packet)},

	{COUNTER("records_made", "Records of flows that were made"), .labels = "", ENGINE(records.made)},
	{COUNTER("records_written", "Records that were written to the output"), .labels = "", ENGINE(records.written)},
	{COUNTER("records_lost", "Records that are nowhere: no room to wait, writing failed, no reader or a slow one"),
		.labels = "reason", .write = write_lost},

	{GAUGE("export_up", "1 when there is a collector that takes records, as far as it is known"), EXPORT(up)},
	{COUNTER("export_records", "Records that were made for an export"), EXPORT(records)},
	{COUNTER("export_written_records", "Of these, records that were sent"), EXPORT(written)},
	{COUNTER("export_lost_records", "Of these, records that are lost: no room to wait, or not taken in the end"), EXPORT(lost)},
	{GAUGE("export_waiting_records", "Of these, records that wait to be sent"), EXPORT(waiting)},
	{COUNTER("export_refusals", "How often nobody listened to a datagram"), EXPORT(refused)},
	{COUNTER("export_sent_bytes", "Bytes of messages that were sent"), .unit = "bytes", EXPORT(bytes)},

	{GAUGE("offload_ready", "1 when the port was tried and takes what it takes, 0 while it is being tried"), OFFLOAD(ready)},
	{GAUGE("offload_rules", "Rules in the network card"), OFFLOAD(rules)},
	{GAUGE("offload_calls_under_way", "Calls of the driver that it has not answered"), OFFLOAD(under_way)},
	{GAUGE("offload_flows", "Directions of flows by their state of offload, but for those in software"),
		.labels = "port, state, proven", .write = write_offload_flows},
	{GAUGE("offload_slots", "Flows of a wire that may be in network cards: free, used, or not yet to be used again"),
		.labels = "wire, state", .write = write_slots},
	{COUNTER("offload_operations", "Rules inserted and removed, and counters read"),
		.labels = "port, operation, result", .write = write_operations},
	{COUNTER("offload_failures", "Failed operations, by the answer of the driver"),
		.labels = "port, answer", .write = write_failures},
	{COUNTER("offload_forwarded_packets", "Packets that the network card sent on alone, as far as it has told"),
		OFFLOAD(agent.forwarded)},
	{COUNTER("offload_forwarded_bytes", "Bytes that the network card sent on alone, as far as it has told"), .unit = "bytes", OFFLOAD(agent.forwarded_bytes)},
	{COUNTER("offload_unaccounted_packets", "Packets that the network card sent on alone and that are in no record"), OFFLOAD(agent.unaccounted)},
	{COUNTER("offload_refused", "Directions of flows that the driver refused"), OFFLOAD(agent.refused)},
	{COUNTER("offload_displaced", "Directions of flows that found no place in the queue, or lost it"),
		OFFLOAD(agent.displaced)},
	{COUNTER("offload_no_slot", "Directions of flows that found no slot"), OFFLOAD(agent.no_slot)},
	{COUNTER("offload_stalled", "Inserts and removes that were not answered in time"), OFFLOAD(agent.stalled)},
	{COUNTER("offload_stranger_packets", "Marked packets that were not of the flow that the mark names"),
		OFFLOAD(agent.strangers)},
	{COUNTER("offload_ghost_packets", "Marked packets whose mark is not in force"), OFFLOAD(agent.ghosts)},
	{COUNTER("offload_audit_failures", "Directions of flows that the audit took out of the network card, by reason"),
		.labels = "port, reason", .write = write_audit},
	{COUNTER("offload_changes_lost", "Changes of the port that came faster than they could be told"),
		OFFLOAD(changes_lost)},
	{GAUGE("offload_breaker", "1 for the state that the breaker of the port is in, 0 for the others"),
		.labels = "port, state", .write = write_breaker},
	{COUNTER("offload_breaker_opened", "Times that the breaker opened, and flows were left to software"), OFFLOAD(opened)},
	{GAUGE("offload_read_interval_seconds", "Full offload: at most so long from one reading of a flow's counter to the next"),
		.unit = "seconds", OFFLOAD(agent.read_us), .per = US_TO_S},
	{.name = "offload_call_seconds", .type = METRIC_HISTOGRAM, .unit = "seconds",
		.labels = "port, operation", .write = write_calls,
		.help = "How long calls of the driver took, and how long requests waited for the call"},
};
/* clang-format on */

const unsigned metric_n_rows = sizeof(metric_table) / sizeof(metric_table[0]);
