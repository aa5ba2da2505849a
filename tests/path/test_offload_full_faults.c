/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows that a NIC forwards alone, and what goes wrong with that: it loses its table, its rules, its word; flows end
 * while it has them. Every packet goes out, and records have all of them, or say that they may not.
 */
#include "offload_full.h"

#include <netinet/in.h>

#include "base/clock.h"
#include "base/monotonic.h"

#define FLOWS 8
/* Packets a second of each port that the NICs forward when nothing comes here. */
#define NIC_RATE "rate=1000000"
#define PASSES 400000

static void prove_all(struct offload_live *live)
{
	if (offload_live_until(live, offload_live_all_proven, NULL, FULL_PROVEN_MS))
		return;
	offload_live_print(live);
	fail_msg("not every flow is in the NIC");
}

static struct offload_live *begin_proven(const struct offload_live_options *more, const char *words)
{
	struct offload_live_options options = *more;
	char text[300];

	options.n_flows = FLOWS;
	snprintf(text, sizeof(text), "profile=cx5,%s%s%s", NIC_RATE, words[0] != '\0' ? "," : "",
		words);
	struct offload_live *live = full_begin(&options, text, PASSES);

	prove_all(live);
	offload_live_run(live, 200);
	/* from now on what comes here is to be done with quickly */
	live->options.rate = OFFLOAD_LIVE_FULL;
	return live;
}

static uint64_t fell_out(struct offload_live *live, unsigned reason)
{
	uint64_t sum = 0;

	for (unsigned port = 0; port < 2; port++) {
		struct agent_counters counters;

		offload_live_counters(live, port, &counters);
		sum += counters.fell_out[reason];
	}
	return sum;
}

static void both(struct offload_live *live, const char *fault)
{
	for (unsigned side = 0; side < 2; side++)
		offload_live_fault(live, side, fault);
}

/* Rules go one by one, or all; what they had counted can still be read. */
static void rules_are_gone(void **state)
{
	static const char *const faults[] = {"forget", "lose"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		const struct offload_live_options options = {.threshold = 500};
		struct offload_live *live = begin_proven(&options, "");

		print_message("%s\n", faults[i]);
		both(live, faults[i]);
		/* those that are lost are made anew first */
		for (unsigned flow = 0; i == 1 && flow < FLOWS; flow++)
			offload_live_kill(live, &live->flows[flow]);
		full_run_to_the_end(live, PASSES, 120000);
		full_end_all(live);
		full_check_reports(live, PASSES, 64);
		full_check_snapshot(live, 0);
		assert_true(fell_out(live, OFFLOAD_RETURNED) > 0);
		offload_live_leave(live);
	}
}

static bool all_left_it_for_their_counters(struct offload_live *live, void *unused)
{
	unsigned n = 0;

	(void)unused;
	for (unsigned i = 0; i < live->n_events; i++)
		n += live->events[i].kind == CHANGE_FLOW &&
		     live->events[i].after == OFFLOAD_LEAVING &&
		     live->events[i].reason == OFFLOAD_COUNTER;
	return n >= 2 * FLOWS;
}

static unsigned n_events(const struct offload_live *live, enum change_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < live->n_events; i++)
		n += live->events[i].kind == kind;
	return n;
}

/* Only they tell what was sent on: a NIC whose counters cannot be read does not keep the flows. */
static void counters_cannot_be_read(void **state)
{
	const struct offload_live_options options = {.n_flows = FLOWS, .threshold = 500};
	struct offload_live *live = full_begin(&options, "profile=cx5," NIC_RATE, 0);
	uint64_t since_us;

	(void)state;
	prove_all(live);
	offload_live_forget(live);
	since_us = live->now_us;
	both(live, "fail:op=query");
	assert_true(offload_live_until(live, all_left_it_for_their_counters, NULL, 5000));
	assert_in_range(live->now_us, since_us + 1500000, since_us + 4000000);
	/* each port told it once */
	assert_int_equal(n_events(live, CHANGE_COUNTER_REFUSED), 2);
	both(live, "fail:off");
	prove_all(live);
	live->options.rate = 0;
	full_end_all(live);
	offload_live_leave(live);
}

