/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers ask of the rules, and how that is told step by step. */
#include <string.h>

#include "packet/headers.h"
#include "rule/rules_private.h"

/* Of ICMP whose type and code are not there: type 255 is reserved. */
#define UDP_LENGTH 8
#define VXLAN_LENGTH 8
#define VXLAN_HAS_VNI 0x08
#define NO_TYPE_AND_CODE 0xffff

void rules_header_of_flow(const struct rules *rules, const struct flow_key *key, unsigned from,
	uint16_t port, struct flow_packet_ct ct, struct classifier_header *header)
{
	memset(header, 0, sizeof(*header));
	for (unsigned i = 0; i < 4; i++) {
		header->src[i] = load_be32(key->addr[from] + 4 * i);
		header->dst[i] = load_be32(key->addr[!from] + 4 * i);
	}
	header->proto = key->proto;
	header->version = flow_key_version(key);
	header->src_port = rte_be_to_cpu_16(key->port[from]);
	header->dst_port = rte_be_to_cpu_16(key->port[!from]);
	header->in_port = port;
	header->bits = rules_bits_of(rules, ct);
	header->metadata = ct.begins ? RULE_METADATA_LIMIT : 0;
	if (rules->ground.zone_vlan && key->zone != 0)
		header->vlan = (key->zone & 0x0fff) | CLASSIFIER_TAGGED;
}

static bool has_rules_of(const struct rules *rules, unsigned port)
{
	return atomic_load_explicit(&rules->port_rules[port], memory_order_relaxed) != 0;
}

/*
 * By which other ports would packets of the flow perhaps be decided otherwise than by `port`? Those that rules
 * ask for, and one that none does.
 */
static unsigned other_ports(const struct rules *rules, const struct flow_key *key, uint16_t port,
	uint16_t others[TOPOLOGY_MAX_PORTS])
{
	const struct topology *topology = &rules->topology;
	const unsigned domain = flow_key_wire(key) < topology->n_domains ? flow_key_wire(key) : 0;
	bool plain = false;
	unsigned n = 0;

	if (topology->n_domains == 0 ||
		atomic_load_explicit(&rules->n_with_port, memory_order_relaxed) == 0)
		return 0;
	for (unsigned place = 0; place < topology->size[domain]; place++) {
		const unsigned other = topology_port(topology, domain, place);

		if (other == port)
			continue;
		if (!has_rules_of(rules, other)) {
			if (plain)
				continue;
			plain = true;
		}
		others[n++] = (uint16_t)other;
	}
	return n;
}

static void take_answer(
	const struct rules *rules, uint32_t slot, struct flow_packet_decision *answer)
{
	*answer = (struct flow_packet_decision){
		.verdict = FLOW_VERDICT_FORWARD, .rule = FLOW_RULE_NONE};
	if (slot == CLASSIFIER_NONE)
		return;
	answer->verdict = rules->slots[slot].verdict;
	answer->marked = rules->slots[slot].marked;
	answer->logs = rules->slots[slot].logs;
	answer->mark = rules->slots[slot].mark;
	answer->rule = slot;
}

/*
 * What packets are decided by: one of the lists. It is read before all else: what has become true before workers go over to
 * a list is known to those that use it.
 */
static unsigned list_in_force(const struct rules *rules)
{
	return atomic_load_explicit(&rules->list, memory_order_acquire);
}

static const struct classifier *flows_classifier(const struct rules *rules)
{
	return atomic_load_explicit(&rules->n_by_packet, memory_order_acquire) == 0
		       ? rules->full
		       : rules->of_flows;
}

bool rules_depend_on_port(const struct rules *rules, const struct classifier *classifier,
	unsigned list, const struct flow_key *key, uint16_t port, struct classifier_header *header,
	uint32_t slot)
{
	uint16_t others[TOPOLOGY_MAX_PORTS];
	uint32_t found;
	const unsigned n = other_ports(rules, key, port, others);
	bool depends = false;

	for (unsigned i = 0; i < n && !depends; i++) {
		header->in_port = others[i];
		classifier_find_in_list(classifier, list, 0,
			&(const struct classifier_header *){header}, &found, 1);
		depends = found != slot;
	}
	header->in_port = port;
	return depends;
}

