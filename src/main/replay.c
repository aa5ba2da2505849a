/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/idle.h"
#include "main/dpdk.h"
#include "main/engine.h"
#include "main/progress.h"
#include "main/replay_options.h"
#include "main/replay_total.h"
#include "traffic/capture.h"
#include "traffic/frame.h"

#define EXIT_MISUSED 2

/* What 65,536 held packets and the rings of 16 workers need, and some room. */
#define DPDK_MEGABYTES 96

#define BURST 64

/* Tries for a packet buffer; the workers give them back, unless they are stuck for about a minute. */
#define BUFFER_TRIES 250000

struct replay {
	struct replay_options options;
	struct exporter *exporter;
	struct engine *engine;
	bool quiet; /* records go to the terminal that progress would be shown on */
	bool failed;
};

/* The capture being read. */
struct reading {
	struct replay *replay;
	uint32_t number;
	bool begun;	    /* within a run */
	uint64_t origin_us; /* Unix time of the run's clock 0 */
	uint64_t now_us;    /* clock of the run */
	unsigned n;	    /* packets of the burst that is being filled; all came at now_us */
	struct rte_mbuf *burst[BURST];
};

/* Set by a signal: no more is read, and what was read is reported. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* The second signal of a kind kills, as if this had not been: somebody is in a hurry. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void complain(struct replay *replay, const struct error *error)
{
	fprintf(stderr, "millrace: %s\n", error->text);
	replay->failed = true;
}

static void hand_in(struct reading *reading)
{
	if (reading->n == 0)
		return;
	engine_packets(reading->replay->engine, reading->now_us, reading->burst, reading->n);
	reading->n = 0;
}

static int end_run(struct reading *reading, uint64_t now_us, struct error *error)
{
	if (!reading->begun)
		return 0;
	hand_in(reading);
	reading->begun = false;
	return engine_end(reading->replay->engine, now_us, error);
}

/*
 * Sets the clock to a packet's time. It never runs back, and lasts whatever the capture says: a silence
 * longer than any timeout ends the run by idleness and begins another, and so does, by shutdown, a run
 * that could outlast the clock.
 */
static int set_clock(struct reading *reading, uint64_t time_us, struct error *error)
{
	uint64_t now_us = time_us < reading->origin_us ? 0 : time_us - reading->origin_us;
	int ret = 0;

	if (reading->begun && now_us > reading->now_us + CLOCK_GAP_US)
		ret = end_run(reading, reading->now_us + CLOCK_GAP_US, error);
	else if (reading->begun && now_us > CLOCK_MAX_US - CLOCK_GAP_US)
		ret = end_run(reading, reading->now_us, error);
	if (ret < 0)
		return ret;
	if (!reading->begun) {
		reading->begun = true;
		reading->origin_us = time_us;
		reading->now_us = 0;
		return engine_begin(reading->replay->engine, time_us, reading->number, error);
	}
	if (now_us > reading->now_us) {
		hand_in(reading);
		reading->now_us = now_us;
	}
	return 0;
}

static int add_packet(
	struct reading *reading, const struct capture_packet *packet, struct error *error)
{
	int ret = set_clock(reading, packet->time_us, error);
	unsigned tries = 0;

	if (ret < 0)
		return ret;
	for (;;) {
		struct rte_mbuf *frame = frame_make(engine_pool(reading->replay->engine),
			packet->bytes, packet->length, UINT16_MAX);

		if (frame != NULL) {
			reading->burst[reading->n++] = frame;
			break;
		}
		if (tries == BUFFER_TRIES)
			return error_set(error, -ENOMEM, "no memory for another packet");
		hand_in(reading);
		engine_flush(reading->replay->engine);
		idle_wait(&tries);
	}
	if (reading->n == BURST)
		hand_in(reading);
	return 0;
}

/* Reads to the end, or to where the capture breaks: what came before counts. */
static int read_packets(struct reading *reading, struct capture *capture, struct error *error)
{
	struct capture_packet packet;
	struct progress progress;
	uint64_t packets = 0;
	int ret;

	progress_start(&progress, stderr, capture_size(capture), !reading->replay->quiet);
	while ((ret = capture_next(capture, &packet, error)) > 0) {
		ret = add_packet(reading, &packet, error);
		if (ret < 0)
			break;
		if (interrupted) {
			ret = error_set(error, -EINTR, "%s: interrupted after %ju packets",
				reading->replay->options.paths[reading->number], packets + 1);
			break;
		}
		if (++packets % 1024 == 0)
			progress_update(&progress, capture_position(capture), packets);
	}
	progress_clear(&progress);
	return ret;
}

