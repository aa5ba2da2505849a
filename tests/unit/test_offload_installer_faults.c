/* SPDX-License-Identifier: BSD-3-Clause */
/* The installer with a NIC that is slow, forgets to answer, fails, or has to be restarted. */
#include "installer_world.h"

/* The clock runs so fast: a second of it is 200 ms, five are one. A thread may be put off for some tenths of a second. */
#define FAST 5
/* Where nothing is due at any time. */
#define FASTER 50

static void hold_answers(bool hold)
{
	lock();
	fake.holds_answers = hold;
	unlock();
}

static uint64_t timed_out(void)
{
	return installer_counters(world)->by_answer[4];
}

/* Late, but not lost: told once, not answered before the NIC does. */
static void a_late_answer_is_a_stall(void **state)
{
	struct installer_answer answer;

	(void)state;
	world_begin(true, 1, FAST, false);
	for (unsigned episode = 1; episode <= 2; episode++) {
		uint64_t before = timed_out();

		hold_answers(true);
		assert_true(world_ask(0, INSTALLER_INSERT, 2 * episode));
		assert_true(world_ask(0, INSTALLER_INSERT, 2 * episode + 1));
		world_until(installer_counters(world)->under_way == 2);
		assert_true(installer_counters(world)->oldest_us > 0);
		world_until(timed_out() == before + 2);
		assert_int_equal(installer_answers(world, 0, &answer, 1), 0);
		hold_answers(false);
		assert_int_equal(world_answer(0).result, 0);
		answer = world_answer(0);
		assert_int_equal(answer.result, 0);
		assert_true(answer.took_us >= 1000000);
		world_change(CHANGE_STALLED, OFFLOAD_STALLED);
		/* an answer in time ends the episode */
		world_do(0, INSTALLER_REMOVE, 2 * episode, 0);
		world_no_change();
	}
	assert_int_equal(timed_out(), 4);
	assert_int_equal(installer_counters(world)->failed[INSTALLER_INSERT], 0);
	world_end();
}

static void a_blocking_call_can_be_one(void **state)
{
	(void)state;
	world_begin(false, 1, FAST, false);
	atomic_store(&fake.shut, true);
	assert_true(world_ask(0, INSTALLER_REMOVE, 1));
	world_until(atomic_load(&fake.at_gate) == 1);
	uint64_t since_us = installer_counters(world)->oldest_us;

	/* seen while it lasts */
	assert_true(since_us > 0);
	assert_int_equal(installer_counters(world)->under_way, 1);
	world_until(tsc_clock_us(&world_clock, rte_rdtsc()) > since_us + 1100000);
	assert_int_equal(timed_out(), 0);
	atomic_store(&fake.shut, false);
	assert_int_equal(world_answer(0).result, 0);
	assert_int_equal(timed_out(), 1);
	world_change(CHANGE_STALLED, OFFLOAD_STALLED);
	world_do(0, INSTALLER_REMOVE, 1, 0);
	world_until(installer_counters(world)->oldest_us == 0);
	assert_int_equal(timed_out(), 1);
	world_no_change();
	world_end();
}

/* An insert without an answer: given up after five seconds, taken back, and its place is good for others. */
static void what_is_never_answered_is_given_up(void **state)
{
	struct installer_answer answer;

	(void)state;
	world_begin(true, 1, FAST, false);
	lose_one_in(1);
	assert_true(world_ask(0, INSTALLER_INSERT, 7));
	world_until(fake_calls() >= 1);
	lose_one_in(0);
	answer = world_answer(0);
	assert_int_equal(answer.result, -EIO);
	assert_int_equal(answer.op, INSTALLER_INSERT);
	/* no driver has refused it */
	assert_int_equal(answer.reason, OFFLOAD_STALLED);
	assert_true(answer.took_us >= 5000000);
	assert_int_equal(timed_out(), 1);
	assert_int_equal(installer_counters(world)->by_answer[3], 1);
	world_until(fake_calls() >= 2);
	assert_int_equal(fake.log[1].op, PROVIDER_REMOVE);
	assert_int_equal(fake.log[1].place, 7);
	/* its removal is the installer's own matter */
	world_until(world_is_put(7));
	assert_int_equal(installer_counters(world)->done[INSTALLER_REMOVE], 0);
	assert_int_equal(installer_counters(world)->rules, 1);
	/* what is told now is nobody's */
	fake_tell(7, PROVIDER_INSERT, -EIO);
	fake_tell(7, PROVIDER_REMOVE, 0);
	fake_tell(8, PROVIDER_INSERT, 0);
	fake_tell(FAKE_PLACES + 5, PROVIDER_INSERT, 0);
	world_until(installer_counters(world)->under_way == 0);
	world_do(0, INSTALLER_COUNT, 7, 0);
	assert_int_equal(installer_counters(world)->rules, 1);
	assert_int_equal(installer_answers(world, 0, &answer, 1), 0);
	world_end();
}