/* What records have is at most what there was, and less only where they say so. */
static uint64_t check_estimates(const struct offload_live *live)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		const struct live_flow *flow = &live->flows[i];

		for (unsigned side = 0; side < 2; side++) {
			assert_true(flow->reported[side] <= PASSES);
			assert_true(flow->reported[side] == PASSES || flow->estimated > 0);
			missing += PASSES - flow->reported[side];
		}
	}
	return missing;
}

/* The NIC's table is taken away with its counters: no packet is lost but what it told nobody of. */
static void the_table_is_gone(void **state)
{
	/* and it answers nothing more; or begins anew */
	static const char *const faults[] = {"dead", "reset"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(faults); i++) {
		const struct offload_live_options options = {.threshold = 500};
		struct offload_live *live = begin_proven(&options, "");

		print_message("%s\n", faults[i]);
		both(live, faults[i]);
		full_run_to_the_end(live, PASSES, 120000);
		full_end_all(live);
		/* no more than what came between two readings */
		assert_true(check_estimates(live) < 2 * 1000000);
		for (uint32_t flow = 0; flow < FLOWS; flow++)
			assert_true(live->flows[flow].estimated > 0);
		assert_true(fell_out(live, OFFLOAD_RETURNED) >= FLOWS);
		offload_live_leave(live);
	}
}

static bool was_reset(struct offload_live *live, void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < live->n_events; i++)
		if (live->events[i].kind == CHANGE_RESET)
			return true;
	return false;
}

/* The other port's rules counted packets, too, that could not leave by this one while it was stopped. */
static void check_restarted(struct offload_live *live)
{
	static struct plane_snapshot snapshot;
	uint64_t sent = full_forwarded(live);

	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	assert_int_equal(snapshot.wires[0].nic_unaccounted, 0);
	assert_true(snapshot.wires[0].nic_forwarded >= sent);
	assert_true(snapshot.wires[0].nic_forwarded - sent < 1000000);
}

/* The same, and the port may be started anew: then its counters can be read, and nothing is missing. */
static void the_port_is_restarted(void **state)
{
	const struct offload_live_options options = {
		.n_flows = FLOWS, .threshold = 500, .restart = true};
	struct offload_live *live = full_begin(&options, "profile=cx5," NIC_RATE, 0);

	(void)state;
	prove_all(live);
	offload_live_run(live, 200);
	offload_live_fault(live, 0, "dead");
	assert_true(offload_live_until(live, was_reset, NULL, 20000));
	/* the NIC has it again */
	prove_all(live);
	live->options.rate = 0;
	full_end_all(live);
	check_restarted(live);
	for (unsigned i = 0; i < FLOWS; i++)
		assert_int_equal(live->flows[i].estimated, 0);
	offload_live_leave(live);
}

/* A flow ends while the NIC has it: its report waits for the last packets. What comes then begins another. */
static void flows_are_killed(void **state)
{
	const struct offload_live_options options = {.threshold = 500};
	struct offload_live *live = begin_proven(&options, "");

	(void)state;
	for (unsigned i = 0; i < FLOWS; i++) {
		offload_live_kill(live, &live->flows[i]);
		offload_live_run(live, 20);
	}
	assert_true(offload_live_until(live, full_none_is_held, NULL, 8000));
	for (unsigned i = 0; i < FLOWS; i++) {
		assert_int_equal(live->flows[i].ended[FLOW_END_KILLED], 1);
		assert_true(live->flows[i].reported[0] > 0 && live->flows[i].reported[1] > 0);
	}
	full_run_to_the_end(live, PASSES, 120000);
	full_end_all(live);
	full_check_reports(live, PASSES, 64);
	full_check_snapshot(live, 0);
	offload_live_leave(live);
}

