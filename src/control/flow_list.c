/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * flow list: all flows that pass a filter, as they come, or those that have most of something.
 *
 * A walk copies one page at a time from a worker. What is listed as it comes goes straight into the
 * output, and the walk waits where that is full. For a top list the walk runs through and keeps what
 * ranks; by rate it runs twice, `over_ms` apart.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/control.h"
#include "control/flow_filter.h"
#include "control/flow_rate.h"
#include "control/flow_top.h"
#include "control/flow_walk.h"
#include "control/verbs.h"
#include "export/json.h"

#define ASK "flow list"
#define MAX_TOP 1000
#define DEFAULT_OVER_MS 1000
/* How often it is looked whether the list that is being measured is done. */
#define QUEUE_US UINT64_C(20000)
/* A line: the record, a rate, the end. */
#define LINE_ROOM (EXPORT_JSON_MAX + 64)

enum {
	TOP = FLOW_FILTER_N_KEYS,
	BY,
	OVER_MS,
	LIMIT,
	CURSOR,
	N_KEYS,
};

static const struct request_key keys[N_KEYS] = {
	FLOW_FILTER_KEYS,
	[TOP] = {.name = "top", .type = REQUEST_NUMBER, .min = 1, .max = MAX_TOP},
	[BY] = {.name = "by", .type = REQUEST_TEXT},
	[OVER_MS] = {.name = "over_ms", .type = REQUEST_NUMBER, .min = 100, .max = 10000},
	[LIMIT] = {.name = "limit", .type = REQUEST_NUMBER, .min = 1, .max = UINT32_MAX},
	[CURSOR] = {.name = "cursor", .type = REQUEST_TEXT},
};

enum by {
	BY_RATE,
	BY_PACKETS,
	BY_BYTES,
	BY_AGE,
	N_BYS,
};

static const char *const by_names[N_BYS] = {"rate", "packets", "bytes", "age"};

enum step {
	STEP_LIST,     /* as they come */
	STEP_QUEUE,    /* another list is being measured */
	STEP_REMEMBER, /* the first look of two */
	STEP_PAUSE,
	STEP_RANK,
	STEP_TELL, /* those that rank */
};

struct list {
	enum step step;
	enum by by;
	bool counted; /* among those that remember rates */
	struct flow_filter filter;
	uint32_t limit; /* 0: none */
	uint32_t over_ms;
	uint64_t begun_us; /* the first look */
	uint64_t matched, flows;
	unsigned at; /* in the page, or in the top list */
	char cursor[32];
	struct flow_top *top;
	const struct flow_top_entry *sorted;
	unsigned n_sorted;
	struct flow_walk walk;
};

/* Digits up to `end`; what is above `max` is none. */
static bool read_number(const char *text, char end, uint64_t max, uint64_t *number)
{
	const char *begin = text;

	for (*number = 0; *text >= '0' && *text <= '9' && text - begin < 12; text++)
		*number = *number * 10 + (uint64_t)(*text - '0');
	return text > begin && *text == end && *number <= max;
}

/* "WORKER:POSITION", as an earlier answer's end had it. */
static int flows_take_cursor(struct list *list, const char *text, unsigned n_workers,
	unsigned *worker, uint32_t *position, struct error *error)
{
	const char *colon = strchr(text, ':');
	uint64_t first, second;

	if (!colon || !read_number(text, ':', n_workers - 1, &first) ||
		!read_number(colon + 1, '\0', FLOW_NONE - 1, &second))
		return request_bad(error, ASK, "cursor", text, "no answer ended with such a one");
	if (list->filter.worker != FLOW_FILTER_ANY && (uint64_t)list->filter.worker != first)
		return request_bad(error, ASK, "cursor", text, "it is of another worker");
	*worker = (unsigned)first;
	*position = (uint32_t)second;
	return 0;
}

static int check_together(const struct request_value *values, struct error *error)
{
	if (values[TOP].given && values[LIMIT].given)
		return error_set(error, -EINVAL, ASK ": top and limit do not go together");
	if (values[TOP].given && values[CURSOR].given)
		return error_set(error, -EINVAL, ASK ": top and cursor do not go together");
	if (!values[TOP].given && values[BY].given)
		return error_set(error, -EINVAL, ASK ": by is of use with top only");
	if (!values[TOP].given && values[OVER_MS].given)
		return error_set(error, -EINVAL, ASK ": over_ms is of use with top only");
	return 0;
}

static int take_by(struct list *list, const struct request_value *values, struct error *error)
{
	const char *text = values[BY].given ? values[BY].text : by_names[BY_RATE];
	unsigned by = 0;

	while (by < N_BYS && strcmp(text, by_names[by]) != 0)
		by++;
	if (by == N_BYS)
		return request_unknown(error, ASK, "by", text,
			"rate, packets, bytes or age are needed", by_names, N_BYS);
	if (by != BY_RATE && values[OVER_MS].given)
		return error_set(error, -EINVAL, ASK ": over_ms is of use by rate only");
	list->by = (enum by)by;
	list->over_ms = values[OVER_MS].given ? values[OVER_MS].number : DEFAULT_OVER_MS;
	return 0;
}

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, ASK ": there is not enough memory");
}

