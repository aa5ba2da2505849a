/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 1000000000UL
#define SECONDS_DIGITS 10

void top_view_init(struct top_view *view)
{
	*view = (struct top_view){.page = 1, .pane = 1};
}

void top_view_fini(struct top_view *view)
{
	json_decref(view->target);
	view->target = NULL;
}

void top_view_say(struct top_view *view, bool is_bad, const char *text)
{
	snprintf(view->message, sizeof(view->message), "%s", text);
	view->is_bad = is_bad;
}

void top_view_filter(struct top_view *view)
{
	memcpy(view->filter, view->input, sizeof(view->filter));
	view->cursor = view->first = 0;
	view->name[0] = '\0';
}

/* The cursor stays in the list, and the screen around it. */
static void keep_in_list(struct top_view *view, const struct top_picture *picture)
{
	if (view->cursor >= picture->n_listed)
		view->cursor = picture->n_listed > 0 ? picture->n_listed - 1 : 0;
	if (view->first > view->cursor)
		view->first = view->cursor;
	if (view->cursor - view->first >= view->page)
		view->first = view->cursor - view->page + 1;
}

void top_view_follow(struct top_view *view, const struct top_picture *picture)
{
	for (unsigned i = 0; view->name[0] != '\0' && i < picture->n_listed; i++) {
		if (strcmp(picture->flows[i].name, view->name) == 0) {
			view->cursor = i;
			break;
		}
	}
	keep_in_list(view, picture);
}

static void move_cursor(struct top_view *view, const struct top_picture *picture, int by)
{
	int to = (int)view->cursor + by;

	view->cursor = to > 0 ? (unsigned)to : 0;
	keep_in_list(view, picture);
	/* at the top it stays at the top, whichever flow that is */
	snprintf(view->name, sizeof(view->name), "%s",
		view->cursor > 0 ? picture->flows[view->cursor].name : "");
}

static void move_pane(struct top_view *view, int by)
{
	int last = view->n_lines > view->pane ? (int)(view->n_lines - view->pane) : 0;
	int to = (int)view->line + by;

	if (to > last)
		to = last;
	view->line = to > 0 ? (unsigned)to : 0;
}

/* By how many lines the key moves; 0 where it is none of those. `all` is more than there are. */
static int step_of(int key, int page, int all)
{
	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		return -1;
	case TOP_KEY_DOWN:
	case 'j':
		return 1;
	case TOP_KEY_PAGE_UP:
		return -page;
	case TOP_KEY_PAGE_DOWN:
		return page;
	case TOP_KEY_HOME:
	case 'g':
		return -all;
	case TOP_KEY_END:
	case 'G':
		return all;
	default:
		return 0;
	}
}

static enum top_action begin_prompt(
	struct top_view *view, enum top_prompt prompt, const char *input)
{
	view->prompt = prompt;
	snprintf(view->input, sizeof(view->input), "%s", input);
	return TOP_STAY;
}

/* The flow under the cursor becomes the one that is spoken of. */
static bool choose_flow(struct top_view *view, const struct top_picture *picture)
{
	if (view->cursor >= picture->n_listed) {
		top_view_say(view, true, "there is no flow under the cursor");
		return false;
	}
	json_decref(view->target);
	view->target = json_incref((json_t *)(uintptr_t)picture->flows[view->cursor].line);
	memcpy(view->target_name, picture->flows[view->cursor].name, sizeof(view->target_name));
	return true;
}

static enum top_action set_order(struct top_view *view, enum top_order order)
{
	if (order == view->order)
		return TOP_STAY;
	view->order = order;
	view->cursor = view->first = 0;
	view->name[0] = '\0';
	return TOP_SORT;
}

static enum top_action explain(struct top_view *view, const struct top_picture *picture)
{
	if (!choose_flow(view, picture))
		return TOP_STAY;
	view->mode = TOP_EXPLAIN;
	view->line = view->n_lines = 0;
	return TOP_ASK_EXPLAIN;
}

static enum top_action open_help(struct top_view *view)
{
	view->mode = TOP_HELP;
	view->line = view->n_lines = 0;
	return TOP_STAY;
}

/* Of the list alone: in a pane there is nothing to sort or filter. */
static enum top_action list_key(struct top_view *view, const struct top_picture *picture, int key)
{
	switch (key) {
	case 's':
		return set_order(view, (view->order + 1) % TOP_N_ORDERS);
	case 'r':
		return set_order(view, TOP_BY_RATE);
	case 'p':
		return set_order(view, TOP_BY_PACKETS);
	case 'y':
		return set_order(view, TOP_BY_BYTES);
	case 'a':
		return set_order(view, TOP_BY_AGE);
	case 'f':
	case '/':
		return begin_prompt(view, TOP_PROMPT_FILTER, view->filter);
	case 'e':
	case TOP_KEY_ENTER:
		return explain(view, picture);
	case 'b':
		return choose_flow(view, picture) ? begin_prompt(view, TOP_PROMPT_BLOCK, "")
						  : TOP_STAY;
	case 'u':
		return choose_flow(view, picture) ? begin_prompt(view, TOP_PROMPT_UNBLOCK, "")
						  : TOP_STAY;
	case 'q':
		return TOP_QUIT;
	default:
		return TOP_STAY;
	}
}

