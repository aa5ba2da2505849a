/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The table of metrics: names and labels as Prometheus wants them, as many lines as the engine has parts and no more, and
 * the numbers of the snapshot. With the argument --table it prints the table of docs/metrics.md.
 */

#include <ctype.h>

#include "control/metrics.h"
#include "export/exporter.h"
#include "unit/control_scene.h"

/* All labels that there are. Each is one of few: no address, no port of a flow, no name that a client chooses. */
static const char *const bounded[] = {"export", "version", "dpdk", "simd", "wire", "port", "driver",
	"thread", "state", "stage", "worker", "protocol", "reason", "of", "proven", "operation",
	"result", "answer"};

static void print_table(FILE *out)
{
	static const char *const endings[METRIC_N_TYPES] = {[METRIC_COUNTER] = "_total",
		[METRIC_GAUGE] = "",
		[METRIC_INFO] = "_info",
		[METRIC_HISTOGRAM] = ""};

	fprintf(out, "| metric | type | labels | meaning |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < metric_n_rows; i++) {
		const struct metric *metric = &metric_table[i];

		fprintf(out, "| `" METRICS_PREFIX "%s%s` | %s | %s | %s |\n", metric->name,
			endings[metric->type], metric_type_name(metric->type), metric->labels,
			metric->help);
	}
}

static void test_page_has_the_table(void **state)
{
	char *page = NULL, *table = NULL;
	size_t size = 0, n = 0;
	FILE *file = fopen(METRICS_PAGE, "r"), *out = open_memstream(&table, &size);

	(void)state;
	assert_non_null(file);
	assert_true(getdelim(&page, &n, '\0', file) > 0);
	fclose(file);
	print_table(out);
	fclose(out);
	if (!strstr(page, table))
		fail_msg("docs/metrics.md has another table than test_control_metrics --table "
			 "prints");
	free(page);
	free(table);
}

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) > strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* Prometheus's own rules; promtool has them too, and is not everywhere. */
static void test_names(void **state)
{
	static const char *const reserved[] = {"_total", "_info", "_count", "_sum", "_bucket",
		"_created", "_counter", "_gauge", "_us", "_ms", "_ns"};

	(void)state;
	for (unsigned i = 0; i < metric_n_rows; i++) {
		const struct metric *metric = &metric_table[i];

		for (const char *at = metric->name; *at != '\0'; at++)
			assert_true(islower((unsigned char)*at) || *at == '_');
		for (unsigned k = 0; k < sizeof(reserved) / sizeof(reserved[0]); k++)
			assert_false(ends_with(metric->name, reserved[k]));
		if (metric->unit)
			assert_true(ends_with(metric->name, metric->unit));
		assert_int_equal(metric->unit != NULL,
			ends_with(metric->name, "_seconds") || ends_with(metric->name, "_bytes"));
		assert_true(strlen(metric->help) > 0 && !strpbrk(metric->help, "\\\n|"));
		assert_false(ends_with(metric->help, "."));
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(metric->name, metric_table[k].name);
	}
}

static void test_labels_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < metric_n_rows; i++) {
		char labels[128], *rest = labels;

		snprintf(labels, sizeof(labels), "%s", metric_table[i].labels);
		for (const char *name; (name = strsep(&rest, ", ")) != NULL;) {
			unsigned k = 0;

			while (k < sizeof(bounded) / sizeof(bounded[0]) &&
				strcmp(name, bounded[k]) != 0)
				k++;
			if (*name != '\0' && k == sizeof(bounded) / sizeof(bounded[0]))
				fail_msg("%s has a label \"%s\"", metric_table[i].name, name);
		}
	}
}

/* With one export, to whom nobody listens. */
static struct exporter *make_exporter(void)
{
	struct export_collector *collector;
	struct export_target target;
	struct exporter *exporter;
	struct error error;
	struct exporter_config config = {
		.n_workers = 1, .collectors = &collector, .n_collectors = 1};

	assert_int_equal(export_target_parse(&target, "ipfix://127.0.0.1:9", &error), 0);
	assert_int_equal(export_collector_open(&collector, &target, NULL, NULL, &error), 0);
	assert_int_equal(exporter_create(&exporter, &config, &error), 0);
	return exporter;
}

static char *render(struct scene *scene, enum metrics_format format)
{
	static struct plane_snapshot snapshot;
	static struct metrics_source source;
	const struct control_records records = {.made = 9, .written = 5, .overflowed = 4};
	struct exporter *exporter = make_exporter();
	size_t length;

	assert_int_equal(metrics_take(&source, &scene->plane, &snapshot, &records, exporter), 0);
	/* DPDK has not started here, and has not looked how fast the counter counts */
	source.hz = 2e9;
	char *text = metrics_render(&source, format, &length);

	exporter_destroy(exporter);

	assert_non_null(text);
	assert_int_equal(strlen(text), length);
	return text;
}

