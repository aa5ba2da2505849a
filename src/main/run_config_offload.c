/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_offload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"

/* More than any wire carries. */
#define THRESHOLD_MAX 1000000000
/* More than any card does. */
#define RULES_PER_S_MAX 1000000000

const char *run_offload_key(enum run_offload_key key)
{
	static const char *const keys[RUN_OFFLOAD_N_KEYS] = {
		[RUN_OFFLOAD_ENABLED] = "enabled",
		[RUN_OFFLOAD_MODE] = "mode",
		[RUN_OFFLOAD_THRESHOLD_KEY] = "threshold",
		[RUN_OFFLOAD_SLOTS_KEY] = "slots",
		[RUN_OFFLOAD_RULES] = "rules",
		[RUN_OFFLOAD_RULES_PER_SECOND] = "rules-per-second",
		[RUN_OFFLOAD_COUNTERS] = "counters",
		[RUN_OFFLOAD_RESTART] = "restart",
		[RUN_OFFLOAD_RULES_IN_NIC] = "rules-in-nic",
		[RUN_OFFLOAD_EXCEPT] = "except",
	};

	return keys[key];
}

void run_offload_init(struct run_offload *offload)
{
	*offload = (struct run_offload){
		.on = true,
		.threshold = RUN_OFFLOAD_THRESHOLD,
		.slots = RUN_OFFLOAD_SLOTS,
		.counters = true,
		.drops = true,
	};
}

static int set_mode(
	struct run_offload *offload, const char *where, const char *value, struct error *error)
{
	static const char *const modes[] = {"mark", "full"};
	unsigned mode;
	int ret = option_word(where, value, modes, sizeof(modes) / sizeof(modes[0]), &mode, error);

	if (ret == 0)
		offload->full = mode == 1;
	return ret;
}

static int set_rules_in_nic(
	struct run_offload *offload, const char *where, const char *value, struct error *error)
{
	static const char *const words[] = {"off", "drop"};
	unsigned word;
	int ret = option_word(where, value, words, sizeof(words) / sizeof(words[0]), &word, error);

	if (ret == 0)
		offload->drops = word == 1;
	return ret;
}

static bool offload_good_name(const char *name)
{
	return *name != '\0' && strlen(name) < PORT_NAME_MAX;
}

int run_offload_add_except(
	struct run_offload *offload, const char *where, const char *name, struct error *error)
{
	if (!offload_good_name(name))
		return option_bad_value(where, name, "the name of a port is needed", error);
	for (unsigned i = 0; i < offload->n_except; i++)
		if (strcmp(offload->except[i], name) == 0)
			return option_bad_value(where, name, "this port is named twice", error);
	if (offload->n_except == PLANE_MAX_PORTS)
		return option_bad_value(where, name, "there can be 32 ports at most", error);
	snprintf(offload->except[offload->n_except++], PORT_NAME_MAX, "%s", name);
	return 0;
}

/* NAME,NAME,... */
static int set_except(
	struct run_offload *offload, const char *where, const char *value, struct error *error)
{
	char name[PORT_NAME_MAX + 1];
	int ret = 0;

	offload->n_except = 0;
	if (strcmp(value, "none") == 0)
		return 0;
	for (const char *at = value; ret == 0;) {
		size_t length = strcspn(at, ",");

		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		ret = run_offload_add_except(offload, where, name, error);
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	return ret;
}

int run_offload_set(struct run_offload *offload, enum run_offload_key key, const char *where,
	const char *value, struct error *error)
{
	switch (key) {
	case RUN_OFFLOAD_ENABLED:
		return option_on_off(where, value, &offload->on, error);
	case RUN_OFFLOAD_MODE:
		return set_mode(offload, where, value, error);
	case RUN_OFFLOAD_THRESHOLD_KEY:
		return option_range(
			where, value, value, 0, THRESHOLD_MAX, &offload->threshold, error);
	case RUN_OFFLOAD_SLOTS_KEY:
		return option_number(
			where, value, value, RUN_OFFLOAD_SLOTS_MAX, &offload->slots, error);
	case RUN_OFFLOAD_RULES:
		return option_range(where, value, value, 0, UINT32_MAX, &offload->rules, error);
	case RUN_OFFLOAD_RULES_PER_SECOND:
		return option_range(
			where, value, value, 0, RULES_PER_S_MAX, &offload->rules_per_s, error);
	case RUN_OFFLOAD_COUNTERS:
		return option_yes_no(where, value, &offload->counters, error);
	case RUN_OFFLOAD_RESTART:
		return option_yes_no(where, value, &offload->restart, error);
	case RUN_OFFLOAD_RULES_IN_NIC:
		return set_rules_in_nic(offload, where, value, error);
	case RUN_OFFLOAD_EXCEPT:
		return set_except(offload, where, value, error);
	case RUN_OFFLOAD_N_KEYS:
		break;
	}
	return -EINVAL;
}
