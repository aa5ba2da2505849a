/* SPDX-License-Identifier: BSD-3-Clause */

/* Programs compiled from lists and run over packets, compared with packets built from the changed description. */

#include "unit/rewrite_checks.h"

#include "action/program.h"

enum { N_RANDOM = 200000, HEADROOM = 16 };

static const struct hash_secret secret = {.word = {1, 2, 3, 4, 5, 6}};
static const struct extract_options options = {.secret = &secret};

static struct action_program compiled(const struct action *list, unsigned n)
{
	struct action_program program;
	struct error error;

	if (action_program_compile(&program, list, n, &error) != 0)
		fail_msg("%s", error.text);
	return program;
}

/* One program over one frame, by what extract() knows, or without it. */
static struct action_answer run(const struct action_program *program,
	struct action_context *context, struct rte_mbuf *mbuf, bool known)
{
	struct action_packet packet = {.common = false};
	struct action_answer answer;
	struct packet_info info;

	memset(&answer, 0xa5, sizeof(answer));
	if (known && extract(&options, mbuf, 0, &info) == EXTRACT_IP)
		packet = action_packet_of(mbuf, &info);
	action_run(program, context, mbuf, &packet, &answer);
	return answer;
}

/* A random list, and what it makes of a packet; the tags of a packet that can't be changed so are left alone. */
struct random_list {
	struct action list[ACTION_LIST_MAX];
	unsigned n;
	struct random_packet packet; /* changed */
	enum action_drop drop;
};

static struct action *add(struct random_list *list, enum action_kind kind)
{
	struct action *action = &list->list[list->n++];

	memset(action, 0, sizeof(*action));
	action->kind = kind;
	return action;
}

static void add_link(struct random_list *list, uint64_t *state)
{
	struct random_packet *packet = &list->packet;
	unsigned own = packet->n_tags, pushed = 0;

	for (unsigned side = 0; side < 2; side++) {
		if (random_below(state, 3) != 0)
			continue;
		random_fill(state, packet->mac[side], 6);
		packet->mac[side][0] &= 0xfe;
		memcpy(add(list, side == 0 ? ACTION_SET_MAC_SRC : ACTION_SET_MAC_DST)->mac,
			packet->mac[side], 6);
	}
	for (unsigned i = random_below(state, 3) == 0 ? random_below(state, 5) : 0; i > 0; i--) {
		struct action_vlan vlan = {
			.tpid = random_below(state, 2) ? 0x8100 : 0x88a8,
			.id = (uint16_t)random_below(state, 4095),
			.priority = (uint8_t)random_below(state, 8),
		};

		switch (random_below(state, 3)) {
		case 0:
			if (pushed == 2)
				break;
			add(list, ACTION_VLAN_PUSH)->vlan = vlan;
			push_tag(packet, vlan.tpid, (uint16_t)(vlan.priority << 13 | vlan.id));
			pushed++;
			break;
		case 1:
			add(list, ACTION_VLAN_POP);
			if (pushed + own == 0) {
				list->drop = ACTION_DROP_NOT_POSSIBLE;
				return;
			}
			pop_tag(packet);
			if (pushed > 0)
				pushed--;
			else
				own--;
			break;
		default:
			add(list, ACTION_VLAN_SET)->vlan = vlan;
			if (pushed + own == 0) {
				list->drop = ACTION_DROP_NOT_POSSIBLE;
				return;
			}
			packet->tci[0] = (packet->tci[0] & 0xf000) | vlan.id;
		}
	}
}

