/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/pattern.h"

#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/headers.h"
#include "rule/default_mask.h"

#define PROTO_SCTP 132
#define PROTO_GRE 47
#define PROTO_ESP 50
#define TYPE_ARP 0x0806

/* Bytes of the largest item that is matched. */
#define ITEM_MAX 128
static_assert(sizeof(struct rule_ipv6) <= ITEM_MAX, "the largest");

/* How far into a packet the items before this one have come. */
enum layer {
	LAYER_START,
	LAYER_LINK,
	LAYER_TAG,
	LAYER_NETWORK,
	LAYER_UPPER,
};

struct reading {
	const struct rule_ground *ground;
	struct classifier_rule *rule;
	enum layer layer;
	const struct rule_thing *thing;
	bool any; /* the item says nothing of its fields */
	uint8_t spec[ITEM_MAX], last[ITEM_MAX], mask[ITEM_MAX];
	struct error *error;
};

static int refuse_item(struct reading *reading, int code, const char *why)
{
	return error_set(reading->error, code, "item '%s': %s", reading->thing->name, why);
}

static int refuse_field(struct reading *reading, const char *field, const char *why)
{
	return error_set(reading->error, -ENOTSUP, "field '%s' of item '%s': %s", field,
		reading->thing->name, why);
}

/* Copies what the item says; its fields are taken from the copies, so that those of the mask that are left tell more. */
static int open_item(struct reading *reading, const struct rte_flow_item *item)
{
	const size_t size = reading->thing->size;
	size_t mask_size;
	const void *mask = rule_default_mask(item->type, &mask_size);

	reading->any = item->spec == NULL;
	if (item->spec == NULL && (item->mask != NULL || item->last != NULL))
		return refuse_item(
			reading, -EINVAL, "a mask or the end of a range needs a value (spec)");
	memset(reading->spec, 0, sizeof(reading->spec));
	memset(reading->last, 0, sizeof(reading->last));
	memset(reading->mask, 0, sizeof(reading->mask));
	if (item->spec == NULL || size > ITEM_MAX)
		return 0;
	memcpy(reading->spec, item->spec, size);
	if (item->last != NULL)
		memcpy(reading->last, item->last, size);
	if (item->mask != NULL)
		memcpy(reading->mask, item->mask, size);
	else if (mask != NULL)
		memcpy(reading->mask, mask, mask_size);
	return 0;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* Does the item ask for this field? */
static bool field_is_masked(const struct reading *reading, const struct rule_field *field)
{
	uint64_t word = 0;

	if (field->bits == 0 || field->width > sizeof(word))
		return !is_zero(reading->mask + field->offset, field->width);
	for (unsigned i = 0; i < field->width; i++) {
		const unsigned at = field->big_endian ? i : field->width - 1 - i;

		word = word << 8 | reading->mask[field->offset + at];
	}
	return (word >> field->shift & ((UINT64_C(1) << field->bits) - 1)) != 0;
}

/* All that the item asks for was taken? Else its name is what is refused. */
static int close_item(struct reading *reading)
{
	static const char *const why = "not matched in software";
	const struct rule_thing *thing = reading->thing;

	if (is_zero(reading->mask, sizeof(reading->mask)))
		return 0;
	for (unsigned i = 0; i < thing->n_fields; i++) {
		const struct rule_field *field = &thing->fields[i];

		if (!(field->flags & (RULE_ALIAS | RULE_WHOLE)) && field_is_masked(reading, field))
			return refuse_field(reading, field->name, why);
	}
	return refuse_item(reading, -ENOTSUP, why);
}

/*
 * Makes a mask of a range, if it is one: from all zeros to all ones in the lowest bits that count. Bytes are in
 * the order of the network.
 */
static bool mask_of_range(const uint8_t *spec, const uint8_t *last, uint8_t *mask, size_t n)
{
	size_t top = 0;
	uint8_t low;

	while (top < n && ((spec[top] ^ last[top]) & mask[top]) == 0)
		top++;
	if (top == n)
		return true;
	low = (uint8_t)((spec[top] ^ last[top]) & mask[top]);
	low |= low >> 1;
	low |= low >> 2;
	low |= low >> 4;
	low &= mask[top];
	if ((spec[top] & low) != 0 || (last[top] & low) != low)
		return false;
	for (size_t i = top + 1; i < n; i++)
		if ((spec[i] & mask[i]) != 0 || (last[i] & mask[i]) != mask[i])
			return false;
	mask[top] &= (uint8_t)~low;
	memset(mask + top + 1, 0, n - top - 1);
	return true;
}

/* A field as the item has it; `asked`: its mask is not 0. */
struct taken {
	uint8_t value[16], mask[16];
	bool asked;
};

static int take(
	struct reading *reading, size_t offset, size_t width, const char *name, struct taken *taken)
{
	uint8_t *mask = reading->mask + offset;
	const uint8_t *last = reading->last + offset;

	*taken = (struct taken){.asked = !is_zero(mask, width)};
	if (taken->asked && !is_zero(last, width) &&
		!mask_of_range(reading->spec + offset, last, mask, width))
		return refuse_field(reading, name,
			"in software a range is of TCP, UDP or SCTP ports, or a prefix");
	memcpy(taken->value, reading->spec + offset, width);
	memcpy(taken->mask, mask, width);
	memset(mask, 0, width);
	return 0;
}

static int take_byte(
	struct reading *reading, size_t offset, const char *name, uint8_t *value, uint8_t *mask)
{
	struct taken taken;
	int ret = take(reading, offset, 1, name, &taken);

	if (ret == 0 && taken.asked) {
		*value = taken.value[0];
		*mask = taken.mask[0];
	}
	return ret;
}

static int take_word_16(
	struct reading *reading, size_t offset, const char *name, uint16_t *value, uint16_t *mask)
{
	struct taken taken;
	int ret = take(reading, offset, 2, name, &taken);

	if (ret == 0 && taken.asked) {
		*value = load_be16(taken.value);
		*mask = load_be16(taken.mask);
	}
	return ret;
}

static int take_address(struct reading *reading, size_t offset, size_t width, const char *name,
	uint32_t value[4], uint32_t mask[4])
{
	struct taken taken;
	int ret = take(reading, offset, width, name, &taken);

	for (unsigned i = 0; ret == 0 && i < width / 4; i++) {
		value[i] = load_be32(taken.value + 4 * i);
		mask[i] = load_be32(taken.mask + 4 * i);
	}
	return ret;
}

static int take_set(struct reading *reading, size_t offset, const char *name, uint32_t *set)
{
	const struct rule_ground *ground = reading->ground;
	const char *wanted = (const char *)reading->spec + offset;

	if (reading->mask[offset] == 0)
		return 0;
	memset(reading->mask + offset, 0, RULE_NAME_MAX);
	*set = ground->find_set != NULL ? ground->find_set(ground->find_set_context, wanted) : 0;
	return *set != 0 ? 0
			 : error_set(reading->error, -EINVAL,
				   "field '%s' of item '%s': there is no set '%.*s' (rules.sets)",
				   name, reading->thing->name, RULE_NAME_MAX, wanted);
}

/* The sets that both addresses are in, if the item asks for them. */
static int take_sets(struct reading *reading, size_t offset)
{
	int ret = take_set(reading, offset + offsetof(struct rule_sets, src), "from_set",
		&reading->rule->src_set);

	return ret < 0 ? ret
		       : take_set(reading, offset + offsetof(struct rule_sets, dst), "to_set",
				 &reading->rule->dst_set);
}

/* The packet has this protocol, too; not if an item before says another one. */
static int set_proto(struct reading *reading, uint8_t proto)
{
	struct classifier_rule *rule = reading->rule;

	if (reading->layer == LAYER_UPPER)
		return refuse_item(reading, -ENOTSUP,
			"what follows the upper layer's header is not matched in software");
	reading->layer = LAYER_UPPER;
	if (((rule->value.proto ^ proto) & rule->mask.proto) != 0)
		return refuse_item(reading, -EINVAL, "an item before it says another protocol");
	rule->value.proto = proto;
	rule->mask.proto = UINT8_MAX;
	return 0;
}

/* The item stands at its layer, which no item before has come to. */
static int enter(struct reading *reading, enum layer layer)
{
	if (reading->layer >= layer)
		return refuse_item(reading, -ENOTSUP,
			layer == LAYER_TAG ? "a second tag is not matched in software"
					   : "inner headers are not matched in software");
	reading->layer = layer;
	return 0;
}

static int set_in_port(struct reading *reading, uint64_t port)
{
	struct classifier_rule *rule = reading->rule;
	struct error said;

	if (rule_port_check(reading->ground, port, &said) < 0)
		return refuse_item(reading, -EINVAL, said.text);
	if (rule->mask.in_port != 0 && rule->value.in_port != port)
		return refuse_item(reading, -EINVAL, "the rule is of another port");
	rule->value.in_port = (uint16_t)port;
	rule->mask.in_port = UINT16_MAX;
	return 0;
}

static int read_port(struct reading *reading, size_t width)
{
	uint32_t port = 0, mask = 0;

	if (reading->any)
		return 0;
	memcpy(&port, reading->spec, width);
	memcpy(&mask, reading->mask, width);
	if (mask != (width == 4 ? UINT32_MAX : UINT16_MAX) || !is_zero(reading->last, width))
		return refuse_item(reading, -ENOTSUP, "in software it names one port");
	memset(reading->mask, 0, width);
	return set_in_port(reading, port);
}

static int read_eth(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	const size_t has_vlan =
		offsetof(struct rte_flow_item_eth, hdr) + sizeof(struct rte_ether_hdr);
	struct taken taken;
	int ret = enter(reading, LAYER_LINK);

	if (ret == 0)
		ret = take(reading, 0, 6, "dst", &taken);
	if (ret == 0) {
		memcpy(value->eth_dst, taken.value, 6);
		memcpy(mask->eth_dst, taken.mask, 6);
		ret = take(reading, 6, 6, "src", &taken);
	}
	if (ret == 0) {
		memcpy(value->eth_src, taken.value, 6);
		memcpy(mask->eth_src, taken.mask, 6);
		ret = take_word_16(reading, 12, "type", &value->eth_type, &mask->eth_type);
	}
	if (ret < 0 || !(reading->mask[has_vlan] & 1))
		return ret;
	reading->mask[has_vlan] &= (uint8_t)~1u;
	mask->vlan |= CLASSIFIER_TAGGED;
	if (reading->spec[has_vlan] & 1)
		value->vlan |= CLASSIFIER_TAGGED;
	return 0;
}

/* In a header the bit that says that there is a tag takes the place of `dei`, which is a field of its own. */
static int read_vlan(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	uint16_t tci = 0, tci_mask = 0, type = 0, type_mask = 0;
	int ret = enter(reading, LAYER_TAG);

	if (ret == 0)
		ret = take_word_16(reading, 0, "tci", &tci, &tci_mask);
	if (ret == 0)
		ret = take_word_16(reading, 2, "inner_type", &type, &type_mask);
	if (ret < 0)
		return ret;
	if (mask->vlan & CLASSIFIER_TAGGED && !(value->vlan & CLASSIFIER_TAGGED))
		return refuse_item(reading, -EINVAL, "the item before it says that there is none");
	if (tci_mask & CLASSIFIER_TAGGED) {
		value->bits |= tci & CLASSIFIER_TAGGED ? CLASSIFIER_DEI : 0;
		mask->bits |= CLASSIFIER_DEI;
	}
	value->vlan = (uint16_t)((tci & tci_mask) | CLASSIFIER_TAGGED);
	mask->vlan = tci_mask | CLASSIFIER_TAGGED;
	if (type_mask == 0)
		return 0;
	if (type_mask != UINT16_MAX || (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6))
		return refuse_field(
			reading, "inner_type", "in software it is that of IPv4 or IPv6");
	value->version = type == ETHERTYPE_IPV4 ? 4 : 6;
	mask->version = UINT8_MAX;
	return 0;
}

static int set_version(struct reading *reading, uint8_t version)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	int ret = enter(reading, LAYER_NETWORK);

	if (ret == 0 && mask->version != 0 && value->version != version)
		return refuse_item(reading, -EINVAL, "an item before it says another type");
	value->version = version;
	mask->version = UINT8_MAX;
	return ret;
}

