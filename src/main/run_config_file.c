/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A configuration file: its bytes read, then walked over for its places, then loaded by its schema,
 * and only then are the words in it understood, by the same readers as those of the command line.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/text.h"
#include "main/run_config_make.h"
#include "main/run_config_yaml.h"
#include "main/run_draft.h"
#include "main/run_option.h"

#define MAX_BYTES 1048576

#define FILE_NAME_MAX 160

struct loading {
	struct run_config *config;
	const struct run_places *places;
	const struct run_yaml_data *data;
	struct error *error;
};

static int set_settings(const struct loading *loading)
{
	char where[RUN_WHERE_MAX];
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < RUN_N_SETTINGS; i++) {
		const char *value = loading->data->settings[i];
		const char *key = option_name(run_options, run_settings[i]);

		if (!value)
			continue;
		run_places_where(loading->places, key, where);
		ret = run_config_set(
			loading->config, run_settings[i], where, value, loading->error);
	}
	return ret;
}

/* Those of a whole protocol come first, whatever the order in the file. */
static int set_timeouts(const struct loading *loading)
{
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	uint32_t seconds;

	for (unsigned i = 0; loading->data->timeouts && i < RUN_YAML_TIMEOUTS; i++) {
		const char *value = loading->data->timeouts->seconds[i];
		const char *name = run_yaml_timeout(i);

		if (!value)
			continue;
		snprintf(path, sizeof(path), "timeouts.%s", name);
		run_places_where(loading->places, path, where);
		if (option_number(
			    where, value, value, FLOW_TIMEOUT_MAX_S, &seconds, loading->error) < 0)
			return -EINVAL;
		engine_timeout_set(&loading->config->engine, name, strlen(name), seconds);
	}
	return 0;
}

static const char *file_where_except(
	const void *context, unsigned number, char where[RUN_WHERE_MAX])
{
	const struct loading *loading = context;
	char path[RUN_PATH_MAX];

	snprintf(path, sizeof(path), "offload.except[%u]", number);
	return run_places_where(loading->places, path, where);
}

static int set_offload(const struct loading *loading)
{
	const struct run_yaml_offload *said = loading->data->offload;
	struct run_offload *offload = &loading->config->offload;
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	int ret = 0;

	for (unsigned i = 0; said && ret == 0 && i < RUN_OFFLOAD_EXCEPT; i++) {
		enum run_offload_key key = (enum run_offload_key)i;

		if (!said->values[i])
			continue;
		snprintf(path, sizeof(path), "offload.%s", run_offload_key(key));
		run_places_where(loading->places, path, where);
		ret = run_offload_set(offload, key, where, said->values[i], loading->error);
	}
	for (unsigned i = 0; said && ret == 0 && i < said->n_except; i++)
		ret = run_offload_add_except(offload, file_where_except(loading, i, where),
			said->except[i], loading->error);
	return ret;
}

static int set_blocks(const struct loading *loading)
{
	const struct run_yaml_blocks *said = loading->data->blocks;
	struct run_blocks *blocks = &loading->config->blocks;
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	int ret = 0;

	for (unsigned i = 0; said && ret == 0 && i < RUN_BLOCKS_LIST; i++) {
		enum run_blocks_key key = (enum run_blocks_key)i;

		if (!said->values[i])
			continue;
		snprintf(path, sizeof(path), "blocks.%s", run_blocks_key(key));
		run_places_where(loading->places, path, where);
		ret = run_blocks_set(blocks, key, where, said->values[i], loading->error);
	}
	for (unsigned i = 0; said && ret == 0 && i < said->n_list; i++) {
		snprintf(path, sizeof(path), "blocks.list[%u]", i);
		run_places_where(loading->places, path, where);
		ret = run_blocks_add(blocks, where, said->list[i], loading->error);
	}
	return ret;
}

static int set_metrics(const struct loading *loading)
{
	const struct run_yaml_metrics *said = loading->data->metrics;
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	int ret = 0;

	for (unsigned i = 0; said && ret == 0 && i < RUN_METRICS_N_KEYS; i++) {
		enum run_metrics_key key = (enum run_metrics_key)i;

		if (!said->values[i])
			continue;
		snprintf(path, sizeof(path), "metrics.%s", run_metrics_key(key));
		run_places_where(loading->places, path, where);
		ret = run_metrics_set(
			&loading->config->metrics, key, where, said->values[i], loading->error);
	}
	return ret;
}

