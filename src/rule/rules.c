/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of rules: its life, its slots, and what the writer does with them. */
#include "rule/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "action/program.h"
#include "base/mapping.h"
#include "rule/replies.h"
#include "rule/rules_private.h"

/* Slots of removed rules that flows may still have: as many as a classifier has positions for. */
#define SPARE(max_rules) ((max_rules) / 16 + 64)

/* Life. */

/* The place of an array in the mapping, behind those before it; NULL while there is none. */
static void *place_slots(const struct rules *rules, size_t *used, size_t n, size_t size)
{
	size_t at = *used;

	*used += RTE_ALIGN_CEIL(n * size, (size_t)RTE_CACHE_LINE_SIZE);
	return rules->memory ? (char *)rules->memory + at : NULL;
}

static size_t lay_out_rules(struct rules *rules)
{
	const size_t n = rules->n_slots;
	const size_t n_ports =
		rules->ground.topology != NULL ? TOPOLOGY_MAX_PORTS : (size_t)RULES_NO_PORT + 1;
	size_t used = 0;

	rules->slots = place_slots(rules, &used, n, sizeof(*rules->slots));
	rules->counts = place_slots(rules, &used, n * rules->n_workers, sizeof(*rules->counts));
	rules->seen = place_slots(rules, &used, n * rules->n_workers, sizeof(*rules->seen));
	rules->own = place_slots(rules, &used, n, sizeof(*rules->own));
	rules->limits = place_slots(rules, &used, RULES_MAX_LIMITS, sizeof(*rules->limits));
	rules->heads =
		place_slots(rules, &used, (size_t)rules->heads_mask + 1, sizeof(*rules->heads));
	rules->next_number = place_slots(rules, &used, n_ports, sizeof(*rules->next_number));
	rules->n_of_port = place_slots(rules, &used, n_ports, sizeof(*rules->n_of_port));
	return used;
}

static int create_classifiers(struct rules *rules, const struct rules_config *config)
{
	struct classifier_config classifier = {
		.max_rules = config->max_rules,
		.max_beside = config->max_beside,
		.max_wide = config->max_rules,
		.max_groups = RULE_MAX_GROUPS,
		.max_sets = config->any_set ? CLASSIFIER_MAX_SETS : config->max_sets,
		.max_prefixes = config->any_set ? 2 * CLASSIFIER_MAX_SETS : config->max_prefixes,
		.secret = config->secret,
		.qsbr = config->qsbr,
	};
	int ret = classifier_create(&rules->full, &classifier);

	classifier.max_sets = classifier.max_prefixes = 0;
	if (ret == 0)
		ret = classifier_create(&rules->of_flows, &classifier);
	if (ret == 0)
		classifier_share_sets(rules->of_flows, rules->full);
	return ret;
}

static int create_parts(struct rules *rules, const struct rules_config *config)
{
	rules->size = lay_out_rules(rules);
	rules->memory = mapping_create(rules->size, MAPPING_HUGE);
	if (rules->memory == NULL)
		return -errno;
	lay_out_rules(rules);
	memset(rules->heads, 0xff, ((size_t)rules->heads_mask + 1) * sizeof(*rules->heads));
	rules->setup = rule_setup_create();
	rules->meters = rule_meters_create();
	rules->shared = rule_shared_create();
	rules->ground.meters = rules->meters;
	rules->ground.shared = rules->shared;
	if (rules->setup == NULL || rules->meters == NULL || rules->shared == NULL)
		return -ENOMEM;
	const int ret = sources_create(&rules->sources, RULES_SOURCES, config->secret);

	return ret < 0 ? ret : create_classifiers(rules, config);
}

