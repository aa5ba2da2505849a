/* SPDX-License-Identifier: BSD-3-Clause */
#include "flowsim_reference.h"

#include <string.h>

#define ITEM(name) RTE_FLOW_ITEM_TYPE_##name
#define ACTION(name) RTE_FLOW_ACTION_TYPE_##name

#define MAX_HEADERS 32

/* A header of the packet, called by the item that matches it. */
struct header {
	enum rte_flow_item_type type;
	unsigned level; /* 0 outside, 1 within a tunnel */
	const uint8_t *bytes;
	unsigned number;     /* of a tag: 0 or 1 */
	bool tagged;	     /* ETH: a tag follows; VLAN: another does */
	uint32_t extensions; /* IPV6: the item's has_..._ext bits */
};

struct packet {
	const uint8_t *frame;
	uint32_t length;
	struct header header[MAX_HEADERS];
	unsigned n;
};

static unsigned two(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static bool there(const struct packet *packet, uint32_t at, uint32_t size)
{
	return at <= packet->length && size <= packet->length - at;
}

static struct header *add(
	struct packet *packet, enum rte_flow_item_type type, unsigned level, uint32_t at)
{
	struct header *header = &packet->header[packet->n++];

	*header = (struct header){.type = type, .level = level, .bytes = packet->frame + at};
	return header;
}

static void ethernet(struct packet *packet, unsigned level, uint32_t at);
static void ip(struct packet *packet, unsigned level, uint32_t at, unsigned type);

static void gre(struct packet *packet, uint32_t at)
{
	if (!there(packet, at, 4) || (packet->frame[at + 1] & 7) != 0)
		return;

	unsigned flags = packet->frame[at], type = two(packet->frame + at + 2);
	uint32_t next = at + 4;

	add(packet, ITEM(GRE), 0, at);
	if (flags & 0x40)
		return; /* routing: nothing behind it, its key neither */
	if (flags & 0x80)
		next += 4;
	if (flags & 0x20) {
		if (!there(packet, next, 4))
			return;
		add(packet, ITEM(GRE_KEY), 0, next);
		next += 4;
	}
	if (flags & 0x10)
		next += 4;
	if (!there(packet, next, 0))
		return;
	if (type == 0x6558)
		ethernet(packet, 1, next);
	else
		ip(packet, 1, next, type);
}

static void gtpu(struct packet *packet, uint32_t at)
{
	const uint8_t *frame = packet->frame;
	uint32_t next = at + 8;

	if (!there(packet, at, 8) || frame[at] >> 5 != 1 || !(frame[at] & 0x10) ||
		frame[at + 1] != 255)
		return;
	add(packet, ITEM(GTPU), 0, at);
	if (frame[at] & 7) {
		if (!there(packet, next, 4))
			return;
		next += 4;
	}
	if (frame[at] & 4) {
		unsigned type = frame[next - 1];

		for (unsigned i = 0; type != 0; i++) {
			if (i == 4 || !there(packet, next, 1) || frame[next] == 0)
				return;
			uint32_t size = 4u * frame[next];

			if (!there(packet, next, size))
				return;
			next += size;
			type = frame[next - 1];
		}
	}
	if (there(packet, next, 1))
		ip(packet, 1, next, frame[next] >> 4 == 4 ? 0x0800 : 0x86dd);
}

static void udp_tunnel(struct packet *packet, uint32_t at, unsigned port)
{
	const uint8_t *frame = packet->frame;

	if (port == 2152)
		gtpu(packet, at);
	if ((port != 4789 && port != 6081) || !there(packet, at, 8))
		return;
	if (port == 4789) {
		add(packet, ITEM(VXLAN), 0, at);
		ethernet(packet, 1, at + 8);
		return;
	}

	unsigned type = two(frame + at + 2);
	uint32_t next = at + 8 + 4u * (frame[at] & 0x3f);

	add(packet, ITEM(GENEVE), 0, at);
	if (!there(packet, next, 0))
		return;
	if (type == 0x6558)
		ethernet(packet, 1, next);
	else
		ip(packet, 1, next, type);
}

static void upper(
	struct packet *packet, unsigned level, uint32_t at, unsigned proto, unsigned version)
{
	if (proto == 6 && there(packet, at, 20)) {
		add(packet, ITEM(TCP), level, at);
	} else if (proto == 17 && there(packet, at, 8)) {
		add(packet, ITEM(UDP), level, at);
		if (level == 0)
			udp_tunnel(packet, at + 8, two(packet->frame + at + 2));
	} else if (proto == 132 && there(packet, at, 12)) {
		add(packet, ITEM(SCTP), level, at);
	} else if (proto == 1 && version == 4 && there(packet, at, 8)) {
		add(packet, ITEM(ICMP), level, at);
	} else if (proto == 58 && version == 6 && there(packet, at, 8)) {
		add(packet, ITEM(ICMP6), level, at);
	} else if (proto == 47 && level == 0) {
		gre(packet, at);
	}
}

static void ipv4(struct packet *packet, unsigned level, uint32_t at)
{
	if (!there(packet, at, 20) || packet->frame[at] >> 4 != 4 || (packet->frame[at] & 15) < 5)
		return;

	const uint8_t *bytes = packet->frame + at;

	add(packet, ITEM(IPV4), level, at);
	if ((two(bytes + 6) & 0x1fff) == 0)
		upper(packet, level, at + 4u * (bytes[0] & 15), bytes[9], 4);
}

/* Bits in the order of struct rte_flow_item_ipv6, and which are stepped over. */
static const struct extension {
	uint8_t proto, bit;
} extensions[] = {
	{0, 0}, {43, 1}, {44, 2}, {51, 3}, {50, 4}, {60, 5}, {135, 6}, {139, 7}, {140, 8}};

static void ipv6(struct packet *packet, unsigned level, uint32_t at)
{
	if (!there(packet, at, 40) || packet->frame[at] >> 4 != 6)
		return;

	struct header *fixed = add(packet, ITEM(IPV6), level, at);
	unsigned proto = packet->frame[at + 6];
	bool fragment = false;

	at += 40;
	for (unsigned i = 0;; i++) {
		const struct extension *extension = NULL;
		const uint8_t *bytes = packet->frame + at;

		for (unsigned k = 0; k < sizeof(extensions) / sizeof(extensions[0]); k++)
			if (extensions[k].proto == proto)
				extension = &extensions[k];
		if (extension == NULL)
			break;
		if (i == 8 || !there(packet, at, 8))
			return;
		fixed->extensions |= 1u << extension->bit;
		if (proto == 50)
			return;
		if (proto == 44) {
			if (!fragment)
				add(packet, ITEM(IPV6_FRAG_EXT), level, at);
			fragment = true;
			if (two(bytes + 2) >> 3 != 0)
				return;
			at += 8;
		} else {
			at += proto == 51 ? 4u * (bytes[1] + 2u) : 8u * (bytes[1] + 1u);
		}
		proto = bytes[0];
	}
	upper(packet, level, at, proto, 6);
}

static void ip(struct packet *packet, unsigned level, uint32_t at, unsigned type)
{
	if (type == 0x0800)
		ipv4(packet, level, at);
	else if (type == 0x86dd)
		ipv6(packet, level, at);
}

static bool is_tag(unsigned type)
{
	return type == 0x8100 || type == 0x88a8 || type == 0x9100 || type == 0x9200;
}

static void ethernet(struct packet *packet, unsigned level, uint32_t at)
{
	if (!there(packet, at, 14))
		return;

	unsigned type = two(packet->frame + at + 12);
	struct header *before = add(packet, ITEM(ETH), level, at);

	at += 14;
	for (unsigned tags = 0; is_tag(type); tags++) {
		if (tags == 2 || !there(packet, at, 4)) {
			before->tagged = tags == 2;
			return;
		}
		before->tagged = true;
		before = add(packet, ITEM(VLAN), level, at);
		before->number = tags;
		type = two(packet->frame + at + 2);
		at += 4;
	}
	ip(packet, level, at, type);
}

/* Fields of the headers, in bytes, one after the other. */
static const uint8_t *fields_of(enum rte_flow_item_type type, const void **mask)
{
	static const uint8_t eth[] = {6, 6, 2, 0}, vlan[] = {2, 2, 0},
			     v4[] = {1, 1, 2, 2, 2, 1, 1, 2, 4, 4, 0},
			     v6[] = {4, 2, 1, 1, 16, 16, 0}, frag[] = {1, 1, 2, 4, 0},
			     tcp[] = {2, 2, 4, 4, 1, 1, 2, 2, 2, 0}, udp[] = {2, 2, 2, 2, 0},
			     sctp[] = {2, 2, 4, 4, 0}, icmp[] = {1, 1, 2, 2, 2, 0},
			     icmp6[] = {1, 1, 2, 0}, vxlan[] = {1, 3, 3, 1, 0}, gre_[] = {2, 2, 0},
			     key[] = {4, 0}, geneve[] = {2, 2, 3, 1, 0}, gtp[] = {1, 1, 2, 4, 0};
	static const uint32_t all_ones = UINT32_MAX;
	static const struct {
		enum rte_flow_item_type type;
		const uint8_t *fields;
		const void *mask;
	} known[] = {
		{ITEM(ETH), eth, &rte_flow_item_eth_mask},
		{ITEM(VLAN), vlan, &rte_flow_item_vlan_mask},
		{ITEM(IPV4), v4, &rte_flow_item_ipv4_mask},
		{ITEM(IPV6), v6, &rte_flow_item_ipv6_mask},
		{ITEM(IPV6_FRAG_EXT), frag, NULL},
		{ITEM(TCP), tcp, &rte_flow_item_tcp_mask},
		{ITEM(UDP), udp, &rte_flow_item_udp_mask},
		{ITEM(SCTP), sctp, &rte_flow_item_sctp_mask},
		{ITEM(ICMP), icmp, &rte_flow_item_icmp_mask},
		{ITEM(ICMP6), icmp6, &rte_flow_item_icmp6_mask},
		{ITEM(VXLAN), vxlan, &rte_flow_item_vxlan_mask},
		{ITEM(GRE), gre_, &rte_flow_item_gre_mask},
		{ITEM(GRE_KEY), key, &all_ones},
		{ITEM(GENEVE), geneve, &rte_flow_item_geneve_mask},
		{ITEM(GTPU), gtp, &rte_flow_item_gtp_mask},
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].type == type) {
			*mask = known[i].mask;
			return known[i].fields;
		}
	}
	return NULL;
}