static int set_rules(const struct loading *loading)
{
	const struct run_yaml_rules *said = loading->data->rules;
	struct run_rules *rules = &loading->config->rules;
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	int ret = 0;

	for (unsigned i = 0; said && ret == 0 && i < RUN_RULES_LIST; i++) {
		enum run_rules_key key = (enum run_rules_key)i;

		if (!said->values[i])
			continue;
		snprintf(path, sizeof(path), "rules.%s", run_rules_key(key));
		run_places_where(loading->places, path, where);
		ret = run_rules_set(rules, key, where, said->values[i], loading->error);
	}
	for (unsigned i = 0; said && ret == 0 && i < said->n_list; i++) {
		snprintf(path, sizeof(path), "rules.list[%u]", i);
		run_places_where(loading->places, path, where);
		ret = run_rules_add(rules, where, said->list[i], loading->error);
	}
	for (unsigned i = 0; said && ret == 0 && i < said->n_sets; i++) {
		snprintf(path, sizeof(path), "rules.sets[%u]", i);
		run_places_where(loading->places, path, where);
		ret = run_rules_add_set(rules, where, said->sets[i], loading->error);
	}
	for (unsigned i = 0; said && ret == 0 && i < said->n_captures; i++) {
		snprintf(path, sizeof(path), "rules.captures[%u]", i);
		run_places_where(loading->places, path, where);
		ret = run_rules_add_capture(rules, where, said->captures[i], loading->error);
	}
	return ret;
}

static int set_exports(const struct loading *loading)
{
	struct exports *exports = &loading->config->exports;
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < loading->data->n_exports; i++) {
		snprintf(path, sizeof(path), "exports[%u]", i);
		run_places_where(loading->places, path, where);
		ret = exports_add(exports, where, loading->data->exports[i], loading->error);
	}
	exports->from_file = true;
	return ret;
}

static void draft_router(
	const struct loading *loading, unsigned number, struct run_draft_router *draft)
{
	const struct run_yaml_router *said = loading->data->routers[number];
	char path[RUN_PATH_MAX];

	for (unsigned i = 0; i < RUN_ROUTER_N_KEYS; i++)
		draft->values[i] = said->values[i];
	for (; draft->n_ports < said->n_ports; draft->n_ports++) {
		draft->ports[draft->n_ports].port = said->ports[draft->n_ports]->port;
		draft->ports[draft->n_ports].tap = said->ports[draft->n_ports]->name;
	}
	snprintf(path, sizeof(path), "routers[%u]", number);
	run_places_where(loading->places, path, draft->where);
}

/* The schema has seen to it that there are not too many. */
static int join_ports(const struct loading *loading)
{
	const struct run_yaml_data *data = loading->data;
	struct run_draft *draft = calloc(1, sizeof(*draft));
	char path[RUN_PATH_MAX];

	if (!draft)
		return error_set(loading->error, -ENOMEM, "no memory for the configuration");
	for (; draft->n_ports < data->n_ports; draft->n_ports++) {
		unsigned i = draft->n_ports;

		draft->ports[i].name = data->ports[i].name;
		draft->ports[i].device = data->ports[i].device;
		snprintf(path, sizeof(path), "ports[%u]", i);
		run_places_where(loading->places, path, draft->ports[i].where);
	}
	for (; draft->n_wires < data->n_wires; draft->n_wires++) {
		unsigned i = draft->n_wires;

		draft->wires[i].name[0] = data->wires[i]->name[0];
		draft->wires[i].name[1] = data->wires[i]->name[1];
		snprintf(path, sizeof(path), "wires[%u]", i);
		run_places_where(loading->places, path, draft->wires[i].where);
	}
	for (; draft->n_routers < data->n_routers; draft->n_routers++)
		draft_router(loading, draft->n_routers, &draft->routers[draft->n_routers]);
	int ret = run_config_join(loading->config, draft, loading->error);

	free(draft);
	return ret;
}

