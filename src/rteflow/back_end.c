/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The back end of rte_flow: rules by calls that wait for the NIC (flow_rule.h), or by templates and a flow queue
 * (flow_queue.h). Each place has at most one rule. The last places are the trial's own. Rules of full offload go by calls
 * that wait only; their counters tell the last packet, too.
 */
#include "rteflow/back_end.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"
#include "rteflow/flow_queue.h"
#include "rteflow/flow_rule.h"
#include "rteflow/trial.h"

/* How often what ought to go, or a counter that ought to be read, is asked to. */
#define TRIES 8
/* After so many removes in a row that failed, nothing more is asked of a NIC that is to give back all. */
#define REMOVE_FAILURES 16
/* From so many rules on, all that are left at the end go by one call, for which NICs may have a quick way. */
#define FLUSH_FROM 16
/* Rules that are left are removed for so long by calls that wait; by a queue, until nothing is heard for so long. */
#define CLOSE_US 5000000
#define CLOSE_HEARD_US 1000000
#define RESET_HEARD_US 500000
#define FLUSH_US 1000000
/* So long the trial waits for a completion, and so many may stay away before it waits a hundredth of that. */
#define AWAIT_US 250000
#define SILENT_MAX 8
#define PULL_EACH 32
/* Rules of the trial that did not go, where there is no queue; what is more is lost. */
#define LEFT 64

enum place_state {
	PLACE_EMPTY,
	PLACE_INSERTING,
	PLACE_RULE,
	PLACE_REMOVING,
};

struct place {
	struct flow_rule rule;
	struct flow_last last; /* of a rule of full offload that was removed */
	uint32_t serial;       /* of the operation whose completion is awaited; 0: none */
	uint8_t state;	       /* enum place_state */
	bool full;
};

struct back_end {
	struct provider base;
	struct shape_port port;
	struct trial trial;
	bool queued, wants_full;
	struct flow_queue queue;
	struct flow_queue_set sets[PROVIDER_N_KINDS][2][SHAPE_N_FATES]; /* by kind, tagged, fate */
	struct flow_queue_set hands[TRIAL_HANDS];
	unsigned n_silent;	/* completions that never came, of the trial's */
	unsigned rewrites;	/* a bit for each kind of which a rule that rewrites was taken */
	uint32_t under_way;	/* places that await a completion */
	struct flow_rule *left; /* rules that nobody may ask about, and that are there still */
	uint32_t n_left, max_left;
	uint32_t n_places;
	struct place places[]; /* and TRIAL_HANDS more */
};

static struct back_end *back_end_of(struct provider *provider)
{
	return (struct back_end *)provider;
}

static void set_state(struct back_end *be, struct place *place, enum place_state state)
{
	be->under_way -= place->state == PLACE_INSERTING || place->state == PLACE_REMOVING;
	be->under_way += state == PLACE_INSERTING || state == PLACE_REMOVING;
	place->state = (uint8_t)state;
}

static void empty_place(struct back_end *be, struct place *place)
{
	set_state(be, place, PLACE_EMPTY);
	place->rule = (struct flow_rule){0};
	place->serial = 0;
}

static bool has_rule(const struct place *place)
{
	return place->state == PLACE_RULE || place->state == PLACE_INSERTING;
}

static uint32_t number_of(const struct back_end *be, const struct place *place)
{
	return (uint32_t)(place - be->places);
}

static void leave(struct back_end *be, const struct flow_rule *rule)
{
	if (be->n_left < be->max_left)
		be->left[be->n_left++] = *rule;
}

/* Gives back a rule that nobody may ask about any more. False: not now. */
static bool let_go(struct back_end *be, struct flow_rule *rule)
{
	struct provider_why why;

	if (be->queued)
		return flow_queue_destroy(&be->queue, rule->flow, FLOW_QUEUE_NOBODY, &why) !=
		       -EAGAIN;
	return flow_rule_remove(be->port.id, rule, NULL, &why) == 0;
}

