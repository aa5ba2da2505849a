/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A flow record as one JSON object on one line, compact, keys in a fixed order (docs/records.md):
 * version proto src sport dst dport wire zone packets bytes reverse_packets reverse_bytes start
 * end state end_reason tcp_flags reverse_tcp_flags icmp_errors, of ICMP icmp_type icmp_code reverse_icmp_type reverse_icmp_code, then offload, "file" first where there
 * is more than one capture; last, of flows that are measured, rtt_us and what belongs to it, then blocked blocked_packets blocked_bytes, of flows that were blocked. src is the initiator. tcp_flags are 0 for other protocols. Times are
 * UTC with microseconds.
 */

#include <stdbool.h>
#include <stddef.h>

#include "flow/report.h"

/* Longest line: every number at its longest, and the file's name on top. */
#define EXPORT_JSON_MAX 1536

/*
 * Writes the line of `report`, newline included, into `buffer` and returns its length. `file` is
 * NULL, or the capture's name already as a JSON string with its quotes (export_json_string()).
 * The buffer has EXPORT_JSON_MAX + strlen(file) bytes. With `wire_is_link` the wire is an enum
 * link_type, as the flows of captures have it: it is shown as 0, and named when it is not Ethernet.
 */
size_t export_json_line(
	char *buffer, const struct flow_report *report, const char *file, bool wire_is_link);

/*
 * The object of a flow that lives, as `flow list` shows it: the same members without end and
 * end_reason, state being the flow's phase, and after them worker. Of the report the record, origin_us,
 * worker, offload and dropped count.
 *
 * It is left open, so that more can be said of the flow: further members follow, each with a comma
 * before it, and then "}\n", all of it the caller's. Returns the length, less than EXPORT_JSON_MAX;
 * there is no ending zero.
 */
size_t export_json_live(char *buffer, const struct flow_report *report);

/*
 * The direction of the flow, by its end, whose state and reason stand for both: the one that is further on, in_hw before
 * suspect, leaving, installing, queued, refused and software; of two alike the initiator's.
 */
unsigned export_json_direction(
	const struct flow_record *record, const struct flow_offload *offload);

/* Unix time in microseconds, as records have it: "2026-11-20T08:00:00.000000Z". Returns `text`. */
#define EXPORT_JSON_TIME_MAX 48
const char *export_json_time(char text[EXPORT_JSON_TIME_MAX], uint64_t unix_us);

/*
 * Any bytes as a JSON string with quotes; what is not UTF-8 becomes U+FFFD. Returns a string for
 * the caller to free(), or NULL without memory.
 */
char *export_json_string(const char *bytes);
