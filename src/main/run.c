/* SPDX-License-Identifier: BSD-3-Clause */
/* One chain of things made in order, a loop, and the same chain undone. */
#include "main/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "base/dpdk.h"
#include "base/mapping.h"
#include "base/privilege.h"
#include "main/capture_files.h"
#include "main/run_apply.h"
#include "main/run_hosts.h"
#include "main/run_loop.h"
#include "packet/hash.h"
#include "port/known_port.h"
#include "port/rss.h"

#define EXIT_MISUSED 2

/* Packets of ports and rings: what a port may want, and the rest. */
#define PORT_MEGABYTES 96
#define BASE_MEGABYTES 160

/*
 * Reports that wait for their turn to be written: a second's, where every worker ends 65,536 flows in it; fewer where
 * there are many workers, so that all of them together take no more than 50 MB.
 */
#define REPORTS_MOST 65536u
#define REPORTS_ALL 262144u

/* The place in the configuration of a port by its number. */
static unsigned config_port(const struct run *run, unsigned number)
{
	return run_config_port(&run->config, &run->topology, number);
}

static bool is_router_port(const struct run *run, unsigned number)
{
	return run->topology.router[run->topology.domain[number]];
}

static const struct run_port *port_of(const struct run *run, unsigned number)
{
	return &run->config.ports[config_port(run, number)];
}

static void tell_telemetry(struct run *run)
{
	char path[108], line[160];

	if (dpdk_telemetry_socket(path, sizeof(path)) == 0)
		snprintf(line, sizeof(line), "telemetry: %s", path);
	else
		snprintf(line, sizeof(line), "telemetry: DPDK could not make its socket in %s",
			rte_eal_get_runtime_dir());
	run_say(run, line);
}

static int run_start_dpdk(struct run *run, struct error *error)
{
	struct dpdk_needs needs = {
		.megabytes = BASE_MEGABYTES + run_n_ports(run) * PORT_MEGABYTES +
			     run->config.engine.workers * 16,
		.hugepages = true,
		.telemetry = run->config.telemetry,
	};

	for (unsigned i = 0; i < run_n_ports(run); i++) {
		const struct port_device *device = &port_of(run, i)->device;

		if (device->kind == PORT_DEVICE_PCI)
			needs.pci[needs.n_pci++] = device->text;
	}
	int ret = dpdk_start_for(&needs, error);

	run->dpdk = ret == 0;
	if (ret == 0 && needs.telemetry)
		tell_telemetry(run);
	return ret;
}

/* Of the wire's slots, as far as rules are asked for at this port. */
static uint32_t places_of(const struct run *run, unsigned number)
{
	const struct run_config *config = &run->config;
	unsigned port = config_port(run, number);

	return run_config_offloads(config, port) && !is_router_port(run, number)
		       ? config->offload.slots
		       : 0;
}

static int run_open_ports(struct run *run, struct error *error)
{
	struct hash_secret secret;
	int ret = hash_secret_init(&secret);
	uint16_t pattern = rss_pattern((uint16_t)secret.word[0]);

	if (ret < 0)
		return error_set(error, ret, "no randomness from the kernel: %s", strerror(-ret));

	for (unsigned i = 0; ret == 0 && i < run_n_ports(run); i++) {
		const struct run_port *port = port_of(run, i);
		const struct port_config config = {
			.name = port->name,
			.device = port->device,
			.n_queues =
				run->config.threads == PLANE_SPLIT ? 1 : run->config.engine.workers,
			.force = run->config.force,
			.rss_pattern = pattern,
			.offload_places = places_of(run, i),
		};

		ret = port_open(&run->ports[i], &config, run_say, run, error);
		if (ret == 0 && run->topology.peer[i] < i && !is_router_port(run, i))
			ret = port_check_wire(
				run->ports[run->topology.peer[i]], run->ports[i], error);
		if (ret == 0 && config.offload_places != 0)
			run->known[i] = known_port_load(run->ports[i], run_say, run);
	}
	if (ret == 0)
		ret = port_check_loops(
			run->ports, &run->topology, run->config.force, run_say, run, error);
	return ret;
}

static void take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct run *run = context;

	exporter_push(run->exporter, reports[0].worker, reports, n, false);
}

static void all_flows_end(void *context)
{
	struct run *run = context;

	exporter_stopping(run->exporter);
}

static unsigned room_for_reports(void *context, unsigned worker)
{
	const struct run *run = context;

	return exporter_room(run->exporter, worker);
}

static int open_collectors(struct run *run, struct error *error)
{
	const struct export_ports ports = {.topology = run->topology, .names = run->port_names};

	for (unsigned i = 0; i < run_n_ports(run); i++)
		run->port_names[i] = port_of(run, i)->name;
	run->n_collectors = run->config.exports.n;
	return exports_open(&run->config.exports, &ports, NULL, run->collectors, error);
}

