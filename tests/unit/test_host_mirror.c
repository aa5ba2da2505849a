/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's mirror: messages made here by libmnl go in, and a follower keeps what it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/lwtunnel.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "host/message.h"
#include "host/mirror.h"

#define MANY 64
#define VLAN_8021AD 0x88a8

static struct {
	struct mirror *mirror;
	/* what the follower knows of the last thing of each kind, and how often it was told */
	struct kernel_link link[MANY]; /* by ifindex */
	unsigned links_told, links_gone;
	struct kernel_route route;
	struct kernel_hop hop[KERNEL_HOPS];
	unsigned told, gone, synced;
	char buffer[8192] __attribute__((aligned(8)));
} scene;

static void link_told(void *context, const struct kernel_link *link, bool gone)
{
	(void)context;
	assert_true(link->ifindex < MANY);
	scene.link[link->ifindex] = *link;
	scene.links_told += !gone;
	scene.links_gone += gone;
}

static void address_told(void *context, const struct kernel_address *address, bool gone)
{
	(void)context;
	(void)address;
	(void)gone;
}

static void neighbour_told(void *context, const struct kernel_neighbour *neighbour, bool gone)
{
	(void)context;
	(void)neighbour;
	(void)gone;
}

static void route_told(void *context, const struct kernel_route *route, bool gone)
{
	(void)context;
	scene.route = *route;
	if (route->n_hops > 0)
		memcpy(scene.hop, route->hops, route->n_hops * sizeof(scene.hop[0]));
	scene.told += !gone;
	scene.gone += gone;
}

static void synced_told(void *context)
{
	(void)context;
	scene.synced++;
}

static int set_up(void **state)
{
	const struct kernel_follower follower = {.link = link_told,
		.address = address_told,
		.neighbour = neighbour_told,
		.route = route_told,
		.synced = synced_told};
	struct error error;

	(void)state;
	memset(&scene, 0, sizeof(scene));
	return mirror_create(&scene.mirror, 1000, &follower, &error);
}

static int tear_down(void **state)
{
	(void)state;
	mirror_destroy(scene.mirror);
	return 0;
}

/* ---------------------------------------------------- messages */

static struct nlmsghdr *begin(uint16_t type, const void *head, size_t size)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(scene.buffer);

	message->nlmsg_type = type;
	memcpy(mnl_nlmsg_put_extra_header(message, size), head, size);
	return message;
}

static int told(const struct nlmsghdr *message)
{
	return mirror_take(scene.mirror, SOURCE_KERNEL, message, false);
}

static int dumped(const struct nlmsghdr *message)
{
	return mirror_take(scene.mirror, SOURCE_KERNEL, message, true);
}

static void sweep(void)
{
	while (!mirror_sweep(scene.mirror, SOURCE_KERNEL, 1))
		;
}

static struct nlmsghdr *link_message(uint16_t type, int ifindex, const char *name)
{
	const struct ifinfomsg head = {.ifi_index = ifindex, .ifi_flags = IFF_UP};
	struct nlmsghdr *message = begin(type, &head, sizeof(head));

	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	mnl_attr_put_u32(message, IFLA_MTU, 1500);
	return message;
}

static struct nlmsghdr *vlan_message(int ifindex, uint32_t parent, uint16_t id, uint16_t protocol)
{
	struct nlmsghdr *message = link_message(RTM_NEWLINK, ifindex, "eth1.7");

	mnl_attr_put_u32(message, IFLA_LINK, parent);
	struct nlattr *info = mnl_attr_nest_start(message, IFLA_LINKINFO);

	mnl_attr_put_strz(message, IFLA_INFO_KIND, "vlan");
	struct nlattr *data = mnl_attr_nest_start(message, IFLA_INFO_DATA);

	mnl_attr_put_u16(message, IFLA_VLAN_ID, id);
	mnl_attr_put_u16(message, IFLA_VLAN_PROTOCOL, htons(protocol));
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, info);
	return message;
}

