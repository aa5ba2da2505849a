/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "port/standing.h"

/* An interface as a row: above it `master`; below it `lower`, in the namespace `space` if that is positive. */
struct row {
	unsigned index;
	const char *name, *kind;
	unsigned master, lower;
	int space;
	bool alone;
};

#define MAX_ROWS 12

/* What is the same for all: addresses by the interface that has them, and where default routes lead. */
struct scene {
	struct row rows[MAX_ROWS];
	struct netlink_address addresses[4];
	unsigned defaults[2];
};

static void make(struct netlink_state *state, const struct scene *scene)
{
	memset(state, 0, sizeof(*state));
	state->links = test_calloc(MAX_ROWS, sizeof(*state->links));
	state->addresses = test_calloc(4, sizeof(*state->addresses));
	state->routes = test_calloc(2, sizeof(*state->routes));
	for (unsigned i = 0; i < MAX_ROWS && scene->rows[i].index != 0; i++) {
		const struct row *row = &scene->rows[i];
		struct netlink_link *link = &state->links[state->n_links++];

		link->index = row->index;
		link->master = row->master;
		link->lower[0] = row->lower;
		link->lower_space = row->space > 0 ? row->space : -1;
		link->alone = row->alone;
		snprintf(link->name, sizeof(link->name), "%s", row->name);
		snprintf(link->kind, sizeof(link->kind), "%s", row->kind);
	}
	for (unsigned i = 0; i < 4 && scene->addresses[i].index != 0; i++)
		state->addresses[state->n_addresses++] = scene->addresses[i];
	for (unsigned i = 0; i < 2 && scene->defaults[i] != 0; i++)
		state->routes[state->n_routes++].index = scene->defaults[i];
}

static void unmake(struct netlink_state *state)
{
	test_free(state->links);
	test_free(state->addresses);
	test_free(state->routes);
}

/* Of the interface with index 1, called eth1. */
struct stands {
	struct scene scene;
	const char *says; /* "": nothing stands on it */
	bool cut_off;
	const char *remedy;
};

