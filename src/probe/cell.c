/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/cell.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"

/* Packets by which an effect is judged, and those by which it is told to be over. */
#define PACKETS 16
#define PACKETS_AFTER 4
/* A flow's silence proves something if so many came before the rule, in so short a time, and it is so many times as long. */
#define PACKETS_BEFORE 4
#define BEFORE_MAX_US 1000000
#define SILENT_TIMES 4
/* And so many times as long where others have the processor. */
#define UNRUN_TIMES 4
/* Flows that are tried until packets of one come all the time. */
#define FLOWS 3
/* Counters that drivers read once a second have moved by then. */
#define LATE_US 1300000
#define LATE_EACH_US 100000
/* Traffic may pause by itself for that long. */
#define PAUSE_US 500000
/* After so many counters that never moved, or forms of whose flows nothing came, no other is waited for. */
#define STUCK_MAX 2
#define SILENT_MAX 2

/* A form that is being tried. */
struct trying {
	struct rule rule;
	struct cell *cell;
	bool careful;	    /* nothing was seen of another flow: it may have paused by itself */
	uint64_t steady_us; /* that its packets took before the rule; 0: not known, or too few */
};

const char *level_name(enum level level)
{
	static const char *const names[LEVEL_N] = {"no", "says yes", "accepts", "works"};

	return names[level];
}

static void settle(const struct trying *trying)
{
	const struct observer *observer = trying->rule.port->observer;

	observer->settle(observer->context);
}

static int query(const struct trying *trying, uint64_t *packets, struct provider_why *why)
{
	struct provider_count count = {0};
	int ret = answer_count(trying->rule.port->id, trying->rule.handle.flow, &count, why);

	*packets = count.packets;
	return ret;
}

/* What was counted in between, though the counter may have gone round. */
static uint64_t difference(uint64_t before, uint64_t after, uint64_t expected)
{
	for (unsigned bits = 8; bits < 64 && after < before; bits += 8) {
		uint64_t low = (UINT64_C(1) << bits) - 1;

		if (((after - before) & low) == expected)
			return expected;
	}
	return after - before;
}

/* Drivers may tell what they read a second ago. Not waited for where perhaps there is nothing to count. */
static bool moves_late(const struct trying *trying, uint64_t before)
{
	const struct observed *seen = &trying->cell->seen;
	uint64_t begin_us = monotonic_us(), now = before;
	struct provider_why why;

	if (trying->rule.port->n_stuck >= STUCK_MAX ||
		(!trying->careful && seen->packets == 0 && seen->sent == 0))
		return false;
	while (now == before && monotonic_us() - begin_us < LATE_US) {
		rte_delay_us_sleep(LATE_EACH_US);
		if (query(trying, &now, &why) < 0)
			return false;
	}
	return now != before;
}

static enum cell_counter judge_counter(
	const struct trying *trying, uint64_t before, uint64_t expected)
{
	const struct form *form = trying->rule.form;
	enum form_special special = form->pattern.special;
	struct cell *cell = trying->cell;
	/* other flows' packets may be counted as well */
	bool known = (special == FORM_SHAPE || special == FORM_ADDRESSES) &&
		     (!form_is_gone(form->actions) || cell->seen.sent > 0);
	uint64_t after;

	if (query(trying, &after, &cell->query) < 0)
		return CELL_UNREAD;
	cell->counted = difference(before, after, expected);
	if (after == before && !moves_late(trying, before))
		return CELL_STUCK;
	/* the traffic may have been late, and not the driver */
	if (after == before && (cell->seen.packets + cell->seen.sent > 0 || trying->steady_us != 0))
		return CELL_LATE;
	if (!known)
		return CELL_MOVES;
	return cell->counted == expected ? CELL_EXACT : CELL_INEXACT;
}

/* The time in which PACKETS_BEFORE came or more, as long as no rule is in their way; 0: they did not. */
static uint64_t steady_us(const struct trying *trying)
{
	struct observed seen;
	uint64_t begin_us, us;

	settle(trying);
	begin_us = monotonic_us();
	rule_watch(&trying->rule, UINT64_MAX, PACKETS, &seen);
	us = monotonic_us() - begin_us;
	return seen.packets < PACKETS_BEFORE || us > BEFORE_MAX_US ? 0 : RTE_MAX(us, UINT64_C(1));
}

/*
 * Nothing was seen of packets that others sent, so that the NIC is to blame only if there were any: an effect that
 * is missing, or a counter that stands still.
 */