static void add_ip(struct random_list *list, uint64_t *state)
{
	struct random_packet *packet = &list->packet;
	bool has_ports = random_has_ports(packet->proto) && packet->fragment != RANDOM_LATER;

	if (random_below(state, 2)) {
		add(list, ACTION_DECREMENT_TTL);
		packet->ttl--;
	}
	for (unsigned side = 0; side < 2; side++) {
		if (random_below(state, 2) == 0)
			continue;
		random_fill(state, packet->addr[side], 16);
		memcpy(add(list,
			       (packet->version == 4 ? ACTION_SET_IPV4_SRC : ACTION_SET_IPV6_SRC) +
				       side)
				->address,
			packet->addr[side], 16);
	}
	for (unsigned side = 0; side < 2; side++) {
		uint16_t port = (uint16_t)random_next(state);

		if (random_below(state, 2) == 0)
			continue;
		add(list, ACTION_SET_PORT_SRC + side)->l4_port = rte_cpu_to_be_16(port);
		if (packet->proto == 132 && packet->fragment == RANDOM_FIRST)
			list->drop = ACTION_DROP_NOT_POSSIBLE;
		else if (has_ports)
			packet->port[side] = port;
	}
}

static void shuffle(struct random_list *list, uint64_t *state)
{
	/* tags keep their order */
	for (unsigned i = 1; i < list->n; i++) {
		unsigned j = random_below(state, i + 1);
		struct action *a = &list->list[i], *b = &list->list[j];
		struct action kept = *a;

		if ((a->kind >= ACTION_VLAN_PUSH && a->kind <= ACTION_VLAN_SET) ||
			(b->kind >= ACTION_VLAN_PUSH && b->kind <= ACTION_VLAN_SET))
			continue;
		*a = *b;
		*b = kept;
	}
}

static void check_random(uint64_t *state, unsigned i)
{
	struct random_packet before = random_packet(state);
	struct random_list list = {.packet = before};
	uint16_t sizes[6];
	struct frame frame, wanted;

	if (i % 2) { /* mostly such as the inlined form takes */
		before.n_options = before.n_extensions = before.fragment = 0;
		before.authenticated = before.segments_left = false;
		before.proto = i % 4 == 1 ? 6 : 17;
		before.no_checksum &= before.proto == 17;
		list.packet = before;
	}
	for (size_t j = 0; j < RTE_DIM(sizes); j++)
		sizes[j] = (uint16_t)random_below(state, 40);
	add_link(&list, state);
	if (list.drop == ACTION_DROP_NONE)
		add_ip(&list, state);
	shuffle(&list, state);
	random_build(&before, &frame);

	struct action_program program = compiled(list.list, list.n);
	struct rte_mbuf *mbuf = mbuf_of(&frame, HEADROOM, sizes, i % 8 < 6 ? 0 : RTE_DIM(sizes));
	struct action_context context = {.random = 1};
	struct action_answer answer = run(&program, &context, mbuf, i % 16 < 12);

	assert_int_equal(answer.drop, list.drop);
	assert_int_equal(answer.port, ACTION_NO_PORT);
	assert_int_equal(answer.mirror_port, ACTION_NO_PORT);
	wanted = frame;
	if (list.drop == ACTION_DROP_NONE) {
		random_build(&list.packet, &wanted);
		if (before.fragment == RANDOM_LATER)
			memcpy(wanted.bytes + wanted.upper, frame.bytes + frame.upper,
				frame.length - frame.upper);
	}
	check_bytes(mbuf, wanted.bytes, wanted.length);
	frame_mbuf_free(mbuf);
}

static void random_lists(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned i = 0; i < N_RANDOM; i++)
		check_random(&random, i);
}

