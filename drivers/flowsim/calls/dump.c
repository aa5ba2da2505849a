/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "drivers/flowsim/calls/flow.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/extra.h"
#include "drivers/flowsim/rules/rule_life.h"

/* A field of a header, by the layer that must have been asked for; 0: any. */
struct field {
	const char *name;
	uint8_t at, size;
	uint32_t layer;
};

#define AT(member) offsetof(struct sim_level, member)
#define PORTS (SIM_TCP | SIM_UDP | SIM_SCTP)

static const struct field fields[] = {
	{"eth.dst", AT(eth), 6, 0},
	{"eth.src", AT(eth) + 6, 6, 0},
	{"eth.type", AT(eth) + 12, 2, 0},
	{"has_vlan", AT(has_vlan), 1, 0},
	{"has_more_vlan", AT(has_more), 1, 0},
	{"vlan.tci", AT(vlan), 2, 0},
	{"vlan.type", AT(vlan) + 2, 2, 0},
	{"inner_vlan.tci", AT(vlan) + 4, 2, 0},
	{"inner_vlan.type", AT(vlan) + 6, 2, 0},
	{"ipv4.version_ihl", AT(ip), 1, SIM_IPV4},
	{"ipv4.tos", AT(ip) + 1, 1, SIM_IPV4},
	{"ipv4.length", AT(ip) + 2, 2, SIM_IPV4},
	{"ipv4.id", AT(ip) + 4, 2, SIM_IPV4},
	{"ipv4.fragment", AT(ip) + 6, 2, SIM_IPV4},
	{"ipv4.ttl", AT(ip) + 8, 1, SIM_IPV4},
	{"ipv4.proto", AT(ip) + 9, 1, SIM_IPV4},
	{"ipv4.checksum", AT(ip) + 10, 2, SIM_IPV4},
	{"ipv4.src", AT(ip) + 12, 4, SIM_IPV4},
	{"ipv4.dst", AT(ip) + 16, 4, SIM_IPV4},
	{"ipv6.flow", AT(ip), 4, SIM_IPV6},
	{"ipv6.length", AT(ip) + 4, 2, SIM_IPV6},
	{"ipv6.proto", AT(ip) + 6, 1, SIM_IPV6},
	{"ipv6.hop", AT(ip) + 7, 1, SIM_IPV6},
	{"ipv6.src", AT(ip) + 8, 16, SIM_IPV6},
	{"ipv6.dst", AT(ip) + 24, 16, SIM_IPV6},
	{"ipv6.frag", AT(ipv6_frag), 8, SIM_IPV6_FRAG},
	{"ipv6.has", AT(ipv6_has), 4, SIM_IPV6},
	{"src", AT(l4), 2, PORTS},
	{"dst", AT(l4) + 2, 2, PORTS},
	{"tcp.seq", AT(l4) + 4, 4, SIM_TCP},
	{"tcp.ack", AT(l4) + 8, 4, SIM_TCP},
	{"tcp.offset", AT(l4) + 12, 1, SIM_TCP},
	{"tcp.flags", AT(l4) + 13, 1, SIM_TCP},
	{"tcp.window", AT(l4) + 14, 2, SIM_TCP},
	{"tcp.rest", AT(l4) + 16, 4, SIM_TCP},
	{"udp.rest", AT(l4) + 4, 4, SIM_UDP},
	{"sctp.rest", AT(l4) + 4, 8, SIM_SCTP},
	{"icmp", AT(l4), 8, SIM_ICMP | SIM_ICMP6},
};

static const struct {
	uint32_t layer;
	const char *name;
} layers[] = {
	{SIM_ETH, "eth"},
	{SIM_VLAN, "vlan"},
	{SIM_VLAN_MORE, "vlan"},
	{SIM_IPV4, "ipv4"},
	{SIM_IPV6, "ipv6"},
	{SIM_IPV6_FRAG, "ipv6_frag_ext"},
	{SIM_TCP, "tcp"},
	{SIM_UDP, "udp"},
	{SIM_SCTP, "sctp"},
	{SIM_ICMP, "icmp"},
	{SIM_ICMP6, "icmp6"},
	{SIM_VXLAN, "vxlan"},
	{SIM_GRE, "gre"},
	{SIM_GRE_KEY, "gre_key"},
	{SIM_GENEVE, "geneve"},
	{SIM_GTPU, "gtpu"},
};

/* A rule's pattern as bytes again. */
struct bytes {
	uint8_t value[SIM_VIEW_BYTES], mask[SIM_VIEW_BYTES];
};

static void unpack(const struct rte_flow *rule, struct bytes *bytes)
{
	const struct sim_pattern *shape = &rule->sort->shape;

	memset(bytes, 0, sizeof(*bytes));
	for (unsigned i = 0; i < shape->n_words; i++) {
		size_t at = shape->words[i] * sizeof(uint64_t);

		memcpy(&bytes->value[at], &rule->values[i], sizeof(uint64_t));
		memcpy(&bytes->mask[at], &shape->mask[shape->words[i]], sizeof(uint64_t));
	}
}

static bool is_all(const uint8_t *bytes, unsigned n, uint8_t all)
{
	for (unsigned i = 0; i < n; i++)
		if (bytes[i] != all)
			return false;
	return true;
}

