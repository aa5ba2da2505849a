/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end of templates and queues: answers that come late, in heaps, or never. */
#include "provider_scene.h"

#define N 500
#define OPEN_TRIES 5

/* A busy machine may keep the NIC's thread waiting for longer than its completions are awaited: then it is opened anew. */
static void open_async(struct provider_scene *scene, const char *more)
{
	char args[200];

	snprintf(args, sizeof(args), "profile=cx6-hws,load=order%s", more);
	for (unsigned i = 0; i < OPEN_TRIES; i++) {
		scene_open(scene, args, true);
		if (strcmp(provider_abilities(scene->provider)->back_end, "rte_flow async") == 0)
			return;
		print_message("%s\n", provider_abilities(scene->provider)->unable);
		scene_close(scene);
	}
	fail_msg("it takes no rules by templates");
}

static void ask_insert(struct provider_scene *scene, uint32_t place)
{
	struct offload_rule rule = scene_idle_rule(place);
	struct provider_why why;

	assert_int_equal(provider_insert(scene->provider, place, &rule, &why), -EINPROGRESS);
}

static void ask_remove(struct provider_scene *scene, uint32_t place)
{
	struct provider_why why;

	assert_int_equal(provider_remove(scene->provider, place, &why), -EINPROGRESS);
}

/* So many answers, each place's once; how many had this result. */
static unsigned await_all(struct provider_scene *scene, unsigned n, enum provider_op op, int result)
{
	static bool told[SCENE_PLACES];
	unsigned with_it = 0;

	memset(told, 0, sizeof(told));
	for (unsigned i = 0; i < n; i++) {
		struct provider_done done = scene_await(scene);

		assert_int_equal(done.op, op);
		assert_false(told[done.place]);
		told[done.place] = true;
		with_it += done.result == result;
		assert_true((done.result == 0) == (done.why.error == 0));
	}
	return with_it;
}

static void expect_silence(struct provider_scene *scene, uint64_t us)
{
	uint64_t begin = monotonic_us();
	struct provider_done done[8];

	do {
		assert_int_equal(provider_poll(scene->provider, done, 8), 0);
	} while (monotonic_us() - begin < us);
}

/* The NIC has lost an answer: it has done, or refused, what it was about. Nothing is told until then, nor after. */
static void await_a_loss(struct provider_scene *scene)
{
	uint64_t begin = monotonic_us();

	while (scene_strikes(scene, SIM_FAULT_DROP_COMPLETION) == 0) {
		assert_true(monotonic_us() - begin < 10000000);
		expect_silence(scene, 0);
	}
	expect_silence(scene, 20000);
}

static void many_are_under_way(void **state)
{
	struct provider_scene scene;

	(void)state;
	open_async(&scene, ",flows=1");
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < N; i++)
			ask_insert(&scene, i);
		assert_int_equal(await_all(&scene, N, PROVIDER_INSERT, 0), N);
		assert_int_equal(scene_count(&scene, "flow_rules"), N);
		for (unsigned i = 0; i < N; i++)
			ask_remove(&scene, i);
		assert_int_equal(await_all(&scene, N, PROVIDER_REMOVE, 0), N);
		assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	}
	scene_close(&scene);
}

/* What is postponed goes by itself, or with the next poll. */
static void nothing_stays_behind_unpushed(void **state)
{
	struct provider_scene scene;
	uint64_t begin = monotonic_us();

	(void)state;
	open_async(&scene, ",flows=1");
	for (unsigned i = 0; i < 100; i++)
		ask_insert(&scene, i);
	while (scene_count(&scene, "flow_rules") < 64)
		assert_true(monotonic_us() - begin < 10000000);
	assert_int_equal(await_all(&scene, 100, PROVIDER_INSERT, 0), 100);
	assert_int_equal(scene_count(&scene, "flow_rules"), 100);
	scene_close(&scene);
}