/* The names of a line's labels as a row has them, "wire, reason", without that of a histogram's parts. */
static void labels_of(const char *line, char labels[128])
{
	const char *at = line + strcspn(line, "{ ");
	size_t n = 0;

	labels[0] = '\0';
	while (*at == '{' || *at == ',') {
		const char *name = ++at;
		const size_t length = strcspn(name, "=");

		if (strncmp(name, "le=", 3) != 0)
			n += (size_t)snprintf(labels + n, 128 - n, "%s%.*s", n > 0 ? ", " : "",
				(int)length, name);
		for (at = name + length + 2; *at != '"'; at++)
			at += *at == '\\';
		at++;
	}
}

static void offload_all(struct scene *scene)
{
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		scene->plane.installers[i].there = true;
}

/* Every row has lines of its own, under its head, with its labels; there is no line of anything else. */
static void test_lines_are_as_the_table_says(void **state)
{
	struct scene *scene = *state;

	offload_all(scene);
	for (unsigned format = 0; format < METRICS_N_FORMATS; format++) {
		char *text = render(scene, (enum metrics_format)format), *rest = text, labels[128];
		unsigned row = UINT32_MAX, lines = 1;

		for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
			if (strncmp(line, "# HELP ", 7) == 0) {
				assert_true(lines > 0);
				lines = 0;
				row++;
			}
			if (*line == '#')
				continue;
			lines++;
			assert_true(row < metric_n_rows);
			assert_int_equal(strncmp(line, METRICS_PREFIX, strlen(METRICS_PREFIX)), 0);
			assert_int_equal(
				strncmp(line + strlen(METRICS_PREFIX), metric_table[row].name,
					strlen(metric_table[row].name)),
				0);
			labels_of(line, labels);
			assert_string_equal(labels, metric_table[row].labels);
		}
		assert_int_equal(row, metric_n_rows - 1);
		free(text);
	}
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

/* As many lines with a million flows as with none. */
static void test_flows_make_no_lines(void **state)
{
	struct scene *scene = *state;

	offload_all(scene);
	char *none = render(scene, METRICS_TEXT);

	for (unsigned i = 0; i < FAKE_WORKERS; i++) {
		struct plane_lcore *lcore = &scene->plane.snapshot.lcores[i];

		lcore->flows = lcore->phase_flows[FLOW_PHASE_OPEN] = 1000000;
		for (unsigned proto = 0; proto < 256; proto++)
			lcore->flow.learned += lcore->flow.learned_by_proto[proto] = 1000 + proto;
	}
	scene->plane.made_up = 1000000;
	char *many = render(scene, METRICS_TEXT);

	assert_int_equal(count_lines(none), count_lines(many));
	assert_non_null(strstr(many, "\nmillrace_flows{worker=\"1\",state=\"open\"} 1000000\n"));
	assert_non_null(strstr(
		many, "\nmillrace_flows_learned_total{worker=\"0\",protocol=\"icmp\"} 2059\n"));
	assert_non_null(strstr(
		many, "\nmillrace_flows_learned_total{worker=\"0\",protocol=\"tcp\"} 1006\n"));
	/* all but 1, 6, 17, 58 and 132 */
	assert_non_null(strstr(
		many, "\nmillrace_flows_learned_total{worker=\"0\",protocol=\"other\"} 283426\n"));
	free(none);
	free(many);
}

static void expect_lines_in(const char *text, const char *const *lines)
{
	char line[256];

	for (; *lines; lines++) {
		snprintf(line, sizeof(line), "\n%s\n", *lines);
		if (!strstr(text, line))
			fail_msg("there is no line %s", *lines);
	}
}

