/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The exporter: a thread of its own that turns reports of flows into JSON lines for its output, and into records for
 * each of its collectors, so that no worker ever formats, writes or waits for a disk or a network. Without any of these it
 * only counts them. In a live engine none of them ever waits: what its own queue has no room for is lost there, and costs
 * the others nothing.
 *
 * Each worker has a mailbox to the exporter and pushes from its own thread. When the mailbox is full
 * a worker that may wait does so (replay: nothing is lost), any other goes on, and what did not fit
 * is counted as its loss.
 *
 * Life-cycle: exporter_create() takes over the output and starts the thread; workers push; when all
 * of them are done, exporter_finish() waits until everything is written, ends the thread, closes the
 * output and gives the totals. After that the flows with most bytes can be asked for, until
 * exporter_destroy().
 *
 * A live engine calls exporter_stopping() before it ends its workers: they report every flow then,
 * faster than any disk takes it, and have nothing else to do. From there on all pushes wait, but the
 * output's patience with its reader is limited (struct export_output_limits), so that the end comes
 * whatever the reader does; what it did not take is counted as lost.
 *
 * All functions but exporter_push() belong to one thread, control.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "export/collector.h"
#include "export/output.h"
#include "flow/report.h"

struct exporter;

/* What flows are counted by. */
enum exporter_protocol {
	EXPORTER_TCP,
	EXPORTER_UDP,
	EXPORTER_SCTP,
	EXPORTER_ICMP, /* ICMPv6 too */
	EXPORTER_OTHER,
	EXPORTER_N_PROTOCOLS,
};

struct exporter_config {
	unsigned n_workers;	      /* at least 1 */
	struct export_output *output; /* the exporter's once it is created; NULL: none */
	/* the exporter's once it is created, and until it is destroyed */
	struct export_collector *const *collectors;
	unsigned n_collectors;
	const char *const *names; /* of the runs (captures), by number; NULL: records name none */
	unsigned n_names;
	bool wire_is_link;     /* flows of captures: see export_json_line() */
	unsigned top;	       /* how many flows with most bytes to keep; 0 = none */
	unsigned mailbox;      /* reports a worker's mailbox holds; 0 = a good number */
	const cpu_set_t *cpus; /* where the thread may run; NULL = where its creator may */
};

struct exporter_totals {
	/*
	 * reports taken from the workers; with an output = written + lost, once it has finished, and
	 * before that what is buffered is on its way to one of the two
	 */
	uint64_t records;
	uint64_t written;
	uint64_t lost;			   /* the output had failed, or was given up at the end: */
	uint64_t lost_by[EXPORT_N_LOSSES]; /* and why */
	uint64_t overflowed; /* never taken: a full mailbox and a worker that must not wait */
	uint64_t by_end[FLOW_N_ENDS];
	/* of the flows: reports of flows that live on (FLOW_END_ACTIVE) are not among them */
	uint64_t by_protocol[EXPORTER_N_PROTOCOLS];
	uint64_t packets; /* over all records, both directions */
	uint64_t bytes;
};

/* Reports that flows have made: with an output, once it has finished, they are those written and those lost. */
static inline uint64_t exporter_made(const struct exporter_totals *totals)
{
	return totals->records + totals->overflowed;
}

/* Of these, records that are nowhere. Without an output none was to be written, and none is lost. */
static inline uint64_t exporter_lost(const struct exporter_totals *totals)
{
	return totals->lost + totals->overflowed;
}

/* Returns 0, or a negative errno; then the output is still the caller's. */
int exporter_create(
	struct exporter **exporter, const struct exporter_config *config, struct error *error);

/*
 * Hands over reports, from the thread of `worker` (0..n_workers-1); they are copied. Returns how
 * many were taken: all if `wait` (or exporter_stopping() was called), else the first so many, the
 * others being counted as overflowed. Without waiting it costs a copy of the reports at most.
 */
unsigned exporter_push(struct exporter *exporter, unsigned worker,
	const struct flow_report *reports, unsigned n, bool wait);

/* How many reports of this worker would be taken now. From its thread. */
unsigned exporter_room(const struct exporter *exporter, unsigned worker);

/*
 * The totals so far, of one moment, while the exporter runs. No worker notices; overflowed alone is
 * as of now, the others as of the last batch.
 */
void exporter_live_totals(struct exporter *exporter, struct exporter_totals *totals);

/* How it stands with the output, and its name: all 0 and "" without one. */
void exporter_output_state(struct exporter *exporter, struct export_output_state *state);
const char *exporter_output_name(const struct exporter *exporter);

/* Has the output opened anew, soon and between two records: see export_output_reopen(). */
void exporter_reopen(struct exporter *exporter);
/* Is that still to be done? */
bool exporter_reopening(const struct exporter *exporter);

/* Its collectors, by number: to ask for their counters, also after exporter_finish(). */
unsigned exporter_n_collectors(const struct exporter *exporter);
struct export_collector *exporter_collector(const struct exporter *exporter, unsigned number);

/*
 * Others in place of the exporter's collectors: those that are among both stay as they are, the new ones are open. Each
 * report goes to those in use when the exporter takes it from its worker. Those that are not among them any more send what
 * they have, without anybody waiting for them; a caller of exporter_left() is told of each, with its last
 * counters, before it is closed.
 *
 * exporter_change_make() takes the memory (NULL: there is none), and is followed by exporter_change_begin(), which cannot
 * fail, or by exporter_change_drop(). Not while exporter_changing(): the last change is not taken over yet.
 */
struct exporter_change;
struct exporter_change *exporter_change_make(
	const struct exporter *exporter, struct export_collector *const *collectors, unsigned n);
void exporter_change_begin(struct exporter *exporter, struct exporter_change *change);
/* Accepts NULL. The collectors stay the caller's. */
void exporter_change_drop(struct exporter_change *change);
bool exporter_changing(const struct exporter *exporter);
typedef void (*exporter_left_fn)(void *context, struct export_collector *collector);
void exporter_left(struct exporter *exporter, exporter_left_fn tell, void *context);

/* The workers are about to end: see above. */
void exporter_stopping(struct exporter *exporter);

/*
 * Call once, when no worker pushes any more. Returns 0, or the negative errno of what went wrong
 * with the output (see export_output_close()), with its line in `error`; the totals are good in both
 * cases.
 */
int exporter_finish(struct exporter *exporter, struct exporter_totals *totals, struct error *error);

/* After exporter_finish(): the flows with most bytes, in order. NULL and 0 if none were kept. */
const struct flow_report *exporter_top(struct exporter *exporter, unsigned *n);

/* Accepts NULL. Finishes first if that was not done. */
void exporter_destroy(struct exporter *exporter);

/* Which of them an IP protocol number is. */
enum exporter_protocol exporter_protocol_of(uint8_t proto);

/* "tcp", "udp", "sctp", "icmp", "other". */
const char *exporter_protocol_name(enum exporter_protocol protocol);
