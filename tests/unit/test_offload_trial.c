/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that cannot be tried at first: the order of trials, and the installer's part. */
#include "installer_world.h"

#include <limits.h>

#include "rteflow/trial.h"

/* The clock runs so fast: a second of it is 20 ms. */
#define FAST 50

#define LATER PROVIDER_IPV4_ICMP
#define AT_ONCE PROVIDER_IPV4_UDP

static unsigned trials(void)
{
	pthread_mutex_lock(&fake.lock);
	unsigned n = fake.n_trials;

	pthread_mutex_unlock(&fake.lock);
	return n;
}

static void let(bool *what, bool value)
{
	pthread_mutex_lock(&fake.lock);
	*what = value;
	pthread_mutex_unlock(&fake.lock);
}

static void begin(bool async, unsigned times)
{
	fake_begin(async);
	fake.trying = true;
	world_make(1, times, false);
	assert_int_equal(installer_wait(world, 20000), 0);
	world_change(CHANGE_UNTRIED, world_refusal(EBUSY));
}

/* Again and again, less and less often, until it is granted; what was told before stays as it was. */
static void a_port_is_tried_until_it_grants(void **state)
{
	const struct provider_abilities *then;
	struct offload_change change;

	(void)state;
	begin(false, FAST);
	then = installer_abilities(world);
	assert_true(then->trying[LATER] && !then->kind[LATER] && then->kind[AT_ONCE]);
	assert_true(installer_trial_us(world) > 0);
	world_until(trials() >= 4);
	world_no_change();
	assert_ptr_equal(installer_abilities(world), then);
	/* what is granted goes on meanwhile */
	world_do(0, INSTALLER_INSERT, 1, 0);
	let(&fake.grants, true);
	world_until(installer_changes(world, &change, 1) == 1);
	assert_int_equal(change.kind, CHANGE_TRIED);
	assert_int_equal(change.detail, 1u << PROVIDER_IPV4_SCTP | 1u << LATER);
	assert_true(installer_abilities(world)->kind[LATER]);
	assert_false(installer_abilities(world)->trying[LATER]);
	assert_true(then->trying[LATER] && !then->kind[LATER]);
	world_until(installer_trial_us(world) == 0);
	world_end();
	assert_int_equal(fake.trials, fake.n_trials);
}

/* Not while the NIC owes answers: they would be lost. */
static void a_trial_waits_for_answers(void **state)
{
	unsigned before;

	(void)state;
	/* five seconds of the clock are long enough for a thread that is put off meanwhile */
	begin(true, 2);
	let(&fake.holds_answers, true);
	assert_true(world_ask(0, INSTALLER_INSERT, 1));
	world_until(fake_pending() == 1);
	before = trials();

	uint64_t due_us = installer_trial_us(world);

	/* it was put off, twice */
	world_until(installer_trial_us(world) != due_us);
	due_us = installer_trial_us(world);
	world_until(installer_trial_us(world) != due_us);
	assert_int_equal(trials(), before);
	let(&fake.holds_answers, false);
	assert_int_equal(world_answer(0).result, 0);
	world_until(trials() > before);
	world_end();
}

/* A NIC that answers slowly, and always owes something: in the end it is waited for long enough. */
static void a_trial_waits_as_long_as_answers_take(void **state)
{
	/* it takes some 300 to be waited for long enough; a pause of this thread ends the test, too */
	enum { MANY = 64, MOST = FAKE_PLACES };
	unsigned before = UINT_MAX;

	(void)state;
	begin(true, FAST);
	/* half a second of the clock: more than is waited for at first */
	fake.answer_us = 10000;
	for (uint32_t place = 0; before == UINT_MAX || trials() <= before; place++) {
		struct installer_answer answers[MANY];

		assert_int_not_equal(place, MOST);
		(void)world_ask(0, INSTALLER_INSERT, place);
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
		(void)installer_answers(world, 0, answers, MANY);
		if (place == MANY)
			before = trials();
	}
	world_end();
}

