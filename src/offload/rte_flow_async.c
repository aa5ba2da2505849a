/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end of ports with templates and flow queues: one queue, and a table for each kind of flow. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "offload/answer.h"
#include "offload/async_parts.h"

/* So many operations are pushed at once, unless provider_poll() comes before. */
#define PUSH_EACH 64
#define PULL_EACH 32
/* Rules that are left are waited for while some still go. */
#define CLOSE_US 1000000
#define RESET_US 500000
#define FLUSH_US 1000000

static struct async *async_of(struct provider *provider)
{
	return (struct async *)provider;
}

/* Of an operation that a place awaits; 0 is awaited by none. */
static uint32_t async_next_serial(struct async *async)
{
	async->serial += async->serial + 1 == 0 ? 2 : 1;
	return async->serial;
}

static void set_state(struct async *async, struct place *place, enum place_state state)
{
	async->under_way -= place->state == PLACE_INSERTING || place->state == PLACE_REMOVING;
	async->under_way += state == PLACE_INSERTING || state == PLACE_REMOVING;
	place->state = (uint8_t)state;
}

static void async_empty(struct async *async, struct place *place)
{
	set_state(async, place, PLACE_EMPTY);
	place->flow = NULL;
	place->serial = 0;
}

/* What is postponed goes to the NIC. 0, or an answer: it does not take it. */
static int push(struct async *async, struct provider_why *why)
{
	int ret = async_push(async, why);

	async->stuck = ret < 0;
	if (ret == 0) {
		async->postponed = 0;
		async->pushed = async->serial;
	}
	return ret;
}

static bool is_pushed(const struct async *async, const struct place *place)
{
	/* numbers run round */
	return (int32_t)(place->serial - async->pushed) <= 0;
}

static void postpone(struct async *async)
{
	struct provider_why why;

	if (++async->postponed % PUSH_EACH == 0)
		push(async, &why);
}

/* Nothing is handed to a NIC that takes nothing, or tells nothing. What is under way there is its caller's. */
static int check_queue(struct async *async, struct provider_why *why)
{
	if (async->deaf) {
		*why = async->deaf_why;
		return -EIO;
	}
	return async->stuck ? push(async, why) : 0;
}

void async_leave(struct async *async, struct rte_flow *flow)
{
	if (async->n_left < async->queue_size)
		async->left[async->n_left++] = flow;
}

/* A rule that nobody may ask about any more: of a create that failed, a handle is left (rte_flow.rst). */
static void async_let_go(struct async *async, struct rte_flow *flow)
{
	struct provider_why why;
	int ret = async_destroy(async, flow, ASYNC_NOBODY, 0, &why);

	if (ret == 0)
		postpone(async);
	else if (ret == -EAGAIN)
		async_leave(async, flow);
}

static void async_let_go_left(struct async *async)
{
	uint32_t n = async->n_left;

	async->n_left = 0;
	for (uint32_t i = 0; i < n; i++)
		async_let_go(async, async->left[i]);
}

static int async_refuse(struct provider_why *why, int answer, int error, const char *words)
{
	answer_words(why, error, words);
	return answer;
}

/* 0: a rule may go there. */
static int check_place(struct async *async, const struct place *place, struct provider_why *why)
{
	if (place->state == PLACE_RULE || place->state == PLACE_INSERTING)
		return async_refuse(why, -EAGAIN, EEXIST, "the place has a rule still");
	/* each operation on its way may leave one */
	if (async->n_left > 0)
		return async_refuse(why, -EAGAIN, EAGAIN, "the flow queue is full");
	return check_queue(async, why);
}

static int async_insert(struct provider *provider, uint32_t number, const struct offload_rule *rule,
	struct provider_why *why)
{
	struct async *async = async_of(provider);
	struct place *place = &async->places[number];
	enum provider_kind kind = provider_kind(&rule->key);
	const struct shape *shape;
	struct async_set *set;
	uint32_t serial;
	int ret;