/* Packets of flows that have not been reported. */
static uint64_t unreported(const struct offload_live *live)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < live->plane->n_lcores; i++) {
		const struct flow_shard *shard = live->plane->lcores[i].worker.shard;
		uint32_t position = shard == NULL ? FLOW_NONE : flow_table_next(&shard->table, 0);

		for (; position != FLOW_NONE;
			position = flow_table_next(&shard->table, position + 1))
			sum += flow_packets(&shard->table.records[position], 0) +
			       flow_packets(&shard->table.records[position], 1);
	}
	return sum;
}

/* A table that is too small: flows go, and come back, all the time. */
static void flows_are_evicted(void **state)
{
	struct offload_live_options options = {.n_flows = 64, .capacity = 40, .threshold = 0};
	struct offload_live *live = full_begin(&options, "profile=cx5,rate=1000000", 0);
	uint64_t came, reported = 0;

	(void)state;
	live->options.rate = 500000;
	offload_live_run(live, 2000);
	live->options.rate = 0;
	full_end_all(live);
	full_check_snapshot(live, 0);
	came = full_forwarded(live) + offload_live_received(live, 0) +
	       offload_live_received(live, 1);
	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		reported += live->flows[i].reported[0] + live->flows[i].reported[1];
		assert_int_equal(live->flows[i].estimated, 0);
	}
	/* what was on its way when all flows ended has begun some anew */
	assert_int_equal(reported + unreported(live), came);
	offload_live_leave(live);
}

static bool one_is_estimated(struct offload_live *live, void *unused)
{
	(void)unused;
	return live->flows[0].estimated == 1;
}

static bool some_are_nobodys(struct offload_live *live, void *unused)
{
	struct agent_counters counters[2];

	(void)unused;
	for (unsigned port = 0; port < 2; port++)
		offload_live_counters(live, port, &counters[port]);
	return counters[0].unaccounted > 0 && counters[1].unaccounted > 0;
}

/* A rule that cannot be taken out goes on forwarding; nobody waits for it for ever, and what it does is counted. */
static void a_rule_stays(void **state)
{
	const struct offload_live_options options = {.n_flows = FLOWS, .threshold = 500};
	struct offload_live *live = full_begin(&options, "profile=cx5," NIC_RATE, 0);
	uint64_t reported;

	(void)state;
	prove_all(live);
	both(live, "fail:op=destroy:errno=EIO");
	offload_live_kill(live, &live->flows[0]);
	offload_live_run(live, 1000);
	assert_int_equal(live->flows[0].ended[FLOW_END_KILLED], 0);
	assert_true(offload_live_until(live, one_is_estimated, NULL, 8000));
	reported = live->flows[0].reported[0] + live->flows[0].reported[1];
	assert_true(reported > 0);
	both(live, "fail:off");
	assert_true(offload_live_until(live, some_are_nobodys, NULL, 8000));
	offload_live_leave(live);
}

static bool all_have_ended(struct offload_live *live, void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		if (live->flows[i].ended[FLOW_END_IDLE] == 0)
			return false;
	return true;
}

