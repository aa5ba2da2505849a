/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/rate_limit.h"
#include "base/text.h"
#include "main/lone_rules.h"
#include "rule/command.h"

const char *run_rules_key(enum run_rules_key key)
{
	static const char *const keys[RUN_RULES_N_KEYS] = {
		[RUN_RULES_FILE_KEY] = "file",
		[RUN_RULES_MAX_KEY] = "max",
		[RUN_RULES_REJECT_RATE_KEY] = "reject-rate",
		[RUN_RULES_LOG_RATE_KEY] = "log-rate",
		[RUN_RULES_REPLIES_KEY] = "replies",
		[RUN_RULES_PICKUP_KEY] = "pickup",
		[RUN_RULES_LIST] = "list",
		[RUN_RULES_SETS] = "sets",
		[RUN_RULES_CAPTURES] = "captures",
	};

	return keys[key];
}

void run_rules_init(struct run_rules *rules)
{
	*rules = (struct run_rules){.max = RUN_RULES_MAX,
		.reject_rate = RUN_RULES_REJECT_RATE,
		.log_rate = RUN_RULES_LOG_RATE};
}

void run_rules_fini(struct run_rules *rules)
{
	free(rules->file);
	for (unsigned i = 0; i < rules->n_list; i++)
		free(rules->list[i]);
	for (unsigned i = 0; i < rules->n_sets; i++)
		free(rules->sets[i]);
	for (unsigned i = 0; i < rules->n_captures; i++)
		free(rules->captures[i]);
	rules->file = NULL;
	rules->n_list = rules->n_sets = rules->n_captures = 0;
}

int run_rules_replies(const char *where, const char *value, bool *follow, struct error *error)
{
	static const char *const words[] = {"match", "follow"};
	unsigned which = 0;
	int ret = option_word(where, value, words, 2, &which, error);

	if (ret == 0)
		*follow = which == 1;
	return ret;
}

int run_rules_pickup(const char *where, const char *value, bool *no_pickup, struct error *error)
{
	bool yes = true;
	int ret = option_yes_no(where, value, &yes, error);

	if (ret == 0)
		*no_pickup = !yes;
	return ret;
}

int run_rules_set(struct run_rules *rules, enum run_rules_key key, const char *where,
	const char *value, struct error *error)
{
	switch (key) {
	case RUN_RULES_FILE_KEY:
		return option_file(where, value, &rules->file, error);
	case RUN_RULES_MAX_KEY:
		return option_range(where, value, value, 0, RULES_MAX, &rules->max, error);
	case RUN_RULES_REJECT_RATE_KEY:
		return option_range(
			where, value, value, 0, RATE_LIMIT_MAX, &rules->reject_rate, error);
	case RUN_RULES_LOG_RATE_KEY:
		return option_range(
			where, value, value, 0, RATE_LIMIT_MAX, &rules->log_rate, error);
	case RUN_RULES_REPLIES_KEY:
		return run_rules_replies(where, value, &rules->replies_follow, error);
	case RUN_RULES_PICKUP_KEY:
		return run_rules_pickup(where, value, &rules->no_pickup, error);
	case RUN_RULES_LIST:
	case RUN_RULES_SETS:
	case RUN_RULES_CAPTURES:
	case RUN_RULES_N_KEYS:
		break;
	}
	return -EINVAL;
}

int run_rules_add(struct run_rules *rules, const char *where, const char *line, struct error *error)
{
	struct rule_command *command;
	struct error said;
	unsigned column;
	char *copy;

	if (!option_is_line(line))
		return option_bad_value(where, line, "a rule is one line", error);
	int ret = rule_command_parse(&command, NULL, line, strlen(line), &column, &said);

	if (ret < 0 && ret != -ENODATA)
		return error_set(error, ret == -ENOMEM ? ret : -EINVAL, "%s column %u: %s", where,
			column, said.text);
	if (ret == 0)
		rule_command_destroy(command);
	copy = rules->n_list < RUN_RULES_LIST_MAX ? strdup(line) : NULL;
	if (copy == NULL)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	rules->list[rules->n_list++] = copy;
	return 0;
}

int run_rules_add_set(
	struct run_rules *rules, const char *where, const char *line, struct error *error)
{
	struct error said;
	char *copy;

	if (!option_is_line(line))
		return option_bad_value(where, line, "a set is one line", error);
	if (rules_set_check(line, &said) < 0)
		return error_set(error, -EINVAL, "%s %s", where, said.text);
	copy = rules->n_sets < RUN_RULES_LIST_MAX ? strdup(line) : NULL;
	if (copy == NULL)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	rules->sets[rules->n_sets++] = copy;
	return 0;
}

int run_rules_add_capture(
	struct run_rules *rules, const char *where, const char *path, struct error *error)
{
	if (rules->n_captures == PLANE_MAX_CAPTURES)
		return error_set(error, -EINVAL, "%s there can be %u capture files at most", where,
			PLANE_MAX_CAPTURES);
	int ret = option_file(where, path, &rules->captures[rules->n_captures], error);