static int prepare_top(struct answer *answer, struct list *list, unsigned top, struct error *error)
{
	struct control *control = answer->control;

	list->step = STEP_RANK;
	list->top = flow_top_create(top);
	if (!list->top)
		return no_memory(error);
	if (list->by != BY_RATE)
		return 0;
	if (control->n_rates == CONTROL_MAX_RATES)
		return error_set(error, -EBUSY,
			ASK ": %d lists by rate are being measured already; try again later",
			CONTROL_MAX_RATES);
	control->n_rates++;
	list->counted = true;
	list->step = STEP_QUEUE;
	return 0;
}

/* The one memory of rates, when nobody has it. */
static int begin_to_measure(struct answer *answer, struct list *list)
{
	struct control *control = answer->control;

	if (control->measured != NULL) {
		answer->wake_us = control->now_us + QUEUE_US;
		return ANSWER_WAIT;
	}
	control->measured = list;
	flow_rates_begin(control->flow_rates, plane_now_us(answer->plane));
	list->begun_us = control->now_us;
	list->step = STEP_REMEMBER;
	return ANSWER_GO;
}

static void end_to_measure(struct control *control, struct list *list)
{
	if (control->measured == list)
		control->measured = NULL;
	control->n_rates -= list->counted;
	list->counted = false;
}

static void begin_walk(struct answer *answer, struct list *list, unsigned worker, uint32_t position)
{
	unsigned end = plane_config(answer->plane)->n_workers;

	if (list->filter.worker != FLOW_FILTER_ANY) {
		worker = (unsigned)list->filter.worker;
		end = worker + 1;
	}
	flow_walk_begin(&list->walk, answer->plane, worker, end, position);
	list->at = 0;
}

static int flows_begin(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	const struct plane_config *config = plane_config(answer->plane);
	struct list *list = aligned_alloc(_Alignof(struct list), sizeof(*list));
	unsigned worker = 0;
	uint32_t position = 0;
	int ret;

	if (!list)
		return no_memory(error);
	memset(list, 0, sizeof(*list));
	answer->state = list;
	ret = flow_filter_init(&list->filter, ASK, values, config, error);
	if (ret == 0)
		ret = check_together(values, error);
	if (ret == 0)
		ret = take_by(list, values, error);
	if (ret == 0 && values[CURSOR].given)
		ret = flows_take_cursor(
			list, values[CURSOR].text, config->n_workers, &worker, &position, error);
	if (ret == 0 && values[TOP].given)
		ret = prepare_top(answer, list, values[TOP].number, error);
	list->limit = values[LIMIT].number;
	begin_walk(answer, list, worker, position);
	return ret;
}

/* A flow of the page that the walk has. */
static struct flow_top_entry entry_of(const struct flow_walk *walk, unsigned at)
{
	return (struct flow_top_entry){
		.record = walk->page.record[at],
		.offload = walk->page.offload[at],
		.dropped = walk->page.dropped[at],
		.rules = walk->page.rules[at],
		.measure = {walk->page.measure[at][0], walk->page.measure[at][1]},
		.worker = walk->worker,
	};
}

/* The line of a flow; false as long as there is no room for it. */
static bool flows_write_line(
	struct answer *answer, const struct flow_top_entry *flow, const uint64_t *rate)
{
	struct flow_report report = {
		.record = flow->record,
		.origin_us = plane_origin_us(answer->plane),
		.worker = flow->worker & UINT8_MAX,
		.offload = flow->offload,
		.dropped = flow->dropped,
		.rules = flow->rules,
	};
	char *line = output_room(answer->output, LINE_ROOM);

	if (!line)
		return false;
	flow_report_set_measured(&report, flow->measure);
	size_t length = export_json_live(line, &report);

	if (rate)
		length += (size_t)sprintf(
			line + length, ",\"rate_pps\":%llu", (unsigned long long)*rate);
	memcpy(line + length, "}\n", 2);
	output_add(answer->output, length + 2);
	return true;
}

static int finish(struct answer *answer, struct list *list, struct error *error)
{
	int ret = control_snapshot(answer->control, ASK, error);
	const struct plane_snapshot *snapshot = &answer->control->snapshot;

	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < snapshot->n_lcores; i++)
		list->flows += snapshot->lcores[i].flows;
	return ANSWER_END;
}

