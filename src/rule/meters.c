/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/meters.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "rule/rules.h"

static_assert(RULE_MAX_METERS == RULES_MAX_METERS, "one table");

enum thing_kind {
	THING_PROFILE,
	THING_POLICY,
	THING_METER,
};

static const char *const thing_names[] = {
	[THING_PROFILE] = "meter profile",
	[THING_POLICY] = "meter policy",
	[THING_METER] = "meter",
};

/* A profile, a policy or a meter. */
struct thing {
	struct thing *next; /* made before it */
	enum thing_kind kind;
	uint16_t port;
	uint32_t number;
	char *text;	     /* of the command that made it; NULL: it was changed */
	struct rule_use use; /* by rules, or by meters, which are counted there */
	uint64_t serial;     /* how many were made before, and one more */
	union {
		struct action_meter_profile profile;
		uint8_t drops;
		struct {
			uint32_t place;
			struct thing *of_profile, *of_policy;
		};
	};
};

struct rule_meters {
	struct thing *things;
	uint64_t last_serial;
	bool taken[RULE_MAX_METERS]; /* places of the table */
	struct action_meter *table;
};

/* A command that is being done. */
struct metering {
	struct rule_meters *meters;
	const struct rule_command *command;
	char *told;
	size_t size;
	const char **word;
	struct error *error;
};

#define TABLE_SIZE (RULE_MAX_METERS * sizeof(struct action_meter))

struct rule_meters *rule_meters_create(void)
{
	struct rule_meters *meters = calloc(1, sizeof(*meters));

	if (meters == NULL)
		return NULL;
	meters->table = mapping_create(TABLE_SIZE, 0);
	if (meters->table == NULL) {
		free(meters);
		return NULL;
	}
	return meters;
}

static void free_thing(struct thing *thing)
{
	free(thing->text);
	free(thing);
}

void rule_meters_destroy(struct rule_meters *meters)
{
	if (meters == NULL)
		return;
	while (meters->things != NULL) {
		struct thing *thing = meters->things;

		meters->things = thing->next;
		free_thing(thing);
	}
	mapping_destroy(meters->table, TABLE_SIZE);
	free(meters);
}

struct action_meter *rule_meters_table(struct rule_meters *meters)
{
	return meters->table;
}

static struct thing *thing_of(
	const struct rule_meters *meters, enum thing_kind kind, uint16_t port, uint64_t number)
{
	struct thing *thing = meters->things;

	while (thing != NULL &&
		(thing->kind != kind || thing->port != port || thing->number != number))
		thing = thing->next;
	return thing;
}

struct rule_use *rule_meters_find(
	const struct rule_meters *meters, uint16_t port, uint32_t number, uint32_t *place)
{
	struct thing *thing = meters == NULL ? NULL : thing_of(meters, THING_METER, port, number);

	if (thing == NULL)
		return NULL;
	*place = thing->place;
	return &thing->use;
}

bool rule_meters_are_made(const struct rule_command *command)
{
	return command->verb == RULE_METER_PROFILE || command->verb == RULE_METER_POLICY ||
	       command->verb == RULE_METER_CREATE;
}

bool rule_meters_are_meant(const struct rule_command *command)
{
	return rule_meters_are_made(command) || command->verb == RULE_METER_CHANGE;
}

/* Arguments; of those that a command may leave out, what they are then. */
static uint64_t argument_of(
	const struct metering *metering, enum rule_argument_id id, unsigned nth, uint64_t otherwise)
{
	const struct rule_argument *argument = rule_command_argument(metering->command, id, nth);

	return argument != NULL ? argument->number : otherwise;
}

static int refuse_argument(const struct metering *metering, int code, enum rule_argument_id id,
	unsigned nth, const char *why)
{
	const struct rule_argument *argument = rule_command_argument(metering->command, id, nth);

	*metering->word = argument != NULL ? argument->text : NULL;
	return error_set(metering->error, code, "%s", why);
}