/* The rules that are left, up to so many failures. True: something went. */
static bool let_go_left(struct back_end *be, unsigned failures)
{
	const uint32_t n = be->n_left;
	unsigned failed = 0;

	for (uint32_t i = 0; i < n && failed < failures; i++) {
		struct flow_rule rule = be->left[--be->n_left];

		if (let_go(be, &rule))
			continue;
		/* behind the others */
		memmove(&be->left[1], &be->left[0], be->n_left++ * sizeof(be->left[0]));
		be->left[0] = rule;
		failed++;
	}
	return be->n_left < n;
}

/* Makes a rule by templates, which are the trial's for its own places: -EINPROGRESS, or an answer. */
static int create_queued(struct back_end *be, struct place *place, const struct shape *shape,
	const struct offload_rule *rule, struct provider_why *why)
{
	const enum provider_kind kind = provider_kind(&rule->key);
	const uint32_t number = number_of(be, place);
	struct flow_queue_set *set = number < be->n_places
					     ? &be->sets[kind][shape->vlan][shape->fate]
					     : &be->hands[number - be->n_places];
	struct shape_actions actions;
	struct shape_items items;

	if (flow_queue_set_make(&be->queue, set, kind, shape, &be->port, why) < 0)
		return answer_insert(why->error, number < be->n_places);
	shape_items(&items, shape, kind, &be->port, rule);
	shape_actions(&actions, shape, &be->port, rule);
	place->rule.flow = flow_queue_create(&be->queue, set, &items, &actions, number, why);
	place->rule.counts = shape->count;
	if (place->rule.flow == NULL) {
		empty_place(be, place);
		return answer_insert(why->error, number < be->n_places);
	}
	place->serial = be->queue.serial;
	set_state(be, place, PLACE_INSERTING);
	return -EINPROGRESS;
}

/* Makes a rule. The port took rules of this shape before, unless the trial asks, or something is rewritten. */
static int create(struct back_end *be, struct place *place, const struct shape *shape,
	const struct offload_rule *rule, struct provider_why *why)
{
	const enum provider_kind kind = provider_kind(&rule->key);
	const unsigned rewrites = rule->rewrite != NULL ? 1u << kind : 0;
	struct shape_actions actions;
	struct shape_items items;

	if (be->queued)
		return create_queued(be, place, shape, rule, why);
	shape_items(&items, shape, kind, &be->port, rule);
	shape_actions(&actions, shape, &be->port, rule);
	const struct flow_request request = {.port_id = be->port.id,
		.attr = shape_attr(shape),
		.items = items.list,
		.actions = actions.list,
		.taken = number_of(be, place) < be->n_places &&
			 (be->rewrites & rewrites) == rewrites};
	int ret = flow_rule_make(&request, &place->rule, why);

	if (ret == 0) {
		be->rewrites |= rewrites;
		place->full = shape->deed != PROVIDER_MARKS;
		set_state(be, place, PLACE_RULE);
	}
	return ret;
}

static int check_queue(
	struct back_end *be, const struct offload_rule *rule, struct provider_why *why)
{
	if (rule->deed != PROVIDER_MARKS)
		return answer_with_words(why, -EOPNOTSUPP, ENOTSUP, "not by templates and queues");
	/* each operation on its way may leave one */
	if (be->n_left > 0)
		return answer_with_words(why, -EAGAIN, EAGAIN, "the flow queue is full");
	return flow_queue_check(&be->queue, why);
}

static int be_insert(struct provider *provider, uint32_t number, const struct offload_rule *rule,
	struct provider_why *why)
{
	struct back_end *be = back_end_of(provider);
	struct place *place = &be->places[number];
	int ret;

	assert(number < be->n_places);
	if (provider_kind(&rule->key) == PROVIDER_N_KINDS)
		return answer_with_words(why, -EOPNOTSUPP, ENOTSUP, "no rules for this protocol");
	if (has_rule(place))
		return answer_with_words(why, -EAGAIN, EEXIST, "the place has a rule still");
	ret = be->queued ? check_queue(be, rule, why) : 0;
	if (ret < 0)
		return ret;
	const struct shape *shape = trial_shape(&be->trial, rule, why);

