/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_yaml.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/suggest.h"
#include "base/text.h"

/* Not said, or said without a value: both leave the default. */
#define MAY_BE_MISSING (CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER_NULL_STR)

#define MAX_KEYS 32
#define MAX_DEPTH 6

/* What libcyaml says about a fault, line by line: what it is, then where, from the inside out. */
struct complaint {
	char what[128];
	char where[MAX_DEPTH][RUN_KEY_MAX];
	unsigned depth;
};

static const cyaml_schema_field_t port_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"name", CYAML_FLAG_POINTER, struct run_yaml_port, name, 0, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR(
		"device", CYAML_FLAG_POINTER, struct run_yaml_port, device, 0, CYAML_UNLIMITED),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t port_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct run_yaml_port, port_fields),
};

static const cyaml_schema_value_t name_value = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED),
};

/* By pointers: of lists that lie in one another, libcyaml 1.3 frees the texts twice. */
static const cyaml_schema_value_t wire_value = {
	CYAML_VALUE_SEQUENCE_FIXED(CYAML_FLAG_POINTER, char *, &name_value, 2),
};

static const cyaml_schema_value_t text_value = {
	CYAML_VALUE_STRING(MAY_BE_MISSING, char, 0, CYAML_UNLIMITED),
};

static const cyaml_schema_field_t router_port_fields[] = {
	CYAML_FIELD_STRING_PTR(
		"port", CYAML_FLAG_POINTER, struct run_yaml_router_port, port, 0, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR(
		"name", MAY_BE_MISSING, struct run_yaml_router_port, name, 0, CYAML_UNLIMITED),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t router_port_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct run_yaml_router_port, router_port_fields),
};

#define ROUTER_KEY(key, number) \
	CYAML_FIELD_STRING_PTR( \
		key, MAY_BE_MISSING, struct run_yaml_router, values[number], 0, CYAML_UNLIMITED)

/* Lists in lists are by pointers, for the same reason. */
static const cyaml_schema_field_t router_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct run_yaml_router,
		values[RUN_ROUTER_NAME], 0, CYAML_UNLIMITED),
	ROUTER_KEY("netns", RUN_ROUTER_NETNS),
	ROUTER_KEY("table", RUN_ROUTER_TABLE),
	ROUTER_KEY("source-check", RUN_ROUTER_SOURCE_CHECK),
	ROUTER_KEY("routes", RUN_ROUTER_ROUTES),
	ROUTER_KEY("routes6", RUN_ROUTER_ROUTES6),
	ROUTER_KEY("fpm", RUN_ROUTER_FPM),
	CYAML_FIELD_SEQUENCE_COUNT("ports", CYAML_FLAG_POINTER, struct run_yaml_router, ports,
		n_ports, &router_port_value, 1, ROUTER_MAX_PORTS),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t router_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct run_yaml_router, router_fields),
};

/* The keys with more than one value; the own keys of offload and timeouts are filled in. */
static const cyaml_schema_field_t groups[] = {
	CYAML_FIELD_SEQUENCE_COUNT("ports", MAY_BE_MISSING, struct run_yaml_data, ports, n_ports,
		&port_value, 0, PLANE_MAX_PORTS),
	CYAML_FIELD_SEQUENCE_COUNT("wires", MAY_BE_MISSING, struct run_yaml_data, wires, n_wires,
		&wire_value, 0, FLOW_MAX_WIRES),
	CYAML_FIELD_SEQUENCE_COUNT("routers", MAY_BE_MISSING, struct run_yaml_data, routers,
		n_routers, &router_value, 0, TOPOLOGY_MAX_DOMAINS),
	CYAML_FIELD_SEQUENCE_COUNT("exports", MAY_BE_MISSING, struct run_yaml_data, exports,
		n_exports, &name_value, 0, EXPORTS_MAX),
	CYAML_FIELD_MAPPING_PTR("metrics", MAY_BE_MISSING, struct run_yaml_data, metrics, NULL),
	CYAML_FIELD_MAPPING_PTR("blocks", MAY_BE_MISSING, struct run_yaml_data, blocks, NULL),
	CYAML_FIELD_MAPPING_PTR("offload", MAY_BE_MISSING, struct run_yaml_data, offload, NULL),
	CYAML_FIELD_MAPPING_PTR("rules", MAY_BE_MISSING, struct run_yaml_data, rules, NULL),
	CYAML_FIELD_MAPPING_PTR("timeouts", MAY_BE_MISSING, struct run_yaml_data, timeouts, NULL),
};

