/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/message.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/lwtunnel.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>
#include <rte_jhash.h>

/* More than any attribute that is read here has as its number. */
#define MAX_ATTRIBUTES 64

/* Attributes by their numbers; NULL: there is none. */
struct attributes {
	const struct nlattr *of[MAX_ATTRIBUTES];
};

static void take(struct attributes *attributes, const void *at, size_t size)
{
	const struct nlattr *attribute = at;
	const char *end = (const char *)at + size;

	memset(attributes, 0, sizeof(*attributes));
	while (mnl_attr_ok(attribute, (int)(end - (const char *)attribute))) {
		uint16_t type = mnl_attr_get_type(attribute);

		if (type < MAX_ATTRIBUTES)
			attributes->of[type] = attribute;
		attribute = mnl_attr_next(attribute);
	}
}

static void take_nested(struct attributes *attributes, const struct nlattr *outer)
{
	if (outer == NULL)
		memset(attributes, 0, sizeof(*attributes));
	else
		take(attributes, mnl_attr_get_payload(outer), mnl_attr_get_payload_len(outer));
}

/* The family's own header, and the attributes after it; NULL: there is not even the header. */
static const void *take_head(
	struct attributes *attributes, const struct nlmsghdr *header, size_t head)
{
	size_t payload = mnl_nlmsg_get_payload_len(header);

	if (header->nlmsg_len < NLMSG_HDRLEN || payload < head)
		return NULL;
	/* no message's end is before that of its aligned header, but for one that is only that header */
	size_t offset = MNL_ALIGN(head) < payload ? MNL_ALIGN(head) : payload;

	take(attributes, mnl_nlmsg_get_payload_offset(header, offset), payload - offset);
	return mnl_nlmsg_get_payload(header);
}

static bool has(const struct attributes *attributes, unsigned type, size_t bytes)
{
	return attributes->of[type] != NULL &&
	       mnl_attr_get_payload_len(attributes->of[type]) >= bytes;
}

static uint32_t u32(const struct attributes *attributes, unsigned type)
{
	return has(attributes, type, 4) ? mnl_attr_get_u32(attributes->of[type]) : 0;
}

static uint16_t u16(const struct attributes *attributes, unsigned type)
{
	return has(attributes, type, 2) ? mnl_attr_get_u16(attributes->of[type]) : 0;
}

/* 4 or 6; 0: another family. */
static uint8_t version_of(unsigned family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}

static size_t address_bytes(uint8_t version)
{
	return version == 4 ? 4 : 16;
}

/* False: the attribute is not an address of this version. */
static bool copy_address(uint8_t address[16], uint8_t version, const struct nlattr *attribute)
{
	if (attribute == NULL || mnl_attr_get_payload_len(attribute) != address_bytes(version))
		return false;
	memcpy(address, mnl_attr_get_payload(attribute), address_bytes(version));
	return true;
}

static bool starts_with(const struct nlattr *attribute, const char *word)
{
	return attribute != NULL && mnl_attr_get_payload_len(attribute) >= strlen(word) &&
	       memcmp(mnl_attr_get_payload(attribute), word, strlen(word)) == 0 &&
	       (mnl_attr_get_payload_len(attribute) == strlen(word) ||
		       ((const char *)mnl_attr_get_payload(attribute))[strlen(word)] == '\0');
}

/* ---------------------------------------------------- links, addresses, neighbours */

/* A VLAN of another protocol than 802.1Q has no parent that is told: frames with its tag are the kernel's. */
static void take_vlan(struct kernel_link *link, const struct attributes *attributes,
	const struct attributes *data)
{
	const uint16_t protocol = u16(data, IFLA_VLAN_PROTOCOL);
	const bool here = attributes->of[IFLA_LINK_NETNSID] == NULL;

	if (!here || (protocol != 0 && protocol != __builtin_bswap16(ETH_P_8021Q)))
		return;
	link->vlan = u16(data, IFLA_VLAN_ID);
	link->parent = u32(attributes, IFLA_LINK);
}

