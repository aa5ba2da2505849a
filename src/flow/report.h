/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A report: a copy of a record at its end (or at an active report), as it leaves the shard for the
 * exporter. When its packets came is told by flow_report_start_us() and flow_report_end_us().
 */

#include <stdbool.h>

#include "flow/measure.h"
#include "flow/octets.h"
#include "flow/verdict.h"

/* The time stamps of a flow's first and last packet, where they are not the run's clock: Unix time, microseconds. */
struct flow_stamps {
	uint64_t start_us, end_us;
};

/* Packets are not known any more. */
#define FLOW_OFFLOAD_LOST UINT64_MAX

/*
 * What a NIC has of a flow: filled by whoever offloads, as offload/ has it. Directions are by the key's end, 0 and 1;
 * states and reasons are enum offload_state and enum offload_reason.
 */
struct flow_offload {
	/* that came with the NIC's mark, or that it forwarded alone; or FLOW_OFFLOAD_LOST */
	uint64_t packets;
	uint8_t state[2];
	uint8_t reason[2];
	bool full[2]; /* there is a rule of it, or on its way, which leaves the CPU nothing to do */
	bool estimated; /* packets that the NIC forwarded may be missing, and those of the record */
	bool told;	/* false: nobody offloads */
};

struct flow_report {
	struct flow_record record;
	/* Unix time in microseconds */
	union {
		uint64_t origin_us;	 /* of the run's clock 0 */
		uint64_t stamp_start_us; /* stamped: of the first packet */
	};
	uint64_t end_us : 48; /* clock of the run: last packet, never before record.start_us */
	uint64_t reason : 6;  /* enum flow_end */
	uint64_t worker : 8;
	uint64_t stamped : 1;  /* the stamps say when packets came, not the record's own times */
	uint64_t measured : 1; /* and none of its packets were dropped by verdicts */
	struct flow_offload offload;
	uint64_t stamp_end_us; /* stamped: Unix time of the last packet */
	union {
		struct flow_measured measure[2]; /* where it was measured; by the key's end */
		struct flow_dropped
			dropped; /* else; zeroed unless the record says that there is some */
	};
	struct flow_rules rules;   /* of a shard without rules there are none */
	uint32_t run;		   /* number of the run: in replay, of the capture */
	struct flow_excess excess; /* zeroed unless the shard counts octets */
} __attribute__((aligned(64)));

static_assert(sizeof(struct flow_report) == 256, "four lines a report");

/* Octets of the IP packets from an end, by their headers' own word; of a shard that counts them. */
static inline uint64_t flow_report_octets(const struct flow_report *report, unsigned end)
{
	return flow_octets(&report->record, end, &report->excess);
}

/* What verdicts dropped of the flow; without a cause where they never did. */
static inline struct flow_dropped flow_report_dropped(const struct flow_report *report)
{
	return report->measured ? (struct flow_dropped){.cause = FLOW_CAUSE_NONE} : report->dropped;
}

/* What was measured of the packets from an end; zeros where nothing was. */
static inline struct flow_measured flow_report_measure(
	const struct flow_report *report, unsigned end)
{
	return report->measured ? report->measure[end] : (struct flow_measured){0};
}

/* Of a report about a flow that lives: what was measured of it so far. */
static inline void flow_report_set_measured(
	struct flow_report *report, const struct flow_measured measured[2])
{
	if (!report->record.measured || report->record.was_dropped)
		return;
	report->measured = 1;
	report->measure[0] = measured[0];
	report->measure[1] = measured[1];
}

/* Unix time of the first packet. */
static inline uint64_t flow_report_start_us(const struct flow_report *report)
{
	return report->stamped ? report->stamp_start_us
			       : report->origin_us + report->record.start_us;
}

/* Of the last one: never before the first. */
static inline uint64_t flow_report_end_us(const struct flow_report *report)
{
	return report->stamped ? report->stamp_end_us : report->origin_us + report->end_us;
}
