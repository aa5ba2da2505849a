/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of actions are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include "probe/findings.h"

#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"

#define PACKETS 16
/* Nowhere near a multiple of what counters wrap at. */
#define PACKETS_MANY 2531
/* Drivers that read their counters once a second have done so by then. */
#define LATE_US 1300000
/* Packets that were on their way when a counter was read. */
#define SLACK 64
#define AGE_S 60
/* The widths of marks that are tried. */
#define MARK_BITS_MIN 6
#define MARK_BITS_MAX 32

static unsigned width_of(uint64_t number)
{
	return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

/* Is a mark of so many bits accepted, or seen? `blind`: nobody looked. */
static bool takes_mark(
	struct rule_port *port, const struct form *form, unsigned bits, bool seen, bool *blind)
{
	struct cell cell;

	/* whatever is cut off, another one is left */
	port->mark = (uint32_t)((UINT64_C(1) << bits) - 1 - (1 << 4));
	cell_try(port, form, &cell);
	port->mark = 0;
	*blind = cell.level == LEVEL_ACCEPTS && cell.effect != CELL_BROKEN;
	return cell.level >= (seen ? LEVEL_WORKS : LEVEL_ACCEPTS);
}

/* The widest mark of `most` bits or fewer that is accepted, or seen; 0: none is, or nobody looked. */
static unsigned widest_mark(
	struct rule_port *port, const struct form *form, unsigned most, bool seen)
{
	unsigned good = MARK_BITS_MIN - 1, bad = most + 1, bits = most;
	bool blind;

	/* as wide as is asked for, which is the rule, and then by halves */
	for (; bad - good > 1; bits = (good + bad) / 2) {
		if (takes_mark(port, form, bits, seen, &blind))
			good = bits;
		else if (blind)
			break;
		else
			bad = bits;
	}
	return good < MARK_BITS_MIN ? 0 : good;
}

void cell_marks(struct rule_port *port, const struct form *form, struct cell_marks *marks)
{
	marks->accepted_bits = widest_mark(port, form, MARK_BITS_MAX, false);
	marks->seen_bits =
		marks->accepted_bits == 0 ? 0 : widest_mark(port, form, marks->accepted_bits, true);
}

/* Is the one the other, but for packets on their way, in so many bits? */
static bool is_near(uint64_t expected, uint64_t counted, unsigned bits)
{
	uint64_t low = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

	return ((counted - expected) & low) <= SLACK || ((expected - counted) & low) <= SLACK;
}

/* Were all of them what a counter of so many bits tells? */
static bool are_near(const struct cell_width *width, unsigned bits)
{
	for (unsigned i = 0; i < width->n; i++)
		if (!is_near(width->expected[i], width->counted[i], bits))
			return false;
	return true;
}

void cell_judge_width(struct cell_width *width)
{
	uint64_t most = 0, last = width->n > 0 ? width->expected[width->n - 1] : 0;

	for (unsigned i = 0; i < width->n; i++)
		most = RTE_MAX(most, width->counted[i]);
	width->bits = 0;
	width->at_least = width_of(most);
	if (width->n == 0 || is_near(last, width->counted[width->n - 1], 64))
		return;
	for (unsigned bits = RTE_MAX(width->at_least, width_of(4 * SLACK)); bits < width_of(last);
		bits++) {
		if (!are_near(width, bits))
			continue;
		width->bits = width->at_least = bits;
		return;
	}
}

/* 0 or an answer. */
static int take_sample(const struct rule *rule, struct cell_width *width, uint64_t expected)
{
	struct provider_count count = {0};
	struct provider_why why;
	int ret = answer_count(rule->port->id, rule->handle.flow, &count, &why);

	if (ret < 0)
		return ret;
	/* the last one may be taken twice: drivers may tell what they read before */
	if (width->n == CELL_SAMPLES)
		width->n--;
	width->expected[width->n] = expected;
	width->counted[width->n++] = count.packets;
	width->has_bytes = count.has_bytes;
	return 0;
}

static int count_for(const struct rule *rule, uint64_t for_us, struct cell_width *width)
{
	const struct observer *observer = rule->port->observer;
	uint64_t begin_us = monotonic_us(), sampled_us = begin_us, now_us = begin_us;
	uint64_t expected;
	int ret;

	observer->settle(observer->context);
	ret = take_sample(rule, width, 0);
	/* how many came until then is not known but by the counter */
	expected = ret == 0 ? width->counted[0] : 0;
	width->n = 0;
	while (ret == 0 && now_us - begin_us < for_us) {
		struct observed seen;

		rule_watch(rule, UINT64_MAX, PACKETS_MANY, &seen);
		expected += seen.packets;
		now_us = monotonic_us();
		if (seen.packets == 0)
			break;
		if (now_us - sampled_us < for_us / CELL_SAMPLES)
			continue;
		sampled_us = now_us;
		rule_step(rule, "counter", 1);
		ret = take_sample(rule, width, expected);
	}
	if (ret == 0)
		ret = take_sample(rule, width, expected);
	if (ret < 0 || is_near(expected, width->counted[width->n - 1], 64))
		return ret;
	rte_delay_us_sleep(LATE_US);
	width->n--;
	return take_sample(rule, width, expected);
}

/* Makes a rule of the form, of whose flow packets come. False: there is none. */
static bool make_rule(struct rule *rule, struct rule_port *port, const struct form *form,
	const struct rte_flow_action_handle *counter, const char *step, struct provider_why *why)
{
	struct form_rule built;

	if (!rule_aim(rule, port, form))
		return false;
	rule->aim.counter = counter;
	form_build(&built, form, &rule->aim);
	rule_step(rule, step, 1);
	return rule_create(port, &built, &rule->handle, why) == 0;
}

bool cell_counter_width(
	struct rule_port *port, const struct form *form, uint64_t for_us, struct cell_width *width)
{
	struct provider_why why;
	struct rule rule;
	int ret;

	memset(width, 0, sizeof(*width));
	if (!make_rule(&rule, port, form, NULL, "counter", &why))
		return false;
	ret = count_for(&rule, for_us, width);
	(void)rule_destroy(port, &rule.handle, &why);
	cell_judge_width(width);
	return ret == 0 && width->n > 0 && width->expected[width->n - 1] > 0;
}

static bool read_handle(const struct rule_port *port, const struct rte_flow_action_handle *handle,
	uint64_t *packets)
{
	struct rte_flow_query_count count = {0};
	struct rte_flow_error said = {0};
	int ret = rte_flow_action_handle_query(port->id, handle, &count, &said);

	*packets = count.hits;
	return ret == 0 && count.hits_set;
}

/* Does the handle count the packets of a rule that has it? */
static bool counts_by_handle(struct rule_port *port, const struct form *form,
	const struct rte_flow_action_handle *handle, struct provider_why *why)
{
	uint64_t before, after = 0;
	struct observed seen;
	struct rule rule;
	bool read;

	if (!make_rule(&rule, port, form, handle, "indirect", why))
		return false;
	port->observer->settle(port->observer->context);
	read = read_handle(port, handle, &before);
	rule_watch(&rule, UINT64_MAX, PACKETS, &seen);
	read = read && read_handle(port, handle, &after);
	(void)rule_destroy(port, &rule.handle, why);
	return read && seen.packets > 0 && after - before >= seen.packets;
}

enum level cell_indirect(struct rule_port *port, const struct form *form, enum cell_shared shared,
	struct provider_why *why)
{
	const struct rte_flow_indir_action_conf ingress = {.ingress = 1};
	const struct rte_flow_action_count count = {0};
	const struct rte_flow_action_age age = {.timeout = AGE_S};
	const struct rte_flow_action_rss rss = {.types = port->rss.rss_types,
		.queue_num = port->rss.n_queues,
		.queue = port->rss.queues};
	const struct rte_flow_action actions[CELL_N_SHARED] = {
		[CELL_SHARED_COUNT] = {RTE_FLOW_ACTION_TYPE_COUNT, &count},
		[CELL_SHARED_AGE] = {RTE_FLOW_ACTION_TYPE_AGE, &age},
		[CELL_SHARED_RSS] = {RTE_FLOW_ACTION_TYPE_RSS, &rss},
	};
	enum level level = LEVEL_ACCEPTS;
	struct rte_flow_error said = {0};
	struct rte_flow_action_handle *handle;
	unsigned tries = 0;

	if (port->step != NULL)
		port->step(port->context, "indirect actions", port->n_left);
	do {
		rte_errno = 0;
		handle = rte_flow_action_handle_create(port->id, &ingress, &actions[shared], &said);
	} while (handle == NULL && rule_is_passing(rte_errno) && ++tries < RULE_TRIES);
	if (handle == NULL) {
		answer_why(why, rte_errno, &said);
		return LEVEL_NO;
	}
	if (shared == CELL_SHARED_COUNT && form != NULL && port->observer != NULL &&
		!port->by_templates && counts_by_handle(port, form, handle, why))
		level = LEVEL_WORKS;
	/* what does not go goes with the port */
	(void)rte_flow_action_handle_destroy(port->id, handle, &said);
	return level;
}
