/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One list of rules in place of another: random lists after one another decide as if each had been the first one, what
 * stands in both keeps its count and number, and a thread that decides beside meets one list or the other, never a mixture.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/monotonic.h"
#include "unit/rules_scene.h"

#define POOL 96
#define MAX_LIST 48
#define ROUNDS 400
#define KEYS 60
#define MAX_TEXT (MAX_LIST * 160)

static uint64_t random_state = 1;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

/* Numbers of a pool of different rules, in the order of a list. */
struct numbers {
	unsigned n, of[MAX_LIST];
};

static char pool[POOL][256];

static void fill_pool(void)
{
	for (unsigned i = 0; i < POOL; i++) {
		const unsigned bits = 24 + below(9);
		char port[32] = "", ttl[32] = "";

		if (below(3) == 0)
			snprintf(port, sizeof(port), " / udp dst is %u", 1 + below(3));
		if (below(8) == 0)
			snprintf(ttl, sizeof(ttl), " ttl is %u", 63 + below(2));
		snprintf(pool[i], sizeof(pool[i]),
			"flow create %u priority %u %s pattern eth / ipv4 dst spec 10.0.0.%u dst "
			"prefix %u%s%s / "
			"end actions mark id %u / end",
			below(2), below(3), below(2) == 0 ? "ingress" : "transfer", below(16), bits,
			ttl, port, i);
	}
}

static size_t text_of(const struct numbers *numbers, char text[MAX_TEXT])
{
	size_t length = 0;

	for (unsigned i = 0; i < numbers->n; i++)
		length += (size_t)snprintf(
			text + length, MAX_TEXT - length, "%s\n", pool[numbers->of[i]]);
	return length;
}

static bool has(const struct numbers *numbers, unsigned number)
{
	for (unsigned i = 0; i < numbers->n; i++)
		if (numbers->of[i] == number)
			return true;
	return false;
}

static void insert_one(struct numbers *numbers)
{
	const unsigned number = below(POOL), at = below(numbers->n + 1);

	if (numbers->n == MAX_LIST || has(numbers, number))
		return;
	memmove(&numbers->of[at + 1], &numbers->of[at], (numbers->n - at) * sizeof(numbers->of[0]));
	numbers->of[at] = number;
	numbers->n++;
}

static void remove_one(struct numbers *numbers)
{
	const unsigned at = numbers->n == 0 ? 0 : below(numbers->n);

	if (numbers->n == 0)
		return;
	numbers->n--;
	memmove(&numbers->of[at], &numbers->of[at + 1], (numbers->n - at) * sizeof(numbers->of[0]));
}

static void swap_two(struct numbers *numbers)
{
	if (numbers->n == 0)
		return;
	const unsigned a = below(numbers->n), b = below(numbers->n), kept = numbers->of[a];

	numbers->of[a] = numbers->of[b];
	numbers->of[b] = kept;
}

/* A few changes, or another list altogether. */
static void change(struct numbers *numbers)
{
	unsigned n = below(10) == 0 ? 200 : below(4);

	if (below(20) == 0)
		numbers->n = 0;
	for (; n > 0; n--) {
		switch (below(3)) {
		case 0:
			insert_one(numbers);
			break;
		case 1:
			remove_one(numbers);
			break;
		default:
			swap_two(numbers);
			break;
		}
	}
}

static void replace_by(
	struct rules *rules, const char *text, size_t length, struct rules_change *change)
{
	struct rules_list *list;
	struct error error;

	assert_int_equal(rules_list_create(rules, &list), 0);
	assert_int_equal(rules_list_read(rules, list, "list", text, length, NULL, NULL, &error), 0);
	assert_int_equal(rules_replace(rules, list, change, &error), 0);
}

static struct flow_key random_key(void)
{
	struct flow_key key = {
		.addr = {{10, 0, 0, (uint8_t)below(16)}, {10, 0, 0, (uint8_t)below(16)}},
		.port = {rte_cpu_to_be_16((uint16_t)(1 + below(3))),
			rte_cpu_to_be_16((uint16_t)(1 + below(3)))},
		.proto = 17,
		.version_wire = 0x40,
	};