static int run_create_exporter(struct run *run, struct error *error)
{
	const unsigned n_workers = run->config.engine.workers;
	struct exporter_config config = {.n_workers = n_workers,
		.mailbox = RTE_MIN(REPORTS_MOST, REPORTS_ALL / n_workers),
		.collectors = run->collectors,
		.n_collectors = run->config.exports.n};
	int ret = open_collectors(run, error);

	if (ret < 0)
		return ret;
	if (run->config.output != NULL)
		ret = export_output_open_live(&config.output, run->config.output, NULL, error);
	if (ret == 0)
		ret = exporter_create(&run->exporter, &config, error);
	if (ret < 0) {
		struct error ignored;

		for (unsigned i = 0; i < config.n_collectors; i++)
			export_collector_close(run->collectors[i]);
		export_output_close(config.output, &ignored);
	}
	return ret;
}

/* By the plane's numbers of ports. */
static struct plane_offload offload_of(const struct run *run)
{
	const struct run_config *config = &run->config;
	struct plane_offload offload = {
		.on = config->offload.on,
		.full = config->offload.full,
		.threshold = config->offload.threshold,
		.slots = config->offload.slots,
		.rules = config->offload.rules,
		.rules_per_s = config->offload.rules_per_s,
		.counters = config->offload.counters,
		.restart = config->offload.restart,
		.drops = config->offload.drops,
	};

	for (unsigned i = 0; i < run_n_ports(run); i++) {
		/* what NICs would do for a router is not told to them yet */
		offload.off_port[i] =
			!run_config_offloads(config, config_port(run, i)) || is_router_port(run, i);
		offload.known[i] = run->known[i];
	}
	return offload;
}

static int create_plane(struct run *run, struct error *error)
{
	const struct engine_options *engine = &run->config.engine;
	struct plane_config config = {
		.topology = run->topology,
		.n_workers = engine->workers,
		.threads = run->config.threads,
		.sharding = run->config.sharding,
		.poll_always = run->config.poll_always,
		.pin = run->config.pin,
		.flows = engine->flows,
		.tie_fragments = engine->fragments_follow,
		.zone_vlan = engine->zone_vlan,
		.tcp_strict = engine->tcp_strict,
		.octets = run->config.exports.n > 0,
		.measure = engine->measure,
		.measure_what = engine->measure_all ? NULL : &engine->measure_what,
		.one_armed = run->config.one_armed,
		.active_s = engine->active_s,
		.timeouts = engine->timeouts,
		.max_blocks = run->config.blocks.max,
		.max_block_reasons = run->config.blocks.reasons,
		.max_rules = run->config.rules.max,
		.reject_rate = run->config.rules.reject_rate,
		.log_rate = run->config.rules.log_rate,
		.replies_follow = run->config.rules.replies_follow,
		.no_pickup = run->config.rules.no_pickup,
		.n_captures = run->config.rules.n_captures,
		.offload = offload_of(run),
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = take_reports,
		.sink_context = run,
		.ending = all_flows_end,
		.room = room_for_reports,
	};

	int ret = run_rules_count_sets(
		&run->config.rules, &config.max_rule_sets, &config.max_rule_prefixes, error);

	if (ret < 0)
		return ret;
	memcpy(config.port, run->ports, sizeof(config.port));
	run_hosts_fill(run, &config);
	return plane_create(&run->plane, &config, error);
}

static int create_control(struct run *run, struct error *error)
{
	char *json = run_config_json(&run->config);
	const struct control_config config = {
		.socket_path = run->config.socket,
		.config_json = json,
		.note = run_say,
		.note_context = run,
	};
	int ret = json == NULL ? error_set(error, -ENOMEM, "out of memory")
			       : control_create(&run->control, &config, error);

	free(json);
	return ret;
}

static void count_records(void *context, struct control_records *records)
{
	const struct run *run = context;
	struct exporter_totals totals;

	exporter_live_totals(run->exporter, &totals);
	*records = (struct control_records){
		.made = exporter_made(&totals),
		.written = totals.written,
	};
	if (run->config.output == NULL)
		return;
	records->overflowed = totals.overflowed;
	records->lost_write = totals.lost_by[EXPORT_LOSS_WRITE];
	records->lost_reader = totals.lost_by[EXPORT_LOSS_READER];
}

static int create_http(struct run *run, struct error *error)
{
	const struct control_http_config config = {
		.listen = run->config.metrics.listen,
		.records = count_records,
		.records_context = run,
	};

	return config.listen == NULL ? 0 : control_http(run->control, &config, error);
}

/* Does a signal say that it shall end? */
static bool is_to_stop(void *context)
{
	struct run *run = context;

	run_take_signals(run, run->signals);
	return run->stop;
}

