/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end of ports that take no rules. */
#include <errno.h>
#include <stdlib.h>

#include "offload/answer.h"
#include "offload/provider_ops.h"

static int refuse(const struct provider *provider, struct provider_why *why)
{
	answer_words(why, ENOTSUP, provider->abilities.unable);
	return -EOPNOTSUPP;
}

static int insert(struct provider *provider, uint32_t place, const struct offload_rule *rule,
	struct provider_why *why)
{
	(void)place;
	(void)rule;
	return refuse(provider, why);
}

static int remove_rule(struct provider *provider, uint32_t place, struct provider_why *why)
{
	(void)place;
	return refuse(provider, why);
}

static int query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why)
{
	(void)place;
	(void)count;
	return refuse(provider, why);
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
	(void)provider;
	(void)kind;
	return false;
}

static void reset(struct provider *provider)
{
	(void)provider;
}

static uint32_t close_it(struct provider *provider)
{
	free(provider);
	return 0;
}

static const struct provider_ops ops = {.insert = insert,
	.remove = remove_rule,
	.query = query,
	.poll = poll,
	.next_shape = next_shape,
	.reset = reset,
	.close = close_it};

int provider_open_none(struct provider **provider, const struct provider_abilities *told)
{
	struct provider *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return -ENOMEM;
	made->ops = &ops;
	made->abilities = *told;
	made->abilities.back_end = "none";
	*provider = made;
	return 0;
}