static int refuse_missing(
	const struct metering *metering, enum thing_kind kind, enum rule_argument_id id)
{
	*metering->word = NULL;
	return error_set(metering->error, -ENOENT, "there is no %s %" PRIu64 " of port %u",
		thing_names[kind], argument_of(metering, id, 0, 0), metering->command->port);
}

/* The thing that an argument names; `error` says so where there is none. */
static struct thing *named_thing(
	const struct metering *metering, enum thing_kind kind, enum rule_argument_id id)
{
	struct thing *thing = thing_of(
		metering->meters, kind, metering->command->port, argument_of(metering, id, 0, 0));

	if (thing == NULL)
		refuse_missing(metering, kind, id);
	return thing;
}

static int add_thing(
	const struct metering *metering, enum rule_argument_id id, const struct thing *made)
{
	struct rule_meters *meters = metering->meters;
	const uint64_t number = argument_of(metering, id, 0, 0);
	const uint16_t port = metering->command->port;
	struct thing *thing;

	if (number > UINT32_MAX)
		return refuse_argument(metering, -EINVAL, id, 0, "a number has 32 bits");
	if (thing_of(meters, made->kind, port, number) != NULL)
		return error_set(metering->error, -EEXIST,
			"%s %" PRIu64 " of port %u is there already", thing_names[made->kind],
			number, port);
	thing = malloc(sizeof(*thing));
	char *text = rule_command_text(metering->command);

	if (thing == NULL || text == NULL) {
		free(thing);
		free(text);
		return error_set(metering->error, -ENOMEM, "no memory for the meter");
	}
	*thing = *made;
	thing->text = text;
	thing->next = meters->things;
	thing->port = port;
	thing->number = (uint32_t)number;
	thing->serial = ++meters->last_serial;
	meters->things = thing;
	snprintf(metering->told, metering->size, "%s %" PRIu64 " of port %u created",
		thing_names[made->kind], number, port);
	return 0;
}

static void take_out(struct rule_meters *meters, struct thing *thing)
{
	struct thing **link = &meters->things;

	while (*link != thing)
		link = &(*link)->next;
	*link = thing->next;
	if (thing->kind == THING_METER) {
		thing->of_profile->use.rules--;
		thing->of_policy->use.rules--;
		meters->taken[thing->place] = false;
	}
	free_thing(thing);
}

static int add_profile(const struct metering *metering)
{
	/* "add port meter profile KIND": the rates and bursts follow in the order of the kind */
	const char *name = metering->command->form->steps[4].name;
	const bool one_rate = strcmp(name, "srtcm_rfc2697") == 0;
	struct action_meter_limits limits = {
		.kind = one_rate			     ? ACTION_METER_SRTCM
			: strcmp(name, "trtcm_rfc2698") == 0 ? ACTION_METER_TRTCM
							     : ACTION_METER_TRTCM_EXCESS,
		.packets = argument_of(metering, RULE_ARG_PACKET_MODE, 0, 0) != 0,
	};
	struct thing thing = {.kind = THING_PROFILE};
	unsigned nth = 0;

	for (unsigned i = 0; i < (one_rate ? 1 : 2); i++)
		limits.rate[i] = argument_of(metering, RULE_ARG_RATE, nth++, 0);
	for (unsigned i = 0; i < 2; i++)
		limits.burst[i] = argument_of(metering, RULE_ARG_RATE, nth++, 0);
	int ret = action_meter_profile_init(&thing.profile, &limits, metering->error);

	return ret < 0 ? ret : add_thing(metering, RULE_ARG_PROFILE, &thing);
}

