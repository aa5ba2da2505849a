/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rules NICs may do, as rules come and go: what a change costs in pairs that are compared, how many rules there may
 * be, and random changes against a plain reference.
 */
#include "unit/rules_scene.h"

#define ENOUGH 100000000
#define GIVEN 16384

/* Drops of one address each, and every third rule marks another one. */
static void add_address(struct rules_scene *scene, unsigned number, unsigned priority, bool drops)
{
	char line[200];

	snprintf(line, sizeof(line),
		"flow create 0 ingress priority %u pattern eth / ipv4 src is 10.%u.%u.%u / end "
		"actions %s / end",
		priority, number >> 16, number >> 8 & 255, number & 255,
		drops ? "drop" : "mark id 1");
	assert_non_null(strstr(scene_command(scene, line), "created"));
}

/* What fits has a place with its slot's number. */
static unsigned take_all(struct rules_scene *scene)
{
	struct rules_nic_rule rule;
	unsigned n = 0;

	while (rules_nic_next(scene->rules, &rule)) {
		rules_nic_set(scene->rules, rule.slot, rule.slot);
		n++;
	}
	return n;
}

/* The last of 3,000 rules costs as many pairs as there are rules that do not only drop, and no more. */
static void an_added_rule_is_compared_once(void **state)
{
	struct rules_scene scene;
	unsigned guards = 0;

	(void)state;
	scene_open(&scene, 4096, false);
	assert_int_equal(rules_nic_begin(scene.rules, 4096), 0);
	for (unsigned i = 0; i < 3000; i++) {
		const bool drops = i % 3 != 0;
		const uint64_t before = rules_nic_compared(scene.rules);

		add_address(&scene, i, i % 5, drops);
		assert_false(rules_nic_step(scene.rules, 4096));
		const uint64_t pairs = rules_nic_compared(scene.rules) - before;

		assert_true(pairs <= (drops ? guards : i));
		assert_int_equal(take_all(&scene), drops);
		guards += !drops;
	}
	/* one that comes after all of them is compared with none */
	const uint64_t before = rules_nic_compared(scene.rules);

	add_address(&scene, 1, 7, false);
	assert_false(rules_nic_step(scene.rules, 4096));
	assert_int_equal(rules_nic_compared(scene.rules), before);
	scene_close(&scene);
}

/* Where no NIC takes rules nothing is compared. */
static void without_a_nic_nothing_is_compared(void **state)
{
	struct rules_scene scene;
	struct rules_view view;

	(void)state;
	scene_open(&scene, 64, false);
	for (unsigned i = 0; i < 60; i++)
		add_address(&scene, i, i % 2, i % 3 != 0);
	assert_int_equal(rules_nic_compared(scene.rules), 0);
	assert_int_equal(rules_get(scene.rules, 0, 0, &view), 0);
	assert_int_equal(view.nic, RULE_NIC_ACTIONS);
	assert_int_equal(rules_get(scene.rules, 0, 1, &view), 0);
	assert_int_equal(view.nic, RULE_NIC_FITS);
	scene_close(&scene);
}

/* What is there already is looked at some pairs at a time, and nothing fits that was not compared. */
static void work_is_put_off(void **state)
{
	struct rules_scene scene;
	struct rules_view view;
	unsigned steps = 0, fits = 0;

	(void)state;
	scene_open(&scene, 512, false);
	for (unsigned i = 0; i < 512; i++)
		add_address(&scene, i, 0, i % 2 != 0);
	assert_int_equal(rules_nic_begin(scene.rules, 512), 0);
	bool more = true;

	while (more) {
		const uint64_t before = rules_nic_compared(scene.rules);

		more = rules_nic_step(scene.rules, 100);
		assert_true(rules_nic_compared(scene.rules) - before <= 100);
		assert_int_equal(rules_get(scene.rules, 0, 511, &view), 0);
		assert_int_equal(view.nic, more ? RULE_NIC_PENDING : RULE_NIC_FITS);
		fits += take_all(&scene);
		steps++;
	}
	assert_int_equal(fits, 256);
	assert_true(steps > 256 * 256 / 100);
	scene_close(&scene);
}

static unsigned count_of(const struct rules_scene *scene, enum rule_nic why)
{
	struct rules_view view;
	uint32_t from = 0;
	unsigned n = 0;

	while (from != RULES_NONE)
		n += rules_list(scene->rules, RULES_NO_PORT, &from, &view, 1) == 1 &&
		     view.nic == why;
	return n;
}