static int read_link(struct message *message, const struct nlmsghdr *header)
{
	struct attributes attributes, info, data;
	const struct ifinfomsg *head = take_head(&attributes, header, sizeof(*head));
	struct message_link *out = &message->link;
	struct kernel_link *link = &out->link;

	if (head == NULL)
		return -EBADMSG;
	/* bridges tell their ports in messages of their own family */
	if (head->ifi_family != AF_UNSPEC)
		return 0;
	if (head->ifi_index <= 0 || !has(&attributes, IFLA_IFNAME, 1))
		return -EBADMSG;
	link->ifindex = (uint32_t)head->ifi_index;
	const struct nlattr *name = attributes.of[IFLA_IFNAME];

	memcpy(link->name, mnl_attr_get_payload(name),
		RTE_MIN((size_t)mnl_attr_get_payload_len(name), sizeof(link->name) - 1));
	/* what stands after the name's end is not to make equal links differ */
	memset(link->name + strlen(link->name), 0, sizeof(link->name) - strlen(link->name));
	if (has(&attributes, IFLA_ADDRESS, 6) &&
		mnl_attr_get_payload_len(attributes.of[IFLA_ADDRESS]) == 6)
		memcpy(link->mac, mnl_attr_get_payload(attributes.of[IFLA_ADDRESS]), 6);
	link->mtu = u32(&attributes, IFLA_MTU);
	link->up = (head->ifi_flags & IFF_UP) != 0;
	link->carrier = (head->ifi_flags & IFF_LOWER_UP) != 0;
	out->master = u32(&attributes, IFLA_MASTER);
	take_nested(&info, attributes.of[IFLA_LINKINFO]);
	take_nested(&data, info.of[IFLA_INFO_DATA]);
	if (starts_with(info.of[IFLA_INFO_KIND], "vlan"))
		take_vlan(link, &attributes, &data);
	else if (starts_with(info.of[IFLA_INFO_KIND], "vrf"))
		link->vrf_table = u32(&data, IFLA_VRF_TABLE);
	return 1;
}

static int read_address(struct message *message, const struct nlmsghdr *header)
{
	struct attributes attributes;
	const struct ifaddrmsg *head = take_head(&attributes, header, sizeof(*head));
	struct kernel_address *address = &message->address;

	if (head == NULL)
		return -EBADMSG;
	address->version = version_of(head->ifa_family);
	if (address->version == 0)
		return 0;
	/* IFA_LOCAL is the interface's own where IFA_ADDRESS is that of the other end */
	const struct nlattr *own = attributes.of[IFA_LOCAL] != NULL ? attributes.of[IFA_LOCAL]
								    : attributes.of[IFA_ADDRESS];
	uint32_t flags =
		has(&attributes, IFA_FLAGS, 4) ? u32(&attributes, IFA_FLAGS) : head->ifa_flags;

	if (head->ifa_prefixlen > 8 * address_bytes(address->version) ||
		!copy_address(address->address, address->version, own))
		return -EBADMSG;
	address->ifindex = head->ifa_index;
	address->length = head->ifa_prefixlen;
	address->tentative = address->version == 6 &&
			     (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0 &&
			     (flags & IFA_F_OPTIMISTIC) == 0;
	return 1;
}

static int read_neighbour(struct message *message, const struct nlmsghdr *header)
{
	const uint16_t usable =
		NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
	struct attributes attributes;
	const struct ndmsg *head = take_head(&attributes, header, sizeof(*head));
	struct kernel_neighbour *neighbour = &message->neighbour;

	if (head == NULL)
		return -EBADMSG;
	neighbour->version = version_of(head->ndm_family);
	/* entries of proxies name addresses that others are told */
	if (neighbour->version == 0 || (head->ndm_flags & NTF_PROXY))
		return 0;
	if (head->ndm_ifindex <= 0 ||
		!copy_address(neighbour->address, neighbour->version, attributes.of[NDA_DST]))
		return -EBADMSG;
	neighbour->ifindex = (uint32_t)head->ndm_ifindex;
	if (has(&attributes, NDA_LLADDR, 6) &&
		mnl_attr_get_payload_len(attributes.of[NDA_LLADDR]) == 6) {
		memcpy(neighbour->mac, mnl_attr_get_payload(attributes.of[NDA_LLADDR]), 6);
		neighbour->valid = (head->ndm_state & usable) != 0;
	}
	neighbour->reachable = neighbour->valid &&
			       (head->ndm_state & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP)) != 0;
	return 1;
}

