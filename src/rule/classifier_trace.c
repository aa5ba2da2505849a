/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to one header, and which rules nothing can match or would match. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "packet/headers.h"
#include "rule/classifier_private.h"

#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ICMPV6 58
#define PROTO_SCTP 132

static const char *const names[CLASSIFIER_N_FIELDS] = {
	[CLASSIFIER_FIELD_NONE] = "none",
	[CLASSIFIER_FIELD_SRC] = "src",
	[CLASSIFIER_FIELD_DST] = "dst",
	[CLASSIFIER_FIELD_PROTO] = "proto",
	[CLASSIFIER_FIELD_TCP_FLAGS] = "tcp_flags",
	[CLASSIFIER_FIELD_VERSION] = "version",
	[CLASSIFIER_FIELD_TOS] = "tos",
	[CLASSIFIER_FIELD_VLAN] = "vlan",
	[CLASSIFIER_FIELD_IN_PORT] = "in_port",
	[CLASSIFIER_FIELD_SRC_PORT] = "src_port",
	[CLASSIFIER_FIELD_DST_PORT] = "dst_port",
	[CLASSIFIER_FIELD_METADATA] = "metadata",
	[CLASSIFIER_FIELD_ETH_SRC] = "eth_src",
	[CLASSIFIER_FIELD_ETH_DST] = "eth_dst",
	[CLASSIFIER_FIELD_ETH_TYPE] = "eth_type",
	[CLASSIFIER_FIELD_TTL] = "ttl",
	[CLASSIFIER_FIELD_DEI] = "dei",
	[CLASSIFIER_FIELD_STATE] = "ct_state",
	[CLASSIFIER_FIELD_DIRECTION] = "direction",
	[CLASSIFIER_FIELD_SRC_SET] = "src_set",
	[CLASSIFIER_FIELD_DST_SET] = "dst_set",
};

const char *classifier_field_name(enum classifier_field field)
{
	return field < CLASSIFIER_N_FIELDS ? names[field] : "unknown";
}

/* The fields that are compared under a mask, in the order in which they are told. */
#define FIELD(name, member)                                                   \
	{CLASSIFIER_FIELD_##name, offsetof(struct classifier_header, member), \
		sizeof(((struct classifier_header *)NULL)->member)}
static const struct {
	enum classifier_field field;
	size_t at, size;
} masked[] = {
	FIELD(VERSION, version),
	FIELD(SRC, src),
	FIELD(DST, dst),
	FIELD(PROTO, proto),
	FIELD(TCP_FLAGS, tcp_flags),
	FIELD(TOS, tos),
	FIELD(VLAN, vlan),
	FIELD(IN_PORT, in_port),
	FIELD(METADATA, metadata),
	FIELD(ETH_SRC, eth_src),
	FIELD(ETH_DST, eth_dst),
	FIELD(ETH_TYPE, eth_type),
	FIELD(TTL, ttl),
	/* which of its bits says which field it is */
	FIELD(DEI, bits),
};

static bool is_in(struct classifier_range range, uint16_t port)
{
	return range.first <= port && port <= range.last;
}

/* Several fields share the last byte of a header: the one that these bits are of. */
static enum classifier_field field_of_bits(uint8_t differ)
{
	if (differ & CLASSIFIER_DEI)
		return CLASSIFIER_FIELD_DEI;
	return differ & CLASSIFIER_STATES ? CLASSIFIER_FIELD_STATE : CLASSIFIER_FIELD_DIRECTION;
}

/* The first field by which a header does not match a rule. */
static enum classifier_field refused_by(const struct classifier *classifier,
	const struct classifier_rule *rule, const struct classifier_header *header)
{
	const uint8_t *value = (const uint8_t *)&rule->value;
	const uint8_t *mask = (const uint8_t *)&rule->mask;
	const uint8_t *bytes = (const uint8_t *)header;

	for (unsigned i = 0; i < RTE_DIM(masked); i++)
		for (size_t at = masked[i].at; at < masked[i].at + masked[i].size; at++)
			if (((bytes[at] ^ value[at]) & mask[at]) != 0)
				return masked[i].field != CLASSIFIER_FIELD_DEI
					       ? masked[i].field
					       : field_of_bits((bytes[at] ^ value[at]) & mask[at]);
	if (!is_in(rule->src_port, header->src_port))
		return CLASSIFIER_FIELD_SRC_PORT;
	if (!is_in(rule->dst_port, header->dst_port))
		return CLASSIFIER_FIELD_DST_PORT;
	if (rule->src_set != 0 &&
		!sets_contain(&classifier->sets, rule->src_set, header->version, header->src))
		return CLASSIFIER_FIELD_SRC_SET;
	if (rule->dst_set != 0 &&
		!sets_contain(&classifier->sets, rule->dst_set, header->version, header->dst))
		return CLASSIFIER_FIELD_DST_SET;
	return CLASSIFIER_FIELD_NONE;
}