	if (shape == NULL)
		return -EOPNOTSUPP;
	place->last.told = false;
	ret = create(be, place, shape, rule, why);
	if (ret == -ENOSPC && !be->queued && let_go_left(be, 1))
		ret = create(be, place, shape, rule, why);
	return ret;
}

/* Also of a rule whose insert was never answered: its caller has given up waiting. */
static int remove_queued(struct back_end *be, struct place *place, struct provider_why *why)
{
	int ret;

	/*
	 * Asked again: the caller has waited in vain for the completion, and nothing else will tell. A handle is
	 * given back once; should its rule be there yet, its mark names nobody any more.
	 */
	if (place->state == PLACE_REMOVING) {
		empty_place(be, place);
		return 0;
	}
	ret = flow_queue_check(&be->queue, why);
	if (ret == 0)
		ret = flow_queue_destroy(&be->queue, place->rule.flow, number_of(be, place), why);
	if (ret == -ENOENT) {
		empty_place(be, place);
		return 0;
	}
	if (ret < 0)
		return ret;
	place->serial = be->queue.serial;
	set_state(be, place, PLACE_REMOVING);
	return -EINPROGRESS;
}

static int remove_rule(struct back_end *be, struct place *place, struct provider_why *why)
{
	if (place->state == PLACE_EMPTY)
		return 0;
	if (be->queued)
		return remove_queued(be, place, why);
	int ret =
		flow_rule_remove(be->port.id, &place->rule, place->full ? &place->last : NULL, why);

	if (ret == 0)
		empty_place(be, place);
	return ret;
}

static int be_remove(struct provider *provider, uint32_t number, struct provider_why *why)
{
	struct back_end *be = back_end_of(provider);

	assert(number < be->n_places);
	return remove_rule(be, &be->places[number], why);
}

static int be_query(struct provider *provider, uint32_t number, struct provider_count *count,
	struct provider_why *why)
{
	struct back_end *be = back_end_of(provider);
	const struct place *place = &be->places[number];

	assert(number < be->n_places);
	if (place->state != PLACE_RULE || !place->rule.counts ||
		(!place->full && !provider->abilities.counts)) {
		*why = (struct provider_why){0};
		return -EOPNOTSUPP;
	}
	return flow_rule_count(be->port.id, &place->rule, count, why);
}

static bool be_last_count(struct provider *provider, uint32_t number, struct provider_count *count)
{
	struct flow_last *last = &back_end_of(provider)->places[number].last;
	const bool told = last->told;

	last->told = false;
	*count = last->count;
	return told;
}

/* A completion says that something failed, and nothing else. Whether the NIC is there at all, another call tells. */
static int why_failed(
	struct back_end *be, const struct provider_done *done, struct provider_why *why)
{
	const bool trial = done->place >= be->n_places;
	int ret = trial ? 0 : flow_queue_push(&be->queue, why);

	if (ret < 0)
		return ret;
	answer_words(why, EIO, "its completion says error, and not why");
	why->guess = done->op == PROVIDER_INSERT && !trial;
	return why->guess ? -ENOSPC : -EIO;
}

/* False: nobody awaits this. */
static bool finish(
	struct back_end *be, const struct flow_queue_result *result, struct provider_done *done)
{
	struct place *place;

	if (result->place >= be->n_places + TRIAL_HANDS)
		return false;
	place = &be->places[result->place];
	if (result->serial == 0 || place->serial != result->serial)
		return false;
	memset(done, 0, sizeof(*done));
	done->place = result->place;
	done->op = place->state == PLACE_INSERTING ? PROVIDER_INSERT : PROVIDER_REMOVE;
	place->serial = 0;
	if (!result->ok)
		done->result = why_failed(be, done, &done->why);
	/* a handle is left of a create that failed (rte_flow.rst); the trial gives back its own */
	if (result->ok == (done->op == PROVIDER_INSERT) || result->place >= be->n_places) {
		set_state(be, place,
			result->ok && done->op == PROVIDER_REMOVE ? PLACE_EMPTY : PLACE_RULE);
		return true;
	}
	if (!result->ok && !let_go(be, &place->rule))
		leave(be, &place->rule);
	empty_place(be, place);
	return true;
}

