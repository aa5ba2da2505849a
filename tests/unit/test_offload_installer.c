/* SPDX-License-Identifier: BSD-3-Clause */
#include "installer_world.h"

#include "offload/calls.h"

static void nothing_is_asked_before_the_port_was_tried(void **state)
{
	struct installer_config config = {.n_workers = 0, .provider = {.n_places = 1}};
	struct error error;

	(void)state;
	assert_int_equal(installer_create(&world, &config, &error), -EINVAL);
	installer_destroy(NULL);
	fake_begin(false);
	atomic_store(&fake.shut, true);
	world_make(1, 1, false);
	assert_int_equal(installer_wait(world, 20), -ETIMEDOUT);
	assert_false(installer_ready(world));
	assert_null(installer_abilities(world)->back_end);
	assert_false(world_ask(0, INSTALLER_INSERT, 1));
	atomic_store(&fake.shut, false);
	assert_int_equal(installer_wait(world, 20000), 0);
	assert_string_equal(installer_abilities(world)->back_end, "fake");
	assert_int_equal(installer_abilities(world)->mark_bits, 24);
	world_do(0, INSTALLER_INSERT, 1, 0);
	world_end();
}

static void without_memory_it_says_no(void **state)
{
	(void)state;
	fake_begin(false);
	fake.open_fails = true;
	world_make(1, 1, false);
	assert_int_equal(installer_wait(world, 20000), 0);
	assert_string_equal(installer_abilities(world)->back_end, "none");
	struct installer_answer answer = world_do(0, INSTALLER_INSERT, 1, -EOPNOTSUPP);

	assert_string_equal(
		refusal_of(installer_refusals(world), answer.reason)->words, "no memory for rules");
	installer_destroy(world);
}

static void requests_are_answered_and_counted(void **state)
{
	const struct installer_counters *counters;
	const struct installer_histograms *histograms;

	(void)state;
	for (unsigned async = 0; async < 2; async++) {
		world_begin(async, 1, 1, false);
		counters = installer_counters(world);
		histograms = installer_histograms(world);
		atomic_store(&fake.slow_us, 2000);
		world_do(0, INSTALLER_INSERT, 5, 0);
		world_do(0, INSTALLER_INSERT, FAKE_PLACES - 1, 0);
		assert_int_equal(counters->rules, 2);
		assert_int_equal(fake.place[5].mark, 12);
		struct installer_answer answer = world_do(0, INSTALLER_COUNT, 5, 0);

		assert_int_equal(answer.packets, 50);
		assert_int_equal(answer.bytes, 5000);
		assert_true(answer.took_us >= 2000 && answer.took_us < 5000000);
		world_do(0, INSTALLER_REMOVE, 5, 0);
		assert_int_equal(counters->rules, 1);
		assert_int_equal(counters->done[INSTALLER_INSERT], 2);
		assert_int_equal(counters->done[INSTALLER_REMOVE], 1);
		assert_int_equal(counters->done[INSTALLER_COUNT], 1);
		assert_int_equal(histograms->wait.times, 4);
		assert_int_equal(histograms->call[INSTALLER_INSERT].times, 2);
		assert_int_equal(histograms->call[INSTALLER_REMOVE].times, 1);
		assert_true(histogram_at(&histograms->call[INSTALLER_INSERT], 0.5) >= 2000000);
		world_until(counters->under_way == 0 && counters->oldest_us == 0);
		world_end();
	}
}

