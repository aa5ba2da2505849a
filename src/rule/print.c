/* SPDX-License-Identifier: BSD-3-Clause */
/* A command as the line that says it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/parser.h"

struct printer {
	char *buffer;
	size_t size, length;
	unsigned argument; /* the next one */
};

__attribute__((format(printf, 2, 3))) static void print(
	struct printer *printer, const char *format, ...)
{
	size_t room = printer->length < printer->size ? printer->size - printer->length : 0;
	va_list arguments;

	va_start(arguments, format);
	printer->length += (size_t)vsnprintf(
		room ? printer->buffer + printer->length : NULL, room, format, arguments);
	va_end(arguments);
}

/* Words are parted by one blank, and none stands in front. */
static void print_word(struct printer *printer, const char *word)
{
	print(printer, "%s%s", printer->length ? " " : "", word);
}

static void print_value(struct printer *printer, const struct rule_field *field, const char *param,
	const void *object)
{
	struct rule_value value;
	char text[RULE_VALUE_TEXT];

	rule_field_load(field, object, &value);
	/* zeros at the end of an array are not said */
	while (field->kind == RULE_INLINE && value.n_bytes > 1 &&
		value.bytes[value.n_bytes - 1] == 0)
		value.n_bytes--;
	rule_value_print(text, field, strcmp(param, "mask") == 0, &value);
	if (field->name[0] != '\0')
		print_word(printer, field->name);
	if (param[0] != '\0')
		print_word(printer, param);
	print_word(printer, text);
}

static void print_bytes(struct printer *printer, const struct rule_field *field, const char *param,
	const void *bytes, unsigned n)
{
	struct rule_value value = {.n_bytes = n};
	char text[RULE_VALUE_TEXT];

	memcpy(value.bytes, bytes, n);
	rule_value_print(text, field, false, &value);
	print_word(printer, field->name);
	if (param[0] != '\0')
		print_word(printer, param);
	print_word(printer, text);
}

/* How many bytes behind a pointer have to be said. */
static unsigned bytes_said(const struct rule_field *field, const void *object, const uint8_t *bytes)
{
	int length = rule_field_length(field, object);
	unsigned n = field->max;

	if (length >= 0)
		return (unsigned)length < n ? (unsigned)length : n;
	while (n > 1 && bytes[n - 1] == 0)
		n--;
	return n;
}

/* An item while it is printed: which of its three structs have been said to be there. */
struct item {
	const struct rule_thing *thing;
	const void *spec, *last, *mask;
	bool said_spec, said_last, said_mask;
	uint16_t variant;
};

/* Is the mask that of `is`, for the bytes that the value has? */
static bool is_exact(const struct rule_field *field, const struct item *item, const uint8_t *spec,
	const uint8_t *mask, unsigned *n)
{
	unsigned ones = 0;

	while (ones < field->max && mask[ones] == 0xff)
		ones++;
	if (field->length_offset)
		return rule_field_length(field, item->mask) > field->max && ones >= *n;
	for (unsigned i = ones; i < field->max; i++)
		if (mask[i] != 0)
			return false;
	bool exact = ones >= bytes_said(field, item->spec, spec) && ones > 0;

	*n = exact ? ones : *n;
	return exact;
}

static void print_item_bytes(
	struct printer *printer, const struct rule_field *field, struct item *item)
{
	const uint8_t *spec = item->spec ? rule_field_pointer(field, item->spec) : NULL;
	const uint8_t *mask = item->mask ? rule_field_pointer(field, item->mask) : NULL;
	unsigned n = spec ? bytes_said(field, item->spec, spec) : 0;

	if (spec && mask && is_exact(field, item, spec, mask, &n)) {
		print_bytes(printer, field, "is", spec, n);
		item->said_spec = item->said_mask = true;
		return;
	}
	if (spec) {
		print_bytes(printer, field, "spec", spec, n);
		item->said_spec = true;
	}
	if (mask) {
		print_bytes(printer, field, "mask", mask, bytes_said(field, item->mask, mask));
		item->said_mask = true;
	}
}

/* The word that says a value as a whole. */
static const char *param_of(const struct rule_field *field)
{
	if (field->flags & RULE_BARE)
		return "";
	return field->flags & RULE_ABOVE ? "above" : "is";
}