/* Walking through the tuples of a space, as a look-up does. */

struct trace {
	const struct classifier *classifier;
	const struct classifier_header *header;
	classifier_step_fn told;
	void *context;
	uint32_t group;
	uint32_t found;
	uint64_t order;
	uint32_t behind; /* rules up to this one are left out; NO_LINK: none */
};

static bool is_hidden(const struct classifier *classifier, uint32_t link)
{
	return classifier->records[link].flags & RECORD_HIDDEN(classifier->shown);
}

static bool is_left_out(const struct trace *trace, uint32_t link)
{
	const struct record *records = trace->classifier->records;

	if (is_hidden(trace->classifier, link))
		return true;
	return trace->behind != NO_LINK && records[link].order <= records[trace->behind].order;
}

static bool prefix_row_has(const struct classifier *classifier, uint32_t number, bool dst,
	unsigned class, const uint32_t addr[4], unsigned tuple)
{
	uint32_t salt = space_salt(classifier, number);
	uint32_t row;

	if (class == 0)
		return true;
	if (space_kind_of(number) == SPACE_V4)
		row = row_v4(classifier, salt, class - 1 + dst * 4, addr[0]);
	else
		row = row_v6(classifier, salt, class, addr);
	return has_bit(&classifier->rows[dst * classifier->n_rows + row], tuple);
}

/* The field by which the first level keeps a header from a tuple. */
static enum classifier_field filtered_by(const struct classifier *classifier, uint32_t number,
	unsigned tuple, const struct classifier_header *header)
{
	const struct space *space = &classifier->spaces[number];
	uint32_t salt = space_salt(classifier, number);
	uint8_t flags = space->flags[tuple];

	if (!prefix_row_has(classifier, number, false, space->src_class[tuple], header->src, tuple))
		return CLASSIFIER_FIELD_SRC;
	if (!prefix_row_has(classifier, number, true, space->dst_class[tuple], header->dst, tuple))
		return CLASSIFIER_FIELD_DST;
	if ((flags & TUPLE_SRC_PORT) &&
		!has_bit(
			&classifier->port_rows[row_port(classifier, salt, false, header->src_port)],
			tuple))
		return CLASSIFIER_FIELD_SRC_PORT;
	if ((flags & TUPLE_DST_PORT) &&
		!has_bit(&classifier->port_rows[classifier->n_port_rows +
						row_port(classifier, salt, true, header->dst_port)],
			tuple))
		return CLASSIFIER_FIELD_DST_PORT;
	return CLASSIFIER_FIELD_NONE;
}

/* The two chains that a header's key in a tuple may have rules in. */
static void chains_of(const struct classifier *classifier, uint32_t number, unsigned tuple,
	const struct classifier_header *header, uint32_t link[2])
{
	const struct space *space = &classifier->spaces[number];
	uint64_t hash = space_kind_of(number) == SPACE_V6
				? hash_key_v6(classifier, &space->tuple[tuple],
					  space->src_class[tuple], space->dst_class[tuple], header)
				: hash_key_v4(classifier, &space->tuple[tuple], header);
	const struct bucket *bucket = bucket_of(classifier, hash);

	link[0] = link_of_tag(bucket, tag_of(hash));
	link[1] = (uint32_t)bucket->slot[SHARED];
}

