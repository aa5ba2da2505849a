/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "control/configurer.h"
#include "main/block_changes.h"
#include "main/config_difference.h"
#include "main/exports_change.h"
#include "main/run_config_places.h"

#define FILE_NAME_MAX 160

/* A configuration that was in effect, with what it needs to be so again. */
struct run_before {
	struct run_config *config; /* the start's own is not freed */
	struct run_blocks_text blocks;
	bool rules;	/* it had another list of rules, */
	uint32_t epoch; /* and the one that replaced it has this epoch */
};

/* A configuration that is to be in effect; nothing of the engine has changed yet. */
struct wanted {
	struct run *run;
	struct run_config *config;
	char *json;
	struct config_differences differences;
	struct run_places *places; /* of its text; NULL: it is not from a text */
	struct run_blocks_text blocks_text;
	struct block_changes blocks;
	struct exports_change exports;
	struct rules_list *rules; /* NULL: they stay */
	bool rules_back;	  /* those before are in force again */
	struct control_config_change *change;
};

static int no_memory_to_apply(struct error *error)
{
	return error_set(error, -ENOMEM, "no memory for the configuration");
}

static void free_config(const struct run *run, struct run_config *config)
{
	if (config == NULL || config == &run->config)
		return;
	run_config_fini(config);
	free(config);
}

static void free_wanted(struct wanted *wanted)
{
	struct run *run = wanted->run;

	if (wanted->rules != NULL)
		rules_list_destroy(plane_rules(run->plane), wanted->rules);
	exports_change_drop(&wanted->exports);
	block_changes_fini(&wanted->blocks);
	run_blocks_text_fini(&wanted->blocks_text);
	config_differences_fini(&wanted->differences);
	run_places_destroy(wanted->places);
	free_config(run, wanted->config);
	free(wanted->json);
	*wanted = (struct wanted){.run = run};
}

/* ------------------------- what is wanted */

static int add_line(struct wanted *wanted, json_t *line, struct error *error)
{
	return json_array_append_new(wanted->change->lines, line) < 0 ? no_memory_to_apply(error)
								      : 0;
}

/* The line of a key in the text; a time-out may be said by its protocol. 0: it is not said there. */
static unsigned line_of(const struct run_places *places, const char *key)
{
	char group[RUN_PATH_MAX];
	unsigned line = places != NULL ? run_places_line(places, key) : 0;

	if (places == NULL || line != 0 || strncmp(key, "timeouts.", 9) != 0)
		return line;
	snprintf(group, sizeof(group), "%.*s", (int)strcspn(key, "-"), key);
	return run_places_line(places, group);
}

/* Why a key waits for a restart: NULL where it does not. */
static const char *restart_of(
	const struct wanted *wanted, const struct config_difference *difference)
{
	const struct plane_config *plane = plane_config(wanted->run->plane);

	if (strncmp(difference->key, "offload.", 8) == 0 && !plane->offload.on)
		return "offload was off at the start";
	if (strcmp(difference->key, "exports") == 0 && !plane->octets)
		return "there were none at the start, and flows have no room for what they need";
	return config_difference_restart(difference);
}

static int tell_difference(
	struct wanted *wanted, const struct config_difference *difference, struct error *error)
{
	const char *restart = restart_of(wanted, difference);
	const unsigned line = line_of(wanted->places, difference->key);
	json_t *told = json_object();

	json_object_set_new(told, "key", json_string(difference->key));
	json_object_set(told, "before", difference->before);
	json_object_set(told, "after", difference->after);
	if (line != 0)
		json_object_set_new(told, "line", json_integer(line));
	json_object_set_new(told, "change", json_string(restart != NULL ? "restart" : "now"));
	if (restart != NULL && restart[0] != '\0')
		json_object_set_new(told, "why", json_string(restart));
	wanted->change->now += restart == NULL;
	wanted->change->restart += restart != NULL;
	return add_line(wanted, told, error);
}

/* Tells keys that the command line says otherwise: the command line holds. */
static int tell_overridden(
	struct wanted *wanted, const struct control_config_text *text, struct error *error)
{
	struct config_differences other = {0};
	struct run_config *alone = calloc(1, sizeof(*alone));
	int ret = alone == NULL
			  ? no_memory_to_apply(error)
			  : run_config_read_bytes(alone, text->name, text->text, text->size, error);
	char *json = ret == 0 ? run_config_json(alone) : NULL;

