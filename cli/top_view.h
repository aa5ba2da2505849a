/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a person has chosen to see in `millrace top`, and what each key changes in it. It knows no terminal and asks no
 * engine: a key returns what is to be asked.
 *
 * Life-cycle: top_view_init(), top_view_key() with each key, top_view_follow() with each new picture; top_view_fini().
 */

#include <stdbool.h>

#include <jansson.h>

#include "cli/top_picture.h"

/* Keys that are no character. */
enum top_key {
	TOP_KEY_UP = 256,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
	TOP_KEY_CLEAR, /* of the line that is typed */
	TOP_KEY_OTHER,
};

enum top_mode {
	TOP_LIST,
	TOP_EXPLAIN, /* the flow that `target` names */
	TOP_HELP,
};

enum top_prompt {
	TOP_NO_PROMPT,
	TOP_PROMPT_FILTER,
	TOP_PROMPT_BLOCK,   /* y or n */
	TOP_PROMPT_FOR,	    /* seconds */
	TOP_PROMPT_UNBLOCK, /* y or n */
};

/* What a key asks for beside a new picture of the screen. */
enum top_action {
	TOP_STAY,
	TOP_QUIT,
	TOP_SORT,	 /* another order: the list is to be sorted, and asked for */
	TOP_TAKE_FILTER, /* `input` has it: top_view_filter() or top_view_say() answers */
	TOP_FREEZE,	 /* or go on, as `frozen` says */
	TOP_ASK_EXPLAIN, /* `target` */
	TOP_DO_BLOCK,	 /* `target`, for `block_s` seconds where that is not 0 */
	TOP_DO_UNBLOCK,
	TOP_REPAINT,
};

#define TOP_INPUT_MAX 200

struct top_view {
	enum top_mode mode;
	enum top_prompt prompt;
	enum top_order order;
	bool frozen;
	bool plain; /* for a file: no cursor, no last line */
	bool too_small; /* the screen shows nothing: whoever draws says so, and all keys but q do nothing */
	char filter[TOP_INPUT_MAX];
	char input[TOP_INPUT_MAX]; /* what is being typed */
	char message[600];	   /* what the last line says until the next key */
	bool is_bad;
	/* the list: row under the cursor, the first one on the screen; how many the screen shows: whoever draws says */
	unsigned cursor, first, page;
	char name[TOP_NAME_MAX]; /* of the flow under the cursor, once it was moved; else "" */
	/* the pane of text: its first line, how many lines it has, how many the screen shows */
	unsigned line, n_lines, pane;
	json_t *target; /* the flow that is explained, or is to be blocked */
	char target_name[TOP_NAME_MAX];
	unsigned block_s;
};

void top_view_init(struct top_view *view);
void top_view_fini(struct top_view *view);

enum top_action top_view_key(struct top_view *view, const struct top_picture *picture, int key);

/* A new picture: the cursor stays with its flow, as long as that is in the list. */
void top_view_follow(struct top_view *view, const struct top_picture *picture);

/* The filter in `input` is in force now. */
void top_view_filter(struct top_view *view);

/* The last line says so until the next key. `is_bad`: it went wrong. */
void top_view_say(struct top_view *view, bool is_bad, const char *text);
