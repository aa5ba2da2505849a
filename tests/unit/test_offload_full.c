/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that leave the CPU nothing to do, over kinds of NIC: what they are granted, take, and count. */
#include "provider_scene.h"

#define OTHER "net_flowsim_beside"
#define FLOWS 8

/* A provider that may forward to a second port of the same NIC. */
struct full_scene {
	struct provider_scene scene;
	struct nic other;
	struct seen_set set;
};

static void open_full(struct full_scene *full, const char *args, const char *other, bool async)
{
	char words[240];

	memset(full, 0, sizeof(*full));
	nic_open(&full->other, OTHER, other);
	snprintf(words, sizeof(words), "%s,flows=%d,load=order", args, FLOWS);
	scene_port(&full->scene, words, async);
	full->scene.config.full = true;
	full->scene.config.forward_to = full->other.id;
	assert_int_equal(provider_open(&full->scene.provider, &full->scene.config), 0);
	assert_int_equal(scene_count(&full->scene, "flow_rules"), 0);
}

/* `streams` of the port that is opened: ",proto=tcp". */
static void begin_with(struct full_scene *full, const char *args, const char *streams)
{
	char words[200], other[200];

	snprintf(words, sizeof(words), "%s,nic=n%s", args, streams);
	snprintf(other, sizeof(other), "%s,nic=n,source=none", args);
	open_full(full, words, other, false);
	scene_look(&full->scene, &full->set, FLOWS);
	assert_int_equal(full->set.n, FLOWS);
}

static void begin(struct full_scene *full, const char *args)
{
	begin_with(full, args, "");
}

static void end(struct full_scene *full)
{
	scene_close(&full->scene);
	nic_close(&full->other);
}

static uint64_t xstat(const struct nic *nic, const char *name)
{
	uint64_t id, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(nic->id, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(nic->id, &id, &value, 1), 1);
	return value;
}

static void insert(struct full_scene *full, uint32_t place, enum provider_deed deed)
{
	struct offload_rule rule = scene_rule(&full->set, place);
	struct provider_why why = {0};

	rule.deed = (uint8_t)deed;
	assert_int_equal(scene_insert(&full->scene, place, &rule, &why), 0);
}

/* As docs/hardware.md has these NICs: SCTP is none of a ConnectX's, and ICMP has errors in it. */
static void what_is_granted(void **state)
{
	static const struct {
		const char *args, *tcp;
		bool async, one_nic;
		unsigned forwards, drops;
		bool exact;
	} cases[] = {
		{"profile=cx5",
			"represented_port / eth / ipv4 whole / tcp flags, indirect count + "
			"represented_port",
			false, true, 0x33, 0x33, true},
		{"profile=tiny",
			"represented_port / eth / ipv4 whole / tcp flags, indirect count + "
			"represented_port",
			false, true, 0x77, 0x77, true},
		{"profile=cx5,actions=-represented_port",
			"port_id / eth / ipv4 whole / tcp flags, indirect count + port_id", false,
			true, 0x33, 0x33, true},
		/* of another NIC, nothing can be sent there */
		{"profile=cx5", "", false, false, 0, 0x33, true},
		{"profile=cx5,transfer=0", "", false, true, 0, 0, true},
		{"profile=cx5,actions=-count", "", false, true, 0, 0, true},
		{"profile=x710", "", false, true, 0, 0, true},
		{"profile=e810", "", false, true, 0, 0, true},
		{"profile=cx6-hws", "", true, true, 0, 0, false},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		const struct provider_abilities *has;
		unsigned forwards = 0, drops = 0;
		char words[200], other[200];
		struct full_scene full;

		print_message("%s\n", cases[i].args);
		snprintf(words, sizeof(words), "%s,nic=n", cases[i].args);
		snprintf(other, sizeof(other), "%s,nic=%s,source=none", cases[i].args,
			cases[i].one_nic ? "n" : "m");
		open_full(&full, words, other, cases[i].async);
		has = provider_abilities(full.scene.provider);
		for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++) {
			bool may = has->full[PROVIDER_FORWARDS][kind];

			forwards |= (unsigned)may << kind;
			drops |= (unsigned)has->full[PROVIDER_DROPS][kind] << kind;
			assert_true(may == (has->full_shape[kind][0] != '\0'));
			if (may)
				assert_int_equal(has->full_refused[kind].error, 0);
			assert_true(has->kind[kind] || !may);
		}
		assert_int_equal(forwards, cases[i].forwards);
		assert_int_equal(drops, cases[i].drops);
		assert_string_equal(has->full_shape[PROVIDER_IPV4_TCP], cases[i].tcp);
		if (forwards != 0)
			assert_true(has->exact == cases[i].exact);
		else
			assert_int_not_equal(has->full_refused[PROVIDER_IPV4_UDP].error, 0);
		end(&full);
	}
}

/* Nobody asked for it: then it is not tried, and not done. */
static void nothing_unless_it_is_wanted(void **state)
{
	struct provider_why why = {0};
	struct offload_rule rule;
	struct full_scene full;

	(void)state;
	begin(&full, "profile=cx5");
	provider_close(full.scene.provider);
	full.scene.config.full = false;
	assert_int_equal(provider_open(&full.scene.provider, &full.scene.config), 0);
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		assert_false(
			provider_abilities(full.scene.provider)->full[PROVIDER_FORWARDS][kind]);
	rule = scene_rule(&full.set, 0);
	rule.deed = PROVIDER_FORWARDS;
	assert_int_equal(scene_insert(&full.scene, 0, &rule, &why), -EOPNOTSUPP);
	end(&full);
}