static void print_hex(const uint8_t *bytes, unsigned n, FILE *file)
{
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%02x", bytes[i]);
}

static void print_bytes(const struct bytes *bytes, size_t at, unsigned size, const char *before,
	const char *name, FILE *file)
{
	if (is_all(&bytes->mask[at], size, 0))
		return;
	fprintf(file, " %s%s=0x", before, name);
	print_hex(&bytes->value[at], size, file);
	if (is_all(&bytes->mask[at], size, 0xff))
		return;
	fprintf(file, "/0x");
	print_hex(&bytes->mask[at], size, file);
}

static void print_level(const struct bytes *bytes, unsigned level, uint32_t wanted, FILE *file)
{
	const char *before = level == 0 ? "" : "inner.";

	for (unsigned i = 0; i < RTE_DIM(fields); i++) {
		const struct field *field = &fields[i];

		if (field->layer == 0 || field->layer & wanted)
			print_bytes(bytes, level * sizeof(struct sim_level) + field->at,
				field->size, before, field->name, file);
	}
}

static void print_pattern(const struct rte_flow *rule, FILE *file)
{
	const struct sim_pattern *shape = &rule->sort->shape;
	struct bytes bytes;

	for (unsigned i = 0; i < RTE_DIM(layers); i++)
		if (shape->layers & layers[i].layer)
			fprintf(file, " %s", layers[i].name);
	for (unsigned i = 0; i < RTE_DIM(layers) && layers[i].layer < 1u << SIM_INNER; i++)
		if (shape->layers >> SIM_INNER & layers[i].layer)
			fprintf(file, " inner.%s", layers[i].name);
	if (shape->layers == 0)
		fprintf(file, " any");
	unpack(rule, &bytes);
	print_level(&bytes, 0, shape->layers, file);
	print_bytes(&bytes, offsetof(struct sim_view, tunnel), 16, "", "tunnel", file);
	print_level(&bytes, 1, shape->layers >> SIM_INNER, file);
	for (unsigned i = 0; i < shape->n_ranges; i++)
		fprintf(file, " bytes %u..%u=0x%" PRIx64 "..0x%" PRIx64, shape->ranges[i].at,
			shape->ranges[i].at + shape->ranges[i].size - 1u, shape->ranges[i].low,
			shape->ranges[i].high);
}

static void print_fate(const struct sim_actions *actions, FILE *file)
{
	switch (actions->fate) {
	case SIM_FATE_QUEUE:
		fprintf(file, " queue %u", actions->queue);
		break;
	case SIM_FATE_RSS:
		fprintf(file, " rss");
		break;
	case SIM_FATE_DROP:
		fprintf(file, " drop");
		break;
	case SIM_FATE_SEND:
		fprintf(file, " send to port %u", actions->port);
		break;
	case SIM_FATE_GIVE:
		fprintf(file, " give to port %u", actions->port);
		break;
	case SIM_FATE_NONE:
		break;
	}
	if (actions->jump)
		fprintf(file, " jump to group %" PRIu32, actions->jump_group);
	if (actions->passthru)
		fprintf(file, " passthru");
}

static void print_actions(const struct rte_flow *rule, FILE *file)
{
	const struct sim_actions *actions = rule->actions;

	if (actions->mark)
		fprintf(file, " mark %" PRIu32, rule->mark_id);
	if (actions->flag)
		fprintf(file, " flag");
	if (actions->count || rule->count_handle != NULL)
		fprintf(file, rule->count_handle != NULL ? " shared count" : " count");
	if (rule->age_handle != NULL)
		fprintf(file, " shared age %" PRIu32, rule->age_handle->age.seconds);
	else if (actions->age)
		fprintf(file, " age %" PRIu32, actions->age_seconds);
	if (actions->meter)
		fprintf(file, " meter %" PRIu32, actions->meter_id);
	if (actions->sample)
		fprintf(file, " sample 1/%" PRIu32, actions->sample_ratio);
	if (actions->n_edits > 0)
		fprintf(file, " %u edits", actions->n_edits);
	print_fate(actions, file);
}

static void print_rule(const struct rte_flow *rule, FILE *file)
{
	static const char *const states[] = {"pending", "live", "lost", "gone", "leaving"};
	static const char *const domains[] = {"ingress", "egress", "transfer"};
	struct sim_count count = sim_rule_count(rule);

	fprintf(file, "rule %p serial %" PRIu64 " %s%s %s group %" PRIu32 " priority %" PRIu32 ":",
		(const void *)rule, rule->serial, rule->ghost ? "ghost " : "", states[rule->state],
		domains[rule->domain], rule->group, rule->priority);
	print_pattern(rule, file);
	fprintf(file, " =>");
	print_actions(rule, file);
	fprintf(file, "; %" PRIu64 " packets, %" PRIu64 " bytes\n", count.hits, count.bytes);
}

void sim_dump(const struct sim_port *port, const struct rte_flow *rule, FILE *file)
{
	if (rule != NULL) {
		print_rule(rule, file);
		return;
	}
	fprintf(file, "%s: %" PRIu32 " rules\n", port->name, port->n_rules);
	TAILQ_FOREACH(rule, &port->rules, link)
		print_rule(rule, file);
}