static int read_ipv4_item(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	int ret = set_version(reading, 4);

	if (ret == 0)
		ret = take_byte(reading, offsetof(struct rte_ipv4_hdr, type_of_service), "tos",
			&value->tos, &mask->tos);
	if (ret == 0)
		ret = take_byte(reading, offsetof(struct rte_ipv4_hdr, time_to_live), "ttl",
			&value->ttl, &mask->ttl);
	if (ret == 0)
		ret = take_byte(reading, offsetof(struct rte_ipv4_hdr, next_proto_id), "proto",
			&value->proto, &mask->proto);
	if (ret == 0)
		ret = take_address(reading, offsetof(struct rte_ipv4_hdr, src_addr), 4, "src",
			value->src, mask->src);
	if (ret == 0)
		ret = take_address(reading, offsetof(struct rte_ipv4_hdr, dst_addr), 4, "dst",
			value->dst, mask->dst);
	if (ret == 0)
		ret = take_sets(reading, offsetof(struct rule_ipv4, sets));
	return ret;
}

/* The traffic class lies across two bytes. */
static int read_traffic_class(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	uint16_t first = 0, first_mask = 0;
	const uint8_t rest = reading->mask[1] & 0x0f;
	int ret;

	reading->mask[1] &= 0xf0;
	ret = take_word_16(reading, 0, "tc", &first, &first_mask);
	if (ret < 0)
		return ret;
	reading->mask[1] = rest;
	value->tos = (uint8_t)(first >> 4);
	mask->tos = (uint8_t)(first_mask >> 4);
	/* the version is what the item says anyway */
	return (first_mask & (first ^ 0x6000) & 0xf000) == 0
		       ? 0
		       : refuse_item(reading, -EINVAL, "it asks for another IP version");
}

