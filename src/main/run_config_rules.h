/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The section `rules` of a configuration: which rules (rule/rules.h) are in force from the start, and how many there may
 * be. Its keys but `list`, `sets` and `captures` are options of the command line too: --rules, --rules-max
 * and so on. `where` and errors are as in
 * base/options.h; all of it belongs to the thread that reads the command line.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "plane/plane.h"
#include "rule/rules.h"

#define RUN_RULES_MAX 16384
/* In a second, of all workers. */
#define RUN_RULES_REJECT_RATE 10000
#define RUN_RULES_LOG_RATE 100
/* Lines in a configuration; more stand in a file of their own. */
#define RUN_RULES_LIST_MAX 256

struct run_rules {
	uint32_t max;	      /* 0: there can be none */
	uint32_t reject_rate; /* answers to rejected packets in a second; 0: none */
	uint32_t log_rate;    /* log lines in a second; 0: none */
	char *file;	      /* of commands; NULL: none */
	bool replies_follow;  /* of rules that do not say whether they do */
	bool no_pickup;	      /* a TCP flow that does not begin with a SYN is invalid, not new */
	char *list[RUN_RULES_LIST_MAX];
	unsigned n_list;
	char *sets[RUN_RULES_LIST_MAX]; /* lines of rules_set_fill() */
	unsigned n_sets;
	char *captures[PLANE_MAX_CAPTURES]; /* paths of capture files */
	unsigned n_captures;
};

/* The keys with one value, in the order of enum run_option; of the lists `list`, `sets` and `captures` the items. */
enum run_rules_key {
	RUN_RULES_FILE_KEY,
	RUN_RULES_MAX_KEY,
	RUN_RULES_REJECT_RATE_KEY,
	RUN_RULES_LOG_RATE_KEY,
	RUN_RULES_REPLIES_KEY,
	RUN_RULES_PICKUP_KEY,
	RUN_RULES_LIST,
	RUN_RULES_SETS,
	RUN_RULES_CAPTURES,
	RUN_RULES_N_KEYS,
};

/* As a file calls it: "max". */
const char *run_rules_key(enum run_rules_key key);

void run_rules_init(struct run_rules *rules);
void run_rules_fini(struct run_rules *rules);

/* Reads a value; of the file, "none" is no file. */
int run_rules_set(struct run_rules *rules, enum run_rules_key key, const char *where,
	const char *value, struct error *error);

/* The values of two keys alone, for whoever has no configuration: "match" or "follow", and yes or no. */
int run_rules_replies(const char *where, const char *value, bool *follow, struct error *error);
int run_rules_pickup(const char *where, const char *value, bool *no_pickup, struct error *error);

/* One more line, which is copied. */
int run_rules_add(
	struct run_rules *rules, const char *where, const char *line, struct error *error);

/* One more line of a set of addresses, which is copied. */
int run_rules_add_set(
	struct run_rules *rules, const char *where, const char *line, struct error *error);

/* One more capture file, whose path is copied. */
int run_rules_add_capture(
	struct run_rules *rules, const char *where, const char *path, struct error *error);

/*
 * How many sets there are, at most, and prefixes in them. Reads their files. 0 or a negative errno with a line.
 */
int run_rules_count_sets(
	const struct run_rules *from, uint32_t *n_sets, uint32_t *n_prefixes, struct error *error);

/* Is there room for the lines? */
int run_rules_complete(const struct run_rules *rules, const char *where, struct error *error);

/*
 * Fills the sets, puts the lines in force, and those of the file behind them. `tell` (or NULL) is told of rules that can match
 * nothing. 0 or a negative errno with a line.
 */
int run_rules_load(const struct run_rules *from, struct rules *rules, rules_tell_fn tell,
	void *context, struct error *error);

/* The same lines, without the sets, as a list that may replace that in force. 0 or a negative errno with a line. */
int run_rules_read(const struct run_rules *from, struct rules *rules, struct rules_list *list,
	rules_tell_fn tell, void *context, struct error *error);

/*
 * Would run_rules_load() succeed in an engine with these ports? Fills a list as large as the configuration's, which
 * goes again. 0 or a negative errno with a line.
 */
int run_rules_check(const struct run_rules *from, const struct topology *topology, bool zone_vlan,
	struct error *error);
