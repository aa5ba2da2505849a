/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/kind/input_set.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_common.h>

#define OUTER(member) offsetof(struct sim_level, member)
#define INNER(member) (sizeof(struct sim_level) + offsetof(struct sim_level, member))
#define TUNNEL offsetof(struct sim_view, tunnel)

#define L4 (SIM_TCP | SIM_UDP | SIM_SCTP)
#define IP (SIM_IPV4 | SIM_IPV6)
#define TUNNELS (SIM_VXLAN | SIM_GRE | SIM_GRE_KEY | SIM_GENEVE | SIM_GTPU)
#define TYPE (IP | SIM_IPV6_FRAG | L4 | SIM_ICMP | SIM_ICMP6)

#define I40E (1u << SIM_MAKER_I40E)
#define ICE (1u << SIM_MAKER_ICE)

/* What of two kinds cannot stand in one set: i40e_flow.c:1952 and :2107. */
enum kind { OTHER, MAC, ABOVE };

static const struct field {
	uint16_t at;
	uint8_t size;
	uint8_t kind;
	uint8_t makers;
	uint32_t with, without; /* layers that are, and that must not be, in the pattern */
} fields[] = {
	/* i40e_ethdev.c:9210 has which types take them; ice_fdir_filter.c:21 */
	{OUTER(eth), 6, MAC, I40E, SIM_IPV4, SIM_SCTP},
	{OUTER(eth) + 6, 6, MAC, I40E, SIM_IPV4, SIM_SCTP},
	{OUTER(eth), 6, MAC, ICE, 0, 0},
	{OUTER(eth) + 6, 6, MAC, ICE, 0, 0},
	{OUTER(eth) + 12, 2, OTHER, I40E | ICE, 0, 0},
	{OUTER(vlan[0]) + 2, 2, OTHER, I40E, SIM_VLAN, IP},
	{OUTER(ip) + 1, 1, ABOVE, I40E | ICE, SIM_IPV4, 0},
	{OUTER(ip) + 8, 1, ABOVE, I40E | ICE, SIM_IPV4, 0},
	{OUTER(ip) + 9, 1, ABOVE, I40E, SIM_IPV4, L4},
	{OUTER(ip) + 9, 1, ABOVE, ICE, SIM_IPV4, 0},
	{OUTER(ip) + 12, 4, ABOVE, I40E | ICE, SIM_IPV4, 0},
	{OUTER(ip) + 16, 4, ABOVE, I40E | ICE, SIM_IPV4, 0},
	{OUTER(ip) + 6, 1, ABOVE, I40E, SIM_IPV6, L4},
	{OUTER(ip) + 6, 1, ABOVE, ICE, SIM_IPV6, 0},
	{OUTER(ip) + 7, 1, ABOVE, I40E | ICE, SIM_IPV6, 0},
	{OUTER(ip) + 8, 16, ABOVE, I40E | ICE, SIM_IPV6, 0},
	{OUTER(ip) + 24, 16, ABOVE, I40E | ICE, SIM_IPV6, 0},
	{OUTER(l4), 2, ABOVE, I40E | ICE, SIM_TCP, 0},
	{OUTER(l4) + 2, 2, ABOVE, I40E | ICE, SIM_TCP, 0},
	{OUTER(l4), 2, ABOVE, I40E | ICE, SIM_UDP, 0},
	{OUTER(l4) + 2, 2, ABOVE, I40E | ICE, SIM_UDP, 0},
	{OUTER(l4), 2, ABOVE, I40E | ICE, SIM_SCTP, 0},
	{OUTER(l4) + 2, 2, ABOVE, I40E | ICE, SIM_SCTP, 0},
	{OUTER(l4) + 4, 4, ABOVE, I40E, SIM_SCTP, 0},
	{TUNNEL + 4, 3, OTHER, ICE, SIM_VXLAN, 0},
	{TUNNEL + 4, 4, OTHER, ICE, SIM_GTPU, 0},
	{INNER(eth), 6, OTHER, ICE, SIM_VXLAN, 0},
	{INNER(eth) + 6, 6, OTHER, ICE, SIM_VXLAN, 0},
	{INNER(ip) + 12, 4, OTHER, ICE, SIM_IPV4 << SIM_INNER, 0},
	{INNER(ip) + 16, 4, OTHER, ICE, SIM_IPV4 << SIM_INNER, 0},
	{INNER(l4), 2, OTHER, ICE, SIM_TCP << SIM_INNER, 0},
	{INNER(l4) + 2, 2, OTHER, ICE, SIM_TCP << SIM_INNER, 0},
	{INNER(l4), 2, OTHER, ICE, SIM_UDP << SIM_INNER, 0},
	{INNER(l4) + 2, 2, OTHER, ICE, SIM_UDP << SIM_INNER, 0},
	{INNER(l4), 2, OTHER, ICE, SIM_SCTP << SIM_INNER, 0},
	{INNER(l4) + 2, 2, OTHER, ICE, SIM_SCTP << SIM_INNER, 0},
};

