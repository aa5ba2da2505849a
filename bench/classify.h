/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The files of the classifier bench share this: sets of rules, headers that they match, and the
 * contenders. One thread at a time, but that rules change while another looks up.
 */

#include <rte_rcu_qsbr.h>

#include "bench/bench.h"
#include "rule/classifier.h"

/* Rules for IPv4's five fields, the first with priority 0 and id 0, and so on. */
struct classify_set {
	struct classifier_rule *rules;
	uint32_t n;
	bool is_real; /* read from a file */
};

/* The twelve sets, after which come those with as many masks as the name says. */
#define CLASSIFY_REAL_SETS 12
extern const char *const classify_sets[]; /* ends with NULL */

/*
 * Makes a set of about so many rules, or fewer where a file has no more of them. Returns 0, -ENOENT for a
 * name that there is not, or -ENOMEM. Freed by classify_set_free().
 */
int classify_set_make(struct classify_set *set, const char *name, uint32_t n);
/* Rules with so many masks, made by chance. */
int classify_set_masks(struct classify_set *set, unsigned n_masks, uint32_t n);
void classify_set_free(struct classify_set *set);

/* Random numbers, the same in each run. */
uint64_t classify_random(uint64_t *state);
/* Headers that random rules of the set match, if nothing before them does. */
void classify_headers(const struct classify_set *set, uint64_t *state,
	struct classifier_header *headers, unsigned n);

/* A contender. */
struct classify_side {
	const char *name;
	/* 0, or a negative errno: the set is too much for it */
	int (*create)(void **side, const struct classify_set *set);
	void (*destroy)(void *side);
	/* up to CLASSIFY_PREPARED headers into its own form, outside of the time */
	void (*prepare)(void *side, const struct classifier_header *headers, unsigned n);
	/* ids of the rules that apply to headers from the `from`th prepared on, up to 64 */
	void (*find)(void *side, unsigned from, unsigned n, uint32_t *ids);
};

extern const struct classify_side classify_ours, classify_acl, classify_tuples;

/* Our classifier and the handles of the set's rules, for updates. */
struct classifier *classify_ours_classifier(void *side);
uint32_t *classify_ours_handles(void *side);
/* The seconds that the last build of rte_acl took. */
double classify_acl_build_s(const void *side);
/* The number of tables that tuple space search has. */
unsigned classify_tuples_number(const void *side);

/* Where contenders take memory of DPDK from. */
extern int classify_socket;
extern struct rte_rcu_qsbr *classify_qsbr;
#define CLASSIFY_READER 0

#define CLASSIFY_MAX_HEADERS 16384
#define CLASSIFY_PREPARED 512