	if (ret == 0)
		ret = json == NULL ? -ENOMEM : config_differences_find(&other, json, wanted->json);
	if (ret == -ENOMEM)
		no_memory_to_apply(error);
	for (unsigned i = 0; ret == 0 && i < other.n; i++) {
		const unsigned line = line_of(wanted->places, other.list[i].key);
		json_t *told;

		if (line == 0)
			continue;
		told = json_object();
		json_object_set_new(told, "key", json_string(other.list[i].key));
		json_object_set(told, "file", other.list[i].before);
		json_object_set(told, "stays", other.list[i].after);
		json_object_set_new(told, "line", json_integer(line));
		json_object_set_new(told, "change", json_string("overridden"));
		ret = add_line(wanted, told, error);
	}
	config_differences_fini(&other);
	free(json);
	if (alone != NULL)
		run_config_fini(alone);
	free(alone);
	return ret;
}

/* The first key that only a restart changes, and how many more there are. */
static int refuse_restart(const struct wanted *wanted, const char *name, struct error *error)
{
	char before[CONFIG_VALUE_TEXT], after[CONFIG_VALUE_TEXT], word[FILE_NAME_MAX];
	char more[64] = "", line[16] = "";

	for (unsigned i = 0; i < wanted->differences.n; i++) {
		const struct config_difference *difference = &wanted->differences.list[i];
		const char *why = restart_of(wanted, difference);
		const unsigned number = line_of(wanted->places, difference->key);

		if (why == NULL)
			continue;
		if (number != 0)
			snprintf(line, sizeof(line), "%u:", number);
		if (wanted->change->restart > 1)
			snprintf(more, sizeof(more), " (and %u more: config diff lists them)",
				wanted->change->restart - 1);
		return error_set(error, -EBUSY,
			"%s:%s %s: it is %s, and %s is wanted: restart to change it%s%s%s",
			text_printable(word, sizeof(word), name), line, difference->key,
			config_value_text(difference->before, before),
			config_value_text(difference->after, after), why[0] != '\0' ? "; " : "",
			why, more);
	}
	return 0;
}

/* The configuration itself is read; `wanted->config` is set in any case but without memory. */
static int read_config(
	struct wanted *wanted, const struct control_config_text *text, struct error *error)
{
	const struct run_config_text bytes = {.name = text->name,
		.bytes = text->text,
		.size = text->size,
		.strict = text->to_save};
	int ret;

	wanted->config = calloc(1, sizeof(*wanted->config));
	if (wanted->config == NULL)
		return no_memory_to_apply(error);
	ret = run_config_parse_again(
		wanted->config, &wanted->run->words, text->text != NULL ? &bytes : NULL, error);
	if (ret == 0 && text->text != NULL)
		ret = run_places_read(&wanted->places, text->name, text->text, text->size, error);
	return ret;
}

/* In what it differs from the one in effect. */
static int compare(struct wanted *wanted, struct error *error)
{
	char *before = run_config_json(wanted->run->current);
	int ret;

	wanted->json = run_config_json(wanted->config);
	wanted->change->lines = json_array();
	ret = before == NULL || wanted->json == NULL || wanted->change->lines == NULL
		      ? -ENOMEM
		      : config_differences_find(&wanted->differences, before, wanted->json);
	free(before);
	if (ret < 0)
		return no_memory_to_apply(error);
	for (unsigned i = 0; ret == 0 && i < wanted->differences.n; i++)
		ret = tell_difference(wanted, &wanted->differences.list[i], error);
	return ret;
}

/* ------------------------- its parts */

static int find_blocks(struct wanted *wanted, struct error *error)
{
	int ret = block_changes_find(
		&wanted->blocks, &wanted->run->blocks, &wanted->blocks_text, error);

	wanted->change->blocks_added = wanted->blocks.n_added;
	wanted->change->blocks_removed = wanted->blocks.n_removed;
	return ret;
}

/* Are rules those of a configuration, and not only of clients? */
static bool has_rules(const struct run_config *config)
{
	return config->rules.file != NULL || config->rules.n_list > 0;
}

