/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What rules decide, of packets and of flows, against a plain reference: the first rule that matches. RULE_PACKETS is
 * how many random packets: 30,000 unless it is given.
 */

#include "unit/rules_scene.h"

#define MAX_RULES 24
#define N_PORTS 4

/* A rule as the test has made it up: what is -1 is not asked for. */
struct made {
	int port; /* of the rule; `any_port` where it is for all */
	bool any_port;
	unsigned priority, group;
	int version, proto, src, src_bits, dst, dst_bits, ttl, tos, flags, flags_mask;
	int src_port[2], dst_port[2], vlan, dei, type;
	int jump; /* to this group, else: */
	int mark; /* or drop */
	uint32_t number;
	unsigned age;
};

struct sample {
	int port, version, proto, src, dst, ttl, tos, flags, src_port, dst_port, vlan, dei, type;
};

static uint64_t random_state = 1;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

static int maybe(unsigned chances, int value)
{
	return below(chances) == 0 ? value : -1;
}

static bool in_prefix(int value, int prefix, int bits)
{
	return prefix < 0 || (value ^ prefix) >> (8 - bits) == 0;
}

static bool is_or_any(int asked, int value)
{
	return asked < 0 || asked == value;
}

/* `of_flow`: only what packets of a flow have in common. */
static bool fits(const struct made *rule, const struct sample *sample, bool of_flow, bool zone)
{
	if (!rule->any_port && rule->port != sample->port)
		return false;
	if (!is_or_any(rule->version, sample->version) || !is_or_any(rule->proto, sample->proto))
		return false;
	if (!in_prefix(sample->src, rule->src, rule->src_bits) ||
		!in_prefix(sample->dst, rule->dst, rule->dst_bits))
		return false;
	if (rule->src_port[0] >= 0 &&
		(sample->src_port < rule->src_port[0] || sample->src_port > rule->src_port[1]))
		return false;
	if (rule->dst_port[0] >= 0 &&
		(sample->dst_port < rule->dst_port[0] || sample->dst_port > rule->dst_port[1]))
		return false;
	if (rule->vlan >= 0 && (!of_flow || zone) && rule->vlan != sample->vlan)
		return false;
	/* a flow is of IP, with tags or without */
	if (of_flow)
		return rule->type < 0 || rule->type == (sample->version == 4 ? 0x800 : 0x86dd);
	return is_or_any(rule->ttl, sample->ttl) && is_or_any(rule->tos, sample->tos) &&
	       (rule->flags < 0 || (sample->flags & rule->flags_mask) == rule->flags) &&
	       is_or_any(rule->type, sample->type) && is_or_any(rule->dei, sample->dei);
}

static bool is_by_packet(const struct made *rule, bool zone)
{
	return rule->ttl >= 0 || rule->tos >= 0 || rule->flags >= 0 || rule->type >= 0 ||
	       rule->dei >= 0 || (rule->vlan >= 0 && !zone);
}

static const struct made *first(
	const struct made *rules, unsigned n, const struct sample *sample, bool of_flow, bool zone)
{
	const struct made *found;
	int group = 0;

	do {
		found = NULL;
		for (unsigned i = 0; i < n; i++)
			if ((int)rules[i].group == group &&
				fits(&rules[i], sample, of_flow, zone) &&
				(found == NULL || rules[i].priority < found->priority ||
					(rules[i].priority == found->priority &&
						rules[i].age < found->age)))
				found = &rules[i];
		if (found == NULL || (of_flow && is_by_packet(found, zone)))
			return found;
		group = found->jump;
	} while (group > 0);
	return found;
}

