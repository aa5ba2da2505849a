/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The engine's numbers as metrics for Prometheus and its like (docs/metrics.md). metric_table[] says what there is: one
 * row each, from which the answer and the page of the documentation are made.
 *
 * A label is a wire, a port, a thread, an export of the configuration, or a word of a fixed list, so that there is a limit
 * to how many lines there are.
 * Nothing here has a label with an address, a flow or a rule.
 *
 * All of it belongs to control's thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "control/server.h"
#include "offload/histogram.h"
#include "plane/plane.h"

#define METRICS_PREFIX "millrace_"

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_INFO, /* 1, and what is to be said stands in its labels */
	METRIC_HISTOGRAM,
	METRIC_N_TYPES,
};

enum metrics_format {
	METRICS_TEXT,	     /* text/plain; version=0.0.4 */
	METRICS_OPENMETRICS, /* 1.0.0 */
	METRICS_N_FORMATS,
};

/* Of the engine as a whole. */
struct metrics_engine {
	uint64_t start_us; /* Unix time */
	uint64_t blocks, max_blocks, blocks_added, blocks_expired;
	uint64_t rules, max_rules, rules_by_packet;
	struct control_records records;
};

struct metrics_port {
	struct plane_port_counters sum; /* of all threads */
	uint64_t up, mtu, fallbacks;
	bool counts; /* the driver does */
	uint64_t nic_rx, nic_tx, nic_missed, nic_rx_errors, nic_tx_errors, nic_no_buffer;
};

/* Of a port that is given rules. */
struct metrics_offload {
	struct installer *installer; /* NULL: it is not */
	struct agent_counters agent;
	uint64_t ready, rules, under_way, changes_lost, opened;
};

/* Numbers of one moment, as far as they are a snapshot's; those of offload come some microseconds later. */
struct metrics_source {
	const struct plane_config *config;
	const struct plane_snapshot *snapshot;
	enum simd_level simd;
	double hz; /* of the processor's time stamp counter; 0: not known */
	struct metrics_engine engine;
	struct metrics_port port[PLANE_MAX_PORTS];
	struct metrics_offload offload[PLANE_MAX_PORTS];
	const struct exporter *exporter; /* NULL: there are no exports */
	bool has_slots;
	struct plane_slots slots[FLOW_MAX_WIRES];
};

struct metric_writer {
	FILE *out;
	enum metrics_format format;
	const struct metric *metric;
};

struct metric {
	const char *name;   /* without the prefix, and of counters without _total */
	const char *unit;   /* the last word of the name; NULL: a number of things */
	const char *labels; /* "wire, reason"; "" for none */
	const char *help;   /* a sentence without full stop or backslash */
	enum metric_type type;
	/* Writes the lines, by the two below where they are of use. */
	void (*write)(const struct metric_writer *writer, const struct metrics_source *source);
	size_t offset; /* of the number, in the struct that `write` goes through */
	double per;    /* the number is in so many to a unit; 0: in units, and whole */
};

extern const struct metric metric_table[];
extern const unsigned metric_n_rows;

/* A label of a line: its name, and its value as it is. The last of a list has no name. */
struct metric_label {
	const char *name, *value;
};

/* For rows: a line of the metric. */
void metric_write(
	const struct metric_writer *writer, const struct metric_label *labels, double value);
void metric_write_whole(
	const struct metric_writer *writer, const struct metric_label *labels, uint64_t value);
/* The number of a row, at its offset from `base`. */
void metric_write_at(
	const struct metric_writer *writer, const struct metric_label *labels, const void *base);
/* A histogram of nanoseconds, in seconds. */
void metric_write_histogram(const struct metric_writer *writer, const struct metric_label *labels,
	const struct histogram *histogram);

/* "counter", "gauge", "info", "histogram". */
const char *metric_type_name(enum metric_type type);

/*
 * Takes the numbers of a plane by way of `snapshot`, which is filled. `records` is copied; `exporter` may be NULL. 0; or -ETIMEDOUT where a thread
 * of the packet path does not answer.
 */
int metrics_take(struct metrics_source *source, struct plane *plane,
	struct plane_snapshot *snapshot, const struct control_records *records,
	const struct exporter *exporter);

/* Writes all rows. The bytes, to be freed, or NULL without memory. */
char *metrics_render(
	const struct metrics_source *source, enum metrics_format format, size_t *length);

/* Of the answer: its Content-Type. */
const char *metrics_content_type(enum metrics_format format);