static struct classifier_step step_of_tuple(
	const struct trace *trace, uint32_t number, unsigned tuple, enum classifier_step_kind kind)
{
	const struct space *space = &trace->classifier->spaces[number];
	static const uint8_t versions[N_SPACES] = {[SPACE_V4] = 4, [SPACE_V6] = 6, [SPACE_ANY] = 0};
	const uint8_t *lengths = classifier_lengths[space_kind_of(number)];
	uint8_t flags = space->flags[tuple];

	return (struct classifier_step){
		.kind = kind,
		.group = trace->group,
		.version = versions[space_kind_of(number)],
		.src_bits = lengths[space->src_class[tuple]],
		.dst_bits = lengths[space->dst_class[tuple]],
		.src_port = flags & TUPLE_SRC_PORT,
		.dst_port = flags & TUPLE_DST_PORT,
		.proto = flags & TUPLE_PROTO,
		.vlan = flags & TUPLE_VLAN,
		.in_port = flags & TUPLE_IN_PORT,
		.metadata = flags & TUPLE_METADATA,
		.handle = CLASSIFIER_NONE,
		.id = CLASSIFIER_NONE,
	};
}

static void fill_rule(
	const struct classifier *classifier, uint32_t position, struct classifier_step *step)
{
	const struct record *record = &classifier->records[position];

	step->handle = position;
	step->id = record->id;
	step->priority = (uint32_t)(record->order >> AGE_BITS);
	step->jump = classifier->jumps[position];
}

static void trace_chain(struct trace *trace, uint32_t number, unsigned tuple, uint32_t link)
{
	const struct classifier *classifier = trace->classifier;

	for (; link != NO_LINK; link = classifier->records[link].next) {
		const struct record *record = &classifier->records[link];
		struct classifier_step step =
			step_of_tuple(trace, number, tuple, CLASSIFIER_STEP_RULE);
		struct classifier_rule rule;

		if (record->group != trace->group || is_left_out(trace, link))
			continue;
		fill_rule(classifier, link, &step);
		if (record->order >= trace->order) {
			step.kind = CLASSIFIER_STEP_CUT;
			trace->told(trace->context, &step);
			return;
		}
		change_get(classifier, link, &rule);
		step.field = refused_by(classifier, &rule, trace->header);
		trace->told(trace->context, &step);
		if (step.field != CLASSIFIER_FIELD_NONE)
			continue;
		trace->order = record->order;
		trace->found = link;
		return;
	}
}

/*
 * Rules of a tuple that are named although they were not compared: the first ones by their order. So many are looked at to
 * find them.
 */
#define NAMED_MAX 8
#define LOOKED_AT_MAX 64

/* Is the rule in one of the chains that were gone through? */
static bool is_in_chain(const struct trace *trace, uint32_t wanted, const uint32_t links[2])
{
	const struct record *records = trace->classifier->records;

	for (unsigned i = 0; i < 2; i++)
		for (uint32_t link = links[i]; link != NO_LINK; link = records[link].next)
			if (link == wanted)
				return true;
	return false;
}

/* The next rule of a heap by its order; `open` are those whose neighbours above were told. */
static uint32_t next_of_heap(const struct trace *trace, uint32_t *open, unsigned *n_open)
{
	const struct classifier *classifier = trace->classifier;
	unsigned best = 0;

	for (unsigned i = 1; i < *n_open; i++)
		if (classifier->records[open[i]].order < classifier->records[open[best]].order)
			best = i;
	const uint32_t link = open[best];
	const struct own *own = &classifier->own[link];

	open[best] = open[--*n_open];
	if (own->left != NO_LINK)
		open[(*n_open)++] = own->left;
	if (own->right != NO_LINK)
		open[(*n_open)++] = own->right;
	return link;
}

/* Names rules of the tuple that are in none of these chains, and come before what was found. */
static void trace_not_tried(
	struct trace *trace, uint32_t number, unsigned tuple, const uint32_t links[2])
{
	const struct classifier *classifier = trace->classifier;
	const struct space *space = &classifier->spaces[number];
	struct classifier_step step =
		step_of_tuple(trace, number, tuple, CLASSIFIER_STEP_NOT_TRIED);
	uint32_t open[LOOKED_AT_MAX + 2] = {space->root[tuple]};
	unsigned n_open = 1, n_named = 0, n_looked_at = 0;
	struct classifier_rule rule;