/* Up to 8 bytes under a mask as a number. */
static uint64_t number(const uint8_t *bytes, const uint8_t *mask, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value = value << 8 | (bytes[i] & mask[i]);
	return value;
}

static bool field_matches(const uint8_t *bytes, const uint8_t *spec, const uint8_t *mask,
	const uint8_t *last, unsigned size)
{
	if (last != NULL && size <= 8) {
		uint64_t low = number(spec, mask, size), high = number(last, mask, size);
		uint64_t value = number(bytes, mask, size);

		if (high != 0 && high != low)
			return low <= value && value <= high;
	}
	for (unsigned i = 0; i < size; i++)
		if ((bytes[i] & mask[i]) != (spec[i] & mask[i]))
			return false;
	return true;
}

/* The bits of the items' structures that are no bytes of the header. */
static bool bits_match(const struct rte_flow_item *item, const struct header *header)
{
	if (item->type == ITEM(ETH) && item->mask != NULL) {
		const struct rte_flow_item_eth *spec = item->spec, *mask = item->mask;

		return !mask->has_vlan || spec->has_vlan == header->tagged;
	}
	if (item->type == ITEM(VLAN) && item->mask != NULL) {
		const struct rte_flow_item_vlan *spec = item->spec, *mask = item->mask;

		return !mask->has_more_vlan || spec->has_more_vlan == header->tagged;
	}
	if (item->type == ITEM(IPV6) && item->mask != NULL) {
		uint32_t spec, mask, first = 0x1ff;

		/* nine bits in a row behind the header */
		memcpy(&spec, (const uint8_t *)item->spec + sizeof(struct rte_ipv6_hdr), 4);
		memcpy(&mask, (const uint8_t *)item->mask + sizeof(struct rte_ipv6_hdr), 4);
		return ((spec ^ header->extensions) & mask & first) == 0;
	}
	return true;
}

