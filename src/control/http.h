/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of control/: the HTTP server with the metrics, the page, and the answers to questions that change nothing
 * (docs/metrics.md). libmicrohttpd speaks the protocol, without a thread of its own: control_step() lets it go on
 * whenever one of its connections is ready, so that all that is asked is answered by control's thread.
 *
 * Nobody is waited for. There are at most HTTP_MAX_CONNECTIONS; one that does not get through with its request within
 * HTTP_PATIENCE_US is closed, and within HTTP_CROWDED_US when there are so many that others may wait for a place; what
 * each may take of memory is bounded. Metrics that were made less than HTTP_FRESH_US ago are told again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "control/server.h"

#define HTTP_MAX_CONNECTIONS 32
#define HTTP_PATIENCE_US UINT64_C(20000000)
#define HTTP_CROWDED_US UINT64_C(1000000)
#define HTTP_FRESH_US UINT64_C(100000)
/* The longest answer below /api/, and how many there are at a time. */
#define HTTP_MAX_ANSWER ((size_t)1 << 20)
#define HTTP_MAX_ANSWERS 8

struct http;

/* Listens; nothing is answered before the control's next step. 0 or a negative errno with a line. */
int http_create(struct http **http, struct control *control,
	const struct control_http_config *config, struct error *error);
/* Ends all connections. Accepts NULL. */
void http_destroy(struct http *http);

/* Does what is due; at each step. */
void http_tend(struct http *http);
/* When the next step has something to do even if no descriptor is ready; UINT64_MAX: never. By control's clock. */
uint64_t http_wake_us(const struct http *http);

/* Of the page, made from page.html by the build: its bytes, and what browsers may do for it. */
extern const unsigned char http_page[];
extern const size_t http_page_size;
extern const char http_page_policy[];