void rules_decide_end(
	const struct rules *rules, unsigned from, uint32_t slot, struct flow_decision *decision)
{
	if (slot != CLASSIFIER_NONE && rules->slots[slot].by_packet)
		decision->verdict[from] = FLOW_VERDICT_BY_PACKET;
	else
		rules_take_rule(rules, from, slot, decision);
}

void rules_take_rule(
	const struct rules *rules, unsigned from, uint32_t slot, struct flow_decision *decision)
{
	struct flow_packet_decision answer;

	take_answer(rules, slot, &answer);
	decision->verdict[from] = answer.verdict;
	decision->rule[from] = answer.rule;
	if (slot != CLASSIFIER_NONE)
		decision->age_s = RTE_MAX(decision->age_s, rules->slots[slot].age_s);
	decision->mark[from] = answer.mark;
	decision->marked |= (uint8_t)(answer.marked << from);
}

void rules_decide_burst(void *context, const struct flow_key *const *keys,
	const uint16_t (*ports)[2], struct flow_decision *decisions, unsigned n)
{
	const struct rules *rules = context;
	const unsigned list = list_in_force(rules);
	const struct classifier *classifier = flows_classifier(rules);
	struct classifier_header headers[2 * FLOW_DECIDE_BURST];
	const struct classifier_header *asked[2 * FLOW_DECIDE_BURST];
	uint32_t slots[2 * FLOW_DECIDE_BURST];

	if (n == 0)
		return;
	/* flows that limits have counted are theirs no more when rules no longer ask for conversations */
	for (unsigned i = 0; i < n && !rules_of_conversations(rules); i++)
		rules_limits_forget(rules, keys[i], &decisions[i].conversation);
	if (atomic_load_explicit(&rules->n_in_force, memory_order_acquire) == 0)
		return;
	for (unsigned i = 0; i < RTE_DIM(headers); i++)
		asked[i] = &headers[i];
	for (unsigned i = 0; i < n; i++)
		for (unsigned from = 0; from < 2; from++)
			rules_header_of_flow(rules, keys[i], from, ports[i][from],
				(struct flow_packet_ct){0}, &headers[2 * i + from]);
	if (rules_of_conversations(rules)) {
		rules_decide_conversations(rules, classifier, list, keys, headers, decisions, n);
		return;
	}
	classifier_find_in_list(classifier, list, 0, asked, slots, 2 * n);
	for (unsigned i = 0; i < 2 * n; i++) {
		struct flow_decision *decision = &decisions[i / 2];

		decision->by_port = decision->by_port ||
				    rules_depend_on_port(rules, classifier, list, keys[i / 2],
					    ports[i / 2][i % 2], &headers[i], slots[i]);
		rules_decide_end(rules, i % 2, slots[i], decision);
		decision->cause = FLOW_CAUSE_NONE;
	}
}

void rules_decide(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	const uint16_t ports[1][2] = {{port[0], port[1]}};

	rules_decide_burst(context, &key, ports, decision, 1);
}

/* Ethernet addresses, type and tag, as far as they are there. Returns where the next header begins. */
static size_t read_link(struct reader *reader, struct classifier_header *header)
{
	uint8_t scratch[ETHERNET_LENGTH];
	const uint8_t *bytes = reader_peek(reader, 0, ETHERNET_LENGTH, scratch);
	size_t at = ETHERNET_LENGTH;
	uint16_t type;

	if (bytes == NULL)
		return SIZE_MAX;
	memcpy(header->eth_dst, bytes, 6);
	memcpy(header->eth_src, bytes + 6, 6);
	type = header->eth_type = load_be16(bytes + 12);
	header->vlan = 0;
	while (ethertype_is_vlan(type)) {
		bytes = reader_peek(reader, at, VLAN_TAG_LENGTH, scratch);
		if (bytes == NULL)
			return SIZE_MAX;
		if (at == ETHERNET_LENGTH) {
			header->bits |= load_be16(bytes) & CLASSIFIER_TAGGED ? CLASSIFIER_DEI : 0;
			header->vlan = (uint16_t)(load_be16(bytes) | CLASSIFIER_TAGGED);
		}
		type = load_be16(bytes + 2);
		at += VLAN_TAG_LENGTH;
	}
	return at;
}

static void read_network(struct reader *reader, size_t at, const struct packet_info *info,
	struct classifier_header *header)
{
	uint8_t scratch[IPV4_LENGTH];
	const uint8_t *bytes;