static void print_item_field(
	struct printer *printer, const struct rule_field *field, struct item *item)
{
	if (rule_field_points(field)) {
		print_item_bytes(printer, field, item);
		return;
	}
	if (item->spec && item->mask && rule_field_is_full(field, item->mask)) {
		print_value(printer, field, param_of(field), item->spec);
		item->said_spec = item->said_mask = true;
	} else {
		if (item->spec && !rule_field_is_zero(field, item->spec)) {
			print_value(printer, field, "spec", item->spec);
			item->said_spec = true;
		}
		if (item->mask && !rule_field_is_zero(field, item->mask)) {
			print_value(printer, field, "mask", item->mask);
			item->said_mask = true;
		}
	}
	if (item->last && !rule_field_is_zero(field, item->last)) {
		print_value(printer, field, "last", item->last);
		item->said_last = true;
	}
}

static bool bits_beyond(const struct rule_field *field, const void *object, uint64_t parts)
{
	struct rule_value value = {.number = 0};

	if (object)
		rule_field_load(field, object, &value);
	return (value.number & ~parts) != 0;
}

/* A field that others are parts of is said where they cannot say all of it, or where all of it counts. */
static bool whole_is_said(const struct rule_field *whole, const struct item *item)
{
	uint64_t parts = 0;

	for (unsigned i = 0; i < item->thing->n_fields; i++) {
		const struct rule_field *field = &item->thing->fields[i];

		if (field->offset == whole->offset && field->bits)
			parts |= ((UINT64_C(1) << field->bits) - 1) << field->shift;
	}
	return (item->spec && item->mask && rule_field_is_full(whole, item->mask)) ||
	       bits_beyond(whole, item->spec, parts) || bits_beyond(whole, item->last, parts) ||
	       bits_beyond(whole, item->mask, parts);
}

/* The kind of message, which says what the other bytes are. */
static void print_variant(
	struct printer *printer, const struct rule_field *field, struct item *item)
{
	struct rule_value value;

	if (!item->spec || !item->mask || !rule_field_is_full(field, item->mask))
		return;
	rule_field_load(field, item->spec, &value);
	const char *name = rule_word_name(field->words, value.number);

	if (!name)
		return;
	item->variant = (uint16_t)(1u << (rule_word_find(field->words, name) - field->words));
	item->said_spec = item->said_mask = true;
	if (item->thing->fields[0].kind == RULE_EMPTY)
		print_word(printer, item->thing->fields[0].name);
	print_word(printer, field->name);
	print_word(printer, name);
}

/* Fields that say nothing more than that a struct is there. */
static void print_presence(struct printer *printer, struct item *item)
{
	for (unsigned i = 0; i < item->thing->n_fields; i++) {
		const struct rule_field *field = &item->thing->fields[i];

		if ((field->flags &
			    (RULE_ALIAS | RULE_IS_ONLY | RULE_NO_RANGE | RULE_ABOVE | RULE_BARE)) ||
			field->kind == RULE_EMPTY || field->kind == RULE_VARIANT ||
			(field->variants && !(field->variants & item->variant)))
			continue;
		if (item->spec && !item->said_spec)
			print_value(printer, field, "spec", item->spec);
		if (item->last && !item->said_last)
			print_value(printer, field, "last", item->last);
		if (item->mask && !item->said_mask)
			print_value(printer, field, "mask", item->mask);
		return;
	}
}

static void print_item(
	struct printer *printer, const struct rule_thing *thing, const struct rte_flow_item *given)
{
	struct item item = {
		.thing = thing, .spec = given->spec, .last = given->last, .mask = given->mask};
	const struct rule_field *whole = NULL;

	print_word(printer, thing->name);
	for (unsigned i = 0; i < thing->n_fields; i++) {
		const struct rule_field *field = &thing->fields[i];

		if (field->kind == RULE_VARIANT)
			print_variant(printer, field, &item);
		if ((field->flags & RULE_ALIAS) || field->refused || field->kind == RULE_VARIANT ||
			field->kind == RULE_EMPTY ||
			(field->variants && !(field->variants & item.variant)) ||
			(whole && field->offset == whole->offset))
			continue;
		if (field->flags & RULE_WHOLE) {
			if (!whole_is_said(field, &item))
				continue;
			whole = field;
		}
		print_item_field(printer, field, &item);
	}
	print_presence(printer, &item);
}

static void print_items(
	struct printer *printer, const struct rule_command *command, const char *end)
{
	const struct rule_thing *const *things = command->parts->items;
	const struct rte_flow_item *item = command->pattern;