static int refuse(struct sim_fault_at *fault, const char *message)
{
	*fault = (struct sim_fault_at){
		.type = RTE_FLOW_ERROR_TYPE_ITEM,
		.message = message,
	};
	return -EINVAL;
}

/* Bytes of the mask at a field: all zero, all ones, or something between. */
static int whole(const uint8_t *mask, unsigned size)
{
	unsigned ones = 0, zeros = 0;

	for (unsigned i = 0; i < size; i++) {
		ones += mask[i] == 0xff;
		zeros += mask[i] == 0;
	}
	if (ones == size)
		return 1;
	return zeros == size ? 0 : -1;
}

/* The protocol that layer 4 says, 0: none is named. */
static uint8_t protocol_of(uint32_t layers)
{
	if (layers & SIM_TCP)
		return IPPROTO_TCP;
	if (layers & SIM_UDP)
		return IPPROTO_UDP;
	return layers & SIM_SCTP ? IPPROTO_SCTP : 0;
}

/* Where IP has it; 0: no IP is named. */
static unsigned protocol_at(uint32_t layers)
{
	if (layers & SIM_IPV4)
		return OUTER(ip) + 9;
	return layers & SIM_IPV6 ? OUTER(ip) + 6 : 0;
}

/*
 * What is compared and belongs to no input set: whether there is a tag, which drivers do not look at,
 * and a protocol that layer 4 says already. i40e refuses that (i40e_ethdev.c:9216); Open vSwitch 3.1
 * asks for it with each rule.
 */
static void take_redundant(const struct sim_pattern *pattern, uint8_t *mask)
{
	const uint8_t *value = (const uint8_t *)pattern->value;
	uint8_t protocol = protocol_of(pattern->layers);
	unsigned at = protocol_at(pattern->layers);

	mask[OUTER(has_vlan)] = 0;
	mask[OUTER(has_more)] = 0;
	if (protocol != 0 && at != 0 && mask[at] == 0xff && value[at] == protocol)
		mask[at] = 0;
}

/*
 * Fields whose masks are more than all or nothing: a tag's parts (i40e_flow.c:1774), "no fragment"
 * (:1906), IPv6's traffic class. Those that fit are taken out of the mask. Returns whether one of them
 * belongs to the input set above Ethernet.
 */
static bool take_special(enum sim_maker maker, const struct sim_pattern *pattern, uint8_t *mask)
{
	const uint8_t *value = (const uint8_t *)pattern->value;
	uint8_t *tag = &mask[OUTER(vlan[0])], *fragment = &mask[OUTER(ip) + 6];
	uint8_t *class = &mask[OUTER(ip)];
	unsigned tci = (unsigned)tag[0] << 8 | tag[1];

	if (maker == SIM_MAKER_I40E &&
		(tci == 0xffff || tci == 0xe000 || tci == 0x1000 || tci == 0x0fff))
		memset(tag, 0, 2);
	if ((pattern->layers & SIM_IPV4) && fragment[0] == 0x3f && fragment[1] == 0xff &&
		value[OUTER(ip) + 6] == 0 && value[OUTER(ip) + 7] == 0)
		memset(fragment, 0, 2);
	if ((pattern->layers & SIM_IPV6) && class[0] == 0x0f && class[1] == 0xf0) {
		memset(class, 0, 2);
		return true;
	}
	return false;
}

/* Layers must be named from Ethernet on: their drivers have lists of whole patterns. */
static int check_layers(const struct sim_pattern *pattern, struct sim_fault_at *fault)
{
	uint32_t layers = pattern->layers;
	uint32_t inner = layers >> SIM_INNER;
	bool named = (layers & SIM_ETH) != 0;

	if ((layers & L4) && (layers & IP) == 0)
		named = false;
	if ((inner & L4) && (inner & IP) == 0)
		named = false;
	if ((layers & TUNNELS) && ((layers & SIM_IPV4) == 0 || (layers & SIM_UDP) == 0))
		named = false;
	return named ? 0 : refuse(fault, "unsupported pattern");
}

int sim_input_set_check(
	enum sim_maker maker, const struct sim_pattern *pattern, struct sim_fault_at *fault)
{
	uint8_t mask[SIM_VIEW_BYTES];
	bool kinds[3] = {false, false, false};

	memcpy(mask, pattern->mask, sizeof(mask));
	take_redundant(pattern, mask);
	if (maker != SIM_MAKER_I40E && maker != SIM_MAKER_ICE) {
		for (unsigned i = 0; i < sizeof(mask); i++) {
			if (mask[i] != 0 && mask[i] != 0xff)
				return refuse(fault, "only whole fields are compared");
		}
		return 0;
	}
	if (check_layers(pattern, fault) != 0)
		return -EINVAL;
	kinds[ABOVE] = take_special(maker, pattern, mask);
	for (unsigned i = 0; i < RTE_DIM(fields); i++) {
		const struct field *field = &fields[i];

		if ((field->makers & 1u << maker) == 0 ||
			(pattern->layers & field->with) != field->with ||
			(pattern->layers & field->without) != 0)
			continue;
		switch (whole(&mask[field->at], field->size)) {
		case 0:
			continue;
		case 1:
			memset(&mask[field->at], 0, field->size);
			kinds[field->kind] = true;
			break;
		default:
			return refuse(fault, "only whole fields are compared");
		}
	}
	if (maker == SIM_MAKER_I40E && kinds[MAC] && kinds[ABOVE])
		return refuse(fault, "L2 and L3 input set are exclusive");
	if (whole(mask, sizeof(mask)) != 0)
		return refuse(fault, "invalid input set");
	return 0;
}

