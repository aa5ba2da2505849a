/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots whose marks name positions of records. */
#include "slots_scene.h"

static void marks_name_positions_where_they_have_room(void **state)
{
	const struct {
		uint32_t wanted, workers, positions, mark_max, fits;
		bool by_position;
	} cases[] = {
		{65536, 1, 1198372, 0xffffff, 65536, true},
		{65537, 2, 1048576, 0xffffff, 65536, true},
		{65536, 2, 1048577, 0xffffff, 65536, false},
		{65536, 2, 1048576, 0xffffef, 65536, false},
		{65536, 2, 1048560, 0xffffef, 65536, true},
		{65536, 1, 32768, 0xffff, 4096, false},
		{65536, 1, 4096, 0xffff, 65536, true},
		{7, 1, 8193, 0xffff, 7, false},
		{2097152, 16, 1 << 24, UINT32_MAX, 2097152, true},
		{16, 16, 1 << 25, UINT32_MAX, 16, true},
		{16, 16, (1 << 25) + 1, UINT32_MAX, 16, false},
		{16, 16, UINT32_MAX, UINT32_MAX, 16, false},
		/* 7 << 3 and a little */
		{5, 1, 5, 60, 5, true},
		{5, 1, 5, 59, 4, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slots_config config = {.n = cases[i].wanted,
			.n_workers = cases[i].workers,
			.worker = cases[i].workers - 1,
			.mark_max = cases[i].mark_max,
			.positions = cases[i].positions};
		struct slots slots;

		assert_int_equal(slots_fit(&config), cases[i].fits);
		assert_int_equal(slots_init(&slots, &config), 0);
		assert_int_equal(slots.positions == NULL, cases[i].by_position);
		uint32_t slot = slots_take(&slots, &some_key, 3), mark = slots_mark(&slots, slot);

		assert_true(mark <= cases[i].mark_max);
		assert_int_equal(slots_position(&slots, mark), 3);
		if (cases[i].by_position)
			assert_int_equal(slots_number(&slots, mark), 3);
		slots_fini(&slots);
	}
}

/* A record that is another flow's by now: the marks of those before lead nowhere, and are not given. */
static void a_position_has_other_marks_each_time(void **state)
{
	struct slots_config config = {
		.n = 20, .n_workers = 1, .mark_max = (8 << 3) + 7, .positions = 5, .random = 9};
	uint32_t slot[8], mark[8];
	uint64_t now_us = 0;
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	for (unsigned i = 0; i < 8; i++) {
		slot[i] = slots_take(&slots, &some_key, 2);
		mark[i] = slots_mark(&slots, slot[i]);
		slots_set_from(&slots, slot[i], 1, 1);
		for (unsigned j = 0; j <= i; j++) {
			assert_int_equal(slots_position(&slots, mark[j]), j == i ? 2 : FLOW_NONE);
			assert_int_equal(slots_of_mark(&slots, mark[j]), slot[j]);
			assert_true(slots_is_given(&slots, mark[j]));
			assert_true(j == i || mark[j] != mark[i]);
		}
		if (i < 7)
			slots_sever(&slots, slot[i]);
	}
	/* there are no more; but of another position there are */
	assert_int_equal(slots_take(&slots, &some_key, 2), SLOT_NONE);
	assert_int_not_equal(slots_take(&slots, &some_key, 3), SLOT_NONE);
	slots_give_back(&slots, slot[0]);
	assert_int_equal(slots_position(&slots, mark[7]), 2);
	drain(&slots, &now_us);
	assert_false(slots_is_given(&slots, mark[0]));
	slots_sever(&slots, slot[7]);
	slot[0] = slots_take(&slots, &some_key, 2);
	assert_int_equal(slots_mark(&slots, slot[0]), mark[0]);
	assert_int_equal(slots_position(&slots, mark[0]), 2);
	assert_int_equal(slots_take(&slots, &some_key, 2), SLOT_NONE);
	slots_give_back(&slots, slot[0]);
	assert_int_equal(slots_position(&slots, mark[0]), FLOW_NONE);
	slots_fini(&slots);
}

/* A rule that never goes has one generation of its position, and no more. */
static void a_mark_that_stays_is_passed_over(void **state)
{
	struct slots_config config = {
		.n = 20, .n_workers = 1, .mark_max = 0xffffef, .positions = 1080000, .random = 4};
	struct slots slots;
	uint64_t now_us = 0;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	assert_int_equal(slots.last_generation, 7);
	uint32_t stuck = slots_take(&slots, &some_key, 5), mark = slots_mark(&slots, stuck);

	slots_sever(&slots, stuck);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t slot = slots_take(&slots, &some_key, 5);

		assert_int_not_equal(slot, SLOT_NONE);
		assert_int_not_equal(slots_mark(&slots, slot), mark);
		slots_sever(&slots, slot);
		slots_give_back(&slots, slot);
		drain(&slots, &now_us);
		assert_true(slots_is_given(&slots, mark));
	}
	slots_fini(&slots);
}