static unsigned take_results(struct back_end *be, struct provider_done *done, unsigned max)
{
	struct flow_queue_result results[PULL_EACH];
	struct provider_why why;
	unsigned n = 0;
	int got = 1;

	if (be->queue.postponed > 0 || be->queue.stuck)
		flow_queue_push(&be->queue, &why);
	while (n < max && got > 0) {
		got = flow_queue_pull(&be->queue, results, RTE_MIN(max - n, (unsigned)PULL_EACH));
		for (int i = 0; i < got; i++)
			n += finish(be, &results[i], &done[n]);
	}
	return n;
}

static unsigned be_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	struct back_end *be = back_end_of(provider);

	if (!be->queued)
		return 0;
	unsigned n = take_results(be, done, max);

	let_go_left(be, 1);
	return n;
}

static bool be_next_shape(struct provider *provider, enum provider_kind kind)
{
	return trial_next(&back_end_of(provider)->trial, kind);
}

static uint32_t n_rules(const struct back_end *be)
{
	uint32_t n = be->queued ? 0 : be->n_left;

	for (uint32_t i = 0; i < be->n_places; i++)
		n += be->places[i].state != PLACE_EMPTY;
	return n;
}

/* Removes rules from *at on; those of a queue until that is full. `all`: of unanswered inserts, too. */
static void remove_from(struct back_end *be, uint32_t *at, bool all, uint64_t most_us)
{
	const uint64_t begin_us = monotonic_us();
	struct provider_why why;
	unsigned failures = 0;

	for (; *at < be->n_places && failures < REMOVE_FAILURES; (*at)++) {
		struct place *place = &be->places[*at];
		int ret = -EIO;

		if (place->state != PLACE_RULE && !(all && place->state == PLACE_INSERTING))
			continue;
		if (monotonic_us() - begin_us >= most_us)
			return;
		for (unsigned n = 0; n < (be->queued ? 1 : TRIES) && ret != 0; n++)
			ret = remove_rule(be, place, &why);
		if (be->queued && ret == -EAGAIN)
			return;
		failures = ret != 0 && ret != -EINPROGRESS ? failures + 1 : 0;
	}
}

/* Removes rules, also those that are only just coming, until for so long nothing was heard. */
static void remove_heard(struct back_end *be, bool all, uint64_t wait_us)
{
	struct provider_done done[PULL_EACH];
	uint64_t heard_us = monotonic_us();
	uint32_t at = 0;

	for (;;) {
		remove_from(be, &at, all, UINT64_MAX);
		unsigned n = be_poll(&be->base, done, PULL_EACH);

		for (unsigned i = 0; i < n; i++)
			if (done[i].op == PROVIDER_INSERT && done[i].result == 0)
				at = RTE_MIN(at, done[i].place);
		if (n > 0)
			heard_us = monotonic_us();
		else if (at == be->n_places && be->under_way == 0 && be->n_left == 0)
			return;
		else if (monotonic_us() - heard_us > wait_us)
			return;
		else
			rte_pause();
	}
}

/* All rules, as long as the NIC gives any back. Those whose insert is never answered go last. */
static void remove_all(struct back_end *be, uint64_t most_us, uint64_t heard_us)
{
	uint32_t at = 0;

	if (be->queued) {
		remove_heard(be, false, heard_us / 2);
		remove_heard(be, true, heard_us / 2);
		return;
	}
	let_go_left(be, LEFT);
	remove_from(be, &at, true, most_us);
}

