/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a replay tells at its end: how much there was, what became of it, and how fast. As text for
 * people, at most 100 columns wide, or as one JSON object on one line (docs/records.md has its
 * keys).
 */

#include <stdint.h>
#include <stdio.h>

#include "export/exporter.h"

#define SUMMARY_COLUMNS 100

struct summary_drop {
	const char *name;
	uint64_t count;
};

struct replay_summary {
	const char *name; /* of the capture, or NULL: "3 captures" */
	unsigned n_captures;
	/* packets = out + delivered + drops + held */
	uint64_t packets;
	uint64_t bytes;
	uint64_t out;
	uint64_t delivered;
	const struct summary_drop *drops; /* every reason, those that never happened too */
	unsigned n_drops;
	uint64_t held;
	uint64_t non_ip;
	uint64_t flows;
	uint64_t flows_by_protocol[EXPORTER_N_PROTOCOLS];
	uint64_t flow_packets; /* packets of known flows, all records together */
	uint64_t records;      /* lost ones too */
	uint64_t records_by_end[FLOW_N_ENDS];
	uint64_t records_lost;
	uint64_t fragments_untied;
	uint64_t icmp_untied;
	uint64_t tcp_odd; /* segments outside the window */
	/* how often a packet's time stamp lay before that of the packet before it, and how far at most */
	uint64_t time_back;
	uint64_t time_back_most_us;
	double seconds;
};

void summary_text(FILE *stream, const struct replay_summary *summary);

/* The flows with most bytes as a table, `n` of them; prints nothing for none. */
void summary_top(FILE *stream, const struct flow_report *top, unsigned n);

/* With `top`, the flows of most bytes as a list of records. Returns 0 or -ENOMEM. */
int summary_json(FILE *stream, const struct replay_summary *summary, const struct flow_report *top,
	unsigned n_top);