static int load(struct loading *loading, const char *bytes, size_t size)
{
	struct run_yaml *yaml = NULL;
	int ret = run_yaml_create(&yaml, loading->places, bytes, size, loading->error);

	if (ret < 0)
		return ret;
	loading->data = run_yaml_data(yaml);
	if (loading->data)
		ret = set_settings(loading);
	if (loading->data && ret == 0)
		ret = set_timeouts(loading);
	if (loading->data && ret == 0)
		ret = set_offload(loading);
	if (loading->data && ret == 0)
		ret = set_blocks(loading);
	if (loading->data && ret == 0)
		ret = set_metrics(loading);
	if (loading->data && ret == 0)
		ret = set_rules(loading);
	if (loading->data && ret == 0)
		ret = set_exports(loading);
	if (loading->data && ret == 0)
		ret = join_ports(loading);
	/* else the wires are the command line's */
	if (ret == 0 && loading->config->n_wires + loading->config->n_routers > 0)
		ret = run_config_check_except(
			loading->config, file_where_except, loading, loading->error);
	run_yaml_destroy(yaml);
	return ret;
}

static void where_offload(
	const struct run_places *places, enum run_offload_key key, char where[RUN_WHERE_MAX])
{
	char path[RUN_PATH_MAX];

	snprintf(path, sizeof(path), "offload.%s", run_offload_key(key));
	run_places_where(places, path, where);
}

static int complete(struct run_config *config, const struct run_places *places, struct error *error)
{
	char slots[RUN_WHERE_MAX], rate[RUN_WHERE_MAX], blocks[RUN_WHERE_MAX];
	char rules[RUN_WHERE_MAX];

	where_offload(places, RUN_OFFLOAD_SLOTS_KEY, slots);
	where_offload(places, RUN_OFFLOAD_RULES_PER_SECOND, rate);
	run_places_where(places, "blocks.max", blocks);
	run_places_where(places, "rules.max", rules);
	return run_config_complete(config, slots, rate, blocks, rules, error);
}

int run_config_read_bytes(struct run_config *config, const char *name, const char *bytes,
	size_t size, struct error *error)
{
	struct loading loading = {.config = config, .error = error};
	struct run_places *places = NULL;

	run_config_init(config);
	int ret = run_places_read(&places, name, bytes, size, error);

	if (ret == 0) {
		loading.places = places;
		ret = load(&loading, bytes, size);
	}
	if (ret == 0)
		ret = complete(config, places, error);
	run_places_destroy(places);
	/* -EINVAL is kept for the command line */
	return ret == -EINVAL ? -EBADMSG : ret;
}

/* Reads to the end, or one byte more than is allowed. Returns how many, or a negative errno. */
static ssize_t read_all(int fd, char *bytes, size_t max)
{
	size_t size = 0;

	while (size < max) {
		ssize_t n = read(fd, bytes + size, max - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EINVAL ? -EIO : -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	return (ssize_t)size;
}

static int failed(const char *file, int code, const char *what, struct error *error)
{
	char word[FILE_NAME_MAX];

	return error_set(error, code, "%s: %s", text_printable(word, sizeof(word), file), what);
}

int run_config_read(struct run_config *config, const char *file, struct error *error)
{
	char *bytes = malloc(MAX_BYTES + 1);
	struct error said;
	ssize_t size;

	run_config_init(config);
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !bytes) {
		size = fd < 0 ? -errno : -ENOMEM;
	} else {
		size = read_all(fd, bytes, MAX_BYTES + 1);
	}
	if (fd >= 0)
		close(fd);
	int ret;

	if (size < 0)
		ret = failed(file, (int)size, strerror((int)-size), error);
	else if (size > MAX_BYTES)
		ret = failed(file, -EBADMSG, "more than 1 MB, too long for a configuration", error);
	else
		ret = run_config_read_bytes(config, file, bytes, (size_t)size, error);
	free(bytes);
	if (ret == 0)
		ret = run_config_name(config, file, error);
	if (ret == 0 && run_config_check_files(config, &said) < 0)
		ret = failed(file, -EBADMSG, said.text, error);
	return ret;
}
