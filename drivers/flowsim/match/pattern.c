/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/pattern.h"

#include <errno.h>
#include <stddef.h>

#include <rte_common.h>

#include "drivers/flowsim/match/pattern_items.h"

#define BEFORE_ALL (-1)

enum reading_kind {
	READ_RULE,
	READ_TEMPLATE,
	READ_RELAXED, /* a template, by the relaxed policy */
};

/* How far the walk over the items has come. */
struct reading {
	struct sim_pattern *pattern;
	struct sim_fault_at *fault;
	const struct rte_flow_item *item;
	const struct sim_item_form *form;
	enum reading_kind kind;
	unsigned level; /* 0 or, behind a tunnel, 1 */
	int rank;	/* of the last item in this level */
	unsigned tags;	/* in this level */
	uint32_t seen;	/* layers of this level, and the tunnel that it is in */
	bool exact;	/* something of this item is compared with its spec */
	/* where this item's bytes are in the view */
	uint16_t at, bits_at;
	uint8_t bits_shift;
};

static int fail(
	const struct reading *reading, int code, enum rte_flow_error_type type, const char *message)
{
	reading->fault->cause = reading->item;
	reading->fault->type = type;
	reading->fault->message = message;
	return code;
}

static int fail_order(const struct reading *reading)
{
	return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM,
		"no packet has its headers in this order");
}

/* GRE's key is between the levels: behind GRE, or in its place. */
static bool key_may_follow(const struct reading *reading)
{
	if (reading->level == 0)
		return reading->rank < SIM_ITEM_L4;
	return reading->rank == BEFORE_ALL &&
	       reading->pattern->items & 1ULL << RTE_FLOW_ITEM_TYPE_GRE;
}

static bool may_follow(const struct reading *reading)
{
	const struct sim_item_form *form = reading->form;

	if (reading->seen & form->rivals)
		return false;
	if (form->rank == SIM_ITEM_KEY)
		return key_may_follow(reading);
	if (form->rank == SIM_ITEM_PORT && reading->level > 0)
		return false;
	if (form->rank == SIM_ITEM_VLAN && reading->tags > 0)
		return reading->rank == SIM_ITEM_VLAN;
	return form->rank > reading->rank;
}

/* Where the item stands among the headers, and that it may stand there. */
static int place(struct reading *reading)
{
	const struct sim_item_form *form = reading->form;

	if (form->rank == SIM_ITEM_TUNNEL && reading->level > 0)
		return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM,
			"a tunnel in a tunnel is not looked into");
	if (form->rank == SIM_ITEM_VLAN && reading->tags == RTE_DIM(((struct sim_level *)0)->vlan))
		return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM,
			"a third tag is not looked at");
	if (!may_follow(reading))
		return fail_order(reading);
	reading->at = form->at;
	reading->bits_at = form->bits_at;
	reading->bits_shift = 0;
	if (form->rank >= SIM_ITEM_TUNNEL)
		return 0;
	reading->at += (uint16_t)(reading->level * sizeof(struct sim_level));
	reading->bits_at += (uint16_t)(reading->level * sizeof(struct sim_level));
	if (form->rank == SIM_ITEM_VLAN) {
		reading->at += (uint16_t)(reading->tags * 4);
		reading->bits_shift = (uint8_t)reading->tags;
	}
	return 0;
}

/* The item has been read: what follows it stands behind it. */
static void pass(struct reading *reading)
{
	const struct sim_item_form *form = reading->form;

	if (form->rank < SIM_ITEM_TUNNEL) {
		reading->rank = form->rank;
		reading->seen |= form->layer;
		reading->tags += form->rank == SIM_ITEM_VLAN;
		return;
	}
	reading->level = 1;
	/* a second key is refused, and a header before the key as well */
	reading->rank = form->rank == SIM_ITEM_KEY ? SIM_ITEM_PORT : BEFORE_ALL;
	reading->seen = form->layer;
	reading->tags = 0;
}

static void need_layer(struct reading *reading)
{
	uint32_t layer = reading->form->layer;

	if (reading->form->rank == SIM_ITEM_VLAN)
		layer <<= reading->tags;
	if (reading->form->rank < SIM_ITEM_TUNNEL)
		layer <<= reading->level * SIM_INNER;
	reading->pattern->layers |= layer;
}

static uint64_t number(const uint8_t *bytes, const uint8_t *mask, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value = value << 8 | (bytes[i] & mask[i]);
	return value;
}

/* The order of two fields under a mask, as memcmp() has it. */
static int order(const uint8_t *a, const uint8_t *b, const uint8_t *mask, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		if (((a[i] ^ b[i]) & mask[i]) != 0)
			return (a[i] & mask[i]) < (b[i] & mask[i]) ? -1 : 1;
	return 0;
}