	if (at == SIZE_MAX)
		return;
	if (header->version == 4) {
		bytes = reader_peek(reader, at, 9, scratch);
		if (bytes != NULL) {
			header->tos = bytes[1];
			header->ttl = bytes[8];
		}
	} else {
		bytes = reader_peek(reader, at, 8, scratch);
		if (bytes != NULL) {
			header->tos = (uint8_t)(load_be16(bytes) >> 4);
			header->ttl = bytes[7];
		}
	}
	if (info->flags & PACKET_TCP)
		header->tcp_flags = info->tcp.flags;
	if (header->proto != PROTO_ICMP && header->proto != PROTO_ICMPV6)
		return;
	bytes = info->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT)
			? NULL
			: reader_peek(reader, info->l4_offset, 2, scratch);
	header->src_port = bytes != NULL ? load_be16(bytes) : NO_TYPE_AND_CODE;
}

/* The number of a VXLAN packet's network (RFC 7348 section 5). */
static void read_tunnel(
	struct reader *reader, const struct packet_info *info, struct classifier_header *header)
{
	uint8_t scratch[VXLAN_LENGTH];
	const uint8_t *bytes;

	if (header->proto != PROTO_UDP || header->dst_port != RULE_VXLAN_PORT ||
		info->flags & (PACKET_FRAGMENT | PACKET_CUT))
		return;
	bytes = reader_peek(reader, info->l4_offset + UDP_LENGTH, VXLAN_LENGTH, scratch);
	if (bytes != NULL && bytes[0] & VXLAN_HAS_VNI)
		header->metadata |= RULE_METADATA_VXLAN | load_be32(bytes + 4) >> 8;
}

static void classify(const struct rules *rules, const struct rte_mbuf *packet,
	const struct packet_info *info, uint16_t port, enum link_type type,
	struct flow_packet_ct ct, struct flow_packet_decision *decision)
{
	const unsigned list = list_in_force(rules);
	struct reader reader = reader_of(packet);
	struct classifier_header header;
	const struct classifier_header *asked = &header;
	struct link_header link;
	uint32_t slot;
	size_t at;

	take_answer(rules, CLASSIFIER_NONE, decision);
	if (atomic_load_explicit(&rules->n_in_force, memory_order_acquire) == 0)
		return;
	if (rules_answer(rules, ct, &slot)) {
		take_answer(rules, slot, decision);
		return;
	}
	if (info != NULL)
		rules_header_of_flow(rules, &info->key, info->from, port, ct, &header);
	else
		header = (struct classifier_header){.in_port = port, .bits = CLASSIFIER_NO_STATE};
	if (type == LINK_ETHERNET)
		at = read_link(&reader, &header);
	else
		at = link_walk(&reader, type, &link) ? link.end : SIZE_MAX;
	if (info != NULL) {
		read_network(&reader, at, info, &header);
		read_tunnel(&reader, info, &header);
	}
	classifier_find_in_list(rules->full, list, 0, &asked, &slot, 1);
	uint16_t counted = 0;

	if (slot != CLASSIFIER_NONE && rules->slots[slot].limit != 0)
		slot = rules_limits_find(rules, list, &header, ct, &counted);
	take_answer(rules, slot, decision);
	decision->counted = counted;
}

void rules_classify(void *rules, const struct rte_mbuf *packet, const struct packet_info *info,
	uint16_t port, struct flow_packet_ct ct, struct flow_packet_decision *decision)
{
	classify(rules, packet, info, port, LINK_ETHERNET, ct, decision);
}

void rules_classify_captured(void *rules, const struct rte_mbuf *packet,
	const struct packet_info *info, enum link_type link, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	classify(rules, packet, info, 0, link, ct, decision);
}

void rules_count_packets(void *context, unsigned worker, uint32_t slot, uint64_t flows,
	uint64_t packets, uint64_t bytes)
{
	const struct rules *rules = context;
	struct rules_count *count = &rules->counts[(size_t)worker * rules->n_slots + slot];

	/* plain adds; atomic only in that the writer may read at the same time */
	__atomic_store_n(&count->flows, count->flows + flows, __ATOMIC_RELAXED);
	__atomic_store_n(&count->packets, count->packets + packets, __ATOMIC_RELAXED);
	__atomic_store_n(&count->bytes, count->bytes + bytes, __ATOMIC_RELAXED);
}