/* Not even the removal is answered: others are refused the place, until it is. */
static void a_place_that_is_not_known_to_be_empty_is_not_given(void **state)
{
	(void)state;
	world_begin(true, 1, FAST, false);
	lose_one_in(1);
	assert_true(world_ask(0, INSTALLER_INSERT, 7));
	assert_int_equal(world_answer(0).result, -EIO);
	world_until(fake_calls() >= 2);
	world_do(0, INSTALLER_INSERT, 7, -EAGAIN);
	assert_int_equal(world_do(0, INSTALLER_REMOVE, 7, -EAGAIN).reason, OFFLOAD_STALLED);
	/* the removal is given up too; the next who wants the place has it asked for again */
	world_until(installer_counters(world)->under_way == 0);
	lock();
	fake.lose_one_in = 0;
	fake.holds_answers = true;
	unlock();
	world_do(0, INSTALLER_INSERT, 7, -EAGAIN);
	/* or it was before, as it is now and then */
	assert_true(fake_calls() >= 3);
	assert_int_equal(fake.log[2].op, PROVIDER_REMOVE);
	hold_answers(false);
	/* where this took long the removal was given up once more, and is asked for again */
	world_until(world_is_put(7));
	world_end();
}

static void ask_all_and_lose_all(uint32_t from)
{
	for (uint32_t i = 0; i < INSTALLER_UNDER_WAY; i++) {
		assert_true(world_ask(0, INSTALLER_INSERT, from + 2 * i));
		assert_true(world_ask(1, INSTALLER_INSERT, from + 2 * i + 1));
	}
	for (uint32_t i = 0; i < 2 * INSTALLER_UNDER_WAY;) {
		struct installer_answer answer = world_answer(i % 2);

		/* the breaker opens and tries meanwhile */
		if (answer.result == -EAGAIN) {
			assert_true(world_ask(i % 2, INSTALLER_INSERT, answer.place));
			fake_pause();
			continue;
		}
		assert_int_equal(answer.result, -EIO);
		i++;
	}
}

/* Nothing at all is answered: what is taken back at a time is bounded, and nothing is forgotten. */
static void more_than_can_be_taken_back_waits(void **state)
{
	(void)state;
	world_begin(true, 2, FASTER, false);
	fake.no_counters = true;
	lose_one_in(1);
	for (unsigned round = 0; round < 2; round++) {
		ask_all_and_lose_all(round * 2 * INSTALLER_UNDER_WAY);
		/* the number is told after the last answer: it has been when another one is given */
		assert_true(world_ask(0, INSTALLER_COUNT, 0));
		world_answer(0);
		/* half of them, and the one that is told just now */
		assert_true(installer_counters(world)->under_way <= 1024 + 1);
		assert_true(fake_calls_of(PROVIDER_REMOVE) > 0);
	}
	lose_one_in(0);
	for (uint32_t i = 0; i < FAKE_PLACES; i += 97) {
		struct installer_answer answer;

		do {
			assert_true(world_ask(0, INSTALLER_INSERT, i));
			answer = world_answer(0);
			fake_pause();
		} while (answer.result == -EAGAIN);
		assert_int_equal(answer.result, 0);
	}
	world_end();
}

