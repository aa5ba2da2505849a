/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the twelve defects of test_offload_twelve.c those that come when flows end, very many of them. */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>

#define PROVEN_MS 20000

static bool has_no_rules(struct offload_live *live, void *unused)
{
	(void)unused;
	return offload_live_rules(live, 0) == 0 && offload_live_rules(live, 1) == 0;
}

static const struct flow_shard *shard_of(const struct offload_live *live)
{
	return live->plane->lcores[0].worker.shard;
}

static bool has_no_slots(struct offload_live *live, void *unused)
{
	struct plane_slots slots;

	(void)unused;
	assert_int_equal(plane_slots(live->plane, 0, &slots), 0);
	return slots.used == 0 && slots.draining == 0;
}

static void mute_from(struct offload_live *live, uint32_t first, bool muted)
{
	for (uint32_t i = first; i < live->options.n_flows; i++)
		live->flows[i].muted = muted;
}

static void kill_from(struct offload_live *live, uint32_t first)
{
	for (uint32_t i = first; i < live->options.n_flows; i++)
		if (offload_live_knows(live, &live->flows[i]))
			offload_live_kill(live, &live->flows[i]);
}

/* Enough for what is to be seen, on both sides. */
static bool has_created(const struct offload_live *live)
{
	bool enough = true;

	for (unsigned side = 0; side < 2; side++) {
		struct sim_port *sim = live->side[side].sim;

		pthread_mutex_lock(&sim->lock);
		enough &= sim->told.created > 500;
		pthread_mutex_unlock(&sim->lock);
	}
	return enough;
}

/* By the NIC's own book: all that it took it gave back. */
static void check_book(struct offload_live *live)
{
	for (unsigned side = 0; side < 2; side++) {
		struct sim_port *sim = live->side[side].sim;

		pthread_mutex_lock(&sim->lock);
		uint64_t created = sim->told.created, destroyed = sim->told.destroyed;
		uint32_t there = sim->n_rules;

		pthread_mutex_unlock(&sim->lock);
		assert_int_equal(created, destroyed);
		assert_int_equal(there, 0);
	}
}

/* Flows end before the NIC has answered their insert, and begin anew before it has their delete. */
static void create_and_end(const char *words)
{
	struct offload_live *live = offload_live_begin(
		&(struct offload_live_options){.n_flows = 64, .words = words, .rate = 100000});

	for (unsigned side = 0; side < 2; side++) {
		offload_live_fault(live, side, "late:ms=1:every=3");
		offload_live_fault(live, side, "stall_delete:ms=2:every=2");
	}
	for (unsigned round = 0; round < 300 || !has_created(live); round++) {
		assert_true(round < 5000);
		for (uint32_t i = round % 4; i < live->options.n_flows; i += 4)
			if (offload_live_knows(live, &live->flows[i]))
				offload_live_kill(live, &live->flows[i]);
		offload_live_run(live, 2 + round % 5);
	}
	offload_live_check(live);
	mute_from(live, 0, true);
	kill_from(live, 0);
	assert_true(offload_live_until(live, has_no_rules, NULL, PROVEN_MS));
	assert_true(offload_live_until(live, has_no_slots, NULL, PROVEN_MS));
	check_book(live);
	offload_live_end(live);
}

static void founding_04_a_rule_is_remembered_while_its_end_is_asked_for(void **state)
{
	(void)state;
	create_and_end(NULL);
	create_and_end("async=0");
}

/* Each list from its old end leads over all of its records, which are in its phase. */
static void check_lists(const struct offload_live *live)
{
	const struct flow_shard *shard = shard_of(live);
	uint32_t positions[512], sum = 0;
	bool seen[512] = {false};

	for (unsigned phase = 0; phase < FLOW_N_PHASES; phase++) {
		const struct wheel *wheel = &shard->wheel[phase];

		assert_int_equal(wheel_oldest(wheel, positions, RTE_DIM(positions)), wheel->count);
		for (uint32_t i = 0; i < wheel->count; i++) {
			const struct flow_record *record = &shard->table.records[positions[i]];

			assert_int_equal(flow_phase((enum flow_state)record->state), phase);
			assert_true(positions[i] < RTE_DIM(seen) && !seen[positions[i]]);
			seen[positions[i]] = true;
		}
		sum += wheel->count;
	}
	assert_int_equal(sum, shard->table.count);
}

static enum flow_state state_of(struct offload_live *live, uint32_t number)
{
	struct plane_flow answer;