#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))
#define TIMEOUTS (N_GROUPS - 1)
#define RULES (N_GROUPS - 2)
#define OFFLOAD (N_GROUPS - 3)
#define BLOCKS (N_GROUPS - 4)
#define METRICS (N_GROUPS - 5)

static const cyaml_schema_field_t except_field = CYAML_FIELD_SEQUENCE_COUNT("except",
	MAY_BE_MISSING, struct run_yaml_offload, except, n_except, &name_value, 0, PLANE_MAX_PORTS);

static const cyaml_schema_field_t list_field = CYAML_FIELD_SEQUENCE_COUNT("list", MAY_BE_MISSING,
	struct run_yaml_blocks, list, n_list, &name_value, 0, RUN_BLOCKS_LIST_MAX);

static const cyaml_schema_field_t rules_field = CYAML_FIELD_SEQUENCE_COUNT("list", MAY_BE_MISSING,
	struct run_yaml_rules, list, n_list, &name_value, 0, RUN_RULES_LIST_MAX);

static const cyaml_schema_field_t sets_field = CYAML_FIELD_SEQUENCE_COUNT("sets", MAY_BE_MISSING,
	struct run_yaml_rules, sets, n_sets, &name_value, 0, RUN_RULES_LIST_MAX);

static const cyaml_schema_field_t captures_field =
	CYAML_FIELD_SEQUENCE_COUNT("captures", MAY_BE_MISSING, struct run_yaml_rules, captures,
		n_captures, &name_value, 0, PLANE_MAX_CAPTURES);

struct run_yaml {
	cyaml_schema_field_t timeouts[RUN_YAML_TIMEOUTS + 1];
	cyaml_schema_field_t offload[RUN_OFFLOAD_N_KEYS + 1];
	cyaml_schema_field_t blocks[RUN_BLOCKS_N_KEYS + 1];
	cyaml_schema_field_t rules[RUN_RULES_N_KEYS + 1];
	cyaml_schema_field_t metrics[RUN_METRICS_N_KEYS + 1];
	cyaml_schema_field_t keys[N_GROUPS + RUN_N_SETTINGS + 1];
	cyaml_schema_value_t schema;
	struct run_yaml_data *data;
};

static cyaml_schema_field_t text_field(const char *key, size_t offset)
{
	return (cyaml_schema_field_t){
		.key = key, .data_offset = (uint32_t)offset, .value = text_value};
}

