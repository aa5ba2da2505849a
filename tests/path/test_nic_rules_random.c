/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random rules and packets against a plain reference, the first rule that matches: by software alone, by NICs that hold
 * what they can, and by such as are small or take few patterns. A packet comes through or it does not, exactly as the
 * reference says, and every packet is counted once. NIC_RULES_PAIRS is how many pairs of a packet and a set of rules there
 * are for each: 40,000 unless it is given; NIC_RULES_SEED where they begin; NIC_RULES_TEST the name of one test alone.
 */
#include "nic_rules_line.h"

#include <netinet/in.h>

#define MAX_RULES 10
#define PACKETS_EACH 120
#define BURST 32
#define ARP 0x0806

/* What is -1 is not asked for. */
struct made {
	int port; /* of packets; -1: any */
	unsigned priority;
	int version, proto, src, src_bits, dst, dst_bits, ttl, tos, flags, flags_mask, vlan, icmp;
	int eth_type; /* of rules without a version */
	int mac;      /* the last byte of the source's */
	int src_port[2], dst_port[2];
	bool drops;
	uint32_t number;
};

enum kind {
	PLAIN,
	OPTIONS,   /* of IPv4 */
	EXTENSION, /* of IPv6 */
	FIRST,	   /* fragments */
	LATER,
	NOT_IP,
	N_KINDS,
};

struct sample {
	enum kind kind;
	int port, version, proto, src, dst, ttl, tos, flags, src_port, dst_port, vlan, icmp, mac;
	unsigned id;
};

static uint64_t random_state;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

static int maybe(unsigned chances, int value)
{
	return below(chances) == 0 ? value : -1;
}

static int any_proto(int version)
{
	static const int protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDP, IPPROTO_ICMP, 47};
	const int proto = protos[below(5)];

	return proto == IPPROTO_ICMP && version == 6 ? IPPROTO_ICMPV6 : proto;
}

static bool has_ports(int proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP;
}

static bool is_icmp(int proto)
{
	return proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;
}

static void make_range(int range[2])
{
	range[0] = (int)below(8);
	range[1] = range[0] + (int)below(4) * (int)below(2);
}

static void make_rule(struct made *rule)
{
	*rule = (struct made){
		.port = maybe(2, (int)below(2)),
		.priority = below(4),
		.version = below(8) == 0   ? -1
			   : below(3) == 0 ? 6
					   : 4,
		.src = -1,
		.dst = -1,
		.ttl = -1,
		.tos = -1,
		.flags = -1,
		.icmp = -1,
		.eth_type = -1,
		.vlan = maybe(10, (int)below(2) + 1),
		.mac = maybe(16, (int)below(2)),
		.proto = -1,
		.src_port = {-1, -1},
		.dst_port = {-1, -1},
		.drops = below(3) != 0,
	};
	if (rule->version < 0) {
		rule->eth_type = maybe(2, ARP);
		if (rule->eth_type >= 0)
			rule->vlan = -1;
		return;
	}
	rule->proto = maybe(2, any_proto(rule->version));
	rule->src = maybe(2, (int)below(16));
	rule->dst = maybe(3, (int)below(16));
	rule->src_bits = 4 + (int)below(5);
	rule->dst_bits = 4 + (int)below(5);
	rule->ttl = maybe(10, (int)below(3));
	rule->tos = maybe(12, (int)below(3));
	if (has_ports(rule->proto) && below(2))
		make_range(rule->src_port);
	if (has_ports(rule->proto) && below(2))
		make_range(rule->dst_port);
	if (rule->proto == IPPROTO_TCP && below(4) == 0) {
		rule->flags_mask = 1 + (int)below(7);
		rule->flags = (int)below(8) & rule->flags_mask;
	}
	if (is_icmp(rule->proto))
		rule->icmp = maybe(2, rule->version == 4 ? 8 : 128);
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
	if (rule->version == 4)
		put(line, " %s spec 10.0.0.%d %s mask 255.255.255.%d", name, value, name,
			(256 - (1 << (8 - bits))) & 255);
	else
		put(line, " %s spec 2001:db8::%x %s prefix %d", name, value, name, 120 + bits);
}