	while (n_open > 0 && n_named < NAMED_MAX && n_looked_at < LOOKED_AT_MAX) {
		const uint32_t link = next_of_heap(trace, open, &n_open);

		if (classifier->records[link].order >= trace->order)
			return;
		n_looked_at++;
		if (is_left_out(trace, link) || is_in_chain(trace, link, links))
			continue;
		fill_rule(classifier, link, &step);
		change_get(classifier, link, &rule);
		step.field = refused_by(classifier, &rule, trace->header);
		trace->told(trace->context, &step);
		n_named++;
	}
	step = step_of_tuple(trace, number, tuple, CLASSIFIER_STEP_MORE);
	step.n = space->n_rules[tuple] - n_looked_at;
	if (step.n > 0)
		trace->told(trace->context, &step);
}

/* The tuple with the best rule among those that are not done, or TUPLES. */
static unsigned best_tuple(const struct space *space, const struct bits *done)
{
	unsigned best = TUPLES;

	for (unsigned tuple = 0; tuple < TUPLES; tuple++)
		if (has_bit(&space->in_use, tuple) && !has_bit(done, tuple) &&
			(best == TUPLES || space->best[tuple] < space->best[best]))
			best = tuple;
	return best;
}

static void trace_space(struct trace *trace, enum space_kind kind)
{
	uint32_t number = trace->group * N_SPACES + kind;
	const struct space *space = &trace->classifier->spaces[number];
	struct bits done = {{0}};
	unsigned tuple;

	while ((tuple = best_tuple(space, &done)) != TUPLES) {
		struct classifier_step step =
			step_of_tuple(trace, number, tuple, CLASSIFIER_STEP_PROBED);

		done.word[tuple / 64] |= UINT64_C(1) << tuple % 64;
		step.field = filtered_by(trace->classifier, number, tuple, trace->header);
		if (step.field != CLASSIFIER_FIELD_NONE)
			step.kind = CLASSIFIER_STEP_FILTERED;
		else if (space->best[tuple] >= trace->order)
			step.kind = CLASSIFIER_STEP_LATE;
		uint32_t links[2] = {NO_LINK, NO_LINK};

		trace->told(trace->context, &step);
		if (step.kind == CLASSIFIER_STEP_LATE)
			continue;
		if (step.kind == CLASSIFIER_STEP_PROBED)
			chains_of(trace->classifier, number, tuple, trace->header, links);
		for (unsigned i = 0; i < 2; i++)
			trace_chain(trace, number, tuple, links[i]);
		trace_not_tried(trace, number, tuple, links);
	}
}

static void trace_group(struct trace *trace, uint32_t group)
{
	struct classifier_step step = {.kind = CLASSIFIER_STEP_GROUP,
		.group = group,
		.handle = CLASSIFIER_NONE,
		.id = trace->behind == NO_LINK ? CLASSIFIER_NONE
					       : trace->classifier->records[trace->behind].id};

	trace->group = group;
	trace->found = NO_LINK;
	trace->order = UINT64_MAX;
	trace->told(trace->context, &step);
	if (trace->header->version == 4)
		trace_space(trace, SPACE_V4);
	else if (trace->header->version == 6)
		trace_space(trace, SPACE_V6);
	trace_space(trace, SPACE_ANY);
	step.kind = CLASSIFIER_STEP_FOUND;
	step.id = CLASSIFIER_NONE;
	if (trace->found != NO_LINK)
		fill_rule(trace->classifier, trace->found, &step);
	trace->told(trace->context, &step);
	trace->behind = NO_LINK;
}

static uint32_t trace_groups(struct trace *trace, uint32_t group)
{
	const struct classifier *classifier = trace->classifier;

	trace_group(trace, group);
	while (trace->found != NO_LINK && classifier->jumps[trace->found] != 0)
		trace_group(trace, classifier->jumps[trace->found]);
	return trace->found == NO_LINK ? CLASSIFIER_NONE : classifier->records[trace->found].id;
}

uint32_t classifier_trace(const struct classifier *classifier, uint32_t group,
	const struct classifier_header *header, classifier_step_fn told, void *context)
{
	struct trace trace = {.classifier = classifier,
		.header = header,
		.told = told,
		.context = context,
		.behind = NO_LINK};

	return group < classifier->max_groups ? trace_groups(&trace, group) : CLASSIFIER_NONE;
}

