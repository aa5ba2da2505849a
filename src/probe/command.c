/* SPDX-License-Identifier: BSD-3-Clause */
/* The parent: starts the process that touches the device, listens to it, and ends it when it is silent too long. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/say.h"
#include "control/answer.h"
#include "offload/known.h"
#include "probe/probe.h"
#include "probe/report.h"

#define EXIT_MISUSED 2
/* Children that are started again after one that did not survive a cell. */
#define CHILDREN 4
/* What the last of it may take longer than all was to take. */
#define GRACE_US 10000000
#define PROGRESS_US 200000
/* Where nobody sits at a terminal: a line now and then. */
#define LINE_US 15000000
#define ERASE "\r\033[K"

struct probe {
	struct probe_options options;
	json_t *report;
	uint64_t begin_us, deadline_us;
	/* of the child */
	pid_t child;
	int pipe;
	uint64_t heard_us, allow_us;
	char step[160];
	bool ended;	 /* it told so */
	bool hung, late; /* it was killed */
	unsigned rules;	 /* that were there at the last step */
	unsigned lost;	 /* that were there when children ended before their time, and may be so */
	/* what it said, up to the line that is not complete */
	char *input;
	size_t n_input, room;
	uint64_t shown_us;
	bool terminal, shown;
};

static unsigned n_cells(const struct probe *probe)
{
	return (unsigned)json_array_size(json_object_get(probe->report, "cells"));
}

static bool has(const struct probe *probe, const char *key)
{
	return json_object_get(probe->report, key) != NULL;
}

static json_int_t number(const struct probe *probe, const char *key)
{
	return json_integer_value(json_object_get(probe->report, key));
}

/* Takes the value. */
static void set(struct probe *probe, const char *key, json_t *value)
{
	json_object_set_new(probe->report, key, value);
}

static void show_progress(struct probe *probe)
{
	uint64_t now_us = monotonic_us();
	if (now_us - probe->shown_us < (probe->terminal ? PROGRESS_US : LINE_US))
		return;
	probe->shown_us = now_us;
	probe->shown = probe->terminal;
	fprintf(stderr, "%s%u of %u forms  %.100s%s",
		probe->terminal ? ERASE : "probe: ", n_cells(probe), form_n(), probe->step,
		probe->terminal ? "" : "\n");
	fflush(stderr);
}

static void append(struct probe *probe, const char *list, json_t *value)
{
	json_t *array = json_object_get(probe->report, list);

	if (array == NULL) {
		array = json_array();
		set(probe, list, array);
	}
	json_array_append(array, value);
}

/* A line of the child's; takes the object. */
static void take_line(struct probe *probe, json_t *line)
{
	static const char *const lists[][2] = {
		{"cell", "cells"}, {"table", "tables"}, {"indirect", "indirect"}};
	json_t *value;

	value = json_object_get(line, "step");
	if (value != NULL) {
		snprintf(probe->step, sizeof(probe->step), "%s", json_string_value(value));
		probe->rules = (unsigned)json_integer_value(json_object_get(line, "rules"));
		probe->allow_us =
			(uint64_t)json_integer_value(json_object_get(line, "allow_s")) * 1000000;
	}
	json_object_update(probe->report, json_object_get(line, "set"));
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		value = json_object_get(line, lists[i][0]);
		if (value != NULL)
			append(probe, lists[i][1], value);
	}
	value = json_object_get(line, "failed");
	if (value != NULL)
		json_object_set(probe->report, "failed", value);
	probe->ended |= json_object_get(line, "end") != NULL;
	json_decref(line);
}

/* Whole lines of what was read. */
static void take_lines(struct probe *probe)
{
	char *at = probe->input, *end;
	size_t left = probe->n_input;

	while ((end = memchr(at, '\n', left)) != NULL) {
		json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);

		if (line != NULL)
			take_line(probe, line);
		left -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(probe->input, at, left);
	probe->n_input = left;
}

