/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The back end that creates and destroys rules by calls that wait for the NIC. Rules of full offload are transfer
 * rules, whose counters are to tell the last packet, too.
 */
/* indirect actions are experimental still */
#define ALLOW_EXPERIMENTAL_API

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_flow.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"
#include "rteflow/back_end.h"
#include "rteflow/trial.h"

/* After so many that did not go, one after the other, the NIC is past asking. */
#define REMOVE_FAILURES 16
/* From so many on, all that are left at the end go by one call, which NICs may have a quick way for. */
#define FLUSH_FROM 16
/* Where that call is not there: so long they are asked to go, one by one. */
#define CLOSE_US 5000000
/* Where it is, and there is no hurry. */
#define FLUSH_US 1000000
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

static const struct rte_flow_attr ingress = {.ingress = 1};
static const struct rte_flow_attr transfer = {.transfer = 1};

static void sync_full_let_go(const struct sync *sync, struct sync_rule *rule)
{
	struct rte_flow_error said = {0};
	int ret = -EIO;

	/* what does not go goes with the port */
	for (unsigned i = 0; i < SYNC_TRIES && ret != 0 && rule->handle != NULL; i++)
		ret = rte_flow_action_handle_destroy(sync->port.id, rule->handle, &said);
	rule->handle = NULL;
}

static struct rte_flow_action_handle *make_counter(
	const struct sync *sync, struct provider_why *why)
{
	static const struct rte_flow_indir_action_conf conf = {.transfer = 1};
	static const struct rte_flow_action_count count;
	const struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &count};
	struct rte_flow_error said = {0};

	rte_errno = 0;
	struct rte_flow_action_handle *handle =
		rte_flow_action_handle_create(sync->port.id, &conf, &action, &said);

	if (handle == NULL)
		answer_why(why, rte_errno, &said);
	return handle;
}