/* As many of the page as there is room for; one flow beyond the limit says where to go on. */
static int list_page(struct answer *answer, struct list *list, struct error *error)
{
	const struct flow_walk *walk = &list->walk;

	for (; list->at < walk->page.n; list->at++) {
		const struct flow_record *record = &walk->page.record[list->at];
		const struct flow_offload *offload = &walk->page.offload[list->at];

		if (!flow_filter_match(&list->filter, record, offload))
			continue;
		if (list->limit > 0 && list->matched == list->limit) {
			snprintf(list->cursor, sizeof(list->cursor), "%u:%u", walk->worker,
				walk->page.position[list->at]);
			return finish(answer, list, error);
		}
		const struct flow_top_entry flow = entry_of(walk, list->at);

		if (!flows_write_line(answer, &flow, NULL))
			return ANSWER_GO;
		list->matched++;
	}
	return ANSWER_GO;
}

static int remember_page(struct answer *answer, struct list *list, struct error *error)
{
	const struct plane_page *page = &list->walk.page;

	for (; list->at < page->n; list->at++) {
		if (!flow_filter_key(&list->filter, &page->record[list->at].key))
			continue;
		int ret = flow_rates_remember(answer->control->flow_rates, list->walk.worker,
			page->position[list->at], &page->record[list->at], page->now_us);

		if (ret < 0)
			return control_silent(error, ret, ASK);
	}
	return ANSWER_GO;
}

static uint64_t value_of(const struct control *control, const struct list *list, unsigned i)
{
	const struct plane_page *page = &list->walk.page;
	const struct flow_record *record = &page->record[i];

	switch (list->by) {
	case BY_PACKETS:
		return flow_packets(record, 0) + flow_packets(record, 1);
	case BY_BYTES:
		return flow_bytes(record, 0) + flow_bytes(record, 1);
	case BY_AGE:
		return CLOCK_MAX_US - record->start_us;
	case BY_RATE:
	case N_BYS:
		break;
	}
	return flow_rates_of(
		control->flow_rates, list->walk.worker, page->position[i], record, page->now_us);
}

static int rank_page(struct answer *answer, struct list *list)
{
	const struct plane_page *page = &list->walk.page;

	for (; list->at < page->n; list->at++) {
		struct flow_top_entry flow;

		if (!flow_filter_match(
			    &list->filter, &page->record[list->at], &page->offload[list->at]))
			continue;
		flow = entry_of(&list->walk, list->at);
		flow.value = value_of(answer->control, list, list->at);
		flow_top_add(list->top, &flow);
	}
	return ANSWER_GO;
}

static int use_page(struct answer *answer, struct list *list, struct error *error)
{
	if (list->step == STEP_LIST)
		return list_page(answer, list, error);
	return list->step == STEP_REMEMBER ? remember_page(answer, list, error)
					   : rank_page(answer, list);
}

/* What follows when all flows have passed by. */
static int walk_is_over(struct answer *answer, struct list *list, struct error *error)
{
	if (list->step == STEP_LIST)
		return finish(answer, list, error);
	if (list->step == STEP_REMEMBER) {
		list->step = STEP_PAUSE;
		answer->wake_us = list->begun_us + (uint64_t)list->over_ms * 1000;
		return ANSWER_WAIT;
	}
	end_to_measure(answer->control, list);
	list->sorted = flow_top_sorted(list->top, &list->n_sorted);
	list->step = STEP_TELL;
	list->at = 0;
	return ANSWER_GO;
}

static int tell_page(struct answer *answer, struct list *list, struct error *error)
{
	for (unsigned n = 0; list->at < list->n_sorted && n < PLANE_PAGE; list->at++, n++) {
		const struct flow_top_entry *entry = &list->sorted[list->at];

		if (!flows_write_line(answer, entry, list->by == BY_RATE ? &entry->value : NULL))
			return ANSWER_GO;
		list->matched++;
	}
	return list->at < list->n_sorted ? ANSWER_GO : finish(answer, list, error);
}

static int flows_turn(struct answer *answer, struct error *error)
{
	struct list *list = answer->state;

	if (list->step == STEP_TELL)
		return tell_page(answer, list, error);
	if (list->step == STEP_QUEUE)
		return begin_to_measure(answer, list);
	if (list->step == STEP_PAUSE) {
		begin_walk(answer, list, 0, 0);
		list->step = STEP_RANK;
	}
	if (list->at >= list->walk.page.n) {
		int ret = flow_walk_page(&list->walk);

		if (ret < 0)
			return control_silent(error, ret, ASK);
		if (ret == 0)
			return walk_is_over(answer, list, error);
		list->at = 0;
	}
	return use_page(answer, list, error);
}

static void flows_add_to_end(struct answer *answer, json_t *end)
{
	const struct list *list = answer->state;

	answer_number(end, "flows", list->flows);
	answer_number(end, "matched", list->matched);
	json_object_set_new(
		end, "cursor", list->cursor[0] != '\0' ? json_string(list->cursor) : json_null());
}

static void flows_end(struct answer *answer)
{
	struct list *list = answer->state;

	if (!list)
		return;
	end_to_measure(answer->control, list);
	flow_top_destroy(list->top);
	free(list);
}

const struct answer_verb flow_list = {
	.ask = ASK,
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = flows_begin,
	.turn = flows_turn,
	.finish = flows_add_to_end,
	.end = flows_end,
};
