/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/nic_pattern.h"

#include <string.h>

#include <netinet/in.h>
#include <rte_byteorder.h>

#include "packet/headers.h"
#include "rule/command.h"
#include "rule/pattern.h"

#define PROTO_AH 51
/* More fragments, and the offset. */
#define FRAGMENT 0x3fff
#define TAG_NUMBER_AND_PRIORITY 0xefff

const char *rule_nic_words(enum rule_nic why)
{
	static const char *const words[RULE_NIC_N] = {
		[RULE_NIC_FITS] = "",
		[RULE_NIC_ACTIONS] = "only rules that drop are given to NICs",
		[RULE_NIC_REJECTS] =
			"it rejects: no NIC tells senders that their packets are dropped",
		[RULE_NIC_LOGS] = "it logs, which no NIC does",
		[RULE_NIC_GROUP] = "packets come to its group by a jump",
		[RULE_NIC_VERSION] =
			"its pattern names no IP version, so that a NIC cannot leave out fragments",
		[RULE_NIC_PROTOCOL] =
			"a NIC may read another protocol in such packets than software does",
		[RULE_NIC_SET] = "it asks for a set of addresses, which is not given to NICs",
		[RULE_NIC_FIELD] = "it asks for a field that is not given to NICs",
		[RULE_NIC_STATE] =
			"it asks for the state of a conversation, which NICs do not know",
		[RULE_NIC_LIMIT] = "it is a limit of its source's flows, which NICs do not count",
		[RULE_NIC_REPLIES] = "replies that follow another rule may be among its packets",
		[RULE_NIC_BEHIND] =
			"a rule before it matches some of its packets, and does not drop them",
		[RULE_NIC_SHARED] = "its counter is one that rules share, which NICs do not add to",
		[RULE_NIC_PENDING] = "it is still compared with the rules before it",
		[RULE_NIC_MANY] = "there are more rules than are given to NICs",
	};

	return words[why];
}

/* Does it change nothing of what a rule that drops needs of a NIC? */
static bool is_beside_drop(enum rte_flow_action_type type)
{
	return type == RTE_FLOW_ACTION_TYPE_VOID || type == RTE_FLOW_ACTION_TYPE_COUNT ||
	       type == RTE_FLOW_ACTION_TYPE_DROP;
}

static bool is_of_software(enum rte_flow_action_type type)
{
	return type == RTE_FLOW_ACTION_TYPE_AGE || type == RTE_FLOW_ACTION_TYPE_MARK ||
	       type == RTE_FLOW_ACTION_TYPE_FLAG;
}

const char *rule_nic_action(const struct rule_command *command)
{
	const struct rte_flow_action *found = NULL;

	for (const struct rte_flow_action *action = command->actions[0];
		action != NULL && action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		if (is_beside_drop(action->type))
			continue;
		/* beside a drop these are done, as far as there is anything to do: others weigh more */
		if (found == NULL || is_of_software(found->type))
			found = action;
	}
	return found == NULL ? NULL : rule_action_of(found->type)->name;
}

static bool is_any_range(struct classifier_range range)
{
	return range.first == 0 && range.last == UINT16_MAX;
}

static bool all_zero(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n > 0 && at[n - 1] == 0)
		n--;
	return n == 0;
}

static bool has_link_fields(const struct classifier_header *mask)
{
	return mask->vlan != 0 || mask->bits != 0 || mask->eth_type != 0 ||
	       !all_zero(mask->eth_src, 6) || !all_zero(mask->eth_dst, 6);
}

/* Does the rule ask for more than the IP version and addresses, which all fragments of a datagram share? */
static bool needs_whole_packets(const struct classifier_rule *rule)
{
	const struct classifier_header *mask = &rule->mask;

	return mask->proto != 0 || mask->tcp_flags != 0 || mask->tos != 0 || mask->ttl != 0 ||
	       has_link_fields(mask);
}

static void push(struct rule_nic_items *items, unsigned *n, enum rte_flow_item_type type,
	const void *spec, const void *last, const void *mask)
{
	items->list[(*n)++] =
		(struct rte_flow_item){.type = type, .spec = spec, .last = last, .mask = mask};
}

