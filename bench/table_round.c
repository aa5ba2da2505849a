/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds of `millrace bench table`: what is done to either side, and how long it took. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "base/text.h"
#include "bench/table.h"
#include "traffic/draw.h"

/* Look-ups timed in a round. */
#define PROBES_FEW (UINT32_C(256) << 10)
#define PROBES_MANY (UINT32_C(512) << 10)
#define MANY (UINT32_C(1000000) * 7 / 8)

/*
 * Look-ups before those that are timed: the caches are then as they are in the midst of work, and not as
 * the other side has left them. It takes many: a third-level cache that many share does not give up at
 * once what was of use before (65,536 flows of ours need 18 cycles after 128 k of them, 15 after 2 M).
 */
#define WARM_UP_A_FLOW 32
#define WARM_UP_LEAST (UINT32_C(64) << 10)
#define WARM_UP_MOST (UINT32_C(2) << 20)
#define WARM_UP_BEYOND (UINT32_C(1) << 20) /* of tables that no cache holds anyway */

/* Packets of churn in a round. */
#define CHURN_PROBES (UINT32_C(256) << 10)

#define SAMPLES 4096

/* Keys and what goes with them: one at a time is in use. */
static struct table_churn work;

/* ---- sides ---- */

/* Bytes that can be had without swapping; SIZE_MAX: nobody says. */
static size_t memory_available(void)
{
	unsigned long kilobytes = 0;
	char line[128];
	FILE *meminfo = fopen("/proc/meminfo", "re");

	while (meminfo != NULL && fgets(line, sizeof(line), meminfo) != NULL)
		if (sscanf(line, "MemAvailable: %lu", &kilobytes) == 1)
			break;
	if (meminfo != NULL)
		(void)fclose(meminfo);
	return kilobytes == 0 ? SIZE_MAX : (size_t)kilobytes << 10;
}

int table_side_create(struct table_side *side, const struct table_contender *is,
	const struct table_config *config, struct error *error)
{
	size_t needed = is->needs(config);
	size_t available = memory_available();
	char flows[TEXT_NUMBER_MAX], bytes[TEXT_NUMBER_MAX], there[TEXT_NUMBER_MAX];
	int ret;

	*side = (struct table_side){.is = is, .ring = config->held};
	text_grouped(flows, config->flows);
	text_bytes(bytes, needed);
	/* pages are taken at their first touch: by then it would be too late to say so */
	if (needed > available)
		return error_set(error, -ENOMEM, "%s flows of %s take %s, and %s are there", flows,
			is->name, bytes, text_bytes(there, available));
	ret = is->create(&side->side, config);
	if (ret == 0 && is->remove_known != NULL) {
		side->positions = malloc(side->ring * sizeof(*side->positions));
		if (side->positions == NULL) {
			is->destroy(side->side);
			ret = -ENOMEM;
		}
	}
	if (ret < 0) {
		side->side = NULL;
		return error_set(error, ret, "%s flows of %s, which take %s: %s", flows, is->name,
			bytes, strerror(-ret));
	}
	return 0;
}

void table_side_destroy(struct table_side *side)
{
	if (side->side != NULL)
		side->is->destroy(side->side);
	free(side->positions);
	side->side = NULL;
	side->positions = NULL;
}

static void positions_store(
	struct table_side *side, uint64_t first, const uint32_t *positions, unsigned n)
{
	for (unsigned i = 0; side->positions != NULL && i < n; i++)
		side->positions[(first + i) % side->ring] = positions[i];
}

static uint32_t position_of(const struct table_side *side, uint64_t number)
{
	return side->positions[number % side->ring];
}

/* ---- changes ---- */

double table_fill(struct table_side *side, uint32_t live)
{
	uint32_t done = 0, wanted = live - side->live;
	uint64_t cycles = 0;

	table_chunk_point(&work.chunk);
	while (done < wanted) {
		unsigned n = RTE_MIN((uint32_t)TABLE_CHUNK, wanted - done);
		uint64_t number = side->first + side->live;
		uint32_t positions[TABLE_CHUNK];

		table_chunk_row(&work.chunk, (uint32_t)number, n);
		uint64_t begin = rte_rdtsc_precise();

		if (!side->is->insert(side->side, &work.chunk, n, positions))
			return -1;
		cycles += rte_rdtsc_precise() - begin;
		positions_store(side, number, positions, n);
		side->live += n;
		done += n;
	}
	return (double)cycles / done;
}

/* The `n` flows that end next, of those that end in that order. */
static void make_ending(const struct table_side *side, const uint32_t *ending, uint32_t done,
	unsigned n, uint32_t *positions)
{
	if (ending == NULL)
		table_chunk_row(&work.chunk, (uint32_t)side->first + done, n);
	else
		table_chunk_of(&work.chunk, &ending[done], (uint32_t)side->first, n);
	for (unsigned i = 0; side->positions != NULL && i < n; i++)
		positions[i] = position_of(
			side, side->first + (ending == NULL ? done + i : ending[done + i]));
}

static double end_flows(
	struct table_side *side, const uint32_t *ending, uint32_t wanted, bool known)
{
	uint64_t cycles = 0;