static const struct stands stands[] = {
	{{{{1, "eth1", "", 0, 0, 0, 0}}, {{0}}, {0}}, "", false, ""},
	{{{{1, "eth1", "", 0, 0, 0, 0}}, {{1, "10.0.0.5/24"}}, {0}}, "carries 10.0.0.5/24", true,
		""},
	{{{{1, "eth1", "", 0, 0, 0, 0}}, {{0}}, {1}}, "carries the default route", true, ""},
	{{{{1, "eth1", "", 0, 0, 0, 0}}, {{1, "10.0.0.5/24"}, {1, "fd00::5/64"}}, {1}},
		"carries 10.0.0.5/24, 1 more and the default route", true, ""},
	{{{{1, "eth1", "", 0, 0, 0, 0}}, {{1, "10.0.0.5/24"}, {1, "fd00::5/64"}}, {0}},
		"carries 10.0.0.5/24 and 1 more", true, ""},
	/* another's address is another's */
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "eth2", "", 0, 0, 0, 0}}, {{2, "10.0.0.5/24"}}, {2}},
		"", false, ""},
	/* a member of something, with an address and without */
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "br0", "bridge", 0, 0, 0, 0}}, {{0}}, {0}},
		"is a member of bridge br0", false, "ip link set eth1 nomaster"},
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "br0", "bridge", 0, 0, 0, 0}}, {{2, "10.9.0.3/24"}},
		 {2}},
		"is a member of bridge br0, which carries 10.9.0.3/24 and the default route", true,
		"ip link set eth1 nomaster"},
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "bond0", "bond", 0, 0, 0, 0}}, {{0}}, {2}},
		"is a member of bond bond0, which carries the default route", true,
		"ip link set eth1 nomaster"},
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "team0", "team", 0, 0, 0, 0}}, {{0}}, {0}},
		"is a member of team team0", false, "ip link set eth1 nomaster"},
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "red", "vrf", 0, 0, 0, 0}}, {{0}}, {0}},
		"is a member of vrf red", false, "ip link set eth1 nomaster"},
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "ovs-system", "openvswitch", 0, 0, 0, 0}}, {{0}}, {0}},
		"is a member of openvswitch ovs-system", false, "ip link set eth1 nomaster"},
	/* a parent */
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "eth1.5", "vlan", 0, 1, 0, 0}}, {{2, "10.5.0.1/24"}},
		 {0}},
		"carries VLAN eth1.5, which carries 10.5.0.1/24", true, "ip link del eth1.5"},
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "mv0", "macvlan", 0, 1, 0, 0}}, {{0}}, {0}},
		"carries macvlan mv0", false, "ip link del mv0"},
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "mt0", "macvtap", 0, 1, 0, 1}}, {{0}}, {0}},
		"carries macvtap mt0", false, "ip link del mt0"},
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "iv0", "ipvlan", 0, 1, 0, 0}}, {{0}}, {2}},
		"carries ipvlan iv0, which carries the default route", true, "ip link del iv0"},
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "macsec0", "macsec", 0, 1, 0, 0}}, {{2, "10.0.0.1/30"}},
		 {0}},
		"carries macsec macsec0, which carries 10.0.0.1/30", true, "ip link del macsec0"},
	/* several levels: VLAN on bridge on bond, VLAN on bond in a bridge */
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "bond0", "bond", 3, 0, 0, 0},
		  {3, "br0", "bridge", 0, 0, 0, 0}, {4, "br0.7", "vlan", 0, 3, 0, 0}},
		 {{4, "10.7.0.1/24"}}, {4}},
		"is a member of bond bond0, which is a member of bridge br0, which carries VLAN "
		"br0.7, "
		"which carries 10.7.0.1/24 and the default route",
		true, "ip link set eth1 nomaster"},
	{{{{4, "br7", "bridge", 0, 0, 0, 0}, {3, "bond0.7", "vlan", 4, 2, 0, 0},
		  {2, "bond0", "bond", 0, 0, 0, 0}, {1, "eth1", "", 2, 0, 0, 0}},
		 {{4, "10.7.0.1/24"}}, {0}},
		"is a member of bond bond0, which carries VLAN bond0.7, which is a member of "
		"bridge br7, "
		"which carries 10.7.0.1/24",
		true, "ip link set eth1 nomaster"},
	/* of several the nearest that is needed */
	{{{{1, "eth1", "", 0, 0, 0, 0}, {2, "eth1.5", "vlan", 0, 1, 0, 0},
		  {3, "eth1.6", "vlan", 0, 1, 0, 0}},
		 {{3, "10.6.0.1/24"}}, {0}},
		"carries VLAN eth1.6, which carries 10.6.0.1/24", true, "ip link del eth1.5"},
	/* what lies below does not count: a port may be a VLAN of an interface with an address, or a bridge */
	{{{{1, "eth1.5", "vlan", 0, 2, 0, 0}, {2, "eth1", "", 0, 0, 0, 0},
		  {3, "eth1.6", "vlan", 0, 2, 0, 0}},
		 {{2, "10.0.0.5/24"}, {3, "10.6.0.5/24"}}, {2}},
		"", false, ""},
	{{{{1, "br0", "bridge", 0, 0, 0, 0}, {2, "eth2", "", 1, 0, 0, 0}}, {{2, "10.0.0.5/24"}},
		 {2}},
		"", false, ""},
	/* nor does the other end of a veth, here or in another namespace, whatever its number is */
	{{{{1, "eth1", "veth", 0, 2, 0, 0}, {2, "end", "veth", 0, 1, 0, 0}}, {{2, "10.0.0.5/24"}},
		 {2}},
		"", false, ""},
	{{{{1, "eth1", "veth", 0, 2, 3, 0}, {2, "eth2", "veth", 0, 1, 4, 0}}, {{2, "10.0.0.5/24"}},
		 {2}},
		"", false, ""},
	/* things that stand on one another in a circle end */
	{{{{1, "eth1", "", 2, 0, 0, 0}, {2, "br0", "bridge", 0, 3, 0, 0},
		  {3, "br0.1", "vlan", 0, 2, 0, 0}, {4, "br0.1.1", "vlan", 0, 3, 0, 0}},
		 {{0}}, {0}},
		"is a member of bridge br0", false, "ip link set eth1 nomaster"},
};

