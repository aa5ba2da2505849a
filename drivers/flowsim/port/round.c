/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/port/round.h"

#include <errno.h>
#include <string.h>

#include "base/mapping.h"

int sim_round_create(struct sim_round *round, uint32_t n, bool entries)
{
	memset(round, 0, sizeof(*round));
	if (n == 0)
		return 0;
	round->places = mapping_create(n * sizeof(*round->places), MAPPING_HUGE);
	round->ids = mapping_create(n * sizeof(*round->ids), MAPPING_HUGE);
	if (entries)
		round->entries = mapping_create(n * sizeof(*round->entries), MAPPING_HUGE);
	if (round->places != NULL && round->ids != NULL && (!entries || round->entries != NULL))
		return 0;
	sim_round_destroy(round, n);
	return -ENOMEM;
}

void sim_round_destroy(struct sim_round *round, uint32_t n)
{
	mapping_destroy(round->places, n * sizeof(*round->places));
	mapping_destroy(round->entries, n * sizeof(*round->entries));
	mapping_destroy(round->ids, n * sizeof(*round->ids));
	memset(round, 0, sizeof(*round));
}

static void move(struct sim_round *round, uint32_t from, uint32_t to, struct sim_moved *moved)
{
	if (from == to)
		return;
	round->places[to] = round->places[from];
	round->ids[to] = round->ids[from];
	if (round->entries != NULL)
		round->entries[to] = round->entries[from];
	moved->id[moved->n] = round->ids[to];
	moved->position[moved->n++] = to;
}

bool sim_round_take(struct sim_round *round, uint32_t position, struct sim_moved *moved)
{
	bool served = position < round->at;

	moved->n = 0;
	if (served) {
		/* the hole moves to the end of those that were served, then to the end of all */
		move(round, --round->at, position, moved);
		position = round->at;
	}
	move(round, --round->n, position, moved);
	return served;
}

/* A position of `begin` to `end`, each as likely. */
static uint32_t draw(struct sim_round *round, uint32_t begin, uint32_t end)
{
	round->drawn += UINT32_C(0x9e3779b1);
	return begin + (uint32_t)((uint64_t)round->drawn * (end - begin + 1) >> 32);
}

static void set(struct sim_round *round, uint32_t position, struct sim_place place, uint32_t id)
{
	round->places[position] = place;
	round->ids[position] = id;
	if (round->entries != NULL)
		round->entries[position] = (struct sim_entry){0};
}

uint32_t sim_round_add(struct sim_round *round, struct sim_place place, uint32_t id)
{
	set(round, round->n, place, id);
	return round->n++;
}

uint32_t sim_round_put_back(struct sim_round *round, struct sim_place place, uint32_t id,
	bool served, struct sim_moved *moved)
{
	uint32_t position = round->n++, end = position;

	moved->n = 0;
	if (served) {
		move(round, round->at, position, moved);
		end = round->at++;
	}
	position = draw(round, served ? 0 : round->at, end);
	move(round, position, end, moved);
	set(round, position, place, id);
	return position;
}

/* A number below `n`, each as likely, whatever places were drawn before and after. */
static uint32_t draw_below(struct sim_round *round, uint32_t n)
{
	uint32_t drawn = round->drawn += UINT32_C(0x9e3779b1);

	drawn = (drawn ^ drawn >> 16) * UINT32_C(0x7feb352d);
	drawn = (drawn ^ drawn >> 15) * UINT32_C(0x846ca68b);
	drawn ^= drawn >> 16;
	return (uint32_t)((uint64_t)drawn * n >> 32);
}

uint32_t sim_round_pass(struct sim_round *round, struct sim_exit *way, uint32_t n, uint32_t length,
	uint16_t now, uint16_t *since)
{
	const uint32_t left = (UINT32_C(1) << 16) - *since;

	/* it seems to go back when places come and go: what has passed stays so */
	if (now <= *since || n == 0)
		return 0;

	uint64_t part = (uint64_t)n * (uint32_t)(now - *since);
	uint32_t passed = (uint32_t)((part + draw_below(round, left)) / left);

	*since = now;
	way->n -= passed;
	way->bytes -= (uint64_t)length * passed;
	way->n_next += passed;
	way->bytes_next += (uint64_t)length * passed;
	return passed;
}

void sim_round_close(struct sim_round *round)
{
	if (round->at > 0 && round->at == round->n)
		sim_round_end(round);
}

void sim_round_settle(
	struct sim_round *round, uint64_t packets[SIM_MAX_EXITS], uint64_t bytes[SIM_MAX_EXITS])
{
	uint64_t rounds = round->rounds - round->settled;

	if (rounds == 0)
		return;
	round->settled = round->rounds;
	for (unsigned i = 0; i < SIM_MAX_EXITS; i++) {
		struct sim_exit *way = &round->exits[i];

		packets[i] += way->n * rounds + way->n_next * (rounds - 1);
		bytes[i] += way->bytes * rounds + way->bytes_next * (rounds - 1);
		way->n += way->n_next;
		way->bytes += way->bytes_next;
		way->n_next = 0;
		way->bytes_next = 0;
	}
}
