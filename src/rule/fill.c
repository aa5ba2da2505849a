/* SPDX-License-Identifier: BSD-3-Clause */
/* What actions get from `set` lines: the line is parsed again, and the rule keeps what it comes to. */
#include <errno.h>
#include <string.h>

#include "rule/outer.h"
#include "rule/setup.h"

/* The command of a line that was learned, as a child of the one that is parsed; NULL: there is none. */
static int parse_child(struct rule_parser *parser, const char *line, struct rule_command **child)
{
	struct error error;
	unsigned column;

	*child = NULL;
	if (!line)
		return 0;
	int ret = parser->parse(child, parser->setup, line, strlen(line), &column, &error);

	if (ret < 0)
		return rule_parser_fail(parser, 0, ret, "in \"%.80s\": %.300s", line, error.text);
	(*child)->parts->sibling = parser->command->parts->children;
	parser->command->parts->children = *child;
	return 0;
}

/* The items of an outer header: those of set raw_encap, or made of the words of another line. */
static int parse_outer(struct rule_parser *parser, enum rule_slot slot, unsigned index,
	struct rule_command **items)
{
	char text[1024];
	int ret = parse_child(parser, rule_setup_line(parser->setup, slot, index), items);

	if (ret < 0 || !*items || (*items)->pattern)
		return ret;
	if (!rule_outer_text(*items, text, sizeof(text)))
		return rule_parser_fail(parser, 0, -E2BIG, "the outer headers are too long");
	return parse_child(parser, text, items);
}

static int fill_definition(struct rule_parser *parser, enum rule_slot slot, void *conf)
{
	struct rte_flow_action_vxlan_encap *encap = conf;
	struct rte_flow_item *definition;
	struct rule_command *items;
	unsigned n = 1;
	int ret = parse_outer(parser, slot, 0, &items);

	if (ret < 0 || !items)
		return ret;
	while (items->pattern[n - 1].type != RTE_FLOW_ITEM_TYPE_END)
		n++;
	definition = rule_memory_take(parser->memory, n * sizeof(*definition));
	if (!definition)
		return rule_parser_no_memory(parser);
	memcpy(definition, items->pattern, n * sizeof(*definition));
	encap->definition = definition;
	return 0;
}

/* Encapsulation and decapsulation begin alike but for a pointer between bytes and size. */
static int fill_bytes(struct rule_parser *parser, const struct rule_thing *thing, void *conf)
{
	struct rule_raw_encap *encap = conf;
	struct rule_raw_decap *decap = conf;
	bool is_encap = thing->type == RTE_FLOW_ACTION_TYPE_RAW_ENCAP;
	uint8_t bytes[RULE_OUTER_MAX], *kept;
	struct rule_command *items;
	unsigned at;
	int ret = parse_outer(parser, thing->slot, is_encap ? encap->index : decap->index, &items);

	if (ret < 0 || !items)
		return ret;
	ret = rule_outer_bytes(items->pattern, bytes, sizeof(bytes), &at);
	if (ret < 0)
		return rule_parser_fail(parser, 0, ret, "the outer headers cannot be made");
	kept = rule_memory_take(parser->memory, (size_t)ret + 1);
	if (!kept)
		return rule_parser_no_memory(parser);
	memcpy(kept, bytes, (size_t)ret);
	if (is_encap) {
		encap->encap.data = kept;
		encap->encap.size = (size_t)ret;
	} else {
		decap->decap.data = kept;
		decap->decap.size = (size_t)ret;
	}
	return 0;
}

static int fill_sample(struct rule_parser *parser, void *conf)
{
	struct rule_sample *sample = conf;
	struct rule_command *child;
	int ret = 0;

	if (sample->given) {
		ret = parse_child(parser,
			rule_setup_line(parser->setup, RULE_SLOT_SAMPLE, sample->index), &child);
		if (ret == 0 && child)
			sample->sample.actions = child->actions[0];
	}
	return ret;
}

/* Three lines, each of which fills other bytes. */
static int fill_conntrack(struct rule_parser *parser, void *conf)
{
	static const enum rule_slot slots[] = {
		RULE_SLOT_CONNTRACK, RULE_SLOT_CONNTRACK_ORIGINAL, RULE_SLOT_CONNTRACK_REPLY};
	uint8_t *to = conf;

	for (unsigned i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		struct rule_command *child;
		int ret = parse_child(parser, rule_setup_line(parser->setup, slots[i], 0), &child);

		if (ret < 0)
			return ret;
		const uint8_t *from = child ? child->parts->conf : NULL;

		for (size_t b = 0; from && b < sizeof(struct rte_flow_action_conntrack); b++)
			to[b] |= from[b];
	}
	return 0;
}

int rule_fill(struct rule_parser *parser, const struct rule_thing *thing, void *conf)
{
	struct rte_flow_action_rss *rss = conf;

	switch (thing->fill) {
	case RULE_FILL_DEFINITION:
		return fill_definition(parser, thing->slot, conf);
	case RULE_FILL_BYTES:
		return fill_bytes(parser, thing, conf);
	case RULE_FILL_SAMPLE:
		return fill_sample(parser, conf);
	case RULE_FILL_CONNTRACK:
		return fill_conntrack(parser, conf);
	case RULE_FILL_RSS:
		/* a key of no bytes is no key */
		if (rss->key_len == 0)
			rss->key = NULL;
		break;
	case RULE_FILL_NOTHING:
		break;
	}
	return 0;
}