	assert(number < async->n_places);
	if (kind == PROVIDER_N_KINDS)
		return async_refuse(why, -EOPNOTSUPP, ENOTSUP, "no rules for this protocol");
	if (rule->deed != PROVIDER_MARKS)
		return async_refuse(why, -EOPNOTSUPP, ENOTSUP, "not by templates and queues");
	ret = check_place(async, place, why);
	if (ret < 0)
		return ret;
	shape = trial_shape(&async->trial, kind, rule->key.zone, why);
	if (shape == NULL)
		return -EOPNOTSUPP;
	set = &async->sets[kind][shape->vlan][shape->fate];
	ret = async_set_make(async, set, kind, shape, why);
	if (ret < 0)
		return answer_insert(why->error, true);
	serial = async_next_serial(async);
	place->flow = async_create(async, set, kind, shape, rule, number, serial, why);
	if (place->flow == NULL) {
		async_empty(async, place);
		return answer_insert(why->error, true);
	}
	place->serial = serial;
	place->counts = shape->count;
	set_state(async, place, PLACE_INSERTING);
	postpone(async);
	return -EINPROGRESS;
}

/* Also of a rule whose insert was never answered: its caller has given up waiting. */
static int async_remove_rule(struct provider *provider, uint32_t number, struct provider_why *why)
{
	struct async *async = async_of(provider);
	struct place *place = &async->places[number];
	uint32_t serial;
	int ret;

	assert(number < async->n_places);
	if (place->state == PLACE_EMPTY)
		return 0;
	/*
	 * Asked again: who did has waited in vain for the completion, and nothing else will tell. A handle is
	 * given back once; should its rule be there yet, its mark names nobody any more.
	 */
	if (place->state == PLACE_REMOVING) {
		async_empty(async, place);
		return 0;
	}
	ret = check_queue(async, why);
	if (ret < 0)
		return ret;
	serial = async_next_serial(async);
	ret = async_destroy(async, place->flow, number, serial, why);
	if (ret == -ENOENT) {
		async_empty(async, place);
		return 0;
	}
	if (ret < 0)
		return ret;
	place->serial = serial;
	set_state(async, place, PLACE_REMOVING);
	postpone(async);
	return -EINPROGRESS;
}

static int async_query(struct provider *provider, uint32_t number, struct provider_count *count,
	struct provider_why *why)
{
	struct async *async = async_of(provider);
	const struct place *place = &async->places[number];

	assert(number < async->n_places);
	if (place->state != PLACE_RULE || !place->counts || !provider->abilities.counts) {
		*why = (struct provider_why){0};
		return -EOPNOTSUPP;
	}
	return answer_count(async->port.id, place->flow, count, why);
}

/*
 * A completion says that something failed, and nothing else. Whether the NIC is there at all, another call
 * tells.
 */
static int failed(struct async *async, enum provider_op op, struct provider_why *why)
{
	int ret = push(async, why);

	if (ret < 0)
		return ret;
	answer_words(why, EIO, "its completion says error, and not why");
	why->guess = op == PROVIDER_INSERT;
	return why->guess ? -ENOSPC : -EIO;
}

bool async_finish(
	struct async *async, const struct async_result *result, struct provider_done *done)
{
	struct place *place;

	if (result->place >= async->n_places)
		return false;
	place = &async->places[result->place];
	if (result->serial == 0 || place->serial != result->serial)
		return false;
	memset(done, 0, sizeof(*done));
	done->place = result->place;
	done->op = place->state == PLACE_INSERTING ? PROVIDER_INSERT : PROVIDER_REMOVE;
	place->serial = 0;
	if (!result->ok)
		done->result = failed(async, done->op, &done->why);
	if (result->ok == (done->op == PROVIDER_INSERT)) {
		set_state(async, place, PLACE_RULE);
		return true;
	}
	if (!result->ok)
		async_let_go(async, place->flow);
	async_empty(async, place);
	return true;
}

