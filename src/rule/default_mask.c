/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/default_mask.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rule/parser.h"

/* No struct of rte_flow that has a default mask here is larger. */
#define MASK_MAX 128
static_assert(sizeof(struct rte_flow_item_ipv6) <= MASK_MAX, "the largest");

const void *rule_default_mask(enum rte_flow_item_type type, size_t *size)
{
#define MASK_OF(a_struct, a_mask) (*size = sizeof(struct a_struct), &(a_mask))
	switch ((int)type) {
	case RTE_FLOW_ITEM_TYPE_ETH:
		return MASK_OF(rte_flow_item_eth, rte_flow_item_eth_mask);
	case RTE_FLOW_ITEM_TYPE_VLAN:
		return MASK_OF(rte_flow_item_vlan, rte_flow_item_vlan_mask);
	case RTE_FLOW_ITEM_TYPE_IPV4:
		return MASK_OF(rte_flow_item_ipv4, rte_flow_item_ipv4_mask);
	case RTE_FLOW_ITEM_TYPE_IPV6:
		return MASK_OF(rte_flow_item_ipv6, rte_flow_item_ipv6_mask);
	case RTE_FLOW_ITEM_TYPE_ICMP:
		return MASK_OF(rte_flow_item_icmp, rte_flow_item_icmp_mask);
	case RTE_FLOW_ITEM_TYPE_ICMP6:
		return MASK_OF(rte_flow_item_icmp6, rte_flow_item_icmp6_mask);
	case RTE_FLOW_ITEM_TYPE_TCP:
		return MASK_OF(rte_flow_item_tcp, rte_flow_item_tcp_mask);
	case RTE_FLOW_ITEM_TYPE_UDP:
		return MASK_OF(rte_flow_item_udp, rte_flow_item_udp_mask);
	case RTE_FLOW_ITEM_TYPE_SCTP:
		return MASK_OF(rte_flow_item_sctp, rte_flow_item_sctp_mask);
	case RTE_FLOW_ITEM_TYPE_VXLAN:
		return MASK_OF(rte_flow_item_vxlan, rte_flow_item_vxlan_mask);
	case RTE_FLOW_ITEM_TYPE_PORT_ID:
		return MASK_OF(rte_flow_item_port_id, rte_flow_item_port_id_mask);
	case RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT:
		return MASK_OF(rte_flow_item_ethdev, rte_flow_item_ethdev_mask);
	default:
		*size = 0;
		return NULL;
	}
#undef MASK_OF
}

/* Do two fields of a struct have a bit in common? */
static bool overlap(const struct rule_field *one, const struct rule_field *other)
{
	if (one->offset + one->width <= other->offset ||
		other->offset + other->width <= one->offset)
		return false;
	return one->bits == 0 || other->bits == 0 ||
	       (one->shift < other->shift + other->bits && other->shift < one->shift + one->bits);
}

/* Does the line name the field, or one that has some of its bits? */
static bool is_named(const struct rule_thing *thing, uint64_t named, const struct rule_field *field)
{
	for (unsigned i = 0; i < thing->n_fields && i < 64; i++)
		if (named >> i & 1 && overlap(&thing->fields[i], field))
			return true;
	return false;
}

struct text {
	char bytes[256];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
	const size_t room = sizeof(text->bytes) - text->length;
	va_list args;

	va_start(args, format);
	const int n = vsnprintf(text->bytes + text->length, room, format, args);

	va_end(args);
	text->length += (size_t)n < room ? (size_t)n : room - 1;
}

/* "src is 0": a field that the item does not name has no bits. */
static void append_unnamed(struct text *text, const struct rule_field *field)
{
	const uint8_t nothing[MASK_MAX] = {0};
	char zero[RULE_VALUE_TEXT];
	struct rule_value value;

	append(text, "%s%s is ", text->length > 0 ? ", " : "", field->name);
	if (field->offset + field->width > sizeof(nothing))
		return;
	rule_field_load(field, nothing, &value);
	rule_value_print(zero, field, false, &value);
	append(text, "%s", zero);
}

static void warn_of_item(const struct rule_thing *thing, uint64_t named, const uint8_t *mask,
	void (*tell)(void *context, const char *line), void *context)
{
	const struct rule_field *first = NULL;
	struct text more = {.length = 0}, less = {.length = 0};
	char line[640];

	for (unsigned i = 0; i < thing->n_fields; i++) {
		const struct rule_field *field = &thing->fields[i];

		if (field->flags & (RULE_ALIAS | RULE_WHOLE) || rule_field_points(field))
			continue;
		const bool asks = !rule_field_is_zero(field, mask),
			   names = is_named(thing, named, field);

		if (names && first == NULL)
			first = field;
		if (asks && !names)
			append_unnamed(&more, field);
		else if (names && !asks)
			append(&less, "%s%s", less.length > 0 ? ", " : "", field->name);
	}
	if (first == NULL || more.length + less.length == 0)
		return;
	snprintf(line, sizeof(line),
		"item '%s' has no mask, and its default mask%s%s%s%s%s%s; masks, as in '%s mask "
		"...', say what it asks for",
		thing->name, more.length > 0 ? " also asks for '" : "", more.bytes,
		more.length > 0 ? "'" : "", more.length > 0 && less.length > 0 ? ", and" : "",
		less.length > 0 ? " does not look at " : "", less.bytes, first->name);
	tell(context, line);
}

void rule_default_mask_warn(const struct rule_command *command,
	void (*tell)(void *context, const char *line), void *context)
{
	const struct rule_command_parts *parts = command->parts;

	for (unsigned i = 0; command->pattern[i].type != RTE_FLOW_ITEM_TYPE_END; i++) {
		const struct rte_flow_item *item = &command->pattern[i];
		uint8_t mask[MASK_MAX] = {0};
		size_t size;
		const void *usual = rule_default_mask(item->type, &size);

		if (usual == NULL || item->spec == NULL || item->mask != NULL)
			continue;
		memcpy(mask, usual, size);
		warn_of_item(parts->items[i], parts->named[i], mask, tell, context);
	}
}
