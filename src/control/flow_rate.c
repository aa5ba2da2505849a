/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mapping.h"
#include "plane/plane.h"

/* Times are kept in units of 16 us: four minutes come around, far more than lie between two looks. */
#define UNIT_SHIFT 4
#define UNIT_BITS 24

/*
 * The low halves of each number: within the 10 seconds between two looks none comes around. A flow
 * that began in the same microsecond of another 71 minutes is taken for the one before it.
 */
struct entry {
	uint32_t packets;
	uint32_t start_us;
	uint32_t when : UNIT_BITS; /* of the look */
	uint32_t epoch : 8;	   /* of another one: nothing is remembered */
};

struct flow_rates {
	uint64_t begin_us; /* before the first look */
	uint8_t epoch;	   /* of this measurement */
	size_t size;
	struct entry *entries;
	uint32_t n[PLANE_MAX_WORKERS];	 /* positions */
	size_t first[PLANE_MAX_WORKERS]; /* where those of the worker begin */
};

struct flow_rates *flow_rates_create(const struct plane *plane)
{
	struct flow_rates *rates = calloc(1, sizeof(*rates));
	size_t n = 0;

	for (unsigned i = 0; rates && i < plane_config(plane)->n_workers; i++) {
		rates->n[i] = plane_positions(plane, i);
		rates->first[i] = n;
		n += rates->n[i];
	}
	if (rates) {
		rates->size = n * sizeof(struct entry);
		rates->entries = mapping_create(rates->size, MAPPING_HUGE | MAPPING_POPULATE);
	}
	if (rates && rates->entries)
		return rates;
	free(rates);
	return NULL;
}

void flow_rates_begin(struct flow_rates *rates, uint64_t now_us)
{
	rates->begin_us = now_us;
	/* 0 is of what was never written */
	if (++rates->epoch == 0) {
		memset(rates->entries, 0, rates->size);
		rates->epoch = 1;
	}
}

static uint32_t packets_of(const struct flow_record *record)
{
	return (uint32_t)(flow_packets(record, 0) + flow_packets(record, 1));
}

static uint32_t units_of(uint64_t us)
{
	return us >> UNIT_SHIFT & ((1u << UNIT_BITS) - 1);
}

static struct entry *find(const struct flow_rates *rates, unsigned worker, uint32_t position)
{
	if (worker >= PLANE_MAX_WORKERS || position >= rates->n[worker])
		return NULL;
	return &rates->entries[rates->first[worker] + position];
}

int flow_rates_remember(struct flow_rates *rates, unsigned worker, uint32_t position,
	const struct flow_record *record, uint64_t now_us)
{
	struct entry *entry = find(rates, worker, position);

	if (!entry)
		return -ERANGE;
	*entry = (struct entry){
		.packets = packets_of(record),
		.start_us = (uint32_t)record->start_us,
		.when = units_of(now_us) & ((1u << UNIT_BITS) - 1),
		.epoch = rates->epoch,
	};
	return 0;
}

uint64_t flow_rates_of(const struct flow_rates *rates, unsigned worker, uint32_t position,
	const struct flow_record *record, uint64_t now_us)
{
	const struct entry *entry = find(rates, worker, position);
	uint64_t packets = flow_packets(record, 0) + flow_packets(record, 1);
	uint64_t us = now_us > rates->begin_us ? now_us - rates->begin_us : 0;

	if (entry && entry->epoch == rates->epoch) {
		us = (uint64_t)units_of(((uint64_t)units_of(now_us) - entry->when) << UNIT_SHIFT)
		     << UNIT_SHIFT;
		/* a periodic report lets a flow's numbers begin anew: then it is like a new one */
		if (entry->start_us == (uint32_t)record->start_us)
			packets = (uint32_t)packets - entry->packets;
	}
	if (us == 0)
		return 0;
	return (packets * CLOCK_US_PER_S + us / 2) / us;
}

void flow_rates_destroy(struct flow_rates *rates)
{
	if (!rates)
		return;
	mapping_destroy(rates->entries, rates->size);
	free(rates);
}