uint32_t classifier_trace_behind(const struct classifier *classifier, uint32_t handle,
	const struct classifier_header *header, classifier_step_fn told, void *context)
{
	struct trace trace = {.classifier = classifier,
		.header = header,
		.told = told,
		.context = context,
		.behind = handle};

	return change_is_there(classifier, handle)
		       ? trace_groups(&trace, classifier->records[handle].group)
		       : CLASSIFIER_NONE;
}

/* Shadows. */

/* Whether every address that the inner rule lets in is in the outer rule's set. */
static bool set_covers(const struct classifier *classifier, uint32_t outer, uint32_t inner,
	const struct classifier_rule *rule, const uint32_t mask[4], const uint32_t addr[4])
{
	unsigned words = rule->value.version == 4 ? 1 : 4;

	if (outer == 0 || outer == inner)
		return true;
	for (unsigned i = 0; i < words; i++)
		if (mask[i] != UINT32_MAX)
			return false;
	return sets_contain(&classifier->sets, outer, rule->value.version, addr);
}

static bool covers(const struct classifier *classifier, const struct classifier_rule *outer,
	const struct classifier_rule *inner)
{
	const uint8_t *outer_value = (const uint8_t *)&outer->value;
	const uint8_t *outer_mask = (const uint8_t *)&outer->mask;
	const uint8_t *inner_value = (const uint8_t *)&inner->value;
	const uint8_t *inner_mask = (const uint8_t *)&inner->mask;

	for (size_t i = 0; i < sizeof(outer->value); i++)
		if ((outer_mask[i] & ~inner_mask[i]) != 0 ||
			((outer_value[i] ^ inner_value[i]) & outer_mask[i]) != 0)
			return false;
	return outer->src_port.first <= inner->src_port.first &&
	       inner->src_port.last <= outer->src_port.last &&
	       outer->dst_port.first <= inner->dst_port.first &&
	       inner->dst_port.last <= outer->dst_port.last &&
	       set_covers(classifier, outer->src_set, inner->src_set, inner, inner->mask.src,
		       inner->value.src) &&
	       set_covers(classifier, outer->dst_set, inner->dst_set, inner, inner->mask.dst,
		       inner->value.dst);
}

static uint32_t shadow_in_chain(const struct classifier *classifier, uint32_t link,
	const struct classifier_rule *rule, uint64_t order)
{
	for (; link != NO_LINK; link = classifier->records[link].next) {
		struct classifier_rule outer;

		if (classifier->records[link].order >= order)
			break;
		if (is_hidden(classifier, link))
			continue;
		change_get(classifier, link, &outer);
		if (outer.group == rule->group && covers(classifier, &outer, rule))
			return link;
	}
	return NO_LINK;
}

/* A rule that covers this one is in the chain of every header that this one matches: one will do. */
static uint32_t shadow_in(const struct classifier *classifier, uint32_t number,
	const struct classifier_rule *rule, uint64_t order)
{
	const struct space *space = &classifier->spaces[number];
	struct classifier_header header = rule->value;
	uint32_t found = NO_LINK, links[2];

	header.src_port = rule->src_port.first;
	header.dst_port = rule->dst_port.first;
	for (unsigned tuple = 0; tuple < TUPLES && found == NO_LINK; tuple++) {
		if (!has_bit(&space->in_use, tuple))
			continue;
		chains_of(classifier, number, tuple, &header, links);
		for (unsigned i = 0; i < 2 && found == NO_LINK; i++)
			found = shadow_in_chain(classifier, links[i], rule, order);
	}
	return found;
}

int classifier_shadow(const struct classifier *classifier, const struct classifier_rule *given,
	uint32_t own, uint32_t *handle)
{
	struct classifier_rule rule = change_normal(given);
	uint64_t order = ((uint64_t)rule.priority + 1) << AGE_BITS;

	if (rule.group >= classifier->max_groups)
		return -ENOENT;
	if (own != CLASSIFIER_NONE) {
		if (!change_is_there(classifier, own))
			return -ENOENT;
		order = classifier->records[own].order;
	}
	uint32_t number = change_space_of(&rule);

	*handle = shadow_in(classifier, number, &rule, order);
	if (*handle == NO_LINK && space_kind_of(number) != SPACE_ANY)
		*handle = shadow_in(classifier, rule.group * N_SPACES + SPACE_ANY, &rule, order);
	return *handle == NO_LINK ? -ENOENT : 0;
}