/* More rules than there is room for: the first are given to NICs, and the next when one of these goes. */
static void the_first_are_given(void **state)
{
	struct rules_scene scene;
	struct rules_view view;

	(void)state;
	scene_open(&scene, 32768, false);
	for (unsigned i = 0; i < 20000; i++)
		add_address(&scene, i, 0, i % 20 != 0);
	assert_int_equal(rules_nic_begin(scene.rules, GIVEN), 0);
	assert_false(rules_nic_step(scene.rules, ENOUGH));
	assert_int_equal(take_all(&scene), GIVEN);
	assert_int_equal(count_of(&scene, RULE_NIC_FITS), GIVEN);
	assert_int_equal(count_of(&scene, RULE_NIC_MANY), 19000 - GIVEN);
	for (unsigned i = 1; i < 20; i++) {
		assert_int_equal(rules_get(scene.rules, 0, i, &view), 0);
		assert_int_equal(view.nic, RULE_NIC_FITS);
	}
	assert_int_equal(rules_remove(scene.rules, 0, 1, NULL), 0);
	assert_false(rules_nic_step(scene.rules, ENOUGH));
	assert_int_equal(take_all(&scene), 1);
	assert_int_equal(count_of(&scene, RULE_NIC_MANY), 19000 - GIVEN - 1);
	scene_close(&scene);
}

/* Random changes. */

#define N_RULES 40

struct known {
	bool there, drops, placed;
	bool follows; /* replies take its verdict */
	bool by_src;  /* the ports are those of the sender */
	unsigned priority, first, last;
	uint32_t number, slot;
	uint64_t age;
};

struct changes {
	struct rules_scene scene;
	struct known rules[N_RULES];
	uint32_t left[N_RULES]; /* places that a NIC has not let go */
	unsigned n_left, max, placed;
	bool taken[N_RULES]; /* places */
	uint64_t added;
};

static uint64_t random_state = 1;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

/* Ports of the sender and of the receiver are not known to be apart. */
static bool overlap(const struct known *one, bool by_src, const struct known *other)
{
	return by_src != other->by_src || !(one->last < other->first || other->last < one->first);
}

static bool stands_before(const struct known *one, const struct known *other)
{
	if (!one->there || one->drops || !overlap(one, one->by_src, other))
		return false;
	return one->priority < other->priority ||
	       (one->priority == other->priority && one->age < other->age);
}

/* Replies follow the rule whatever else there is, and may be among the other's packets. */
static bool has_replies(const struct known *one, const struct known *other)
{
	return one->there && !one->drops && one->follows && overlap(one, !one->by_src, other);
}

static bool is_behind(const struct changes *changes, const struct known *rule)
{
	for (unsigned i = 0; i < N_RULES; i++)
		if (stands_before(&changes->rules[i], rule) ||
			has_replies(&changes->rules[i], rule))
			return true;
	return false;
}

static void add_random(struct changes *changes, struct known *rule)
{
	struct rules_view view;
	char line[240];

	*rule = (struct known){
		.there = true,
		.drops = below(3) != 0,
		.follows = below(12) == 0,
		.by_src = below(6) == 0,
		.priority = below(4),
		.first = below(60),
		.age = ++changes->added,
	};
	rule->last = rule->first + below(6);
	const char *end = rule->by_src ? "src" : "dst";

	snprintf(line, sizeof(line),
		"flow create 0 ingress priority %u replies %s pattern eth / ipv4 / udp %s spec %u "
		"%s last %u %s mask 65535 / end actions %s / end",
		rule->priority, rule->follows ? "follow" : "match", end, rule->first, end,
		rule->last, end, rule->drops ? "drop" : "mark id 1");
	const char *said = scene_command(&changes->scene, line);

	assert_int_equal(sscanf(said, "Flow rule #%u created", &rule->number), 1);
	assert_int_equal(rules_get(changes->scene.rules, 0, rule->number, &view), 0);
	rule->slot = view.slot;
}

static void change_one(struct changes *changes)
{
	struct known *rule = &changes->rules[below(N_RULES)];

	if (!rule->there) {
		add_random(changes, rule);
		return;
	}
	assert_int_equal(rules_remove(changes->scene.rules, 0, rule->number, NULL), 0);
	/* its place is told by rules_nic_left() */
	rule->there = false;
	scene_settle(&changes->scene);
}