static void a_full_queue_is_not_now(void **state)
{
	struct provider_scene scene;
	struct provider_why why;
	unsigned n = 0;
	int ret;

	(void)state;
	scene_port(&scene, "profile=cx6-hws,flows=1", true);
	scene.config.n_places = 8192;
	assert_int_equal(provider_open(&scene.provider, &scene.config), 0);
	do {
		struct offload_rule rule = scene_idle_rule(n);

		ret = provider_insert(scene.provider, n, &rule, &why);
		n += ret == -EINPROGRESS;
		assert_true(n < 8192);
	} while (ret == -EINPROGRESS);
	assert_int_equal(ret, -EAGAIN);
	assert_true(why.error != 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(scene_await(&scene).result, 0);
	ask_insert(&scene, n);
	assert_int_equal(scene_await(&scene).result, 0);
	scene_close(&scene);
}

static void late_answers_come(void **state)
{
	struct provider_scene scene;

	(void)state;
	open_async(&scene, ",flows=1");
	scene_fault(&scene, "late:ms=60/stall_delete:ms=60");
	for (unsigned i = 0; i < 2; i++) {
		uint64_t begin = monotonic_us();

		if (i == 0)
			ask_insert(&scene, 3);
		else
			ask_remove(&scene, 3);
		assert_int_equal(scene_await(&scene).result, 0);
		assert_true(monotonic_us() - begin >= (i == 0 ? 60000 : 120000));
	}
	scene_close(&scene);
}

/* Whoever gave up waiting can have the rule taken away, and the place again. */
static void answers_that_never_come(void **state)
{
	struct provider_scene scene;
	struct provider_why why;
	struct offload_rule rule = scene_idle_rule(9);

	(void)state;
	open_async(&scene, ",flows=1");
	scene_fault(&scene, "drop_completion:times=1");
	ask_insert(&scene, 3);
	await_a_loss(&scene);
	assert_int_equal(scene_count(&scene, "flow_rules"), 1);
	assert_int_equal(provider_insert(scene.provider, 3, &rule, &why), -EAGAIN);
	assert_int_equal(scene_remove(&scene, 3), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);

	ask_insert(&scene, 3);
	assert_int_equal(scene_await(&scene).result, 0);
	scene_fault(&scene, "drop_completion:times=1");
	ask_remove(&scene, 3);
	await_a_loss(&scene);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	/* its handle was given back: not twice, and nothing else will tell */
	assert_int_equal(provider_remove(scene.provider, 3, &why), 0);
	expect_silence(&scene, 20000);
	assert_int_equal(scene_insert(&scene, 3, &rule, &why), 0);
	assert_int_equal(scene_remove(&scene, 3), 0);
	scene_close(&scene);
}

/* An answer for what was given up is nobody's. */
static void an_answer_that_came_too_late(void **state)
{
	struct provider_scene scene;
	struct provider_done done;

	(void)state;
	open_async(&scene, ",flows=1");
	scene_fault(&scene, "late:ms=50:times=1");
	ask_insert(&scene, 3);
	ask_remove(&scene, 3);
	done = scene_await(&scene);
	assert_int_equal(done.op, PROVIDER_REMOVE);
	assert_int_equal(done.result, 0);
	expect_silence(&scene, 60000);
	scene_close(&scene);
}

/* Every other create fails: the rules of the others stay, whatever is done to clean up. */
static void creates_that_fail(void **state)
{
	struct provider_scene scene;
	struct seen_set set = {0};
	unsigned good = 0;

	(void)state;
	open_async(&scene, ",flows=64,proto=mix,ipv6=50");
	scene_look(&scene, &set, 64);
	scene_fault(&scene, "fail:every=2:op=create");
	for (unsigned turn = 0; turn < 40; turn++) {
		for (unsigned i = 0; i < set.n; i++) {
			struct offload_rule rule = scene_rule(&set, i);
			struct provider_why why = {0};
			int ret = scene_insert(&scene, i, &rule, &why);

			if (provider_kind(&rule.key) % 4 == PROVIDER_IPV4_SCTP)
				assert_int_equal(ret, -EOPNOTSUPP);
			else
				assert_true(ret == 0 || ret == -ENOSPC || ret == -EAGAIN);
			if (ret == -ENOSPC)
				assert_string_equal(
					why.words, "its completion says error, and not why");
			assert_int_equal(why.guess, ret == -ENOSPC);
			good += ret == 0;
		}
	}
	assert_int_equal(good, scene_count(&scene, "flow_rules"));
	scene_look(&scene, &set, 64);
	for (unsigned i = 0; i < set.n; i++)
		assert_true(set.seen[i].marked == set.seen[i].packets ||
			    provider_kind(&set.seen[i].key) % 4 == PROVIDER_IPV4_SCTP);
	scene_fault(&scene, "fail:off");
	scene_close(&scene);
}

static void destroys_that_fail(void **state)
{
	struct provider_scene scene;

	(void)state;
	open_async(&scene, ",flows=1");
	ask_insert(&scene, 3);
	assert_int_equal(scene_await(&scene).result, 0);
	scene_fault(&scene, "fail:op=destroy:times=1");
	assert_int_equal(scene_remove(&scene, 3), -EIO);
	assert_int_equal(scene_count(&scene, "flow_rules"), 1);
	assert_int_equal(scene_remove(&scene, 3), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	scene_close(&scene);
}

/* A rule of the trial that would not go then goes later. */
static void the_trials_own_rules_go(void **state)
{
	struct provider_scene scene;
	struct provider_done done[8];
	uint64_t begin = monotonic_us();

	(void)state;
	scene_port(&scene, "profile=cx6-hws,load=order,flows=1", true);
	scene_fault(&scene, "fail:op=destroy:times=8");
	assert_int_equal(provider_open(&scene.provider, &scene.config), 0);
	assert_string_equal(provider_abilities(scene.provider)->back_end, "rte_flow async");
	assert_int_equal(scene_count(&scene, "flow_rules"), 1);
	while (scene_count(&scene, "flow_rules") > 0 && monotonic_us() - begin < 10000000)
		assert_int_equal(provider_poll(scene.provider, done, 8), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	scene_close(&scene);
}

/* Of both back ends: what is not tried any more is not known, and the port has no rules for now. */
static void nothing_is_tried_when_all_ends(void **state)
{
	static const atomic_bool stop = true;
	struct provider_scene scene;

	(void)state;
	for (unsigned async = 0; async < 2; async++) {
		scene_port(&scene, "profile=cx6-hws,load=order,flows=1", async != 0);
		scene.config.stop = &stop;
		assert_int_equal(provider_open(&scene.provider, &scene.config), 0);
		const struct provider_abilities *told = provider_abilities(scene.provider);

		assert_string_equal(told->back_end, "none");
		for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++) {
			assert_true(told->trying[kind]);
			assert_int_equal(told->refused[kind].error, ECANCELED);
		}
		scene_close(&scene);
	}
}

static void a_push_that_fails(void **state)
{
	struct offload_rule rule = scene_idle_rule(4);
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	open_async(&scene, ",flows=1");
	ask_insert(&scene, 2);
	assert_int_equal(scene_await(&scene).result, 0);
	scene_fault(&scene, "fail:op=push:errno=ENODEV");
	ask_insert(&scene, 3);
	expect_silence(&scene, 5000);
	/* what is asked now would not go either */
	assert_int_equal(provider_insert(scene.provider, 4, &rule, &why), -EIO);
	assert_int_equal(why.error, ENODEV);
	assert_int_equal(provider_remove(scene.provider, 2, &why), -EIO);
	scene_fault(&scene, "fail:off");
	assert_int_equal(scene_await(&scene).place, 3);
	assert_int_equal(scene_insert(&scene, 4, &rule, &why), 0);
	assert_int_equal(scene_remove(&scene, 2), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 2);
	scene_close(&scene);
}

/* No longer a fault that is on, and dead all the same: it takes no push. */
static void the_dead_take_nothing(void **state)
{
	struct offload_rule rule = scene_idle_rule(4);
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	open_async(&scene, ",flows=1");
	scene_fault(&scene, "dead");
	scene_fault(&scene, "dead:off");
	ask_insert(&scene, 3);
	expect_silence(&scene, 5000);
	assert_int_equal(provider_insert(scene.provider, 4, &rule, &why), -EIO);
	assert_int_equal(why.error, EIO);
	assert_int_equal(rte_eth_dev_stop(scene.nic.id), 0);
	nic_start(&scene.nic);
	provider_reset(scene.provider);
	assert_int_equal(scene_insert(&scene, 4, &rule, &why), 0);
	scene_close(&scene);
}

/* What a dead NIC was not told of is not told to it when it is back. */
static void a_restart_ends_all(void **state)
{
	static const char *const faults[] = {
		"dead", "late:ms=30", "fail:op=push", "stall_delete:ms=50"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		struct provider_scene scene;

		print_message("%s\n", faults[i]);
		open_async(&scene, ",flows=1");
		for (unsigned k = 0; k < 20; k++)
			ask_insert(&scene, k);
		assert_int_equal(await_all(&scene, 20, PROVIDER_INSERT, 0), 20);
		scene_fault(&scene, faults[i]);
		for (unsigned k = 20; k < 40; k++)
			ask_insert(&scene, k);
		for (unsigned k = 0; k < 5; k++)
			ask_remove(&scene, k);
		if (i == 2) {
			expect_silence(&scene, 1000);
			scene_fault(&scene, "fail:off");
		}
		scene_restart(&scene);
		expect_silence(&scene, 50000);
		for (uint64_t begin = monotonic_us(); scene_count(&scene, "flow_rules") > 0;) {
			assert_true(monotonic_us() - begin < 10000000);
			expect_silence(&scene, 1);
		}
		/* nor do rules come up later */
		expect_silence(&scene, 50000);
		assert_int_equal(scene_count(&scene, "flow_rules"), 0);
		for (unsigned k = 0; k < 40; k++)
			ask_insert(&scene, k);
		assert_int_equal(await_all(&scene, 40, PROVIDER_INSERT, 0), 40);
		assert_int_equal(scene_count(&scene, "flow_rules"), 40);
		scene_close(&scene);
	}
}

/* A delete that fails, and whose completion is lost: who asks again is told that it is done, and the rule is there. */
static void a_flush_reaches_what_nobody_has(void **state)
{
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	open_async(&scene, ",flows=1");
	for (unsigned k = 0; k < 3; k++)
		ask_insert(&scene, k);
	assert_int_equal(await_all(&scene, 3, PROVIDER_INSERT, 0), 3);
	scene_fault(&scene, "fail:op=destroy:errno=EIO/drop_completion");
	ask_remove(&scene, 0);
	await_a_loss(&scene);
	scene_fault(&scene, "fail:off/drop_completion:off");
	assert_int_equal(provider_remove(scene.provider, 0, &why), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 3);
	/* one is on its way out: nothing is heard of it any more */
	ask_remove(&scene, 1);
	assert_int_equal(provider_flush(scene.provider, &why), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	expect_silence(&scene, 5000);
	for (unsigned k = 0; k < 3; k++)
		ask_insert(&scene, k);
	assert_int_equal(await_all(&scene, 3, PROVIDER_INSERT, 0), 3);
	assert_int_equal(scene_count(&scene, "flow_rules"), 3);
	scene_close(&scene);
}

/* Closing does not leave behind what is on its way. */
static void closed_in_the_middle(void **state)
{
	static const char *const faults[] = {"lose:every=3", "late:ms=20", "stall_delete:ms=2",
		"drop_completion:every=7", "fail:every=5"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		struct provider_scene scene;

		print_message("%s\n", faults[i]);
		open_async(&scene, ",flows=1");
		for (unsigned k = 0; k < 50; k++)
			ask_insert(&scene, k);
		assert_int_equal(await_all(&scene, 50, PROVIDER_INSERT, 0), 50);
		scene_fault(&scene, faults[i]);
		for (unsigned k = 50; k < 100; k++) {
			struct offload_rule rule = scene_idle_rule(k);
			struct provider_why why;

			(void)provider_insert(scene.provider, k, &rule, &why);
		}
		for (unsigned k = 0; k < 10; k++)
			ask_remove(&scene, k);
		if (i == 4)
			scene_fault(&scene, "fail:off");
		scene_close(&scene);
	}
}

/* A NIC without blocking calls says so when it is asked by them, and is asked by its queues again all the same. */
static void a_fault_that_outlives_many_trials(void **state)
{
	const struct provider_abilities *has;
	struct provider_scene scene;

	(void)state;
	scene_port(&scene, "profile=cx6-hws,flows=1,fault=fail:op=create:errno=EIO", true);
	assert_int_equal(provider_open(&scene.provider, &scene.config), 0);
	for (scene.config.trials = 1; scene.config.trials < 9; scene.config.trials++) {
		has = provider_abilities(scene.provider);
		assert_string_equal(has->back_end, "none");
		assert_true(provider_is_trying(has) || has->perhaps);
		assert_int_equal(has->refused[PROVIDER_IPV4_UDP].error, EIO);
		assert_int_equal(provider_try_again(&scene.provider, &scene.config), 0);
	}
	scene_fault(&scene, "fail:off");
	assert_int_equal(provider_try_again(&scene.provider, &scene.config), 0);
	has = provider_abilities(scene.provider);
	assert_string_equal(has->back_end, "rte_flow async");
	assert_true(has->kind[PROVIDER_IPV4_UDP]);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_are_under_way),
		cmocka_unit_test(nothing_stays_behind_unpushed),
		cmocka_unit_test(a_full_queue_is_not_now),
		cmocka_unit_test(late_answers_come),
		cmocka_unit_test(answers_that_never_come),
		cmocka_unit_test(an_answer_that_came_too_late),
		cmocka_unit_test(creates_that_fail),
		cmocka_unit_test(destroys_that_fail),
		cmocka_unit_test(the_trials_own_rules_go),
		cmocka_unit_test(nothing_is_tried_when_all_ends),
		cmocka_unit_test(a_push_that_fails),
		cmocka_unit_test(the_dead_take_nothing),
		cmocka_unit_test(a_restart_ends_all),
		cmocka_unit_test(a_flush_reaches_what_nobody_has),
		cmocka_unit_test(closed_in_the_middle),
		cmocka_unit_test(a_fault_that_outlives_many_trials),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
