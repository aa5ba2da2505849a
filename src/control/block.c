/* SPDX-License-Identifier: BSD-3-Clause */
/* flow block, flow unblock: the list of blocks is changed. And what time does to it. */
#include "control/block.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "control/block_name.h"
#include "control/control.h"
#include "control/event.h"
#include "control/verbs.h"

/* How often it is looked whether blocks are due, and whether removed ones are in no flow any more. */
#define TEND_US UINT64_C(100000)

enum block_key {
	BLOCK_FOR = BLOCK_NAME_KEYS,
	BLOCK_REASON,
	BLOCK_LIST,
	BLOCK_N_KEYS,
};

static const struct request_key block_keys[BLOCK_N_KEYS] = {
	BLOCK_NAME_ROWS,
	[BLOCK_FOR] = {.name = "for", .type = REQUEST_NUMBER, .min = 1, .max = BLOCK_FOR_MAX_S},
	[BLOCK_REASON] = {.name = "reason", .type = REQUEST_TEXT},
	[BLOCK_LIST] = {.name = "list", .type = REQUEST_TEXT},
};

enum unblock_key {
	UNBLOCK_NUMBER = BLOCK_NAME_KEYS,
	UNBLOCK_N_KEYS,
};

static const struct request_key unblock_keys[UNBLOCK_N_KEYS] = {
	BLOCK_NAME_ROWS,
	[UNBLOCK_NUMBER] = {.name = "number", .type = REQUEST_LARGE},
};

static void settle(const struct answer *answer, struct blocks *blocks)
{
	blocks_settled(blocks, plane_decided(answer->plane));
}

/* The list or the memory for reasons is full: which of them? */
static int refuse_full(
	const struct answer *answer, const struct blocks *blocks, struct error *error)
{
	char most[TEXT_NUMBER_MAX];
	struct blocks_stats stats;

	blocks_stats(blocks, &stats);
	if (stats.entries == stats.max_entries)
		return error_set(error, -ENOSPC,
			"%s: the list is full: it has %s blocks (blocks.max)", answer->verb->ask,
			text_grouped(most, stats.max_entries));
	return error_set(error, -ENOSPC,
		"%s: no room for one more reason: there are %s different ones (blocks.reasons)",
		answer->verb->ask, text_grouped(most, stats.max_reasons));
}

/*
 * Removed blocks have all the spare room until workers have decided their flows again, which takes less than a second:
 * the request is begun again until then.
 */
static int refuse_unsettled(const struct answer *answer, struct error *error)
{
	return error_set(error, -ETIMEDOUT,
		"%s: so many blocks were just removed that there is no room yet; try again in a "
		"second",
		answer->verb->ask);
}

static int check_reason(
	const struct answer *answer, const struct request_value *reason, struct error *error)
{
	if (!reason->given || block_reason_check(reason->text) == 0)
		return 0;
	return request_bad(error, answer->verb->ask, "reason", reason->text,
		strlen(reason->text) >= BLOCK_REASON_MAX
			? "a reason has at most 117 bytes"
			: "a reason has no control characters, nor blanks at its ends");
}

/* {"number":...,"new":true} */
static int add_line(struct answer *answer, const struct block_view *view, const char *more)
{
	char line[BLOCK_JSON_MAX + 32];
	size_t length =
		block_json(line, view, plane_origin_us(answer->plane), plane_now_us(answer->plane));

	length += (size_t)snprintf(line + length, sizeof(line) - length, "%s}\n", more);
	return answer_add_text(answer, line, length);
}

static int add_block(struct answer *answer, struct blocks *blocks,
	const struct request_value *values, struct error *error)
{
	struct block block = {
		.for_s = values[BLOCK_FOR].number, .reason = values[BLOCK_REASON].text};
	const uint64_t now_us = plane_now_us(answer->plane);
	struct block_view view;
	uint64_t number;

	if (block_name_match(&block.match, answer, values, error) < 0 ||
		check_reason(answer, &values[BLOCK_REASON], error) < 0)
		return -EINVAL;
	int ret = blocks_add(blocks, &block, now_us, &number);

	if (ret == -EAGAIN) {
		settle(answer, blocks);
		ret = blocks_add(blocks, &block, now_us, &number);
	}
	if (ret == -EAGAIN)
		return refuse_unsettled(answer, error);
	if (ret == -ENOSPC)
		return refuse_full(answer, blocks, error);
	if (ret < 0)
		return control_silent(error, ret, answer->verb->ask);
	blocks_get_number(blocks, number, &view);
	ret = add_line(answer, &view, ret == 0 ? ",\"new\":true" : ",\"new\":false");
	return ret < 0 ? control_silent(error, ret, answer->verb->ask) : 0;
}