static bool all_zero(const uint8_t *bytes, const uint8_t *mask, unsigned size)
{
	uint8_t any = 0;

	for (unsigned i = 0; i < size; i++)
		any |= bytes[i] & mask[i];
	return any == 0;
}

/* One that ends above where it begins. */
static int add_range(struct reading *reading, uint16_t at, unsigned size, const uint8_t *spec,
	const uint8_t *last, const uint8_t *mask)
{
	struct sim_pattern *pattern = reading->pattern;

	if (order(last, spec, mask, size) < 0)
		return fail(reading, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_LAST, "last is below spec");
	if (size > SIM_MAX_RANGE_BYTES)
		return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST,
			"an address of 16 bytes has no range");
	if (pattern->n_ranges == SIM_MAX_RANGES)
		return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST,
			"more than eight ranges in one rule");
	pattern->ranges[pattern->n_ranges++] = (struct sim_range){
		.at = at,
		.size = (uint8_t)size,
		.mask = number(mask, mask, size),
		.low = number(spec, mask, size),
		.high = number(last, mask, size),
	};
	return 0;
}

static int add_field(struct reading *reading, uint16_t at, unsigned size, const uint8_t *spec,
	const uint8_t *last, const uint8_t *mask)
{
	uint8_t *masks = (uint8_t *)reading->pattern->mask;
	uint8_t *values = (uint8_t *)reading->pattern->value;

	if (all_zero(mask, mask, size))
		return 0;
	for (unsigned i = 0; i < size; i++)
		if (mask[i] != 0)
			reading->pattern->input[(at + i) / 8] |= (uint8_t)(1u << (at + i) % 8);
	if (last != NULL && !all_zero(last, mask, size) && order(last, spec, mask, size) != 0)
		return add_range(reading, at, size, spec, last, mask);
	reading->exact = true;
	for (unsigned i = 0; i < size; i++) {
		masks[at + i] = mask[i];
		if (spec != NULL)
			values[at + i] = spec[i] & mask[i];
	}
	return 0;
}

static int add_bits(struct reading *reading, const void *spec, const void *last, const void *mask)
{
	struct sim_pattern *pattern = reading->pattern;
	uint32_t bits = reading->form->bits(mask);
	uint32_t value = spec != NULL ? reading->form->bits(spec) & bits : 0;
	uint32_t end = last != NULL ? reading->form->bits(last) & bits : 0;

	if (end != 0 && end != value)
		return fail(reading, end < value ? -EINVAL : -ENOTSUP,
			RTE_FLOW_ERROR_TYPE_ITEM_LAST, "what is no header field has no range");
	if (bits == 0)
		return 0;
	reading->exact = true;
	sim_item_put_bits((uint8_t *)pattern->mask + reading->bits_at, bits << reading->bits_shift);
	sim_item_put_bits(
		(uint8_t *)pattern->value + reading->bits_at, value << reading->bits_shift);
	for (unsigned i = 0; bits << reading->bits_shift >> 8 * i != 0; i++)
		pattern->input[(reading->bits_at + i) / 8] |=
			(uint8_t)(1u << (reading->bits_at + i) % 8);
	return 0;
}

/* Compares a header under a mask; spec may be NULL, where it comes later, and last then too. */
static int compare(struct reading *reading, const void *spec, const void *last, const void *mask)
{
	const struct sim_item_form *form = reading->form;
	unsigned at = 0;

	if (mask == NULL)
		return 0;
	for (unsigned i = 0; i < RTE_DIM(form->fields) && form->fields[i] != 0; i++) {
		int ret = add_field(reading, (uint16_t)(reading->at + at), form->fields[i],
			spec != NULL ? (const uint8_t *)spec + at : NULL,
			last != NULL ? (const uint8_t *)last + at : NULL,
			(const uint8_t *)mask + at);

		if (ret < 0)
			return ret;
		at += form->fields[i];
	}
	return form->bits != NULL ? add_bits(reading, spec, last, mask) : 0;
}

static int check_port_mask(const struct reading *reading, const void *mask)
{
	if (sim_item_port(reading->form, mask) == sim_item_port(reading->form, reading->form->mask))
		return 0;
	return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK,
		"a port is named whole, by all of its number");
}

static int read_port(struct reading *reading)
{
	const struct rte_flow_item *item = reading->item;
	uint32_t id, last = 0;

	if (item->spec == NULL)
		return fail(reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_SPEC,
			"an item of ports has to name one");
	id = sim_item_port(reading->form, item->spec);
	if (id >= SIM_NO_PORT)
		return fail(reading, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC,
			"no port has such a number");
	if (item->last != NULL)
		last = sim_item_port(reading->form, item->last);
	if (last != 0 && last != id)
		return fail(reading, last < id ? -EINVAL : -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST,
			"ports have no ranges");
	reading->pattern->port = (uint16_t)id;
	return 0;
}

