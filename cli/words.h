/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The words of the client: its nouns, verbs and options, and the values that go by a word. Help,
 * dispatch, suggestions and (by way of the help) the completion of shells all come from these tables.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct cli_view;

enum cli_option_id {
	CLI_ADDRESS,
	CLI_PORT,
	CLI_PROTO,
	CLI_STATE,
	CLI_WIRE,
	CLI_WORKER,
	CLI_ZONE,
	CLI_OFFLOAD,
	CLI_BLOCKED,
	CLI_TOP,
	CLI_BY,
	CLI_OVER,
	CLI_LIMIT,
	CLI_CURSOR,
	CLI_NO_FLOWS,
	CLI_FOLLOW,
	CLI_FOR,
	CLI_REASON,
	CLI_DROP_REASON,
	CLI_NUMBER,
	CLI_AT,
	CLI_CONFIRM,
	CLI_NO_WAIT,
	CLI_SAVE,
	CLI_OF_RULE,
	CLI_RATE,
	CLI_INTERVAL,
	CLI_ONCE,
	CLI_JSON,
	CLI_SOCKET,
	CLI_HELP,
	CLI_N_OPTIONS,
};

static_assert(CLI_N_OPTIONS <= 32, "a bit for each");

#define CLI_BIT(id) (UINT32_C(1) << (id))
/* Every verb that has a help has these. */
#define CLI_COMMON_OPTIONS (CLI_BIT(CLI_JSON) | CLI_BIT(CLI_SOCKET) | CLI_BIT(CLI_HELP))

enum cli_value {
	CLI_VALUE_NONE,
	CLI_VALUE_NO,	  /* none; said to the engine it is false */
	CLI_VALUE_YES,	  /* none; said to the engine it is true */
	CLI_VALUE_NUMBER, /* min to max */
	CLI_VALUE_LARGE,  /* from 1, with up to 18 digits */
	CLI_VALUE_SECONDS, /* with a fraction; min and max are milliseconds, and so is what is sent */
	CLI_VALUE_ADDRESS, /* or a prefix */
	CLI_VALUE_PROTO,
	CLI_VALUE_WORD, /* one of `words` */
	CLI_VALUE_TEXT,
};

struct cli_option {
	const char *name;  /* without its dashes */
	const char *value; /* what the help calls its value; NULL: takes none */
	const char *what;  /* at most 75 characters a line */
	const char *key;   /* of the request's `with`; NULL: not for the engine */
	enum cli_value kind;
	uint32_t min, max;
	const char *const *words; /* ended by NULL */
};

extern const struct cli_option cli_options[CLI_N_OPTIONS];

/* Values that go by a word. The help lists those that a verb's options use. */
struct cli_value_words {
	const char *value; /* as the options call it */
	const char *const *words;
	const char *more; /* what else it may be, or NULL */
};

extern const struct cli_value_words cli_value_words[];
extern const unsigned cli_n_value_words;

/* The words that follow a verb. */
enum cli_words {
	CLI_NO_WORDS,
	CLI_FLOW, /* ADDR:PORT ADDR:PORT PROTO */
	CLI_BLOCK, /* the same, or an address or prefix; or --number in place of them, where there is such an option */
	CLI_BLOCK_MAYBE, /* the same, or nothing */
	CLI_WAY,  /* as CLI_FLOW, from the first end to the second; or a packet: PORT ITEMS / end */
	CLI_RULE, /* a command of the rule language, in one word or many */
	CLI_RULE_NUMBER, /* PORT NUMBER */
	CLI_ROUTE,	 /* PREFIX, lookup ADDR, or nothing */
	CLI_FILE,	 /* which is sent before the request */
};

struct cli_verb {
	/* together what the engine is asked: "flow list"; without a name, a command that asks several things */
	const char *noun, *name;
	const char *what; /* one line for the help, or NULL */
	const char *more; /* a paragraph for the verb's own help, or NULL */
	enum cli_words words;
	bool follow;	  /* goes on until interrupted; others do with --follow */
	uint32_t options; /* bit by enum cli_option_id */
	const struct cli_view *view;
};

extern const struct cli_verb cli_verbs[];
extern const unsigned cli_n_verbs;

/* `millrace top`, and the filter that is typed in it, which has no help of its own: it takes options of flow list. */
extern const struct cli_verb cli_top_verb, cli_filter_verb;

static inline uint32_t cli_verb_options(const struct cli_verb *verb)
{
	return verb->options | (verb->what ? CLI_COMMON_OPTIONS : 0);
}

/* "flow list", "top". */
#define CLI_TITLE_MAX 32
const char *cli_verb_title(char title[CLI_TITLE_MAX], const struct cli_verb *verb);

/* IP protocols by name. */
struct cli_proto {
	const char *name; /* NULL: only a number */
	uint8_t number;
	bool ports; /* its flows have port numbers */
	bool asked; /* the engine takes this name; the others are sent as a number */
};

/* Reads a name, or a number in digits. False when there is no such protocol. */
bool cli_proto_parse(struct cli_proto *proto, const char *text);
/* What the engine is to be asked for: a name, or a number in digits. */
#define CLI_PROTO_ASK_MAX 8
const char *cli_proto_ask(char buffer[CLI_PROTO_ASK_MAX], const struct cli_proto *proto);
/* The name that people know, or NULL. */
const char *cli_proto_name(uint64_t number);

/* Of a list of words that ends with NULL: how many, and is this one of them? */
unsigned cli_words_count(const char *const *words);
bool cli_words_have(const char *const *words, const char *word);

/* The words of a value that the options call so ("PROTO"). */
const char *const *cli_words_of(const char *value);