static void replay_capture(struct replay *replay, uint32_t number)
{
	struct reading reading = {.replay = replay, .number = number};
	struct capture *capture = NULL;
	struct error error;

	if (capture_open(&capture, replay->options.paths[number], &error) < 0) {
		complain(replay, &error);
		return;
	}
	if (read_packets(&reading, capture, &error) < 0)
		complain(replay, &error);
	if (end_run(&reading, reading.now_us, &error) < 0)
		complain(replay, &error);
	capture_close(capture);
}

static void replay_all(struct replay *replay)
{
	struct replay_total total;
	struct replay_total part;
	bool several = replay->options.n_paths > 1;
	bool text = !replay->options.json;
	unsigned n_read = 0;
	struct error error;

	replay_total_start(&total);
	for (uint32_t i = 0; i < replay->options.n_paths && !interrupted; i++) {
		n_read++;
		replay_total_resume(&part, &total);
		replay_capture(replay, i);
		replay_total_count(&part, replay->engine);
		if (several && text)
			replay_total_print(&part, replay->options.paths[i], 1);
		replay_total_count(&total, replay->engine);
	}
	if (exporter_finish(replay->exporter, &total.exported, &error) < 0)
		complain(replay, &error);
	unsigned n_top;
	const struct flow_report *top = exporter_top(replay->exporter, &n_top);
	const char *name = several ? NULL : replay->options.paths[0];

	if (!text) {
		replay_total_json(&total, name, n_read, top, n_top);
		return;
	}
	replay_total_print(&total, name, n_read);
	summary_top(stderr, top, n_top);
}

static int create_exporter(struct replay *replay, struct error *error)
{
	const struct replay_options *options = &replay->options;
	struct exporter_config config = {
		.n_workers = options->engine.workers,
		.names = options->n_paths > 1 ? (const char *const *)options->paths : NULL,
		.n_names = options->n_paths,
		.top = options->summary ? REPLAY_TOP_FLOWS : 0,
	};
	int ret = export_output_open(&config.output, options->output, error);

	if (ret < 0)
		return ret;
	ret = exporter_create(&replay->exporter, &config, error);
	if (ret < 0) {
		struct error ignored;

		export_output_close(config.output, &ignored);
	}
	return ret;
}

static int create_engine(struct replay *replay, struct error *error)
{
	const struct engine_options *options = &replay->options.engine;
	const struct engine_config config = {
		.n_workers = options->workers,
		.flows = options->flows,
		.tie_fragments = options->fragments_follow,
		.zone_vlan = options->zone_vlan,
		.tcp_strict = options->tcp_strict,
		.active_s = options->active_s,
		.timeouts = options->timeouts,
		/* small pages: most captures touch little of the table, and all of it is zeroed by page */
		.mapping = 0,
		.exporter = replay->exporter,
	};

	return engine_create(&replay->engine, &config, error);
}

/* Everything in order, and undone in the opposite one. */
static void run(struct replay *replay)
{
	struct error error;

	if (dpdk_start(DPDK_MEGABYTES, &error) < 0) {
		complain(replay, &error);
		return;
	}
	if (create_exporter(replay, &error) < 0 || create_engine(replay, &error) < 0)
		complain(replay, &error);
	else
		replay_all(replay);
	engine_destroy(replay->engine);
	exporter_destroy(replay->exporter);
	dpdk_stop();
}

int replay_main(int argc, char **argv)
{
	struct replay replay = {0};
	struct error error;
	int ret = replay_options_parse(&replay.options, argc, argv, &error);

	if (ret == REPLAY_HELP) {
		replay_options_help(stdout);
		if (fflush(stdout) == 0 && !ferror(stdout))
			return EXIT_SUCCESS;
		perror("millrace: standard output");
		return EXIT_FAILURE;
	}
	if (ret < 0) {
		fprintf(stderr, "millrace: %s\n", error.text);
		return EXIT_MISUSED;
	}
	replay.quiet = isatty(STDOUT_FILENO) && replay.options.output == NULL;
	catch_signals();
	run(&replay);
	return replay.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