static int sync_full_create(const struct sync *sync, struct sync_rule *made,
	enum provider_kind kind, const struct shape *shape, const struct offload_rule *rule,
	struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct shape_items items;
	struct shape_actions actions;

	*made = (struct sync_rule){.counts = true, .full = true};
	if (shape->indirect)
		made->handle = make_counter(sync, why);
	if (shape->indirect && made->handle == NULL)
		return why->error;
	shape_items(&items, shape, kind, &sync->port, rule);
	shape_full_actions(&actions, shape, &sync->port, rule, made->handle);
	rte_errno = 0;
	made->flow = rte_flow_create(sync->port.id, &transfer, items.list, actions.list, &said);
	if (made->flow != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	sync_full_let_go(sync, made);
	return why->error;
}

static int count_by_handle(const struct sync *sync, const struct rte_flow_action_handle *handle,
	struct provider_count *count, struct provider_why *why)
{
	struct rte_flow_query_count told = {0};
	struct rte_flow_error said = {0};
	int ret = rte_flow_action_handle_query(sync->port.id, handle, &told, &said);

	return answer_told(ret, &told, &said, count, why);
}

static int sync_full_count(const struct sync *sync, const struct sync_rule *rule,
	struct provider_count *count, struct provider_why *why)
{
	return rule->handle != NULL ? count_by_handle(sync, rule->handle, count, why)
				    : answer_count(sync->port.id, rule->flow, count, why);
}

static void sync_full_end(const struct sync *sync, struct sync_place *place)
{
	struct provider_why why;
	int ret = -EIO;

	if (place->rule.handle == NULL)
		return; /* what it told before it went is all there is */
	for (unsigned i = 0; i < SYNC_TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = count_by_handle(sync, place->rule.handle, &place->last, &why);
	place->has_last = ret == 0;
	place->last.final = place->has_last;
	sync_full_let_go(sync, &place->rule);
}

static struct sync *sync_of(struct provider *provider)
{
	return (struct sync *)provider;
}

/* 0, or the driver's errno in `why`, and there is none. */
static int create(const struct sync *sync, struct sync_rule *made, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct shape_items items;
	struct shape_actions actions;

	if (shape->deed != PROVIDER_MARKS)
		return sync_full_create(sync, made, kind, shape, rule, why);
	shape_items(&items, shape, kind, &sync->port, rule);
	shape_actions(&actions, shape, &sync->port, rule);
	*made = (struct sync_rule){.counts = shape->count};
	rte_errno = 0;
	made->flow = rte_flow_create(sync->port.id, &ingress, items.list, actions.list, &said);
	if (made->flow != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	return why->error;
}

static int sync_destroy(const struct sync *sync, struct rte_flow *flow, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_destroy(sync->port.id, flow, &said);

	if (ret == 0)
		return 0;
	answer_why(why, -ret, &said);
	return answer_remove(-ret);
}

/* What the trial could not take away again, up to so many failures; true: something went. */
static bool sync_let_go_left(struct sync *sync, unsigned failures)
{
	struct provider_why why;
	unsigned n = sync->n_left, failed = 0;

	for (unsigned i = 0; i < n && failed < failures; i++) {
		struct sync_rule rule = sync->left[--sync->n_left];

		if (sync_destroy(sync, rule.flow, &why) == 0) {
			sync_full_let_go(sync, &rule);
			continue;
		}
		/* behind the others */
		memmove(&sync->left[1], &sync->left[0], sync->n_left * sizeof(sync->left[0]));
		sync->left[0] = rule;
		sync->n_left++;
		failed++;
	}
	return sync->n_left < n;
}

static const struct shape *shape_for(
	struct sync *sync, const struct offload_rule *rule, struct provider_why *why)
{
	return rule->deed == PROVIDER_MARKS
		       ? trial_shape(&sync->trial, provider_kind(&rule->key), rule->key.zone, why)
		       : trial_full_shape(&sync->trial, rule, why);
}

/* One of a shape that was granted: the trial was such a rule, but for what is rewritten. 0 or an answer. */
static int create_granted(struct sync *sync, struct sync_rule *made, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	const unsigned bit = 1u << kind;

	if (create(sync, made, kind, shape, rule, why) != 0)
		return answer_insert(
			why->error, rule->rewrite == NULL || (sync->rewrites & bit) != 0);
	sync->rewrites |= rule->rewrite != NULL ? bit : 0;
	return 0;
}

static int sync_insert(struct provider *provider, uint32_t number, const struct offload_rule *rule,
	struct provider_why *why)
{
	struct sync *sync = sync_of(provider);
	struct sync_place *place = &sync->places[number];
	enum provider_kind kind = provider_kind(&rule->key);
	const struct shape *shape;

	assert(number < sync->n_places);
	if (kind == PROVIDER_N_KINDS) {
		answer_words(why, ENOTSUP, "no rules for this protocol");
		return -EOPNOTSUPP;
	}
	if (place->rule.flow != NULL) {
		answer_words(why, EEXIST, "the place has a rule still");
		return -EAGAIN;
	}
	shape = shape_for(sync, rule, why);
	if (shape == NULL)
		return -EOPNOTSUPP;
	place->has_last = false;
	int ret = create_granted(sync, &place->rule, kind, shape, rule, why);

	if (ret != -ENOSPC || !sync_let_go_left(sync, 1))
		return ret;
	return create_granted(sync, &place->rule, kind, shape, rule, why);
}

static int sync_remove_rule(struct provider *provider, uint32_t number, struct provider_why *why)
{
	struct sync *sync = sync_of(provider);
	struct sync_place *place = &sync->places[number];
	struct sync_rule *rule = &place->rule;
	struct provider_why unread;
	int ret;

	assert(number < sync->n_places);
	if (rule->flow == NULL)
		return 0;
	/* nobody can be asked afterwards: then this is the last that is known */
	if (rule->full && rule->handle == NULL)
		place->has_last = sync_full_count(sync, rule, &place->last, &unread) == 0;
	ret = sync_destroy(sync, rule->flow, why);
	if (ret != 0)
		return ret;
	sync_full_end(sync, place);
	*rule = (struct sync_rule){0};
	return 0;
}

static int sync_query(struct provider *provider, uint32_t number, struct provider_count *count,
	struct provider_why *why)
{
	struct sync *sync = sync_of(provider);
	const struct sync_rule *rule = &sync->places[number].rule;

	assert(number < sync->n_places);
	if (rule->flow != NULL && rule->full)
		return sync_full_count(sync, rule, count, why);
	if (rule->flow == NULL || !rule->counts || !provider->abilities.counts) {
		*why = (struct provider_why){0};
		return -EOPNOTSUPP;
	}
	return answer_count(sync->port.id, rule->flow, count, why);
}

static bool last_count(struct provider *provider, uint32_t number, struct provider_count *count)
{
	struct sync_place *place = &sync_of(provider)->places[number];
	bool has = place->has_last;

	place->has_last = false;
	*count = place->last;
	return has;
}

static unsigned sync_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	(void)provider;
	(void)done;
	(void)max;
	return 0;
}

static bool sync_next_shape(struct provider *provider, enum provider_kind kind)
{
	return trial_next(&sync_of(provider)->trial, kind);
}

static uint32_t n_rules(const struct sync *sync)
{
	uint32_t n = sync->n_left;

	for (uint32_t i = 0; i < sync->n_places; i++)
		n += sync->places[i].rule.flow != NULL;
	return n;
}

/* All rules that are left, as long as the NIC gives any back, and for so long. */
static void sync_remove_all(struct sync *sync, uint64_t most_us)
{
	uint64_t begin_us = monotonic_us();
	struct provider_why why;
	unsigned failures = 0;

	sync_let_go_left(sync, SYNC_LEFT);
	for (uint32_t i = 0; i < sync->n_places && failures < REMOVE_FAILURES; i++) {
		int ret = -EIO;

		if (sync->places[i].rule.flow == NULL)
			continue;
		if (monotonic_us() - begin_us >= most_us)
			return;
		for (unsigned n = 0; n < SYNC_TRIES && ret != 0; n++)
			ret = sync_remove_rule(&sync->base, i, &why);
		failures = ret != 0 ? failures + 1 : 0;
	}
}

/* No rule is there any more. */
static void sync_forget_all(struct sync *sync)
{
	for (unsigned i = 0; i < sync->n_left; i++)
		sync_full_let_go(sync, &sync->left[i]);
	sync->n_left = 0;
	for (uint32_t i = 0; i < sync->n_places; i++) {
		struct sync_place *place = &sync->places[i];

		if (place->rule.flow == NULL)
			continue;
		/* handles live as long as the port does, and tell what their rules had */
		place->has_last = false;
		sync_full_end(sync, place);
		place->rule = (struct sync_rule){0};
	}
}

static void sync_reset(struct provider *provider)
{
	struct sync *sync = sync_of(provider);
	struct provider_why why;

	/*
	 * Who does not say that it keeps rules may have them all the same: an X710's driver brings back what was not
	 * destroyed before the port was stopped (i40e_fdir.c, i40e_fdir_filter_restore()).
	 */
	if (answer_keeps_rules(sync->port.id))
		sync_remove_all(sync, UINT64_MAX);
	else
		answer_flush(sync->port.id, &why);
	sync_forget_all(sync);
}

static int sync_flush(struct provider *provider, struct provider_why *why)
{
	struct sync *sync = sync_of(provider);

	sync_remove_all(sync, FLUSH_US);
	int ret = answer_flush(sync->port.id, why);

	if (ret != -EOPNOTSUPP)
		sync_forget_all(sync);
	return ret;
}

static uint32_t sync_close_it(struct provider *provider)
{
	struct sync *sync = sync_of(provider);
	uint32_t left = n_rules(sync);
	struct provider_why why;
	int ret = left < FLUSH_FROM ? -EOPNOTSUPP : answer_flush(sync->port.id, &why);

	if (ret == 0)
		left = 0;
	if (ret == -EOPNOTSUPP) {
		sync_remove_all(sync, CLOSE_US);
		left = n_rules(sync);
	}
	for (uint32_t i = 0; i < sync->n_places; i++)
		sync_full_let_go(sync, &sync->places[i].rule);
	free(sync);
	return left;
}

static int sync_trial_make(void *context, unsigned hand, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	struct sync *sync = context;

	return create(sync, &sync->hands[hand], kind, shape, rule, why) == 0
		       ? 0
		       : answer_insert(why->error, false);
}

static void sync_trial_unmake(void *context, unsigned hand)
{
	struct sync *sync = context;
	struct provider_why why;
	int ret = -EIO;

	for (unsigned i = 0; i < SYNC_TRIES && ret != 0; i++)
		ret = sync_destroy(sync, sync->hands[hand].flow, &why);
	if (ret == 0)
		sync_full_let_go(sync, &sync->hands[hand]);
	else if (sync->n_left < SYNC_LEFT)
		sync->left[sync->n_left++] = sync->hands[hand];
}

static int sync_trial_counts(void *context, unsigned hand, struct provider_why *why)
{
	struct sync *sync = context;
	struct provider_count count;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < SYNC_TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = answer_count(sync->port.id, sync->hands[hand].flow, &count, why);
	return ret;
}

static void sync_try_again(struct provider *provider, unsigned number)
{
	struct sync *sync = sync_of(provider);
	const struct trial_calls calls = {
		sync_trial_make, sync_trial_unmake, sync_trial_counts, sync, provider->stop};

	sync_let_go_left(sync, SYNC_LEFT);
	trial_again(&sync->trial, number, &calls);
	trial_tell(&sync->trial, &provider->abilities);
}

static const struct provider_ops ops = {.insert = sync_insert,
	.remove = sync_remove_rule,
	.query = sync_query,
	.last_count = last_count,
	.poll = sync_poll,
	.next_shape = sync_next_shape,
	.try_again = sync_try_again,
	.flush = sync_flush,
	.reset = sync_reset,
	.close = sync_close_it};

int provider_open_sync(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told)
{
	struct sync *sync = calloc(1, sizeof(*sync) + config->n_places * sizeof(sync->places[0]));
	const struct trial_calls calls = {
		sync_trial_make, sync_trial_unmake, sync_trial_counts, sync, config->stop};

	if (sync == NULL)
		return -ENOMEM;
	sync->base.ops = &ops;
	sync->base.stop = config->stop;
	sync->n_places = config->n_places;
	shape_port_read(&sync->port, config);
	if (!trial_run(&sync->trial, &sync->port, config, &calls)) {
		trial_tell(&sync->trial, told);
		sync_let_go_left(sync, SYNC_LEFT);
		free(sync);
		return -EOPNOTSUPP;
	}
	sync->base.abilities = *told;
	trial_tell(&sync->trial, &sync->base.abilities);
	sync->base.abilities.back_end = "rte_flow";
	*provider = &sync->base;
	return 0;
}