static void refusals_come_with_the_drivers_words(void **state)
{
	const int answers[] = {-ENOSPC, -EOPNOTSUPP, -EAGAIN, -EIO};

	(void)state;
	world_begin(false, 1, 1, false);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned op = 0; op < INSTALLER_N_OPS; op++) {
			/* not the breaker's matter here */
			fake_set_result(op, 0);
			if (op != INSTALLER_INSERT)
				world_do(0, op, 9, 0);
			fake_set_result(op, answers[i]);
			struct installer_answer answer = world_do(0, op, 9, answers[i]);
			const struct refusal *refusal =
				refusal_of(installer_refusals(world), answer.reason);
			char words[40];

			snprintf(words, sizeof(words), "the fake says %d", -answers[i]);
			assert_non_null(refusal);
			assert_int_equal(refusal->error, -answers[i]);
			assert_string_equal(refusal->words, words);
			fake_set_result(op, 0);
		}
		assert_int_equal(installer_counters(world)->by_answer[i], 3);
		assert_int_equal(installer_counters(world)->failed[INSTALLER_INSERT], i + 1);
	}
	assert_int_equal(installer_counters(world)->by_answer[4], 0);
	assert_int_equal(installer_counters(world)->rules, 0);
	assert_int_equal(health_state(installer_health(world)), HEALTH_CLOSED);
	world_end();
}

/* Nobody asked the driver, who has refused nothing then; nor has a call failed. */
static void a_counter_that_is_not_there_is_no_refusal(void **state)
{
	const struct installer_counters *counters;

	(void)state;
	world_begin(false, 1, 1, false);
	counters = installer_counters(world);
	fake.no_counters = true;
	world_do(0, INSTALLER_INSERT, 9, 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(world_do(0, INSTALLER_COUNT, 9, -EOPNOTSUPP).reason, 0);
	assert_int_equal(atomic_load(&installer_refusals(world)->n), 0);
	assert_int_equal(counters->failed[INSTALLER_COUNT], 0);
	assert_int_equal(counters->by_answer[1], 0);
	assert_int_equal(installer_histograms(world)->call[INSTALLER_COUNT].times, 0);
	world_end();
}

/* Deletes before inserts, counters when they have time, in the order of each; the workers in turn. */
static void requests_go_in_order(void **state)
{
	unsigned last[2] = {0, 0}, of_op[3][2] = {{0}}, runs = 0;

	(void)state;
	world_begin(false, 2, 1, false);
	atomic_store(&fake.shut, true);
	assert_true(world_ask(0, INSTALLER_COUNT, 0));
	world_until(atomic_load(&fake.at_gate) == 1);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned worker = 0; worker < 2; worker++) {
			uint32_t place = 2000 * worker + 3 * i;

			assert_true(world_ask(worker, INSTALLER_COUNT, place + 1));
			assert_true(world_ask(worker, INSTALLER_INSERT, place + 2));
			assert_true(world_ask(worker, INSTALLER_REMOVE, place + 3));
		}
	}
	atomic_store(&fake.shut, false);
	world_until(fake_calls() == 601);
	for (unsigned i = 1; i < 601; i++) {
		static const unsigned ranks[] = {
			[PROVIDER_REMOVE] = 0, [PROVIDER_INSERT] = 1, [FAKE_COUNT] = 2};
		unsigned worker = fake.log[i].place >= 2000, rank = ranks[fake.log[i].op];

		assert_true(rank >= last[worker] || rank == 2);
		last[worker] = rank == 2 ? last[worker] : rank;
		assert_int_equal(
			fake.log[i].place, 2000 * worker + 3 * of_op[rank][worker]++ + 3 - rank);
		runs += i > 1 && worker != (fake.log[i - 1].place >= 2000);
		if (fake.log[i].op == PROVIDER_INSERT)
			assert_int_equal(fake.log[i].worker, worker);
	}
	assert_int_equal(runs, 599);
	world_end();
}

