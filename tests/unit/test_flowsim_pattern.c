/* SPDX-License-Identifier: BSD-3-Clause */

/* What the items of a rule mean to the simulated NIC, and which of them it refuses. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_common.h>

#include "drivers/flowsim/match/pattern.h"

#define T(name) RTE_FLOW_ITEM_TYPE_##name
#define AT(member) offsetof(struct sim_level, member)
#define TUNNEL offsetof(struct sim_view, tunnel)
#define MAX_SPEC 64

/* The items of match/pattern.h, each with its header's bytes, where they are, the default mask. */
static const struct header {
	enum rte_flow_item_type type;
	size_t size, at;
	uint32_t layer;
	const void *mask; /* NULL: none */
} headers[] = {
	{T(ETH), 14, AT(eth), SIM_ETH, &rte_flow_item_eth_mask},
	{T(VLAN), 4, AT(vlan), SIM_VLAN, &rte_flow_item_vlan_mask},
	{T(IPV4), 20, AT(ip), SIM_IPV4, &rte_flow_item_ipv4_mask},
	{T(IPV6), 40, AT(ip), SIM_IPV6, &rte_flow_item_ipv6_mask},
	{T(IPV6_FRAG_EXT), 8, AT(ipv6_frag), SIM_IPV6_FRAG, NULL},
	{T(TCP), 20, AT(l4), SIM_TCP, &rte_flow_item_tcp_mask},
	{T(UDP), 8, AT(l4), SIM_UDP, &rte_flow_item_udp_mask},
	{T(SCTP), 12, AT(l4), SIM_SCTP, &rte_flow_item_sctp_mask},
	{T(ICMP), 8, AT(l4), SIM_ICMP, &rte_flow_item_icmp_mask},
	{T(ICMP6), 4, AT(l4), SIM_ICMP6, &rte_flow_item_icmp6_mask},
	{T(VXLAN), 8, TUNNEL, SIM_VXLAN, &rte_flow_item_vxlan_mask},
	{T(GENEVE), 8, TUNNEL, SIM_GENEVE, &rte_flow_item_geneve_mask},
	{T(GTPU), 8, TUNNEL, SIM_GTPU, &rte_flow_item_gtp_mask},
	{T(GTP), 8, TUNNEL, SIM_GTPU, &rte_flow_item_gtp_mask},
	{T(GRE), 4, TUNNEL, SIM_GRE, &rte_flow_item_gre_mask},
	{T(GRE_KEY), 4, TUNNEL + 4, SIM_GRE_KEY, "\xff\xff\xff\xff"},
};

static struct sim_fault_at fault;

static int parse(struct sim_pattern *pattern, const struct rte_flow_item items[])
{
	memset(pattern, 0xa5, sizeof(*pattern));
	fault = (struct sim_fault_at){0};
	return sim_pattern_parse(pattern, items, &fault);
}

static struct sim_pattern good(const struct rte_flow_item items[])
{
	struct sim_pattern pattern;
	int ret = parse(&pattern, items);

	if (ret < 0)
		print_error("%s\n", fault.message);
	assert_int_equal(ret, 0);
	return pattern;
}

static bool match(const struct sim_pattern *pattern, const struct sim_view *view)
{
	return sim_pattern_match(pattern, 0, view);
}

/* An item with a type, and one behind a tunnel. */
struct list {
	struct rte_flow_item items[4];
	struct rte_flow_item *item;
};

static void make_list(struct list *list, const struct rte_flow_item *before, unsigned n_before,
	const struct rte_flow_item *item)
{
	memset(list, 0, sizeof(*list));
	for (unsigned i = 0; i < n_before; i++)
		list->items[i] = before[i];
	list->item = &list->items[n_before];
	*list->item = *item;
}

static unsigned bit_of(const void *bytes, unsigned bit)
{
	return ((const uint8_t *)bytes)[bit / 8] >> bit % 8 & 1;
}

