/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: their numbers, generations and marks, how they drain, and who has which. */
#include "slots_scene.h"

static void a_mark_has_room_for_number_and_generations(void **state)
{
	const struct {
		uint32_t wanted, workers, mark_max, fits;
	} cases[] = {
		{65536, 1, UINT32_MAX, 65536},
		{2097152, 16, UINT32_MAX, 2097152},
		{65536, 1, 0xffffef, 65536},
		{2097152, 2, 0xffffef, 1048576},
		{65536, 1, 0xffff, 4096},
		{65536, 1, 0xffef, 4096},
		{100, 3, 0xffff, 99},
		{4097, 1, 0xffff, 4096},
		{5, 16, 0xffff, 16},
		{1, 1, 16, 1},
		{1, 1, 15, 0},
		{8, 2, 15, 0},
		{8, 2, 17, 2},
		{9, 1, 100, 8},
		/* 8 << 4 and a little: more numbers in four bits than in three */
		{16, 1, 138, 11},
		{0, 1, UINT32_MAX, 0},
		{UINT32_MAX, 1, UINT32_MAX, 1u << 28},
		{10, 0, UINT32_MAX, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slots_config config = {
			.n = cases[i].wanted,
			.n_workers = cases[i].workers,
			.mark_max = cases[i].mark_max,
		};
		struct slots slots;

		assert_int_equal(slots_fit(&config), cases[i].fits);
		if (cases[i].fits == 0) {
			assert_int_equal(slots_init(&slots, &config), -EINVAL);
			slots_fini(&slots);
		}
	}
	slots_fini(&(struct slots){0});
}

/* What packets' marks are read by: any number that a mark can have is one of the tags. */
static bool names(const struct slots *slots, uint32_t mark)
{
	const uint32_t number = mark & ((1u << slots->number_bits) - 1);

	return slots_form(slots, slots_tags(slots, 0)[number], mark, 0) <= SLOT_FORM &&
	       slots_form(slots, slots_tags(slots, 0)[number], mark, 1) <= SLOT_FORM;
}

/* Whoever made a mark, it names nobody where none was given: none of another generation, nor of none. */
static void what_was_not_given_names_nobody(void **state)
{
	const struct slots_config config = {
		.n = 100, .n_workers = 2, .worker = 1, .mark_max = UINT32_MAX, .random = 1};
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	slots_turn(&slots, 1);

	const uint32_t given = mark_of(&slots, slots_take(&slots, &some_key, 7));
	const uint32_t numbers = 1u << slots.number_bits;

	for (uint32_t number = 0; number < numbers; number++) {
		for (uint32_t generation = 0; generation <= UINT16_MAX; generation++) {
			const uint32_t mark = generation * numbers + number;

			assert_int_equal(names(&slots, mark), mark == given);
		}
		assert_false(names(&slots, UINT32_MAX - number));
	}
	slots_fini(&slots);
}

/* Of each protocol and end, for packets of both sides. */
static void the_form_says_from_which_end(void **state)
{
	const struct slots_config config = {
		.n = 10, .n_workers = 1, .mark_max = UINT32_MAX, .random = 1};
	const struct flow_key keys[] = {{.proto = 17}, {.proto = 6}};
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	slots_turn(&slots, 1);
	for (unsigned i = 0; i < 8; i++) {
		const unsigned tcp = i & 1, side = i >> 1 & 1, from = i >> 2;
		const uint32_t slot = slots_take(&slots, &keys[tcp], i);
		const uint32_t mark = mark_of(&slots, slot);
		const uint16_t *tag =
			&slots_tags(&slots, 0)[mark & ((1u << slots.number_bits) - 1)];

		for (unsigned again = 0; again < 2; again++) {
			const unsigned end = from ^ again;

			slots_set_from(&slots, slot, side, end);
			assert_int_equal(slots_form(&slots, *tag, mark, side),
				tcp * SLOT_TCP + end * SLOT_FROM);
			/* no end has rules at both sides */
			assert_int_equal(slots_form(&slots, *tag, mark, !side),
				tcp * SLOT_TCP + !end * SLOT_FROM);
		}
	}
	slots_fini(&slots);
}

/*
 * Of more than two ports each has tags of its own: a mark leads to its flow where packets of an end are to have it, and
 * says which end.
 */
static void a_port_of_many_knows_the_end(void **state)
{
	enum { PORTS = 4 };
	const struct slots_config config = {
		.n = 10, .n_workers = 2, .worker = 1, .n_ports = PORTS, .mark_max = UINT32_MAX};
	/* by place, which end has its mark there: the steps set one each */
	static const struct {
		unsigned place, from;
		int after[PORTS];
	} steps[] = {
		{0, 1, {1, -1, -1, -1}},
		{3, 0, {1, -1, -1, 0}},
		{2, 0, {1, -1, 0, -1}},
		{3, 1, {-1, -1, 0, 1}},
		{3, 1, {-1, -1, 0, 1}},
		/* the other end's rule there was gone */
		{3, 0, {-1, -1, -1, 0}},
		{1, 1, {-1, 1, -1, 0}},
	};
	const struct flow_key key = {.proto = 6};
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	slots_turn(&slots, 1);
	const uint32_t slot = slots_take(&slots, &key, 7);
	const uint32_t mark = mark_of(&slots, slot);
	const uint32_t number = mark & ((1u << slots.number_bits) - 1);

	for (unsigned i = 0; i < RTE_DIM(steps); i++) {
		slots_set_from(&slots, slot, steps[i].place, steps[i].from);
		for (unsigned place = 0; place < PORTS; place++) {
			const uint16_t tag = slots_tags(&slots, place)[number];
			const uint64_t form = slots_form(&slots, tag, mark, place);

			if (steps[i].after[place] < 0)
				assert_true(form > SLOT_FORM);
			else
				assert_int_equal(form,
					SLOT_TCP + (steps[i].after[place] != 0 ? SLOT_FROM : 0));
		}
		assert_int_equal(slots_position(&slots, mark), 7);
	}
	slots_sever(&slots, slot);
	for (unsigned place = 0; place < PORTS; place++)
		assert_int_equal(slots_tags(&slots, place)[number], 0);
	assert_int_equal(slots_position(&slots, mark), FLOW_NONE);
	slots_give_back(&slots, slot);
	slots_fini(&slots);
}

/* All workers' together are the wire's numbers, each once, and a mark is known by its own worker alone. */
static void workers_share_the_numbers(void **state)
{
	const unsigned workers = 5;
	struct slots slots[5];
	bool seen[1000] = {false};

	(void)state;
	for (unsigned w = 0; w < workers; w++) {
		struct slots_config config = {.n = 1000,
			.n_workers = workers,
			.worker = w,
			.mark_max = UINT32_MAX,
			.random = 1};

		assert_int_equal(slots_init(&slots[w], &config), 0);
		assert_int_equal(slots[w].n, 200);
	}
	for (unsigned w = 0; w < workers; w++) {
		slots_turn(&slots[w], 1);
		for (unsigned i = 0; i < 200; i++) {
			uint32_t slot = slots_take(&slots[w], &some_key, 7 * i);
			uint32_t mark = mark_of(&slots[w], slot);

			assert_true(slots_place(&slots[w], slot) < 1000);
			assert_false(seen[slots_place(&slots[w], slot)]);
			seen[slots_place(&slots[w], slot)] = true;
			for (unsigned o = 0; o < workers; o++) {
				assert_int_equal(slots_position(&slots[o], mark),
					o == w ? 7 * i : FLOW_NONE);
				assert_int_equal(
					slots_of_mark(&slots[o], mark), o == w ? slot : SLOT_NONE);
				assert_int_equal(names(&slots[o], mark), o == w);
			}
		}
		assert_int_equal(slots_take(&slots[w], &some_key, 1), SLOT_NONE);
		assert_int_equal(slots[w].n_used, 200);
	}
	for (unsigned w = 0; w < workers; w++)
		slots_fini(&slots[w]);
}

static void a_slot_is_empty_but_for_key_and_position(void **state)
{
	struct slots_config config = {.n = 1, .n_workers = 1, .mark_max = 1000};
	struct slots slots;
	uint64_t now_us = 0;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t slot = slots_take(&slots, &some_key, 5);

		assert_int_equal(slot, 0);
		assert_true(flow_key_equal(&slots_slot(&slots, slot)->key, &some_key));
		assert_int_equal(slots_slot(&slots, slot)->position, 5);
		assert_true(slots_slot(&slots, slot)->reported == 0);
		for (unsigned j = 0; j < sizeof(slots.slots->direction); j++)
			assert_int_equal(((uint8_t *)slots_slot(&slots, slot)->direction)[j], 0);
		slots_slot(&slots, slot)->reported = 9;
		memset(slots_slot(&slots, slot)->direction, 0xff, sizeof(slots.slots->direction));
		slots_sever(&slots, slot);
		assert_int_equal(slots_position(&slots, mark_of(&slots, slot)), FLOW_NONE);
		assert_int_equal(slots_slot(&slots, slot)->position, FLOW_NONE);
		/* what is asked about it can still be told */
		assert_true(flow_key_equal(&slots_slot(&slots, slot)->key, &some_key));
		slots_give_back(&slots, slot);
		drain(&slots, &now_us);
	}
	slots_fini(&slots);
}