/* False: the child has closed its end. */
static bool read_some(struct probe *probe)
{
	ssize_t got;

	if (probe->room - probe->n_input < 4096) {
		char *more = realloc(probe->input, probe->room + 65536);

		if (more == NULL)
			return false;
		probe->input = more;
		probe->room += 65536;
	}
	got = read(probe->pipe, probe->input + probe->n_input, probe->room - probe->n_input);
	if (got < 0)
		return errno == EINTR;
	if (got == 0)
		return false;
	probe->heard_us = monotonic_us();
	probe->n_input += (size_t)got;
	take_lines(probe);
	return true;
}

static bool is_too_long(struct probe *probe)
{
	uint64_t now_us = monotonic_us();
	uint64_t step_us = probe->options.step_s * UINT64_C(1000000);

	probe->hung =
		now_us - probe->heard_us > (probe->allow_us > step_us ? probe->allow_us : step_us);
	probe->late = now_us > probe->deadline_us + GRACE_US + probe->allow_us;
	return probe->hung || probe->late;
}

/* Until the child ends, or has to be ended. Its status as of wait(). */
static int listen_to(struct probe *probe)
{
	struct pollfd descriptor = {.fd = probe->pipe, .events = POLLIN};
	int status = 0;
	bool open = true, told = false;

	probe->hung = probe->late = probe->ended = false;
	probe->n_input = 0;
	probe->allow_us = 0;
	probe->heard_us = monotonic_us();
	while (open) {
		if (poll(&descriptor, 1, 200) > 0)
			open = read_some(probe);
		if (say_interrupted() && !told) {
			kill(probe->child, SIGTERM);
			told = true;
		}
		if (open && is_too_long(probe)) {
			kill(probe->child, SIGKILL);
			open = false;
		}
		if (!probe->ended)
			show_progress(probe);
	}
	close(probe->pipe);
	while (waitpid(probe->child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int start_child(struct probe *probe, unsigned first)
{
	int ends[2];

	if (pipe(ends) < 0)
		return -errno;
	fflush(NULL);
	const pid_t parent = getpid();

	probe->child = fork();
	if (probe->child == 0) {
		close(ends[0]);
		/* what drivers print is not part of the answer */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		_exit(probe_child(&probe->options, parent, ends[1], probe->begin_us, first));
	}
	close(ends[1]);
	probe->pipe = ends[0];
	return probe->child < 0 ? -errno : 0;
}

/* What became of a child that did not come to its end; "" where it did. */
static void tell_end(const struct probe *probe, int status, char *words, size_t size)
{
	words[0] = '\0';
	if (probe->hung)
		snprintf(words, size, "no answer for %u s", probe->options.step_s);
	else if (probe->late)
		snprintf(words, size, "the time of %u s is over", probe->options.timeout_s);
	else if (WIFSIGNALED(status))
		snprintf(words, size, "the driver crashed (%s)", strsignal(WTERMSIG(status)));
	else if (!probe->ended)
		snprintf(words, size, "the process that tried it ended by itself");
}

/* Was it at one of the cells when it ended? */
static bool was_at_cell(const struct probe *probe)
{
	return has(probe, "packets") && !has(probe, "cells_asked") && n_cells(probe) < form_n();
}

/* Children one after the other, until one came to its end. */
static void run_children(struct probe *probe)
{
	char words[96] = "";

	for (unsigned i = 0; i < CHILDREN; i++) {
		int ret = start_child(probe, n_cells(probe));
		json_t *lost;

		if (ret < 0) {
			snprintf(words, sizeof(words), "no process: %s", strerror(-ret));
			break;
		}
		tell_end(probe, listen_to(probe), words, sizeof(words));
		if (words[0] == '\0' || probe->late || say_interrupted() || !was_at_cell(probe))
			break;
		/* rules of a vdev are gone with its process, those of a card perhaps not */
		if (probe->options.devices[PROBE_DEVICE].kind == PORT_DEVICE_PCI) {
			probe->lost += probe->rules;
			probe->rules = 0;
		}
		/* the next one goes on behind that cell */
		lost = report_lost(n_cells(probe), words);
		append(probe, "cells", lost);
		json_decref(lost);
	}
	if (probe->shown)
		fputs(ERASE, stderr);
	if (words[0] == '\0')
		return;
	set(probe, "ended", json_sprintf("%s, at: %s", words, probe->step));
	/* nobody took them away */
	set(probe, "rules_left", json_integer(probe->rules));
}

/* Was every form tried, and did the child come to its end? */
static void judge_whole(struct probe *probe)
{
	json_int_t asked = number(probe, "cells_asked");
	bool complete;

	if (probe->lost > 0)
		set(probe, "rules_left", json_integer(number(probe, "rules_left") + probe->lost));
	/* behind the forms, where there was more to be found out */
	if (say_interrupted() && !has(probe, "stopped"))
		set(probe, "stopped", json_string("interrupted"));
	complete = asked > 0 && n_cells(probe) == asked && !say_interrupted() &&
		   !has(probe, "ended") && !has(probe, "stopped") && !has(probe, "failed");
	set(probe, "complete", json_boolean(complete));
}

static void add_time(struct probe *probe)
{
	time_t now = time(NULL);
	char text[32];
	struct tm utc;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	set(probe, "time", json_string(text));
	set(probe, "took_ms",
		json_integer((json_int_t)((monotonic_us() - probe->begin_us) / 1000)));
}

/* Half a report would be taken for all that the card can do. */
static void keep(struct probe *probe)
{
	char directory[PATH_MAX], path[PATH_MAX];
	struct known_key key;
	struct error error;
	int ret;

	if (probe->options.no_store || !json_is_true(json_object_get(probe->report, "complete")))
		return;
	ret = known_directory(directory, sizeof(directory));
	if (ret < 0)
		error_set(&error, ret, "no directory: neither XDG_STATE_HOME nor HOME is set");
	else
		ret = known_store(probe->report, directory, &error);
	if (ret < 0)
		fprintf(stderr, "millrace: what was found is not kept: %s\n", error.text);
	set(probe, "kept", json_boolean(ret == 0));
	if (ret == 0 && known_key_of(&key, probe->report) == 0 &&
		known_path(path, sizeof(path), directory, &key) == 0)
		set(probe, "kept_in", answer_string(path));
}

static int report(const struct probe *probe)
{
	const char *failed = json_string_value(json_object_get(probe->report, "failed"));
	const char *ended = json_string_value(json_object_get(probe->report, "ended"));
	bool complete = json_is_true(json_object_get(probe->report, "complete"));

	if (failed != NULL)
		fprintf(stderr, "millrace: %s\n", failed);
	if (probe->options.json) {
		json_dumpf(probe->report, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else if (has(probe, "driver")) {
		report_print(stdout, probe->report);
	} else if (failed == NULL) {
		fprintf(stderr, "millrace: probe: %s\n", ended != NULL ? ended : "interrupted");
	}
	return say_end(complete && number(probe, "rules_left") == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static int run_probe(struct probe *probe)
{
	int code;

	probe->report = json_object();
	set(probe, "device", answer_string(probe->options.devices[PROBE_DEVICE].text));
	probe->terminal = isatty(STDERR_FILENO);
	probe->begin_us = probe->shown_us = monotonic_us();
	probe->deadline_us = probe->begin_us + probe->options.timeout_s * UINT64_C(1000000);
	say_catch_signals();
	run_children(probe);
	judge_whole(probe);
	add_time(probe);
	keep(probe);
	code = report(probe);
	json_decref(probe->report);
	free(probe->input);
	return code;
}

int probe_main(int argc, char **argv)
{
	struct probe probe = {.pipe = -1};
	struct error error;
	int ret = probe_options_parse(&probe.options, argc, argv, &error);

	if (ret == PROBE_HELP) {
		probe_options_help(stdout);
		return say_end(EXIT_SUCCESS);
	}
	if (ret < 0) {
		fprintf(stderr, "millrace: %s\n", error.text);
		return EXIT_MISUSED;
	}
	return run_probe(&probe);
}