	return key;
}

static const char *rule_text(const struct rules *rules, uint32_t slot)
{
	struct rules_view view;

	if (slot == RULES_NONE)
		return "none";
	assert_int_equal(rules_get_slot(rules, slot, &view), 0);
	return view.text;
}

static void no_step(void *context, const struct rules_step *step)
{
	(void)context;
	(void)step;
}

/* Both decide the same, of flows and of packets. */
static void compare_decisions(struct rules *rules, struct rules *plain)
{
	static const uint16_t port[2] = {0, 1};

	for (unsigned i = 0; i < KEYS; i++) {
		const struct flow_key key = random_key();
		struct flow_decision one = {.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}}, other = one;
		struct classifier_header header;

		rules_decide(rules, &key, port, &one);
		rules_decide(plain, &key, port, &other);
		for (unsigned from = 0; from < 2; from++) {
			assert_int_equal(one.verdict[from], other.verdict[from]);
			assert_int_equal(one.mark[from], other.mark[from]);
			assert_string_equal(
				rule_text(rules, one.rule[from] == FLOW_RULE_NONE ? RULES_NONE
										  : one.rule[from]),
				rule_text(plain, other.rule[from] == FLOW_RULE_NONE
							 ? RULES_NONE
							 : other.rule[from]));
			rules_header_of_flow(
				rules, &key, from, port[from], (struct flow_packet_ct){0}, &header);
			header.ttl = (uint8_t)(63 + below(2));
			header.eth_type = 0x0800;
			const uint32_t a = rules_trace(rules, &header, true, no_step, NULL);
			const uint32_t b = rules_trace(plain, &header, true, no_step, NULL);

			assert_string_equal(rule_text(rules, a), rule_text(plain, b));
		}
		assert_int_equal(one.by_port, other.by_port);
	}
}

/* The counts and numbers of the pool's rules; those that are in no list have counted nothing. */
struct memory {
	uint64_t packets[POOL];
	uint32_t number[POOL];
	bool there[POOL];
};

static unsigned number_of_text(const char *text)
{
	unsigned i = 0;

	while (i < POOL && strcmp(pool[i], text) != 0)
		i++;
	assert_in_range(i, 0, POOL - 1);
	return i;
}

static void check_memory(struct rules *rules, struct memory *memory, const struct numbers *numbers)
{
	struct rules_view view;
	uint32_t from = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < POOL; i++)
		if (!has(numbers, i))
			memory->there[i] = false;
	while (from != RULES_NONE) {
		if (rules_list(rules, RULES_NO_PORT, &from, &view, 1) == 0)
			continue;
		const unsigned i = number_of_text(view.text);

		n++;
		assert_true(has(numbers, i));
		assert_int_equal(numbers->of[view.line - 1], i);
		if (memory->there[i]) {
			assert_int_equal(view.number, memory->number[i]);
		} else {
			memory->packets[i] = 0;
			memory->number[i] = view.number;
			memory->there[i] = true;
		}
		assert_int_equal(view.count.packets, memory->packets[i]);
		rules_count_packets(rules, 0, view.slot, 0, i + 1, 1);
		memory->packets[i] += i + 1;
	}
	assert_int_equal(n, numbers->n);
}

/* Text, order and priority say all: as many rules are unchanged as the two lists have in common, or fewer are moved. */
static void check_change(const struct rules_change *change, const struct numbers *before,
	const struct numbers *after)
{
	unsigned common = 0;

	for (unsigned i = 0; i < after->n; i++)
		common += has(before, after->of[i]);
	assert_int_equal(change->n[RULES_UNCHANGED] + change->n[RULES_MOVED], common);
	assert_int_equal(change->n[RULES_ADDED], after->n - common);
	assert_int_equal(change->n[RULES_REMOVED], before->n - common);
}