/* All of them or none. */
static int add_list(struct answer *answer, struct blocks *blocks,
	const struct request_value *values, struct error *error)
{
	const char *text = values[BLOCK_LIST].text, *ask = answer->verb->ask;
	struct blocks_added added;
	struct error said;

	for (unsigned i = 0; i < BLOCK_N_KEYS; i++)
		if (i != BLOCK_LIST && values[i].given)
			return error_set(error, -EINVAL, "%s: list and %s do not go together", ask,
				block_keys[i].name);
	settle(answer, blocks);
	int ret = blocks_load_bytes(
		blocks, "list", text, strlen(text), plane_now_us(answer->plane), &added, &said);

	if (ret == -EAGAIN)
		return refuse_unsettled(answer, error);
	if (ret < 0)
		return error_set(error, ret == -EBADMSG ? -EINVAL : ret, "%s: %s", ask, said.text);
	ret = answer_add(answer, json_pack("{s:I, s:I}", "added", (json_int_t)added.added,
					 "replaced", (json_int_t)added.replaced));
	return ret < 0 ? control_silent(error, ret, ask) : 0;
}

static int block(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct blocks *blocks = block_list_of(answer, error);

	if (!blocks)
		return -ENOTSUP;
	return values[BLOCK_LIST].given ? add_list(answer, blocks, values, error)
					: add_block(answer, blocks, values, error);
}

static int unblock(struct answer *answer, const struct request_value *values, struct error *error)
{
	struct blocks *blocks = block_list_of(answer, error);
	const char *ask = answer->verb->ask;
	struct block_match match;
	struct block_view gone;
	int ret;

	if (!blocks)
		return -ENOTSUP;
	if (values[UNBLOCK_NUMBER].given) {
		if (block_name_given(values))
			return error_set(error, -EINVAL,
				"%s: number says which block; nothing else goes with it", ask);
		ret = blocks_remove_number(blocks, values[UNBLOCK_NUMBER].large, &gone);
	} else {
		if (block_name_match(&match, answer, values, error) < 0)
			return -EINVAL;
		ret = blocks_remove(blocks, &match, &gone);
	}
	if (ret == -ENOENT)
		return error_set(error, ret, "%s: no such block", ask);
	/* the text of its reason is there until the next change */
	ret = add_line(answer, &gone, "");
	return ret < 0 ? control_silent(error, ret, ask) : 0;
}

const struct answer_verb flow_block = {
	.ask = "flow block",
	.keys = block_keys,
	.n_keys = BLOCK_N_KEYS,
	.begin = block,
};

const struct answer_verb flow_unblock = {
	.ask = "flow unblock",
	.keys = unblock_keys,
	.n_keys = UNBLOCK_N_KEYS,
	.begin = unblock,
};

static void tell_expired(void *control, const struct block_view *gone)
{
	event_block_expired(control, gone);
}

void blocks_tend(struct control *control)
{
	struct blocks *blocks = plane_blocks(control->plane);
	struct blocks_stats stats;

	if (control->now_us < control->blocks_us)
		return;
	control->blocks_us = control->now_us + CONTROL_QUIET_US;
	if (!blocks)
		return;
	const uint64_t now_us = plane_now_us(control->plane);

	blocks_expire(blocks, now_us, tell_expired, control);
	blocks_settled(blocks, plane_decided(control->plane));
	blocks_stats(blocks, &stats);
	if (stats.entries == 0 && stats.unsettled == 0)
		return;
	/* they are due at whole seconds */
	const uint64_t left_us = CLOCK_US_PER_S - now_us % CLOCK_US_PER_S;

	control->blocks_us = control->now_us + (left_us < TEND_US ? left_us : TEND_US);
}
