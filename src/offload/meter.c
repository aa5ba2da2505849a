/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/meter.h"

#include <string.h>

#include "base/clock.h"

static uint64_t tag_of(const struct flow_record *record)
{
	uint64_t words[sizeof(record->key) / 8], tag = record->start_us;

	memcpy(words, &record->key, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / 8; i++) {
		tag = (tag ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		tag ^= tag >> 29;
	}
	return tag;
}

/* Packets a second, of so many in so many us; one division for each flow that was watched. */
static uint32_t rate_of(uint64_t packets, uint64_t us)
{
	/* more than any port carries */
	if (packets > UINT32_MAX)
		return UINT32_MAX;
	uint64_t rate = packets * CLOCK_US_PER_S / us;

	return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

/*
 * The flow's entry, else one that it can have: free, of the same record's former flow, or of a flow that
 * was not handed in for long. NULL: all of its run are being watched.
 */
static struct meter_entry *find(
	struct meter *meter, uint32_t position, unsigned from, unsigned side, uint64_t now_us)
{
	uint32_t run = (position * UINT32_C(0x9e3779b1) >> 16) % (METER_WATCHED / METER_RUN);
	struct meter_entry *entries = &meter->entry[run * METER_RUN], *best = NULL;

	for (unsigned i = 0; i < METER_RUN; i++) {
		struct meter_entry *entry = &entries[i];

		if (entry->since_us != 0 && entry->position == position && entry->from == from &&
			entry->side == side)
			return entry;
		/* the oldest; free ones are older than any */
		if (!best || entry->since_us < best->since_us)
			best = entry;
	}
	return best->since_us == 0 || now_us - best->since_us >= METER_KEEP_US ? best : NULL;
}

bool meter_packet(struct meter *meter, const struct flow_record *record, uint32_t position,
	unsigned from, unsigned side, uint64_t now_us, struct meter_result *result)
{
	/* 0 is a free one's */
	if (now_us == 0)
		now_us = 1;
	struct meter_entry *entry = find(meter, position, from, side, now_us);
	uint64_t packets = flow_packets(record, from), tag = tag_of(record);

	if (!entry)
		return false;
	bool same = entry->since_us != 0 && entry->position == position && entry->from == from &&
		    entry->side == side && entry->key_tag == tag && packets >= entry->packets;

	if (!same) {
		*entry = (struct meter_entry){
			.key_tag = tag,
			.since_us = now_us,
			.packets = packets,
			.position = position,
			.from = (uint8_t)from,
			.side = (uint8_t)side,
		};
		return false;
	}
	if (now_us - entry->since_us < METER_WATCH_US)
		return false;
	*result = (struct meter_result){
		.position = position,
		.rate = rate_of(packets - entry->packets, now_us - entry->since_us),
		.from = (uint8_t)from,
		.side = (uint8_t)side,
	};
	entry->since_us = 0;
	return true;
}