static void test_random_lists(void **state)
{
	static struct rules_scene scene, plain;
	static struct memory memory;
	static char text[MAX_TEXT];
	struct numbers numbers = {0}, before;
	struct rules_change said;
	unsigned moved = 0, unchanged = 0;

	(void)state;
	fill_pool();
	scene_open(&scene, MAX_LIST, false);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct error error;
		uint32_t added;

		before = numbers;
		change(&numbers);
		const size_t length = text_of(&numbers, text);

		replace_by(scene.rules, text, length, &said);
		check_change(&said, &before, &numbers);
		moved += said.n[RULES_MOVED];
		unchanged += said.n[RULES_UNCHANGED];
		assert_int_equal(rules_epoch(scene.rules), 2 * round + 2);
		scene_open(&plain, MAX_LIST, false);
		assert_int_equal(rules_load_bytes(plain.rules, "list", text, length, &added, NULL,
					 NULL, &error),
			0);
		compare_decisions(scene.rules, plain.rules);
		scene_settle(&scene);
		assert_false(rules_unsettled(scene.rules));
		compare_decisions(scene.rules, plain.rules);
		check_memory(scene.rules, &memory, &numbers);
		scene_close(&plain);
		/* the same list again changes nothing */
		replace_by(scene.rules, text, length, &said);
		assert_int_equal(said.n[RULES_UNCHANGED], numbers.n);
	}
	assert_true(moved > 0 && unchanged > 10 * moved);
	scene_close(&scene);
}

/* Flows that a rule drops have another verdict; what no rule matches is forwarded. */
static uint16_t verdict_of(struct rules *rules, unsigned last, unsigned udp_port)
{
	static const uint16_t port[2] = {0, 1};
	const struct flow_key key = {
		.addr = {{10, 0, 0, 200}, {10, 0, 0, (uint8_t)last}},
		.port = {rte_cpu_to_be_16(1), rte_cpu_to_be_16((uint16_t)udp_port)},
		.proto = 17,
		.version_wire = 0x40,
	};
	struct flow_decision decision = {.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}};

	rules_decide(rules, &key, port, &decision);
	return decision.verdict[0];
}

/* The text of all rules in force, one a line. */
static const char *list_text(const struct rules *rules)
{
	static char text[65536];
	struct rules_view view;
	uint32_t from = 0;
	size_t length = 0;

	text[0] = '\0';
	while (from != RULES_NONE)
		if (rules_list(rules, RULES_NO_PORT, &from, &view, 1) == 1)
			length += (size_t)snprintf(
				text + length, sizeof(text) - length, "%s\n", view.text);
	return text;
}

#define DROP(dst)                                                                               \
	"flow create 0 ingress pattern eth / ipv4 dst is 10.0.0." #dst " / end actions drop / " \
	"end\n"