static struct nlmsghdr *vrf_message(uint16_t type, int ifindex, uint32_t table)
{
	struct nlmsghdr *message = link_message(type, ifindex, "red");
	struct nlattr *info = mnl_attr_nest_start(message, IFLA_LINKINFO);

	mnl_attr_put_strz(message, IFLA_INFO_KIND, "vrf");
	struct nlattr *data = mnl_attr_nest_start(message, IFLA_INFO_DATA);

	mnl_attr_put_u32(message, IFLA_VRF_TABLE, table);
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, info);
	return message;
}

/* A route to 10.N.0.0/16, or fd00:N::/32, without hops yet. */
static struct nlmsghdr *route_message(uint16_t type, int family, uint8_t n)
{
	const struct rtmsg head = {.rtm_family = (unsigned char)family,
		.rtm_dst_len = family == AF_INET ? 16 : 32,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_type = RTN_UNICAST};
	const uint8_t v4[4] = {10, n}, v6[16] = {0xfd, 0, 0, n};
	struct nlmsghdr *message = begin(type, &head, sizeof(head));

	mnl_attr_put(message, RTA_DST, family == AF_INET ? 4 : 16, family == AF_INET ? v4 : v6);
	return message;
}

static struct nlmsghdr *with_hop(struct nlmsghdr *message, uint32_t ifindex, uint8_t last)
{
	const uint8_t gateway[4] = {10, 0, 0, last};

	mnl_attr_put_u32(message, RTA_OIF, ifindex);
	mnl_attr_put(message, RTA_GATEWAY, sizeof(gateway), gateway);
	return message;
}

static struct nlmsghdr *simple_route(uint16_t type, uint8_t n, uint8_t last)
{
	return with_hop(route_message(type, AF_INET, n), 3, last);
}

static void put_hops(struct nlmsghdr *message, unsigned n, bool encap)
{
	struct nlattr *outer = mnl_attr_nest_start(message, RTA_MULTIPATH);

	for (unsigned i = 0; i < n; i++) {
		const uint8_t gateway[4] = {10, 0, (uint8_t)(i >> 8), (uint8_t)i};
		struct rtnexthop *hop = mnl_nlmsg_get_payload_tail(message);
		const uint32_t before = message->nlmsg_len;

		*hop = (struct rtnexthop){.rtnh_hops = 2, .rtnh_ifindex = 3};
		message->nlmsg_len += sizeof(*hop);
		mnl_attr_put(message, RTA_GATEWAY, sizeof(gateway), gateway);
		if (encap)
			mnl_attr_put_u16(message, RTA_ENCAP_TYPE, LWTUNNEL_ENCAP_MPLS);
		hop->rtnh_len = (unsigned short)(message->nlmsg_len - before);
	}
	mnl_attr_nest_end(message, outer);
}

static struct nlmsghdr *object(uint16_t type, uint32_t id, uint8_t last)
{
	const struct nhmsg head = {.nh_family = AF_INET};
	const uint8_t gateway[4] = {10, 0, 0, last};
	struct nlmsghdr *message = begin(type, &head, sizeof(head));

	mnl_attr_put_u32(message, NHA_ID, id);
	mnl_attr_put_u32(message, NHA_OIF, 3);
	mnl_attr_put(message, NHA_GATEWAY, sizeof(gateway), gateway);
	return message;
}

static struct nlmsghdr *group(uint32_t id, uint32_t one, uint32_t other)
{
	const struct nexthop_grp members[] = {{.id = one, .weight = 4}, {.id = other}};
	const struct nhmsg head = {0};
	struct nlmsghdr *message = begin(RTM_NEWNEXTHOP, &head, sizeof(head));

	mnl_attr_put_u32(message, NHA_ID, id);
	mnl_attr_put(message, NHA_GROUP, sizeof(members), members);
	return message;
}

static struct nlmsghdr *by_object(uint8_t n, uint32_t id)
{
	struct nlmsghdr *message = route_message(RTM_NEWROUTE, AF_INET, n);

	mnl_attr_put_u32(message, RTA_NH_ID, id);
	return message;
}

