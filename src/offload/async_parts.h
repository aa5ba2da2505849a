/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of the back end with templates and flow queues: rte_flow_async.c has the places, async_calls.c
 * DPDK's calls, async_open.c the trial. Nobody else includes this.
 */

#include <stdbool.h>
#include <stdint.h>

#include "offload/provider_ops.h"
#include "offload/trial.h"

enum place_state {
	PLACE_EMPTY,
	PLACE_INSERTING,
	PLACE_RULE,
	PLACE_REMOVING,
};

struct place {
	struct rte_flow *flow;
	uint32_t serial; /* of the operation whose completion is awaited; 0: none */
	uint8_t state;	 /* enum place_state */
	bool counts;
};

/* The number of the place of operations that are nobody's. */
#define ASYNC_NOBODY UINT32_MAX

/* Templates and table of rules of one shape; made when they are needed. */
struct async_set {
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
};

struct async_hand {
	struct async_set set;
	struct rte_flow *flow;
};

struct async {
	struct provider base;
	struct shape_port port;
	struct trial trial;
	struct async_set sets[PROVIDER_N_KINDS][2][SHAPE_N_FATES]; /* by kind, tagged, fate */
	struct async_hand hands[TRIAL_HANDS];
	unsigned n_silent; /* completions that never came, of the trial's */
	uint32_t n_places;
	uint32_t under_way;
	uint32_t serial; /* the last one given */
	uint32_t pushed; /* the last one that the NIC was told of */
	uint32_t postponed;
	bool wants_full; /* who asked for full offload is told that there is none */
	bool stuck;	 /* the last push failed */
	bool deaf;	 /* the last pull failed */
	struct provider_why deaf_why;
	struct rte_flow **left; /* handles to be given back when the queue has room */
	uint32_t n_left, queue_size;
	struct place places[];
};

struct async_result {
	uint32_t place, serial;
	bool ok;
};

extern const struct provider_ops async_ops;

/* The size of the flow queue that provider_prepare_async() asks for; 0: the port has none. */
uint32_t async_queue_size(uint16_t port_id);

/* Makes what of the set is not there yet. 0 or -EIO with `why`. */
int async_set_make(struct async *async, struct async_set *set, enum provider_kind kind,
	const struct shape *shape, struct provider_why *why);
void async_set_free(const struct async *async, struct async_set *set);

/* Postponed. NULL: refused, with errno in `why`. */
struct rte_flow *async_create(const struct async *async, const struct async_set *set,
	enum provider_kind kind, const struct shape *shape, const struct offload_rule *rule,
	uint32_t place, uint32_t serial, struct provider_why *why);
/* Postponed. 0 or an answer, or -ENOENT: there is no such rule, and no completion will come. */
int async_destroy(const struct async *async, struct rte_flow *flow, uint32_t place, uint32_t serial,
	struct provider_why *why);
int async_push(const struct async *async, struct provider_why *why);
/* How many; negative: the driver says that it cannot tell. */
int async_pull(const struct async *async, struct async_result *results, unsigned max,
	struct provider_why *why);

/* async_open.c */
void async_try_again(struct provider *provider, unsigned number);
/* rte_flow_async.c: the end of an operation; false: nobody awaits it. */
bool async_finish(
	struct async *async, const struct async_result *result, struct provider_done *done);
/* The same: a handle that nobody has, to be given back when the queue has room. */
void async_leave(struct async *async, struct rte_flow *flow);

/* Templates, tables and memory. */
void async_free(struct async *async);
