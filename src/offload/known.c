/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/known.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_version.h>

#define ROOT_DIRECTORY "/var/lib/millrace"
#define NAME "millrace"

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* FNV-1a, with the zero that ends each text: they only have to be told apart. */
static uint64_t mix(uint64_t hash, const char *text)
{
	do
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	while (*text++ != '\0');
	return hash;
}

int known_key(struct known_key *key, uint16_t port_id, const char *arguments)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port_id, &info);

	memset(key, 0, sizeof(*key));
	if (ret < 0)
		return ret;
	snprintf(key->driver, sizeof(key->driver), "%s", info.driver_name);
	snprintf(key->dpdk, sizeof(key->dpdk), "%s", rte_version());
	if (snprintf(key->arguments, sizeof(key->arguments), "%s", arguments) >=
		(int)sizeof(key->arguments))
		snprintf(key->arguments, sizeof(key->arguments), "%.200s #%016llx", arguments,
			(unsigned long long)mix(HASH_BEGIN, arguments));
	if (rte_eth_dev_fw_version_get(port_id, key->firmware, sizeof(key->firmware)) != 0)
		key->firmware[0] = '\0';
	key->firmware[sizeof(key->firmware) - 1] = '\0';
	return 0;
}

/* False: it is not there, or too long to be told from others. */
static bool take_text(const json_t *report, const char *key, char *text, size_t size)
{
	const char *value = json_string_value(json_object_get(report, key));

	if (value == NULL || strlen(value) >= size)
		return false;
	snprintf(text, size, "%s", value);
	return true;
}

int known_key_of(struct known_key *key, const json_t *report)
{
	memset(key, 0, sizeof(*key));
	(void)take_text(report, "firmware", key->firmware, sizeof(key->firmware));
	if (!take_text(report, "driver", key->driver, sizeof(key->driver)) ||
		!take_text(report, "dpdk", key->dpdk, sizeof(key->dpdk)) ||
		!take_text(report, "arguments", key->arguments, sizeof(key->arguments)))
		return -EINVAL;
	return 0;
}

int known_directory(char *path, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int length;

	if (state != NULL && state[0] == '/')
		length = snprintf(path, size, "%s/" NAME, state);
	else if (geteuid() == 0)
		length = snprintf(path, size, ROOT_DIRECTORY);
	else if (home != NULL && home[0] == '/')
		length = snprintf(path, size, "%s/.local/state/" NAME, home);
	else
		return -ENOENT;
	return length < (int)size ? 0 : -ENAMETOOLONG;
}

int known_path(char *path, size_t size, const char *directory, const struct known_key *key)
{
	uint64_t hash = HASH_BEGIN;
	char driver[sizeof(key->driver)];
	int length;

	hash = mix(mix(mix(hash, key->firmware), key->dpdk), key->arguments);
	snprintf(driver, sizeof(driver), "%s", key->driver);
	for (char *at = driver; *at != '\0'; at++)
		if (*at == '/' || *at <= ' ' || *at >= 0x7f)
			*at = '_';
	length = snprintf(
		path, size, "%s/%s-%016llx.json", directory, driver, (unsigned long long)hash);
	return length < (int)size ? 0 : -ENAMETOOLONG;
}

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static void read_table(struct known *known, const json_t *table)
{
	const json_t *insert = json_object_get(table, "insert");
	const json_t *delete = json_object_get(table, "delete");
	const char *end = json_string_value(json_object_get(table, "end"));

	(void)take_text(table, "back_end", known->back_end, sizeof(known->back_end));
	known->sized = end != NULL && number_of(table, "rules") > 0;
	known->full = end != NULL && strcmp(end, "full") == 0;
	known->rules = (uint32_t)number_of(table, "rules");
	known->insert_p50_ns = number_of(insert, "p50_ns");
	known->insert_p99_ns = number_of(insert, "p99_ns");
	known->inserts_per_s = number_of(insert, "per_s");
	known->delete_p50_ns = number_of(delete, "p50_ns");
	known->delete_p99_ns = number_of(delete, "p99_ns");
	known->deletes_per_s = number_of(delete, "per_s");
}

static bool has(const json_t *cell, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(cell, key));

	return value != NULL && strcmp(value, text) == 0;
}

