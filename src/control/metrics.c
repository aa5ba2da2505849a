/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/metrics.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "control/answer.h"
#include "port/port.h"

/* Limits of the parts of a histogram: 2^10 ns (1 us) to 2^34 (17 s), each four times the one before. */
#define FIRST_BITS 10
#define LAST_BITS 34
#define STEP_BITS 2

#define NS_TO_S 1e9

const char *metric_type_name(enum metric_type type)
{
	static const char *const names[METRIC_N_TYPES] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_INFO] = "info",
		[METRIC_HISTOGRAM] = "histogram",
	};

	return names[type];
}

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* A value of a label: any bytes, as names of interfaces are; control's answers show them in the same way. */
static void write_escaped(FILE *out, const char *value)
{
	json_t *string = answer_string(value);
	const char *text = string ? json_string_value(string) : "";

	for (; *text != '\0'; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
	json_decref(string);
}

/* The name and the labels of a line; `suffix` and `limit` are those of a histogram's, else "" and NULL. */
static void begin_line(const struct metric_writer *writer, const struct metric_label *labels,
	const char *suffix, const char *limit)
{
	static const char *const endings[METRIC_N_TYPES] = {
		[METRIC_COUNTER] = "_total",
		[METRIC_GAUGE] = "",
		[METRIC_INFO] = "_info",
		[METRIC_HISTOGRAM] = "",
	};
	char before = '{';

	fprintf(writer->out, METRICS_PREFIX "%s%s%s", writer->metric->name,
		endings[writer->metric->type], suffix);
	for (; labels && labels->name; labels++) {
		fprintf(writer->out, "%c%s=\"", before, labels->name);
		write_escaped(writer->out, labels->value);
		fputc('"', writer->out);
		before = ',';
	}
	if (limit) {
		fprintf(writer->out, "%cle=\"%s\"", before, limit);
		before = ',';
	}
	fputs(before == ',' ? "} " : " ", writer->out);
}

void metric_write_whole(
	const struct metric_writer *writer, const struct metric_label *labels, uint64_t value)
{
	begin_line(writer, labels, "", NULL);
	fprintf(writer->out, "%" PRIu64 "\n", value);
}

void metric_write(
	const struct metric_writer *writer, const struct metric_label *labels, double value)
{
	begin_line(writer, labels, "", NULL);
	fprintf(writer->out, "%.15g\n", value);
}

void metric_write_at(
	const struct metric_writer *writer, const struct metric_label *labels, const void *base)
{
	uint64_t number;

	memcpy(&number, (const char *)base + writer->metric->offset, sizeof(number));
	if (writer->metric->per > 0)
		metric_write(writer, labels, (double)number / writer->metric->per);
	else
		metric_write_whole(writer, labels, number);
}

void metric_write_histogram(const struct metric_writer *writer, const struct metric_label *labels,
	const struct histogram *histogram)
{
	/* read before the parts, which so have it all */
	const uint64_t sum_ns = atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
	uint64_t below = 0;
	char limit[32];

	for (unsigned bits = FIRST_BITS; bits <= LAST_BITS; bits += STEP_BITS) {
		below = histogram_below(histogram, bits);
		/* the longest time that is below */
		snprintf(limit, sizeof(limit), "%.15g",
			(double)((UINT64_C(1) << bits) - 1) / NS_TO_S);
		begin_line(writer, labels, "_bucket", limit);
		fprintf(writer->out, "%" PRIu64 "\n", below);
	}
	/* all of them: while they are read some may be added */
	const uint64_t all = histogram_below(histogram, 64);

	begin_line(writer, labels, "_bucket", "+Inf");
	fprintf(writer->out, "%" PRIu64 "\n", all > below ? all : below);
	begin_line(writer, labels, "_sum", NULL);
	fprintf(writer->out, "%.15g\n", (double)sum_ns / NS_TO_S);
	begin_line(writer, labels, "_count", NULL);
	fprintf(writer->out, "%" PRIu64 "\n", all > below ? all : below);
}

/* What stands before the lines of a metric. */
static void write_head(const struct metric_writer *writer)
{
	const struct metric *metric = writer->metric;
	const bool open = writer->format == METRICS_OPENMETRICS;
	const char *ending = "", *type = metric_type_name(metric->type);

	/* OpenMetrics has the name of the family there, the older format that of the lines */
	if (!open && metric->type == METRIC_COUNTER)
		ending = "_total";
	if (!open && metric->type == METRIC_INFO) {
		ending = "_info";
		type = metric_type_name(METRIC_GAUGE);
	}
	fprintf(writer->out, "# HELP " METRICS_PREFIX "%s%s %s\n", metric->name, ending,
		metric->help);
	fprintf(writer->out, "# TYPE " METRICS_PREFIX "%s%s %s\n", metric->name, ending, type);
	if (open && metric->unit)
		fprintf(writer->out, "# UNIT " METRICS_PREFIX "%s %s\n", metric->name,
			metric->unit);
}

char *metrics_render(
	const struct metrics_source *source, enum metrics_format format, size_t *length)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, length);
	struct metric_writer writer = {.out = out, .format = format};

	if (!out)
		return NULL;
	for (unsigned i = 0; i < metric_n_rows; i++) {
		writer.metric = &metric_table[i];
		write_head(&writer);
		writer.metric->write(&writer, source);
	}
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
	const bool failed = ferror(out) != 0;

	if (fclose(out) != 0 || failed) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