int rules_create(struct rules **rules, const struct rules_config *config)
{
	const size_t size = RTE_ALIGN_CEIL(sizeof(struct rules), (size_t)RTE_CACHE_LINE_SIZE);
	struct rules *created;
	int ret;

	if (config->max_rules < 1 || config->max_rules > RULES_MAX ||
		config->max_beside > config->max_rules || config->programs == NULL)
		return -EINVAL;
	created = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (created == NULL)
		return -ENOMEM;
	memset(created, 0, size);
	if (config->topology != NULL) {
		created->topology = *config->topology;
		created->ground.topology = &created->topology;
	}
	created->ground.n_captures = config->n_captures;
	created->ground.zone_vlan = config->zone_vlan;
	created->ground.sends_nothing = config->sends_nothing;
	created->ground.find_set = rules_find_set;
	created->ground.find_set_context = created;
	created->any_set = config->any_set;
	created->replies_follow = config->replies_follow;
	created->no_pickup = config->no_pickup;
	created->programs = config->programs;
	created->qsbr = config->qsbr;
	created->n_workers = config->n_workers;
	created->max_rules = config->max_rules;
	created->n_slots = config->max_rules + config->max_beside + SPARE(config->max_rules);
	created->epoch = 1;
	created->heads_mask = (uint32_t)rte_align32pow2(config->max_rules) - 1;
	created->free = created->first_gone = created->last_gone = RULES_NONE;
	atomic_init(&created->generation, 1);
	ret = create_parts(created, config);
	if (ret < 0)
		rules_destroy(created);
	else
		*rules = created;
	return ret;
}

void rules_destroy(struct rules *rules)
{
	if (rules == NULL)
		return;
	rules_end_replacing(rules);
	for (uint32_t slot = 0; slot < rules->n_begun; slot++)
		rules_release(rules, rules->own[slot].made);
	classifier_destroy(rules->full);
	classifier_destroy(rules->of_flows);
	rule_setup_destroy(rules->setup);
	rule_meters_destroy(rules->meters);
	rule_shared_destroy(rules->shared);
	sources_destroy(rules->sources);
	rules_nic_end(rules);
	mapping_destroy(rules->memory, rules->size);
	free(rules);
}

size_t rules_memory(const struct rules *rules)
{
	return sizeof(*rules) + rules->size + sources_memory(rules->sources) +
	       classifier_memory(rules->full) + classifier_memory(rules->of_flows);
}

struct action_meter *rules_meters(const struct rules *rules)
{
	return rule_meters_table(rules->meters);
}

void rules_restart(struct rules *rules)
{
	rule_meters_restart(rules->meters);
	sources_restart(rules->sources);
}

const atomic_uint_fast64_t *rules_generation(const struct rules *rules)
{
	return &rules->generation;
}

uint64_t rules_touch(struct rules *rules)
{
	return atomic_fetch_add_explicit(&rules->generation, 1, memory_order_release) + 1;
}

void rules_tell_time(struct rules *rules, uint64_t now_us)
{
	rules->now_us = RTE_MAX(rules->now_us, now_us);
}

/* Rules that could be made. */

size_t rules_find_text(const char *line, size_t length, const char **text)
{
	static const char prompt[] = "testpmd>";
	const char *comment = memchr(line, '#', length);
	size_t skipped = 0;

	if (comment != NULL)
		length = (size_t)(comment - line);
	while (length > 0 && strchr(" \t\r\n", line[length - 1]) != NULL)
		length--;
	while (skipped < length && strchr(" \t", line[skipped]) != NULL)
		skipped++;
	if (length - skipped > strlen(prompt) &&
		memcmp(line + skipped, prompt, strlen(prompt)) == 0)
		skipped += strlen(prompt);
	while (skipped < length && strchr(" \t", line[skipped]) != NULL)
		skipped++;
	*text = line + skipped;
	return length - skipped;
}

/*
 * The command as it was written: printing it anew takes as long as all else of a large file. It was parsed, so that it has
 * nothing but words and blanks.
 */
static int take_text(char **text, const char *line, size_t length, struct error *error)
{
	const char *found;

	length = rules_find_text(line, length, &found);
	*text = strndup(found, length);
	if (*text == NULL)
		return error_set(error, -ENOMEM, "no memory for the rule");
	for (char *at = *text; *at != '\0'; at++)
		if (isspace((unsigned char)*at))
			*at = ' ';
	return 0;
}

static int intern_program(struct rules *rules, const struct rule_effect *effect, uint16_t *verdict,
	struct error *error)
{
	struct action_program program;
	struct error said;

