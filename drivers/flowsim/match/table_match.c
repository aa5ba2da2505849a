/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/handle.h"
#include "drivers/flowsim/match/table.h"

bool sim_class_may_match(const struct sim_class *sort, const struct sim_view *view)
{
	return sim_pattern_fits(&sort->shape, view);
}

/* A packet that is being sent did not arrive anywhere. */
static inline bool port_matches(const struct rte_flow *rule, const struct sim_view *view)
{
	return view->port == SIM_NO_PORT || view->port == rule->ingress;
}

static inline void values_of(
	const struct sim_class *sort, const struct sim_view *view, uint64_t values[SIM_VIEW_WORDS])
{
	for (unsigned i = 0; i < sort->shape.n_words; i++)
		values[i] = sim_view_word(view, sort->shape.words[i]) & sort->masks[i];
}

bool sim_rule_match(const struct rte_flow *rule, const struct sim_view *view)
{
	uint64_t values[SIM_VIEW_WORDS];

	if (!port_matches(rule, view) || !sim_class_may_match(rule->sort, view))
		return false;
	values_of(rule->sort, view, values);
	return sim_values_equal(values, rule->values, rule->sort->shape.n_words);
}

/* The best of a class's rules that match and that come after that one (NULL: of all). */
static struct rte_flow *best_of_class(const struct sim_table *table, const struct sim_class *sort,
	const struct sim_view *view, const struct rte_flow *after)
{
	uint64_t values[SIM_VIEW_WORDS];
	unsigned n = sort->shape.n_words;
	const struct sim_slot *slot;

	values_of(sort, view, values);
	slot = sim_values_find(&sort->values, sim_table_hash(table, values, n), values, n);
	for (struct rte_flow *rule = slot != NULL ? slot->rule : NULL; rule != NULL;
		rule = rule->worse)
		if (port_matches(rule, view) &&
			(after == NULL || sim_goes_before(after->priority, after->serial,
						  rule->priority, rule->serial)))
			return rule;
	return NULL;
}

static struct rte_flow *best_of_group(const struct sim_table *table, const struct sim_group *group,
	const struct sim_view *view, const struct rte_flow *after)
{
	struct rte_flow *best = NULL, *rule;
	const struct sim_class *sort;

	TAILQ_FOREACH(sort, &group->classes, link) {
		/* from here on there is nothing better */
		if (best != NULL && !sim_goes_before(sort->best_priority, sort->best_serial,
					    best->priority, best->serial))
			break;
		if (!sim_class_may_match(sort, view))
			continue;
		rule = best_of_class(table, sort, view, after);
		if (rule != NULL && (best == NULL || sim_goes_before(rule->priority, rule->serial,
							     best->priority, best->serial)))
			best = rule;
	}
	return best;
}

static void take(struct sim_verdict *verdict, struct rte_flow *rule)
{
	const struct sim_actions *actions = rule->actions;

	verdict->chain[verdict->n++] = rule;
	if (actions->mark) {
		verdict->mark = true;
		verdict->mark_id = rule->mark_id;
	}
	verdict->flag |= actions->flag;
	verdict->edits |= actions->n_edits > 0;
	verdict->meter |= actions->meter;
	verdict->sample |= actions->sample;
	if (actions->fate == SIM_FATE_NONE)
		return;
	verdict->fate = actions->fate;
	verdict->queue = actions->queue;
	verdict->port = actions->port;
	verdict->rss = NULL;
	if (actions->fate == SIM_FATE_RSS)
		verdict->rss =
			actions->rss_handle != NULL ? actions->rss_handle->rss : &actions->rss;
}

static void search(const struct sim_table *table, enum sim_domain domain,
	const struct sim_view *view, struct sim_verdict *verdict)
{
	const struct sim_group *group = table->first[domain];
	const struct rte_flow *after = NULL;

	while (group != NULL && verdict->n < SIM_MAX_CHAIN) {
		struct rte_flow *rule = best_of_group(table, group, view, after);

		if (rule == NULL)
			return;
		take(verdict, rule);
		if (rule->actions->fate != SIM_FATE_NONE)
			return;
		if (rule->actions->jump) {
			group = sim_table_live_group(table, domain, rule->actions->jump_group);
			after = NULL;
		} else if (rule->actions->passthru) {
			after = rule;
		} else {
			return;
		}
	}
}

/* The packet does not get to the ingress rules. */
static bool is_settled(const struct sim_verdict *verdict)
{
	return verdict->fate == SIM_FATE_DROP || verdict->fate == SIM_FATE_SEND ||
	       verdict->fate == SIM_FATE_GIVE;
}

void sim_table_match(const struct sim_table *table, enum sim_domain domain,
	const struct sim_view *view, struct sim_verdict *verdict)
{
	sim_clear(verdict, sizeof(*verdict));
	if (domain == SIM_INGRESS) {
		search(table, SIM_TRANSFER, view, verdict);
		if (is_settled(verdict))
			return;
	}
	search(table, domain, view, verdict);
}

bool sim_table_is_empty(const struct sim_table *table, enum sim_domain domain)
{
	uint64_t n = __atomic_load_n(&table->n_rules[domain], __ATOMIC_RELAXED);

	if (domain == SIM_INGRESS)
		n += __atomic_load_n(&table->n_rules[SIM_TRANSFER], __ATOMIC_RELAXED);
	return n == 0;
}