static void flip(void *bytes, size_t at, unsigned bit)
{
	((uint8_t *)bytes)[at + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* Bit by bit: what is under the mask has to be the same, what is not may be anything. */
static void check_bits(const struct header *header, size_t at, uint32_t layers,
	const struct rte_flow_item *before, unsigned n_before)
{
	uint8_t spec[MAX_SPEC] = {0}, mask[MAX_SPEC] = {0};
	struct sim_view view = {.layers = layers, .port = 0};
	struct list list;
	struct sim_pattern pattern;

	for (size_t i = 0; i < header->size; i++) {
		spec[i] = (uint8_t)(0x5a + 31 * i);
		mask[i] = (uint8_t)(0x93 + 57 * i);
	}
	memcpy((uint8_t *)&view + at, spec, header->size);
	for (int own = 0; own <= 1; own++) {
		const void *bits = own ? mask : header->mask;

		make_list(&list, before, n_before,
			&(struct rte_flow_item){
				.type = header->type, .spec = spec, .mask = own ? mask : NULL});
		pattern = good(list.items);
		assert_true(match(&pattern, &view));
		for (unsigned bit = 0; bit < header->size * 8; bit++) {
			bool compared = bits != NULL && bit_of(bits, bit);

			flip(&view, at, bit);
			assert_int_equal(match(&pattern, &view), !compared);
			flip(&view, at, bit);
			assert_int_equal(
				pattern.input[(at + bit / 8) / 8] >> (at + bit / 8) % 8 & 1,
				bits != NULL && ((const uint8_t *)bits)[bit / 8] != 0);
		}
		for (unsigned layer = 0; layer < 32; layer++) {
			view.layers ^= 1u << layer;
			assert_int_equal(match(&pattern, &view), !(pattern.layers >> layer & 1));
			view.layers ^= 1u << layer;
		}
	}
}

static void each_item(void **state)
{
	const struct rte_flow_item vxlan = {.type = T(VXLAN)};
	const struct rte_flow_item ipv6 = {.type = T(IPV6)};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(headers); i++) {
		const struct header *header = &headers[i];
		bool inner = header->layer < SIM_VXLAN;

		check_bits(header, header->at, header->layer, NULL, 0);
		if (inner)
			check_bits(header, header->at + sizeof(struct sim_level),
				header->layer << SIM_INNER | SIM_VXLAN, &vxlan, 1);
		if (header->type == T(TCP))
			check_bits(header, header->at, SIM_IPV6 | header->layer, &ipv6, 1);
	}
}

/* No spec: such a header is there. Its item is noted, and nothing else. */
static void only_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(headers); i++) {
		struct rte_flow_item items[] = {
			{.type = T(VOID)}, {.type = headers[i].type}, {.type = T(ANY)}, {0}};
		struct sim_pattern pattern = good(items);
		struct sim_view view = {.layers = headers[i].layer};

		assert_int_equal(pattern.layers, headers[i].layer);
		assert_int_equal(pattern.n_words, 0);
		assert_int_equal(pattern.n_ranges, 0);
		assert_true(pattern.items == (1ULL << headers[i].type | 1ULL << T(ANY)));
		assert_int_equal(pattern.port, SIM_NO_PORT);
		assert_true(match(&pattern, &view));
		memset(&view, 0xff, offsetof(struct sim_view, layers));
		assert_true(match(&pattern, &view));
		view.layers = ~headers[i].layer;
		assert_false(match(&pattern, &view));
	}
}

static void empty(void **state)
{
	struct rte_flow_item items[] = {{.type = T(VOID), .mask = items}, {0}};
	struct sim_pattern pattern = good(items);
	struct sim_view view = {0};

	(void)state;
	assert_true(match(&pattern, &view));
	pattern = good(items + 1);
	assert_true(match(&pattern, &view));
}

static void two_tags(void **state)
{
	struct rte_flow_item_vlan outer = {.hdr.vlan_tci = RTE_BE16(7), .has_more_vlan = 1};
	struct rte_flow_item_vlan inner = {.hdr.vlan_tci = RTE_BE16(8)};
	struct rte_flow_item_vlan more = {.hdr.vlan_tci = RTE_BE16(0xffff), .has_more_vlan = 1};
	struct rte_flow_item items[] = {{.type = T(VLAN), .spec = &outer, .mask = &more},
		{.type = T(VLAN), .spec = &inner, .mask = &more}, {0}};
	struct sim_view view = {.layers = SIM_VLAN | SIM_VLAN_MORE};
	struct sim_pattern pattern = good(items);

	(void)state;
	view.level[0].vlan[0][1] = 7;
	view.level[0].vlan[1][1] = 8;
	view.level[0].has_more = 1;
	assert_true(match(&pattern, &view));
	view.level[0].has_more = 3;
	assert_false(match(&pattern, &view));
	inner.has_more_vlan = 1;
	pattern = good(items);
	assert_true(match(&pattern, &view));
	view.level[0].has_more = 2;
	assert_false(match(&pattern, &view));
	view.level[0].has_more = 3;
	view.level[0].vlan[1][1] = 7;
	assert_false(match(&pattern, &view));
	view.level[0].vlan[1][1] = 8;
	view.layers = SIM_VLAN;
	assert_false(match(&pattern, &view));
}

