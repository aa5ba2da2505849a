/* SPDX-License-Identifier: BSD-3-Clause */
/* What providers are granted by kinds of NIC, and what packets carry then. */
#include "provider_scene.h"

#include <dlfcn.h>

#define ALL_KINDS 0xffu
#define NO_ICMP 0x77u
#define NO_SCTP 0xbbu

#define ETH_TCP(actions) "eth / ipv4 / tcp, " actions
#define ETH_TCP(actions) "eth / ipv4 / tcp, " actions

/* As docs/hardware.md has these NICs. */
static const struct nic_case {
	const char *profile;
	bool async;
	unsigned kinds; /* bit by enum provider_kind */
	const char *back_end, *tcp;
	unsigned mark_bits;
	bool counts;
} cases[] = {
	{"ideal", false, ALL_KINDS, "rte_flow", ETH_TCP("mark + count"), 32, true},
	{"ideal", true, ALL_KINDS, "rte_flow async", ETH_TCP("mark + count"), 32, true},
	{"tiny", false, ALL_KINDS, "rte_flow", ETH_TCP("mark + count"), 32, true},
	{"x710", false, NO_ICMP, "rte_flow", ETH_TCP("mark"), 32, false},
	{"e810", false, NO_ICMP, "rte_flow", ETH_TCP("mark + count"), 32, true},
	{"cx5", false, NO_SCTP, "rte_flow", ETH_TCP("mark + queue + count"), 24, true},
	{"cx6-hws", true, NO_SCTP, "rte_flow async", ETH_TCP("mark + queue + count"), 24, true},
};

static void open_case(struct provider_scene *scene, const struct nic_case *nic, const char *more)
{
	char args[200];

	snprintf(args, sizeof(args), "profile=%s,load=order%s", nic->profile, more);
	scene_open(scene, args, nic->async);
}

static void kinds_are_granted_as_the_nic_has_them(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		const struct nic_case *nic = &cases[i];
		const struct provider_abilities *has;
		struct provider_scene scene;
		unsigned kinds = 0;

		print_message("%s%s\n", nic->profile, nic->async ? ", async" : "");
		open_case(&scene, nic, ",flows=1");
		has = provider_abilities(scene.provider);
		for (unsigned k = 0; k < PROVIDER_N_KINDS; k++) {
			kinds |= (unsigned)has->kind[k] << k;
			assert_true(has->kind[k] == (has->refused[k].error == 0));
			assert_true(has->kind[k] == (has->shape[k][0] != '\0'));
		}
		assert_int_equal(kinds, nic->kinds);
		assert_string_equal(has->back_end, nic->back_end);
		assert_string_equal(has->shape[PROVIDER_IPV4_TCP], nic->tcp);
		assert_string_equal(has->nic, "net_flowsim");
		assert_string_equal(has->unable, "");
		assert_int_equal(has->mark_bits, nic->mark_bits);
		assert_true(has->mark_max >= 0xffef && has->counts == nic->counts);
		/* it was all tried, and nothing was left */
		assert_true(scene_count(&scene, "flow_created") > 0);
		assert_int_equal(scene_count(&scene, "flow_rules"), 0);
		scene_close(&scene);
	}
}

/* Rules for all that was seen and is granted; the others are refused. */
static unsigned insert_all(struct provider_scene *scene, const struct seen_set *set)
{
	const struct provider_abilities *has = provider_abilities(scene->provider);
	unsigned n = 0;

	for (unsigned i = 0; i < set->n; i++) {
		struct offload_rule rule = scene_rule(set, i);
		enum provider_kind kind = provider_kind(&rule.key);
		struct provider_why why = {0};
		int ret = scene_insert(scene, i, &rule, &why);

		assert_int_equal(ret, has->kind[kind] ? 0 : -EOPNOTSUPP);
		assert_true(ret == 0 || why.error != 0);
		n += ret == 0;
	}
	return n;
}

