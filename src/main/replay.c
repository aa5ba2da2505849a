/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/replay.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dpdk.h"
#include "base/idle.h"
#include "base/monotonic.h"
#include "base/say.h"
#include "main/engine.h"
#include "main/progress.h"
#include "main/replay_options.h"
#include "main/replay_total.h"
#include "traffic/capture.h"
#include "traffic/frame.h"
#include "traffic/timeline.h"

#define EXIT_MISUSED 2

/* What 65,536 held packets and the rings of 16 workers need, and some room. */
#define DPDK_MEGABYTES 96

#define BURST 64

static_assert(
	TIMELINE_WAIT <= ENGINE_MAX_WAITING, "frames that wait for their time are the engine's");

/* Tries for a packet buffer; the workers give them back, unless they are stuck for about a minute. */
#define BUFFER_TRIES 250000

struct replay {
	struct replay_options options;
	struct exporter *exporter;
	struct export_collector *collectors[EXPORTS_MAX]; /* the exporter's */
	struct engine *engine;
	bool quiet; /* records go to the terminal that progress would be shown on */
	bool failed;
};

/* The capture being read, or with --continue all of them, one after the other. */
struct reading {
	struct replay *replay;
	uint32_t run; /* the number of the first capture, which names the records */
	bool begun;   /* within a run */
	struct timeline timeline;
	uint64_t begun_us;   /* the timeline's clock when the run began */
	uint64_t now_us;     /* clock of the run */
	uint64_t started_us; /* when it began, by the machine's clock */
	unsigned n;	     /* packets of the burst that is being filled; all came at now_us */
	struct rte_mbuf *burst[BURST];
};

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

/* With --pace: waits until so much time has gone by since the run began, or somebody wants no more of it. */
static void keep_pace(const struct reading *reading, uint64_t now_us)
{
	if (!reading->replay->options.pace)
		return;
	engine_flush(reading->replay->engine);
	while (!say_interrupted()) {
		const uint64_t gone_us = monotonic_us() - reading->started_us;
		struct timespec pause = {.tv_nsec = 1000};

		if (gone_us >= now_us)
			return;
		pause.tv_nsec *= (long)RTE_MIN(now_us - gone_us, UINT64_C(50000));
		(void)nanosleep(&pause, NULL);
	}
}

/*
 * Sets the clock of the run to the timeline's. It lasts whatever the capture says: a silence longer than any timeout
 * ends the run by idleness and begins another, and so does, by shutdown, a run that could outlast the clock.
 */
static int set_clock(
	struct reading *reading, const struct timeline_packet *packet, struct error *error)
{
	uint64_t now_us = packet->now_us - reading->begun_us;
	int ret = 0;

	if (reading->begun && now_us > reading->now_us + CLOCK_GAP_US)
		ret = end_run(reading, reading->now_us + CLOCK_GAP_US, error);
	else if (reading->begun && now_us > CLOCK_MAX_US - CLOCK_GAP_US)
		ret = end_run(reading, reading->now_us, error);
	if (ret < 0)
		return ret;
	if (!reading->begun) {
		reading->begun = true;
		reading->begun_us = packet->now_us;
		reading->now_us = 0;
		reading->started_us = monotonic_us();
		return engine_begin(reading->replay->engine, packet->stamp_us, reading->run, error);
	}
	if (now_us > reading->now_us) {
		hand_in(reading);
		keep_pace(reading, now_us);
		reading->now_us = now_us;
	}
	return 0;
}

/* Hands in what the timeline has the time of. After an error it goes no way. */
static int take_timed(struct reading *reading, struct error *error)
{
	struct timeline_packet next;
	int ret = 0;

	while (timeline_next(&reading->timeline, &next)) {
		if (ret == 0)
			ret = set_clock(reading, &next, error);
		if (ret < 0) {
			rte_pktmbuf_free(next.packet);
			continue;
		}
		engine_stamp(next.packet,
			next.came_us > reading->begun_us ? next.came_us - reading->begun_us : 0,
			next.stamp_us);
		reading->burst[reading->n++] = next.packet;
		if (reading->n == BURST)
			hand_in(reading);
	}
	return ret;
}

static int add_packet(
	struct reading *reading, const struct capture_packet *packet, struct error *error)
{
	unsigned tries = 0;

	for (;;) {
		struct rte_mbuf *frame = frame_make(engine_pool(reading->replay->engine),
			packet->bytes, packet->length, UINT16_MAX);

		if (frame != NULL) {
			engine_set_link(frame, packet->link);
			engine_set_missing(frame, packet->wire_length > packet->length
							  ? packet->wire_length - packet->length
							  : 0);
			timeline_add(&reading->timeline, frame, packet->time_us);
			return take_timed(reading, error);
		}
		if (tries == BUFFER_TRIES)
			return error_set(error, -ENOMEM, "no memory for another packet");
		hand_in(reading);
		engine_flush(reading->replay->engine);
		idle_wait(&tries);
	}
}

