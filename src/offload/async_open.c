/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port takes by templates. Nothing that anybody awaits is under way while this is tried. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "offload/answer.h"
#include "offload/async_parts.h"

#define AWAIT_US 250000
#define SILENT_MAX 8
#define PUSH_TRIES 8
#define DROP_TRIES 8
#define PULL_EACH 32
#define COUNT_TRIES 8

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

void async_try_again(struct provider *provider, unsigned number)
{
	struct async *async = (struct async *)provider;
	const struct trial_calls calls = {async_open_trial_make, async_open_trial_unmake,
		async_open_trial_counts, async, provider->stop};

	async->n_silent = 0;
	trial_again(&async->trial, number, &calls);
	tell(async);
}

void async_free(struct async *async)
{
	struct async_set *sets = &async->sets[0][0][0];

	for (unsigned i = 0; i < sizeof(async->sets) / sizeof(*sets); i++)
		async_set_free(async, &sets[i]);
	free(async->left);
	free(async);
}

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
