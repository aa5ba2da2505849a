/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/options.h"
#include "base/suggest.h"
#include "base/text.h"
#include "main/file_uses.h"
#include "main/run_config_make.h"
#include "main/run_option.h"

const struct option run_options[] = {
	{"config", required_argument, NULL, RUN_OPTION_CONFIG},
	{"port", required_argument, NULL, RUN_OPTION_PORT},
	{"wire", required_argument, NULL, RUN_OPTION_WIRE},
	ENGINE_OPTIONS,
	{"threads", required_argument, NULL, RUN_OPTION_THREADS},
	{"sharding", required_argument, NULL, RUN_OPTION_SHARDING},
	{"poll", required_argument, NULL, RUN_OPTION_POLL},
	{"pin", required_argument, NULL, RUN_OPTION_PIN},
	{"one-armed", required_argument, NULL, RUN_OPTION_ONE_ARMED},
	{"output", required_argument, NULL, RUN_OPTION_OUTPUT},
	{"export", required_argument, NULL, RUN_OPTION_EXPORT},
	{"socket", required_argument, NULL, RUN_OPTION_SOCKET},
	{"offload", required_argument, NULL, RUN_OPTION_OFFLOAD},
	{"offload-mode", required_argument, NULL, RUN_OPTION_OFFLOAD_MODE},
	{"offload-threshold", required_argument, NULL, RUN_OPTION_OFFLOAD_THRESHOLD},
	{"offload-slots", required_argument, NULL, RUN_OPTION_OFFLOAD_SLOTS},
	{"offload-rules", required_argument, NULL, RUN_OPTION_OFFLOAD_RULES},
	{"offload-rules-per-second", required_argument, NULL, RUN_OPTION_OFFLOAD_RULES_PER_SECOND},
	{"offload-counters", required_argument, NULL, RUN_OPTION_OFFLOAD_COUNTERS},
	{"offload-restart", required_argument, NULL, RUN_OPTION_OFFLOAD_RESTART},
	{"offload-rules-in-nic", required_argument, NULL, RUN_OPTION_OFFLOAD_RULES_IN_NIC},
	{"offload-except", required_argument, NULL, RUN_OPTION_OFFLOAD_EXCEPT},
	{"blocks", required_argument, NULL, RUN_OPTION_BLOCKS},
	{"blocks-max", required_argument, NULL, RUN_OPTION_BLOCKS_MAX},
	{"blocks-reasons", required_argument, NULL, RUN_OPTION_BLOCKS_REASONS},
	{"metrics", required_argument, NULL, RUN_OPTION_METRICS},
	{"rules", required_argument, NULL, RUN_OPTION_RULES},
	{"rules-max", required_argument, NULL, RUN_OPTION_RULES_MAX},
	{"rules-reject-rate", required_argument, NULL, RUN_OPTION_RULES_REJECT_RATE},
	{"rules-log-rate", required_argument, NULL, RUN_OPTION_RULES_LOG_RATE},
	{"rules-replies", required_argument, NULL, RUN_OPTION_RULES_REPLIES},
	{"rules-pickup", required_argument, NULL, RUN_OPTION_RULES_PICKUP},
	{"force", no_argument, NULL, RUN_OPTION_FORCE},
	{"telemetry", no_argument, NULL, RUN_OPTION_TELEMETRY},
	{"foreground", no_argument, NULL, RUN_OPTION_FOREGROUND},
	{"help", no_argument, NULL, RUN_OPTION_HELP},
	{NULL, 0, NULL, 0},
};

const int run_settings[RUN_N_SETTINGS] = {
	RUN_OPTION_OUTPUT,
	RUN_OPTION_SOCKET,
	RUN_OPTION_TELEMETRY,
	RUN_OPTION_FORCE,
	RUN_OPTION_THREADS,
	RUN_OPTION_SHARDING,
	RUN_OPTION_POLL,
	RUN_OPTION_PIN,
	RUN_OPTION_ONE_ARMED,
	ENGINE_OPTION_WORKERS,
	ENGINE_OPTION_FLOWS,
	ENGINE_OPTION_FRAGMENTS,
	ENGINE_OPTION_TCP,
	ENGINE_OPTION_ZONE,
	ENGINE_OPTION_ACTIVE,
	ENGINE_OPTION_MEASURE,
};

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "no memory for the configuration");
}

