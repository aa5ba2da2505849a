/* SPDX-License-Identifier: BSD-3-Clause */
#include "flowsim_random.h"

#include <stdio.h>
#include <string.h>

#define ITEM(name) RTE_FLOW_ITEM_TYPE_##name
#define ACTION(name) RTE_FLOW_ACTION_TYPE_##name

uint32_t random_below(struct random_source *random, uint32_t n)
{
	/* splitmix64 */
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static bool one_in(struct random_source *random, uint32_t n)
{
	return random_below(random, n) == 0;
}

/* The frame as it grows. */
struct growing {
	struct random_source *random;
	struct random_frame *frame;
	unsigned level;
};

static void put(struct growing *growing, unsigned value)
{
	if (growing->frame->length < RANDOM_FRAME_BYTES - 64)
		growing->frame->bytes[growing->frame->length++] = (uint8_t)value;
}

static void put_two(struct growing *growing, unsigned value)
{
	put(growing, value >> 8);
	put(growing, value);
}

/* Bytes out of few. */
static void put_some(struct growing *growing, unsigned n)
{
	while (n-- > 0)
		put(growing, one_in(growing->random, 16) ? random_below(growing->random, 256)
							 : random_below(growing->random, 2));
}

static void begin(struct growing *growing, enum rte_flow_item_type type)
{
	struct random_frame *frame = growing->frame;

	if (frame->n < 16)
		frame->header[frame->n++] = (struct random_header){
			.type = type, .level = growing->level, .at = frame->length};
}

static unsigned one_of(struct growing *growing, const uint16_t *values, unsigned n)
{
	return values[random_below(growing->random, n)];
}

#define ONE_OF(growing, ...)                             \
	one_of(growing, (const uint16_t[]){__VA_ARGS__}, \
		sizeof((const uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t))

static void put_link(struct growing *growing);
static void put_ip(struct growing *growing, unsigned type);

static void put_gre(struct growing *growing)
{
	unsigned flags = ONE_OF(growing, 0, 0, 0x20, 0xb0, 0x80, 0x40);
	unsigned type = ONE_OF(growing, 0x6558, 0x0800, 0x86dd, 0x1234);

	begin(growing, ITEM(GRE));
	put(growing, flags);
	put(growing, one_in(growing->random, 12));
	put_two(growing, type);
	if (flags & 0x80)
		put_some(growing, 4);
	if (flags & 0x20) {
		begin(growing, ITEM(GRE_KEY));
		put_some(growing, 4);
	}
	if (flags & 0x10)
		put_some(growing, 4);
	growing->level = 1;
	if (type == 0x6558)
		put_link(growing);
	else
		put_ip(growing, type);
}

static void put_gtpu(struct growing *growing)
{
	unsigned flags = ONE_OF(growing, 0x30, 0x30, 0x34, 0x32, 0x37, 0x20, 0x50);

	begin(growing, ITEM(GTPU));
	put(growing, flags);
	put(growing, one_in(growing->random, 8) ? 1 : 255);
	put_some(growing, 6);
	if (flags & 7) {
		unsigned extensions = flags & 4 ? random_below(growing->random, 6) : 0;

		put_some(growing, 3);
		put(growing, extensions > 0 ? 0x85 : 0);
		for (; extensions > 0; extensions--) {
			unsigned words = ONE_OF(growing, 1, 1, 2, 1, 0);

			put(growing, words);
			put_some(growing, words == 0 ? 0 : 4 * words - 2);
			put(growing, extensions > 1 ? 0x85 : 0);
		}
	}
	growing->level = 1;
	put_ip(growing, ONE_OF(growing, 0x0800, 0x86dd));
}

static void put_udp_tunnel(struct growing *growing, unsigned port)
{
	unsigned type = ONE_OF(growing, 0x6558, 0x0800, 0x86dd, 0x1234);
	unsigned options = random_below(growing->random, 3);

	switch (port) {
	case 4789:
		begin(growing, ITEM(VXLAN));
		put(growing, 8);
		put_some(growing, 7);
		growing->level = 1;
		put_link(growing);
		break;
	case 6081:
		begin(growing, ITEM(GENEVE));
		put(growing, options);
		put(growing, 0);
		put_two(growing, type);
		put_some(growing, 4 + 4 * options);
		growing->level = 1;
		if (type == 0x6558)
			put_link(growing);
		else
			put_ip(growing, type);
		break;
	case 2152:
		put_gtpu(growing);
		break;
	default:
		break;
	}
}

static void put_upper(struct growing *growing, unsigned proto)
{
	unsigned port = growing->level == 0 ? ONE_OF(growing, 53, 80, 4789, 6081, 2152)
					    : ONE_OF(growing, 53, 80, 4789);

	switch (proto) {
	case 6:
		begin(growing, ITEM(TCP));
		put_two(growing, 1024 + random_below(growing->random, 2));
		put_two(growing, ONE_OF(growing, 80, 443));
		put_some(growing, 8);
		put(growing, 0x50);
		put(growing, ONE_OF(growing, 2, 0x10, 0x11));
		put_some(growing, 6);
		break;
	case 17:
		begin(growing, ITEM(UDP));
		put_two(growing, 1024 + random_below(growing->random, 2));
		put_two(growing, port);
		put_some(growing, 4);
		put_udp_tunnel(growing, port);
		break;
	case 132:
		begin(growing, ITEM(SCTP));
		put_some(growing, 12);
		break;
	case 1:
		begin(growing, ITEM(ICMP));
		put_some(growing, 8);
		break;
	case 58:
		begin(growing, ITEM(ICMP6));
		put_some(growing, 8);
		break;
	case 47:
		if (growing->level == 0)
			put_gre(growing);
		break;
	default:
		put_some(growing, 12);
		break;
	}
}

static void put_ipv6(struct growing *growing)
{
	static const uint8_t known[] = {0, 43, 44, 51, 60, 135, 139, 140, 44, 50};
	unsigned n = one_in(growing->random, 40) ? 9 : ONE_OF(growing, 0, 0, 0, 1, 1, 2, 3);
	unsigned proto = ONE_OF(growing, 6, 17, 17, 132, 58, 47, 1, 99);
	uint8_t kinds[9];

	for (unsigned i = 0; i < n; i++)
		kinds[i] = known[random_below(growing->random, 9 + one_in(growing->random, 8))];
	begin(growing, ITEM(IPV6));
	put(growing, 0x60 | random_below(growing->random, 2));
	put_some(growing, 5);
	put(growing, n > 0 ? kinds[0] : proto);
	put(growing, ONE_OF(growing, 1, 64));
	put_some(growing, 32);
	for (unsigned i = 0; i < n; i++) {
		unsigned words = kinds[i] == 44 ? 0 : random_below(growing->random, 2);

		if (kinds[i] == 44)
			begin(growing, ITEM(IPV6_FRAG_EXT));
		put(growing, i + 1 < n ? kinds[i + 1] : proto);
		/* the authentication header counts words of four bytes, less two */
		put(growing, kinds[i] == 51 ? 2 * words : words);
		put_two(growing, kinds[i] == 44 && one_in(growing->random, 3) ? 0x88 : 1);
		put_some(growing, 4 + 8 * words);
	}
	put_upper(growing, proto);
}

static void put_ipv4(struct growing *growing)
{
	unsigned words = ONE_OF(growing, 5, 5, 5, 5, 6, 4);
	unsigned proto = ONE_OF(growing, 6, 17, 17, 132, 1, 47, 58, 99);

	begin(growing, ITEM(IPV4));
	put(growing, 0x40 | words);
	put_some(growing, 5);
	put_two(growing, ONE_OF(growing, 0, 0, 0, 0x4000, 0x2000, 0x20, 0x1fff));
	put(growing, ONE_OF(growing, 1, 64));
	put(growing, proto);
	put_some(growing, 2);
	for (unsigned i = 0; i < 2; i++) {
		put(growing, 10);
		put_some(growing, 3);
	}
	if (words > 5)
		put_some(growing, 4);
	put_upper(growing, proto);
}

static void put_ip(struct growing *growing, unsigned type)
{
	if (type == 0x0800)
		put_ipv4(growing);
	else if (type == 0x86dd)
		put_ipv6(growing);
	else
		put_some(growing, 20);
}

static void put_link(struct growing *growing)
{
	unsigned tags = ONE_OF(growing, 0, 0, 0, 0, 1, 1, 2, 3);
	unsigned type = ONE_OF(growing, 0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x86dd, 0x0806);

	begin(growing, ITEM(ETH));
	put_some(growing, 12);
	for (unsigned i = 0; i < tags; i++) {
		put_two(growing, ONE_OF(growing, 0x8100, 0x88a8, 0x9100, 0x9200));
		begin(growing, ITEM(VLAN));
		put_two(growing, random_below(growing->random, 3));
	}
	put_two(growing, type);
	put_ip(growing, type);
}

void random_frame(struct random_source *random, struct random_frame *frame, uint32_t number)
{
	struct growing growing = {.random = random, .frame = frame};

	frame->length = 0;
	frame->n = 0;
	put_link(&growing);
	put_some(&growing, random_below(random, 8));
	if (one_in(random, 6))
		frame->length = random_below(random, frame->length + 1);
	memcpy(frame->bytes + frame->length, &number, sizeof(number));
	frame->length += sizeof(number);
}

/* Bytes of the header that an item compares, and of its structure. */
static unsigned header_bytes(enum rte_flow_item_type type)
{
	switch ((int)type) {
	case ITEM(ETH):
		return 14;
	case ITEM(VLAN):
	case ITEM(GRE):
	case ITEM(GRE_KEY):
	case ITEM(ICMP6):
		return 4;
	case ITEM(IPV4):
	case ITEM(TCP):
		return 20;
	case ITEM(IPV6):
		return 40;
	case ITEM(SCTP):
		return 12;
	default:
		return 8;
	}
}

static void fill_mask(struct random_source *random, uint8_t *mask, unsigned size)
{
	unsigned kind = random_below(random, 5);

	for (unsigned i = 0; i < size; i++) {
		if (kind == 0)
			mask[i] = 0xff;
		else if (kind == 1)
			mask[i] = (uint8_t)(one_in(random, 4) ? 0xff : 0);
		else if (kind == 2)
			mask[i] = (uint8_t)(one_in(random, 4) ? random_below(random, 256) : 0);
		else if (kind == 3)
			mask[i] = (uint8_t)(i + 4 >= size ? 0xff : 0);
	}
}

/* The bits beside the header: has_vlan, has_more_vlan, has_..._ext. */
static void fill_bits(
	struct random_source *random, enum rte_flow_item_type type, uint8_t *spec, uint8_t *mask)
{
	unsigned at = type == ITEM(ETH)	   ? (unsigned)sizeof(struct rte_ether_hdr)
		      : type == ITEM(VLAN) ? (unsigned)sizeof(struct rte_vlan_hdr)
		      : type == ITEM(IPV6) ? (unsigned)sizeof(struct rte_ipv6_hdr)
					   : 0;

	if (at == 0 || !one_in(random, 4))
		return;
	spec[at] = (uint8_t)random_below(random, 256);
	mask[at] = (uint8_t)(type == ITEM(IPV6) ? 1u << random_below(random, 8) : 1u);
	if (type != ITEM(IPV6))
		spec[at] &= 1;
}

static void fill_item(struct random_source *random, struct random_rule *rule, unsigned i,
	const struct random_frame *frame, const struct random_header *header)
{
	struct rte_flow_item *item = &rule->items[i];
	unsigned size = header_bytes(header->type);
	uint8_t *spec = rule->spec[i], *mask = rule->mask[i], *last = rule->last[i];

	*item = (struct rte_flow_item){.type = header->type};
	if (one_in(random, 3))
		return;
	if (header->at + size <= sizeof(frame->bytes))
		memcpy(spec, frame->bytes + header->at, size);
	if (one_in(random, 8))
		spec[random_below(random, size)] ^= (uint8_t)(1u << random_below(random, 8));
	item->spec = spec;
	if (one_in(random, 4))
		return;
	fill_mask(random, mask, size);
	fill_bits(random, header->type, spec, mask);
	item->mask = mask;
	if (!one_in(random, 5))
		return;
	/* a range of one or two bytes: from a little below to above; often refused, often not */
	unsigned at = random_below(random, size);

	last[at] = 0xff;
	spec[at] &= (uint8_t)random_below(random, 256);
	item->last = last;
}

static void fill_items(
	struct random_source *random, struct random_rule *rule, const struct random_frame *frame)
{
	unsigned n = 0;

	if (rule->attr.transfer && one_in(random, 2)) {
		struct rte_flow_item_ethdev *spec = (void *)rule->spec[n];

		spec->port_id = one_in(random, 8) ? random->other : random->own;
		rule->items[n++] = (struct rte_flow_item){.type = ITEM(REPRESENTED_PORT),
			.spec = spec,
			.mask = &rte_flow_item_ethdev_mask};
	}
	/* some layers left out, but seldom the last: what says little matches all and hides the rest */
	unsigned last = one_in(random, 5) ? random_below(random, frame->n) : frame->n - 1;

	for (unsigned i = 0; i <= last && n < RANDOM_MAX_ITEMS - 2; i++) {
		if (one_in(random, i == last ? 10 : 3))
			continue;
		if (one_in(random, 12))
			rule->items[n++] = (struct rte_flow_item){
				.type = one_in(random, 2) ? ITEM(VOID) : ITEM(ANY)};
		fill_item(random, rule, n++, frame, &frame->header[i]);
	}
	rule->items[n] = (struct rte_flow_item){.type = ITEM(END)};
}

static void fill_actions(struct random_source *random, struct random_rule *rule)
{
	struct rte_flow_action *action = rule->actions;
	bool transfer = rule->attr.transfer;

	rule->mark.id = random_below(random, 1000);
	rule->queue.index = (uint16_t)random_below(random, 2);
	rule->jump.group = rule->attr.group + 1 + random_below(random, 2);
	rule->port.port_id = random->other;
	if (!transfer && one_in(random, 2))
		*action++ = (struct rte_flow_action){ACTION(MARK), &rule->mark};
	if (!transfer && one_in(random, 6))
		*action++ = (struct rte_flow_action){ACTION(FLAG), NULL};
	if (one_in(random, 3))
		*action++ = (struct rte_flow_action){ACTION(COUNT), NULL};
	switch (random_below(random, 6)) {
	case 0:
		*action++ = (struct rte_flow_action){ACTION(DROP), NULL};
		break;
	case 1:
		*action++ = (struct rte_flow_action){ACTION(JUMP), &rule->jump};
		break;
	case 2:
		*action++ = (struct rte_flow_action){ACTION(PASSTHRU), NULL};
		break;
	case 3:
	case 4:
		*action++ =
			transfer ? (struct rte_flow_action){ACTION(REPRESENTED_PORT), &rule->port}
				 : (struct rte_flow_action){ACTION(QUEUE), &rule->queue};
		break;
	default:
		if (action == rule->actions)
			*action++ = (struct rte_flow_action){ACTION(PASSTHRU), NULL};
		break;
	}
	*action = (struct rte_flow_action){ACTION(END), NULL};
}

void random_rule(struct random_source *random, struct random_rule *rule,
	const struct random_frame *frames, unsigned n_frames)
{
	memset(rule, 0, sizeof(*rule));
	rule->attr.transfer = one_in(random, 4);
	rule->attr.ingress = !rule->attr.transfer;
	rule->attr.group = random_below(random, 3) == 0 ? random_below(random, 4) : 0;
	rule->attr.priority = random_below(random, 3);
	fill_items(random, rule, &frames[random_below(random, n_frames)]);
	fill_actions(random, rule);
}

static void print_bytes(const char *name, const void *bytes, unsigned n)
{
	fprintf(stderr, " %s ", name);
	for (unsigned i = 0; bytes != NULL && i < n; i++)
		fprintf(stderr, "%02x", ((const uint8_t *)bytes)[i]);
	if (bytes == NULL)
		fprintf(stderr, "-");
}

void random_rule_print(const struct random_rule *rule)
{
	fprintf(stderr, "rule group %u priority %u%s:\n", rule->attr.group, rule->attr.priority,
		rule->attr.transfer ? " transfer" : "");
	for (const struct rte_flow_item *item = rule->items; item->type != ITEM(END); item++) {
		fprintf(stderr, "  item %d", item->type);
		print_bytes("spec", item->spec, header_bytes(item->type) + 4);
		print_bytes("mask", item->mask, header_bytes(item->type) + 4);
		print_bytes("last", item->last, header_bytes(item->type) + 4);
		fprintf(stderr, "\n");
	}
	for (const struct rte_flow_action *action = rule->actions; action->type != ACTION(END);
		action++)
		fprintf(stderr, "  action %d\n", action->type);
}

void random_frame_print(const struct random_frame *frame)
{
	fprintf(stderr, "frame of %u:", frame->length);
	for (unsigned i = 0; i < frame->length; i++)
		fprintf(stderr, "%s%02x", i % 16 == 0 ? "\n  " : " ", frame->bytes[i]);
	fprintf(stderr, "\n");
}
