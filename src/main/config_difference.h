/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * In what two configurations differ, key by key, by what run_config_json() says of them; and which of their keys a running
 * engine can change. A list is one value: it differs as a whole.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A key that is not the same in both. */
struct config_difference {
	char key[192];
	json_t *before, *after; /* owned by the difference */
};

struct config_differences {
	struct config_difference *list;
	unsigned n;
};

/* Both are lines of JSON. 0 or -ENOMEM; config_differences_fini() in any case. */
int config_differences_find(
	struct config_differences *differences, const char *before, const char *after);
void config_differences_fini(struct config_differences *differences);

/* NULL: it can change at run time. Else why not, as the end of a sentence; "" where there is no more to it. */
const char *config_difference_restart(const struct config_difference *difference);

/* The value as text, cut where it is long. */
#define CONFIG_VALUE_TEXT 100
const char *config_value_text(const json_t *value, char text[CONFIG_VALUE_TEXT]);