static void bits_behind_headers(void **state)
{
	struct rte_flow_item_eth eth = {.has_vlan = 1}, eth_mask = {.has_vlan = 1};
	struct rte_flow_item_ipv6 ipv6 = {.has_frag_ext = 1},
				  ipv6_mask = {
					  .has_hop_ext = 1, .has_frag_ext = 1, .has_shim6_ext = 1};
	struct rte_flow_item items[] = {{.type = T(ETH), .spec = &eth, .mask = &eth_mask},
		{.type = T(IPV6), .spec = &ipv6, .mask = &ipv6_mask}, {0}};
	struct sim_view view = {.layers = SIM_ETH | SIM_IPV6};
	struct sim_pattern pattern = good(items);

	(void)state;
	assert_false(match(&pattern, &view));
	view.level[0].has_vlan = 1;
	view.level[0].ipv6_has[0] = 0xfe;
	view.level[0].ipv6_has[1] = 0x02;
	assert_true(match(&pattern, &view));
	view.level[0].ipv6_has[1] = 0x01;
	assert_false(match(&pattern, &view));
	view.level[0].ipv6_has[1] = 0;
	view.level[0].ipv6_has[0] = 0xff;
	assert_false(match(&pattern, &view));
	view.level[0].ipv6_has[0] = 0x04;
	view.level[0].has_vlan = 0;
	assert_false(match(&pattern, &view));
	eth.has_vlan = 0;
	pattern = good(items);
	assert_true(match(&pattern, &view));
}

/* A port between two numbers, under a mask; other fields of the header as without. */
static void range_of_ports(void **state)
{
	static const uint16_t masks[] = {0xffff, 0xff00, 0x0ff0, 0x8001};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(masks); i++) {
		struct rte_flow_item_udp spec = {
			.hdr.src_port = RTE_BE16(53), .hdr.dst_port = RTE_BE16(0x1234)};
		struct rte_flow_item_udp last = {
			.hdr.src_port = RTE_BE16(0), .hdr.dst_port = RTE_BE16(0xa234)};
		struct rte_flow_item_udp mask = {.hdr.src_port = RTE_BE16(0xffff),
			.hdr.dst_port = rte_cpu_to_be_16(masks[i])};
		struct rte_flow_item items[] = {
			{.type = T(UDP), .spec = &spec, .last = &last, .mask = &mask}, {0}};
		struct sim_pattern pattern = good(items);
		struct sim_view view = {.layers = SIM_UDP};

		view.level[0].l4[1] = 53;
		for (unsigned port = 0; port < 65536; port++) {
			view.level[0].l4[2] = (uint8_t)(port >> 8);
			view.level[0].l4[3] = (uint8_t)port;
			assert_int_equal(match(&pattern, &view),
				(port & masks[i]) >= (0x1234u & masks[i]) &&
					(port & masks[i]) <= (0xa234u & masks[i]));
		}
		view.level[0].l4[2] = 0x50;
		view.level[0].l4[0] = 1;
		assert_false(match(&pattern, &view));
	}
}

/* last that is 0 or the spec is none, whatever is outside of the mask. */
static void no_ranges(void **state)
{
	struct rte_flow_item_tcp spec = {.hdr = {.src_port = RTE_BE16(80), .tcp_flags = 0x12}};
	struct rte_flow_item_tcp last = {
		.hdr = {.src_port = RTE_BE16(80), .dst_port = RTE_BE16(999), .tcp_flags = 0xe0}};
	struct rte_flow_item_tcp mask = {.hdr = {.src_port = RTE_BE16(0xffff), .tcp_flags = 0x1f}};
	struct rte_flow_item items[] = {
		{.type = T(TCP), .spec = &spec, .last = &last, .mask = &mask}, {0}};
	struct sim_pattern pattern = good(items);

	(void)state;
	assert_int_equal(pattern.n_ranges, 0);
	assert_int_equal(pattern.n_words, 2);
}