	if (action_program_compile(&program, effect->list, effect->n, &said) < 0)
		return error_set(error, -EINVAL, "actions: %s", said.text);
	int ret = programs_intern(rules->programs, &program, verdict, &said);

	return ret < 0 ? error_set(error, ret, "actions: %s", said.text) : 0;
}

static void free_made(struct rules_made *made)
{
	rules_give_uses_back(made->uses);
	free(made->text);
	free(made);
}

static int read_made(struct rules *rules, const struct rule_command *command, const char *line,
	size_t length, struct rules_made *made, struct rule_refusal *refusal, struct error *error)
{
	struct rule_effect effect = {0};
	int ret = rule_pattern_read(command, &rules->ground, &made->rule, refusal, error);

	if (ret == 0)
		ret = rule_effect_read(
			command, &rules->ground, &made->rule, &effect, refusal, error);
	if (ret == 0)
		ret = rule_limit_read(command, &rules->ground, &made->rule, &effect, &made->limit,
			refusal, error);
	if (ret == 0)
		ret = rule_replies_read(
			command, rules->replies_follow, &effect, &made->follows, refusal, error);
	if (ret < 0)
		return ret;
	refusal->index = 0;
	made->rule.jump = effect.jump;
	made->remark = effect.remark;
	made->port = command->port;
	made->mark = effect.mark;
	made->age_s = effect.age_s;
	made->marked = effect.marked;
	made->passes = effect.passes;
	made->logs = effect.logs;
	ret = take_text(&made->text, line, length, error);
	if (ret == 0)
		ret = rules_take_uses(&effect, &made->uses, error);
	return ret < 0 ? ret : intern_program(rules, &effect, &made->verdict, error);
}

