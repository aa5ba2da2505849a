/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "offload/health.h"

#define MS UINT64_C(1000)
#define S (1000 * MS)
#define STAYS HEALTH_STAYS
#define CLOSED HEALTH_CLOSED
#define OPEN HEALTH_OPEN
#define TRYING HEALTH_TRYING

/*
 * At a time: what came since, and what is to be decided then. Between two rows it is asked each 10 ms, and
 * nothing may be decided. A row without a time ends a case.
 */
struct row {
	uint64_t ms;
	unsigned in_hw, failed, proven, well, badly;
	enum health_decision decision;
	enum health_state state;
};

#define MAX_ROWS 16

struct table {
	const char *name;
	struct row rows[MAX_ROWS];
	uint8_t why;
	unsigned opened;
};

static void play(const struct table *table)
{
	struct health health;
	struct health_config config = {0};
	uint64_t ms = 5;

	health_init(&health, &config);
	print_message("   %s\n", table->name);
	for (const struct row *row = table->rows; row->ms; row++) {
		for (; ms < row->ms; ms += 10)
			assert_int_equal(health_turn(&health, ms * MS), STAYS);
		ms = row->ms;
		atomic_store(&health.worker[1].in_hw, row->in_hw);
		for (unsigned i = 0; i < row->failed; i++)
			health_failed(&health.worker[i % 3], OFFLOAD_UNMARKED);
		for (unsigned i = 0; i < row->proven; i++)
			health_proven(&health.worker[i % 2]);
		for (unsigned i = 0; i < row->well; i++)
			health_call(&health, true, 0);
		for (unsigned i = 0; i < row->badly; i++)
			health_call(&health, false, OFFLOAD_STALLED);
		assert_int_equal(health_turn(&health, ms * MS), row->decision);
		assert_int_equal(health_state(&health), row->state);
		assert_int_equal(atomic_load(&health.retry_us) != 0, row->state == OPEN);
	}
	assert_int_equal(atomic_load(&health.opened), table->opened);
	if (table->opened)
		assert_int_equal(atomic_load(&health.why), table->why);
}

