/* SPDX-License-Identifier: BSD-3-Clause */
/* Several workers and one NIC, which has too few rules for all: the busiest flows get them, whosever they are. */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
	FLOWS = 128,
	RULES = 16,
	HOT = 12,
	COLD_ONE_IN = 4, /* of the packets of a busy one */
	PPS = 500,
	PATIENCE_MS = 20000,
	BOTH = 2, /* workers */
};

struct roles {
	struct live_flow *hot[HOT];
	unsigned n_hot;
	unsigned least_rules;
};

/* Flows of one worker are less busy, and come first; a few of the other's are busy. BOTH: of each some are. */
static void cast(struct offload_live *live, struct roles *roles, unsigned cold)
{
	unsigned n_hot[2] = {0};

	*roles = (struct roles){.least_rules = RULES};
	for (uint32_t i = 0; i < FLOWS; i++) {
		struct live_flow *flow = &live->flows[i];
		const unsigned worker = offload_live_worker(live, flow);
		const bool is_cold = cold == BOTH ? n_hot[worker] == HOT / 2 : worker == cold;

		flow->one_in = is_cold ? COLD_ONE_IN : 1;
		flow->muted = !is_cold;
		n_hot[worker] += !is_cold;
		if (!is_cold && roles->n_hot < HOT)
			roles->hot[roles->n_hot++] = flow;
	}
	assert_int_equal(roles->n_hot, HOT);
}

static bool is_filled(struct offload_live *live, void *unused)
{
	(void)unused;
	return offload_live_rules(live, 0) == RULES;
}

static bool hot_have_rules(struct offload_live *live, void *context)
{
	struct roles *roles = context;

	roles->least_rules = RTE_MIN(roles->least_rules, offload_live_rules(live, 0));
	for (unsigned i = 0; i < HOT; i++)
		if (!offload_live_proven(live, roles->hot[i]))
			return false;
	return true;
}

/* The busy ones, and as many others as there is room for. */
static bool all_have_their_places(struct offload_live *live, void *context)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < FLOWS; i++)
		n += offload_live_proven(live, &live->flows[i]);
	return n >= RULES - 1 && hot_have_rules(live, context);
}

/* A mark that one worker gave, and the other finds where it is wrong, is of this run. */
static void assert_marks_are_known(struct offload_live *live)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct agent_wire *wire =
			&plane_shard_lcore(live->plane, i)->worker.agent->wire[0];
		struct agent *other = plane_shard_lcore(live->plane, !i)->worker.agent;
		const uint64_t ghosts = other->port[0].counters.ghosts;

		uint32_t used = 0;

		assert_true(wire->slots.n_used > 0);
		while (!slots_slot(&wire->slots, used)->used)
			used++;
		agent_stranger(other, 0, slots_mark(&wire->slots, used), FLOW_NONE, NULL);
		assert_int_equal(other->port[0].counters.ghosts, ghosts);
	}
}

static void change_over(const char *words, enum plane_threads threads, unsigned cold)
{
	struct roles roles;
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = FLOWS,
		.words = words,
		.n_workers = 2,
		.threads = threads,
		.one_way = true,
		.rate = FLOWS * PPS,
		.threshold = 10,
	});

	cast(live, &roles, cold);
	assert_true(offload_live_until(live, is_filled, NULL, PATIENCE_MS));
	for (unsigned i = 0; i < HOT; i++)
		roles.hot[i]->muted = false;
	assert_true(offload_live_until(live, hot_have_rules, &roles, PATIENCE_MS));
	/* one goes for one that comes, and then the next: the others stay */
	if (cold != BOTH)
		assert_in_range(roles.least_rules, RULES - 3, RULES);
	assert_true(offload_live_until(live, all_have_their_places, &roles, PATIENCE_MS));
	assert_marks_are_known(live);
	offload_live_end(live);
}

static void busier_flows_of_another_worker_get_the_places(void **state)
{
	(void)state;
	/* blocking calls and completions; a table that both ports have, and the first or the second worker to give way */
	change_over("proto=udp,rules=16", PLANE_RUN_TO_COMPLETION, 0);
	change_over("proto=udp,rules=16,async=0", PLANE_RUN_TO_COMPLETION, 1);
	change_over("proto=udp,rules=16", PLANE_SPLIT, 1);
}

/* Each worker has less busy flows in the NIC, and busier ones that want to. */
static void busy_flows_of_all_workers_get_in(void **state)
{
	(void)state;
	change_over("proto=udp,rules=16", PLANE_RUN_TO_COMPLETION, BOTH);
	change_over("proto=udp,rules=16,async=0,create_ns=1000000,destroy_ns=1000000",
		PLANE_RUN_TO_COMPLETION, BOTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			busier_flows_of_another_worker_get_the_places, offload_live_tidy),
		cmocka_unit_test_teardown(busy_flows_of_all_workers_get_in, offload_live_tidy),
	};

	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