static void take_engine(struct metrics_engine *engine, struct plane *plane)
{
	struct blocks_stats blocks = {0};
	struct rules_stats rules = {0};

	if (plane_blocks(plane))
		blocks_stats(plane_blocks(plane), &blocks);
	if (plane_rules(plane))
		rules_stats(plane_rules(plane), &rules);
	engine->start_us = plane_origin_us(plane);
	engine->blocks = blocks.entries;
	engine->max_blocks = blocks.max_entries;
	engine->blocks_added = blocks.added;
	engine->blocks_expired = blocks.expired;
	engine->rules = rules.rules;
	engine->max_rules = rules.max_rules;
	engine->rules_by_packet = rules.by_packet;
}

static void take_port(struct metrics_port *port, const struct plane_snapshot *snapshot,
	unsigned number, struct port *live)
{
	struct rte_eth_stats stats = {0};

	for (unsigned i = 0; i < snapshot->n_lcores; i++) {
		const struct plane_port_counters *counters = &snapshot->lcores[i].ports[number];

		port->sum.rx_packets += counters->rx_packets;
		port->sum.rx_bytes += counters->rx_bytes;
		port->sum.tx_packets += counters->tx_packets;
		port->sum.tx_bytes += counters->tx_bytes;
		port->sum.reject_replies += counters->reject_replies;
	}
	port->up = live->link == PORT_LINK_UP;
	port->mtu = live->mtu;
	port->fallbacks = snapshot->rss_fallbacks[number];
	port->counts = port_stats(live, &stats) == 0;
	port->nic_rx = stats.ipackets;
	port->nic_tx = stats.opackets;
	port->nic_missed = stats.imissed;
	port->nic_rx_errors = stats.ierrors;
	port->nic_tx_errors = stats.oerrors;
	port->nic_no_buffer = stats.rx_nombuf;
}

/* In the order of `offload show`: the later on their way are read first. */
static int take_card(struct metrics_offload *offload, struct plane *plane, unsigned number)
{
	struct installer *installer = plane_installer(plane, number);
	int ret = installer ? plane_offload_counters(plane, number, &offload->agent) : 0;

	offload->installer = installer;
	if (!installer || ret < 0)
		return ret;
	const struct installer_counters *counters = installer_counters(installer);

	offload->ready = installer_ready(installer);
	offload->rules = atomic_load_explicit(&counters->rules, memory_order_relaxed);
	offload->under_way = atomic_load_explicit(&counters->under_way, memory_order_relaxed);
	offload->changes_lost = atomic_load_explicit(&counters->changes_lost, memory_order_relaxed);
	offload->opened =
		atomic_load_explicit(&installer_health(installer)->opened, memory_order_relaxed);
	return 0;
}

int metrics_take(struct metrics_source *source, struct plane *plane,
	struct plane_snapshot *snapshot, const struct control_records *records,
	const struct exporter *exporter)
{
	const struct plane_config *config = plane_config(plane);
	int ret = plane_snapshot(plane, snapshot);

	if (ret < 0)
		return ret;
	memset(source, 0, sizeof(*source));
	source->config = config;
	source->snapshot = snapshot;
	source->simd = plane_simd(plane);
	source->hz = (double)rte_get_tsc_hz();
	take_engine(&source->engine, plane);
	source->engine.records = *records;
	source->exporter = exporter;
	for (unsigned i = 0; i < config->topology.n_ports && ret == 0; i++) {
		take_port(&source->port[i], snapshot, i, config->port[i]);
		ret = take_card(&source->offload[i], plane, i);
		source->has_slots |= source->offload[i].installer != NULL;
	}
	for (unsigned i = 0; i < config->topology.n_domains && source->has_slots && ret == 0; i++)
		ret = plane_slots(plane, i, &source->slots[i]);
	return ret;
}