/* A delete that was given up is asked for again by who wants it. */
static void a_delete_can_be_asked_for_again(void **state)
{
	(void)state;
	world_begin(true, 1, FAST, false);
	world_do(0, INSTALLER_INSERT, 7, 0);
	lose_one_in(1);
	world_do(0, INSTALLER_REMOVE, 7, -EIO);
	assert_int_equal(installer_counters(world)->rules, 1);
	lose_one_in(0);
	world_do(0, INSTALLER_REMOVE, 7, 0);
	assert_int_equal(installer_counters(world)->rules, 0);
	assert_int_equal(fake_calls(), 3);
	world_end();
}

/* Of thousands each twentieth is lost, and answers come in any order: each request is answered once. */
static void every_request_is_answered_once(void **state)
{
	static uint8_t answered[FAKE_PLACES];
	unsigned lost = 0, asked = 0, n = 0;

	(void)state;
	memset(answered, 0, sizeof(answered));
	world_begin(true, 2, FASTER, false);
	lose_one_in(20);
	while (n < FAKE_PLACES) {
		if (asked < FAKE_PLACES && world_ask(asked % 2, INSTALLER_INSERT, asked))
			asked++;
		for (unsigned worker = 0; worker < 2; worker++) {
			struct installer_answer answer;

			if (installer_answers(world, worker, &answer, 1) == 0)
				continue;
			assert_int_equal(answer.place % 2, worker);
			assert_int_equal(answered[answer.place]++, 0);
			assert_true(answer.result == 0 || answer.result == -EIO ||
				    answer.result == -EAGAIN);
			lost += answer.result == -EIO;
			n++;
		}
	}
	assert_true(lost > 0);
	world_end();
}

/* Opened by calls that fail; what waits is not asked; tried again by and by, and closed. */
static void calls_that_fail_open_the_breaker(void **state)
{
	struct health *health;
	uint8_t reason;

	(void)state;
	world_begin(false, 1, FAST, false);
	health = installer_health(world);
	world_do(0, INSTALLER_INSERT, 99, 0);
	fake_set_result(PROVIDER_INSERT, -EIO);
	atomic_store(&fake.shut, true);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(world_ask(0, INSTALLER_INSERT, i + 100));
	world_until(atomic_load(&fake.at_gate) == 1);
	atomic_store(&fake.shut, false);
	unsigned failed = 0, breaker = 0;

	for (unsigned i = 0; i < 1000; i++) {
		struct installer_answer answer = world_answer(0);

		failed += answer.result == -EIO;
		breaker += answer.result == -EAGAIN && answer.reason == OFFLOAD_BREAKER;
	}
	reason = world_refusal(EIO);
	assert_true(reason != 0);
	assert_int_equal(failed + breaker, 1000);
	assert_true(failed >= 16);
	/* within the time of a look, some thousands are answered at most */
	world_until(health_state(health) != HEALTH_CLOSED);
	world_change(CHANGE_BREAKER_OPEN, reason);
	/* deletes go on */
	world_do(0, INSTALLER_REMOVE, 99, 0);
	world_change(CHANGE_BREAKER_TRIES, reason);
	assert_int_equal(health_state(health), HEALTH_TRYING);
	/* a canary that fails */
	world_do(0, INSTALLER_INSERT, 5, -EIO);
	world_change(CHANGE_BREAKER_OPEN, reason);
	fake_set_result(PROVIDER_INSERT, 0);
	world_change(CHANGE_BREAKER_TRIES, reason);
	world_do(0, INSTALLER_INSERT, 5, 0);
	health_proven(&health->worker[0]);
	world_change(CHANGE_BREAKER_CLOSED, 0);
	assert_int_equal(health_state(health), HEALTH_CLOSED);
	world_no_change();
	world_end();
}

static void inserts_that_wait_while_it_is_open_are_not_asked(void **state)
{
	struct health *health;

	(void)state;
	/* no faster: it is to stay open meanwhile */
	world_begin(false, 1, 1, false);
	health = installer_health(world);
	for (unsigned i = 0; i < 8; i++)
		health_failed(&health->worker[0], OFFLOAD_UNMARKED);
	world_until(health_state(health) == HEALTH_OPEN);
	assert_int_equal(world_do(0, INSTALLER_INSERT, 1, -EAGAIN).reason, OFFLOAD_BREAKER);
	/* which is no answer of the NIC's */
	assert_int_equal(installer_counters(world)->by_answer[2], 0);
	world_do(0, INSTALLER_REMOVE, 1, 0);
	assert_int_equal(fake_calls(), 1);
	world_change(CHANGE_BREAKER_OPEN, OFFLOAD_UNMARKED);
	world_end();
}

