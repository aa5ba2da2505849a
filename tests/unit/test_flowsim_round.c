/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds against the plain statement: whole rounds give every place as many packets as rounds, and what is
 * said and counted of a place goes where the place goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drivers/flowsim/port/round.h"

#define N 50
#define LENGTH 100

/* What control remembers of each place. */
struct place_state {
	uint32_t position;
	unsigned way; /* SIM_MAX_EXITS: in the round */
	uint64_t gone_round;
	uint16_t gone_passed;
	bool gone_served;
	uint64_t served; /* in other rounds than this one, and by the NIC */
};

struct scene {
	struct sim_round round;
	struct place_state place[N];
	uint64_t packets[SIM_MAX_EXITS], bytes[SIM_MAX_EXITS];
};

static void note(struct scene *scene, const struct sim_moved *moved)
{
	for (unsigned i = 0; i < moved->n; i++)
		scene->place[moved->id[i]].position = moved->position[i];
}

static void serve(struct scene *scene)
{
	struct sim_round *round = &scene->round;

	if (round->n == 0) {
		/* as time does it */
		sim_round_end(round);
		return;
	}
	round->entries[round->at].hits++;
	assert_int_equal(round->places[round->at].stream, round->ids[round->at]);
	assert_int_equal(round->entries[round->at].mark, ~round->ids[round->at]);
	if (++round->at == round->n)
		sim_round_end(round);
}

static void leave(struct scene *scene, uint32_t id, unsigned way)
{
	struct place_state *place = &scene->place[id];
	struct sim_round *round = &scene->round;
	struct sim_moved moved;

	sim_round_settle(round, scene->packets, scene->bytes);
	place->gone_round = round->rounds;
	place->served += round->entries[place->position].hits;
	place->gone_served = sim_round_take(round, place->position, &moved);
	note(scene, &moved);
	place->gone_passed = sim_round_passed(round, 0);
	place->way = way;
	round->exits[way].n += !place->gone_served;
	round->exits[way].bytes += place->gone_served ? 0 : LENGTH;
	round->exits[way].n_next += place->gone_served;
	round->exits[way].bytes_next += place->gone_served ? LENGTH : 0;
	sim_round_close(round);
}

/* What came into the round has counted nothing there. */
static void begin_entry(struct sim_round *round, uint32_t position, uint32_t id)
{
	assert_int_equal(round->entries[position].hits, 0);
	assert_int_equal(round->entries[position].mark, 0);
	round->entries[position].mark = ~id;
}

/* Did the place that left pass in the open round by now? Then it is counted. */
static void look(struct scene *scene, uint32_t id)
{
	struct place_state *place = &scene->place[id];
	struct sim_round *round = &scene->round;
	struct sim_exit *way = &round->exits[place->way];

	sim_round_settle(round, scene->packets, scene->bytes);
	if (round->rounds != place->gone_round) {
		place->served += round->rounds - place->gone_round - place->gone_served;
		place->gone_round = round->rounds;
		place->gone_served = false;
		place->gone_passed = 0;
	}
	if (sim_round_pass(round, way, !place->gone_served, LENGTH, sim_round_passed(round, 0),
		    &place->gone_passed) == 0)
		return;
	place->gone_served = true;
	place->served++;
	scene->packets[place->way]++;
	scene->bytes[place->way] += LENGTH;
}

static void come_back(struct scene *scene, uint32_t id)
{
	struct place_state *place = &scene->place[id];
	struct sim_round *round = &scene->round;
	struct sim_exit *way = &round->exits[place->way];
	struct sim_moved moved;

	look(scene, id);
	const bool served = place->gone_served;

	way->n -= !served;
	way->bytes -= served ? 0 : LENGTH;
	way->n_next -= served;
	way->bytes_next -= served ? LENGTH : 0;
	place->way = SIM_MAX_EXITS;
	place->position =
		sim_round_put_back(round, (struct sim_place){.stream = id}, id, served, &moved);
	note(scene, &moved);
	begin_entry(round, place->position, id);
	sim_round_close(round);
}

/* All of them are in the round, in order. */
static void fill(struct scene *scene)
{
	struct sim_round *round = &scene->round;

	assert_int_equal(sim_round_create(round, N, true), 0);
	for (uint32_t id = 0; id < N; id++) {
		scene->place[id].way = SIM_MAX_EXITS;
		scene->place[id].position =
			sim_round_add(round, (struct sim_place){.stream = id}, id);
		assert_int_equal(scene->place[id].position, id);
		begin_entry(round, id, id);
	}
}

