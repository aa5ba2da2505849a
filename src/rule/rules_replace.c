/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another list in place of the one in force.
 *
 * Rules that stand in both, with the same text and meaning, are found by their text. As many of them as can be keep their
 * ranks, so that nothing of them changes: the longest rows in which the order is the same, for each priority. The others
 * are moved: they get a second entry in the classifiers, but keep their slots with all that they have counted. Then the
 * classifiers have both lists, and one store lets workers go over to the new one. When all have done so, the old list is
 * taken out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "rule/rules_private.h"

#define NONE UINT32_MAX

/* A rule of the new list. */
struct wanted {
	struct rules_made *made;
	uint64_t rank;
	uint32_t slot; /* NONE: no rule in force is the same */
	bool stays;    /* in its place */
};

struct replacing {
	struct rules *rules;
	const struct rules_list *list;
	struct wanted *wanted; /* as the list */
	uint32_t *sorted;      /* numbers of `wanted`, by priority */
	uint32_t *standing;    /* slots in force, by rank */
	uint32_t n_standing;
	uint32_t *chains, *next; /* of slots, by hash of their texts; and of numbers, for rows */
	uint32_t mask;
	bool *taken; /* by slot: a rule of the new list is the same */
};

/* An entry that is taken out when no worker uses the old list any more. */
struct leaving {
	struct rules_handles handles;
	uint32_t slot; /* NONE: the rule has other handles now */
};

struct arriving {
	uint64_t age;
	uint32_t slot;
};

struct rules_turn {
	uint64_t token;
	uint32_t n_leaving, n_arriving;
	struct leaving *leaving;
	struct arriving *arriving;
};

/* Rules by their text. */

int rules_index_create(const struct rules *rules, struct rules_index *index)
{
	index->mask = rte_align32pow2(rules->n_rules + 1) * 2 - 1;
	index->chains = malloc(((size_t)index->mask + 1) * sizeof(*index->chains));
	index->next = malloc(((size_t)rules->n_begun + 1) * sizeof(*index->next));
	if (index->chains == NULL || index->next == NULL) {
		rules_index_destroy(index);
		return -ENOMEM;
	}
	memset(index->chains, 0xff, ((size_t)index->mask + 1) * sizeof(*index->chains));
	for (uint32_t slot = 0; slot < rules->n_begun; slot++) {
		if (rules->own[slot].text == NULL || !rules->own[slot].made->plain)
			continue;
		uint32_t *head = &index->chains[rules->own[slot].made->hash & index->mask];

		index->next[slot] = *head;
		*head = slot;
	}
	return 0;
}

void rules_index_destroy(struct rules_index *index)
{
	free(index->chains);
	free(index->next);
	*index = (struct rules_index){0};
}

struct rules_made *rules_index_find(
	const struct rules *rules, const struct rules_index *index, const char *text, size_t length)
{
	const uint64_t hash = rules_hash_text(text, length);

	for (uint32_t slot = index->chains[hash & index->mask]; slot != NONE;
		slot = index->next[slot]) {
		struct rules_made *made = rules->own[slot].made;

		if (made->hash == hash && strlen(made->text) == length &&
			memcmp(made->text, text, length) == 0)
			return made;
	}
	return NULL;
}

/* Comparing. */

static bool same_uses(struct rule_use *const *one, struct rule_use *const *other)
{
	if (one == NULL || other == NULL)
		return one == other;
	while (*one != NULL && *one == *other)
		one++, other++;
	return *one == *other;
}

/* Equal words mean something else where lines of `set` do. */
static bool is_same(const struct rules_made *one, const struct rules_made *other)
{
	if (one == other)
		return true;
	return one->hash == other->hash && one->port == other->port &&
	       one->verdict == other->verdict && one->marked == other->marked &&
	       one->mark == other->mark && one->age_s == other->age_s &&
	       one->passes == other->passes && one->logs == other->logs &&
	       one->follows == other->follows && strcmp(one->text, other->text) == 0 &&
	       memcmp(&one->rule, &other->rule, sizeof(one->rule)) == 0 &&
	       same_uses(one->uses, other->uses);
}

struct key {
	uint64_t by;
	uint32_t what;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *left = a, *right = b;

	if (left->by != right->by)
		return left->by < right->by ? -1 : 1;
	return left->what < right->what ? -1 : left->what > right->what;
}

