/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The back end of ports with templates and flow queues: one queue, and a table for each kind of flow. From top to
 * bottom: DPDK's calls, the places of rules, what the port takes (by trial), and opening and closing.
 */
/* Templates and flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"
#include "rteflow/back_end.h"
#include "rteflow/trial.h"

#define QUEUE 0
/* All that installers have under way, and some. */
#define QUEUE_SIZE 4096
#define PULL_MAX 64
/* So many operations are pushed at once, unless provider_poll() comes before. */
#define PUSH_EACH 64
#define PULL_EACH 32
/* Rules that are left are waited for while some still go. */
#define CLOSE_US 1000000
#define RESET_US 500000
#define FLUSH_US 1000000
#define AWAIT_US 250000
#define SILENT_MAX 8
#define PUSH_TRIES 8
#define DROP_TRIES 8
#define COUNT_TRIES 8

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

static const struct rte_flow_op_attr postponed = {.postpone = 1};

static void *user_data(uint32_t place, uint32_t serial)
{
	return (void *)(uintptr_t)((uint64_t)serial << 32 | place);
}

static bool ask_port(
	uint16_t port_id, struct rte_flow_port_info *port, struct rte_flow_queue_info *queue)
{
	struct rte_flow_error said = {0};

	memset(port, 0, sizeof(*port));
	memset(queue, 0, sizeof(*queue));
	return rte_flow_info_get(port_id, port, queue, &said) == 0 && port->max_nb_queues > 0;
}

static uint32_t async_size_of(const struct rte_flow_queue_info *queue)
{
	return queue->max_size != 0 ? RTE_MIN(queue->max_size, (uint32_t)QUEUE_SIZE) : QUEUE_SIZE;
}

static uint32_t async_queue_size(uint16_t port_id)
{
	struct rte_flow_port_info port;
	struct rte_flow_queue_info queue;

	return ask_port(port_id, &port, &queue) ? async_size_of(&queue) : 0;
}

bool provider_prepare_async(uint16_t port_id, uint32_t n_places)
{
	struct rte_flow_port_attr attr = {0};
	struct rte_flow_queue_attr queue_attr = {0};
	const struct rte_flow_queue_attr *queues[] = {&queue_attr};
	struct rte_flow_error said = {0};
	struct rte_flow_port_info port;
	struct rte_flow_queue_info queue;

	if (!ask_port(port_id, &port, &queue))
		return false;
	queue_attr.size = async_size_of(&queue);
	attr.nb_counters = RTE_MIN(port.max_nb_counters, n_places + TRIAL_HANDS);
	if (rte_flow_configure(port_id, &attr, RTE_DIM(queues), queues, &said) == 0)
		return true;
	attr.nb_counters = 0;
	return rte_flow_configure(port_id, &attr, RTE_DIM(queues), queues, &said) == 0;
}

static int refused(struct provider_why *why, const struct rte_flow_error *said)
{
	answer_why(why, rte_errno, said);
	return -EIO;
}

static int async_make_templates(const struct async *async, struct async_set *set,
	enum provider_kind kind, const struct shape *shape, struct provider_why *why)
{
	static const struct rte_flow_pattern_template_attr pattern_attr = {.ingress = 1};
	static const struct rte_flow_actions_template_attr actions_attr = {.ingress = 1};
	static const struct offload_rule nobodys;
	struct rte_flow_error said = {0};
	struct shape_actions actions, masks;
	struct shape_items items;

	rte_errno = 0;
	shape_items(&items, shape, kind, &async->port, &nobodys);
	if (set->pattern == NULL)
		set->pattern = rte_flow_pattern_template_create(
			async->port.id, &pattern_attr, items.list, &said);
	if (set->pattern == NULL)
		return refused(why, &said);
	shape_actions(&actions, shape, &async->port, &nobodys);
	shape_action_masks(&masks, shape, &async->port);
	if (set->actions == NULL)
		set->actions = rte_flow_actions_template_create(
			async->port.id, &actions_attr, actions.list, masks.list, &said);
	return set->actions != NULL ? 0 : refused(why, &said);
}

static int async_set_make(struct async *async, struct async_set *set, enum provider_kind kind,
	const struct shape *shape, struct provider_why *why)
{
	const struct rte_flow_template_table_attr attr = {
		.flow_attr = {.ingress = 1}, .nb_flows = async->n_places + TRIAL_HANDS};
	struct rte_flow_error said = {0};

	if (set->table != NULL)
		return 0;
	if (async_make_templates(async, set, kind, shape, why) < 0)
		return -EIO;
	rte_errno = 0;
	set->table = rte_flow_template_table_create(
		async->port.id, &attr, &set->pattern, 1, &set->actions, 1, &said);
	return set->table != NULL ? 0 : refused(why, &said);
}

