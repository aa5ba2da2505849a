/* SPDX-License-Identifier: BSD-3-Clause */
/* What is tried of a port: every form, what forms that work tell besides, and the table. */
#include <stdio.h>

#include "base/monotonic.h"
#include "control/answer.h"
#include "control/offload_words.h"
#include "probe/child.h"
#include "probe/findings.h"

/* Rules that did not go: with so many, no more is tried. */
#define LEFT_MAX 8
/* So long a counter is watched: it may go round. */
#define WIDTH_US 1500000

static void tell_cell_step(void *context, const char *what, unsigned rules)
{
	probe_tell_step(context, what, rules, 0);
}

static void tell_limits_step(void *context, const char *what, unsigned rules, unsigned allow_s)
{
	struct child *child = context;
	char text[64];

	snprintf(text, sizeof(text), "table size: %s", what);
	probe_tell_step(child, text, rules + child->cells.n_left, allow_s);
}

static uint64_t share_of_time(const struct child *child, unsigned per_cent)
{
	return child->begin_us + child->options->timeout_s * UINT64_C(10000) * per_cent;
}

/* That much of the time is over, or somebody does not want to wait. */
static bool is_enough(const struct child *child, unsigned per_cent)
{
	return atomic_load_explicit(child->stop, memory_order_acquire) ||
	       monotonic_us() >= share_of_time(child, per_cent);
}

static void prepare_cells(struct child *child)
{
	struct cell_port *cells = &child->cells;
	const struct provider_config config = {
		.port_id = child->port->id, .n_queues = child->port->n_rx};

	cells->id = child->port->id;
	cells->target = child->to != NULL ? child->to->id : child->port->id;
	cells->n_queues = child->port->n_rx;
	cells->flow_queues = child->port->flow_queues;
	cells->step = tell_cell_step;
	cells->context = child;
	shape_port_read(&cells->rss, &config);
}

static void choose(struct child *child, const struct form *form, enum level level)
{
	if (form->pattern.special == FORM_SHAPE && level > child->taken_level &&
		level >= LEVEL_ACCEPTS) {
		child->taken = *form;
		child->taken_level = level;
	}
	if (form->actions->mark && level > child->marks_level) {
		child->marks = *form;
		child->marks_level = level;
	}
	if (form->actions->mark && form->actions->count && level > child->counts_level) {
		child->counts = *form;
		child->counts_level = level;
	}
}

static void try_marks(struct child *child, json_t *set)
{
	json_t *object = json_object();
	struct cell_marks marks;

	cell_marks(&child->cells, &child->marks, &marks);
	answer_number(object, "accepted_bits", marks.accepted_bits);
	if (child->cells.eyes != NULL)
		answer_number(object, "seen_bits", marks.seen_bits);
	json_object_set_new(set, "marks", object);
}

static void try_counters(struct child *child, json_t *set)
{
	struct cell_width width;
	json_t *object;

	if (!cell_counter_width(&child->cells, &child->counts, WIDTH_US, &width))
		return;
	object = json_object();
	answer_number(object, "came", width.expected[width.n - 1]);
	answer_number(object, "counted", width.counted[width.n - 1]);
	json_object_set_new(object, "bytes", json_boolean(width.has_bytes));
	answer_number(object, width.bits != 0 ? "bits" : "at_least_bits", width.at_least);
	json_object_set_new(set, "counters", object);
}

static void try_indirect(struct child *child)
{
	const struct form *form = child->counts_level >= LEVEL_ACCEPTS ? &child->counts : NULL;

	for (unsigned i = 0; i < CELL_N_SHARED; i++) {
		struct cell_indirect indirect;
		json_t *object = json_object();

		cell_indirect(&child->cells, form, (enum cell_shared)i, &indirect);
		json_object_set_new(object, "action", json_string(indirect.name));
		json_object_set_new(object, "level", json_string(level_name(indirect.level)));
		if (indirect.why.error != 0)
			json_object_set_new(object, "answer",
				offload_refusal(indirect.why.error, indirect.why.words));
		probe_tell(child, "indirect", object);
	}
}

static void tell_async(const struct child *child, json_t *set)
{
	struct cell_async async;
	json_t *object;

	if (!cell_async(&child->cells, &async))
		return;
	object = json_object();
	answer_number(object, "queues", async.queues);
	answer_number(object, "queue_size", async.queue_size);
	answer_number(object, "counters", async.counters);
	answer_number(object, "ages", async.ages);
	answer_number(object, "meters", async.meters);
	answer_number(object, "connections", async.connections);
	json_object_set_new(set, "async", object);
}