/* Both kinds of numbers that are sorted: of the slots in force, and of the new list. */
static int sort_all(struct replacing *replacing)
{
	const struct rules *rules = replacing->rules;
	const uint32_t n = RTE_MAX(replacing->list->n, rules->n_rules);
	struct key *keys = malloc(((size_t)n + 1) * sizeof(*keys));
	uint32_t n_keys = 0;

	if (keys == NULL)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < rules->n_begun; slot++)
		if (rules->own[slot].text != NULL)
			keys[n_keys++] = (struct key){rules->own[slot].rank, slot};
	qsort(keys, n_keys, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; i < n_keys; i++)
		replacing->standing[i] = keys[i].what;
	replacing->n_standing = n_keys;
	for (uint32_t i = 0; i < replacing->list->n; i++)
		keys[i] = (struct key){replacing->list->made[i]->rule.priority, i};
	qsort(keys, replacing->list->n, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; i < replacing->list->n; i++)
		replacing->sorted[i] = keys[i].what;
	free(keys);
	return 0;
}

/* Those that come first are found first. */
static void chain_standing(struct replacing *replacing)
{
	const struct rules *rules = replacing->rules;

	memset(replacing->chains, 0xff, ((size_t)replacing->mask + 1) * sizeof(*replacing->chains));
	for (uint32_t i = replacing->n_standing; i-- > 0;) {
		const uint32_t slot = replacing->standing[i];
		uint32_t *head = &replacing->chains[rules->own[slot].made->hash & replacing->mask];

		replacing->next[slot] = *head;
		*head = slot;
	}
}

static void match(struct replacing *replacing, struct wanted *wanted)
{
	const struct rules *rules = replacing->rules;
	uint32_t slot = replacing->chains[wanted->made->hash & replacing->mask];

	while (slot != NONE &&
		(replacing->taken[slot] || !is_same(rules->own[slot].made, wanted->made)))
		slot = replacing->next[slot];
	wanted->slot = slot;
	if (slot != NONE)
		replacing->taken[slot] = true;
}

static uint64_t rank_in_force(const struct replacing *replacing, uint32_t number)
{
	return replacing->rules->own[replacing->wanted[number].slot].rank;
}

/*
 * Of the `n` sorted numbers of one priority, those that are in force and rise in rank, as many as can be: the longest increasing row.
 * `ends` has the last number of the best row of each length, `before` what comes before a number in its row.
 */
static void find_row(
	struct replacing *replacing, uint32_t begin, uint32_t n, uint32_t *ends, uint32_t *before)
{
	const uint32_t *numbers = replacing->sorted + begin;
	uint32_t length = 0, last;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t number = numbers[i];
		uint32_t low = 0, high = length;

		if (replacing->wanted[number].slot == NONE)
			continue;
		while (low < high) {
			const uint32_t middle = low + (high - low) / 2;

			if (rank_in_force(replacing, ends[middle]) <
				rank_in_force(replacing, number))
				low = middle + 1;
			else
				high = middle;
		}
		before[number] = low == 0 ? NONE : ends[low - 1];
		ends[low] = number;
		length = RTE_MAX(length, low + 1);
	}
	for (last = length == 0 ? NONE : ends[length - 1]; last != NONE; last = before[last])
		replacing->wanted[last].stays = true;
}

static struct wanted *wanted_at(const struct replacing *replacing, uint32_t sorted)
{
	return &replacing->wanted[replacing->sorted[sorted]];
}

/* Ranks for the `n` sorted rules from `begin` on, between two others. */
static void spread_ranks(
	const struct replacing *replacing, uint32_t begin, uint32_t n, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < n; i++)
		wanted_at(replacing, begin + i)->rank =
			low + (high - low) * (i + 1) / ((uint64_t)n + 1);
}

/* Rules of one priority: those that stay keep their ranks, where there is room between them for the others. */
static void rank_priority(const struct replacing *replacing, uint32_t begin, uint32_t n)
{
	uint64_t low = 0;
	uint32_t first = begin; /* of those that have no rank yet */

	for (uint32_t i = begin; i < begin + n; i++) {
		struct wanted *wanted = wanted_at(replacing, i);

		if (!wanted->stays)
			continue;
		wanted->rank = rank_in_force(replacing, replacing->sorted[i]);
		if (wanted->rank - low <= i - first) {
			wanted->stays = false;
			continue;
		}
		spread_ranks(replacing, first, i - first, low, wanted->rank);
		low = wanted->rank;
		first = i + 1;
	}
	for (; first < begin + n; first++)
		wanted_at(replacing, first)->rank = rules_next_rank(replacing->rules);
}

