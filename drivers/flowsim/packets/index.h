/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The streams of a source, found by the fields that a class of rules looks at: which of them does a rule
 * match? Made when the class gets its first rule, in a walk over all streams; then a rule costs a look
 * into a table and one at each stream that it may match. Under the port's lock.
 */

#include "drivers/flowsim/match/table.h"

struct sim_index;
struct sim_source;

/* NULL without memory: sim_index_each() then looks at all streams. */
struct sim_index *sim_index_create(const struct sim_source *source, const struct sim_class *sort);
void sim_index_destroy(struct sim_index *index); /* accepts NULL */

/* Begins to fetch where the first that may match is found; then which it is (UINT32_MAX: none), and
 * begins to fetch where the next is. */
void sim_index_prefetch(
	const struct sim_index *index, const struct sim_class *sort, const uint64_t values[]);
uint32_t sim_index_first(
	const struct sim_index *index, const struct sim_class *sort, const uint64_t values[]);

/* Streams that the rule matches, one after the other: `at` starts at SIM_INDEX_START; false = no more. */
#define SIM_INDEX_START (UINT32_MAX - 1)
bool sim_index_next(const struct sim_index *index, const struct sim_source *source,
	const struct rte_flow *rule, uint32_t *at);
