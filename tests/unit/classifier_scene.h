/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the classifier's tests begin with: a classifier, its RCU variable and its reference. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rte_common.h>

#include "rule/classifier.h"
#include "unit/classifier_reference.h"

static struct rte_rcu_qsbr *scene_qsbr;

static inline struct classifier_config scene_config(uint32_t max_rules)
{
	static struct hash_secret secret;

	if (!scene_qsbr) {
		size_t size = RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(4), (size_t)64);

		scene_qsbr = aligned_alloc(64, size);
		assert_non_null(scene_qsbr);
		assert_int_equal(rte_rcu_qsbr_init(scene_qsbr, 4), 0);
		assert_int_equal(hash_secret_init(&secret), 0);
	}
	return (struct classifier_config){
		.max_rules = max_rules,
		.max_wide = max_rules,
		.max_groups = REFERENCE_GROUPS,
		.max_sets = REFERENCE_SETS,
		.max_prefixes = REFERENCE_MAX_PREFIXES,
		.secret = &secret,
		.qsbr = scene_qsbr,
	};
}

static inline struct classifier *scene_classifier(uint32_t max_rules)
{
	struct classifier_config config = scene_config(max_rules);
	struct classifier *classifier;

	assert_int_equal(classifier_create(&classifier, &config), 0);
	return classifier;
}

/* A rule for IPv4 with prefixes, in host order. */
static inline struct classifier_rule rule_v4(
	uint32_t id, uint32_t src, unsigned src_length, uint32_t dst, unsigned dst_length)
{
	struct classifier_rule rule = classifier_rule_any(id);

	rule.value.version = 4;
	rule.mask.version = UINT8_MAX;
	rule.value.src[0] = src;
	rule.value.dst[0] = dst;
	mask_of_length(rule.mask.src, src_length);
	mask_of_length(rule.mask.dst, dst_length);
	return rule;
}