/* Impossible lists, and the errors that compile() gives for them. */
static void bad_lists(void **state)
{
	static const struct {
		struct action list[3];
		unsigned n;
		const char *text;
	} rows[] = {
		{{{.kind = ACTION_DROP}, {.kind = ACTION_DECREMENT_TTL}}, 2,
			"action 2 (decrement-ttl): a list that drops has no other action"},
		{{{.kind = ACTION_FORWARD}, {.kind = ACTION_DROP}}, 2,
			"action 2 (drop): a list that drops has no other action"},
		{{{ACTION_OUTPUT, {.port = 1}}, {.kind = ACTION_FORWARD}}, 2,
			"action 2 (forward): the list says already where the packet goes"},
		{{{ACTION_OUTPUT, {.port = 1}}, {ACTION_NEXT_HOP, {.number = 1}}}, 2,
			"action 2 (next-hop): the list says already where the packet goes"},
		{{{ACTION_OUTPUT, {.port = 65535}}}, 1,
			"action 1 (output): there is no port 65535"},
		{{{.kind = ACTION_DECREMENT_TTL}, {.kind = ACTION_DECREMENT_TTL}}, 2,
			"action 2 (decrement-ttl): it stands in the list twice"},
		{{{.kind = ACTION_SET_IPV4_SRC}, {.kind = ACTION_SET_IPV6_DST}}, 2,
			"action 2 (set-ipv6-dst): the list has an address of the other IP version, "
			"too"},
		{{{ACTION_NEXT_HOP, {.number = 65536}}}, 1,
			"action 1 (next-hop): a next hop's number is below 65536"},
		{{{.kind = ACTION_NEXT_HOP}, {.kind = ACTION_SET_MAC_SRC}}, 2,
			"action 2 (set-mac-src): the next hop makes the link header, no other "
			"action can"},
		{{{.kind = ACTION_VLAN_POP}, {.kind = ACTION_NEXT_HOP}}, 2,
			"action 2 (next-hop): the next hop makes the link header, no other action "
			"can"},
		{{{ACTION_SET_MAC_SRC, {.mac = {1}}}}, 1,
			"action 1 (set-mac-src): a multicast address can't be a source"},
		{{{ACTION_VLAN_PUSH, {.vlan = {0x8101, 1, 0}}}}, 1,
			"action 1 (vlan-push): a tag's type is 0x8100 or 0x88a8"},
		{{{ACTION_VLAN_PUSH, {.vlan = {0x8100, 4095, 0}}}}, 1,
			"action 1 (vlan-push): a VLAN id is at most 4094"},
		{{{ACTION_VLAN_PUSH, {.vlan = {0x8100, 1, 8}}}}, 1,
			"action 1 (vlan-push): a priority is at most 7"},
		{{{ACTION_VLAN_SET, {.vlan = {.id = 4095}}}}, 1,
			"action 1 (vlan-set): a VLAN id is at most 4094"},
		{{{ACTION_MIRROR, {.mirror = {1, 0}}}}, 1,
			"action 1 (mirror): one packet in 0: 1 mirrors all"},
		{{{ACTION_MIRROR, {.mirror = {65535, 1}}}}, 1,
			"action 1 (mirror): there is no port 65535"},
		{{{.kind = ACTION_SET_TTL}, {.kind = ACTION_DECREMENT_TTL}}, 2,
			"action 2 (decrement-ttl): the list changes the time to live already"},
		{{{ACTION_DECAP, {.decap = {ACTION_N_TUNNELS, 0}}}}, 1,
			"action 1 (decap): there is no such tunnel"},
		{{{ACTION_DECAP, {.decap = {ACTION_TUNNEL_BYTES, 0}}}}, 1,
			"action 1 (decap): at least one byte comes off"},
		{{{ACTION_ENCAP, {.encap = {.length = 0}}}}, 1,
			"action 1 (encap): a tunnel's headers have 1 to 120 bytes"},
		{{{ACTION_ENCAP, {.encap = {15, {[12] = 8, [14] = 0x45}}}}}, 1,
			"action 1 (encap): the IP header of the tunnel is cut, or is a fragment's"},
		{{{ACTION_ENCAP, {.encap = {38, {[12] = 8, [14] = 0x46}}}}}, 1,
			"action 1 (encap): the IP header of the tunnel has options"},
		{{{ACTION_ENCAP, {.encap = {41, {[12] = 8, [14] = 0x45, [23] = 17}}}}}, 1,
			"action 1 (encap): the UDP header of the tunnel is cut"},
		{{{ACTION_ENCAP, {.encap = {14, {0}}}}, {.kind = ACTION_DECREMENT_TTL}}, 2,
			"action 2 (decrement-ttl): a tunnel's headers come on after all other "
			"changes"},
		{{{.kind = ACTION_VLAN_POP}, {ACTION_DECAP, {.decap = {ACTION_TUNNEL_VXLAN, 0}}}},
			2, "action 2 (decap): what is behind a tunnel's headers is not changed"},
		{{{.kind = ACTION_N_KINDS}}, 1, "action 1 (?): there is no such action"},
		{{{.kind = ACTION_FORWARD}}, 33, "33 actions: at most 32"},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct action_program program, untouched;
		struct error error = {.text = ""};

		memset(&program, 0x5a, sizeof(program));
		untouched = program;
		assert_int_equal(
			action_program_compile(&program, rows[i].list, rows[i].n, &error), -EINVAL);
		assert_string_equal(error.text, rows[i].text);
		assert_memory_equal(&program, &untouched, sizeof(program));
	}
}

