/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports that cannot be tried when the engine starts, since a fault is there already: flows say so, and when the
 * fault is over all of them come into the NIC, without hand, by the best rules that the port takes.
 */
#include "base/monotonic.h"
#include "offload_live.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FLOWS 16
#define PROVEN_MS 40000

struct scenario {
	const char *words; /* of both devices */
	const char *off;   /* NULL: it ends by itself, or by a restart */
	int error;	   /* errno that flows tell; 0: the trial succeeds in part, and slowly */
	bool restart;
	bool full; /* refused for good, as it looks */
};

static const struct scenario scenarios[] = {
	{"profile=cx6-hws,fault=fail:op=create", "fail:off", .error = EIO},
	/* a completion does not say why */
	{"profile=cx6-hws,fault=fail:op=create:errno=ENOSPC", "fail:off", .error = EIO},
	{"profile=cx6-hws,fault=drop_completion", "drop_completion:off", .error = ETIMEDOUT},
	{"profile=cx6-hws,fault=late:ms=1500", "late:off", .error = ETIMEDOUT},
	{"profile=cx6-hws,fault=fail:op=push", "fail:off", .error = EIO},
	{"profile=x710,fault=fail:op=create", "fail:off", .error = EIO},
	{"profile=x710,fault=fail:op=create:errno=EBUSY", "fail:off", .error = EBUSY},
	{"profile=x710,fault=fail:op=create:errno=ENOSPC", "fail:off", .error = ENOSPC},
	/* rules are taken, and their counters cannot be read */
	{"profile=e810,fault=fail:op=query", "fail:off", .error = EIO},
	/* the first kinds of flows are granted, and then it fails */
	{"profile=x710,fault=fail:op=create:after=6", "fail:off", .error = 0},
	{"profile=cx6-hws,fault=fail:op=create:after=6", "fail:off", .error = 0},
	/* their drivers say this of a table that is full */
	{"profile=tiny,rules=16,fault=ghost:rules=16", "ghost:off", .error = ENOSYS, .full = true},
	{"profile=e810,rules=16,fault=ghost:rules=16", "ghost:off", .error = EINVAL, .full = true},
	{"profile=x710,fault=dead:after=1", NULL, .error = EIO, .restart = true},
	{"profile=cx6-hws,fault=dead:after=1", NULL, .error = EIO, .restart = true},
};

static bool was_told(const struct offload_live *live, enum change_kind kind, unsigned port)
{
	for (unsigned i = 0; i < live->n_events; i++)
		if (live->events[i].kind == kind && live->events[i].port == port)
			return true;
	return false;
}

static bool untried_was_told(struct offload_live *live, void *port)
{
	return was_told(live, CHANGE_UNTRIED, *(unsigned *)port);
}

static bool tried_was_told(struct offload_live *live, void *port)
{
	return was_told(live, CHANGE_TRIED, *(unsigned *)port);
}

/* What the port told of a flow's kind, and what the flow says. */
static void check_reason(struct offload_live *live, const struct live_flow *flow, unsigned side,
	const struct scenario *scenario)
{
	const struct installer *installer = plane_installer(live->plane, side);
	const struct provider_abilities *abilities = installer_abilities(installer);
	enum provider_kind kind = provider_kind(&flow->key);
	struct plane_flow answer;

	offload_live_ask(live, flow, &answer);
	if (abilities->kind[kind]) {
		assert_int_equal(scenario->error, 0);
		assert_int_not_equal(answer.offload.reason[offload_live_from(&answer.record, side)],
			OFFLOAD_TRIAL);
		return;
	}
	assert_int_equal(
		answer.offload.state[offload_live_from(&answer.record, side)], OFFLOAD_SOFTWARE);
	assert_true((abilities->mark_max == 0) == (abilities->unable[0] != '\0'));
	assert_int_equal(answer.offload.reason[offload_live_from(&answer.record, side)],
		scenario->full ? OFFLOAD_NO_NIC : OFFLOAD_TRIAL);
	assert_int_equal(abilities->trying[kind], !scenario->full);
	assert_true(installer_trial_us(installer) > 0);
	if (scenario->error != 0)
		assert_int_equal(abilities->refused[kind].error, scenario->error);
}