static void put_range(char *line, const char *name, const int range[2])
{
	if (range[0] < 0)
		return;
	put(line, " %s spec %d %s mask 65535", name, range[0], name);
	if (range[1] != range[0])
		put(line, " %s last %d", name, range[1]);
}

static void put_upper(char *line, const struct made *rule)
{
	if (has_ports(rule->proto)) {
		put(line, " / %s", rule->proto == IPPROTO_TCP ? "tcp" : "udp");
		put_range(line, "src", rule->src_port);
		put_range(line, "dst", rule->dst_port);
		if (rule->flags >= 0)
			put(line, " flags spec %d flags mask %d", rule->flags, rule->flags_mask);
	} else if (is_icmp(rule->proto)) {
		put(line, rule->proto == IPPROTO_ICMP ? " / icmp" : " / icmp6");
		if (rule->icmp >= 0)
			put(line, " type is %d", rule->icmp);
	}
}

static void write_rule(const struct made *rule, char line[1024])
{
	line[0] = '\0';
	put(line, "flow create %d priority %u %s pattern eth", rule->port < 0 ? 0 : rule->port,
		rule->priority, rule->port < 0 ? "transfer" : "ingress");
	if (rule->mac >= 0)
		put(line, " src is 02:00:00:00:00:%02x", rule->mac);
	if (rule->eth_type >= 0)
		put(line, " type is %d", rule->eth_type);
	if (rule->vlan >= 0)
		put(line, " / vlan vid is %d", rule->vlan);
	if (rule->version > 0) {
		put(line, " / ipv%d", rule->version);
		put_address(line, rule, "src", rule->src, rule->src_bits);
		put_address(line, rule, "dst", rule->dst, rule->dst_bits);
		if (rule->proto == 47)
			put(line, " proto is 47");
		if (rule->ttl >= 0)
			put(line, " %s is %d", rule->version == 4 ? "ttl" : "hop", rule->ttl + 1);
		if (rule->tos >= 0)
			put(line, " %s is %d", rule->version == 4 ? "tos" : "tc", rule->tos);
		put_upper(line, rule);
	}
	put(line, " / end actions %s / end", rule->drops ? "drop" : "mark id 7");
}

static bool in_prefix(int value, int prefix, int bits)
{
	return prefix < 0 || (value ^ prefix) >> (8 - bits) == 0;
}

static bool in_range(int value, const int range[2])
{
	return range[0] < 0 || (value >= range[0] && value <= range[1]);
}

static bool is_or_any(int asked, int value)
{
	return asked < 0 || asked == value;
}

/* Later fragments have the ports of their first one, and neither flags nor a type. */
static bool fits(const struct made *rule, const struct sample *sample)
{
	const bool later = sample->kind == LATER;

	if (!is_or_any(rule->port, sample->port) || !is_or_any(rule->vlan, sample->vlan) ||
		!is_or_any(rule->mac, sample->mac))
		return false;
	if (rule->eth_type >= 0 && (sample->kind != NOT_IP || sample->vlan > 0))
		return false;
	if (rule->version < 0)
		return true;
	return sample->kind != NOT_IP && rule->version == sample->version &&
	       is_or_any(rule->proto, sample->proto) && is_or_any(rule->ttl, sample->ttl) &&
	       is_or_any(rule->tos, sample->tos) &&
	       in_prefix(sample->src, rule->src, rule->src_bits) &&
	       in_prefix(sample->dst, rule->dst, rule->dst_bits) &&
	       in_range(sample->src_port, rule->src_port) &&
	       in_range(sample->dst_port, rule->dst_port) &&
	       (rule->flags < 0 ||
		       ((later ? 0 : sample->flags) & rule->flags_mask) == rule->flags) &&
	       is_or_any(rule->icmp, later ? -2 : sample->icmp);
}