/* However many marks there are: what has to be looked at for each is bounded. */
static void a_position_has_few_slots_at_a_time(void **state)
{
	struct slots_config config = {
		.n = 100, .n_workers = 1, .mark_max = UINT32_MAX, .positions = 5, .random = 2};
	uint32_t slot = SLOT_NONE, n = 0, first = SLOT_NONE;
	uint64_t now_us = 0;
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	while ((slot = slots_take(&slots, &some_key, 1)) != SLOT_NONE) {
		first = n++ == 0 ? slot : first;
		slots_sever(&slots, slot);
	}
	assert_int_equal(n, 16);
	slots_give_back(&slots, first);
	assert_int_equal(slots_take(&slots, &some_key, 1), SLOT_NONE);
	drain(&slots, &now_us);
	assert_int_not_equal(slots_take(&slots, &some_key, 1), SLOT_NONE);
	assert_int_equal(slots_take(&slots, &some_key, 1), SLOT_NONE);
	slots_fini(&slots);
}

enum { MODEL_SLOTS = 40, MODEL_POSITIONS = 12, MODEL_MARKS = (8 << 4) + MODEL_POSITIONS };

struct position_model {
	struct {
		bool used, severed;
		uint32_t position, mark;
		uint64_t back_us, back_turn;
	} slot[MODEL_SLOTS];
	uint32_t slot_of[MODEL_POSITIONS];
	uint64_t now_us, turn;
};

static bool model_in_force(const struct position_model *model, uint32_t slot)
{
	return model->slot[slot].mark != 0 &&
	       (model->slot[slot].used ||
		       model->now_us - model->slot[slot].back_us < SLOT_DRAIN_US ||
		       model->turn - model->slot[slot].back_turn < SLOT_DRAIN_TURNS);
}

/* Every mark that there can be leads where the model says. */
static void compare(const struct slots *slots, const struct position_model *model)
{
	for (uint32_t mark = 0; mark < MODEL_MARKS; mark++) {
		uint32_t position = FLOW_NONE, slot = SLOT_NONE;

		for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
			if (model->slot[i].mark != mark || !model_in_force(model, i))
				continue;
			/* no two have it at a time */
			assert_int_equal(slot, SLOT_NONE);
			slot = i;
			if (model->slot[i].used && !model->slot[i].severed)
				position = model->slot[i].position;
		}
		assert_int_equal(slots_position(slots, mark), position);
		assert_int_equal(slots_is_given(slots, mark), slot != SLOT_NONE);
		if (slot != SLOT_NONE)
			assert_int_equal(slots_of_mark(slots, mark), slot);
	}
}

static void model_take(struct slots *slots, struct position_model *model, uint32_t position)
{
	uint32_t slot = slots_take(slots, &some_key, position);

	if (slot == SLOT_NONE)
		return;
	uint32_t mark = slots_mark(slots, slot);

	assert_false(model_in_force(model, slot));
	for (uint32_t i = 0; i < MODEL_SLOTS; i++)
		assert_false(model->slot[i].mark == mark && model_in_force(model, i));
	model->slot[slot].used = true;
	model->slot[slot].severed = false;
	model->slot[slot].position = position;
	model->slot[slot].mark = mark;
	model->slot_of[position] = slot;
}

static void model_give_back(struct slots *slots, struct position_model *model, uint32_t slot)
{
	if (!model->slot[slot].used)
		return;
	slots_give_back(slots, slot);
	if (!model->slot[slot].severed)
		model->slot_of[model->slot[slot].position] = SLOT_NONE;
	model->slot[slot].used = false;
	model->slot[slot].back_us = model->now_us;
	model->slot[slot].back_turn = model->turn;
}

static void marks_of_positions_do_what_the_model_does(void **state)
{
	struct slots_config config = {.n = MODEL_SLOTS,
		.n_workers = 1,
		.mark_max = MODEL_MARKS - 1,
		.positions = MODEL_POSITIONS};
	struct position_model model = {.now_us = 1};
	struct draw draw = {.seed = 3};
	struct slots slots;
	uint32_t full = 0;

	(void)state;
	memset(model.slot_of, 0xff, sizeof(model.slot_of));
	assert_int_equal(slots_init(&slots, &config), 0);
	assert_null(slots.positions);
	for (unsigned i = 0; i < 60000; i++) {
		uint32_t position = below(&draw, MODEL_POSITIONS), slot = model.slot_of[position];

		switch (below(&draw, 6)) {
		case 0:
		case 1:
			if (slot == SLOT_NONE)
				model_take(&slots, &model, position);
			full += slot == SLOT_NONE && model.slot_of[position] == SLOT_NONE;
			break;
		case 2:
			if (slot == SLOT_NONE)
				break;
			slots_sever(&slots, slot);
			model.slot[slot].severed = true;
			model.slot_of[position] = SLOT_NONE;
			break;
		case 3:
			model_give_back(&slots, &model, below(&draw, MODEL_SLOTS));
			break;
		default:
			model.now_us += below(&draw, i / 1000 % 2 ? 4000 : 200);
			slots_turn(&slots, model.now_us);
			model.turn++;
			break;
		}
		if (i % 8 == 0)
			compare(&slots, &model);
	}
	assert_true(full > 100);
	slots_fini(&slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_name_positions_where_they_have_room),
		cmocka_unit_test(a_position_has_other_marks_each_time),
		cmocka_unit_test(a_mark_that_stays_is_passed_over),
		cmocka_unit_test(a_position_has_few_slots_at_a_time),
		cmocka_unit_test(marks_of_positions_do_what_the_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
