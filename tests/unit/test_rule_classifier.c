/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The classifier against its reference, and what it refuses. CLASSIFIER_PAIRS is how many headers are
 * looked up in sets of random rules: 300,000 unless it is given.
 */

#include <errno.h>
#include <stdio.h>

#include "unit/classifier_scene.h"

#define MAX_RULES 400
#define BURST 70

static struct reference reference;

static struct classifier_header packet(uint32_t src, uint32_t dst, uint16_t dst_port)
{
	return (struct classifier_header){
		.src = {src}, .dst = {dst}, .version = 4, .proto = 6, .dst_port = dst_port};
}

/* The reference. */

struct differential {
	struct classifier *classifier;
	struct numbers numbers;
	unsigned kinds;
	uint32_t next_id;
	unsigned long looked_up, matched;
};

static void add_one(struct differential *differential)
{
	struct classifier_rule rule =
		random_rule(&differential->numbers, differential->kinds, differential->next_id++);
	uint32_t handle;

	if (reference.n == MAX_RULES)
		return;
	/* now and then one that is there already, or nearly so */
	if (reference.n > 0 && number_below(&differential->numbers, 8) == 0) {
		uint32_t at = number_below(&differential->numbers, reference.n);
		struct classifier_rule twin = reference.entries[at].rule;

		twin.id = rule.id;
		if (number_below(&differential->numbers, 2))
			twin.dst_port = rule.dst_port;
		rule = twin;
	}
	assert_int_equal(classifier_add(differential->classifier, &rule, &handle), 0);
	reference_add(&reference, &rule, handle);
}

static void remove_one(struct differential *differential)
{
	if (reference.n == 0)
		return;
	unsigned at = number_below(&differential->numbers, reference.n);
	uint32_t handle = reference.entries[at].handle;

	assert_int_equal(classifier_remove(differential->classifier, handle), 0);
	assert_int_equal(classifier_remove(differential->classifier, handle), -ENOENT);
	reference_remove(&reference, at);
}

static void change_set(struct differential *differential)
{
	struct numbers *numbers = &differential->numbers;
	bool v6 = (differential->kinds & RULES_V6) && number_below(numbers, 2);
	struct classifier_prefix prefix = {
		.version = v6 ? 6 : 4, .length = (uint8_t)(number_below(numbers, v6 ? 129 : 33))};
	uint32_t set = 1 + number_below(numbers, REFERENCE_SETS);

	if (reference.n_prefixes > 0 && number_below(numbers, 3) == 0) {
		unsigned at = number_below(numbers, reference.n_prefixes);
		struct reference_prefix *gone = &reference.prefixes[at];

		assert_int_equal(
			classifier_set_remove(differential->classifier, gone->set, &gone->prefix),
			0);
		*gone = reference.prefixes[--reference.n_prefixes];
		return;
	}
	random_address(numbers, v6, prefix.addr);
	int ret = classifier_set_add(differential->classifier, set, &prefix);

	assert_true(ret == 0 || ret == 1 || ret == -ENOSPC);
	if (ret == 0)
		reference.prefixes[reference.n_prefixes++] = (struct reference_prefix){set, prefix};
}

static void ignore_step(void *context, const struct classifier_step *step)
{
	unsigned *n = context;

	*n += step->kind == CLASSIFIER_STEP_FOUND;
	assert_non_null(classifier_field_name(step->field));
}

static void look_up(struct differential *differential)
{
	struct numbers *numbers = &differential->numbers;
	struct classifier_header headers[BURST];
	const struct classifier_header *pointers[BURST];
	uint32_t ids[BURST], group = 0;
	unsigned n = 1 + number_below(numbers, BURST);

	if (differential->kinds & RULES_GROUPS)
		group = number_below(numbers, REFERENCE_GROUPS);
	for (unsigned i = 0; i < n; i++) {
		pointers[i] = &headers[i];
		if (reference.n > 0 && number_below(numbers, 4) > 0)
			headers[i] = header_of_rule(numbers, differential->kinds,
				&reference.entries[number_below(numbers, reference.n)].rule);
		else
			headers[i] = random_header(numbers, differential->kinds);
	}
	classifier_find_burst(differential->classifier, group, pointers, ids, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t expected = reference_find(&reference, group, &headers[i]);

		assert_int_equal(ids[i], expected);
		differential->matched += expected != CLASSIFIER_NONE;
	}
	differential->looked_up += n;
	unsigned groups = 0;

	assert_int_equal(classifier_find(differential->classifier, group, &headers[0]), ids[0]);
	assert_int_equal(classifier_trace(differential->classifier, group, &headers[0], ignore_step,
				 &groups),
		ids[0]);
	assert_true(groups >= 1 && groups <= REFERENCE_GROUPS);
}