/* Of the scene below. */
/* clang-format off */
static const char *const plain_lines[] = {
	"# TYPE millrace_build_info gauge",
	"# HELP millrace_wire_out_bytes_total Bytes of the packets that went out",
	"# TYPE millrace_wire_received_bytes_total counter",
	"millrace_wire_received_bytes_total{wire=\"1\"} 18446744073709551615",
	"millrace_wire_dropped_packets_total{wire=\"0\",reason=\"blocked\"} 3",
	"millrace_wire_dropped_packets_total{wire=\"1\",reason=\"blocked\"} 0",
	"millrace_wire_flows{wire=\"0\"} 12",
	"millrace_port_info{port=\"we\\\\ird\\\"\",wire=\"0\",driver=\"net_x\"} 1",
	"millrace_port_rx_packets_total{port=\"down\"} 5",
	"millrace_port_nic_rx_missed_packets_total{port=\"up\"} 3",
	"millrace_port_up{port=\"up\"} 1",
	"millrace_start_time_seconds 1795161600",
	"millrace_thread_time_seconds_total{thread=\"worker 1\",state=\"busy\"} 1.5",
	"millrace_records_made_total 9",
	"millrace_records_lost_total{reason=\"overflow\"} 4",
	"millrace_offload_flows{port=\"right\",state=\"in_hw\",proven=\"yes\"} 4",
	"millrace_offload_flows{port=\"right\",state=\"in_hw\",proven=\"no\"} 2",
	"millrace_offload_audit_failures_total{port=\"right\",reason=\"unmarked\"} 6",
	"millrace_offload_breaker{port=\"right\",state=\"open\"} 1",
	"millrace_offload_breaker{port=\"right\",state=\"closed\"} 0",
	"millrace_offload_operations_total{port=\"right\",operation=\"insert\",result=\"failed\"} 2",
	"millrace_offload_slots{wire=\"0\",state=\"free\"} 6",
	"millrace_offload_read_interval_seconds{port=\"right\"} 0.25",
	"millrace_offload_call_seconds_bucket{port=\"right\",operation=\"insert\",le=\"1.023e-06\"} 1",
	"millrace_offload_call_seconds_bucket{port=\"right\",operation=\"insert\",le=\"4.095e-06\"} 3",
	"millrace_offload_call_seconds_bucket{port=\"right\",operation=\"insert\",le=\"+Inf\"} 3",
	"millrace_offload_call_seconds_sum{port=\"right\",operation=\"insert\"} 6.142e-06",
	"millrace_offload_call_seconds_count{port=\"right\",operation=\"insert\"} 3",
	NULL,
};
/* clang-format on */

static const char *const open_lines[] = {
	"# TYPE millrace_build info",
	"# TYPE millrace_wire_received_bytes counter",
	"# UNIT millrace_wire_received_bytes bytes",
	"millrace_wire_received_bytes_total{wire=\"1\"} 18446744073709551615",
	"# TYPE millrace_offload_call_seconds histogram",
	"# UNIT millrace_offload_call_seconds seconds",
	NULL,
};

static void test_numbers(void **state)
{
	struct scene *scene = *state;
	struct plane *plane = &scene->plane;
	struct installer *installer = &plane->installers[1];

	plane->snapshot.wires[1].received_bytes = UINT64_MAX;
	plane->snapshot.wires[0].dropped[DROP_BLOCKED] = 3;
	plane->snapshot.wire_flows[0] = 12;
	plane->snapshot.lcores[1].busy_cycles = 3000000000;
	plane->snapshot.lcores[0].ports[3].rx_packets = 2;
	plane->snapshot.lcores[1].ports[3].rx_packets = 3;
	strcpy(plane->ports[0].name, "we\\ird\"");
	strcpy(plane->ports[0].driver, "net_x");
	plane->ports[3].id = UINT16_MAX;
	installer->there = true;
	plane->offload_counters[1].flows[OFFLOAD_PROVEN] = 4;
	plane->offload_counters[1].flows[OFFLOAD_ACCEPTED] = 2;
	plane->offload_counters[1].fell_out[OFFLOAD_UNMARKED] = 6;
	plane->offload_counters[1].read_us = 250000;
	plane->slots[0] = (struct plane_slots){.n = 10, .used = 3, .draining = 1};
	atomic_store(&installer->health.state, HEALTH_OPEN);
	atomic_store(&installer->counters.failed[INSTALLER_INSERT], 2);
	histogram_add(&installer->histograms.call[INSTALLER_INSERT], 1023);
	histogram_add(&installer->histograms.call[INSTALLER_INSERT], 1024);
	histogram_add(&installer->histograms.call[INSTALLER_INSERT], 4095);
	char *text = render(scene, METRICS_TEXT);

	expect_lines_in(text, plain_lines);
	/* the driver does not count, nobody makes rules: then there is no line */
	assert_null(strstr(text, "millrace_port_nic_rx_packets_total{port=\"down\"}"));
	assert_null(strstr(text, "millrace_offload_rules{port=\"up\"}"));
	free(text);
	text = render(scene, METRICS_OPENMETRICS);
	expect_lines_in(text, open_lines);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_has_the_table),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_labels_are_bounded),
		SCENE_TEST(test_lines_are_as_the_table_says),
		SCENE_TEST(test_flows_make_no_lines),
		SCENE_TEST(test_numbers),
	};

	if (argc == 2 && strcmp(argv[1], "--table") == 0) {
		print_table(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
