/* SPDX-License-Identifier: BSD-3-Clause */

/* Which of the simulated NIC's rules a packet meets, and that rules come and go at their speed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "drivers/flowsim/match/table.h"

#define PORT 3
#define MAX_RULES 64

static struct sim_table *table;
static uint64_t serial;
static struct rte_flow *rules[MAX_RULES];
static unsigned n_rules;

/* What a rule is to be; the rest of it is `any UDP packet from this address`. */
struct wanted {
	enum sim_domain domain;
	uint32_t group, priority;
	uint32_t src, mask; /* IPv4, host order; mask 0: any packet at all */
	struct sim_actions actions;
};

static int setup(void **state)
{
	(void)state;
	table = sim_table_create(NULL);
	serial = 0;
	n_rules = 0;
	return table == NULL;
}

static void take_out(struct rte_flow *rule)
{
	if (rule->in_table)
		sim_table_remove(table, rule);
	rule->in_table = false;
}

static void drop(struct rte_flow *rule)
{
	take_out(rule);
	rule->sort->pins--;
	free(rule->actions);
	free(rule);
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_rules; i++)
		if (rules[i] != NULL)
			drop(rules[i]);
	assert_true(sim_table_is_empty(table, SIM_INGRESS));
	assert_true(sim_table_is_empty(table, SIM_EGRESS));
	sim_table_destroy(table);
	return 0;
}

static struct rte_flow *rule_of(enum sim_domain domain, uint32_t group,
	const struct sim_pattern *pattern, const struct sim_actions *actions)
{
	struct rte_flow *rule = calloc(1, sizeof(*rule) + pattern->n_words * sizeof(uint64_t));

	assert_non_null(rule);
	rule->sort = sim_table_class(table, domain, group, pattern);
	assert_non_null(rule->sort);
	rule->sort->pins++;
	rule->domain = domain;
	rule->group = group;
	rule->serial = serial++;
	rule->ingress = PORT;
	rule->actions = malloc(sizeof(*actions));
	assert_non_null(rule->actions);
	*rule->actions = *actions;
	rule->mark_id = actions->mark_id;
	for (unsigned i = 0; i < pattern->n_words; i++)
		rule->values[i] = pattern->value[pattern->words[i]];
	return rule;
}

static struct sim_pattern pattern_of(uint32_t src, uint32_t mask)
{
	struct rte_flow_item_ipv4 spec = {.hdr.src_addr = rte_cpu_to_be_32(src)};
	struct rte_flow_item_ipv4 bits = {.hdr.src_addr = rte_cpu_to_be_32(mask)};
	struct rte_flow_item items[] = {
		{.type = mask != 0 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_END,
			.spec = &spec,
			.mask = &bits},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	struct sim_fault_at fault;
	struct sim_pattern pattern;

	assert_int_equal(sim_pattern_parse(&pattern, items, &fault), 0);
	return pattern;
}

static struct rte_flow *add(const struct wanted *wanted)
{
	struct sim_pattern pattern = pattern_of(wanted->src, wanted->mask);
	struct rte_flow *rule = rule_of(wanted->domain, wanted->group, &pattern, &wanted->actions);

	assert_true(n_rules < MAX_RULES);
	rule->priority = wanted->priority;
	sim_table_insert(table, rule);
	rule->in_table = true;
	rules[n_rules++] = rule;
	return rule;
}

#define ADD(...) add(&(struct wanted){__VA_ARGS__})
#define QUEUE(n) .actions = {.fate = SIM_FATE_QUEUE, .queue = (n)}
#define JUMP(n) .actions = {.jump = true, .jump_group = (n)}

static struct sim_view view_of(uint32_t src)
{
	struct sim_view view = {.layers = SIM_ETH | SIM_IPV4 | SIM_UDP, .port = PORT};
	uint32_t address = rte_cpu_to_be_32(src);

	memcpy(view.level[0].ip + 12, &address, sizeof(address));
	return view;
}

static struct sim_verdict met(enum sim_domain domain, uint32_t src)
{
	struct sim_view view = view_of(src);
	struct sim_verdict verdict;