/* Says how long the worker was held up at most meanwhile. */
static uint64_t turn_until_all_have_ended(struct offload_live *live)
{
	const uint64_t begin_us = live->now_us;
	uint64_t longest_us = 0;

	while (!all_have_ended(live, NULL)) {
		full_turn(live, &longest_us);
		assert_true(live->now_us - begin_us < 10 * CLOCK_US_PER_S);
	}
	return longest_us;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER_S 4
#else
#define SLOWER_S 0
#endif

/* Of flows that only the NIC sees, those that live do not age, and those that fall silent do, within a second. */
static void silence_is_noticed_of(uint32_t n_flows)
{
	enum { IDLE_S = 2 };
	const struct offload_live_options options = {
		.n_flows = n_flows, .threshold = 0, .idle_s = IDLE_S};
	const uint64_t passes = 4000000 / n_flows;
	struct offload_live *live = full_begin(&options, "profile=cx5,rate=1000000", passes);
	uint64_t silent_us, longest_us;

	prove_all(live);
	full_run_to_the_end(live, passes, 20000);
	silent_us = monotonic_us();
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		assert_int_equal(live->flows[i].ended[FLOW_END_IDLE], 0);
	longest_us = turn_until_all_have_ended(live);
	silent_us = monotonic_us() - silent_us;
	print_message("%.3f s\n", (double)silent_us / 1e6);
	/*
	 * Not by whole seconds, which would be added to the time between readings; the worker may be
	 * held up, and so may the thread that reads, of which a sanitizer makes a slow one.
	 */
	assert_true(silent_us >= IDLE_S * CLOCK_US_PER_S - 300000);
	assert_true(silent_us <= (IDLE_S + 1 + SLOWER_S) * CLOCK_US_PER_S + 3 * longest_us);
	full_check_reports(live, passes, 64);
	offload_live_leave(live);
}

static void silence_is_noticed(void **state)
{
	(void)state;
	silence_is_noticed_of(4);
	/* more than are read one by one */
	silence_is_noticed_of(200);
}

static enum flow_state state_of(struct offload_live *live, unsigned flow)
{
	struct plane_flow answer;

	offload_live_ask(live, &live->flows[flow], &answer);
	return (enum flow_state)answer.record.state;
}

#define FORGED 1
#define EXACT 3

/* Those that are closed or reset, both ways. */
static bool are_in_software(struct offload_live *live, void *unused)
{
	static const unsigned flows[] = {0, FORGED, EXACT};
	struct plane_flow answer;

	(void)unused;
	for (unsigned i = 0; i < 2 * RTE_DIM(flows); i++) {
		offload_live_ask(live, &live->flows[flows[i / 2]], &answer);
		if (answer.offload.state[offload_live_from(&answer.record, i % 2)] !=
			OFFLOAD_SOFTWARE)
			return false;
	}
	return true;
}

/* near, and beyond what an acknowledgement may lag behind */
static const uint32_t forged_ahead[] = {1, 1000, 1 << 20, UINT32_C(1) << 31, UINT32_MAX};

/* From now on nothing comes but what is put there, nor what was left of another rate. */
static void stop_streams(struct offload_live *live)
{
	live->options.rate = 0;
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < live->options.n_queues; i++)
			live->side[side].budget[i] = 0;
}

static void reset_both(struct offload_live *live)
{
	for (unsigned i = 0; i < RTE_DIM(forged_ahead); i++) {
		offload_live_reset(live, &live->flows[FORGED], 0, forged_ahead[i]);
		assert_int_equal(state_of(live, FORGED), FLOW_ESTABLISHED);
	}
	offload_live_reset(live, &live->flows[EXACT], 0, 0);
	assert_int_equal(state_of(live, EXACT), FLOW_RESET);
}

static bool reset_has_ended(struct offload_live *live, void *unused)
{
	(void)unused;
	return live->flows[EXACT].ended[FLOW_END_RST] == 1;
}

/*
 * FINs that both ends acknowledge are seen, and do what they do, though the window had moved on unseen. A RST of any
 * number is one that anybody may have sent: the connection goes on, and with it the record. One of the very number that
 * the other end acknowledges after it ends the flow.
 */