static void make_rule(struct made *rule)
{
	*rule = (struct made){
		.port = (int)below(N_PORTS),
		.any_port = below(4) == 0,
		.priority = below(4),
		.group = below(4) == 0,
		.version = below(4) == 0   ? -1
			   : below(3) == 0 ? 6
					   : 4,
		.src = -1,
		.dst = -1,
		.ttl = -1,
		.tos = -1,
		.flags = -1,
		.vlan = maybe(8, (int)below(3) + 1),
		.dei = -1,
		.type = -1,
		.proto = maybe(2, below(2) ? 6 : 17),
		.jump = 0,
		.mark = maybe(2, (int)below(1000)),
	};
	if (rule->vlan >= 0)
		rule->dei = maybe(3, (int)below(2));
	rule->src_port[0] = rule->dst_port[0] = -1;
	if (rule->group == 0 && below(6) == 0)
		rule->jump = 1;
	if (rule->version > 0) {
		rule->src = maybe(2, (int)below(256));
		rule->dst = maybe(3, (int)below(256));
		rule->src_bits = (int)below(9);
		rule->dst_bits = (int)below(9);
		rule->ttl = maybe(10, (int)below(3));
		rule->tos = maybe(10, (int)below(3));
	} else {
		static const int types[] = {0x800, 0x86dd, 0x806};

		rule->type = maybe(4, types[below(3)]);
	}
	if (rule->proto >= 0 && below(2)) {
		rule->src_port[0] = (int)below(8);
		rule->src_port[1] = rule->src_port[0] + (int)below(4);
	}
	if (rule->proto >= 0 && below(2)) {
		rule->dst_port[0] = (int)below(8);
		rule->dst_port[1] = rule->dst_port[0] + (int)below(4);
	}
	if (rule->proto == 6 && below(8) == 0) {
		rule->flags_mask = 1 + (int)below(3);
		rule->flags = (int)below(4) & rule->flags_mask;
	}
}

__attribute__((format(printf, 2, 3))) static void put(char *line, const char *format, ...)
{
	const size_t length = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + length, 1024 - length, format, args);
	va_end(args);
}

static void put_address(char *line, const struct made *rule, const char *name, int value, int bits)
{
	if (value < 0)
		return;
	/* `bits` of the last byte of an address */
	if (rule->version == 4)
		put(line, " %s spec 10.0.0.%d %s mask 255.255.255.%d", name, value, name,
			(256 - (1 << (8 - bits))) & 255);
	else
		put(line, " %s spec 2001:db8::%x %s prefix %d", name, value, name, 120 + bits);
}

static void put_port(char *line, const char *name, const int port[2])
{
	if (port[0] < 0)
		return;
	put(line, " %s spec %d %s mask 65535", name, port[0], name);
	if (port[1] != port[0])
		put(line, " %s last %d", name, port[1]);
}

static void write_rule(const struct made *rule, char line[1024])
{
	line[0] = '\0';
	put(line, "flow create %d group %u priority %u %s pattern eth", rule->port, rule->group,
		rule->priority, rule->any_port ? "transfer" : "ingress");
	if (rule->type >= 0)
		put(line, " type is %d", rule->type);
	if (rule->vlan >= 0)
		put(line, " / vlan vid is %d", rule->vlan);
	if (rule->dei >= 0)
		put(line, " dei is %d", rule->dei);
	if (rule->version > 0) {
		put(line, " / ipv%d", rule->version);
		put_address(line, rule, "src", rule->src, rule->src_bits);
		put_address(line, rule, "dst", rule->dst, rule->dst_bits);
		if (rule->ttl >= 0)
			put(line, " %s is %d", rule->version == 4 ? "ttl" : "hop", rule->ttl + 1);
		if (rule->tos >= 0)
			put(line, " %s is %d", rule->version == 4 ? "tos" : "tc", rule->tos);
	}
	if (rule->proto >= 0) {
		put(line, " / %s", rule->proto == 6 ? "tcp" : "udp");
		put_port(line, "src", rule->src_port);
		put_port(line, "dst", rule->dst_port);
		if (rule->flags >= 0)
			put(line, " flags spec %d flags mask %d", rule->flags, rule->flags_mask);
	}
	if (rule->jump > 0)
		put(line, " / end actions jump group %d / end", rule->jump);
	else if (rule->mark >= 0)
		put(line, " / end actions mark id %d / end", rule->mark);
	else
		put(line, " / end actions drop / end");
}

