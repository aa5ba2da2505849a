/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * An answer: the lines that a request gets, made as the client takes them.
 *
 * A verb makes its answer in turns. begin() looks at the request; turn() makes some lines and says how
 * to go on; end() gives back what begin() took, however the answer ends, also when the client has gone.
 * Few lines are best made in begin(), by answer_add(): they are kept in memory until the client takes
 * them. Many are written by turn(), straight into the output, while there is room.
 *
 * A verb lives in the file of its noun; verbs.c lists them all. Everything belongs to control's thread.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "control/output.h"
#include "control/request.h"
#include "plane/plane.h"

/* How an answer is written: a line, with numbers as they were told. */
#define ANSWER_JSON (JSON_COMPACT | JSON_REAL_PRECISION(15))

struct answer;

/* A list of rules that is being sent in pieces, by one connection. */
struct control_staged {
	char *text;
	size_t length, room;
};

enum answer_turn {
	ANSWER_GO,   /* more to do, as soon as there is room */
	ANSWER_WAIT, /* nothing to do before answer->wake_us */
	ANSWER_END,
};

struct answer_verb {
	const char *ask; /* noun and verb: "flow list" */
	const struct request_key *keys;
	unsigned n_keys;
	/* 0 or a negative errno with a line: -EINVAL is the asker's fault. end() follows in any case. */
	int (*begin)(
		struct answer *answer, const struct request_value *values, struct error *error);
	/* enum answer_turn, or a negative errno with a line. NULL: begin() has made all lines. */
	int (*turn)(struct answer *answer, struct error *error);
	/* Adds to the line that ends the answer, if it ends well. May be NULL. */
	void (*finish)(struct answer *answer, json_t *end);
	/* May be NULL. */
	void (*end)(struct answer *answer);
};

/* Of an answer that goes on as long as the client wants events. */
struct follower {
	bool on;
	bool flows; /* wants those of flows, too */
	struct drop_wanted
		drops; /* it wants dropped packets instead, of these reasons; without any: events */
	bool behind;   /* reads too slowly: nothing more before half of the buffer is free */
	uint64_t lost; /* events since the last one that it got */
};

struct answer {
	struct control *control;
	struct plane *plane;
	const struct answer_verb *verb; /* NULL: no such request */
	struct output *output;
	struct control_staged *staged; /* of the connection */
	void *state;		       /* the verb's */
	uint64_t clock_us;  /* of the run, when its counters were taken: show_snapshot(); else 0 */
	uint64_t wake_us;   /* by control's clock; UINT64_MAX: not by time */
	uint64_t silent_us; /* since when a thread of the packet path does not answer; 0: it does */
	bool again; /* for that reason it has not begun yet: answer_begin() is to be called again */
	struct follower follower;
	bool endless; /* goes on until the client goes: the engine's end is no error */
	bool ended;   /* the last line is made */
	bool misused; /* which says that the request is wrong */
	/* lines that wait for room in the output */
	char *text;
	size_t text_length, text_sent;
};

/* So long an answer waits for a thread of the packet path, asking again and again. Others are answered meanwhile. */
#define ANSWER_PATIENCE_US UINT64_C(5000000)

/*
 * Looks at the request and begins; errors become the answer. -ENOMEM: not even that. With `again` set it is to be
 * called once more at wake_us, with the same line.
 */
int answer_begin(struct answer *answer, const char *line, size_t length);
/* The answer is this error. -ENOMEM: not even that. */
int answer_refuse(struct answer *answer, const struct error *error);
/* One turn. Returns enum answer_turn, ANSWER_END when all lines are in the output; or -ENOMEM. */
int answer_turn(struct answer *answer);
/* Ends it early, with a line: NULL for no error. -ENOMEM: without one. */
int answer_stop(struct answer *answer, const char *error);
/* Gives back what it holds. */
void answer_fini(struct answer *answer);

/* For verbs: a line that waits for room if need be. `object` becomes the answer's. 0 or -ENOMEM. */
int answer_add(struct answer *answer, json_t *object);
int answer_add_text(struct answer *answer, const char *text, size_t length);

/* Any bytes as a JSON string, as export_json_string() has it. NULL without memory. */
json_t *answer_string(const char *bytes);
/* Counters go to 2^64, JSON of jansson to 2^63: there they stay. */
static inline void answer_number(json_t *object, const char *name, uint64_t number)
{
	json_object_set_new(
		object, name, json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number));
}
/* Real numbers with one decimal: "12.3". */
json_t *answer_tenths(double number);

/* The line that refuses a client: as if it had asked. Returns its length. */
size_t answer_refusal(char *line, size_t size, const char *error);
