/* SPDX-License-Identifier: BSD-3-Clause */

/* What the simulated NIC sees of a packet, whole and cut at each byte. */

#include "unit/flowsim_scene.h"

static void nothing_but_ethernet(void **state)
{
	static const unsigned types[] = {0x0806, 0x88cc, 46, 0, 0xffff};
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(types); i++) {
		scene_start(&scene);
		add_type(&scene, types[i], 0);
		add_bytes(&scene, 64);
		check(&scene);
	}
}

static const struct {
	unsigned protocol;
	uint32_t layer4, layer6;
	size_t size;
} uppers[] = {
	{6, SIM_TCP, SIM_TCP, 20},
	{17, SIM_UDP, SIM_UDP, 8},
	{132, SIM_SCTP, SIM_SCTP, 12},
	{1, SIM_ICMP, 0, 8},
	{58, 0, SIM_ICMP6, 8},
	{89, 0, 0, 8},
	{59, 0, 0, 8},
	{255, 0, 0, 8},
};

/* Tags of each kind, then IP of either version, then each upper layer. */
static void plain_layers(void **state)
{
	static const unsigned tags[] = {0x8100, 0x88a8, 0x9100, 0x9200};
	struct scene scene;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(uppers) * 3 * 2; i++) {
		unsigned upper = i % RTE_DIM(uppers);
		unsigned n_tags = i / RTE_DIM(uppers) % 3;
		bool v6 = i / RTE_DIM(uppers) / 3;
		uint32_t layer = v6 ? uppers[upper].layer6 : uppers[upper].layer4;

		scene_start(&scene);
		for (unsigned n = 0; n < n_tags; n++) {
			add_type(&scene, tags[(i + n) % RTE_DIM(tags)], n);
			add_tci(&scene, 0x2000 + i);
		}
		add_type(&scene, v6 ? 0x86dd : 0x0800, n_tags);
		if (v6)
			add_ipv6(&scene, uppers[upper].protocol);
		else
			add_ipv4(&scene, uppers[upper].protocol, i % 11 * 4);
		if (layer != 0)
			add_l4(&scene, layer, uppers[upper].size);
		add_bytes(&scene, 20);
		check(&scene);
	}
}

static void third_tag(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	add_type(&scene, 0x88a8, 0);
	add_tci(&scene, 1);
	add_type(&scene, 0x8100, 1);
	add_tci(&scene, 2);
	add_type(&scene, 0x8100, 2);
	add_tci(&scene, 3);
	frame_type(&scene.frame, 0x0800);
	seen_bits(&scene, scene.frame.length, offsetof(struct sim_level, has_more), 2);
	frame_fill(&scene.frame, 40);
	check(&scene);
}

static void wrong_ip(void **state)
{
	struct scene scene;

	(void)state;
	for (unsigned first = 0; first < 256; first++)
		for (int v6 = 0; v6 <= 1; v6++) {
			bool right = v6 ? first >> 4 == 6 : first >> 4 == 4 && (first & 15) >= 5;

			scene_start(&scene);
			add_type(&scene, v6 ? 0x86dd : 0x0800, 0);
			if (v6)
				add_ipv6(&scene, 17);
			else
				add_ipv4(&scene, 17, 0);
			frame_fill(&scene.frame, 80);
			scene.frame.bytes[14] = (uint8_t)first;
			assert_int_equal(layers(&scene) & (SIM_IPV4 | SIM_IPV6 | SIM_UDP),
				!right ? 0 : (v6 ? SIM_IPV6 : SIM_IPV4) | SIM_UDP);
		}
}

static void fragments4(void **state)
{
	static const struct {
		unsigned field;
		bool later;
	} cases[] = {{0, false}, {0x2000, false}, {0xe000, false}, {1, true}, {0x2001, true},
		{0x1fff, true}, {0x1000, true}};
	static const unsigned protocols[] = {17, 47};
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases) * RTE_DIM(protocols); i++) {
		unsigned protocol = protocols[i / RTE_DIM(cases)];
		bool later = cases[i % RTE_DIM(cases)].later;

		scene_start(&scene);
		add_type(&scene, 0x0800, 0);
		add_ipv4(&scene, protocol, 4);
		put_be16(scene.frame.bytes + 14 + 6, cases[i % RTE_DIM(cases)].field);
		if (!later && protocol == 17)
			add_udp(&scene, 53);
		else if (!later)
			memset(add_tunnel(&scene, SIM_GRE, 4), 0, 4);
		frame_fill(&scene.frame, 30);
		check(&scene);
	}
}