static void test_standing(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(stands) / sizeof(stands[0]); i++) {
		struct netlink_state state;
		char text[400], remedy[64];
		bool cut_off;

		make(&state, &stands[i].scene);
		bool on = standing_on(&state, 1, &cut_off, text, sizeof(text));

		standing_remedy(&state, 1, remedy, sizeof(remedy));
		assert_string_equal(text, stands[i].says);
		assert_int_equal(on, stands[i].says[0] != '\0');
		assert_int_equal(cut_off, stands[i].cut_off);
		assert_string_equal(remedy, stands[i].remedy);
		/* one that is not there */
		assert_false(standing_on(&state, 99, &cut_off, text, sizeof(text)));
		assert_false(standing_on(&state, 0, &cut_off, text, sizeof(text)));
		unmake(&state);
	}
}

/* However much it is, the text is cut and not overrun. */
static void test_long_text(void **unused)
{
	struct scene scene = {.defaults = {MAX_ROWS}};
	struct netlink_state state;
	bool cut_off;

	(void)unused;
	for (unsigned i = 0; i < MAX_ROWS; i++)
		scene.rows[i] = (struct row){.index = i + 1,
			.name = "fifteen_letters",
			.kind = "openvswitch",
			.master = i + 1 < MAX_ROWS ? i + 2 : 0};
	make(&state, &scene);
	for (size_t size = 1; size < 700; size++) {
		char *text = test_malloc(size);

		assert_int_equal(standing_on(&state, 1, &cut_off, text, size), size > 1);
		assert_true(strlen(text) < size);
		test_free(text);
	}
	unmake(&state);
}

struct joined {
	struct row rows[MAX_ROWS];
	struct standing_wire wires[3];
	const char *way; /* of the last wire; "": not joined */
};