/* No rule is there any more, and nothing is awaited. Counters live as long as the port does, and tell their last value. */
static void forget_all(struct back_end *be)
{
	for (uint32_t i = 0; i < be->n_left; i++)
		flow_rule_forget(be->port.id, &be->left[i], NULL);
	be->n_left = 0;
	for (uint32_t i = 0; i < be->n_places; i++) {
		struct place *place = &be->places[i];

		if (place->state == PLACE_EMPTY)
			continue;
		place->last.told = false;
		flow_rule_forget(be->port.id, &place->rule, place->full ? &place->last : NULL);
		empty_place(be, place);
	}
}

static void be_reset(struct provider *provider)
{
	struct back_end *be = back_end_of(provider);
	const bool keeps = answer_keeps_rules(be->port.id);
	struct provider_why why;

	/* what the NIC was not told yet would go by the next push: that comes now, and goes again */
	for (uint32_t i = 0; be->queued && !keeps && i < be->n_places; i++) {
		struct place *place = &be->places[i];

		if (place->state == PLACE_RULE || flow_queue_is_pushed(&be->queue, place->serial))
			empty_place(be, place);
	}
	if (be->queued && !keeps)
		be->n_left = 0;
	if (be->queued || keeps)
		remove_all(be, UINT64_MAX, RESET_HEARD_US);
	/*
	 * A port that does not say that it keeps rules may have them all the same: an X710's driver brings back what
	 * was not destroyed before the port was stopped (i40e_fdir.c, i40e_fdir_filter_restore()).
	 */
	if (!keeps)
		answer_flush(be->port.id, &why);
	forget_all(be);
}

static int be_flush(struct provider *provider, struct provider_why *why)
{
	struct back_end *be = back_end_of(provider);

	remove_all(be, FLUSH_US, FLUSH_US);
	int ret = answer_flush(be->port.id, why);

	if (ret != -EOPNOTSUPP)
		forget_all(be);
	return ret;
}

static void back_end_free(struct back_end *be)
{
	struct flow_queue_set *sets = &be->sets[0][0][0];

	for (unsigned i = 0; i < sizeof(be->sets) / sizeof(*sets); i++)
		flow_queue_set_free(&be->queue, &sets[i]);
	free(be->left);
	free(be);
}

static uint32_t be_close(struct provider *provider)
{
	struct back_end *be = back_end_of(provider);
	struct provider_why why;
	uint32_t left = n_rules(be);
	int ret = be->queued || left < FLUSH_FROM ? -EOPNOTSUPP : answer_flush(be->port.id, &why);

	if (ret == 0)
		left = 0;
	if (ret == -EOPNOTSUPP) {
		remove_all(be, CLOSE_US, CLOSE_HEARD_US);
		left = n_rules(be);
	}
	for (uint32_t i = 0; i < be->n_places; i++)
		flow_rule_forget(be->port.id, &be->places[i].rule, NULL);
	back_end_free(be);
	return left;
}

/* Until the operation of a trial's place is done: 0 or an answer. -EAGAIN: nothing was heard of it. */
static int await(struct back_end *be, const struct place *place, struct provider_why *why)
{
	const uint64_t begin_us = monotonic_us();
	const uint64_t most_us = be->n_silent < SILENT_MAX ? AWAIT_US : AWAIT_US / 100;
	int pushed = -EIO;

	for (unsigned i = 0; i < TRIES && pushed < 0; i++)
		pushed = flow_queue_push(&be->queue, why);
	if (pushed < 0)
		return pushed;
	/* once more when that is over: this thread may have been put off meanwhile */
	for (bool over = false; !over;) {
		struct provider_done done;

		over = monotonic_us() - begin_us >= most_us;
		while (take_results(be, &done, 1) > 0) {
			if (done.place != number_of(be, place))
				continue;
			*why = done.why;
			return done.result;
		}
		rte_pause();
	}
	be->n_silent++;
	return answer_with_words(why, -EAGAIN, ETIMEDOUT, "no completion came");
}