/* The settings and the timeouts have their names elsewhere: the schema follows them. */
static void make_schema(struct run_yaml *yaml)
{
	for (unsigned i = 0; i < RUN_YAML_TIMEOUTS; i++)
		yaml->timeouts[i] = text_field(run_yaml_timeout(i),
			offsetof(struct run_yaml_timeouts, seconds) + i * sizeof(char *));
	for (unsigned i = 0; i < RUN_OFFLOAD_EXCEPT; i++)
		yaml->offload[i] = text_field(run_offload_key((enum run_offload_key)i),
			offsetof(struct run_yaml_offload, values) + i * sizeof(char *));
	yaml->offload[RUN_OFFLOAD_EXCEPT] = except_field;
	for (unsigned i = 0; i < RUN_BLOCKS_LIST; i++)
		yaml->blocks[i] = text_field(run_blocks_key((enum run_blocks_key)i),
			offsetof(struct run_yaml_blocks, values) + i * sizeof(char *));
	yaml->blocks[RUN_BLOCKS_LIST] = list_field;
	for (unsigned i = 0; i < RUN_RULES_LIST; i++)
		yaml->rules[i] = text_field(run_rules_key((enum run_rules_key)i),
			offsetof(struct run_yaml_rules, values) + i * sizeof(char *));
	yaml->rules[RUN_RULES_LIST] = rules_field;
	yaml->rules[RUN_RULES_SETS] = sets_field;
	yaml->rules[RUN_RULES_CAPTURES] = captures_field;
	for (unsigned i = 0; i < RUN_METRICS_N_KEYS; i++)
		yaml->metrics[i] = text_field(run_metrics_key((enum run_metrics_key)i),
			offsetof(struct run_yaml_metrics, values) + i * sizeof(char *));
	memcpy(yaml->keys, groups, sizeof(groups));
	yaml->keys[OFFLOAD].value.mapping.fields = yaml->offload;
	yaml->keys[BLOCKS].value.mapping.fields = yaml->blocks;
	yaml->keys[METRICS].value.mapping.fields = yaml->metrics;
	yaml->keys[RULES].value.mapping.fields = yaml->rules;
	yaml->keys[TIMEOUTS].value.mapping.fields = yaml->timeouts;
	for (unsigned i = 0; i < RUN_N_SETTINGS; i++)
		yaml->keys[N_GROUPS + i] = text_field(option_name(run_options, run_settings[i]),
			offsetof(struct run_yaml_data, settings) + i * sizeof(char *));
	yaml->schema = (cyaml_schema_value_t){
		CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct run_yaml_data, yaml->keys),
	};
}

const char *run_yaml_timeout(unsigned number)
{
	static const char *const protocols[RUN_YAML_GROUPS] = {"tcp", "udp", "sctp", "other"};

	return number < RUN_YAML_GROUPS
		       ? protocols[number]
		       : flow_timeout_name((enum flow_timeout)(number - RUN_YAML_GROUPS));
}

static void yaml_take_line(cyaml_log_t level, void *context, const char *format, va_list args)
{
	struct complaint *complaint = context;
	char line[256], field[128];
	unsigned entry;

	(void)level;
	vsnprintf(line, sizeof(line), format, args);
	size_t length = strlen(line);

	if (length > 0 && line[length - 1] == '\n')
		line[length - 1] = '\0';
	if (complaint->depth < MAX_DEPTH) {
		char *where = complaint->where[complaint->depth];

		if (sscanf(line, " in mapping field '%127[^']'", field) == 1) {
			snprintf(where, RUN_KEY_MAX, "%.*s", RUN_KEY_MAX - 1, field);
			complaint->depth++;
		} else if (sscanf(line, " in sequence entry '%u'", &entry) == 1) {
			/* it counts from 1 */
			snprintf(where, RUN_KEY_MAX, "[%u]", entry - 1);
			complaint->depth++;
		}
	}
	if (complaint->what[0] == '\0')
		text_printable(complaint->what, sizeof(complaint->what), line);
}

/* Where the fault is; the innermost `less` steps are left out. Returns how deep that is. */
static unsigned path_of(const struct complaint *complaint, unsigned less, char path[RUN_PATH_MAX])
{
	size_t length = 0;

	path[0] = '\0';
	if (less > complaint->depth)
		less = complaint->depth;
	for (unsigned i = complaint->depth; i > less; i--) {
		const char *step = complaint->where[i - 1];

		length += (size_t)snprintf(path + length, RUN_PATH_MAX - length, "%s%s",
			length > 0 && *step != '[' ? "." : "", step);
		if (length >= RUN_PATH_MAX)
			length = RUN_PATH_MAX - 1;
	}
	return complaint->depth - less;
}