static void tell_rule(void *context, const char *line)
{
	run_say(context, line);
}

/* Large tables take their time: who is told to end meanwhile does so. */
static int take_memory(struct run *run, struct error *error)
{
	mapping_ask(is_to_stop, run);
	int ret = create_plane(run, error);

	/* before the first packet */
	if (ret == 0)
		ret = run_apply_begin(run, error);
	if (ret == 0)
		ret = run_blocks_fill(
			&run->blocks, plane_blocks(run->plane), plane_now_us(run->plane), error);
	if (ret == 0)
		ret = run_rules_load(
			&run->config.rules, plane_rules(run->plane), tell_rule, run, error);
	if (ret == 0)
		ret = control_serve(run->control, run->plane, error);
	if (ret == 0)
		run_apply_serve(run);
	mapping_ask(NULL, NULL);
	return ret == 0 && is_to_stop(run) ? -EINTR : ret;
}

/*
 * Once the ports are open two kinds of them still need the right: af_xdp to close, as its program is found by number,
 * and a tap that is moved to another namespace, where its MTU and what its queue drops are asked for.
 */
static void drop_rights(const struct run *run)
{
	for (unsigned i = 0; i < run_n_ports(run); i++)
		if (strcmp(run->ports[i]->driver, "net_af_xdp") == 0 ||
			strcmp(run->ports[i]->driver, "net_tap") == 0)
			return;
	privilege_drop_admin();
}

static int create_all(struct run *run, struct error *error)
{
	int ret = run_catch_signals(run, error);

	/* first of all the socket: two engines on the same ports would carry every packet twice */
	if (ret == 0)
		ret = create_control(run, error);
	if (ret == 0)
		ret = create_http(run, error);
	if (ret == 0)
		ret = run_start_dpdk(run, error);
	if (ret == 0)
		ret = run_open_ports(run, error);
	if (ret == 0)
		ret = run_create_exporter(run, error);
	if (ret == 0 && run->config.rules.n_captures > 0)
		ret = capture_files_open(&run->captures, run->config.rules.captures,
			run->config.rules.n_captures, error);
	if (ret == 0)
		control_show_exports(run->control, run->exporter);
	if (ret == 0)
		ret = take_memory(run, error);
	if (ret == 0)
		ret = run_hosts_start(run, error);
	if (ret == 0)
		control_show_hosts(run->control, run->hosts);
	if (ret == 0 && run->captures != NULL)
		ret = capture_files_start(run->captures, run->plane, run_say, run, error);
	if (ret == 0)
		drop_rights(run);
	if (ret == 0)
		ret = control_watch(run->control, run->signals, run_take_signals, run);
	if (ret == 0)
		ret = plane_start(run->plane, error);
	if (ret == 0)
		plane_be_quick(run->plane);
	return ret;
}

/* In the opposite order; the ports hold packets of the plane's pools, so that they go before it. */
static void destroy_all(struct run *run)
{
	if (run->plane != NULL)
		plane_stop(run->plane);
	run_hosts_stop(run);
	capture_files_destroy(run->captures);
	control_destroy(run->control);
	for (unsigned i = 0; i < run_n_ports(run); i++)
		port_close(run->ports[i]);
	plane_destroy(run->plane);
	for (unsigned i = 0; i < run_n_ports(run); i++)
		free(run->known[i]);
	exporter_destroy(run->exporter);
	run_apply_end(run);
	if (run->signals >= 0)
		close(run->signals);
	if (run->dpdk)
		dpdk_stop();
}

static void run_engine(struct run *run)
{
	struct error error = {.text = "it does not start"};

	if (create_all(run, &error) < 0) {
		run_say(run, run->stop ? "it was told to end before it had started" : error.text);
		run->failed = !run->stop;
	} else {
		run_loop(run);
		run_finish(run);
	}
	destroy_all(run);
}

int run_main(int argc, char **argv)
{
	struct run run = {.signals = -1};
	struct error error;

	run.current = &run.config;
	if (run_words_copy(&run.words, argc, argv) < 0) {
		fputs("millrace: no memory for the command line\n", stderr);
		return EXIT_FAILURE;
	}
	int ret = run_config_parse(&run.config, argc, argv, &error);

	if (ret == RUN_HELP) {
		run_config_help(stdout);
		run_words_fini(&run.words);
		run_config_fini(&run.config);
		return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (ret < 0)
		fprintf(stderr, "millrace: %s\n", error.text);
	else {
		run.topology = run_config_topology(&run.config);
		run_engine(&run);
	}
	run_words_fini(&run.words);
	run_config_fini(&run.config);
	if (ret == -EINVAL)
		return EXIT_MISUSED;
	return ret < 0 || run.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