static void check_counter(struct provider_scene *scene, uint32_t place, const struct seen *seen)
{
	const struct provider_abilities *has = provider_abilities(scene->provider);
	struct provider_count count;
	struct provider_why why;
	int ret = provider_query(scene->provider, place, &count, &why);

	if (!has->counts || !has->kind[provider_kind(&seen->key)]) {
		assert_int_equal(ret, -EOPNOTSUPP);
		assert_int_equal(why.error, 0);
		return;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(count.packets, seen->packets);
	assert_true(count.has_bytes);
	assert_int_equal(count.bytes, seen->bytes);
}

static void check_marks(struct provider_scene *scene, const struct seen_set *set)
{
	const struct provider_abilities *has = provider_abilities(scene->provider);

	for (unsigned i = 0; i < set->n; i++) {
		const struct seen *seen = &set->seen[i];
		enum provider_kind kind = provider_kind(&seen->key);

		assert_true(seen->packets > 0);
		assert_int_equal(seen->marked, has->kind[kind] ? seen->packets : 0);
		assert_int_equal(seen->others, 0);
		check_counter(scene, i, seen);
		if (strstr(has->shape[kind], "queue") != NULL)
			assert_int_equal(seen->queue[i % NIC_QUEUES], seen->packets);
	}
}

/* IPv4 and IPv6, each protocol, both directions. */
static void packets_carry_their_own_marks(void **state)
{
	enum { FLOWS = 96 };

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct provider_scene scene;
		struct seen_set set = {0};
		unsigned n;

		print_message("%s%s\n", cases[i].profile, cases[i].async ? ", async" : "");
		open_case(&scene, &cases[i], ",flows=96,proto=mix,ipv6=50,side=both,vlan=20");
		scene_look(&scene, &set, 2 * FLOWS);
		assert_int_equal(set.n, 2 * FLOWS);
		n = insert_all(&scene, &set);
		assert_true(n >= FLOWS);
		assert_int_equal(scene_count(&scene, "flow_rules"), n);
		scene_look(&scene, &set, 5 * 2 * FLOWS);
		assert_int_equal(set.n, 2 * FLOWS);
		check_marks(&scene, &set);
		for (unsigned k = 0; k < set.n; k += 2)
			assert_int_equal(scene_remove(&scene, k), 0);
		scene_look(&scene, &set, 2 * FLOWS);
		for (unsigned k = 0; k < set.n; k++)
			assert_true(k % 2 == 1 || set.seen[k].marked == 0);
		/* half of them are there still */
		scene_close(&scene);
	}
}

static void few_rules_of_a_slow_nic(void **state)
{
	struct provider_scene scene;
	struct seen_set set = {0};
	struct provider_why why;

	(void)state;
	scene_open(&scene, "profile=x710-stock,flows=4,load=order", false);
	scene_look(&scene, &set, 4);
	for (unsigned i = 0; i < 4; i++) {
		struct offload_rule rule = scene_rule(&set, i);
		uint64_t begin = monotonic_us();

		assert_int_equal(scene_insert(&scene, i, &rule, &why), 0);
		assert_true(monotonic_us() - begin >= 10000);
	}
	scene_look(&scene, &set, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(set.seen[i].marked, 2);
	scene_close(&scene);
}

/* However its driver says it. */
static void a_full_table_is_no_room(void **state)
{
	enum { ROOM = 20 };

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct provider_scene scene;
		struct provider_why why = {0};
		struct offload_rule rule;

		print_message("%s%s\n", cases[i].profile, cases[i].async ? ", async" : "");
		open_case(&scene, &cases[i], ",flows=1,rules=20");
		for (unsigned k = 0; k < ROOM; k++) {
			rule = scene_idle_rule(k);
			assert_int_equal(scene_insert(&scene, k, &rule, &why), 0);
		}
		rule = scene_idle_rule(ROOM);
		for (unsigned k = 0; k < 3; k++) {
			memset(&why, 0, sizeof(why));
			assert_int_equal(scene_insert(&scene, ROOM, &rule, &why), -ENOSPC);
			assert_true(why.error > 0);
		}
		assert_int_equal(scene_remove(&scene, 7), 0);
		assert_int_equal(scene_insert(&scene, ROOM, &rule, &why), 0);
		assert_int_equal(scene_insert(&scene, 7, &rule, &why), -ENOSPC);
		assert_int_equal(scene_count(&scene, "flow_rules"), ROOM);
		scene_close(&scene);
	}
}