struct flow_rule_told rules_tell_flow(void *context, uint32_t slot)
{
	const struct rules *rules = context;
	const struct rules_slot *rule = &rules->slots[slot];

	return (struct flow_rule_told){
		.number = rule->number, .port = rule->port, .to_port = rule->to_port};
}

bool rules_logs(void *context, uint32_t slot)
{
	const struct rules *rules = context;

	return rules->slots[slot].logs;
}

void rules_see(void *context, unsigned worker, uint32_t slot, uint64_t last_us)
{
	const struct rules *rules = context;
	uint64_t *seen = &rules->seen[(size_t)worker * rules->n_slots + slot];

	if (last_us > *seen)
		__atomic_store_n(seen, last_us, __ATOMIC_RELAXED);
}

/* Traces. */

struct tracing {
	const struct rules *rules;
	const struct classifier *classifier;
	const struct classifier_header *header;
	rules_step_fn told;
	void *context;
	uint32_t
		jumped; /* the rule per packet whose jump leads to the group that comes next, or RULES_NONE */
	unsigned left; /* rules behind which the search may go on */
};

/* Flows are decided without the rules per packet: their steps are told here. */
static bool is_per_packet(const struct tracing *tracing, uint32_t slot)
{
	return tracing->classifier == tracing->rules->of_flows && slot != RULES_NONE &&
	       tracing->rules->slots[slot].by_packet && tracing->rules->slots[slot].limit == 0;
}

/* The rule has a limit that the header's source is not above. */
static bool is_below(const struct tracing *tracing, uint32_t slot)
{
	struct rules_limited limit;

	return slot != RULES_NONE &&
	       rules_look_limit(tracing->rules, slot, tracing->header, &limit) && !limit.above;
}

static void tell_step(void *context, const struct classifier_step *step)
{
	struct tracing *tracing = context;
	const struct rules *rules = tracing->rules;
	struct rules_step told = {.step = *step};

	if (step->kind == CLASSIFIER_STEP_GROUP && tracing->jumped != RULES_NONE) {
		told.step.id = tracing->jumped;
		told.jumped = true;
		tracing->jumped = RULES_NONE;
	}
	told.has_rule = step->kind != CLASSIFIER_STEP_CUT && told.step.id != CLASSIFIER_NONE &&
			rules_get_slot(rules, told.step.id, &told.rule) == 0;
	if (step->kind == CLASSIFIER_STEP_FOUND && is_per_packet(tracing, step->id))
		told.step.jump = rules->own[step->id].jump;
	told.has_limit = step->kind == CLASSIFIER_STEP_FOUND && told.has_rule &&
			 rules_look_limit(rules, step->id, tracing->header, &told.limit);
	tracing->told(tracing->context, &told);
}

/*
 * Goes on behind a rule per packet: for the packets that it matches where it jumps, then for those that it does not; and
 * behind a rule whose limit is not reached. Returns the rule that ends the search, but for rules per packet.
 */
static uint32_t trace_on(struct tracing *tracing, uint32_t slot)
{
	const struct rules *rules = tracing->rules;
	uint32_t first = slot;

	while ((is_per_packet(tracing, slot) || is_below(tracing, slot)) && tracing->left > 0) {
		const struct rules_own *own = &rules->own[slot];
		const bool below = is_below(tracing, slot);

		tracing->left--;
		if (own->jump != 0) {
			tracing->jumped = slot;
			trace_on(tracing, classifier_trace(tracing->classifier, own->jump,
						  tracing->header, tell_step, tracing));
		}
		slot = classifier_trace_behind(tracing->classifier,
			tracing->classifier == rules->full ? own->full : own->of_flows,
			tracing->header, tell_step, tracing);
		first = below ? slot : first;
	}
	return first;
}

uint32_t rules_trace(const struct rules *rules, const struct classifier_header *header, bool packet,
	rules_step_fn told, void *context)
{
	struct tracing tracing = {
		.rules = rules,
		.classifier = packet ? rules->full : flows_classifier(rules),
		.header = header,
		.told = told,
		.context = context,
		.jumped = RULES_NONE,
		.left = RULES_TRACED_BY_PACKET,
	};

	return trace_on(
		&tracing, classifier_trace(tracing.classifier, 0, header, tell_step, &tracing));
}
