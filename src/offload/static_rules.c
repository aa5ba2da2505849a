/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/static_rules.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"
#include "rteflow/flow_rule.h"
#include "rteflow/shape.h"
#include "rule/nic_pattern.h"

/* Calls of one turn that make or remove rules, and that read counters. */
#define CALLS_EACH 16
#define READS_EACH 64
#define READ_US UINT64_C(500000)
#define BACK_OFF_US UINT64_C(1000000)
#define MOST_BACK_OFF_US UINT64_C(60000000)
/* A rule that does not go is asked to as often. */
#define AGAIN_US UINT64_C(100000)

struct place {
	/* under the lock */
	struct classifier_rule rule;
	struct static_view view;
	bool wanted, renew;
	uint64_t due_us; /* when the NIC may be asked again */
	unsigned failures;
	/* the installer's */
	struct flow_rule made;
	struct provider_count read; /* what its counter had when it was read last */
};

struct static_rules {
	uint16_t port_id;
	uint32_t max;
	pthread_mutex_t lock;
	atomic_bool due;	      /* control has changed something */
	_Atomic uint32_t begun;	      /* places from here on were never used */
	_Atomic uint64_t asked, told; /* rounds of reading counters */
	uint64_t packets, bytes;      /* under the lock */
	/* the installer's */
	uint64_t next_us; /* when something is to be tried again */
	uint64_t read_us; /* when counters are read again */
	uint64_t reading; /* the round's number; 0: none is under way */
	uint32_t read_at;
	_Atomic uint32_t there;
	atomic_bool wants_room; /* the rule that was asked for last did not find any */
	struct place places[];
};

int static_rules_create(struct static_rules **out, uint16_t port_id, uint32_t max)
{
	struct static_rules *rules;

	if (max == 0 || max > STATIC_RULES_MAX)
		return -EINVAL;
	rules = calloc(1, sizeof(*rules) + max * sizeof(rules->places[0]));
	if (rules == NULL)
		return -ENOMEM;
	rules->port_id = port_id;
	rules->max = max;
	pthread_mutex_init(&rules->lock, NULL);
	*out = rules;
	return 0;
}

void static_rules_destroy(struct static_rules *rules)
{
	if (rules == NULL)
		return;
	pthread_mutex_destroy(&rules->lock);
	free(rules);
}

/* Control. */

static void end_change(struct static_rules *rules)
{
	pthread_mutex_unlock(&rules->lock);
	atomic_store_explicit(&rules->due, true, memory_order_release);
}

void static_rules_want(
	struct static_rules *rules, uint32_t number, const struct classifier_rule *rule)
{
	struct place *place = &rules->places[number];

	pthread_mutex_lock(&rules->lock);
	place->rule = *rule;
	place->view = (struct static_view){.state = STATIC_ASKED};
	place->wanted = true;
	place->renew = false;
	place->due_us = 0;
	place->failures = 0;
	rules->begun = RTE_MAX(rules->begun, number + 1);
	end_change(rules);
}

void static_rules_remove(struct static_rules *rules, uint32_t number)
{
	struct place *place = &rules->places[number];

	pthread_mutex_lock(&rules->lock);
	place->wanted = place->renew = false;
	place->due_us = 0;
	if (place->view.state == STATIC_ASKED || place->view.state == STATIC_REFUSED)
		place->view.state = STATIC_FREE;
	else if (place->view.state != STATIC_FREE)
		place->view.state = STATIC_LEAVING;
	end_change(rules);
}

void static_rules_renew(struct static_rules *rules, uint32_t number)
{
	struct place *place = &rules->places[number];

	pthread_mutex_lock(&rules->lock);
	place->renew = place->wanted && place->view.state == STATIC_IN_NIC;
	end_change(rules);
}

void static_rules_get(struct static_rules *rules, uint32_t number, struct static_view *view)
{
	pthread_mutex_lock(&rules->lock);
	*view = rules->places[number].view;
	pthread_mutex_unlock(&rules->lock);
}

uint64_t static_rules_ask(struct static_rules *rules)
{
	return ++rules->asked;
}

bool static_rules_told(struct static_rules *rules, uint64_t asked)
{
	return rules->told >= asked;
}

void static_rules_dropped(struct static_rules *rules, uint64_t *packets, uint64_t *bytes)
{
	pthread_mutex_lock(&rules->lock);
	*packets = rules->packets;
	*bytes = rules->bytes;
	pthread_mutex_unlock(&rules->lock);
}

/* The installer. */