/* The mapping's keys at a path, for a suggestion. */
static unsigned keys_at(const struct run_yaml *yaml, const char *path, const char *keys[MAX_KEYS])
{
	const cyaml_schema_field_t *field = yaml->keys;
	unsigned n = 0;

	if (strncmp(path, "ports", 5) == 0)
		field = port_fields;
	else if (strncmp(path, "routers", 7) == 0)
		field = strstr(path, ".ports[") != NULL ? router_port_fields : router_fields;
	else if (strncmp(path, "timeouts", 8) == 0)
		field = yaml->timeouts;
	else if (strncmp(path, "offload", 7) == 0)
		field = yaml->offload;
	else if (strncmp(path, "blocks", 6) == 0)
		field = yaml->blocks;
	else if (strncmp(path, "rules", 5) == 0)
		field = yaml->rules;
	else if (strncmp(path, "metrics", 7) == 0)
		field = yaml->metrics;
	for (; field->key && n < MAX_KEYS; field++)
		keys[n++] = field->key;
	return n;
}

/* What would have been right at a path. */
static const char *wanted_at(const char *path, unsigned depth)
{
	bool ports = strncmp(path, "ports", 5) == 0, wires = strncmp(path, "wires", 5) == 0;

	if (depth == 0)
		return "lines of KEY: VALUE are needed";
	if (depth == 1 && ports)
		return "a list of {name: NAME, device: DEVICE} is needed";
	if (depth == 1 && wires)
		return "a list of [NAME, NAME] is needed";
	if (strncmp(path, "routers", 7) == 0 && depth < 3)
		return "a list of {name: NAME, ports: [{port: PORT, name: INTERFACE}]} is needed";
	if (strncmp(path, "routers", 7) == 0 && strstr(path, ".ports") != NULL && depth < 5)
		return "a list of {port: PORT, name: INTERFACE} is needed, 32 at most";
	if (depth == 1 && strcmp(path, "exports") == 0)
		return "a list of exports is needed, as in [\"ipfix://192.0.2.1:4739\"]";
	if (depth == 1 && strcmp(path, "timeouts") == 0)
		return "lines of NAME: SECONDS are needed";
	if (depth == 1 && strcmp(path, "offload") == 0)
		return "lines of KEY: VALUE are needed, as in enabled: no";
	if (depth == 1 && strcmp(path, "blocks") == 0)
		return "lines of KEY: VALUE are needed, as in max: 65536";
	if (depth == 1 && strcmp(path, "rules") == 0)
		return "lines of KEY: VALUE are needed, as in max: 16384";
	if (depth == 1 && strcmp(path, "metrics") == 0)
		return "lines of KEY: VALUE are needed, as in listen: 127.0.0.1:9180";
	if (depth == 2 && strcmp(path, "rules.list") == 0)
		return "a list of rules is needed, 256 at most; longer ones stand in a file "
		       "(rules.file)";
	if (depth == 2 && strcmp(path, "rules.sets") == 0)
		return "a list of sets is needed, 256 at most: NAME PREFIX..., or NAME file PATH";
	if (depth == 2 && strcmp(path, "rules.captures") == 0)
		return "a list of paths of files is needed, 16 at most";
	if (depth == 2 && strcmp(path, "blocks.list") == 0)
		return "a list of blocks is needed, 256 at most; longer ones stand in a file "
		       "(blocks.file)";
	if (depth == 2 && strcmp(path, "offload.except") == 0)
		return "a list of names of ports is needed, 32 at most";
	if (depth == 2 && ports)
		return "{name: NAME, device: DEVICE} is needed";
	if (depth == 2 && wires)
		return "[NAME, NAME] is needed";
	return "one word or number is needed";
}