static void tell_warning(void *context, const char *text)
{
	struct wanted *wanted = context;
	json_t *line = json_object();

	json_object_set_new(line, "warning", json_string(text));
	json_array_append_new(wanted->change->lines, line);
}

static void tell_rule_change(
	void *context, enum rules_difference difference, const char *text, uint32_t number)
{
	static const char *const names[RULES_N_DIFFERENCES] = {
		[RULES_ADDED] = "added", [RULES_REMOVED] = "removed", [RULES_MOVED] = "moved"};
	struct wanted *wanted = context;
	json_t *line;

	/* an error is that of no memory, and is told by what follows */
	if (names[difference] == NULL)
		return;
	line = json_object();
	json_object_set_new(line, "change", json_string(names[difference]));
	if (number != 0)
		json_object_set_new(line, "line", json_integer(number));
	json_object_set_new(line, "rule", json_string(text));
	json_array_append_new(wanted->change->lines, line);
}

static void tell_no_rule(
	void *context, enum rules_difference difference, const char *text, uint32_t number)
{
	(void)context;
	(void)difference;
	(void)text;
	(void)number;
}

/* Rules are read, and compared with those in force. `tell`: each that differs is told. */
static int read_rules(struct wanted *wanted, bool tell, struct error *error)
{
	struct run *run = wanted->run;
	struct rules *rules = plane_rules(run->plane);
	struct control_config_change *change = wanted->change;

	if (rules == NULL || !(has_rules(wanted->config) || has_rules(run->current)))
		return 0;
	if (rules_list_create(rules, &wanted->rules) < 0)
		return error_set(error, -ENOMEM, "no memory to read the rules");
	int ret = run_rules_read(
		&wanted->config->rules, rules, wanted->rules, tell_warning, wanted, error);

	if (ret < 0)
		return ret;
	if (rules_compare(rules, wanted->rules, &change->of_rules,
		    tell ? tell_rule_change : tell_no_rule, wanted) < 0)
		return no_memory_to_apply(error);
	change->rules = true;
	change->rules_changed = change->of_rules.n[RULES_ADDED] != 0 ||
				change->of_rules.n[RULES_REMOVED] != 0 ||
				change->of_rules.n[RULES_MOVED] != 0;
	if (change->rules_changed)
		return 0;
	rules_list_destroy(rules, wanted->rules);
	wanted->rules = NULL;
	return 0;
}

static int find_exports(struct wanted *wanted, struct error *error)
{
	const struct exports_in_use use = {.exporter = wanted->run->exporter,
		.ports = &wanted->run->topology,
		.names = wanted->run->port_names,
		.exports = &wanted->config->exports};

	exports_change_find(&wanted->exports, &use);
	(void)error;
	wanted->change->exports_opened = wanted->exports.n_new;
	wanted->change->exports_closed = wanted->exports.n_gone;
	return 0;
}

/* Reads all, as far as that changes nothing. `diff`: it is only to be told. */
static int prepare(struct wanted *wanted, const struct control_config_text *text, bool diff,
	struct error *error)
{
	int ret = read_config(wanted, text, error);

	if (ret == 0)
		ret = compare(wanted, error);
	if (ret == 0 && text->text != NULL)
		ret = tell_overridden(wanted, text, error);
	if (ret == 0 && !diff)
		ret = refuse_restart(wanted, text->name, error);
	if (ret == 0)
		ret = run_blocks_read(&wanted->config->blocks, &wanted->blocks_text, error);
	if (ret == 0)
		ret = find_blocks(wanted, error);
	if (ret == 0)
		ret = read_rules(wanted, diff, error);
	if (ret == 0)
		ret = find_exports(wanted, error);
	return ret;
}

/* ------------------------- in effect */

static void set_plane(const struct run *run)
{
	const struct run_config *config = run->current;
	const struct plane_settings settings = {
		.timeouts = config->engine.timeouts,
		.active_s = config->engine.active_s,
		.reject_rate = config->rules.reject_rate,
		.log_rate = config->rules.log_rate,
		.offload_on = config->offload.on,
		.threshold = config->offload.threshold,
		.rules = config->offload.rules,
		.rules_per_s = config->offload.rules_per_s,
	};

	plane_set(run->plane, &settings);
}