static int read_ipv6(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	int ret = set_version(reading, 6);

	if (ret == 0)
		ret = read_traffic_class(reading);
	if (ret == 0)
		ret = take_byte(reading, offsetof(struct rte_ipv6_hdr, proto), "proto",
			&value->proto, &mask->proto);
	if (ret == 0)
		ret = take_byte(reading, offsetof(struct rte_ipv6_hdr, hop_limits), "hop",
			&value->ttl, &mask->ttl);
	if (ret == 0)
		ret = take_address(reading, offsetof(struct rte_ipv6_hdr, src_addr), 16, "src",
			value->src, mask->src);
	if (ret == 0)
		ret = take_address(reading, offsetof(struct rte_ipv6_hdr, dst_addr), 16, "dst",
			value->dst, mask->dst);
	if (ret == 0)
		ret = take_sets(reading, offsetof(struct rule_ipv6, sets));
	return ret;
}

/* Ports are ranges: one that the item says, or a prefix. */
static int take_range(
	struct reading *reading, size_t offset, const char *name, struct classifier_range *range)
{
	const uint16_t spec = load_be16(reading->spec + offset);
	const uint16_t last = load_be16(reading->last + offset);
	const uint16_t mask = load_be16(reading->mask + offset);
	const uint16_t rest = (uint16_t)~mask;

