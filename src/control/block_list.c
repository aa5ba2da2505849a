/* SPDX-License-Identifier: BSD-3-Clause */

/* block list: the blocks that pass a filter, as they lie in memory. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/block_name.h"
#include "control/control.h"
#include "control/verbs.h"

#define ASK "block list"
/* Blocks of one turn. */
#define PAGE 64

enum key {
	LIMIT = BLOCK_NAME_KEYS,
	CURSOR,
	N_KEYS,
};

static const struct request_key keys[N_KEYS] = {
	BLOCK_NAME_ROWS,
	[LIMIT] = {.name = "limit", .type = REQUEST_NUMBER, .min = 1, .max = UINT32_MAX},
	[CURSOR] = {.name = "cursor", .type = REQUEST_TEXT},
};

struct list {
	struct blocks *blocks;
	struct blocks_filter filter;
	struct flow_key flow; /* the filter's */
	uint32_t limit;	      /* 0: none */
	uint32_t next;	      /* where the next page begins */
	uint64_t matched;
	bool more; /* the limit was reached before the end */
};

static int blocks_take_cursor(struct list *list, const char *text, struct error *error)
{
	char *end;

	errno = 0;
	unsigned long position = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || position >= BLOCKS_NONE)
		return request_bad(error, ASK, "cursor", text, "no answer ended with such a one");
	list->next = (uint32_t)position;
	return 0;
}

/* A flow: the blocks that would drop it. A prefix: flows and prefixes that have to do with it. */
static int take_filter(struct list *list, const struct answer *answer,
	const struct request_value *values, struct error *error)
{
	struct block_match match;

	if (!block_name_given(values))
		return 0;
	if (values[BLOCK_NAME_PREFIX].given &&
		(values[BLOCK_NAME_PORT].given || values[FLOW_NAME_PROTO].given))
		return error_set(error, -EINVAL,
			ASK ": prefix lists all blocks there, whatever their port and proto");
	if (block_name_match(&match, answer, values, error) < 0)
		return -EINVAL;
	if (match.is_flow) {
		list->flow = match.flow;
		list->filter.flow = &list->flow;
	} else {
		list->filter.prefix = match.prefix;
	}
	return 0;
}

static int blocks_begin(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct blocks *blocks = block_list_of(answer, error);

	if (!blocks)
		return -ENOTSUP;
	struct list *list = calloc(1, sizeof(*list));

	if (!list)
		return error_set(error, -ENOMEM, ASK ": there is not enough memory");
	answer->state = list;
	list->blocks = blocks;
	list->limit = values[LIMIT].number;
	int ret = take_filter(list, answer, values, error);

	if (ret == 0 && values[CURSOR].given)
		ret = blocks_take_cursor(list, values[CURSOR].text, error);
	return ret;
}

static void blocks_write_line(struct answer *answer, char *room, const struct block_view *view)
{
	size_t length =
		block_json(room, view, plane_origin_us(answer->plane), plane_now_us(answer->plane));

	memcpy(room + length, "}\n", 2);
	output_add(answer->output, length + 2);
}

/* As many as there is room for; those behind the last one are looked for again. */
static int blocks_turn(struct answer *answer, struct error *error)
{
	struct list *list = answer->state;
	struct block_view views[PAGE];
	uint32_t max = PAGE;

	(void)error;
	if (list->limit > 0 && list->limit - list->matched < max)
		/* one more says whether there are more */
		max = (uint32_t)(list->limit - list->matched) + 1;
	uint32_t n = blocks_list(list->blocks, &list->filter, &list->next, views, max);

	for (uint32_t i = 0; i < n; i++) {
		if (list->limit > 0 && list->matched == list->limit) {
			list->next = views[i].position;
			list->more = true;
			return ANSWER_END;
		}
		char *room = output_room(answer->output, BLOCK_JSON_MAX + 2);

		if (!room) {
			list->next = views[i].position;
			return ANSWER_GO;
		}
		blocks_write_line(answer, room, &views[i]);
		list->matched++;
	}
	return list->next == BLOCKS_NONE ? ANSWER_END : ANSWER_GO;
}

static void blocks_add_to_end(struct answer *answer, json_t *end)
{
	const struct list *list = answer->state;
	struct blocks_stats stats;
	char cursor[16];

	blocks_stats(list->blocks, &stats);
	answer_number(end, "blocks", stats.entries);
	answer_number(end, "flows", stats.flows);
	answer_number(end, "max", stats.max_entries);
	answer_number(end, "reasons", stats.reasons);
	answer_number(end, "max_reasons", stats.max_reasons);
	answer_number(end, "added", stats.added);
	answer_number(end, "replaced", stats.replaced);
	answer_number(end, "removed", stats.removed);
	answer_number(end, "expired", stats.expired);
	answer_number(end, "refused",
		stats.refused_full + stats.refused_reasons + stats.refused_unsettled);
	answer_number(end, "unsettled", stats.unsettled);
	answer_number(end, "gone_packets", stats.gone_packets);
	answer_number(end, "gone_bytes", stats.gone_bytes);
	answer_number(end, "matched", list->matched);
	snprintf(cursor, sizeof(cursor), "%" PRIu32, list->next);
	json_object_set_new(end, "cursor", list->more ? json_string(cursor) : json_null());
}

static void blocks_end(struct answer *answer)
{
	free(answer->state);
}

const struct answer_verb block_list = {
	.ask = ASK,
	.keys = keys,
	.n_keys = N_KEYS,
	.begin = blocks_begin,
	.turn = blocks_turn,
	.finish = blocks_add_to_end,
	.end = blocks_end,
};