static struct sample make_sample(void)
{
	return (struct sample){
		.port = (int)below(N_PORTS),
		.version = below(3) == 0 ? 6 : 4,
		.proto = below(2) ? 6 : 17,
		.src = (int)below(256),
		.dst = (int)below(256),
		.ttl = (int)below(3),
		.tos = (int)below(3),
		.flags = (int)below(4),
		.src_port = (int)below(8),
		.dst_port = (int)below(8),
		.vlan = below(2) ? (int)below(4) : 0,
		.dei = (int)below(2),
	};
}

static struct rte_mbuf *packet_of(struct sample *sample, bool zone, struct packet_info *info)
{
	const struct extract_options options = {.secret = &test_secret, .zone_vlan = zone};
	char src[64], dst[64];
	struct rte_mbuf *mbuf;
	struct frame frame;

	frame_start(&frame);
	sample->type = sample->vlan > 0 ? 0x8100 : sample->version == 4 ? 0x0800 : 0x86dd;
	if (sample->vlan > 0)
		frame_tag(&frame, 0x8100, (unsigned)(sample->vlan | sample->dei << 12));
	snprintf(
		src, sizeof(src), sample->version == 4 ? "10.0.0.%d" : "2001:db8::%x", sample->src);
	snprintf(
		dst, sizeof(dst), sample->version == 4 ? "10.0.0.%d" : "2001:db8::%x", sample->dst);
	if (sample->version == 4)
		frame_ipv4(&frame, src, dst, (unsigned)sample->proto);
	else
		frame_ipv6(&frame, src, dst, (unsigned)sample->proto);
	uint8_t *ip = frame.bytes + frame.ip[0];

	if (sample->proto == 6) {
		const struct frame_tcp tcp = {
			.src_port = (unsigned)sample->src_port,
			.dst_port = (unsigned)sample->dst_port,
			.flags = (unsigned)sample->flags,
		};

		frame_tcp(&frame, &tcp);
	} else {
		frame_udp(&frame, (unsigned)sample->src_port, (unsigned)sample->dst_port);
		sample->flags = 0;
	}
	frame_finish(&frame);
	if (sample->version == 4) {
		ip[1] = (uint8_t)sample->tos;
		ip[8] = (uint8_t)(sample->ttl + 1);
	} else {
		ip[0] = (uint8_t)(0x60 | sample->tos >> 4);
		ip[1] = (uint8_t)((ip[1] & 0x0f) | sample->tos << 4);
		ip[7] = (uint8_t)(sample->ttl + 1);
	}
	mbuf = frame_mbuf(frame.bytes, frame.length);
	assert_int_equal(extract(&options, mbuf, (unsigned)sample->port / 2, info), EXTRACT_IP);
	return mbuf;
}

/* Flows since the rules have changed, and what was decided of each alone. */
struct together {
	struct flow_key keys[FLOW_DECIDE_BURST];
	uint16_t ports[FLOW_DECIDE_BURST][2];
	struct flow_decision alone[FLOW_DECIDE_BURST];
	unsigned n;
};

struct differential {
	struct together together;
	struct rules_scene scene;
	struct made rules[MAX_RULES];
	unsigned n, age;
	bool zone;
	unsigned long by_packet, decided, matched, by_port;
};

static void add_random(struct differential *differential)
{
	struct made *rule = &differential->rules[differential->n];
	char line[1024];

	if (differential->n == MAX_RULES)
		return;
	make_rule(rule);
	write_rule(rule, line);
	const char *told = scene_command(&differential->scene, line);

	if (sscanf(told, "Flow rule #%u created", &rule->number) != 1)
		fail_msg("%s\n%s", line, told);
	rule->age = differential->age++;
	differential->n++;
}