	if (domain == SIM_EGRESS)
		view.port = SIM_NO_PORT;
	memset(&verdict, 0xa5, sizeof(verdict));
	sim_table_match(table, domain, &view, &verdict);
	return verdict;
}

#define assert_met(verdict, ...)                                                   \
	do {                                                                       \
		struct rte_flow *const chain_[] = {__VA_ARGS__};                   \
                                                                                   \
		assert_int_equal((verdict).n, sizeof(chain_) / sizeof(chain_[0])); \
		assert_memory_equal((verdict).chain, chain_, sizeof(chain_));      \
	} while (0)

static void assert_met_nothing(enum sim_domain domain, uint32_t src)
{
	struct sim_verdict verdict = met(domain, src), nothing;

	memset(&nothing, 0, sizeof(nothing));
	assert_memory_equal(&verdict, &nothing, sizeof(nothing));
}

static void no_rules(void **state)
{
	(void)state;
	for (unsigned domain = 0; domain < SIM_N_DOMAINS; domain++) {
		assert_true(sim_table_is_empty(table, domain));
		assert_met_nothing(domain, 1);
	}
}

/* The lowest priority number, then the oldest, in whatever order and class they are. */
static void best_rule(void **state)
{
	struct rte_flow *wide, *exact, *other, *any;

	(void)state;
	wide = ADD(.src = 0x0a000000, .mask = 0xff000000, .priority = 5, QUEUE(1));
	assert_met(met(SIM_INGRESS, 0x0a000001), wide);
	exact = ADD(.src = 0x0a000001, .mask = UINT32_MAX, .priority = 5, QUEUE(2));
	assert_met(met(SIM_INGRESS, 0x0a000001), wide);
	other = ADD(.src = 0x0a000001, .mask = UINT32_MAX, .priority = 4, QUEUE(3));
	assert_met(met(SIM_INGRESS, 0x0a000001), other);
	assert_met(met(SIM_INGRESS, 0x0a000002), wide);
	assert_met_nothing(SIM_INGRESS, 0x0b000001);
	any = ADD(.priority = 0, QUEUE(4));
	assert_met(met(SIM_INGRESS, 0x0a000001), any);
	assert_met(met(SIM_INGRESS, 0x0b000001), any);
	take_out(any);
	assert_met(met(SIM_INGRESS, 0x0a000001), other);
	take_out(other);
	assert_met(met(SIM_INGRESS, 0x0a000001), wide);
	take_out(wide);
	assert_met(met(SIM_INGRESS, 0x0a000001), exact);
	take_out(exact);
	assert_met_nothing(SIM_INGRESS, 0x0a000001);
}

/* One that goes live late is older than what is there. */
static void oldest_rule(void **state)
{
	struct rte_flow *a = ADD(.src = 1, .mask = UINT32_MAX, QUEUE(1));
	struct rte_flow *b = ADD(.src = 1, .mask = UINT32_MAX, QUEUE(2));
	struct rte_flow *c = ADD(.src = 1, .mask = 0xffff, QUEUE(3));

	(void)state;
	assert_met(met(SIM_INGRESS, 1), a);
	take_out(a);
	assert_met(met(SIM_INGRESS, 1), b);
	sim_table_insert(table, a);
	a->in_table = true;
	assert_met(met(SIM_INGRESS, 1), a);
	take_out(a);
	take_out(b);
	assert_met(met(SIM_INGRESS, 1), c);
	sim_table_insert(table, b);
	b->in_table = true;
	assert_met(met(SIM_INGRESS, 1), b);
}

static void domains_and_ports(void **state)
{
	struct rte_flow *in = ADD(.domain = SIM_INGRESS, QUEUE(1));
	struct rte_flow *out = ADD(.domain = SIM_EGRESS, .actions = {.fate = SIM_FATE_DROP});
	struct sim_verdict verdict;
	struct sim_view view = view_of(1);

	(void)state;
	assert_met(met(SIM_INGRESS, 1), in);
	assert_met(met(SIM_EGRESS, 1), out);
	assert_false(sim_table_is_empty(table, SIM_INGRESS));
	assert_true(sim_table_is_empty(table, SIM_TRANSFER));
	view.port = PORT + 1;
	sim_table_match(table, SIM_INGRESS, &view, &verdict);
	assert_int_equal(verdict.n, 0);
	/* of two with the same values the one that is for the packet's port */
	rules[0]->ingress = PORT + 1;
	in = ADD(.domain = SIM_INGRESS, QUEUE(2));
	assert_met(met(SIM_INGRESS, 1), in);
	sim_table_match(table, SIM_INGRESS, &view, &verdict);
	assert_met(verdict, rules[0]);
}

/* Transfer rules first; then ingress, unless the packet has gone. */
static void transfer(void **state)
{
	struct rte_flow *in = ADD(QUEUE(7));
	struct rte_flow *mark = ADD(.domain = SIM_TRANSFER,
		.actions = {.mark = true, .mark_id = 9, .fate = SIM_FATE_QUEUE, .queue = 1});
	static const enum sim_fate settled[] = {SIM_FATE_DROP, SIM_FATE_SEND, SIM_FATE_GIVE};
	struct sim_verdict verdict = met(SIM_INGRESS, 1);

	(void)state;
	assert_false(sim_table_is_empty(table, SIM_INGRESS));
	assert_met(verdict, mark, in);
	assert_int_equal(verdict.fate, SIM_FATE_QUEUE);
	assert_int_equal(verdict.queue, 7);
	assert_true(verdict.mark);
	assert_int_equal(verdict.mark_id, 9);
	for (unsigned i = 0; i < 3; i++) {
		mark->actions->fate = settled[i];
		mark->actions->port = 5;
		verdict = met(SIM_INGRESS, 1);
		assert_met(verdict, mark);
		assert_int_equal(verdict.fate, settled[i]);
		assert_int_equal(verdict.port, 5);
	}
	take_out(in);
	assert_false(sim_table_is_empty(table, SIM_INGRESS));
	take_out(mark);
	assert_true(sim_table_is_empty(table, SIM_INGRESS));
}

static void jumps(void **state)
{
	struct rte_flow *a = ADD(JUMP(5));
	struct rte_flow *b, *c;

	(void)state;
	assert_met(met(SIM_INGRESS, 1), a); /* nobody there: what was found so far */
	b = ADD(.group = 5, .src = 1, .mask = UINT32_MAX, JUMP(UINT32_MAX));
	assert_met(met(SIM_INGRESS, 1), a, b);
	c = ADD(.group = UINT32_MAX, .actions = {.mark = true, .mark_id = 3});
	assert_met(met(SIM_INGRESS, 1), a, b, c);
	assert_int_equal(met(SIM_INGRESS, 1).mark_id, 3);
	assert_met(met(SIM_INGRESS, 2), a);
	take_out(b);
	assert_met(met(SIM_INGRESS, 1), a);
	take_out(a);
	assert_met_nothing(SIM_INGRESS, 1);
}

/* The same groups in another domain are others. */
static void many_groups(void **state)
{
	struct rte_flow *first, *last = NULL;

	(void)state;
	first = ADD(JUMP(1));
	for (uint32_t group = 1; group < MAX_RULES / 2; group++)
		last = ADD(.group = group, .src = 7, .mask = UINT32_MAX, QUEUE((uint16_t)group));
	for (uint32_t group = 1; group < MAX_RULES / 2; group++) {
		first->actions->jump_group = group;
		assert_met(met(SIM_INGRESS, 7), first, rules[group]);
		assert_int_equal(met(SIM_INGRESS, 7).queue, group);
	}
	assert_met(met(SIM_INGRESS, 7), first, last);
	first = ADD(.domain = SIM_EGRESS, JUMP(3));
	assert_met(met(SIM_EGRESS, 7), first);
}

/* The next best of the group, of any class; each replaces what went before. */
static void passthru(void **state)
{
	struct rte_flow *a = ADD(.priority = 1, .src = 1, .mask = UINT32_MAX,
		.actions = {.passthru = true, .mark = true, .mark_id = 1, .n_edits = 1});
	struct rte_flow *b = ADD(.priority = 1, .src = 1, .mask = 0xff,
		.actions = {.passthru = true, .flag = true, .meter = true});
	struct rte_flow *c = ADD(.priority = 1, .src = 1, .mask = UINT32_MAX,
		.actions = {.passthru = true, .mark = true, .mark_id = 3, .sample = true});
	struct rte_flow *d = ADD(.priority = 2, QUEUE(4));
	struct rte_flow *e = ADD(.priority = 3, QUEUE(5));
	struct sim_verdict verdict = met(SIM_INGRESS, 1);

	(void)state;
	assert_met(verdict, a, b, c, d);
	assert_true(
		verdict.mark && verdict.flag && verdict.edits && verdict.meter && verdict.sample);
	assert_int_equal(verdict.mark_id, 3);
	assert_int_equal(verdict.queue, 4);
	take_out(d);
	assert_met(met(SIM_INGRESS, 1), a, b, c, e);
	take_out(e);
	assert_met(met(SIM_INGRESS, 1), a, b, c);
	assert_int_equal(met(SIM_INGRESS, 1).fate, SIM_FATE_NONE);
	assert_met(met(SIM_INGRESS, 0x101), b);
}

/* At most eight, transfer rules counted. */
static void long_chains(void **state)
{
	struct rte_flow *transfer_rule;

	(void)state;
	for (unsigned i = 0; i < 12; i++)
		ADD(.src = 1, .mask = i % 2 ? UINT32_MAX : 0xff,
			.actions = {.passthru = true, .mark = true, .mark_id = i});
	assert_int_equal(met(SIM_INGRESS, 1).n, SIM_MAX_CHAIN);
	for (unsigned i = 0; i < SIM_MAX_CHAIN; i++)
		assert_ptr_equal(met(SIM_INGRESS, 1).chain[i], rules[i]);
	transfer_rule = ADD(.domain = SIM_TRANSFER, .actions = {.passthru = true});
	assert_int_equal(met(SIM_INGRESS, 1).n, SIM_MAX_CHAIN);
	assert_ptr_equal(met(SIM_INGRESS, 1).chain[0], transfer_rule);
	assert_int_equal(met(SIM_INGRESS, 1).mark_id, 6);
}

/* Without a fate a rule ends the search. */
static void no_fate(void **state)
{
	struct rte_flow *count = ADD(.priority = 1, .actions = {.count = true});

	(void)state;
	ADD(.priority = 2, QUEUE(3));
	assert_met(met(SIM_INGRESS, 1), count);
	assert_int_equal(met(SIM_INGRESS, 1).fate, SIM_FATE_NONE);
}

static void rss(void **state)
{
	struct rte_flow *rule = ADD(.actions = {.fate = SIM_FATE_RSS});

	(void)state;
	assert_ptr_equal(met(SIM_INGRESS, 1).rss, &rule->actions->rss);
}

/* Each rule has its own range, and so its own class. */
static void ranges(void **state)
{
	struct sim_actions actions = {.fate = SIM_FATE_DROP};
	struct sim_fault_at fault;

	(void)state;
	for (uint32_t i = 0; i < 32; i++) {
		struct rte_flow_item_ipv4 low = {.hdr.src_addr = rte_cpu_to_be_32(i * 10 + 1)};
		struct rte_flow_item_ipv4 high = {.hdr.src_addr = rte_cpu_to_be_32(i * 10 + 5)};
		struct rte_flow_item items[] = {
			{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &low, .last = &high},
			{.type = RTE_FLOW_ITEM_TYPE_END},
		};
		struct sim_pattern pattern;

		assert_int_equal(sim_pattern_parse(&pattern, items, &fault), 0);
		rules[i] = rule_of(SIM_INGRESS, 0, &pattern, &actions);
		n_rules++;
		sim_table_insert(table, rules[i]);
		rules[i]->in_table = true;
	}
	for (uint32_t src = 0; src < 330; src++) {
		if (src % 10 >= 1 && src % 10 <= 5 && src < 320)
			assert_met(met(SIM_INGRESS, src), rules[src / 10]);
		else
			assert_met_nothing(SIM_INGRESS, src);
	}
}

/* A class stays as it is found; those that nobody needs go but for a few, pinned ones never. */
static void classes(void **state)
{
	struct sim_pattern pattern = pattern_of(1, UINT32_MAX);
	struct sim_class *pinned = sim_table_class(table, SIM_INGRESS, 0, &pattern);
	struct sim_class *sort;

	(void)state;
	assert_non_null(pinned);
	pinned->pins++;
	pattern = pattern_of(77, UINT32_MAX); /* values do not matter */
	assert_ptr_equal(sim_table_class(table, SIM_INGRESS, 0, &pattern), pinned);
	assert_ptr_not_equal(sim_table_class(table, SIM_INGRESS, 1, &pattern), pinned);
	assert_ptr_not_equal(sim_table_class(table, SIM_EGRESS, 0, &pattern), pinned);
	for (uint32_t mask = 1; mask < 10000; mask++) {
		pattern = pattern_of(0, mask);
		sort = sim_table_class(table, SIM_INGRESS, mask, &pattern);
		assert_non_null(sort);
		assert_ptr_equal(sim_table_class(table, SIM_INGRESS, mask, &pattern), sort);
	}
	assert_true(table->n_empty <= SIM_MAX_IDLE_CLASSES);
	assert_true(table->groups.n <= SIM_MAX_IDLE_CLASSES);
	pattern = pattern_of(1, UINT32_MAX);
	assert_ptr_equal(sim_table_class(table, SIM_INGRESS, 0, &pattern), pinned);
	pinned->pins--;
}

static uint64_t random_state = 88172645463325252u;

static uint32_t pick(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

/* The best rule by looking at each. */
static const struct rte_flow *best_by_hand(
	struct rte_flow *const all[], unsigned n, const struct sim_view *view)
{
	const struct rte_flow *best = NULL;

	for (unsigned i = 0; i < n; i++)
		if (all[i] != NULL && all[i]->in_table && sim_rule_match(all[i], view) &&
			(best == NULL || all[i]->priority < best->priority ||
				(all[i]->priority == best->priority &&
					all[i]->serial < best->serial)))
			best = all[i];
	return best;
}

/* Rules of few masks, values and priorities come and go; the table always knows the best. */
static void against_all(void **state)
{
	static const uint32_t masks[] = {0, 0xf, 0x3, 0xc, 0xff};
	struct sim_actions actions = {.fate = SIM_FATE_DROP};

	(void)state;
	n_rules = MAX_RULES;
	memset(rules, 0, sizeof(rules));
	for (unsigned round = 0; round < 100000; round++) {
		struct rte_flow **rule = &rules[pick(MAX_RULES)];
		struct sim_view view = view_of(pick(16));
		struct sim_verdict verdict;

		view.port = (uint16_t)(PORT + pick(2));
		if (*rule == NULL) {
			uint32_t mask = masks[pick(5)];
			struct sim_pattern pattern = pattern_of(pick(16) & mask, mask);

			*rule = rule_of(SIM_INGRESS, 0, &pattern, &actions);
			(*rule)->priority = pick(3);
			(*rule)->ingress = (uint16_t)(PORT + pick(2));
		} else if (!(*rule)->in_table) {
			sim_table_insert(table, *rule);
			(*rule)->in_table = true;
		} else if (pick(2) == 0) {
			take_out(*rule);
		} else {
			drop(*rule);
			*rule = NULL;
		}
		sim_table_match(table, SIM_INGRESS, &view, &verdict);
		assert_ptr_equal(verdict.n > 0 ? verdict.chain[0] : NULL,
			best_by_hand(rules, MAX_RULES, &view));
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct rte_flow **made_rules(uint32_t n, uint32_t n_values)
{
	struct rte_flow **made = malloc(n * sizeof(*made));
	struct sim_actions actions = {.fate = SIM_FATE_DROP};
	struct sim_pattern pattern = pattern_of(0, UINT32_MAX);

	assert_non_null(made);
	for (uint32_t i = 0; i < n; i++) {
		made[i] = rule_of(SIM_INGRESS, 0, &pattern, &actions);
		made[i]->values[0] = (uint64_t)rte_cpu_to_be_32(i % n_values) << 32;
	}
	return made;
}

static void shuffle(struct rte_flow **all, uint32_t n)
{
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j = pick(i + 1);
		struct rte_flow *rule = all[i];

		all[i] = all[j];
		all[j] = rule;
	}
}

/* Prints what it took; a growing table may not make any one insert slow, which is seen here too. */
static void in_and_out(const char *what, struct rte_flow **all, uint32_t n, uint32_t n_values)
{
	double start = seconds(), longest = 0, before = start, now;

	for (uint32_t i = 0; i < n; i++) {
		sim_table_insert(table, all[i]);
		if (i % 64 == 63) {
			now = seconds();
			longest = now - before > longest ? now - before : longest;
			before = now;
		}
	}
	now = seconds();
	print_message("%s: %.0f ns an insert, 64 of them at most %.3f ms\n", what,
		(now - start) / n * 1e9, longest * 1e3);
	start = seconds();
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(met(SIM_INGRESS, i % n_values).n, 1);
	print_message("%s: %.0f ns a match\n", what, (seconds() - start) / n * 1e9);
	assert_met_nothing(SIM_INGRESS, n_values);
	shuffle(all, n);
	start = seconds();
	for (uint32_t i = 0; i < n; i++)
		sim_table_remove(table, all[i]);
	print_message(
		"%s: %.0f ns a remove, in random order\n", what, (seconds() - start) / n * 1e9);
	assert_met_nothing(SIM_INGRESS, 0);
}

static void a_million(void **state)
{
	const char *number = getenv("FLOWSIM_TABLE_RULES");
	uint32_t n = number != NULL ? (uint32_t)atoi(number) : 1000000;
	struct rte_flow **all = made_rules(n, n);

	(void)state;
	in_and_out("different rules", all, n, n);
	in_and_out("again, in random order", all, n, n);
	for (uint32_t i = 0; i < n; i++)
		drop(all[i]);
	free(all);
	all = made_rules(n, 10);
	in_and_out("alike but for ten values", all, n, 10);
	for (uint32_t i = 0; i < n; i++)
		drop(all[i]);
	free(all);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_rules),
		TEST(best_rule),
		TEST(oldest_rule),
		TEST(domains_and_ports),
		TEST(transfer),
		TEST(jumps),
		TEST(many_groups),
		TEST(passthru),
		TEST(long_chains),
		TEST(no_fate),
		TEST(rss),
		TEST(ranges),
		TEST(classes),
		TEST(against_all),
		TEST(a_million),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