/* When ranks are used up by half they begin anew: then no rule stays in its place. */
static bool begin_ranks_anew(struct replacing *replacing)
{
	if (replacing->rules->last_rank < CLASSIFIER_MAX_RANK / 2)
		return false;
	replacing->rules->last_rank = 0;
	return true;
}

static uint32_t priority_of(const struct replacing *replacing, uint32_t sorted)
{
	return replacing->list->made[replacing->sorted[sorted]]->rule.priority;
}

static void rank_all(struct replacing *replacing, uint32_t *ends, uint32_t *before)
{
	const bool anew = begin_ranks_anew(replacing);
	const uint32_t n = replacing->list->n;
	uint32_t end;

	for (uint32_t begin = 0; begin < n; begin = end) {
		const uint32_t priority = priority_of(replacing, begin);

		end = begin + 1;
		while (end < n && priority_of(replacing, end) == priority)
			end++;
		if (!anew)
			find_row(replacing, begin, end - begin, ends, before);
		rank_priority(replacing, begin, end - begin);
	}
}

static void end_replacing(struct replacing *replacing)
{
	free(replacing->wanted);
	free(replacing->sorted);
	free(replacing->standing);
	free(replacing->chains);
	free(replacing->next);
	free(replacing->taken);
}

static int allocate_replacing(struct replacing *replacing)
{
	const struct rules *rules = replacing->rules;
	const size_t n = (size_t)replacing->list->n + 1, n_slots = (size_t)rules->n_begun + 1;

	/* both also serve find_row(): they have room for a number each of the new list */
	replacing->mask = rte_align32pow2(RTE_MAX((uint32_t)n, rules->n_rules + 1)) * 2 - 1;
	replacing->wanted = calloc(n, sizeof(*replacing->wanted));
	replacing->sorted = malloc(n * sizeof(*replacing->sorted));
	replacing->standing = malloc(((size_t)rules->n_rules + 1) * sizeof(*replacing->standing));
	replacing->chains = malloc(((size_t)replacing->mask + 1) * sizeof(*replacing->chains));
	replacing->next = malloc(RTE_MAX(n, n_slots) * sizeof(*replacing->next));
	replacing->taken = calloc(n_slots, sizeof(*replacing->taken));
	return replacing->wanted == NULL || replacing->sorted == NULL ||
			       replacing->standing == NULL || replacing->chains == NULL ||
			       replacing->next == NULL || replacing->taken == NULL
		       ? -ENOMEM
		       : 0;
}

/* Finds the rules of a list that are in force, and gives ranks to all. end_replacing() follows in any case. */
static int prepare(struct replacing *replacing, struct rules *rules, const struct rules_list *list)
{
	*replacing = (struct replacing){.rules = rules, .list = list};
	int ret = allocate_replacing(replacing);

	if (ret == 0)
		ret = sort_all(replacing);
	if (ret < 0)
		return ret;
	chain_standing(replacing);
	for (uint32_t i = 0; i < list->n; i++) {
		replacing->wanted[i].made = list->made[i];
		match(replacing, &replacing->wanted[i]);
	}
	rank_all(replacing, replacing->chains, replacing->next);
	return rules->last_rank < CLASSIFIER_MAX_RANK ? 0 : -ENOSPC;
}

static enum rules_difference difference_of(const struct wanted *wanted)
{
	if (wanted->slot == NONE)
		return RULES_ADDED;
	return wanted->stays ? RULES_UNCHANGED : RULES_MOVED;
}

static void count_change(const struct replacing *replacing, struct rules_change *change)
{
	*change = (struct rules_change){.n = {0}};
	for (uint32_t i = 0; i < replacing->list->n; i++)
		change->n[difference_of(&replacing->wanted[i])]++;
	change->n[RULES_REMOVED] =
		replacing->n_standing - change->n[RULES_MOVED] - change->n[RULES_UNCHANGED];
}

int rules_compare(struct rules *rules, const struct rules_list *list, struct rules_change *change,
	rules_differ_fn tell, void *context)
{
	const uint64_t last_rank = rules->last_rank;
	struct replacing replacing;
	int ret = prepare(&replacing, rules, list);

	rules->last_rank = last_rank;
	if (ret == 0)
		count_change(&replacing, change);
	for (uint32_t i = 0; ret == 0 && i < replacing.n_standing; i++) {
		const uint32_t slot = replacing.standing[i];

		if (!replacing.taken[slot])
			tell(context, RULES_REMOVED, rules->own[slot].text, rules->own[slot].line);
	}
	for (uint32_t i = 0; ret == 0 && i < list->n; i++) {
		const enum rules_difference difference = difference_of(&replacing.wanted[i]);

		if (difference != RULES_UNCHANGED)
			tell(context, difference, list->made[i]->text, list->lines[i]);
	}
	end_replacing(&replacing);
	return ret;
}