static void remove_random(struct differential *differential)
{
	if (differential->n == 0)
		return;
	const unsigned at = below(differential->n);
	const struct made *rule = &differential->rules[at];

	assert_int_equal(
		rules_remove(differential->scene.rules, (uint16_t)rule->port, rule->number, NULL),
		0);
	differential->rules[at] = differential->rules[--differential->n];
	scene_settle(&differential->scene);
}

/* The slot that a rule has, or FLOW_RULE_NONE. */
static uint32_t slot_of(const struct differential *differential, const struct made *rule)
{
	struct rules_view view;

	if (rule == NULL)
		return FLOW_RULE_NONE;
	assert_int_equal(
		rules_get(differential->scene.rules, (uint16_t)rule->port, rule->number, &view), 0);
	return view.slot;
}

static void check_answer(const struct made *rule, uint16_t verdict, bool marked, uint32_t mark)
{
	bool marks = rule != NULL && rule->mark >= 0 && rule->jump == 0;

	assert_int_equal(
		verdict, rule != NULL && rule->mark < 0 ? FLOW_VERDICT_DROP : FLOW_VERDICT_FORWARD);
	assert_int_equal(marked, marks);
	if (marks)
		assert_int_equal(mark, rule->mark);
}

static void check_packet(struct differential *differential, const struct rte_mbuf *mbuf,
	const struct packet_info *info, const struct sample *sample)
{
	const struct made *rule =
		first(differential->rules, differential->n, sample, false, differential->zone);
	struct flow_packet_decision answer;

	rules_classify(differential->scene.rules, mbuf, info, (uint16_t)sample->port,
		(struct flow_packet_ct){0}, &answer);
	assert_int_equal(answer.rule, slot_of(differential, rule));
	check_answer(rule, answer.verdict, answer.marked, answer.mark);
	differential->matched += rule != NULL;
}

static void remember(struct together *together, const struct flow_key *key, const uint16_t port[2],
	const struct flow_decision *decision)
{
	const unsigned n = together->n++;

	together->keys[n] = *key;
	together->ports[n][0] = port[0];
	together->ports[n][1] = port[1];
	together->alone[n] = *decision;
}

static void write_packet(const struct sample *sample, char text[1024])
{
	const bool ipv4 = sample->version == 4;

	text[0] = '\0';
	put(text, "%d eth", sample->port);
	if (sample->vlan > 0)
		put(text, " / vlan vid is %d dei is %d", sample->vlan, sample->dei);
	if (ipv4)
		put(text, " / ipv4 src is 10.0.0.%d dst is 10.0.0.%d ttl is %d tos is %d",
			sample->src, sample->dst, sample->ttl + 1, sample->tos);
	else
		put(text, " / ipv6 src is 2001:db8::%x dst is 2001:db8::%x hop is %d tc is %d",
			sample->src, sample->dst, sample->ttl + 1, sample->tos);
	put(text, " / %s src is %d dst is %d", sample->proto == 6 ? "tcp" : "udp", sample->src_port,
		sample->dst_port);
	if (sample->proto == 6)
		put(text, " flags is %d", sample->flags);
	put(text, " / end");
}

static void count_step(void *context, const struct rules_step *step)
{
	(void)step;
	++*(unsigned *)context;
}

/* A packet that is given by its fields comes to the same rule. */
static void check_traced(struct differential *differential, const struct sample *sample)
{
	const struct made *rule =
		first(differential->rules, differential->n, sample, false, differential->zone);
	const struct rules *rules = differential->scene.rules;
	struct classifier_header header;
	unsigned column, steps = 0;
	struct error error;
	char text[1024];

	write_packet(sample, text);
	if (rules_header_of_packet(rules, text, &header, &column, &error) < 0)
		fail_msg("%s\ncolumn %u: %s", text, column, error.text);
	assert_int_equal(
		rules_trace(rules, &header, true, count_step, &steps), slot_of(differential, rule));
	assert_true(steps > 0);
}