static int unknown_key(const struct run_yaml *yaml, const struct run_places *places,
	const struct complaint *complaint, struct error *error)
{
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX], key[RUN_KEY_MAX];
	const char *keys[MAX_KEYS], *said = strstr(complaint->what, "key: ");

	path_of(complaint, 0, path);
	snprintf(key, sizeof(key), "%.*s", RUN_KEY_MAX - 1, said ? said + strlen("key: ") : "");
	const char *near = suggest(key, keys, keys_at(yaml, path, keys));
	size_t length = strlen(path);

	snprintf(path + length, sizeof(path) - length, "%s%s", length > 0 ? "." : "", key);
	return error_set(error, -EBADMSG, "%s no such key%s%s%s",
		run_places_where(places, path, where), near ? "; did you mean " : "",
		near ? near : "", near ? "?" : "");
}

static int most_at(const char *path)
{
	if (*path == 'e')
		return EXPORTS_MAX;
	return *path == 'p' ? PLANE_MAX_PORTS : FLOW_MAX_WIRES;
}

/* One line for what libcyaml found. */
static int explain(const struct run_yaml *yaml, const struct run_places *places, cyaml_err_t fault,
	const struct complaint *complaint, struct error *error)
{
	char path[RUN_PATH_MAX], where[RUN_WHERE_MAX];
	const char *missing;
	unsigned depth;

	if (fault == CYAML_ERR_OOM)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	if (fault == CYAML_ERR_INVALID_KEY)
		return unknown_key(yaml, places, complaint, error);
	/* of these the innermost step is the last key or entry that was right */
	depth = path_of(complaint,
		fault == CYAML_ERR_MAPPING_FIELD_MISSING ||
			fault == CYAML_ERR_SEQUENCE_ENTRIES_MIN ||
			fault == CYAML_ERR_SEQUENCE_ENTRIES_MAX,
		path);
	run_places_where(places, path, where);
	if (fault == CYAML_ERR_MAPPING_FIELD_MISSING) {
		missing = strrchr(complaint->what, ' ');
		return error_set(error, -EBADMSG, "%s %s is missing; %s", where,
			missing ? missing + 1 : "a key", wanted_at(path, depth));
	}
	if (fault == CYAML_ERR_SEQUENCE_ENTRIES_MAX && depth == 1)
		return error_set(
			error, -EBADMSG, "%s there can be %d at most", where, most_at(path));
	if (fault == CYAML_ERR_INVALID_VALUE || fault == CYAML_ERR_UNEXPECTED_EVENT ||
		fault == CYAML_ERR_SEQUENCE_ENTRIES_MIN || fault == CYAML_ERR_SEQUENCE_ENTRIES_MAX)
		return error_set(error, -EBADMSG, "%s %s", where, wanted_at(path, depth));
	return error_set(error, -EBADMSG, "%s %s", where, cyaml_strerror(fault));
}

int run_yaml_create(struct run_yaml **out, const struct run_places *places, const char *bytes,
	size_t size, struct error *error)
{
	struct run_yaml *yaml = calloc(1, sizeof(*yaml));
	struct complaint complaint = {.depth = 0};
	const cyaml_config_t config = {
		.log_fn = yaml_take_line,
		.log_ctx = &complaint,
		.mem_fn = cyaml_mem,
		.log_level = CYAML_LOG_ERROR,
		.flags = CYAML_CFG_NO_ALIAS,
	};
	cyaml_data_t *data = NULL;

	if (!yaml)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	make_schema(yaml);
	cyaml_err_t fault =
		cyaml_load_data((const uint8_t *)bytes, size, &config, &yaml->schema, &data, NULL);

	if (fault != CYAML_OK) {
		int ret = explain(yaml, places, fault, &complaint, error);

		free(yaml);
		return ret;
	}
	yaml->data = data;
	*out = yaml;
	return 0;
}

void run_yaml_destroy(struct run_yaml *yaml)
{
	const cyaml_config_t config = {
		.mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR, .flags = CYAML_CFG_NO_ALIAS};

	if (!yaml)
		return;
	if (yaml->data)
		cyaml_free(&config, &yaml->schema, yaml->data, 0);
	free(yaml);
}

const struct run_yaml_data *run_yaml_data(const struct run_yaml *yaml)
{
	return yaml->data;
}