static bool header_matches(const struct rte_flow_item *item, const struct header *header)
{
	enum rte_flow_item_type type = header->type;
	const void *mask = NULL;
	const uint8_t *fields = fields_of(type, &mask);
	unsigned at = 0;

	if (item->spec == NULL)
		return true;
	if (item->mask != NULL)
		mask = item->mask;
	if (mask == NULL)
		return true;
	for (; *fields != 0; at += *fields++) {
		const uint8_t *spec = item->spec, *m = mask, *last = item->last;

		if (!field_matches(header->bytes + at, spec + at, m + at,
			    last == NULL ? NULL : last + at, *fields))
			return false;
	}
	return bits_match(item, header);
}

static bool is_tunnel(enum rte_flow_item_type type)
{
	return type == ITEM(VXLAN) || type == ITEM(GRE) || type == ITEM(GRE_KEY) ||
	       type == ITEM(GENEVE) || type == ITEM(GTPU);
}

static bool port_item(const struct rte_flow_item *item, uint16_t *port)
{
	if (item->type == ITEM(REPRESENTED_PORT) || item->type == ITEM(PORT_REPRESENTOR)) {
		*port = ((const struct rte_flow_item_ethdev *)item->spec)->port_id;
		return true;
	}
	if (item->type == ITEM(PORT_ID)) {
		*port = (uint16_t)((const struct rte_flow_item_port_id *)item->spec)->id;
		return true;
	}
	return false;
}

