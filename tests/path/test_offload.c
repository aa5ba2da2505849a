/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every fault of the simulated NIC, as docs/hardware.md tells what the engine notices of it: the table there is
 * read, and each of its rows is tried. Under each fault every packet goes out, and is its own flow's; the
 * event comes within a second; each flow that is affected says why; and afterwards all are in the NIC again.
 */
#include "offload_live.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_US UINT64_C(1000000)
#define PROVEN_MS 20000
#define AGAIN_MS 40000
/* Packets a second that are affected, whatever part of the flows that is. */
#define AFFECTED 10000
#define MANY 16
#define FEW 8

#define MAX_ROWS 32
/* No event: nothing of marked flows is lost, which offload_live_check() sees. */
#define NOTHING "none"

struct row {
	char fault[64], event[64], reason[32];
};

/* What a fault needs in order to strike, and what its flows then say. */
struct scenario {
	const char *fault; /* as in the table; N is the mark of a flow */
	const char *as;	   /* NULL: its own row holds; else that of this fault does */
	const char *
		words; /* of the device, where it has to be a certain one; else both kinds of calls are tried */
	const char *off; /* NULL: it ends by itself */
	bool one;	 /* it affects one flow of FEW, else all of MANY */
	bool kill;	 /* these are ended, and begin anew */
	bool anew;	 /* the same, and their old rules are gone before the fault is set */
	bool waits;	 /* or nobody answers it: then it says one of `reasons` */
	bool stays;	 /* they say so when the event has come, not only on the way */
	bool quiet;	 /* no flow is asked for: the NIC is to have no rules of this run */
	bool counters, restart;
	uint8_t because;  /* a change of each such flow at that port has this reason; 0: any */
	int error;	  /* errno of the refusal, as blocking calls tell it; 0: none is expected */
	unsigned states;  /* it is in one of these then */
	uint64_t reasons; /* and says one of these; refusals are looked at by `error` */
	unsigned affected; /* so many flows at least; 0: all */
};

#define STATE(name) (1u << OFFLOAD_##name)
#define REASON(name) (UINT64_C(1) << OFFLOAD_##name)
#define OUT_OF_IT \
	(STATE(SOFTWARE) | STATE(LEAVING) | STATE(QUEUED) | STATE(INSTALLING) | STATE(ACCEPTED))
#define TRIES_AGAIN (REASON(QUARANTINE) | REASON(BREAKER) | REASON(BUSY) | REASON(CANARY))