/* The longest field that has one, the shortest, and a third of three bytes, inside. */
static void ranges_by_size(void **state)
{
	struct rte_flow_item_eth eth = {.hdr.src_addr.addr_bytes = {1, 2, 3, 4, 5, 6}};
	struct rte_flow_item_eth eth_last = {.hdr.src_addr.addr_bytes = {1, 2, 3, 4, 6, 0}};
	struct rte_flow_item_ipv4 ip = {.hdr.time_to_live = 3}, ip_last = {.hdr.time_to_live = 9},
				  ip_mask = {.hdr.time_to_live = 0xff};
	uint8_t vni[8] = {8, 0, 0, 0, 0, 1, 0, 0}, vni_last[8] = {0, 0, 0, 0, 1, 0, 0, 0};
	struct rte_flow_item items[] = {{.type = T(VXLAN), .spec = vni, .last = vni_last},
		{.type = T(ETH), .spec = &eth, .last = &eth_last},
		{.type = T(IPV4), .spec = &ip, .last = &ip_last, .mask = &ip_mask}, {0}};
	struct sim_view view = {.layers = SIM_VXLAN | (uint32_t)(SIM_ETH | SIM_IPV4) << SIM_INNER};
	struct sim_pattern pattern = good(items);

	(void)state;
	assert_int_equal(pattern.n_ranges, 3);
	memcpy(view.level[1].eth + 6, "\1\2\3\4\5\xff", 6);
	view.level[1].ip[8] = 9;
	memcpy(view.tunnel + 4, "\0\1\0", 3);
	assert_true(match(&pattern, &view));
	view.level[1].ip[8] = 10;
	assert_false(match(&pattern, &view));
	view.level[1].ip[8] = 2;
	assert_false(match(&pattern, &view));
	view.level[1].ip[8] = 3;
	view.level[1].eth[11] = 5;
	assert_false(match(&pattern, &view));
	view.level[1].eth[11] = 6;
	view.tunnel[4] = 1;
	assert_false(match(&pattern, &view));
	view.tunnel[5] = 0;
	assert_true(match(&pattern, &view));
}

struct refusal {
	int code;
	enum rte_flow_error_type type;
	unsigned item; /* at fault */
	struct rte_flow_item items[8];
};

#define SPEC RTE_FLOW_ERROR_TYPE_ITEM_SPEC
#define LAST RTE_FLOW_ERROR_TYPE_ITEM_LAST
#define MASK RTE_FLOW_ERROR_TYPE_ITEM_MASK
#define ITEM RTE_FLOW_ERROR_TYPE_ITEM

static const uint8_t zeros[MAX_SPEC], ones[MAX_SPEC] = {[0 ... MAX_SPEC - 1] = 0xff},
				      threes[MAX_SPEC] = {[0 ... MAX_SPEC - 1] = 3};

#define ETHDEV_MASK(n) (&(const struct rte_flow_item_ethdev){n})

