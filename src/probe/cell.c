/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/cell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/monotonic.h"
#include "probe/cell_calls.h"
#include "rteflow/answer.h"
#include "rteflow/trial.h"

/* Marks of rules, in turn: numbers that any card has room for which marks at all. */
#define MARK_FIRST 0x21
#define N_MARKS 31
/* Packets by which an effect is judged, and those by which it is told to be over. */
#define PACKETS 16
#define PACKETS_AFTER 4
/* So many before there is a rule, within that time: such a flow's silence tells something, if it is so many times as long. */
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
/* So many that never moved, or forms of whose flows nothing came, and no other is waited for. */
#define STUCK_MAX 2
#define SILENT_MAX 2

const char *level_name(enum level level)
{
	static const char *const names[LEVEL_N] = {"no", "says yes", "accepts", "works"};

	return names[level];
}

void cell_step(const struct trying *trying, const char *what, unsigned rules)
{
	const struct cell_port *port = trying->port;
	char text[128];

	snprintf(text, sizeof(text), "%s, %s: %s", trying->form->pattern.name,
		trying->form->actions->name, what);
	if (port->step != NULL)
		port->step(port->context, text, port->n_left + rules);
}

static bool is_gone(enum form_fate fate)
{
	return fate == FORM_DROP || fate == FORM_REPRESENTED_PORT || fate == FORM_PORT_ID;
}

/* Queues that packets do not come by without the rule, where there are enough. */
uint64_t cell_aim_queues(struct trying *trying)
{
	const struct form_actions *actions = trying->form->actions;
	struct cell_port *port = trying->port;
	struct form_aim *aim = &trying->aim;
	uint16_t from = trying->flow.queue < 2 ? 2 : 0;

	aim->port = port->rss;
	aim->queue = (uint16_t)((trying->flow.queue + 1) % port->n_queues);
	if (actions->fate == FORM_QUEUE || (actions->mark && actions->marked == SHAPE_QUEUE))
		return UINT64_C(1) << aim->queue;
	if (!actions->mark || actions->marked != SHAPE_RSS || port->n_queues < 4)
		return UINT64_MAX;
	/* two that lie together: ice takes no others */
	aim->port.n_queues = 2;
	aim->port.queues[0] = from;
	aim->port.queues[1] = from + 1;
	return UINT64_C(3) << from;
}

uint32_t cell_mark(struct cell_port *port)
{
	return port->mark != 0 ? port->mark : MARK_FIRST + port->n_marks++ % N_MARKS;
}

/* False: nobody looks, or there are no such packets. */
bool cell_aim_at(struct trying *trying)
{
	const struct form_pattern *pattern = &trying->form->pattern;
	const struct eyes *eyes = trying->port->eyes;
	struct form_aim *aim = &trying->aim;

	memset(&trying->flow, 0, sizeof(trying->flow));
	trying->looked = eyes != NULL && pattern->special != FORM_VXLAN &&
			 eyes->find(eyes->context, pattern, &trying->flow);
	if (trying->looked) {
		aim->rule.key = trying->flow.key;
		aim->rule.from = trying->flow.from;
		aim->to = trying->flow.to;
	} else {
		trial_rule(&aim->rule,
			pattern->kind == PROVIDER_N_KINDS ? PROVIDER_IPV4_UDP : pattern->kind,
			pattern->shape.vlan, 0);
		/* of those that are for private use */
		aim->to = (struct rte_ether_addr){{0x02, 0, 0x5e, 0, 0x53, 0x01}};
	}
	aim->rule.worker = 0;
	aim->rule.mark = cell_mark(trying->port);
	aim->target = trying->port->target;
	return trying->looked;
}

void cell_watch(struct trying *trying, uint64_t queues, unsigned wanted, bool absent,
	struct eyes_seen *seen)
{
	const struct eyes *eyes = trying->port->eyes;
	const struct eyes_watch watch = {.flow = &trying->flow,
		.mark = trying->aim.rule.mark,
		.queues = queues,
		.wanted = wanted,
		.absent = absent};

	memset(seen, 0, sizeof(*seen));
	eyes->watch(eyes->context, &watch, seen);
}