	for (; item->type != RTE_FLOW_ITEM_TYPE_END; item++, things++) {
		print_item(printer, *things, item);
		print_word(printer, "/");
	}
	print_word(printer, end);
}

static void print_types(struct printer *printer, const struct rule_field *field, uint64_t types)
{
	print_word(printer, field->name);
	for (const struct rule_word *type = field->words; type->name; type++) {
		bool one_bit = type->value && (type->value & (type->value - 1)) == 0;

		if (one_bit && (types & type->value))
			print_word(printer, type->name);
	}
	print_word(printer, "end");
}

static void print_queues(struct printer *printer, const struct rule_field *field, const void *conf)
{
	const uint16_t *queues = rule_field_pointer(field, conf);
	int n = rule_field_length(field, conf);

	print_word(printer, field->name);
	for (int i = 0; i < n; i++)
		print(printer, " %u", queues[i]);
	print_word(printer, "end");
}

/* Does a pointer's length stand in this field, and is it said with the bytes? */
static bool said_with_bytes(
	const struct rule_thing *thing, const struct rule_field *field, const void *conf)
{
	for (unsigned i = 0; i < thing->n_fields; i++) {
		const struct rule_field *bytes = &thing->fields[i];

		if (rule_field_points(bytes) && bytes->length_offset == field->offset + 1 &&
			rule_field_pointer(bytes, conf))
			return true;
	}
	return false;
}

static bool is_given(const struct rule_field *field, const void *conf)
{
	uint32_t also;

	memcpy(&also, (const uint8_t *)conf + field->also_offset - 1, sizeof(also));
	return also >> field->also_shift & 1;
}

static bool source_is_other(
	const struct rule_thing *thing, const struct rule_field *field, const void *conf)
{
	struct rule_value type = {.number = 0};

	if (!(field->flags & RULE_SOURCE))
		return false;
	for (unsigned i = 0; i < thing->n_fields; i++)
		if (thing->fields[i].flags & RULE_CLEARS)
			rule_field_load(&thing->fields[i], conf, &type);
	return !rule_source_fits(field, type.number);
}

/* Has the field of an action to be said? */
static bool is_said(
	const struct rule_thing *thing, const struct rule_field *field, const void *conf)
{
	if ((field->flags & RULE_ALIAS) || field->refused || source_is_other(thing, field, conf))
		return false;
	if (field->also_offset)
		return is_given(field, conf);
	if (rule_field_points(field))
		return rule_field_pointer(field, conf) != NULL;
	if (field->kind == RULE_QUEUES)
		return rule_field_length(field, conf) > 0;
	if (field->flags & RULE_ONES)
		return !rule_field_is_full(field, conf);
	if (said_with_bytes(thing, field, conf))
		return false;
	return field->name[0] == '\0' || !rule_field_is_zero(field, conf);
}

static void print_field(struct printer *printer, const struct rule_field *field, const void *conf)
{
	struct rule_value value;

	if (field->kind == RULE_FLAG) {
		print_word(printer, field->name);
	} else if (field->kind == RULE_TYPES) {
		rule_field_load(field, conf, &value);
		print_types(printer, field, value.number);
	} else if (field->kind == RULE_QUEUES) {
		print_queues(printer, field, conf);
	} else if (rule_field_points(field)) {
		const uint8_t *bytes = rule_field_pointer(field, conf);

		print_bytes(printer, field, "", bytes, bytes_said(field, conf, bytes));
	} else {
		print_value(printer, field, "", conf);
	}
}

static void print_fields(
	struct printer *printer, const struct rule_thing *thing, const void *conf, bool presence)
{
	bool said = false;

	for (unsigned i = 0; i < thing->n_fields; i++) {
		if (!is_said(thing, &thing->fields[i], conf))
			continue;
		print_field(printer, &thing->fields[i], conf);
		said = true;
	}
	/* a struct of zeros is there nevertheless: a field says so that sets nothing else */
	for (unsigned i = 0; i < thing->n_fields && presence && !said; i++) {
		said = !thing->fields[i].also_offset;
		if (said)
			print_field(printer, &thing->fields[i], conf);
	}
}

static void print_actions(
	struct printer *printer, const struct rule_command *command, unsigned list)
{
	const struct rule_thing *const *things = command->parts->actions[list];
	const struct rte_flow_action *action = command->actions[list];

	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++, things++) {
		print_word(printer, (*things)->name);
		if (action->conf)
			print_fields(printer, *things, action->conf,
				(*things)->fill == RULE_FILL_NOTHING);
		print_word(printer, "/");
	}
	print_word(printer, "end");
}