/* A rule with a shadow never wins, whatever comes. */
static void check_shadows(struct differential *differential)
{
	for (unsigned i = 0; i < reference.n; i++) {
		const struct reference_entry *entry = &reference.entries[i];
		struct classifier_rule stored;
		uint32_t handle;

		assert_int_equal(
			classifier_get(differential->classifier, entry->handle, &stored), 0);
		assert_int_equal(stored.id, entry->rule.id);
		if (classifier_shadow(
			    differential->classifier, &entry->rule, entry->handle, &handle) != 0)
			continue;
		assert_int_not_equal(handle, entry->handle);
		for (unsigned j = 0; j < 20; j++) {
			struct classifier_header header = header_of_rule(
				&differential->numbers, differential->kinds, &entry->rule);

			assert_int_not_equal(reference_find(&reference, entry->rule.group, &header),
				entry->rule.id);
		}
	}
}

static void compare(unsigned kinds, unsigned long pairs)
{
	struct differential differential = {
		.classifier = scene_classifier(MAX_RULES),
		.numbers = {.state = 1000 + kinds},
		.kinds = kinds,
	};
	struct classifier_stats stats;

	memset(&reference, 0, sizeof(reference));
	for (uint32_t i = 1; i <= REFERENCE_SETS; i++) {
		char name[8];
		uint32_t set;

		snprintf(name, sizeof(name), "set%u", i);
		assert_int_equal(classifier_set_open(differential.classifier, name, &set), 0);
		assert_int_equal(set, i);
	}
	for (unsigned step = 0; differential.looked_up < pairs; step++) {
		bool grows = step / 400 % 3 != 2;
		unsigned changes = number_below(&differential.numbers, 8);

		for (unsigned i = 0; i < changes; i++)
			(number_below(&differential.numbers, 8) < (grows ? 6 : 2)
					? add_one
					: remove_one)(&differential);
		if (kinds & RULES_SETS)
			change_set(&differential);
		look_up(&differential);
		if (step % 500 == 250)
			check_shadows(&differential);
	}
	assert_true(differential.matched > pairs / 10);
	while (reference.n > 0)
		remove_one(&differential);
	classifier_stats(differential.classifier, &stats);
	assert_int_equal(stats.rules, 0);
	assert_int_equal(stats.tuples, 0);
	assert_int_equal(stats.wide, 0);
	assert_int_equal(stats.passing, 0);
	classifier_destroy(differential.classifier);
}

static void test_differential(void **state)
{
	static const unsigned kinds[] = {0, RULES_RANGES, RULES_MASKS, RULES_MASKS | RULES_RANGES,
		RULES_V6, RULES_V6 | RULES_MASKS, RULES_FIELDS, RULES_SETS, RULES_GROUPS,
		RULES_ANY | RULES_V6, RULES_ANY | RULES_FIELDS | RULES_V6, RULES_ALL};
	const char *asked = getenv("CLASSIFIER_PAIRS");
	unsigned long pairs = asked ? strtoul(asked, NULL, 10) : 300000;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(kinds); i++)
		compare(kinds[i], pairs / RTE_DIM(kinds));
}

/* Priorities, and what else a rule says. */

static void test_order(void **state)
{
	struct classifier *classifier = scene_classifier(16);
	struct classifier_rule rule = rule_v4(7, 0x0a000000, 8, 0, 0);
	struct classifier_header header = packet(0x0a010203, 1, 80);
	uint32_t handle, second;

	(void)state;
	assert_int_equal(classifier_find(classifier, 0, &header), CLASSIFIER_NONE);
	rule.priority = 5;
	assert_int_equal(classifier_add(classifier, &rule, &handle), 0);
	assert_int_equal(classifier_find(classifier, 0, &header), 7);
	/* an equal priority comes later, a lower number first */
	rule.id = 8;
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	assert_int_equal(classifier_find(classifier, 0, &header), 7);
	rule = rule_v4(9, 0, 0, 0, 0);
	assert_int_equal(classifier_add(classifier, &rule, &second), 0);
	assert_int_equal(classifier_find(classifier, 0, &header), 9);
	assert_int_equal(classifier_remove(classifier, second), 0);
	assert_int_equal(classifier_remove(classifier, handle), 0);
	assert_int_equal(classifier_find(classifier, 0, &header), 8);
	assert_int_equal(classifier_find(classifier, 1, &header), CLASSIFIER_NONE);
	assert_int_equal(classifier_find(classifier, REFERENCE_GROUPS, &header), CLASSIFIER_NONE);
	classifier_destroy(classifier);
}