/* What forms that work tell besides. */
static void try_more(struct child *child)
{
	json_t *set = json_object();

	if (child->marks_level >= LEVEL_ACCEPTS)
		try_marks(child, set);
	if (child->counts_level == LEVEL_WORKS)
		try_counters(child, set);
	tell_async(child, set);
	probe_tell(child, "set", set);
	try_indirect(child);
}

/* All that are left, by one call; a driver that knows it takes them where it did not take each. */
static void flush(struct child *child)
{
	struct rte_flow_error said = {0};

	probe_tell_step(child, "flush", child->cells.n_left, 60);
	if (rte_flow_flush(child->port->id, &said) == 0)
		child->cells.n_left = 0;
}

/* Rules that stay would be seen wherever others are looked for. */
static bool is_spoilt(struct child *child, const struct cell *cell)
{
	if (!cell->left)
		return false;
	flush(child);
	child->spoilt = child->cells.n_left >= LEFT_MAX;
	return child->spoilt;
}

/* A form that was taken before is taken still; else nothing that is found out now is true of the card. */
static bool is_well(struct child *child)
{
	struct cell cell;

	if (child->taken_level >= LEVEL_ACCEPTS)
		cell_try(&child->cells, &child->taken, &cell);
	else if (child->marks_level >= LEVEL_ACCEPTS)
		cell_try(&child->cells, &child->marks, &cell);
	else
		return true;
	return cell.level >= LEVEL_ACCEPTS;
}

static const char *why_stopped(const struct child *child)
{
	if (child->spoilt)
		return "rules do not go again";
	if (child->failed)
		return "it takes no rule any more that it took before";
	return atomic_load(child->stop) ? "interrupted" : "the time is over";
}

/* Each pattern with each set of actions; half of the time at the most. */
static void try_cells(struct child *child, unsigned first)
{
	unsigned n = form_n_patterns() * form_n_actions(), i = first;
	json_t *set = json_object();

	for (; i < n && !is_enough(child, 60); i++) {
		struct form form;
		struct cell cell;

		form_pattern(i / form_n_actions(), &form.pattern);
		form.actions = form_actions(i % form_n_actions());
		cell_try(&child->cells, &form, &cell);
		child->failed = cell_is_passing(cell.create.error) && !is_well(child);
		if (child->failed)
			break;
		choose(child, &form, cell.level);
		probe_tell(child, "cell", probe_json_cell(&form, &cell));
		if (is_spoilt(child, &cell))
			break;
	}
	if (child->spoilt || i < n)
		json_object_set_new(set, "stopped", json_string(why_stopped(child)));
	answer_number(set, "cells_asked", n);
	probe_tell(child, "set", set);
}

static int trials_measure(struct child *child, bool async, unsigned per_cent)
{
	const struct limits_config config = {
		.provider = {.port_id = child->port->id,
			.n_places = child->options->max_rules,
			.n_queues = child->port->n_rx,
			.metadata = child->port->marks,
			.async = async,
			.random = monotonic_us(),
			.stop = child->stop},
		.form = !async && child->taken_level >= LEVEL_ACCEPTS ? &child->taken : NULL,
		.cells = &child->cells,
		.deadline_us = share_of_time(child, per_cent),
		.step = tell_limits_step,
		.context = child,
	};
	struct limits limits;
	char form[96];
	int ret = limits_measure(&limits, &config);

	if (ret < 0)
		return ret;
	child->cells.n_left += limits.left;
	if (limits.by_form)
		snprintf(form, sizeof(form), "%s, %s", child->taken.pattern.name,
			child->taken.actions->name);
	probe_tell(child, "table", probe_json_limits(&limits, form));
	return 0;
}

/* Behind all that was tried: of a card that failed on the way not everything is true. */
static void tell_if_failed(struct child *child)
{
	json_t *set;

	child->failed = !is_well(child);
	if (!child->failed)
		return;
	set = json_object();
	json_object_set_new(set, "stopped", json_string(why_stopped(child)));
	probe_tell(child, "set", set);
}

int probe_trials(struct child *child, unsigned first, struct error *error)
{
	int ret = 0;

	prepare_cells(child);
	try_cells(child, first);
	if (child->spoilt || child->failed || is_enough(child, 95))
		return 0;
	try_more(child);
	/* the back end that an engine would have comes first */
	if (child->port->flow_queues)
		ret = trials_measure(child, true, 80);
	if (ret == 0 && !child->cells.by_templates)
		ret = trials_measure(child, false, 95);
	if (ret == 0)
		tell_if_failed(child);
	return ret < 0 ? error_set(error, ret, "no memory for %u rules", child->options->max_rules)
		       : 0;
}

void probe_leave(struct child *child)
{
	json_t *set = json_object();

	if (child->cells.n_left > 0)
		flush(child);
	answer_number(set, "rules_left", child->cells.n_left);
	probe_tell(child, "set", set);
}
