/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the tests of live outputs share: a directory of their own with the names of two files in it,
 * numbered lines, and ways to wait for what must come.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/output.h"

/* Lines are numbered, so that a file tells which of them it has. */
#define LINE_LENGTH 11

/* How long a test waits for what must come, in ms. */
#define LONG 20000

/* What an output holds, so that tests can fill it. */
#define HOLDS ((size_t)256 * 1024)

static const struct export_output_limits quick = {
	.retry_ms = 1, .stall_ms = 50, .hurry_ms = 10000, .buffer = HOLDS};

static char directory[] = "/tmp/millrace-test-XXXXXX";
static char path[64], moved[64];

static inline int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/records", directory);
	snprintf(moved, sizeof(moved), "%s/records.1", directory);
	return 0;
}

static inline int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(moved);
	return 0;
}

static inline int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

static inline uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline struct export_output *open_live(
	const char *name, const struct export_output_limits *limits)
{
	struct export_output *output;
	struct error error = {""};

	if (export_output_open_live(&output, name, limits, &error) < 0)
		fail_msg("%s", error.text);
	return output;
}

static inline void write_lines(struct export_output *output, unsigned from, unsigned to)
{
	char line[16];

	for (unsigned i = from; i < to; i++) {
		snprintf(line, sizeof(line), "%010u\n", i);
		export_output_write(output, line, LINE_LENGTH);
	}
}

static inline struct export_output_state state_of(struct export_output *output)
{
	struct export_output_state state;

	export_output_state(output, &state);
	return state;
}

/* Flushes until so many are written. */
static inline void flush_until(struct export_output *output, uint64_t written)
{
	uint64_t end = now_ms() + LONG;

	while (export_output_written(output) < written) {
		export_output_flush(output);
		if (now_ms() > end)
			fail_msg("%ju written", (uintmax_t)export_output_written(output));
	}
	assert_int_equal(export_output_written(output), written);
}

/* Flushes until it stands so with the output. */
static inline void flush_until_failure(struct export_output *output, int failure)
{
	uint64_t end = now_ms() + LONG;

	while (state_of(output).failure != failure) {
		export_output_flush(output);
		if (now_ms() > end)
			fail_msg("failure %d", state_of(output).failure);
	}
}

static inline void close_well(struct export_output *output)
{
	struct error error = {""};

	if (export_output_close(output, &error) < 0)
		fail_msg("%s", error.text);
}

/* No file may grow beyond: the disk that is full, and has room again. */
static inline void set_room(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
