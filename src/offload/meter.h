/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The meter tells the rates of flows in software without work for each packet: now and then a packet is handed in
 * (one of a burst), whose flow is watched from then on; each time that it is handed in again, what its record
 * has counted meanwhile says how busy it is (offload/rate.h). A flow that sends a thousandth of all packets is
 * found when about a thousand packets were handed in.
 *
 * At first sight a flow's rate is what it had on the average since it began. That is how busy flows are found
 * at once that have just begun; one that was idle for long has to be watched.
 *
 * Bounded: METER_WATCHED flows at a time. A new one takes the place of the least busy of those it may have, if it
 * is busier, or that one was silent, or else by chance now and then.
 *
 * Keys, not positions, are what is compared: a record may have been given to another flow meanwhile.
 *
 * One thread, the worker. All memory is in the struct.
 */

#include <stdint.h>

#include "flow/record.h"
#include "offload/rate.h"

#define METER_WATCHED 512
/* A position may lie at one of so many places. */
#define METER_RUN 8
/* Of busier flows one in so many loses its place to one that is not. */
#define METER_CHANCE 4

struct meter_entry {
	uint64_t key_tag; /* of the flow: its start and key, hashed */
	struct rate rate; /* us 0: free */
	uint32_t position;
	uint8_t from;
};

struct meter {
	struct meter_entry entry[METER_WATCHED]; /* in runs, by position */
	uint32_t passed;			 /* that found no place */
};

/*
 * A packet of the direction from `from`, already counted: it is one of these `packets` of the direction. The
 * direction's rate, as rate.h has it.
 */
uint32_t meter_packet(struct meter *meter, const struct flow_record *record, uint32_t position,
	unsigned from, uint64_t packets, uint64_t now_us);

/* The same without a packet: nothing changes. Of a flow that is not watched, what it had since it began. */
uint32_t meter_rate(struct meter *meter, const struct flow_record *record, uint32_t position,
	unsigned from, uint64_t packets, uint64_t now_us);
