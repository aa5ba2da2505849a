/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The meter finds busy flows without work for each packet: now and then a packet is handed in (one of a
 * burst), whose flow is watched from then on for METER_WATCH_US. What its record has counted in that time
 * is its rate, exactly. A flow that sends a thousandth of all packets is found when about a thousand
 * packets were handed in. Bounded: METER_WATCHED flows at a time; of more, those wait that come later.
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

struct meter_entry {
	uint64_t key_tag;  /* of the flow: its start, and a word of its key */
	uint64_t since_us; /* 0: free */
	uint64_t packets;  /* of that end, then */
	uint32_t position;
	uint8_t from;
	uint8_t side;
};

struct meter {
	uint32_t n;
	uint32_t sweep;
	struct meter_entry entry[METER_WATCHED]; /* by position, open addressing in short runs */
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