static void a_place_has_one_rule(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct offload_rule one = scene_idle_rule(1), two = scene_idle_rule(2);
		struct provider_scene scene;
		struct provider_why why;

		open_case(&scene, &cases[i], ",flows=1");
		for (unsigned k = 0; k < 50; k++) {
			assert_int_equal(scene_insert(&scene, 5, &one, &why), 0);
			assert_int_equal(provider_insert(scene.provider, 5, &two, &why), -EAGAIN);
			assert_int_equal(scene_count(&scene, "flow_rules"), 1);
			assert_int_equal(scene_remove(&scene, 5), 0);
			assert_int_equal(scene_count(&scene, "flow_rules"), 0);
			/* what is not there is gone */
			assert_int_equal(scene_remove(&scene, 5), 0);
		}
		scene_close(&scene);
	}
}

/* What other protocols are, is nobody's. */
static void kinds_of_keys(void **state)
{
	static const uint8_t protos[] = {6, 17, 132, 1, 58, 50, 47, 0, 255, 136};
	static const enum provider_kind four[] = {PROVIDER_IPV4_TCP, PROVIDER_IPV4_UDP,
		PROVIDER_IPV4_SCTP, PROVIDER_IPV4_ICMP, PROVIDER_N_KINDS};
	static const enum provider_kind six[] = {PROVIDER_IPV6_TCP, PROVIDER_IPV6_UDP,
		PROVIDER_IPV6_SCTP, PROVIDER_N_KINDS, PROVIDER_IPV6_ICMP};
	struct offload_rule rule = scene_idle_rule(0);
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(protos); i++) {
		struct flow_key key = {.proto = protos[i], .version_wire = 0x43};

		assert_int_equal(provider_kind(&key), i < 5 ? four[i] : PROVIDER_N_KINDS);
		key.version_wire = 0x63;
		assert_int_equal(provider_kind(&key), i < 5 ? six[i] : PROVIDER_N_KINDS);
	}
	assert_string_equal(provider_kind_name(PROVIDER_IPV6_ICMP), "ipv6/icmp6");
	assert_string_equal(provider_kind_name(PROVIDER_IPV4_TCP), "ipv4/tcp");
	for (unsigned i = 0; i < 2; i++) {
		open_case(&scene, &cases[i], ",flows=1");
		rule.key.proto = 47;
		assert_int_equal(provider_insert(scene.provider, 0, &rule, &why), -EOPNOTSUPP);
		assert_string_equal(why.words, "no rules for this protocol");
		scene_close(&scene);
	}
}

static void dead_until_it_is_started_anew(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct offload_rule rule = scene_idle_rule(1);
		struct provider_scene scene;
		struct provider_why why;

		if (cases[i].async)
			continue;
		open_case(&scene, &cases[i], ",flows=1");
		assert_int_equal(scene_insert(&scene, 0, &rule, &why), 0);
		scene_fault(&scene, "dead");
		rule = scene_idle_rule(2);
		assert_int_equal(scene_insert(&scene, 1, &rule, &why), -EIO);
		assert_int_equal(why.error, EIO);
		assert_int_equal(scene_remove(&scene, 0), -EIO);
		/* it has its rule still, as far as anybody knows */
		assert_int_equal(scene_insert(&scene, 0, &rule, &why), -EAGAIN);
		scene_restart(&scene);
		assert_int_equal(scene_insert(&scene, 0, &rule, &why), 0);
		assert_int_equal(scene_count(&scene, "flow_rules"), 1);
		assert_int_equal(scene_remove(&scene, 0), 0);
		scene_close(&scene);
	}
}