static void too_many_tags(void **state)
{
	struct action list[5];
	struct action_program program;
	struct error error;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(list); i++)
		list[i] = (struct action){ACTION_VLAN_PUSH, {.vlan = {0x8100, 1, 0}}};
	assert_int_equal(action_program_compile(&program, list, 4, &error), 0);
	assert_int_equal(action_program_compile(&program, list, 5, &error), -EINVAL);
	assert_string_equal(error.text, "action 5 (vlan-push): more than 4 new tags");
}

static void equal_lists(void **state)
{
	const struct action a[] = {
		{.kind = ACTION_DECREMENT_TTL}, {ACTION_SET_PORT_SRC, {.l4_port = 5}}};
	const struct action b[] = {{.kind = ACTION_FORWARD}, {ACTION_SET_PORT_SRC, {.l4_port = 5}},
		{.kind = ACTION_DECREMENT_TTL}};
	const struct action nothing[] = {
		{ACTION_VLAN_PUSH, {.vlan = {0x8100, 9, 1}}}, {.kind = ACTION_VLAN_POP}};
	struct action_program first = compiled(a, 2), second = compiled(b, 3);

	(void)state;
	assert_memory_equal(&first, &second, sizeof(first));
	first = compiled(NULL, 0);
	second = compiled(nothing, 2);
	assert_memory_equal(&first, &second, sizeof(first));
	assert_true(action_program_is_plain(&first));
	second = compiled(b, 1);
	assert_true(action_program_is_plain(&second));
	second = compiled(a, 1);
	assert_false(action_program_is_plain(&second));
}

/* Everything that drops, in both forms; the frame stays as it was. */
static void check_drop(const struct random_packet *packet, const struct action *list, unsigned n,
	struct action_context *context, enum action_drop wanted)
{
	struct action_program program = compiled(list, n);
	struct frame frame;

	random_build(packet, &frame);
	for (unsigned known = 0; known < 2; known++) {
		struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);
		struct action_answer answer = run(&program, context, mbuf, known);

		assert_int_equal(answer.drop, wanted);
		assert_int_equal(answer.mirror_port, ACTION_NO_PORT);
		check_bytes(mbuf, frame.bytes, frame.length);
		frame_mbuf_free(mbuf);
	}
}