/* Of the pane: the flow that is explained may be blocked from there. */
static enum top_action pane_key(struct top_view *view, int key)
{
	bool explained = view->mode == TOP_EXPLAIN;

	switch (key) {
	case 'q':
	case 'e':
	case TOP_KEY_ESCAPE:
	case TOP_KEY_ENTER:
		view->mode = TOP_LIST;
		return TOP_STAY;
	case 'b':
		return explained ? begin_prompt(view, TOP_PROMPT_BLOCK, "") : TOP_STAY;
	case 'u':
		return explained ? begin_prompt(view, TOP_PROMPT_UNBLOCK, "") : TOP_STAY;
	default:
		return TOP_STAY;
	}
}

static enum top_action plain_key(struct top_view *view, const struct top_picture *picture, int key)
{
	bool in_list = view->mode == TOP_LIST;
	int page = (int)(in_list ? view->page : view->pane);
	int all = (int)(in_list ? picture->n_listed : view->n_lines);
	int by = step_of(key, page, all);

	if (by != 0) {
		if (in_list)
			move_cursor(view, picture, by);
		else
			move_pane(view, by);
		return TOP_STAY;
	}
	switch (key) {
	case ' ':
		view->frozen = !view->frozen;
		return TOP_FREEZE;
	case '?':
	case 'h':
		return open_help(view);
	case 'L' & 0x1f: /* Ctrl-L */
		return TOP_REPAINT;
	default:
		return in_list ? list_key(view, picture, key) : pane_key(view, key);
	}
}

/* What was typed is complete. */
static enum top_action take_input(struct top_view *view)
{
	unsigned long seconds;

	if (view->prompt == TOP_PROMPT_FILTER) {
		view->prompt = TOP_NO_PROMPT;
		return TOP_TAKE_FILTER;
	}
	seconds = strtoul(view->input, NULL, 10);
	if (view->input[0] != '\0' &&
		(strlen(view->input) > SECONDS_DIGITS || seconds == 0 || seconds > SECONDS_MAX)) {
		top_view_say(view, true, "seconds from 1 to 1,000,000,000 are needed");
		return TOP_STAY;
	}
	view->block_s = (unsigned)seconds;
	view->prompt = TOP_NO_PROMPT;
	return TOP_DO_BLOCK;
}

/* Questions that y answers; every other key means no. */
static enum top_action answer_key(struct top_view *view, int key)
{
	enum top_prompt prompt = view->prompt;

	view->prompt = TOP_NO_PROMPT;
	if (key != 'y' && key != 'Y') {
		top_view_say(
			view, false, prompt == TOP_PROMPT_BLOCK ? "not blocked" : "not unblocked");
		return TOP_STAY;
	}
	return prompt == TOP_PROMPT_BLOCK ? begin_prompt(view, TOP_PROMPT_FOR, "") : TOP_DO_UNBLOCK;
}

static bool is_typed(const struct top_view *view, int key)
{
	if (view->prompt == TOP_PROMPT_FOR)
		return key >= '0' && key <= '9';
	return key >= ' ' && key < 0x7f;
}

static enum top_action prompt_key(struct top_view *view, int key)
{
	size_t length = strlen(view->input);

	if (view->prompt == TOP_PROMPT_BLOCK || view->prompt == TOP_PROMPT_UNBLOCK)
		return answer_key(view, key);
	if (key == TOP_KEY_ENTER)
		return take_input(view);
	if (key == TOP_KEY_ESCAPE) {
		if (view->prompt == TOP_PROMPT_FOR)
			top_view_say(view, false, "not blocked");
		view->prompt = TOP_NO_PROMPT;
	} else if (key == TOP_KEY_BACKSPACE && length > 0) {
		view->input[length - 1] = '\0';
	} else if (key == TOP_KEY_CLEAR) {
		view->input[0] = '\0';
	} else if (is_typed(view, key) && length + 1 < sizeof(view->input)) {
		view->input[length] = (char)key;
		view->input[length + 1] = '\0';
	}
	return TOP_STAY;
}

enum top_action top_view_key(struct top_view *view, const struct top_picture *picture, int key)
{
	/* nothing is done by somebody who cannot see it */
	if (view->too_small)
		return key == 'q' ? TOP_QUIT : TOP_STAY;
	view->message[0] = '\0';
	return view->prompt != TOP_NO_PROMPT ? prompt_key(view, key)
					     : plain_key(view, picture, key);
}
