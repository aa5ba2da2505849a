/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of items and of actions. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "rule/parser.h"
#include "rule/words.h"

enum param {
	PARAM_IS,
	PARAM_SPEC,
	PARAM_LAST,
	PARAM_MASK,
	PARAM_PREFIX,
	PARAM_ABOVE,
	N_PARAMS,
};

static const struct {
	const char *name, *what;
} params[N_PARAMS] = {
	[PARAM_IS] = {"is", "exactly this value"},
	[PARAM_SPEC] = {"spec", "this value, as far as the mask has ones"},
	[PARAM_LAST] = {"last", "up to this value"},
	[PARAM_MASK] = {"mask", "ones where bits count"},
	[PARAM_PREFIX] = {"prefix", "number of leading bits that count"},
	[PARAM_ABOVE] = {"above", "more than this"},
};

/* An item while it is parsed. */
struct item {
	const struct rule_thing *thing;
	uint8_t *spec, *last, *mask;
	bool has_spec, has_last, has_mask;
	uint16_t variant;
	uint64_t named; /* struct rule_command_parts */
};

static int take_item_memory(struct rule_parser *parser, struct item *item)
{
	size_t size = (item->thing->size + 15u) & ~15u;

	if (item->spec)
		return 0;
	item->spec = rule_memory_take(parser->memory, 3 * size);
	if (!item->spec)
		return rule_parser_no_memory(parser);
	item->last = item->spec + size;
	item->mask = item->last + size;
	return 0;
}

/* The field of this name, as far as the item's variant has it; the name "" stands for none. */
static const struct rule_field *find_field(
	const struct rule_thing *thing, uint16_t variant, const char *name)
{
	for (unsigned i = 0; i < thing->n_fields; i++) {
		const struct rule_field *field = &thing->fields[i];

		if ((field->variants == 0 || (field->variants & variant)) &&
			strcmp(field->name, name) == 0)
			return field;
	}
	return NULL;
}

static void expect_fields(
	struct rule_expected *expected, const struct rule_thing *thing, uint16_t variant)
{
	for (unsigned i = 0; i < thing->n_fields; i++) {
		const struct rule_field *field = &thing->fields[i];

		if (!(field->flags & RULE_ALIAS) && !field->refused && field->name[0] != '\0' &&
			(field->variants == 0 || (field->variants & variant)))
			rule_expect(expected, field->name, field->what);
	}
}

static bool param_fits(const struct rule_field *field, enum param param)
{
	if (field->flags & RULE_IS_ONLY)
		return param == PARAM_IS;
	if (field->flags & RULE_ABOVE || param == PARAM_ABOVE)
		return param == PARAM_ABOVE && field->flags & RULE_ABOVE;
	return !(field->flags & RULE_NO_RANGE) || (param != PARAM_LAST && param != PARAM_PREFIX);
}

/* The parameter of this name, or N_PARAMS. */
static enum param find_param(const struct rule_field *field, const char *word)
{
	enum param param = PARAM_IS;

	while (param < N_PARAMS &&
		(!param_fits(field, param) || strcmp(params[param].name, word) != 0))
		param++;
	return param;
}

static void expect_params(struct rule_expected *expected, const struct rule_field *field)
{
	for (enum param param = PARAM_IS; param < N_PARAMS; param++)
		if (param_fits(field, param))
			rule_expect(expected, params[param].name, params[param].what);
}

/* A mask of so many leading ones. */
static int parse_prefix(
	struct rule_parser *parser, const struct rule_field *field, struct rule_value *value)
{
	bool number = rule_field_is_number(field);
	unsigned bits = number ? rule_field_bits(field) : 8u * field->width;
	struct rule_field length = {
		.name = "prefix", .kind = RULE_NUMBER, .width = 2, .max = (uint16_t)bits};
	int ret = rule_parser_value(parser, &length, false, value);
	uint64_t n = value->number;

	if (ret < 0)
		return ret;
	if (number) {
		value->number = n == 0 ? 0 : UINT64_MAX << (bits - n);
		return 0;
	}
	value->n_bytes = field->width;
	memset(value->bytes, 0, field->width);
	for (unsigned i = 0; i < n; i++)
		value->bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return 0;
}