/* Reads to the end, or to where the capture breaks: what came before counts. */
static int read_packets(
	struct reading *reading, struct capture *capture, const char *path, struct error *error)
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
		if (say_interrupted()) {
			ret = error_set(error, -EINTR, "%s: interrupted after %ju packets", path,
				packets + 1);
			break;
		}
		if (++packets % 1024 == 0)
			progress_update(&progress, capture_position(capture), packets);
	}
	progress_clear(&progress);
	return ret;
}

static void read_capture(struct reading *reading, const char *path)
{
	struct capture *capture = NULL;
	struct error error;

	if (capture_open(&capture, path, &error) < 0 ||
		read_packets(reading, capture, path, &error) < 0)
		complain(reading->replay, &error);
	capture_close(capture);
}

/* Reads `n` captures from `first` on as if they were one. Returns how many were begun. */
static unsigned replay_captures(
	struct replay *replay, uint32_t first, unsigned n, struct replay_total *part)
{
	struct reading reading = {.replay = replay, .run = first};
	unsigned n_read = 0;
	struct error error;

	timeline_init(&reading.timeline);
	while (n_read < n && !say_interrupted())
		read_capture(&reading, replay->options.paths[first + n_read++]);
	timeline_end(&reading.timeline);
	if (take_timed(&reading, &error) < 0 || end_run(&reading, reading.now_us, &error) < 0)
		complain(replay, &error);
	replay_total_went_back(part, reading.timeline.n_back, reading.timeline.most_back_us);
	return n_read;
}

static void replay_all(struct replay *replay)
{
	struct replay_total total;
	struct replay_total part;
	bool several = replay->options.n_paths > 1;
	bool text = !replay->options.json;
	unsigned at_once = replay->options.one_stream ? replay->options.n_paths : 1;
	unsigned n_read = 0;
	struct error error;

	replay_total_start(&total);
	while (n_read < replay->options.n_paths && !say_interrupted()) {
		uint32_t i = n_read;

		replay_total_resume(&part, &total);
		n_read += replay_captures(replay, i, at_once, &part);
		replay_total_count(&part, replay->engine);
		replay_total_went_back(&total, part.n_back, part.most_back_us);
		if (several && text && at_once == 1)
			replay_total_print(&part, replay->options.paths[i], 1);
		replay_total_count(&total, replay->engine);
	}
	if (exporter_finish(replay->exporter, &total.exported, &error) < 0)
		complain(replay, &error);
	if (exports_tell(replay->collectors, replay->options.exports.n, stderr))
		replay->failed = true;

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

/* Collectors are waited for until somebody wants the end. */
static bool goes_on(void)
{
	return !say_interrupted();
}

static int replay_create_exporter(struct replay *replay, struct error *error)
{
	const struct replay_options *options = &replay->options;
	bool named = options->n_paths > 1 && !options->one_stream;
	struct exporter_config config = {
		.n_workers = options->engine.workers,
		.names = named ? (const char *const *)options->paths : NULL,
		.n_names = named ? options->n_paths : 0,
		.top = options->summary ? REPLAY_TOP_FLOWS : 0,
		.wire_is_link = true,
		.collectors = replay->collectors,
		.n_collectors = options->exports.n,
	};
	int ret = exports_open(&options->exports, NULL, goes_on, replay->collectors, error);

	if (ret < 0)
		return ret;
	if (options->output != NULL || options->exports.n == 0)
		ret = export_output_open(&config.output, options->output, error);
	if (ret == 0)
		ret = exporter_create(&replay->exporter, &config, error);
	if (ret < 0) {
		struct error ignored;

		for (unsigned i = 0; i < config.n_collectors; i++)
			export_collector_close(replay->collectors[i]);

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
		.octets = replay->options.exports.n > 0,
		.measure = options->measure,
		.measure_what = options->measure_all ? NULL : &options->measure_what,
		.active_s = options->active_s,
		.timeouts = options->timeouts,
		.blocks = replay->options.blocks,
		.rules = replay->options.rules,
		.replies_follow = replay->options.replies_follow,
		.no_pickup = replay->options.no_pickup,
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
	if (replay_create_exporter(replay, &error) < 0 || create_engine(replay, &error) < 0)
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
		exports_fini(&replay.options.exports);
		if (fflush(stdout) == 0 && !ferror(stdout))
			return EXIT_SUCCESS;
		perror("millrace: standard output");
		return EXIT_FAILURE;
	}
	if (ret < 0) {
		fprintf(stderr, "millrace: %s\n", error.text);
		exports_fini(&replay.options.exports);
		return EXIT_MISUSED;
	}
	replay.quiet = isatty(STDOUT_FILENO) && replay.options.output == NULL &&
		       replay.options.exports.n == 0;
	say_catch_signals();
	run(&replay);
	exports_fini(&replay.options.exports);
	return replay.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
