/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of actions and flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include "probe/findings.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>

#include "base/monotonic.h"
#include "probe/cell_calls.h"
#include "rteflow/answer.h"

#define PACKETS 16
/* Nowhere near a multiple of what counters wrap at. */
#define PACKETS_MANY 2531
/* Drivers that read their counters once a second have done so by then. */
#define LATE_US 1300000
/* Packets that were on their way when a counter was read. */
#define SLACK 64
#define AGE_S 60
/* How wide marks are that are tried. */
#define MARK_BITS_MIN 6
#define MARK_BITS_MAX 32

static unsigned cell_more_bits_of(uint64_t number)
{
	return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

/* Is a mark of so many bits accepted, or seen? `blind`: nobody looked. */
static bool takes_mark(
	struct cell_port *port, const struct form *form, unsigned bits, bool seen, bool *blind)
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
	struct cell_port *port, const struct form *form, unsigned most, bool seen)
{
	bool blind;
	unsigned good = MARK_BITS_MIN - 1, bad = most + 1, bits = most;

	/* as wide as is asked for, which is the rule, and then by halves */
	for (; bad - good > 1; bits = (good + bad) / 2) {
		bool takes = takes_mark(port, form, bits, seen, &blind);

		if (takes)
			good = bits;
		else if (blind)
			break;
		else
			bad = bits;
	}
	return good < MARK_BITS_MIN ? 0 : good;
}

void cell_marks(struct cell_port *port, const struct form *form, struct cell_marks *marks)
{
	marks->accepted_bits = widest_mark(port, form, MARK_BITS_MAX, false);
	marks->seen_bits =
		marks->accepted_bits == 0 ? 0 : widest_mark(port, form, marks->accepted_bits, true);
}

/* Is the one the other, but for packets on their way, in so many bits? */
static bool is_near(uint64_t expected, uint64_t counted, unsigned bits)
{
	uint64_t low = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	uint64_t ahead = (counted - expected) & low, behind = (expected - counted) & low;

	return ahead <= SLACK || behind <= SLACK;
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
	uint64_t most = 0;
	unsigned from;

	for (unsigned i = 0; i < width->n; i++)
		most = RTE_MAX(most, width->counted[i]);
	width->bits = 0;
	width->at_least = cell_more_bits_of(most);
	if (width->n == 0 ||
		is_near(width->expected[width->n - 1], width->counted[width->n - 1], 64))
		return;
	from = RTE_MAX(width->at_least, cell_more_bits_of(4 * SLACK));
	for (unsigned bits = from; bits < cell_more_bits_of(width->expected[width->n - 1]);
		bits++) {
		if (!are_near(width, bits))
			continue;
		width->bits = width->at_least = bits;
		return;
	}
}