/* Bytes behind a pointer, zeros up to the field's limit. */
static void *take_bytes(
	struct rule_parser *parser, const struct rule_field *field, const void *bytes, size_t n)
{
	uint8_t *taken = rule_memory_take(parser->memory, field->max);

	if (taken)
		memcpy(taken, bytes, n);
	return taken;
}

static int store_bytes(struct rule_parser *parser, const struct rule_field *field, void *object,
	const struct rule_value *value)
{
	void *bytes = take_bytes(parser, field, value->bytes, value->n_bytes);

	if (!bytes)
		return rule_parser_no_memory(parser);
	rule_field_set_pointer(field, object, bytes);
	rule_field_set_length(field, object, value->n_bytes);
	return 0;
}

/* A value behind a pointer into spec and mask. */
static int apply_bytes(struct rule_parser *parser, struct item *item,
	const struct rule_field *field, enum param param, const struct rule_value *value)
{
	struct rule_value ones = {.n_bytes = value->n_bytes};
	int before = rule_field_length(field, item->spec);
	int ret;

	if (param == PARAM_MASK)
		return store_bytes(parser, field, item->mask, value);
	/* the mask of an `is` keeps its bytes when another value comes */
	if (rule_field_pointer(field, item->mask) && before >= 0 &&
		rule_field_length(field, item->mask) > field->max)
		rule_field_set_length(field, item->mask, (uint64_t)before);
	ret = store_bytes(parser, field, item->spec, value);
	if (ret < 0 || param != PARAM_IS)
		return ret;
	memset(ones.bytes, 0xff, ones.n_bytes);
	ret = store_bytes(parser, field, item->mask, &ones);
	rule_field_set_length(field, item->mask, UINT64_MAX);
	return ret;
}

static int apply(struct rule_parser *parser, struct item *item, const struct rule_field *field,
	enum param param, const struct rule_value *value)
{
	item->has_spec |= param == PARAM_IS || param == PARAM_SPEC || param == PARAM_ABOVE;
	item->has_last |= param == PARAM_LAST;
	item->has_mask |= param != PARAM_SPEC && param != PARAM_LAST;
	if (rule_field_points(field))
		return apply_bytes(parser, item, field, param, value);
	switch (param) {
	case PARAM_IS:
	case PARAM_ABOVE:
		rule_field_store(field, item->spec, value);
		rule_field_fill(field, item->mask);
		break;
	case PARAM_SPEC:
		rule_field_store(field, item->spec, value);
		break;
	case PARAM_LAST:
		rule_field_store(field, item->last, value);
		break;
	case PARAM_MASK:
	case PARAM_PREFIX:
	case N_PARAMS:
		rule_field_store(field, item->mask, value);
		break;
	}
	return 0;
}

/* Bytes that another kind of message has elsewhere say nothing. */
static void clear_variants(struct item *item)
{
	static const struct rule_value zero;

	for (unsigned i = 0; i < item->thing->n_fields; i++) {
		const struct rule_field *field = &item->thing->fields[i];

		if (!field->variants)
			continue;
		rule_field_store(field, item->spec, &zero);
		rule_field_store(field, item->last, &zero);
		rule_field_store(field, item->mask, &zero);
	}
}

/* A kind of message: its value is matched exactly. */
static int parse_variant(
	struct rule_parser *parser, struct item *item, const struct rule_field *field)
{
	const char *word = rule_parser_word(parser);
	struct rule_value value;
	int ret = rule_parser_value(parser, field, false, &value);

	if (ret < 0)
		return ret;
	uint16_t variant = (uint16_t)(1u << (rule_word_find(field->words, word) - field->words));

	if (item->variant != variant)
		clear_variants(item);
	item->variant = variant;
	return apply(parser, item, field, PARAM_IS, &value);
}

/* A value that follows the name of its field. */
static int parse_bare(struct rule_parser *parser, struct item *item, const struct rule_field *field)
{
	struct rule_value value;
	int ret = rule_parser_value(parser, field, false, &value);

	return ret < 0 ? ret : apply(parser, item, field, PARAM_IS, &value);
}

/* What stands behind the name of a field. */
static int parse_param(
	struct rule_parser *parser, struct item *item, const struct rule_field *field)
{
	const char *word = rule_parser_word(parser);
	enum param param = word ? find_param(field, word) : N_PARAMS;
	struct rule_value value;
	int ret;

