/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An export: records of flows for one collector, one file or one topic of Kafka, as IPFIX or lines of JSON, with a queue and
 * counters of its own. It decides which flows go there, and how long it waits; a carrier (export/carrier.h) takes them
 * there. Whatever happens to it costs no other one anything.
 *
 * Live, it never waits: flows for which the queue has no room are lost and counted, and so are visible to the collector
 * by the sequence number (RFC 7011 section 3.1). A patient one (replay) waits for a collector that is slow, or not there.
 * From export_collector_hurry() on, or when its patience is at an end, both wait for one that takes something now and
 * then, for some time.
 *
 * Life-cycle: open, add, flush and tend now and then, end, close. Used by one thread, but for what says otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/topology.h"
#include "export/carrier.h"

struct export_collector;

/* Names of ports, and which of them belong together. All is copied. */
struct export_ports {
	struct topology topology;
	const char *const *names; /* by port */
};

/* Is a collector still to be waited for? Called by the user's thread while it waits. */
typedef bool export_patience(void);

/*
 * `ports` may be NULL: there are none. `patience` makes a patient one; NULL: it is live. Returns 0 or a negative errno
 * with a line.
 */
int export_collector_open(struct export_collector **collector, const struct export_target *target,
	const struct export_ports *ports, export_patience *patience, struct error *error);

/* From any thread. */
const struct export_target *export_collector_target(const struct export_collector *collector);
void export_collector_counters(
	struct export_collector *collector, struct export_counters *counters);
/* Of a file: it is opened anew, before long. */
void export_collector_reopen(struct export_collector *collector);
/* The end is near: nobody is waited for without limit. */
void export_collector_hurry(struct export_collector *collector);

/* Does it take lines of JSON? From any thread. */
bool export_collector_takes_lines(const struct export_collector *collector);

/* `line` is the record of the report; it may be NULL where the format is IPFIX. Both are copied. */
void export_collector_add(struct export_collector *collector, const struct flow_report *report,
	const struct export_line *line);

/* Sends what there is, as far as that goes without waiting. */
void export_collector_flush(struct export_collector *collector);

/* For when many flows come: sees to it that none of them waits for longer than a quarter of a second. */
void export_collector_tend(struct export_collector *collector);

/* Sends what there is, as far as that goes without waiting. True: there is nothing left to wait for. */
bool export_collector_ends(struct export_collector *collector);

/* Sends what there is, for some time; what remains is lost. After that only counters can be asked for. */
void export_collector_end(struct export_collector *collector);

/* Accepts NULL. */
void export_collector_close(struct export_collector *collector);