/* As a port that was well from the start. */
static void check_abilities(const struct provider_abilities *now, const char *words)
{
	struct offload_live_options options = {
		.n_flows = FLOWS, .rate = 1000, .words = words, .counters = true};
	char well[64];

	/* without the fault */
	snprintf(well, sizeof(well), "%.*s", (int)strcspn(words, ","), words);
	options.words = well;

	struct offload_live *live = offload_live_begin(&options);
	const struct provider_abilities *then =
		installer_abilities(plane_installer(live->plane, 0));

	assert_string_equal(now->back_end, then->back_end);
	assert_string_equal(now->unable, "");
	assert_int_equal(now->mark_max, then->mark_max);
	assert_int_equal(now->counts, then->counts);
	assert_memory_equal(now->kind, then->kind, sizeof(now->kind));
	assert_memory_equal(now->trying, then->trying, sizeof(now->trying));
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		assert_string_equal(now->shape[kind], then->shape[kind]);
	offload_live_end(live);
}

static struct offload_live *begin(const struct scenario *scenario, uint32_t flows)
{
	const struct offload_live_options options = {
		.n_flows = flows,
		.rate = 10000,
		.words = scenario->words,
		.counters = true,
		.restart = scenario->restart,
		.untried = true,
	};

	return offload_live_begin(&options);
}

static void what_cannot_be_tried_is_tried_again(void **state)
{
	const struct scenario *scenario = *state;
	struct offload_live *live = begin(scenario, FLOWS);
	struct provider_abilities abilities;

	for (unsigned side = 0; side < 2 && !scenario->full; side++)
		assert_true(offload_live_until(live, untried_was_told, &side, 2000));
	offload_live_run(live, 50);
	for (unsigned i = 0; i < FLOWS && !scenario->restart; i++)
		for (unsigned side = 0; side < 2; side++)
			check_reason(live, &live->flows[i], side, scenario);
	for (unsigned side = 0; side < 2 && scenario->off != NULL; side++)
		offload_live_fault(live, side, scenario->off);
	if (!offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS)) {
		offload_live_print(live);
		fail_msg("not all are in the NIC");
	}
	for (unsigned side = 0; side < 2; side++)
		assert_true(offload_live_until(live, tried_was_told, &side, PROVEN_MS));
	offload_live_check(live);
	abilities = *installer_abilities(plane_installer(live->plane, 0));
	offload_live_end(live);
	check_abilities(&abilities, scenario->words);
}

/* One of the ports alone: flows that arrive at the other go on meanwhile. */
static void the_other_port_does_not_wait(void **state)
{
	static const struct scenario sick = {.words = "profile=cx6-hws,fault=fail:op=create"};
	struct offload_live *live = begin(&sick, FLOWS);

	(void)state;
	offload_live_fault(live, 1, "fail:off");

	uint64_t end_us = monotonic_us() + UINT64_C(1000) * PROVEN_MS;

	while (offload_live_rules(live, 1) < FLOWS && monotonic_us() < end_us)
		offload_live_turn(live);
	assert_int_equal(offload_live_rules(live, 1), FLOWS);
	assert_int_equal(offload_live_rules(live, 0), 0);
	offload_live_fault(live, 0, "fail:off");
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_end(live);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[RTE_DIM(scenarios) + 1];
	unsigned n = 0;

	for (; n < RTE_DIM(scenarios); n++)
		tests[n] = (struct CMUnitTest){.name = scenarios[n].words,
			.test_func = what_cannot_be_tried_is_tried_again,
			.teardown_func = offload_live_tidy,
			.initial_state = (void *)(uintptr_t)&scenarios[n]};
	tests[n] = (struct CMUnitTest)cmocka_unit_test_teardown(
		the_other_port_does_not_wait, offload_live_tidy);
	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