/* Its packets go to the other port, the others come; and the counter has all of them, the last ones too. */
static void forwarded_packets_never_come(void **state)
{
	static const char *const nics[][2] = {{"profile=cx5", ""},
		{"profile=cx5,actions=-represented_port", ""}, {"profile=tiny", ",proto=sctp"},
		{"profile=cx5", ",proto=tcp"}, {"profile=cx5", ",ipv6=100"}};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(nics); i++) {
		struct provider_count count;
		struct provider_why why;
		struct full_scene full;

		print_message("%s%s\n", nics[i][0], nics[i][1]);
		begin_with(&full, nics[i][0], nics[i][1]);
		insert(&full, 0, PROVIDER_FORWARDS);
		scene_look(&full.scene, &full.set, 70 * (FLOWS - 1));
		assert_int_equal(full.set.seen[0].packets, 0);
		for (unsigned k = 1; k < FLOWS; k++)
			assert_int_equal(full.set.seen[k].packets, 70);
		uint64_t sent = xstat(&full.other, "tx_nic_packets");

		assert_true(sent >= 69);
		assert_int_equal(provider_query(full.scene.provider, 0, &count, &why), 0);
		assert_int_equal(count.packets, sent);
		assert_false(count.final);
		scene_look(&full.scene, &full.set, 7 * (FLOWS - 1));
		assert_int_equal(scene_remove(&full.scene, 0), 0);
		sent = xstat(&full.other, "tx_nic_packets");
		assert_true(provider_last_count(full.scene.provider, 0, &count));
		assert_int_equal(count.packets, sent);
		assert_int_equal(count.bytes, xstat(&full.other, "tx_nic_bytes"));
		assert_true(count.final && count.has_bytes);
		/* once */
		assert_false(provider_last_count(full.scene.provider, 0, &count));
		/* and now they come */
		scene_look(&full.scene, &full.set, 10 * FLOWS);
		assert_int_equal(full.set.seen[0].packets, 10);
		/* the next rule of the place begins at 0 */
		insert(&full, 0, PROVIDER_FORWARDS);
		assert_int_equal(provider_query(full.scene.provider, 0, &count, &why), 0);
		assert_int_equal(count.packets, 0);
		assert_false(provider_last_count(full.scene.provider, 0, &count));
		end(&full);
	}
}

static void dropped_packets_never_come(void **state)
{
	struct provider_count count;
	struct full_scene full;

	(void)state;
	begin(&full, "profile=cx5");
	insert(&full, 2, PROVIDER_DROPS);
	scene_look(&full.scene, &full.set, 50 * (FLOWS - 1));
	assert_int_equal(full.set.seen[2].packets, 0);
	assert_int_equal(scene_remove(&full.scene, 2), 0);
	assert_true(provider_last_count(full.scene.provider, 2, &count));
	assert_true(count.packets >= 49 && count.final);
	assert_int_equal(count.packets, xstat(&full.scene.nic, "rx_rule_dropped_packets"));
	assert_int_equal(xstat(&full.other, "tx_nic_packets"), 0);
	end(&full);
}

/* Where counters go with their rules, the last that is told may not be the last there was. */
static void a_counter_that_goes_with_its_rule(void **state)
{
	struct provider_count count;
	struct full_scene full;

	(void)state;
	begin(&full, "profile=cx5,actions=mark+queue+count+represented_port+drop");
	assert_false(provider_abilities(full.scene.provider)->exact);
	insert(&full, 0, PROVIDER_FORWARDS);
	scene_look(&full.scene, &full.set, 30 * (FLOWS - 1));
	assert_int_equal(scene_remove(&full.scene, 0), 0);
	assert_true(provider_last_count(full.scene.provider, 0, &count));
	assert_false(count.final);
	assert_int_equal(count.packets, xstat(&full.other, "tx_nic_packets"));
	end(&full);
}

/* The NIC's table goes with the port's stop, and what it had counted stays. */
static void counts_outlive_the_port(void **state)
{
	struct provider_count count;
	struct full_scene full;

	(void)state;
	begin(&full, "profile=cx5");
	insert(&full, 0, PROVIDER_FORWARDS);
	insert(&full, 1, PROVIDER_MARKS);
	scene_look(&full.scene, &full.set, 30 * (FLOWS - 1));
	scene_restart(&full.scene);
	assert_true(provider_last_count(full.scene.provider, 0, &count));
	assert_true(count.final);
	assert_int_equal(count.packets, xstat(&full.other, "tx_nic_packets"));
	assert_false(provider_last_count(full.scene.provider, 1, &count));
	/* asked again, it is gone */
	assert_int_equal(scene_remove(&full.scene, 0), 0);
	insert(&full, 0, PROVIDER_FORWARDS);
	end(&full);
}

/* The handle of a rule that was refused goes, too. */
static void no_handle_is_left(void **state)
{
	struct offload_rule rule;
	struct full_scene full;

	(void)state;
	begin(&full, "profile=cx5");
	rule = scene_rule(&full.set, 0);
	rule.deed = PROVIDER_FORWARDS;
	scene_fault(&full.scene, "fail:op=create:errno=ENOSPC");
	for (unsigned i = 0; i < 100; i++) {
		struct provider_why why = {0};

		assert_int_equal(scene_insert(&full.scene, 0, &rule, &why), -ENOSPC);
		assert_int_equal(why.error, ENOSPC);
	}
	scene_fault(&full.scene, "fail:off");
	insert(&full, 0, PROVIDER_FORWARDS);
	end(&full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_granted),
		cmocka_unit_test(nothing_unless_it_is_wanted),
		cmocka_unit_test(forwarded_packets_never_come),
		cmocka_unit_test(dropped_packets_never_come),
		cmocka_unit_test(a_counter_that_goes_with_its_rule),
		cmocka_unit_test(counts_outlive_the_port),
		cmocka_unit_test(no_handle_is_left),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
