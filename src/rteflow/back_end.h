/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The inside of a provider, for back ends: that of rte_flow (back_end.c), and those of tests. */

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
	void (*try_again)(struct provider *provider, unsigned number);
	/* NULL: it never has a rule */
	int (*flush)(struct provider *provider, struct provider_why *why);
	void (*reset)(struct provider *provider);
	uint32_t (*close)(struct provider *provider);
};

struct provider {
	const struct provider_ops *ops; /* NULL: it takes no rules, as its abilities say */
	const atomic_bool *stop;	/* struct provider_config */
	struct provider_abilities abilities;
};

/*
 * Opens the port with its flow queue, or by calls that wait. 0, -ENOMEM, or -EOPNOTSUPP: the port takes no rules that
 * way; `told` then has what it said to each kind, and one sentence.
 */
int back_end_open(struct provider **provider, const struct provider_config *config, bool queued,
	struct provider_abilities *told);