/* Adds what came since the last reading. A counter that went down began anew, and what it had before is told already. */
static void add_count(
	struct static_rules *rules, struct place *place, const struct provider_count *count)
{
	const bool anew = count->packets < place->read.packets;
	const uint64_t packets = count->packets - (anew ? 0 : place->read.packets);
	const uint64_t bytes =
		anew || count->bytes < place->read.bytes ? 0 : count->bytes - place->read.bytes;

	place->read = *count;
	pthread_mutex_lock(&rules->lock);
	place->view.has_bytes = count->has_bytes;
	place->view.packets += packets;
	place->view.bytes += bytes;
	rules->packets += packets;
	rules->bytes += bytes;
	pthread_mutex_unlock(&rules->lock);
}

/* Retries the place at `due_us`: the installer thread wakes up for it. */
static void try_again(struct static_rules *rules, struct place *place, uint64_t due_us)
{
	place->due_us = due_us;
	rules->next_us = RTE_MIN(rules->next_us, due_us);
}

static void empty_place(struct static_rules *rules, struct place *place)
{
	rules->there--;
	place->read = (struct provider_count){0};
	pthread_mutex_lock(&rules->lock);
	place->renew = false;
	place->due_us = 0;
	place->view.why = (struct provider_why){0};
	place->view.state = place->wanted ? STATIC_ASKED : STATIC_FREE;
	pthread_mutex_unlock(&rules->lock);
}

static void remove_one(struct static_rules *rules, struct place *place, uint64_t now_us)
{
	struct flow_last last = {0};
	struct provider_why why = {0};
	int ret = flow_rule_remove(rules->port_id, &place->made, &last, &why);

	if (last.told)
		add_count(rules, place, &last.count);
	if (ret == 0) {
		empty_place(rules, place);
		return;
	}
	pthread_mutex_lock(&rules->lock);
	try_again(rules, place, now_us + AGAIN_US);
	place->view.why = why;
	pthread_mutex_unlock(&rules->lock);
}

/* Makes a rule that drops: with a counter that tells the last packet, too, else with its own, else without. */
static int make_rule(uint16_t port_id, const struct classifier_rule *rule, struct flow_rule *made,
	struct provider_why *why)
{
	static const struct shape shapes[] = {
		{.deed = PROVIDER_DROPS, .count = true, .indirect = true},
		{.deed = PROVIDER_DROPS, .count = true},
		{.deed = PROVIDER_DROPS},
	};
	static const struct offload_rule any;
	static const struct shape_port no_port;
	struct rule_nic_items items;
	int ret = -EOPNOTSUPP;

	if (rule_nic_pattern(rule, &items) != RULE_NIC_FITS) {
		answer_words(why, ENOTSUP, "there is no such pattern");
		return ret;
	}
	for (unsigned i = 0; i < RTE_DIM(shapes) && ret == -EOPNOTSUPP; i++) {
		struct shape_actions actions;

		shape_actions(&actions, &shapes[i], &no_port, &any);
		const struct flow_request request = {.port_id = port_id,
			.attr = {.ingress = 1},
			.items = items.list,
			.actions = actions.list,
			.others = true};

		ret = flow_rule_make(&request, made, why);
	}
	return ret;
}

/* What there is no room for is asked for soon again, one rule for all that wait; else the longer the oftener it was refused. */
static void take_refusal(struct static_rules *rules, struct place *place, uint64_t now_us,
	const struct provider_why *why)
{
	const uint64_t wait_us =
		RTE_MIN(BACK_OFF_US << RTE_MIN(place->failures, 10u), MOST_BACK_OFF_US);

	rules->wants_room = answer_insert(why->error, false) == -ENOSPC;
	pthread_mutex_lock(&rules->lock);
	try_again(rules, place, now_us + (rules->wants_room ? AGAIN_US : wait_us));
	place->failures++;
	place->view.why = *why;
	place->view.state = place->wanted ? STATIC_REFUSED : STATIC_FREE;
	pthread_mutex_unlock(&rules->lock);
}

static void insert_one(struct static_rules *rules, struct place *place, uint64_t now_us,
	const struct classifier_rule *rule)
{
	struct provider_why why = {0};

	if (make_rule(rules->port_id, rule, &place->made, &why) < 0) {
		take_refusal(rules, place, now_us, &why);
		return;
	}
	rules->there++;
	rules->wants_room = false;
	place->read = (struct provider_count){0};
	pthread_mutex_lock(&rules->lock);
	place->failures = 0;
	place->view.why = (struct provider_why){0};
	place->view.counts = place->made.counts;
	place->view.state = place->wanted ? STATIC_IN_NIC : STATIC_LEAVING;
	pthread_mutex_unlock(&rules->lock);
}

/*
 * Is a rule to be removed, or made, at this place now? What is to be made is copied: control may change it during the
 * call.
 */