	if (param == N_PARAMS) {
		struct rule_expected expected = {.n = 0};

		expect_params(&expected, field);
		return rule_parser_unexpected(parser, &expected);
	}
	parser->at++;
	ret = param == PARAM_PREFIX ? parse_prefix(parser, field, &value)
				    : rule_parser_value(parser, field, param == PARAM_MASK, &value);
	return ret < 0 ? ret : apply(parser, item, field, param, &value);
}

/* One field of an item. Returns 1 where the word here is none. */
static int parse_item_field(struct rule_parser *parser, struct item *item)
{
	const char *word = rule_parser_word(parser);
	const struct rule_field *field = word ? find_field(item->thing, item->variant, word) : NULL;

	if (!field) {
		field = find_field(item->thing, item->variant, "");
		if (!word || !field || find_param(field, word) == N_PARAMS)
			return 1;
	} else {
		rule_parser_refuse(parser, field->refused, &parser->words[parser->at]);
		parser->at++;
	}
	const size_t number = (size_t)(field - item->thing->fields);
	int ret = take_item_memory(parser, item);

	if (number < 64)
		item->named |= UINT64_C(1) << number;
	if (ret < 0 || field->kind == RULE_EMPTY)
		return ret;
	if (field->kind == RULE_VARIANT)
		return parse_variant(parser, item, field);
	if (field->flags & RULE_BARE)
		return parse_bare(parser, item, field);
	return parse_param(parser, item, field);
}

static int parse_item(struct rule_parser *parser, const struct rule_thing *thing,
	struct rte_flow_item *made, uint64_t *named)
{
	struct item item = {.thing = thing};
	int ret;

	do {
		ret = parse_item_field(parser, &item);
	} while (ret == 0);
	if (ret < 0)
		return ret;
	*made = (struct rte_flow_item){
		.type = (enum rte_flow_item_type)thing->type,
		.spec = item.has_spec ? item.spec : NULL,
		.last = item.has_last ? item.last : NULL,
		.mask = item.has_mask ? item.mask : NULL,
	};
	*named = item.named;
	const char *word = rule_parser_word(parser);

	if (word && strcmp(word, "/") == 0) {
		parser->at++;
		return 0;
	}
	struct rule_expected expected = {.all = "a field of this item or /"};

	expect_fields(&expected, thing, item.variant);
	if (find_field(thing, item.variant, ""))
		expect_params(&expected, find_field(thing, item.variant, ""));
	rule_expect(&expected, "/", NULL);
	return rule_parser_unexpected(parser, &expected);
}

/* The row of the word here: one of the things, or what ends the list. */
static const struct rule_thing *find_thing(const struct rule_parser *parser, const char *end,
	const struct rule_thing *(*find)(const char *name))
{
	const char *word = rule_parser_word(parser);

	if (word && strcmp(word, end) == 0)
		return find("end");
	return word && strcmp(word, "end") != 0 ? find(word) : NULL;
}

static int no_thing(struct rule_parser *parser, const char *end, const struct rule_thing *things,
	unsigned n, const char *all)
{
	struct rule_expected expected = {.all = all};

	for (unsigned i = 0; i < n; i++)
		if (strcmp(things[i].name, "end") != 0 && !things[i].refused)
			rule_expect(&expected, things[i].name, things[i].what);
	rule_expect(&expected, end, "ends the list");
	return rule_parser_unexpected(parser, &expected);
}

/* A copy of an array in the command's memory. */
static void *keep(struct rule_parser *parser, const void *array, size_t size)
{
	void *kept = rule_memory_take(parser->memory, size);

	if (kept)
		memcpy(kept, array, size);
	return kept;
}