static const struct table tables[] = {
	{"fewer than eight failures, of few flows",
		{{100, 10, 0, 10, 10, 0, STAYS, CLOSED}, {200, 3, 7, 0, 0, 0, STAYS, CLOSED},
			{3000, 3, 0, 0, 0, 0, STAYS, CLOSED}},
		0, 0},
	{"eight failures, a quarter",
		{{100, 32, 0, 32, 32, 0, STAYS, CLOSED}, {200, 24, 8, 0, 0, 0, HEALTH_OPENS, OPEN}},
		OFFLOAD_UNMARKED, 1},
	{"eight failures, less than a quarter of those before, though now more",
		{{100, 33, 0, 33, 33, 0, STAYS, CLOSED}, {200, 25, 8, 0, 0, 0, STAYS, CLOSED}}, 0,
		0},
	{"eight failures within a second, in drops",
		{{100, 16, 0, 0, 0, 0, STAYS, CLOSED}, {300, 16, 2, 0, 0, 0, STAYS, CLOSED},
			{500, 16, 2, 0, 0, 0, STAYS, CLOSED}, {700, 16, 2, 0, 0, 0, STAYS, CLOSED},
			{1090, 16, 2, 0, 0, 0, HEALTH_OPENS, OPEN}},
		OFFLOAD_UNMARKED, 1},
	{"the same, more slowly",
		{{100, 16, 0, 0, 0, 0, STAYS, CLOSED}, {300, 16, 2, 0, 0, 0, STAYS, CLOSED},
			{700, 16, 2, 0, 0, 0, STAYS, CLOSED}, {1100, 16, 2, 0, 0, 0, STAYS, CLOSED},
			{1500, 16, 2, 0, 0, 0, STAYS, CLOSED},
			{1900, 16, 2, 0, 0, 0, STAYS, CLOSED}},
		0, 0},
	{"sixteen calls in a row",
		{{100, 0, 0, 0, 1, 2, STAYS, CLOSED}, {200, 0, 0, 0, 0, 13, STAYS, CLOSED},
			{210, 0, 0, 0, 0, 1, HEALTH_OPENS, OPEN}},
		OFFLOAD_STALLED, 1},
	{"fifteen, and one that does well",
		{{100, 0, 0, 0, 1, 15, STAYS, CLOSED}, {200, 0, 0, 0, 1, 15, STAYS, CLOSED},
			{300, 0, 0, 0, 1, 0, STAYS, CLOSED}, {2000, 0, 0, 0, 0, 0, STAYS, CLOSED}},
		0, 0},
	{"two of a second",
		{{1500, 0, 0, 0, 0, 2, STAYS, CLOSED}, {4000, 0, 0, 0, 0, 2, STAYS, CLOSED}}, 0, 0},
	{"three of a second (to an eighth), and none did well",
		{{1000, 0, 0, 0, 5, 0, STAYS, CLOSED}, {1200, 0, 0, 0, 0, 3, STAYS, CLOSED},
			{1920, 0, 0, 0, 0, 0, HEALTH_OPENS, OPEN}},
		OFFLOAD_STALLED, 1},
	{"calls that failed before do not count when it is closed again",
		{{100, 0, 0, 0, 0, 16, HEALTH_OPENS, OPEN},
			{1100, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING},
			{1200, 1, 0, 1, 0, 0, STAYS, TRYING},
			{2200, 1, 0, 0, 0, 0, HEALTH_CLOSES, CLOSED},
			{4000, 1, 0, 0, 0, 1, STAYS, CLOSED}},
		OFFLOAD_STALLED, 1},
	{"tried after a second, and closed when one stayed proven for a second",
		{{100, 8, 0, 0, 0, 0, STAYS, CLOSED}, {200, 8, 8, 0, 0, 0, HEALTH_OPENS, OPEN},
			{300, 2, 6, 0, 3, 3, STAYS, OPEN},
			{1200, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING},
			{5000, 2, 0, 0, 2, 0, STAYS, TRYING}, {5100, 2, 0, 1, 0, 0, STAYS, TRYING},
			{6099, 2, 0, 1, 0, 0, STAYS, TRYING},
			{6100, 2, 0, 0, 0, 0, HEALTH_CLOSES, CLOSED},
			{9000, 100, 0, 0, 0, 0, STAYS, CLOSED}},
		OFFLOAD_UNMARKED, 1},
	{"a canary that fails",
		{{100, 8, 0, 0, 0, 0, STAYS, CLOSED}, {200, 8, 8, 0, 0, 0, HEALTH_OPENS, OPEN},
			{1200, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING},
			{1300, 2, 0, 2, 2, 0, STAYS, TRYING},
			{2200, 1, 1, 0, 0, 0, HEALTH_OPENS, OPEN},
			{4200, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING}},
		OFFLOAD_UNMARKED, 2},
	{"a call that fails for a canary",
		{{100, 8, 0, 0, 0, 0, STAYS, CLOSED}, {200, 8, 8, 0, 0, 0, HEALTH_OPENS, OPEN},
			{1200, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING},
			{1300, 2, 0, 1, 1, 1, HEALTH_OPENS, OPEN},
			{3300, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING}},
		OFFLOAD_STALLED, 2},
	{"what went wrong while it was open is forgotten",
		{{100, 8, 0, 0, 0, 0, STAYS, CLOSED}, {200, 8, 8, 0, 0, 0, HEALTH_OPENS, OPEN},
			{1190, 0, 100, 0, 0, 100, STAYS, OPEN},
			{1200, 0, 0, 0, 0, 0, HEALTH_TRIES, TRYING},
			{1300, 2, 0, 2, 2, 0, STAYS, TRYING},
			{2300, 2, 0, 0, 0, 0, HEALTH_CLOSES, CLOSED},
			{4000, 2, 0, 0, 0, 0, STAYS, CLOSED}},
		OFFLOAD_UNMARKED, 1},
};

static void each_case_by_its_table(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		play(&tables[i]);
}