/* The port is restarted before it is tried again: what was under way is answered, and all rules are gone. */
static void a_dead_port_is_restarted(void **state)
{
	struct health *health;
	uint8_t reason;

	(void)state;
	world_begin(true, 1, FAST, true);
	health = installer_health(world);
	for (unsigned i = 0; i < 4; i++)
		world_do(0, INSTALLER_INSERT, i, 0);
	hold_answers(true);
	assert_true(world_ask(0, INSTALLER_REMOVE, 0));
	world_until(fake_calls() == 5);
	atomic_store(&world_restart_result, -ENODEV);
	fake_set_result(PROVIDER_REMOVE, -EIO);
	for (unsigned i = 0; i < 16; i++)
		world_do(0, INSTALLER_REMOVE, i + 1, -EIO);
	reason = world_refusal(EIO);
	world_change(CHANGE_BREAKER_OPEN, reason);
	/* it does not come up at the first time; the delete may be a stall by then */
	struct offload_change change = {0};

	world_until(installer_changes(world, &change, 1) == 1 && change.kind != CHANGE_STALLED);
	assert_int_equal(change.kind, CHANGE_BREAKER_OPEN);
	assert_int_equal(change.reason, world_refusal(ENODEV));
	assert_int_equal(fake.n_resets, 0);
	atomic_store(&world_restart_result, 0);
	fake_set_result(PROVIDER_REMOVE, 0);
	world_until(installer_changes(world, &change, 1) == 1 && change.kind != CHANGE_STALLED);
	assert_int_equal(change.kind, CHANGE_RESET);
	world_change(CHANGE_BREAKER_TRIES, world_refusal(ENODEV));
	assert_int_equal(atomic_load(&world_restarts), 2);
	assert_int_equal(fake.n_resets, 1);
	assert_int_equal(installer_counters(world)->rules, 0);
	assert_int_equal(world_answer(0).result, -EIO);
	hold_answers(false);
	world_do(0, INSTALLER_INSERT, 0, 0);
	health_proven(&health->worker[0]);
	world_change(CHANGE_BREAKER_CLOSED, 0);
	world_end();
}

/* Completions that tell no more than an error: it is the port where no rule is in it, and else a full table. */
static void a_port_that_does_not_say_why_is_restarted(void **state)
{
	struct health *health;
	uint8_t reason;

	(void)state;
	world_begin(false, 1, FAST, true);
	health = installer_health(world);
	lock();
	fake.guesses = true;
	unlock();
	world_do(0, INSTALLER_INSERT, 0, 0);
	fake_set_result(PROVIDER_INSERT, -ENOSPC);
	for (unsigned i = 1; i <= 100; i++)
		world_do(0, INSTALLER_INSERT, i, -ENOSPC);
	world_no_change();
	reason = world_refusal(ENOSPC);
	/* nobody said that it is full */
	assert_int_equal(installer_counters(world)->by_answer[0], 0);
	assert_int_equal(installer_counters(world)->by_answer[3], 100);
	world_do(0, INSTALLER_REMOVE, 0, 0);
	for (unsigned i = 1; i <= 100 && health_state(health) == HEALTH_CLOSED; i++) {
		assert_true(world_ask(0, INSTALLER_INSERT, i));
		world_answer(0);
	}
	world_change(CHANGE_BREAKER_OPEN, reason);
	world_change(CHANGE_RESET, 0);
	world_change(CHANGE_BREAKER_TRIES, reason);
	assert_int_equal(atomic_load(&world_restarts), 1);
	world_end();
}