static int set_text(char **text, const char *value, struct error *error)
{
	char *copy = strdup(value);

	if (!copy)
		return no_memory(error);
	free(*text);
	*text = copy;
	return 0;
}

static int set_output(
	struct run_config *config, const char *where, const char *value, struct error *error)
{
	if (*value == '\0')
		return option_bad_value(where, value, "a file is needed", error);
	if (!option_is_line(value))
		return option_bad_value(
			where, value, "control characters are not taken in its name", error);
	return set_text(&config->output, value, error);
}

static int set_socket(
	struct run_config *config, const char *where, const char *value, struct error *error)
{
	const size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
	char wanted[80];

	if (*value != '\0' && strlen(value) <= max && option_is_line(value))
		return set_text(&config->socket, value, error);
	snprintf(wanted, sizeof(wanted),
		"a path of 1 to %zu bytes without control characters is needed", max);
	return option_bad_value(where, value, wanted, error);
}

int run_config_set(struct run_config *config, int id, const char *where, const char *value,
	struct error *error)
{
	static const char *const threads[] = {
		[PLANE_RUN_TO_COMPLETION] = "run-to-completion", [PLANE_SPLIT] = "split"};
	static const char *const sharding[] = {[PLANE_SHARDING_AUTO] = "auto",
		[PLANE_SHARDING_RSS] = "rss",
		[PLANE_SHARDING_SOFTWARE] = "software"};
	static const char *const poll[] = {"adaptive", "always"};
	unsigned which = 0;
	int ret;

	if (id >= RUN_OPTION_OFFLOAD && id <= RUN_OPTION_OFFLOAD_EXCEPT)
		return run_offload_set(&config->offload,
			(enum run_offload_key)(id - RUN_OPTION_OFFLOAD), where, value, error);
	if (id >= RUN_OPTION_BLOCKS && id <= RUN_OPTION_BLOCKS_REASONS)
		return run_blocks_set(&config->blocks,
			(enum run_blocks_key)(id - RUN_OPTION_BLOCKS), where, value, error);
	if (id >= RUN_OPTION_RULES && id <= RUN_OPTION_RULES_PICKUP)
		return run_rules_set(&config->rules, (enum run_rules_key)(id - RUN_OPTION_RULES),
			where, value, error);
	switch (id) {
	case RUN_OPTION_THREADS:
		ret = option_word(where, value, threads, 2, &which, error);
		config->threads = (enum plane_threads)which;
		return ret;
	case RUN_OPTION_SHARDING:
		ret = option_word(where, value, sharding, 3, &which, error);
		config->sharding = (enum plane_sharding)which;
		return ret;
	case RUN_OPTION_POLL:
		ret = option_word(where, value, poll, 2, &which, error);
		config->poll_always = which == 1;
		return ret;
	case RUN_OPTION_PIN:
		return option_yes_no(where, value, &config->pin, error);
	case RUN_OPTION_ONE_ARMED:
		return option_yes_no(where, value, &config->one_armed, error);
	case RUN_OPTION_FORCE:
		return option_yes_no(where, value, &config->force, error);
	case RUN_OPTION_TELEMETRY:
		return option_yes_no(where, value, &config->telemetry, error);
	case RUN_OPTION_OUTPUT:
		return set_output(config, where, value, error);
	case RUN_OPTION_EXPORT:
		if (config->exports.from_file)
			exports_fini(&config->exports);
		return exports_add(&config->exports, where, value, error);
	case RUN_OPTION_METRICS:
		return run_metrics_set(&config->metrics, RUN_METRICS_LISTEN, where, value, error);
	case RUN_OPTION_SOCKET:
		return set_socket(config, where, value, error);
	default:
		return engine_options_take(&config->engine, id, where, value, true, error);
	}
}