static void connections_are_closed(void **state)
{
	enum { N_FORGED = RTE_DIM(forged_ahead) };
	const struct offload_live_options options = {.threshold = 500};
	struct offload_live *live = begin_proven(&options, "proto=tcp");
	struct plane_flow answer;

	(void)state;
	offload_live_ask(live, &live->flows[0], &answer);
	assert_true(answer.offload.full[0] && answer.offload.full[1]);
	assert_int_equal(answer.record.window_known, 0);
	stop_streams(live);
	offload_live_close(live, &live->flows[0], 0);
	reset_both(live);
	assert_true(offload_live_until(live, are_in_software, NULL, FULL_PROVEN_MS));
	assert_int_equal(state_of(live, 0), FLOW_TIME_WAIT);
	assert_int_equal(state_of(live, FORGED), FLOW_ESTABLISHED);
	assert_int_equal(state_of(live, 2), FLOW_ESTABLISHED);
	assert_int_equal(state_of(live, EXACT), FLOW_RESET);
	/* what the streams still have of it is another record */
	assert_true(offload_live_until(live, reset_has_ended, NULL, 20000));
	live->options.rate = OFFLOAD_LIVE_FULL;
	full_run_to_the_end(live, PASSES, 120000);
	full_end_all(live);
	assert_int_equal(live->flows[0].ended[FLOW_END_FIN], 1);
	assert_int_equal(live->flows[0].reported[0], PASSES + 2);
	assert_int_equal(live->flows[0].reported[1], PASSES + 1);
	assert_int_equal(live->flows[FORGED].ended[FLOW_END_RST], 0);
	assert_int_equal(live->flows[FORGED].ended[FLOW_END_SHUTDOWN], 1);
	assert_int_equal(live->flows[FORGED].reported[0], PASSES + N_FORGED);
	assert_int_equal(live->flows[FORGED].reported[1], PASSES + N_FORGED);
	assert_int_equal(live->flows[2].ended[FLOW_END_SHUTDOWN], 1);
	assert_int_equal(live->flows[2].reported[0], PASSES);
	assert_int_equal(live->flows[EXACT].ended[FLOW_END_RST], 1);
	assert_int_equal(live->flows[EXACT].reported[0], PASSES + 1);
	assert_int_equal(live->flows[EXACT].reported[1], PASSES + 1);
	full_check_snapshot(live, 0);
	offload_live_leave(live);
}

/*
 * Counters become narrower in mid-life, or were narrow all along, at one port or both: no record has what was not sent,
 * and one that has less says so.
 */
static void counters_become_narrower(void **state)
{
	static const struct {
		const char *fault;
		bool second, begins;
	} rows[] = {
		{"wrap:bits=16", false, false},
		{"wrap:bits=20", false, false},
		{"wrap:bits=24", true, false},
		{"wrap:bits=16", true, false},
		{"wrap:bits=20", true, true},
		{"wrap:bits=16", true, true},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct offload_live_options options = {.threshold = 500};
		char begins[64] = "";

		print_message("%s%s\n", rows[i].fault, rows[i].begins ? " from the start" : "");
		if (rows[i].begins)
			snprintf(begins, sizeof(begins), "fault=%s", rows[i].fault);
		struct offload_live *live = begin_proven(&options, begins);

		for (unsigned side = 0; !rows[i].begins && side < 1u + rows[i].second; side++)
			offload_live_fault(live, side, rows[i].fault);
		full_run_to_the_end(live, PASSES, 120000);
		full_end_all(live);
		for (unsigned k = 0; k < FLOWS; k++) {
			const struct live_flow *flow = &live->flows[k];
			bool whole = true;

			for (unsigned side = 0; side < 2; side++) {
				assert_in_range(flow->reported[side], 1, PASSES);
				assert_in_range(
					flow->reported_bytes[side], 1, UINT64_C(64) * PASSES);
				whole &= flow->reported[side] == PASSES &&
					 flow->reported_bytes[side] == UINT64_C(64) * PASSES;
			}
			assert_true(whole || flow->estimated > 0);
		}
		offload_live_leave(live);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rules_are_gone, offload_live_tidy),
		cmocka_unit_test_teardown(counters_cannot_be_read, offload_live_tidy),
		cmocka_unit_test_teardown(the_table_is_gone, offload_live_tidy),
		cmocka_unit_test_teardown(the_port_is_restarted, offload_live_tidy),
		cmocka_unit_test_teardown(flows_are_killed, offload_live_tidy),
		cmocka_unit_test_teardown(flows_are_evicted, offload_live_tidy),
		cmocka_unit_test_teardown(a_rule_stays, offload_live_tidy),
		cmocka_unit_test_teardown(silence_is_noticed, offload_live_tidy),
		cmocka_unit_test_teardown(connections_are_closed, offload_live_tidy),
		cmocka_unit_test_teardown(counters_become_narrower, offload_live_tidy),
	};

	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
