/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The inside of a provider: what each back end is made of. For the back ends and for tests only. */

#include "rteflow/provider.h"

/* The calls of provider.h; a back end's own struct begins with struct provider. */
struct provider_ops {
	int (*insert)(struct provider *provider, uint32_t place, const struct offload_rule *rule,
		struct provider_why *why);
	int (*remove)(struct provider *provider, uint32_t place, struct provider_why *why);
	int (*query)(struct provider *provider, uint32_t place, struct provider_count *count,
		struct provider_why *why);
	/* NULL: there is none */
	bool (*last_count)(struct provider *provider, uint32_t place, struct provider_count *count);
	unsigned (*poll)(struct provider *provider, struct provider_done *done, unsigned max);
	bool (*next_shape)(struct provider *provider, enum provider_kind kind);
	/* NULL: nothing is kept of what was tried, and another is opened instead */
	void (*try_again)(struct provider *provider, unsigned number);
	/* NULL: it never has a rule */
	int (*flush)(struct provider *provider, struct provider_why *why);
	void (*reset)(struct provider *provider);
	uint32_t (*close)(struct provider *provider);
};

struct provider {
	const struct provider_ops *ops;
	const atomic_bool *stop; /* struct provider_config */
	struct provider_abilities abilities;
};

/*
 * Back ends. 0, -ENOMEM, or -EOPNOTSUPP: the port takes no rules that way; `told` then has what it said to
 * each kind, and one sentence.
 */
int provider_open_sync(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told);
int provider_open_async(struct provider **provider, const struct provider_config *config,
	struct provider_abilities *told);
/* Takes nothing, for the reasons that are told. */
int provider_open_none(struct provider **provider, const struct provider_abilities *told);

/* Of a port that is configured and not started: flow queues for rules by templates. */
bool provider_prepare_async(uint16_t port_id, uint32_t n_places);