	memset(reading->mask + offset, 0, 2);
	if (mask == 0)
		return 0;
	if ((rest & (rest + 1)) != 0)
		return refuse_field(
			reading, name, "in software the mask of a port has its ones in front");
	range->first = spec & mask;
	range->last = (uint16_t)((last == 0 ? spec : last) | rest);
	if (range->last < range->first)
		return error_set(reading->error, -EINVAL,
			"field '%s' of item '%s': the range ends before it begins", name,
			reading->thing->name);
	return 0;
}

/* TCP, UDP and SCTP begin with their ports. */
static int read_ports(struct reading *reading, uint8_t proto)
{
	int ret = set_proto(reading, proto);

	if (ret == 0)
		ret = take_range(reading, 0, "src", &reading->rule->src_port);
	if (ret == 0)
		ret = take_range(reading, 2, "dst", &reading->rule->dst_port);
	return ret;
}

static int read_tcp(struct reading *reading)
{
	int ret = read_ports(reading, PROTO_TCP);

	if (ret < 0)
		return ret;
	return take_byte(reading, offsetof(struct rte_tcp_hdr, tcp_flags), "flags",
		&reading->rule->value.tcp_flags, &reading->rule->mask.tcp_flags);
}

/* Type and code stand in the place of the source port. */
static int read_icmp(struct reading *reading, uint8_t proto)
{
	int ret = set_proto(reading, proto);

	if (ret < 0 || is_zero(reading->mask, 2))
		return ret;
	if (reading->mask[0] != UINT8_MAX ||
		(reading->mask[1] != 0 && reading->mask[1] != UINT8_MAX) ||
		(reading->last[0] != 0 && reading->last[0] != reading->spec[0]))
		return refuse_field(reading, reading->mask[0] != UINT8_MAX ? "type" : "code",
			"in software a code needs a whole type, and a range is of codes");
	if (reading->last[1] != 0)
		reading->last[0] = reading->spec[0];
	return take_range(reading, 0, "code", &reading->rule->src_port);
}