static const struct scenario scenarios[] = {
	{.fault = "stop_mark",
		.off = "stop_mark:off",
		.because = OFFLOAD_UNMARKED,
		.states = OUT_OF_IT,
		.reasons = REASON(UNMARKED) | REASON(UNSEEN) | TRIES_AGAIN},
	{.fault = "stop_mark:mark=N",
		.off = "stop_mark:off",
		.one = true,
		.because = OFFLOAD_UNMARKED,
		.states = OUT_OF_IT,
		.reasons = REASON(UNMARKED) | TRIES_AGAIN},
	{.fault = "wrong_mark",
		.off = "wrong_mark:off",
		.because = OFFLOAD_WRONG_MARK,
		.states = OUT_OF_IT,
		.reasons = REASON(WRONG_MARK) | TRIES_AGAIN},
	{.fault = "dead",
		.restart = true,
		.because = OFFLOAD_UNMARKED,
		.states = OUT_OF_IT,
		.reasons = REASON(UNMARKED) | TRIES_AGAIN},
	{.fault = "lose",
		.off = "lose:off",
		.anew = true,
		.because = OFFLOAD_UNSEEN,
		.states = OUT_OF_IT,
		.reasons = REASON(UNSEEN) | TRIES_AGAIN},
	{.fault = "fail:op=create:errno=ENOSPC",
		.off = "fail:off",
		.anew = true,
		.error = ENOSPC,
		.states = STATE(REFUSED) | STATE(QUEUED) | STATE(INSTALLING),
		.reasons = TRIES_AGAIN},
	{.fault = "fail:op=create:errno=EIO",
		.off = "fail:off",
		.anew = true,
		.error = EIO,
		.states = STATE(REFUSED) | STATE(QUEUED) | STATE(INSTALLING) | STATE(SOFTWARE),
		.reasons = TRIES_AGAIN},
	/* the old rule marks the new flow's packets: which is accepted, and not proven as long as that stays */
	{.fault = "fail:op=destroy:errno=EIO",
		.off = "fail:off",
		.one = true,
		.kill = true,
		.stays = true,
		.because = OFFLOAD_ENDED,
		.states = STATE(ACCEPTED),
		.reasons = REASON(OLDER_RULE)},
	{.fault = "fail:op=query",
		.off = "fail:off",
		.counters = true,
		.states = STATE(PROVEN),
		.reasons = REASON(BUSY)},
	{.fault = "fail:op=push",
		.words = "profile=cx6-hws",
		.off = "fail:off",
		.anew = true,
		.waits = true,
		.stays = true,
		.error = EIO,
		.states = STATE(REFUSED) | STATE(QUEUED) | STATE(INSTALLING) | STATE(SOFTWARE),
		.reasons = REASON(BUSY) | REASON(BREAKER)},
	/* what was postponed stays so: the first ones are not answered */
	{.fault = "fail:op=any",
		.as = "fail:op=push",
		.words = "profile=cx6-hws",
		.off = "fail:off",
		.anew = true,
		.waits = true,
		.stays = true,
		.error = EIO,
		.states = STATE(REFUSED) | STATE(QUEUED) | STATE(INSTALLING) | STATE(SOFTWARE),
		.reasons = REASON(BUSY) | REASON(BREAKER)},
	{.fault = "fail:op=any",
		.words = "async=0",
		.off = "fail:off",
		.anew = true,
		.error = EIO,
		.states = STATE(REFUSED) | STATE(QUEUED) | STATE(INSTALLING) | STATE(SOFTWARE),
		.reasons = TRIES_AGAIN},
	/* the new rule waits for the NIC, which is busy with the old one */
	{.fault = "stall_delete:ms=1500",
		.off = "stall_delete:off",
		.one = true,
		.kill = true,
		.stays = true,
		.because = OFFLOAD_ENDED,
		.states = STATE(INSTALLING),
		.reasons = REASON(OLDER_RULE)},
	{.fault = "late:ms=1500",
		.off = "late:off",
		.one = true,
		.kill = true,
		.stays = true,
		.states = STATE(INSTALLING),
		.reasons = REASON(OLDER_RULE)},
	{.fault = "drop_completion",
		.words = "profile=cx6-hws",
		.off = "drop_completion:off",
		.anew = true,
		/* where answers were slow before, few are asked for at once */
		.states = STATE(INSTALLING) | STATE(QUEUED),
		.reasons = REASON(BUSY)},
	{.fault = "count_nothing",
		.off = "count_nothing:off",
		.counters = true,
		.because = OFFLOAD_COUNTER,
		.states = OUT_OF_IT,
		.reasons = REASON(COUNTER) | TRIES_AGAIN},
	{.fault = "wrap:bits=16", .off = "wrap:off", .one = true, .counters = true},
	{.fault = "forget",
		.because = OFFLOAD_UNMARKED,
		.states = OUT_OF_IT | STATE(PROVEN),
		.reasons = REASON(UNMARKED) | TRIES_AGAIN},
	{.fault = "reset",
		.because = OFFLOAD_UNMARKED,
		.states = OUT_OF_IT | STATE(PROVEN),
		.reasons = REASON(UNMARKED) | TRIES_AGAIN},
	{.fault = "evict",
		.off = "evict:off",
		.one = true,
		.kill = true,
		.because = OFFLOAD_UNMARKED,
		.states = STATE(LEAVING) | STATE(SOFTWARE),
		.reasons = REASON(UNMARKED) | REASON(QUARANTINE),
		.affected = 1},
	{.fault = "ghost:rules=4",
		.off = "ghost:off",
		.quiet = true,
		.states = STATE(SOFTWARE),
		.reasons = REASON(QUIET)},
};

static struct row rows[MAX_ROWS];
static unsigned n_rows;