static void async_set_free(const struct async *async, struct async_set *set)
{
	struct rte_flow_error said = {0};
	uint16_t id = async->port.id;

	/* what does not go goes with the port */
	if (set->table != NULL)
		(void)rte_flow_template_table_destroy(id, set->table, &said);
	if (set->actions != NULL)
		(void)rte_flow_actions_template_destroy(id, set->actions, &said);
	if (set->pattern != NULL)
		(void)rte_flow_pattern_template_destroy(id, set->pattern, &said);
	memset(set, 0, sizeof(*set));
}

static struct rte_flow *async_create(const struct async *async, const struct async_set *set,
	enum provider_kind kind, const struct shape *shape, const struct offload_rule *rule,
	uint32_t place, uint32_t serial, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct shape_items items;
	struct shape_actions actions;
	struct rte_flow *flow;

	shape_items(&items, shape, kind, &async->port, rule);
	shape_actions(&actions, shape, &async->port, rule);
	rte_errno = 0;
	flow = rte_flow_async_create(async->port.id, QUEUE, &postponed, set->table, items.list, 0,
		actions.list, 0, user_data(place, serial), &said);
	if (flow == NULL)
		answer_why(why, rte_errno, &said);
	return flow;
}

static int async_destroy(const struct async *async, struct rte_flow *flow, uint32_t place,
	uint32_t serial, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_async_destroy(
		async->port.id, QUEUE, &postponed, flow, user_data(place, serial), &said);

	if (ret == 0)
		return 0;
	answer_why(why, -ret, &said);
	return ret == -ENOENT ? -ENOENT : answer_remove(-ret);
}

static int async_push(const struct async *async, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret = rte_flow_push(async->port.id, QUEUE, &said);

	if (ret == 0)
		return 0;
	answer_why(why, -ret, &said);
	return -EIO;
}

static int async_pull(const struct async *async, struct async_result *results, unsigned max,
	struct provider_why *why)
{
	struct rte_flow_op_result told[PULL_MAX];
	struct rte_flow_error said = {0};
	uint16_t n = (uint16_t)RTE_MIN(max, (unsigned)PULL_MAX);
	int got = rte_flow_pull(async->port.id, QUEUE, told, n, &said);

	if (got < 0)
		answer_why(why, -got, &said);
	for (int i = 0; i < got; i++) {
		uint64_t data = (uintptr_t)told[i].user_data;

		results[i] = (struct async_result){.place = (uint32_t)data,
			.serial = (uint32_t)(data >> 32),
			.ok = told[i].status == RTE_FLOW_OP_SUCCESS};
	}
	return got;
}

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

static void async_leave(struct async *async, struct rte_flow *flow)
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