/* What becomes of packets of a color: they go on, or are dropped. */
static int read_color_actions(const struct metering *metering, enum rte_color color, uint8_t *drops)
{
	static const char *const words[RTE_COLORS] = {"g_actions", "y_actions", "r_actions"};
	const struct rte_flow_action *action = metering->command->actions[color];

	for (; action != NULL && action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		const struct rule_thing *thing = rule_action_of(action->type);
		const struct rte_flow_action_meter_color *given = action->conf;

		switch ((int)action->type) {
		case RTE_FLOW_ACTION_TYPE_VOID:
		case RTE_FLOW_ACTION_TYPE_COUNT:
		case RTE_FLOW_ACTION_TYPE_PASSTHRU:
			continue;
		case RTE_FLOW_ACTION_TYPE_DROP:
			*drops |= (uint8_t)(1u << color);
			continue;
		case RTE_FLOW_ACTION_TYPE_METER_COLOR:
			if (given != NULL && given->color == color)
				continue;
			*metering->word = words[color];
			return error_set(metering->error, -ENOTSUP,
				"action 'color': in software packets keep the color that the meter "
				"gave them");
		default:
			*metering->word = words[color];
			return error_set(metering->error, -ENOTSUP,
				"action '%s': in software packets of a color go on, or are dropped",
				thing != NULL ? thing->name : "?");
		}
	}
	return 0;
}

static int add_policy(const struct metering *metering)
{
	struct thing thing = {.kind = THING_POLICY};
	int ret = 0;

	for (unsigned color = 0; ret == 0 && color < RTE_COLORS; color++)
		ret = read_color_actions(metering, (enum rte_color)color, &thing.drops);
	return ret < 0 ? ret : add_thing(metering, RULE_ARG_POLICY, &thing);
}

/* Packets have no color before the meter's. */
static int check_colors(const struct metering *metering)
{
	static const char why[] =
		"in software packets have no color before the meter gives them one";
	const struct rule_argument *entry;

	if (argument_of(metering, RULE_ARG_USE_COLOR, 0, 0) != 0)
		return refuse_argument(metering, -ENOTSUP, RULE_ARG_USE_COLOR, 0, why);
	if (argument_of(metering, RULE_ARG_COLOR, 0, RTE_COLOR_GREEN) != RTE_COLOR_GREEN)
		return refuse_argument(metering, -ENOTSUP, RULE_ARG_COLOR, 0, why);
	for (unsigned i = 0;
		(entry = rule_command_argument(metering->command, RULE_ARG_TABLE_ENTRY, i)) != NULL;
		i++)
		if (entry->number != RTE_COLOR_GREEN)
			return refuse_argument(metering, -ENOTSUP, RULE_ARG_TABLE_ENTRY, i, why);
	return 0;
}

static int add_meter(const struct metering *metering)
{
	struct rule_meters *meters = metering->meters;
	struct thing thing = {.kind = THING_METER};
	int ret = check_colors(metering);

	if (ret < 0)
		return ret;
	thing.of_profile = named_thing(metering, THING_PROFILE, RULE_ARG_PROFILE);
	if (thing.of_profile == NULL)
		return -ENOENT;
	thing.of_policy = named_thing(metering, THING_POLICY, RULE_ARG_POLICY);
	if (thing.of_policy == NULL)
		return -ENOENT;
	while (thing.place < RULE_MAX_METERS && meters->taken[thing.place])
		thing.place++;
	if (thing.place == RULE_MAX_METERS)
		return error_set(metering->error, -ENOSPC,
			"there are %u meters, and room for no more", RULE_MAX_METERS);
	ret = add_thing(metering, RULE_ARG_METER, &thing);
	if (ret < 0)
		return ret;
	thing.of_profile->use.rules++;
	thing.of_policy->use.rules++;
	meters->taken[thing.place] = true;
	action_meter_init(&meters->table[thing.place], &thing.of_profile->profile,
		thing.of_policy->drops, argument_of(metering, RULE_ARG_ENABLE, 0, 1) != 0);
	return 0;
}

static int remove_named(
	const struct metering *metering, enum thing_kind kind, enum rule_argument_id id)
{
	struct thing *thing = named_thing(metering, kind, id);

	if (thing == NULL)
		return -ENOENT;
	if (thing->use.rules != 0)
		return error_set(metering->error, -EBUSY, "%s %u of port %u is used by %u %s%s",
			thing_names[kind], thing->number, thing->port, thing->use.rules,
			kind == THING_METER ? "rule" : "meter", thing->use.rules == 1 ? "" : "s");
	snprintf(metering->told, metering->size, "%s %u of port %u destroyed", thing_names[kind],
		thing->number, thing->port);
	take_out(metering->meters, thing);
	return 0;
}