/* ---------------------------------------------------- tests */

static void test_vlan(void **state)
{
	(void)state;
	assert_int_equal(told(vlan_message(5, 3, 7, 0x8100)), MIRROR_UNSURE);
	assert_int_equal(scene.link[5].parent, 3);
	assert_int_equal(scene.link[5].vlan, 7);
	assert_string_equal(scene.link[5].name, "eth1.7");

	/* one of 802.1ad has no parent here */
	told(vlan_message(6, 3, 7, VLAN_8021AD));
	assert_int_equal(scene.link[6].parent, 0);

	/* nor one whose parent is in another namespace */
	struct nlmsghdr *message = vlan_message(7, 3, 7, 0x8100);

	mnl_attr_put_u32(message, IFLA_LINK_NETNSID, 0);
	told(message);
	assert_int_equal(scene.link[7].parent, 0);

	/* what is said again is not told again */
	const unsigned before = scene.links_told;

	told(vlan_message(5, 3, 7, 0x8100));
	assert_int_equal(scene.links_told, before);
}

static struct nlmsghdr *slave_message(void)
{
	struct nlmsghdr *message = link_message(RTM_NEWLINK, 4, "eth2");

	mnl_attr_put_u32(message, IFLA_MASTER, 9);
	return message;
}

static void test_vrf(void **state)
{
	(void)state;
	/* the one that it is enslaved to may be told later */
	told(slave_message());
	assert_int_equal(scene.link[4].vrf_table, 0);
	told(vrf_message(RTM_NEWLINK, 9, 100));
	assert_int_equal(scene.link[9].vrf_table, 100);
	assert_int_equal(scene.link[4].vrf_table, 100);
	told(vrf_message(RTM_NEWLINK, 9, 200));
	assert_int_equal(scene.link[4].vrf_table, 200);
	told(vrf_message(RTM_DELLINK, 9, 200));
	assert_int_equal(scene.link[4].vrf_table, 0);
	assert_int_equal(scene.links_gone, 1);
}

static void test_hops(void **state)
{
	struct nlmsghdr *message = route_message(RTM_NEWROUTE, AF_INET, 1);
	struct mirror_counts counts;

	(void)state;
	put_hops(message, 2, false);
	assert_int_equal(told(message), 0);
	assert_int_equal(scene.route.kind, KERNEL_UNICAST);
	assert_int_equal(scene.route.n_hops, 2);
	assert_int_equal(scene.hop[1].weight, 3);
	assert_int_equal(scene.hop[1].gateway[3], 1);

	/* of a group of 300 the first 64 count */
	message = route_message(RTM_NEWROUTE, AF_INET, 2);
	put_hops(message, 300, false);
	assert_int_equal(told(message), 0);
	assert_int_equal(scene.route.n_hops, KERNEL_HOPS);
	mirror_counts(scene.mirror, &counts);
	assert_int_equal(counts.cut, 1);

	/* what is to be put into a tunnel is the kernel's */
	message = route_message(RTM_NEWROUTE, AF_INET, 3);
	put_hops(message, 2, true);
	told(message);
	assert_int_equal(scene.route.kind, KERNEL_ONLY);
	message = simple_route(RTM_NEWROUTE, 4, 1);
	((struct rtmsg *)mnl_nlmsg_get_payload(message))->rtm_tos = 8;
	told(message);
	assert_int_equal(scene.route.kind, KERNEL_ONLY);
	mirror_counts(scene.mirror, &counts);
	assert_int_equal(counts.only_kernel, 2);
}