static void test_jump(void **state)
{
	struct classifier *classifier = scene_classifier(16);
	struct classifier_rule rule = rule_v4(1, 0x0a000000, 8, 0, 0);
	struct classifier_header header = packet(0x0a010203, 1, 80);

	(void)state;
	rule.jump = 2;
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	/* what nothing in the other group matches has no rule, though others match here */
	rule.jump = 0;
	rule.priority = 1;
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	assert_int_equal(classifier_find(classifier, 0, &header), CLASSIFIER_NONE);
	rule = rule_v4(3, 0, 0, 1, 32);
	rule.group = 2;
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	assert_int_equal(classifier_find(classifier, 0, &header), 3);
	rule.jump = 2;
	assert_int_equal(classifier_add(classifier, &rule, NULL), -ELOOP);
	rule.group = 1;
	rule.jump = REFERENCE_GROUPS;
	assert_int_equal(classifier_add(classifier, &rule, NULL), -EINVAL);
	classifier_destroy(classifier);
}

static void test_refused(void **state)
{
	struct classifier *classifier = scene_classifier(4);
	struct classifier_rule rule = rule_v4(1, 0, 0, 0, 0), wrong = rule;
	uint32_t handles[4];

	(void)state;
	wrong.priority = CLASSIFIER_MAX_PRIORITY + 1;
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -EINVAL);
	wrong = rule;
	wrong.id = CLASSIFIER_NONE;
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -EINVAL);
	wrong = rule;
	wrong.src_port = (struct classifier_range){2, 1};
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -EINVAL);
	wrong = rule;
	wrong.group = REFERENCE_GROUPS;
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -EINVAL);
	wrong = rule;
	wrong.mask.version = 0;
	wrong.mask.src[0] = 1;
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -EINVAL);
	wrong = rule;
	wrong.mask.dst[3] = 1;
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -EINVAL);
	wrong = rule;
	wrong.src_set = 1;
	assert_int_equal(classifier_add(classifier, &wrong, NULL), -ENOENT);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(classifier_add(classifier, &rule, &handles[i]), 0);
	assert_int_equal(classifier_add(classifier, &rule, NULL), -ENOSPC);
	assert_int_equal(classifier_remove(classifier, handles[2]), 0);
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	assert_int_equal(classifier_remove(classifier, 4000), -ENOENT);
	classifier_destroy(classifier);
}

static void test_create(void **state)
{
	struct classifier_config config = scene_config(10000);
	struct classifier *classifier;

	(void)state;
	config.max_wide = 0;
	config.max_sets = config.max_prefixes = 0;
	config.max_groups = 1;
	assert_int_equal(classifier_create(&classifier, &config), 0);
	assert_true(classifier_memory(classifier) < 10000 * 200);
	struct classifier_rule rule = rule_v4(1, 1, 32, 2, 32);

	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	/* a wide one */
	rule.mask.ttl = 1;
	assert_int_equal(classifier_add(classifier, &rule, NULL), -ENOSPC);
	classifier_destroy(classifier);
	classifier_destroy(NULL);
	config.max_rules = 0;
	assert_int_equal(classifier_create(&classifier, &config), -EINVAL);
	config.max_rules = CLASSIFIER_MAX_RULES + 1;
	assert_int_equal(classifier_create(&classifier, &config), -EINVAL);
	config.max_rules = 1;
	config.max_groups = 0;
	assert_int_equal(classifier_create(&classifier, &config), -EINVAL);
}