static const struct made *first_match(
	const struct made *rules, unsigned n, const struct sample *sample)
{
	const struct made *found = NULL;

	for (unsigned i = 0; i < n; i++)
		if (fits(&rules[i], sample) &&
			(found == NULL || rules[i].priority < found->priority))
			found = &rules[i];
	return found;
}

static struct sample make_sample(void)
{
	static unsigned id;
	struct sample sample = {
		.kind = below(2) ? PLAIN : (enum kind)below(N_KINDS),
		.port = (int)below(2),
		.version = below(3) == 0 ? 6 : 4,
		.src = (int)below(16),
		.dst = (int)below(16),
		.ttl = (int)below(3),
		.tos = (int)below(3),
		.vlan = below(3) == 0 ? (int)below(3) : 0,
		.mac = (int)below(2),
		.id = ++id & 0xffff,
	};

	if (sample.kind == LATER)
		sample.kind = FIRST; /* a later one follows it */
	if (sample.kind == OPTIONS)
		sample.version = 4;
	if (sample.kind == EXTENSION)
		sample.version = 6;
	sample.proto = any_proto(sample.version);
	if (has_ports(sample.proto)) {
		sample.src_port = (int)below(8);
		sample.dst_port = (int)below(8);
	}
	if (sample.proto == IPPROTO_TCP)
		sample.flags = (int)below(8);
	if (is_icmp(sample.proto))
		sample.icmp = (sample.version == 4 ? 8 : 128) + (below(2) ? 5 : 0);
	return sample;
}

/* The other fields of a later fragment are its own. */
static struct sample later_of(const struct sample *first)
{
	struct sample later = *first;

	later.kind = LATER;
	later.ttl = (int)below(3);
	later.tos = (int)below(3);
	later.vlan = below(3) == 0 ? (int)below(3) : 0;
	later.mac = (int)below(2);
	return later;
}

static void put_network(struct frame *frame, const struct sample *sample)
{
	const bool fragment = sample->kind == FIRST || sample->kind == LATER;
	const char *form = sample->version == 4 ? "10.0.0.%d" : "2001:db8::%x";
	const unsigned proto = (unsigned)sample->proto, offset = sample->kind == LATER ? 80 : 0;
	char src[64], dst[64];

	snprintf(src, sizeof(src), form, sample->src);
	snprintf(dst, sizeof(dst), form, sample->dst);
	if (sample->version == 4) {
		frame_ipv4_options(frame, src, dst, proto, sample->kind == OPTIONS ? 4 : 0);
		if (fragment)
			frame_ipv4_fragment(frame, sample->id, offset, sample->kind == FIRST);
		return;
	}
	frame_ipv6(frame, src, dst, fragment ? 44 : sample->kind == EXTENSION ? 60 : proto);
	if (fragment)
		frame_ipv6_fragment(frame, proto, sample->id, offset, sample->kind == FIRST);
	else if (sample->kind == EXTENSION)
		frame_extension(frame, proto, 0, 8);
}

static void put_payload(struct frame *frame, const struct sample *sample)
{
	if (sample->kind == LATER) {
		frame_fill(frame, 40);
		return;
	}
	if (sample->proto == IPPROTO_TCP) {
		const struct frame_tcp tcp = {
			.src_port = (unsigned)sample->src_port,
			.dst_port = (unsigned)sample->dst_port,
			.flags = (unsigned)sample->flags,
		};

		frame_tcp(frame, &tcp);
		frame_fill(frame, 60);
	} else if (sample->proto == IPPROTO_UDP) {
		frame_udp(frame, (unsigned)sample->src_port, (unsigned)sample->dst_port);
		put_be16(frame->bytes + frame->upper + 4, 80);
		frame_fill(frame, 72);
	} else if (is_icmp(sample->proto)) {
		frame_icmp(frame, (unsigned)sample->icmp, 0);
		frame_fill(frame, 72);
	} else {
		frame_fill(frame, 80);
	}
}