static void every_place_has_a_packet_a_round(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct sim_round *round = &scene->round;
	uint64_t total = 0, gone = 0;

	(void)state;
	fill(scene);
	srandom(7);
	for (unsigned step = 0; step < 200000; step++) {
		uint32_t id = (uint32_t)random() % N;
		/* for a while most leave, then most come back, down to none and up to all */
		bool out = (unsigned)random() % 8 < ((step / 1000) & 1 ? 1u : 7u);

		if (random() % 3 != 0)
			serve(scene);
		else if (out && scene->place[id].way == SIM_MAX_EXITS)
			leave(scene, id, (unsigned)random() % SIM_MAX_EXITS);
		else if (!out && scene->place[id].way != SIM_MAX_EXITS)
			come_back(scene, id);
		else if (scene->place[id].way != SIM_MAX_EXITS)
			look(scene, id);
	}
	for (uint32_t id = 0; id < N; id++)
		if (scene->place[id].way != SIM_MAX_EXITS)
			come_back(scene, id);
	while (round->at != 0)
		serve(scene);
	assert_true(round->rounds > 100);
	for (uint32_t id = 0; id < N; id++) {
		const struct place_state *place = &scene->place[id];
		uint64_t served = place->served + round->entries[place->position].hits;

		assert_int_equal(served, round->rounds);
		total += served;
	}
	assert_int_equal(total, N * round->rounds);
	for (unsigned i = 0; i < SIM_MAX_EXITS; i++) {
		assert_int_equal(scene->bytes[i], scene->packets[i] * LENGTH);
		assert_int_equal(round->exits[i].n + round->exits[i].n_next, 0);
		gone += scene->packets[i];
	}
	assert_in_range(gone, 1, total - 1);
	sim_round_destroy(round, N);
	free(scene);
}

/* A stream's places that come back are not beside one another: it would be a burst in every round. */
static void who_comes_back_is_spread(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct sim_round *round = &scene->round;
	unsigned beside = 0;

	(void)state;
	fill(scene);
	for (uint32_t id = 0; id < N / 4; id++)
		leave(scene, id, 1);
	for (uint32_t id = 0; id < N / 4; id++)
		come_back(scene, id);
	for (uint32_t id = 1; id < N; id++)
		beside += round->ids[id] < N / 4 && round->ids[id - 1] < N / 4;
	/* some by chance, nearly all of them if they came back in a row */
	assert_true(beside < N / 8);
	sim_round_destroy(round, N);
	free(scene);
}

/* Of `n` that left and have not passed, those that have when so many of the round's were served, and more wait. */
static uint32_t pass(
	struct sim_round *round, uint32_t n, uint32_t at, double waiting, uint16_t *since)
{
	round->at = at;
	return sim_round_pass(
		round, &round->exits[1], n, LENGTH, sim_round_passed(round, waiting), since);
}

/*
 * Half of the host's places were served, then four fifths have come: so large a part of those that left has passed,
 * and what is between stays what it is, read however often.
 */
static void those_that_left_pass_as_the_round_does(void **state)
{
	enum { GONE = 1000, TRIES = 1000 };
	struct scene *scene = calloc(1, sizeof(*scene));
	struct sim_round *round = &scene->round;
	struct sim_exit *way = &round->exits[1];
	uint32_t passed = 0, one = 0;
	uint16_t since = 0;

	(void)state;
	fill(scene);
	*way = (struct sim_exit){.n = GONE, .bytes = GONE * LENGTH};
	assert_int_equal(pass(round, GONE, 0, 0, &since), 0);
	passed += pass(round, GONE, N / 2, 0, &since);
	assert_in_range(passed, GONE / 2, GONE / 2 + 1);
	assert_int_equal(pass(round, GONE - passed, N / 2, 0, &since), 0);
	assert_int_equal(pass(round, GONE - passed, N / 4, 0, &since), 0);
	passed += pass(round, GONE - passed, N / 2, N * 3.0 / 10, &since);
	assert_in_range(passed, GONE * 4 / 5 - 1, GONE * 4 / 5 + 2);
	assert_int_equal(way->n, GONE - passed);
	assert_int_equal(way->n_next, passed);
	assert_int_equal(way->bytes, (GONE - passed) * LENGTH);
	assert_int_equal(way->bytes_next, passed * LENGTH);
	/* more wait than there are: the round is not over for that */
	passed += pass(round, GONE - passed, N / 2, 2 * N, &since);
	assert_in_range(passed, GONE - 2, GONE);
	/* of one place a part cannot pass: it has in so many of all cases */
	for (unsigned i = 0; i < TRIES; i++) {
		since = 0;
		one += pass(round, 1, N * 4 / 5, 0, &since);
	}
	assert_in_range(one, TRIES * 75 / 100, TRIES * 85 / 100);
	sim_round_destroy(round, N);
	free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_place_has_a_packet_a_round),
		cmocka_unit_test(who_comes_back_is_spread),
		cmocka_unit_test(those_that_left_pass_as_the_round_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