static int change_rules(
	struct wanted *wanted, const char *name, const char *why, struct error *error)
{
	struct run *run = wanted->run;
	struct rules_list *list = wanted->rules;

	wanted->rules = NULL;
	if (list != NULL)
		return control_put_rules(
			run->control, name, list, &wanted->change->of_rules, error);
	if (wanted->rules_back)
		return control_rules_back(run->control, why, &wanted->change->of_rules, error);
	return 0;
}

/* Takes the steps that can fail; a failure takes back those before it. */
static int change_what_may_fail(
	struct wanted *wanted, const char *name, const char *why, struct error *error)
{
	struct run *run = wanted->run;
	struct blocks *blocks = plane_blocks(run->plane);
	int ret = exports_change_open(&wanted->exports, error);

	if (ret == 0 && blocks != NULL)
		ret = block_changes_add(&wanted->blocks, blocks, plane_now_us(run->plane), error);
	if (ret == 0) {
		ret = change_rules(wanted, name, why, error);
		if (ret < 0 && blocks != NULL)
			block_changes_undo(&wanted->blocks, blocks, plane_now_us(run->plane));
	}
	return ret;
}

static void free_before(struct run *run)
{
	struct run_before *before = run->before;

	if (before == NULL)
		return;
	run_blocks_text_fini(&before->blocks);
	free_config(run, before->config);
	free(before);
	run->before = NULL;
}

/* Notes of what was told of exports move with them. */
static void renumber_exports(struct run *run)
{
	struct exports_news news[EXPORTS_MAX] = {{0}};
	const unsigned n = exporter_n_collectors(run->exporter);

	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < run->n_collectors; j++)
			if (run->collectors[j] == exporter_collector(run->exporter, i))
				news[i] = run->exports_news[j];
	memcpy(run->exports_news, news, sizeof(news));
	for (unsigned i = 0; i < n; i++)
		run->collectors[i] = exporter_collector(run->exporter, i);
	run->n_collectors = n;
}

/* All that cannot fail any more. The configuration before is kept in `before`, which may be NULL: it is not. */
static void take_effect(struct wanted *wanted, struct run_before *before)
{
	struct run *run = wanted->run;

	exports_change_begin(&wanted->exports);
	renumber_exports(run);
	if (plane_blocks(run->plane) != NULL)
		block_changes_remove(&wanted->blocks, plane_blocks(run->plane));
	free_before(run);
	if (before != NULL) {
		*before = (struct run_before){.config = run->current,
			.blocks = run->blocks,
			.rules = wanted->change->rules_changed,
			.epoch = plane_rules(run->plane) != NULL
					 ? rules_epoch(plane_rules(run->plane))
					 : 0};
		run->before = before;
	} else {
		run_blocks_text_fini(&run->blocks);
		free_config(run, run->current);
	}
	run->blocks = wanted->blocks_text;
	wanted->blocks_text = (struct run_blocks_text){0};
	run->current = wanted->config;
	wanted->config = NULL;
	wanted->change->json = wanted->json;
	wanted->json = NULL;
	set_plane(run);
}

static int check_changing(const struct run *run, struct error *error)
{
	return exporter_changing(run->exporter)
		       ? error_set(error, -EAGAIN,
				 "the exports of the configuration before are not in use yet; try "
				 "again in a second")
		       : 0;
}

/* The text is kept, to be saved. */
static int keep_text(struct run *run, const struct control_config_text *text, struct error *error)
{
	char *copy = text->text != NULL ? malloc(text->size + 1) : NULL;

	if (text->text != NULL && copy == NULL)
		return no_memory_to_apply(error);
	if (copy != NULL)
		memcpy(copy, text->text, text->size);
	free(run->text);
	run->text = copy;
	run->text_size = text->size;
	return 0;
}

static int diff_config(void *context, const struct control_config_text *text,
	struct control_config_change *change, struct error *error)
{
	struct wanted wanted = {.run = context, .change = change};
	int ret = prepare(&wanted, text, true, error);

	free_wanted(&wanted);
	return ret;
}