static const struct header *find(
	const struct packet *packet, enum rte_flow_item_type type, unsigned level, unsigned tag)
{
	for (unsigned i = 0; i < packet->n; i++) {
		const struct header *header = &packet->header[i];

		if (header->type == type && header->level == level && header->number == tag)
			return header;
	}
	return NULL;
}

static bool items_match(
	const struct rte_flow_item *items, uint16_t own, const struct packet *packet, uint16_t port)
{
	unsigned level = 0, tags = 0;
	uint16_t wanted = own;

	for (const struct rte_flow_item *item = items; item->type != ITEM(END); item++) {
		enum rte_flow_item_type type = item->type == ITEM(GTP) ? ITEM(GTPU) : item->type;

		if (type == ITEM(VOID) || type == ITEM(ANY) || port_item(item, &wanted))
			continue;
		if (!is_tunnel(type) && level == 1)
			level = 2;

		const struct header *header =
			find(packet, type, level == 2, type == ITEM(VLAN) ? tags : 0);

		if (header == NULL || !header_matches(item, header))
			return false;
		tags += type == ITEM(VLAN);
		if (is_tunnel(type)) {
			level = 1;
			tags = 0;
		}
	}
	return wanted == port;
}

static void parse(struct packet *packet, const uint8_t *frame, uint32_t length)
{
	packet->frame = frame;
	packet->length = length;
	packet->n = 0;
	ethernet(packet, 0, 0);
}

bool reference_items(const struct rte_flow_item *items, uint16_t own, const uint8_t *frame,
	uint32_t length, uint16_t port)
{
	struct packet packet;

	parse(&packet, frame, length);
	return items_match(items, own, &packet, port);
}