static void drops(void **state)
{
	struct rte_rcu_qsbr *qsbr =
		aligned_alloc(64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(1), 64));
	struct random_packet udp = {.version = 4, .ttl = 1, .proto = 17, .payload = 60};
	struct random_packet udp6 = {.version = 6, .ttl = 9, .proto = 17, .n_tags = 1};
	const struct next_hop hop = {.vlan = 5, .port = 3, .mtu = 87, .valid = true};
	const struct action mirror = {ACTION_MIRROR, {.mirror = {1, 1}}};
	struct action_context context = {0};
	struct error error;

	(void)state;
	udp6.tpid[0] = 0x8100;
	assert_int_equal(rte_rcu_qsbr_init(qsbr, 1), 0);
	check_drop(
		&udp, (struct action[]){{.kind = ACTION_DROP}}, 1, &context, ACTION_DROP_BLOCKED);
	check_drop(&udp, (struct action[]){mirror, {.kind = ACTION_DECREMENT_TTL}}, 2, &context,
		ACTION_DROP_TTL_EXPIRED);
	check_drop(&udp, (struct action[]){mirror, {.kind = ACTION_VLAN_POP}}, 2, &context,
		ACTION_DROP_NOT_POSSIBLE);
	check_drop(&udp, (struct action[]){{ACTION_VLAN_PUSH, {.vlan = {0x8100, 1, 0}}}}, 1,
		&context, ACTION_DROP_NOT_POSSIBLE);
	check_drop(&udp, (struct action[]){{.kind = ACTION_SET_IPV6_SRC}}, 1, &context,
		ACTION_DROP_NOT_POSSIBLE);
	check_drop(&udp6, (struct action[]){{.kind = ACTION_VLAN_POP}, {.kind = ACTION_VLAN_SET}},
		2, &context, ACTION_DROP_NOT_POSSIBLE);
	check_drop(&udp, (struct action[]){{ACTION_POLICE, {.number = 0}}}, 1, &context,
		ACTION_DROP_NOT_POSSIBLE);
	check_drop(&udp, (struct action[]){{ACTION_NEXT_HOP, {.number = 1}}}, 1, &context,
		ACTION_DROP_NO_NEXT_HOP);

	struct next_hops *hops = next_hops_create(2, 1, qsbr);

	assert_non_null(hops);
	context.next_hops = hops;
	check_drop(&udp, (struct action[]){{ACTION_NEXT_HOP, {.number = 1}}}, 1, &context,
		ACTION_DROP_NO_NEXT_HOP);
	assert_int_equal(next_hops_set(hops, 1, &hop, &error), 0);
	/* 20 + 8 + 60 bytes of IP are one too many; one less are too many for no headroom */
	check_drop(&udp, (struct action[]){{ACTION_NEXT_HOP, {.number = 1}}}, 1, &context,
		ACTION_DROP_TOO_BIG);
	udp.payload--;
	check_drop(&udp, (struct action[]){{ACTION_NEXT_HOP, {.number = 1}}}, 1, &context,
		ACTION_DROP_NOT_POSSIBLE);
	next_hops_destroy(hops);
	free(qsbr);
}

/* A routed packet has the link header of its next hop, whatever tags it came with. */
static void next_hop_header(void **state)
{
	struct rte_rcu_qsbr *qsbr =
		aligned_alloc(64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(1), 64));
	const struct action list[] = {
		{ACTION_NEXT_HOP, {.number = 7}}, {.kind = ACTION_DECREMENT_TTL}};
	struct action_program program = compiled(list, 2);
	uint64_t random = 11;
	struct error error;

	(void)state;
	assert_int_equal(rte_rcu_qsbr_init(qsbr, 1), 0);

	struct next_hops *hops = next_hops_create(8, 1, qsbr);
	struct action_context context = {.next_hops = hops};

	assert_non_null(hops);
	for (unsigned i = 0; i < 20000; i++) {
		struct random_packet packet = random_packet(&random);
		struct next_hop hop = {.vlan = (uint16_t)(i % 2 ? 0 : 1 + i % 4094),
			.port = (uint16_t)i,
			.mtu = 1500,
			.valid = true};
		struct frame frame, wanted;

		random_fill(&random, hop.mac_dst, 12);
		hop.mac_src[0] &= 0xfe;
		assert_int_equal(next_hops_set(hops, 7, &hop, &error), 0);
		random_build(&packet, &frame);

		struct rte_mbuf *mbuf = mbuf_of(&frame, HEADROOM, NULL, 0);
		struct action_answer answer = run(&program, &context, mbuf, i % 4 < 2);

		memcpy(packet.mac[1], hop.mac_dst, 6);
		memcpy(packet.mac[0], hop.mac_src, 6);
		packet.n_tags = hop.vlan != 0;
		packet.tpid[0] = 0x8100;
		packet.tci[0] = hop.vlan;
		packet.ttl--;
		random_build(&packet, &wanted);
		assert_int_equal(answer.drop, ACTION_DROP_NONE);
		assert_int_equal(answer.port, hop.port);
		check_bytes(mbuf, wanted.bytes, wanted.length);
		frame_mbuf_free(mbuf);
	}
	next_hops_destroy(hops);
	free(qsbr);
}