/* Where calls do well there is nothing to restart. */
static void a_port_that_answers_is_not_restarted(void **state)
{
	struct health *health;

	(void)state;
	world_begin(false, 1, FAST, true);
	health = installer_health(world);
	world_do(0, INSTALLER_INSERT, 1, 0);
	for (unsigned i = 0; i < 8; i++)
		health_failed(&health->worker[0], OFFLOAD_UNMARKED);
	world_change(CHANGE_BREAKER_OPEN, OFFLOAD_UNMARKED);
	world_do(0, INSTALLER_REMOVE, 1, 0);
	world_change(CHANGE_BREAKER_TRIES, OFFLOAD_UNMARKED);
	assert_int_equal(atomic_load(&world_restarts), 0);
	assert_int_equal(fake.n_resets, 0);
	world_end();
}

/*
 * Not one packet of a kind ever came marked: other actions for these. One did: these actions are right, and
 * something else is not. Of a kind that nobody asked in nothing is known.
 */
static void actions_that_never_mark_are_changed(void **state)
{
	static const struct {
		bool proven[2], unseen[2]; /* IPv6 TCP, IPv4 UDP */
		bool changed[2];
	} cases[] = {
		{{false, false}, {true, true}, {true, true}},
		{{true, true}, {true, true}, {false, false}},
		{{false, true}, {true, true}, {true, false}},
		{{true, false}, {false, true}, {false, true}},
		{{false, false}, {false, true}, {false, true}},
	};
	static const enum provider_kind kinds[] = {PROVIDER_IPV6_TCP, PROVIDER_IPV4_UDP};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		world_begin(false, 1, FAST, false);
		struct health_worker *worker = &installer_health(world)->worker[0];

		for (unsigned k = 0; k < 2; k++) {
			if (cases[i].proven[k])
				health_kind_proven(worker, kinds[k]);
			if (cases[i].unseen[k])
				health_kind_unseen(worker, kinds[k]);
		}
		for (unsigned n = 0; n < 8; n++)
			health_failed(worker, OFFLOAD_UNSEEN);
		world_change(CHANGE_BREAKER_OPEN, OFFLOAD_UNSEEN);
		if (cases[i].changed[0] || cases[i].changed[1])
			world_change(CHANGE_SHAPE, OFFLOAD_UNSEEN);
		world_change(CHANGE_BREAKER_TRIES, OFFLOAD_UNSEEN);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(fake.n_shapes[kinds[k]], cases[i].changed[k]);
		/* a canary of the other kind that fails says no more of this one */
		health_failed(worker, OFFLOAD_UNMARKED);
		world_change(CHANGE_BREAKER_OPEN, OFFLOAD_UNMARKED);
		world_change(CHANGE_BREAKER_TRIES, OFFLOAD_UNMARKED);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(fake.n_shapes[kinds[k]], cases[i].changed[k]);
		world_end();
	}
}

/* A rule that cannot be taken out is asked for twice a second: that is no reason to give up all others. */
static void deletes_that_fail_again_are_the_same_failure(void **state)
{
	struct health *health;

	(void)state;
	world_begin(false, 1, FAST, false);
	/* other flows are well in the NIC */
	atomic_store(&installer_health(world)->worker[0].in_hw, 1);
	health = installer_health(world);
	for (unsigned i = 0; i < 16; i++)
		world_do(0, INSTALLER_INSERT, i, 0);
	fake_set_result(PROVIDER_REMOVE, -EIO);
	for (unsigned n = 0; n < 40; n++)
		for (unsigned i = 0; i < 15; i++)
			world_do(0, INSTALLER_REMOVE, i, -EIO);
	world_no_change();
	assert_int_equal(health_state(health), HEALTH_CLOSED);
	world_do(0, INSTALLER_REMOVE, 15, -EIO);
	world_change(CHANGE_BREAKER_OPEN, world_refusal(EIO));
	world_change(CHANGE_BREAKER_TRIES, world_refusal(EIO));
	/* and canaries do not fail by what was there before */
	for (unsigned i = 0; i < 16; i++)
		world_do(0, INSTALLER_REMOVE, i, -EIO);
	world_do(0, INSTALLER_INSERT, 20, 0);
	health_proven(&health->worker[0]);
	world_change(CHANGE_BREAKER_CLOSED, 0);
	world_end();
}