static void test_objects(void **state)
{
	(void)state;
	/* nobody knows where it goes yet */
	told(by_object(1, 30));
	told(by_object(2, 30));
	told(group(30, 10, 11));
	assert_int_equal(scene.told, 0);
	told(object(RTM_NEWNEXTHOP, 10, 2));
	assert_int_equal(scene.told, 2);
	assert_int_equal(scene.route.n_hops, 1);
	told(object(RTM_NEWNEXTHOP, 11, 3));
	assert_int_equal(scene.told, 4);
	assert_int_equal(scene.route.n_hops, 2);
	assert_int_equal(scene.hop[0].weight, 5);
	assert_int_equal(scene.hop[1].weight, 1);
	/* the same again is nothing new */
	told(object(RTM_NEWNEXTHOP, 11, 3));
	assert_int_equal(scene.told, 4);
	told(object(RTM_NEWNEXTHOP, 10, 9));
	assert_int_equal(scene.told, 6);
	assert_int_equal(scene.hop[0].gateway[3], 9);
	/* the kernel removes its routes without a message: a dump is to find out */
	assert_int_equal(told(object(RTM_DELNEXTHOP, 30, 0)), MIRROR_UNSURE);
	assert_int_equal(scene.gone, 2);
}

static void test_a_dump_is_older_than_messages(void **state)
{
	(void)state;
	told(simple_route(RTM_NEWROUTE, 1, 1));
	told(simple_route(RTM_NEWROUTE, 2, 1));
	told(simple_route(RTM_NEWROUTE, 3, 1));
	told(simple_route(RTM_NEWROUTE, 4, 1));
	mirror_begin(scene.mirror, SOURCE_KERNEL);
	/* the kernel made this piece of the dump before it sent the next two messages */
	told(simple_route(RTM_DELROUTE, 1, 1));
	struct nlmsghdr *message = simple_route(RTM_NEWROUTE, 2, 7);

	message->nlmsg_flags = NLM_F_REPLACE;
	told(message);
	assert_int_equal(scene.hop[0].gateway[3], 7);
	const unsigned before = scene.told;

	dumped(simple_route(RTM_NEWROUTE, 1, 1));
	dumped(simple_route(RTM_NEWROUTE, 2, 1));
	assert_int_equal(scene.told, before);

	/* another hop without a message: it is replaced, and never gone; what came meanwhile stays */
	dumped(simple_route(RTM_NEWROUTE, 3, 8));
	assert_int_equal(scene.told, before + 1);
	told(simple_route(RTM_NEWROUTE, 5, 1));
	assert_int_equal(scene.gone, 1);
	sweep();
	assert_int_equal(scene.gone, 2);
	assert_int_equal(scene.route.prefix[1], 4);
	assert_int_equal(scene.synced, 1);

	/* the next dump counts again */
	mirror_begin(scene.mirror, SOURCE_KERNEL);
	dumped(simple_route(RTM_NEWROUTE, 1, 1));
	assert_int_equal(scene.route.prefix[1], 1);
	sweep();
	assert_int_equal(scene.gone, 5);
}

static struct nlmsghdr *on_link(uint16_t type, uint32_t ifindex)
{
	struct nlmsghdr *message = route_message(type, AF_INET6, 1);

	mnl_attr_put_u32(message, RTA_OIF, ifindex);
	return message;
}

static void test_several_of_one_key(void **state)
{
	(void)state;
	told(on_link(RTM_NEWROUTE, 3));
	/* whether the second comes first is for a dump to say */
	assert_int_equal(told(on_link(RTM_NEWROUTE, 4)), MIRROR_UNSURE);
	assert_int_equal(scene.told, 1);
	assert_int_equal(scene.hop[0].ifindex, 3);
	mirror_begin(scene.mirror, SOURCE_KERNEL);
	dumped(on_link(RTM_NEWROUTE, 4));
	dumped(on_link(RTM_NEWROUTE, 3));
	sweep();
	assert_int_equal(scene.told, 2);
	assert_int_equal(scene.hop[0].ifindex, 4);
	/* in the same order nothing is new, wherever in the dump they stand */
	mirror_begin(scene.mirror, SOURCE_KERNEL);
	for (uint8_t n = 2; n < 9; n++)
		dumped(simple_route(RTM_NEWROUTE, n, 1));
	dumped(on_link(RTM_NEWROUTE, 4));
	dumped(on_link(RTM_NEWROUTE, 3));
	sweep();
	assert_int_equal(scene.told, 2 + 7);
	assert_int_equal(told(on_link(RTM_DELROUTE, 4)), MIRROR_UNSURE);
	assert_int_equal(scene.hop[0].ifindex, 3);
	assert_int_equal(scene.gone, 0);
	told(on_link(RTM_DELROUTE, 3));
	assert_int_equal(scene.gone, 1);
	/* one that does not fit was another one's */
	told(on_link(RTM_NEWROUTE, 3));
	assert_int_equal(told(on_link(RTM_DELROUTE, 5)), MIRROR_UNSURE);
	assert_int_equal(scene.gone, 1);
}