/* 0 or an answer. */
static int take_sample(const struct trying *trying, struct cell_width *width, uint64_t expected)
{
	struct provider_count count = {0};
	struct provider_why why;
	int ret = answer_count(trying->port->id, trying->rule.flow, &count, &why);

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

static int count_for(struct trying *trying, uint64_t for_us, struct cell_width *width)
{
	const struct eyes *eyes = trying->port->eyes;
	uint64_t begin_us = monotonic_us(), sampled_us = begin_us, now_us = begin_us;
	uint64_t expected;
	int ret;

	eyes->settle(eyes->context);
	ret = take_sample(trying, width, 0);
	/* how many came until then is not known but by the counter */
	expected = ret == 0 ? width->counted[0] : 0;
	width->n = 0;
	while (ret == 0 && now_us - begin_us < for_us) {
		struct eyes_seen seen;

		cell_watch(trying, UINT64_MAX, PACKETS_MANY, false, &seen);
		expected += seen.packets;
		now_us = monotonic_us();
		if (seen.packets == 0)
			break;
		if (now_us - sampled_us < for_us / CELL_SAMPLES)
			continue;
		sampled_us = now_us;
		cell_step(trying, "counter", 1);
		ret = take_sample(trying, width, expected);
	}
	if (ret == 0)
		ret = take_sample(trying, width, expected);
	if (ret < 0 || is_near(expected, width->counted[width->n - 1], 64))
		return ret;
	rte_delay_us_sleep(LATE_US);
	width->n--;
	return take_sample(trying, width, expected);
}

bool cell_counter_width(
	struct cell_port *port, const struct form *form, uint64_t for_us, struct cell_width *width)
{
	struct cell cell = {.level = LEVEL_NO};
	struct trying trying = {.port = port, .form = form, .cell = &cell};
	struct provider_why why;
	struct form_rule built;
	int ret = -ENOENT;

	memset(width, 0, sizeof(*width));
	if (!cell_aim_at(&trying))
		return false;
	(void)cell_aim_queues(&trying);
	form_build(&built, form, &trying.aim);
	cell_step(&trying, "counter", 1);
	if (cell_create(port, &built, &trying.rule, &why) == 0) {
		ret = count_for(&trying, for_us, width);
		(void)cell_destroy(port, &trying.rule, &why);
	}
	cell_judge_width(width);
	return ret == 0 && width->n > 0 && width->expected[width->n - 1] > 0;
}

static uint64_t read_handle(
	const struct cell_port *port, const struct rte_flow_action_handle *handle, bool *read)
{
	struct rte_flow_query_count count = {0};
	struct rte_flow_error said = {0};

	*read = rte_flow_action_handle_query(port->id, handle, &count, &said) == 0 &&
		count.hits_set;
	return count.hits;
}

/* Makes the form's rule with the handle in the place of its counter. */
static bool counts_by_handle(struct cell_port *port, const struct form *form,
	struct rte_flow_action_handle *handle, struct provider_why *why)
{
	struct cell cell = {.level = LEVEL_NO};
	struct trying trying = {.port = port, .form = form, .cell = &cell};
	struct eyes_seen seen = {0};
	struct form_rule built;
	uint64_t before, after = 0;
	bool read = false, read_again = false;

	if (!cell_aim_at(&trying))
		return false;
	(void)cell_aim_queues(&trying);
	form_build(&built, form, &trying.aim);
	for (struct rte_flow_action *at = built.made.list; at->type != RTE_FLOW_ACTION_TYPE_END;
		at++) {
		if (at->type != RTE_FLOW_ACTION_TYPE_COUNT)
			continue;
		at->type = RTE_FLOW_ACTION_TYPE_INDIRECT;
		at->conf = handle;
	}
	cell_step(&trying, "indirect", 1);
	if (cell_create(port, &built, &trying.rule, why) < 0)
		return false;
	port->eyes->settle(port->eyes->context);
	before = read_handle(port, handle, &read);
	cell_watch(&trying, UINT64_MAX, PACKETS, false, &seen);
	if (read)
		after = read_handle(port, handle, &read_again);
	(void)cell_destroy(port, &trying.rule, why);
	return read_again && seen.packets > 0 && after - before >= seen.packets;
}

void cell_indirect(struct cell_port *port, const struct form *form, enum cell_shared shared,
	struct cell_indirect *indirect)
{
	static const char *const names[] = {"count", "age", "rss"};
	const struct rte_flow_indir_action_conf ingress = {.ingress = 1};
	const struct rte_flow_action_count count = {0};
	const struct rte_flow_action_age age = {.timeout = AGE_S};
	const struct rte_flow_action_rss rss = {.types = port->rss.rss_types,
		.queue_num = port->rss.n_queues,
		.queue = port->rss.queues};
	const struct rte_flow_action actions[] = {
		{RTE_FLOW_ACTION_TYPE_COUNT, &count},
		{RTE_FLOW_ACTION_TYPE_AGE, &age},
		{RTE_FLOW_ACTION_TYPE_RSS, &rss},
	};
	struct rte_flow_error said = {0};
	struct rte_flow_action_handle *handle;
	unsigned tries = 0;

	*indirect = (struct cell_indirect){.name = names[shared], .level = LEVEL_NO};
	if (port->step != NULL)
		port->step(port->context, "indirect actions", port->n_left);
	do {
		rte_errno = 0;
		handle = rte_flow_action_handle_create(port->id, &ingress, &actions[shared], &said);
	} while (handle == NULL && cell_is_passing(rte_errno) && ++tries < CELL_AGAIN);
	if (handle == NULL) {
		answer_why(&indirect->why, rte_errno, &said);
		return;
	}
	indirect->level = LEVEL_ACCEPTS;
	if (shared == CELL_SHARED_COUNT && form != NULL && port->eyes != NULL &&
		!port->by_templates && counts_by_handle(port, form, handle, &indirect->why))
		indirect->level = LEVEL_WORKS;
	/* what does not go goes with the port */
	(void)rte_flow_action_handle_destroy(port->id, handle, &said);
}

bool cell_async(const struct cell_port *port, struct cell_async *async)
{
	struct rte_flow_queue_info queue = {0};
	struct rte_flow_port_info info = {0};
	struct rte_flow_error said = {0};

	memset(async, 0, sizeof(*async));
	if (!port->flow_queues || rte_flow_info_get(port->id, &info, &queue, &said) < 0)
		return false;
	*async = (struct cell_async){.queues = info.max_nb_queues,
		.queue_size = queue.max_size,
		.counters = info.max_nb_counters,
		.ages = info.max_nb_aging_objects,
		.meters = info.max_nb_meters,
		.connections = info.max_nb_conn_tracks};
	return true;
}