int run_config_name(struct run_config *config, const char *file, struct error *error)
{
	return set_text(&config->config_file, file, error);
}

void run_config_init(struct run_config *config)
{
	*config = (struct run_config){.threads = PLANE_RUN_TO_COMPLETION, .pin = true};
	engine_options_init(&config->engine);
	run_offload_init(&config->offload);
	run_blocks_init(&config->blocks);
	run_rules_init(&config->rules);
}

bool run_config_offloads(const struct run_config *config, unsigned port)
{
	for (unsigned i = 0; i < config->offload.n_except; i++)
		if (strcmp(config->offload.except[i], config->ports[port].name) == 0)
			return false;
	return config->offload.on;
}

int run_config_check_except(const struct run_config *config, run_where_fn where,
	const void *context, struct error *error)
{
	const char *names[PLANE_MAX_PORTS];
	char place[RUN_WHERE_MAX], word[OPTION_WORD_MAX];

	for (unsigned i = 0; i < config->n_ports; i++)
		names[i] = config->ports[i].name;
	for (unsigned i = 0; i < config->offload.n_except; i++) {
		const char *name = config->offload.except[i];
		unsigned n = 0;

		while (n < config->n_ports && strcmp(name, names[n]) != 0)
			n++;
		if (n < config->n_ports)
			continue;
		const char *near = suggest(name, names, config->n_ports);

		return error_set(error, -EINVAL, "%s %s: no such port%s%s%s",
			where(context, i, place), text_printable(word, sizeof(word), name),
			near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	}
	return 0;
}

int run_config_check_files(const struct run_config *config, struct error *error)
{
	struct file_uses uses = {.n = 0};

	file_uses_write(&uses, "output", config->output);
	file_uses_export(&uses, "export", &config->exports);
	for (unsigned i = 0; i < config->rules.n_captures; i++)
		file_uses_write(&uses, "capture", config->rules.captures[i]);
	file_uses_read(&uses, "rules", config->rules.file);
	file_uses_read(&uses, "blocks", config->blocks.file);
	file_uses_read(&uses, "configuration", config->config_file);
	return file_uses_check(&uses, error);
}

int run_config_complete(struct run_config *config, const char *where_slots, const char *where_rate,
	const char *where_blocks, const char *where_rules, struct error *error)
{
	const char *directory = getenv("XDG_RUNTIME_DIR");

	/* each worker has numbers of its own */
	if (config->offload.on && config->offload.slots < config->engine.workers)
		return error_set(error, -EINVAL, "%s %u: %u workers need one each; %u or more",
			where_slots, config->offload.slots, config->engine.workers,
			config->engine.workers);
	/* and a part of the limit, which is none where it is 0 */
	if (config->offload.on && config->offload.rules_per_s != 0 &&
		config->offload.rules_per_s < config->engine.workers)
		return error_set(error, -EINVAL,
			"%s %u: %u workers need one each; %u or more, or 0 for no limit",
			where_rate, config->offload.rules_per_s, config->engine.workers,
			config->engine.workers);
	if (run_blocks_complete(&config->blocks, where_blocks, error) < 0 ||
		run_rules_complete(&config->rules, where_rules, error) < 0)
		return -EINVAL;
	if (config->exports.n > 0 && !config->engine.active_said)
		config->engine.active_s = EXPORTS_ACTIVE_S;
	if (config->socket)
		return 0;
	if (asprintf(&config->socket, "%s/millrace.sock",
		    directory && *directory ? directory : "/run") >= 0)
		return 0;
	config->socket = NULL;
	return no_memory(error);
}

void run_config_fini(struct run_config *config)
{
	exports_fini(&config->exports);
	free(config->output);
	free(config->socket);
	free(config->config_file);
	run_blocks_fini(&config->blocks);
	run_metrics_fini(&config->metrics);
	run_rules_fini(&config->rules);
	for (unsigned i = 0; i < config->n_routers; i++)
		run_router_fini(&config->routers[i]);
	config->n_routers = 0;
	config->output = config->socket = config->config_file = NULL;
}