/* Rules that outlive a stop, as the port says or not, are taken away: nobody has a handle for them afterwards. */
static void rules_that_stay_are_taken_away(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct provider_scene scene;
		struct provider_why why;

		open_case(&scene, &cases[i % 2],
			i < 2 ? ",flows=1,keep_rules=1" : ",flows=1,keep_rules=2");
		for (unsigned k = 0; k < 10; k++) {
			struct offload_rule rule = scene_idle_rule(k);

			assert_int_equal(scene_insert(&scene, k, &rule, &why), 0);
		}
		scene_restart(&scene);
		assert_int_equal(scene_count(&scene, "flow_rules"), 0);
		scene_close(&scene);
	}
}

static void a_port_without_marks_takes_none(void **state)
{
	static const char *const args[] = {"flows=1,mark_bits=0", "flows=1,actions=queue+drop",
		"flows=1", "flows=1,mark_bits=12"};
	struct offload_rule rule = scene_idle_rule(0);
	const struct provider_abilities *has;
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(args) + 1; i++) {
		scene_port(&scene, args[i % RTE_DIM(args)], i == 1);
		if (i == 2)
			scene_fault(&scene, "dead");
		scene.config.metadata = i < RTE_DIM(args);
		assert_int_equal(provider_open(&scene.provider, &scene.config), 0);
		has = provider_abilities(scene.provider);
		print_message("%s\n", has->unable);
		assert_string_equal(has->back_end, "none");
		assert_true(has->unable[0] != '\0');
		assert_int_equal(has->mark_max, 0);
		for (unsigned k = 0; k < PROVIDER_N_KINDS; k++)
			assert_false(has->kind[k]);
		assert_int_equal(provider_insert(scene.provider, 0, &rule, &why), -EOPNOTSUPP);
		assert_string_equal(why.words[0] != '\0' ? "words" : "none", "words");
		assert_false(provider_next_shape(scene.provider, PROVIDER_IPV4_UDP));
		provider_reset(scene.provider);
		scene_close(&scene);
	}
}

/* A mark that the NIC would not take is not promised, the largest that is works. */
static void the_largest_mark_works(void **state)
{
	static const char *const bits[] = {"16", "17", "24", "25", "31", "32"};
	static const unsigned found[] = {16, 16, 24, 24, 24, 32};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(bits); i++) {
		const struct provider_abilities *has;
		struct offload_rule rule = scene_idle_rule(0);
		struct provider_scene scene;
		struct provider_why why;
		char args[64];

		snprintf(args, sizeof(args), "flows=1,mark_bits=%s", bits[i]);
		scene_open(&scene, args, false);
		has = provider_abilities(scene.provider);
		assert_int_equal(has->mark_bits, found[i]);
		assert_true(has->mark_max < UINT64_C(1) << found[i]);
		assert_true(has->mark_max > (UINT64_C(1) << found[i]) - 32);
		rule.mark = has->mark_max;
		assert_int_equal(scene_insert(&scene, 0, &rule, &why), 0);
		scene_close(&scene);
	}
}

/* Faults that come and go while it is tried change nothing of what is found. */
static void trial_under_faults(void **state)
{
	static const char *const faults[] = {"fail:every=3", "fail:every=2:op=create",
		"fail:every=3:errno=EAGAIN", "fail:every=4:errno=EBUSY:op=destroy", "lose:every=2",
		"late:ms=1", "drop_completion:every=40"};

	(void)state;
	for (unsigned i = 0; i < 2 * RTE_DIM(faults); i++) {
		const struct nic_case *nic = &cases[i % 2];
		struct provider_scene scene;
		char more[100];

		snprintf(more, sizeof(more), ",flows=1,fault=%s", faults[i / 2]);
		print_message("%s%s\n", more, nic->async ? ", async" : "");
		open_case(&scene, nic, more);
		for (unsigned k = 0; k < PROVIDER_N_KINDS; k++)
			assert_true(provider_abilities(scene.provider)->kind[k]);
		assert_string_equal(provider_abilities(scene.provider)->back_end, nic->back_end);
		for (unsigned k = 0; k < PROVIDER_N_KINDS; k++) {
			const char *shape = provider_abilities(scene.provider)->shape[k];

			assert_null(strstr(shape, "flags"));
			assert_string_equal(strstr(shape, ", mark"), ", mark + count");
		}
		scene_close(&scene);
	}
}