/* A rule was taken, and only its counter failed, say: no packet is lost for that. */
static void only_a_port_that_fails_throughout_is_restarted(void **state)
{
	(void)state;
	for (unsigned dead = 0; dead < 2; dead++) {
		fake_begin(false);
		fake.none = true;
		fake.dead = dead != 0;
		world_make(1, FAST, true);
		assert_int_equal(installer_wait(world, 20000), 0);
		world_until(trials() >= 4);
		/* before the second, the third and the fifth */
		assert_int_equal(atomic_load(&world_restarts), 3 * dead);
		world_end();
	}
}

static unsigned n_resets(void)
{
	lock();
	const unsigned n = fake.n_resets;

	unlock();
	return n;
}

/* Of one that did not come up again deletes do well, as its rules are gone: it is down for all that. */
static void a_port_that_is_down_is_restarted_until_it_is_up(void **state)
{
	enum { RULES = 2000 };
	uint32_t place = 0;

	(void)state;
	world_begin(false, 1, FAST, true);
	for (uint32_t i = 0; i < RULES; i++)
		world_do(0, INSTALLER_INSERT, i, 0);
	atomic_store(&world_restart_result, -ENODEV);
	fake_set_result(PROVIDER_REMOVE, -EIO);
	for (uint32_t i = 0; i < 16; i++)
		world_do(0, INSTALLER_REMOVE, i, -EIO);
	world_until(atomic_load(&world_restarts) != 0);
	fake_set_result(PROVIDER_REMOVE, 0);
	world_do(0, INSTALLER_REMOVE, place++, 0);
	atomic_store(&world_restart_result, 0);
	while (n_resets() == 0) {
		struct installer_answer answer;

		assert_int_not_equal(place, RULES);
		if (installer_answers(world, 0, &answer, 1) == 0)
			(void)world_ask(0, INSTALLER_REMOVE, place++);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	world_end();
}

/* One that fails for TCP, and takes its time for that. */
static int make_slowly(void *context, unsigned hand, const struct shape *shape,
	const struct offload_rule *rule, struct provider_why *why)
{
	(void)context;
	(void)hand;
	(void)shape;
	if (provider_kind(&rule->key) != PROVIDER_IPV4_TCP)
		return 0;
	nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
	why->error = EIO;
	return -EIO;
}

static void unmake(void *context, unsigned hand)
{
	(void)context;
	(void)hand;
}

static int count(void *context, unsigned hand, struct provider_why *why)
{
	(void)context;
	(void)hand;
	(void)why;
	return 0;
}

static bool trial_number(struct trial *trial, const struct shape_port *port, unsigned number,
	const struct trial_calls *calls)
{
	const struct provider_config config = {.trials = number};

	return trial_run(trial, port, &config, calls);
}

/* What fails slowly ends a trial, but not for ever that of the others. */
static void other_kinds_have_their_turn(void **state)
{
	const struct trial_calls calls = {make_slowly, unmake, count, NULL, NULL};
	const struct shape_port port = {.n_queues = 1};
	struct trial trial;

	(void)state;
	for (unsigned number = 0; number < TRIAL_PATIENCE; number++)
		assert_false(trial_number(&trial, &port, number, &calls));
	/* the next one that is not patient */
	assert_true(trial_number(&trial, &port, 2 * TRIAL_PATIENCE - 1, &calls));
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		assert_int_equal(trial.kinds[kind].later, kind == PROVIDER_IPV4_TCP);
}

static unsigned n_counted, n_uncounted;

static int make_any(void *context, unsigned hand, const struct shape *shape,
	const struct offload_rule *rule, struct provider_why *why)
{
	(void)context;
	(void)hand;
	(void)rule;
	(void)why;
	if (shape->count)
		n_counted++;
	else
		n_uncounted++;
	return 0;
}

/* Who does not read them takes none of a NIC's counters: it may have few. */
static void counters_that_nobody_reads_are_not_asked_for(void **state)
{
	const struct trial_calls calls = {make_any, unmake, count, NULL, NULL};
	const struct shape_port port = {.n_queues = 1};
	struct trial trial;

	(void)state;
	for (unsigned uncounted = 0; uncounted < 2; uncounted++) {
		const struct provider_config config = {.uncounted = uncounted != 0};

		n_counted = n_uncounted = 0;
		assert_true(trial_run(&trial, &port, &config, &calls));
		assert_int_equal(trial.counts, !uncounted);
		assert_int_equal(uncounted ? n_counted : n_uncounted, 0);
		assert_int_not_equal(uncounted ? n_uncounted : n_counted, 0);
	}
}

static atomic_bool stop;
static unsigned n_made, n_unmade;

static int make_and_stop(void *context, unsigned hand, const struct shape *shape,
	const struct offload_rule *rule, struct provider_why *why)
{
	(void)context;
	(void)hand;
	(void)shape;
	(void)rule;
	(void)why;
	atomic_store(&stop, ++n_made == 3);
	return 0;
}

static void unmake_counted(void *context, unsigned hand)
{
	(void)context;
	(void)hand;
	n_unmade++;
}

/* A NIC may be slow, and whoever ends the engine is not to wait for what nobody will use. */
static void a_trial_ends_with_the_engine(void **state)
{
	const struct trial_calls calls = {make_and_stop, unmake_counted, count, NULL, &stop};
	const struct shape_port port = {.n_queues = 1};
	struct provider_abilities told = {0};
	struct trial trial;

	(void)state;
	for (unsigned number = 0; number <= TRIAL_PATIENCE; number += TRIAL_PATIENCE) {
		n_made = n_unmade = 0;
		atomic_store(&stop, false);
		trial_number(&trial, &port, number, &calls);
		assert_int_equal(n_made, 3);
		assert_int_equal(n_unmade, n_made);
		trial_tell(&trial, &told);
		for (unsigned kind = 1; kind < PROVIDER_N_KINDS; kind++) {
			assert_true(told.trying[kind]);
			assert_int_equal(told.refused[kind].error, ECANCELED);
		}
	}
}

/* Marks of the other port of its wire are in use by then. */
static void marks_that_are_too_wide_are_refused(void **state)
{
	(void)state;
	fake_begin(false);
	atomic_store(&fake.shut, true);
	world_make(1, FAST, false);
	assert_int_equal(installer_agree_on_marks(world, UINT32_MAX), UINT32_MAX);
	fake.mark_max = 0xffffff;
	atomic_store(&fake.shut, false);
	assert_int_equal(installer_wait(world, 20000), 0);
	assert_true(
		strstr(installer_abilities(world)->unable, "takes marks up to 16777215") != NULL);
	assert_int_equal(installer_abilities(world)->mark_max, 0);
	assert_false(installer_abilities(world)->kind[AT_ONCE]);
	world_end();
	/* known before: the lesser one counts */
	fake_begin(false);
	fake.mark_max = 0xffffff;
	world_make(1, FAST, false);
	assert_int_equal(installer_wait(world, 20000), 0);
	assert_int_equal(installer_agree_on_marks(world, UINT32_MAX), 0xffffff);
	assert_int_equal(installer_agree_on_marks(world, 0xffef), 0xffef);
	assert_string_equal(installer_abilities(world)->unable, "");
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_is_tried_until_it_grants),
		cmocka_unit_test(a_trial_waits_for_answers),
		cmocka_unit_test(a_trial_waits_as_long_as_answers_take),
		cmocka_unit_test(only_a_port_that_fails_throughout_is_restarted),
		cmocka_unit_test(a_port_that_is_down_is_restarted_until_it_is_up),
		cmocka_unit_test(other_kinds_have_their_turn),
		cmocka_unit_test(counters_that_nobody_reads_are_not_asked_for),
		cmocka_unit_test(a_trial_ends_with_the_engine),
		cmocka_unit_test(marks_that_are_too_wide_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