/* ---------------------------------------------------- routes */

/* RTA_VIA names a gateway of the other version. False: it cannot be read. */
static bool take_via(struct kernel_hop *hop, const struct nlattr *attribute)
{
	const size_t size = mnl_attr_get_payload_len(attribute);
	uint16_t family;

	if (size < sizeof(family))
		return false;
	memcpy(&family, mnl_attr_get_payload(attribute), sizeof(family));
	hop->version = version_of(family);
	if (hop->version == 0 || size - sizeof(family) < address_bytes(hop->version))
		return false;
	memcpy(hop->gateway, (const char *)mnl_attr_get_payload(attribute) + sizeof(family),
		address_bytes(hop->version));
	return true;
}

/* Reads a hop from the attributes of a route, one of its hops or a nexthop object. `only`: the kernel alone can send there. */
static bool take_gateway(
	struct kernel_hop *hop, uint8_t version, const struct attributes *attributes, bool *only)
{
	*only |= u16(attributes, RTA_ENCAP_TYPE) != LWTUNNEL_ENCAP_NONE ||
		 attributes->of[RTA_NEWDST] != NULL;
	if (attributes->of[RTA_VIA] != NULL)
		return take_via(hop, attributes->of[RTA_VIA]);
	if (attributes->of[RTA_GATEWAY] == NULL)
		return true;
	hop->version = version;
	return copy_address(hop->gateway, version, attributes->of[RTA_GATEWAY]);
}

static bool is_dead(unsigned flags)
{
	return (flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) != 0;
}

static bool take_multipath(
	struct message_route *out, uint8_t version, const struct nlattr *attribute, bool *only)
{
	const char *at = mnl_attr_get_payload(attribute);
	size_t left = mnl_attr_get_payload_len(attribute);
	struct attributes attributes;
	struct rtnexthop head;

	while (left >= sizeof(head)) {
		memcpy(&head, at, sizeof(head));
		if (head.rtnh_len < sizeof(head) || head.rtnh_len > left)
			return false;
		struct kernel_hop hop;

		memset(&hop, 0, sizeof(hop));
		hop.ifindex = (uint32_t)head.rtnh_ifindex;
		hop.weight = (uint16_t)(head.rtnh_hops + 1);
		hop.dead = is_dead(head.rtnh_flags);
		take(&attributes, at + sizeof(head), head.rtnh_len - sizeof(head));
		if (!take_gateway(&hop, version, &attributes, only))
			return false;
		if (out->route.n_hops < KERNEL_HOPS)
			memcpy(&out->hops[out->route.n_hops++], &hop, sizeof(hop));
		else
			out->cut = true;
		const size_t step = RTE_MIN((size_t)MNL_ALIGN(head.rtnh_len), left);

		at += step;
		left -= step;
	}
	return left == 0;
}

/* The only hop of a route. Without a device and a gateway there is none. */
static bool take_one_hop(struct message_route *out, const struct rtmsg *head,
	const struct attributes *attributes, bool *only)
{
	struct kernel_hop *hop = &out->hops[0];

	if (!take_gateway(hop, out->route.version, attributes, only))
		return false;
	hop->ifindex = u32(attributes, RTA_OIF);
	hop->weight = 1;
	hop->dead = is_dead(head->rtm_flags);
	out->route.n_hops = hop->ifindex != 0 || hop->version != 0;
	return true;
}

static enum kernel_route_kind kind_of(unsigned type)
{
	switch (type) {
	case RTN_UNICAST:
		return KERNEL_UNICAST;
	case RTN_LOCAL:
	case RTN_ANYCAST:
		return KERNEL_LOCAL;
	case RTN_BROADCAST:
		return KERNEL_BROADCAST;
	case RTN_MULTICAST:
		return KERNEL_MULTICAST;
	case RTN_BLACKHOLE:
		return KERNEL_BLACKHOLE;
	case RTN_UNREACHABLE:
		return KERNEL_UNREACHABLE;
	case RTN_PROHIBIT:
		return KERNEL_PROHIBIT;
	default:
		return KERNEL_ONLY;
	}
}