/* A cell of a table without blanks and backquotes around it; returns where the next one begins. */
static const char *take_cell(const char *line, char *cell, size_t size)
{
	const char *end = strchr(line, '|');
	size_t n = 0;

	assert_non_null(end);
	for (const char *at = line; at < end; at++) {
		if (*at == '`' || (n == 0 && isspace((unsigned char)*at)))
			continue;
		assert_true(n + 1 < size);
		cell[n++] = *at;
	}
	while (n > 0 && isspace((unsigned char)cell[n - 1]))
		n--;
	cell[n] = '\0';
	return end + 1;
}

static int read_rows(void **state)
{
	FILE *file = fopen(HARDWARE_MD, "r");
	bool inside = false;
	char line[1024];

	if (offload_live_environment(state) < 0 || file == NULL)
		return -1;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "## ", 3) == 0)
			inside = strcmp(line, "## What the engine notices\n") == 0;
		if (!inside || strncmp(line, "| `", 3) != 0)
			continue;
		assert_true(n_rows < MAX_ROWS);
		struct row *row = &rows[n_rows++];
		const char *at = take_cell(line + 1, row->fault, sizeof(row->fault));

		at = take_cell(at, row->event, sizeof(row->event));
		take_cell(at, row->reason, sizeof(row->reason));
	}
	fclose(file);
	return 0;
}

/* The table has a row for every fault that there is, and each row is tried here. */
static void every_fault_has_its_row(void **state)
{
	(void)state;
	for (unsigned name = 0; name < SIM_N_FAULTS; name++) {
		const char *fault = sim_fault_name(name);
		unsigned found = 0;

		for (unsigned i = 0; i < n_rows; i++)
			found += strncmp(rows[i].fault, fault, strlen(fault)) == 0 &&
				 strchr(":", rows[i].fault[strlen(fault)]) != NULL;
		if (found == 0)
			fail_msg("docs/hardware.md does not say what is noticed of '%s'", fault);
	}
	unsigned own = 0;

	for (unsigned i = 0; i < RTE_DIM(scenarios); i++)
		own += scenarios[i].as == NULL;
	assert_int_equal(n_rows, own);
}

static const struct row *row_of(const struct scenario *scenario)
{
	const char *fault = scenario->as != NULL ? scenario->as : scenario->fault;

	for (unsigned i = 0; i < n_rows; i++)
		if (strcmp(rows[i].fault, fault) == 0)
			return &rows[i];
	fail_msg("docs/hardware.md has no row '%s'", fault);
	return NULL;
}

/* Is it what the row says: a change of a flow "BEFORE -> AFTER", or one of the port by its name? */
static bool is_event(const struct row *row, const struct offload_change *change)
{
	char event[64];

	if (change->port != 0 || strcmp(offload_reason_name(change->reason), row->reason) != 0)
		return false;
	if (change->kind == CHANGE_FLOW)
		snprintf(event, sizeof(event), "%s -> %s",
			offload_state_name((enum offload_state)change->before),
			offload_state_name((enum offload_state)change->after));
	else
		snprintf(event, sizeof(event), "%s",
			change_kind_name((enum change_kind)change->kind));
	return strcmp(event, row->event) == 0;
}

struct watch {
	const struct scenario *scenario;
	const struct row *row;
	uint64_t since_us, event_us;
	uint64_t turn_us, held_us; /* the last turn; gaps between turns, in all */
	bool explained[MANY];	   /* FEW are not more */
	unsigned n_explained, n_affected;
};

/* Does the flow say why? */
static bool explains(struct offload_live *live, const struct scenario *scenario,
	const struct live_flow *flow, uint64_t since_us)
{
	const struct refusal *refusal;
	struct plane_flow answer;
	bool because = scenario->because == 0;

	/* it was ended, and nothing of it came since */
	if (!offload_live_knows(live, flow))
		return false;
	offload_live_ask(live, flow, &answer);
	for (unsigned i = 0; i < answer.n_changes; i++)
		because |= answer.changes[i].port == 0 && answer.changes[i].time_us >= since_us &&
			   (answer.changes[i].reason == scenario->because ||
				   answer.changes[i].reason == OFFLOAD_BREAKER);
	if (!because)
		return false;
	const unsigned from = offload_live_from(&answer.record, 0);
	uint8_t reason = answer.offload.reason[from];

	/* it was ended when the fault began, and its rule is to go since */
	if (reason == OFFLOAD_OLDER_RULE)
		assert_in_range(answer.older_us[from], since_us, answer.now_us);
	if (scenario->states != 0 && !(scenario->states >> answer.offload.state[from] & 1))
		return false;
	if (reason >= OFFLOAD_REFUSALS) {
		refusal = refusal_of(installer_refusals(plane_installer(live->plane, 0)), reason);
		assert_non_null(refusal);
		return refusal->error == scenario->error;
	}
	return (scenario->error == 0 || scenario->waits) &&
	       (scenario->reasons == 0 || scenario->reasons >> reason & 1);
}