/* Non-IP frames: what concerns the link alone is done, a route is not possible. */
static void not_ip(void **state)
{
	const struct action link[] = {{ACTION_SET_MAC_DST, {.mac = {2, 3, 4, 5, 6, 7}}},
		{ACTION_OUTPUT, {.port = 4}}, {ACTION_SET_PORT_SRC, {.l4_port = 1}}};
	const struct action ttl[] = {{.kind = ACTION_DECREMENT_TTL}};
	struct action_context context = {0};
	struct action_program program = compiled(link, 3);
	struct frame frame;

	(void)state;
	frame_start(&frame);
	frame_type(&frame, 0x0806);
	frame_fill(&frame, 28);

	struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);
	struct action_answer answer = run(&program, &context, mbuf, true);

	assert_int_equal(answer.drop, ACTION_DROP_NONE);
	assert_int_equal(answer.port, 4);
	memcpy(frame.bytes, link[0].mac, 6);
	check_bytes(mbuf, frame.bytes, frame.length);
	program = compiled(ttl, 1);
	assert_int_equal(run(&program, &context, mbuf, true).drop, ACTION_DROP_NOT_POSSIBLE);
	frame_mbuf_free(mbuf);
	/* too short for Ethernet: it may go on, but nothing of it can be changed */
	frame.length = 13;
	mbuf = mbuf_of(&frame, 0, NULL, 0);
	program = compiled(&link[1], 1);
	assert_int_equal(run(&program, &context, mbuf, true).drop, ACTION_DROP_NONE);
	program = compiled(&link[0], 1);
	assert_int_equal(run(&program, &context, mbuf, true).drop, ACTION_DROP_NOT_POSSIBLE);
	frame_mbuf_free(mbuf);
}

/* A first segment that is shorter than the tag that comes off has less headroom then than it seems. */
static void headroom_of_short_segment(void **state)
{
	const struct action list[] = {
		{.kind = ACTION_VLAN_POP}, {ACTION_VLAN_PUSH, {.vlan = {0x88a8, 77, 3}}}};
	struct action_program program = compiled(list, 2);
	struct random_packet packet = {.version = 4, .ttl = 5, .proto = 6, .n_tags = 1};
	struct action_context context = {0};
	struct frame frame, wanted;

	(void)state;
	packet.tpid[0] = 0x8100;
	random_build(&packet, &frame);
	packet.tpid[0] = 0x88a8;
	packet.tci[0] = 3 << 13 | 77;
	random_build(&packet, &wanted);
	for (uint16_t size = 0; size < 6; size++) {
		for (unsigned headroom = 0; headroom < 6; headroom++) {
			struct rte_mbuf *mbuf = mbuf_of(&frame, headroom, &size, 1);
			bool room = headroom + size >= 4;
			struct action_answer answer = run(&program, &context, mbuf, false);

			assert_int_equal(
				answer.drop, room ? ACTION_DROP_NONE : ACTION_DROP_NOT_POSSIBLE);
			check_bytes(mbuf, room ? wanted.bytes : frame.bytes, frame.length);
			frame_mbuf_free(mbuf);
		}
	}
}