/* A worker that does not take its answers is not served beyond a limit, and hinders nobody. */
static void answers_that_are_not_taken(void **state)
{
	struct installer_answer answers[INSTALLER_UNDER_WAY + 8];
	unsigned n = 0, asked = 0;

	(void)state;
	world_begin(true, 2, 1, false);
	while (world_ask(0, asked % 2 ? INSTALLER_COUNT : INSTALLER_INSERT, asked))
		asked++;
	assert_int_equal(asked, INSTALLER_UNDER_WAY);
	world_until(installer_counters(world)->done[INSTALLER_INSERT] == asked / 2 &&
		    installer_counters(world)->done[INSTALLER_COUNT] == asked / 2);
	assert_false(world_ask(0, INSTALLER_INSERT, 3000));
	for (unsigned i = 0; i < 50; i++)
		world_do(1, INSTALLER_INSERT, 2000 + i, 0);
	n = installer_answers(world, 0, answers, 10);
	assert_int_equal(n, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_true(world_ask(0, INSTALLER_COUNT, 3000 + i));
	assert_false(world_ask(0, INSTALLER_COUNT, 3010));
	while (n < asked + 10) {
		unsigned got = installer_answers(world, 0, answers, INSTALLER_UNDER_WAY + 8);

		n += got;
		if (got == 0)
			fake_pause();
	}
	assert_int_equal(installer_answers(world, 0, answers, 1), 0);
	world_end();
}

/* As with a NIC whose flow queue holds four: who asks does not notice. */
static void a_full_queue_is_waited_for(void **state)
{
	(void)state;
	world_begin(true, 2, 1, false);
	fake.queue = 4;
	for (uint32_t i = 0; i < 400; i++)
		assert_true(world_ask(i % 2, INSTALLER_INSERT, i));
	for (uint32_t i = 0; i < 400; i++)
		assert_int_equal(world_answer(i % 2).result, 0);
	assert_int_equal(fake.n_most, 4);
	assert_int_equal(installer_histograms(world)->wait.times, 400);
	/* with none of its own under way, it is the NIC's word */
	fake_set_result(PROVIDER_INSERT, -EAGAIN);
	unsigned before = fake_calls();

	world_do(0, INSTALLER_INSERT, 1000, -EAGAIN);
	assert_int_equal(fake_calls() - before, 1);
	world_end();
}

/* A full queue that does not empty: not waited for longer than 10 ms. */
static void but_not_for_ever(void **state)
{
	(void)state;
	world_begin(true, 1, 1, false);
	pthread_mutex_lock(&fake.lock);
	fake.queue = 1;
	fake.holds_answers = true;
	pthread_mutex_unlock(&fake.lock);
	assert_true(world_ask(0, INSTALLER_INSERT, 1));
	assert_true(world_ask(0, INSTALLER_INSERT, 2));
	struct installer_answer answer = world_answer(0);

	assert_int_equal(answer.place, 2);
	assert_int_equal(answer.result, -EAGAIN);
	assert_true(answer.took_us >= 10000);
	pthread_mutex_lock(&fake.lock);
	fake.holds_answers = false;
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(world_answer(0).place, 1);
	world_end();
}

struct busy {
	unsigned worker;
	pthread_t thread;
	unsigned failures, waits, done;
};

/* A worker with 500 places of its own: inserts and removes in turn, counts between; each answered once. */
static void *work(void *context)
{
	struct busy *busy = context;
	struct draw draw = {.seed = busy->worker};
	struct {
		bool rule, asked;
	} places[500] = {{false}};
	const uint32_t base = busy->worker * 500;
	unsigned out = 0;

	while (busy->done < 20000 || out > 0) {
		uint32_t i = (uint32_t)(draw_next(&draw) % 500);
		struct installer_answer answers[32];
		bool counts = draw_next(&draw) % 4 == 0;
		enum installer_op op = counts		? INSTALLER_COUNT
				       : places[i].rule ? INSTALLER_REMOVE
							: INSTALLER_INSERT;
		bool *under_way = &places[i].asked;

		if (busy->done < 20000 && !*under_way && world_ask(busy->worker, op, base + i)) {
			*under_way = true;
			out++;
		}
		unsigned n = installer_answers(world, busy->worker, answers, 32);

		for (unsigned j = 0; j < n; j++) {
			i = answers[j].place - base;
			counts = answers[j].op == INSTALLER_COUNT;
			under_way = &places[i].asked;
			/* this NIC's queue is never full: only the breaker may say no, and only to an insert */
			const bool waits = answers[j].result == -EAGAIN &&
					   answers[j].reason == OFFLOAD_BREAKER &&
					   answers[j].op == INSTALLER_INSERT;

			busy->failures +=
				i >= 500 || !*under_way || (answers[j].result != 0 && !waits);
			busy->waits += waits;
			*under_way = false;
			if (!counts && !waits)
				places[i].rule = answers[j].op == INSTALLER_INSERT;
		}
		busy->done += n;
		out -= n;
	}
	return NULL;
}

static void workers_are_served_side_by_side(void **state)
{
	struct busy busy[4];

	(void)state;
	for (unsigned async = 0; async < 2; async++) {
		world_begin(async, 4, 1, false);
		for (unsigned i = 0; i < 4; i++) {
			busy[i] = (struct busy){.worker = i};
			assert_int_equal(pthread_create(&busy[i].thread, NULL, work, &busy[i]), 0);
		}
		for (unsigned i = 0; i < 4; i++)
			pthread_join(busy[i].thread, NULL);
		const bool was_open = installer_health(world)->opened > 0;

		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(busy[i].failures, 0);
			assert_true(busy[i].done >= 20000);
			/*
			 * It opens where the installer's thread had no processor for a second, so that an
			 * answer was late. What comes until it closes is the machine's business.
			 */
			assert_true(busy[i].waits == 0 || was_open);
		}
		const struct installer_counters *counters = installer_counters(world);

		assert_int_equal(counters->rules,
			counters->done[INSTALLER_INSERT] - counters->done[INSTALLER_REMOVE]);
		world_end();
	}
}