static struct frame frame_of(const struct sample *sample)
{
	struct frame frame;

	frame_start(&frame);
	frame.bytes[11] = (uint8_t)sample->mac;
	if (sample->vlan > 0)
		frame_tag(&frame, 0x8100, (unsigned)sample->vlan);
	if (sample->kind == NOT_IP) {
		frame_type(&frame, ARP);
		frame_fill(&frame, 46);
		return frame;
	}
	put_network(&frame, sample);
	uint8_t *ip = frame.bytes + frame.ip[0];

	put_payload(&frame, sample);
	if (sample->version == 4) {
		ip[1] = (uint8_t)sample->tos;
		ip[8] = (uint8_t)(sample->ttl + 1);
	} else {
		ip[0] = (uint8_t)(0x60 | sample->tos >> 4);
		ip[1] = (uint8_t)(sample->tos << 4);
		ip[7] = (uint8_t)(sample->ttl + 1);
	}
	frame_finish(&frame);
	return frame;
}

struct trial {
	struct nic_line line;
	struct made rules[MAX_RULES];
	uint64_t expected[MAX_RULES]; /* packets of each rule, by the reference */
	unsigned n;
	struct sample samples[BURST + 1];
	uint64_t pairs, in_nic, dropped, nic_dropped;
};

/* For whoever has to find out: the rules, where each is, and the packet. */
static void print_trial(struct trial *trial, const struct sample *sample)
{
	for (unsigned i = 0; i < trial->n; i++) {
		const struct made *rule = &trial->rules[i];
		struct plane_rule_where where;
		struct rules_view view;

		if (rules_get(plane_rules(trial->line.plane),
			    (uint16_t)(rule->port < 0 ? 0 : rule->port), rule->number, &view) < 0)
			continue;
		plane_rule_where(trial->line.plane, &view, &where);
		print_message("%u %s: %s\n", where.where, view.text, where.why);
	}
	print_message("port %d ip %d kind %u proto %d %d:%d > %d:%d ttl %d tos %d flags %d vlan %d "
		      "icmp %d mac %d\n",
		sample->port, sample->version, sample->kind, sample->proto, sample->src,
		sample->src_port, sample->dst, sample->dst_port, sample->ttl + 1, sample->tos,
		sample->flags, sample->vlan, sample->icmp, sample->mac);
}

static void make_rules(struct trial *trial)
{
	char line[1024];

	trial->n = 1 + below(MAX_RULES);
	memset(trial->expected, 0, sizeof(trial->expected));
	for (unsigned i = 0; i < trial->n; i++) {
		make_rule(&trial->rules[i]);
		write_rule(&trial->rules[i], line);
		trial->rules[i].number = nic_line_rule(&trial->line, line);
	}
	nic_line_settle(&trial->line);
}

static void look_at_burst(struct trial *trial, unsigned n)
{
	nic_line_collect(&trial->line);
	for (unsigned i = 0; i < n; i++) {
		const struct made *rule = first_match(trial->rules, trial->n, &trial->samples[i]);
		const bool passes = rule == NULL || !rule->drops;

		if (rule != NULL)
			trial->expected[rule - trial->rules]++;
		if (trial->line.passed[i] == passes)
			continue;
		print_trial(trial, &trial->samples[i]);
		fail_msg("the packet is %s", passes ? "dropped" : "not dropped");
	}
	trial->pairs += n;
}

static void send_packets(struct trial *trial)
{
	unsigned n = 0;

	for (unsigned sent = 0; sent < PACKETS_EACH; sent++) {
		trial->samples[n++] = make_sample();
		if (trial->samples[n - 1].kind == FIRST) {
			trial->samples[n] = later_of(&trial->samples[n - 1]);
			n++;
		}
		if (n < BURST && sent + 1 < PACKETS_EACH)
			continue;
		for (unsigned i = 0; i < n; i++) {
			const struct frame frame = frame_of(&trial->samples[i]);

			nic_line_send(&trial->line, (unsigned)trial->samples[i].port, &frame);
		}
		look_at_burst(trial, n);
		n = 0;
	}
}