/* Not before both the time and the turns have passed. */
static void a_slot_drains_before_it_is_given_again(void **state)
{
	struct slots_config config = {.n = 1, .n_workers = 1, .mark_max = 1000};
	struct slots slots;

	(void)state;
	/* many short turns, then few long ones */
	for (unsigned round = 0; round < 2; round++) {
		const uint64_t step_us = round ? SLOT_DRAIN_US : 10;
		const unsigned turns = round ? SLOT_DRAIN_TURNS : SLOT_DRAIN_US / 10;
		uint64_t now_us = 5;

		assert_int_equal(slots_init(&slots, &config), 0);
		slots_turn(&slots, now_us);
		uint32_t slot = slots_take(&slots, &some_key, 0), mark = mark_of(&slots, slot);

		assert_true(slots_is_given(&slots, mark));
		slots_sever(&slots, slot);
		assert_true(slots_is_given(&slots, mark));
		assert_false(slots_is_given(&slots, mark + (1u << slots.number_bits)));
		slots_give_back(&slots, slot);
		assert_int_equal(slots.n_draining, 1);
		assert_int_equal(slots.n_used, 0);
		for (unsigned i = 0; i < turns; i++) {
			assert_int_equal(slots_take(&slots, &some_key, 0), SLOT_NONE);
			assert_int_equal(slots.n_draining, 1);
			/* what was in flight has it yet */
			assert_true(slots_is_given(&slots, mark));
			slots_turn(&slots, now_us += step_us);
		}
		assert_false(slots_is_given(&slots, mark));
		assert_int_equal(slots.n_draining, 0);
		assert_int_equal(slots_take(&slots, &some_key, 0), 0);
		slots_fini(&slots);
	}
}