static bool async_finish(
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
	/* it may keep them all the same: sync_reset() */
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

/* How long that is waited for: not so long each time where many never came. */
static uint64_t patience(const struct async *async)
{
	return async->n_silent < SILENT_MAX ? AWAIT_US : AWAIT_US / 100;
}

/*
 * Until the operation with this number is done. 0, -EIO: it failed, -EAGAIN: nothing was heard of it,
 * -EPIPE: the NIC was not told of it yet.
 */
static int async_open_await(struct async *async, uint32_t serial, struct provider_why *why)
{
	uint64_t begin = monotonic_us();
	int ret = -EIO;

	for (unsigned i = 0; i < PUSH_TRIES && ret < 0; i++)
		ret = async_push(async, why);
	if (ret < 0)
		return -EPIPE;
	/* once more when that is over: this thread may have been put off meanwhile */
	for (bool over = false; !over;) {
		over = monotonic_us() - begin >= patience(async);
		struct async_result results[PULL_EACH];
		struct provider_done nobodys;
		int got = async_pull(async, results, PULL_EACH, why);

		for (int i = 0; i < got; i++) {
			if (results[i].serial != serial) {
				async_finish(async, &results[i], &nobodys);
				continue;
			}
			if (!results[i].ok)
				answer_words(why, EIO, "its completion says error, and not why");
			return results[i].ok ? 0 : -EIO;
		}
		rte_pause();
	}
	async->n_silent++;
	answer_words(why, ETIMEDOUT, "no completion came");
	return -EAGAIN;
}

/*
 * Until its rule is gone, or nothing is heard of that. Who fails at it again and again is asked once more by
 * provider_poll().
 */
static void drop(struct async *async, struct async_hand *hand)
{
	struct provider_why why;
	bool kept = true; /* its handle was not given back */
	int ret = -EIO;

	for (unsigned i = 0; i < DROP_TRIES && (ret == -EIO || ret == -EPIPE); i++) {
		if (ret == -EIO) {
			async->serial++;
			ret = async_destroy(async, hand->flow, ASYNC_NOBODY, async->serial, &why);
			kept = ret != 0 && ret != -ENOENT;
		}
		if (ret == 0 || ret == -EPIPE)
			ret = async_open_await(async, async->serial, &why);
		kept = kept || ret == -EIO;
	}
	if (kept)
		async_leave(async, hand->flow);
	hand->flow = NULL;
	async_set_free(async, &hand->set);
}

static int async_open_trial_make(void *context, unsigned number, enum provider_kind kind,
	const struct shape *shape, const struct offload_rule *rule, struct provider_why *why)
{
	struct async *async = context;
	struct async_hand *hand = &async->hands[number];
	int ret = async_set_make(async, &hand->set, kind, shape, why);

	async->serial++;
	if (ret == 0)
		hand->flow = async_create(
			async, &hand->set, kind, shape, rule, ASYNC_NOBODY, async->serial, why);
	if (ret < 0 || hand->flow == NULL) {
		async_set_free(async, &hand->set);
		return answer_insert(why->error, false);
	}
	ret = async_open_await(async, async->serial, why);
	/* what was heard of later, or failed, is given back as well */
	if (ret < 0)
		drop(async, hand);
	return ret == -EPIPE ? -EIO : ret;
}

static void async_open_trial_unmake(void *context, unsigned number)
{
	struct async *async = context;

	drop(async, &async->hands[number]);
}

static int async_open_trial_counts(void *context, unsigned number, struct provider_why *why)
{
	struct async *async = context;
	struct provider_count count;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < COUNT_TRIES && (ret == -EAGAIN || ret == -EIO); i++)
		ret = answer_count(async->port.id, async->hands[number].flow, &count, why);
	return ret;
}

static void tell(struct async *async)
{
	trial_tell(&async->trial, &async->base.abilities);
	for (unsigned kind = 0; async->wants_full && kind < PROVIDER_N_KINDS; kind++)
		answer_words(&async->base.abilities.full_refused[kind], ENOTSUP,
			"not by templates and queues");
}

static void async_try_again(struct provider *provider, unsigned number)
{
	struct async *async = (struct async *)provider;
	const struct trial_calls calls = {async_open_trial_make, async_open_trial_unmake,
		async_open_trial_counts, async, provider->stop};

	async->n_silent = 0;
	trial_again(&async->trial, number, &calls);
	tell(async);
}

static void async_free(struct async *async)
{
	struct async_set *sets = &async->sets[0][0][0];

	for (unsigned i = 0; i < sizeof(async->sets) / sizeof(*sets); i++)
		async_set_free(async, &sets[i]);
	free(async->left);
	free(async);
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

static const struct provider_ops async_ops = {.insert = async_insert,
	.remove = async_remove_rule,
	.query = async_query,
	.poll = async_poll,
	.next_shape = async_next_shape,
	.try_again = async_try_again,
	.flush = async_flush,
	.reset = async_reset,
	.close = async_close_it};

static int create_it(struct async **made, const struct provider_config *config)
{
	struct async *async =
		calloc(1, sizeof(*async) + config->n_places * sizeof(async->places[0]));

	if (async == NULL)
		return -ENOMEM;
	async->base.ops = &async_ops;
	async->base.stop = config->stop;
	async->n_places = config->n_places;
	async->queue_size = async_queue_size(config->port_id);
	shape_port_read(&async->port, config);
	async->left = calloc(async->queue_size + 1, sizeof(*async->left));
	if (async->left == NULL) {
		free(async);
		return -ENOMEM;
	}
	*made = async;
	return 0;
}

int provider_open_async(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told)
{
	struct trial_calls calls = {async_open_trial_make, async_open_trial_unmake,
		async_open_trial_counts, NULL, config->stop};
	struct provider_config marks = *config;
	struct async *async;
	int ret = create_it(&async, config);

	marks.full = false;

	if (ret < 0)
		return ret;
	calls.context = async;
	if (async->queue_size == 0 || !trial_run(&async->trial, &async->port, &marks, &calls)) {
		trial_tell(&async->trial, told);
		async_free(async);
		return -EOPNOTSUPP;
	}
	async->pushed = async->serial;
	async->base.abilities = *told;
	async->wants_full = config->full;
	tell(async);
	async->base.abilities.back_end = "rte_flow async";
	*provider = &async->base;
	return 0;
}