int rule_parse_items(struct rule_parser *parser, const char *end)
{
	struct rte_flow_item items[RULE_LIST_MAX];
	const struct rule_thing *things[RULE_LIST_MAX];
	uint64_t named[RULE_LIST_MAX];
	unsigned n = 0;

	do {
		const struct rule_thing *thing = find_thing(parser, end, rule_item_find);

		if (!thing)
			return no_thing(parser, end, rule_items, rule_n_items, "a pattern item");
		if (n == RULE_LIST_MAX)
			return rule_parser_fail(parser, parser->at, -E2BIG,
				"a pattern has at most %u items", RULE_LIST_MAX);
		rule_parser_refuse(parser, thing->refused, &parser->words[parser->at]);
		parser->at++;
		things[n] = thing;
		named[n] = 0;
		items[n] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_END};
		if (thing->type != RTE_FLOW_ITEM_TYPE_END) {
			int ret = parse_item(parser, thing, &items[n], &named[n]);

			if (ret < 0)
				return ret;
		}
	} while (things[n++]->type != RTE_FLOW_ITEM_TYPE_END);
	parser->command->pattern = keep(parser, items, n * sizeof(items[0]));
	parser->command->parts->items = keep(parser, things, n * sizeof(things[0]));
	parser->command->parts->named = keep(parser, named, n * sizeof(named[0]));
	return parser->command->parts->items && parser->command->parts->named
		       ? 0
		       : rule_parser_no_memory(parser);
}

static int parse_types(struct rule_parser *parser, const struct rule_field *field, void *conf)
{
	struct rule_value types = {.number = 0};
	const char *word;

	while ((word = rule_parser_word(parser)) && strcmp(word, "end") != 0) {
		const struct rule_word *type = rule_word_find(field->words, word);

		if (!type)
			break;
		types.number |= type->value;
		parser->at++;
	}
	if (!word || strcmp(word, "end") != 0) {
		struct rule_expected expected = {.all = "a hash type or end"};

		for (unsigned i = 0; field->words[i].name; i++)
			rule_expect(&expected, field->words[i].name, NULL);
		rule_expect(&expected, "end", "ends the list");
		return rule_parser_unexpected(parser, &expected);
	}
	parser->at++;
	rule_field_store(field, conf, &types);
	return 0;
}

static int parse_queues(struct rule_parser *parser, const struct rule_field *field, void *conf)
{
	uint16_t queues[128];
	struct rule_field queue = {.name = "queues", .kind = RULE_NUMBER, .width = 2};
	struct rule_value value;
	unsigned n = 0;
	const char *word;

	while ((word = rule_parser_word(parser)) && strcmp(word, "end") != 0) {
		if (n == field->max)
			return rule_parser_fail(parser, parser->at, -E2BIG,
				"at most %u queues are possible", field->max);
		int ret = rule_parser_value(parser, &queue, false, &value);

		if (ret < 0)
			return ret;
		queues[n++] = (uint16_t)value.number;
	}
	if (!word) {
		struct rule_expected expected = {.value = "a queue"};

		rule_expect(&expected, "end", "ends the list");
		return rule_parser_unexpected(parser, &expected);
	}
	parser->at++;
	void *kept = n > 0 ? keep(parser, queues, n * sizeof(queues[0])) : NULL;

	if (n > 0 && !kept)
		return rule_parser_no_memory(parser);
	rule_field_set_pointer(field, conf, kept);
	rule_field_set_length(field, conf, n);
	return 0;
}

static const struct rule_field *find_source_type(const struct rule_thing *thing)
{
	for (unsigned i = 0; i < thing->n_fields; i++)
		if (thing->fields[i].flags & RULE_CLEARS)
			return &thing->fields[i];
	return NULL;
}

/* Bytes that several fields share are those of one of them, by src_type. */
static int check_source(struct rule_parser *parser, const struct rule_thing *thing,
	const struct rule_field *field, const void *conf)
{
	struct rule_value type;

	rule_field_load(find_source_type(thing), conf, &type);
	if (rule_source_fits(field, type.number))
		return 0;
	return rule_parser_fail(parser, parser->at - 1, -EINVAL, "%s: src_type %s has no %s",
		field->name, rule_word_name(rule_field_ids, type.number), field->name);
}