static unsigned async_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	struct async *async = async_of(provider);
	struct async_result results[PULL_EACH];
	struct provider_why why;
	unsigned n = 0;
	int got = 1;

	if (async->postponed > 0 || async->stuck)
		push(async, &why);
	while (n < max && got > 0) {
		got = async_pull(
			async, results, RTE_MIN(max - n, (unsigned)PULL_EACH), &async->deaf_why);
		for (int i = 0; i < got; i++)
			n += async_finish(async, &results[i], &done[n]);
	}
	async->deaf = got < 0;
	async_let_go_left(async);
	return n;
}

static bool async_next_shape(struct provider *provider, enum provider_kind kind)
{
	return trial_next(&async_of(provider)->trial, kind);
}

/* Asks for the removal of rules from *at on, as many as the queue takes; `all`: unanswered ones too. */
static void remove_from(struct async *async, uint32_t *at, bool all)
{
	struct provider_why why;

	for (; *at < async->n_places; (*at)++) {
		uint8_t state = async->places[*at].state;

		if ((state == PLACE_RULE || (all && state == PLACE_INSERTING)) &&
			async_remove_rule(&async->base, *at, &why) == -EAGAIN)
			return;
	}
}

/* Takes rules away, also those that are only just coming, until for so long nothing was heard. */
static void remove_heard(struct async *async, bool all, uint64_t wait_us)
{
	struct provider_done done[PULL_EACH];
	uint64_t heard = monotonic_us();
	uint32_t at = 0;

	for (;;) {
		remove_from(async, &at, all);
		unsigned n = async_poll(&async->base, done, PULL_EACH);

		for (unsigned i = 0; i < n; i++)
			if (done[i].op == PROVIDER_INSERT && done[i].result == 0)
				at = RTE_MIN(at, done[i].place);
		if (n > 0)
			heard = monotonic_us();
		else if (at == async->n_places && async->under_way == 0 && async->n_left == 0)
			return;
		else if (monotonic_us() - heard > wait_us)
			return;
		else
			rte_pause();
	}
}

/* Those whose insert is never answered go last. */
static void async_remove_all(struct async *async, uint64_t wait_us)
{
	remove_heard(async, false, wait_us / 2);
	remove_heard(async, true, wait_us / 2);
}

/* No rule is there any more, and nothing is awaited. */
static void async_forget_all(struct async *async)
{
	for (uint32_t i = 0; i < async->n_places; i++)
		async_empty(async, &async->places[i]);
	async->n_left = 0;
}

/*
 * The NIC has forgotten all that it was told. What it was not told yet it would be by the next push: that
 * comes now, and goes again.
 */
static void async_reset(struct provider *provider)
{
	struct async *async = async_of(provider);
	bool keeps = answer_keeps_rules(async->port.id);
	struct provider_why why;

	for (uint32_t i = 0; i < async->n_places && !keeps; i++) {
		struct place *place = &async->places[i];

		if (place->state == PLACE_RULE || is_pushed(async, place))
			async_empty(async, place);
	}
	if (!keeps)
		async->n_left = 0;
	async_remove_all(async, RESET_US);
	/* it may keep them all the same: reset() of rte_flow_sync.c */
	if (!keeps)
		answer_flush(async->port.id, &why);
	async_forget_all(async);
}

static int async_flush(struct provider *provider, struct provider_why *why)
{
	struct async *async = async_of(provider);

	async_remove_all(async, FLUSH_US);
	int ret = answer_flush(async->port.id, why);

	if (ret != -EOPNOTSUPP)
		async_forget_all(async);
	return ret;
}

static uint32_t async_close_it(struct provider *provider)
{
	struct async *async = async_of(provider);
	uint32_t left = 0;

	async_remove_all(async, CLOSE_US);
	for (uint32_t i = 0; i < async->n_places; i++)
		left += async->places[i].state != PLACE_EMPTY;
	async_free(async);
	return left;
}

const struct provider_ops async_ops = {.insert = async_insert,
	.remove = async_remove_rule,
	.query = async_query,
	.poll = async_poll,
	.next_shape = async_next_shape,
	.try_again = async_try_again,
	.flush = async_flush,
	.reset = async_reset,
	.close = async_close_it};