/* Sixteen in a row, however long that takes; a few of a second are none, nor is one that fails for a canary. */
static void deletes_count_in_a_row_only(void **state)
{
	const struct health_config config = {0};
	struct health health;
	uint64_t now_us = S;

	(void)state;
	health_init(&health, &config);
	atomic_store(&health.worker[0].in_hw, 1);
	for (unsigned i = 0; i < 15; i++) {
		health_delete_failed(&health, OFFLOAD_STALLED, false);
		assert_int_equal(health_turn(&health, now_us += 100 * MS), HEALTH_STAYS);
	}
	/* one call that does well ends the row */
	health_call(&health, true, 0);
	for (unsigned i = 0; i < 15; i++) {
		health_delete_failed(&health, OFFLOAD_STALLED, false);
		assert_int_equal(health_turn(&health, now_us += 3 * S), HEALTH_STAYS);
	}
	health_delete_failed(&health, OFFLOAD_STALLED, false);
	assert_int_equal(health_turn(&health, now_us += 3 * S), HEALTH_OPENS);
	assert_int_equal(atomic_load(&health.why), OFFLOAD_STALLED);
	assert_int_equal(health_turn(&health, now_us += S), HEALTH_TRIES);
	for (unsigned i = 0; i < 20; i++)
		health_delete_failed(&health, OFFLOAD_STALLED, false);
	health_proven(&health.worker[0]);
	assert_int_equal(health_turn(&health, now_us += MS), HEALTH_STAYS);
	assert_int_equal(health_turn(&health, now_us += S), HEALTH_CLOSES);
}

/* A dead port, or one that is full of others' rules: it is restarted, but not for ever. */
static void guesses_restart_more_and_more_seldom(void **state)
{
	const struct health_config config = {0};
	struct health health;
	uint64_t now_us = S;
	uint32_t restarts = 0;

	(void)state;
	health_init(&health, &config);
	for (unsigned i = 1; i <= 40; i++) {
		for (unsigned j = 0; j < 3; j++)
			health_call_guessed(&health, OFFLOAD_REFUSALS);
		health_turn(&health, now_us);
		assert_int_equal(health_state(&health), HEALTH_OPEN);
		assert_int_equal(atomic_load(&health.why), OFFLOAD_REFUSALS);
		while (health_turn(&health, now_us) == HEALTH_STAYS)
			now_us += 100 * MS;
		assert_int_equal(health_calls_fail(&health),
			i == 1 || i == 2 || i == 4 || i == 8 || i == 16 || i == 32);
		restarts += health_calls_fail(&health);
	}
	assert_int_equal(restarts, 6);
	/* what is known counts each time */
	for (unsigned i = 0; i < 3; i++) {
		health_call_guessed(&health, OFFLOAD_REFUSALS);
		health_call(&health, false, OFFLOAD_STALLED);
		health_turn(&health, now_us);
		while (health_turn(&health, now_us) == HEALTH_STAYS)
			now_us += 100 * MS;
		assert_true(health_calls_fail(&health));
	}
	/* and from the beginning when a call did well */
	health_call(&health, true, 0);
	health_call_guessed(&health, OFFLOAD_REFUSALS);
	health_turn(&health, now_us);
	health_call_guessed(&health, OFFLOAD_REFUSALS);
	while (health_turn(&health, now_us) == HEALTH_STAYS)
		now_us += 100 * MS;
	assert_true(health_calls_fail(&health));
}

/* Few rules, that are asked to go again and again: where none of them marks any more, the port is told by that. */
static void a_port_that_lets_nothing_go_is_stuck(void **state)
{
	const struct health_config config = {0};
	struct health health;
	uint64_t now_us = S;

	(void)state;
	for (unsigned in_hw = 0; in_hw < 2; in_hw++) {
		health_init(&health, &config);
		atomic_store(&health.worker[0].in_hw, in_hw);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(health_turn(&health, now_us += S / 2), HEALTH_STAYS);
			health_delete_failed(&health, OFFLOAD_REFUSALS, i > 0);
		}
		/* since the first of them: a second and a half, then two */
		assert_int_equal(health_turn(&health, now_us += S / 4), HEALTH_STAYS);
		enum health_decision then = health_turn(&health, now_us += S / 2);

		assert_int_equal(then, in_hw == 0 ? HEALTH_OPENS : HEALTH_STAYS);
	}
	/* also while it is tried, and no flow is there to be tried with */
	health_init(&health, &config);
	for (unsigned i = 0; i < 4; i++) {
		health_turn(&health, now_us += S / 2);
		health_delete_failed(&health, OFFLOAD_REFUSALS, i > 0);
	}
	assert_int_equal(health_turn(&health, now_us += S), HEALTH_OPENS);
	health_delete_failed(&health, OFFLOAD_REFUSALS, true);
	assert_int_equal(health_turn(&health, now_us += 2 * S), HEALTH_TRIES);
	assert_true(health_calls_fail(&health));
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(health_turn(&health, now_us += S / 2), HEALTH_STAYS);
		health_delete_failed(&health, OFFLOAD_REFUSALS, true);
	}
	assert_int_equal(health_turn(&health, now_us += S), HEALTH_OPENS);
	assert_int_equal(atomic_load(&health.why), OFFLOAD_REFUSALS);
}