/* Contradictions. */

static const char *contradiction_of_proto(const struct classifier_rule *rule)
{
	uint8_t proto = rule->value.proto & rule->mask.proto;
	bool exact = rule->mask.proto == UINT8_MAX;
	bool ports = !is_in(rule->src_port, 0) || !is_in(rule->dst_port, 0);

	if (!exact)
		return NULL;
	if ((rule->value.tcp_flags & rule->mask.tcp_flags) != 0 && proto != PROTO_TCP)
		return "it asks for TCP flags of a protocol that is not TCP";
	/* ICMP's type and code may stand in place of the source port */
	if (ports && proto != PROTO_TCP && proto != PROTO_UDP && proto != PROTO_SCTP &&
		proto != PROTO_ICMP && proto != PROTO_ICMPV6)
		return "it asks for ports of a protocol that has none";
	if (rule->mask.version == UINT8_MAX &&
		((proto == PROTO_ICMP && rule->value.version == 6) ||
			(proto == PROTO_ICMPV6 && rule->value.version == 4)))
		return "it asks for the ICMP of the other IP version";
	return NULL;
}

/* Of the Ethernet type, which is that of a tag where a frame has one. */
static const char *contradiction_of_type(const struct classifier_rule *rule)
{
	const uint16_t type = rule->value.eth_type;
	const bool knows_tag = (rule->mask.vlan & CLASSIFIER_TAGGED) != 0;
	const bool tagged = (rule->value.vlan & CLASSIFIER_TAGGED) != 0;
	const bool ports = !is_in(rule->src_port, 0) || !is_in(rule->dst_port, 0);
	const bool ip = type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6;

	/* 0: the link is no Ethernet */
	if (rule->mask.eth_type != UINT16_MAX || type == 0)
		return NULL;
	if (knows_tag && tagged && !ethertype_is_vlan(type))
		return "it asks for a VLAN tag, and its Ethernet type is not that of one";
	if (knows_tag && !tagged && ethertype_is_vlan(type))
		return "it asks for no VLAN tag, and its Ethernet type is that of one";
	if (ethertype_is_vlan(type))
		return NULL;
	if (rule->mask.version == UINT8_MAX && rule->value.version != 0 &&
		type != (rule->value.version == 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6))
		return "its Ethernet type is not that of its IP version";
	if (!ip && (rule->mask.proto != 0 || ports || rule->mask.tcp_flags != 0))
		return "it asks for a protocol of IP, and its Ethernet type is not IP's";
	return NULL;
}

static const char *contradiction_of_set(const struct classifier *classifier,
	const struct classifier_rule *rule, uint32_t set, const uint32_t mask[4],
	const uint32_t value[4])
{
	const struct sets *sets = &classifier->sets;
	bool v4 = rule->value.version == 4, v6 = rule->value.version == 6;

	if (set == 0)
		return NULL;
	if (!sets_have(sets, set))
		return "it asks for a set that is not there";
	if (sets->sets[set].n_prefixes == 0)
		return "it asks for an address of an empty set";
	if (rule->mask.version != UINT8_MAX || (!v4 && !v6))
		return NULL;
	bool exact =
		v4 ? mask[0] == UINT32_MAX : (mask[0] & mask[1] & mask[2] & mask[3]) == UINT32_MAX;

	if (exact && !sets_contain(sets, set, rule->value.version, value))
		return "its address is not in its set";
	return NULL;
}

int classifier_contradiction(const struct classifier *classifier,
	const struct classifier_rule *given, struct error *error)
{
	struct classifier_rule rule = change_normal(given);
	const char *what = NULL;

	if (rule.src_port.first > rule.src_port.last || rule.dst_port.first > rule.dst_port.last)
		what = "a range of ports ends before it begins";
	if (!what)
		what = contradiction_of_type(&rule);
	if (!what)
		what = contradiction_of_proto(&rule);
	if (!what)
		what = contradiction_of_set(
			classifier, &rule, rule.src_set, rule.mask.src, rule.value.src);
	if (!what)
		what = contradiction_of_set(
			classifier, &rule, rule.dst_set, rule.mask.dst, rule.value.dst);
	return what ? error_set(error, -EBADMSG, "the rule matches nothing: %s", what) : 0;
}