static void clear_host_bits(uint8_t prefix[16], unsigned length)
{
	for (unsigned i = 0; i < 16; i++) {
		const unsigned bits = length > 8 * i ? RTE_MIN(length - 8 * i, 8u) : 0;

		prefix[i] &= (uint8_t)(0xff00 >> bits);
	}
}

static bool take_hops(
	struct message_route *out, const struct rtmsg *head, const struct attributes *attributes)
{
	struct kernel_route *route = &out->route;
	bool only = head->rtm_src_len != 0 || (head->rtm_tos != 0 && route->version == 4);
	bool well;

	/* the kernel says RTA_MULTIPATH or RTA_OIF; who says both means the former */
	if (attributes->of[RTA_MULTIPATH] != NULL)
		well = take_multipath(out, route->version, attributes->of[RTA_MULTIPATH], &only);
	else
		well = take_one_hop(out, head, attributes, &only);
	if (only && (route->kind == KERNEL_UNICAST || route->kind >= KERNEL_BLACKHOLE))
		route->kind = KERNEL_ONLY;
	route->hops = out->hops;
	return well;
}

static int read_route(struct message *message, const struct nlmsghdr *header)
{
	struct attributes attributes;
	const struct rtmsg *head = take_head(&attributes, header, sizeof(*head));
	struct message_route *out = &message->route;
	struct kernel_route *route = &out->route;

	if (head == NULL)
		return -EBADMSG;
	route->version = version_of(head->rtm_family);
	if (route->version == 0 || (head->rtm_flags & RTM_F_CLONED))
		return 0;
	if (head->rtm_dst_len > 8 * address_bytes(route->version))
		return -EBADMSG;
	if (attributes.of[RTA_DST] != NULL
			? !copy_address(route->prefix, route->version, attributes.of[RTA_DST])
			: head->rtm_dst_len != 0)
		return -EBADMSG;
	route->length = head->rtm_dst_len;
	clear_host_bits(route->prefix, route->length);
	route->table =
		has(&attributes, RTA_TABLE, 4) ? u32(&attributes, RTA_TABLE) : head->rtm_table;
	route->metric = u32(&attributes, RTA_PRIORITY);
	route->protocol = head->rtm_protocol;
	route->kind = kind_of(head->rtm_type);
	out->next_hop = u32(&attributes, RTA_NH_ID);
	out->replaces = (header->nlmsg_flags & NLM_F_REPLACE) != 0;
	return take_hops(out, head, &attributes) ? 1 : -EBADMSG;
}

static void take_group(struct message_next_hop *out, const struct nlattr *attribute)
{
	const size_t n = mnl_attr_get_payload_len(attribute) / sizeof(struct nexthop_grp);
	const char *at = mnl_attr_get_payload(attribute);
	struct nexthop_grp member;

	out->cut = n > KERNEL_HOPS;
	for (; out->n_members < RTE_MIN(n, (size_t)KERNEL_HOPS); at += sizeof(member)) {
		memcpy(&member, at, sizeof(member));
		out->members[out->n_members++] = (struct message_member){
			.id = member.id, .weight = (uint16_t)(member.weight + 1)};
	}
}

static int read_next_hop(struct message *message, const struct nlmsghdr *header)
{
	struct attributes attributes;
	const struct nhmsg *head = take_head(&attributes, header, sizeof(*head));
	struct message_next_hop *out = &message->next_hop;

	if (head == NULL || !has(&attributes, NHA_ID, 4))
		return -EBADMSG;
	out->id = u32(&attributes, NHA_ID);
	if (out->id == 0)
		return -EBADMSG;
	if (attributes.of[NHA_GROUP] != NULL) {
		take_group(out, attributes.of[NHA_GROUP]);
		return 1;
	}
	out->hop.ifindex = u32(&attributes, NHA_OIF);
	out->hop.weight = 1;
	out->hop.dead = is_dead(head->nh_flags);
	if (attributes.of[NHA_BLACKHOLE] != NULL)
		out->kind = KERNEL_BLACKHOLE;
	if (u16(&attributes, NHA_ENCAP_TYPE) != LWTUNNEL_ENCAP_NONE ||
		attributes.of[NHA_FDB] != NULL)
		out->kind = KERNEL_ONLY;
	if (attributes.of[NHA_GATEWAY] == NULL)
		return 1;
	out->hop.version = version_of(head->nh_family);
	if (out->hop.version == 0 ||
		!copy_address(out->hop.gateway, out->hop.version, attributes.of[NHA_GATEWAY]))
		return -EBADMSG;
	return 1;
}

