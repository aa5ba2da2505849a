/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/flow_rate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "path/plane.h"

#define CHUNK 16384
/* Tables have some more positions than flows; twice the largest is far beyond. */
#define MAX_CHUNKS (2 * FLOW_MAX_CAPACITY / CHUNK)

/*
 * The low halves of each number: within the 10 seconds between two looks none comes around. A flow
 * that began in the same microsecond of another 71 minutes is taken for the one before it.
 */
struct entry {
	uint32_t packets;
	uint32_t start_us;
	uint32_t now_us; /* of the look; 0: there was no flow */
};

struct flow_rates {
	uint64_t begin_us; /* before the first look */
	struct {
		unsigned n;
		struct entry **chunks;
	} workers[PLANE_MAX_WORKERS];
};

struct flow_rates *flow_rates_create(uint64_t now_us)
{
	struct flow_rates *rates = calloc(1, sizeof(*rates));

	if (rates)
		rates->begin_us = now_us;
	return rates;
}

static uint32_t packets_of(const struct flow_record *record)
{
	return (uint32_t)(flow_packets(record, 0) + flow_packets(record, 1));
}

static struct entry *find(const struct flow_rates *rates, unsigned worker, uint32_t position)
{
	unsigned chunk = position / CHUNK;

	if (chunk >= rates->workers[worker].n || !rates->workers[worker].chunks[chunk])
		return NULL;
	return &rates->workers[worker].chunks[chunk][position % CHUNK];
}

/* Makes the chunk that has this position. */
static int make_chunk(struct flow_rates *rates, unsigned worker, uint32_t position)
{
	unsigned chunk = position / CHUNK, n = rates->workers[worker].n;
	struct entry **chunks = rates->workers[worker].chunks;

	if (chunk >= n) {
		struct entry **grown = realloc(chunks, (chunk + 1) * sizeof(chunks[0]));

		if (!grown)
			return -ENOMEM;
		chunks = grown;
		for (; n <= chunk; n++)
			chunks[n] = NULL;
		rates->workers[worker].chunks = chunks;
		rates->workers[worker].n = n;
	}
	if (!chunks[chunk])
		chunks[chunk] = calloc(CHUNK, sizeof(chunks[chunk][0]));
	return chunks[chunk] ? 0 : -ENOMEM;
}

int flow_rates_remember(struct flow_rates *rates, unsigned worker, uint32_t position,
	const struct flow_record *record, uint64_t now_us)
{
	if (worker >= PLANE_MAX_WORKERS || position / CHUNK >= MAX_CHUNKS)
		return -ERANGE;
	if (!find(rates, worker, position) && make_chunk(rates, worker, position) < 0)
		return -ENOMEM;
	*find(rates, worker, position) = (struct entry){
		.packets = packets_of(record),
		.start_us = (uint32_t)record->start_us,
		.now_us = (uint32_t)now_us != 0 ? (uint32_t)now_us : 1,
	};
	return 0;
}

uint64_t flow_rates_of(const struct flow_rates *rates, unsigned worker, uint32_t position,
	const struct flow_record *record, uint64_t now_us)
{
	const struct entry *entry =
		worker < PLANE_MAX_WORKERS ? find(rates, worker, position) : NULL;
	uint64_t packets = flow_packets(record, 0) + flow_packets(record, 1);
	uint64_t us = now_us > rates->begin_us ? now_us - rates->begin_us : 0;

	if (entry && entry->now_us != 0) {
		us = (uint32_t)now_us - entry->now_us;
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
	for (unsigned i = 0; i < PLANE_MAX_WORKERS; i++) {
		for (unsigned j = 0; j < rates->workers[i].n; j++)
			free(rates->workers[i].chunks[j]);
		free(rates->workers[i].chunks);
	}
	free(rates);
}
