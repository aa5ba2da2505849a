/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A request: one line of JSON, {"ask":"flow list","with":{...}}, held against what the verb declares:
 * only known keys, each of its type and within its range. Everything else is -EINVAL with a line that
 * says what would be right.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define REQUEST_MAX_KEYS 16
/* Words of a request, made fit for a line of text. */
#define REQUEST_WORD 64

enum request_type {
	REQUEST_NUMBER, /* a whole one, min..max */
	REQUEST_LARGE,	/* a whole one from 1 on, which may have 63 bits */
	REQUEST_TEXT,
	REQUEST_FLAG,
	REQUEST_PROTOCOL, /* "tcp", "6" or 6; becomes a number */
};

struct request_key {
	const char *name;
	enum request_type type;
	bool needed;
	uint32_t min, max; /* of numbers */
};

/* Of one key, in the order of their declaration. The text lies in the request. */
struct request_value {
	bool given;
	bool flag;
	uint32_t number;
	uint64_t large;
	const char *text;
};

struct request {
	json_t *root;
	json_t *with; /* NULL: nothing */
	const char *ask;
};

/* Reads a line without its newline. request_fini() is called in every case. */
int request_parse(struct request *request, const char *line, size_t length, struct error *error);
void request_fini(struct request *request);

/* Fills a value for each of the `n` keys. */
int request_values(const struct request *request, const struct request_key *keys, unsigned n,
	struct request_value *values, struct error *error);

/* "flow list: port 70000: what": how every complaint about a value reads. `text` NULL: no value. */
int request_bad(
	struct error *error, const char *ask, const char *key, const char *text, const char *what);

/* The same, with the nearest of the `n` words that are known. */
int request_unknown(struct error *error, const char *ask, const char *key, const char *text,
	const char *what, const char *const *known, unsigned n);