	table_chunk_point(&work.chunk);
	for (uint32_t done = 0; done < wanted; done += TABLE_CHUNK) {
		unsigned n = RTE_MIN((uint32_t)TABLE_CHUNK, wanted - done);
		uint32_t positions[TABLE_CHUNK];

		make_ending(side, ending, done, n, positions);
		uint64_t begin = rte_rdtsc_precise();

		if (known)
			side->is->remove_known(side->side, positions, n);
		else
			side->is->remove(side->side, &work.chunk, n);
		cycles += rte_rdtsc_precise() - begin;
	}
	side->first += wanted;
	side->live -= wanted;
	return (double)cycles / wanted;
}

double table_empty(struct table_side *side, const uint32_t *ending, bool known)
{
	return end_flows(side, ending, side->live, known);
}

void table_shrink(struct table_side *side, uint32_t live)
{
	end_flows(side, NULL, side->live - live, false);
}

bool table_side_right(const struct table_side *side)
{
	struct draw draw = {.seed = side->live};

	for (unsigned i = 0; i < SAMPLES && side->live != 0; i++) {
		uint32_t number = (uint32_t)side->first + draw_below(draw_next(&draw), side->live);
		struct table_key key = table_key_of(number);
		struct table_key stranger = table_key_of(number + TABLE_STRANGER);

		if (!side->is->has(side->side, &key) || side->is->has(side->side, &stranger))
			return false;
	}
	return true;
}

/* ---- look-ups ---- */

static uint32_t warm_up_of(const struct table_side *side)
{
	if (side->live > MANY)
		return WARM_UP_BEYOND;
	return RTE_MAX(WARM_UP_LEAST,
		(uint32_t)RTE_MIN((uint64_t)side->live * WARM_UP_A_FLOW, (uint64_t)WARM_UP_MOST));
}

double table_look_ups(struct table_side *side, const struct table_look_up *what)
{
	uint32_t probes = side->live < MANY ? PROBES_FEW : PROBES_MANY;
	uint32_t warm_up = warm_up_of(side);
	uint32_t first = (uint32_t)side->first + (what->miss ? TABLE_STRANGER : 0);
	uint64_t place = (uint64_t)what->round * PROBES_MANY;
	uint64_t cycles = 0;

	table_chunk_point(&work.chunk);
	for (uint32_t done = 0; done < warm_up + probes; done += TABLE_CHUNK) {
		table_chunk_order(&work.chunk, what->order, what->load, place + done, first);
		uint64_t begin = rte_rdtsc_precise();

		if (what->update)
			side->is->update(side->side, what->way, &work.chunk, TABLE_CHUNK,
				what->burst, place + done);
		else
			side->is->look_up(
				side->side, what->way, &work.chunk, TABLE_CHUNK, what->burst);
		if (done >= warm_up)
			cycles += rte_rdtsc_precise() - begin;
	}
	return (double)cycles / probes;
}

/* ---- churn ---- */

/* Three of 32 places, by chance. */
static uint32_t new_places(struct draw *draw)
{
	uint32_t places = 0;

	while (__builtin_popcount(places) < TABLE_CHURN_NEW)
		places |= UINT32_C(1) << draw_below(draw_next(draw), TABLE_CHURN_BURST);
	return places;
}

/* The packets of a chunk: each burst's known flows are those that live when it begins. */
static void make_churn(const struct table_side *side, struct draw *draw)
{
	uint32_t number = (uint32_t)side->first + side->live;

	for (unsigned burst = 0; burst < TABLE_CHURN_BURSTS; burst++) {
		uint32_t oldest = (uint32_t)side->first + burst * TABLE_CHURN_NEW;
		uint32_t places = new_places(draw);

		for (unsigned i = 0; i < TABLE_CHURN_BURST; i++)
			work.chunk.keys[burst * TABLE_CHURN_BURST + i] = table_key_of(
				places >> i & 1 ? number++
						: oldest + draw_below(draw_next(draw), side->live));
	}
	for (unsigned i = 0; i < TABLE_CHURN_CHANGES; i++) {
		work.ended[i] = table_key_of((uint32_t)side->first + i);
		if (side->positions != NULL)
			work.ended_positions[i] = position_of(side, side->first + i);
	}
	if (side->is->prepare != NULL)
		side->is->prepare(&work);
}

double table_churns(struct table_side *side, unsigned way, unsigned round)
{
	struct draw draw = {.seed = round};
	uint32_t warm_up = warm_up_of(side);
	uint64_t cycles = 0;

	table_chunk_point(&work.chunk);
	for (uint32_t done = 0; done < warm_up + CHURN_PROBES;
		done += TABLE_CHURN_BURSTS * TABLE_CHURN_BURST) {
		make_churn(side, &draw);
		uint64_t begin = rte_rdtsc_precise();

		side->is->churn(side->side, way, &work, done);
		if (done >= warm_up)
			cycles += rte_rdtsc_precise() - begin;
		positions_store(
			side, side->first + side->live, work.new_positions, TABLE_CHURN_CHANGES);
		side->first += TABLE_CHURN_CHANGES;
	}
	return (double)cycles / CHURN_PROBES;
}