static void read_cell(struct known *known, const json_t *cell)
{
	const char *actions = json_string_value(json_object_get(cell, "actions"));

	if (actions == NULL || strncmp(actions, "mark", 4) != 0 || !has(cell, "level", "works"))
		return;
	if (strstr(actions, "count") != NULL)
		known->counts = true;
	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++)
		if (has(cell, "kind", provider_kind_name((enum provider_kind)i)))
			known->works[i] = true;
}

int known_read(struct known *known, const json_t *report)
{
	const json_t *marks = json_object_get(report, "marks"), *cell;
	size_t i;

	memset(known, 0, sizeof(*known));
	if (!json_is_object(report) || !take_text(report, "time", known->time, sizeof(known->time)))
		return -EINVAL;
	/* the first one is that of the back end which an engine would have */
	read_table(known, json_array_get(json_object_get(report, "tables"), 0));
	known->mark_bits = (unsigned)number_of(marks, "seen_bits");
	if (known->mark_bits == 0)
		known->mark_bits = (unsigned)number_of(marks, "accepted_bits");
	json_array_foreach(json_object_get(report, "cells"), i, cell) read_cell(known, cell);
	return 0;
}

static bool known_is_same(const struct known_key *a, const struct known_key *b)
{
	return strcmp(a->driver, b->driver) == 0 && strcmp(a->firmware, b->firmware) == 0 &&
	       strcmp(a->dpdk, b->dpdk) == 0 && strcmp(a->arguments, b->arguments) == 0;
}

int known_load(struct known *known, const char *directory, const struct known_key *key,
	struct error *error)
{
	json_error_t said;
	char path[PATH_MAX];
	struct stat file;
	struct known_key its;
	json_t *report;
	int ret = known_path(path, sizeof(path), directory, key);

	if (ret < 0)
		return error_set(error, ret, "%s: too long", directory);
	if (stat(path, &file) < 0)
		return -ENOENT;
	/* whoever reads from anything else may wait for ever */
	if (!S_ISREG(file.st_mode))
		return error_set(error, -EINVAL, "%s: no file", path);
	report = json_load_file(path, 0, &said);
	if (report == NULL)
		return error_set(error, -EINVAL, "%s: %s", path, said.text);
	ret = known_key_of(&its, report);
	/* a file of that name by chance */
	if (ret == 0 && !known_is_same(&its, key))
		ret = -ENOENT;
	else if (ret == 0)
		ret = known_read(known, report);
	if (ret == -EINVAL)
		error_set(error, ret, "%s: no report of millrace probe", path);
	json_decref(report);
	return ret;
}

/* With all above it. */
static int make_directory(const char *directory)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", directory);
	for (char *at = path + 1;; at++) {
		char was = *at;

		if (was != '/' && was != '\0')
			continue;
		*at = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		*at = was;
		if (was == '\0')
			return 0;
	}
}

/* All of it is on the disk, under another name. */
static int write_file(const json_t *report, char *path)
{
	int fd = mkstemp(path), ret = 0;

	if (fd < 0)
		return -errno;
	if (json_dumpfd(report, fd, JSON_COMPACT) < 0 || write(fd, "\n", 1) != 1 ||
		fchmod(fd, 0644) < 0 || fsync(fd) < 0)
		ret = errno != 0 ? -errno : -EIO;
	if (close(fd) < 0 && ret == 0)
		ret = -errno;
	if (ret < 0)
		unlink(path);
	return ret;
}

int known_store(const json_t *report, const char *directory, struct error *error)
{
	char path[PATH_MAX], draft[PATH_MAX];
	struct known_key key;
	int ret = known_key_of(&key, report);

	if (ret < 0)
		return error_set(error, ret, "the report does not say what it is of");
	ret = known_path(path, sizeof(path), directory, &key);
	if (ret == 0 &&
		snprintf(draft, sizeof(draft), "%s/.probe-XXXXXX", directory) >= (int)sizeof(draft))
		ret = -ENAMETOOLONG;
	if (ret == 0)
		ret = make_directory(directory);
	if (ret == 0)
		ret = write_file(report, draft);
	if (ret == 0 && rename(draft, path) < 0) {
		ret = -errno;
		unlink(draft);
	}
	return ret < 0 ? error_set(error, ret, "%s: %s", directory, strerror(-ret)) : 0;
}
