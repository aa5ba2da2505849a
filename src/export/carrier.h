/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A carrier takes the records of one export to where they go. There are two kinds: the sender (sender.h) has messages in
 * a queue of its own and sends them over UDP, TCP or TLS, or into a file or FIFO; the producer (producer.h) hands each record to a
 * broker of Kafka. The collector (collector.h) decides which flows there are, and how long it waits; a carrier never
 * waits but in wait().
 *
 * Life-cycle: made by its kind's own function, then put, push and tend, then end, then destroy. Used by one thread at
 * a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/target.h"
#include "flow/report.h"

/* As of one moment. Records are IPFIX data records of flows, or lines of JSON. */
struct export_counters {
	uint64_t flows;	   /* reports that the filter took */
	uint64_t filtered; /* and those it did not */
	uint64_t records;  /* = written + lost + waiting */
	uint64_t
		written; /* given to the kernel; of Kafka: taken by the broker, as it says itself */
	uint64_t lost;
	uint64_t waiting;
	uint64_t lost_packets, lost_octets; /* of the flows in these */
	uint64_t messages, bytes;	    /* written, those with templates among them */
	uint64_t refused;		    /* UDP: so often nobody listened */
	uint64_t sessions; /* connections made, files opened, or producers of Kafka made */
	/* 1: there is a session; of UDP: nobody has refused lately; of Kafka: a broker took the last records; else 0 */
	uint64_t up;
	struct error why; /* why not */
};

/* A line of JSON, its newline included. */
struct export_line {
	const char *bytes;
	size_t length;
};

/* A flow on its way. */
struct export_flow {
	const struct flow_report *report;
	const struct export_line *line; /* NULL where the format is IPFIX */
	uint32_t records;		/* that it becomes */
	uint64_t packets, octets;	/* of both directions */
};

struct carrier;

struct carrier_kind {
	/* Takes a flow, all of it. Returns false where there is no room, or nobody to give it to. */
	bool (*put)(struct carrier *carrier, const struct export_flow *flow);
	/* Sends what there is, as far as that goes without waiting. */
	void (*push)(struct carrier *carrier);
	/* Waits until something has gone, or for `ms` milliseconds at most. */
	void (*wait)(struct carrier *carrier, int ms);
	/* Is there something that has not gone? A message that is being filled is none: see tend(). */
	bool (*waits)(struct carrier *carrier);
	/* Does what time makes due, and pushes. With `all` no message waits to be filled any more. */
	void (*tend)(struct carrier *carrier, bool all);
	/* A flow was lost before it could be put, and is counted. NULL: the carrier need not know. */
	void (*lost)(struct carrier *carrier, const struct export_flow *flow);
	/* A file is opened by its name anew. NULL: there is no file. */
	void (*reopen)(struct carrier *carrier);
	/* Brings those of the counters up to date that are only looked at now and then. */
	void (*show)(struct carrier *carrier);
	/* What has not gone is lost, and is counted. After that only show() and destroy() are called. */
	void (*end)(struct carrier *carrier);
	void (*destroy)(struct carrier *carrier);
};

/* Each kind begins with one. */
struct carrier {
	const struct carrier_kind *kind;
	const struct export_target *target; /* outlives the carrier */
	/* flows, filtered and records are counted by the collector, which counts what it loses, too */
	struct export_counters counters;
	uint64_t moved_ms; /* when something last went; monotonic clock, milliseconds */
};