	if (ret == 0 && rules->captures[rules->n_captures] == NULL)
		return option_bad_value(where, path, "the path of a file is needed", error);
	rules->n_captures += ret == 0;
	return ret;
}

/* Which of the sets' lines it is. */
static int refuse_set_line(unsigned i, int code, const struct error *said, struct error *error)
{
	return error_set(error, code, "rules.sets[%u]: %s", i, said->text);
}

int run_rules_count_sets(
	const struct run_rules *from, uint32_t *n_sets, uint32_t *n_prefixes, struct error *error)
{
	uint64_t all = 0;
	struct error said;
	uint32_t n;

	for (unsigned i = 0; i < from->n_sets; i++) {
		int ret = rules_set_count(from->sets[i], &n, &said);

		if (ret < 0)
			return refuse_set_line(i, ret, &said, error);
		all += n;
	}
	if (all > CLASSIFIER_MAX_PREFIXES)
		return error_set(error, -E2BIG, "rules.sets: there can be %u prefixes at most",
			CLASSIFIER_MAX_PREFIXES);
	*n_sets = from->n_sets;
	*n_prefixes = (uint32_t)all;
	return 0;
}

static int fill_sets(const struct run_rules *from, struct rules *rules, struct error *error)
{
	struct error said;

	for (unsigned i = 0; i < from->n_sets; i++) {
		int ret = rules_set_fill(rules, from->sets[i], &said);

		if (ret < 0)
			return refuse_set_line(i, ret, &said, error);
	}
	return 0;
}

int run_rules_complete(const struct run_rules *rules, const char *where, struct error *error)
{
	if (rules->max == 0 && (rules->file != NULL || rules->n_list > 0 || rules->n_sets > 0))
		return error_set(error, -EINVAL,
			"%s 0: there are rules, but no room for them; at least 1 is needed", where);
	return 0;
}

/* The lines of the configuration as one text, and its size; NULL: no memory. */
static char *text_of_list(const struct run_rules *from, size_t *size)
{
	size_t at = 0;

	*size = 0;
	for (unsigned i = 0; i < from->n_list; i++)
		*size += strlen(from->list[i]) + 1;
	char *text = malloc(*size + 1);

	for (unsigned i = 0; text != NULL && i < from->n_list; i++)
		at += (size_t)sprintf(text + at, "%s\n", from->list[i]);
	return text;
}

static int load_list(const struct run_rules *from, struct rules *rules, rules_tell_fn tell,
	void *context, struct error *error)
{
	uint32_t added;
	size_t size;
	char *text = text_of_list(from, &size);

	if (text == NULL)
		return error_set(error, -ENOMEM, "no memory for the rules");
	int ret = rules_load_bytes(rules, "rules.list", text, size, &added, tell, context, error);

	free(text);
	return ret;
}

int run_rules_read(const struct run_rules *from, struct rules *rules, struct rules_list *list,
	rules_tell_fn tell, void *context, struct error *error)
{
	size_t size;
	char *text = text_of_list(from, &size);
	int ret;

	if (text == NULL)
		return error_set(error, -ENOMEM, "no memory for the rules");
	ret = rules_list_read(rules, list, "rules.list", text, size, tell, context, error);
	free(text);
	if (ret == 0 && from->file != NULL)
		ret = rules_list_read_file(rules, list, from->file, tell, context, error);
	return ret;
}

int run_rules_load(const struct run_rules *from, struct rules *rules, rules_tell_fn tell,
	void *context, struct error *error)
{
	uint32_t added;
	int ret = 0;

	if (rules == NULL)
		return 0;
	ret = fill_sets(from, rules, error);
	if (ret == 0 && from->n_list > 0)
		ret = load_list(from, rules, tell, context, error);
	if (ret == 0 && from->file != NULL)
		ret = rules_load_file(rules, from->file, &added, tell, context, error);
	return ret;
}

int run_rules_check(const struct run_rules *from, const struct topology *topology, bool zone_vlan,
	struct error *error)
{
	struct rules_config config = {.max_rules = from->max,
		.n_workers = 1,
		.topology = topology,
		.n_captures = from->n_captures,
		.zone_vlan = zone_vlan,
		.replies_follow = from->replies_follow,
		.no_pickup = from->no_pickup};
	struct lone_rules lone = {0};
	int ret = run_rules_count_sets(from, &config.max_sets, &config.max_prefixes, error);

	if (ret == 0 && from->max != 0 &&
		(from->n_list > 0 || from->file != NULL || from->n_sets > 0))
		ret = lone_rules_create(&lone, &config, error);
	if (ret == 0)
		ret = run_rules_load(from, lone.rules, NULL, NULL, error);
	lone_rules_fini(&lone);
	return ret;
}
