/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end that creates and destroys rules by calls that wait for the NIC. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "offload/answer.h"
#include "offload/provider_ops.h"
#include "offload/trial.h"

/* How often a rule that ought to go is asked to. */
#define REMOVE_TRIES 8
/* After so many that did not go, one after the other, the NIC is past asking. */
#define REMOVE_FAILURES 16

struct place {
	struct rte_flow *flow;
	bool counts;
};

struct sync {
	struct provider base;
	struct shape_port port;
	struct trial trial;
	struct rte_flow *hands[TRIAL_HANDS];
	uint32_t n_places;
	struct place places[];
};

static const struct rte_flow_attr ingress = {.ingress = 1};

static struct sync *sync_of(struct provider *provider)
{
	return (struct sync *)provider;
}

static struct rte_flow *create(const struct sync *sync, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct shape_items items;
	struct shape_actions actions;
	struct rte_flow *flow;

	shape_items(&items, shape, kind, rule);
	shape_actions(&actions, shape, &sync->port, rule);
	rte_errno = 0;
	flow = rte_flow_create(sync->port.id, &ingress, items.list, actions.list, &said);
	if (flow == NULL)
		answer_why(why, rte_errno, &said);
	return flow;
}

static int destroy(const struct sync *sync, struct rte_flow *flow, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_destroy(sync->port.id, flow, &said);

	if (ret == 0)
		return 0;
	answer_why(why, -ret, &said);
	return answer_remove(-ret);
}

static int insert(struct provider *provider, uint32_t number, const struct offload_rule *rule,
	struct provider_why *why)
{
	struct sync *sync = sync_of(provider);
	struct place *place = &sync->places[number];
	enum provider_kind kind = provider_kind(&rule->key);
	const struct shape *shape;

	assert(number < sync->n_places);
	if (kind == PROVIDER_N_KINDS) {
		answer_words(why, ENOTSUP, "no rules for this protocol");
		return -EOPNOTSUPP;
	}
	if (place->flow != NULL) {
		answer_words(why, EEXIST, "the place has a rule still");
		return -EAGAIN;
	}
	shape = trial_shape(&sync->trial, kind, rule->key.zone, why);
	if (shape == NULL)
		return -EOPNOTSUPP;
	place->flow = create(sync, kind, shape, rule, why);
	place->counts = shape->count;
	/* the trial was such a rule */
	return place->flow != NULL ? 0 : answer_insert(why->error, true);
}

static int remove_rule(struct provider *provider, uint32_t number, struct provider_why *why)
{
	struct sync *sync = sync_of(provider);
	struct place *place = &sync->places[number];
	int ret;

	assert(number < sync->n_places);
	if (place->flow == NULL)
		return 0;
	ret = destroy(sync, place->flow, why);
	if (ret == 0)
		place->flow = NULL;
	return ret;
}

static int query(struct provider *provider, uint32_t number, struct provider_count *count,
	struct provider_why *why)
{
	struct sync *sync = sync_of(provider);
	const struct place *place = &sync->places[number];

	assert(number < sync->n_places);
	if (place->flow == NULL || !place->counts || !provider->abilities.counts) {
		*why = (struct provider_why){0};
		return -EOPNOTSUPP;
	}
	return answer_count(sync->port.id, place->flow, count, why);
}

static unsigned poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	(void)provider;
	(void)done;
	(void)max;
	return 0;
}

static bool next_shape(struct provider *provider, enum provider_kind kind)
{
	return trial_next(&sync_of(provider)->trial, kind);
}

/* All rules that are left, as long as the NIC gives any back. */
static void remove_all(struct sync *sync)
{
	struct provider_why why;
	unsigned failures = 0;

	for (uint32_t i = 0; i < sync->n_places && failures < REMOVE_FAILURES; i++) {
		int ret = -EIO;

		if (sync->places[i].flow == NULL)
			continue;
		for (unsigned n = 0; n < REMOVE_TRIES && ret != 0; n++)
			ret = remove_rule(&sync->base, i, &why);
		failures = ret != 0 ? failures + 1 : 0;
	}
}

static void reset(struct provider *provider)
{
	struct sync *sync = sync_of(provider);

	if (answer_keeps_rules(sync->port.id))
		remove_all(sync);
	memset(sync->places, 0, sync->n_places * sizeof(sync->places[0]));
}

static void close_it(struct provider *provider)
{
	struct sync *sync = sync_of(provider);

	remove_all(sync);
	free(sync);
}

static int trial_make(void *context, unsigned hand, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	struct sync *sync = context;

	sync->hands[hand] = create(sync, kind, shape, rule, why);
	return sync->hands[hand] != NULL ? 0 : answer_insert(why->error, false);
}

static void trial_unmake(void *context, unsigned hand)
{
	struct sync *sync = context;
	struct provider_why why;
	int ret = -EIO;

	for (unsigned i = 0; i < REMOVE_TRIES && ret != 0; i++)
		ret = destroy(sync, sync->hands[hand], &why);
}

static bool trial_counts(void *context, unsigned hand)
{
	struct sync *sync = context;
	struct provider_count count;
	struct provider_why why;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < REMOVE_TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = answer_count(sync->port.id, sync->hands[hand], &count, &why);
	return ret == 0;
}

static const struct provider_ops ops = {.insert = insert,
	.remove = remove_rule,
	.query = query,
	.poll = poll,
	.next_shape = next_shape,
	.reset = reset,
	.close = close_it};

int provider_open_sync(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told)
{
	struct sync *sync = calloc(1, sizeof(*sync) + config->n_places * sizeof(sync->places[0]));
	const struct trial_calls calls = {trial_make, trial_unmake, trial_counts, sync};

	if (sync == NULL)
		return -ENOMEM;
	sync->base.ops = &ops;
	sync->n_places = config->n_places;
	shape_port_read(&sync->port, config);
	if (!trial_run(&sync->trial, &sync->port, config->zone_vlan, &calls)) {
		trial_tell(&sync->trial, told);
		free(sync);
		return -EOPNOTSUPP;
	}
	sync->base.abilities = *told;
	trial_tell(&sync->trial, &sync->base.abilities);
	sync->base.abilities.back_end = "rte_flow";
	sync->base.abilities.unable[0] = '\0';
	*provider = &sync->base;
	return 0;
}