static bool rests_on_silence(const struct form_actions *actions, const struct cell *cell)
{
	if (cell->seen.packets > 0 || cell->seen.sent > 0)
		return false;
	return cell->effect == CELL_BROKEN ||
	       (cell->effect == CELL_SEEN && form_is_gone(actions) && cell->counter == CELL_STUCK);
}

/* Processor time of this thread. */
static uint64_t ran_us(void)
{
	struct timespec ran;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	return (uint64_t)ran.tv_sec * 1000000 + (uint64_t)ran.tv_nsec / 1000;
}

/* Watches the flow; one that is watched with care for longer where nothing is seen of it. */
static void watch(const struct trying *trying)
{
	const struct rule *rule = &trying->rule;
	const struct observer *observer = rule->port->observer;
	struct observed *seen = &trying->cell->seen;
	const uint64_t forwarded = observer->forwarded(observer->context);
	const uint64_t begin_us = monotonic_us(), begin_ran_us = ran_us();
	uint64_t silent_us = trying->steady_us * SILENT_TIMES;
	bool is_over;

	if (trying->steady_us != 0 && rule->port->n_silent < SILENT_MAX)
		silent_us = RTE_MAX(silent_us, (uint64_t)PAUSE_US);
	/* that nothing comes is what a drop is for, but not that nothing is counted */
	if (rule->form->actions->fate == FORM_DROP && !rule->form->actions->count)
		silent_us = 0;
	/* the last look begins behind that time; a thread that was not run has looked at less than came */
	do {
		const uint64_t us = monotonic_us() - begin_us;

		is_over = us >= silent_us &&
			  (ran_us() - begin_ran_us >= silent_us || us >= silent_us * UNRUN_TIMES);
		rule_watch(rule, rule->queues, PACKETS, seen);
		seen->elsewhere += observer->forwarded(observer->context) - forwarded;
	} while (seen->packets == 0 && seen->sent == 0 && seen->elsewhere == 0 && !is_over);
}

/* Were the packets that came while the rule was there treated as it says? */
static bool is_done(const struct form_actions *actions, const struct observed *seen)
{
	return seen->packets > 0 && (!actions->mark || seen->marked == seen->packets) &&
	       seen->in_place == seen->packets;
}

static enum cell_effect judge_effect(const struct trying *trying)
{
	const struct form_actions *actions = trying->rule.form->actions;
	const struct cell *cell = trying->cell;

	if (form_is_gone(actions)) {
		if (cell->seen.packets > 0)
			return CELL_BROKEN;
		if (!cell->back)
			return CELL_UNSEEN;
		return actions->fate == FORM_DROP || cell->seen.elsewhere > 0 ? CELL_SEEN
									      : CELL_BROKEN;
	}
	if (cell->seen.packets == 0)
		return cell->back ? CELL_BROKEN : CELL_UNSEEN;
	if (actions->fate == FORM_QUEUE && trying->rule.port->n_queues == 1)
		return CELL_ONE_WAY;
	return is_done(actions, &cell->seen) ? CELL_SEEN : CELL_BROKEN;
}

/* While the rule is there. */
static void look(const struct trying *trying)
{
	const struct form_actions *actions = trying->rule.form->actions;
	struct cell *cell = trying->cell;
	bool gone = form_is_gone(actions);
	uint64_t before = 0;
	int ret = 0;

	rule_step(&trying->rule, "effect", 1);
	settle(trying);
	if (actions->count)
		ret = query(trying, &before, &cell->query);
	watch(trying);
	if (ret < 0)
		cell->counter = CELL_UNREAD;
	else if (actions->count && (gone || cell->seen.packets > 0))
		cell->counter =
			judge_counter(trying, before, gone ? cell->seen.sent : cell->seen.packets);
}

/* When the rule is gone, or ought to be. */
static void look_again(const struct trying *trying)
{
	const struct form_actions *actions = trying->rule.form->actions;
	struct cell *cell = trying->cell;
	struct observed after;

	settle(trying);
	rule_watch(&trying->rule, trying->rule.queues, PACKETS_AFTER, &after);
	cell->back = after.packets > 0;
	cell->effect = judge_effect(trying);
	if (actions->mark)
		cell->stays = after.marked > 0;
	else if (actions->fate == FORM_QUEUE)
		cell->stays = cell->effect == CELL_SEEN && is_done(actions, &after);
}

