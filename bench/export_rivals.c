/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole programs read the same capture of flows of one packet each, and send a record of each flow to the same port of
 * the loopback: `millrace replay`, softflowd, and pmacct with its plugin nfprobe. What counts is the processor time of
 * the program and all its children, from start to end.
 */
#include "bench/export.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_byteorder.h>

#include "bench/bench.h"
#include "traffic/capture_write.h"

#define ROUNDS 3
#define PAYLOAD 18
#define FRAME (14 + 20 + 8 + PAYLOAD)
#define FLOWS_A_SECOND 100000
#define ARGUMENTS 20
#define LONGEST_S 120
#define TRIES 5

/* Another exporter: where its program lies, and how much more processor time than ours it should take. */
struct rival {
	const char *name, *program, *package;
	double goal;
	char path[64]; /* empty: it is not installed, or not asked for */
};

/* The directory of a run, and the files in it. */
struct place {
	char directory[64];
	char capture[96], config[96], pid[96];
};

static int write_capture(const char *path, unsigned n_flows, struct error *error)
{
	uint8_t frame[FRAME] = {[12] = 0x08,
		[14] = 0x45,
		[17] = FRAME - 14,
		[22] = 64,
		[23] = 17,
		[30] = 192,
		[31] = 0,
		[32] = 2,
		[33] = 1,
		[37] = 53,
		[39] = 8 + PAYLOAD};
	struct capture_writer *writer;
	int ret = capture_writer_open(&writer, path, error);

	for (unsigned i = 0; ret == 0 && i < n_flows; i++) {
		const rte_be32_t source = rte_cpu_to_be_32(10u << 24 | i);
		const rte_be16_t port = rte_cpu_to_be_16((uint16_t)(1024 + i % 60000));

		memcpy(&frame[26], &source, sizeof(source));
		memcpy(&frame[34], &port, sizeof(port));
		ret = capture_writer_begin(writer,
			UINT64_C(1700000000000000) + i * UINT64_C(1000000) / FLOWS_A_SECOND, FRAME);
		if (ret == 0)
			ret = capture_writer_add(writer, frame, FRAME);
	}
	const int closed = capture_writer_close(writer);

	return ret < 0 ? ret : closed;
}

static int write_config(const struct place *place, uint16_t port)
{
	FILE *file = fopen(place->config, "w");

	if (file == NULL)
		return -errno;
	fprintf(file,
		"pcap_savefile: %s\n"
		"daemonize: false\n"
		"plugins: nfprobe\n"
		"aggregate: src_host,dst_host,src_port,dst_port,proto\n"
		"nfprobe_receiver: 127.0.0.1:%u\n"
		"nfprobe_version: 10\n"
		"plugin_pipe_size: 104857600\n"
		"plugin_buffer_size: 1048576\n",
		place->capture, port);
	return fclose(file) == 0 ? 0 : -errno;
}

static void run_program(const char *const *arguments)
{
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char *copies[ARGUMENTS] = {NULL};

	for (unsigned i = 0; arguments[i] != NULL; i++)
		copies[i] = strdup(arguments[i]);
	if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0)
		_exit(127);
	/* ends a program that hangs */
	alarm(LONGEST_S);
	execv(copies[0], copies);
	_exit(127);
}

/* Seconds of processor time of a program and the children that it leaves, or 0 when its exit code is not 0. */
static double time_program(const char *const *arguments)
{
	struct rusage usage;
	double seconds = 0;
	bool well = false;
	int status;
	const pid_t program = fork();
	pid_t ended;

	if (program == 0)
		run_program(arguments);
	while (program > 0 && ((ended = wait4(-1, &status, 0, &usage)) > 0 || errno == EINTR)) {
		if (ended < 0)
			continue;
		well |= ended == program && WIFEXITED(status) && WEXITSTATUS(status) == 0;
		seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	}
	return well ? seconds : 0;
}

/* An ordinary user's PATH may lack the directories of these programs. */
static bool find_program(struct rival *rival)
{
	static const char *const places[] = {
		"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"};

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(rival->path, sizeof(rival->path), "%s/%s", places[i], rival->program);
		if (access(rival->path, X_OK) == 0)
			return true;
	}
	rival->path[0] = '\0';
	return false;
}

static void make_names(struct place *place)
{
	snprintf(place->capture, sizeof(place->capture), "%s/capture.pcap", place->directory);
	snprintf(place->config, sizeof(place->config), "%s/pmacctd.conf", place->directory);
	snprintf(place->pid, sizeof(place->pid), "%s/softflowd.pid", place->directory);
}

