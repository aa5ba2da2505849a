/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/outer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The layers of a `set` line: what stands between IP and the number, and what has the number. */
static const struct {
	enum rule_slot slot;
	bool ip;
	const char *middle;
	const char *last;
	const char *number;
} layers[] = {
	{RULE_SLOT_VXLAN, true, "udp", "vxlan", "vni"},
	{RULE_SLOT_NVGRE, true, NULL, "nvgre", "tni"},
	{RULE_SLOT_L2_ENCAP, false, NULL, NULL, NULL},
	{RULE_SLOT_L2_DECAP, false, NULL, NULL, NULL},
	{RULE_SLOT_MPLSOGRE_ENCAP, true, "gre", "mpls", "label"},
	{RULE_SLOT_MPLSOGRE_DECAP, true, "gre", "mpls", "label"},
	{RULE_SLOT_MPLSOUDP_ENCAP, true, "udp", "mpls", "label"},
	{RULE_SLOT_MPLSOUDP_DECAP, true, "udp", "mpls", "label"},
};

/* Text that grows as long as it fits. */
struct text {
	char *at;
	size_t size, length;
};

static void add_text(struct text *text, const char *format, const char *value)
{
	if (text->length < text->size)
		text->length += (size_t)snprintf(
			text->at + text->length, text->size - text->length, format, value);
}

/* " FIELD is VALUE", where the command has such an argument. */
static void add_field(struct text *text, const struct rule_command *command,
	enum rule_argument_id id, const char *field)
{
	const struct rule_argument *argument = rule_command_argument(command, id, 0);

	if (!argument)
		return;
	add_text(text, " %s", field);
	add_text(text, " is %s", argument->text);
}

bool rule_outer_text(const struct rule_command *command, char *buffer, size_t size)
{
	const struct rule_argument *version =
		rule_command_argument(command, RULE_ARG_IP_VERSION, 0);
	bool v6 = version && version->number == 6;
	const struct rule_step *name = &command->form->steps[1];
	struct text text = {buffer, size, 0};
	unsigned i = 0;

	while (layers[i].slot != command->form->slot)
		i++;
	add_text(&text, "set raw_encap eth%s", "");
	add_field(&text, command, RULE_ARG_ETH_SRC, "src");
	add_field(&text, command, RULE_ARG_ETH_DST, "dst");
	if (strstr(name->name, "-with-vlan"))
		add_text(&text, " / %s", "vlan");
	add_field(&text, command, RULE_ARG_VLAN_TCI, "tci");
	if (layers[i].ip)
		add_text(&text, " / %s", v6 ? "ipv6" : "ipv4");
	add_field(&text, command, RULE_ARG_IP_SRC, "src");
	add_field(&text, command, RULE_ARG_IP_DST, "dst");
	add_field(&text, command, RULE_ARG_IP_TOS, v6 ? "tc" : "tos");
	add_field(&text, command, RULE_ARG_IP_TTL, v6 ? "hop" : "ttl");
	if (layers[i].middle)
		add_text(&text, " / %s", layers[i].middle);
	add_field(&text, command, RULE_ARG_UDP_SRC, "src");
	add_field(&text, command, RULE_ARG_UDP_DST, "dst");
	if (layers[i].last)
		add_text(&text, " / %s", layers[i].last);
	add_field(&text, command, RULE_ARG_VNI, layers[i].number);
	add_text(&text, " / %s", "end_set");
	return text.length < size;
}

