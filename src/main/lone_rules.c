/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/lone_rules.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_rcu_qsbr.h>

#include "action/program.h"

int lone_rules_create(
	struct lone_rules *lone, const struct rules_config *config, struct error *error)
{
	const size_t size = RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(config->n_workers), (size_t)64);
	struct rules_config whole = *config;
	struct hash_secret own;
	int ret = config->secret == NULL ? hash_secret_init(&own) : 0;

	lone->qsbr = aligned_alloc(64, size);
	if (lone->qsbr == NULL || rte_rcu_qsbr_init(lone->qsbr, config->n_workers) != 0)
		ret = -ENOMEM;
	if (ret == 0) {
		/* and the one that drops */
		lone->programs = programs_create(
			RTE_MIN(config->max_rules + 1, (uint32_t)PROGRAMS_MAX), lone->qsbr);
		ret = lone->programs == NULL ? -errno : programs_make_drop(lone->programs);
	}
	if (ret == 0) {
		whole.programs = lone->programs;
		whole.qsbr = lone->qsbr;
		if (whole.secret == NULL)
			whole.secret = &own;
		ret = rules_create(&lone->rules, &whole);
	}
	return ret < 0 ? error_set(error, ret, "no memory for %u rules", config->max_rules) : 0;
}

void lone_rules_fini(struct lone_rules *lone)
{
	rules_destroy(lone->rules);
	programs_destroy(lone->programs);
	free(lone->qsbr);
	*lone = (struct lone_rules){0};
}