static const struct refusal refusals[] = {
	{-ENOTSUP, ITEM, 0, {{.type = T(INVERT)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(ETH)}, {.type = T(RAW), .spec = zeros}}},
	{-ENOTSUP, ITEM, 0, {{.type = T(MPLS)}}},
	{-ENOTSUP, ITEM, 0, {{.type = T(GTPC)}}},
	{-ENOTSUP, ITEM, 0, {{.type = T(CONNTRACK)}}},
	{-ENOTSUP, ITEM, 0, {{.type = (enum rte_flow_item_type)63}}},
	{-ENOTSUP, ITEM, 0, {{.type = (enum rte_flow_item_type)64}}},
	{-ENOTSUP, ITEM, 0, {{.type = (enum rte_flow_item_type)INT32_MIN}}},
	{-ENOTSUP, ITEM, 0, {{.type = (enum rte_flow_item_type) - 1}}},
	{-EINVAL, MASK, 1, {{.type = T(ETH)}, {.type = T(IPV4), .mask = ones}}},
	{-EINVAL, LAST, 1, {{.type = T(ETH)}, {.type = T(IPV4), .last = ones}}},
	{-EINVAL, MASK, 0, {{.type = T(ANY), .mask = ones}}},
	{-EINVAL, MASK, 0, {{.type = T(REPRESENTED_PORT), .mask = ones}}},
	{-EINVAL, LAST, 0, {{.type = T(UDP), .spec = ones, .last = threes, .mask = ones}}},
	{-EINVAL, LAST, 0, {{.type = T(IPV6), .spec = ones, .last = threes}}},
	{-ENOTSUP, LAST, 0, {{.type = T(IPV6), .spec = threes, .last = ones}}},
	{-ENOTSUP, LAST, 0, {{.type = T(TCP), .spec = threes, .last = ones, .mask = ones}}},
	{-ENOTSUP, LAST, 0, {{.type = T(ETH), .spec = zeros, .last = ones, .mask = ones}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(ETH)}, {.type = T(ETH)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV4)}, {.type = T(ETH)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV4)}, {.type = T(IPV6)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV6)}, {.type = T(VLAN)}}},
	{-ENOTSUP, ITEM, 2, {{.type = T(VLAN)}, {.type = T(VLAN)}, {.type = T(VLAN)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(TCP)}, {.type = T(UDP)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(UDP)}, {.type = T(IPV4)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV4)}, {.type = T(ICMP6)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV6)}, {.type = T(ICMP)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV6_FRAG_EXT)}, {.type = T(ICMP)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(IPV4)}, {.type = T(IPV6_FRAG_EXT)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(UDP)}, {.type = T(GRE)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(TCP)}, {.type = T(VXLAN)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(ICMP)}, {.type = T(GTPU)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(VXLAN)}, {.type = T(GENEVE)}}},
	{-ENOTSUP, ITEM, 3,
		{{.type = T(VXLAN)}, {.type = T(IPV4)}, {.type = T(UDP)}, {.type = T(VXLAN)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(GTPU)}, {.type = T(ETH)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(GTPU)}, {.type = T(VLAN)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(VXLAN)}, {.type = T(GRE_KEY)}}},
	{-ENOTSUP, ITEM, 2, {{.type = T(GRE)}, {.type = T(GRE_KEY)}, {.type = T(GRE_KEY)}}},
	{-ENOTSUP, ITEM, 2, {{.type = T(GRE)}, {.type = T(IPV4)}, {.type = T(GRE_KEY)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(UDP)}, {.type = T(GRE_KEY)}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(ETH)}, {.type = T(PORT_ID), .spec = zeros}}},
	{-ENOTSUP, ITEM, 1, {{.type = T(VXLAN)}, {.type = T(PORT_ID), .spec = zeros}}},
	{-ENOTSUP, ITEM, 1,
		{{.type = T(PORT_ID), .spec = zeros},
			{.type = T(REPRESENTED_PORT), .spec = zeros}}},
	{-ENOTSUP, SPEC, 0, {{.type = T(REPRESENTED_PORT)}}},
	{-EINVAL, SPEC, 0, {{.type = T(PORT_REPRESENTOR), .spec = ones}}},
	{-EINVAL, SPEC, 0, {{.type = T(PORT_ID), .spec = threes}}},
	{-ENOTSUP, MASK, 0,
		{{.type = T(REPRESENTED_PORT), .spec = zeros, .mask = ETHDEV_MASK(0xfffe)}}},
	{-ENOTSUP, MASK, 0, {{.type = T(PORT_ID), .spec = zeros, .mask = zeros}}},
	{-EINVAL, LAST, 0,
		{{.type = T(REPRESENTED_PORT), .spec = ETHDEV_MASK(9), .last = ETHDEV_MASK(8)}}},
	{-ENOTSUP, LAST, 0,
		{{.type = T(REPRESENTED_PORT), .spec = ETHDEV_MASK(8), .last = ETHDEV_MASK(9)}}},
};

static void refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(refusals); i++) {
		const struct refusal *refusal = &refusals[i];
		struct sim_pattern pattern;
		int code = parse(&pattern, refusal->items);

		if (code != refusal->code || fault.type != refusal->type)
			print_error("refusal %zu: %s\n", i, fault.message);
		assert_int_equal(code, refusal->code);
		assert_int_equal(fault.type, refusal->type);
		assert_ptr_equal(fault.cause, &refusal->items[refusal->item]);
		assert_non_null(fault.message);
	}
}

/* Nine ranges are one too many: the item that has the ninth is at fault. */
static void too_many_ranges(void **state)
{
	struct rte_flow_item items[] = {
		{.type = T(IPV4), .spec = zeros, .last = threes, .mask = ones},
		{.type = T(UDP), .spec = zeros, .last = NULL, .mask = ones}, {0}};
	struct rte_flow_item_ipv4 mask = {.hdr.src_addr = UINT32_MAX,
		.hdr.dst_addr = UINT32_MAX,
		.hdr.time_to_live = 0xff,
		.hdr.next_proto_id = 0xff,
		.hdr.packet_id = 0xffff,
		.hdr.total_length = 0xffff};
	struct rte_flow_item_udp udp = {.hdr.src_port = 0xffff, .hdr.dst_port = 0xffff};
	struct sim_pattern pattern;

	(void)state;
	assert_int_equal(parse(&pattern, items), -ENOTSUP);
	assert_ptr_equal(fault.cause, &items[0]);
	items[0].mask = &mask;
	items[1].mask = &udp;
	items[1].last = threes;
	pattern = good(items);
	assert_int_equal(pattern.n_ranges, 8);
	udp.hdr.dgram_len = 0xffff;
	assert_int_equal(parse(&pattern, items), -ENOTSUP);
	assert_ptr_equal(fault.cause, &items[1]);
	assert_int_equal(fault.type, LAST);
}