/* The turn. */

static void free_turn(struct rules_turn *turn)
{
	if (turn == NULL)
		return;
	free(turn->leaving);
	free(turn->arriving);
	free(turn);
}

static struct rules_turn *create_turn(const struct rules_change *change)
{
	const size_t arriving = (size_t)change->n[RULES_ADDED] + change->n[RULES_MOVED];
	const size_t leaving = (size_t)change->n[RULES_REMOVED] + change->n[RULES_MOVED];
	struct rules_turn *turn = calloc(1, sizeof(*turn));

	if (turn == NULL)
		return NULL;
	turn->leaving = malloc((leaving + 1) * sizeof(*turn->leaving));
	turn->arriving = malloc((arriving + 1) * sizeof(*turn->arriving));
	if (turn->leaving != NULL && turn->arriving != NULL)
		return turn;
	free_turn(turn);
	return NULL;
}

static void set_lists(struct rules *rules, const struct rules_handles *handles, unsigned lists)
{
	if (handles->full != CLASSIFIER_NONE)
		classifier_set_lists(rules->full, handles->full, lists);
	if (handles->of_flows != CLASSIFIER_NONE)
		classifier_set_lists(rules->of_flows, handles->of_flows, lists);
}

static struct rules_handles handles_of(const struct rules *rules, uint32_t slot)
{
	return (struct rules_handles){rules->own[slot].full, rules->own[slot].of_flows};
}

bool rules_end_turn(struct rules *rules)
{
	struct rules_turn *turn = rules->turn;

	if (turn == NULL)
		return true;
	if (!rte_rcu_qsbr_check(rules->qsbr, turn->token, false))
		return false;
	for (uint32_t i = 0; i < turn->n_leaving; i++) {
		rules_declassify(rules, &turn->leaving[i].handles);
		if (turn->leaving[i].slot != NONE)
			rules_count_in(rules, turn->leaving[i].slot, UINT32_MAX);
	}
	for (uint32_t i = 0; i < turn->n_arriving; i++) {
		const struct arriving *arriving = &turn->arriving[i];
		const struct rules_own *own = &rules->own[arriving->slot];

		/* unless it was removed alone meanwhile */
		if (own->text == NULL || own->age != arriving->age)
			continue;
		const struct rules_handles handles = handles_of(rules, arriving->slot);

		set_lists(rules, &handles, CLASSIFIER_BOTH_LISTS);
	}
	rules->turn = NULL;
	free_turn(turn);
	return true;
}

/* A rule of the new list that is not in force as it is to be: `handles` become those of its entry there. */
static int bring(struct replacing *replacing, struct wanted *wanted, unsigned list,
	struct rules_handles *handles)
{
	struct rules *rules = replacing->rules;
	const struct classifier_position at = {
		.rank = wanted->rank, .lists = CLASSIFIER_LIST(list)};
	const bool is_new = wanted->slot == NONE;
	const uint32_t slot =
		is_new ? rules_fill_slot(rules, wanted->made, wanted->rank) : wanted->slot;
	int ret = rules_classify_in(rules, wanted->made, slot, &at, handles);

	if (ret < 0 && is_new)
		rules_empty_slot(rules, slot);
	else if (ret == 0)
		wanted->slot = slot;
	return ret;
}

struct brought {
	struct rules_handles *handles; /* by number of the new list */
	bool *is_new;
};

/* The entries of the first `n` rules that were brought go again. */
static void take_away(struct replacing *replacing, const struct brought *brought, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct wanted *wanted = &replacing->wanted[i];

		if (wanted->stays)
			continue;
		rules_declassify(replacing->rules, &brought->handles[i]);
		if (brought->is_new[i])
			rules_empty_slot(replacing->rules, wanted->slot);
	}
}