/* A reader that does not pass keeps the memory of what was removed. */
static void test_passing(void **state)
{
	struct classifier *classifier = scene_classifier(64);
	struct classifier_rule rule = rule_v4(1, 0, 0, 0, 0);
	struct classifier_stats stats;
	unsigned n = 0;
	uint32_t handle;
	int ret;

	(void)state;
	rte_rcu_qsbr_thread_register(scene_qsbr, 0);
	rte_rcu_qsbr_thread_online(scene_qsbr, 0);
	while ((ret = classifier_add(classifier, &rule, &handle)) == 0 && n < 1000) {
		assert_int_equal(classifier_remove(classifier, handle), 0);
		n++;
	}
	assert_int_equal(ret, -EAGAIN);
	classifier_stats(classifier, &stats);
	assert_int_equal(stats.passing, n);
	rte_rcu_qsbr_quiescent(scene_qsbr, 0);
	assert_int_equal(classifier_add(classifier, &rule, &handle), 0);
	classifier_stats(classifier, &stats);
	assert_int_equal(stats.passing, 0);
	rte_rcu_qsbr_thread_offline(scene_qsbr, 0);
	rte_rcu_qsbr_thread_unregister(scene_qsbr, 0);
	classifier_destroy(classifier);
}

/* More kinds of rules than there are tuples: each is found all the same. */
static void test_many_tuples(void **state)
{
	struct classifier *classifier = scene_classifier(20000);
	struct classifier_stats stats;
	unsigned n = 0;

	(void)state;
	for (unsigned src = 0; src <= 32; src++)
		for (unsigned dst = 0; dst <= 32; dst++)
			for (unsigned flags = 0; flags < 16; flags++) {
				struct classifier_rule rule =
					rule_v4(n++, 0xc0a80101, src, 0x0a010101, dst);

				rule.priority = 64 - src - dst;
				rule.mask.proto = flags & 1 ? UINT8_MAX : 0;
				rule.mask.in_port = flags & 2 ? UINT16_MAX : 0;
				rule.mask.vlan = flags & 4 ? 0x1fff : 0;
				rule.dst_port.first = flags & 8 ? UINT16_MAX : 0;
				assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
			}
	classifier_stats(classifier, &stats);
	assert_int_equal(stats.rules, n);
	assert_true(stats.tuples <= 128);
	struct classifier_header header = packet(0xc0a80101, 0x0a010101, 80);

	assert_int_equal(classifier_find(classifier, 0, &header), (33 * 33 - 1) * 16);
	header.src[0] ^= 1;
	assert_int_equal(classifier_find(classifier, 0, &header), (33 * 32 - 1) * 16);
	classifier_destroy(classifier);
}

/* Sets. */

static void test_million_addresses(void **state)
{
	struct classifier_config config = scene_config(16);
	struct classifier *classifier;
	uint32_t set, other;

	(void)state;
	config.max_prefixes = 1000000;
	assert_int_equal(classifier_create(&classifier, &config), 0);
	assert_int_equal(classifier_set_open(classifier, "bad", &set), 0);
	assert_int_equal(classifier_set_open(classifier, "other", &other), 0);
	assert_int_not_equal(set, other);
	for (uint32_t i = 0; i < 1000000; i++) {
		struct classifier_prefix prefix = {.addr = {i * 3}, .version = 4, .length = 32};

		assert_int_equal(classifier_set_add(classifier, set, &prefix), 0);
	}
	struct classifier_prefix prefix = {.addr = {1}, .version = 4, .length = 32};

	assert_int_equal(classifier_set_add(classifier, set, &prefix), -ENOSPC);
	struct classifier_rule rule = rule_v4(5, 0, 0, 0, 0);

	rule.src_set = set;
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		struct classifier_header header = packet(i * 2999, 1, 80);

		assert_int_equal(classifier_find(classifier, 0, &header),
			i * 2999 % 3 == 0 ? 5 : CLASSIFIER_NONE);
	}
	prefix.addr[0] = 3;
	assert_int_equal(classifier_set_remove(classifier, set, &prefix), 0);
	assert_int_equal(classifier_set_remove(classifier, set, &prefix), -ENOENT);
	assert_int_equal(classifier_set_close(classifier, set), -EBUSY);
	assert_int_equal(classifier_set_close(classifier, other), 0);
	assert_int_equal(classifier_set_close(classifier, other), -ENOENT);
	classifier_destroy(classifier);
}

/* Traces and checks. */

struct told {
	unsigned n[CLASSIFIER_STEP_FOUND + 1];
	enum classifier_field field;
	uint32_t id;
};

static void tell(void *context, const struct classifier_step *step)
{
	struct told *told = context;

	told->n[step->kind]++;
	if (step->kind == CLASSIFIER_STEP_RULE || step->kind == CLASSIFIER_STEP_FILTERED)
		told->field = step->field;
	told->id = step->id;
}

