/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The meter finds busy flows without work for each packet: now and then a packet is handed in (one of a
 * burst), whose flow is watched from then on for METER_WATCH_US. What its record has counted in that time
 * is its rate, exactly. A flow that sends a thousandth of all packets is found when about a thousand
 * packets were handed in. Bounded: METER_WATCHED flows at a time; of more, those wait that come later.
 *
 * A flow that is not handed in again gives way to others after METER_KEEP_US.
 *
 * Keys, not positions, are what is compared: a record may have been given to another flow meanwhile.
 *
 * One thread, the worker. All memory is in the struct.
 */

#include <stdbool.h>
#include <stdint.h>

#include "flow/record.h"

#define METER_WATCHED 512
#define METER_WATCH_US 10000
#define METER_KEEP_US 40000
/* A position may lie at one of so many places. */
#define METER_RUN 8

struct meter_entry {
	uint64_t key_tag;  /* of the flow: its start and key, hashed */
	uint64_t since_us; /* 0: free */
	uint64_t packets;  /* of that end, then */
	uint32_t position;
	uint8_t from;
	uint8_t side;
};

struct meter {
	struct meter_entry entry[METER_WATCHED]; /* in runs, by position */
};

/* A flow whose time is over. */
struct meter_result {
	uint32_t position;
	uint32_t rate; /* packets a second, of that direction */
	uint8_t from;
	uint8_t side;
};

/*
 * A packet from `from` that arrived at `side`, already counted in its record. True when the flow was being
 * watched long enough: the result is filled, and it is watched no more.
 */
bool meter_packet(struct meter *meter, const struct flow_record *record, uint32_t position,
	unsigned from, unsigned side, uint64_t now_us, struct meter_result *result);
