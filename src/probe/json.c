/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "control/answer.h"
#include "control/offload_words.h"
#include "probe/report.h"

static json_t *begin_cell(const struct form *form, enum level level)
{
	const struct form_pattern *pattern = &form->pattern;
	json_t *object = json_object();

	json_object_set_new(object, "pattern", json_string(pattern->name));
	json_object_set_new(object, "actions", json_string(form->actions->name));
	if (pattern->special == FORM_SHAPE)
		json_object_set_new(object, "kind", json_string(provider_kind_name(pattern->kind)));
	json_object_set_new(object, "level", json_string(level_name(level)));
	return object;
}

static json_t *seen_of(const struct form_actions *actions, const struct eyes_seen *seen)
{
	json_t *object = json_object();

	answer_number(object, "packets", seen->packets);
	if (actions->mark) {
		answer_number(object, "marked", seen->marked);
		answer_number(object, "wrong_mark", seen->wrong);
	}
	answer_number(object, "by_queue", seen->in_place);
	if (actions->fate == FORM_REPRESENTED_PORT || actions->fate == FORM_PORT_ID)
		answer_number(object, "sent_on", seen->elsewhere);
	return object;
}

static const char *counter_name(enum cell_counter counter)
{
	static const char *const names[] = {[CELL_NOT_COUNTED] = "not tried",
		[CELL_UNREAD] = "unreadable",
		[CELL_STUCK] = "stuck",
		[CELL_LATE] = "late",
		[CELL_MOVES] = "moves",
		[CELL_INEXACT] = "inexact",
		[CELL_EXACT] = "exact"};

	return names[counter];
}

static void add_effect(json_t *object, const struct form *form, const struct cell *cell)
{
	static const char *const effects[] = {[CELL_UNSEEN] = "not tried",
		[CELL_ONE_WAY] = "not tried",
		[CELL_BROKEN] = "missing",
		[CELL_SEEN] = "seen"};

	json_object_set_new(object, "effect", json_string(effects[cell->effect]));
	if (cell->kind != PROVIDER_N_KINDS && cell->effect != CELL_UNSEEN)
		json_object_set_new(object, "seen", seen_of(form->actions, &cell->seen));
	if (form->actions->count && cell->counter != CELL_NOT_COUNTED) {
		json_object_set_new(object, "counter", json_string(counter_name(cell->counter)));
		if (cell->counter > CELL_STUCK)
			answer_number(object, "counted", cell->counted);
	}
	if (cell->stays)
		json_object_set_new(object, "stays", json_true());
	if (cell->left)
		json_object_set_new(
			object, "left", offload_refusal(cell->destroy.error, cell->destroy.words));
}

json_t *probe_json_cell(const struct form *form, const struct cell *cell)
{
	json_t *object = begin_cell(form, cell->level);
	char words[192];

	if (!cell->validates)
		json_object_set_new(object, "validate", json_null());
	else if (cell->validate.error == 0)
		json_object_set_new(object, "validate", json_true());
	else
		json_object_set_new(object, "validate",
			offload_refusal(cell->validate.error, cell->validate.words));
	if (cell->create.error != 0) {
		json_object_set_new(
			object, "create", offload_refusal(cell->create.error, cell->create.words));
		return object;
	}
	json_object_set_new(object, "create", json_true());
	add_effect(object, form, cell);
	cell_words(words, sizeof(words), form->actions, cell);
	if (words[0] != '\0')
		json_object_set_new(object, "because", answer_string(words));
	return object;
}

json_t *probe_json_lost(unsigned number, const char *words)
{
	struct form form;
	json_t *object;

	if (!form_pattern(number / form_n_actions(), &form.pattern))
		return NULL;
	form.actions = form_actions(number % form_n_actions());
	object = begin_cell(&form, LEVEL_NO);
	/* nobody knows whether it had been refused */
	json_object_set_new(object, "level", json_string("lost"));
	json_object_set_new(object, "lost", json_true());
	json_object_set_new(object, "because", answer_string(words));
	return object;
}

static json_t *latency_of(const struct limits_latency *latency)
{
	json_t *object = json_object();

	answer_number(object, "times", latency->times);
	answer_number(object, "p50_ns", latency->p50_ns);
	answer_number(object, "p99_ns", latency->p99_ns);
	answer_number(object, "per_s", (uint64_t)llround(latency->per_s));
	return object;
}

static json_t *kinds_of(const struct provider_abilities *abilities)
{
	json_t *kinds = json_object();

	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++) {
		const struct provider_why *refused = &abilities->refused[i];
		const char *name = provider_kind_name((enum provider_kind)i);

		if (abilities->kind[i])
			json_object_set_new(kinds, name, answer_string(abilities->shape[i]));
		else
			json_object_set_new(
				kinds, name, offload_refusal(refused->error, refused->words));
	}
	return kinds;
}

json_t *probe_json_limits(const struct limits *limits, const char *form)
{
	static const char *const ends[] = {[LIMITS_NONE] = "none",
		[LIMITS_FULL] = "full",
		[LIMITS_CAP] = "cap",
		[LIMITS_TIME] = "time",
		[LIMITS_FAILED] = "failed",
		[LIMITS_STOPPED] = "interrupted"};
	const struct provider_abilities *abilities = &limits->abilities;
	json_t *object = json_object();

	json_object_set_new(object, "back_end", json_string(abilities->back_end));
	if (abilities->unable[0] != '\0')
		json_object_set_new(object, "unable", answer_string(abilities->unable));
	answer_number(object, "mark_bits", abilities->mark_bits);
	answer_number(object, "mark_max", abilities->mark_max);
	json_object_set_new(object, "counts", json_boolean(abilities->counts));
	json_object_set_new(object, "kinds", kinds_of(abilities));
	if (limits->kind == PROVIDER_N_KINDS)
		return object;
	if (limits->by_form)
		json_object_set_new(object, "form", json_string(form));
	json_object_set_new(object, "kind", json_string(provider_kind_name(limits->kind)));
	answer_number(object, "rules", limits->rules);
	json_object_set_new(object, "end", json_string(ends[limits->end]));
	if (limits->why.error != 0 && limits->end != LIMITS_CAP && limits->end != LIMITS_TIME &&
		limits->end != LIMITS_STOPPED)
		json_object_set_new(
			object, "answer", offload_refusal(limits->why.error, limits->why.words));
	answer_number(object, "inserts_failed", limits->failed);
	answer_number(object, "deletes_failed", limits->refused_removes);
	json_object_set_new(object, "insert", latency_of(&limits->insert));
	json_object_set_new(object, "delete", latency_of(&limits->remove));
	if (limits->all_away > 0) {
		answer_number(object, "all_away", limits->all_away);
		answer_number(object, "all_away_us", limits->all_away_us);
	}
	answer_number(object, "left", limits->left);
	return object;
}