static const struct joined joins[] = {
	{{{1, "va", "veth", 0, 9, 5, 0}, {2, "vb", "veth", 0, 9, 6, 0}}, {{{1, 2}}}, ""},
	/* two ends of one veth pair; also by way of two wires, but not if these are not joined */
	{{{1, "x1", "veth", 0, 2, 0, 0}, {2, "x2", "veth", 0, 1, 0, 0}}, {{{1, 2}}}, "x1, x2"},
	{{{1, "x1", "veth", 0, 2, 0, 0}, {2, "x2", "veth", 0, 1, 0, 0}, {3, "va", "", 0, 0, 0, 0},
		 {4, "vb", "", 0, 0, 0, 0}},
		{{{3, 1}}, {{2, 4}}}, ""},
	{{{1, "x1", "veth", 0, 2, 0, 0}, {2, "x2", "veth", 0, 1, 0, 0},
		 {3, "y1", "veth", 0, 4, 0, 0}, {4, "y2", "veth", 0, 3, 0, 0}},
		{{{1, 3}}, {{2, 4}}}, "x2, x1, y1, y2"},
	/* two members of a bridge, of different ones, and two whose other ends are members */
	{{{1, "va", "", 3, 0, 0, 0}, {2, "vb", "", 3, 0, 0, 0}, {3, "br0", "bridge", 0, 0, 0, 0}},
		{{{1, 2}}}, "va, br0, vb"},
	{{{1, "va", "", 3, 0, 0, 0}, {2, "vb", "", 4, 0, 0, 0}, {3, "br0", "bridge", 0, 0, 0, 0},
		 {4, "br1", "bridge", 0, 0, 0, 0}},
		{{{1, 2}}}, ""},
	{{{1, "va", "veth", 0, 5, 0, 0}, {2, "vb", "veth", 0, 6, 0, 0},
		 {5, "pa", "veth", 3, 1, 0, 0}, {6, "pb", "veth", 3, 2, 0, 0},
		 {3, "br0", "bridge", 0, 0, 0, 0}},
		{{{1, 2}}}, "va, pa, br0, pb, vb"},
	{{{1, "va", "", 3, 0, 0, 0}, {3, "br0", "bridge", 0, 0, 0, 0}}, {{{1, 3}}}, "va, br0"},
	{{{1, "va", "", 3, 0, 0, 0}, {2, "vb", "", 3, 0, 0, 0},
		 {3, "ovs-system", "openvswitch", 0, 0, 0, 0}},
		{{{2, 1}}}, "vb, ovs-system, va"},
	/* by a bond in the bridge */
	{{{1, "va", "", 4, 0, 0, 0}, {2, "vb", "", 3, 0, 0, 0}, {3, "br0", "bridge", 0, 0, 0, 0},
		 {4, "bond0", "bond", 3, 0, 0, 0}},
		{{{1, 2}}}, "va, bond0, br0, vb"},
	/* in one VRF they are not: packets between them are routed */
	{{{1, "va", "", 3, 0, 0, 0}, {2, "vb", "", 3, 0, 0, 0}, {3, "red", "vrf", 0, 0, 0, 0}},
		{{{1, 2}}}, ""},
	/* macvlans of one parent hear each other, in the mode "bridge"; two VLANs do not */
	{{{1, "m1", "macvlan", 0, 3, 0, 0}, {2, "m2", "macvlan", 0, 3, 0, 0},
		 {3, "va", "", 0, 0, 0, 0}},
		{{{1, 2}}}, "m1, va, m2"},
	{{{1, "m1", "macvlan", 0, 3, 0, 1}, {2, "m2", "macvlan", 0, 3, 0, 1},
		 {3, "va", "", 0, 0, 0, 0}},
		{{{1, 2}}}, ""},
	{{{1, "m1", "macvlan", 0, 3, 7, 0}, {2, "m2", "macvlan", 0, 3, 7, 0}}, {{{1, 2}}},
		"m1, m2"},
	{{{1, "m1", "macvlan", 0, 3, 7, 0}, {2, "m2", "macvlan", 0, 3, 8, 0}}, {{{1, 2}}}, ""},
	{{{1, "i1", "ipvlan", 0, 3, 0, 0}, {2, "i2", "ipvlan", 0, 3, 0, 0},
		 {3, "va", "", 0, 0, 0, 0}},
		{{{1, 2}}}, "i1, va, i2"},
	{{{1, "va.5", "vlan", 0, 3, 0, 0}, {2, "va.6", "vlan", 0, 3, 0, 0},
		 {3, "va", "", 0, 0, 0, 0}},
		{{{1, 2}}}, ""},
	/* a port that is no interface here */
	{{{1, "va", "", 0, 0, 0, 0}}, {{{1, 0}}}, ""},
	{{{1, "va", "", 0, 0, 0, 0}}, {{{0, 0}}}, ""},
};

static void test_joined(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++) {
		const struct joined *row = &joins[i];
		struct scene scene = {.defaults = {0}};
		struct netlink_state state;
		char way[200];
		unsigned n = row->wires[1].index[0] != 0 ? 2 : 1;

		memcpy(scene.rows, row->rows, sizeof(scene.rows));
		make(&state, &scene);
		bool joined = standing_joined(&state, row->wires, n, way, sizeof(way));

		assert_string_equal(way, row->way);
		assert_int_equal(joined, row->way[0] != '\0');
		if (n == 2) {
			assert_false(standing_joined(&state, row->wires, 1, way, sizeof(way)));
			assert_string_equal(way, "");
		}
		unmake(&state);
	}
}

/* What this machine's kernel says: at least its loopback interface, as the one question has it, too. */
static void test_kernel(void **unused)
{
	struct netlink_state state;
	struct netlink_link link;
	unsigned lo = if_nametoindex("lo"), found = 0;

	(void)unused;
	assert_int_equal(netlink_state_init(&state), 0);
	for (unsigned i = 0; i < state.n_links; i++) {
		assert_int_equal(state.links[i].index, if_nametoindex(state.links[i].name));
		found += state.links[i].index == lo;
	}
	netlink_state_fini(&state);
	assert_null(state.links);
	if (lo == 0)
		skip();
	assert_int_equal(found, 1);
	assert_int_equal(netlink_link(&link, lo), 0);
	assert_string_equal(link.name, "lo");
	assert_int_equal(netlink_link(&link, INT32_MAX), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_standing),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