/* Whoever asks: of all workers together no more is there than may be. */
static void a_limit_is_of_all_workers(void **state)
{
	(void)state;
	world_limit = 3;
	for (unsigned async = 0; async < 2; async++) {
		world_begin(async, 2, 1, false);
		world_do(0, INSTALLER_INSERT, 0, 0);
		world_do(1, INSTALLER_INSERT, 1, 0);
		world_do(1, INSTALLER_INSERT, 2, 0);
		for (unsigned worker = 0; worker < 2; worker++)
			assert_int_equal(world_do(worker, INSTALLER_INSERT, 3, -EAGAIN).reason,
				OFFLOAD_OUTRANKED);
		assert_int_equal(installer_counters(world)->rules, 3);
		/* where one goes another may come */
		world_do(1, INSTALLER_REMOVE, 2, 0);
		world_do(0, INSTALLER_INSERT, 3, 0);
		assert_int_equal(installer_counters(world)->rules, 3);
		/* what is about to leave is there once, not twice: two may come for two that go */
		world_do(0, INSTALLER_REMOVE, 3, 0);
		lock();
		fake.holds_answers = true;
		unlock();
		assert_true(world_ask(0, INSTALLER_REMOVE, 0));
		world_until(fake_calls() == 7);
		assert_true(world_ask(0, INSTALLER_INSERT, 3));
		world_until(fake_calls() == 8);
		lock();
		fake.holds_answers = false;
		unlock();
		assert_int_equal(world_answer(0).result, 0);
		assert_int_equal(world_answer(0).result, 0);
		world_end();
	}
	world_limit = 0;
}

/* However much there is to insert and to delete, as much time is for counters. */
static void counters_are_read_meanwhile(void **state)
{
	unsigned counts = 0;

	(void)state;
	world_begin(false, 1, 1, false);
	atomic_store(&fake.slow_us, 100);
	atomic_store(&fake.shut, true);
	assert_true(world_ask(0, INSTALLER_COUNT, 0));
	world_until(atomic_load(&fake.at_gate) == 1);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(world_ask(0, INSTALLER_COUNT, 3 * i + 1));
		assert_true(world_ask(0, INSTALLER_INSERT, 3 * i + 2));
		assert_true(world_ask(0, INSTALLER_REMOVE, 3 * i + 3));
	}
	atomic_store(&fake.shut, false);
	world_until(fake_calls() == 301);
	for (unsigned i = 0; i < 150; i++)
		counts += fake.log[i].op == FAKE_COUNT;
	assert_in_range(counts, 30, 120);
	world_end();
}