static bool is_to_be(struct static_rules *rules, struct place *place, bool made, uint64_t now_us,
	struct classifier_rule *rule)
{
	bool due;

	pthread_mutex_lock(&rules->lock);
	if (made)
		due = place->made.flow == NULL && place->wanted;
	else
		due = place->made.flow != NULL && (!place->wanted || place->renew);
	if (due && now_us < place->due_us) {
		rules->next_us = RTE_MIN(rules->next_us, place->due_us);
		due = false;
	}
	if (due && made) {
		*rule = place->rule;
		place->view.state = STATIC_INSTALLING;
	} else if (due && place->renew) {
		place->view.renewed++;
	}
	pthread_mutex_unlock(&rules->lock);
	return due;
}

/* Removes rules, or makes some, as long as there is room. Returns how many calls are left. */
static unsigned change_some(struct static_rules *rules, bool made, uint64_t now_us, unsigned calls)
{
	for (uint32_t i = 0; i < rules->begun && calls > 0; i++) {
		struct place *place = &rules->places[i];
		struct classifier_rule rule;

		if (!is_to_be(rules, place, made, now_us, &rule))
			continue;
		calls--;
		if (!made) {
			remove_one(rules, place, now_us);
			continue;
		}
		insert_one(rules, place, now_us, &rule);
		if (rules->wants_room) {
			rules->next_us = RTE_MIN(rules->next_us, now_us + AGAIN_US);
			return calls;
		}
	}
	if (calls == 0)
		rules->next_us = now_us;
	return calls;
}

static bool change_rules(struct static_rules *rules, uint64_t now_us, bool insert)
{
	unsigned calls;

	if (!atomic_exchange_explicit(&rules->due, false, memory_order_acq_rel) &&
		now_us < rules->next_us)
		return false;
	rules->next_us = insert ? UINT64_MAX : now_us + AGAIN_US;
	calls = change_some(rules, false, now_us, CALLS_EACH);
	if (insert && calls > 0)
		calls = change_some(rules, true, now_us, calls);
	return calls < CALLS_EACH;
}

static void read_one(struct static_rules *rules, struct place *place)
{
	struct provider_count count = {0};
	struct provider_why why;

	if (place->made.flow != NULL && place->made.counts &&
		flow_rule_count(rules->port_id, &place->made, &count, &why) == 0)
		add_count(rules, place, &count);
}

/* Reads some counters on, or begins a round when it is time or somebody asks. */
static bool read_counters(struct static_rules *rules, uint64_t now_us)
{
	const uint64_t asked = rules->asked;
	const uint32_t n = rules->begun;
	unsigned reads = 0;

	if (rules->reading == 0 && now_us < rules->read_us && asked == rules->told)
		return false;
	if (rules->reading == 0) {
		rules->reading = RTE_MAX(asked, (uint64_t)1);
		rules->read_at = 0;
	}
	for (; rules->read_at < n && reads < READS_EACH; rules->read_at++) {
		struct place *place = &rules->places[rules->read_at];

		reads += place->made.flow != NULL;
		read_one(rules, place);
	}
	if (rules->read_at < n)
		return true;
	rules->told = RTE_MAX(rules->told, RTE_MIN(rules->reading, rules->asked));
	rules->reading = 0;
	rules->read_us = now_us + READ_US;
	return reads > 0;
}

bool static_rules_turn(struct static_rules *rules, uint64_t now_us, bool insert)
{
	const bool changed = change_rules(rules, now_us, insert);

	return read_counters(rules, now_us) || changed;
}

uint32_t static_rules_there(const struct static_rules *rules)
{
	return rules->there;
}

bool static_rules_want_room(const struct static_rules *rules)
{
	return rules->wants_room;
}

void static_rules_forget(struct static_rules *rules)
{
	for (uint32_t i = 0; i < rules->max && rules->there > 0; i++) {
		struct place *place = &rules->places[i];
		struct flow_last last = {0};

		if (place->made.flow == NULL)
			continue;
		flow_rule_forget(rules->port_id, &place->made, &last);
		if (last.told)
			add_count(rules, place, &last.count);
		empty_place(rules, place);
	}
	atomic_store_explicit(&rules->due, true, memory_order_release);
}

uint32_t static_rules_clear(struct static_rules *rules, uint64_t most_us)
{
	const uint64_t end_us = monotonic_us() + most_us;

	for (uint32_t i = 0; i < rules->max && rules->there > 0 && monotonic_us() < end_us; i++)
		if (rules->places[i].made.flow != NULL)
			remove_one(rules, &rules->places[i], 0);
	atomic_store_explicit(&rules->due, true, memory_order_release);
	return rules->there;
}