/* The direction of the flow that the packet is of; the other one is another packet's. */
static void check_flow(struct differential *differential, const struct packet_info *info,
	const struct sample *sample)
{
	const unsigned from = info->from;
	const uint16_t port[2] = {(uint16_t)(from == 0 ? sample->port : sample->port ^ 1),
		(uint16_t)(from == 1 ? sample->port : sample->port ^ 1)};
	struct flow_decision decision = {.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}};
	const struct made *rule =
		first(differential->rules, differential->n, sample, true, differential->zone);
	struct sample other = *sample;

	rules_decide(differential->scene.rules, &info->key, port, &decision);
	if (rule != NULL && is_by_packet(rule, differential->zone)) {
		assert_int_equal(decision.verdict[from], FLOW_VERDICT_BY_PACKET);
		differential->by_packet++;
	} else {
		assert_int_equal(decision.rule[from], slot_of(differential, rule));
		check_answer(rule, decision.verdict[from], decision.marked >> from & 1,
			decision.mark[from]);
		differential->decided++;
	}
	other.port ^= 1;
	if (first(differential->rules, differential->n, &other, true, differential->zone) != rule)
		assert_true(decision.by_port);
	differential->by_port += decision.by_port;
	remember(&differential->together, &info->key, port, &decision);
}

/* Side by side the same is decided. */
static void check_together(struct differential *differential)
{
	struct together *together = &differential->together;
	struct flow_decision decisions[FLOW_DECIDE_BURST];
	const struct flow_key *keys[FLOW_DECIDE_BURST];

	for (unsigned i = 0; i < together->n; i++) {
		keys[i] = &together->keys[i];
		decisions[i] = (struct flow_decision){.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}};
	}
	rules_decide_burst(differential->scene.rules, keys, (const uint16_t(*)[2])together->ports,
		decisions, together->n);
	for (unsigned i = 0; i < together->n; i++) {
		const struct flow_decision *alone = &together->alone[i];

		assert_memory_equal(decisions[i].verdict, alone->verdict, sizeof(alone->verdict));
		assert_memory_equal(decisions[i].rule, alone->rule, sizeof(alone->rule));
		assert_memory_equal(decisions[i].mark, alone->mark, sizeof(alone->mark));
		assert_int_equal(decisions[i].marked, alone->marked);
		assert_int_equal(decisions[i].by_port, alone->by_port);
	}
	together->n = 0;
}

static void run_differential(bool zone)
{
	const char *given = getenv("RULE_PACKETS");
	const unsigned long n = given != NULL ? strtoul(given, NULL, 10) : 30000;
	struct differential *differential = calloc(1, sizeof(*differential));
	struct packet_info info;

	assert_non_null(differential);
	scene_open(&differential->scene, MAX_RULES, zone);
	differential->zone = zone;
	for (unsigned long i = 0; i < n; i++) {
		struct sample sample = make_sample();

		if (i % 16 == 0)
			below(2) ? add_random(differential) : remove_random(differential);
		if (i % 4096 == 0) {
			rules_flush(differential->scene.rules, RULES_NO_PORT);
			scene_settle(&differential->scene);
			differential->n = 0;
			for (unsigned j = below(MAX_RULES); j > 0; j--)
				add_random(differential);
		}
		struct rte_mbuf *mbuf = packet_of(&sample, zone, &info);

		check_packet(differential, mbuf, &info, &sample);
		check_flow(differential, &info, &sample);
		if (i % 8 == 0)
			check_traced(differential, &sample);
		frame_mbuf_free(mbuf);
		/* the rules change before the next one, or the burst is shorter */
		if (i % 16 == 15 || i % 64 == 40)
			check_together(differential);
	}
	print_message(
		"%lu packets: %lu matched, %lu decided as flows, %lu by packet, %lu by port\n", n,
		differential->matched, differential->decided, differential->by_packet,
		differential->by_port);
	assert_true(differential->by_packet > n / 100 && differential->decided > n / 100);
	scene_close(&differential->scene);
	free(differential);
}