/* VXLAN is UDP to its own port; its network's number is looked at in each packet. */
static int read_vxlan(struct reading *reading)
{
	const size_t at = offsetof(struct rte_flow_item_vxlan, vni);
	struct classifier_rule *rule = reading->rule;
	int ret = reading->layer == LAYER_UPPER && rule->value.proto == PROTO_UDP
			  ? 0
			  : set_proto(reading, PROTO_UDP);

	if (ret < 0)
		return ret;
	if ((rule->mask.metadata & ~RULE_METADATA_LIMIT) != 0)
		return refuse_item(reading, -ENOTSUP, "inner headers are not matched in software");
	if (rule->dst_port.first > RULE_VXLAN_PORT || rule->dst_port.last < RULE_VXLAN_PORT)
		return refuse_item(
			reading, -ENOTSUP, "in software it is looked for at UDP port 4789 alone");
	rule->dst_port = (struct classifier_range){RULE_VXLAN_PORT, RULE_VXLAN_PORT};
	if (!is_zero(reading->last + at, 3) &&
		memcmp(reading->last + at, reading->spec + at, 3) != 0)
		return refuse_field(reading, "vni", "a range is not matched in software");
	rule->value.metadata |=
		RULE_METADATA_VXLAN | load_be32(reading->spec + at - 1) % (1u << 24);
	rule->mask.metadata |= RULE_METADATA_KIND | load_be32(reading->mask + at - 1) % (1u << 24);
	memset(reading->mask + at, 0, 3);
	return 0;
}

static int read_arp(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;
	int ret = enter(reading, LAYER_NETWORK);

	if (ret < 0 || mask->vlan != 0)
		return ret < 0 ? ret
			       : refuse_item(reading, -ENOTSUP,
					 "behind a tag it is not matched in software");
	if (((value->eth_type ^ TYPE_ARP) & mask->eth_type) != 0)
		return refuse_item(reading, -EINVAL, "the item before it says another type");
	value->eth_type = TYPE_ARP;
	mask->eth_type = UINT16_MAX;
	return 0;
}

/* The state of its conversation, as far as a packet has one: that of the rule's states, so none of the others. */
static int read_ct(struct reading *reading)
{
	struct classifier_header *mask = &reading->rule->mask;
	const uint8_t states = reading->mask[offsetof(struct rule_ct, state)] != 0
				       ? reading->spec[offsetof(struct rule_ct, state)]
				       : RULE_CT_ALL;

	if ((mask->bits & CLASSIFIER_STATES) != 0)
		return refuse_item(reading, -EINVAL, "the rule asks for a state already");
	memset(reading->mask, 0, sizeof(struct rule_ct));
	mask->bits |= (uint8_t)(CLASSIFIER_STATES & ~(states << CLASSIFIER_STATE_SHIFT));
	return 0;
}

