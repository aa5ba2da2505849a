/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A question that came by HTTP: one of the control socket's that change nothing, answered by the same code. Its lines are
 * gathered, as one array of JSON, until they are all there.
 *
 * Life-cycle: http_query_create() with a verb of http_query_verb(); http_query_turn() again and again until it is
 * done; http_query_destroy() at any time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/answer.h"

struct http_query;

/* The verb that "/api/NOUN/VERB" names. NULL: none, or one that changes something. */
const struct answer_verb *http_query_verb(const char *path);

/* A word of the question: "port=443". The value as it came; NULL: none. 0 or -EINVAL: it is no text. */
int http_query_add(
	json_t *with, const struct answer_verb *verb, const char *name, const char *value);

/* Takes over `with`. NULL without memory. */
struct http_query *http_query_create(
	struct control *control, const struct answer_verb *verb, json_t *with);
void http_query_destroy(struct http_query *query);

/*
 * A bounded piece of the answer, if its time has come. `may_begin`: there is room for one more. True when the answer is
 * there.
 */
bool http_query_turn(struct http_query *query, bool may_begin);
/* When it has something to do; by control's clock. */
uint64_t http_query_wake_us(const struct http_query *query, bool may_begin);
/* It has begun, and so has memory for its answer. */
bool http_query_has_begun(const struct http_query *query);
/* It asks for flows, and is it being answered now? There is one such at a time. */
bool http_query_is_list(const struct http_query *query);
bool http_query_is_listing(const struct http_query *query);

/* Of one that is done: the body, which belongs to the query, and HTTP's status. */
const char *http_query_body(const struct http_query *query, size_t *length, unsigned *status);