/* ---------------------------------------------------- rules */

static bool is_usual(const struct message_rule *rule, const struct fib_rule_hdr *head,
	const struct attributes *attributes)
{
	static const unsigned selectors[] = {FRA_DST, FRA_SRC, FRA_IIFNAME, FRA_OIFNAME, FRA_FWMARK,
		FRA_FLOW, FRA_TUN_ID, FRA_UID_RANGE, FRA_IP_PROTO, FRA_SPORT_RANGE,
		FRA_DPORT_RANGE};

	for (unsigned i = 0; i < RTE_DIM(selectors); i++)
		if (attributes->of[selectors[i]] != NULL)
			return false;
	if (head->tos != 0 || head->action != FR_ACT_TO_TBL || (head->flags & FIB_RULE_INVERT))
		return false;
	if (has(attributes, FRA_L3MDEV, 1) && mnl_attr_get_u8(attributes->of[FRA_L3MDEV]) != 0)
		return true;
	return (rule->priority == 0 && rule->table == RT_TABLE_LOCAL) ||
	       (rule->priority == 32766 && rule->table == RT_TABLE_MAIN) ||
	       (rule->priority == 32767 && rule->table == RT_TABLE_DEFAULT);
}

static int read_rule(struct message *message, const struct nlmsghdr *header)
{
	struct attributes attributes;
	const struct fib_rule_hdr *head = take_head(&attributes, header, sizeof(*head));
	struct message_rule *rule = &message->rule;

	if (head == NULL)
		return -EBADMSG;
	rule->version = version_of(head->family);
	if (rule->version == 0)
		return 0;
	rule->action = head->action;
	rule->priority = u32(&attributes, FRA_PRIORITY);
	rule->table = has(&attributes, FRA_TABLE, 4) ? u32(&attributes, FRA_TABLE) : head->table;
	rule->sum = rte_jhash(
		mnl_nlmsg_get_payload(header), (uint32_t)mnl_nlmsg_get_payload_len(header), 0);
	rule->usual = is_usual(rule, head, &attributes);
	return 1;
}

static const struct {
	uint16_t made, gone;
	enum message_kind kind;
	int (*read)(struct message *message, const struct nlmsghdr *header);
} kinds[] = {
	{RTM_NEWROUTE, RTM_DELROUTE, MESSAGE_ROUTE, read_route},
	{RTM_NEWNEIGH, RTM_DELNEIGH, MESSAGE_NEIGHBOUR, read_neighbour},
	{RTM_NEWNEXTHOP, RTM_DELNEXTHOP, MESSAGE_NEXT_HOP, read_next_hop},
	{RTM_NEWLINK, RTM_DELLINK, MESSAGE_LINK, read_link},
	{RTM_NEWADDR, RTM_DELADDR, MESSAGE_ADDRESS, read_address},
	{RTM_NEWRULE, RTM_DELRULE, MESSAGE_RULE, read_rule},
};

int message_read(struct message *message, const struct nlmsghdr *header)
{
	for (unsigned i = 0; i < RTE_DIM(kinds); i++) {
		const uint16_t type = header->nlmsg_type;

		if (type != kinds[i].made && type != kinds[i].gone)
			continue;
		/* padding is zero too: what is equal is to be equal byte by byte */
		memset(message, 0, sizeof(*message));
		message->kind = kinds[i].kind;
		message->gone = type == kinds[i].gone;
		return kinds[i].read(message, header);
	}
	return 0;
}