static int apply_config(void *context, const struct control_config_text *text,
	struct control_config_change *change, struct error *error)
{
	struct run *run = context;
	struct wanted wanted = {.run = run, .change = change};
	struct run_before *before = calloc(1, sizeof(*before));
	int ret = before == NULL ? no_memory_to_apply(error) : check_changing(run, error);

	if (ret == 0)
		ret = prepare(&wanted, text, false, error);
	if (ret == 0)
		ret = keep_text(run, text, error);
	if (ret == 0)
		ret = change_what_may_fail(&wanted, text->name, "", error);
	if (ret == 0)
		take_effect(&wanted, before);
	else
		free(before);
	free_wanted(&wanted);
	return ret;
}

/* Rules of the configuration before are gone back to, if no others came meanwhile. */
static int find_rules_before(struct wanted *wanted, struct error *error)
{
	const struct run_before *before = wanted->run->before;
	const struct rules *rules = plane_rules(wanted->run->plane);

	if (!before->rules)
		return 0;
	if (rules_epoch(rules) != before->epoch)
		return error_set(error, -EBUSY,
			"another list of rules was loaded since the configuration was applied "
			"(epoch %u, and it came with %u): rule rollback comes first",
			rules_epoch(rules), before->epoch);
	wanted->rules_back = wanted->change->rules = wanted->change->rules_changed = true;
	return 0;
}

static int go_back(
	void *context, const char *why, struct control_config_change *change, struct error *error)
{
	struct run *run = context;
	struct wanted wanted = {.run = run, .change = change};
	int ret = check_changing(run, error);

	if (run->before == NULL)
		return error_set(error, -ENOENT, "there is no configuration to go back to");
	if (ret < 0)
		return ret;
	wanted.config = run->before->config;
	wanted.blocks_text = run->before->blocks;
	ret = compare(&wanted, error);
	if (ret == 0)
		ret = find_blocks(&wanted, error);
	if (ret == 0)
		ret = find_rules_before(&wanted, error);
	if (ret == 0)
		ret = find_exports(&wanted, error);
	if (ret == 0)
		ret = change_what_may_fail(&wanted, "", why, error);
	if (ret == 0) {
		/* they are those in effect */
		run->before->config = NULL;
		run->before->blocks = (struct run_blocks_text){0};
		take_effect(&wanted, NULL);
	} else {
		/* they still are those before */
		wanted.config = NULL;
		wanted.blocks_text = (struct run_blocks_text){0};
	}
	free_wanted(&wanted);
	return ret;
}

/* ------------------------- files */

static const char *own_file(void *context)
{
	const struct run *run = context;

	return run->config.config_file;
}

static const char *own_rules_file(void *context)
{
	const struct run *run = context;

	return run->current->rules.file;
}

static int save_to(const char *file, const char *bytes, size_t size, struct error *error)
{
	char word[FILE_NAME_MAX];
	int ret = file_replace(file, bytes, size);

	return ret < 0 ? error_set(error, ret, "%s: %s", text_printable(word, sizeof(word), file),
				 strerror(-ret))
		       : 0;
}

static int save_config(void *context, struct error *error)
{
	struct run *run = context;

	if (run->text == NULL)
		return error_set(error, -ENOENT, "nothing was applied that could be saved");
	return save_to(run->config.config_file, run->text, run->text_size, error);
}

static int save_rules(void *context, const char *text, size_t size, struct error *error)
{
	const struct run *run = context;

	return save_to(run->current->rules.file, text, size, error);
}

static bool has_before(void *context)
{
	const struct run *run = context;

	return run->before != NULL;
}

/* ------------------------- life */

int run_apply_begin(struct run *run, struct error *error)
{
	return run_blocks_read(&run->config.blocks, &run->blocks, error);
}

void run_apply_serve(struct run *run)
{
	const struct control_configurer configurer = {
		.diff = diff_config,
		.apply = apply_config,
		.go_back = go_back,
		.file = own_file,
		.rules_file = own_rules_file,
		.save = save_config,
		.save_rules = save_rules,
		.has_before = has_before,
		.context = run,
	};

	control_configured_by(run->control, &configurer);
}

void run_apply_end(struct run *run)
{
	free_before(run);
	free_config(run, run->current);
	run->current = &run->config;
	run_blocks_text_fini(&run->blocks);
	run_words_fini(&run->words);
	free(run->text);
	run->text = NULL;
}
