/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end that creates and destroys rules by calls that wait for the NIC. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "base/monotonic.h"
#include "offload/answer.h"
#include "offload/provider_ops.h"
#include "offload/trial.h"

/* How often a rule that ought to go is asked to. */
#define REMOVE_TRIES 8
/* After so many that did not go, one after the other, the NIC is past asking. */
#define REMOVE_FAILURES 16
/* From so many on, all that are left at the end go by one call, which NICs may have a quick way for. */
#define FLUSH_FROM 16
#define FLUSH_TRIES 8
/* Where that call is not there: so long they are asked to go, one by one. */
#define CLOSE_US 5000000

/* Rules of the trial that did not go; what is more is lost. */
#define LEFT_MAX 64

struct place {
	struct rte_flow *flow;
	bool counts;
};

struct sync {
	struct provider base;
	struct shape_port port;
	struct trial trial;
	struct rte_flow *hands[TRIAL_HANDS];
	struct rte_flow *left[LEFT_MAX];
	unsigned n_left;
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

/* What the trial could not take away again, up to so many failures; true: something went. */
static bool let_go_left(struct sync *sync, unsigned failures)
{
	struct provider_why why;
	unsigned n = sync->n_left, failed = 0;

	for (unsigned i = 0; i < n && failed < failures; i++) {
		struct rte_flow *flow = sync->left[--sync->n_left];

		if (destroy(sync, flow, &why) == 0)
			continue;
		/* behind the others */
		memmove(&sync->left[1], &sync->left[0], sync->n_left * sizeof(sync->left[0]));
		sync->left[0] = flow;
		sync->n_left++;
		failed++;
	}
	return sync->n_left < n;
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
	if (place->flow != NULL)
		return 0;
	/* the trial was such a rule */
	int ret = answer_insert(why->error, true);

	if (ret != -ENOSPC || !let_go_left(sync, 1))
		return ret;
	place->flow = create(sync, kind, shape, rule, why);
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

static uint32_t n_rules(const struct sync *sync)
{
	uint32_t n = sync->n_left;

	for (uint32_t i = 0; i < sync->n_places; i++)
		n += sync->places[i].flow != NULL;
	return n;
}

/* All rules that are left, as long as the NIC gives any back, and for so long. */
static void remove_all(struct sync *sync, uint64_t most_us)
{
	uint64_t begin_us = monotonic_us();
	struct provider_why why;
	unsigned failures = 0;

	let_go_left(sync, LEFT_MAX);
	for (uint32_t i = 0; i < sync->n_places && failures < REMOVE_FAILURES; i++) {
		int ret = -EIO;

		if (sync->places[i].flow == NULL)
			continue;
		if (monotonic_us() - begin_us >= most_us)
			return;
		for (unsigned n = 0; n < REMOVE_TRIES && ret != 0; n++)
			ret = remove_rule(&sync->base, i, &why);
		failures = ret != 0 ? failures + 1 : 0;
	}
}

static void reset(struct provider *provider)
{
	struct sync *sync = sync_of(provider);

	if (answer_keeps_rules(sync->port.id))
		remove_all(sync, UINT64_MAX);
	sync->n_left = 0;
	memset(sync->places, 0, sync->n_places * sizeof(sync->places[0]));
}

/*
 * All rules by one call. When it fails their handles are no longer valid all the same (rte_flow.h), and all may be
 * there. False: there is no such call.
 */
static bool flush(const struct sync *sync, uint32_t *left)
{
	struct rte_flow_error said = {0};
	int ret = -EIO;

	for (unsigned n = 0; n < FLUSH_TRIES && ret != 0; n++) {
		ret = rte_flow_flush(sync->port.id, &said);
		if (ret == -ENOSYS || ret == -ENOTSUP || ret == -EOPNOTSUPP)
			return false;
	}
	if (ret == 0)
		*left = 0;
	return true;
}

static uint32_t close_it(struct provider *provider)
{
	struct sync *sync = sync_of(provider);
	uint32_t left = n_rules(sync);

	if (left < FLUSH_FROM || !flush(sync, &left)) {
		remove_all(sync, CLOSE_US);
		left = n_rules(sync);
	}
	free(sync);
	return left;
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
	if (ret != 0 && sync->n_left < LEFT_MAX)
		sync->left[sync->n_left++] = sync->hands[hand];
}

static int trial_counts(void *context, unsigned hand, struct provider_why *why)
{
	struct sync *sync = context;
	struct provider_count count;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < REMOVE_TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = answer_count(sync->port.id, sync->hands[hand], &count, why);
	return ret;
}

static void try_again(struct provider *provider, unsigned number)
{
	struct sync *sync = sync_of(provider);
	const struct trial_calls calls = {
		trial_make, trial_unmake, trial_counts, sync, provider->stop};

	let_go_left(sync, LEFT_MAX);
	trial_again(&sync->trial, number, &calls);
	trial_tell(&sync->trial, &provider->abilities);
}

static const struct provider_ops ops = {.insert = insert,
	.remove = remove_rule,
	.query = query,
	.poll = poll,
	.next_shape = next_shape,
	.try_again = try_again,
	.reset = reset,
	.close = close_it};

int provider_open_sync(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told)
{
	struct sync *sync = calloc(1, sizeof(*sync) + config->n_places * sizeof(sync->places[0]));
	const struct trial_calls calls = {
		trial_make, trial_unmake, trial_counts, sync, config->stop};

	if (sync == NULL)
		return -ENOMEM;
	sync->base.ops = &ops;
	sync->base.stop = config->stop;
	sync->n_places = config->n_places;
	shape_port_read(&sync->port, config);
	if (!trial_run(&sync->trial, &sync->port, config->zone_vlan, config->trials, &calls)) {
		trial_tell(&sync->trial, told);
		let_go_left(sync, LEFT_MAX);
		free(sync);
		return -EOPNOTSUPP;
	}
	sync->base.abilities = *told;
	trial_tell(&sync->trial, &sync->base.abilities);
	sync->base.abilities.back_end = "rte_flow";
	*provider = &sync->base;
	return 0;
}