	offload_live_ask(live, &live->flows[number], &answer);
	return (enum flow_state)answer.record.state;
}

static bool is_empty(struct offload_live *live, void *unused)
{
	(void)unused;
	return shard_of(live)->table.count == 0;
}

/* How a flow ends, by its number; of the third only one side has closed. */
enum { BY_RST, BY_FIN, BY_HALF, BY_KILL, BY_IDLE, N_WAYS, FLOWS = 100 };

static void end_flows(struct offload_live *live)
{
	static const enum flow_state states[N_WAYS] = {
		[BY_RST] = FLOW_RESET,
		[BY_FIN] = FLOW_TIME_WAIT,
		[BY_HALF] = FLOW_FIN_0,
		[BY_KILL] = FLOW_ESTABLISHED,
		[BY_IDLE] = FLOW_ESTABLISHED,
	};

	for (uint32_t i = 0; i < FLOWS; i++) {
		const struct live_flow *flow = &live->flows[i];

		if (i % N_WAYS == BY_RST)
			offload_live_put(live, flow, i / N_WAYS % 2, 0, TCP_RST);
		if (i % N_WAYS == BY_FIN)
			offload_live_close(live, flow, 0);
		if (i % N_WAYS == BY_HALF)
			offload_live_put(live, flow, flow->from[0], 0, TCP_FIN);
	}
	offload_live_run(live, 5);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_int_equal(state_of(live, i), states[i % N_WAYS]);
	check_lists(live);
	mute_from(live, 0, true);
	for (uint32_t i = BY_KILL; i < FLOWS; i += N_WAYS)
		offload_live_kill(live, &live->flows[i]);
	check_lists(live);
}

static void founding_07_states_go_on_and_lists_stay_whole(void **state)
{
	static const enum flow_end reasons[N_WAYS] = {
		[BY_RST] = FLOW_END_RST,
		[BY_FIN] = FLOW_END_FIN,
		[BY_HALF] = FLOW_END_IDLE,
		[BY_KILL] = FLOW_END_KILLED,
		[BY_IDLE] = FLOW_END_IDLE,
	};
	enum { ROUNDS = 2 };
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = FLOWS, .words = "proto=tcp", .rate = 50000, .idle_s = 1});

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		check_lists(live);
		end_flows(live);
		assert_true(offload_live_until(live, is_empty, NULL, 5000));
		check_lists(live);
		assert_true(offload_live_until(live, has_no_rules, NULL, PROVEN_MS));
		assert_true(offload_live_until(live, has_no_slots, NULL, PROVEN_MS));
		mute_from(live, 0, false);
	}
	mute_from(live, 0, true);
	offload_live_check(live);
	offload_live_finish(live);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_int_equal(live->flows[i].ended[reasons[i % N_WAYS]], ROUNDS);
	offload_live_leave(live);
}

/* Sixteen times as many flows as records, which go round and round. */
static void founding_08_a_full_table_forwards_and_loses_no_record(void **state)
{
	enum { CAPACITY = 64 };
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 16 * CAPACITY, .rate = 50000, .capacity = CAPACITY});
	uint64_t evicted = 0;

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		mute_from(live, 0, false);
		offload_live_run(live, 100);
		/* what came went out, too */
		offload_live_check(live);
		assert_int_equal(shard_of(live)->table.count, CAPACITY);
		/*
		 * All that there is can be had, and nothing more is held. A conversation that has gone quiet keeps
		 * its record where there are flows that nobody has answered: it is not to stand in their way.
		 */
		mute_from(live, CAPACITY, true);
		kill_from(live, CAPACITY);
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		assert_int_equal(shard_of(live)->table.count, CAPACITY);
		mute_from(live, 0, true);
		kill_from(live, 0);
		assert_int_equal(shard_of(live)->table.count, 0);
		assert_true(offload_live_until(live, has_no_rules, NULL, PROVEN_MS));
		assert_true(offload_live_until(live, has_no_slots, NULL, PROVEN_MS));
	}
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		evicted += live->flows[i].ended[FLOW_END_EVICTED];
	assert_int_equal(evicted, shard_of(live)->counters.ended[FLOW_END_EVICTED]);
	assert_true(evicted > 10 * CAPACITY);
	offload_live_end(live);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			founding_04_a_rule_is_remembered_while_its_end_is_asked_for,
			offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_07_states_go_on_and_lists_stay_whole, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_08_a_full_table_forwards_and_loses_no_record, offload_live_tidy),
	};

	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
