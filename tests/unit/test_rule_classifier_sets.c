/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The classifier with the bench's sets of 10,000 rules, real ones where there are files of them, against a search
 * from the first rule to the last: whole, then with a third of the rules removed, then with these added again.
 * CLASSIFIER_PAIRS is how many headers are looked up in all.
 */

#include "bench/classify.h"
#include "unit/classifier_scene.h"

#define BURST CLASSIFIER_BURST

struct scene {
	struct classify_set set;
	struct classifier *classifier;
	uint32_t *handles; /* CLASSIFIER_NONE: removed */
	uint64_t random;
	unsigned long matched;
};

/* Rules of IPv4's five fields, in the order of their priorities. */
static uint32_t first_match(const struct scene *scene, const struct classifier_header *header)
{
	for (uint32_t i = 0; i < scene->set.n; i++) {
		const struct classifier_rule *rule = &scene->set.rules[i];

		if (((header->src[0] ^ rule->value.src[0]) & rule->mask.src[0]) == 0 &&
			((header->dst[0] ^ rule->value.dst[0]) & rule->mask.dst[0]) == 0 &&
			((header->proto ^ rule->value.proto) & rule->mask.proto) == 0 &&
			header->src_port >= rule->src_port.first &&
			header->src_port <= rule->src_port.last &&
			header->dst_port >= rule->dst_port.first &&
			header->dst_port <= rule->dst_port.last &&
			scene->handles[i] != CLASSIFIER_NONE)
			return i;
	}
	return CLASSIFIER_NONE;
}

static void look_up(struct scene *scene, unsigned long n)
{
	struct classifier_header headers[BURST];
	const struct classifier_header *pointers[BURST];
	uint32_t ids[BURST];

	for (unsigned i = 0; i < BURST; i++)
		pointers[i] = &headers[i];
	for (unsigned long at = 0; at < n; at += BURST) {
		classify_headers(&scene->set, &scene->random, headers, BURST);
		/* every eighth of no rule in particular */
		for (unsigned i = 0; i < BURST; i += 8)
			headers[i].dst[0] = (uint32_t)classify_random(&scene->random);
		classifier_find_burst(scene->classifier, 0, pointers, ids, BURST);
		for (unsigned i = 0; i < BURST; i++) {
			assert_int_equal(ids[i], first_match(scene, &headers[i]));
			scene->matched += ids[i] != CLASSIFIER_NONE;
		}
	}
}

static void add(struct scene *scene, uint32_t i)
{
	assert_int_equal(
		classifier_add(scene->classifier, &scene->set.rules[i], &scene->handles[i]), 0);
}

static void check_set(const char *name, unsigned long n)
{
	struct scene scene = {.random = 3};

	assert_int_equal(classify_set_make(&scene.set, name, 10000), 0);
	scene.handles = calloc(scene.set.n, sizeof(*scene.handles));
	assert_non_null(scene.handles);
	scene.classifier = scene_classifier(scene.set.n);
	for (uint32_t i = 0; i < scene.set.n; i++)
		add(&scene, i);
	look_up(&scene, n / 2);
	for (uint32_t i = 0; i < scene.set.n; i += 3) {
		assert_int_equal(classifier_remove(scene.classifier, scene.handles[i]), 0);
		scene.handles[i] = CLASSIFIER_NONE;
	}
	look_up(&scene, n / 4);
	/* from the last one on: the tuples come in another order */
	for (uint32_t i = scene.set.n; i-- > 0;)
		if (scene.handles[i] == CLASSIFIER_NONE)
			add(&scene, i);
	look_up(&scene, n / 4);
	assert_true(scene.matched > n / 2);
	classifier_destroy(scene.classifier);
	free(scene.handles);
	classify_set_free(&scene.set);
}

static void test_sets(void **state)
{
	const char *asked = getenv("CLASSIFIER_PAIRS");
	unsigned long pairs = asked ? strtoul(asked, NULL, 10) : 56000;
	unsigned n = 0;

	(void)state;
	while (classify_sets[n])
		n++;
	for (unsigned i = 0; i < n; i++)
		check_set(classify_sets[i], pairs / n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