/* Opens it, waits, and has it tried; returns how long it took from open to trying. */
static uint64_t go_wrong(struct health *health, uint64_t *now_us)
{
	uint64_t opened_us;

	if (health_state(health) == HEALTH_CLOSED)
		assert_int_equal(health_turn(health, *now_us += MS), HEALTH_STAYS);
	for (unsigned i = 0; i < 8; i++)
		health_failed(&health->worker[15], OFFLOAD_UNSEEN);
	assert_int_equal(health_turn(health, *now_us += MS), HEALTH_OPENS);
	assert_true(atomic_load(&health->since_us) == *now_us);
	opened_us = *now_us;
	while (health_turn(health, *now_us) == HEALTH_STAYS)
		*now_us += MS;
	assert_int_equal(health_state(health), HEALTH_TRYING);
	return *now_us - opened_us;
}

static void do_well(struct health *health, uint64_t *now_us, uint64_t closed_us)
{
	health_proven(&health->worker[0]);
	while (health_turn(health, *now_us) == HEALTH_STAYS)
		*now_us += MS;
	assert_int_equal(health_state(health), HEALTH_CLOSED);
	for (uint64_t end_us = *now_us + closed_us; *now_us < end_us; *now_us += MS)
		assert_int_equal(health_turn(health, *now_us), HEALTH_STAYS);
}

static void the_back_off_doubles_up_to_a_minute(void **state)
{
	const struct health_config config = {.back_off_ms = 500};
	struct health health;
	uint64_t now_us = S;

	(void)state;
	health_init(&health, &config);
	for (unsigned i = 0; i < 12; i++)
		assert_true(go_wrong(&health, &now_us) == (i < 7 ? 500 * MS << i : 60 * S));
	assert_int_equal(atomic_load(&health.opened), 12);
	/* closed for too short: it goes on where it was */
	do_well(&health, &now_us, 59 * S);
	assert_true(go_wrong(&health, &now_us) == 60 * S);
	do_well(&health, &now_us, 61 * S);
	assert_true(go_wrong(&health, &now_us) == 500 * MS);
	assert_true(go_wrong(&health, &now_us) == S);
}

/* Whether the device is to be restarted first. */
static void it_knows_when_calls_fail(void **state)
{
	const struct health_config config = {0};
	struct health health;
	uint64_t now_us = S;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		health_init(&health, &config);
		health_turn(&health, now_us);
		for (unsigned j = 0; j < 8; j++)
			health_failed(&health.worker[0], OFFLOAD_UNSEEN);
		health_call(&health, true, 0);
		assert_int_equal(health_turn(&health, now_us += MS), HEALTH_OPENS);
		if (i & 1)
			health_call(&health, true, 0);
		if (i & 2)
			health_call(&health, false, OFFLOAD_STALLED);
		while (health_turn(&health, now_us) == HEALTH_STAYS)
			now_us += MS;
		assert_int_equal(health_calls_fail(&health), i == 2);
	}
}

static void what_could_not_be_restarted_waits_longer(void **state)
{
	const struct health_config config = {0};
	struct health health;
	uint64_t now_us = S;

	(void)state;
	health_init(&health, &config);
	assert_true(go_wrong(&health, &now_us) == S);
	health_reopen(&health, now_us += 5 * S);
	assert_int_equal(health_state(&health), HEALTH_OPEN);
	assert_true(atomic_load(&health.retry_us) == now_us + 2 * S);
	assert_int_equal(atomic_load(&health.opened), 2);
}

static void every_state_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(health_state_name(HEALTH_CLOSED), "closed");
	assert_string_equal(health_state_name(HEALTH_OPEN), "open");
	assert_string_equal(health_state_name(HEALTH_TRYING), "trying");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case_by_its_table),
		cmocka_unit_test(deletes_count_in_a_row_only),
		cmocka_unit_test(guesses_restart_more_and_more_seldom),
		cmocka_unit_test(a_port_that_lets_nothing_go_is_stuck),
		cmocka_unit_test(the_back_off_doubles_up_to_a_minute),
		cmocka_unit_test(it_knows_when_calls_fail),
		cmocka_unit_test(what_could_not_be_restarted_waits_longer),
		cmocka_unit_test(every_state_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