static void set_link(struct rule_nic_items *items, unsigned *n, const struct classifier_rule *rule)
{
	const struct classifier_header *value = &rule->value, *mask = &rule->mask;
	struct rte_ether_hdr *spec = &items->eth.hdr, *masked = &items->eth_mask.hdr;

	memcpy(&spec->dst_addr, value->eth_dst, 6);
	memcpy(&masked->dst_addr, mask->eth_dst, 6);
	memcpy(&spec->src_addr, value->eth_src, 6);
	memcpy(&masked->src_addr, mask->eth_src, 6);
	spec->ether_type = rte_cpu_to_be_16(value->eth_type);
	masked->ether_type = rte_cpu_to_be_16(mask->eth_type);
	if (mask->vlan == CLASSIFIER_TAGGED && value->vlan == 0) {
		/* a packet without a tag: its type says IP at once */
		spec->ether_type = rte_cpu_to_be_16(
			value->version == 4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
		masked->ether_type = UINT16_MAX;
	}
	if (all_zero(masked, sizeof(*masked)))
		push(items, n, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL, NULL);
	else
		push(items, n, RTE_FLOW_ITEM_TYPE_ETH, &items->eth, NULL, &items->eth_mask);
}

static enum rule_nic set_tag(
	struct rule_nic_items *items, unsigned *n, const struct classifier_rule *rule)
{
	const struct classifier_header *value = &rule->value, *mask = &rule->mask;
	uint16_t tci = value->vlan & mask->vlan & TAG_NUMBER_AND_PRIORITY;
	uint16_t tci_mask = mask->vlan & TAG_NUMBER_AND_PRIORITY;

	if (mask->vlan == 0)
		return mask->bits == 0 ? RULE_NIC_FITS : RULE_NIC_FIELD;
	if (!(mask->vlan & CLASSIFIER_TAGGED))
		return RULE_NIC_FIELD;
	if (!(value->vlan & CLASSIFIER_TAGGED))
		return tci_mask == 0 && mask->eth_type == 0 && mask->bits == 0 ? RULE_NIC_FITS
									       : RULE_NIC_FIELD;
	if (mask->bits & CLASSIFIER_DEI) {
		tci_mask |= CLASSIFIER_TAGGED;
		tci |= value->bits & CLASSIFIER_DEI ? CLASSIFIER_TAGGED : 0;
	}
	items->vlan.hdr.vlan_tci = rte_cpu_to_be_16(tci);
	items->vlan_mask.hdr.vlan_tci = rte_cpu_to_be_16(tci_mask);
	if (tci_mask == 0)
		push(items, n, RTE_FLOW_ITEM_TYPE_VLAN, NULL, NULL, NULL);
	else
		push(items, n, RTE_FLOW_ITEM_TYPE_VLAN, &items->vlan, NULL, &items->vlan_mask);
	return RULE_NIC_FITS;
}

static bool has_item(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP ||
	       proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;
}

/* The protocol field is for what has no item of its own. */
static bool names_protocol(const struct classifier_rule *rule)
{
	return rule->mask.proto != 0 && !has_item(rule->value.proto);
}

static void set_ipv4(struct rule_nic_items *items, const struct classifier_rule *rule)
{
	struct rte_ipv4_hdr *spec = &items->ip.ipv4.hdr, *mask = &items->ip_mask.ipv4.hdr;

	spec->src_addr = rte_cpu_to_be_32(rule->value.src[0]);
	mask->src_addr = rte_cpu_to_be_32(rule->mask.src[0]);
	spec->dst_addr = rte_cpu_to_be_32(rule->value.dst[0]);
	mask->dst_addr = rte_cpu_to_be_32(rule->mask.dst[0]);
	spec->type_of_service = rule->value.tos;
	mask->type_of_service = rule->mask.tos;
	spec->time_to_live = rule->value.ttl;
	mask->time_to_live = rule->mask.ttl;
	if (names_protocol(rule)) {
		spec->next_proto_id = rule->value.proto;
		mask->next_proto_id = UINT8_MAX;
	}
	if (needs_whole_packets(rule))
		mask->fragment_offset = RTE_BE16(FRAGMENT);
}

static void set_ipv6(struct rule_nic_items *items, const struct classifier_rule *rule)
{
	struct rte_ipv6_hdr *spec = &items->ip.ipv6.hdr, *mask = &items->ip_mask.ipv6.hdr;
	uint32_t words[16];

	for (unsigned i = 0; i < 4; i++) {
		words[i] = rte_cpu_to_be_32(rule->value.src[i]);
		words[4 + i] = rte_cpu_to_be_32(rule->mask.src[i]);
		words[8 + i] = rte_cpu_to_be_32(rule->value.dst[i]);
		words[12 + i] = rte_cpu_to_be_32(rule->mask.dst[i]);
	}
	memcpy(&spec->src_addr, &words[0], 16);
	memcpy(&mask->src_addr, &words[4], 16);
	memcpy(&spec->dst_addr, &words[8], 16);
	memcpy(&mask->dst_addr, &words[12], 16);
	spec->vtc_flow = rte_cpu_to_be_32((uint32_t)rule->value.tos << RTE_IPV6_HDR_TC_SHIFT);
	mask->vtc_flow = rte_cpu_to_be_32((uint32_t)rule->mask.tos << RTE_IPV6_HDR_TC_SHIFT);
	spec->hop_limits = rule->value.ttl;
	mask->hop_limits = rule->mask.ttl;
	if (names_protocol(rule)) {
		spec->proto = rule->value.proto;
		mask->proto = UINT8_MAX;
	}
	items->ip_mask.ipv6.has_frag_ext = needs_whole_packets(rule);
}

static void set_ip(struct rule_nic_items *items, unsigned *n, const struct classifier_rule *rule)
{
	const bool v4 = rule->value.version == 4;

	if (v4)
		set_ipv4(items, rule);
	else
		set_ipv6(items, rule);
	if (all_zero(&items->ip_mask, sizeof(items->ip_mask)))
		push(items, n, v4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6, NULL, NULL,
			NULL);
	else
		push(items, n, v4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6, &items->ip,
			NULL, &items->ip_mask);
}

/* A range of two bytes: nothing, a mask with its ones in front, or from spec to last. */
static void set_range(struct rule_nic_items *items, size_t at, struct classifier_range range)
{
	const uint16_t differ = range.first ^ range.last;
	uint16_t spec = rte_cpu_to_be_16(range.first), last = 0, mask = UINT16_MAX;

	if (is_any_range(range))
		return;
	if ((differ & (differ + 1)) == 0 && (range.first & differ) == 0)
		mask = rte_cpu_to_be_16((uint16_t)~differ);
	else
		last = rte_cpu_to_be_16(range.last);
	memcpy((char *)&items->upper + at, &spec, sizeof(spec));
	memcpy((char *)&items->upper_last + at, &last, sizeof(last));
	memcpy((char *)&items->upper_mask + at, &mask, sizeof(mask));
}

/* Ranges stand in the first bytes of each of these headers. */
static enum rule_nic set_upper(
	struct rule_nic_items *items, unsigned *n, const struct classifier_rule *rule)
{
	const bool v4 = rule->value.version == 4;
	enum rte_flow_item_type type;

	if (rule->mask.proto == 0 || !has_item(rule->value.proto))
		return is_any_range(rule->src_port) && is_any_range(rule->dst_port) &&
				       rule->mask.tcp_flags == 0
			       ? RULE_NIC_FITS
			       : RULE_NIC_FIELD;
	switch (rule->value.proto) {
	case IPPROTO_TCP:
		type = RTE_FLOW_ITEM_TYPE_TCP;
		items->upper.tcp.hdr.tcp_flags = rule->value.tcp_flags;
		items->upper_mask.tcp.hdr.tcp_flags = rule->mask.tcp_flags;
		break;
	case IPPROTO_UDP:
		type = RTE_FLOW_ITEM_TYPE_UDP;
		break;
	case IPPROTO_SCTP:
		type = RTE_FLOW_ITEM_TYPE_SCTP;
		break;
	default:
		if (v4 != (rule->value.proto == IPPROTO_ICMP) || !is_any_range(rule->dst_port))
			return RULE_NIC_FIELD;
		type = v4 ? RTE_FLOW_ITEM_TYPE_ICMP : RTE_FLOW_ITEM_TYPE_ICMP6;
		break;
	}
	if (type != RTE_FLOW_ITEM_TYPE_TCP && rule->mask.tcp_flags != 0)
		return RULE_NIC_FIELD;
	set_range(items, 0, rule->src_port);
	set_range(items, 2, rule->dst_port);
	const bool has_last = !all_zero(&items->upper_last, sizeof(items->upper_last));

	if (all_zero(&items->upper_mask, sizeof(items->upper_mask)))
		push(items, n, type, NULL, NULL, NULL);
	else
		push(items, n, type, &items->upper, has_last ? &items->upper_last : NULL,
			&items->upper_mask);
	return RULE_NIC_FITS;
}

/* What follows an authentication header is what software takes for the protocol; and IPv6's extensions are none. */
static bool is_read_otherwise(const struct classifier_rule *rule)
{
	if (rule->mask.proto == 0)
		return false;
	return rule->mask.proto != UINT8_MAX || rule->value.proto == PROTO_AH ||
	       proto_is_extension(6, rule->value.proto);
}

/* What follows the addresses of these packets is no IP header, and no tag. */
static bool is_of_other_type(const struct classifier_rule *rule)
{
	const uint16_t type = rule->value.eth_type;

	return rule->mask.eth_type == UINT16_MAX && type != RTE_ETHER_TYPE_IPV4 &&
	       type != RTE_ETHER_TYPE_IPV6 && !ethertype_is_vlan(type);
}

/* Rules of all packets, and of such as are not IP: none of these is a fragment. */
static enum rule_nic set_not_ip(struct rule_nic_items *items, const struct classifier_rule *rule)
{
	const struct classifier_header *mask = &rule->mask;
	const bool plain = mask->proto == 0 && mask->tcp_flags == 0 && mask->tos == 0 &&
			   mask->ttl == 0 && mask->vlan == 0 && mask->bits == 0 &&
			   mask->version == 0 && is_any_range(rule->src_port) &&
			   is_any_range(rule->dst_port);
	unsigned n = 0;

	if (!plain)
		return RULE_NIC_VERSION;
	if (has_link_fields(mask) && !is_of_other_type(rule))
		return RULE_NIC_VERSION;
	set_link(items, &n, rule);
	items->list[n].type = RTE_FLOW_ITEM_TYPE_END;
	return RULE_NIC_FITS;
}

enum rule_nic rule_nic_pattern(const struct classifier_rule *rule, struct rule_nic_items *items)
{
	unsigned n = 0;
	enum rule_nic why;

	memset(items, 0, sizeof(*items));
	if (rule->mask.metadata & RULE_METADATA_LIMIT)
		return RULE_NIC_LIMIT;
	if (rule->mask.metadata != 0)
		return RULE_NIC_FIELD;
	if ((rule->mask.bits & ~CLASSIFIER_DEI) != 0)
		return RULE_NIC_STATE;
	if (rule->src_set != 0 || rule->dst_set != 0)
		return RULE_NIC_SET;
	if (rule->mask.version == 0 || rule->value.version == 0)
		return set_not_ip(items, rule);
	if (is_read_otherwise(rule))
		return RULE_NIC_PROTOCOL;
	set_link(items, &n, rule);
	why = set_tag(items, &n, rule);
	if (why != RULE_NIC_FITS)
		return why;
	set_ip(items, &n, rule);
	why = set_upper(items, &n, rule);
	items->list[n].type = RTE_FLOW_ITEM_TYPE_END;
	return why;
}

static bool are_apart(struct classifier_range one, struct classifier_range other)
{
	return one.last < other.first || other.last < one.first;
}

static bool is_of_ip(const struct classifier_rule *rule)
{
	return rule->mask.version != 0 && rule->value.version != 0;
}

/* Does some bit that both headers' masks have differ? */
static bool values_differ(const struct classifier_rule *one, const struct classifier_rule *other)
{
	uint64_t value[2][sizeof(one->value) / 8], mask[2][sizeof(one->mask) / 8];

	memcpy(value[0], &one->value, sizeof(value[0]));
	memcpy(value[1], &other->value, sizeof(value[1]));
	memcpy(mask[0], &one->mask, sizeof(mask[0]));
	memcpy(mask[1], &other->mask, sizeof(mask[1]));
	for (size_t i = 0; i < sizeof(value[0]) / sizeof(value[0][0]); i++)
		if (((value[0][i] ^ value[1][i]) & mask[0][i] & mask[1][i]) != 0)
			return true;
	return false;
}

bool rule_nic_overlap(const struct classifier_rule *one, const struct classifier_rule *other)
{
	/* the masks of ports are not used, and are 0 */
	if (values_differ(one, other))
		return false;
	if ((is_of_other_type(one) && is_of_ip(other)) ||
		(is_of_other_type(other) && is_of_ip(one)))
		return false;
	return !are_apart(one->src_port, other->src_port) &&
	       !are_apart(one->dst_port, other->dst_port);
}
