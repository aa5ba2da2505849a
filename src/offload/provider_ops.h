/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The inside of a provider: what each back end is made of. For the back ends and for tests only. */

#include "offload/provider.h"

/* The calls of provider.h; a back end's own struct begins with struct provider. */
struct provider_ops {
	int (*insert)(struct provider *provider, uint32_t place, const struct offload_rule *rule,
		struct provider_why *why);
	int (*remove)(struct provider *provider, uint32_t place, struct provider_why *why);
	int (*query)(struct provider *provider, uint32_t place, struct provider_count *count,
		struct provider_why *why);
	unsigned (*poll)(struct provider *provider, struct provider_done *done, unsigned max);
	bool (*next_shape)(struct provider *provider, enum provider_kind kind);
	void (*reset)(struct provider *provider);
	void (*close)(struct provider *provider);
};

struct provider {
	const struct provider_ops *ops;
	struct provider_abilities abilities;
};