static void test_random(void **state)
{
	(void)state;
	run_differential(false);
}

static void test_random_zone(void **state)
{
	(void)state;
	run_differential(true);
}

/* What is no flow's is known by its Ethernet header; ICMP by type and code. */
static void test_others(void **state)
{
	struct rules_scene scene;
	struct flow_packet_decision answer;
	struct packet_info info;
	struct frame frame;

	(void)state;
	scene_open(&scene, 8, false);
	scene_command(&scene,
		"flow create 0 ingress pattern eth type is 0x0806 / end actions drop / end");
	frame_start(&frame);
	frame_type(&frame, 0x0806);
	frame_fill(&frame, 28);
	struct rte_mbuf *mbuf = frame_mbuf(frame.bytes, frame.length);

	rules_classify(scene.rules, mbuf, NULL, 0, (struct flow_packet_ct){0}, &answer);
	assert_int_equal(answer.verdict, FLOW_VERDICT_DROP);
	rules_classify(scene.rules, mbuf, NULL, 1, (struct flow_packet_ct){0}, &answer);
	assert_int_equal(answer.verdict, FLOW_VERDICT_FORWARD);
	frame_mbuf_free(mbuf);
	scene_command(&scene,
		"flow create 0 ingress pattern eth / ipv4 / icmp type is 8 / end actions "
		"drop / end");
	for (unsigned type = 0; type < 16; type += 8) {
		struct flow_decision decision = {.cause = FLOW_CAUSE_NONE};
		const uint16_t port[2] = {0, 1};

		frame_start(&frame);
		frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", 1);
		frame_icmp(&frame, type, 0);
		frame_finish(&frame);
		mbuf = frame_mbuf(frame.bytes, frame.length);
		assert_int_equal(extract(&test_options, mbuf, 0, &info), EXTRACT_IP);
		rules_classify(scene.rules, mbuf, &info, 0, (struct flow_packet_ct){0}, &answer);
		assert_int_equal(
			answer.verdict, type == 8 ? FLOW_VERDICT_DROP : FLOW_VERDICT_FORWARD);
		rules_decide(scene.rules, &info.key, port, &decision);
		assert_int_equal(decision.verdict[0], FLOW_VERDICT_BY_PACKET);
		assert_int_equal(decision.verdict[1], FLOW_VERDICT_FORWARD);
		assert_true(decision.by_port);
		frame_mbuf_free(mbuf);
	}
	scene_close(&scene);
}

/* A flow that no rule touches is plain, whatever else there is. */
static void test_plain(void **state)
{
	const uint16_t port[2] = {0, 1};
	struct flow_decision decision = {.rule = {FLOW_RULE_NONE, FLOW_RULE_NONE}};
	struct rules_scene scene;
	struct packet_info info;
	struct frame frame;

	(void)state;
	scene_open(&scene, 8, false);
	scene_command(&scene,
		"flow create 0 ingress pattern ipv4 dst is 10.9.9.9 ttl is 1 / end actions "
		"drop / end");
	scene_command(&scene,
		"flow create 1 ingress pattern ipv4 dst is 10.9.9.9 / end actions drop / "
		"end");
	frame_start(&frame);
	frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", 17);
	frame_udp(&frame, 1, 2);
	frame_finish(&frame);
	struct rte_mbuf *mbuf = frame_mbuf(frame.bytes, frame.length);

	assert_int_equal(extract(&test_options, mbuf, 0, &info), EXTRACT_IP);
	rules_decide(scene.rules, &info.key, port, &decision);
	assert_int_equal(decision.verdict[0] | decision.verdict[1], FLOW_VERDICT_FORWARD);
	assert_int_equal(decision.rule[0], FLOW_RULE_NONE);
	assert_false(decision.by_port);
	assert_int_equal(decision.marked, 0);
	frame_mbuf_free(mbuf);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_zone),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