static int read_direction(struct reading *reading)
{
	struct classifier_header *value = &reading->rule->value, *mask = &reading->rule->mask;

	if (reading->any)
		return refuse_item(reading, -EINVAL, "it needs `is forward` or `is reverse`");
	if ((mask->bits & (CLASSIFIER_FORWARD | CLASSIFIER_REVERSE)) != 0)
		return refuse_item(reading, -EINVAL, "the rule asks for a direction already");
	memset(reading->mask, 0, sizeof(struct rule_direction));
	mask->bits |= CLASSIFIER_FORWARD | CLASSIFIER_REVERSE;
	value->bits |= reading->spec[offsetof(struct rule_direction, reverse)] != 0
			       ? CLASSIFIER_REVERSE
			       : CLASSIFIER_FORWARD;
	return 0;
}

/* The limit itself is read in rule/limit.c. */
static int read_source(struct reading *reading)
{
	struct classifier_rule *rule = reading->rule;

	if (rule->mask.metadata & RULE_METADATA_LIMIT)
		return refuse_item(reading, -EINVAL, "the rule has one already");
	memset(reading->mask, 0, sizeof(struct rule_source));
	rule->mask.metadata |= RULE_METADATA_LIMIT;
	rule->value.metadata |= RULE_METADATA_LIMIT;
	return 0;
}

static int read_fields(struct reading *reading, enum rte_flow_item_type type)
{
	switch ((int)type) {
	case RULE_ITEM_SOURCE:
		return read_source(reading);
	case RULE_ITEM_CT:
		return read_ct(reading);
	case RULE_ITEM_DIRECTION:
		return read_direction(reading);
	case RTE_FLOW_ITEM_TYPE_ETH:
		return read_eth(reading);
	case RTE_FLOW_ITEM_TYPE_VLAN:
		return read_vlan(reading);
	case RTE_FLOW_ITEM_TYPE_IPV4:
		return read_ipv4_item(reading);
	case RTE_FLOW_ITEM_TYPE_IPV6:
		return read_ipv6(reading);
	case RTE_FLOW_ITEM_TYPE_TCP:
		return read_tcp(reading);
	case RTE_FLOW_ITEM_TYPE_UDP:
		return read_ports(reading, PROTO_UDP);
	case RTE_FLOW_ITEM_TYPE_SCTP:
		return read_ports(reading, PROTO_SCTP);
	case RTE_FLOW_ITEM_TYPE_ICMP:
		return read_icmp(reading, PROTO_ICMP);
	case RTE_FLOW_ITEM_TYPE_ICMP6:
		return read_icmp(reading, PROTO_ICMPV6);
	case RTE_FLOW_ITEM_TYPE_VXLAN:
		return read_vxlan(reading);
	case RTE_FLOW_ITEM_TYPE_GRE:
		return set_proto(reading, PROTO_GRE);
	case RTE_FLOW_ITEM_TYPE_ESP:
		return set_proto(reading, PROTO_ESP);
	case RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4:
		return read_arp(reading);
	case RTE_FLOW_ITEM_TYPE_PORT_ID:
		return read_port(reading, sizeof(uint32_t));
	case RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT:
		return read_port(reading, sizeof(uint16_t));
	case RTE_FLOW_ITEM_TYPE_PORT_REPRESENTOR:
		return refuse_item(reading, -ENOTSUP,
			"packets that the engine itself sends are not matched in software");
	default:
		return refuse_item(reading, -ENOTSUP, "not matched in software");
	}
}

static int read_item(struct reading *reading, const struct rte_flow_item *item)
{
	int ret;

	if (item->type == RTE_FLOW_ITEM_TYPE_VOID)
		return 0;
	reading->thing = rule_item_of(item->type);
	if (reading->thing == NULL)
		return error_set(
			reading->error, -ENOTSUP, "item %d: not matched in software", item->type);
	ret = open_item(reading, item);
	if (ret == 0)
		ret = read_fields(reading, item->type);
	return ret == 0 ? close_item(reading) : ret;
}

static int refuse_attribute(struct rule_refusal *refusal, struct error *error, int code,
	const char *word, const char *why)
{
	refusal->word = word;
	return error_set(error, code, "%s: %s", word, why);
}