static void test_malformed(void **state)
{
	struct nlmsghdr *message = route_message(RTM_NEWROUTE, AF_INET, 1);
	struct mirror_counts counts;

	(void)state;
	/* a prefix of 33 bits */
	((struct rtmsg *)mnl_nlmsg_get_payload(message))->rtm_dst_len = 33;
	assert_int_equal(told(message), -EBADMSG);
	/* a gateway of three bytes */
	message = route_message(RTM_NEWROUTE, AF_INET, 1);
	mnl_attr_put(message, RTA_GATEWAY, 3, "abc");
	assert_int_equal(told(message), -EBADMSG);
	/* a hop that is longer than what is there */
	message = route_message(RTM_NEWROUTE, AF_INET, 1);
	mnl_attr_put(message, RTA_MULTIPATH, sizeof(struct rtnexthop), "\377\377\0\0\0\0\0\0");
	assert_int_equal(told(message), -EBADMSG);
	/* no header */
	message = route_message(RTM_NEWROUTE, AF_INET, 1);
	message->nlmsg_len = NLMSG_HDRLEN + 2;
	assert_int_equal(told(message), -EBADMSG);
	assert_int_equal(scene.told, 0);
	mirror_counts(scene.mirror, &counts);
	assert_int_equal(counts.malformed, 4);
	/* bits beyond the prefix are none of it */
	message = simple_route(RTM_NEWROUTE, 1, 1);
	((struct rtmsg *)mnl_nlmsg_get_payload(message))->rtm_dst_len = 15;
	assert_int_equal(told(message), 0);
	assert_int_equal(scene.route.prefix[1], 0);
}

static struct nlmsghdr *rule(uint16_t type, uint32_t priority, uint32_t table)
{
	const struct fib_rule_hdr head = {
		.family = AF_INET, .action = FR_ACT_TO_TBL, .table = (uint8_t)table};
	struct nlmsghdr *message = begin(type, &head, sizeof(head));

	mnl_attr_put_u32(message, FRA_PRIORITY, priority);
	mnl_attr_put_u32(message, FRA_TABLE, table);
	return message;
}

static uint32_t foreign_rules(void)
{
	struct mirror_counts counts;

	mirror_counts(scene.mirror, &counts);
	return counts.foreign_rules;
}

static void test_rules(void **state)
{
	char text[96];

	(void)state;
	told(rule(RTM_NEWRULE, 0, RT_TABLE_LOCAL));
	told(rule(RTM_NEWRULE, 32766, RT_TABLE_MAIN));
	told(rule(RTM_NEWRULE, 32767, RT_TABLE_DEFAULT));
	struct nlmsghdr *message = rule(RTM_NEWRULE, 1000, 0);

	mnl_attr_put_u8(message, FRA_L3MDEV, 1);
	told(message);
	assert_int_equal(foreign_rules(), 0);
	told(rule(RTM_NEWRULE, 5, RT_TABLE_MAIN));
	assert_int_equal(foreign_rules(), 1);
	assert_true(mirror_foreign_rule(scene.mirror, text, sizeof(text)));
	assert_string_equal(text, "IPv4 rule of priority 5, table 254");
	told(rule(RTM_DELRULE, 5, RT_TABLE_MAIN));
	assert_int_equal(foreign_rules(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_vlan, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_vrf, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hops, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_objects, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_dump_is_older_than_messages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_several_of_one_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rules, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