static int bring_all(struct replacing *replacing, struct brought *brought, unsigned list)
{
	const uint32_t n = replacing->list->n;

	brought->handles = malloc(((size_t)n + 1) * sizeof(*brought->handles));
	brought->is_new = malloc((size_t)n + 1);
	if (brought->handles == NULL || brought->is_new == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct wanted *wanted = &replacing->wanted[i];

		brought->is_new[i] = wanted->slot == NONE;
		if (wanted->stays)
			continue;
		int ret = bring(replacing, wanted, list, &brought->handles[i]);

		if (ret < 0) {
			take_away(replacing, brought, i);
			return ret;
		}
	}
	return 0;
}

/* Readers of the new list are not to see what leaves it: rules that go, and the old entries of those that move. */
static void hide_leaving(struct replacing *replacing, const struct brought *brought,
	struct rules_turn *turn, unsigned list)
{
	struct rules *rules = replacing->rules;

	for (uint32_t i = 0; i < replacing->n_standing; i++)
		if (!replacing->taken[replacing->standing[i]])
			turn->leaving[turn->n_leaving++] = (struct leaving){
				.handles = handles_of(rules, replacing->standing[i]),
				.slot = replacing->standing[i]};
	for (uint32_t i = 0; i < replacing->list->n; i++) {
		const struct wanted *wanted = &replacing->wanted[i];

		if (!wanted->stays && !brought->is_new[i])
			turn->leaving[turn->n_leaving++] = (struct leaving){
				.handles = handles_of(rules, wanted->slot), .slot = NONE};
	}
	for (uint32_t i = 0; i < turn->n_leaving; i++)
		set_lists(rules, &turn->leaving[i].handles, CLASSIFIER_LIST(list));
}

/* The list in force, as one to go back to. */
static struct rules_list *keep_standing(const struct replacing *replacing)
{
	struct rules_list *list = calloc(1, sizeof(*list));

	if (list == NULL)
		return NULL;
	list->made = malloc(((size_t)replacing->n_standing + 1) * sizeof(struct rules_made *));
	list->lines = malloc(((size_t)replacing->n_standing + 1) * sizeof(*list->lines));
	if (list->made == NULL || list->lines == NULL) {
		free(list->made);
		free(list->lines);
		free(list);
		return NULL;
	}
	list->n = list->room = replacing->n_standing;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct rules_own *own = &replacing->rules->own[replacing->standing[i]];

		list->made[i] = own->made;
		list->made[i]->refs++;
		list->lines[i] = own->line;
	}
	return list;
}

void rules_list_free(struct rules *rules, struct rules_list *list)
{
	if (list == NULL)
		return;
	for (uint32_t i = 0; i < list->n; i++)
		rules_release(rules, list->made[i]);
	rule_setup_destroy(list->setup);
	rules_index_destroy(&list->index);
	free(list->made);
	free(list->lines);
	free(list);
}

void rules_end_replacing(struct rules *rules)
{
	rules_list_free(rules, rules->before);
	rules->before = NULL;
	free_turn(rules->turn);
	rules->turn = NULL;
}

/* The rule is the same; what the newer list made of it is all that is kept. */
static void exchange_made(struct rules *rules, uint32_t slot, struct rules_made *made)
{
	struct rules_own *own = &rules->own[slot];

	made->refs++;
	rules_release(rules, own->made);
	own->made = made;
	own->text = made->text;
}

/* After workers were told: what the writer knows follows. Rules that go make room first. */
static void follow_turn(struct replacing *replacing, const struct brought *brought)
{
	struct rules *rules = replacing->rules;
	struct rules_turn *turn = rules->turn;

	for (uint32_t i = 0; i < turn->n_leaving; i++)
		if (turn->leaving[i].slot != NONE)
			rules_unlink(rules, turn->leaving[i].slot);
	for (uint32_t i = 0; i < replacing->list->n; i++) {
		const struct wanted *wanted = &replacing->wanted[i];
		struct rules_own *own = &rules->own[wanted->slot];

		if (!brought->is_new[i])
			exchange_made(rules, wanted->slot, wanted->made);
		own->line = replacing->list->lines[i];
		if (wanted->stays)
			continue;
		if (!brought->is_new[i])
			rules_nic_removed(rules, wanted->slot);
		own->rank = wanted->rank;
		own->full = brought->handles[i].full;
		own->of_flows = brought->handles[i].of_flows;
		if (brought->is_new[i])
			rules_link(rules, wanted->slot, ++rules->last_age);
		else
			rules_nic_added(rules, wanted->slot);
		turn->arriving[turn->n_arriving++] =
			(struct arriving){.age = own->age, .slot = wanted->slot};
	}
}