static int read_rule_item(struct reading *reading)
{
	const struct rte_flow_item *item = reading->item;
	const void *mask = item->mask != NULL ? item->mask : reading->form->mask;

	if (item->spec == NULL && item->mask != NULL)
		return fail(reading, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_MASK, "mask without spec");
	if (item->spec == NULL && item->last != NULL)
		return fail(reading, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_LAST, "last without spec");
	if (reading->form->size == 0)
		return 0;
	if (reading->form->rank == SIM_ITEM_PORT) {
		int ret = check_port_mask(reading, mask);

		return ret < 0 ? ret : read_port(reading);
	}
	need_layer(reading);
	return item->spec != NULL ? compare(reading, item->spec, item->last, mask) : 0;
}

/* spec counts only beside last. */
static int read_template_item(struct reading *reading)
{
	const struct rte_flow_item *item = reading->item;

	if (item->last != NULL && (item->spec == NULL || item->mask == NULL))
		return fail(reading, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_LAST,
			"last without spec and mask");
	if (reading->form->size == 0 || (reading->kind == READ_RELAXED && item->mask == NULL))
		return 0;
	if (reading->form->rank == SIM_ITEM_PORT) {
		reading->exact = true;
		return item->mask != NULL ? check_port_mask(reading, item->mask) : 0;
	}
	need_layer(reading);
	return compare(reading, item->last != NULL ? item->spec : NULL, item->last, item->mask);
}

static int read_item(struct reading *reading)
{
	int ret;

	reading->form = sim_item_form(reading->item->type);
	if (reading->form == NULL)
		return fail(
			reading, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, "this item is not known here");
	reading->exact = false;
	ret = reading->form->size > 0 ? place(reading) : 0;
	if (ret < 0)
		return ret;
	ret = reading->kind == READ_RULE ? read_rule_item(reading) : read_template_item(reading);
	if (ret < 0)
		return ret;
	reading->pattern->items |= UINT64_C(1) << reading->item->type;
	return 0;
}

/* The words that a mask has, and an end to values that a template does not have. */
static void finish(struct reading *reading)
{
	struct sim_pattern *pattern = reading->pattern;

	for (unsigned i = 0; i < SIM_VIEW_WORDS; i++)
		if (pattern->mask[i] != 0)
			pattern->words[pattern->n_words++] = (uint8_t)i;
	if (reading->kind != READ_RULE)
		memset(pattern->value, 0, sizeof(pattern->value));
}

/* Of a template `template` too. */
static int read_items(struct reading *reading, const struct rte_flow_item items[],
	struct sim_pattern_template *template)
{
	memset(reading->pattern, 0, sizeof(*reading->pattern));
	reading->pattern->port = SIM_NO_PORT;
	reading->rank = BEFORE_ALL;
	for (unsigned i = 0; items != NULL && i < SIM_MAX_ITEMS; i++) {
		int ret;

		reading->item = &items[i];
		if (items[i].type == RTE_FLOW_ITEM_TYPE_END) {
			finish(reading);
			return 0;
		}
		if (items[i].type == RTE_FLOW_ITEM_TYPE_VOID)
			continue;
		ret = read_item(reading);
		if (ret < 0)
			return ret;
		if (template != NULL) {
			template->items[template->n_items].type = (uint8_t)items[i].type;
			template->items[template->n_items].compared = reading->exact;
			template->items[template->n_items].at = reading->at;
			template->items[template->n_items].bits_at = reading->bits_at;
			template->items[template->n_items++].bits_shift = reading->bits_shift;
		}
		if (reading->form->size > 0)
			pass(reading);
	}
	reading->item = items;
	return fail(
		reading, -EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_NUM, "no end among the first 32 items");
}

int sim_pattern_parse(
	struct sim_pattern *pattern, const struct rte_flow_item items[], struct sim_fault_at *fault)
{
	struct reading reading = {.pattern = pattern, .fault = fault, .kind = READ_RULE};

	return read_items(&reading, items, NULL);
}

int sim_pattern_template_read(struct sim_pattern_template *template,
	const struct rte_flow_item items[], bool relaxed, struct sim_fault_at *fault)
{
	struct reading reading = {
		.pattern = &template->pattern,
		.fault = fault,
		.kind = relaxed ? READ_RELAXED : READ_TEMPLATE,
	};

	template->n_items = 0;
	return read_items(&reading, items, template);
}