static struct known *rule_of_slot(struct changes *changes, uint32_t slot)
{
	for (unsigned i = 0; i < N_RULES; i++)
		if (changes->rules[i].there && changes->rules[i].slot == slot)
			return &changes->rules[i];
	return NULL;
}

/* As the plane does: leaving first, then places that are free, then rules that get one. */
static void follow(struct changes *changes)
{
	struct rules *rules = changes->scene.rules;
	struct rules_nic_rule rule;
	struct rules_view view;
	uint32_t place;

	while (rules_nic_left(rules, &place)) {
		assert_true(changes->taken[place]);
		changes->left[changes->n_left++] = place;
		for (unsigned i = 0; i < N_RULES; i++)
			if (changes->rules[i].there &&
				rules_get(rules, 0, changes->rules[i].number, &view) == 0 &&
				view.place == place)
				changes->rules[i].placed = false;
	}
	while (changes->n_left > 0 && below(2)) {
		place = changes->left[--changes->n_left];
		changes->taken[place] = false;
		for (unsigned i = 0; i < N_RULES; i++)
			if (changes->rules[i].there &&
				rules_get(rules, 0, changes->rules[i].number, &view) == 0 &&
				view.place == place)
				rules_nic_set(rules, view.slot, RULES_NONE);
	}
	for (place = 0; place < changes->max; place++) {
		if (changes->taken[place])
			continue;
		if (!rules_nic_next(rules, &rule))
			break;
		changes->taken[place] = true;
		rules_nic_set(rules, rule.slot, place);
		rule_of_slot(changes, rule.slot)->placed = true;
	}
}

/* Nothing has a place that is not in its place; and when all is compared, what can has one. */
static void check_places(struct changes *changes, bool complete)
{
	unsigned placed = 0, can = 0;

	for (unsigned i = 0; i < N_RULES; i++) {
		const struct known *rule = &changes->rules[i];
		struct rules_view view;

		if (!rule->there)
			continue;
		const bool behind = is_behind(changes, rule);

		assert_int_equal(rules_get(changes->scene.rules, 0, rule->number, &view), 0);
		can += rule->drops && !behind;
		placed += rule->placed;
		if (rule->placed || view.nic == RULE_NIC_FITS)
			assert_true(rule->drops && !behind);
		if (!rule->drops)
			assert_int_equal(view.nic, RULE_NIC_ACTIONS);
		if (view.nic == RULE_NIC_BEHIND)
			assert_true(stands_before(rule_of_slot(changes, view.behind), rule));
		if (view.nic == RULE_NIC_REPLIES)
			assert_true(has_replies(rule_of_slot(changes, view.behind), rule));
		if (complete)
			assert_int_not_equal(view.nic, RULE_NIC_PENDING);
		changes->placed += rule->placed;
	}
	if (complete && changes->n_left == 0)
		assert_int_equal(placed, can < changes->max ? can : changes->max);
}

static void random_changes(unsigned max, unsigned begin_at)
{
	static struct changes changes;

	memset(&changes, 0, sizeof(changes));
	changes.max = max;
	scene_open(&changes.scene, 64, false);
	for (unsigned i = 0; i < 20000; i++) {
		if (i == begin_at)
			assert_int_equal(rules_nic_begin(changes.scene.rules, max), 0);
		for (unsigned n = 1 + below(2) * below(8); n > 0; n--)
			change_one(&changes);
		if (i < begin_at)
			continue;
		const bool complete = !rules_nic_step(changes.scene.rules, 1 + below(60));

		follow(&changes);
		if (complete && changes.n_left == 0)
			follow(&changes);
		check_places(&changes, complete);
	}
	assert_true(changes.placed > 20000);
	scene_close(&changes.scene);
}

static void random_changes_with_room(void **state)
{
	(void)state;
	random_changes(N_RULES, 0);
}

static void random_changes_with_little_room(void **state)
{
	(void)state;
	random_changes(3, 0);
}

static void random_changes_begun_later(void **state)
{
	(void)state;
	random_changes(N_RULES, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_added_rule_is_compared_once),
		cmocka_unit_test(without_a_nic_nothing_is_compared),
		cmocka_unit_test(work_is_put_off),
		cmocka_unit_test(the_first_are_given),
		cmocka_unit_test(random_changes_with_room),
		cmocka_unit_test(random_changes_with_little_room),
		cmocka_unit_test(random_changes_begun_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