/* Makes the rule, looks, and destroys it. False: it was refused. */
static bool try_once(struct trying *trying)
{
	struct rule *rule = &trying->rule;
	struct cell *cell = trying->cell;
	struct form_rule built;

	trying->steady_us = trying->careful && rule->observed ? steady_us(trying) : 0;
	form_build(&built, rule->form, &rule->aim);
	rule_step(rule, "validate", 0);
	cell->validates = rule_validate(rule->port, &built, &cell->validate) != -ENOSYS;
	rule_step(rule, "create", 1);
	if (rule_create(rule->port, &built, &rule->handle, &cell->create) < 0)
		return false;
	cell->validates &= !rule->port->by_templates;
	cell->create.error = 0;
	if (rule->observed)
		look(trying);
	rule_step(rule, "destroy", 1);
	cell->left = rule_destroy(rule->port, &rule->handle, &cell->destroy) != 0;
	if (rule->observed && !cell->left)
		look_again(trying);
	else if (rule->observed)
		cell->effect = judge_effect(trying);
	rule_step(rule, "done", 0);
	return true;
}

/* By the last flow that was tried. */
static void settle_silence(const struct trying *trying, bool accused)
{
	struct rule_port *port = trying->rule.port;
	struct cell *cell = trying->cell;

	if (accused && trying->steady_us == 0)
		cell->effect = CELL_UNSEEN;
	/* it stood still, and maybe so did the traffic */
	if (cell->effect == CELL_UNSEEN && cell->counter == CELL_STUCK && cell->seen.sent == 0)
		cell->counter = CELL_NOT_COUNTED;
	port->n_silent += accused && cell->effect == CELL_BROKEN;
	port->n_stuck += cell->counter == CELL_STUCK;
}

void cell_try(struct rule_port *port, const struct form *form, struct cell *cell)
{
	struct trying trying = {.cell = cell};
	bool again = true, accused = false;

	for (unsigned i = 0; i < FLOWS && again; i++) {
		memset(cell, 0, sizeof(*cell));
		cell->kind = PROVIDER_N_KINDS;
		again = rule_aim(&trying.rule, port, form);
		if (again)
			cell->kind = provider_kind(&trying.rule.flow.key);
		if (!try_once(&trying))
			break;
		/* one whose packets came no more tells nothing, and one that may have paused not enough */
		accused = rests_on_silence(form->actions, cell);
		again = again && !cell->left &&
			(accused ? trying.steady_us == 0 : cell->effect == CELL_UNSEEN);
		trying.careful |= accused;
	}
	settle_silence(&trying, accused);
	cell->level = cell_level(form->actions, cell);
}

enum level cell_level(const struct form_actions *actions, const struct cell *cell)
{
	if (cell->create.error != 0)
		return cell->validates && cell->validate.error == 0 ? LEVEL_SAYS_YES : LEVEL_NO;
	if (cell->effect != CELL_SEEN)
		return LEVEL_ACCEPTS;
	return actions->count && cell->counter < CELL_LATE ? LEVEL_ACCEPTS : LEVEL_WORKS;
}

/* Why the effect is missing. */
static void tell_broken(
	char *text, size_t size, const struct form_actions *actions, const struct observed *seen)
{
	const unsigned long long packets = seen->packets, wrong = seen->wrong;

	if (form_is_gone(actions) && packets > 0)
		snprintf(text, size, "%llu packets came nevertheless", packets);
	else if (form_is_gone(actions))
		snprintf(text, size, "its packets come no more, and none was seen to be sent on");
	else if (packets == 0)
		snprintf(text, size, "no packet came while the rule was there");
	else if (actions->mark && wrong > 0)
		snprintf(text, size, "%llu of %llu packets had another mark", wrong, packets);
	else if (actions->mark && seen->marked != packets)
		snprintf(text, size, "%llu of %llu packets had the mark",
			(unsigned long long)seen->marked, packets);
	else
		snprintf(text, size, "%llu of %llu packets came by the queue that was named",
			(unsigned long long)seen->in_place, packets);
}

void cell_words(
	char *text, size_t size, const struct form_actions *actions, const struct cell *cell)
{
	text[0] = '\0';
	if (cell->level != LEVEL_ACCEPTS)
		return;
	if (cell->effect == CELL_BROKEN)
		tell_broken(text, size, actions, &cell->seen);
	else if (cell->effect == CELL_ONE_WAY)
		snprintf(text, size, "the port has one queue: there is nothing to tell it by");
	else if (cell->effect == CELL_UNSEEN)
		snprintf(text, size, "effect not tried: %s packets of such a flow came",
			cell->kind == PROVIDER_N_KINDS ? "no" : "too few");
	else if (cell->counter == CELL_STUCK)
		snprintf(text, size, "the counter stood still while its packets came");
	else
		snprintf(text, size, "the counter cannot be read: %s",
			cell->query.words[0] ? cell->query.words : strerror(cell->query.error));
}