/* Each extension header alone, of several lengths. */
static void extension_headers(void **state)
{
	static const unsigned headers[] = {0, 43, 44, 51, 50, 60, 135, 139, 140};
	struct scene scene;

	(void)state;
	for (unsigned bit = 0; bit < RTE_DIM(headers); bit++)
		for (unsigned units = 0; units < 3; units++) {
			scene_start(&scene);
			add_type(&scene, 0x86dd, 0);
			add_ipv6(&scene, headers[bit]);
			if (headers[bit] == 44) {
				add_extension(&scene, 17, bit, units, 8);
				SEEN(&scene, SIM_IPV6_FRAG, ipv6_frag, 8);
				put_be16(scene.frame.bytes + scene.frame.length - 6, units);
			} else if (headers[bit] == 51) {
				add_extension(&scene, 17, bit, units, (units + 2) * 4);
			} else {
				add_extension(&scene, 17, bit, units, (units + 1) * 8);
			}
			if (headers[bit] != 50)
				add_udp(&scene, 53);
			frame_fill(&scene.frame, 30);
			check(&scene);
		}
}

static void chains_of_extensions(void **state)
{
	struct scene scene;

	(void)state;
	for (unsigned n = 0; n <= 10; n++) {
		scene_start(&scene);
		add_type(&scene, 0x86dd, 0);
		add_ipv6(&scene, n > 0 ? 60 : 6);
		for (unsigned i = 0; i < RTE_MIN(n, 8u); i++)
			add_extension(&scene, i + 1 < n ? 60 : 6, 5, i % 2, (i % 2 + 1) * 8);
		if (n > 8)
			frame_extension(&scene.frame, 6, 0, 8);
		else
			add_l4(&scene, SIM_TCP, 20);
		frame_fill(&scene.frame, 40);
		check(&scene);
	}
}

/* The first of several is seen; behind a later fragment nothing is, not even another header. */
static void fragments6(void **state)
{
	struct scene scene;

	(void)state;
	for (unsigned later = 0; later < 3; later++) {
		scene_start(&scene);
		add_type(&scene, 0x86dd, 0);
		add_ipv6(&scene, 0);
		add_extension(&scene, 44, 0, 0, 8);
		add_extension(&scene, 44, 2, 0, 8);
		put_be16(scene.frame.bytes + scene.frame.length - 6, later == 1 ? 8 : 7);
		SEEN(&scene, SIM_IPV6_FRAG, ipv6_frag, 8);
		if (later != 1) {
			frame_ipv6_fragment(&scene.frame, 17, 99, later == 2 ? 1480 : 0, true);
			if (later == 0)
				add_udp(&scene, 9);
		} else {
			frame_extension(&scene.frame, 60, 0, 8);
		}
		frame_fill(&scene.frame, 64);
		check(&scene);
	}
}

static void add_inner(struct scene *scene, bool eth, bool v6, unsigned n_tags)
{
	if (eth) {
		memset(frame_add(&scene->frame, 12), 0x3c, 12);
		for (unsigned n = 0; n < n_tags; n++) {
			add_type(scene, 0x8100, n);
			add_tci(scene, 5 + n);
		}
		add_type(scene, v6 ? 0x86dd : 0x0800, n_tags);
	}
	if (v6) {
		add_ipv6(scene, 43);
		add_extension(scene, 6, 1, 0, 8);
	} else {
		add_ipv4(scene, 6, 8);
	}
	add_l4(scene, SIM_TCP, 20);
	add_bytes(scene, 10);
}

static void start_outer(struct scene *scene, unsigned protocol, bool v6)
{
	scene_start(scene);
	add_type(scene, v6 ? 0x86dd : 0x0800, 0);
	if (v6)
		add_ipv6(scene, protocol);
	else
		add_ipv4(scene, protocol, 0);
}

static void vxlan(void **state)
{
	struct scene scene;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		start_outer(&scene, 17, i & 1);
		add_udp(&scene, 4789);
		add_tunnel(&scene, SIM_VXLAN, 8);
		add_inner(&scene, true, i & 2, i / 4);
		check(&scene);
	}
}

static void geneve(void **state)
{
	static const unsigned types[] = {0x6558, 0x0800, 0x86dd};
	struct scene scene;

	(void)state;
	for (unsigned i = 0; i < 18; i++) {
		unsigned type = types[i % 3];
		unsigned units = i % 4 * 21;
		uint8_t *at;

		start_outer(&scene, 17, i & 1);
		add_udp(&scene, 6081);
		at = add_tunnel(&scene, SIM_GENEVE, 8);
		at[0] = (uint8_t)(i / 9 << 6 | units);
		put_be16(at + 2, type);
		add_bytes(&scene, units * 4);
		add_inner(&scene, type == 0x6558, type == 0x86dd, i % 3);
		check(&scene);
	}
}