static int change_profile(const struct metering *metering)
{
	struct thing *meter = named_thing(metering, THING_METER, RULE_ARG_METER);
	struct thing *profile =
		meter == NULL ? NULL : named_thing(metering, THING_PROFILE, RULE_ARG_PROFILE);

	if (profile == NULL)
		return -ENOENT;
	profile->use.rules++;
	meter->of_profile->use.rules--;
	meter->of_profile = profile;
	free(meter->text);
	meter->text = NULL;
	action_meter_change(&metering->meters->table[meter->place], &profile->profile);
	snprintf(metering->told, metering->size, "meter %u of port %u has profile %u",
		meter->number, meter->port, profile->number);
	return 0;
}

/* del, enable, disable and set: "VERB port meter [profile|policy|stats ...]". */
static int change(const struct metering *metering)
{
	const struct rule_step *steps = metering->command->form->steps;
	const char *verb = steps[0].name, *what = steps[3].name;
	const bool profile = strcmp(what, "profile") == 0;

	if (strcmp(verb, "del") == 0) {
		if (profile)
			return remove_named(metering, THING_PROFILE, RULE_ARG_PROFILE);
		if (strcmp(what, "policy") == 0)
			return remove_named(metering, THING_POLICY, RULE_ARG_POLICY);
		return remove_named(metering, THING_METER, RULE_ARG_METER);
	}
	if (strcmp(verb, "set") == 0) {
		if (profile)
			return change_profile(metering);
		*metering->word = what;
		return error_set(metering->error, -ENOTSUP,
			"%s: in software a meter counts no colors; drop show has what it dropped",
			what);
	}
	const struct thing *meter = named_thing(metering, THING_METER, RULE_ARG_METER);

	if (meter == NULL)
		return -ENOENT;
	action_meter_enable(&metering->meters->table[meter->place], strcmp(verb, "enable") == 0);
	snprintf(metering->told, metering->size, "meter %u of port %u %sd", meter->number,
		meter->port, verb);
	return 0;
}

int rule_meters_do(struct rule_meters *meters, const struct rule_command *command, char *told,
	size_t size, const char **word, struct error *error)
{
	const struct metering metering = {
		.meters = meters,
		.command = command,
		.told = told,
		.size = size,
		.word = word,
		.error = error,
	};

	*word = NULL;
	switch ((int)command->verb) {
	case RULE_METER_PROFILE:
		return add_profile(&metering);
	case RULE_METER_POLICY:
		return add_policy(&metering);
	case RULE_METER_CREATE:
		return add_meter(&metering);
	default:
		return change(&metering);
	}
}

bool rule_meters_have(const struct rule_meters *meters, const struct rule_command *command)
{
	char *text = rule_command_text(command);
	const struct thing *thing = meters->things;

	while (text != NULL && thing != NULL &&
		(thing->text == NULL || strcmp(thing->text, text) != 0))
		thing = thing->next;
	free(text);
	return text != NULL && thing != NULL;
}

uint64_t rule_meters_mark(const struct rule_meters *meters)
{
	return meters->last_serial;
}

void rule_meters_undo(struct rule_meters *meters, uint64_t mark)
{
	struct thing *thing = meters->things, *next;

	/* newest first: meters go before what they are made of */
	for (; thing != NULL && thing->serial > mark; thing = next) {
		next = thing->next;
		if (thing->use.rules == 0)
			take_out(meters, thing);
	}
}

void rule_meters_restart(struct rule_meters *meters)
{
	for (unsigned place = 0; place < RULE_MAX_METERS; place++)
		if (meters->taken[place])
			action_meter_restart(&meters->table[place]);
}