static bool has_layers(enum rule_slot slot)
{
	for (unsigned i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
		if (layers[i].slot == slot)
			return true;
	return false;
}

/* The place of a word in the line, by its address: texts of arguments are the words themselves. */
static unsigned place_of(const struct rule_parser *parser, const char *text)
{
	for (unsigned i = 0; i < parser->n_words; i++)
		if (parser->words[i].text == text)
			return i;
	return 0;
}

/*
 * Addresses of the other version and numbers that are too large show when the line is made into items. The
 * word that is wrong stands in both lines.
 */
static int check_layers(struct rule_parser *parser)
{
	struct rule_command *items, *command = parser->command;
	char text[1024];
	unsigned column;
	int ret;

	if (!rule_outer_text(command, text, sizeof(text)))
		return rule_parser_fail(parser, 0, -E2BIG, "the line is too long");
	ret = parser->parse(&items, NULL, text, strlen(text), &column, parser->error);
	if (ret == 0) {
		rule_command_destroy(items);
		return 0;
	}
	const char *wrong = column <= strlen(text) ? text + column - 1 : "";
	size_t length = strcspn(wrong, " ");

	*parser->column = 1;
	for (unsigned i = 0; i < command->n_arguments; i++) {
		const char *word = command->arguments[i].text;

		if (strlen(word) == length && strncmp(word, wrong, length) == 0)
			*parser->column = parser->words[place_of(parser, word)].column;
	}
	return ret;
}

static int check_sample(struct rule_parser *parser)
{
	const struct rte_flow_action *action = parser->command->actions[0];

	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		if (action->type == RTE_FLOW_ACTION_TYPE_SAMPLE)
			break;
	if (action->type == RTE_FLOW_ACTION_TYPE_END)
		return 0;
	for (unsigned i = 2; i < parser->n_words; i++)
		if (strcmp(parser->words[i].text, "sample") == 0)
			return rule_parser_fail(parser, i, -EINVAL,
				"sample: a sample's actions have no sample among them");
	return 0;
}

static int check_bytes(struct rule_parser *parser)
{
	uint8_t bytes[RULE_OUTER_MAX];
	unsigned at = 0;
	int ret = rule_outer_bytes(parser->command->pattern, bytes, sizeof(bytes), &at);

	if (ret == -E2BIG)
		return rule_parser_fail(
			parser, 0, ret, "the headers have more than %u bytes", RULE_OUTER_MAX);
	if (ret >= 0)
		return 0;
	const char *name = parser->command->parts->items[at]->name;

	for (unsigned i = 2; i < parser->n_words; i++)
		if (parser->words[i].text[0] == name[0] && strcmp(parser->words[i].text, name) == 0)
			return rule_parser_fail(parser, i, ret,
				"%s: this item cannot be part of an outer header", name);
	return ret;
}

int rule_outer_check(struct rule_parser *parser)
{
	enum rule_slot slot = parser->command->form->slot;

	if (has_layers(slot))
		return check_layers(parser);
	if (slot == RULE_SLOT_SAMPLE)
		return check_sample(parser);
	return parser->command->pattern ? check_bytes(parser) : 0;
}

/* What the header before says of each: an EtherType, an IP protocol, a UDP port. 0: it cannot. */
static const struct {
	enum rte_flow_item_type type;
	uint16_t ethertype;
	uint8_t protocol;
	uint16_t port;
} nexts[] = {
	{RTE_FLOW_ITEM_TYPE_ETH, 0x6558, 143, 0},
	{RTE_FLOW_ITEM_TYPE_VLAN, 0x8100, 0, 0},
	{RTE_FLOW_ITEM_TYPE_IPV4, 0x0800, 4, 0},
	{RTE_FLOW_ITEM_TYPE_IPV6, 0x86dd, 41, 0},
	{RTE_FLOW_ITEM_TYPE_MPLS, 0x8847, 137, 6635},
	{RTE_FLOW_ITEM_TYPE_PPPOED, 0x8863, 0, 0},
	{RTE_FLOW_ITEM_TYPE_PPPOES, 0x8864, 0, 0},
	{RTE_FLOW_ITEM_TYPE_ICMP, 0, 1, 0},
	{RTE_FLOW_ITEM_TYPE_TCP, 0, 6, 0},
	{RTE_FLOW_ITEM_TYPE_UDP, 0, 17, 0},
	{RTE_FLOW_ITEM_TYPE_IPV6_FRAG_EXT, 0, 44, 0},
	{RTE_FLOW_ITEM_TYPE_GRE, 0, 47, 0},
	{RTE_FLOW_ITEM_TYPE_NVGRE, 0, 47, 0},
	{RTE_FLOW_ITEM_TYPE_ESP, 0, 50, 4500},
	{RTE_FLOW_ITEM_TYPE_AH, 0, 51, 0},
	{RTE_FLOW_ITEM_TYPE_ICMP6, 0, 58, 0},
	{RTE_FLOW_ITEM_TYPE_L2TPV3OIP, 0, 115, 0},
	{RTE_FLOW_ITEM_TYPE_SCTP, 0, 132, 0},
	{RTE_FLOW_ITEM_TYPE_VXLAN, 0, 0, 4789},
	{RTE_FLOW_ITEM_TYPE_VXLAN_GPE, 0, 0, 4790},
	{RTE_FLOW_ITEM_TYPE_GENEVE, 0, 0, 6081},
	{RTE_FLOW_ITEM_TYPE_GTPC, 0, 0, 2123},
	{RTE_FLOW_ITEM_TYPE_GTPU, 0, 0, 2152},
};

/* Where each header says what follows, and values that it has if nothing else is said. */
enum follows {
	FOLLOWS_NOTHING,
	FOLLOWS_ETHERTYPE,
	FOLLOWS_PROTOCOL,
	FOLLOWS_PORT,
};

static const struct {
	enum rte_flow_item_type type;
	enum follows follows;
	uint8_t at;
	struct {
		uint8_t at, mask, value;
	} usual[2];
} headers[] = {
	{RTE_FLOW_ITEM_TYPE_ETH, FOLLOWS_ETHERTYPE, 12, {{0}}},
	{RTE_FLOW_ITEM_TYPE_VLAN, FOLLOWS_ETHERTYPE, 2, {{0}}},
	{RTE_FLOW_ITEM_TYPE_IPV4, FOLLOWS_PROTOCOL, 9, {{0, 0xff, 0x45}, {8, 0xff, 64}}},
	{RTE_FLOW_ITEM_TYPE_IPV6, FOLLOWS_PROTOCOL, 6, {{0, 0xf0, 0x60}, {7, 0xff, 64}}},
	{RTE_FLOW_ITEM_TYPE_IPV6_FRAG_EXT, FOLLOWS_PROTOCOL, 0, {{0}}},
	{RTE_FLOW_ITEM_TYPE_UDP, FOLLOWS_PORT, 2, {{0}}},
	{RTE_FLOW_ITEM_TYPE_GRE, FOLLOWS_ETHERTYPE, 2, {{0}}},
	{RTE_FLOW_ITEM_TYPE_NVGRE, FOLLOWS_NOTHING, 0, {{0, 0xff, 0x20}, {2, 0xff, 0x65}}},
	{RTE_FLOW_ITEM_TYPE_GENEVE, FOLLOWS_ETHERTYPE, 2, {{0}}},
	{RTE_FLOW_ITEM_TYPE_VXLAN, FOLLOWS_NOTHING, 0, {{0, 0xff, 0x08}, {0}}},
	{RTE_FLOW_ITEM_TYPE_VXLAN_GPE, FOLLOWS_NOTHING, 0, {{0, 0xff, 0x0c}, {0}}},
	{RTE_FLOW_ITEM_TYPE_GTPU, FOLLOWS_NOTHING, 0, {{0, 0xff, 0x30}, {1, 0xff, 0xff}}},
};

/* Says in a header what follows it, unless it says something already. */
static void link_header(uint8_t *header, enum rte_flow_item_type type, enum rte_flow_item_type next)
{
	unsigned h = 0, n = 0;

	while (h < sizeof(headers) / sizeof(headers[0]) && headers[h].type != type)
		h++;
	while (n < sizeof(nexts) / sizeof(nexts[0]) && nexts[n].type != next)
		n++;
	if (h == sizeof(headers) / sizeof(headers[0]))
		return;
	for (unsigned i = 0; i < 2; i++)
		if (!(header[headers[h].usual[i].at] & headers[h].usual[i].mask))
			header[headers[h].usual[i].at] |= headers[h].usual[i].value;
	if (headers[h].type == RTE_FLOW_ITEM_TYPE_NVGRE && header[2] == 0x65 && header[3] == 0)
		header[3] = 0x58;
	if (n == sizeof(nexts) / sizeof(nexts[0]))
		return;
	uint8_t *at = header + headers[h].at;
	uint16_t two = headers[h].follows == FOLLOWS_ETHERTYPE ? nexts[n].ethertype : nexts[n].port;

	if (headers[h].follows == FOLLOWS_PROTOCOL) {
		if (*at == 0)
			*at = nexts[n].protocol;
	} else if (headers[h].follows != FOLLOWS_NOTHING && at[0] == 0 && at[1] == 0) {
		at[0] = (uint8_t)(two >> 8);
		at[1] = (uint8_t)two;
	}
}

/* A header has an address, not one of a set. */
static bool names_set(const struct rte_flow_item *item)
{
	const struct rule_ipv4 *v4 = item->mask;
	const struct rule_ipv6 *v6 = item->mask;

	if (item->mask == NULL)
		return false;
	if (item->type == RTE_FLOW_ITEM_TYPE_IPV4)
		return v4->sets.src[0] != 0 || v4->sets.dst[0] != 0;
	return item->type == RTE_FLOW_ITEM_TYPE_IPV6 &&
	       (v6->sets.src[0] != 0 || v6->sets.dst[0] != 0);
}

int rule_outer_bytes(const struct rte_flow_item *items, uint8_t *bytes, size_t size, unsigned *at)
{
	size_t length = 0;

	for (*at = 0; items[*at].type != RTE_FLOW_ITEM_TYPE_END; ++*at) {
		const struct rte_flow_item *item = &items[*at];
		const struct rule_thing *row = rule_item_of(item->type);

		if (item->type == RTE_FLOW_ITEM_TYPE_VOID)
			continue;
		if (!row || !row->wire || names_set(item))
			return -ENOTSUP;
		if (length + row->wire > size)
			return -E2BIG;
		memset(bytes + length, 0, row->wire);
		if (item->spec)
			memcpy(bytes + length, item->spec, row->wire);
		link_header(bytes + length, item->type, items[*at + 1].type);
		/* the bottom of the stack of labels */
		if (item->type == RTE_FLOW_ITEM_TYPE_MPLS &&
			items[*at + 1].type != RTE_FLOW_ITEM_TYPE_MPLS)
			bytes[length + 2] |= 1;
		length += row->wire;
	}
	return (int)length;
}