/* Generations: in the mark's bounds, at least eight before one comes again, and elsewhere in another run. */
static void generations_go_round(void **state)
{
	const uint32_t maxima[] = {8 << 4, 143, 1000, 0xffff, 0xffef, 0xffffff, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
		struct slots_config config = {
			.n = 16, .n_workers = 1, .mark_max = maxima[i], .random = i};
		struct slots slots;
		uint64_t now_us = 0;
		uint32_t last[16][SLOT_GENERATIONS] = {{0}};

		assert_int_equal(slots_init(&slots, &config), 0);
		for (unsigned round = 0; round < 100; round++) {
			for (unsigned j = 0; j < slots.n; j++) {
				uint32_t slot = slots_take(&slots, &some_key, j);
				uint32_t mark = mark_of(&slots, slot);

				/* in the order in which they came back */
				assert_int_equal(slot, j);
				assert_true(mark >= 1 && mark <= maxima[i]);
				assert_int_equal(slots_of_mark(&slots, mark), slot);
				for (unsigned k = 0; k < SLOT_GENERATIONS - 1; k++)
					assert_true(last[j][k] != mark);
				for (unsigned k = 0; k < SLOT_GENERATIONS && round > 0; k++)
					assert_int_equal(
						slots_position(&slots, last[j][k]), FLOW_NONE);
				memmove(&last[j][1], &last[j][0],
					(SLOT_GENERATIONS - 2) * sizeof(last[j][0]));
				last[j][0] = mark;
			}
			for (unsigned j = 0; j < slots.n; j++)
				slots_give_back(&slots, j);
			assert_int_equal(slots_position(&slots, last[0][0]), FLOW_NONE);
			drain(&slots, &now_us);
		}
		slots_fini(&slots);
	}
}