void sim_input_set_narrow(struct sim_pattern *pattern)
{
	uint8_t *mask = (uint8_t *)pattern->mask, *value = (uint8_t *)pattern->value;
	const unsigned fragment = OUTER(ip) + 6;

	if ((pattern->layers & IP) == 0 || (pattern->layers & (TUNNELS | SIM_IPV6_FRAG)))
		return;
	if ((pattern->layers & L4) == 0)
		pattern->absent |= L4;
	if (pattern->layers & SIM_IPV6) {
		pattern->absent |= SIM_IPV6_FRAG;
		return;
	}
	/* who names fragments gets those */
	if (mask[fragment] != 0 || mask[fragment + 1] != 0)
		return;
	mask[fragment] = 0x3f;
	mask[fragment + 1] = 0xff;
	value[fragment] = 0;
	value[fragment + 1] = 0;
	pattern->n_words = 0;
	for (unsigned i = 0; i < SIM_VIEW_WORDS; i++) {
		if (pattern->mask[i] != 0)
			pattern->words[pattern->n_words++] = (uint8_t)i;
	}
}

/* A packet type in use: its layers, which of its bytes are compared, and by how many rules. */
struct in_use {
	SLIST_ENTRY(in_use) link;
	uint32_t layers;
	bool compared[SIM_VIEW_BYTES];
	uint32_t n_rules;
};

struct sim_input_sets {
	SLIST_HEAD(, in_use) list;
};

struct sim_input_sets *sim_input_sets_create(void)
{
	struct sim_input_sets *sets = malloc(sizeof(*sets));

	if (sets != NULL)
		SLIST_INIT(&sets->list);
	return sets;
}

void sim_input_sets_destroy(struct sim_input_sets *sets)
{
	struct in_use *use;

	if (sets == NULL)
		return;
	while ((use = SLIST_FIRST(&sets->list)) != NULL) {
		SLIST_REMOVE_HEAD(&sets->list, link);
		free(use);
	}
	free(sets);
}

/*
 * Ethernet types beside IP, tags that are there or not, "no fragment" and the protocol beside layer 4 are
 * the packet type's, not the set's.
 */
static void describe(struct in_use *use, const struct sim_pattern *pattern)
{
	const uint8_t *mask = (const uint8_t *)pattern->mask;
	unsigned protocol = protocol_at(pattern->layers);

	use->layers = pattern->layers & (TYPE | TYPE << SIM_INNER | TUNNELS);
	use->n_rules = 1;
	for (unsigned i = 0; i < SIM_VIEW_BYTES; i++)
		use->compared[i] = mask[i] != 0;
	if (pattern->layers & IP)
		memset(&use->compared[OUTER(eth) + 12], 0, 2);
	if (pattern->layers & SIM_IPV4)
		memset(&use->compared[OUTER(ip) + 6], 0, 2);
	use->compared[OUTER(has_vlan)] = false;
	use->compared[OUTER(has_more)] = false;
	if (protocol != 0 && (pattern->layers & L4))
		use->compared[protocol] = false;
}

static struct in_use *find(struct sim_input_sets *sets, uint32_t layers)
{
	struct in_use *use;

	SLIST_FOREACH(use, &sets->list, link)
	{
		if (use->layers == layers)
			break;
	}
	return use;
}

int sim_input_sets_add(
	struct sim_input_sets *sets, const struct sim_pattern *pattern, struct sim_fault_at *fault)
{
	struct in_use wanted, *use;

	if (sets == NULL)
		return 0;
	describe(&wanted, pattern);
	use = find(sets, wanted.layers);
	if (use == NULL) {
		use = malloc(sizeof(*use));
		if (use == NULL)
			return -ENOMEM;
		*use = wanted;
		SLIST_INSERT_HEAD(&sets->list, use, link);
		return 0;
	}
	if (memcmp(use->compared, wanted.compared, sizeof(wanted.compared)) != 0) {
		/* i40e_fdir.c:1308; the driver only logs that, and says of the rule: */
		*fault = (struct sim_fault_at){
			.type = RTE_FLOW_ERROR_TYPE_HANDLE,
			.message = "conflict with the first rule's input set",
		};
		return -EINVAL;
	}
	use->n_rules++;
	return 0;
}

void sim_input_sets_remove(struct sim_input_sets *sets, const struct sim_pattern *pattern)
{
	struct in_use gone, *use;

	if (sets == NULL)
		return;
	describe(&gone, pattern);
	use = find(sets, gone.layers);
	if (use == NULL || --use->n_rules != 0)
		return;
	SLIST_REMOVE(&sets->list, use, in_use, link);
	free(use);
}