static void test_wrong_lists_change_nothing(void **state)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{DROP(1) "flow create 0 ingress pattern eth / ipv5 / end actions drop / end\n",
			"list:2:37: ipv5: a pattern item is needed here; did you mean ipv4?"},
		{DROP(1) DROP(2) "flow create 9 ingress pattern eth / end actions drop / end\n",
			"list:3:13: port 9: "},
		{DROP(1) "flow destroy 0 rule 0\n", "list:2:1: a list of rules has only lines of "
						    "flow create, of set, and those that "
						    "make meters and indirect actions"},
		{DROP(1) "flow create 0 ingress pattern eth / ipv4 from_set is nobody / end "
			 "actions drop / end\n",
			"list:2:"},
		{DROP(1) "flow create 0 ingress pattern eth / end actions meter mtr_id 4 / end\n",
			"list:2:"},
	};
	static struct rules_scene scene;
	struct rules_change said;
	struct rules_list *list;
	struct error error;

	(void)state;
	scene_open(&scene, 4, false);
	replace_by(scene.rules, DROP(7) DROP(8), strlen(DROP(7) DROP(8)), &said);
	for (unsigned i = 0; i < RTE_DIM(wrong); i++) {
		assert_int_equal(rules_list_create(scene.rules, &list), 0);
		assert_int_equal(rules_list_read(scene.rules, list, "list", wrong[i].text,
					 strlen(wrong[i].text), NULL, NULL, &error),
			-EBADMSG);
		assert_memory_equal(error.text, wrong[i].error, strlen(wrong[i].error));
		rules_list_destroy(scene.rules, list);
		assert_string_equal(list_text(scene.rules),
			"flow create 0 ingress pattern eth / ipv4 dst is 10.0.0.7 / end actions "
			"drop / end\n"
			"flow create 0 ingress pattern eth / ipv4 dst is 10.0.0.8 / end actions "
			"drop / end\n");
		assert_int_equal(rules_epoch(scene.rules), 2);
	}
	/* too many */
	assert_int_equal(rules_list_create(scene.rules, &list), 0);
	assert_int_equal(
		rules_list_read(scene.rules, list, "list", DROP(1) DROP(2) DROP(3) DROP(4) DROP(5),
			strlen(DROP(1)) * 5, NULL, NULL, &error),
		0);
	assert_int_equal(rules_replace(scene.rules, list, &said, &error), -ENOSPC);
	assert_string_equal(
		error.text, "no room: the list has 5 rules, and there can be 4 (rules.max)");
	rules_list_destroy(scene.rules, list);
	assert_int_equal(verdict_of(scene.rules, 7, 1), FLOW_VERDICT_DROP);
	assert_int_equal(verdict_of(scene.rules, 1, 1), FLOW_VERDICT_FORWARD);
	/* as many as there can be, all of them others, have room */
	replace_by(scene.rules, DROP(1) DROP(2) DROP(3) DROP(4), strlen(DROP(1)) * 4, &said);
	scene_settle(&scene);
	replace_by(scene.rules, DROP(5) DROP(6) DROP(7) DROP(8), strlen(DROP(1)) * 4, &said);
	assert_int_equal(said.n[RULES_ADDED], 4);
	scene_close(&scene);
}

static void test_there_is_a_way_back(void **state)
{
	static struct rules_scene scene;
	struct rules_change said;
	struct rules_stats stats;
	struct error error;

	(void)state;
	scene_open(&scene, 8, false);
	assert_int_equal(rules_go_back(scene.rules, &said, &error), -ENOENT);
	replace_by(scene.rules, DROP(1) DROP(2), strlen(DROP(1)) * 2, &said);
	/* what came alone is of the list before, too */
	scene_command(&scene, "flow create 0 ingress pattern eth / ipv4 dst is 10.0.0.3 / end "
			      "actions drop / end");
	rules_count_packets(scene.rules, 0, 1, 0, 5, 500);
	replace_by(scene.rules, DROP(2) DROP(9), strlen(DROP(1)) * 2, &said);
	assert_int_equal(said.n[RULES_UNCHANGED], 1);
	assert_int_equal(said.n[RULES_REMOVED], 2);
	assert_int_equal(verdict_of(scene.rules, 1, 1), FLOW_VERDICT_FORWARD);
	assert_int_equal(verdict_of(scene.rules, 9, 1), FLOW_VERDICT_DROP);
	rules_stats(scene.rules, &stats);
	assert_int_equal(stats.before, 3);
	assert_int_equal(rules_go_back(scene.rules, &said, &error), 0);
	assert_int_equal(said.n[RULES_ADDED], 2);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(verdict_of(scene.rules, i, 1), FLOW_VERDICT_DROP);
	assert_int_equal(verdict_of(scene.rules, 9, 1), FLOW_VERDICT_FORWARD);
	assert_non_null(strstr(scene_command(&scene, "flow query 0 1 count"), "hits 5,"));
	assert_int_equal(rules_go_back(scene.rules, &said, &error), -ENOENT);
	assert_int_equal(rules_epoch(scene.rules), 4);
	scene_close(&scene);
}