/* Until the rule is gone, or nothing is heard of that. What fails again and again is tried once more later. */
static void trial_unmake(void *context, unsigned hand)
{
	struct back_end *be = context;
	struct place *place = &be->places[be->n_places + hand];
	struct provider_done done;
	struct provider_why why;

	for (unsigned i = 0; i < TRIES && has_rule(place); i++) {
		if (remove_rule(be, place, &why) == -EINPROGRESS)
			await(be, place, &why);
		else if (be->queued)
			take_results(be, &done, 1);
	}
	if (has_rule(place))
		leave(be, &place->rule);
	empty_place(be, place);
	flow_queue_set_free(&be->queue, &be->hands[hand]);
}

static int trial_make(void *context, unsigned hand, const struct shape *shape,
	const struct offload_rule *rule, struct provider_why *why)
{
	struct back_end *be = context;
	struct place *place = &be->places[be->n_places + hand];
	int ret = create(be, place, shape, rule, why);

	if (ret == -EINPROGRESS)
		ret = await(be, place, why);
	/* what failed, or was not heard of, is given back as well */
	if (ret < 0)
		trial_unmake(be, hand);
	return ret;
}

static int trial_counts(void *context, unsigned hand, struct provider_why *why)
{
	struct back_end *be = context;
	const struct flow_rule *rule = &be->places[be->n_places + hand].rule;
	struct provider_count count;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = answer_count(be->port.id, rule->flow, &count, why);
	return ret;
}

static void tell(const struct back_end *be, struct provider_abilities *abilities)
{
	trial_tell(&be->trial, abilities);
	for (unsigned kind = 0; be->wants_full && be->queued && kind < PROVIDER_N_KINDS; kind++)
		answer_words(
			&abilities->full_refused[kind], ENOTSUP, "not by templates and queues");
}

static struct trial_calls calls_of(struct back_end *be)
{
	return (struct trial_calls){trial_make, trial_unmake, trial_counts, be, be->base.stop};
}

static void be_try_again(struct provider *provider, unsigned number)
{
	struct back_end *be = back_end_of(provider);
	const struct trial_calls calls = calls_of(be);

	be->n_silent = 0;
	if (!be->queued)
		let_go_left(be, LEFT);
	trial_again(&be->trial, number, &calls);
	tell(be, &provider->abilities);
}

static int back_end_make(struct back_end **made, const struct provider_config *config, bool queued)
{
	static const struct provider_ops ops = {.insert = be_insert,
		.remove = be_remove,
		.query = be_query,
		.last_count = be_last_count,
		.poll = be_poll,
		.next_shape = be_next_shape,
		.try_again = be_try_again,
		.flush = be_flush,
		.reset = be_reset,
		.close = be_close};
	const uint32_t n = config->n_places + TRIAL_HANDS;
	struct back_end *be = calloc(1, sizeof(*be) + n * sizeof(be->places[0]));

	if (be == NULL)
		return -ENOMEM;
	be->base.ops = &ops;
	be->base.stop = config->stop;
	be->n_places = config->n_places;
	be->queued = queued;
	be->wants_full = config->full;
	if (queued)
		flow_queue_init(&be->queue, config->port_id, n);
	be->max_left = queued ? be->queue.size : LEFT;
	shape_port_read(&be->port, config);
	be->left = calloc(be->max_left + 1, sizeof(be->left[0]));
	if (be->left == NULL) {
		free(be);
		return -ENOMEM;
	}
	*made = be;
	return 0;
}

int back_end_open(struct provider **provider, const struct provider_config *config, bool queued,
	struct provider_abilities *told)
{
	struct provider_config tried = *config;
	struct back_end *be;
	int ret = back_end_make(&be, config, queued);

	if (ret < 0)
		return ret;
	const struct trial_calls calls = calls_of(be);

	tried.full = config->full && !queued;
	if ((queued && be->queue.size == 0) || !trial_run(&be->trial, &be->port, &tried, &calls)) {
		trial_tell(&be->trial, told);
		if (!queued)
			let_go_left(be, LEFT);
		back_end_free(be);
		return -EOPNOTSUPP;
	}
	be->base.abilities = *told;
	tell(be, &be->base.abilities);
	be->base.abilities.back_end = queued ? "rte_flow async" : "rte_flow";
	*provider = &be->base;
	return 0;
}