static void remove_files(const struct place *place)
{
	unlink(place->capture);
	unlink(place->config);
	unlink(place->pid);
	rmdir(place->directory);
}

/* On a busy machine pmacctd sometimes exits with 1, since its plugin ended first: it is started once more. */
static double time_in_tries(const char *const *arguments)
{
	double seconds = 0;

	for (unsigned i = 0; i < TRIES && seconds == 0; i++)
		seconds = time_program(arguments);
	return seconds;
}

/* One row: ours and theirs in turns. */
static int measure(
	struct bench_row *row, const char *const *ours, const char *const *theirs, bool json)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		row->ours[i] = time_in_tries(ours) * 1e9 / row->flows;
		row->theirs[i] = time_in_tries(theirs) * 1e9 / row->flows;
		if (row->ours[i] == 0 || row->theirs[i] == 0) {
			fprintf(stderr, "millrace: bench export: %s did not end well\n",
				row->ours[i] == 0 ? "millrace replay" : row->against);
			return -ECHILD;
		}
	}
	bench_print(row, json);
	return 0;
}

static int measure_at(const struct place *place, const struct rival *softflowd,
	const struct rival *pmacctd, unsigned n_flows, uint16_t port, bool json)
{
	char myself[PATH_MAX] = {0}, url[64], collector[32];
	struct bench_row row = {.bench = "export",
		.measure = "programs",
		.load = "one-packet flows",
		.flows = n_flows,
		.unit = "ns/flow",
		.rounds = ROUNDS};
	int ret = 0;

	if (readlink("/proc/self/exe", myself, sizeof(myself) - 1) < 0)
		return -errno;
	/* as fast as it can, as the others do */
	snprintf(url, sizeof(url), "ipfix://127.0.0.1:%u?rate=100000000", port);
	snprintf(collector, sizeof(collector), "127.0.0.1:%u", port);
	const char *const ours[] = {myself, "replay", "--export", url, place->capture, NULL};
	const char *const by_softflowd[] = {softflowd->path, "-d", "-v", "10", "-m", "100000000",
		"-r", place->capture, "-n", collector, "-p", place->pid, "-c", "none", NULL};
	const char *const by_pmacctd[] = {pmacctd->path, "-f", place->config, NULL};

	if (softflowd->path[0] != '\0') {
		row.against = softflowd->name;
		row.goal = softflowd->goal;
		ret = measure(&row, ours, by_softflowd, json);
	}
	if (ret == 0 && pmacctd->path[0] != '\0') {
		row.against = pmacctd->name;
		row.goal = pmacctd->goal;
		ret = measure(&row, ours, by_pmacctd, json);
	}
	return ret;
}

/* False, and a line about it, where a rival that is asked for is not installed. */
static bool is_there(struct rival *rival, const char *against)
{
	if (!bench_asked(against, rival->name))
		return false;
	if (find_program(rival))
		return true;
	fprintf(stderr, "millrace: bench export: %s is not installed (Debian: %s)\n",
		rival->program, rival->package);
	return false;
}

static int fail(int ret, const char *what)
{
	fprintf(stderr, "millrace: bench export: %s: %s\n", what, strerror(-ret));
	return ret;
}

int export_rivals(const uint32_t *flows, unsigned n, uint16_t port, const char *against, bool json)
{
	struct rival softflowd = {"softflowd", "softflowd", "softflowd", 4, ""};
	struct rival pmacctd = {"nfprobe", "pmacctd", "pmacct", 10, ""};
	struct place place = {.directory = "/tmp/millrace-bench-XXXXXX"};
	const bool first = is_there(&softflowd, against), second = is_there(&pmacctd, against);
	struct error error;
	int ret = 0;

	if (!first && !second)
		return 0;
	if (mkdtemp(place.directory) == NULL)
		return fail(-errno, place.directory);
	make_names(&place);
	/* children that a program leaves become ours, so that they can be waited for */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (unsigned i = 0; ret == 0 && i < n; i++) {
		error = (struct error){""};
		ret = write_capture(place.capture, flows[i], &error);
		if (ret < 0)
			fail(ret, error.text[0] != '\0' ? error.text : place.capture);
		else if ((ret = write_config(&place, port)) < 0)
			fail(ret, place.config);
		else
			ret = measure_at(&place, &softflowd, &pmacctd, flows[i], port, json);
	}
	remove_files(&place);
	return ret;
}