/* Whom the rule is for, before anything of its pattern. */
static int read_attributes(const struct rule_command *command, const struct rule_ground *ground,
	struct classifier_rule *rule, struct rule_refusal *refusal, struct error *error)
{
	const struct rte_flow_attr *attr = &command->attr;

	if (rule_port_check(ground, command->port, error) < 0) {
		refusal->part = RULE_PART_PORT;
		return -EINVAL;
	}
	if (rule_command_argument(command, RULE_ARG_TUNNEL_SET, 0) != NULL)
		return refuse_attribute(refusal, error, -ENOTSUP, "tunnel_set",
			"tunnels are not taken off in software");
	if (rule_command_argument(command, RULE_ARG_TUNNEL_MATCH, 0) != NULL)
		return refuse_attribute(refusal, error, -ENOTSUP, "tunnel_match",
			"tunnels are not taken off in software");
	if (attr->egress)
		return refuse_attribute(refusal, error, -ENOTSUP, "egress",
			"in software a rule is for packets that come in; a rule at the port where "
			"they come in does the same");
	if (!attr->ingress && !attr->transfer)
		return error_set(error, -EINVAL,
			"ingress: a rule needs this word (packets that come in by its port) or "
			"transfer (by any port)");
	if (attr->group >= RULE_MAX_GROUPS) {
		refusal->word = "group";
		return error_set(error, -ENOTSUP, "group %u: in software groups are 0 to %u",
			attr->group, RULE_MAX_GROUPS - 1);
	}
	if (attr->priority > CLASSIFIER_MAX_PRIORITY) {
		refusal->word = "priority";
		return error_set(error, -ENOTSUP, "priority %u: in software priorities are 0 to %u",
			attr->priority, CLASSIFIER_MAX_PRIORITY);
	}
	rule->group = attr->group;
	rule->priority = attr->priority;
	if (!attr->transfer) {
		rule->value.in_port = command->port;
		rule->mask.in_port = UINT16_MAX;
	}
	return 0;
}

int rule_pattern_read(const struct rule_command *command, const struct rule_ground *ground,
	struct classifier_rule *rule, struct rule_refusal *refusal, struct error *error)
{
	struct reading reading = {.ground = ground, .rule = rule, .error = error};
	int ret;

	*rule = classifier_rule_any(0);
	*refusal = (struct rule_refusal){.part = RULE_PART_COMMAND};
	ret = read_attributes(command, ground, rule, refusal, error);
	if (ret < 0)
		return ret;
	refusal->part = RULE_PART_PATTERN;
	for (unsigned i = 0; ret == 0 && command->pattern[i].type != RTE_FLOW_ITEM_TYPE_END; i++) {
		refusal->index = i;
		ret = read_item(&reading, &command->pattern[i]);
	}
	return ret;
}

/*
 * A rule asks for the type in the Ethernet header, which is left out of what flows are decided by. What flows cannot
 * have by it is asked for by the IP version: 0 is that of none. Frames of flows have IP's types or those of tags, or
 * 0 where the link is no Ethernet.
 */
static void version_of_type(const struct classifier_rule *rule, struct classifier_rule *of_flows)
{
	static const struct {
		uint16_t type;
		bool version4, version6;
	} types[] = {
		{ETHERTYPE_IPV4, true, false},
		{ETHERTYPE_IPV6, false, true},
		{0x8100, true, true},
		{0x88a8, true, true},
		{0x9100, true, true},
		{0x9200, true, true},
		{0, true, true},
	};
	const uint16_t mask = rule->mask.eth_type;
	bool version4 = false, version6 = false;

	for (unsigned i = 0; i < RTE_DIM(types); i++) {
		if ((types[i].type ^ rule->value.eth_type) & mask)
			continue;
		version4 = version4 || types[i].version4;
		version6 = version6 || types[i].version6;
	}
	if ((version4 && version6) || of_flows->mask.version != 0)
		return;
	of_flows->mask.version = UINT8_MAX;
	of_flows->value.version = version4 ? 4 : version6 ? 6 : 0;
}