static bool is_noticed(struct offload_live *live, void *context)
{
	struct watch *watch = context;
	uint32_t n = watch->n_affected == 1 && watch->scenario->affected == 0
			     ? 1
			     : live->options.n_flows;

	/* time that nobody had a turn in: of that nobody can notice anything */
	if (watch->turn_us != 0 && live->now_us - watch->turn_us > 10000)
		watch->held_us += live->now_us - watch->turn_us;
	watch->turn_us = live->now_us;
	for (unsigned i = 0; i < live->n_events && watch->event_us == 0; i++)
		if (is_event(watch->row, &live->events[i]))
			watch->event_us = live->events[i].time_us;
	for (uint32_t i = 0; i < n && (watch->event_us != 0 || !watch->scenario->stays); i++) {
		if (watch->explained[i] ||
			!explains(live, watch->scenario, &live->flows[i], watch->since_us))
			continue;
		watch->explained[i] = true;
		watch->n_explained++;
	}
	return watch->event_us != 0 && watch->n_explained >= watch->n_affected;
}

/* Nothing happens, and whoever was in the NIC stays there. */
static void check_silence(struct offload_live *live)
{
	offload_live_run(live, 2000);
	for (unsigned i = 0; i < live->n_events; i++)
		if (live->events[i].kind != CHANGE_FLOW || live->events[i].before == OFFLOAD_PROVEN)
			fail_msg("an alarm that is none: %s, %s",
				change_kind_name((enum change_kind)live->events[i].kind),
				offload_reason_name(live->events[i].reason));
	assert_true(offload_live_all_proven(live, NULL));
}

static void check_notice(struct offload_live *live, struct watch *watch)
{
	if (!offload_live_until(live, is_noticed, watch, 3000)) {
		offload_live_print(live);
		fail_msg("'%s': event '%s' %s, %u of %u flows say why", watch->scenario->fault,
			watch->row->event, watch->event_us == 0 ? "did not come" : "came",
			watch->n_explained, watch->n_affected);
	}
	print_message("%s: '%s, %s' after %lu us\n", watch->scenario->fault, watch->row->event,
		watch->row->reason, (unsigned long)(watch->event_us - watch->since_us));
	assert_in_range(
		watch->event_us, watch->since_us, watch->since_us + SECOND_US + watch->held_us);
}

static void kill_flows(struct offload_live *live, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (offload_live_knows(live, &live->flows[i]))
			offload_live_kill(live, &live->flows[i]);
}

static void mute_all(struct offload_live *live, bool muted)
{
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		live->flows[i].muted = muted;
}

static bool is_empty(struct offload_live *live, void *unused)
{
	(void)unused;
	/* and the engine has been told so: an answer that the fault swallowed would leave an older rule behind */
	return offload_live_rules(live, 0) == 0 && offload_live_rules(live, 1) == 0 &&
	       live->plane->lcores[0].worker.agent->wire[0].slots.n_used == 0;
}

/* Nobody is known any more, nor is a rule left. */
static void empty(struct offload_live *live)
{
	mute_all(live, true);
	kill_flows(live, live->options.n_flows);
	assert_true(offload_live_until(live, is_empty, NULL, PROVEN_MS));
}

static void inject(struct offload_live *live, const struct scenario *scenario)
{
	char text[64];
	size_t length = strlen(scenario->fault);

	if (scenario->fault[length - 1] == 'N')
		snprintf(text, sizeof(text), "%.*s%u", (int)length - 1, scenario->fault,
			live->flows[0].mark);
	else
		snprintf(text, sizeof(text), "%s", scenario->fault);
	offload_live_fault(live, 0, text);
	if (scenario->kill)
		kill_flows(live, scenario->one ? 1 : live->options.n_flows);
	if (scenario->anew)
		mute_all(live, false);
}