static void *stop(void *context)
{
	installer_stop(world);
	return context;
}

/*
 * At the end: what has not begun does not begin, since all rules go together; whoever asks meanwhile gets an answer
 * too, and what may still be there is told.
 */
static void the_end_answers_everybody(void **state)
{
	struct installer_answer answer;
	unsigned inserts = 0, removes = 0;

	(void)state;
	world_begin(false, 2, 1, false);
	for (unsigned i = 0; i < 100; i++)
		world_do(0, INSTALLER_INSERT, i, 0);
	atomic_store(&fake.shut, true);
	assert_true(world_ask(1, INSTALLER_INSERT, 4000));
	world_until(atomic_load(&fake.at_gate) == 1);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(world_ask(0, INSTALLER_REMOVE, i));
		assert_true(world_ask(0, INSTALLER_INSERT, 1000 + i));
	}
	for (unsigned i = 0; i < 64; i++)
		assert_true(world_ask(1, INSTALLER_INSERT, 3000 + i));
	unsigned before = fake_calls();
	pthread_t thread;

	fake.n_stay = 3;

	/* the stop has to wait for the call */
	assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
	/* no more of these than the queue has room for */
	while (world_ask(1, INSTALLER_INSERT, 3999))
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	atomic_store(&fake.shut, false);
	pthread_join(thread, NULL);
	while (installer_answers(world, 0, &answer, 1) == 1) {
		inserts += answer.op == INSTALLER_INSERT;
		removes += answer.op == INSTALLER_REMOVE;
		if (answer.op == INSTALLER_INSERT)
			assert_true(answer.result == -EIO && answer.reason == OFFLOAD_STOPPING);
		else
			assert_int_equal(answer.result, 0);
	}
	assert_int_equal(inserts, 100);
	assert_int_equal(removes, 100);
	/* the insert that had begun */
	assert_true(fake_calls() - before <= 1);
	assert_int_equal(installer_counters(world)->rules, 3);
	while (installer_answers(world, 1, &answer, 1) == 1)
		assert_int_equal(answer.result, answer.place == 4000 ? 0 : -EIO);
	assert_int_equal(fake.n_closed, 1);
	assert_false(world_ask(0, INSTALLER_INSERT, 1));
	installer_stop(world);
	world_end();
}

static void the_end_waits_a_second_at_most(void **state)
{
	struct installer_answer answer = {0};

	(void)state;
	world_begin(true, 1, FAST, false);
	lose_one_in(1);
	assert_true(world_ask(0, INSTALLER_INSERT, 1));
	world_until(fake_calls() >= 1);
	uint64_t begin_us = tsc_clock_us(&world_clock, rte_rdtsc());

	installer_stop(world);
	assert_true(tsc_clock_us(&world_clock, rte_rdtsc()) - begin_us >= 900000);
	assert_int_equal(installer_answers(world, 0, &answer, 1), 1);
	assert_int_equal(answer.result, -EIO);
	assert_int_equal(installer_counters(world)->under_way, 0);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_answer_is_a_stall),
		cmocka_unit_test(a_blocking_call_can_be_one),
		cmocka_unit_test(what_is_never_answered_is_given_up),
		cmocka_unit_test(a_place_that_is_not_known_to_be_empty_is_not_given),
		cmocka_unit_test(more_than_can_be_taken_back_waits),
		cmocka_unit_test(a_delete_can_be_asked_for_again),
		cmocka_unit_test(every_request_is_answered_once),
		cmocka_unit_test(calls_that_fail_open_the_breaker),
		cmocka_unit_test(inserts_that_wait_while_it_is_open_are_not_asked),
		cmocka_unit_test(a_dead_port_is_restarted),
		cmocka_unit_test(a_port_that_does_not_say_why_is_restarted),
		cmocka_unit_test(a_port_that_answers_is_not_restarted),
		cmocka_unit_test(actions_that_never_mark_are_changed),
		cmocka_unit_test(deletes_that_fail_again_are_the_same_failure),
		cmocka_unit_test(the_end_answers_everybody),
		cmocka_unit_test(the_end_waits_a_second_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