/* Everything is there: from one store on workers decide by the new list. */
static void turn_over(struct replacing *replacing, const struct brought *brought,
	struct rules_turn *turn, struct rules_change *change)
{
	struct rules *rules = replacing->rules;
	const unsigned old = atomic_load_explicit(&rules->list, memory_order_relaxed);

	hide_leaving(replacing, brought, turn, old);
	for (uint32_t i = 0; i < replacing->list->n; i++)
		if (brought->is_new[i])
			rules_count_in(rules, replacing->wanted[i].slot, 1);
	atomic_store_explicit(&rules->list, !old, memory_order_release);
	turn->token = rte_rcu_qsbr_start(rules->qsbr);
	classifier_show_list(rules->full, !old);
	classifier_show_list(rules->of_flows, !old);
	rules->turn = turn;
	rules->epoch++;
	follow_turn(replacing, brought);
	change->generation = rules_touch(rules);
}

static int check_room_for_list(struct rules *rules, const struct rules_list *list,
	const struct rules_change *change, struct error *error)
{
	if (list->n > rules->max_rules)
		return error_set(error, -ENOSPC,
			"no room: the list has %u rules, and there can be %u (rules.max)", list->n,
			rules->max_rules);
	rules_settled(rules, 0);
	return rules->turn != NULL || rules_free_slots(rules) < change->n[RULES_ADDED]
		       ? rules_explain_add(-EAGAIN, error)
		       : 0;
}

/* Limits of rules that are not in force have room beside those that are. */
static int check_limits_room(const struct replacing *replacing, struct error *error)
{
	unsigned n[2] = {0, 0};

	for (uint32_t i = 0; i < replacing->list->n; i++) {
		const struct rule_limit *limit = &replacing->wanted[i].made->limit;

		if (replacing->wanted[i].slot == NONE && limit->given)
			n[limit->live]++;
	}
	return rules_limits_room(replacing->rules, n[0], n[1], error);
}

/* The list is the caller's still. */
static int replace_by(struct replacing *replacing, struct rules_list **before,
	struct rules_change *change, struct error *error)
{
	struct rules *rules = replacing->rules;
	struct brought brought = {0};
	struct rules_turn *turn = create_turn(change);
	int ret = -ENOMEM;

	*before = keep_standing(replacing);
	if (turn != NULL && *before != NULL)
		ret = bring_all(replacing, &brought,
			!atomic_load_explicit(&rules->list, memory_order_relaxed));
	if (ret == 0) {
		turn_over(replacing, &brought, turn, change);
	} else {
		free_turn(turn);
		rules_list_free(rules, *before);
		*before = NULL;
		rules_explain_add(ret, error);
	}
	free(brought.handles);
	free(brought.is_new);
	return ret;
}

/* Does what rules_replace() does; `before` becomes the list that was in force. */
static int try_to_replace(struct rules *rules, struct rules_list *list, struct rules_list **before,
	struct rules_change *change, struct error *error)
{
	const uint64_t last_rank = rules->last_rank;
	struct replacing replacing;
	int ret = prepare(&replacing, rules, list);

	if (ret < 0) {
		rules_explain_add(ret, error);
	} else {
		count_change(&replacing, change);
		ret = check_room_for_list(rules, list, change, error);
		ret = ret < 0 ? ret : check_limits_room(&replacing, error);
	}
	if (ret == 0)
		ret = replace_by(&replacing, before, change, error);
	end_replacing(&replacing);
	if (ret != 0) {
		rules->last_rank = last_rank;
		return ret;
	}
	(*before)->setup = rules->setup;
	rules->setup = list->setup;
	list->setup = NULL;
	rules_list_free(rules, list);
	return 0;
}

int rules_replace(struct rules *rules, struct rules_list *list, struct rules_change *change,
	struct error *error)
{
	struct rules_list *before = NULL;
	int ret = try_to_replace(rules, list, &before, change, error);

	if (ret < 0)
		return ret;
	rules_list_free(rules, rules->before);
	rules->before = before;
	return 0;
}

int rules_go_back(struct rules *rules, struct rules_change *change, struct error *error)
{
	struct rules_list *list = rules->before, *left = NULL;

	if (list == NULL)
		return error_set(error, -ENOENT, "there is no list to go back to");
	int ret = try_to_replace(rules, list, &left, change, error);

	if (ret < 0)
		return ret;
	rules->before = NULL;
	rules_list_free(rules, left);
	return 0;
}

uint32_t rules_epoch(const struct rules *rules)
{
	return rules->epoch;
}
