/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end of ports that take no rules. */
#include <errno.h>
#include <stdlib.h>

#include "rteflow/answer.h"
#include "rteflow/back_end.h"

static int none_refuse(const struct provider *provider, struct provider_why *why)
{
	answer_words(why, ENOTSUP, provider->abilities.unable);
	return -EOPNOTSUPP;
}

static int none_insert(struct provider *provider, uint32_t place, const struct offload_rule *rule,
	struct provider_why *why)
{
	(void)place;
	(void)rule;
	return none_refuse(provider, why);
}

static int none_remove_rule(struct provider *provider, uint32_t place, struct provider_why *why)
{
	(void)place;
	return none_refuse(provider, why);
}

static int none_query(struct provider *provider, uint32_t place, struct provider_count *count,
	struct provider_why *why)
{
	(void)place;
	(void)count;
	return none_refuse(provider, why);
}

static unsigned none_poll(struct provider *provider, struct provider_done *done, unsigned max)
{
	(void)provider;
	(void)done;
	(void)max;
	return 0;
}

static bool none_next_shape(struct provider *provider, enum provider_kind kind)
{
	(void)provider;
	(void)kind;
	return false;
}

static void none_reset(struct provider *provider)
{
	(void)provider;
}

static uint32_t none_close_it(struct provider *provider)
{
	free(provider);
	return 0;
}

static const struct provider_ops ops = {.insert = none_insert,
	.remove = none_remove_rule,
	.query = none_query,
	.poll = none_poll,
	.next_shape = none_next_shape,
	.reset = none_reset,
	.close = none_close_it};

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
