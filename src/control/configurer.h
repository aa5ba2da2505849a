/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How the control socket changes the configuration of a running engine: it brings the text, tells what comes of it and waits for a
 * confirmation; a configurer, which the maker of the engine provides, knows what the text means. All of it belongs to control's thread.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rule/rules.h"

struct control;

/* A configuration as text; `text` NULL: the engine's own file, or its command line where it has none. */
struct control_config_text {
	const char *name; /* that errors give it */
	const char *text;
	size_t size;
	bool to_save; /* the engine is to start with it the next time */
};

/* The differences that a new configuration makes. Zeroed at first; control_config_change_fini() frees it. */
struct control_config_change {
	/* an object for each key: docs/control.md, config diff */
	json_t *lines;
	unsigned now, restart; /* keys that change at once, and that only a restart changes */
	bool rules;	       /* rules are those of the configuration: */
	struct rules_change of_rules;
	bool rules_changed; /* another list of them is in force, or would be */
	uint32_t blocks_added, blocks_removed;
	unsigned exports_opened, exports_closed;
	char *json; /* the configuration in effect from then on */
};

struct control_configurer {
	/* Finds out what would change, and changes nothing. 0 or a negative errno with a line: the text is wrong */
	int (*diff)(void *context, const struct control_config_text *text,
		struct control_config_change *change, struct error *error);
	/* Applies all of it, or nothing: a negative errno with a line. -EAGAIN: later it may be done */
	int (*apply)(void *context, const struct control_config_text *text,
		struct control_config_change *change, struct error *error);
	/* Applies the configuration before, once; as apply(), or -ENOENT: there is none. `why`: who wanted it */
	int (*go_back)(void *context, const char *why, struct control_config_change *change,
		struct error *error);
	/* The engine's own files, of the configuration and of its rules; NULL: there is none */
	const char *(*file)(void *context);
	const char *(*rules_file)(void *context);
	/* Writes the text that was applied last to the engine's own file. 0 or a negative errno with a line */
	int (*save)(void *context, struct error *error);
	int (*save_rules)(void *context, const char *text, size_t size, struct error *error);
	/* Is there a configuration to go back to? */
	bool (*has_before)(void *context);
	void *context;
};

void control_config_change_fini(struct control_config_change *change);

/* Before the first step. */
void control_configured_by(struct control *control, const struct control_configurer *configurer);

/*
 * The engine's own file is read again, and applied. 0 or a negative errno with a line, as apply(); both are told as events.
 * The caller frees the change in any case.
 */
int control_reload(
	struct control *control, struct control_config_change *change, struct error *error);

/*
 * For configurers: other rules in force, as `rule load` does it (the list is gone in any case), and those before again.
 * Events tell how far they have come.
 */
int control_put_rules(struct control *control, const char *name, struct rules_list *list,
	struct rules_change *change, struct error *error);
int control_rules_back(
	struct control *control, const char *why, struct rules_change *change, struct error *error);