/* Flags C, K and S in all combinations, what they announce after each other. */
static void gre(void **state)
{
	static const unsigned types[] = {0x6558, 0x0800, 0x86dd};
	struct scene scene;

	(void)state;
	for (unsigned i = 0; i < 48; i++) {
		unsigned type = types[i % 3];
		uint8_t *at;

		start_outer(&scene, 47, i & 1);
		at = add_tunnel(&scene, SIM_GRE, 4);
		at[0] = (uint8_t)((i & 2 ? 0x80 : 0) | (i & 4 ? 0x20 : 0) | (i & 8 ? 0x10 : 0) |
				  (i & 16 ? 0x0f : 0));
		at[1] = 0xf8;
		put_be16(at + 2, type);
		if (at[0] & 0x80)
			add_bytes(&scene, 4);
		if (at[0] & 0x20) {
			scene.level = 0;
			add_bytes(&scene, 4);
			seen(&scene, SIM_GRE_KEY, SCENE_TUNNEL + 4, 4);
			scene.level = 1;
		}
		if (at[0] & 0x10)
			add_bytes(&scene, 4);
		add_inner(&scene, type == 0x6558, type == 0x86dd, i % 3);
		check(&scene);
	}
}

static void gre_not_looked_into(void **state)
{
	struct scene scene;

	(void)state;
	for (unsigned version = 0; version < 8; version++) {
		start_outer(&scene, 47, false);
		add_tunnel(&scene, SIM_GRE, 4);
		put_be16(scene.frame.bytes + scene.frame.length - 4, version);
		put_be16(scene.frame.bytes + scene.frame.length - 2, 0x0800);
		add_ipv4(&scene, 6, 0);
		assert_int_equal((layers(&scene) & SIM_GRE) != 0, version == 0);
		assert_int_equal(
			(layers(&scene) & (uint32_t)SIM_IPV4 << SIM_INNER) != 0, version == 0);
	}
	/* RFC 1701's routing */
	start_outer(&scene, 47, false);
	put_be16(add_tunnel(&scene, SIM_GRE, 4), 0x4000);
	put_be16(scene.frame.bytes + scene.frame.length - 2, 0x0800);
	frame_fill(&scene.frame, 64);
	check(&scene);
}

static void add_gtpu_extension(struct scene *scene, unsigned units, unsigned next)
{
	uint8_t *at = add_bytes(scene, units * 4);

	at[0] = (uint8_t)units;
	at[units * 4 - 1] = (uint8_t)next;
}

static void gtpu(void **state)
{
	struct scene scene;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		unsigned flags = i & 7;
		unsigned n_extensions = flags & 4 ? i >> 4 : 0;
		bool v6 = i & 8;
		uint8_t *at;

		start_outer(&scene, 17, i & 1);
		add_udp(&scene, 2152);
		at = add_tunnel(&scene, SIM_GTPU, 8);
		at[0] = (uint8_t)(0x30 | flags | (i & 8));
		at[1] = 255;
		if (flags != 0) {
			at = add_bytes(&scene, 4);
			at[3] = n_extensions > 0 || !(flags & 4) ? 0x85 : 0;
			scene.level = 0;
			seen(&scene, 0, SCENE_TUNNEL + 8, 4);
			scene.level = 1;
		}
		for (unsigned n = 0; n < n_extensions; n++)
			add_gtpu_extension(&scene, n + 1, n + 1 < n_extensions ? 0xc0 : 0);
		add_inner(&scene, false, v6, 0);
		check(&scene);
	}
}