/* Who asks for many counters can have rules made, and taken out. */
static void counters_leave_room(void **state)
{
	(void)state;
	world_begin(false, 1, 1, false);
	atomic_store(&fake.shut, true);
	for (unsigned i = 0; i < INSTALLER_COUNTS; i++)
		assert_true(world_ask(0, INSTALLER_COUNT, i));
	assert_false(world_ask(0, INSTALLER_COUNT, 0));
	assert_true(world_ask(0, INSTALLER_INSERT, FAKE_PLACES - 1));
	assert_true(world_ask(0, INSTALLER_REMOVE, FAKE_PLACES - 2));
	atomic_store(&fake.shut, false);
	for (unsigned i = 0; i < INSTALLER_COUNTS + 2; i++)
		(void)world_answer(0);
	assert_true(world_ask(0, INSTALLER_COUNT, 0));
	(void)world_answer(0);
	world_end();
}

/* Its rule could not be taken back at once: that is tried again, though nobody asks for its place any more. */
static void what_was_given_up_goes_in_the_end(void **state)
{
	(void)state;
	world_begin(true, 1, 50, false);
	lose_one_in(1);
	assert_true(world_ask(0, INSTALLER_INSERT, 7));
	world_until(fake_calls() == 1);
	lose_one_in(0);
	fake_set_result(PROVIDER_REMOVE, -EIO);
	assert_int_equal(world_answer(0).result, -EIO);
	for (unsigned times = 1; times <= 3; times++)
		world_until(fake_calls_of(PROVIDER_REMOVE) >= times);
	fake_set_result(PROVIDER_REMOVE, 0);
	/* one that succeeds is the last one */
	const unsigned before = fake_calls_of(PROVIDER_REMOVE);

	world_until(fake_calls_of(PROVIDER_REMOVE) > before);
	/* the call is counted before it is told to be under way */
	world_until(world_is_put(7));
	assert_true(fake_calls_of(PROVIDER_REMOVE) <= before + 2);
	world_end();
}

/* Nobody takes them: those that found no room are counted, and the others are there. */
static void changes_that_are_not_taken_are_counted(void **state)
{
	const struct installer_config config = {
		.n_workers = 1, .clock = &world_clock, .provider = {.n_places = 1}};
	struct offload_change changes[INSTALLER_CHANGES];
	static struct calls calls;

	(void)state;
	assert_int_equal(calls_init(&calls, &config), 0);
	for (unsigned i = 0; i < INSTALLER_CHANGES + 44; i++)
		calls_note(&calls, CHANGE_FLUSHED, 0, 0);
	assert_int_equal(calls.counters.changes_lost, 44);
	assert_int_equal(mailbox_pop(calls.changes, changes, INSTALLER_CHANGES), INSTALLER_CHANGES);
	calls_note(&calls, CHANGE_FLUSHED, 0, 0);
	assert_int_equal(calls.counters.changes_lost, 44);
	calls_free(&calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_asked_before_the_port_was_tried),
		cmocka_unit_test(without_memory_it_says_no),
		cmocka_unit_test(requests_are_answered_and_counted),
		cmocka_unit_test(refusals_come_with_the_drivers_words),
		cmocka_unit_test(a_counter_that_is_not_there_is_no_refusal),
		cmocka_unit_test(requests_go_in_order),
		cmocka_unit_test(answers_that_are_not_taken),
		cmocka_unit_test(a_full_queue_is_waited_for),
		cmocka_unit_test(but_not_for_ever),
		cmocka_unit_test(a_limit_is_of_all_workers),
		cmocka_unit_test(workers_are_served_side_by_side),
		cmocka_unit_test(counters_are_read_meanwhile),
		cmocka_unit_test(counters_leave_room),
		cmocka_unit_test(what_was_given_up_goes_in_the_end),
		cmocka_unit_test(changes_that_are_not_taken_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