static int cell_query(const struct trying *trying, uint64_t *packets, struct provider_why *why)
{
	struct provider_count count = {0};
	int ret = answer_count(trying->port->id, trying->rule.flow, &count, why);

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

/* Drivers may tell what they read a second ago. Not waited for where nobody knows yet whether there is anything to count. */
static bool moves_late(struct trying *trying, uint64_t before)
{
	const struct eyes_seen *seen = &trying->cell->seen;
	uint64_t begin_us = monotonic_us(), now = before;
	struct provider_why why;

	if (trying->port->n_stuck >= STUCK_MAX ||
		(!trying->careful && seen->packets == 0 && seen->sent == 0))
		return false;
	while (now == before && monotonic_us() - begin_us < LATE_US) {
		rte_delay_us_sleep(LATE_EACH_US);
		if (cell_query(trying, &now, &why) < 0)
			return false;
	}
	return now != before;
}

static enum cell_counter judge_counter(struct trying *trying, uint64_t before, uint64_t expected)
{
	enum form_special special = trying->form->pattern.special;
	struct cell *cell = trying->cell;
	/* other flows' packets may be counted as well */
	bool known = (special == FORM_SHAPE || special == FORM_ADDRESSES) &&
		     (!is_gone(trying->form->actions->fate) || cell->seen.sent > 0);
	uint64_t after;

	if (cell_query(trying, &after, &cell->query) < 0)
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
static uint64_t steady_us(struct trying *trying)
{
	const struct eyes *eyes = trying->port->eyes;
	struct eyes_seen seen;
	uint64_t begin_us, us;

	eyes->settle(eyes->context);
	begin_us = monotonic_us();
	cell_watch(trying, UINT64_MAX, PACKETS, false, &seen);
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
	       (cell->effect == CELL_SEEN && is_gone(actions->fate) && cell->counter == CELL_STUCK);
}

/* Of this thread's, of its processor's time. */
static uint64_t ran_us(void)
{
	struct timespec ran;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	return (uint64_t)ran.tv_sec * 1000000 + (uint64_t)ran.tv_nsec / 1000;
}

/* Watches the flow; one that is looked at with care for longer where nothing is seen of it. */
static void watch(struct trying *trying, uint64_t queues)
{
	const struct form_actions *actions = trying->form->actions;
	const struct eyes *eyes = trying->port->eyes;
	struct eyes_seen *seen = &trying->cell->seen;
	uint64_t forwarded = eyes->forwarded(eyes->context), begin_us = monotonic_us(), silent_us;
	bool is_over;

	silent_us = trying->steady_us * SILENT_TIMES;
	if (trying->steady_us != 0 && trying->port->n_silent < SILENT_MAX)
		silent_us = RTE_MAX(silent_us, (uint64_t)PAUSE_US);
	/* that nothing comes is what a drop is for, but not that nothing is counted */
	if (actions->fate == FORM_DROP && !actions->count)
		silent_us = 0;
	const uint64_t begin_ran_us = ran_us();

	/* all of the last look lies behind that time; packets that wait for who is not run are not kept for ever */
	do {
		const uint64_t us = monotonic_us() - begin_us;

		is_over = us >= silent_us &&
			  (ran_us() - begin_ran_us >= silent_us || us >= silent_us * UNRUN_TIMES);
		cell_watch(trying, queues, PACKETS, is_gone(actions->fate), seen);
		seen->elsewhere += eyes->forwarded(eyes->context) - forwarded;
	} while (seen->packets == 0 && seen->sent == 0 && seen->elsewhere == 0 && !is_over);
}

/* While the rule is there. */
static void cell_look(struct trying *trying, uint64_t queues)
{
	const struct form_actions *actions = trying->form->actions;
	const struct eyes *eyes = trying->port->eyes;
	struct cell *cell = trying->cell;
	uint64_t before = 0;
	int ret = 0;

	eyes->settle(eyes->context);
	if (actions->count)
		ret = cell_query(trying, &before, &cell->query);
	watch(trying, queues);
	if (ret < 0)
		cell->counter = CELL_UNREAD;
	else if (actions->count && (is_gone(actions->fate) || cell->seen.packets > 0))
		cell->counter = judge_counter(trying, before,
			is_gone(actions->fate) ? cell->seen.sent : cell->seen.packets);
}

/* Were the packets that came while the rule was there treated as it says? */
static bool is_done(const struct form_actions *actions, const struct eyes_seen *seen)
{
	if (seen->packets == 0)
		return false;
	if (actions->mark && seen->marked != seen->packets)
		return false;
	return seen->in_place == seen->packets;
}

static enum cell_effect cell_judge(const struct trying *trying)
{
	const struct form_actions *actions = trying->form->actions;
	const struct cell *cell = trying->cell;

	if (is_gone(actions->fate)) {
		if (cell->seen.packets > 0)
			return CELL_BROKEN;
		if (!cell->back)
			return CELL_UNSEEN;
		return actions->fate == FORM_DROP || cell->seen.elsewhere > 0 ? CELL_SEEN
									      : CELL_BROKEN;
	}
	if (cell->seen.packets == 0)
		return cell->back ? CELL_BROKEN : CELL_UNSEEN;
	if (actions->fate == FORM_QUEUE && trying->port->n_queues == 1)
		return CELL_ONE_WAY;
	return is_done(actions, &cell->seen) ? CELL_SEEN : CELL_BROKEN;
}

/* When the rule is gone, or ought to be. */
static void look_again(struct trying *trying, uint64_t queues)
{
	const struct form_actions *actions = trying->form->actions;
	const struct eyes *eyes = trying->port->eyes;
	struct cell *cell = trying->cell;
	struct eyes_seen after;

	eyes->settle(eyes->context);
	cell_watch(trying, queues, PACKETS_AFTER, false, &after);
	cell->back = after.packets > 0;
	cell->effect = cell_judge(trying);
	if (actions->mark)
		cell->stays = after.marked > 0;
	else if (actions->fate == FORM_QUEUE)
		cell->stays = cell->effect == CELL_SEEN && is_done(actions, &after);
}

/* Makes the rule, looks, and destroys it. False: it was refused. */
static bool try_once(struct trying *trying)
{
	struct cell *cell = trying->cell;
	struct form_rule built;
	uint64_t queues = cell_aim_queues(trying);

	trying->steady_us = trying->careful && trying->looked ? steady_us(trying) : 0;
	form_build(&built, trying->form, &trying->aim);
	cell_step(trying, "validate", 0);
	if (!trying->port->by_templates) {
		int ret = cell_validate(trying->port, &built, &cell->validate);

		cell->validates = ret != -ENOSYS;
	}
	cell_step(trying, "create", 1);
	if (cell_create(trying->port, &built, &trying->rule, &cell->create) < 0)
		return false;
	if (trying->port->by_templates)
		cell->validates = false;
	cell->create.error = 0;
	if (trying->looked) {
		cell_step(trying, "effect", 1);
		cell_look(trying, queues);
	}
	cell_step(trying, "destroy", 1);
	cell->left = cell_destroy(trying->port, &trying->rule, &cell->destroy) != 0;
	if (trying->looked && !cell->left)
		look_again(trying, queues);
	else if (trying->looked)
		cell->effect = cell_judge(trying);
	cell_step(trying, "done", 0);
	return true;
}

/* Of the last flow that was tried. */
static void settle_silence(struct trying *trying, bool accused)
{
	struct cell *cell = trying->cell;

	if (accused && trying->steady_us == 0)
		cell->effect = CELL_UNSEEN;
	/* it stood still, and maybe so did the traffic */
	if (cell->effect == CELL_UNSEEN && cell->counter == CELL_STUCK && cell->seen.sent == 0)
		cell->counter = CELL_NOT_COUNTED;
	trying->port->n_silent += accused && cell->effect == CELL_BROKEN;
	trying->port->n_stuck += cell->counter == CELL_STUCK;
}

void cell_try(struct cell_port *port, const struct form *form, struct cell *cell)
{
	struct trying trying = {.port = port, .form = form, .cell = cell};
	bool again = true, accused = false;

	for (unsigned i = 0; i < FLOWS && again; i++) {
		memset(cell, 0, sizeof(*cell));
		cell->kind = PROVIDER_N_KINDS;
		again = cell_aim_at(&trying);
		if (trying.looked)
			cell->kind = provider_kind(&trying.flow.key);
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

static void tell_broken(
	char *text, size_t size, const struct form_actions *actions, const struct eyes_seen *seen)
{
	unsigned long long packets = seen->packets;

	if (is_gone(actions->fate) && packets > 0)
		snprintf(text, size, "%llu packets came nevertheless", packets);
	else if (is_gone(actions->fate))
		snprintf(text, size, "its packets come no more, and none was seen to be sent on");
	else if (packets == 0)
		snprintf(text, size, "no packet came while the rule was there");
	else if (actions->mark && seen->wrong > 0)
		snprintf(text, size, "%llu of %llu packets had another mark",
			(unsigned long long)seen->wrong, packets);
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