static void print_argument(struct printer *printer, enum rule_kind kind,
	const struct rule_word *words, const struct rule_argument *argument)
{
	if (kind == RULE_NUMBER)
		print(printer, "%s%" PRIu64, printer->length ? " " : "", argument->number);
	else if (kind == RULE_BOOLEAN)
		print_word(printer, argument->number ? "yes" : "no");
	else if (kind == RULE_WORD)
		print_word(printer, rule_word_name(words, argument->number));
	else
		print_word(printer, argument->text);
}

static void print_attr(
	struct printer *printer, const struct rule_option *option, const struct rte_flow_attr *attr)
{
	uint32_t number = option->attr == RULE_ATTR_GROUP      ? attr->group
			  : option->attr == RULE_ATTR_PRIORITY ? attr->priority
			  : option->attr == RULE_ATTR_INGRESS  ? attr->ingress
			  : option->attr == RULE_ATTR_EGRESS   ? attr->egress
			  : option->attr == RULE_ATTR_TRANSFER ? attr->transfer
							       : 0;

	if (number == 0)
		return;
	print_word(printer, option->name);
	if (option->kind == RULE_NUMBER)
		print(printer, " %" PRIu32, number);
}

static bool option_has(const struct rule_step *step, enum rule_argument_id id)
{
	for (unsigned i = 0; i < step->n_options; i++)
		if (step->options[i].attr == RULE_ATTR_NONE && step->options[i].id == id)
			return true;
	return false;
}

/* The arguments of options, in the order of the table. */
static void print_options(
	struct printer *printer, const struct rule_command *command, const struct rule_step *step)
{
	unsigned end = printer->argument;

	while (end < command->n_arguments && option_has(step, command->arguments[end].id))
		end++;
	for (unsigned i = 0; i < step->n_options; i++) {
		const struct rule_option *option = &step->options[i];

		if (option->alias)
			continue;
		print_attr(printer, option, &command->attr);
		for (unsigned a = printer->argument; a < end && option->attr == RULE_ATTR_NONE;
			a++) {
			if (command->arguments[a].id != option->id)
				continue;
			print_word(printer, option->name);
			if (option->kind != RULE_FLAG)
				print_argument(printer, option->kind, option->words,
					&command->arguments[a]);
		}
	}
	printer->argument = end;
}

static void print_step(
	struct printer *printer, const struct rule_command *command, const struct rule_step *step)
{
	switch (step->step) {
	case RULE_STEP_WORD:
		print_word(printer, step->name);
		break;
	case RULE_STEP_VALUE:
		if (step->id == RULE_ARG_PORT)
			print(printer, " %u", command->port);
		else
			print_argument(printer, step->kind, step->words,
				&command->arguments[printer->argument++]);
		break;
	case RULE_STEP_MAYBE:
		while (printer->argument < command->n_arguments &&
			command->arguments[printer->argument].id == step->id)
			print_argument(printer, step->kind, step->words,
				&command->arguments[printer->argument++]);
		break;
	case RULE_STEP_OPTIONS:
		print_options(printer, command, step);
		break;
	case RULE_STEP_ITEMS:
		print_items(printer, command, step->name);
		break;
	case RULE_STEP_ACTIONS:
		print_actions(printer, command, step->list);
		break;
	case RULE_STEP_ACTION:
		print_word(printer, command->arguments[printer->argument++].text);
		break;
	case RULE_STEP_FIELDS:
		print_fields(printer, step->thing, command->parts->conf, false);
		break;
	}
}

size_t rule_command_print(const struct rule_command *command, char *buffer, size_t size)
{
	struct printer printer = {.buffer = buffer, .size = size};
	const struct rule_form *form = command->form;

	if (size > 0)
		buffer[0] = '\0';
	for (unsigned i = 0; i < form->n_steps; i++) {
		const struct rule_step *step = &form->steps[i];

		/* a word that may be left out goes with the list that follows it */
		if (step->step == RULE_STEP_WORD && step->optional &&
			!command->actions[form->steps[i + 1].list])
			break;
		print_step(&printer, command, step);
	}
	return printer.length;
}

char *rule_command_text(const struct rule_command *command)
{
	const size_t size = rule_command_print(command, NULL, 0) + 1;
	char *text = malloc(size);

	if (text != NULL)
		rule_command_print(command, text, size);
	return text;
}
