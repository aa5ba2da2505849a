/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Requests to an engine that nobody waits for: they are sent, and their answers are collected bit by bit whenever
 * something has come, so that keys are heeded all the while. One connection, opened when it is needed and again after
 * it was lost.
 *
 * Life-cycle: top_ask_init(), then any number of top_ask_begin() and top_ask_turn() until that no longer returns
 * TOP_ASK_WAITS; top_ask_fini(). It belongs to one thread.
 */

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "cli/client.h"

#define TOP_ASK_MAX 5
/* The lines of one answer; an engine has fewer of whatever is asked here. */
#define TOP_ASK_LINES 2000

struct top_request {
	const char *ask; /* "port show"; lives as long as the program */
	json_t *with;	 /* borrowed */
};

enum top_ask_state {
	TOP_ASK_IDLE,	 /* nothing is asked */
	TOP_ASK_WAITS,	 /* not all has come */
	TOP_ASK_DONE,	 /* all answers are there */
	TOP_ASK_REFUSED, /* the engine said no to one of the requests, and answered the others */
	TOP_ASK_LOST, /* there is no engine, or none that can be asked; the connection is closed */
};

struct top_ask {
	const char *path; /* NULL: the default */
	struct cli_client client;
	bool open, greeted;
	enum top_ask_state state;
	struct error refusal;	    /* the first one */
	unsigned n, at;		    /* requests, and the one whose answer comes now */
	json_t *greeting;	    /* NULL before it has come */
	json_t *lines[TOP_ASK_MAX]; /* of each answer, an array */
	json_t *end[TOP_ASK_MAX];   /* the line that ended it */
};

/* `path` has to live as long as the struct. */
void top_ask_init(struct top_ask *ask, const char *path);
/* Sends the requests; what was asked before is given up. The state is TOP_ASK_WAITS, or TOP_ASK_LOST with a line. */
enum top_ask_state top_ask_begin(
	struct top_ask *ask, const struct top_request *requests, unsigned n, struct error *error);
/*
 * Takes what has come, up to some hundred lines at a time. Returns the new state; with TOP_ASK_REFUSED and TOP_ASK_LOST
 * a line says why.
 */
enum top_ask_state top_ask_turn(struct top_ask *ask, struct error *error);
/* The descriptor to wait for, or -1: nothing is going to come. */
int top_ask_fd(const struct top_ask *ask);
/* Is something to be taken that top_ask_turn() has left? */
bool top_ask_has_more(const struct top_ask *ask);
/* Gives up what was asked, and closes the connection. */
void top_ask_close(struct top_ask *ask);
void top_ask_fini(struct top_ask *ask);