static void test_trace(void **state)
{
	struct classifier *classifier = scene_classifier(16);
	struct classifier_rule rule = rule_v4(1, 0x0a000000, 24, 0, 0);
	struct classifier_header header = packet(0x0a000001, 1, 80);
	struct told told = {.n = {0}};

	(void)state;
	rule.dst_port = (struct classifier_range){1000, 2000};
	assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	assert_int_equal(classifier_trace(classifier, 0, &header, tell, &told), CLASSIFIER_NONE);
	assert_int_equal(told.n[CLASSIFIER_STEP_PROBED], 1);
	assert_int_equal(told.n[CLASSIFIER_STEP_RULE], 1);
	assert_int_equal(told.field, CLASSIFIER_FIELD_DST_PORT);
	assert_string_equal(classifier_field_name(told.field), "dst_port");
	assert_int_equal(told.id, CLASSIFIER_NONE);

	/* the filter lets an address through by chance now and then */
	for (unsigned i = 0; i < 64; i++) {
		told = (struct told){.n = {0}};
		header.src[0] = 0x0b000001 + (i << 16);
		assert_int_equal(
			classifier_trace(classifier, 0, &header, tell, &told), CLASSIFIER_NONE);
		if (told.n[CLASSIFIER_STEP_FILTERED] == 1)
			break;
	}
	assert_int_equal(told.n[CLASSIFIER_STEP_FILTERED], 1);
	assert_int_equal(told.n[CLASSIFIER_STEP_NOT_TRIED], 1);
	assert_int_equal(told.field, CLASSIFIER_FIELD_SRC);

	told = (struct told){.n = {0}};
	header.src[0] = 0x0a000001;
	header.dst_port = 1500;
	assert_int_equal(classifier_trace(classifier, 0, &header, tell, &told), 1);
	assert_int_equal(told.field, CLASSIFIER_FIELD_NONE);
	assert_int_equal(told.id, 1);
	assert_int_equal(told.n[CLASSIFIER_STEP_NOT_TRIED], 0);
	classifier_destroy(classifier);
}

/* The numbers of rules that were named though they were not compared, in the order in which they were. */
struct named {
	uint32_t id[64];
	unsigned n;
	uint32_t more;
};

static void take_named(void *context, const struct classifier_step *step)
{
	struct named *named = context;

	if (step->kind == CLASSIFIER_STEP_MORE)
		named->more += step->n;
	if (step->kind != CLASSIFIER_STEP_NOT_TRIED)
		return;
	assert_int_equal(step->field, CLASSIFIER_FIELD_SRC);
	named->id[named->n++] = step->id;
}

/* Of many rules of a kind the first ones are named, by priority; and none that comes after the one that was found. */
static void test_not_tried(void **state)
{
	struct classifier *classifier = scene_classifier(64);
	struct classifier_header header = packet(0x0a001e01, 1, 80);
	struct named named = {.n = 0};

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		struct classifier_rule rule = rule_v4(i, 0x0a000000 + (i << 8), 24, 0, 0);

		rule.priority = 100 - i;
		assert_int_equal(classifier_add(classifier, &rule, NULL), 0);
	}
	/* rules 31 to 39 come before number 30, which it is */
	assert_int_equal(classifier_trace(classifier, 0, &header, take_named, &named), 30);
	assert_int_equal(named.n, 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(named.id[i], 39 - i);
	assert_int_equal(named.more, 32);
	named = (struct named){.n = 0};
	header.src[0] = 0x0a002501;
	assert_int_equal(classifier_trace(classifier, 0, &header, take_named, &named), 37);
	assert_int_equal(named.n, 2);
	assert_int_equal(named.more, 0);
	classifier_destroy(classifier);
}

/* Behind a rule the search goes on with those after it, in its group and in those that they jump to. */
static void test_trace_behind(void **state)
{
	struct classifier *classifier = scene_classifier(64);
	const struct classifier_header header = packet(0x0a000001, 1, 80);
	struct told told = {.n = {0}};
	uint32_t handle[4];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct classifier_rule rule = rule_v4(i, 0x0a000000, i == 2 ? 8 : 24, 0, 0);

		rule.priority = i;
		rule.jump = i == 2 ? 1 : 0;
		rule.group = i == 3 ? 1 : 0;
		assert_int_equal(classifier_add(classifier, &rule, &handle[i]), 0);
	}
	assert_int_equal(classifier_trace(classifier, 0, &header, tell, &told), 0);
	assert_int_equal(classifier_trace_behind(classifier, handle[0], &header, tell, &told), 1);
	told = (struct told){.n = {0}};
	assert_int_equal(classifier_trace_behind(classifier, handle[1], &header, tell, &told), 3);
	assert_int_equal(told.n[CLASSIFIER_STEP_GROUP], 2);
	assert_int_equal(classifier_trace_behind(classifier, handle[3], &header, tell, &told),
		CLASSIFIER_NONE);
	assert_int_equal(classifier_remove(classifier, handle[3]), 0);
	assert_int_equal(classifier_trace_behind(classifier, handle[3], &header, tell, &told),
		CLASSIFIER_NONE);
	classifier_destroy(classifier);
}

