/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/meter.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* Of the key, and of when it began: multiplications that do not wait for one another. */
static uint64_t tag_of(const struct flow_record *record)
{
	static const uint64_t odd[] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9),
		UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
		UINT64_C(0xa0761d6478bd642f)};
	uint64_t words[sizeof(record->key) / 8], tag = record->start_us;

	static_assert(sizeof(odd) == sizeof(words), "one for each word");
	memcpy(words, &record->key, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / 8; i++)
		tag += words[i] * odd[i];
	return tag;
}

static bool is_at(const struct meter_entry *entry, uint32_t position, unsigned from)
{
	return entry->rate.us != 0 && entry->position == position && entry->from == from;
}

static struct meter_entry *run_of(struct meter *meter, uint32_t position)
{
	uint32_t run = (position * UINT32_C(0x9e3779b1) >> 16) % (METER_WATCHED / METER_RUN);

	return &meter->entry[run * METER_RUN];
}

/* The entry of that position, or NULL. */
static struct meter_entry *meter_find(struct meter_entry *run, uint32_t position, unsigned from)
{
	for (unsigned i = 0; i < METER_RUN; i++)
		if (is_at(&run[i], position, from))
			return &run[i];
	return NULL;
}

/* About what is left of a rate after a silence: to choose by, in a few cycles. */
static uint32_t left_of(const struct meter_entry *entry, uint64_t now_us)
{
	uint64_t halves = (now_us - entry->rate.us) / RATE_HALF_US;

	return halves < 32 ? entry->rate.value >> halves : 0;
}

/* The least busy one of a run: a free one is less than any. */
static struct meter_entry *least_of(struct meter_entry *run, uint64_t now_us)
{
	struct meter_entry *least = NULL;
	uint32_t least_rate = 0;

	for (unsigned i = 0; i < METER_RUN; i++) {
		uint32_t rate = left_of(&run[i], now_us);

		if (run[i].rate.us == 0)
			return &run[i];
		if (least == NULL || rate < least_rate) {
			least = &run[i];
			least_rate = rate;
		}
	}
	return least;
}

uint32_t meter_packet(struct meter *meter, const struct flow_record *record, uint32_t position,
	unsigned from, uint64_t packets, uint64_t now_us)
{
	/* 0 is a free one's */
	if (now_us == 0)
		now_us = 1;
	struct meter_entry *run = run_of(meter, position), *entry = meter_find(run, position, from);
	const uint64_t tag = tag_of(record);
	struct rate rate;

	if (entry != NULL && entry->key_tag == tag) {
		rate_look(&entry->rate, packets, now_us);
		return entry->rate.value;
	}
	rate_begin(&rate, packets, record->start_us, now_us);
	/* in the place of the same record's former flow, or of one that is less busy by now */
	if (entry == NULL) {
		entry = least_of(run, now_us);
		if (rate.value < left_of(entry, now_us) && ++meter->passed % METER_CHANCE != 0)
			return rate.value;
	}
	*entry = (struct meter_entry){
		.key_tag = tag,
		.rate = rate,
		.position = position,
		.from = (uint8_t)from,
	};
	return rate.value;
}

uint32_t meter_rate(struct meter *meter, const struct flow_record *record, uint32_t position,
	unsigned from, uint64_t packets, uint64_t now_us)
{
	const struct meter_entry *entry = meter_find(run_of(meter, position), position, from);
	struct rate rate;

	if (entry != NULL && entry->key_tag == tag_of(record))
		return rate_after_silence(&entry->rate, now_us);
	rate_begin(&rate, packets, record->start_us, now_us);
	return rate.value;
}
