/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the blocking back end's files share: rte_flow_sync.c, and sync_full.c for full offload. Nobody else includes this. */

#include "offload/provider_ops.h"
#include "offload/trial.h"

/* Rules of the trial that did not go; what is more is lost. */
#define SYNC_LEFT 64
/* How often a rule or handle that ought to go is asked to. */
#define SYNC_TRIES 8

/* A rule, and its counter where that outlives it. */
struct sync_rule {
	struct rte_flow *flow;
	struct rte_flow_action_handle *handle; /* NULL: it has none of its own */
	bool counts;
	bool full;
};

struct sync_place {
	struct sync_rule rule;
	bool has_last;
	struct provider_count last; /* of the rule that was removed */
};

struct sync {
	struct provider base;
	struct shape_port port;
	struct trial trial;
	struct sync_rule hands[TRIAL_HANDS];
	struct sync_rule left[SYNC_LEFT];
	unsigned n_left;
	unsigned
		rewrites; /* a bit for each kind of which a rule was taken that rewrites something */
	uint32_t n_places;
	struct sync_place places[];
};

/* Makes a rule of full offload. 0, or the driver's errno in `why`, and there is none. */
int sync_full_create(const struct sync *sync, struct sync_rule *made, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why);
/* What its counter has now: 0 or an answer. */
int sync_full_count(const struct sync *sync, const struct sync_rule *rule,
	struct provider_count *count, struct provider_why *why);
/* Of a rule that is gone: what it had at last, and its handle goes. */
void sync_full_end(const struct sync *sync, struct sync_place *place);
/* The handle of a rule that is gone, whatever it counted. */
void sync_full_let_go(const struct sync *sync, struct sync_rule *rule);