static void where_they_begin_differs_from_run_to_run(void **state)
{
	struct slots slots[2];
	unsigned same = 0, alike = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct slots_config config = {
			.n = 4096, .n_workers = 1, .mark_max = 0xffffff, .random = 100 + i};

		assert_int_equal(slots_init(&slots[i], &config), 0);
	}
	uint32_t before = 0;

	for (unsigned i = 0; i < 4096; i++) {
		uint32_t slot = slots_take(&slots[0], &some_key, 0);

		slots_take(&slots[1], &some_key, 0);
		same += mark_of(&slots[0], slot) == mark_of(&slots[1], slot);
		alike += mark_of(&slots[0], slot) >> 12 == before;
		before = mark_of(&slots[0], slot) >> 12;
	}
	/* one of 4,095 would be expected */
	assert_true(same < 16 && alike < 16);
	slots_fini(&slots[0]);
	slots_fini(&slots[1]);
}

struct model {
	bool used;
	uint64_t back_us, back_turn, order;
};

/* Random taking and giving back: who has a slot keeps it, and it comes in order and not too early. */
static void it_does_what_the_model_does(void **state)
{
	struct slots_config config = {
		.n = 300, .n_workers = 3, .worker = 1, .mark_max = 0xffff, .random = 5};
	struct slots slots;
	struct model model[100] = {{false}};
	struct draw draw = {.seed = 10};
	uint64_t now_us = 0, turn = 0, order = 1, none = 0;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	assert_int_equal(slots.n, 100);
	for (unsigned i = 0; i < 300000; i++) {
		unsigned what = below(&draw, i / 10000 % 2 ? 40 : 5);

		if (what == 0) {
			uint32_t slot = slots_take(&slots, &some_key, i);

			if (slot == SLOT_NONE) {
				none++;
				/* none that should be free by now; one that waits is looked at next turn */
				for (unsigned j = 0; j < 100; j++)
					assert_true(
						model[j].used ||
						now_us - model[j].back_us < SLOT_DRAIN_US ||
						turn - model[j].back_turn < SLOT_DRAIN_TURNS + 2);
				continue;
			}
			assert_false(model[slot].used);
			assert_true(model[slot].order == 0 ||
				    (now_us - model[slot].back_us >= SLOT_DRAIN_US &&
					    turn - model[slot].back_turn >= SLOT_DRAIN_TURNS));
			for (unsigned j = 0; j < 100; j++)
				assert_true(model[j].used || model[j].order >= model[slot].order);
			model[slot].used = true;
		} else if (what == 1) {
			uint32_t slot = below(&draw, 100);

			if (!model[slot].used)
				continue;
			slots_give_back(&slots, slot);
			model[slot] = (struct model){
				.back_us = now_us, .back_turn = turn, .order = order++};
		} else {
			slots_turn(&slots, now_us += below(&draw, 400));
			turn++;
		}
		uint32_t used = 0;

		for (unsigned j = 0; j < 100; j++)
			used += model[j].used;
		assert_int_equal(slots.n_used, used);
		assert_true(slots.n_draining <= 100 - used);
	}
	assert_true(none > 1000);
	slots_fini(&slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_has_room_for_number_and_generations),
		cmocka_unit_test(what_was_not_given_names_nobody),
		cmocka_unit_test(the_form_says_from_which_end),
		cmocka_unit_test(a_port_of_many_knows_the_end),
		cmocka_unit_test(workers_share_the_numbers),
		cmocka_unit_test(a_slot_is_empty_but_for_key_and_position),
		cmocka_unit_test(a_slot_drains_before_it_is_given_again),
		cmocka_unit_test(generations_go_round),
		cmocka_unit_test(where_they_begin_differs_from_run_to_run),
		cmocka_unit_test(it_does_what_the_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