static void test_shadow(void **state)
{
	struct classifier *classifier = scene_classifier(16);
	struct classifier_rule wide = rule_v4(1, 0x0a000000, 8, 0, 0);
	struct classifier_rule narrow = rule_v4(2, 0x0a010000, 16, 5, 32);
	uint32_t handle, second, found;

	(void)state;
	assert_int_equal(classifier_add(classifier, &wide, &handle), 0);
	assert_int_equal(classifier_shadow(classifier, &narrow, CLASSIFIER_NONE, &found), 0);
	assert_int_equal(found, handle);
	assert_int_equal(classifier_add(classifier, &narrow, &second), 0);
	assert_int_equal(classifier_shadow(classifier, &narrow, second, &found), 0);
	assert_int_equal(classifier_shadow(classifier, &wide, handle, &found), -ENOENT);
	/* it comes first */
	wide.priority = 1;
	assert_int_equal(classifier_shadow(classifier, &wide, CLASSIFIER_NONE, &found), 0);
	narrow.src_port = (struct classifier_range){1, 1};
	assert_int_equal(classifier_remove(classifier, handle), 0);
	assert_int_equal(classifier_shadow(classifier, &wide, CLASSIFIER_NONE, &found), -ENOENT);
	/* rules of every version hide those of one */
	struct classifier_rule any = classifier_rule_any(3);

	any.group = narrow.group = 1;
	assert_int_equal(classifier_add(classifier, &any, &handle), 0);
	assert_int_equal(classifier_shadow(classifier, &narrow, CLASSIFIER_NONE, &found), 0);
	assert_int_equal(found, handle);
	classifier_destroy(classifier);
}

static void test_contradiction(void **state)
{
	struct classifier *classifier = scene_classifier(16);
	struct classifier_rule rule = rule_v4(1, 5, 32, 0, 0);
	struct classifier_prefix prefix = {.addr = {6}, .version = 4, .length = 32};
	struct error error;
	uint32_t set;

	(void)state;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), 0);
	rule.mask.proto = UINT8_MAX;
	rule.value.proto = 17;
	rule.value.tcp_flags = rule.mask.tcp_flags = 2;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "TCP flags"));
	rule.mask.tcp_flags = 0;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), 0);
	rule.value.proto = 58;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	rule.value.proto = 47;
	rule.dst_port = (struct classifier_range){80, 80};
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	rule.value.proto = 6;
	rule.mask.eth_type = UINT16_MAX;
	rule.value.eth_type = 0x86dd;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	rule.value.eth_type = 0x0800;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), 0);
	rule.mask.vlan = CLASSIFIER_TAGGED;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), 0);
	rule.value.vlan = CLASSIFIER_TAGGED;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "VLAN tag"));
	rule.value.eth_type = 0x8100;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), 0);
	rule.value.vlan = 0;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	rule.mask.vlan = 0;
	rule.value.eth_type = 0x0806;
	rule.mask.version = 0;
	rule.mask.src[0] = rule.mask.dst[0] = 0;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "protocol of IP"));
	rule = rule_v4(1, 5, 32, 0, 0);
	assert_int_equal(classifier_set_open(classifier, "s", &set), 0);
	rule.src_set = set;
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	assert_int_equal(classifier_set_add(classifier, set, &prefix), 0);
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), -EBADMSG);
	prefix.length = 30;
	assert_int_equal(classifier_set_add(classifier, set, &prefix), 0);
	assert_int_equal(classifier_contradiction(classifier, &rule, &error), 0);
	classifier_destroy(classifier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differential),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_many_tuples),
		cmocka_unit_test(test_million_addresses),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_not_tried),
		cmocka_unit_test(test_trace_behind),
		cmocka_unit_test(test_shadow),
		cmocka_unit_test(test_contradiction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