bool rule_pattern_of_flows(const struct classifier_rule *rule, const struct rule_ground *ground,
	struct classifier_rule *of_flows)
{
	struct classifier_header *mask = &of_flows->mask;
	bool left_out =
		(rule->mask.tcp_flags | rule->mask.tos | rule->mask.ttl | rule->mask.eth_type |
			rule->mask.metadata | (rule->mask.bits & CLASSIFIER_DEI)) != 0 ||
		!is_zero(rule->mask.eth_src, 6) || !is_zero(rule->mask.eth_dst, 6);

	*of_flows = *rule;
	mask->tcp_flags = mask->tos = mask->ttl = 0;
	mask->eth_type = 0;
	if (rule->mask.eth_type != 0)
		version_of_type(rule, of_flows);
	mask->metadata &= RULE_METADATA_LIMIT;
	mask->bits &= (uint8_t)~CLASSIFIER_DEI;
	memset(mask->eth_src, 0, 6);
	memset(mask->eth_dst, 0, 6);
	if (mask->proto == UINT8_MAX &&
		(rule->value.proto == PROTO_ICMP || rule->value.proto == PROTO_ICMPV6) &&
		(rule->src_port.first != 0 || rule->src_port.last != UINT16_MAX)) {
		of_flows->src_port = (struct classifier_range){0, UINT16_MAX};
		left_out = true;
	}
	if (mask->vlan == 0)
		return left_out;
	/* a number that is not 0 says by itself that there is a tag; the key's is 0 without one */
	mask->vlan &= ground->zone_vlan ? 0x0fff : 0;
	if ((rule->value.vlan & mask->vlan) == 0 ||
		(rule->mask.vlan & ~(mask->vlan | CLASSIFIER_TAGGED)) != 0)
		left_out = true;
	return left_out;
}

int rule_port_check(const struct rule_ground *ground, uint64_t port, struct error *error)
{
	const unsigned n = ground->topology != NULL ? ground->topology->n_ports : RULE_NO_PORT;

	if (port < n)
		return 0;
	if (ground->topology == NULL)
		return error_set(
			error, -EINVAL, "port %lu: ports are 0 to %u", (unsigned long)port, n - 1);
	return error_set(error, -EINVAL, "port %lu: the engine has ports 0 to %u",
		(unsigned long)port, n - 1);
}

/* The next word from `*at` on; its length, 0 at the end. */
static size_t word_length_at(const char *line, size_t length, size_t *at)
{
	size_t end;

	while (*at < length && (line[*at] == ' ' || line[*at] == '\t'))
		++*at;
	end = *at;
	while (end < length && line[end] != ' ' && line[end] != '\t' && line[end] != '\r' &&
		line[end] != '\n')
		end++;
	return end - *at;
}

static bool word_is(const char *line, size_t at, size_t n, const char *word)
{
	return word != NULL && strlen(word) == n && memcmp(line + at, word, n) == 0;
}

/* Of the port in `flow create PORT` or `flow indirect_action PORT`, perhaps behind a prompt. */
static unsigned port_column(const char *line, size_t length)
{
	unsigned left = 2;
	size_t at = 0, n;

	for (; (n = word_length_at(line, length, &at)) > 0; at += n) {
		if (left == 0)
			return (unsigned)at + 1;
		left -= !word_is(line, at, n, "testpmd>");
	}
	return 1;
}

unsigned rule_refusal_column(const char *line, size_t length, const struct rule_refusal *refusal)
{
	bool inside = false;
	unsigned items = 0;
	size_t at = 0, n;

	if (refusal->part == RULE_PART_PORT)
		return port_column(line, length);
	for (; (n = word_length_at(line, length, &at)) > 0; at += n) {
		if (refusal->part == RULE_PART_COMMAND) {
			if (word_is(line, at, n, refusal->word))
				return (unsigned)at + 1;
		} else if (inside) {
			if (items == refusal->index)
				return (unsigned)at + 1;
			items += word_is(line, at, n, "/");
		} else if (refusal->part == RULE_PART_PATTERN) {
			inside = word_is(line, at, n, "pattern");
		} else {
			inside = word_is(line, at, n, "actions") || word_is(line, at, n, "action");
		}
	}
	return 1;
}