/*
 * What rules counted, in NICs and in software. Of rules that drop the sum is exact, and each is where it is the only one:
 * of a packet that two of them match the second may drop it in the NIC before the first one does in software.
 */
static void check_counts(struct trial *trial)
{
	uint64_t dropped = 0, expected = 0, nic_dropped;
	unsigned n_drop = 0;

	nic_line_check(&trial->line, &nic_dropped);
	for (unsigned i = 0; i < trial->n; i++)
		n_drop += trial->rules[i].drops;
	for (unsigned i = 0; i < trial->n; i++) {
		const struct made *rule = &trial->rules[i];
		struct plane_rule_where where;
		struct rules_view view;

		assert_int_equal(
			rules_get(plane_rules(trial->line.plane),
				(uint16_t)(rule->port < 0 ? 0 : rule->port), rule->number, &view),
			0);
		plane_rule_where(trial->line.plane, &view, &where);
		trial->in_nic += where.where != PLANE_RULE_SOFTWARE;
		if (where.uncounted)
			return;
		if (!rule->drops || n_drop == 1)
			assert_int_equal(view.count.packets + where.packets, trial->expected[i]);
		if (!rule->drops)
			continue;
		dropped += view.count.packets + where.packets;
		expected += trial->expected[i];
	}
	assert_int_equal(dropped, expected);
	trial->dropped += expected;
}

static void forget_rules(struct trial *trial)
{
	rules_flush(plane_rules(trial->line.plane), RULES_NO_PORT);
	nic_line_settle(&trial->line);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* `least`: of the packets that are dropped one in so many at least is dropped by the NIC; 0: none is. */
static void against_the_reference(const char *words, bool drops, unsigned least)
{
	static struct trial trial;
	const uint64_t pairs = number_of("NIC_RULES_PAIRS", 40000);
	uint64_t nic_dropped;

	memset(&trial, 0, sizeof(trial));
	random_state = number_of("NIC_RULES_SEED", 1);
	nic_line_begin(&trial.line, words, drops, 1000000000);
	while (trial.pairs < pairs) {
		make_rules(&trial);
		send_packets(&trial);
		check_counts(&trial);
		forget_rules(&trial);
	}
	nic_line_check(&trial.line, &nic_dropped);
	print_message("%lu pairs: %lu dropped, %lu of them by NICs\n", trial.pairs, trial.dropped,
		nic_dropped);
	assert_true(trial.dropped > pairs / 10);
	if (least == 0)
		assert_int_equal(nic_dropped, 0);
	else
		assert_true(nic_dropped * least > trial.dropped);
	nic_line_end(&trial.line);
}

static void by_software(void **state)
{
	(void)state;
	against_the_reference("", false, 0);
}

static void by_a_nic_that_takes_all(void **state)
{
	(void)state;
	against_the_reference("", true, 4);
}

static void by_a_nic_that_takes_masks(void **state)
{
	(void)state;
	against_the_reference("profile=cx5", true, 8);
}

static void by_a_nic_that_takes_whole_fields(void **state)
{
	(void)state;
	against_the_reference("profile=e810", true, 1000);
}

static void by_a_nic_with_little_room(void **state)
{
	(void)state;
	against_the_reference("rules=2", true, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_software),
		cmocka_unit_test(by_a_nic_that_takes_all),
		cmocka_unit_test(by_a_nic_that_takes_masks),
		cmocka_unit_test(by_a_nic_that_takes_whole_fields),
		cmocka_unit_test(by_a_nic_with_little_room),
	};

	if (getenv("NIC_RULES_TEST") != NULL)
		cmocka_set_test_filter(getenv("NIC_RULES_TEST"));
	return cmocka_run_group_tests(tests, nic_line_environment, NULL);
}