/* Equal words mean something else behind another line of `set`; what rules share is made once. */
static void test_meaning_counts_not_words(void **state)
{
#define CAP(dst)                                                                                \
	"set vxlan ip-version ipv4 vni 4 udp-src 1 udp-dst 4789 ip-src 10.0.0.1 ip-dst "        \
	"10.0.0." #dst " eth-src 02:00:00:00:00:01 eth-dst 02:00:00:00:00:02\n"                 \
	"flow create 0 ingress pattern eth / ipv4 dst is 10.0.0.5 / end actions vxlan_encap / " \
	"port_id id 1 / end\n"
#define METER                                                                                      \
	"add port meter profile srtcm_rfc2697 0 1 1250000 50000 0 0\n"                             \
	"add port meter policy 0 1 g_actions end y_actions end r_actions drop / end\n"             \
	"create port meter 0 5 1 1 yes 0 yes\n"                                                    \
	"flow indirect_action 0 create action_id 7 ingress action count / end\n"                   \
	"flow create 0 ingress pattern eth / ipv4 dst is 10.0.0.6 / end actions meter mtr_id 5 / " \
	"indirect 7 / end\n"
	static struct rules_scene scene;
	struct rules_change said;
	struct rules_list *list;
	struct error error;

	(void)state;
	scene_open(&scene, 8, false);
	replace_by(scene.rules, CAP(8) METER, strlen(CAP(8) METER), &said);
	assert_int_equal(said.n[RULES_ADDED], 2);
	replace_by(scene.rules, CAP(8) METER, strlen(CAP(8) METER), &said);
	assert_int_equal(said.n[RULES_UNCHANGED], 2);
	replace_by(scene.rules, CAP(9) METER, strlen(CAP(9) METER), &said);
	assert_int_equal(said.n[RULES_UNCHANGED], 1);
	assert_int_equal(said.n[RULES_ADDED], 1);
	/* the same name for another meter */
	assert_int_equal(rules_list_create(scene.rules, &list), 0);
	assert_int_equal(rules_list_read(scene.rules, list, "list",
				 "add port meter profile srtcm_rfc2697 0 1 2500000 50000 0 0\n", 59,
				 NULL, NULL, &error),
		-EBADMSG);
	assert_string_equal(error.text, "list:1:1: meter profile 1 of port 0 is there already");
	rules_list_destroy(scene.rules, list);
	/* what a list made that did not come in force is gone again */
	assert_int_equal(rules_list_create(scene.rules, &list), 0);
	assert_int_equal(rules_list_read(scene.rules, list, "list",
				 "add port meter profile srtcm_rfc2697 0 2 2500000 50000 0 0\n", 59,
				 NULL, NULL, &error),
		0);
	rules_list_destroy(scene.rules, list);
	assert_non_null(strstr(scene_command(&scene, "del port meter profile 0 2"), "there is no"));
	scene_close(&scene);
}

/*
 * Beside a thread that decides. Rules of both lists let flow 1 through, each by a rule of its own; both drop flows 2 and 4, each by
 * rules of its own. A mixture of the lists would drop the one, or let the other through.
 */

#define LIVE_US 400000
#define FILLERS 200

static atomic_bool stop;

struct decider {
	struct rules_scene *scene;
	unsigned long n, wrong, kinds[2];
};

static void *decide(void *context)
{
	struct decider *decider = context;
	struct rules *rules = decider->scene->rules;

	rte_rcu_qsbr_thread_register(decider->scene->qsbr, 0);
	rte_rcu_qsbr_thread_online(decider->scene->qsbr, 0);
	while (!atomic_load(&stop)) {
		decider->wrong += verdict_of(rules, 1, 7) == FLOW_VERDICT_DROP;
		decider->wrong += verdict_of(rules, 2, 7) != FLOW_VERDICT_DROP;
		decider->wrong += verdict_of(rules, 4, 7) != FLOW_VERDICT_DROP;
		decider->kinds[verdict_of(rules, 3, 7) == FLOW_VERDICT_DROP]++;
		decider->n++;
		rte_rcu_qsbr_quiescent(decider->scene->qsbr, 0);
	}
	rte_rcu_qsbr_thread_offline(decider->scene->qsbr, 0);
	rte_rcu_qsbr_thread_unregister(decider->scene->qsbr, 0);
	return NULL;
}