/* What the driver has, or as if it had none. */
static bool has_no_flush;
static unsigned n_flushes;

int rte_flow_flush(uint16_t port_id, struct rte_flow_error *error)
{
	int (*driver)(uint16_t, struct rte_flow_error *) =
		(int (*)(uint16_t, struct rte_flow_error *))dlsym(RTLD_NEXT, "rte_flow_flush");

	n_flushes++;
	return has_no_flush ? -ENOSYS : driver(port_id, error);
}

static void begin_with_rules(struct provider_scene *scene, const char *args, unsigned n)
{
	struct seen_set set = {0};
	struct provider_why why;

	n_flushes = 0;
	scene_open(scene, args, false);
	scene_look(scene, &set, 32);
	for (unsigned i = 0; i < n; i++) {
		struct offload_rule rule = scene_rule(&set, i);

		assert_int_equal(scene_insert(scene, i, &rule, &why), 0);
	}
}

/* At the end many go by one call, a few one by one; so do many where there is no such call, for some seconds. */
static void many_rules_go_by_one_call(void **state)
{
	struct provider_scene scene;
	uint64_t begin_us;

	(void)state;
	begin_with_rules(&scene, "async=0,flows=32,load=order,destroy_ns=20000000,flush_ns=1", 32);
	begin_us = monotonic_us();
	assert_int_equal(provider_close(scene.provider), 0);
	assert_true(monotonic_us() - begin_us < 32 * 20000);
	assert_int_equal(n_flushes, 1);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	nic_close(&scene.nic);

	begin_with_rules(&scene, "async=0,flows=32,load=order", 4);
	assert_int_equal(provider_close(scene.provider), 0);
	assert_int_equal(n_flushes, 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	nic_close(&scene.nic);

	has_no_flush = true;
	begin_with_rules(&scene, "async=0,flows=32,load=order", 32);
	assert_int_equal(provider_close(scene.provider), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	nic_close(&scene.nic);

	begin_with_rules(&scene, "async=0,flows=32,load=order,flush_ns=1", 32);
	scene_fault(&scene, "stall_delete:ms=1000");
	begin_us = monotonic_us();
	uint32_t left = provider_close(scene.provider);

	assert_in_range(left, 20, 29);
	assert_true(monotonic_us() - begin_us < 8000000);
	assert_int_equal(scene_count(&scene, "flow_rules"), left);
	nic_close(&scene.nic);
	has_no_flush = false;
}

/* In the middle: places can be had again, but not where nothing came of it. */
static void a_flush_empties_all_places(void **state)
{
	struct offload_rule rule = scene_idle_rule(1);
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	begin_with_rules(&scene, "async=0,flows=32,load=order", 8);
	assert_int_equal(provider_flush(scene.provider, &why), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	assert_int_equal(scene_insert(&scene, 0, &rule, &why), 0);
	scene_fault(&scene, "fail:op=destroy:errno=EIO");
	assert_int_equal(provider_flush(scene.provider, &why), -EIO);
	scene_fault(&scene, "fail:off");
	assert_int_equal(provider_flush(scene.provider, &why), 0);
	has_no_flush = true;
	assert_int_equal(provider_flush(scene.provider, &why), -EOPNOTSUPP);
	has_no_flush = false;
	scene_close(&scene);
}

/* Then their handles are no longer valid: they are not asked one by one. */
static void a_flush_that_fails_leaves_rules(void **state)
{
	struct provider_scene scene;

	(void)state;
	begin_with_rules(&scene, "async=0,flows=32,load=order,flush_ns=1", 32);
	scene_fault(&scene, "fail:op=destroy:errno=EIO");
	assert_int_equal(provider_close(scene.provider), 32);
	assert_true(n_flushes > 1);
	assert_int_equal(scene_count(&scene, "flow_rules"), 32);
	nic_close(&scene.nic);
	/* it may succeed at last */
	begin_with_rules(&scene, "async=0,flows=32,load=order,flush_ns=1", 32);
	scene_fault(&scene, "fail:op=destroy:errno=EIO:times=2");
	assert_int_equal(provider_close(scene.provider), 0);
	assert_int_equal(scene_count(&scene, "flow_rules"), 0);
	nic_close(&scene.nic);
}

/*
 * What could not be tried at first, is tried when flows have all of the table: that is no answer of the driver's
 * about rules of that kind, whatever it says of a full one.
 */
static void a_full_table_says_nothing_of_a_kind(void **state)
{
	enum { ROOM = 20 };
	static const char *const profiles[] = {"e810", "x710", "tiny"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(profiles); i++) {
		const struct provider_abilities *has;
		struct provider_scene scene;
		struct provider_why why;
		char args[100];

		print_message("%s\n", profiles[i]);
		snprintf(args, sizeof(args),
			"profile=%s,flows=1,rules=20,fault=fail:op=create:after=12", profiles[i]);
		scene_open(&scene, args, false);
		has = provider_abilities(scene.provider);
		assert_true(has->kind[PROVIDER_IPV4_UDP] && has->trying[PROVIDER_IPV6_UDP]);
		scene_fault(&scene, "fail:off");
		for (unsigned k = 0; k < ROOM; k++) {
			struct offload_rule rule = scene_idle_rule(k);

			assert_int_equal(scene_insert(&scene, k, &rule, &why), 0);
		}
		/* a patient one, and one that is not */
		for (scene.config.trials = 2; scene.config.trials < 4; scene.config.trials++) {
			assert_int_equal(provider_try_again(&scene.provider, &scene.config), 0);
			has = provider_abilities(scene.provider);
			assert_true(has->trying[PROVIDER_IPV6_UDP]);
			assert_true(has->refused[PROVIDER_IPV6_UDP].error != 0);
		}
		assert_int_equal(scene_remove(&scene, 7), 0);
		assert_int_equal(provider_try_again(&scene.provider, &scene.config), 0);
		has = provider_abilities(scene.provider);
		assert_true(has->kind[PROVIDER_IPV6_UDP]);
		for (unsigned k = 0; k < PROVIDER_N_KINDS; k++)
			assert_false(has->trying[k]);
		scene_close(&scene);
	}
}

/* What the trial could not take away again takes no place from flows, and goes at the end. */
static void rules_of_the_trial_go_when_they_can(void **state)
{
	enum { ROOM = 20 };
	struct offload_rule rule = scene_idle_rule(0);
	struct provider_scene scene;
	struct provider_why why;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		scene_open(&scene, "profile=tiny,flows=1,rules=20,fault=fail:op=destroy", false);
		assert_int_equal(scene_count(&scene, "flow_rules"), ROOM);
		assert_int_equal(scene_insert(&scene, 0, &rule, &why), -ENOSPC);
		if (i == 0) {
			assert_int_equal(provider_close(scene.provider), ROOM);
			nic_close(&scene.nic);
			continue;
		}
		scene_fault(&scene, "fail:off");
		for (unsigned k = 0; k < ROOM; k++) {
			rule = scene_idle_rule(k);
			assert_int_equal(scene_insert(&scene, k, &rule, &why), 0);
		}
		scene_close(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_granted_as_the_nic_has_them),
		cmocka_unit_test(packets_carry_their_own_marks),
		cmocka_unit_test(few_rules_of_a_slow_nic),
		cmocka_unit_test(a_full_table_is_no_room),
		cmocka_unit_test(a_place_has_one_rule),
		cmocka_unit_test(kinds_of_keys),
		cmocka_unit_test(dead_until_it_is_started_anew),
		cmocka_unit_test(rules_that_stay_are_taken_away),
		cmocka_unit_test(a_port_without_marks_takes_none),
		cmocka_unit_test(the_largest_mark_works),
		cmocka_unit_test(trial_under_faults),
		cmocka_unit_test(many_rules_go_by_one_call),
		cmocka_unit_test(a_flush_empties_all_places),
		cmocka_unit_test(a_flush_that_fails_leaves_rules),
		cmocka_unit_test(a_full_table_says_nothing_of_a_kind),
		cmocka_unit_test(rules_of_the_trial_go_when_they_can),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