/* The counters of the first port have been seen to be fresh. */
static bool is_fresh(struct offload_live *live, void *unused)
{
	(void)unused;
	return live->plane->lcores[0].worker.agent->port[0].fresh;
}

/* All that are asked for are in the NIC again, and no port is put to software. */
static bool is_well(struct offload_live *live, void *context)
{
	const struct scenario *scenario = context;

	for (unsigned port = 0; port < 2; port++)
		if (health_state(installer_health(plane_installer(live->plane, port))) !=
			HEALTH_CLOSED)
			return false;
	return scenario->quiet || offload_live_all_proven(live, NULL);
}

static void check_recovery(struct offload_live *live, const struct watch *watch)
{
	struct scenario scenario = *watch->scenario;

	if (!offload_live_until(live, is_well, &scenario, AGAIN_MS)) {
		offload_live_print(live);
		fail_msg("'%s' is over, and its flows do not come back", scenario.fault);
	}
	print_message("%s: all back %lu ms after it began\n", scenario.fault,
		(unsigned long)(plane_now_us(live->plane) - watch->since_us) / 1000);
	/* and stay there */
	offload_live_run(live, 100);
	assert_true(is_well(live, &scenario));
}

static void try_fault(const struct scenario *given, bool blocking)
{
	struct scenario tried = *given;
	const struct scenario *scenario = &tried;

	if (tried.words == NULL && blocking)
		tried.words = "async=0";
	/* completions do not tell why */
	if (tried.error != 0 && !blocking)
		tried.error = EIO;

	const uint32_t n_flows = scenario->one ? FEW : MANY;
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = n_flows,
		.words = scenario->words,
		.rate = scenario->one ? AFFECTED * FEW : AFFECTED,
		.threshold = scenario->quiet ? 1000 * AFFECTED : 0,
		.counters = scenario->counters,
		.restart = scenario->restart,
	});
	struct watch watch = {
		.scenario = scenario,
		.row = row_of(scenario),
		.n_affected = scenario->one ? 1 : n_flows,
	};

	if (scenario->affected != 0)
		watch.n_affected = scenario->affected;
	if (!scenario->quiet)
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	if (scenario->counters)
		assert_true(offload_live_until(live, is_fresh, NULL, PROVEN_MS));
	offload_live_run(live, 100);
	offload_live_check(live);
	if (scenario->anew)
		empty(live);
	offload_live_forget(live);
	/* what is done between two turns has the time of the last one */
	watch.since_us = live->now_us;
	inject(live, scenario);
	if (strcmp(watch.row->event, NOTHING) == 0)
		check_silence(live);
	else
		check_notice(live, &watch);
	offload_live_run(live, 200);
	offload_live_check(live);
	if (scenario->off != NULL)
		offload_live_fault(live, 0, scenario->off);
	check_recovery(live, &watch);
	offload_live_end(live);
}

static void with_completions(void **state)
{
	try_fault(*state, false);
}

static void with_blocking_calls(void **state)
{
	try_fault(*state, true);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[1 + 2 * RTE_DIM(scenarios)] = {
		cmocka_unit_test(every_fault_has_its_row)};
	static char names[2 * RTE_DIM(scenarios)][64];
	unsigned n = 1;

	for (unsigned i = 0; i < 2 * RTE_DIM(scenarios); i++) {
		const struct scenario *scenario = &scenarios[i / 2];

		if (i % 2 != 0 && scenario->words != NULL)
			continue;
		bool blocking =
			i % 2 != 0 || (scenario->words && strstr(scenario->words, "async=0"));

		snprintf(names[n - 1], sizeof(names[0]), "%s%s", scenario->fault,
			blocking ? " blocking" : "");
		tests[n] = (struct CMUnitTest){.name = names[n - 1],
			.test_func = i % 2 != 0 ? with_blocking_calls : with_completions,
			.teardown_func = offload_live_tidy,
			.initial_state = (void *)(uintptr_t)scenario};
		n++;
	}
	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return _cmocka_run_group_tests("offload", tests, n, read_rows, NULL);
}