static int parse_field_value(struct rule_parser *parser, const struct rule_thing *thing,
	const struct rule_field *field, void *conf)
{
	struct rule_value value = {.number = 1};
	int ret = 0;

	if (field->kind == RULE_TYPES)
		return parse_types(parser, field, conf);
	if (field->kind == RULE_QUEUES)
		return parse_queues(parser, field, conf);
	if (field->flags & RULE_SOURCE)
		ret = check_source(parser, thing, field, conf);
	if (ret == 0 && field->kind != RULE_FLAG)
		ret = rule_parser_value(parser, field, false, &value);
	if (ret < 0)
		return ret;
	if (field->flags & RULE_CLEARS)
		for (unsigned i = 0; i < thing->n_fields; i++)
			if (thing->fields[i].flags & RULE_SOURCE)
				memset((uint8_t *)conf + thing->fields[i].offset, 0,
					thing->fields[i].width);
	if (rule_field_points(field))
		return store_bytes(parser, field, conf, &value);
	rule_field_store(field, conf, &value);
	return 0;
}

int rule_parse_fields(struct rule_parser *parser, const struct rule_thing *thing, void *conf,
	const char *after, struct rule_expected *expected)
{
	const char *word;

	while ((word = rule_parser_word(parser))) {
		const struct rule_field *field = find_field(thing, 0, word);

		if (!field || field->name[0] == '\0')
			break;
		rule_parser_refuse(parser, field->refused, &parser->words[parser->at]);
		parser->at++;
		int ret = parse_field_value(parser, thing, field, conf);

		if (ret < 0)
			return ret;
	}
	expect_fields(expected, thing, 0);
	if (after)
		rule_expect(expected, after, NULL);
	if (!word && parser->complete)
		return rule_parser_unexpected(parser, expected);
	return 0;
}

/* One action. Its struct is there only when a field is given, or when `set` lines may fill it. */
static int parse_action(
	struct rule_parser *parser, const struct rule_thing *thing, struct rte_flow_action *made)
{
	struct rule_expected expected = {.all = "a field of this action or /"};
	unsigned before = parser->at;
	/* of no use to actions that have no struct */
	void *conf = rule_memory_take(parser->memory, thing->size);
	int ret = 0;

	if (!conf)
		return rule_parser_no_memory(parser);
	for (unsigned i = 0; i < thing->n_fields; i++)
		if (thing->fields[i].flags & RULE_ONES)
			rule_field_fill(&thing->fields[i], conf);
	for (unsigned i = 0; i < thing->n_fields && thing->fields[i].name[0] == '\0'; i++) {
		ret = parse_field_value(parser, thing, &thing->fields[i], conf);
		if (ret < 0)
			return ret;
	}
	ret = rule_parse_fields(parser, thing, conf, "/", &expected);
	if (ret < 0)
		return ret;
	*made = (struct rte_flow_action){
		.type = (enum rte_flow_action_type)thing->type,
		.conf = parser->at > before || thing->fill != RULE_FILL_NOTHING ? conf : NULL,
	};
	const char *word = rule_parser_word(parser);

	if (!word || strcmp(word, "/") != 0)
		return rule_parser_unexpected(parser, &expected);
	parser->at++;
	return thing->fill == RULE_FILL_NOTHING ? 0 : rule_fill(parser, thing, conf);
}

int rule_parse_actions(struct rule_parser *parser, unsigned list)
{
	struct rte_flow_action actions[RULE_LIST_MAX];
	const struct rule_thing *things[RULE_LIST_MAX];
	unsigned n = 0;

	do {
		const struct rule_thing *thing = find_thing(parser, "end", rule_action_find);

		if (!thing)
			return no_thing(parser, "end", rule_actions, rule_n_actions, "an action");
		if (n == RULE_LIST_MAX)
			return rule_parser_fail(parser, parser->at, -E2BIG,
				"a list has at most %u actions", RULE_LIST_MAX);
		rule_parser_refuse(parser, thing->refused, &parser->words[parser->at]);
		parser->at++;
		things[n] = thing;
		actions[n] = (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_END};
		if (thing->type != RTE_FLOW_ACTION_TYPE_END) {
			int ret = parse_action(parser, thing, &actions[n]);

			if (ret < 0)
				return ret;
		}
	} while (things[n++]->type != RTE_FLOW_ACTION_TYPE_END);
	parser->command->actions[list] = keep(parser, actions, n * sizeof(actions[0]));
	parser->command->parts->actions[list] = keep(parser, things, n * sizeof(things[0]));
	return parser->command->parts->actions[list] ? 0 : rule_parser_no_memory(parser);
}