static void police_and_mirror(void **state)
{
	const struct action list[] = {{ACTION_POLICE, {.number = 1}},
		{ACTION_MIRROR, {.mirror = {9, 4}}}, {ACTION_OUTPUT, {.port = 2}}};
	struct action_program program = compiled(list, 3);
	struct policer policers[2];
	struct policer_options limits = {
		.peak = {2000, 2000}, .committed = {1000, 1000}, .packets = true};
	struct action_context context = {.policers = policers, .n_policers = 2, .random = 3};
	struct random_packet packet = {.version = 4, .ttl = 5, .proto = 6};
	unsigned colors[3] = {0}, mirrored = 0;
	struct error error;
	struct frame frame;

	(void)state;
	assert_int_equal(policer_init(&policers[1], &limits, &error), 0);
	random_build(&packet, &frame);
	for (unsigned i = 0; i < 3000; i++) {
		struct rte_mbuf *mbuf = mbuf_of(&frame, 0, NULL, 0);
		struct action_answer answer = run(&program, &context, mbuf, i % 2);

		colors[answer.color]++;
		assert_int_equal(answer.drop,
			answer.color == POLICER_RED ? ACTION_DROP_POLICED : ACTION_DROP_NONE);
		if (answer.mirror_port != ACTION_NO_PORT) {
			assert_int_equal(answer.mirror_port, 9);
			assert_int_equal(answer.drop, ACTION_DROP_NONE);
			mirrored++;
		}
		assert_int_equal(answer.port, 2);
		frame_mbuf_free(mbuf);
	}
	assert_int_equal(colors[POLICER_GREEN], 1000);
	assert_int_equal(colors[POLICER_YELLOW], 1000);
	assert_int_equal(colors[POLICER_RED], 1000);
	/* 500 are expected of 2,000; five standard deviations are 97 */
	assert_in_range(mirrored, 403, 597);
}

static void burst(void **state)
{
	enum { N = 33 };
	const struct action list[] = {{.kind = ACTION_DECREMENT_TTL}, {ACTION_OUTPUT, {.port = 2}}};
	struct action_program both[2] = {compiled(list, 1), compiled(list, 2)};
	struct random_packet packet = {.version = 4, .ttl = 5, .proto = 6};
	const struct action_program *programs[N];
	struct action_packet packets[N];
	struct action_answer answers[N];
	struct rte_mbuf *frames[N];
	struct action_context context = {0};
	struct packet_info info;
	struct frame frame;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		packet.ttl = (uint8_t)(1 + i % 3);
		random_build(&packet, &frame);
		frames[i] = mbuf_of(&frame, 0, NULL, 0);
		programs[i] = &both[i % 2];
		assert_int_equal(extract(&options, frames[i], 0, &info), EXTRACT_IP);
		packets[i] = action_packet_of(frames[i], &info);
	}
	action_run_burst(programs, &context, frames, packets, answers, N);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(
			answers[i].drop, i % 3 == 0 ? ACTION_DROP_TTL_EXPIRED : ACTION_DROP_NONE);
		assert_int_equal(answers[i].port, i % 2 ? 2 : ACTION_NO_PORT);
		frame_mbuf_free(frames[i]);
	}
}

static void names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ACTION_N_KINDS; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(action_kind_name(i), action_kind_name(j));
	for (unsigned i = 0; i < ACTION_N_DROPS; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(action_drop_name(i), action_drop_name(j));
	assert_string_equal(action_kind_name(ACTION_N_KINDS), "?");
	assert_string_equal(action_drop_name(ACTION_N_DROPS), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lists),
		cmocka_unit_test(bad_lists),
		cmocka_unit_test(too_many_tags),
		cmocka_unit_test(equal_lists),
		cmocka_unit_test(drops),
		cmocka_unit_test(next_hop_header),
		cmocka_unit_test(not_ip),
		cmocka_unit_test(headroom_of_short_segment),
		cmocka_unit_test(police_and_mirror),
		cmocka_unit_test(burst),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