#define FOR(dst) "transfer pattern eth / ipv4 dst is 10.0.0." #dst

/* Flow 4 is let through by a rule of one list, in a group that only a rule of the other list jumps to. */
static const char *const ends[2] = {
	"flow create 0 " FOR(
		1) " / udp dst is 7 / end actions mark id 1 / end\n"
		   "flow create 0 " FOR(
			   2) " / end actions drop / end\n"
			      "flow create 0 group 1 " FOR(
				      4) " / end actions mark id 4 / end\n"
					 "flow create 0 priority 2 " FOR(
						 4) " / end actions drop / end\n"
						    "flow create 0 transfer pattern eth / ipv4 dst "
						    "spec 10.0.0.0 dst prefix 30 / end actions "
						    "drop / end\n",
	"flow create 0 " FOR(
		1) " / udp src is 1 / end actions mark id 1 / end\n"
		   "flow create 0 " FOR(
			   2) " / udp / end actions drop / end\n"
			      "flow create 0 " FOR(
				      4) " / end actions jump group 1 / end\n"
					 "flow create 0 group 1 priority 5 " FOR(
						 4) " / end actions drop / end\n"
						    "flow create 0 transfer pattern eth / ipv4 dst "
						    "spec 10.0.0.0 dst prefix 31 / end actions "
						    "drop / end\n",
};

/* The lists differ in every rule, in their order, and in whether there are rules by packet. */
static size_t live_text(char *text, size_t size, unsigned which)
{
	size_t length = 0;

	for (unsigned i = 0; i < FILLERS; i++)
		length += (size_t)snprintf(text + length, size - length,
			"flow create 0 ingress pattern eth / ipv4 dst is 10.%u.0.%u%s / end "
			"actions drop / end\n",
			1 + which, i, which == 1 && i % 50 == 0 ? " ttl is 3" : "");
	return length + (size_t)snprintf(text + length, size - length, "%s", ends[which]);
}

static void test_never_a_mixture(void **state)
{
	static char text[2][FILLERS * 120];
	static struct rules_scene scene;
	struct decider decider = {.scene = &scene};
	size_t length[2];
	struct rules_change said;
	struct error error;
	pthread_t thread;
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		length[i] = live_text(text[i], sizeof(text[i]), i);
	scene_open(&scene, FILLERS + 8, false);
	replace_by(scene.rules, text[0], length[0], &said);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, decide, &decider), 0);
	for (const uint64_t end = monotonic_us() + LIVE_US; monotonic_us() < end || n < 4;) {
		struct rules_list *list;
		int ret;

		assert_int_equal(rules_list_create(scene.rules, &list), 0);
		assert_int_equal(rules_list_read(scene.rules, list, "list", text[!(n & 1)],
					 length[!(n & 1)], NULL, NULL, &error),
			0);
		ret = rules_replace(scene.rules, list, &said, &error);
		if (ret < 0) {
			assert_int_equal(ret, -EAGAIN);
			rules_list_destroy(scene.rules, list);
			scene_settle(&scene);
			continue;
		}
		assert_int_equal(said.n[RULES_ADDED], FILLERS + 5);
		n++;
		scene_settle(&scene);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_true(decider.n > 0 && decider.kinds[0] > 0 && decider.kinds[1] > 0);
	assert_int_equal(decider.wrong, 0);
	printf("%u lists, %lu decisions\n", n, decider.n);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_lists),
		cmocka_unit_test(test_wrong_lists_change_nothing),
		cmocka_unit_test(test_there_is_a_way_back),
		cmocka_unit_test(test_meaning_counts_not_words),
		cmocka_unit_test(test_never_a_mixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