/* FNV-1a */
uint64_t rules_hash_text(const char *text, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Do its words say all? These actions take something from elsewhere. */
static bool is_plain(const struct rule_command *command, const struct rules_made *made)
{
	const struct rte_flow_action *action = command->actions[0];

	for (; action != NULL && action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		switch ((int)action->type) {
		case RTE_FLOW_ACTION_TYPE_DROP:
		case RTE_FLOW_ACTION_TYPE_PASSTHRU:
		case RTE_FLOW_ACTION_TYPE_JUMP:
		case RTE_FLOW_ACTION_TYPE_QUEUE:
		case RTE_FLOW_ACTION_TYPE_MARK:
		case RTE_FLOW_ACTION_TYPE_FLAG:
		case RTE_FLOW_ACTION_TYPE_COUNT:
		case RTE_FLOW_ACTION_TYPE_AGE:
		case RTE_FLOW_ACTION_TYPE_PORT_ID:
		case RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT:
			continue;
		default:
			return false;
		}
	return made->uses == NULL;
}

int rules_make(struct rules *rules, const struct rule_command *command, const char *line,
	size_t length, struct rules_made **made, struct rule_refusal *refusal, struct error *error)
{
	struct rules_made *fresh = calloc(1, sizeof(*fresh));

	*made = NULL;
	if (fresh == NULL)
		return error_set(error, -ENOMEM, "no memory for the rule");
	fresh->refs = 1;
	int ret = read_made(rules, command, line, length, fresh, refusal, error);

	if (ret < 0) {
		free_made(fresh);
		return ret;
	}
	fresh->hash = rules_hash_text(fresh->text, strlen(fresh->text));
	fresh->plain = is_plain(command, fresh);
	*made = fresh;
	return 0;
}

void rules_release(struct rules *rules, struct rules_made *made)
{
	if (made == NULL || --made->refs > 0)
		return;
	if (made->verdict != FLOW_VERDICT_FORWARD)
		programs_release(rules->programs, made->verdict);
	free_made(made);
}

/* Slots. */

static uint32_t *head_of(const struct rules *rules, uint16_t port, uint32_t number)
{
	const uint32_t hash = (number ^ (uint32_t)port << 16) * 0x9e3779b1u;

	return &rules->heads[(hash ^ hash >> 15) & rules->heads_mask];
}

static uint32_t slot_of_number(const struct rules *rules, uint16_t port, uint32_t number)
{
	uint32_t slot = *head_of(rules, port, number);

	while (slot != RULES_NONE &&
		(rules->own[slot].port != port || rules->own[slot].number != number))
		slot = rules->own[slot].next;
	return slot;
}

struct rules_count rules_sum(const struct rules *rules, uint32_t slot)
{
	struct rules_count total = {0};

	for (unsigned i = 0; i < rules->n_workers; i++) {
		const struct rules_count *count = &rules->counts[(size_t)i * rules->n_slots + slot];

		total.flows += __atomic_load_n(&count->flows, __ATOMIC_RELAXED);
		total.packets += __atomic_load_n(&count->packets, __ATOMIC_RELAXED);
		total.bytes += __atomic_load_n(&count->bytes, __ATOMIC_RELAXED);
	}
	return total;
}

static void add_count(struct rules_count *sum, struct rules_count count)
{
	sum->flows += count.flows;
	sum->packets += count.packets;
	sum->bytes += count.bytes;
}

void rules_removed(const struct rules *rules, struct rules_removed *removed)
{
	*removed = rules->removed;
	for (uint32_t slot = rules->first_gone; slot != RULES_NONE; slot = rules->own[slot].next)
		add_count(&removed->count, rules_sum(rules, slot));
}

void rules_removed_add(struct rules *rules, uint64_t nic_packets, uint64_t nic_bytes)
{
	rules->removed.nic_packets += nic_packets;
	rules->removed.nic_bytes += nic_bytes;
}

/* Frees the slots of those that were removed, as far as no reader and no flow has them. */
static void reclaim_rules(struct rules *rules)
{
	if (!rules_end_turn(rules))
		return;
	while (rules->first_gone != RULES_NONE) {
		const uint32_t slot = rules->first_gone;
		struct rules_own *own = &rules->own[slot];

		if (own->generation > rules->settled ||
			!rte_rcu_qsbr_check(rules->qsbr, own->token, false))
			return;
		const struct rules_count count = rules_sum(rules, slot);

		add_count(&rules->removed.count, count);
		for (unsigned i = 0; i < rules->n_workers; i++) {
			rules->counts[(size_t)i * rules->n_slots + slot] = (struct rules_count){0};
			rules->seen[(size_t)i * rules->n_slots + slot] = 0;
		}
		rules_count_uses(own->made->uses, &count);
		rules_release(rules, own->made);
		own->made = NULL;
		if (own->gone != NULL)
			*own->gone = (struct rules_gone){.done = true, .count = count};
		own->gone = NULL;
		rules_limits_give_back(rules, slot);
		rules->first_gone = own->next;
		if (rules->first_gone == RULES_NONE)
			rules->last_gone = RULES_NONE;
		own->next = rules->free;
		rules->free = slot;
		rules->n_unsettled--;
	}
}

void rules_settled(struct rules *rules, uint64_t generation)
{
	if (generation > rules->settled)
		rules->settled = generation;
	reclaim_rules(rules);
}

bool rules_unsettled(const struct rules *rules)
{
	return rules->n_unsettled > 0 || rules->turn != NULL;
}

uint32_t rules_free_slots(const struct rules *rules)
{
	return rules->n_slots - rules->n_rules - rules->n_unsettled;
}

int rules_room(struct rules *rules, uint32_t n, struct error *error)
{
	if (n > 1 && n > rules->max_rules - rules->n_rules)
		return error_set(error, -ENOSPC,
			"no room for %u: there are %u of %u rules (rules.max)", n, rules->n_rules,
			rules->max_rules);
	if (n > rules->max_rules - rules->n_rules)
		return error_set(error, -ENOSPC, "no room: there are %u of %u rules (rules.max)",
			rules->n_rules, rules->max_rules);
	if (rules->turn != NULL || rules_free_slots(rules) < n)
		reclaim_rules(rules);
	if (rules->turn != NULL || rules_free_slots(rules) < n)
		return rules_explain_add(-EAGAIN, error);
	return 0;
}

static uint32_t take_slot(struct rules *rules)
{
	const uint32_t slot = rules->free;

	if (slot == RULES_NONE)
		return rules->n_begun++;
	rules->free = rules->own[slot].next;
	return slot;
}

/* A slot that no flow will have after the next generation. */
static void retire_slot(struct rules *rules, uint32_t slot)
{
	struct rules_own *own = &rules->own[slot];

	own->token = rte_rcu_qsbr_start(rules->qsbr);
	own->generation = atomic_load_explicit(&rules->generation, memory_order_relaxed) + 1;
	own->next = RULES_NONE;
	if (rules->last_gone == RULES_NONE)
		rules->first_gone = slot;
	else
		rules->own[rules->last_gone].next = slot;
	rules->last_gone = slot;
	rules->n_unsettled++;
}

/* Classifiers. */

static int add_of_flows(struct rules *rules, const struct classifier_rule *rule,
	const struct classifier_position *at, uint32_t *handle)
{
	struct classifier_rule of_flows;

	/* what such a rule does is known when a packet is there */
	if (rule_pattern_of_flows(rule, &rules->ground, &of_flows))
		of_flows.jump = 0;
	return classifier_add_at(rules->of_flows, &of_flows, at, handle);
}

struct ranked {
	uint64_t rank;
	uint32_t slot;
};

static int compare_ranks(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	return left->rank < right->rank ? -1 : left->rank > right->rank;
}

static void empty_of_flows(struct rules *rules)
{
	for (uint32_t slot = 0; slot < rules->n_begun; slot++) {
		if (rules->own[slot].text == NULL || rules->own[slot].of_flows == CLASSIFIER_NONE)
			continue;
		classifier_remove(rules->of_flows, rules->own[slot].of_flows);
		rules->own[slot].of_flows = CLASSIFIER_NONE;
	}
}

/*
 * The first rule by packet comes: from here on flows are decided by what is left of all rules. They go in by their rank, as
 * they did into the other classifier, whose tuples have the same order then.
 */
int rules_fill_of_flows(struct rules *rules)
{
	struct ranked *ranked = malloc(((size_t)rules->n_rules + 1) * sizeof(*ranked));
	struct classifier_rule rule;
	uint32_t n = 0;
	int ret = 0;

	if (ranked == NULL)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < rules->n_begun; slot++)
		if (rules->own[slot].text != NULL && rules->own[slot].full != CLASSIFIER_NONE)
			ranked[n++] = (struct ranked){rules->own[slot].rank, slot};
	qsort(ranked, n, sizeof(*ranked), compare_ranks);
	for (uint32_t i = 0; ret == 0 && i < n; i++) {
		struct rules_own *own = &rules->own[ranked[i].slot];
		const struct classifier_position at = {
			.rank = own->rank, .lists = CLASSIFIER_BOTH_LISTS};

		classifier_get(rules->full, own->full, &rule);
		ret = add_of_flows(rules, &rule, &at, &own->of_flows);
	}
	free(ranked);
	if (ret < 0)
		empty_of_flows(rules);
	rules->filled = ret == 0;
	return ret;
}

void rules_declassify(struct rules *rules, const struct rules_handles *handles)
{
	if (handles->full != CLASSIFIER_NONE)
		classifier_remove(rules->full, handles->full);
	if (handles->of_flows != CLASSIFIER_NONE)
		classifier_remove(rules->of_flows, handles->of_flows);
}

int rules_classify_in(struct rules *rules, const struct rules_made *made, uint32_t slot,
	const struct classifier_position *at, struct rules_handles *handles)
{
	struct classifier_rule rule = made->rule;
	int ret = 0;

	*handles = (struct rules_handles){CLASSIFIER_NONE, CLASSIFIER_NONE};
	if (made->passes)
		return 0;
	rule.id = slot;
	if (rules->slots[slot].by_packet && !rules->filled)
		ret = rules_fill_of_flows(rules);
	if (ret == 0 && rules->filled)
		ret = add_of_flows(rules, &rule, at, &handles->of_flows);
	if (ret == 0)
		ret = classifier_add_at(rules->full, &rule, at, &handles->full);
	if (ret < 0)
		rules_declassify(rules, handles);
	return ret;
}

int rules_explain_add(int code, struct error *error)
{
	if (code == -EAGAIN)
		return error_set(error, code,
			"rules that were just removed are still in use; try again in a second");
	if (code == -ENOSPC)
		return error_set(
			error, code, "the classifier has no room for the rule (rules.max)");
	return error_set(error, code,
		code == -ENOMEM ? "no memory for the rule"
				: "the classifier does not take the rule");
}

void rules_count_in(struct rules *rules, uint32_t slot, uint32_t by)
{
	const struct rules_own *own = &rules->own[slot];

	/* `by` is 1, or as much below 0: unsigned numbers wrap */
	atomic_fetch_add_explicit(&rules->n_in_force, by, memory_order_release);
	if (rules->slots[slot].by_packet)
		atomic_fetch_add_explicit(&rules->n_by_packet, by, memory_order_release);
	rules_count_conversations(rules, slot, by);
	if (own->in_port == RULES_NO_PORT)
		return;
	atomic_fetch_add_explicit(&rules->n_with_port, by, memory_order_release);
	if (own->in_port < TOPOLOGY_MAX_PORTS)
		atomic_fetch_add_explicit(
			&rules->port_rules[own->in_port], by, memory_order_release);
}

/* Numbers wrap after 4 billion rules. */
static uint32_t take_number(struct rules *rules, uint16_t port)
{
	uint32_t number = rules->next_number[port];

	while (slot_of_number(rules, port, number) != RULES_NONE)
		number++;
	rules->next_number[port] = number + 1;
	return number;
}

/* Ranks are spread, so that others find room in between; less where that would use them up. */
#define RANK_STEP 256u

uint64_t rules_next_rank(struct rules *rules)
{
	rules->last_rank += rules->last_rank < CLASSIFIER_MAX_RANK / 2 ? RANK_STEP : 1;
	return rules->last_rank;
}

void rules_link(struct rules *rules, uint32_t slot, uint64_t age)
{
	struct rules_own *own = &rules->own[slot];
	uint32_t *head = head_of(rules, own->port, own->number);

	own->text = own->made->text;
	own->age = age;
	own->epoch = rules->epoch;
	own->seen_us = rules->now_us;
	own->next = *head;
	*head = slot;
	if (own->jump != 0)
		rules->n_jumps[own->jump]++;
	rules->n_rules++;
	rules->n_of_port[own->port]++;
	rules->next_number[own->port] = RTE_MAX(rules->next_number[own->port], own->number + 1);
	rules_nic_added(rules, slot);
}

void rules_unlink(struct rules *rules, uint32_t slot)
{
	struct rules_own *own = &rules->own[slot];
	uint32_t *at = head_of(rules, own->port, own->number);

	while (*at != slot)
		at = &rules->own[*at].next;
	*at = own->next;
	rules_nic_removed(rules, slot);
	__atomic_store_n(&rules->slots[slot].gone, 1, __ATOMIC_RELAXED);
	rules_removed_add(rules, own->nic_packets, own->nic_bytes);
	own->text = NULL;
	if (own->jump != 0)
		rules->n_jumps[own->jump]--;
	rules->n_rules--;
	if (--rules->n_of_port[own->port] == 0)
		rules->next_number[own->port] = 0;
	retire_slot(rules, slot);
}

/* The numbers of ports fit a byte; what the program names beyond them are no ports that packets leave by. */
static uint8_t to_port_of(const struct rules *rules, uint16_t verdict)
{
	uint16_t port;

	if (flow_verdict_rejects(verdict))
		return 0;
	port = programs_get(rules->programs, verdict)->port;
	return port < TOPOLOGY_MAX_PORTS ? (uint8_t)(port + 1) : 0;
}

uint32_t rules_fill_slot(struct rules *rules, struct rules_made *made, uint64_t rank)
{
	const uint32_t slot = take_slot(rules);
	struct classifier_rule of_flows;

	made->refs++;
	rules->own[slot] = (struct rules_own){
		.made = made,
		.rank = rank,
		.number = take_number(rules, made->port),
		.group = made->rule.group,
		.priority = made->rule.priority,
		.full = CLASSIFIER_NONE,
		.of_flows = CLASSIFIER_NONE,
		.place = RULES_NONE,
		.port = made->port,
		.in_port = made->rule.mask.in_port != 0 ? made->rule.value.in_port : RULES_NO_PORT,
		.hands_on = made->passes || made->rule.jump != 0,
		.jump = (uint8_t)made->rule.jump,
		.beginnings = (uint8_t)rule_of_beginnings(
			&made->rule, flow_verdict_drops(made->verdict) && !made->passes &&
					     made->rule.jump == 0 && !made->limit.given),
	};
	rules->slots[slot] = (struct rules_slot){
		.mark = made->mark,
		.age_s = made->age_s,
		.number = rules->own[slot].number,
		.verdict = made->verdict,
		.port = (uint8_t)made->port,
		.logs = made->logs,
		.to_port = to_port_of(rules, made->verdict),
		.marked = made->marked,
		.follows = made->follows,
		.states = rules_states_of(&made->rule),
		.by_packet = rule_pattern_of_flows(&made->rule, &rules->ground, &of_flows) &&
			     !made->passes,
	};
	rules_limits_take(rules, slot, &made->limit);
	return slot;
}

void rules_empty_slot(struct rules *rules, uint32_t slot)
{
	rules_limits_give_back(rules, slot);
	rules_release(rules, rules->own[slot].made);
	rules->own[slot].made = NULL;
	rules->own[slot].next = rules->free;
	rules->free = slot;
}

int rules_add(struct rules *rules, struct rules_made *made, uint32_t *slot, struct error *error)
{
	const struct classifier_position at = {
		.rank = rules_next_rank(rules), .lists = CLASSIFIER_BOTH_LISTS};
	struct rules_handles handles;
	int ret = rules_room(rules, 1, error);

	if (ret == 0 && made->limit.given)
		ret = rules_limits_room(rules, !made->limit.live, made->limit.live, error);
	if (ret < 0)
		return ret;
	*slot = rules_fill_slot(rules, made, at.rank);
	ret = rules_classify_in(rules, made, *slot, &at, &handles);
	if (ret < 0) {
		/* no reader that keeps what it found has seen it, but one may be about to look at it */
		retire_slot(rules, *slot);
		rules_touch(rules);
		return rules_explain_add(ret, error);
	}
	rules->own[*slot].full = handles.full;
	rules->own[*slot].of_flows = handles.of_flows;
	rules_count_in(rules, *slot, 1);
	rules_link(rules, *slot, ++rules->last_age);
	return 0;
}

void rules_drop(struct rules *rules, uint32_t slot)
{
	const struct rules_handles handles = {rules->own[slot].full, rules->own[slot].of_flows};

	rules_unlink(rules, slot);
	rules_declassify(rules, &handles);
	rules_count_in(rules, slot, UINT32_MAX);
}

int rules_remove(struct rules *rules, uint16_t port, uint32_t number, struct rules_count *count)
{
	const uint32_t slot = slot_of_number(rules, port, number);

	if (slot == RULES_NONE)
		return -ENOENT;
	if (count != NULL)
		*count = rules_sum(rules, slot);
	rules_drop(rules, slot);
	rules_touch(rules);
	return 0;
}

void rules_watch(struct rules *rules, uint32_t slot, struct rules_gone *gone)
{
	*gone = (struct rules_gone){0};
	rules->own[slot].gone = gone;
}

void rules_unwatch(struct rules *rules, uint32_t slot, struct rules_gone *gone)
{
	if (rules->own[slot].gone != gone)
		return;
	gone->count = rules_sum(rules, slot);
	rules->own[slot].gone = NULL;
}

uint32_t rules_flush(struct rules *rules, uint16_t port)
{
	uint32_t n = 0;

	for (uint32_t slot = 0; slot < rules->n_begun; slot++) {
		if (rules->own[slot].text == NULL ||
			(port != RULES_NO_PORT && rules->own[slot].port != port))
			continue;
		rules_drop(rules, slot);
		n++;
	}
	if (n > 0)
		rules_touch(rules);
	return n;
}

/* Views. */

static uint64_t idle_of(const struct rules *rules, uint32_t slot)
{
	uint64_t last_us = rules->own[slot].seen_us;

	for (unsigned i = 0; i < rules->n_workers; i++)
		last_us = RTE_MAX(
			last_us, __atomic_load_n(&rules->seen[(size_t)i * rules->n_slots + slot],
					 __ATOMIC_RELAXED));
	return rules->now_us > last_us ? rules->now_us - last_us : 0;
}

int rules_get_slot(const struct rules *rules, uint32_t slot, struct rules_view *view)
{
	const struct rules_own *own = &rules->own[slot];

	if (slot >= rules->n_begun || own->text == NULL)
		return -ENOENT;
	*view = (struct rules_view){
		.slot = slot,
		.port = own->port,
		.number = own->number,
		.group = own->group,
		.priority = own->priority,
		.text = own->text,
		.remark = own->made->remark,
		.line = own->line,
		.epoch = own->epoch,
		.by_packet = rules->slots[slot].by_packet,
		.hands_on = own->hands_on,
		.follows = rules->slots[slot].follows,
		.limits = rules->slots[slot].limit != 0,
		.count = rules_sum(rules, slot),
		.age = own->age,
		.in_port = own->in_port,
		.place = own->place,
		.nic_packets = own->nic_packets,
		.nic_bytes = own->nic_bytes,
		.now_packets = own->now_packets,
		.now_bytes = own->now_bytes,
		.nic_uncounted = own->nic_uncounted,
		.age_s = rules->slots[slot].age_s,
		.idle_us = rules->slots[slot].age_s != 0 ? idle_of(rules, slot) : 0,
	};
	view->nic = rules_nic_look(rules, slot, &view->behind);
	return 0;
}

int rules_get(const struct rules *rules, uint16_t port, uint32_t number, struct rules_view *view)
{
	const uint32_t slot = slot_of_number(rules, port, number);

	return slot == RULES_NONE ? -ENOENT : rules_get_slot(rules, slot, view);
}

uint32_t rules_list(const struct rules *rules, uint16_t port, uint32_t *from,
	struct rules_view *views, uint32_t max)
{
	uint32_t n = 0;

	for (; *from < rules->n_begun && n < max; ++*from)
		if ((port == RULES_NO_PORT || rules->own[*from].port == port) &&
			rules_get_slot(rules, *from, &views[n]) == 0)
			n++;
	if (*from >= rules->n_begun)
		*from = RULES_NONE;
	return n;
}

void rules_stats(const struct rules *rules, struct rules_stats *stats)
{
	*stats = (struct rules_stats){
		.rules = rules->n_rules,
		.max_rules = rules->max_rules,
		.by_packet =
			(uint32_t)atomic_load_explicit(&rules->n_by_packet, memory_order_relaxed),
		.unsettled = rules->n_unsettled,
		.before = rules->before == NULL ? RULES_NONE : rules->before->n,
		.programs = programs_count(rules->programs),
	};
}

bool rules_no_jump(const struct rules *rules, uint32_t group, struct error *error)
{
	if (group == 0 || rules->n_jumps[group] != 0)
		return false;
	error_set(error, -ENOENT, RULES_NO_JUMP "%u, so that it has no packets", group);
	return true;
}

void rules_warn(const struct rules *rules, const struct classifier_rule *rule, uint32_t slot,
	rules_tell_fn tell, void *context)
{
	const uint32_t own = slot == RULES_NONE ? CLASSIFIER_NONE : rules->own[slot].full;
	struct classifier_rule outer;
	struct rules_view view;
	struct error error;
	uint32_t handle;
	char line[160];

	if (rules_no_jump(rules, rule->group, &error))
		tell(context, error.text);
	if (rules_no_beginning(rules, rule, &error))
		tell(context, error.text);
	if (classifier_contradiction(rules->full, rule, &error) < 0)
		tell(context, error.text);
	if (slot != RULES_NONE && own == CLASSIFIER_NONE)
		return;
	if (classifier_shadow(rules->full, rule, own, &handle) < 0 ||
		classifier_get(rules->full, handle, &outer) < 0 ||
		rules_get_slot(rules, outer.id, &view) < 0)
		return;
	/* a rule with a limit leaves packets to those behind it */
	if (view.limits)
		return;
	snprintf(line, sizeof(line),
		"the rule matches nothing that rule #%u of port %u does not match before it",
		view.number, view.port);
	tell(context, line);
}