static void accepted_orders(void **state)
{
	static const struct rte_flow_item lists[][12] = {
		{{.type = T(REPRESENTED_PORT), .spec = zeros}, {.type = T(ETH)}, {.type = T(VLAN)},
			{.type = T(VLAN)}, {.type = T(IPV6)}, {.type = T(IPV6_FRAG_EXT)},
			{.type = T(ICMP6)}},
		{{.type = T(ANY)}, {.type = T(ETH)}, {.type = T(ANY)}, {.type = T(UDP)},
			{.type = T(VOID)}, {.type = T(GTPU)}, {.type = T(IPV6)}, {.type = T(TCP)}},
		{{.type = T(IPV4)}, {.type = T(GRE)}, {.type = T(GRE_KEY)}, {.type = T(ETH)},
			{.type = T(VLAN)}, {.type = T(VLAN)}, {.type = T(IPV4)}, {.type = T(ICMP)}},
		{{.type = T(IPV4)}, {.type = T(GRE_KEY)}, {.type = T(IPV6)}},
		{{.type = T(VXLAN)}, {.type = T(SCTP)}},
		{{.type = T(IPV6_FRAG_EXT)}, {.type = T(UDP)}, {.type = T(GENEVE)},
			{.type = T(IPV6_FRAG_EXT)}},
		{{.type = T(ETH)}, {.type = T(ICMP)}},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(lists); i++)
		good(lists[i]);
}

static void ports(void **state)
{
	struct rte_flow_item_ethdev number = {.port_id = 5};
	struct rte_flow_item_port_id id = {.id = 5};
	struct rte_flow_item items[] = {{.type = T(REPRESENTED_PORT), .spec = &number}, {0}};
	struct sim_view view = {.port = 5};
	struct sim_pattern pattern;

	(void)state;
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			items[0].type = T(PORT_REPRESENTOR);
		if (i == 2)
			items[0] = (struct rte_flow_item){.type = T(PORT_ID), .spec = &id};
		pattern = good(items);
		assert_int_equal(pattern.port, 5);
		view.port = 5;
		assert_true(sim_pattern_match(&pattern, 1, &view));
		view.port = 1;
		assert_false(sim_pattern_match(&pattern, 1, &view));
		view.port = SIM_NO_PORT;
		assert_true(sim_pattern_match(&pattern, 1, &view));
	}
	items[0] = (struct rte_flow_item){0};
	pattern = good(items);
	view.port = 1;
	assert_true(sim_pattern_match(&pattern, 1, &view));
	assert_false(sim_pattern_match(&pattern, 2, &view));
}

/* END has to be among the first SIM_MAX_ITEMS; a sanitizer sees a look behind them. */
static void without_end(void **state)
{
	struct rte_flow_item *items = calloc(SIM_MAX_ITEMS, sizeof(*items));
	struct sim_pattern pattern;

	(void)state;
	assert_non_null(items);
	for (unsigned i = 0; i < SIM_MAX_ITEMS; i++)
		items[i].type = T(VOID);
	assert_int_equal(parse(&pattern, items), -EINVAL);
	assert_int_equal(fault.type, RTE_FLOW_ERROR_TYPE_ITEM_NUM);
	items[SIM_MAX_ITEMS - 1].type = T(END);
	good(items);
	free(items);
	assert_int_equal(parse(&pattern, NULL), -EINVAL);
	assert_int_equal(fault.type, RTE_FLOW_ERROR_TYPE_ITEM_NUM);
	assert_null(fault.cause);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_item),
		cmocka_unit_test(only_there),
		cmocka_unit_test(empty),
		cmocka_unit_test(two_tags),
		cmocka_unit_test(bits_behind_headers),
		cmocka_unit_test(range_of_ports),
		cmocka_unit_test(no_ranges),
		cmocka_unit_test(ranges_by_size),
		cmocka_unit_test(refused),
		cmocka_unit_test(too_many_ranges),
		cmocka_unit_test(accepted_orders),
		cmocka_unit_test(ports),
		cmocka_unit_test(without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
