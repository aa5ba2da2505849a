/* SPDX-License-Identifier: BSD-3-Clause */

/* Bytes as adds, removes, changes of sets and look-ups, against the plain reference. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/classifier_reference.h"

#define MAX_RULES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct reference reference;
static struct classifier *classifier;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void make(void)
{
	static const struct hash_secret secret = {.word = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37}};
	static struct rte_rcu_qsbr *qsbr;

	if (!qsbr) {
		size_t size = (rte_rcu_qsbr_get_memsize(1) + 63) / 64 * 64;

		qsbr = aligned_alloc(64, size);
		check(qsbr && rte_rcu_qsbr_init(qsbr, 1) == 0, "qsbr");
	}
	struct classifier_config config = {
		.max_rules = MAX_RULES,
		.max_wide = MAX_RULES,
		.max_groups = REFERENCE_GROUPS,
		.max_sets = REFERENCE_SETS,
		.max_prefixes = REFERENCE_MAX_PREFIXES,
		.secret = &secret,
		.qsbr = qsbr,
	};

	check(classifier_create(&classifier, &config) == 0, "create");
	for (uint32_t i = 1; i <= REFERENCE_SETS; i++) {
		char name[2] = {(char)('a' + i), '\0'};
		uint32_t set;

		check(classifier_set_open(classifier, name, &set) == 0 && set == i, "set");
	}
	memset(&reference, 0, sizeof(reference));
}

static void add(struct numbers *numbers)
{
	struct classifier_rule rule = random_rule(numbers, RULES_ALL, (uint32_t)reference.age);
	uint32_t handle, shadow;
	struct error error;
	int ret = classifier_add(classifier, &rule, &handle);

	check(ret == (reference.n == MAX_RULES ? -ENOSPC : 0), "add");
	if (ret == 0)
		reference_add(&reference, &rule, handle);
	classifier_contradiction(classifier, &rule, &error);
	classifier_shadow(classifier, &rule, CLASSIFIER_NONE, &shadow);
}

static void remove_rule(struct numbers *numbers)
{
	if (reference.n == 0)
		return;
	unsigned at = number_below(numbers, reference.n);

	check(classifier_remove(classifier, reference.entries[at].handle) == 0, "remove");
	reference_remove(&reference, at);
}

static void add_prefix(struct numbers *numbers)
{
	bool v6 = number_below(numbers, 2);
	struct classifier_prefix prefix = {
		.version = v6 ? 6 : 4, .length = (uint8_t)number_below(numbers, v6 ? 129 : 33)};
	uint32_t set = 1 + number_below(numbers, REFERENCE_SETS);

	if (reference.n_prefixes == REFERENCE_MAX_PREFIXES)
		return;
	random_address(numbers, v6, prefix.addr);
	int ret = classifier_set_add(classifier, set, &prefix);

	check(ret == 0 || ret == 1, "set add");
	if (ret == 0)
		reference.prefixes[reference.n_prefixes++] = (struct reference_prefix){set, prefix};
}

static void remove_prefix(struct numbers *numbers)
{
	if (reference.n_prefixes == 0)
		return;
	unsigned at = number_below(numbers, reference.n_prefixes);
	struct reference_prefix *gone = &reference.prefixes[at];

	check(classifier_set_remove(classifier, gone->set, &gone->prefix) == 0, "set remove");
	*gone = reference.prefixes[--reference.n_prefixes];
}

static void ignore_step(void *context, const struct classifier_step *step)
{
	(void)context;
	check(classifier_field_name(step->field) != NULL, "name");
}

static void look_up(struct numbers *numbers)
{
	struct classifier_header header = random_header(numbers, RULES_ALL);
	uint32_t group = number_below(numbers, REFERENCE_GROUPS);

	if (reference.n > 0 && number_below(numbers, 4) != 0)
		header = header_of_rule(numbers, RULES_ALL,
			&reference.entries[number_below(numbers, reference.n)].rule);
	uint32_t expected = reference_find(&reference, group, &header);

	check(classifier_find(classifier, group, &header) == expected, "find");
	check(classifier_trace(classifier, group, &header, ignore_step, NULL) == expected, "trace");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct numbers numbers = {.bytes = data, .n_bytes = size};

	make();
	while (numbers.n_bytes > 0) {
		switch (number_below(&numbers, 8)) {
		case 0:
		case 1:
		case 2:
			add(&numbers);
			break;
		case 3:
			remove_rule(&numbers);
			break;
		case 4:
			add_prefix(&numbers);
			break;
		case 5:
			remove_prefix(&numbers);
			break;
		default:
			look_up(&numbers);
			break;
		}
	}
	for (unsigned i = 0; i < 16; i++)
		look_up(&numbers);
	classifier_destroy(classifier);
	return 0;
}
