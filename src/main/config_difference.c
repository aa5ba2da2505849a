/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/config_difference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Keys that change at run time, with all below them where they end with a dot. docs/configuration.md lists them. */
static const char *const live_keys[] = {"active", "timeouts.", "offload.enabled",
	"offload.threshold", "offload.rules", "offload.rules-per-second", "rules.file",
	"rules.list", "rules.reject-rate", "rules.log-rate", "blocks.file", "blocks.list",
	"exports", "force"};

static bool is_live(const char *key)
{
	for (unsigned i = 0; i < sizeof(live_keys) / sizeof(live_keys[0]); i++) {
		const size_t length = strlen(live_keys[i]);

		if (live_keys[i][length - 1] == '.' ? strncmp(key, live_keys[i], length) == 0
						    : strcmp(key, live_keys[i]) == 0)
			return true;
	}
	return false;
}

const char *config_difference_restart(const struct config_difference *difference)
{
	return is_live(difference->key) ? NULL : "";
}

static int add_difference(
	struct config_differences *differences, const char *key, json_t *before, json_t *after)
{
	struct config_difference *larger =
		realloc(differences->list, (differences->n + 1) * sizeof(differences->list[0]));

	if (larger == NULL)
		return -ENOMEM;
	differences->list = larger;
	larger = &larger[differences->n++];
	snprintf(larger->key, sizeof(larger->key), "%s", key);
	larger->before = json_incref(before);
	larger->after = json_incref(after);
	return 0;
}

/* Objects of one level below the whole: nothing lies deeper but in lists. */
static int find(
	struct config_differences *differences, const char *path, json_t *before, json_t *after)
{
	const char *name;
	json_t *value;
	int ret = 0;

	json_object_foreach(after, name, value)
	{
		json_t *old = json_object_get(before, name);
		char key[192];

		snprintf(key, sizeof(key), "%s%s%s", path, path[0] != '\0' ? "." : "", name);
		if (json_is_object(value) && path[0] == '\0')
			ret = find(differences, key, old, value);
		else if (!json_equal(old, value))
			ret = add_difference(differences, key, old, value);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int config_differences_find(
	struct config_differences *differences, const char *before, const char *after)
{
	json_t *old = json_loads(before, 0, NULL), *wanted = json_loads(after, 0, NULL);

	*differences = (struct config_differences){0};
	int ret = old != NULL && wanted != NULL ? find(differences, "", old, wanted) : -ENOMEM;

	json_decref(old);
	json_decref(wanted);
	return ret;
}

void config_differences_fini(struct config_differences *differences)
{
	for (unsigned i = 0; i < differences->n; i++) {
		json_decref(differences->list[i].before);
		json_decref(differences->list[i].after);
	}
	free(differences->list);
	*differences = (struct config_differences){0};
}

const char *config_value_text(const json_t *value, char text[CONFIG_VALUE_TEXT])
{
	char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *shown = json_is_string(value) ? json_string_value(value) : dumped;

	text_printable(text, CONFIG_VALUE_TEXT, shown != NULL ? shown : "?");
	free(dumped);
	return text;
}