static void gtpu_not_looked_into(void **state)
{
	static const struct {
		uint8_t flags, type;
		uint32_t layer;
	} cases[] = {{0x30, 255, SIM_GTPU}, {0x30, 254, 0}, {0x30, 1, 0}, {0x20, 255, 0},
		{0x50, 255, 0}, {0x10, 255, 0}};
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		start_outer(&scene, 17, false);
		add_udp(&scene, 2152);
		add_tunnel(&scene, 0, 8);
		scene.frame.bytes[scene.frame.length - 8] = cases[i].flags;
		scene.frame.bytes[scene.frame.length - 7] = cases[i].type;
		frame_fill(&scene.frame, 40); /* letters: neither version 4 nor 5 words long */
		scene.frame.bytes[scene.frame.length - 40] = 0x70;
		assert_int_equal(layers(&scene) & SIM_GTPU, cases[i].layer);
		assert_int_equal(layers(&scene) >> SIM_INNER & 0xfff, 0);
	}
	/* five extension headers; one without a length */
	for (unsigned n = 4; n <= 6; n++) {
		start_outer(&scene, 17, false);
		add_udp(&scene, 2152);
		put_be16(add_tunnel(&scene, SIM_GTPU, 8), 0x34ff);
		add_bytes(&scene, 4)[3] = 0x85;
		for (unsigned i = 0; i < RTE_MIN(n, 5u); i++)
			add_gtpu_extension(&scene, 1, i + 1 < RTE_MIN(n, 5u) ? 0x85 : 0);
		if (n == 6)
			scene.frame.bytes[scene.frame.length - 20] = 0;
		add_ipv4(&scene, 6, 0);
		assert_int_equal(layers(&scene) & SIM_GTPU, SIM_GTPU);
		assert_int_equal((layers(&scene) & (uint32_t)SIM_IPV4 << SIM_INNER) != 0, n == 4);
	}
}

/* A tunnel's port in another place, and a tunnel inside of one. */
static void no_tunnels(void **state)
{
	static const unsigned ports[] = {4789, 6081, 2152};
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(ports); i++) {
		start_outer(&scene, 17, false);
		add_udp(&scene, 53);
		put_be16(scene.frame.bytes + scene.frame.length - 8, ports[i]);
		put_be16(frame_add(&scene.frame, 2), 0x30ff);
		frame_fill(&scene.frame, 80);
		check(&scene);
		start_outer(&scene, 6, false);
		put_be16(add_l4(&scene, SIM_TCP, 20) + 2, ports[i]);
		frame_fill(&scene.frame, 80);
		check(&scene);
		start_outer(&scene, 17, false);
		add_udp(&scene, 4789);
		add_tunnel(&scene, SIM_VXLAN, 8);
		memset(frame_add(&scene.frame, 12), 0x3c, 12);
		add_type(&scene, 0x0800, 0);
		add_ipv4(&scene, 17, 0);
		add_udp(&scene, ports[i]);
		frame_fill(&scene.frame, 80);
		check(&scene);
	}
}

static void places(void **state)
{
	struct scene scene;
	struct sim_view view;

	(void)state;
	scene_start(&scene);
	add_type(&scene, 0x8100, 0);
	add_tci(&scene, 1);
	add_type(&scene, 0x0800, 1);
	add_ipv4(&scene, 17, 8);
	add_udp(&scene, 4789);
	add_tunnel(&scene, SIM_VXLAN, 8);
	add_inner(&scene, true, false, 0);
	parse(&view, scene.frame.bytes, scene.frame.length);
	assert_int_equal(view.l3_at, 18);
	assert_int_equal(view.l4_at, 46);
	assert_int_equal(view.inner_at, 62);
	parse(&view, scene.frame.bytes, 62);
	assert_int_equal(view.inner_at, 0);
	parse(&view, scene.frame.bytes, 53);
	assert_int_equal(view.l4_at, 0);
	parse(&view, scene.frame.bytes, 37);
	assert_int_equal(view.l3_at, 0);
}

/* A frame in several segments is looked at as far as the first goes. */
static void segments(void **state)
{
	struct scene scene;

	(void)state;
	start_outer(&scene, 17, false);
	add_udp(&scene, 53);
	frame_fill(&scene.frame, 20);
	for (uint16_t cut = 0; cut < scene.frame.length; cut++) {
		struct rte_mbuf *mbuf =
			frame_mbuf_sized(scene.frame.bytes, scene.frame.length, &cut, 1);
		struct sim_view view = {0}, expected;

		sim_view_packet(&view, mbuf);
		expect(&scene, cut, &expected);
		assert_memory_equal(&view, &expected, SCENE_MATCHED);
		frame_mbuf_free(mbuf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_but_ethernet),
		cmocka_unit_test(plain_layers),
		cmocka_unit_test(third_tag),
		cmocka_unit_test(wrong_ip),
		cmocka_unit_test(fragments4),
		cmocka_unit_test(extension_headers),
		cmocka_unit_test(chains_of_extensions),
		cmocka_unit_test(fragments6),
		cmocka_unit_test(vxlan),
		cmocka_unit_test(geneve),
		cmocka_unit_test(gre),
		cmocka_unit_test(gre_not_looked_into),
		cmocka_unit_test(gtpu),
		cmocka_unit_test(gtpu_not_looked_into),
		cmocka_unit_test(no_tunnels),
		cmocka_unit_test(places),
		cmocka_unit_test(segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