/* What comes after a rule in its group: a worse priority, or the same and made later. */
static bool comes_after(const struct reference_rule *rules, unsigned a, unsigned b)
{
	uint32_t of_a = rules[a].attr.priority, of_b = rules[b].attr.priority;

	return of_a != of_b ? of_a > of_b : a > b;
}

struct search {
	const struct reference_rule *rules;
	unsigned n;
	const struct packet *packet;
	uint16_t port;
	bool transfer;
};

/* The best rule of a group that matches and comes after `after` (n: any); n when there is none. */
static unsigned best(const struct search *search, uint32_t group, unsigned after)
{
	const struct reference_rule *rules = search->rules;
	unsigned found = search->n;

	for (unsigned i = 0; i < search->n; i++) {
		if (rules[i].attr.group != group || rules[i].attr.transfer != search->transfer ||
			(!search->transfer && !rules[i].attr.ingress))
			continue;
		if (after != search->n && !comes_after(rules, i, after))
			continue;
		if (found != search->n && comes_after(rules, i, found))
			continue;
		if (items_match(rules[i].items, rules[i].created_on, search->packet, search->port))
			found = i;
	}
	return found;
}

/* Takes a rule. Returns whether the search goes on, and where: a group, after a rule. */
static bool take(const struct search *search, struct reference_verdict *verdict, unsigned rule,
	uint32_t *group, unsigned *after)
{
	bool goes_on = false;

	verdict->rule[verdict->n++] = rule;
	*after = search->n;
	for (const struct rte_flow_action *action = search->rules[rule].actions;
		action->type != ACTION(END); action++) {
		if (action->type == ACTION(MARK)) {
			verdict->mark = true;
			verdict->mark_id = ((const struct rte_flow_action_mark *)action->conf)->id;
		} else if (action->type == ACTION(FLAG)) {
			verdict->flag = true;
		} else if (action->type == ACTION(QUEUE)) {
			verdict->fate = ACTION(QUEUE);
			verdict->queue =
				((const struct rte_flow_action_queue *)action->conf)->index;
		} else if (action->type == ACTION(DROP)) {
			verdict->fate = ACTION(DROP);
		} else if (action->type == ACTION(REPRESENTED_PORT) ||
			   action->type == ACTION(PORT_REPRESENTOR)) {
			verdict->fate = action->type;
			verdict->port =
				((const struct rte_flow_action_ethdev *)action->conf)->port_id;
		} else if (action->type == ACTION(JUMP)) {
			*group = ((const struct rte_flow_action_jump *)action->conf)->group;
			goes_on = true;
		} else if (action->type == ACTION(PASSTHRU)) {
			*after = rule;
			goes_on = true;
		}
	}
	return goes_on;
}

static void walk(const struct search *search, struct reference_verdict *verdict)
{
	unsigned after = search->n;
	uint32_t group = 0;
	bool goes_on = true;

	while (goes_on && verdict->n < REFERENCE_CHAIN) {
		unsigned rule = best(search, group, after);

		if (rule == search->n)
			return;
		goes_on = take(search, verdict, rule, &group, &after);
	}
}

void reference_match(struct reference_verdict *verdict, const struct reference_rule *rules,
	unsigned n, const uint8_t *frame, uint32_t length, uint16_t port)
{
	struct packet packet;
	struct search search = {
		.rules = rules, .n = n, .packet = &packet, .port = port, .transfer = true};

	*verdict = (struct reference_verdict){.fate = ACTION(END)};
	parse(&packet, frame, length);
	walk(&search, verdict);
	if (verdict->fate == ACTION(DROP) || verdict->fate == ACTION(REPRESENTED_PORT) ||
		verdict->fate == ACTION(PORT_REPRESENTOR))
		return;
	search.transfer = false;
	walk(&search, verdict);
}
