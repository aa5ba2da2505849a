/* SPDX-License-Identifier: BSD-3-Clause */

/* The classifier with readers beside its writer. */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/monotonic.h"

#include "unit/classifier_scene.h"

#define N_READERS 2
#define N_HEADERS 256
#define RUN_US 300000
#define MORE_RULES 500

/* Ids: of rules that stay, of those that come and go before them, and of those that never win. */
#define STAYS 1000
#define COMES 2000
#define LOSES 9000

struct reader {
	const struct classifier *classifier;
	unsigned number;
	unsigned long n_found, n_wrong, n_seen;
};

static atomic_bool stop;

static uint32_t address_of(unsigned i)
{
	return 0x0a000000 | i << 7 | (i * 37 & 0x7f);
}

static struct classifier_header header_of(unsigned i)
{
	struct classifier_header header = {
		.version = 4, .proto = 6, .src = {address_of(i)}, .dst = {i % 7}, .dst_port = 80};

	if (i % 3 == 0) {
		header.version = 6;
		header.src[3] = i;
	}
	return header;
}

/* Every third for IPv6; among the others some with ranges, some without prefixes. */
static struct classifier_rule rule_of(unsigned i, uint32_t id, bool first)
{
	struct classifier_header header = header_of(i);
	struct classifier_rule rule = rule_v4(id, header.src[0], first ? 32 : 26, 0, 0);

	rule.priority = first ? 1 : 2;
	if (i % 3 == 0) {
		rule.value.version = 6;
		memcpy(rule.value.src, header.src, sizeof(header.src));
		mask_of_length(rule.mask.src, first ? 128 : 120);
	}
	if (i % 5 == 0)
		rule.dst_port = (struct classifier_range){80, 80};
	if (i % 5 == 1)
		rule.dst_port = (struct classifier_range){70, 90};
	return rule;
}

static void *read_rules(void *context)
{
	struct reader *reader = context;
	struct classifier_header headers[N_HEADERS];
	const struct classifier_header *pointers[N_HEADERS];
	uint32_t ids[N_HEADERS];

	for (unsigned i = 0; i < N_HEADERS; i++) {
		headers[i] = header_of(i);
		pointers[i] = &headers[i];
	}
	rte_rcu_qsbr_thread_register(scene_qsbr, reader->number);
	rte_rcu_qsbr_thread_online(scene_qsbr, reader->number);
	while (!atomic_load(&stop)) {
		classifier_find_burst(reader->classifier, 0, pointers, ids, N_HEADERS);
		for (unsigned i = 0; i < N_HEADERS; i++) {
			reader->n_seen += ids[i] == COMES + i;
			reader->n_wrong += ids[i] != COMES + i && ids[i] != STAYS + i;
		}
		reader->n_found += N_HEADERS;
		rte_rcu_qsbr_quiescent(scene_qsbr, reader->number);
	}
	rte_rcu_qsbr_thread_offline(scene_qsbr, reader->number);
	rte_rcu_qsbr_thread_unregister(scene_qsbr, reader->number);
	return NULL;
}

static void add_staying(struct classifier *classifier)
{
	for (unsigned i = 0; i < N_HEADERS; i++) {
		struct classifier_rule rule = rule_of(i, STAYS + i, false);

		/* a header's own, or else that of another in the same prefix would do as well */
		mask_of_length(rule.mask.src, rule.value.version == 6 ? 128 : 32);
		assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	}
}

/* Adds and removes, as long as readers let it; returns how many. */
static unsigned long change(struct classifier *classifier)
{
	static uint32_t handles[N_HEADERS], more[MORE_RULES];
	struct numbers numbers = {.state = 5};
	uint64_t end = monotonic_us() + RUN_US;
	unsigned long n = 0;

	memset(handles, 0xff, sizeof(handles));
	memset(more, 0xff, sizeof(more));
	while (monotonic_us() < end) {
		unsigned i = number_below(&numbers, N_HEADERS);
		unsigned j = number_below(&numbers, MORE_RULES);
		struct classifier_rule rule = rule_of(i, COMES + i, true);
		int ret = 0;

		if (handles[i] == UINT32_MAX) {
			ret = classifier_add(classifier, &rule, &handles[i]);
		} else {
			assert_int_equal(classifier_remove(classifier, handles[i]), 0);
			handles[i] = UINT32_MAX;
		}
		assert_true(ret == 0 || ret == -EAGAIN);
		n += ret == 0;
		rule = random_rule(&numbers, RULES_V6 | RULES_MASKS | RULES_FIELDS, LOSES + j);
		rule.priority += 3;
		if (more[j] == UINT32_MAX) {
			ret = classifier_add(classifier, &rule, &more[j]);
		} else {
			assert_int_equal(classifier_remove(classifier, more[j]), 0);
			more[j] = UINT32_MAX;
		}
		assert_true(ret == 0 || ret == -EAGAIN);
		n += ret == 0;
	}
	return n;
}

static void test_readers(void **state)
{
	struct classifier *classifier = scene_classifier(2048);
	struct reader readers[N_READERS];
	pthread_t threads[N_READERS];

	(void)state;
	add_staying(classifier);
	atomic_store(&stop, false);
	for (unsigned i = 0; i < N_READERS; i++) {
		readers[i] = (struct reader){.classifier = classifier, .number = i};
		assert_int_equal(pthread_create(&threads[i], NULL, read_rules, &readers[i]), 0);
	}
	unsigned long changes = change(classifier);

	atomic_store(&stop, true);
	for (unsigned i = 0; i < N_READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(readers[i].n_found > 0);
		assert_int_equal(readers[i].n_wrong, 0);
	}
	assert_true(changes > 0);
	classifier_destroy(classifier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
